//! The kernel's run-time statistics of BPF programs, which cost some 20 ns a run.

use std::os::fd::OwnedFd;

/// Where the kernel shows that an administrator has turned them on.
const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Enables them while the descriptor lives (`CAP_SYS_ADMIN`, kernel 5.8).
pub fn enable_statistics() -> std::io::Result<OwnedFd> {
    aya::sys::enable_stats(aya::sys::Stats::RunTime).map_err(|error| error.io_error)
}

/// Whether the machine keeps them on, by `kernel.bpf_stats_enabled`.
pub fn machine_keeps_statistics() -> bool {
    std::fs::read_to_string(SWITCH).is_ok_and(|text| text.trim() == "1")
}
