//! What this machine offers.

use aya::{
    programs::ProgramType,
    sys::{BpfHelper, is_helper_supported},
};

/// Whether `perf_event` programs may call `bpf_loop` (kernel 5.17).
pub fn has_loop_helper() -> std::io::Result<bool> {
    is_helper_supported(ProgramType::PerfEvent, BpfHelper::BPF_FUNC_loop)
        .map_err(std::io::Error::other)
}

/// The same, where not knowing means doing without.
pub(super) fn uses_loop_helper() -> bool {
    has_loop_helper().unwrap_or_else(|error| {
        tracing::debug!(%error, "stacks are walked without bpf_loop");
        false
    })
}

/// Online CPUs, ascending.
pub fn online_cpus() -> Vec<u32> {
    aya::util::online_cpus().unwrap_or_else(|_error| vec![0])
}

/// Number of online CPUs.
pub fn cpu_count() -> u32 {
    u32::try_from(online_cpus().len()).unwrap_or(u32::MAX)
}
