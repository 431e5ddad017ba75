//! The agent itself: errors, version, probes, own cost.

use profiler_model::{self as model, Losses};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use profiler_memory::{Ceiling, GivenUp, Limit, LimitSource, Stage};

/// An error answer (RFC 9457).
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(in crate::api) struct Problem {
    /// Always `about:blank`.
    #[serde(rename = "type")]
    pub(in crate::api) kind: String,
    /// The status in words.
    pub(in crate::api) title: String,
    pub(in crate::api) status: u16,
    /// What failed, for people.
    pub(in crate::api) detail: String,
    /// What failed, for programs; stable.
    pub(in crate::api) code: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(in crate::api) hint: Option<String>,
    /// The field or parameter that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(in crate::api) field: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Health {
    /// Always `ok`.
    pub(in crate::api) status: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Readiness {
    /// Always `ready`.
    pub(in crate::api) status: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Meta {
    pub(in crate::api) version: &'static str,
    /// Commit the agent was built from, or `unknown`.
    pub(in crate::api) git_revision: &'static str,
    /// Host name.
    pub(in crate::api) node: String,
    pub(in crate::api) kernel: String,
    pub(in crate::api) arch: String,
    /// CPUs online.
    pub(in crate::api) cpus: usize,
    /// Whether the kernel describes its types, which the probes need.
    pub(in crate::api) btf: bool,
    pub(in crate::api) limits: Limits,
    pub(in crate::api) probes: Vec<Probe>,
    pub(in crate::api) auth: AuthKind,
    /// What the token of this request may do.
    pub(in crate::api) role: RoleName,
    #[schema(required)]
    pub(in crate::api) cpu_budget_percent: Option<f64>,
    /// Whether the connections of the node are watched for the agent's life.
    pub(in crate::api) network: NetworkMode,
    /// Whether all that is shown was recorded elsewhere (`serve --demo-data`); no task is started.
    pub(in crate::api) demo_data: bool,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum NetworkMode {
    Always,
    Tasks,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "names on the wire")]
pub(in crate::api) struct Limits {
    pub(in crate::api) max_duration_s: u64,
    pub(in crate::api) max_frequency_hz: u32,
    pub(in crate::api) max_running_tasks: usize,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum AuthKind {
    Token,
    None,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum RoleName {
    /// Look at everything, and change nothing.
    ReadOnly,
    Full,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Probe {
    pub(in crate::api) name: String,
    pub(in crate::api) state: ProbeState,
    #[schema(required)]
    pub(in crate::api) reason: Option<String>,
    /// Oldest kernel that has what the probe needs.
    pub(in crate::api) minimum_kernel: String,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum ProbeState {
    Available,
    Attached,
    Unavailable,
    Denied,
}

impl From<profiler_recording::ProbeStatus> for Probe {
    fn from(status: profiler_recording::ProbeStatus) -> Self {
        let profiler_recording::ProbeStatus {
            name,
            state,
            reason,
            minimum_kernel,
        } = status;
        let state = match state {
            profiler_recording::ProbeState::Available => ProbeState::Available,
            profiler_recording::ProbeState::Attached => ProbeState::Attached,
            profiler_recording::ProbeState::Unavailable => ProbeState::Unavailable,
            profiler_recording::ProbeState::Denied => ProbeState::Denied,
        };
        Self {
            name,
            state,
            reason,
            minimum_kernel,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ProbeList {
    pub(in crate::api) items: Vec<Probe>,
}

/// The agent's own cost and losses.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct AgentSelf {
    /// Share of one core since the previous reading, in percent.
    pub(in crate::api) cpu_percent: f64,
    /// User plus system time since the agent started.
    pub(in crate::api) cpu_seconds: f64,
    pub(in crate::api) rss_bytes: u64,
    pub(in crate::api) peak_rss_bytes: u64,
    pub(in crate::api) open_files: u64,
    pub(in crate::api) uptime_s: u64,
    pub(in crate::api) running_tasks: usize,
    /// Disk space that results take.
    pub(in crate::api) store_bytes: u64,
    /// What counts against the ceiling.
    pub(in crate::api) memory: Memory,
    /// Losses of all tasks and of the agent since it started.
    pub(in crate::api) losses: Vec<Loss>,
    pub(in crate::api) bpf: Bpf,
}

/// The agent's memory, its ceiling, and what was given up for it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Memory {
    /// Sum of the next three; what the ceiling is for.
    pub(in crate::api) used_bytes: u64,
    /// Heap, stacks and other pages without a file.
    pub(in crate::api) own_bytes: u64,
    /// Copies of symbol tables in files without a name.
    pub(in crate::api) copied_bytes: u64,
    /// Maps and programs in the kernel.
    pub(in crate::api) kernel_bytes: u64,
    #[schema(required)]
    pub(in crate::api) ceiling_bytes: Option<u64>,
    /// Where the ceiling comes from.
    pub(in crate::api) ceiling_source: CeilingSource,
    /// The cgroup whose limit it comes from, and the limit.
    #[schema(required)]
    pub(in crate::api) cgroup: Option<MemoryCgroup>,
    pub(in crate::api) stage: MemoryStage,
    /// Times that caches were dropped since the agent started.
    pub(in crate::api) caches_dropped: u64,
    /// Tasks, imports and results that were refused since then.
    pub(in crate::api) refusals: u64,
    /// Tasks and collections that were stopped since then.
    pub(in crate::api) stopped: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct MemoryCgroup {
    pub(in crate::api) path: String,
    pub(in crate::api) limit_bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum CeilingSource {
    Setting,
    Cgroup,
    None,
}

/// What the agent gives up: nothing; caches; new tasks as well; running tasks as well.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum MemoryStage {
    Open,
    Trimming,
    Refusing,
    Stopping,
}

impl Memory {
    /// Blocks for some milliseconds.
    pub(in crate::api) fn of(ceiling: &Ceiling) -> Self {
        let reading = ceiling.reading();
        let Limit { bytes, source } = ceiling.limit();
        let GivenUp {
            caches,
            refusals,
            stopped,
        } = ceiling.given_up();
        let (ceiling_source, cgroup) = match source {
            LimitSource::Setting => (CeilingSource::Setting, None),
            LimitSource::Cgroup { path, limit_bytes } => (
                CeilingSource::Cgroup,
                Some(MemoryCgroup { path, limit_bytes }),
            ),
            LimitSource::Unlimited => (CeilingSource::None, None),
        };
        Self {
            used_bytes: reading.used_bytes(),
            own_bytes: reading.own_bytes,
            copied_bytes: reading.copied_bytes,
            kernel_bytes: reading.kernel_bytes,
            ceiling_bytes: bytes,
            ceiling_source,
            cgroup,
            stage: match ceiling.stage() {
                Stage::Open => MemoryStage::Open,
                Stage::Trimming => MemoryStage::Trimming,
                Stage::Refusing => MemoryStage::Refusing,
                Stage::Stopping => MemoryStage::Stopping,
            },
            caches_dropped: caches,
            refusals,
            stopped,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Bpf {
    pub(in crate::api) programs: Vec<BpfProgram>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct BpfProgram {
    pub(in crate::api) name: String,
    /// Null unless the kernel's BPF statistics are on.
    #[schema(required)]
    pub(in crate::api) run_count: Option<u64>,
    /// Null unless the kernel's BPF statistics are on.
    #[schema(required)]
    pub(in crate::api) run_time_ns: Option<u64>,
    #[schema(required)]
    pub(in crate::api) verified_instructions: Option<u64>,
}

impl From<profiler_recording::ProgramStats> for BpfProgram {
    fn from(stats: profiler_recording::ProgramStats) -> Self {
        let profiler_recording::ProgramStats {
            name,
            run_count,
            run_time_ns,
            verified_instructions,
        } = stats;
        Self {
            name,
            run_count,
            run_time_ns,
            verified_instructions,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Loss {
    pub(in crate::api) kind: &'static str,
    pub(in crate::api) count: u64,
    /// What was lost and what it means for the result.
    pub(in crate::api) meaning: &'static str,
}

pub(in crate::api) fn losses(losses: &Losses) -> Vec<Loss> {
    let loss = |(kind, count): (model::LossKind, u64)| Loss {
        kind: kind.name(),
        count,
        meaning: kind.meaning(),
    };
    losses.iter().map(loss).collect()
}
