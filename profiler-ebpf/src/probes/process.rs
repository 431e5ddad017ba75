//! Forks, execs and exits of processes: keeps the filter right and informs the agent.
//!
//! Hooks (minimum kernel 5.5 with BTF; some hundred events a second on a busy node):
//! - `sched_process_fork(struct task_struct *parent, struct task_struct *child)`
//! - `sched_process_exec(struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)`
//! - `sched_process_exit(struct task_struct *p)`; since 6.16 `(struct task_struct *p, bool
//!   group_dead)`, and before `exit_mm` where it was behind it

use aya_ebpf::{
    bindings::task_struct, helpers::bpf_get_current_comm, macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use aya_log_ebpf::debug;
use profiler_common::{
    config::FILTER_PIDS as MODE_PIDS,
    counter,
    header::KIND_PROCESS,
    process::{EVENT_EXEC, EVENT_EXIT, EVENT_FORK, ProcessRecord},
};

use crate::{
    config::config,
    counters::count,
    emit::{self, Urgency},
    filter,
    kernel::KernelPtr,
    maps::FILTER_PIDS,
    task,
    threads::THREADS,
    unwind::{self, registers},
};

#[btf_tracepoint(function = "sched_process_fork")]
pub(crate) fn process_fork(context: BtfTracePointContext) -> i32 {
    if let Err(counter) = try_process_fork(&context) {
        count(counter);
    }
    0
}

/// A child of a target is a target: it is added here, before it runs.
#[inline(always)]
fn try_process_fork(context: &BtfTracePointContext) -> Result<(), u32> {
    let parent = task::from_argument(context.arg::<*const task_struct>(0));
    let child = task::from_argument(context.arg::<*const task_struct>(1));
    let Some(child_ids) = task::ids(child) else {
        return Ok(()); // outside the agent's PID namespace
    };
    if child_ids.pid != child_ids.tid {
        return Ok(()); // a thread
    }
    if config!(forgets_later) == 1 {
        forget(child_ids.pid);
    }
    let Some(parent_ids) = task::ids(parent) else {
        // The parent lives outside the agent's namespace, so it is not a target.
        return report(
            child,
            EVENT_FORK,
            child_ids.pid,
            0,
            config!(watch_all_processes) == 1,
        );
    };
    let mut wanted = config!(watch_all_processes) == 1;
    if config!(filter) == MODE_PIDS && filter::wants(parent, parent_ids) {
        wanted = true;
        adopt(child_ids.pid);
        debug!(
            context,
            "process {} is a target: forked by {}", child_ids.pid, parent_ids.pid
        );
    }
    report(child, EVENT_FORK, child_ids.pid, parent_ids.pid, wanted)
}

#[btf_tracepoint(function = "sched_process_exec")]
pub(crate) fn process_exec(context: BtfTracePointContext) -> i32 {
    if let Err(counter) = try_process_exec(&context) {
        count(counter);
    }
    0
}

/// The mappings changed; and a process may have got the name that is looked for.
#[inline(always)]
fn try_process_exec(context: &BtfTracePointContext) -> Result<(), u32> {
    let task = task::from_argument(context.arg::<*const task_struct>(0));
    let Some(ids) = task::ids(task) else {
        return Ok(()); // outside the agent's PID namespace
    };
    unwind::forget(ids.pid);
    let looked_for = config!(target_comm);
    if config!(filter) == MODE_PIDS && looked_for[0] != 0 {
        let comm = bpf_get_current_comm().map_err(|_error| counter::KERNEL_READ_FAILED)?;
        if u128::from_ne_bytes(comm) == u128::from_ne_bytes(looked_for) {
            adopt(ids.pid);
            debug!(
                context,
                "process {} is a target: it has the wanted name", ids.pid
            );
        }
    }
    let wanted = config!(watch_all_processes) == 1 || filter::wants(task, ids);
    report(task, EVENT_EXEC, ids.pid, 0, wanted)
}

#[btf_tracepoint(function = "sched_process_exit")]
pub(crate) fn process_exit(context: BtfTracePointContext) -> i32 {
    if let Err(counter) = try_process_exit(&context) {
        count(counter);
    }
    0
}

#[inline(always)]
fn try_process_exit(context: &BtfTracePointContext) -> Result<(), u32> {
    let task = task::from_argument(context.arg::<*const task_struct>(0));
    let Some(ids) = task::ids(task) else {
        return Ok(()); // outside the agent's PID namespace
    };
    // Fails when the thread was never announced.
    let _absent = THREADS.remove(ids.tid);
    if !task::is_last_thread(task).ok_or(counter::KERNEL_READ_FAILED)? {
        return Ok(());
    }
    let wanted = config!(watch_all_processes) == 1 || filter::wants(task, ids);
    // Since 6.16 this comes before the process gives its memory back, which is work of its own.
    if config!(forgets_later) == 0 || !registers::has_user_mode(task) {
        forget(ids.pid);
    }
    report(task, EVENT_EXIT, ids.pid, 0, wanted)
}

/// What is known of a process is not true of the next one with its number.
#[inline(always)]
fn forget(pid: u32) {
    unwind::forget(pid);
    if config!(filter) == MODE_PIDS {
        // Fails when the process was not a target.
        let _absent = FILTER_PIDS.remove(pid);
    }
}

#[inline(always)]
fn adopt(pid: u32) {
    filter::mark(pid);
    if FILTER_PIDS.insert(pid, 1, 0).is_err() {
        count(counter::FILTER_FULL);
    }
}

#[inline(always)]
fn report(task: KernelPtr, event: u32, pid: u32, parent_pid: u32, wanted: bool) -> Result<(), u32> {
    if !wanted {
        return Ok(());
    }
    let record = ProcessRecord {
        header: emit::header::<ProcessRecord>(KIND_PROCESS),
        event,
        pid,
        parent_pid,
        generation: task::generation(task).ok_or(counter::KERNEL_READ_FAILED)?,
        start_boottime_ns: task::process_start(task).ok_or(counter::KERNEL_READ_FAILED)?,
    };
    emit::send(&record, Urgency::Immediate, counter::PROCESS_EVENT_DROPPED);
    Ok(())
}
