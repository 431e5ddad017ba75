//! The node page: kernel objects, features, configuration.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use profiler_recorder::{
    bpf::{LoadedMap, LoadedProgram},
    features::{self, Verdict},
};

/// Everything that the agent holds in the kernel now.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct KernelObjectList {
    pub(in crate::api) programs: Vec<KernelProgram>,
    pub(in crate::api) maps: Vec<KernelMap>,
    pub(in crate::api) statistics: BpfStatistics,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct KernelProgram {
    id: u32,
    /// At most 15 bytes: the kernel keeps no more.
    name: String,
    /// Runs since it was loaded, while the statistics were on; null when they are off and none was counted.
    #[schema(required)]
    run_count: Option<u64>,
    #[schema(required)]
    run_time_ns: Option<u64>,
    /// Runs that the kernel left out because the program was at work on that CPU.
    missed_runs: u64,
    #[schema(required)]
    verified_instructions: Option<u64>,
    memory_bytes: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct KernelMap {
    id: u32,
    name: String,
    kind: &'static str,
    max_entries: u64,
    /// Null: `reason` says why.
    #[schema(required)]
    entries: Option<u64>,
    #[schema(required)]
    reason: Option<&'static str>,
    memory_bytes: u64,
}

/// Whether the kernel measures runs of programs.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct BpfStatistics {
    on: bool,
    /// Null: off.
    #[schema(required)]
    by: Option<StatisticsBy>,
}

/// What keeps statistics on: `agent` is `--bpf-stats`, `kernel` is `kernel.bpf_stats_enabled`, `request` is the request
/// that this answers, until then.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum StatisticsBy {
    Agent,
    Kernel,
    Request,
}

impl KernelObjectList {
    pub(in crate::api) fn new(
        programs: &[LoadedProgram],
        maps: &[LoadedMap],
        by: Option<StatisticsBy>,
    ) -> Self {
        let statistics = BpfStatistics {
            on: by.is_some(),
            by,
        };
        let program = |program: &LoadedProgram| {
            let LoadedProgram {
                id,
                name,
                run_count,
                run_time_ns,
                missed_runs,
                verified_instructions,
                memory_bytes,
            } = program;
            let is_counted = statistics.on || *run_count > 0;
            KernelProgram {
                id: *id,
                name: name.clone(),
                run_count: is_counted.then_some(*run_count),
                run_time_ns: is_counted.then_some(*run_time_ns),
                missed_runs: *missed_runs,
                verified_instructions: *verified_instructions,
                memory_bytes: *memory_bytes,
            }
        };
        let map = |map: &LoadedMap| {
            let LoadedMap {
                id,
                name,
                kind,
                max_entries,
                entries,
                memory_bytes,
            } = map;
            KernelMap {
                id: *id,
                name: name.clone(),
                kind,
                max_entries: *max_entries,
                entries: entries.ok(),
                reason: entries.err(),
                memory_bytes: *memory_bytes,
            }
        };
        Self {
            programs: programs.iter().map(program).collect(),
            maps: maps.iter().map(map).collect(),
            statistics,
        }
    }
}

/// For how long the kernel shall measure runs of programs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct MeasureRuns {
    /// 100 to 10,000; the answer comes then.
    #[schema(minimum = 100, maximum = 10_000)]
    pub(in crate::api) duration_ms: u64,
}

/// Two readings, between which the kernel measured every run of a program.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct MeasuredRuns {
    pub(in crate::api) before: KernelObjectList,
    pub(in crate::api) after: KernelObjectList,
    /// Between the two.
    pub(in crate::api) elapsed_ns: u64,
}

/// One thing that this kernel or these privileges allow or not.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Feature {
    name: &'static str,
    verdict: FeatureVerdict,
    /// Oldest kernel that has it; empty where the version does not matter.
    minimum_kernel: &'static str,
    detail: String,
    /// What to do; empty when there is nothing to do.
    remedy: String,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum FeatureVerdict {
    Ok,
    /// Works, with less.
    Degraded,
    Missing,
}

impl From<features::Feature> for Feature {
    fn from(feature: features::Feature) -> Self {
        let features::Feature {
            name,
            verdict,
            minimum_kernel,
            detail,
            remedy,
        } = feature;
        let verdict = match verdict {
            Verdict::Ok => FeatureVerdict::Ok,
            Verdict::Degraded => FeatureVerdict::Degraded,
            Verdict::Missing => FeatureVerdict::Missing,
        };
        Self {
            name,
            verdict,
            minimum_kernel,
            detail,
            remedy,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct FeatureList {
    pub(in crate::api) items: Vec<Feature>,
}

/// A setting in force.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Setting {
    pub(in crate::api) name: &'static str,
    /// As in a TOML file; secrets are `***`.
    pub(in crate::api) value: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct SettingList {
    pub(in crate::api) items: Vec<Setting>,
}
