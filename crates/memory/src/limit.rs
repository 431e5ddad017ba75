//! Where the ceiling comes from.

use std::{fs, path::Path};

use profiler_host::process::ContainerHierarchy;

/// Share of a cgroup's limit that the agent takes for itself, in percent. The rest is for what it does not count:
/// pages of files, the kernel's structures, and what comes between two readings.
const CGROUP_PERCENT: u64 = 80;
/// Cgroups above the agent's that are looked at.
const ANCESTORS: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// `None`: there is no ceiling.
    pub bytes: Option<u64>,
    pub source: LimitSource,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LimitSource {
    /// `--max-memory`.
    Setting,
    /// The tightest limit of the agent's cgroup and those above it.
    Cgroup { path: String, limit_bytes: u64 },
    /// Nothing sets a limit.
    #[default]
    Unlimited,
}

impl LimitSource {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::Cgroup { .. } => "cgroup",
            Self::Unlimited => "none",
        }
    }
}

/// What the cgroups that the agent runs in allow, less a reserve; without a limit when none is set (blocking).
pub fn cgroup_limit() -> Limit {
    let Some((path, limit_bytes)) = tightest() else {
        return Limit::default();
    };
    Limit {
        bytes: Some(limit_bytes / 100 * CGROUP_PERCENT),
        source: LimitSource::Cgroup { path, limit_bytes },
    }
}

fn tightest() -> Option<(String, u64)> {
    let hierarchy = ContainerHierarchy::of_controller("memory")?;
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = hierarchy.path_in(&text)?;
    // A limit beyond what the machine has limits nothing; v1 writes one for "unlimited".
    let machine = procfs_total()?;
    Path::new(own)
        .ancestors()
        .take(ANCESTORS)
        .filter_map(|path| {
            let path = path.to_str()?;
            let directory = hierarchy.directory(path).ok()?;
            Some((path.to_owned(), limit_in(&hierarchy, &directory)?))
        })
        .filter(|(_, bytes)| *bytes < machine)
        .min_by_key(|(_, bytes)| *bytes)
}

fn limit_in(hierarchy: &ContainerHierarchy, directory: &Path) -> Option<u64> {
    // Above `memory.high` a cgroup is slowed down until it stands still.
    let files: &[&str] = match hierarchy {
        ContainerHierarchy::V2 { .. } => &["memory.max", "memory.high"],
        ContainerHierarchy::V1 { .. } => &["memory.limit_in_bytes"],
    };
    let number = |name: &&str| {
        let text = fs::read_to_string(directory.join(name)).ok()?;
        // `max` is not a number: there is no limit.
        text.trim().parse::<u64>().ok()
    };
    files.iter().filter_map(number).min()
}

fn procfs_total() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use profiler_host::process::Mount;

    fn mount(path: &Path) -> Mount {
        Mount {
            path: path.to_owned(),
            root: "/".to_owned(),
        }
    }

    #[test]
    fn both_versions_are_read_and_max_is_no_limit() {
        let folder = tempfile::tempdir().unwrap();
        let v2 = ContainerHierarchy::V2 {
            mount: mount(folder.path()),
        };
        assert_eq!(limit_in(&v2, folder.path()), None);
        fs::write(folder.path().join("memory.max"), "max\n").unwrap();
        assert_eq!(limit_in(&v2, folder.path()), None);
        fs::write(folder.path().join("memory.max"), "268435456\n").unwrap();
        fs::write(folder.path().join("memory.high"), "200000000\n").unwrap();
        assert_eq!(limit_in(&v2, folder.path()), Some(200_000_000));
        let v1 = ContainerHierarchy::V1 {
            controller: "memory".to_owned(),
            mount: mount(folder.path()),
        };
        fs::write(folder.path().join("memory.limit_in_bytes"), "134217728\n").unwrap();
        assert_eq!(limit_in(&v1, folder.path()), Some(134_217_728));
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(procfs_total().unwrap() > 1 << 27);
    }
}
