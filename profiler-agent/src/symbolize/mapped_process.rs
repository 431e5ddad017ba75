//! One process's mappings and the files behind them.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use profiler_image::{
    maps::{self, Backing, Mapping},
    module_file::{FileKey, ModuleFile, Refusal, Wanted, open_mapped},
};
use profiler_image::{
    proc_dir::{Glimpse, ImageIdentity, ProcDir},
    remote_mounts::ProcessMounts,
};
use profiler_model::ProcessKey;

use super::{modules::Modules, perf_map::PerfMap, quality::Quality};
use crate::unwind::{CodeMapping, Content, ProcessCode};

/// Least time between two readings of the mappings that unknown addresses cause.
const MISS_INTERVAL: Duration = Duration::from_millis(250);
/// Mappings of a process that is being sampled are read again after so long: a library may have
/// been replaced by another one at the same address.
const AGE_LIMIT: Duration = Duration::from_secs(5);
/// Least time between two looks at a perf-map.
const PERF_MAP_INTERVAL: Duration = Duration::from_secs(1);

/// What an executable mapping turned out to be.
#[derive(Clone, Debug)]
pub(crate) enum Region {
    Module {
        path: Arc<str>,
        key: FileKey,
    },
    /// A file that is not used for names.
    Refused {
        path: Arc<str>,
    },
    Vdso,
    Anonymous {
        label: Arc<str>,
    },
}

/// A region with its place in memory.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
    pub(crate) region: Region,
}

#[derive(Debug)]
pub(crate) struct MappedProcess {
    key: ProcessKey,
    image: ImageIdentity,
    mappings: Vec<Mapping>,
    regions: Vec<Region>,
    read_at: Instant,
    pub(crate) perf_map: PerfMap,
    pub(crate) exited: Option<Instant>,
}

impl MappedProcess {
    pub(crate) fn new(
        key: ProcessKey,
        snapshot: Snapshot,
        modules: &mut Modules,
        quality: &mut Quality,
    ) -> Self {
        let mut process = Self {
            key,
            image: snapshot.image,
            mappings: Vec::new(),
            regions: Vec::new(),
            read_at: Instant::now(),
            perf_map: PerfMap::default(),
            exited: None,
        };
        process.adopt(snapshot, modules, quality);
        process
    }

    /// Reads the mappings again. When the process is gone they stay as they were.
    fn read_again(
        &mut self,
        max_file_bytes: u64,
        modules: &mut Modules,
        quality: &mut Quality,
    ) -> io::Result<()> {
        self.read_at = Instant::now();
        let snapshot = Snapshot::read(self.key, max_file_bytes)?;
        if snapshot.image != self.image {
            // It called exec: what it maps now says nothing about samples from before.
            self.exited.get_or_insert(Instant::now());
            return Err(io::ErrorKind::NotFound.into());
        }
        self.adopt(snapshot, modules, quality);
        Ok(())
    }

    fn adopt(&mut self, snapshot: Snapshot, modules: &mut Modules, quality: &mut Quality) {
        let Snapshot {
            image: _,
            mappings,
            regions,
            files,
            refused,
        } = snapshot;
        for file in files {
            modules.insert(file);
        }
        for (path, refusal) in refused {
            self.count_once(&path, refusal, quality);
        }
        self.mappings = mappings;
        self.regions = regions;
    }

    /// The mapping around an address. Mappings are read again when they are old, or when the
    /// address lies in none and the last reading is a while ago.
    pub(crate) fn find(
        &mut self,
        address: u64,
        max_file_bytes: u64,
        modules: &mut Modules,
        quality: &mut Quality,
    ) -> Option<Placed> {
        if self.exited.is_none() && self.read_at.elapsed() > AGE_LIMIT {
            self.try_again(max_file_bytes, modules, quality);
        }
        let placed = self.lookup(address);
        match placed.as_ref().map(|placed| &placed.region) {
            None if self.exited.is_none() && self.read_at.elapsed() > MISS_INTERVAL => {
                self.try_again(max_file_bytes, modules, quality);
                self.lookup(address)
            }
            Some(Region::Module { key, .. }) if !modules.contains(key) => {
                let key = *key;
                self.open_again(address, &key, max_file_bytes, modules);
                placed
            }
            None | Some(_) => placed,
        }
    }

    /// Opens a file again that had to make room for others, if it is still the same.
    fn open_again(
        &self,
        address: u64,
        key: &FileKey,
        max_file_bytes: u64,
        modules: &mut Modules,
    ) -> Option<()> {
        let mapping = self.mappings.get(maps::find(&self.mappings, address)?)?;
        let Backing::File { path, inode } = &mapping.backing else {
            return None;
        };
        let dir = open(self.key).ok()?;
        let root = Arc::new(dir.open_root().ok()?);
        let chroot = dir.read_link("root").unwrap_or_default();
        let wanted = vec![Wanted {
            path: strip_root(path, chroot.as_bytes()).to_vec(),
            inode: Some(*inode),
            range: Some([mapping.start, mapping.end]),
            device: Some(mapping.device),
        }];
        let mounts = ProcessMounts::read(dir.handle()).ok()?;
        let file = open_mapped(&root, dir.handle(), wanted, max_file_bytes, Some(&mounts))
            .pop()?
            .ok()?;
        if file.key == *key {
            modules.insert(file);
        }
        Some(())
    }

    /// Name of JIT code; the perf-map is looked at again when it may have grown.
    pub(crate) fn jit_name(&mut self, address: u64, quality: &mut Quality) -> Option<&str> {
        let fresh = self
            .perf_map
            .checked
            .is_some_and(|at| at.elapsed() < PERF_MAP_INTERVAL);
        if self.perf_map.name(address).is_none() && !fresh && self.exited.is_none() {
            let result = match open(self.key) {
                Ok(dir) => self.perf_map.update(&dir, self.key.start_ticks),
                Err(_) => Ok(()),
            };
            match result {
                // Most processes have no perf-map, which is nothing to report.
                Ok(()) | Err(Refusal::NotFound) => {}
                Err(refusal) => quality.refusal(refusal),
            }
        }
        self.perf_map.name(address)
    }

    /// The program that the mappings belong to.
    pub(crate) fn image(&self) -> ImageIdentity {
        self.image
    }

    /// Files that this process maps.
    pub(crate) fn module_keys(&self) -> impl Iterator<Item = &FileKey> {
        self.regions.iter().filter_map(|region| match region {
            Region::Module { key, .. } => Some(key),
            Region::Refused { .. } | Region::Vdso | Region::Anonymous { .. } => None,
        })
    }

    fn lookup(&self, address: u64) -> Option<Placed> {
        let index = maps::find(&self.mappings, address)?;
        let Mapping {
            start,
            end,
            offset,
            device: _,
            backing: _,
        } = self.mappings[index];
        Some(Placed {
            start,
            bytes: end - start,
            offset,
            region: self.regions[index].clone(),
        })
    }

    fn try_again(&mut self, max_file_bytes: u64, modules: &mut Modules, quality: &mut Quality) {
        if let Err(error) = self.read_again(max_file_bytes, modules, quality) {
            tracing::trace!(process = %self.key, %error, "mappings not read again");
        }
    }

    /// A file that stays refused is counted for each process once.
    fn count_once(&self, path: &str, refusal: Refusal, quality: &mut Quality) {
        let known = |region: &Region| matches!(region, Region::Refused { path: old } if old.as_ref() == path);
        if !self.regions.iter().any(known) {
            quality.refusal(refusal);
            tracing::debug!(process = %self.key, %path, reason = refusal.name(), "file has no names");
        }
    }
}

/// `/proc/PID` of this very process.
fn open(key: ProcessKey) -> io::Result<ProcDir> {
    let dir = ProcDir::open(key.pid)?;
    if dir.stat()?.start_ticks != key.start_ticks {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(dir)
}

/// The mappings of a process and its open files, read while it is alive. Any thread can read it,
/// so that a busy symbolizer does not miss a short-lived process.
#[derive(Debug)]
pub(crate) struct Snapshot {
    image: ImageIdentity,
    mappings: Vec<Mapping>,
    regions: Vec<Region>,
    files: Vec<ModuleFile>,
    refused: Vec<(Arc<str>, Refusal)>,
}

impl Snapshot {
    /// Reads the mappings and opens the files behind them.
    pub(crate) fn read(key: ProcessKey, max_file_bytes: u64) -> io::Result<Self> {
        Self::of(key.pid, Some(key.start_ticks), max_file_bytes)
    }

    /// Of the process that has the pid, and none that started at another time than `started`.
    fn of(pid: u32, started: Option<u64>, max_file_bytes: u64) -> io::Result<Self> {
        let glimpse = Glimpse::take(pid, maps::MAPS_LIMIT)?;
        let [stat, after] = glimpse.stats()?;
        if started.is_some_and(|started| started != stat.start_ticks) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mappings = maps::read_mappings(glimpse.maps.as_slice())?;
        if after.image != stat.image {
            // An exec came between; its own event has them read again.
            return Err(io::ErrorKind::Interrupted.into());
        }
        if mappings.is_empty() && !stat.kernel_thread {
            // The memory of a process that is exiting is gone before the process is.
            return Err(io::ErrorKind::NotFound.into());
        }
        // chroot(2) without a mount namespace of its own: maps shows paths from our own root.
        let chroot = glimpse.chroot;
        let is_same = |index: usize| {
            let last = index.checked_sub(1);
            last.filter(|last| {
                let (last, this) = (&mappings[*last], &mappings[index]);
                last.backing == this.backing && last.device == this.device
            })
        };
        let wanted = mappings.iter().enumerate().filter_map(|(index, mapping)| {
            match (is_same(index), &mapping.backing) {
                (None, Backing::File { path, inode }) => Some(Wanted {
                    path: strip_root(path, &chroot).to_vec(),
                    inode: Some(*inode),
                    range: Some([mapping.start, mapping.end]),
                    device: Some(mapping.device),
                }),
                (Some(_), _) | (None, Backing::Vdso | Backing::Anonymous { .. }) => None,
            }
        });
        let root = Arc::new(glimpse.root);
        let mounts = ProcessMounts::seen_by(&glimpse.process, &glimpse.namespace, &chroot);
        let (process, wanted) = (&glimpse.process, wanted.collect());
        let mut opened =
            open_mapped(&root, process, wanted, max_file_bytes, Some(&mounts)).into_iter();
        let (mut files, mut refused) = (Vec::new(), Vec::new());
        let mut regions: Vec<Region> = Vec::with_capacity(mappings.len());
        for (index, mapping) in mappings.iter().enumerate() {
            let region = match (is_same(index), &mapping.backing) {
                (Some(last), _) => regions[last].clone(),
                (None, Backing::Vdso) => Region::Vdso,
                (None, Backing::Anonymous { label }) => Region::Anonymous {
                    label: Arc::from(label.as_str()),
                },
                (None, Backing::File { path, inode: _ }) => {
                    let path: Arc<str> = String::from_utf8_lossy(path).into();
                    match opened.next().unwrap_or(Err(Refusal::NotFound)) {
                        Ok(file) => {
                            let key = file.key;
                            files.push(file);
                            Region::Module { path, key }
                        }
                        Err(refusal) => {
                            refused.push((Arc::clone(&path), refusal));
                            Region::Refused { path }
                        }
                    }
                }
            };
            regions.push(region);
        }
        Ok(Self {
            image: stat.image,
            mappings,
            regions,
            files,
            refused,
        })
    }
}

impl Snapshot {
    /// Files of which nothing was read, each once.
    pub(crate) fn refused(&self) -> &[(Arc<str>, Refusal)] {
        &self.refused
    }
}

/// What a process maps, for those who only look.
pub(crate) struct MappedFiles {
    pub(crate) files: Vec<(Arc<str>, ModuleFile)>,
    pub(crate) refused: Vec<(Arc<str>, Refusal)>,
    /// Executable memory without a file.
    pub(crate) anonymous: usize,
}

impl Snapshot {
    /// Each file once, in the order of their mappings.
    pub(crate) fn into_files(self) -> MappedFiles {
        let mut paths: Vec<(FileKey, Arc<str>)> = Vec::new();
        let mut anonymous = 0;
        for region in self.regions {
            match region {
                Region::Module { path, key } => paths.push((key, path)),
                Region::Anonymous { label } if label.as_ref() != "[vsyscall]" => anonymous += 1,
                Region::Anonymous { .. } | Region::Refused { .. } | Region::Vdso => {}
            }
        }
        let mut files: Vec<(Arc<str>, ModuleFile)> = Vec::new();
        for file in self.files {
            let path = paths.iter().find(|(key, _)| *key == file.key);
            let known = files.iter().any(|(_, other)| other.key == file.key);
            if let Some((_, path)) = path.filter(|_| !known) {
                files.push((Arc::clone(path), file));
            }
        }
        MappedFiles {
            files,
            refused: self.refused,
            anonymous,
        }
    }
}

impl ProcessCode {
    /// Reads what the process with this pid executes, for its unwind tables.
    pub fn read(pid: u32, max_file_bytes: u64) -> io::Result<Self> {
        let mut snapshot = Snapshot::of(pid, None, max_file_bytes)?;
        let files = std::mem::take(&mut snapshot.files);
        Ok(Self::with_files(&snapshot, files))
    }

    /// What a snapshot shows, with descriptors of its own; `None` when there are not enough of these.
    pub(crate) fn of_snapshot(snapshot: &Snapshot) -> Option<Self> {
        let files = snapshot.files.iter().map(ModuleFile::try_clone);
        Some(Self::with_files(snapshot, files.collect::<Option<_>>()?))
    }

    fn with_files(snapshot: &Snapshot, files: Vec<ModuleFile>) -> Self {
        let regions = snapshot.mappings.iter().zip(&snapshot.regions);
        let mappings = regions.map(|(mapping, region)| {
            let content = match region {
                Region::Module { path: _, key } => Content::File(*key),
                Region::Refused { path: _ } => Content::Refused,
                Region::Vdso => Content::Vdso,
                Region::Anonymous { label: _ } => Content::Anonymous,
            };
            CodeMapping {
                start: mapping.start,
                end: mapping.end,
                offset: mapping.offset,
                content,
            }
        });
        Self {
            mappings: mappings.collect(),
            files,
        }
    }
}

/// The path below `root`, which is the process's root directory as our own namespace names it.
fn strip_root<'path>(path: &'path [u8], root: &[u8]) -> &'path [u8] {
    match path.strip_prefix(root.strip_suffix(b"/").unwrap_or(root)) {
        Some(inside) if inside.starts_with(b"/") => inside,
        Some(_) | None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::strip_root;

    #[test]
    fn paths_are_taken_below_the_root_of_a_chroot() {
        for (path, root, expected) in [
            ("/usr/bin/x", "/", "/usr/bin/x"),
            ("/jail/usr/bin/x", "/jail", "/usr/bin/x"),
            ("/jail/usr/bin/x", "/jail/", "/usr/bin/x"),
            ("/jailed/x", "/jail", "/jailed/x"),
            ("/x", "/jail", "/x"),
            ("/x", "", "/x"),
        ] {
            assert_eq!(
                strip_root(path.as_bytes(), root.as_bytes()),
                expected.as_bytes()
            );
        }
    }
}
