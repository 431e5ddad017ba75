//! Waits: what threads did when they left the CPU, and for how long they were away.
//!
//! Hooks (minimum kernel 5.15 with BTF; thousands of events a second and CPU):
//! - `sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int
//!   prev_state)`; the state is missing before 5.18
//! - `sched_wakeup(struct task_struct *p)`
//!
//! The user stack is taken when a thread leaves: its memory is there then, and nothing is added to
//! its way back. The kernel stack is taken when it comes back, or at the end by a pass over all
//! threads: it has not changed, and a wait that is not counted needs none. `sched_wakeup` and not `sched_waking`, because the latter may come while the
//! thread is still on its way off the CPU, before its wait is in the table.
//!
//! Cost: a switch between unwanted threads costs the filter, the clock and one note of who runs (`contention`); one
//! away from a wanted thread what its stack costs. The run queue's lock is held: nothing here wakes the agent.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{BPF_NOEXIST, task_struct},
    helpers::{bpf_get_current_comm, bpf_get_smp_processor_id, bpf_ktime_get_ns},
    macros::{btf_tracepoint, map},
    maps::{Array, HashMap, PerCpuArray},
    programs::BtfTracePointContext,
};
use profiler_common::{
    config::FILTER_PIDS as MODE_PIDS,
    counter,
    limits::{CLASS_ITERATOR, CLASS_SCHEDULER, MARKS, WAIT_COUNT_ENTRIES, WAIT_TABLE_ENTRIES},
    off_cpu::{
        HOW_SAMPLED, HOW_TAKEN, SWITCH_STATE_LAST, WAIT_INTERRUPTIBLE, WAIT_IO, WAIT_PREEMPTED,
        WAIT_STOPPED, WAIT_UNINTERRUPTIBLE, Wait, WaitValue,
    },
    on_cpu::CountKey,
    stack::{NOT_SAMPLED, NOT_TAKEN},
};

use super::{contention, wakers};
use crate::{
    config::{config, leave_at_floor},
    counters::count,
    emit::Urgency,
    filter,
    kernel::{KernelPtr, TypedPtr},
    maps::rotation,
    orc, stack,
    task::{self, TaskIds},
    threads::{announce, same_comm},
    timeline::{self, Moment},
    wait_sampling,
};

/// `TASK_*` of include/linux/sched.h.
const TASK_INTERRUPTIBLE: u32 = 0x1;
const TASK_STOPPED: u32 = 0x4;
const TASK_TRACED: u32 = 0x8;
pub(super) const TASK_DEAD: u32 = 0x80;

/// Waits of even epochs, as `COUNTS_EVEN`.
#[map]
static WAITED_EVEN: HashMap<CountKey, WaitValue> = HashMap::with_max_entries(WAIT_COUNT_ENTRIES, 0);

/// Waits of odd epochs.
#[map]
static WAITED_ODD: HashMap<CountKey, WaitValue> = HashMap::with_max_entries(WAIT_COUNT_ENTRIES, 0);

/// Every wanted thread that has left a CPU, by its number in the initial PID namespace. Entries stay
/// while a thread runs, so that a switch need not allocate.
#[map]
pub(super) static WAITS: HashMap<u32, Wait> = HashMap::with_max_entries(WAIT_TABLE_ENTRIES, 0);

/// Set for the number of every thread that was ever put into [`WAITS`]: most threads of a node are
/// told apart from the wanted ones without a lookup.
#[map]
static THREAD_MARKS: Array<u32> = Array::with_max_entries(MARKS, 0);

/// A new entry of [`WAITS`]: the stack of a program has no room for it.
#[map]
static FRESH: PerCpuArray<Wait> = PerCpuArray::with_max_entries(1, 0);

#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn off_cpu_switch(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let previous = TypedPtr::new(context.arg::<*const task_struct>(1));
    let next = TypedPtr::new(context.arg::<*const task_struct>(2));
    let previous_tid: u32 = previous.member(config!(offsets.task_pid));
    let next_tid: u32 = next.member(config!(offsets.task_pid));
    // The idle task has the number 0 and is not a target.
    let comes = is_marked(next_tid);
    let leaves = previous_tid != 0 && (is_marked(previous_tid) || filter::may_want(previous));
    // SAFETY: a helper without arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    // Before the task and after it nothing is noted: what was last stays for waits that have not ended.
    let Some(origin) = timeline::origin(now) else {
        return 0;
    };
    let runs = contention::of_this_cpu(previous, previous_tid);
    if comes {
        if let Err(counter) = try_come(next, next_tid, now, origin) {
            count(counter);
        }
        contention::share_out(next_tid, now);
    }
    contention::note(runs, next, next_tid, now);
    if leaves && let Err(counter) = try_leave(&context, previous, previous_tid, now, origin) {
        count(counter);
    }
    0
}

#[btf_tracepoint(function = "sched_wakeup")]
pub(crate) fn off_cpu_wakeup(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let task = TypedPtr::new(context.arg::<*const task_struct>(0));
    let tid: u32 = task.member(config!(offsets.task_pid));
    if is_marked(tid) {
        wake(tid);
    }
    0
}

/// What an iterator over tasks is given (`struct bpf_iter__task`).
#[repr(C)]
pub(crate) struct VisitedTask {
    meta: *const c_void,
    task: *const task_struct,
}

/// Takes the kernel stacks of threads that sleep. The agent runs it before it stops collecting.
///
/// Hook: an iterator over all tasks (minimum kernel 5.8), in the agent's own context.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub(crate) extern "C" fn off_cpu_sleepers(context: *const VisitedTask) -> i32 {
    // SAFETY: the kernel gives a pointer to this structure.
    let task = unsafe { (*context).task };
    if task.is_null() {
        return 0; // the end
    }
    let task = TypedPtr::new(task);
    if let Some(wait) = WAITS.get_ptr_mut(task.member::<u32>(config!(offsets.task_pid))) {
        // SAFETY: a map value. A thread that wakes up meanwhile takes its stack itself, and what is
        // written here is not read.
        let wait = unsafe { &mut *wait };
        if wait.began_ns != 0 {
            wait.kernel_stack = stack::kernel_stack_of(task, CLASS_ITERATOR);
        }
    }
    0
}

/// Makes the scheduler's programs look a thread up.
#[inline(always)]
pub(super) fn mark(tid: u32) {
    if let Some(mark) = THREAD_MARKS.get_ptr_mut(tid & (MARKS - 1)) {
        // SAFETY: a map value; no other value is ever written.
        unsafe { *mark = 1 };
    }
}

#[inline(always)]
fn is_marked(tid: u32) -> bool {
    THREAD_MARKS
        .get(tid & (MARKS - 1))
        .is_some_and(|mark| *mark != 0)
}

/// The time from here on is spent waiting for a CPU.
#[inline(always)]
fn wake(tid: u32) {
    let Some(wait) = WAITS.get_ptr_mut(tid) else {
        return;
    };
    // SAFETY: a map value; the thread has left its CPU, and only one wake-up succeeds.
    let wait = unsafe { &mut *wait };
    if wait.began_ns != 0 && wait.woken_ns == 0 && wait.wait != WAIT_PREEMPTED {
        // SAFETY: a helper without arguments.
        wait.woken_ns = unsafe { bpf_ktime_get_ns() };
    }
}

/// Counts the wait that ends now.
#[inline(always)]
fn try_come(next: TypedPtr, tid: u32, now: u64, origin: u64) -> Result<(), u32> {
    let Some(wait) = WAITS.get_ptr_mut(tid) else {
        return Ok(()); // unwanted, or it has not left a CPU yet
    };
    // SAFETY: a map value; the thread is on its way to this CPU and nowhere else.
    let wait = unsafe { &mut *wait };
    if wait.began_ns == 0 {
        return Ok(());
    }
    let ready_ns = ready(wait, now);
    let moment = Moment::of(now, origin, CLASS_SCHEDULER)?;
    let Some(value) = wait_sampling::weigh(wait, ready_ns, now) else {
        wait.began_ns = 0;
        return Ok(());
    };
    wait.kernel_stack = orc::kernel_stack_of(next);
    wait.ready_ns = ready_ns;
    wait.runnable_ns = value.runnable_ns;
    wait.place = place(moment);
    end(wait, value, moment)
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

/// Counts a wait that is over.
#[inline(always)]
fn end(wait: &mut Wait, value: WaitValue, moment: Moment) -> Result<(), u32> {
    let WaitValue {
        count,
        blocked_ns,
        runnable_ns,
    } = value;
    match count_wait(wait, count, blocked_ns, runnable_ns, place(moment)) {
        0 => Ok(()),
        failed => Err(failed as u32 - 1),
    }
}

/// A moment as one number, for functions that are not inlined.
#[inline(always)]
fn place(moment: Moment) -> u64 {
    u64::from(moment.bucket) << 1 | u64::from(moment.even_epoch)
}

/// The moment of [`place`].
#[inline(always)]
pub(super) fn moment_of(place: u64) -> Moment {
    Moment {
        bucket: (place >> 1) as u32,
        even_epoch: place & 1 == 1,
    }
}

/// The same. Returns the counter of what failed, counted from 1.
///
/// Not inlined: its keys are large, and the stack is small.
#[inline(never)]
fn count_wait(wait: *mut Wait, count: u64, blocked_ns: u64, runnable_ns: u64, place: u64) -> u64 {
    // SAFETY: a map value of a thread whose wait is over.
    let wait = unsafe { &mut *wait };
    let value = WaitValue {
        count,
        blocked_ns,
        runnable_ns,
    };
    match try_count_wait(wait, value, moment_of(place)) {
        Ok(()) => 0,
        Err(counter) => u64::from(counter) + 1,
    }
}

#[inline(always)]
fn try_count_wait(wait: &mut Wait, value: WaitValue, moment: Moment) -> Result<(), u32> {
    let began_ns = wait.began_ns;
    wait.began_ns = 0;
    let user_stack = if wait.how & (HOW_SAMPLED | HOW_TAKEN) == HOW_SAMPLED {
        NOT_TAKEN
    } else {
        wait.user_stack
    };
    let key = CountKey {
        pid: wait.pid,
        tid: wait.tid,
        // SAFETY: a helper without arguments.
        cpu: unsafe { bpf_get_smp_processor_id() },
        bucket: moment.bucket,
        generation: wait.generation,
        wait: wait.wait,
        kernel_stack: wait.kernel_stack,
        user_stack,
    };
    if config!(wakers) == 1
        && wait.wait != WAIT_PREEMPTED
        && let Some(waker) = wakers::take(wait, began_ns)
    {
        return wakers::add(moment, key, waker, value);
    }
    add(moment, &key, value)
}

/// Adds to the counter of `key`. The key includes the CPU, so there is no concurrent writer.
#[inline(always)]
fn add(moment: Moment, key: &CountKey, more: WaitValue) -> Result<(), u32> {
    if moment.even_epoch {
        add_wait(&WAITED_EVEN, key, more)
    } else {
        add_wait(&WAITED_ODD, key, more)
    }
}

#[inline(always)]
pub(super) fn add_wait<K>(
    table: &HashMap<K, WaitValue>,
    key: &K,
    more: WaitValue,
) -> Result<(), u32> {
    if let Some(value) = table.get_ptr_mut(key) {
        // SAFETY: a map value; see `add` for concurrency.
        let value = unsafe { &mut *value };
        value.count += more.count;
        value.blocked_ns += more.blocked_ns;
        value.runnable_ns += more.runnable_ns;
        return Ok(());
    }
    table
        .insert(key, more, u64::from(BPF_NOEXIST))
        .map_err(|_error| counter::COUNT_TABLE_FULL)
}

/// Remembers why and where the running thread leaves the CPU, when it is wanted.
#[inline(always)]
fn try_leave(
    context: &BtfTracePointContext,
    task: TypedPtr,
    global_tid: u32,
    now: u64,
    origin: u64,
) -> Result<(), u32> {
    let state = previous_state(context, task);
    if state & TASK_DEAD != 0 {
        forget(global_tid, now, origin);
        return Ok(());
    }
    let generation: u32 = task.member(config!(offsets.task_self_exec_id));
    let wait = match WAITS.get_ptr_mut(global_tid) {
        Some(wait) if is_known(wait, task, generation) => wait,
        _ => {
            if !meet(task, global_tid)? {
                return Ok(());
            }
            let Some(wait) = WAITS.get_ptr_mut(global_tid) else {
                return Ok(()); // never: it was met
            };
            wait
        }
    };
    // SAFETY: a map value; the thread is not woken before it has left the CPU.
    let wait = unsafe { &mut *wait };
    count(counter::SAMPLES);
    if wait.began_ns != 0 {
        close_missed(global_tid, now, origin);
    }
    wait.how = wait_sampling::begin(wait);
    if wait.how & HOW_TAKEN != 0 {
        let ids = TaskIds {
            pid: wait.pid,
            tid: wait.tid,
        };
        wait.user_stack = stack::user_stack(context, CLASS_SCHEDULER, ids, generation);
    }
    wait.woken_ns = 0;
    wait.kernel_stack = 0;
    wait.wait = wait_kind(context, task, state);
    // SAFETY: a helper without arguments.
    wait.cpu = unsafe { bpf_get_smp_processor_id() };
    wait.began_ns = now;
    Ok(())
}

/// Counts what was not sampled yet of a thread that will not run again.
///
/// Not inlined, as [`close_missed`].
#[inline(never)]
fn forget(global_tid: u32, now: u64, origin: u64) -> u64 {
    let Some(wait) = WAITS.get_ptr_mut(global_tid) else {
        return 0; // it never left a CPU
    };
    // SAFETY: a map value of the thread that leaves.
    let wait = unsafe { &mut *wait };
    let value = wait_sampling::rest(wait);
    if value.count + value.blocked_ns != 0 {
        wait.how = HOW_TAKEN;
        wait.user_stack = NOT_SAMPLED;
        wait.kernel_stack = 0;
        let counted =
            Moment::of(now, origin, CLASS_SCHEDULER).and_then(|moment| end(wait, value, moment));
        if let Err(counter) = counted {
            count(counter);
        }
    }
    if config!(wakers) == 1 {
        wakers::forget(wait.tid);
    }
    // Fails never: it was there.
    let _absent = WAITS.remove(global_tid);
    0
}

/// Whether all that was sent of the thread, and that it is wanted, is still true.
#[inline(always)]
fn is_known(known: *const Wait, task: TypedPtr, generation: u32) -> bool {
    // SAFETY: a map value; the fields that are read here have no concurrent writer.
    let known = unsafe { &*known };
    let Ok(comm) = bpf_get_current_comm() else {
        return false;
    };
    known.rotation == rotation()
        && known.generation == generation
        && known.cgroups == task.member::<u64>(config!(offsets.task_cgroups))
        && same_comm(&known.comm, &comm)
}

/// Announces a thread and makes room for it, when it is wanted; else the result is false. The entry
/// is looked up again later, so that what follows is the same for threads that are known.
#[inline(always)]
fn meet(task: TypedPtr, global_tid: u32) -> Result<bool, u32> {
    match met(task.as_ptr(), global_tid) {
        0 => Ok(false),
        1 => Ok(true),
        failed => Err(failed as u32 - 2),
    }
}

/// The same as a number: 0 and 1, or the counter of what failed, counted from 2.
///
/// Not inlined, as [`count_wait`].
#[inline(never)]
fn met(task: *const c_void, global_tid: u32) -> u64 {
    match try_meet(TypedPtr::new(task), global_tid) {
        Ok(wanted) => u64::from(wanted),
        Err(counter) => u64::from(counter) + 2,
    }
}

#[inline(always)]
fn try_meet(task: TypedPtr, global_tid: u32) -> Result<bool, u32> {
    let Some(ids) = task::current_ids() else {
        return if config!(filter) == MODE_PIDS {
            Ok(false)
        } else {
            Err(counter::PID_NOT_VISIBLE)
        };
    };
    let untyped = task.untyped();
    if !filter::wants(untyped, ids) {
        // It may have been wanted before it moved to another cgroup.
        let _absent = WAITS.remove(global_tid);
        return Ok(false);
    }
    // Read first: what is sent again because of a later change is sent once too often at worst.
    let rotation = rotation();
    let generation = announce(untyped, ids, Urgency::Polled)?;
    let comm = bpf_get_current_comm().map_err(|_error| counter::KERNEL_READ_FAILED)?;
    let cgroups = task.member(config!(offsets.task_cgroups));
    if let Some(known) = WAITS.get_ptr_mut(global_tid) {
        // SAFETY: a map value; the fields that are written here have no other writer.
        let known = unsafe { &mut *known };
        known.pid = ids.pid;
        known.tid = ids.tid;
        known.generation = generation;
        known.rotation = rotation;
        known.comm = comm;
        known.cgroups = cgroups;
        return Ok(true);
    }
    let Some(fresh) = FRESH.get_ptr_mut(0) else {
        return Ok(false);
    };
    // SAFETY: a map value of this CPU, used here only while the lock of a run queue is held.
    let fresh = unsafe { &mut *fresh };
    // The other members stay 0.
    fresh.pid = ids.pid;
    fresh.tid = ids.tid;
    fresh.generation = generation;
    fresh.rotation = rotation;
    fresh.comm = comm;
    fresh.cgroups = cgroups;
    mark(global_tid);
    WAITS
        .insert(global_tid, fresh, 0)
        .map_err(|_error| counter::WAIT_TABLE_FULL)?;
    Ok(true)
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
    // SAFETY: a map value; the thread is not woken before it has left the CPU.
    let wait = unsafe { &mut *wait };
    if wait.began_ns == 0 {
        return 0;
    }
    count(counter::SWITCH_MISSED);
    let ready_ns = ready(wait, now);
    if let Err(counter) = close(wait, ready_ns, ready_ns, now, origin) {
        count(counter);
    }
    1
}

/// Counts a wait of which no more is known than when it ended.
#[inline(always)]
fn close(wait: &mut Wait, ready_ns: u64, ended_ns: u64, now: u64, origin: u64) -> Result<(), u32> {
    let moment = Moment::of(now, origin, CLASS_SCHEDULER)?;
    if let Some(value) = wait_sampling::weigh(wait, ready_ns, ended_ns) {
        return end(wait, value, moment);
    }
    wait.began_ns = 0;
    Ok(())
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
    if let Err(counter) = close(wait, ready_ns, came_ns, now, origin) {
        count(counter);
    }
    came_ns
}

/// The state of the task that leaves, as the scheduler saw it when it decided.
#[inline(always)]
fn previous_state(context: &BtfTracePointContext, task: TypedPtr) -> u32 {
    if config!(offsets.switch_arguments) == SWITCH_STATE_LAST {
        return context.arg::<u64>(3) as u32;
    }
    // `volatile long` before 5.14, so not read as a member of this size.
    let state: Option<u32> = task.untyped().read(config!(offsets.task_state));
    state.unwrap_or(0)
}

/// What kind of wait begins.
#[inline(always)]
fn wait_kind(context: &BtfTracePointContext, task: TypedPtr, state: u32) -> u32 {
    let preempted = context.arg::<u64>(0) as u8 != 0;
    if preempted || state == 0 {
        return WAIT_PREEMPTED;
    }
    kind_of_sleep(task.untyped(), state)
}

/// What kind of wait a thread in such a state is in.
#[inline(always)]
pub(super) fn kind_of_sleep(task: KernelPtr, state: u32) -> u32 {
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
