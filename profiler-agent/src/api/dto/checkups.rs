//! Check-ups and what changed between two of them.

use profiler_model::{
    self as model,
    comparison::{self, ComparedFindings, ComparedLatency, ComparedRow, ComparedTotals},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::tasks::{Target, TaskKind, TaskState, state_of, target_of};
use crate::config::Allowance;
use profiler_engine::checkup::{self, CheckupRequest};

fn default_duration() -> u64 {
    30
}

fn default_frequency() -> u32 {
    model::DEFAULT_FREQUENCY_HZ
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct CreateCheckup {
    target: Target,
    /// 1 to 3600.
    #[serde(default = "default_duration")]
    #[schema(default = 30, minimum = 1, maximum = 3600)]
    duration_s: u64,
    /// On-CPU samples per second and CPU, 1 to 4999.
    #[serde(default = "default_frequency")]
    #[schema(default = 99, minimum = 1, maximum = 4999)]
    frequency_hz: u32,
}

impl CreateCheckup {
    /// What is asked for; `Err` is the detail for the field `target`. Bounds are the engine's. Requests inside TLS are read
    /// where that is allowed.
    pub(in crate::api) fn into_request(
        self,
        tls: Allowance,
    ) -> Result<CheckupRequest, &'static str> {
        let Self {
            target,
            duration_s,
            frequency_hz,
        } = self;
        Ok(CheckupRequest {
            target: target_of(target)?,
            duration_s,
            frequency_hz,
            tls: tls == Allowance::Allowed,
            access_log: false,
        })
    }
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum CheckupState {
    Running,
    Finished,
    Failed,
    Cancelled,
}

/// An on-CPU, an off-CPU and a requests task on one target, and what was read beside them.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Checkup {
    /// Also the group of its tasks.
    id: String,
    target: Target,
    duration_s: u64,
    /// What became of the on-CPU task, which the diagnosis rests on; `running` while any task does.
    state: CheckupState,
    created_ns: u64,
    /// Null when it is over, and while a task waits for its turn.
    #[schema(required)]
    ends_in_s: Option<f64>,
    tasks: Vec<CheckupTask>,
    /// The kernel's accounts, and Envoy's counts and configuration where it could be asked, were kept.
    observed: bool,
}

/// One of its tasks.
#[derive(Debug, Serialize, ToSchema)]
struct CheckupTask {
    id: String,
    kind: TaskKind,
    state: TaskState,
    /// Why it failed.
    #[schema(required)]
    reason: Option<String>,
}

impl From<&checkup::Checkup> for Checkup {
    fn from(checkup: &checkup::Checkup) -> Self {
        let checkup::Checkup {
            id,
            target,
            duration_s,
            state,
            created_ns,
            ends_in_s,
            tasks,
            observed,
        } = checkup;
        let tasks = tasks.iter().map(|task| {
            let (state, reason) = state_of(&task.state);
            CheckupTask {
                id: task.id.to_string(),
                kind: task.kind.into(),
                state,
                reason,
            }
        });
        Self {
            id: id.clone(),
            target: target.into(),
            duration_s: *duration_s,
            state: (*state).into(),
            created_ns: *created_ns,
            ends_in_s: *ends_in_s,
            tasks: tasks.collect(),
            observed: *observed,
        }
    }
}

impl From<checkup::CheckupState> for CheckupState {
    fn from(state: checkup::CheckupState) -> Self {
        match state {
            checkup::CheckupState::Running => Self::Running,
            checkup::CheckupState::Finished => Self::Finished,
            checkup::CheckupState::Failed => Self::Failed,
            checkup::CheckupState::Cancelled => Self::Cancelled,
        }
    }
}

/// What changed from check-up `a` to check-up `b`.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct CheckupComparison {
    a: String,
    b: String,
    /// Whose CPU time is compared, each once. Untrusted.
    programs: Vec<String>,
    /// Of the same targets, and not compared. Untrusted.
    other_programs: Vec<String>,
    /// Null where that is not known on both sides, of the same process.
    #[schema(required)]
    latency: Option<ComparedLatency>,
    totals: ComparedTotals,
    /// Why features and findings are not compared; there are none then.
    #[schema(required)]
    not_compared: Option<String>,
    /// The largest change first.
    rows: Vec<ComparedRow>,
    findings: ComparedFindings,
    verdict: String,
}

impl CheckupComparison {
    /// `names` are the check-ups `a` and `b`.
    pub(in crate::api) fn new(names: [String; 2], found: comparison::CheckupComparison) -> Self {
        let comparison::CheckupComparison {
            programs,
            other_programs,
            latency,
            totals,
            not_compared,
            rows,
            findings,
            verdict,
        } = found;
        let [a, b] = names;
        Self {
            a,
            b,
            programs,
            other_programs,
            latency,
            totals,
            not_compared,
            rows,
            findings,
            verdict,
        }
    }
}
