//! What a process maps, read at one moment, with the files behind it.

use std::{io, sync::Arc};

use profiler_model::ProcessKey;

use super::{
    maps::{self, Backing, Mapping},
    module_file::{FileKey, ModuleFile, Refusal, Wanted, open_mapped},
    proc_dir::{Glimpse, ImageIdentity},
    remote_mounts::ProcessMounts,
};

/// What an executable mapping turned out to be.
#[derive(Clone, Debug)]
pub enum Region {
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

/// The mappings of a process and its open files, read while it is alive. Any thread can read it,
/// so that a busy symbolizer does not miss a short-lived process.
#[derive(Debug)]
pub struct Snapshot {
    pub image: ImageIdentity,
    /// In ascending order.
    pub mappings: Vec<Mapping>,
    /// What each mapping shows.
    pub regions: Vec<Region>,
    pub files: Vec<ModuleFile>,
    /// Files of which nothing was read, each once.
    pub refused: Vec<(Arc<str>, Refusal)>,
}

impl Snapshot {
    /// Reads the mappings and opens the files behind them.
    pub fn read(key: ProcessKey, max_file_bytes: u64) -> io::Result<Self> {
        Self::of(key.pid, Some(key.start_ticks), max_file_bytes)
    }

    /// Of the process that has the pid, and none that started at another time than `started`.
    pub fn of(pid: u32, started: Option<u64>, max_file_bytes: u64) -> io::Result<Self> {
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

/// The mappings of a process, read-only.
#[derive(Debug)]
pub struct MappedFiles {
    pub files: Vec<(Arc<str>, ModuleFile)>,
    pub refused: Vec<(Arc<str>, Refusal)>,
    /// Executable memory without a file.
    pub anonymous: usize,
}

impl Snapshot {
    /// Each file once, in the order of their mappings.
    pub fn into_files(self) -> MappedFiles {
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

/// The path below `root`, which is the process's root directory as our own namespace names it.
pub fn strip_root<'path>(path: &'path [u8], root: &[u8]) -> &'path [u8] {
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
