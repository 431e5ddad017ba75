//! A profiling task: what was asked for and what became of it.

use serde::{Deserialize, Serialize};

use super::{
    Clock, CpuCoverage, ImportedProfile, LoopRules, Losses, PodSelector, RequestOptions,
    StackQuality, WaitCounts, WaitRules,
};

/// Longest duration of a task with an end, in seconds.
pub const MAX_DURATION_S: u64 = 3600;
/// Sampling frequency where none is given, in Hz: no harmonic of what happens at 100 Hz.
pub const DEFAULT_FREQUENCY_HZ: u32 = 99;
/// Highest sampling frequency, in Hz.
pub const MAX_FREQUENCY_HZ: u32 = 4999;

/// Number of a task, unique in a data directory and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(pub u64);

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a task records, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskKind {
    OnCpu,
    OffCpu,
    /// Both, in one profile.
    Wall,
    /// Connections between processes.
    Network,
    /// The same, and what is asked and answered over them.
    Requests,
}

impl TaskKind {
    /// Name in the API (`on_cpu`).
    pub fn name(self) -> &'static str {
        match self {
            Self::OnCpu => "on_cpu",
            Self::OffCpu => "off_cpu",
            Self::Wall => "wall",
            Self::Network => "network",
            Self::Requests => "requests",
        }
    }
}

/// What samples are taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SampleKind {
    OnCpu,
    OffCpu,
    /// Both, in one profile.
    Wall,
}

impl SampleKind {
    pub const ALL: [Self; 3] = [Self::OnCpu, Self::OffCpu, Self::Wall];

    /// Name in the API (`on_cpu`).
    pub fn name(self) -> &'static str {
        TaskKind::from(self).name()
    }

    /// Whether samples are taken at a rate.
    pub fn has_clock(self) -> bool {
        match self {
            Self::OnCpu | Self::Wall => true,
            Self::OffCpu => false,
        }
    }

    /// Whether waits of threads are measured.
    pub fn has_waits(self) -> bool {
        match self {
            Self::OffCpu | Self::Wall => true,
            Self::OnCpu => false,
        }
    }
}

impl From<SampleKind> for TaskKind {
    fn from(kind: SampleKind) -> Self {
        match kind {
            SampleKind::OnCpu => Self::OnCpu,
            SampleKind::OffCpu => Self::OffCpu,
            SampleKind::Wall => Self::Wall,
        }
    }
}

/// What a task looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Target {
    /// These processes and the children they fork during the task.
    Pids(Vec<u32>),
    /// Every process of the container: full id or an unambiguous prefix of at least 12 digits.
    Container(String),
    /// Every process of these pods, or of one container in each.
    Pod(PodSelector),
    /// Every process in this cgroup or below; an absolute path in the container hierarchy.
    Cgroup(String),
    /// Every process with this `comm`, also those that start during the task.
    Comm(String),
    /// Every process of the node.
    All,
    /// Every connection in this network namespace, a path such as `/run/netns/NAME`.
    NetworkNamespace(String),
}

/// A process that a task was started for. The name is untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetName {
    pub pid: u32,
    /// As in [`super::ProcessKey`].
    pub start_ticks: u64,
    pub comm: String,
}

/// What a task is asked to record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    pub target: Target,
    /// `None`: until stopped.
    pub duration_s: Option<u64>,
    pub recording: Recording,
}

impl TaskSpec {
    pub fn kind(&self) -> TaskKind {
        match &self.recording {
            Recording::Samples(samples) => samples.kind.into(),
            Recording::Edges(_) => TaskKind::Network,
            Recording::Requests(_) => TaskKind::Requests,
        }
    }

    /// Of a task whose result is a profile.
    pub fn samples(&self) -> Option<&SampleSpec> {
        match &self.recording {
            Recording::Samples(samples) => Some(samples),
            Recording::Edges(_) | Recording::Requests(_) => None,
        }
    }

    /// Of a task that watches connections: its result has edges and no stacks.
    pub fn edges(&self) -> Option<EdgeSpec> {
        match &self.recording {
            Recording::Samples(_) => None,
            Recording::Edges(edges) => Some(*edges),
            Recording::Requests(requests) => Some(requests.edges),
        }
    }

    /// Of a task that looks for requests.
    pub fn requests(&self) -> Option<&RequestOptions> {
        match &self.recording {
            Recording::Samples(_) | Recording::Edges(_) => None,
            Recording::Requests(requests) => Some(&requests.options),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recording {
    Samples(SampleSpec),
    Edges(EdgeSpec),
    Requests(RequestSpec),
}

/// Samples of threads, on and off the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleSpec {
    pub kind: SampleKind,
    pub frequency_hz: u32,
    /// Also the wakers, in kinds that measure waits.
    pub wakers: bool,
    pub waits: WaitRules,
    /// Also how long threads stay away from epoll.
    pub event_loop: Option<LoopRules>,
}

impl From<SampleKind> for SampleSpec {
    /// The kind at the usual rate, and nothing beside it.
    fn from(kind: SampleKind) -> Self {
        Self {
            kind,
            frequency_hz: DEFAULT_FREQUENCY_HZ,
            wakers: false,
            waits: WaitRules::default(),
            event_loop: None,
        }
    }
}

/// Connections between processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeSpec {
    /// Also how long system calls take.
    pub timed: bool,
}

/// Connections, and the requests over them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSpec {
    pub edges: EdgeSpec,
    pub options: RequestOptions,
}

/// Where the result of a task comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskOrigin {
    Recorded(TaskSpec),
    Imported(ImportedProfile),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskState {
    Queued,
    Running,
    Finished,
    Failed {
        reason: String,
    },
    /// Stopped by a user; the result up to then is kept.
    Cancelled,
}

impl TaskState {
    /// Name in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// True when the task will not change any more.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Finished | Self::Failed { .. } | Self::Cancelled => true,
        }
    }
}

/// A task with its state. Times are nanoseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub origin: TaskOrigin,
    /// The processes of a target of pids as they were when the task began, in its order; those that
    /// had ended are missing.
    pub target_names: Vec<TargetName>,
    /// Name shared by tasks that were started together; chosen by the caller.
    pub group: Option<String>,
    pub state: TaskState,
    pub created_ns: u64,
    /// When recording began, with the programs attached; `None` before, also while it is running and they are
    /// being loaded, and for a task that failed before.
    pub started_ns: Option<u64>,
    pub ended_ns: Option<u64>,
    /// The rate in force now; below the one asked for when the CPU budget lowered it.
    pub effective_frequency_hz: Option<u32>,
    /// What the samples are taken by.
    pub clock: Option<Clock>,
    /// Samples in the result so far.
    pub samples: u64,
    pub losses: Losses,
    pub stack_quality: StackQuality,
    pub waits: WaitCounts,
    /// Known at the end, of samples by a clock of CPU time.
    pub coverage: Option<CpuCoverage>,
    /// Remarks for the user in the order they arose: a lowered rate, a fallback, a restart.
    pub notes: Vec<String>,
}

impl Task {
    /// A task that waits to be started.
    pub fn queued(id: TaskId, spec: TaskSpec, created_ns: u64) -> Self {
        Self {
            id,
            origin: TaskOrigin::Recorded(spec),
            target_names: Vec::new(),
            group: None,
            state: TaskState::Queued,
            created_ns,
            started_ns: None,
            ended_ns: None,
            effective_frequency_hz: None,
            clock: None,
            samples: 0,
            losses: Losses::default(),
            stack_quality: StackQuality::default(),
            waits: WaitCounts::default(),
            coverage: None,
            notes: Vec::new(),
        }
    }

    /// What it was asked to record; `None` for an import.
    pub fn spec(&self) -> Option<&TaskSpec> {
        match &self.origin {
            TaskOrigin::Recorded(spec) => Some(spec),
            TaskOrigin::Imported(_) => None,
        }
    }

    /// `None` for an import.
    pub fn kind(&self) -> Option<TaskKind> {
        self.spec().map(TaskSpec::kind)
    }

    /// `None` for an import and for what is not sampled.
    pub fn sample_spec(&self) -> Option<&SampleSpec> {
        self.spec()?.samples()
    }

    /// The file of an import.
    pub fn imported(&self) -> Option<&ImportedProfile> {
        match &self.origin {
            TaskOrigin::Recorded(_) => None,
            TaskOrigin::Imported(imported) => Some(imported),
        }
    }

    /// Whether its result has edges, and no stacks.
    pub fn has_edges(&self) -> bool {
        self.spec().is_some_and(|spec| spec.edges().is_some())
    }

    /// What its samples are of: of an import what its file says, and without that work on the CPU. `None` where the
    /// result has no samples.
    pub fn sample_kind(&self) -> Option<SampleKind> {
        match &self.origin {
            TaskOrigin::Recorded(spec) => spec.samples().map(|samples| samples.kind),
            TaskOrigin::Imported(_) => Some(match self.clock {
                Some(Clock::Switches) => SampleKind::OffCpu,
                Some(Clock::Wall) => SampleKind::Wall,
                Some(Clock::CpuClock | Clock::Cycles | Clock::Unknown) | None => SampleKind::OnCpu,
            }),
        }
    }

    /// How long it records; `None`: until stopped, or the file does not say.
    pub fn duration_s(&self) -> Option<u64> {
        match &self.origin {
            TaskOrigin::Recorded(spec) => spec.duration_s,
            TaskOrigin::Imported(imported) => imported.duration_s,
        }
    }
}
