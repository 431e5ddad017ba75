//! On-CPU samples.
//!
//! Hook: perf_event on each online CPU, hardware cycles or cpu-clock. Minimum kernel 5.8 (ring
//! buffer). Cost: see docs/performance.md for a sample; a tick of an unwanted
//! task costs the filter only (about 0.1 us).

use aya_ebpf::{
    bindings::BPF_NOEXIST,
    helpers::{
        bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_get_smp_processor_id, bpf_ktime_get_ns,
    },
    macros::{map, perf_event},
    maps::{Array, HashMap},
    programs::PerfEventContext,
};
use profiler_common::{
    config::FILTER_PIDS as MODE_PIDS,
    counter,
    header::KIND_THREAD,
    limits::{COUNT_TABLE_ENTRIES, THREAD_TABLE_ENTRIES},
    on_cpu::CountKey,
    process::{ThreadRecord, ThreadState},
};

use crate::{
    config::config,
    counters::count,
    emit::{self, Urgency},
    filter,
    kernel::KernelPtr,
    stack,
    task::{self, TaskIds},
};

/// Counters of even epochs. While one table is written, the agent empties the other.
#[map]
static COUNTS_EVEN: HashMap<CountKey, u64> = HashMap::with_max_entries(COUNT_TABLE_ENTRIES, 0);

/// Counters of odd epochs.
#[map]
static COUNTS_ODD: HashMap<CountKey, u64> = HashMap::with_max_entries(COUNT_TABLE_ENTRIES, 0);

/// Threads that were announced, by tid; removed when they exit.
#[map]
pub(crate) static THREADS: HashMap<u32, ThreadState> =
    HashMap::with_max_entries(THREAD_TABLE_ENTRIES, 0);

/// `bpf_ktime_get_ns` of bucket 0, written when everything is attached; 0 before.
#[map]
static ORIGIN: Array<u64> = Array::with_max_entries(1, 0);

#[perf_event]
pub(crate) fn on_cpu(context: PerfEventContext) -> u32 {
    if let Err(counter) = try_on_cpu(&context) {
        count(counter);
    }
    // 0: the kernel does nothing more with this sample.
    0
}

#[inline(always)]
fn try_on_cpu(context: &PerfEventContext) -> Result<(), u32> {
    count(counter::TICKS);
    if bpf_get_current_pid_tgid() as u32 == 0 {
        return Ok(()); // the idle task
    }
    // SAFETY: a helper without arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    let origin = ORIGIN.get(0).copied().unwrap_or(0);
    if origin == 0 || now < origin {
        return Ok(()); // the clock has not started
    }
    let task = task::current();
    let Some(ids) = task::current_ids() else {
        // Invisible processes cannot be in the pid filter, so nothing of the target is lost.
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
    let generation = announce(task, ids)?;
    // Never zero; the check keeps the compiler's panic path, which no verifier accepts, away.
    let bucket = (now - origin)
        .checked_div(config!(bucket_ns))
        .ok_or(counter::KERNEL_READ_FAILED)?;
    let epoch = bucket
        .checked_div(config!(buckets_per_epoch))
        .ok_or(counter::KERNEL_READ_FAILED)?;
    let key = CountKey {
        pid: ids.pid,
        tid: ids.tid,
        // SAFETY: a helper without arguments.
        cpu: unsafe { bpf_get_smp_processor_id() },
        bucket: bucket as u32,
        generation,
        padding: 0,
        kernel_stack: stack::kernel_stack(context),
        user_stack: stack::user_stack(context, task, ids, generation),
    };
    if epoch & 1 == 0 {
        add(&COUNTS_EVEN, &key)
    } else {
        add(&COUNTS_ODD, &key)
    }
}

/// Adds one to the counter of `key`. The key holds the CPU, so nobody else writes it now.
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

/// Sends the thread's name and process before its first sample and after a change. Returns the
/// generation of its process.
#[inline(always)]
fn announce(task: KernelPtr, ids: TaskIds) -> Result<u32, u32> {
    let comm = bpf_get_current_comm().map_err(|_error| counter::KERNEL_READ_FAILED)?;
    let start = task::process_start(task).ok_or(counter::KERNEL_READ_FAILED)?;
    let generation = task::generation(task).ok_or(counter::KERNEL_READ_FAILED)?;
    let state = ThreadState {
        start_boottime_ns: start,
        pid: ids.pid,
        generation,
        comm,
    };
    // SAFETY: the value is copied out of the map at once.
    if let Some(known) = unsafe { THREADS.get(ids.tid) }
        && known.start_boottime_ns == start
        && known.pid == ids.pid
        && known.generation == generation
        && same_comm(&known.comm, &comm)
    {
        return Ok(generation);
    }
    let record = ThreadRecord {
        header: emit::header::<ThreadRecord>(KIND_THREAD),
        pid: ids.pid,
        tid: ids.tid,
        start_boottime_ns: start,
        comm,
        generation,
        padding: 0,
    };
    if emit::send(&record, Urgency::Immediate, counter::RING_BUFFER_FULL)
        && THREADS.insert(ids.tid, state, 0).is_err()
    {
        count(counter::THREAD_TABLE_FULL);
    }
    Ok(generation)
}

/// Compares two names as two words each: a byte loop would cost 16 branches.
#[inline(always)]
fn same_comm(left: &[u8; 16], right: &[u8; 16]) -> bool {
    u128::from_ne_bytes(*left) == u128::from_ne_bytes(*right)
}
