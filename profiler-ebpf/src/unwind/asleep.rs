//! User stacks of threads that sleep: their memory cannot be read from here, so only their registers
//! are sent, and the agent walks the stack in the process.

use aya_ebpf::{
    bindings::task_struct, helpers::generated::bpf_ringbuf_output, macros::map, maps::Array,
};
use profiler_common::{
    config::UNWIND_TABLES,
    counter,
    header::KIND_CAPTURE,
    limits::PROGRAM_CLASSES,
    stack::{CAPTURED, SPACE_USER, StackRecord, hash_finish, hash_step},
    unwind::{
        capture::{CAPTURE_ASLEEP, CaptureHead, NO_CODE},
        frame,
        step::{self, Arch as _},
    },
};

use super::{
    capture::CAPTURES,
    registers::{self, Machine},
};
use crate::{
    config::config,
    counters::count,
    emit::{self, Urgency},
    kernel::KernelPtr,
    stack,
    task::TaskIds,
};

/// Room to build records. The agent runs the iterator once, so there is no other writer.
#[repr(C)]
pub(crate) struct Scratch {
    head: CaptureHead,
    /// Captures so far.
    captures: u64,
    pub(crate) record: StackRecord,
}

#[map]
static ASLEEP_SCRATCH: Array<Scratch> = Array::with_max_entries(1, 0);

pub(crate) fn scratch() -> Option<*mut Scratch> {
    ASLEEP_SCRATCH.get_ptr_mut(0)
}

/// Whether the task has a user stack at all.
#[inline(always)]
pub(crate) fn has_user_mode(task: KernelPtr) -> bool {
    registers::has_user_mode(task)
}

/// Sends the thread's registers and returns what its user stack is counted under.
#[inline(always)]
pub(crate) fn user_stack(
    scratch: &mut Scratch,
    task: *mut task_struct,
    ids: TaskIds,
    generation: u32,
) -> u64 {
    if config!(unwind) != UNWIND_TABLES {
        // The kernel's walker reads the stack of the running thread only.
        return mark(scratch, step::STACK_UNREADABLE);
    }
    if !registers::read_of(task, &mut scratch.head.registers) {
        return mark(scratch, step::NO_REGISTERS);
    }
    if Machine::is_compat(&scratch.head.registers) {
        return mark(scratch, step::COMPAT_PROCESS);
    }
    scratch.captures += 1;
    // No class of programs has this number, so no other capture this hash.
    let hash = CAPTURED | u64::from(PROGRAM_CLASSES) << 56 | scratch.captures & 0xff_ffff_ffff;
    let head = &mut scratch.head;
    head.header = emit::header::<CaptureHead>(KIND_CAPTURE);
    head.hash = hash;
    head.pid = ids.pid;
    head.tid = ids.tid;
    head.generation = generation;
    head.outcome = step::STACK_UNREADABLE;
    head.stack_start = 0;
    head.stack_bytes = 0;
    head.code = NO_CODE;
    head.flags = CAPTURE_ASLEEP;
    head.arrivals = arrivals(KernelPtr(task as u64));
    // SAFETY: `head` is a part of a map value of this size.
    let sent = unsafe {
        bpf_ringbuf_output(
            (&raw const CAPTURES).cast_mut().cast(),
            (&raw mut *head).cast(),
            size_of::<CaptureHead>() as u64,
            // Soon: the stack may be read only while the thread sleeps.
            Urgency::Immediate.flags(),
        )
    };
    if sent == 0 {
        count(counter::CAPTURES);
        return hash;
    }
    count(counter::CAPTURE_DROPPED);
    mark(scratch, step::STACK_UNREADABLE)
}

/// A stack that says why there is none.
#[inline(always)]
fn mark(scratch: &mut Scratch, outcome: u32) -> u64 {
    let frame = frame::error(outcome);
    scratch.record.frames[0] = frame;
    let hash = hash_finish(hash_step(config!(hash_seed) ^ u64::from(SPACE_USER), frame));
    stack::intern_user(&mut scratch.record, hash, 1);
    hash
}

/// How often a task has arrived on a CPU.
#[inline(always)]
fn arrivals(task: KernelPtr) -> u32 {
    if config!(offsets.task_arrivals) == 0 {
        return 0;
    }
    task.read(config!(offsets.task_arrivals)).unwrap_or(0)
}
