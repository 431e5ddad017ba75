//! Time on the CPU, measured at switches and shared out over the samples inside.
//!
//! Hooks, beside those of waits (minimum kernel 5.15 with BTF):
//! - `sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int
//!   prev_state)`, thousands of events a second and CPU
//! - perf_event on each online CPU, as for on-CPU samples
//!
//! A sample gets the time since the slice began or since the sample before it. What remains when the
//! thread leaves goes to its last sample; a slice without a sample is counted as such. Interrupts
//! count for the thread that they interrupt.
//!
//! What runs is kept for each CPU, so no switch looks a table up for it. A non-maskable interrupt
//! may take a sample inside the switch; it leaves the slice alone, and the switch counts the time.
//!
//! Cost: the filter for each thread that comes, and a counter for each wanted one that leaves.

use core::ptr::{read_volatile, write_volatile};

use aya_ebpf::{
    bindings::{BPF_NOEXIST, task_struct},
    helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    macros::{btf_tracepoint, map, perf_event},
    maps::{HashMap, PerCpuArray},
    programs::{BtfTracePointContext, PerfEventContext},
};
use profiler_common::{
    counter,
    limits::{CLASS_SCHEDULER, SLICE_COUNT_ENTRIES},
    off_cpu::{SWITCH_STATE_LAST, WAIT_NONE},
    on_cpu::CountKey,
    wall::{NOT_SAMPLED, Slice, SliceValue},
};

use super::{off_cpu, on_cpu};
use crate::{
    config::{config, leave_at_floor},
    counters::count,
    emit::Urgency,
    filter,
    kernel::{KernelPtr, TypedPtr},
    task::{self, TaskIds},
    threads::{THREADS, announce},
    timeline::{self, Moment},
};

/// Bit of `task_struct.__state` of a thread that will not run again.
const TASK_DEAD: u32 = 0x80;

/// Time on the CPU in even epochs, as `COUNTS_EVEN`.
#[map]
static SLICES_EVEN: HashMap<CountKey, SliceValue> =
    HashMap::with_max_entries(SLICE_COUNT_ENTRIES, 0);

/// The same in odd epochs.
#[map]
static SLICES_ODD: HashMap<CountKey, SliceValue> =
    HashMap::with_max_entries(SLICE_COUNT_ENTRIES, 0);

/// What runs on each CPU; the agent reads it at the end.
#[map]
static RUNNING: PerCpuArray<Slice> = PerCpuArray::with_max_entries(1, 0);

#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn wall_switch(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    // SAFETY: a helper without arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    let Some(origin) = timeline::origin(now) else {
        return 0;
    };
    let Some(slice) = RUNNING.get_ptr_mut(0) else {
        return 0;
    };
    // SAFETY: a map value of this CPU; a sample that interrupts looks at `busy` first.
    unsafe { write_volatile(&raw mut (*slice).busy, 1) };
    if let Err(counter) = try_leave(&context, slice, now, origin) {
        count(counter);
    }
    if let Err(counter) = try_come(&context, slice, now) {
        count(counter);
    }
    // SAFETY: as above.
    unsafe { write_volatile(&raw mut (*slice).busy, 0) };
    0
}

/// Counts the rest of the slice that ends now.
#[inline(always)]
fn try_leave(
    context: &BtfTracePointContext,
    slice: *mut Slice,
    now: u64,
    origin: u64,
) -> Result<(), u32> {
    let task = task::current();
    // SAFETY: a map value of this CPU, see `wall_switch`.
    let slice = unsafe { &mut *slice };
    if slice.counted_ns == 0 {
        begin(slice, task, origin)?; // it has run since before the start
    }
    let global_tid: u32 = task
        .read(config!(offsets.task_pid))
        .ok_or(counter::KERNEL_READ_FAILED)?;
    if slice.global_tid != global_tid && global_tid != 0 {
        // Some hosts hide switches away from threads of their own. They run shortly, so the thread
        // that leaves now has come at about the time when the hidden one came.
        let came_ns = off_cpu::end_unreported(global_tid, slice.counted_ns, now, origin);
        begin(slice, task, came_ns)?;
    }
    if slice.wanted == 0 {
        return Ok(());
    }
    let dead = u64::from(state(context, task)? & TASK_DEAD != 0);
    match count_slice(slice, dead, now, origin) {
        0 => Ok(()),
        failed => Err(failed as u32 - 1),
    }
}

/// Counts what the slice has had since the last sample. Returns the counter of what failed, counted
/// from 1.
///
/// Not inlined: what it sends and its key are large, and the stack is small.
#[inline(never)]
fn count_slice(slice: *mut Slice, dead: u64, now: u64, origin: u64) -> u64 {
    // SAFETY: a map value of this CPU, see `wall_switch`.
    match try_count_slice(unsafe { &mut *slice }, dead != 0, now, origin) {
        Ok(()) => 0,
        Err(counter) => u64::from(counter) + 1,
    }
}

#[inline(always)]
fn try_count_slice(slice: &mut Slice, dead: bool, now: u64, origin: u64) -> Result<(), u32> {
    let ids = TaskIds {
        pid: slice.pid,
        tid: slice.tid,
    };
    let generation = announce(task::current(), ids, Urgency::Polled)?;
    if dead {
        // It was forgotten when it exited, and has just been announced again.
        let _absent = THREADS.remove(slice.tid);
    }
    let moment = Moment::of(now, origin, CLASS_SCHEDULER)?;
    let sampled = slice.kind == WAIT_NONE;
    let key = CountKey {
        pid: slice.pid,
        tid: slice.tid,
        // SAFETY: a helper without arguments.
        cpu: unsafe { bpf_get_smp_processor_id() },
        bucket: moment.bucket,
        generation: if sampled {
            slice.generation
        } else {
            generation
        },
        wait: slice.kind,
        kernel_stack: slice.kernel_stack,
        user_stack: slice.user_stack,
    };
    let value = SliceValue {
        count: u64::from(!sampled),
        ns: now.saturating_sub(slice.counted_ns),
    };
    add(moment, &key, value)
}

/// Notes the thread that runs from now on.
#[inline(always)]
fn try_come(context: &BtfTracePointContext, slice: *mut Slice, now: u64) -> Result<(), u32> {
    let next = TypedPtr::new(context.arg::<*const task_struct>(2));
    // SAFETY: a map value of this CPU, see `wall_switch`.
    let slice = unsafe { &mut *slice };
    if filter::may_want(next) {
        return begin(slice, next.untyped(), now);
    }
    nobody(slice, now);
    slice.global_tid = next.member(config!(offsets.task_pid));
    Ok(())
}

/// From `began_ns` on a thread has run that is not wanted.
#[inline(always)]
fn nobody(slice: &mut Slice, began_ns: u64) {
    slice.counted_ns = began_ns;
    slice.kernel_stack = 0;
    slice.user_stack = 0;
    slice.kind = NOT_SAMPLED;
    slice.wanted = 0;
}

/// A thread has run since `began_ns`. On failure no thread is known to run.
#[inline(always)]
fn begin(slice: &mut Slice, task: KernelPtr, began_ns: u64) -> Result<(), u32> {
    nobody(slice, began_ns);
    slice.global_tid = task
        .read(config!(offsets.task_pid))
        .ok_or(counter::KERNEL_READ_FAILED)?;
    if slice.global_tid == 0 {
        return Ok(()); // the idle task
    }
    // The programs of waits and samples count the threads that the agent cannot see.
    let Some(ids) = task::ids(task) else {
        return Ok(());
    };
    slice.pid = ids.pid;
    slice.tid = ids.tid;
    slice.generation = task::generation(task).ok_or(counter::KERNEL_READ_FAILED)?;
    slice.wanted = u32::from(filter::wants(task, ids));
    Ok(())
}

#[perf_event]
pub(crate) fn wall_sample(context: PerfEventContext) -> u32 {
    leave_at_floor!();
    if let Err(counter) = try_sample(&context) {
        count(counter);
    }
    // 0: the kernel does nothing more with this sample.
    0
}

/// Counts the time until now for the stack that is found.
#[inline(always)]
fn try_sample(context: &PerfEventContext) -> Result<(), u32> {
    let Some(tick) = on_cpu::wanted()? else {
        return Ok(());
    };
    let Some(slice) = RUNNING.get_ptr_mut(0) else {
        return Ok(());
    };
    // SAFETY: a map value of this CPU; the switch that was interrupted has set `busy`.
    if unsafe { read_volatile(&raw const (*slice).busy) } != 0 {
        return Ok(());
    }
    let global_tid: u32 = tick
        .task
        .read(config!(offsets.task_pid))
        .ok_or(counter::KERNEL_READ_FAILED)?;
    // SAFETY: a map value of this CPU; no switch can happen now, and none was interrupted.
    let slice = unsafe { &mut *slice };
    if slice.counted_ns == 0 {
        begin(slice, tick.task, tick.origin)?;
    }
    if slice.global_tid != global_tid {
        return Ok(()); // between the tracepoint and the switch itself
    }
    if slice.wanted == 0 {
        // It became a target by its exec; before, its time was not asked for.
        slice.wanted = 1;
        slice.pid = tick.ids.pid;
        slice.tid = tick.ids.tid;
        slice.counted_ns = tick.now;
    }
    let (key, moment) = on_cpu::sample(context, tick)?;
    let value = SliceValue {
        count: 1,
        ns: tick.now.saturating_sub(slice.counted_ns),
    };
    add(moment, &key, value)?;
    slice.counted_ns = tick.now;
    slice.kernel_stack = key.kernel_stack;
    slice.user_stack = key.user_stack;
    slice.generation = key.generation;
    slice.kind = WAIT_NONE;
    Ok(())
}

/// Adds to the counter of `key`. The key holds the CPU, and the switch and the samples of one CPU
/// do not count at the same time.
#[inline(always)]
fn add(moment: Moment, key: &CountKey, more: SliceValue) -> Result<(), u32> {
    if moment.even_epoch {
        add_to(&SLICES_EVEN, key, more)
    } else {
        add_to(&SLICES_ODD, key, more)
    }
}

#[inline(always)]
fn add_to(
    table: &HashMap<CountKey, SliceValue>,
    key: &CountKey,
    more: SliceValue,
) -> Result<(), u32> {
    if let Some(value) = table.get_ptr_mut(key) {
        // SAFETY: a map value; see `add` for concurrency.
        let value = unsafe { &mut *value };
        value.count += more.count;
        value.ns += more.ns;
        return Ok(());
    }
    table
        .insert(key, more, u64::from(BPF_NOEXIST))
        .map_err(|_error| counter::COUNT_TABLE_FULL)
}

/// The state of the task that leaves.
#[inline(always)]
fn state(context: &BtfTracePointContext, task: KernelPtr) -> Result<u32, u32> {
    if config!(offsets.switch_arguments) == SWITCH_STATE_LAST {
        return Ok(context.arg::<u64>(3) as u32);
    }
    task.read(config!(offsets.task_state))
        .ok_or(counter::KERNEL_READ_FAILED)
}
