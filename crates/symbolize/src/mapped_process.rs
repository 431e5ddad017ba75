//! One process's mappings and the files behind them.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use profiler_image::{
    maps::{self, Backing, Mapping},
    module_file::{FileKey, Refusal, Wanted, open_mapped},
    proc_dir::{ImageIdentity, ProcDir},
    remote_mounts::ProcessMounts,
    snapshot::{Region, Snapshot, strip_root},
};
use profiler_model::ProcessKey;

use super::{modules::Modules, perf_map::PerfMap, quality::Quality};

/// Least time between two readings of the mappings that unknown addresses cause.
const MISS_INTERVAL: Duration = Duration::from_millis(250);
/// Mappings of a process that is being sampled are read again after this time: a library may have
/// been replaced by another one at the same address.
const AGE_LIMIT: Duration = Duration::from_secs(5);
/// Least time between two looks at a perf-map.
const PERF_MAP_INTERVAL: Duration = Duration::from_secs(1);

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
            // It called exec: what it maps now shows nothing about samples from before.
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
