//! The machine whose stacks are walked.

#[cfg(target_arch = "aarch64")]
pub(super) type Machine = profiler_common::unwind::aarch64::Aarch64;
#[cfg(not(target_arch = "aarch64"))]
pub(super) type Machine = profiler_common::unwind::x86_64::X86_64;
