//! On-CPU samples.
//!
//! Hook: perf_event on each online CPU, hardware cycles or cpu-clock. Minimum kernel 5.8 (ring
//! buffer). Cost: see docs/performance.md for a sample; a tick of an unwanted
//! task costs the filter only (about 0.1 us).

use aya_ebpf::{
    bindings::BPF_NOEXIST,
    helpers::{bpf_get_current_pid_tgid, bpf_get_smp_processor_id, bpf_ktime_get_ns},
    macros::{map, perf_event},
    maps::HashMap,
    programs::PerfEventContext,
};
use profiler_common::{
    config::FILTER_PIDS as MODE_PIDS,
    counter,
    limits::{CLASS_PERF_EVENT, COUNT_TABLE_ENTRIES},
    off_cpu::WAIT_NONE,
    on_cpu::CountKey,
};

use crate::{
    config::{config, leave_at_floor},
    counters::count,
    emit::Urgency,
    filter,
    kernel::KernelPtr,
    stack,
    task::{self, TaskIds},
    threads::announce,
    timeline::{self, Moment},
};

/// Counters of even epochs. While one table is written, the agent empties the other.
#[map]
static COUNTS_EVEN: HashMap<CountKey, u64> = HashMap::with_max_entries(COUNT_TABLE_ENTRIES, 0);

/// Counters of odd epochs.
#[map]
static COUNTS_ODD: HashMap<CountKey, u64> = HashMap::with_max_entries(COUNT_TABLE_ENTRIES, 0);

#[perf_event]
pub(crate) fn on_cpu(context: PerfEventContext) -> u32 {
    leave_at_floor!();
    if let Err(counter) = try_on_cpu(&context) {
        count(counter);
    }
    // 0: the kernel does nothing more with this sample.
    0
}

#[inline(always)]
fn try_on_cpu(context: &PerfEventContext) -> Result<(), u32> {
    let Some(tick) = wanted()? else {
        return Ok(());
    };
    let (key, moment) = sample(context, tick)?;
    if moment.even_epoch {
        add(&COUNTS_EVEN, &key)
    } else {
        add(&COUNTS_ODD, &key)
    }
}

/// A tick that hit a target.
#[derive(Clone, Copy)]
pub(super) struct Tick {
    pub(super) now: u64,
    pub(super) origin: u64,
    pub(super) task: KernelPtr,
    pub(super) ids: TaskIds,
}

/// Returns the interrupted task if it is a target.
#[inline(always)]
pub(super) fn wanted() -> Result<Option<Tick>, u32> {
    count(counter::TICKS);
    if bpf_get_current_pid_tgid() as u32 == 0 {
        return Ok(None); // the idle task
    }
    // SAFETY: a helper without arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    let Some(origin) = timeline::origin(now) else {
        return Ok(None); // the clock has not started
    };
    let task = task::current();
    let Some(ids) = task::current_ids() else {
        // Invisible processes cannot be in the pid filter, so nothing of the target is lost.
        return if config!(filter) == MODE_PIDS {
            Ok(None)
        } else {
            Err(counter::PID_NOT_VISIBLE)
        };
    };
    if !filter::wants(task, ids) {
        return Ok(None);
    }
    Ok(Some(Tick {
        now,
        origin,
        task,
        ids,
    }))
}

/// Takes the stacks of a tick that hit a target.
#[inline(always)]
pub(super) fn sample(context: &PerfEventContext, tick: Tick) -> Result<(CountKey, Moment), u32> {
    let Tick {
        now,
        origin,
        task,
        ids,
    } = tick;
    count(counter::SAMPLES);
    let generation = announce(task, ids, Urgency::Immediate)?;
    let moment = Moment::of(now, origin, CLASS_PERF_EVENT)?;
    let key = CountKey {
        pid: ids.pid,
        tid: ids.tid,
        // SAFETY: a helper without arguments.
        cpu: unsafe { bpf_get_smp_processor_id() },
        bucket: moment.bucket,
        generation,
        wait: WAIT_NONE,
        kernel_stack: if stack::in_user_mode(context) {
            0
        } else {
            stack::kernel_stack(context, CLASS_PERF_EVENT)
        },
        user_stack: stack::user_stack(context, CLASS_PERF_EVENT, ids, generation),
    };
    Ok((key, moment))
}

/// Adds one to the counter of `key`. The key includes the CPU, so there is no concurrent writer.
#[inline(always)]
fn add(table: &HashMap<CountKey, u64>, key: &CountKey) -> Result<(), u32> {
    if let Some(value) = table.get_ptr_mut(key) {
        // SAFETY: a map value; see above for concurrency.
        unsafe { *value += 1 };
        return Ok(());
    }
    table
        .insert(key, 1, u64::from(BPF_NOEXIST))
        .map_err(|_error| counter::COUNT_TABLE_FULL)
}
