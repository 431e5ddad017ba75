//! Walks user stacks with the tables of `profiler_common::unwind`, for programs of every kind.
//!
//! One step is one call of a function that is not inlined, from a `bpf_loop` callback. The state
//! lies in a map value, so that the verifier sees the same registers before each step.

pub(crate) mod asleep;
mod capture;
mod known;
pub(crate) mod registers;
mod tables;
mod user_memory;

use core::ffi::c_void;

use aya_ebpf::{helpers::generated::bpf_loop, macros::map, maps::Array};
use profiler_common::{
    counter,
    limits::{CLASS_SCHEDULER, MAX_RECORD_FRAMES, MAX_STEPS, MAX_STEPS_UNDER_LOCK, WALK_CLASSES},
    stack::{SPACE_USER, StackRecord, hash_finish, hash_step, place},
    unwind::{
        capture::{CAPTURE_FOR_COMPARISON, REGISTER_WORDS},
        frame,
        process::{ANY_GENERATION, NO_MAPPINGS_SLOT, ProcessEntry},
        state::{Memory, State},
        step::{self, Arch as _},
    },
};

use crate::{
    config::config,
    counters::{count, count_many},
    maps::area_of_cpu,
    stack,
    task::TaskIds,
};
use known::{KnownWalk, LoggedMemory};
use registers::Machine;
use tables::{KernelTables, PROCESSES, REMEMBERED, Remembered, use_clock};
use user_memory::UserMemory;

/// Everything that a walk keeps.
#[repr(C)]
struct Walk {
    state: State,
    pid: u32,
    tid: u32,
    generation: u32,
    class: u32,
    hash: u64,
    /// Frames so far.
    walked: u32,
    outcome: u32,
    /// Complete stacks since the last capture for comparison.
    since_capture: u32,
    /// As in [`ProcessEntry`].
    reading: u32,
    /// Words that were read.
    words: u32,
    /// As in [`KernelTables`].
    clock: u32,
    /// Captures of this CPU so far.
    captures: u64,
    /// The kernel's `struct pt_regs` of user mode.
    saved: [u64; REGISTER_WORDS],
    record: StackRecord,
    remembered: [Remembered; REMEMBERED],
}

/// One for each class of programs that walk user stacks and may interrupt each other.
#[map]
static WALKS: Array<Walk> = Array::with_max_entries(WALK_CLASSES, 0);

/// Takes the user stack of the running task and returns its hash; 0 when it has none.
#[inline(always)]
pub(crate) fn user_stack(class: u32, ids: TaskIds, generation: u32) -> u64 {
    let Some(walk) = area_of_cpu(&WALKS, WALK_CLASSES, class) else {
        return 0;
    };
    // SAFETY: a map value of this CPU; no other program of this class runs on it now.
    let walk = unsafe { &mut *walk };
    if !registers::running_has_user_mode() || !registers::read(&mut walk.saved) {
        return 0;
    }
    Machine::begin(&walk.saved, &mut walk.state);
    walk.state.registers_used = 0;
    if walk.state.pc == 0 {
        // A thread of the kernel that borrowed the memory of a process (io_uring).
        return 0;
    }
    walk.hash = config!(hash_seed) ^ u64::from(SPACE_USER);
    walk.walked = 0;
    walk.pid = ids.pid;
    walk.tid = ids.tid;
    walk.generation = generation;
    walk.class = class;
    let known = if class == CLASS_SCHEDULER && config!(capture_every) == 0 {
        known::place(walk)
    } else {
        None
    };
    if let Some(known) = known {
        if let Some((hash, frames)) = known::find(walk, known) {
            count_many(counter::USER_FRAMES, u64::from(frames));
            return hash;
        }
        known::begin(walk, known);
    }
    push(walk, frame::code(walk.state.pc, false));
    let process = process_of(ids.pid, generation);
    walk.outcome = if Machine::is_compat(&walk.saved) {
        step::COMPAT_PROCESS
    } else if let Some(entry) = process {
        // SAFETY: a map value; the agent replaces it as a whole.
        (walk.state.slot, walk.reading) = unsafe { ((*entry).slot, (*entry).reading) };
        walk.clock = use_clock();
        // SAFETY: as above; all writers write the time.
        unsafe {
            if (*entry).used != walk.clock {
                (*entry).used = walk.clock;
            }
        }
        walk_up(walk, class, known);
        walk.outcome
    } else {
        step::PROCESS_UNKNOWN
    };
    finish(walk, process, known)
}

/// Ends the stack that was walked: with a capture, or with a mark that says why it is incomplete.
#[inline(always)]
fn finish(
    walk: &mut Walk,
    process: Option<*mut ProcessEntry>,
    known: Option<*mut KnownWalk>,
) -> u64 {
    if walk.outcome == step::COMPLETE {
        count_many(counter::USER_FRAMES, u64::from(walk.walked));
        let hash = hash_finish(walk.hash);
        let sent = stack::intern_user(&mut walk.record, hash, walk.walked);
        if let Some(known) = known
            && sent
        {
            known::remember(walk, known, hash);
        }
        let every = config!(capture_every);
        if every != 0 {
            walk.since_capture += 1;
            if walk.since_capture >= every {
                walk.since_capture = 0;
                capture::send(walk, hash, CAPTURE_FOR_COMPARISON);
            }
        }
        return hash;
    }
    if is_curable(walk.outcome, process) {
        let hash = capture::next_hash(walk);
        if capture::send(walk, hash, 0) {
            count(counter::CAPTURES);
            return hash;
        }
        count(counter::CAPTURE_DROPPED);
    }
    count_many(counter::USER_FRAMES, u64::from(walk.walked));
    push(walk, frame::error(walk.outcome));
    let hash = hash_finish(walk.hash);
    stack::intern_user(&mut walk.record, hash, walk.walked);
    hash
}

/// Whether the agent may complete this stack, because it can load what the kernel did not have.
#[inline(always)]
fn is_curable(outcome: u32, process: Option<*mut ProcessEntry>) -> bool {
    if outcome == step::TABLE_MISSING || outcome == step::PROCESS_UNKNOWN {
        return true;
    }
    let Some(process) = process else { return false };
    // SAFETY: a map value; CPUs that count down at once send a few captures more.
    let process = unsafe { &mut *process };
    if outcome == step::NO_MAPPING && process.slot != NO_MAPPINGS_SLOT && process.captures_left > 0
    {
        process.captures_left -= 1;
        return true;
    }
    false
}

/// The agent's entry for a process, if it is about the program that runs now.
#[inline(always)]
fn process_of(pid: u32, generation: u32) -> Option<*mut ProcessEntry> {
    let entry = PROCESSES.get_ptr_mut(pid)?;
    // SAFETY: a map value; the agent replaces it as a whole.
    let known = unsafe { (*entry).generation };
    if known == generation || known == ANY_GENERATION {
        Some(entry)
    } else {
        None
    }
}

/// Forgets the mappings of a process: it runs another program now, or none.
#[inline(always)]
pub(crate) fn forget(pid: u32) {
    // Fails when nothing was known.
    let _absent = PROCESSES.remove(pid);
}

#[inline(always)]
fn walk_up(walk: &mut Walk, class: u32, known: Option<*mut KnownWalk>) {
    walk.outcome = step::TOO_DEEP;
    walk.words = 0;
    if let Some(known) = known {
        let mut on_stack = LoggedMemory { walk, known };
        // SAFETY: the callback gets the pointer to `on_stack`, which outlives the call.
        unsafe {
            bpf_loop(
                MAX_STEPS_UNDER_LOCK,
                next_logged_frame as *mut c_void,
                (&raw mut on_stack).cast(),
                0,
            )
        };
        return;
    }
    // A constant of the program, not what the map value says: the verifier would follow both.
    let most = if class == CLASS_SCHEDULER {
        MAX_STEPS_UNDER_LOCK
    } else {
        MAX_STEPS
    };
    let mut on_stack = OnStack { walk };
    // SAFETY: the callback gets the pointer to `on_stack`, which outlives the call.
    unsafe {
        bpf_loop(
            most,
            next_frame as *mut c_void,
            (&raw mut on_stack).cast(),
            0,
        )
    };
}

/// What the loop's callback is given: the helper takes pointers to the program's stack only.
struct OnStack {
    walk: *mut Walk,
}

extern "C" fn next_frame(_index: u64, context: *mut c_void) -> u64 {
    // SAFETY: the pointer that `walk_up` gave.
    let on_stack = unsafe { &*context.cast::<OnStack>() };
    advance(on_stack.walk) & 1
}

extern "C" fn next_logged_frame(_index: u64, context: *mut c_void) -> u64 {
    // SAFETY: the pointer that `walk_up` gave.
    let on_stack = unsafe { &*context.cast::<LoggedMemory>() };
    advance_logged(on_stack.walk, on_stack.known) & 1
}

#[inline(never)]
fn advance(walk: *mut Walk) -> u64 {
    advance_in(walk, &UserMemory)
}

#[inline(never)]
fn advance_logged(walk: *mut Walk, known: *mut KnownWalk) -> u64 {
    advance_in(walk, &LoggedMemory { walk, known })
}

/// Goes one frame up; 1 when there is nothing more to do.
#[inline(always)]
fn advance_in(walk: *mut Walk, memory: &impl Memory) -> u64 {
    // SAFETY: a map value of this CPU.
    let (remembered, reading, clock) =
        unsafe { (&raw mut (*walk).remembered, (*walk).reading, (*walk).clock) };
    let tables = KernelTables {
        remembered,
        reading,
        clock,
    };
    // SAFETY: as above; neither the memory nor the tables have anything of the state.
    let state = unsafe { &mut (*walk).state };
    let outcome = step::step::<Machine, _, _>(memory, &tables, state);
    // SAFETY: as above.
    let walk = unsafe { &mut *walk };
    if outcome != step::CONTINUE {
        walk.outcome = outcome;
        return 1;
    }
    let interrupted = walk.state.interrupted & 1 == 1;
    push(walk, frame::code(walk.state.pc, interrupted));
    0
}

/// Writes a frame: the first ones in order, the later ones into a ring of the last ones.
#[inline(always)]
fn push(walk: &mut Walk, frame: u64) {
    let index = place(walk.walked as usize) & (MAX_RECORD_FRAMES - 1);
    // SAFETY: masked to the length of the array.
    unsafe { *walk.record.frames.get_unchecked_mut(index) = frame };
    walk.hash = hash_step(walk.hash, frame);
    walk.walked += 1;
}
