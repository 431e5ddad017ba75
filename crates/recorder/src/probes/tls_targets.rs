//! Which processes a task reads TLS of.

use std::collections::BTreeSet;

use profiler_common::config::{FILTER_CGROUPS, FILTER_PIDS};
use profiler_host::process::{ProcessTable, is_below};
use profiler_model::PodSelector;

use super::targets::ResolvedTarget;
use crate::bpf::{LoadError, LoadedObject};

/// Which processes a task is about.
#[derive(Clone, Debug)]
pub(super) enum TlsTargets {
    /// Those that the kernel side has in its table, with their children.
    Listed,
    /// Those of cgroups, by the paths of these.
    Groups(Vec<String>),
    /// Those of pods, also of such that start later.
    Pods(PodSelector),
    All,
}

impl TlsTargets {
    pub(super) fn of(target: &ResolvedTarget) -> Self {
        match target.filter {
            FILTER_PIDS => Self::Listed,
            FILTER_CGROUPS if let Some(selector) = &target.selector => Self::Pods(selector.clone()),
            FILTER_CGROUPS => Self::Groups(target.cgroup_paths.clone()),
            _ => Self::All,
        }
    }

    pub(super) fn pids(
        &self,
        object: &LoadedObject,
        table: &ProcessTable,
    ) -> Result<BTreeSet<u32>, LoadError> {
        Ok(match self {
            Self::Listed => object.target_pids()?.into_iter().collect(),
            Self::Groups(paths) => table
                .snapshot()
                .iter()
                .filter(|process| !process.kernel_thread)
                .filter(|process| paths.iter().any(|path| is_below(&process.cgroup, path)))
                .map(|process| process.key.pid)
                .collect(),
            Self::Pods(selector) => table.find_pods(selector).unwrap_or_default().pids,
            Self::All => table
                .snapshot()
                .iter()
                .filter(|process| !process.kernel_thread)
                .map(|process| process.key.pid)
                .collect(),
        })
    }
}
