//! What the agent reports about itself: its log, its own cost, and the totals of all tasks.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use profiler_model::{LossKind, Losses, Task, TaskId, float};
use tracing_subscriber::{
    EnvFilter, filter::Directive, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use crate::{recent_log::RecentLog, terminal::LogLines};

/// Readings closer together than this give the CPU share of the earlier pair.
const MIN_CPU_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error(
        "log filter {filter:?} is not valid: {detail}; write for example info or profiler=debug,warn"
    )]
    Filter { filter: String, detail: String },
    #[error("set up the log: {0}")]
    Init(#[from] tracing_subscriber::util::TryInitError),
}

/// Checks a log filter without using it.
pub fn check_filter(filter: &str) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::builder()
        .parse(filter)
        .map_err(|error| TelemetryError::Filter {
            filter: filter.to_owned(),
            detail: error.to_string(),
        })
}

/// Sends the log to stderr, and keeps its last lines. Messages of the `log` crate (aya-log uses it) are included.
pub fn init(filter: &str) -> Result<(), TelemetryError> {
    let mut filter = check_filter(filter)?;
    if !filter.to_string().contains("aya_obj") {
        // Its debug level is hundreds of lines on relocations for each load.
        let quiet = "aya_obj=info".parse::<Directive>();
        filter = quiet.into_iter().fold(filter, EnvFilter::add_directive);
    }
    let lines = fmt::layer().with_writer(|| LogLines).with_ansi(false);
    let kept = fmt::layer().with_writer(RecentLog::own()).with_ansi(false);
    // `try_init` also installs the bridge from the `log` crate.
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .with(kept)
        .try_init()?;
    Ok(())
}

/// The agent's own cost at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelfReading {
    /// User plus system time since the process started.
    pub cpu_seconds: f64,
    pub rss_bytes: u64,
    pub peak_rss_bytes: u64,
    pub open_files: u64,
}

impl SelfReading {
    /// Reads `/proc/self`.
    pub fn take() -> Result<Self, procfs::ProcError> {
        let process = procfs::process::Process::myself()?;
        let status = process.status()?;
        let stat = process.stat()?;
        let kib = |value: Option<u64>| value.unwrap_or(0).saturating_mul(1024);
        Ok(Self {
            cpu_seconds: ticks_to_seconds(stat.utime.saturating_add(stat.stime)),
            rss_bytes: kib(status.vmrss),
            peak_rss_bytes: kib(status.vmhwm),
            open_files: process.fd_count()? as u64,
        })
    }
}

fn ticks_to_seconds(ticks: u64) -> f64 {
    float(ticks) / float(procfs::ticks_per_second())
}

/// Follows the agent's own cost over time.
#[derive(Debug)]
pub struct SelfMeter {
    started: Instant,
    last: Mutex<LastCpu>,
}

#[derive(Clone, Copy, Debug)]
struct LastCpu {
    at: Instant,
    cpu_seconds: f64,
    percent: f64,
}

impl Default for SelfMeter {
    fn default() -> Self {
        let started = Instant::now();
        let last = LastCpu {
            at: started,
            cpu_seconds: 0.0,
            percent: 0.0,
        };
        Self {
            started,
            last: Mutex::new(last),
        }
    }
}

impl SelfMeter {
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// A reading and the share of one core, in percent, since the previous one.
    pub fn read(&self) -> Result<(SelfReading, f64), procfs::ProcError> {
        let reading = SelfReading::take()?;
        let mut last = lock(&self.last);
        let elapsed = last.at.elapsed();
        if elapsed >= MIN_CPU_INTERVAL {
            let spent = (reading.cpu_seconds - last.cpu_seconds).max(0.0);
            *last = LastCpu {
                at: Instant::now(),
                cpu_seconds: reading.cpu_seconds,
                percent: 100.0 * spent / elapsed.as_secs_f64(),
            };
        }
        Ok((reading, last.percent))
    }
}

/// Samples and losses of all tasks since the agent started. They only grow, also when tasks
/// are deleted.
#[derive(Debug, Default)]
pub struct Totals {
    inner: Mutex<TotalsInner>,
}

#[derive(Debug, Default)]
struct TotalsInner {
    samples: u64,
    losses: Losses,
    seen: HashMap<TaskId, (u64, Losses)>,
}

impl Totals {
    /// Takes the state of a task from before the agent started as the point to count from.
    pub fn baseline(&self, task: &Task) {
        lock(&self.inner)
            .seen
            .insert(task.id, (task.samples, task.losses.clone()));
    }

    /// Counts what a task has gained since it was last seen.
    pub fn observe(&self, task: &Task) {
        let mut inner = lock(&self.inner);
        let (samples, losses) = inner.seen.remove(&task.id).unwrap_or_default();
        inner.samples = inner
            .samples
            .saturating_add(task.samples.saturating_sub(samples));
        for (kind, count) in task.losses.iter() {
            inner
                .losses
                .add(kind, count.saturating_sub(losses.get(kind)));
        }
        inner
            .seen
            .insert(task.id, (task.samples, task.losses.clone()));
    }

    pub fn forget(&self, task: TaskId) {
        lock(&self.inner).seen.remove(&task);
    }

    pub fn samples(&self) -> u64 {
        lock(&self.inner).samples
    }

    pub fn losses(&self) -> Losses {
        lock(&self.inner).losses.clone()
    }

    pub fn loss(&self, kind: LossKind) -> u64 {
        lock(&self.inner).losses.get(kind)
    }
}

/// The data stays usable when a holder panicked: every update is a plain assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use profiler_model::{Recording, SampleKind, Target, TaskSpec, TaskState};

    use super::*;

    fn task(samples: u64, dropped: u64) -> Task {
        let mut losses = Losses::default();
        losses.add(LossKind::RingBufferFull, dropped);
        let spec = TaskSpec {
            target: Target::All,
            duration_s: None,
            recording: Recording::Samples(SampleKind::OnCpu.into()),
        };
        Task {
            state: TaskState::Running,
            samples,
            losses,
            ..Task::queued(TaskId(1), spec, 0)
        }
    }

    #[test]
    fn totals_count_growth_once_and_survive_deletion() {
        let totals = Totals::default();
        totals.baseline(&task(100, 1));
        totals.observe(&task(110, 3));
        totals.observe(&task(110, 3));
        totals.observe(&task(125, 3));
        totals.forget(TaskId(1));
        assert_eq!(totals.samples(), 25);
        assert_eq!(totals.loss(LossKind::RingBufferFull), 2);
    }

    #[test]
    fn own_cost_is_read() {
        let reading = SelfReading::take().unwrap();
        assert!(reading.rss_bytes > 0 && reading.peak_rss_bytes >= reading.rss_bytes / 2);
        assert!(reading.open_files > 2);
    }

    #[test]
    fn own_cpu_share_follows_work() {
        let meter = SelfMeter::default();
        let begin = Instant::now();
        while begin.elapsed() < MIN_CPU_INTERVAL + Duration::from_millis(100) {
            std::hint::spin_loop();
        }
        let (_, percent) = meter.read().unwrap();
        assert!(percent > 1.0, "{percent}");
    }

    #[test]
    fn a_bad_filter_is_explained() {
        let error = check_filter("a=b=c").unwrap_err().to_string();
        assert!(
            error.starts_with("log filter \"a=b=c\" is not valid: "),
            "{error}"
        );
    }

    #[test]
    fn one_name_in_a_filter_is_every_crate_of_the_agent() {
        let filter = check_filter("profiler=debug,warn").unwrap();
        let log = tracing_subscriber::registry().with(filter);
        tracing::subscriber::with_default(log, || {
            assert!(tracing::enabled!(target: "profiler_agent::task", tracing::Level::DEBUG));
            assert!(tracing::enabled!(target: "profiler_sandbox::broker", tracing::Level::DEBUG));
            assert!(!tracing::enabled!(target: "kube", tracing::Level::INFO));
        });
    }
}
