//! How a task counts waits.

use profiler_model as model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum OffCpuMode {
    /// Each wait for itself.
    Every,
    /// Samples of waits and of their time; sums are exact.
    Sampled,
    /// Every wait, until there are more than 50,000 a second.
    Auto,
}

impl From<OffCpuMode> for model::WaitMode {
    fn from(mode: OffCpuMode) -> Self {
        match mode {
            OffCpuMode::Every => Self::Every,
            OffCpuMode::Sampled => Self::Sampled,
            OffCpuMode::Auto => Self::Auto,
        }
    }
}

impl From<model::WaitMode> for OffCpuMode {
    fn from(mode: model::WaitMode) -> Self {
        match mode {
            model::WaitMode::Every => Self::Every,
            model::WaitMode::Sampled => Self::Sampled,
            model::WaitMode::Auto => Self::Auto,
        }
    }
}

/// What became of waits, in tasks that measure them.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct WaitCounts {
    /// As asked for; null: the agent's setting.
    #[schema(required)]
    off_cpu_mode: Option<OffCpuMode>,
    min_wait_ns: u64,
    #[schema(required)]
    max_wait_ns: Option<u64>,
    /// Waits were sampled, from some time on: sums are exact, stacks have their shares on average.
    sampled: bool,
    /// Waits that were left out because they were too short, and their time.
    below: u64,
    below_ns: u64,
    /// Waits that were left out because they were too long, and their time.
    above: u64,
    above_ns: u64,
    /// One line for people; empty when every wait was counted for itself.
    summary: String,
}

impl WaitCounts {
    pub(super) fn new(rules: &model::WaitRules, counts: &model::WaitCounts) -> Self {
        let model::WaitRules {
            mode,
            min_ns,
            max_ns,
        } = *rules;
        let model::WaitCounts {
            sampled,
            below,
            below_ns,
            above,
            above_ns,
        } = *counts;
        Self {
            off_cpu_mode: mode.map(Into::into),
            min_wait_ns: min_ns,
            max_wait_ns: max_ns,
            sampled,
            below,
            below_ns,
            above,
            above_ns,
            summary: counts.line().unwrap_or_default(),
        }
    }
}
