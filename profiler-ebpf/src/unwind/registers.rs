//! The registers of user mode of the running task.

use aya_ebpf::{
    bindings::task_struct,
    helpers::generated::{bpf_get_current_task_btf, bpf_probe_read_kernel, bpf_task_pt_regs},
};
#[cfg(bpf_target_arch = "aarch64")]
pub(super) use profiler_common::unwind::aarch64::Aarch64 as Machine;
#[cfg(bpf_target_arch = "x86_64")]
pub(super) use profiler_common::unwind::x86_64::X86_64 as Machine;
use profiler_common::unwind::{capture::REGISTER_WORDS, step::Arch as _};

use crate::{
    config::config,
    kernel::{KernelPtr, TypedPtr},
    task,
};

/// False for threads of the kernel, and for tasks that exit and have given back their memory.
#[inline(always)]
pub(crate) fn has_user_mode(task: KernelPtr) -> bool {
    !task::is_kernel_thread(task) && task.follow(config!(offsets.task_mm)).is_some()
}

/// The same of the running task, without a helper for each member.
#[inline(always)]
pub(super) fn running_has_user_mode() -> bool {
    // SAFETY: a helper without arguments.
    let task = TypedPtr::new(unsafe { bpf_get_current_task_btf() });
    task.member::<u32>(config!(offsets.task_flags)) & task::KERNEL_THREAD == 0
        && task.follow(config!(offsets.task_mm)).is_some()
}

/// Word of `struct pt_regs` with the number of the system call; -1 after an interrupt or a fault.
#[cfg(bpf_target_arch = "x86_64")]
const SYSTEM_CALL_WORD: u32 = 15;

/// Whether the running thread has entered the kernel by itself.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn in_system_call() -> bool {
    // SAFETY: helpers that give the place of the running task's registers.
    let registers = unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) };
    let number: Option<u64> =
        KernelPtr(registers as u64).read(SYSTEM_CALL_WORD * size_of::<u64>() as u32);
    number != Some(u64::MAX)
}

/// Unknown on this architecture.
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn in_system_call() -> bool {
    true
}

/// Copies the registers with which the task entered the kernel: on each entry from user mode, also
/// by an interrupt, they are stored at one place at the end of its kernel stack (kernel 5.15).
#[inline(always)]
pub(super) fn read(saved: &mut [u64; REGISTER_WORDS]) -> bool {
    // SAFETY: a helper without arguments.
    read_of(unsafe { bpf_get_current_task_btf() }, saved)
}

/// The same of any task that does not run in user mode now.
#[inline(always)]
pub(super) fn read_of(task: *mut task_struct, saved: &mut [u64; REGISTER_WORDS]) -> bool {
    // SAFETY: a helper that gives the place of a task's registers.
    let registers = unsafe { bpf_task_pt_regs(task) };
    // SAFETY: the destination has this many words; the helper checks the source.
    let result = unsafe {
        bpf_probe_read_kernel(
            saved.as_mut_ptr().cast(),
            (Machine::SAVED_WORDS * size_of::<u64>()) as u32,
            registers as *const _,
        )
    };
    result == 0
}
