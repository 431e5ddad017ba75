//! CPU time, run-queue time and quotas of processes between two readings.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use profiler_clock::{started_steady_ns, steady_ns};
use profiler_host::process::{
    accounting::{cpu_time, run_queue_times},
    cpu_quota::{CpuHierarchy, LimitedCgroup, ThrottleCounts},
};
use profiler_model::{Process, ProcessKey, float};

/// Shorter windows are none.
const LEAST_WINDOW_S: f64 = 0.001;
/// Readings after which the quotas of a process are looked for again: they may be changed while it runs.
const QUOTA_ROUND: u64 = 6;

/// What a process used between two readings.
#[derive(Clone, Debug, Default)]
pub(super) struct Used {
    pub(super) cpu_ns: u64,
    /// Threads that could run and had no CPU, on average since that was read before; `None` where the kernel does not account
    /// it, or there is one reading only.
    pub(super) waiting: Option<f64>,
    /// The cgroups that limit it.
    pub(super) limits: Vec<Rc<LimitedCgroup>>,
}

/// A cgroup with a quota between two readings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuotaUse {
    /// Processes below it, and what they used.
    pub(super) processes: usize,
    pub(super) cpu_ns: u64,
    /// By the kernel's counts; `None` with one reading only.
    pub(super) counts: Option<ThrottleCounts>,
}

/// What was read of a process last.
#[derive(Debug)]
struct Known {
    cpu_ns: u64,
    run_queue: BTreeMap<u32, u64>,
    /// When that was read.
    run_queue_read: Instant,
    limits: Vec<Rc<LimitedCgroup>>,
}

/// All processes, as they were at the last reading.
#[derive(Debug)]
pub(super) struct Processes {
    hierarchy: Option<CpuHierarchy>,
    known: HashMap<ProcessKey, Known>,
    quotas: HashMap<String, ThrottleCounts>,
    readings: u64,
    /// When the reading before began, on the machine's clock.
    read_ns: u64,
}

impl Processes {
    pub(super) fn new() -> Self {
        Self {
            hierarchy: CpuHierarchy::detect(),
            known: HashMap::new(),
            quotas: HashMap::new(),
            readings: 0,
            read_ns: 0,
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
        let began_ns = steady_ns();
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
        self.read_ns = began_ns;
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
        // One that has started since has used all its time since; of another one that was not seen before nothing is known.
        let has_started = !is_first && started_steady_ns(key.start_ticks) >= self.read_ns;
        let earlier = before.as_ref().map(|known| known.cpu_ns);
        let more = cpu_ns.saturating_sub(earlier.unwrap_or(if has_started { 0 } else { cpu_ns }));
        let now = Instant::now();
        let (mut run_queue, mut run_queue_read, mut limits) = match before {
            Some(known) => (known.run_queue, Some(known.run_queue_read), known.limits),
            None => (BTreeMap::new(), None, Vec::new()),
        };
        // What has not run has not waited long either: its threads need not be read.
        let mut waiting = (!is_first).then_some(0.0);
        if is_new || more > 0 {
            let times = run_queue_times(key.pid).unwrap_or_default();
            let since = run_queue_read.map_or_else(
                || Duration::from_nanos(steady_ns().saturating_sub(self.read_ns)),
                |read| now.duration_since(read),
            );
            let is_known = !times.is_empty() && (has_started || !run_queue.is_empty());
            waiting = (!is_first && is_known).then(|| {
                float(waited(&run_queue, &times)) / 1e9 / since.as_secs_f64().max(LEAST_WINDOW_S)
            });
            run_queue = times;
            run_queue_read = Some(now);
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
            run_queue_read: run_queue_read.unwrap_or(now),
            limits: limits.clone(),
        };
        let used = Used {
            cpu_ns: more,
            waiting,
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
                quota.processes += 1;
                quota.cpu_ns = quota.cpu_ns.saturating_add(of_process.cpu_ns);
                if !counts.contains_key(&limit.path)
                    && let Some(now) = limit.counts()
                {
                    let before = self.quotas.get(&limit.path);
                    quota.counts = before.and_then(|before| now.since_same(*before));
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
