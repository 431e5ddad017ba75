//! Threads are announced to the agent once, before what is counted for them.

use aya_ebpf::{helpers::bpf_get_current_comm, macros::map, maps::HashMap};
use profiler_common::{
    counter,
    header::KIND_THREAD,
    limits::{COMM_BYTES, THREAD_TABLE_ENTRIES},
    process::{ThreadRecord, ThreadState},
};

use crate::{
    counters::count,
    emit::{self, Urgency},
    kernel::KernelPtr,
    task::{self, TaskIds},
};

/// Threads that were announced, by tid; removed when they exit.
#[map]
pub(crate) static THREADS: HashMap<u32, ThreadState> =
    HashMap::with_max_entries(THREAD_TABLE_ENTRIES, 0);

/// Sends the thread's name and process before its first sample and after a change. Returns the
/// generation of its process.
#[inline(always)]
pub(crate) fn announce(task: KernelPtr, ids: TaskIds, urgency: Urgency) -> Result<u32, u32> {
    let comm = bpf_get_current_comm().map_err(|_error| counter::KERNEL_READ_FAILED)?;
    announce_as(task, ids, comm, urgency)
}

/// The same for any thread, whose name is given.
#[inline(always)]
pub(crate) fn announce_as(
    task: KernelPtr,
    ids: TaskIds,
    comm: [u8; COMM_BYTES],
    urgency: Urgency,
) -> Result<u32, u32> {
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
    if emit::send(&record, urgency, counter::RING_BUFFER_FULL)
        && THREADS.insert(ids.tid, state, 0).is_err()
    {
        count(counter::THREAD_TABLE_FULL);
    }
    Ok(generation)
}

/// Compares two names as two words each: a byte loop would cost 16 branches.
#[inline(always)]
pub(crate) fn same_comm(left: &[u8; 16], right: &[u8; 16]) -> bool {
    u128::from_ne_bytes(*left) == u128::from_ne_bytes(*right)
}
