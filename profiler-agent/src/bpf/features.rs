//! What this machine offers.

use std::{fs, os::linux::fs::MetadataExt as _};

use aya::{
    programs::ProgramType,
    sys::{BpfHelper, is_helper_supported},
};

/// Inode of the initial PID namespace (`PROC_PID_INIT_INO` in `include/linux/proc_ns.h`).
const INITIAL_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Inode of the agent's own PID namespace.
pub fn pid_namespace_inode() -> std::io::Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|metadata| metadata.st_ino())
}

/// Whether the agent runs in the initial PID namespace, whose numbers need no translation.
pub fn is_initial_pid_namespace() -> std::io::Result<bool> {
    Ok(pid_namespace_inode()? == INITIAL_PID_NAMESPACE)
}

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
