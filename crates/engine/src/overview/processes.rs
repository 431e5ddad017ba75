//! CPU time, run-queue time and quotas of processes between two readings.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
    sync::Arc,
};

use profiler_host::process::{
    accounting::{cpu_time, run_queue_times},
    cpu_quota::{CpuHierarchy, LimitedCgroup, ThrottleCounts},
};
use profiler_model::{Process, ProcessKey};

/// Readings after which the quotas of a process are looked for again: they may be changed while it runs.
const QUOTA_ROUND: u64 = 6;

/// What a process used between two readings.
#[derive(Clone, Debug, Default)]
pub(super) struct Used {
    pub(super) cpu_ns: u64,
    /// Of its threads, while they could run; `None` where the kernel does not account it, or there is one reading only.
    pub(super) waited_ns: Option<u64>,
    /// The cgroups that limit it.
    pub(super) limits: Vec<Rc<LimitedCgroup>>,
}

/// A cgroup with a quota between two readings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuotaUse {
    /// Of all processes below it that were read.
    pub(super) cpu_ns: u64,
    /// `None` with one reading only.
    pub(super) throttled: Option<ThrottleCounts>,
}

/// What was read of a process last.
#[derive(Debug)]
struct Known {
    cpu_ns: u64,
    run_queue: BTreeMap<u32, u64>,
    limits: Vec<Rc<LimitedCgroup>>,
}

/// All processes, as they were at the last reading.
#[derive(Debug)]
pub(super) struct Processes {
    hierarchy: Option<CpuHierarchy>,
    known: HashMap<ProcessKey, Known>,
    quotas: HashMap<String, ThrottleCounts>,
    readings: u64,
}

impl Processes {
    pub(super) fn new() -> Self {
        Self {
            hierarchy: CpuHierarchy::detect(),
            known: HashMap::new(),
            quotas: HashMap::new(),
            readings: 0,
        }
    }

    /// Reads processes; what each used since the reading before, without those that have ended meanwhile. Blocks.
    pub(super) fn read(
        &mut self,
        processes: &[Arc<Process>],
    ) -> (HashMap<ProcessKey, Used>, HashMap<String, QuotaUse>) {
        let is_first = self.readings == 0;
        let quotas_are_due = self.readings.is_multiple_of(QUOTA_ROUND);
        self.readings += 1;
        let mut used = HashMap::new();
        let mut known = HashMap::new();
        for process in processes.iter().filter(|process| !process.kernel_thread) {
            let key = process.key;
            let Ok(time) = cpu_time(key.pid).map(|time| (time.start_ticks, time.ns)) else {
                continue;
            };
            if time.0 != key.start_ticks {
                continue;
            }
            let before = self.known.remove(&key);
            let (now, of_process) = self.step(key, time.1, before, is_first, quotas_are_due);
            known.insert(key, now);
            used.insert(key, of_process);
        }
        self.known = known;
        let quotas = self.read_quotas(&used);
        (used, quotas)
    }

    fn step(
        &self,
        key: ProcessKey,
        cpu_ns: u64,
        before: Option<Known>,
        is_first: bool,
        quotas_are_due: bool,
    ) -> (Known, Used) {
        let is_new = before.is_none();
        // One that was not there before has used all its time since.
        let earlier = before.as_ref().map(|known| known.cpu_ns);
        let more = cpu_ns.saturating_sub(earlier.unwrap_or(if is_first { cpu_ns } else { 0 }));
        let (mut run_queue, mut limits) = before
            .map(|known| (known.run_queue, known.limits))
            .unwrap_or_default();
        // What has not run has not waited long either: its threads need not be read.
        let mut waited_ns = (!is_first).then_some(0);
        if is_new || more > 0 {
            let now = run_queue_times(key.pid).unwrap_or_default();
            let is_known = !now.is_empty() && (is_new || !run_queue.is_empty());
            waited_ns = (!is_first && is_known).then(|| waited(&run_queue, &now));
            run_queue = now;
        }
        if (is_new || quotas_are_due)
            && let Some(hierarchy) = &self.hierarchy
        {
            limits = hierarchy
                .limits_of(key.pid)
                .into_iter()
                .map(Rc::new)
                .collect();
        }
        let known = Known {
            cpu_ns,
            run_queue,
            limits: limits.clone(),
        };
        let used = Used {
            cpu_ns: more,
            waited_ns,
            limits,
        };
        (known, used)
    }

    fn read_quotas(&mut self, used: &HashMap<ProcessKey, Used>) -> HashMap<String, QuotaUse> {
        let mut quotas: HashMap<String, QuotaUse> = HashMap::new();
        let mut counts = HashMap::new();
        for of_process in used.values() {
            let mut seen = HashSet::new();
            for limit in &of_process.limits {
                if !seen.insert(limit.path.as_str()) {
                    continue;
                }
                let quota = quotas.entry(limit.path.clone()).or_default();
                quota.cpu_ns = quota.cpu_ns.saturating_add(of_process.cpu_ns);
                if !counts.contains_key(&limit.path)
                    && let Some(now) = limit.counts()
                {
                    let before = self.quotas.get(&limit.path);
                    quota.throttled = before.map(|before| now.since(*before));
                    counts.insert(limit.path.clone(), now);
                }
            }
        }
        self.quotas = counts;
        quotas
    }
}

/// Time that threads have waited since; those that are new have waited all theirs.
fn waited(before: &BTreeMap<u32, u64>, now: &BTreeMap<u32, u64>) -> u64 {
    now.iter()
        .map(|(tid, ns)| ns.saturating_sub(before.get(tid).copied().unwrap_or(0)))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_ended_take_their_time_along_and_new_ones_bring_theirs() {
        let times = |list: &[(u32, u64)]| list.iter().copied().collect::<BTreeMap<_, _>>();
        let before = times(&[(1, 100), (2, 50)]);
        assert_eq!(waited(&before, &times(&[(1, 130), (3, 7)])), 37);
        assert_eq!(waited(&before, &times(&[])), 0);
        assert_eq!(waited(&times(&[]), &before), 150);
    }
}
