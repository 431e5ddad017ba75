//! What CPU quotas did to the targets of a task while it ran.
//!
//! Waits for a CPU do not say why there was none. Where a cgroup used up its quota, the kernel's
//! counters do, and they are an upper bound: a thread that waited meanwhile may have waited for
//! another one as well.

use std::collections::{BTreeMap, BTreeSet};

use profiler_host::process::cpu_quota::{CpuHierarchy, LimitedCgroup, ThrottleCounts};

/// Processes whose cgroups are looked at.
const PROCESSES: usize = 4096;
/// Cgroups that are followed.
const CGROUPS: usize = 64;

#[derive(Debug)]
struct Followed {
    cgroup: LimitedCgroup,
    first: ThrottleCounts,
    last: ThrottleCounts,
}

/// The cgroups with a quota that the targets are in.
#[derive(Debug)]
pub(super) struct Throttling {
    hierarchy: Option<CpuHierarchy>,
    seen: BTreeSet<u32>,
    cgroups: BTreeMap<String, Followed>,
}

impl Throttling {
    pub(super) fn of(pids: impl IntoIterator<Item = u32>) -> Self {
        let mut throttling = Self {
            hierarchy: CpuHierarchy::detect(),
            seen: BTreeSet::new(),
            cgroups: BTreeMap::new(),
        };
        for pid in pids {
            throttling.add(pid);
        }
        throttling
    }

    /// From now on the cgroups of one more process are followed.
    pub(super) fn add(&mut self, pid: u32) {
        let Some(hierarchy) = &self.hierarchy else {
            return;
        };
        if self.seen.len() >= PROCESSES || !self.seen.insert(pid) {
            return;
        }
        for cgroup in hierarchy.limits_of(pid) {
            if self.cgroups.len() >= CGROUPS || self.cgroups.contains_key(&cgroup.path) {
                continue;
            }
            if let Some(first) = cgroup.counts() {
                let path = cgroup.path.clone();
                let followed = Followed {
                    cgroup,
                    first,
                    last: first,
                };
                self.cgroups.insert(path, followed);
            }
        }
    }

    /// Reads the counters again. To be called each second: a cgroup may go away before the end.
    pub(super) fn look(&mut self) {
        for followed in self.cgroups.values_mut() {
            if let Some(counts) = followed.cgroup.counts() {
                followed.last = counts;
            }
        }
    }

    /// A line for each cgroup that was throttled.
    pub(super) fn finish(&mut self) -> Vec<String> {
        self.look();
        self.cgroups
            .values()
            .filter_map(|followed| line(&followed.cgroup, followed.last.since(followed.first)))
            .collect()
    }
}

fn line(cgroup: &LimitedCgroup, counts: ThrottleCounts) -> Option<String> {
    let quota = cgroup.quota;
    (counts.throttled > 0).then(|| {
        format!(
            "CPU quota: throttled {} times in {} periods, {} ms in sum over CPUs; cgroup {:?}, quota \
             {} ms of CPU time in each {} ms. At most this much of each thread's time waiting for a \
             CPU is due to the quota",
            counts.throttled,
            counts.periods,
            counts.throttled_ns / 1_000_000,
            cgroup.path,
            quota.quota_us / 1000,
            quota.period_us / 1000,
        )
    })
}
