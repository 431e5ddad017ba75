//! Who had the CPU while wanted threads waited for one.
//!
//! Each switch notes the process that runs from now on. When a wanted thread comes back, the time from
//! when it could have gone on is shared out over the runs of that time: those of the CPU on which it goes on, where the
//! scheduler put it when it was woken, or those of the CPU that it left, where it was preempted and has moved since.
//! What a thread waited in the queue of a third CPU is put down to the runs of these. Time before the oldest run that is
//! kept is put down to nobody.
//!
//! Runs are of processes and not of threads: a CPU that goes from one thread of a process to another has one run.

use core::ptr;

use aya_ebpf::{
    bindings::{BPF_NOEXIST, task_struct},
    helpers::bpf_get_smp_processor_id,
    macros::map,
    maps::{Array, HashMap},
};
use profiler_common::{
    contention::{ContentionKey, HOLDER_IDLE, HOLDER_OUTSIDE, Runs},
    limits::{CONTENTION_ENTRIES, RUNS_OF_CPU},
    off_cpu::WAIT_PREEMPTED,
};

use super::off_cpu::{WAITS, moment_of};
use crate::{config::config, kernel::TypedPtr, task};

/// The whole of a wait.
const ONE: u64 = 1 << 16;

/// The last runs of each CPU, by its number.
#[map]
static RUNS: Array<Runs> = Array::with_max_entries(1, 0);

/// Nanoseconds of even epochs.
#[map]
static CONTENTION_EVEN: HashMap<ContentionKey, u64> =
    HashMap::with_max_entries(CONTENTION_ENTRIES, 0);

/// The same of odd epochs.
#[map]
static CONTENTION_ODD: HashMap<ContentionKey, u64> =
    HashMap::with_max_entries(CONTENTION_ENTRIES, 0);

/// The runs of this CPU; null where there are none.
///
/// Where it has none yet, `previous` has run since before the task began: no switch was missed.
#[inline(always)]
pub(super) fn of_this_cpu(previous: TypedPtr, previous_tid: u32) -> *mut Runs {
    // SAFETY: a helper without arguments.
    let Some(runs) = RUNS.get_ptr_mut(unsafe { bpf_get_smp_processor_id() }) else {
        return ptr::null_mut();
    };
    // SAFETY: a map value that only this CPU writes, while the lock of its run queue is held.
    if unsafe { (*runs).count } == 0 {
        note(runs, previous, previous_tid, 0);
    }
    runs
}

/// Notes who runs on this CPU from `now` on.
#[inline(always)]
pub(super) fn note(runs: *mut Runs, task: TypedPtr, tid: u32, now: u64) {
    if runs.is_null() {
        return;
    }
    // SAFETY: a map value that only this CPU writes, while the lock of its run queue is held.
    let runs = unsafe { &mut *runs };
    let pid = if tid == 0 { HOLDER_IDLE } else { pid_of(task) };
    let count = runs.count;
    if count != 0 && runs.at(count - 1).pid == pid {
        return;
    }
    let run = &mut runs.runs[count as usize & (RUNS_OF_CPU - 1)];
    run.began_ns = now;
    run.pid = pid;
    runs.count = count + 1;
}

/// The process of a thread that is not idle.
#[inline(always)]
fn pid_of(task: TypedPtr) -> u32 {
    if config!(pid_namespace_inum) == 0 {
        return task.member(config!(offsets.task_tgid));
    }
    task::ids(task::from_argument(task.as_ptr().cast::<task_struct>()))
        .map_or(HOLDER_OUTSIDE, |ids| ids.pid)
}

/// Puts the time for which a thread that comes back has waited for a CPU down to those who had it.
///
/// Not inlined, and told nothing but numbers: the verifier walks its loop for every state of the registers in which it
/// is called.
#[inline(never)]
pub(super) fn share_out(tid: u32, now: u64) -> u64 {
    let Some(wait) = WAITS.get_ptr_mut(tid) else {
        return 0;
    };
    // SAFETY: a map value; the thread is on its way to this CPU and nowhere else.
    let wait = unsafe { &mut *wait };
    let (ready_ns, weight_ns) = (wait.ready_ns, wait.runnable_ns);
    if weight_ns == 0 {
        return 0;
    }
    wait.runnable_ns = 0;
    // SAFETY: a helper without arguments.
    let here = unsafe { bpf_get_smp_processor_id() };
    let queue = if wait.wait == WAIT_PREEMPTED {
        wait.cpu
    } else {
        here
    };
    let Some(runs) = RUNS.get_ptr(queue) else {
        return 0;
    };
    // SAFETY: a map value; `between` says what another CPU may do to it meanwhile.
    let runs = unsafe { &*runs };
    let moment = moment_of(wait.place);
    let mut key = ContentionKey {
        pid: wait.pid,
        tid: wait.tid,
        generation: wait.generation,
        holder: 0,
        cpu: here,
        bucket: moment.bucket,
    };
    // In 2^16ths, so that the loop has no branch for it; a wait that stands for itself is not changed by it. Most do, and
    // spare the division. Kept in memory and read back, so that the verifier walks the loops once.
    let waited_ns = now.saturating_sub(ready_ns);
    let factor = if weight_ns == waited_ns {
        ONE
    } else {
        (weight_ns << 16).checked_div(waited_ns).unwrap_or(0)
    };
    // SAFETY: a map value of a thread that is on its way to this CPU.
    let factor = unsafe {
        ptr::write_volatile(&raw mut wait.runnable_ns, factor);
        ptr::read_volatile(&raw const wait.runnable_ns)
    };
    wait.runnable_ns = 0;
    // Decided outside of the loop, whose paths the verifier multiplies.
    if moment.even_epoch {
        runs.between(ready_ns, now, |pid, held_ns| {
            key.holder = pid;
            add_to(&CONTENTION_EVEN, &key, held_ns.wrapping_mul(factor) >> 16);
        });
    } else {
        runs.between(ready_ns, now, |pid, held_ns| {
            key.holder = pid;
            add_to(&CONTENTION_ODD, &key, held_ns.wrapping_mul(factor) >> 16);
        });
    }
    0
}

/// The key includes the CPU, so there is no concurrent writer. Where the table is full, nobody is known to have had the CPU.
#[inline(always)]
fn add_to(table: &HashMap<ContentionKey, u64>, key: &ContentionKey, ns: u64) {
    if let Some(value) = table.get_ptr_mut(key) {
        // SAFETY: a map value; see `add` for concurrency.
        unsafe { *value += ns };
        return;
    }
    let _full = table.insert(key, ns, u64::from(BPF_NOEXIST));
}
