//! The user's folder of symbol files (`--symbol-dir`), indexed by build-id when first asked.
//!
//! Files may have any name and lie in folders below. A file that was put there later is found
//! when its build-id is asked for, but the folder is not read again and again for build-ids that
//! it does not have.

use std::{
    collections::BTreeMap,
    fs::File,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use profiler_image::module_file::{Links, open_in_root};
use profiler_model::NameSource;
use profiler_sandbox::broker::{self, OwnPath};
use rustix::fs::{CWD, Mode, OFlags};

use super::pack_file::{self, PackInfo};

/// Least time between two readings of the folder.
const SCAN_INTERVAL: Duration = Duration::from_secs(30);
/// Entries that are looked at.
const ENTRIES_LIMIT: usize = 100_000;
/// Levels of folders: `.build-id/xx/yyyy.debug` has three.
const DEPTH_LIMIT: usize = 6;

#[derive(Debug)]
pub(super) struct SymbolFolder {
    folder: PathBuf,
    scanned: Option<Instant>,
    files: BTreeMap<Vec<u8>, (PathBuf, PackInfo)>,
}

impl SymbolFolder {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            scanned: None,
            files: BTreeMap::new(),
        }
    }

    /// Path of the file with this build-id.
    pub(super) fn find(&mut self, build_id: &[u8]) -> Option<PathBuf> {
        if !self.files.contains_key(build_id) {
            self.scan();
        }
        self.files.get(build_id).map(|(path, _)| path.clone())
    }

    /// Opens the file with this build-id; one that was exchanged since is not used.
    pub(super) fn open(&mut self, build_id: &[u8]) -> Option<File> {
        let path = self.find(build_id)?;
        let file = open(&path);
        let examine = |file: &File| {
            let examined = broker::apart(pack_file::READER, || {
                pack_file::examine(file, NameSource::SymbolPack).ok()
            });
            examined.ok()?
        };
        let examined = file.as_ref().and_then(examine);
        if examined.is_some_and(|info| info.build_id == build_id) {
            return file;
        }
        self.files.remove(build_id);
        None
    }

    /// What it has now.
    pub(super) fn list(&mut self) -> Vec<PackInfo> {
        self.scan();
        self.files.values().map(|(_, info)| info.clone()).collect()
    }

    fn scan(&mut self) {
        if self
            .scanned
            .is_some_and(|scanned| scanned.elapsed() < SCAN_INTERVAL)
        {
            return;
        }
        self.scanned = Some(Instant::now());
        self.files.clear();
        let mut left = ENTRIES_LIMIT;
        let folder = self.folder.clone();
        let scanned = broker::apart(pack_file::READER, || {
            self.scan_folder(&folder, DEPTH_LIMIT, &mut left);
        });
        if let Err(error) = scanned {
            tracing::warn!(folder = %folder.display(), %error, "read the folder of symbol files");
        }
    }

    fn scan_folder(&mut self, folder: &Path, depth: usize, left: &mut usize) {
        let entries = match broker::list(OwnPath::at(folder), ENTRIES_LIMIT) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "read the folder of symbol files");
                return;
            }
        };
        for entry in entries {
            let Some(less) = left.checked_sub(1) else {
                tracing::warn!(folder = %self.folder.display(), "too many files; not all are used");
                return;
            };
            *left = less;
            let path = folder.join(entry.name);
            if entry.is_directory {
                if depth > 1 {
                    self.scan_folder(&path, depth - 1, left);
                }
                continue;
            }
            let examined =
                open(&path).and_then(|file| pack_file::examine(&file, NameSource::SymbolPack).ok());
            if let Some(info) = examined {
                let info = PackInfo {
                    is_given: true,
                    ..info
                };
                self.files.insert(info.build_id.clone(), (path, info));
            }
        }
    }
}

/// Opens a regular file and nothing else: a FIFO would wait for a writer.
fn open(path: &Path) -> Option<File> {
    use std::os::unix::ffi::OsStrExt as _;
    let absolute = std::path::absolute(path).ok()?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root: OwnedFd = rustix::fs::openat(CWD, "/", flags, Mode::empty()).ok()?;
    let name = absolute.as_os_str().as_bytes();
    let found = open_in_root(root.as_fd(), name, u64::MAX, Links::Follow, None).ok()?;
    Some(found.file)
}
