//! Who ends waits: the thread that runs when another one is woken, and what it does there.
//!
//! Hook (minimum kernel 5.15 with BTF; only in tasks that ask for it, thousands of events a second
//! and CPU): `sched_waking(struct task_struct *p)`. It fires where the waker runs, while
//! `sched_wakeup` may fire on the CPU of the woken thread, in an interrupt of whatever runs there.
//!
//! The waking may come before the switch of the thread that goes to sleep: the CPU that it leaves
//! may still be on its way there. So it is kept for each thread until it comes back.
//!
//! An interrupt runs on a stack of its own, or on that of the thread when it came in user mode, where
//! no system call is under way then. Its victim's user stack is not walked and its process not
//! looked at: all programs of the machine would be. That the thread is innocent is said by the names
//! on the kernel stack.
//!
//! Cost: the filter for every waking, and two stacks for that of a wanted thread. A lock of that
//! thread is held: nothing here wakes the agent.

use core::ptr::{read_volatile, write_volatile};

use aya_ebpf::{
    EbpfContext as _,
    bindings::task_struct,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns},
    macros::{btf_tracepoint, map},
    maps::{HashMap, PerCpuArray},
    programs::BtfTracePointContext,
};
use profiler_common::{
    counter,
    limits::{CLASS_SCHEDULER, KERNEL_STACK_BYTES, WAIT_COUNT_ENTRIES, WAIT_TABLE_ENTRIES},
    off_cpu::{Wait, WaitValue},
    on_cpu::CountKey,
    wakers::{
        LastWaking, WAKER_IDLE, WAKER_INTERRUPTED, WAKER_OUTSIDE, WAKER_THREAD, Waker, WokenKey,
    },
};

use super::off_cpu::add_wait;
use crate::{
    config::{config, leave_at_floor},
    counters::count,
    emit::Urgency,
    filter,
    kernel::KernelPtr,
    stack, task,
    threads::announce,
    timeline::{self, Moment},
    unwind::registers,
};

/// How long before its switch a thread may have been woken.
const EARLY_NS: u64 = 1_000_000;

/// Where the program's arguments lie, which is on the stack that the kernel runs on. A map makes a
/// number of the pointer.
#[map]
static PLACE: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// The last waking of each wanted thread that has not come back since, by its number.
#[map]
static WAKINGS: HashMap<u32, LastWaking> = HashMap::with_max_entries(WAIT_TABLE_ENTRIES, 0);

/// Waits with their wakers, of even epochs.
#[map]
static WOKEN_EVEN: HashMap<WokenKey, WaitValue> = HashMap::with_max_entries(WAIT_COUNT_ENTRIES, 0);

/// The same of odd epochs.
#[map]
static WOKEN_ODD: HashMap<WokenKey, WaitValue> = HashMap::with_max_entries(WAIT_COUNT_ENTRIES, 0);

#[btf_tracepoint(function = "sched_waking")]
pub(crate) fn wakers_waking(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    if let Err(counter) = try_waking(&context) {
        count(counter);
    }
    0
}

#[inline(always)]
fn try_waking(context: &BtfTracePointContext) -> Result<(), u32> {
    // SAFETY: a helper without arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    if timeline::origin(now).is_none() {
        return Ok(());
    }
    let woken = task::from_argument(context.arg::<*const task_struct>(0));
    let Some(sleeper) = task::ids(woken) else {
        return Ok(());
    };
    if !filter::wants(woken, sleeper) {
        return Ok(());
    }
    let mut waker = Waker {
        kernel_stack: stack::kernel_stack(context, CLASS_SCHEDULER),
        ..Waker::default()
    };
    if bpf_get_current_pid_tgid() as u32 == 0 {
        waker.who = WAKER_IDLE;
    } else if let Some(ids) = task::current_ids() {
        let running = task::current();
        waker.pid = ids.pid;
        waker.tid = ids.tid;
        if acts_itself(context, running) {
            waker.who = WAKER_THREAD;
            waker.generation = announce(running, ids, Urgency::Polled)?;
            waker.user_stack = stack::user_stack(context, CLASS_SCHEDULER, ids, waker.generation);
        } else {
            waker.who = WAKER_INTERRUPTED;
            waker.generation = task::generation(running).ok_or(counter::KERNEL_READ_FAILED)?;
        }
    } else {
        waker.who = WAKER_OUTSIDE;
    }
    let waking = LastWaking {
        time_ns: now,
        waker,
    };
    WAKINGS
        .insert(sleeper.tid, waking, 0)
        .map_err(|_error| counter::WAIT_TABLE_FULL)
}

/// Whether the running thread does what the kernel does now, and no interrupt.
#[inline(always)]
fn acts_itself(context: &BtfTracePointContext, running: KernelPtr) -> bool {
    let Some(place) = PLACE.get_ptr_mut(0) else {
        return true;
    };
    // SAFETY: a map value of this CPU.
    let address = unsafe {
        write_volatile(place, context.as_ptr() as u64);
        read_volatile(place)
    };
    let Some(own) = running.follow(config!(offsets.task_stack)) else {
        return true;
    };
    let on_own_stack = address.wrapping_sub(own.0) < KERNEL_STACK_BYTES;
    on_own_stack && (!registers::has_user_mode(running) || registers::in_system_call())
}

/// Takes the waking that ended a wait; none when it was not seen.
#[inline(always)]
pub(super) fn take(wait: &Wait, began_ns: u64) -> Option<Waker> {
    // SAFETY: the value is copied out of the map at once, and a thread that comes is not woken.
    let waking = unsafe { WAKINGS.get(wait.tid) }?;
    let LastWaking { time_ns, waker } = *waking;
    // Fails when it has been removed, which happens here only.
    let _absent = WAKINGS.remove(wait.tid);
    (time_ns + EARLY_NS >= began_ns).then_some(waker)
}

/// Forgets the last waking of a thread that will not run again. It is there when its last wait was
/// left out or not sampled.
#[inline(always)]
pub(super) fn forget(tid: u32) {
    // Fails when its waker was counted.
    let _absent = WAKINGS.remove(tid);
}

/// Adds a wait to the counter of its waker.
#[inline(always)]
pub(super) fn add(
    moment: Moment,
    wait: CountKey,
    waker: Waker,
    value: WaitValue,
) -> Result<(), u32> {
    let key = WokenKey { wait, waker };
    if moment.even_epoch {
        add_wait(&WOKEN_EVEN, &key, value)
    } else {
        add_wait(&WOKEN_ODD, &key, value)
    }
}
