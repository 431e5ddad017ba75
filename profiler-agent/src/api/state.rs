//! What handlers share.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use profiler_analysis::{diagnosis::DiagnosisRules, idle::IdleRules};
use profiler_host::process::ProcessTable;
use profiler_model::{self as model, Losses, MAX_DURATION_S, MAX_FREQUENCY_HZ, TaskState};
use profiler_recording::{ProbeStatus, ProbeStatusSource};
use profiler_symbolize::{Renamer, SymbolPacks};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::{
    addressing::{Origin, Reached},
    auth::Tokens,
    dto::{AgentSelf, Bpf, Limits, Memory, Task, losses},
    error::ApiError,
    http_metrics::HttpMetrics,
    inspection::Inspection,
    strangers::Strangers,
    stream::Live,
    unsent::Unsent,
    verdicts::Verdicts,
};
use crate::{
    access_log_socket::ReceivedAccessLogs,
    config::{ArgumentPolicy, CapturePolicy},
    telemetry::{SelfMeter, Totals},
};
use profiler_engine::{
    checkup::Checkups, edge_metrics::Choice, network_watch::NetworkWatch, overview::OverviewWatch,
    task::Engine,
};
use profiler_memory::{Ceiling, Stage};

/// Requests that are worked on at once; streams of events have their own limit.
const MAX_REQUESTS: usize = 64;
/// Profiles that are rendered at once: each may need many megabytes.
const MAX_RENDERS: u32 = 2;
/// Symbol files that are received at once: each may be as large as all that are kept.
const MAX_UPLOADS: usize = 2;
/// Profiles that are imported at once: reading one may need some hundred megabytes.
const MAX_IMPORTS: usize = 1;

/// Facts about the machine that do not change.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    pub node: String,
    pub kernel: String,
    pub arch: String,
    pub cpus: usize,
    pub btf: bool,
}

impl NodeInfo {
    pub fn read() -> Self {
        let system = rustix::system::uname();
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online");
        let cpus = online.ok().and_then(|text| count_cpus(text.trim()));
        Self {
            node: system.nodename().to_string_lossy().into_owned(),
            kernel: system.release().to_string_lossy().into_owned(),
            arch: system.machine().to_string_lossy().into_owned(),
            cpus: cpus.unwrap_or_else(|| {
                std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
            }),
            btf: std::path::Path::new("/sys/kernel/btf/vmlinux").exists(),
        }
    }
}

/// CPUs in a list such as `0-3,8`.
fn count_cpus(list: &str) -> Option<usize> {
    list.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            Some(last.checked_sub(first)? + 1)
        })
        .sum()
}

/// What the state is built from.
#[expect(
    missing_debug_implementations,
    reason = "holds a trait object without Debug"
)]
pub struct ApiParts {
    pub engine: Engine,
    pub table: ProcessTable,
    pub probes: Arc<dyn ProbeStatusSource>,
    pub symbols: SymbolPacks,
    pub renamer: Renamer,
    pub idle_rules: Arc<IdleRules>,
    pub checkups: Checkups,
    pub diagnosis_rules: Arc<DiagnosisRules>,
    pub totals: Arc<Totals>,
    /// The always-on network collection.
    pub network: NetworkWatch,
    pub overview: OverviewWatch,
    pub access_logs: ReceivedAccessLogs,
    /// Edges with Prometheus metrics of their own.
    pub network_metrics_edges: usize,
    pub tokens: Tokens,
    pub origin: Origin,
    pub reached: Reached,
    pub arguments: ArgumentPolicy,
    /// What of payload tasks may look at.
    pub capture: CapturePolicy,
    pub node: NodeInfo,
    /// Programs can be loaded.
    pub can_profile: bool,
    /// Results, processes and edges were recorded elsewhere.
    pub demo_data: bool,
    pub max_running_tasks: usize,
    pub cpu_budget_percent: Option<f64>,
    /// What the agent can be asked about itself.
    pub inspection: Inspection,
    pub shutdown: CancellationToken,
}

/// The state itself; its fields are the API's own.
#[expect(
    missing_debug_implementations,
    reason = "holds a trait object without Debug"
)]
pub struct Inner {
    pub(super) parts: ApiParts,
    pub(super) live: Live,
    pub(super) http: Arc<HttpMetrics>,
    pub(super) unsent: Unsent,
    pub(super) strangers: Strangers,
    pub(super) verdicts: Verdicts,
    /// Which edges have metrics of their own.
    pub(super) edge_choice: parking_lot::Mutex<Choice>,
    pub(super) requests: Semaphore,
    pub(super) renders: Semaphore,
    pub(super) uploads: Semaphore,
    pub(super) imports: Semaphore,
    meter: SelfMeter,
    refreshed: Mutex<Option<Instant>>,
}

/// Shared by all handlers. Cheap to clone.
#[derive(Clone)]
#[expect(
    missing_debug_implementations,
    reason = "holds a trait object without Debug"
)]
pub struct ApiState(Arc<Inner>);

impl std::ops::Deref for ApiState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl ApiState {
    /// A task as the API shows it.
    pub(super) fn shown(&self, task: &model::Task) -> Task {
        Task::new(task, self.parts.engine.now_of(task))
    }

    pub fn new(parts: ApiParts) -> Self {
        Self(Arc::new(Inner {
            parts,
            live: Live::default(),
            http: Arc::default(),
            unsent: Unsent::default(),
            strangers: Strangers::default(),
            verdicts: Verdicts::default(),
            edge_choice: parking_lot::Mutex::default(),
            requests: Semaphore::new(MAX_REQUESTS),
            renders: Semaphore::new(MAX_RENDERS as usize),
            uploads: Semaphore::new(MAX_UPLOADS),
            imports: Semaphore::new(MAX_IMPORTS),
            meter: SelfMeter::default(),
            refreshed: Mutex::new(None),
        }))
    }
}

impl Inner {
    pub(super) fn is_shutting_down(&self) -> bool {
        self.parts.shutdown.is_cancelled()
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            max_duration_s: MAX_DURATION_S,
            max_frequency_hz: MAX_FREQUENCY_HZ,
            max_running_tasks: self.parts.max_running_tasks,
        }
    }

    /// Reads the processes again unless that was done less than `max_age` ago.
    pub(crate) async fn refresh_processes(&self, max_age: Duration) -> Result<(), ApiError> {
        let mut refreshed = self.refreshed.lock().await;
        if refreshed.is_some_and(|at| at.elapsed() < max_age) {
            return Ok(());
        }
        let table = self.parts.table.clone();
        blocking(move || table.refresh()).await?;
        *refreshed = Some(Instant::now());
        Ok(())
    }

    /// Losses of all tasks and of the probes since the agent started.
    pub(super) fn all_losses(&self) -> Losses {
        let mut all = self.parts.totals.losses();
        all.merge(&self.parts.probes.losses());
        all
    }

    /// The state of every probe, and of the always-on collection when it is on.
    pub(super) fn probes(&self) -> Vec<ProbeStatus> {
        let mut probes = self.parts.probes.probes();
        probes.extend(self.parts.network.status());
        probes
    }

    pub(super) fn read_self(&self) -> Result<(crate::telemetry::SelfReading, f64), ApiError> {
        self.meter
            .read()
            .map_err(|error| ApiError::internal(format!("read /proc/self: {error}")))
    }

    /// Waits for a turn to read and render a result. There is one at a time while memory is short, and none while
    /// tasks are stopped because of it.
    pub(super) async fn render_turn(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        let ceiling = Ceiling::own();
        ceiling.admits_reading("no result is read")?;
        let turns = if ceiling.stage() == Stage::Open {
            1
        } else {
            MAX_RENDERS
        };
        self.renders
            .acquire_many(turns)
            .await
            .map_err(ApiError::internal)
    }

    pub(super) async fn store_bytes(&self) -> Result<u64, ApiError> {
        let engine = self.parts.engine.clone();
        blocking(move || engine.store_bytes()).await
    }

    pub(super) fn uptime(&self) -> Duration {
        self.meter.uptime()
    }

    /// The answer of `/self`.
    pub(super) async fn agent_self(&self) -> Result<AgentSelf, ApiError> {
        let (reading, cpu_percent) = self.read_self()?;
        let running = self.parts.engine.list();
        let running = running
            .iter()
            .filter(|task| task.state == TaskState::Running)
            .count();
        Ok(AgentSelf {
            cpu_percent,
            cpu_seconds: reading.cpu_seconds,
            rss_bytes: reading.rss_bytes,
            peak_rss_bytes: reading.peak_rss_bytes,
            open_files: reading.open_files,
            uptime_s: self.uptime().as_secs(),
            running_tasks: running,
            store_bytes: self.store_bytes().await?,
            memory: blocking(|| Memory::of(&Ceiling::own())).await?,
            losses: losses(&self.all_losses()),
            bpf: Bpf {
                programs: self
                    .parts
                    .probes
                    .programs()
                    .into_iter()
                    .map(Into::into)
                    .collect(),
            },
        })
    }
}

/// Runs work that blocks off the reactor.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(ApiError::internal)
}

#[cfg(test)]
mod tests {
    use super::count_cpus;

    #[test]
    fn cpu_lists_are_counted() {
        assert_eq!(count_cpus("0"), Some(1));
        assert_eq!(count_cpus("0-3,8,10-11"), Some(7));
        assert_eq!(count_cpus("3-0"), None);
        assert_eq!(count_cpus(""), None);
    }
}
