//! Threads that sleep already when waits begin to be measured.
//!
//! Hook: `iter/task` (kernel 5.8), which the agent runs once when `sched_switch` is attached:
//! `int bpf_iter__task(struct bpf_iter_meta *meta, struct task_struct *task)`. No lock is held.
//!
//! Each wanted thread that sleeps is put into the table of waits as if it had left its CPU at the
//! origin. From there on it is counted like every other: until it is woken, or until the end.
//! Threads of the kernel are left out: those that sleep all the time have nothing to do.
//!
//! Cost: a few reads for each thread of the machine, and one kernel stack for each wanted one.

use aya_ebpf::bindings::{BPF_NOEXIST, task_struct};
use profiler_common::{
    counter,
    limits::COMM_BYTES,
    off_cpu::{HOW_TAKEN, Wait},
};

use super::off_cpu::{TASK_DEAD, WAITS, kind_of_sleep, mark};
use crate::{
    config::config, counters::count, emit::Urgency, filter, kernel::KernelPtr, maps::rotation,
    stack, task, threads::announce_as, timeline, unwind::asleep,
};

/// `struct bpf_iter__task`.
#[repr(C)]
pub(crate) struct TaskIteration {
    meta: u64,
    task: *mut task_struct,
}

#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub(crate) extern "C" fn off_cpu_asleep(context: *const TaskIteration) -> i32 {
    // SAFETY: the verifier checks accesses to the context.
    let task = unsafe { (*context).task };
    // There is no task when the pass is over.
    if !task.is_null()
        && let Err(counter) = try_asleep(task)
    {
        count(counter);
    }
    0
}

#[inline(always)]
fn try_asleep(task: *mut task_struct) -> Result<(), u32> {
    let it = task::from_argument(task);
    let Some(origin) = timeline::origin(u64::MAX) else {
        return Ok(());
    };
    let Some(state) = sleeping(it)? else {
        return Ok(());
    };
    if !asleep::has_user_mode(it) {
        return Ok(());
    }
    let Some(ids) = task::ids(it) else {
        return Ok(());
    };
    if !filter::wants(it, ids) {
        return Ok(());
    }
    let global_tid: u32 = it
        .read(config!(offsets.task_pid))
        .ok_or(counter::KERNEL_READ_FAILED)?;
    // SAFETY: the value is not read.
    if unsafe { WAITS.get(global_tid) }.is_some() {
        return Ok(()); // seen when it left its CPU
    }
    let Some(scratch) = asleep::scratch() else {
        return Ok(());
    };
    // SAFETY: a map value; the agent runs this program once.
    let scratch = unsafe { &mut *scratch };
    let comm: [u8; COMM_BYTES] = it
        .read(config!(offsets.task_comm))
        .ok_or(counter::KERNEL_READ_FAILED)?;
    let rotation = rotation();
    let generation = announce_as(it, ids, comm, Urgency::Polled)?;
    let wait = Wait {
        began_ns: origin,
        woken_ns: 0,
        kernel_stack: stack::kernel_stack_into(task, &raw mut scratch.record),
        user_stack: asleep::user_stack(scratch, task, ids, generation),
        pid: ids.pid,
        tid: ids.tid,
        generation,
        wait: kind_of_sleep(it, state),
        cpu: 0,
        rotation,
        comm,
        cgroups: it.read(config!(offsets.task_cgroups)).unwrap_or(0),
        how: HOW_TAKEN,
        gap: 0,
        left: 0,
        padding: 0,
        gap_ns: 0,
        left_ns: 0,
        longest_ns: 0,
        ready_ns: 0,
        runnable_ns: 0,
        place: 0,
    };
    mark(global_tid);
    if WAITS
        .insert(global_tid, wait, u64::from(BPF_NOEXIST))
        .is_err()
    {
        return Err(counter::WAIT_TABLE_FULL);
    }
    if sleeping(it)?.is_some() {
        return Ok(());
    }
    // It was woken meanwhile, perhaps before it was in the table.
    if let Some(entry) = WAITS.get_ptr_mut(global_tid) {
        // SAFETY: a map value. A wake-up that found the entry has left its time in it.
        let entry = unsafe { &mut *entry };
        if entry.began_ns == origin && entry.woken_ns == 0 {
            entry.began_ns = 0;
            return Err(counter::SWITCH_MISSED);
        }
    }
    Ok(())
}

/// The state of a task that sleeps; none of one that runs, wants to, or has ended.
#[inline(always)]
fn sleeping(task: KernelPtr) -> Result<Option<u32>, u32> {
    let failed = counter::KERNEL_READ_FAILED;
    let queued: u32 = task.read(config!(offsets.task_on_rq)).ok_or(failed)?;
    let state: u32 = task.read(config!(offsets.task_state)).ok_or(failed)?;
    let asleep = (queued == 0 || is_delayed(task)) && state != 0 && state & TASK_DEAD == 0;
    Ok(if asleep { Some(state) } else { None })
}

/// Whether a thread sleeps although it is in a run queue: since 6.12 the scheduler leaves it there
/// while it has had more than its share (`DELAY_DEQUEUE`).
#[inline(always)]
fn is_delayed(task: KernelPtr) -> bool {
    let offset = config!(offsets.task_sched_delayed);
    offset != 0 && task.read::<u8>(offset).unwrap_or(0) != 0
}
