//! The cgroup hierarchy that carries the containers.
//!
//! A host has one v2 hierarchy, several v1 hierarchies, or both ("hybrid"). On hybrid hosts the
//! runtimes put containers where the controllers are, which is v1; the v2 tree is then often just
//! systemd's. Where container ids are seen decides; without any, v1 with a controller wins.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use profiler_image::proc_dir;

use super::containers::container_of;

/// Largest mountinfo that is read.
const MOUNTINFO_LIMIT: usize = 4 << 20;
/// v1 controllers in order of preference; runtimes always use all of them.
const PREFERRED: [&str; 7] = [
    "memory", "cpu", "cpuacct", "pids", "devices", "freezer", "blkio",
];
/// File system types of cgroup v1 and v2, as `statfs` reports them.
const CGROUP_MAGIC: [u64; 2] = [0x0027_e0eb, 0x6367_7270];

/// A mounted cgroup hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted, in the agent's mount namespace.
    pub path: PathBuf,
    /// The cgroup at the mount's top, as the agent's cgroup namespace names it.
    pub root: String,
}

/// The hierarchy that carries the containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerHierarchy {
    V2 { mount: Mount },
    V1 { controller: String, mount: Mount },
}

/// Why a cgroup path has no id.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    #[error("cgroup path {path:?} must be absolute and have no empty, \".\" or \"..\" parts")]
    InvalidPath { path: String },
    #[error("cgroup {path:?} lies outside of the hierarchy that is mounted at {mount:?}")]
    NotVisible { path: String, mount: PathBuf },
    #[error("read cgroup {path:?}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path:?} is not on a cgroup file system")]
    NotCgroup { path: PathBuf },
}

impl ContainerHierarchy {
    /// Detects the hierarchy on this host (blocking: reads mounts and every process's cgroups).
    /// `None` when no cgroup file system is mounted.
    pub fn detect() -> Option<Self> {
        let mountinfo = proc_dir::read_path("/proc/self/mountinfo", MOUNTINFO_LIMIT).ok()?;
        let mounts = Mounts::parse(&String::from_utf8_lossy(&mountinfo));
        if mounts.v1.is_empty() {
            return mounts.choose(&[]);
        }
        let texts: Vec<String> = proc_dir::list_pids()
            .into_iter()
            .filter_map(|pid| read_cgroups(pid).ok())
            .collect();
        mounts.choose(&texts)
    }

    /// The hierarchy that has a controller: a v1 hierarchy of its own, or else the v2 one.
    pub fn of_controller(name: &str) -> Option<Self> {
        let mountinfo = proc_dir::read_path("/proc/self/mountinfo", MOUNTINFO_LIMIT).ok()?;
        let mounts = Mounts::parse(&String::from_utf8_lossy(&mountinfo));
        let mut v1 = mounts.v1.into_iter();
        match v1.find(|(controller, _)| controller == name) {
            Some((controller, mount)) => Some(Self::V1 { controller, mount }),
            None => mounts.v2.map(|mount| Self::V2 { mount }),
        }
    }

    pub fn mount(&self) -> &Mount {
        match self {
            Self::V2 { mount } | Self::V1 { mount, .. } => mount,
        }
    }

    /// The path in this hierarchy from the text of `/proc/PID/cgroup`.
    pub fn path_in<'text>(&self, text: &'text str) -> Option<&'text str> {
        let (_, path) = lines(text).find(|(controllers, _)| match self {
            Self::V2 { .. } => controllers.is_empty(),
            Self::V1 { controller, .. } => controllers.split(',').any(|name| name == controller),
        })?;
        Some(path.strip_suffix(" (deleted)").unwrap_or(path))
    }

    /// The directory of a cgroup path.
    pub fn directory(&self, path: &str) -> Result<PathBuf, CgroupError> {
        let mount = self.mount();
        if !path.starts_with('/') || path.contains('\0') {
            return Err(CgroupError::InvalidPath {
                path: path.to_owned(),
            });
        }
        // Both the path and the mount's root are relative to the agent's cgroup namespace.
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        for expected in mount.root.split('/').filter(|part| !part.is_empty()) {
            if parts.next() != Some(expected) {
                return Err(CgroupError::NotVisible {
                    path: path.to_owned(),
                    mount: mount.path.clone(),
                });
            }
        }
        let mut directory = mount.path.clone();
        for part in parts {
            if matches!(part, "." | "..") {
                return Err(CgroupError::InvalidPath {
                    path: path.to_owned(),
                });
            }
            directory.push(part);
        }
        Ok(directory)
    }

    /// The id by which the kernel knows a cgroup: its kernfs id, which on 64-bit kernels is the
    /// inode number of its directory (kernel 5.5 and later).
    pub fn kernfs_id(&self, path: &str) -> Result<u64, CgroupError> {
        let directory = self.directory(path)?;
        directory_id(&directory)
    }
}

/// Text of `/proc/PID/cgroup`, bounded.
pub(super) fn read_cgroups(pid: u32) -> std::io::Result<String> {
    let bytes = proc_dir::read_path(&format!("/proc/{pid}/cgroup"), CGROUP_LIMIT)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Largest `/proc/PID/cgroup` that is read: 16 hierarchies with paths of 4 KiB.
pub(super) const CGROUP_LIMIT: usize = 64 * 1024;

fn directory_id(directory: &Path) -> Result<u64, CgroupError> {
    let read = |source| CgroupError::Read {
        path: directory.to_owned(),
        source,
    };
    let metadata = std::fs::metadata(directory).map_err(read)?;
    let statfs = rustix::fs::statfs(directory).map_err(|error| read(error.into()))?;
    let magic = u64::try_from(statfs.f_type).unwrap_or(0);
    if !CGROUP_MAGIC.contains(&magic) || !metadata.is_dir() {
        return Err(CgroupError::NotCgroup {
            path: directory.to_owned(),
        });
    }
    Ok(metadata.ino())
}

/// Controllers and path of each line of `/proc/PID/cgroup`.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some((fields.next()?, fields.next()?))
    })
}

#[derive(Debug, Default)]
struct Mounts {
    v2: Option<Mount>,
    /// Controller and mount; a mount of several controllers is listed for each.
    v1: Vec<(String, Mount)>,
}

impl Mounts {
    fn parse(mountinfo: &str) -> Self {
        let mut mounts = Self::default();
        for line in mountinfo.lines() {
            let Some((left, right)) = line.split_once(" - ") else {
                continue;
            };
            let mut left = left.split(' ').skip(3);
            let (Some(root), Some(path)) = (left.next(), left.next()) else {
                continue;
            };
            let mount = Mount {
                path: PathBuf::from(unescape(path)),
                root: unescape(root),
            };
            let mut right = right.split(' ');
            let (kind, options) = (right.next(), right.nth(1));
            match kind {
                Some("cgroup2") => mounts.keep_v2(mount),
                Some("cgroup") => mounts.keep_v1(&mount, options.unwrap_or("")),
                Some(_) | None => {}
            }
        }
        mounts
    }

    fn keep_v2(&mut self, mount: Mount) {
        // Of several mounts the one that shows most of the tree is used.
        if self
            .v2
            .as_ref()
            .is_none_or(|kept| is_higher(&mount.root, &kept.root))
        {
            self.v2 = Some(mount);
        }
    }

    fn keep_v1(&mut self, mount: &Mount, options: &str) {
        // Named hierarchies ("name=systemd") have no controller that the kernel side could follow.
        for controller in options.split(',').filter(|option| is_controller(option)) {
            match self.v1.iter_mut().find(|(known, _)| known == controller) {
                Some((_, kept)) if is_higher(&mount.root, &kept.root) => *kept = mount.clone(),
                Some(_) => {}
                None => self.v1.push((controller.to_owned(), mount.clone())),
            }
        }
    }

    fn choose(self, cgroup_texts: &[String]) -> Option<ContainerHierarchy> {
        let containers_in = |wanted: &dyn Fn(&str) -> bool| {
            let in_text = |text: &&String| {
                lines(text)
                    .any(|(controllers, path)| wanted(controllers) && container_of(path).is_some())
            };
            cgroup_texts.iter().filter(in_text).count()
        };
        let rank = |name: &str| PREFERRED.iter().position(|known| *known == name);
        let best_v1 = self
            .v1
            .into_iter()
            .map(|(controller, mount)| {
                let seen = containers_in(&|list| list.split(',').any(|name| name == controller));
                (seen, controller, mount)
            })
            .max_by_key(|(seen, controller, _)| {
                (
                    *seen,
                    std::cmp::Reverse(rank(controller).unwrap_or(PREFERRED.len())),
                )
            });
        match (self.v2, best_v1) {
            (Some(mount), None) => Some(ContainerHierarchy::V2 { mount }),
            (Some(mount), Some((seen, ..))) if containers_in(&str::is_empty) > seen => {
                Some(ContainerHierarchy::V2 { mount })
            }
            (_, Some((_, controller, mount))) => Some(ContainerHierarchy::V1 { controller, mount }),
            (None, None) => None,
        }
    }
}

fn is_controller(option: &str) -> bool {
    const NOT_CONTROLLERS: [&str; 6] = ["rw", "ro", "xattr", "none", "noprefix", "clone_children"];
    !option.is_empty() && !option.contains('=') && !NOT_CONTROLLERS.contains(&option)
}

/// True when a mount with root `one` shows more of the hierarchy than one with root `other`.
fn is_higher(one: &str, other: &str) -> bool {
    let ups = |root: &str| root.split('/').filter(|part| *part == "..").count();
    let downs = |root: &str| {
        root.split('/')
            .filter(|part| !part.is_empty() && *part != "..")
            .count()
    };
    (ups(one), std::cmp::Reverse(downs(one))) > (ups(other), std::cmp::Reverse(downs(other)))
}

/// Undoes the octal escapes of mountinfo (`\040` for a space).
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        let octal = code
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(byte) = octal {
            out.push(byte);
            at += 4;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
#[path = "cgroups_tests.rs"]
mod tests;
