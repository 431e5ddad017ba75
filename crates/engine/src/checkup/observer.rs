//! Reads, while the tasks of a check-up run, what the kernel accounts to the target's processes and
//! what Envoys count.
//!
//! Accounts are read at the start and at the end, and in between so often that a process which ends is
//! known up to shortly before its end. Each Envoy has a thread of its own, which is in its network
//! namespace ([`super::envoy_watch`]).

use std::{
    collections::BTreeMap,
    io,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use profiler_clock::wall_ns;
use profiler_host::{
    envoy_admin::is_envoy,
    process::{
        ProcessTable,
        accounting::ProcessAccount,
        cpu_quota::{CpuHierarchy, LimitedCgroup, ThrottleCounts},
    },
};
use profiler_model::{
    CheckupRecord, Observed, ObservedProcess, ObservedRequests, ObservedThread, ObservedThrottling,
    Process, ProcessKey, RequestSeries, Target, TwoReadings,
};

use super::{
    envoy_watch::{Counted, EnvoyReport, EnvoyWatch, SOURCE},
    targets::Targets,
};

/// Time between two readings of all accounts, at least.
const INTERVAL: Duration = Duration::from_secs(2);
/// The same in times of what a reading takes: it may need 1 % of a CPU.
const PAUSE_FACTOR: u32 = 100;
/// Envoys whose admin interface is used.
const ENVOYS: usize = 16;

/// A running observation.
#[derive(Debug)]
pub struct Observer {
    stop: SyncSender<()>,
    thread: JoinHandle<CheckupRecord>,
}

impl Observer {
    /// Starts to observe a target; the first reading is taken at once, on the new thread.
    pub fn start(target: Target, table: ProcessTable, asks_envoys: bool) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("observer".into())
            .spawn(move || observe(target, table, asks_envoys, &stopped))?;
        Ok(Self { stop, thread })
    }

    /// Takes the last reading and returns what was observed. Blocks for up to some seconds.
    pub fn finish(self) -> CheckupRecord {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_panic| CheckupRecord {
            observed: Observed {
                gaps: vec!["nothing was observed beside samples: internal error".to_owned()],
                ..Observed::default()
            },
            ..CheckupRecord::default()
        })
    }
}

fn observe(
    target: Target,
    table: ProcessTable,
    asks_envoys: bool,
    stopped: &Receiver<()>,
) -> CheckupRecord {
    let mut watched = WatchedTarget::new(Targets::new(target), table, asks_envoys);
    loop {
        let began = Instant::now();
        watched.read();
        let pause = INTERVAL.max(began.elapsed() * PAUSE_FACTOR);
        match stopped.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                // Both ends of the same moment, as near as they come.
                for envoy in &watched.envoys {
                    envoy.stop();
                }
                watched.read();
                return watched.finish();
            }
        }
    }
}

/// First and newest readings of one process.
#[derive(Debug)]
struct Account {
    first: (Instant, ProcessAccount),
    newest: (Instant, ProcessAccount),
    /// Between the two.
    cpu_ns: u64,
    quotas: Vec<Quota>,
}

#[derive(Debug)]
struct Quota {
    cgroup: LimitedCgroup,
    first: ThrottleCounts,
    newest: ThrottleCounts,
}

struct WatchedTarget {
    origin: (Instant, u64),
    targets: Targets,
    table: ProcessTable,
    hierarchy: Option<CpuHierarchy>,
    asks_envoys: bool,
    accounts: BTreeMap<ProcessKey, Account>,
    envoys: Vec<EnvoyWatch>,
    gaps: Vec<String>,
    /// Envoys that were not asked.
    left_out: usize,
}

impl WatchedTarget {
    fn new(targets: Targets, table: ProcessTable, asks_envoys: bool) -> Self {
        Self {
            origin: (Instant::now(), wall_ns()),
            targets,
            table,
            hierarchy: CpuHierarchy::detect(),
            asks_envoys,
            accounts: BTreeMap::new(),
            envoys: Vec::new(),
            gaps: Vec::new(),
            left_out: 0,
        }
    }

    fn read(&mut self) {
        for process in self.targets.find(&self.table) {
            // One that has ended keeps the reading before.
            let Ok(account) = ProcessAccount::read(process.key.pid) else {
                continue;
            };
            let at = Instant::now();
            match self.accounts.get_mut(&account.key) {
                Some(known) => known.renew(at, account),
                None => self.begin(at, account, &process),
            }
        }
    }

    fn begin(&mut self, at: Instant, account: ProcessAccount, process: &Process) {
        let limits = self
            .hierarchy
            .as_ref()
            .map(|hierarchy| hierarchy.limits_of(account.key.pid));
        let quotas = limits.unwrap_or_default().into_iter();
        let quotas = quotas.filter_map(|cgroup| {
            let first = cgroup.counts()?;
            Some(Quota {
                cgroup,
                first,
                newest: first,
            })
        });
        if is_envoy(process) && process.key == account.key {
            self.begin_envoy(account.key);
        }
        let known = Account {
            first: (at, account.clone()),
            newest: (at, account),
            cpu_ns: 0,
            quotas: quotas.collect(),
        };
        self.accounts.insert(known.first.1.key, known);
    }

    fn begin_envoy(&mut self, key: ProcessKey) {
        if !self.asks_envoys || self.envoys.len() >= ENVOYS {
            self.left_out += 1;
            return;
        }
        match EnvoyWatch::start(key) {
            Ok(envoy) => self.envoys.push(envoy),
            Err(error) => self.gaps.push(format!(
                "requests and configuration of the Envoy with pid {} are not known: {error}",
                key.pid
            )),
        }
    }

    fn finish(mut self) -> CheckupRecord {
        let reports: BTreeMap<ProcessKey, EnvoyReport> = std::mem::take(&mut self.envoys)
            .into_iter()
            .map(|envoy| (envoy.key(), envoy.finish()))
            .collect();
        let mut gaps = self.gaps;
        gaps.extend(unasked(self.left_out, self.asks_envoys));
        if self.targets.is_cut {
            gaps.push(
                "the target has more processes than are observed; those that used the CPU most are"
                    .to_owned(),
            );
        }
        let moment = |at: Instant| {
            let since = at.saturating_duration_since(self.origin.0);
            self.origin.1.saturating_add(nanoseconds(since))
        };
        let mut series = Vec::new();
        let mut processes = Vec::new();
        let mut reports = reports;
        for (key, mut account) in self.accounts {
            let EnvoyReport {
                counted,
                configuration,
                gaps: of_envoy,
            } = reports.remove(&key).unwrap_or_default();
            gaps.extend(of_envoy);
            let requests = counted.map(|counted| {
                let requests = account.take(counted, &mut series);
                ObservedRequests {
                    count: requests,
                    source: SOURCE.to_owned(),
                }
            });
            let mut process = account.observed(moment);
            process.requests = requests;
            process.configuration = configuration;
            // Of one reading nothing follows.
            if process.to_ns > process.from_ns {
                processes.push(process);
            }
        }
        if processes.is_empty() {
            gaps.push(
                "the kernel's accounts could not be read: no process of the target was there long enough"
                    .to_owned(),
            );
        }
        let from = processes.iter().map(|process| process.from_ns).min();
        let to = processes.iter().map(|process| process.to_ns).max();
        CheckupRecord {
            observed: Observed {
                from_ns: from.unwrap_or(self.origin.1),
                to_ns: to.unwrap_or(self.origin.1),
                processes,
                gaps,
            },
            series,
        }
    }
}

/// Why Envoys were not asked.
fn unasked(count: usize, asks_envoys: bool) -> Option<String> {
    let what = "requests and configuration of Envoy are not known";
    match (count, asks_envoys) {
        (0, _) => None,
        (_, false) => Some(format!(
            "{what}: its admin interface is not used (envoy_admin is off)"
        )),
        (_, true) => Some(format!(
            "{what} for {count} of the Envoys: {ENVOYS} at once are asked"
        )),
    }
}

impl Account {
    fn renew(&mut self, at: Instant, account: ProcessAccount) {
        self.cpu_ns = self
            .cpu_ns
            .saturating_add(account.cpu_ns_since(&self.newest.1));
        self.newest = (at, account);
        for quota in &mut self.quotas {
            // A cgroup may go away before its process is missed.
            if let Some(counts) = quota.cgroup.counts() {
                quota.newest = counts;
            }
        }
    }

    /// Goes over to the readings that were taken with the numbers of requests, so that both are of the
    /// very same time. Returns how many requests there were.
    fn take(&mut self, counted: Counted, all: &mut Vec<RequestSeries>) -> u64 {
        let Counted {
            first,
            newest,
            series,
        } = counted;
        self.first = first;
        self.newest = newest;
        let mut requests = 0;
        if let [first, .., last] = series.points.as_slice() {
            self.cpu_ns = last.cpu_ns.saturating_sub(first.cpu_ns);
            requests = last.requests.saturating_sub(first.requests);
        }
        all.push(series);
        requests
    }

    fn observed(self, moment: impl Fn(Instant) -> u64) -> ObservedProcess {
        let Self {
            first: (from, first),
            newest: (to, newest),
            cpu_ns,
            quotas,
        } = self;
        let threads = newest.threads.iter().filter_map(|(tid, thread)| {
            let before = first.threads.get(tid)?;
            Some(ObservedThread {
                tid: *tid,
                name: thread.name.clone(),
                cpu_ns: TwoReadings {
                    first: before.cpu_ns,
                    last: thread.cpu_ns,
                },
                run_queue_ns: before
                    .run_queue_ns
                    .zip(thread.run_queue_ns)
                    .map(|(first, last)| TwoReadings { first, last }),
            })
        });
        ObservedProcess {
            key: first.key,
            from_ns: moment(from),
            to_ns: moment(to),
            cpu_ns: TwoReadings {
                first: 0,
                last: cpu_ns,
            },
            threads: threads.collect(),
            throttled: throttling(&quotas),
            requests: None,
            configuration: None,
        }
    }
}

fn throttling(quotas: &[Quota]) -> Option<ObservedThrottling> {
    let mut sum: Option<ObservedThrottling> = None;
    for quota in quotas {
        let counts = quota.newest.since(quota.first);
        let sum = sum.get_or_insert_default();
        sum.periods += counts.periods;
        sum.throttled_periods += counts.throttled;
        sum.throttled_ns += counts.throttled_ns;
    }
    sum
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "observer_tests.rs"]
mod tests;
