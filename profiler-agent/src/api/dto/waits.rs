//! Sums of waits.

use profiler_analysis::render::wait_reasons::WaitSums;
use profiler_model::{ActivitySum, CpuContention, IdleShare, RuleShare};
use serde::Serialize;
use utoipa::ToSchema;

/// Which waits are shown: all, those of threads that have something to do, or the others.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the parameter; handlers parse it with model::IdleMode"
)]
pub(in crate::api) enum ProfileIdle {
    Show,
    Hide,
    Only,
}

/// Switches and nanoseconds of one kind.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct WaitSum {
    name: String,
    /// Switches (on the CPU: samples).
    count: u64,
    total_ns: u64,
}

impl WaitSum {
    fn new(name: &str, (count, total_ns): (u64, u64)) -> Self {
        Self {
            name: name.to_owned(),
            count,
            total_ns,
        }
    }
}

/// Waits of threads that have nothing to do, as a part of everything, also where they are hidden.
#[derive(Debug, Serialize, ToSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "the names of the API: what is idle of the time, as `total_ns` is everything"
)]
pub(in crate::api) struct Idle {
    count: u64,
    idle_ns: u64,
    /// Everything, idle or not.
    total_count: u64,
    total_ns: u64,
    /// Share of the time.
    percent: f64,
    /// The same in words.
    summary: String,
    /// Rules that hold for something, most time first.
    rules: Vec<WaitSum>,
}

impl From<&IdleShare> for Idle {
    fn from(share: &IdleShare) -> Self {
        let IdleShare {
            mode: _,
            count,
            ns,
            total_count,
            total_ns,
            rules,
        } = share;
        let sum = |RuleShare { name, count, ns }: &RuleShare| WaitSum::new(name, (*count, *ns));
        Self {
            count: *count,
            idle_ns: *ns,
            total_count: *total_count,
            total_ns: *total_ns,
            percent: share.percent(),
            summary: share.line(),
            rules: rules.iter().map(sum).collect(),
        }
    }
}

/// What the waits of a result were.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Waits {
    /// Null when the result has no waits.
    #[schema(required)]
    idle: Option<Idle>,
    /// By what the threads did, most time first.
    states: Vec<WaitSum>,
    /// By what they waited for, most time first.
    reasons: Vec<WaitSum>,
    /// By what the threads did, idle or not.
    activities: Vec<ActivitySum>,
    /// Who had the CPU while threads waited for one; idle threads are included.
    contention: CpuContention,
}

impl Waits {
    pub(in crate::api) fn new(
        sums: &WaitSums,
        idle: Option<&IdleShare>,
        activities: Vec<ActivitySum>,
        contention: CpuContention,
    ) -> Self {
        let WaitSums { states, reasons } = sums;
        Self {
            idle: idle.map(Into::into),
            states: states
                .iter()
                .map(|(state, sum)| WaitSum::new(state.name(), *sum))
                .collect(),
            reasons: reasons
                .iter()
                .map(|(reason, sum)| WaitSum::new(reason.name(), *sum))
                .collect(),
            activities,
            contention,
        }
    }
}
