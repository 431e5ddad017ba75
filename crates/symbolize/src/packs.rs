//! Symbol packs: files with names that are given for a build-id, from three sources.
//!
//! - uploaded through the API, kept below the data directory;
//! - fetched from a debuginfod server, where one is configured, kept beside them;
//! - in a folder of the user's (`--symbol-dir`), which is only read.
//!
//! A pack is known by the build-id that it carries itself. The store can be shared by threads:
//! the symbolizer looks packs up, the API adds and removes them, the fetcher adds them.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
        mpsc::SyncSender,
    },
};

use parking_lot::{Mutex, MutexGuard};
use profiler_image::{build_id, elf_layout::Segment};
use profiler_model::NameSource;
use profiler_sandbox::broker::{self, OwnPath};

use super::{
    pack_file::{PackError, PackInfo, READER, examine, io_error},
    segment_book::SegmentBook,
    symbol_folder::SymbolFolder,
};

const UPLOADED: &str = "uploaded";
const FETCHED: &str = "fetched";
const UNFINISHED: &str = ".unfinished-";
/// Files of earlier runs that are looked at.
const FILES_LIMIT: usize = 1 << 20;
/// Build-ids that are asked of a server in one run of the agent.
const WANTED_LIMIT: usize = 10_000;

/// An open pack.
#[derive(Debug)]
pub struct PackFile {
    pub file: File,
    pub source: NameSource,
}

/// A file that is being uploaded; removed when it is dropped before it was taken.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It is gone when it was taken.
        let _gone = fs::remove_file(&self.path);
    }
}

/// See the module's description. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SymbolPacks(Option<Arc<Inner>>);

/// Packs that may be gone.
#[derive(Debug)]
pub(super) struct WeakPacks(Option<Weak<Inner>>);

impl WeakPacks {
    pub(super) fn upgrade(&self) -> Option<SymbolPacks> {
        Some(SymbolPacks(Some(self.0.as_ref()?.upgrade()?)))
    }
}

#[derive(Debug)]
struct Inner {
    folder: Option<PathBuf>,
    max_bytes: u64,
    state: Mutex<State>,
    /// Counts every change, so that users see with one load whether there is something new.
    changes: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// By build-id; one that was uploaded replaces one that was fetched.
    kept: BTreeMap<Vec<u8>, PackInfo>,
    given: Option<SymbolFolder>,
    book: SegmentBook,
    unfinished: u64,
    fetcher: Option<SyncSender<Vec<u8>>>,
    wanted: HashSet<Vec<u8>>,
}

impl SymbolPacks {
    /// No packs, ever.
    pub fn none() -> Self {
        Self(None)
    }

    /// Packs kept in `folder` (made when the first one comes) and found in `given`. `max_bytes` is
    /// the room for all that are uploaded, and again for all that are fetched.
    pub fn open(folder: Option<PathBuf>, given: Option<PathBuf>, max_bytes: u64) -> Self {
        let kept = folder.as_deref().map(|folder| {
            let mut unfinished = Vec::new();
            let read = broker::apart(READER, || read_kept(folder, &mut unfinished));
            for path in unfinished {
                // What cannot be removed is only room that is lost.
                let _left = fs::remove_file(path);
            }
            read.unwrap_or_else(|error| {
                tracing::warn!(%error, "read the symbol files of earlier runs");
                BTreeMap::new()
            })
        });
        let kept = kept.unwrap_or_default();
        let book = SegmentBook::open(folder.as_ref().map(|folder| folder.join("segments")));
        Self(Some(Arc::new(Inner {
            folder,
            max_bytes,
            state: Mutex::new(State {
                kept,
                given: given.map(SymbolFolder::new),
                book,
                unfinished: 0,
                fetcher: None,
                wanted: HashSet::new(),
            }),
            changes: AtomicU64::new(0),
        })))
    }

    /// Largest file that is taken.
    pub fn max_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |inner| inner.max_bytes)
    }

    /// Number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        let inner = self.0.as_ref();
        inner.map_or(0, |inner| inner.changes.load(Ordering::Acquire))
    }

    pub(super) fn downgrade(&self) -> WeakPacks {
        WeakPacks(self.0.as_ref().map(Arc::downgrade))
    }

    /// Where build-ids without names are sent; see `debuginfod`.
    pub(super) fn set_fetcher(&self, fetcher: SyncSender<Vec<u8>>) {
        if let Some(inner) = &self.0 {
            inner.lock().fetcher = Some(fetcher);
        }
    }

    /// The source of the pack for a build-id.
    pub(crate) fn has(&self, build_id: &[u8]) -> Option<NameSource> {
        let inner = self.0.as_ref()?;
        let mut state = inner.lock();
        if let Some(info) = state.kept.get(build_id) {
            return Some(info.source);
        }
        state
            .given
            .as_mut()?
            .find(build_id)
            .map(|_| NameSource::SymbolPack)
    }

    /// The folder of uploaded and fetched packs, made when it is not there; `None` where none are kept.
    pub(super) fn made_folder(&self) -> io::Result<Option<PathBuf>> {
        let folder = self.0.as_ref().and_then(|inner| inner.folder.clone());
        if let Some(folder) = &folder {
            make_folder(folder)?;
        }
        Ok(folder)
    }

    /// Opens the pack for a build-id: an uploaded one before one of the user's folder before a
    /// fetched one.
    pub fn find(&self, build_id: &[u8]) -> Option<PackFile> {
        let inner = self.0.as_ref()?;
        let mut state = inner.lock();
        let kept = state.kept.get(build_id).map(|info| info.source);
        if kept != Some(NameSource::SymbolPack)
            && let Some(file) = state.given.as_mut().and_then(|given| given.open(build_id))
        {
            let source = NameSource::SymbolPack;
            return Some(PackFile { file, source });
        }
        let source = kept?;
        let path = inner.kept_path(build_id, source)?;
        let file = broker::open(OwnPath::at(&path))
            .inspect_err(
                |error| tracing::warn!(path = %path.display(), %error, "open a symbol file"),
            )
            .ok()?;
        Some(PackFile { file, source })
    }

    /// Asks for a pack for a program that has few names of its own, where a server is configured.
    pub(crate) fn want(&self, build_id: &[u8]) {
        let Some(inner) = &self.0 else { return };
        let mut state = inner.lock();
        let Some(fetcher) = state.fetcher.clone() else {
            return;
        };
        if state.kept.contains_key(build_id)
            || state.wanted.len() >= WANTED_LIMIT
            || state.wanted.contains(build_id)
        {
            return;
        }
        // A full queue means that the server is slow; the next program that asks may be luckier.
        if fetcher.try_send(build_id.to_vec()).is_ok() {
            state.wanted.insert(build_id.to_vec());
        }
    }

    /// Keeps where the code of a program lies in its file, which a debug file does not know.
    pub(crate) fn remember(&self, build_id: &[u8], segments: &[Segment]) {
        if let Some(inner) = &self.0 {
            inner.lock().book.add(build_id, segments);
        }
    }

    /// The segments from [`SymbolPacks::remember`].
    pub(crate) fn segments(&self, build_id: &[u8]) -> Option<Vec<Segment>> {
        self.0.as_ref()?.lock().book.get(build_id)
    }

    /// All packs, by build-id.
    pub fn list(&self) -> Vec<PackInfo> {
        let Some(inner) = &self.0 else {
            return Vec::new();
        };
        let mut state = inner.lock();
        let mut all = state.kept.clone();
        for info in state.given.iter_mut().flat_map(SymbolFolder::list) {
            let uploaded = all
                .get(&info.build_id)
                .is_some_and(|kept| kept.source == NameSource::SymbolPack);
            if !uploaded {
                all.insert(info.build_id.clone(), info);
            }
        }
        all.into_values().collect()
    }

    /// A new file to write an upload into.
    pub fn begin(&self) -> Result<Unfinished, PackError> {
        let inner = self.0.as_ref().ok_or(PackError::NoFolder)?;
        let folder = inner.folder.as_ref().ok_or(PackError::NoFolder)?;
        make_folder(folder).map_err(io_error("make the folder for symbol files"))?;
        let mut state = inner.lock();
        state.unfinished += 1;
        let path = folder.join(format!("{UNFINISHED}{}", state.unfinished));
        File::create(&path).map_err(io_error("make a symbol file"))?;
        Ok(Unfinished { path })
    }

    /// Takes a written file, whose build-id must be `expected` where one is given. It replaces
    /// what there was for its build-id.
    pub fn take(
        &self,
        written: Unfinished,
        expected: Option<&[u8]>,
    ) -> Result<PackInfo, PackError> {
        self.add(written, expected, NameSource::SymbolPack)
    }

    /// Takes a file that a server gave.
    pub(super) fn take_fetched(
        &self,
        written: Unfinished,
        expected: &[u8],
    ) -> Result<PackInfo, PackError> {
        self.add(written, Some(expected), NameSource::Debuginfod)
    }

    fn add(
        &self,
        written: Unfinished,
        expected: Option<&[u8]>,
        source: NameSource,
    ) -> Result<PackInfo, PackError> {
        let inner = self.0.as_ref().ok_or(PackError::NoFolder)?;
        let file = File::open(written.path()).map_err(io_error("open the symbol file"))?;
        let info = broker::apart(READER, || examine(&file, source))
            .map_err(io_error("read the symbol file"))??;
        if let Some(expected) = expected
            && expected != info.build_id
        {
            return Err(PackError::Mismatch {
                expected: build_id::hexadecimal(expected),
                found: build_id::hexadecimal(&info.build_id),
            });
        }
        file.sync_all().map_err(io_error("write the symbol file"))?;
        let mut state = inner.lock();
        if let Some(known) = state.kept.get(&info.build_id).cloned()
            && known.source != source
        {
            if known.source == NameSource::SymbolPack {
                // It was uploaded while the server was asked.
                return Ok(known);
            }
            inner.delete(&mut state, &known)?;
        }
        inner.make_room(&mut state, &info)?;
        let path = inner
            .kept_path(&info.build_id, source)
            .ok_or(PackError::NoFolder)?;
        fs::rename(written.path(), &path).map_err(io_error("keep the symbol file"))?;
        state.kept.insert(info.build_id.clone(), info.clone());
        drop(state);
        inner.changes.fetch_add(1, Ordering::Release);
        Ok(info)
    }

    /// Removes a pack that was uploaded or fetched; false when there is none.
    pub fn remove(&self, build_id: &[u8]) -> Result<bool, PackError> {
        let Some(inner) = &self.0 else {
            return Ok(false);
        };
        let mut state = inner.lock();
        let Some(info) = state.kept.get(build_id).cloned() else {
            return Ok(false);
        };
        inner.delete(&mut state, &info)?;
        drop(state);
        inner.changes.fetch_add(1, Ordering::Release);
        Ok(true)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic happens between two changes that belong together.
        self.state.lock()
    }

    fn kept_path(&self, build_id: &[u8], source: NameSource) -> Option<PathBuf> {
        let suffix = match source {
            NameSource::Debuginfod => FETCHED,
            _ => UPLOADED,
        };
        let name = format!("{}.{suffix}", build_id::hexadecimal(build_id));
        Some(self.folder.as_ref()?.join(name))
    }

    /// Refuses an upload that does not fit; removes the oldest fetched files for a new one.
    fn make_room(&self, state: &mut State, new: &PackInfo) -> Result<(), PackError> {
        let others = |state: &State| -> Vec<PackInfo> {
            let of_kind =
                |info: &&PackInfo| info.source == new.source && info.build_id != new.build_id;
            let mut others: Vec<_> = state.kept.values().filter(of_kind).cloned().collect();
            others.sort_by_key(|info| std::cmp::Reverse(info.added_ns));
            others
        };
        let mut others = others(state);
        loop {
            let used = others
                .iter()
                .fold(new.bytes, |sum, info| sum.saturating_add(info.bytes));
            if used <= self.max_bytes {
                return Ok(());
            }
            let oldest = others
                .pop()
                .filter(|_| new.source == NameSource::Debuginfod);
            let Some(oldest) = oldest else {
                let limit = self.max_bytes;
                return Err(PackError::TooLarge { used, limit });
            };
            self.delete(state, &oldest)?;
        }
    }

    fn delete(&self, state: &mut State, info: &PackInfo) -> Result<(), PackError> {
        let path = self
            .kept_path(&info.build_id, info.source)
            .ok_or(PackError::NoFolder)?;
        match fs::remove_file(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                let what = "remove the symbol file";
                return Err(PackError::Io { what, source });
            }
        }
        state.kept.remove(&info.build_id);
        Ok(())
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    // The data directory may not be there yet.
    fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(folder)
}

/// The packs that earlier runs have kept, and what they left unfinished.
fn read_kept(folder: &Path, unfinished: &mut Vec<PathBuf>) -> BTreeMap<Vec<u8>, PackInfo> {
    let mut kept: BTreeMap<Vec<u8>, PackInfo> = BTreeMap::new();
    // There is no folder before the first one is kept.
    let entries = broker::list(OwnPath::at(folder), FILES_LIMIT).unwrap_or_default();
    for broker::Entry { name, .. } in entries {
        let path = folder.join(&name);
        let name = name.to_string_lossy();
        if name.starts_with(UNFINISHED) {
            unfinished.push(path);
            continue;
        }
        let Some((id, suffix)) = name.rsplit_once('.') else {
            continue;
        };
        let source = match suffix {
            UPLOADED => NameSource::SymbolPack,
            FETCHED => NameSource::Debuginfod,
            _ => continue,
        };
        let examined = broker::open(OwnPath::at(path))
            .map_err(io_error("open the symbol file"))
            .and_then(|file| examine(&file, source));
        match examined {
            Ok(info) if build_id::hexadecimal(&info.build_id) == id => {
                if source == NameSource::SymbolPack || !kept.contains_key(&info.build_id) {
                    kept.insert(info.build_id.clone(), info);
                }
            }
            Ok(_) => tracing::warn!(%name, "a symbol file has another build-id than its name"),
            Err(error) => tracing::warn!(%name, %error, "a symbol file is not used"),
        }
    }
    kept
}

#[cfg(test)]
#[path = "packs_tests.rs"]
mod tests;
