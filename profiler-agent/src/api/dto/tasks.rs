//! Tasks, their requests and their results.

use profiler_analysis::{activities::Activities, render::summary::ThreadSummary};
use profiler_host::container_names::ContainerDirectory;
use profiler_model as model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    agent::{Loss, losses},
    containers::PodSelector,
    cpu_coverage::CpuCoverage,
    event_loop::LoopRules,
    imports::ImportedFile,
    request_rules::RequestSettings,
    stacks::StackQuality,
    wait_counts::WaitCounts,
};

#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum TaskKind {
    OnCpu,
    OffCpu,
    Wall,
    /// Connections between processes; the result is at `/edges`.
    Network,
    /// The same, and what is asked and answered over them; that is at `/requests`.
    Requests,
    /// A profile from a file; made by `POST /api/v1/imports`.
    Imported,
}

impl From<model::TaskKind> for TaskKind {
    fn from(kind: model::TaskKind) -> Self {
        match kind {
            model::TaskKind::OnCpu => Self::OnCpu,
            model::TaskKind::OffCpu => Self::OffCpu,
            model::TaskKind::Wall => Self::Wall,
            model::TaskKind::Network => Self::Network,
            model::TaskKind::Requests => Self::Requests,
        }
    }
}

impl From<&model::TaskOrigin> for TaskKind {
    fn from(origin: &model::TaskOrigin) -> Self {
        match origin {
            model::TaskOrigin::Recorded(spec) => spec.kind().into(),
            model::TaskOrigin::Imported(_) => Self::Imported,
        }
    }
}

/// Whose CPU time is sampled; exactly one key.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum Target {
    /// These processes and the children they fork during the task.
    Pids(Vec<u32>),
    /// Every process of the container: full id or a unique prefix of at least 12 digits.
    Container(String),
    /// Every process of the pods that fit, or of one container in each; also of those that start later.
    Pod(PodSelector),
    /// Every process in this cgroup or below.
    Cgroup(String),
    /// Every process with this name.
    Comm(String),
    /// Every process of the node; always `true`.
    All(bool),
    /// Every connection in this network namespace (a path as `/run/netns/NAME`); network tasks only.
    NetworkNamespace(String),
    /// The result was read from this file; no task can be started with it.
    Imported(ImportedFile),
}

impl From<&model::Target> for Target {
    fn from(target: &model::Target) -> Self {
        match target {
            model::Target::Pids(pids) => Self::Pids(pids.clone()),
            model::Target::Container(id) => Self::Container(id.clone()),
            model::Target::Pod(selector) => Self::Pod(selector.into()),
            model::Target::Cgroup(path) => Self::Cgroup(path.clone()),
            model::Target::Comm(comm) => Self::Comm(comm.clone()),
            model::Target::All => Self::All(true),
            model::Target::NetworkNamespace(path) => Self::NetworkNamespace(path.clone()),
        }
    }
}

impl From<&model::TaskOrigin> for Target {
    fn from(origin: &model::TaskOrigin) -> Self {
        match origin {
            model::TaskOrigin::Recorded(spec) => (&spec.target).into(),
            model::TaskOrigin::Imported(imported) => Self::Imported((&imported.file).into()),
        }
    }
}

/// How tasks that cannot be started are made.
pub(super) const IMPORTED_BY: &str = "a profile is imported with POST /api/v1/imports";

/// A target that something can be started on.
pub(super) fn target_of(target: Target) -> Result<model::Target, &'static str> {
    match target {
        Target::Pids(pids) => Ok(model::Target::Pids(pids)),
        Target::Container(id) => Ok(model::Target::Container(id)),
        Target::Pod(selector) => Ok(model::Target::Pod(selector.into())),
        Target::Cgroup(path) => Ok(model::Target::Cgroup(path)),
        Target::Comm(comm) => Ok(model::Target::Comm(comm)),
        Target::NetworkNamespace(path) => Ok(model::Target::NetworkNamespace(path)),
        Target::Imported(_) => Err(IMPORTED_BY),
        Target::All(true) => Ok(model::Target::All),
        Target::All(false) => Err("all must be true, or another target must be given"),
    }
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum TaskState {
    Queued,
    Running,
    Finished,
    Failed,
    Cancelled,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(in crate::api) enum Clock {
    #[serde(rename = "cpu-clock")]
    Cpu,
    #[serde(rename = "cycles")]
    Cycles,
    #[serde(rename = "sched-switch")]
    Switches,
    #[serde(rename = "wall-clock")]
    Wall,
}

/// A state in the API's terms, and why the task failed.
pub(super) fn state_of(state: &model::TaskState) -> (TaskState, Option<String>) {
    match state {
        model::TaskState::Queued => (TaskState::Queued, None),
        model::TaskState::Running => (TaskState::Running, None),
        model::TaskState::Finished => (TaskState::Finished, None),
        model::TaskState::Failed { reason } => (TaskState::Failed, Some(reason.clone())),
        model::TaskState::Cancelled => (TaskState::Cancelled, None),
    }
}

/// A process of a task's target.
#[derive(Debug, Serialize, ToSchema)]
struct TargetName {
    pid: u32,
    /// Clock ticks from boot to the start of the process.
    start_ticks: u64,
    comm: String,
}

/// A profiling task.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Task {
    id: String,
    kind: TaskKind,
    target: Target,
    /// The processes of a target of pids as they were when the task began, in its order. Those that had
    /// ended by then are missing.
    target_names: Vec<TargetName>,
    /// Name of the tasks that it was started with.
    #[schema(required)]
    group: Option<String>,
    /// Null: until stopped.
    #[schema(required)]
    duration_s: Option<u64>,
    /// Samples per second and CPU that were asked for; null for kinds that no clock drives.
    #[schema(required)]
    frequency_hz: Option<u32>,
    /// Whether it records who ended the waits.
    wakers: bool,
    /// Whether it times system calls on sockets.
    timed: bool,
    /// Whether it watches event loops.
    #[schema(required)]
    event_loop: Option<LoopRules>,
    /// What requests it looks for; null for kinds that look for none.
    #[schema(required)]
    requests: Option<RequestSettings>,
    /// The rate in force; lower than asked for when the CPU budget lowered it.
    #[schema(required)]
    effective_frequency_hz: Option<u32>,
    state: TaskState,
    /// Why it failed.
    #[schema(required)]
    reason: Option<String>,
    created_at_ns: u64,
    /// When recording began; null before, also while the programs of a running task are being loaded, and for
    /// a task that failed before.
    #[schema(required)]
    started_at_ns: Option<u64>,
    #[schema(required)]
    ended_at_ns: Option<u64>,
    /// Part of the duration that has passed, 0 to 1; null without a duration.
    #[schema(required)]
    progress: Option<f64>,
    #[schema(required)]
    clock: Option<Clock>,
    samples: u64,
    stacks: StackQuality,
    waits: WaitCounts,
    /// Known at the end; null for kinds that no clock of CPU time drives, and where the kernel's accounts are
    /// too coarse for it.
    #[schema(required)]
    coverage: Option<CpuCoverage>,
    losses: Vec<Loss>,
    /// Remarks in the order they arose.
    notes: Vec<String>,
}

impl Task {
    pub(in crate::api) fn new(task: &model::Task, now_ns: u64) -> Self {
        let model::Task {
            id,
            origin,
            target_names,
            group,
            state,
            created_ns,
            started_ns,
            ended_ns,
            effective_frequency_hz,
            clock,
            samples,
            losses: task_losses,
            stack_quality,
            waits,
            coverage,
            notes,
        } = task;
        let (state_name, reason) = state_of(state);
        let (spec, samples_asked) = (task.spec(), task.sample_spec());
        let edges = spec.and_then(model::TaskSpec::edges);
        let wait_rules = samples_asked.map_or_else(Default::default, |asked| asked.waits);
        Self {
            id: id.to_string(),
            kind: origin.into(),
            target: origin.into(),
            target_names: target_names
                .iter()
                .map(|name| TargetName {
                    pid: name.pid,
                    start_ticks: name.start_ticks,
                    comm: name.comm.clone(),
                })
                .collect(),
            group: group.clone(),
            duration_s: task.duration_s(),
            frequency_hz: frequency_asked(origin),
            wakers: samples_asked.is_some_and(|asked| asked.wakers),
            timed: edges.is_some_and(|edges| edges.timed),
            event_loop: samples_asked.and_then(|asked| asked.event_loop.map(Into::into)),
            requests: spec.and_then(|spec| spec.requests().map(Into::into)),
            effective_frequency_hz: *effective_frequency_hz,
            state: state_name,
            reason,
            created_at_ns: *created_ns,
            started_at_ns: *started_ns,
            ended_at_ns: *ended_ns,
            progress: progress(task, now_ns),
            clock: clock.and_then(|clock| match clock {
                model::Clock::CpuClock => Some(Clock::Cpu),
                model::Clock::Cycles => Some(Clock::Cycles),
                model::Clock::Switches => Some(Clock::Switches),
                model::Clock::Wall => Some(Clock::Wall),
                model::Clock::Unknown => None,
            }),
            samples: *samples,
            stacks: stack_quality.into(),
            waits: WaitCounts::new(&wait_rules, waits),
            coverage: coverage.as_ref().map(Into::into),
            losses: losses(task_losses),
            notes: notes.clone(),
        }
    }
}

/// `None` where no clock drives the samples, or a file does not say at which rate.
fn frequency_asked(origin: &model::TaskOrigin) -> Option<u32> {
    match origin {
        model::TaskOrigin::Recorded(spec) => {
            let samples = spec.samples()?;
            let has_clock = samples.kind.has_clock();
            has_clock.then_some(samples.frequency_hz)
        }
        model::TaskOrigin::Imported(imported) => imported.frequency_hz,
    }
}

fn progress(task: &model::Task, now_ns: u64) -> Option<f64> {
    let whole = task.duration_s()?.saturating_mul(1_000_000_000);
    if task.state == model::TaskState::Finished {
        return Some(1.0);
    }
    let end = task.ended_ns.unwrap_or(now_ns);
    let passed = task.started_ns.map_or(0, |start| end.saturating_sub(start));
    Some((model::float(passed) / model::float(whole.max(1))).clamp(0.0, 1.0))
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct TaskList {
    /// Newest first.
    pub(in crate::api) items: Vec<Task>,
    pub(in crate::api) total: usize,
}

/// A thread in a profile.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::api) struct ProfileThread {
    pub(in crate::api) pid: u32,
    pub(in crate::api) tid: u32,
    /// Name of the process.
    pub(in crate::api) process: String,
    /// Name of the thread.
    pub(in crate::api) name: String,
    /// Id of its container.
    #[schema(required)]
    pub(in crate::api) container: Option<String>,
    /// `NAMESPACE/POD`, also of one that has ended; null where nothing has named it. Untrusted.
    #[schema(required)]
    pub(in crate::api) pod: Option<String>,
    pub(in crate::api) samples: u64,
    /// The time that these stand for.
    pub(in crate::api) total_ns: u64,
    /// What it did, idle waits included whatever is shown; empty where the result has no waits.
    pub(in crate::api) activities: Vec<model::ThreadActivity>,
}

impl ProfileThread {
    pub(in crate::api) fn new(
        summary: ThreadSummary,
        activities: &Activities,
        directory: &ContainerDirectory,
    ) -> Self {
        let activities = activities.of_thread(&summary);
        let ThreadSummary {
            pid,
            tid,
            process,
            name,
            container,
            samples,
            total_ns,
            ..
        } = summary;
        let names = directory.by_id(&container);
        let pod = names.as_ref().and_then(|names| names.pod.as_ref());
        Self {
            pid,
            tid,
            process,
            name,
            pod: pod.map(|pod| format!("{}/{}", pod.namespace, pod.name)),
            container: Some(container).filter(|id| !id.is_empty()),
            samples,
            total_ns,
            activities,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ProfileThreadList {
    /// Most samples first.
    pub(in crate::api) items: Vec<ProfileThread>,
}

/// What the numbers of a profile count.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the parameter; handlers parse it with render::Value"
)]
pub(in crate::api) enum ProfileValue {
    Count,
    Duration,
}

/// Formats of a profile.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the parameter; handlers parse it with render::Format"
)]
pub(in crate::api) enum ProfileFormat {
    Folded,
    Pprof,
    Svg,
    Speedscope,
    Html,
    Flamegraph,
}
