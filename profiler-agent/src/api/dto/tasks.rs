//! Tasks, their requests and their results.

use profiler_analysis::render::summary::ThreadSummary;
use profiler_model as model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    agent::{Loss, losses},
    containers::PodSelector,
    cpu_coverage::CpuCoverage,
    event_loop::LoopRules,
    imports::ImportedFile,
    request_rules::{Asked, RequestRule, RequestSamples, RequestSettings},
    stacks::StackQuality,
    wait_counts::{OffCpuMode, WaitCounts},
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

impl From<TaskKind> for model::TaskKind {
    fn from(kind: TaskKind) -> Self {
        match kind {
            TaskKind::OnCpu => Self::OnCpu,
            TaskKind::OffCpu => Self::OffCpu,
            TaskKind::Wall => Self::Wall,
            TaskKind::Network => Self::Network,
            TaskKind::Requests => Self::Requests,
            TaskKind::Imported => Self::Imported,
        }
    }
}

impl From<model::TaskKind> for TaskKind {
    fn from(kind: model::TaskKind) -> Self {
        match kind {
            model::TaskKind::OnCpu => Self::OnCpu,
            model::TaskKind::OffCpu => Self::OffCpu,
            model::TaskKind::Wall => Self::Wall,
            model::TaskKind::Network => Self::Network,
            model::TaskKind::Requests => Self::Requests,
            model::TaskKind::Imported => Self::Imported,
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
            model::Target::Imported(file) => Self::Imported(file.into()),
        }
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "serde wants the type of the field"
)]
fn default_duration() -> Option<u64> {
    Some(10)
}

fn default_frequency() -> u32 {
    model::DEFAULT_FREQUENCY_HZ
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct CreateTask {
    pub(in crate::api) kind: TaskKind,
    pub(in crate::api) target: Target,
    /// 1 to 3600; null: until stopped.
    #[serde(default = "default_duration")]
    #[schema(default = 10, minimum = 1, maximum = 3600)]
    pub(in crate::api) duration_s: Option<u64>,
    /// Samples per second and CPU, 1 to 4999; not with `network`, which does not sample.
    #[serde(default = "default_frequency")]
    #[schema(default = 99, minimum = 1, maximum = 4999)]
    pub(in crate::api) frequency_hz: u32,
    /// Also who ended the waits; not with `on_cpu`.
    #[serde(default)]
    #[schema(default = false)]
    pub(in crate::api) wakers: bool,
    /// Also how long system calls on sockets take, with `network`; slows every system call of the machine.
    #[serde(default)]
    #[schema(default = false)]
    pub(in crate::api) timed: bool,
    /// Whether each wait is counted or waits are sampled; null: the agent's setting.
    #[serde(default)]
    pub(in crate::api) off_cpu_mode: Option<OffCpuMode>,
    /// Shorter waits are left out; for kinds that measure waits.
    #[serde(default)]
    #[schema(default = 0)]
    pub(in crate::api) min_wait_ns: u64,
    /// Longer waits are left out; null: none are.
    #[serde(default)]
    pub(in crate::api) max_wait_ns: Option<u64>,
    /// Also how long threads stay away from epoll, with `on_cpu`, `off_cpu` and `wall`; the result is at
    /// `/event-loop`.
    #[serde(default)]
    pub(in crate::api) event_loop: Option<LoopRules>,
    /// Also plaintext at the functions of TLS libraries, with `requests`; the agent must have been started
    /// with `--allow-tls-capture`.
    #[serde(default)]
    #[schema(default = false)]
    pub(in crate::api) tls: Option<bool>,
    /// Part of the time in which that is on, 1 to 100.
    #[serde(default)]
    #[schema(default = 100, minimum = 1, maximum = 100)]
    pub(in crate::api) tls_duty_percent: Option<u8>,
    /// Samples have the first 4096 bytes of bodies of HTTP, as far as they were captured, with `requests`; the
    /// agent must have been started with `--allow-bodies`.
    #[serde(default)]
    #[schema(default = false)]
    pub(in crate::api) bodies: Option<bool>,
    /// Samples have the path as it was sent, its query masked, with `requests`.
    #[serde(default)]
    #[schema(default = false)]
    pub(in crate::api) raw_paths: Option<bool>,
    /// Which requests are kept one by one, with `requests`.
    #[serde(default)]
    pub(in crate::api) samples: Option<RequestSamples>,
    /// Requests that are kept besides, with `requests`; at most 16.
    #[serde(default)]
    pub(in crate::api) rules: Option<Vec<RequestRule>>,
    /// First bytes of each read and write that are looked at, 64 to 16384, with `requests`.
    #[serde(default)]
    #[schema(default = 1024, minimum = 64, maximum = 16384)]
    pub(in crate::api) capture_bytes: Option<u32>,
    /// Share of one CPU in percent, 1 to 100, that reading payload may use before connections are sampled,
    /// with `requests`.
    #[serde(default)]
    #[schema(default = 10, minimum = 1, maximum = 100)]
    pub(in crate::api) cpu_percent: Option<u32>,
    /// Name that tasks share which belong together: 1 to 64 letters, digits, `-`, `_` and `.`.
    #[serde(default)]
    pub(in crate::api) group: Option<String>,
}

impl CreateTask {
    /// The specification; `Err` is a field with what is wrong with it. Bounds are the engine's.
    pub(in crate::api) fn into_spec(self) -> Result<model::TaskSpec, (&'static str, String)> {
        let Self {
            kind,
            target,
            duration_s,
            frequency_hz,
            wakers,
            timed,
            off_cpu_mode,
            min_wait_ns,
            max_wait_ns,
            event_loop,
            tls,
            tls_duty_percent,
            bodies,
            raw_paths,
            samples,
            rules,
            capture_bytes,
            cpu_percent,
            group: _,
        } = self;
        let kind = model::TaskKind::from(kind);
        let asked = Asked {
            tls,
            tls_duty_percent,
            bodies,
            raw_paths,
            samples,
            rules: rules.map(|rules| rules.into_iter().map(Into::into).collect()),
            capture_bytes,
            cpu_percent,
        };
        let requests = asked.of_kind(kind).map_err(|field| {
            let kind = kind.name();
            (
                field,
                format!("{field} is about requests, which {kind} does not look for: take requests"),
            )
        })?;
        Ok(model::TaskSpec {
            kind,
            target: target_of(target).map_err(|detail| ("target", detail.to_owned()))?,
            duration_s,
            frequency_hz,
            wakers,
            timed,
            waits: model::WaitRules {
                mode: off_cpu_mode.map(Into::into),
                min_ns: min_wait_ns,
                max_ns: max_wait_ns,
            },
            event_loop: event_loop.map(Into::into),
            requests,
        })
    }
}

/// A target that something can be started on.
pub(super) fn target_of(target: Target) -> Result<model::Target, &'static str> {
    match target {
        Target::Pids(pids) => Ok(model::Target::Pids(pids)),
        Target::Container(id) => Ok(model::Target::Container(id)),
        Target::Pod(selector) => Ok(model::Target::Pod(selector.into())),
        Target::Cgroup(path) => Ok(model::Target::Cgroup(path)),
        Target::Comm(comm) => Ok(model::Target::Comm(comm)),
        Target::NetworkNamespace(path) => Ok(model::Target::NetworkNamespace(path)),
        Target::Imported(_) => Err("a profile is imported with POST /api/v1/imports"),
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
    /// ended by then are missing; empty in results of older agents.
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
            spec,
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
        Self {
            id: id.to_string(),
            kind: spec.kind.into(),
            target: (&spec.target).into(),
            target_names: target_names
                .iter()
                .map(|name| TargetName {
                    pid: name.pid,
                    start_ticks: name.start_ticks,
                    comm: name.comm.clone(),
                })
                .collect(),
            group: group.clone(),
            duration_s: spec.duration_s,
            frequency_hz: spec.kind.has_clock().then_some(spec.frequency_hz),
            wakers: spec.wakers,
            timed: spec.timed,
            event_loop: spec.event_loop.map(Into::into),
            requests: requests_of(spec),
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
            waits: WaitCounts::new(&spec.waits, waits),
            coverage: coverage.as_ref().map(Into::into),
            losses: losses(task_losses),
            notes: notes.clone(),
        }
    }
}

fn requests_of(spec: &model::TaskSpec) -> Option<RequestSettings> {
    match &spec.requests {
        Some(options) => Some(options.into()),
        None if spec.kind == model::TaskKind::Requests => {
            Some((&model::RequestOptions::default()).into())
        }
        None => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs few digits")]
fn progress(task: &model::Task, now_ns: u64) -> Option<f64> {
    let whole = task.spec.duration_s?.saturating_mul(1_000_000_000);
    if task.state == model::TaskState::Finished {
        return Some(1.0);
    }
    let end = task.ended_ns.unwrap_or(now_ns);
    let passed = task.started_ns.map_or(0, |start| end.saturating_sub(start));
    Some((passed as f64 / whole.max(1) as f64).clamp(0.0, 1.0))
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
    pub(in crate::api) samples: u64,
}

impl From<ThreadSummary> for ProfileThread {
    fn from(summary: ThreadSummary) -> Self {
        let ThreadSummary {
            pid,
            tid,
            process,
            name,
            samples,
            ..
        } = summary;
        Self {
            pid,
            tid,
            process,
            name,
            samples,
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
