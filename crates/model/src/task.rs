//! A profiling task: what was asked for and what became of it.

use serde::{Deserialize, Serialize};

use super::{
    Clock, CpuCoverage, ImportedFile, LoopRules, Losses, PodSelector, RequestOptions, StackQuality,
    WaitCounts, WaitRules,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaskKind {
    OnCpu,
    OffCpu,
    /// Both, in one profile.
    Wall,
    /// Connections between processes.
    Network,
    /// The same, and what is asked and answered over them.
    Requests,
    /// A profile from a file.
    Imported,
}

impl TaskKind {
    /// Those whose result is a profile.
    pub const PROFILES: [Self; 3] = [Self::OnCpu, Self::OffCpu, Self::Wall];

    /// Whether it takes samples at a rate.
    pub fn has_clock(self) -> bool {
        match self {
            Self::OnCpu | Self::Wall | Self::Imported => true,
            Self::OffCpu | Self::Network | Self::Requests => false,
        }
    }

    /// Whether it watches connections: its result has edges and no stacks.
    pub fn has_edges(self) -> bool {
        match self {
            Self::Network | Self::Requests => true,
            Self::OnCpu | Self::OffCpu | Self::Wall | Self::Imported => false,
        }
    }

    /// Name in the API (`on_cpu`).
    pub fn name(self) -> &'static str {
        match self {
            Self::OnCpu => "on_cpu",
            Self::OffCpu => "off_cpu",
            Self::Wall => "wall",
            Self::Network => "network",
            Self::Requests => "requests",
            Self::Imported => "imported",
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
    /// No process: the result was read from this file.
    Imported(ImportedFile),
}

/// A process that a task was started for. The name is untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetName {
    pub pid: u32,
    /// As in [`super::ProcessKey`].
    pub start_ticks: u64,
    pub comm: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    pub kind: TaskKind,
    pub target: Target,
    /// `None`: until stopped.
    pub duration_s: Option<u64>,
    pub frequency_hz: u32,
    /// Also the wakers.
    #[serde(default)]
    pub wakers: bool,
    /// Also how long system calls take, in kinds that watch connections.
    #[serde(default)]
    pub timed: bool,
    /// Of waits, in kinds that measure them.
    #[serde(default)]
    pub waits: WaitRules,
    /// Also how long threads stay away from epoll, in kinds whose result is a profile.
    #[serde(default)]
    pub event_loop: Option<LoopRules>,
    /// With [`TaskKind::Requests`], and only there; `None` there: the defaults.
    #[serde(default)]
    pub requests: Option<RequestOptions>,
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
    pub spec: TaskSpec,
    /// The processes of a target of pids as they were when the task began, in its order; those that
    /// had ended are missing. Empty in records of older agents.
    #[serde(default)]
    pub target_names: Vec<TargetName>,
    /// Name shared by tasks that were started together; chosen by the caller.
    #[serde(default)]
    pub group: Option<String>,
    pub state: TaskState,
    pub created_ns: u64,
    pub started_ns: Option<u64>,
    pub ended_ns: Option<u64>,
    /// The rate in force now; below `spec.frequency_hz` when the CPU budget lowered it.
    pub effective_frequency_hz: Option<u32>,
    /// What the samples are taken by.
    pub clock: Option<Clock>,
    /// Samples in the result so far.
    pub samples: u64,
    pub losses: Losses,
    pub stack_quality: StackQuality,
    #[serde(default)]
    pub waits: WaitCounts,
    /// Known at the end, of samples by a clock of CPU time.
    #[serde(default)]
    pub coverage: Option<CpuCoverage>,
    /// Remarks for the user in the order they arose: a lowered rate, a fallback, a restart.
    pub notes: Vec<String>,
}
