//! Who a kernel task is, in the numbers of the agent's own PID namespace.

use aya_ebpf::{
    bindings::task_struct,
    helpers::{bpf_get_current_pid_tgid, bpf_get_current_task},
};
use profiler_common::limits::MAX_PID_NAMESPACE_LEVELS;

use crate::{config::config, kernel::KernelPtr};

/// Process and thread number.
#[derive(Clone, Copy)]
pub(crate) struct TaskIds {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// The running task.
#[inline(always)]
pub(crate) fn current() -> KernelPtr {
    // SAFETY: a helper without arguments.
    KernelPtr(unsafe { bpf_get_current_task() })
}

/// A task given as a tracepoint argument.
#[inline(always)]
pub(crate) fn from_argument(task: *const task_struct) -> KernelPtr {
    KernelPtr(task as u64)
}

/// Ids of the running task; `None` when it has none in the agent's PID namespace.
#[inline(always)]
pub(crate) fn current_ids() -> Option<TaskIds> {
    if config!(pid_namespace_inum) == 0 {
        let both = bpf_get_current_pid_tgid();
        return Some(TaskIds {
            pid: (both >> 32) as u32,
            tid: both as u32,
        });
    }
    ids(current())
}

/// Ids of any task; `None` when it has none in the agent's PID namespace.
#[inline(always)]
pub(crate) fn ids(task: KernelPtr) -> Option<TaskIds> {
    if config!(pid_namespace_inum) == 0 {
        return Some(TaskIds {
            pid: task.read(config!(offsets.task_tgid))?,
            tid: task.read(config!(offsets.task_pid))?,
        });
    }
    let leader = task.follow(config!(offsets.task_group_leader))?;
    Some(TaskIds {
        pid: namespace_number(leader)?,
        tid: namespace_number(task)?,
    })
}

/// The number of a task in the agent's PID namespace: the entry of `task->thread_pid->numbers`
/// whose namespace has the agent's inode.
///
/// The level of the namespace is not known to the agent (its own /proc starts at its own level),
/// so the levels are searched; containers have two or three.
#[inline(always)]
fn namespace_number(task: KernelPtr) -> Option<u32> {
    let pid = task.follow(config!(offsets.task_thread_pid))?;
    let deepest: u32 = pid.read(config!(offsets.pid_level))?;
    let numbers = pid.at(config!(offsets.pid_numbers));
    for level in 0..MAX_PID_NAMESPACE_LEVELS {
        if level > deepest {
            return None;
        }
        let upid = numbers.at(level * config!(offsets.upid_bytes));
        let namespace = upid.follow(config!(offsets.upid_ns))?;
        let inum: u32 = namespace.read(config!(offsets.pid_namespace_inum))?;
        if inum == config!(pid_namespace_inum) {
            let number: u32 = upid.read(config!(offsets.upid_nr))?;
            return if number == 0 { None } else { Some(number) };
        }
    }
    None
}

/// `PF_KTHREAD`.
pub(crate) const KERNEL_THREAD: u32 = 0x0020_0000;

/// Whether the task belongs to the kernel; also when that cannot be read.
#[inline(always)]
pub(crate) fn is_kernel_thread(task: KernelPtr) -> bool {
    match task.read::<u32>(config!(offsets.task_flags)) {
        Some(flags) => flags & KERNEL_THREAD != 0,
        None => true,
    }
}

/// Start time of the task's process, nanoseconds of boot time.
#[inline(always)]
pub(crate) fn process_start(task: KernelPtr) -> Option<u64> {
    leader(task)?.read(config!(offsets.task_start_boottime))
}

/// The main thread of the task's process.
#[inline(always)]
pub(crate) fn leader(task: KernelPtr) -> Option<KernelPtr> {
    task.follow(config!(offsets.task_group_leader))
}

/// How many programs the task's process has run: grows with each exec.
#[inline(always)]
pub(crate) fn generation(task: KernelPtr) -> Option<u32> {
    task.read(config!(offsets.task_self_exec_id))
}

/// Whether the exiting task is the last thread of its process (`signal->live` reached zero;
/// `do_exit` decrements it before the tracepoint).
#[inline(always)]
pub(crate) fn is_last_thread(task: KernelPtr) -> Option<bool> {
    let signal = task.follow(config!(offsets.task_signal))?;
    let live: i32 = signal.read(config!(offsets.signal_live))?;
    Some(live <= 0)
}
