//! Event loops: how long threads stay away from epoll.
//!
//! Hooks (minimum kernel 5.11 for the task's typed pointer):
//! - the tracepoints `syscalls:sys_enter_NAME` and `syscalls:sys_exit_NAME` of `epoll_wait` (not on
//!   arm64), `epoll_pwait` and `epoll_pwait2` (5.11). The programs run at these calls alone, unlike
//!   those of `sys_enter`; while one of these tracepoints is in use the kernel looks at the number of
//!   every call.
//! - `sched_process_exit(struct task_struct *p)`
//!
//! A turn begins when epoll returns without an error, also when its time was over: timers are
//! served then. It ends with the next call. Calls of 32-bit programs are not seen.
//!
//! Cost: see docs/performance.md. Expected: some ten thousand calls a second and CPU.

use core::hint::black_box;

use aya_ebpf::{
    EbpfContext as _,
    bindings::{BPF_F_NO_PREALLOC, BPF_NOEXIST, task_struct},
    helpers::{
        bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_ktime_get_ns,
        generated::bpf_get_current_task_btf,
    },
    macros::{btf_tracepoint, map, tracepoint},
    maps::{Array, HashMap},
    programs::{BtfTracePointContext, TracePointContext},
};
use profiler_common::{
    counter,
    event_loop::{LoopThread, StallRecord, TURN_BUCKETS, turn_bucket},
    header::{KIND_LOOP_THREAD, KIND_STALL},
    limits::LOOP_TABLE_ENTRIES,
};

use crate::{
    config::{config, leave_at_floor},
    counters::count,
    emit::{self, Urgency},
    filter,
    kernel::TypedPtr,
    maps::RECORDS,
    task, timeline,
};

/// A thread's name is looked at once in this many turns, and in stalls.
const TURNS_A_NAME: u64 = 64;

/// Wanted threads that have returned from epoll, by their numbers in the initial PID namespace.
/// Memory is taken for those that are there.
#[map]
static LOOPS: HashMap<u32, LoopThread> =
    HashMap::with_max_entries(LOOP_TABLE_ENTRIES, BPF_F_NO_PREALLOC);

/// A thread without any turn: an entry is larger than the stack of a program.
#[map]
static NEW_LOOP: Array<LoopThread> = Array::with_max_entries(1, 0);

/// At the entry of each of the calls.
#[tracepoint]
pub(crate) fn event_loop_call(_context: TracePointContext) -> u32 {
    leave_at_floor!();
    end_turn();
    0
}

/// At the return from each of them: common fields, the number of the call, its result.
#[tracepoint]
pub(crate) fn event_loop_return(context: TracePointContext) -> u32 {
    leave_at_floor!();
    // SAFETY: the third word of the tracepoint's record, which the verifier checks.
    let result = unsafe { context.as_ptr().cast::<i64>().add(2).read() };
    if let Err(counter) = begin_turn(result) {
        count(counter);
    }
    0
}

/// Sends what a thread has counted and forgets it.
#[btf_tracepoint(function = "sched_process_exit")]
pub(crate) fn event_loop_exit(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let task = TypedPtr::new(context.arg::<*const task_struct>(0));
    let tid: u32 = task.member(config!(offsets.task_pid));
    let Some(thread) = LOOPS.get_ptr_mut(tid) else {
        return 0;
    };
    // SAFETY: a map value of the thread that runs here.
    let thread = unsafe { &mut *thread };
    // The header says as well that the entry in the table is the same as the record.
    thread.header = emit::header::<LoopThread>(KIND_LOOP_THREAD);
    if RECORDS
        .output::<LoopThread>(&*thread, Urgency::Polled.flags())
        .is_err()
    {
        count(counter::LOOP_RECORD_DROPPED);
    }
    // Fails never: it was there.
    let _absent = LOOPS.remove(tid);
    0
}

/// Counts the turn that ends now, if one has begun. Threads that are not wanted cost the lookup alone.
#[inline(always)]
fn end_turn() {
    let Some(thread) = LOOPS.get_ptr_mut(bpf_get_current_pid_tgid() as u32) else {
        return; // unwanted, or it has not returned yet
    };
    // SAFETY: a map value that only its thread writes.
    let thread = unsafe { &mut *thread };
    let began_ns = thread.began_ns;
    // SAFETY: a helper without arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    if timeline::origin(now).is_none() {
        return; // the end: what is not over stays so
    }
    thread.began_ns = 0;
    if began_ns == 0 || now < began_ns || thread.generation != current_generation() {
        return;
    }
    let turn_ns = now - began_ns;
    thread.turns += 1;
    thread.turns_ns += turn_ns;
    if turn_ns > thread.longest_ns {
        thread.longest_ns = turn_ns;
    }
    // The compiler knows that the bucket exists and would leave the mask out; the verifier does not.
    let bucket = black_box(turn_bucket(turn_ns)) & (TURN_BUCKETS - 1);
    if let Some(slot) = thread.counts.get_mut(bucket) {
        *slot += 1;
    }
    if turn_ns >= config!(stall_ns) {
        thread.stalls += 1;
        thread.stalls_ns += turn_ns;
        thread.comm = bpf_get_current_comm().unwrap_or(thread.comm);
        let record = StallRecord {
            header: emit::header::<StallRecord>(KIND_STALL),
            pid: thread.pid,
            tid: thread.tid,
            began_ns,
            duration_ns: turn_ns,
            comm: thread.comm,
        };
        emit::send(&record, Urgency::Polled, counter::LOOP_RECORD_DROPPED);
    }
}

/// Notes that a wanted thread has returned from epoll.
#[inline(always)]
fn begin_turn(result: i64) -> Result<(), u32> {
    // After an error nothing is served; an interrupted call is made again.
    if result < 0 {
        return Ok(());
    }
    let global_tid = bpf_get_current_pid_tgid() as u32;
    // SAFETY: a helper without arguments.
    let task = TypedPtr::new(unsafe { bpf_get_current_task_btf() });
    let cgroups: u64 = task.member(config!(offsets.task_cgroups));
    let thread = match LOOPS.get_ptr_mut(global_tid) {
        // SAFETY: a map value that only its thread writes.
        Some(thread) if unsafe { (*thread).cgroups } == cgroups => thread,
        _ => {
            if !meet(task, global_tid, cgroups)? {
                return Ok(());
            }
            let Some(thread) = LOOPS.get_ptr_mut(global_tid) else {
                return Ok(()); // never: it was met
            };
            thread
        }
    };
    // SAFETY: as above.
    let thread = unsafe { &mut *thread };
    // SAFETY: a helper without arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    if timeline::origin(now).is_none() {
        return Ok(());
    }
    if thread.turns.is_multiple_of(TURNS_A_NAME) {
        thread.comm = bpf_get_current_comm().map_err(|_error| counter::KERNEL_READ_FAILED)?;
    }
    thread.generation = task.member(config!(offsets.task_self_exec_id));
    thread.began_ns = now;
    Ok(())
}

/// Makes or renews the entry of a thread, if it is wanted.
#[inline(always)]
fn meet(task: TypedPtr, global_tid: u32, cgroups: u64) -> Result<bool, u32> {
    let Some(ids) = task::current_ids() else {
        return Ok(false); // outside the agent's PID namespace
    };
    if !filter::wants(task.untyped(), ids) {
        return Ok(false);
    }
    if LOOPS.get_ptr(global_tid).is_none() {
        let Some(new) = NEW_LOOP.get_ptr(0) else {
            return Ok(false); // never: an array has all its entries
        };
        #[expect(
            clippy::needless_borrows_for_generic_args,
            reason = "a copy of the entry is larger than the stack"
        )]
        LOOPS
            // SAFETY: a map value that is never written.
            .insert(global_tid, unsafe { &*new }, u64::from(BPF_NOEXIST))
            .map_err(|_error| counter::LOOP_TABLE_FULL)?;
    }
    let Some(thread) = LOOPS.get_ptr_mut(global_tid) else {
        return Ok(false); // never: it was made
    };
    // SAFETY: a map value that only its thread writes.
    let thread = unsafe { &mut *thread };
    thread.cgroups = cgroups;
    thread.tid = ids.tid;
    thread.pid = ids.pid;
    Ok(true)
}

/// Which program the running process runs.
#[inline(always)]
fn current_generation() -> u32 {
    // SAFETY: a helper without arguments.
    TypedPtr::new(unsafe { bpf_get_current_task_btf() }).member(config!(offsets.task_self_exec_id))
}
