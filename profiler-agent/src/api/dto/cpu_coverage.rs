//! How much of a target's CPU time has samples.

use profiler_model as model;
use serde::Serialize;
use utoipa::ToSchema;

/// CPU time of the target's processes that were there at the end, from when they were first seen on.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct CpuCoverage {
    /// By the samples.
    sampled_ns: u64,
    /// By the kernel's accounting of the processes, in steps of 10 ms each.
    accounted_ns: u64,
    /// Sampled time of the accounted; a little above 100 by the steps. Below 90, and more than chance
    /// can be, the loss `tick_missed` counts the samples that are missing.
    percent: f64,
    /// Processes whose accounts were read, 256 at most.
    processes: u64,
}

impl From<&model::CpuCoverage> for CpuCoverage {
    fn from(coverage: &model::CpuCoverage) -> Self {
        let model::CpuCoverage {
            sampled_ns,
            accounted_ns,
            processes,
        } = *coverage;
        Self {
            sampled_ns,
            accounted_ns,
            percent: coverage.percent(),
            processes,
        }
    }
}
