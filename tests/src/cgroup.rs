//! Cgroups of our own for targets.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::cleanup::{Guard, Resource, guard, unique_name};

/// A cgroup, removed when dropped (what still runs in it is killed).
#[derive(Debug)]
pub struct Cgroup {
    hierarchy: PathBuf,
    path: PathBuf,
    _guard: Guard,
}

impl Cgroup {
    /// Makes `inner` below a folder of this run in `hierarchy`, for example
    /// `/sys/fs/cgroup/memory` and `docker/0123..`.
    pub fn create(hierarchy: &Path, what: &str, inner: &str) -> Result<Self> {
        let top = hierarchy.join(unique_name(what));
        let guard = guard(Resource::Cgroup(top.clone()));
        let path = top.join(inner);
        std::fs::create_dir_all(&path).with_context(|| format!("create {}", path.display()))?;
        Ok(Self {
            hierarchy: hierarchy.to_path_buf(),
            path,
            _guard: guard,
        })
    }

    /// Where it lies in the file system.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its path inside the hierarchy, as `/proc/PID/cgroup` shows it.
    pub fn inside(&self) -> String {
        let relative = self
            .path
            .strip_prefix(&self.hierarchy)
            .unwrap_or(&self.path);
        format!("/{}", relative.display())
    }
}

/// The v2 hierarchy: the whole tree, or `unified` on hybrid hosts.
pub fn unified_hierarchy() -> PathBuf {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("cgroup.controllers").exists() {
        root.into()
    } else {
        root.join("unified")
    }
}
