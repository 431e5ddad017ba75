//! The thread that reads, again and again.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use profiler_analysis::overview::{Busiest, arrange, busiest, summary, troubles};
use profiler_clock::{thread_cpu_ns, wall_ns};
use profiler_host::{
    envoy_admin::{HttpTraffic, is_envoy},
    process::ProcessTable,
    sockets::{SegmentCounts, segments_of},
};
use profiler_model::{
    float,
    overview::{Overview, OverviewKind, OverviewPoint, OverviewRow},
};

use super::{
    OverviewConfig,
    groups::{Group, groups},
    processes::Processes,
    row::{Readings, row},
};
use crate::envoys::Envoys;

/// Before that a share of the time says little.
const LEAST_LIFE: Duration = Duration::from_secs(2);
/// The pause in times of the CPU time that this thread's last reading took: it may need 0.5 % of a CPU, as much as all that ask
/// Envoys (`envoys`).
const PAUSE_FACTOR: u32 = 200;
/// The first pause ends after this time whatever the first reading took: it reads every thread.
const LONGEST_FIRST: Duration = Duration::from_secs(10);
/// How far a row's history goes back, with at most so many points; that of a row which is gone is kept as long: a pod that
/// restarts goes on.
const KEPT: Duration = Duration::from_mins(10);
const HISTORY: usize = 120;
/// Rows; the last in their order are left out beyond it.
const MOST_ROWS: usize = 1_000;

#[derive(Debug)]
struct History {
    points: VecDeque<OverviewPoint>,
    seen: Instant,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Watch {
    table: ProcessTable,
    config: OverviewConfig,
    began: Instant,
    processes: Processes,
    envoys: Envoys<HttpTraffic>,
    segments: HashMap<u64, SegmentCounts>,
    histories: HashMap<String, History>,
    read: Option<Instant>,
    readings: u64,
    /// Between this reading and the next.
    pause: Duration,
}

impl Watch {
    pub(super) fn new(table: ProcessTable, config: OverviewConfig) -> Self {
        Self {
            table,
            config,
            began: Instant::now(),
            processes: Processes::new(),
            envoys: Envoys::new(|_, admin| admin.traffic()),
            segments: HashMap::new(),
            histories: HashMap::new(),
            read: None,
            readings: 0,
            pause: config.period,
        }
    }

    /// Reads until the other end of `stopped` is gone.
    pub(super) fn run(mut self, stopped: &Receiver<()>, mut told: impl FnMut(&Arc<Overview>)) {
        loop {
            let before_ns = thread_cpu_ns();
            told(&Arc::new(self.step()));
            let cost = Duration::from_nanos(thread_cpu_ns().saturating_sub(before_ns));
            let rest = cost * PAUSE_FACTOR;
            let pause = if self.readings == 1 {
                self.config.first.max(rest.min(LONGEST_FIRST))
            } else {
                self.config.period.max(rest)
            };
            self.pause = pause.max(self.config.period);
            match stopped.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// CPU time of this thread and of those that ask Envoys.
    fn cost_ns(&self) -> u64 {
        thread_cpu_ns().saturating_add(self.envoys.cost_ns())
    }

    fn step(&mut self) -> Overview {
        self.readings += 1;
        self.table.refresh();
        let all = self.table.snapshot();
        let groups = groups(&all, self.table.names());
        let places: Vec<_> = all
            .iter()
            .filter(|process| is_envoy(process))
            .map(|process| (process.key, process.network_namespace))
            .collect();
        let answers = if self.config.asks_envoys {
            self.envoys.read(&places)
        } else {
            BTreeMap::new()
        };
        let now = Instant::now();
        let window = self.read.map(|read| now.duration_since(read));
        self.read = Some(now);
        let (used, quotas) = self.processes.read(&all);
        let readings = Readings {
            window,
            used,
            quotas,
            envoys: answers,
            asks_envoys: self.config.asks_envoys,
        };
        let read_ns = wall_ns();
        let mut segments = HashMap::new();
        let mut rows: Vec<OverviewRow> = groups
            .iter()
            .map(|group| row(group, &readings, self.segments_of(group, &mut segments)))
            .collect();
        let busiest = busiest(&rows);
        for row in &mut rows {
            self.complete(row, busiest.as_ref(), read_ns, now);
        }
        self.segments = segments;
        self.histories
            .retain(|_, history| now.duration_since(history.seen) < KEPT);
        arrange(&mut rows);
        let summary = summary(&rows);
        let left_out = rows.len().saturating_sub(MOST_ROWS);
        rows.truncate(MOST_ROWS);
        Overview {
            summary,
            rows,
            read_ns: Some(read_ns),
            period_s: self.pause.as_secs_f64(),
            cost_percent: self.cost_percent(),
            notes: self.notes(left_out),
        }
    }

    /// Of the namespace, since the reading before.
    fn segments_of(
        &self,
        group: &Group,
        all: &mut HashMap<u64, SegmentCounts>,
    ) -> Option<SegmentCounts> {
        let namespace = group
            .namespace
            .filter(|_| group.kind == OverviewKind::Pod)?;
        let counts = group
            .members
            .iter()
            .find_map(|process| segments_of(process.key.pid, namespace).ok())?;
        all.insert(namespace, counts);
        counts.since(*self.segments.get(&namespace)?)
    }

    fn complete(
        &mut self,
        row: &mut OverviewRow,
        busiest: Option<&Busiest>,
        at_ns: u64,
        now: Instant,
    ) {
        let history = self
            .histories
            .entry(row.id.clone())
            .or_insert_with(|| History {
                points: VecDeque::new(),
                seen: now,
            });
        history.seen = now;
        let oldest_ns = at_ns.saturating_sub(u64::try_from(KEPT.as_nanos()).unwrap_or(u64::MAX));
        while history.points.len() > HISTORY
            || history
                .points
                .front()
                .is_some_and(|point| point.at_ns < oldest_ns)
        {
            history.points.pop_front();
        }
        row.history = history.points.iter().copied().collect();
        row.troubles = troubles(row, busiest);
        if row.window_s.is_none() {
            return;
        }
        let requests = row.answered.or(row.sent);
        let point = OverviewPoint {
            at_ns,
            cores: row.cpu.cores,
            requests_per_s: requests.map(|requests| requests.per_s),
            // What others answer to it is no history of its own answers.
            p95_ms: row
                .answered
                .and_then(|requests| requests.p95)
                .map(|time| time.to_ms),
        };
        history.points.push_back(point);
        row.history = history.points.iter().copied().collect();
    }

    fn cost_percent(&self) -> Option<f64> {
        let lived = self.began.elapsed().as_secs_f64();
        (lived >= LEAST_LIFE.as_secs_f64()).then(|| 100.0 * float(self.cost_ns()) / 1e9 / lived)
    }

    fn notes(&self, left_out: usize) -> Vec<String> {
        let mut notes = Vec::new();
        if self.envoys.left_out > 0 {
            notes.push(format!(
                "{} Envoys are not asked: there are too many on this node, or in one pod",
                self.envoys.left_out
            ));
        }
        if left_out > 0 {
            notes.push(format!(
                "{left_out} rows are left out: the first {MOST_ROWS} are shown"
            ));
        }
        notes
    }
}
