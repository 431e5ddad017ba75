//! Cgroups of our own for targets.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

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

    /// A command in front of another one, which then runs in it.
    pub fn wrapper(&self) -> Vec<String> {
        let join = format!(
            "echo $$ > {}/cgroup.procs && exec \"$@\"",
            self.path.display()
        );
        ["sh", "-c", &join, "sh"].map(str::to_owned).into()
    }

    /// Lets everything in it use `quota_us` of CPU time in each `period_us`.
    pub fn limit_cpu(&self, quota_us: u64, period_us: u64) -> Result<()> {
        let write = |path: PathBuf, text: String| {
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
        };
        if self.path.join("cpu.cfs_quota_us").exists() {
            write(self.path.join("cpu.cfs_period_us"), period_us.to_string())?;
            return write(self.path.join("cpu.cfs_quota_us"), quota_us.to_string());
        }
        // v2: each level above has to hand the controller on.
        let above = self.path.ancestors().skip(1);
        let levels: Vec<_> = above
            .take_while(|level| level.starts_with(&self.hierarchy))
            .collect();
        for level in levels.into_iter().rev() {
            write(level.join("cgroup.subtree_control"), "+cpu".to_owned())?;
        }
        write(self.path.join("cpu.max"), format!("{quota_us} {period_us}"))
    }

    /// Lets everything in the cgroup above it use `bytes` of memory.
    pub fn limit_memory_above(&self, bytes: u64) -> Result<()> {
        let limited = self.path.parent().unwrap_or(&self.path);
        let write = |path: PathBuf, text: String| {
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
        };
        let v1 = limited.join("memory.limit_in_bytes");
        if v1.exists() {
            return write(v1, bytes.to_string());
        }
        let above = limited.ancestors().skip(1);
        let levels: Vec<_> = above
            .take_while(|level| level.starts_with(&self.hierarchy))
            .collect();
        for level in levels.into_iter().rev() {
            write(level.join("cgroup.subtree_control"), "+memory".to_owned())?;
        }
        write(limited.join("memory.max"), bytes.to_string())
    }

    /// How long the kernel has held what is in it, for want of quota.
    pub fn throttled(&self) -> Result<Duration> {
        let text = std::fs::read_to_string(self.path.join("cpu.stat")).context("read cpu.stat")?;
        let number = |key: &str| -> Option<u64> {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(key));
            lines.next()?.trim().parse().ok()
        };
        // v2 counts microseconds, v1 nanoseconds.
        let micros = number("throttled_usec ").map(Duration::from_micros);
        let found = micros.or_else(|| number("throttled_time ").map(Duration::from_nanos));
        found.with_context(|| format!("no quotas in this kernel: {text}"))
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

/// The hierarchy that shares out the CPUs: of v1, or the v2 one.
pub fn cpu_hierarchy() -> PathBuf {
    let v1 =
        ["cpu", "cpu,cpuacct", "cpuacct,cpu"].map(|name| Path::new("/sys/fs/cgroup").join(name));
    let v1 = v1.into_iter().find(|path| path.join("cpu.stat").exists());
    v1.unwrap_or_else(unified_hierarchy)
}

/// The hierarchy that limits memory: of v1, or the v2 one.
pub fn memory_hierarchy() -> PathBuf {
    let v1 = Path::new("/sys/fs/cgroup/memory");
    if v1.join("memory.limit_in_bytes").exists() {
        v1.into()
    } else {
        unified_hierarchy()
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
