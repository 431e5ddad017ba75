//! Waits: what threads did when they left the CPU, and for how long they were away.
//!
//! Hooks (minimum kernel 5.15 with BTF; thousands of events a second and CPU):
//! - `sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int
//!   prev_state)`; the state is missing before 5.18
//! - `sched_wakeup(struct task_struct *p)`
//!
//! The stack is taken when a thread leaves: its memory is there then, and the time until it comes
//! back does not grow. `sched_wakeup` and not `sched_waking`, because the latter may come while the
//! thread is still on its way off the CPU, before its wait is in the table.
//!
//! Cost: a switch between unwanted threads costs the filter and one lookup; one away from a wanted
//! thread what its stack costs. The run queue's lock is held: nothing here wakes the agent.

use aya_ebpf::{
    bindings::{BPF_NOEXIST, task_struct},
    helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    macros::{btf_tracepoint, map},
    maps::HashMap,
    programs::BtfTracePointContext,
};
use profiler_common::{
    config::FILTER_PIDS as MODE_PIDS,
    counter,
    limits::{CLASS_SCHEDULER, WAIT_COUNT_ENTRIES, WAIT_TABLE_ENTRIES},
    off_cpu::{
        SWITCH_STATE_LAST, WAIT_INTERRUPTIBLE, WAIT_IO, WAIT_PREEMPTED, WAIT_STOPPED,
        WAIT_UNINTERRUPTIBLE, Wait, WaitValue,
    },
    on_cpu::CountKey,
};

use super::wakers;
use crate::{
    config::config,
    counters::count,
    emit::Urgency,
    filter,
    kernel::KernelPtr,
    stack, task,
    threads::announce,
    timeline::{self, Moment},
};

/// `TASK_*` of include/linux/sched.h.
const TASK_INTERRUPTIBLE: u32 = 0x1;
const TASK_STOPPED: u32 = 0x4;
const TASK_TRACED: u32 = 0x8;
const TASK_DEAD: u32 = 0x80;

/// Waits of even epochs, as `COUNTS_EVEN`.
#[map]
static WAITED_EVEN: HashMap<CountKey, WaitValue> = HashMap::with_max_entries(WAIT_COUNT_ENTRIES, 0);

/// Waits of odd epochs.
#[map]
static WAITED_ODD: HashMap<CountKey, WaitValue> = HashMap::with_max_entries(WAIT_COUNT_ENTRIES, 0);

/// Every wanted thread that has left a CPU, by its number in the initial PID namespace. Entries stay
/// while a thread runs, so that a switch need not allocate.
#[map]
static WAITS: HashMap<u32, Wait> = HashMap::with_max_entries(WAIT_TABLE_ENTRIES, 0);

#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn off_cpu_switch(context: BtfTracePointContext) -> i32 {
    // SAFETY: a helper without arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    if let Some(origin) = timeline::origin(now) {
        if let Err(counter) = try_come(next_task(&context), now, origin) {
            count(counter);
        }
        if let Err(counter) = try_leave(&context, now, origin) {
            count(counter);
        }
    }
    0
}

#[btf_tracepoint(function = "sched_wakeup")]
pub(crate) fn off_cpu_wakeup(context: BtfTracePointContext) -> i32 {
    if let Err(counter) = try_wake(task::from_argument(context.arg::<*const task_struct>(0))) {
        count(counter);
    }
    0
}

/// The time from here on is spent waiting for a CPU.
#[inline(always)]
fn try_wake(task: KernelPtr) -> Result<(), u32> {
    let Some(wait) = wait_of(task)? else {
        return Ok(());
    };
    // SAFETY: a map value; the thread has left its CPU, and only one wake-up succeeds.
    let wait = unsafe { &mut *wait };
    if wait.began_ns != 0 && wait.woken_ns == 0 && wait.wait != WAIT_PREEMPTED {
        // SAFETY: a helper without arguments.
        wait.woken_ns = unsafe { bpf_ktime_get_ns() };
    }
    Ok(())
}

/// Counts the wait that ends now.
#[inline(always)]
fn try_come(next: KernelPtr, now: u64, origin: u64) -> Result<(), u32> {
    let Some(wait) = wait_of(next)? else {
        return Ok(()); // unwanted, or it has not left a CPU yet
    };
    // SAFETY: a map value; the thread is on its way to this CPU and nowhere else.
    let wait = unsafe { &mut *wait };
    if wait.began_ns == 0 {
        return Ok(());
    }
    let ready_ns = ready(wait, now);
    end(wait, ready_ns, now, Moment::of(now, origin)?)
}

/// When the thread could have gone on.
#[inline(always)]
fn ready(wait: &Wait, now: u64) -> u64 {
    if wait.wait == WAIT_PREEMPTED {
        wait.began_ns
    } else if wait.woken_ns == 0 {
        // The wake-up was not seen: it came before the programs were attached.
        now
    } else {
        wait.woken_ns
    }
}

/// Counts a wait whose thread was ready at `ready_ns` and is on a CPU at `ended_ns`.
#[inline(always)]
fn end(wait: &mut Wait, ready_ns: u64, ended_ns: u64, moment: Moment) -> Result<(), u32> {
    let blocked_ns = ready_ns.saturating_sub(wait.began_ns);
    let runnable_ns = ended_ns.saturating_sub(ready_ns);
    let began_ns = wait.began_ns;
    wait.began_ns = 0;
    let key = CountKey {
        pid: wait.pid,
        tid: wait.tid,
        // SAFETY: a helper without arguments.
        cpu: unsafe { bpf_get_smp_processor_id() },
        bucket: moment.bucket,
        generation: wait.generation,
        wait: wait.wait,
        kernel_stack: wait.kernel_stack,
        user_stack: wait.user_stack,
    };
    if config!(wakers) == 1
        && wait.wait != WAIT_PREEMPTED
        && let Some(waker) = wakers::take(wait, began_ns)
    {
        return wakers::add(moment, key, waker, blocked_ns, runnable_ns);
    }
    if moment.even_epoch {
        add_wait(&WAITED_EVEN, &key, blocked_ns, runnable_ns)
    } else {
        add_wait(&WAITED_ODD, &key, blocked_ns, runnable_ns)
    }
}

/// Adds a wait to the counter of `key`. The key holds the CPU, so nobody else writes it now.
#[inline(always)]
pub(super) fn add_wait<K>(
    table: &HashMap<K, WaitValue>,
    key: &K,
    blocked_ns: u64,
    runnable_ns: u64,
) -> Result<(), u32> {
    if let Some(value) = table.get_ptr_mut(key) {
        // SAFETY: a map value; see above for concurrency.
        let value = unsafe { &mut *value };
        value.count += 1;
        value.blocked_ns += blocked_ns;
        value.runnable_ns += runnable_ns;
        return Ok(());
    }
    let value = WaitValue {
        count: 1,
        blocked_ns,
        runnable_ns,
    };
    table
        .insert(key, value, u64::from(BPF_NOEXIST))
        .map_err(|_error| counter::COUNT_TABLE_FULL)
}

/// Remembers why and where the running thread leaves the CPU, when it is wanted.
#[inline(always)]
fn try_leave(context: &BtfTracePointContext, now: u64, origin: u64) -> Result<(), u32> {
    let task = task::current();
    let global_tid: u32 = task
        .read(config!(offsets.task_pid))
        .ok_or(counter::KERNEL_READ_FAILED)?;
    if global_tid == 0 {
        return Ok(()); // the idle task
    }
    let state = previous_state(context, task)?;
    if state & TASK_DEAD != 0 {
        // Fails when the thread never left a CPU.
        let _absent = WAITS.remove(global_tid);
        return Ok(());
    }
    let Some(ids) = task::current_ids() else {
        return if config!(filter) == MODE_PIDS {
            Ok(())
        } else {
            Err(counter::PID_NOT_VISIBLE)
        };
    };
    if !filter::wants(task, ids) {
        return Ok(());
    }
    count(counter::SAMPLES);
    close_missed(global_tid, now, origin);
    let generation = announce(task, ids, Urgency::Polled)?;
    let wait = Wait {
        began_ns: now,
        woken_ns: 0,
        kernel_stack: stack::kernel_stack(context, CLASS_SCHEDULER),
        user_stack: stack::user_stack(context, CLASS_SCHEDULER, task, ids, generation),
        pid: ids.pid,
        tid: ids.tid,
        generation,
        wait: wait_kind(context, task, state),
        // SAFETY: a helper without arguments.
        cpu: unsafe { bpf_get_smp_processor_id() },
        padding: 0,
    };
    if let Some(known) = WAITS.get_ptr_mut(global_tid) {
        // SAFETY: a map value; nobody wakes the thread before it has left the CPU.
        unsafe { *known = wait };
        return Ok(());
    }
    WAITS
        .insert(global_tid, wait, 0)
        .map_err(|_error| counter::WAIT_TABLE_FULL)
}

/// Counts a wait whose thread came back without a switch that the tracepoint showed: some hosts hide
/// switches away from threads of their own. Only the time until it was ready is known.
///
/// Not inlined, and the entry is looked up again later, so that what follows is verified once and
/// not for each outcome.
#[inline(never)]
fn close_missed(global_tid: u32, now: u64, origin: u64) -> u64 {
    let Some(wait) = WAITS.get_ptr_mut(global_tid) else {
        return 0;
    };
    // SAFETY: a map value; nobody wakes the thread before it has left the CPU.
    let wait = unsafe { &mut *wait };
    if wait.began_ns == 0 {
        return 0;
    }
    count(counter::SWITCH_MISSED);
    let ready_ns = ready(wait, now);
    let counted = Moment::of(now, origin).and_then(|moment| end(wait, ready_ns, ready_ns, moment));
    if let Err(counter) = counted {
        count(counter);
    }
    1
}

/// Ends the wait of a thread that runs although its return was not reported, and that came at
/// `came_ns` or, when it was not ready then, later. Returns when it came.
///
/// Not inlined, as [`close_missed`].
#[inline(never)]
pub(super) fn end_unreported(global_tid: u32, came_ns: u64, now: u64, origin: u64) -> u64 {
    let Some(wait) = WAITS.get_ptr_mut(global_tid) else {
        return came_ns;
    };
    // SAFETY: a map value of a thread that runs here.
    let wait = unsafe { &mut *wait };
    if wait.began_ns == 0 {
        return came_ns;
    }
    count(counter::SWITCH_MISSED);
    let ready_ns = ready(wait, came_ns).max(wait.began_ns);
    let came_ns = came_ns.max(ready_ns);
    let counted = Moment::of(now, origin).and_then(|moment| end(wait, ready_ns, came_ns, moment));
    if let Err(counter) = counted {
        count(counter);
    }
    came_ns
}

/// The entry of a thread in the table of waits.
#[inline(always)]
fn wait_of(task: KernelPtr) -> Result<Option<*mut Wait>, u32> {
    let global_tid: u32 = task
        .read(config!(offsets.task_pid))
        .ok_or(counter::KERNEL_READ_FAILED)?;
    Ok(WAITS.get_ptr_mut(global_tid))
}

/// The task that gets the CPU.
#[inline(always)]
fn next_task(context: &BtfTracePointContext) -> KernelPtr {
    task::from_argument(context.arg::<*const task_struct>(2))
}

/// The state of the task that leaves, as the scheduler saw it when it decided.
#[inline(always)]
fn previous_state(context: &BtfTracePointContext, task: KernelPtr) -> Result<u32, u32> {
    if config!(offsets.switch_arguments) == SWITCH_STATE_LAST {
        return Ok(context.arg::<u64>(3) as u32);
    }
    task.read(config!(offsets.task_state))
        .ok_or(counter::KERNEL_READ_FAILED)
}

/// What kind of wait begins.
#[inline(always)]
fn wait_kind(context: &BtfTracePointContext, task: KernelPtr, state: u32) -> u32 {
    let preempted = context.arg::<u64>(0) as u8 != 0;
    if preempted || state == 0 {
        return WAIT_PREEMPTED;
    }
    if state & (TASK_STOPPED | TASK_TRACED) != 0 {
        return WAIT_STOPPED;
    }
    let flags: u8 = task.read(config!(offsets.task_in_iowait)).unwrap_or(0);
    if u32::from(flags) & config!(offsets.in_iowait_mask) != 0 {
        return WAIT_IO;
    }
    if state & TASK_INTERRUPTIBLE != 0 {
        WAIT_INTERRUPTIBLE
    } else {
        WAIT_UNINTERRUPTIBLE
    }
}
