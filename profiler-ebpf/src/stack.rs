//! Where stacks come from, and how they are sent: once, later samples refer to one by its hash.
//!
//! Kernel stacks are walked by the kernel's own walker (`bpf_get_stack`). User stacks are walked
//! with tables ([`crate::unwind`]), or by the kernel's frame-pointer walker where the agent is set to it or the
//! kernel has no `bpf_loop`.

use aya_ebpf::{
    EbpfContext,
    bindings::{BPF_F_USER_STACK, task_struct},
    helpers::generated::{bpf_get_stack, bpf_get_task_stack, bpf_ringbuf_output},
    macros::map,
    maps::{Array, HashMap},
    programs::PerfEventContext,
};
use profiler_common::{
    config::UNWIND_TABLES,
    counter,
    header::{KIND_STACK, RecordHeader},
    limits::{
        MAX_FRAME_POINTER_FRAMES, MAX_KERNEL_FRAMES, MAX_RECORD_FRAMES, PROGRAM_CLASSES,
        STACK_TABLE_ENTRIES,
    },
    stack::{SPACE_KERNEL, SPACE_USER, StackHead, StackRecord, hash_finish, hash_step},
    unwind::{
        frame::{self, ADDRESS_BITS},
        step::TOO_DEEP,
    },
};

use crate::{
    config::config,
    counters::count,
    emit,
    kernel::TypedPtr,
    maps::{RECORDS, area_of_cpu},
    task::TaskIds,
    unwind,
};

/// Stacks that were sent, by hash.
#[map]
static STACKS: HashMap<u64, u8> = HashMap::with_max_entries(STACK_TABLE_ENTRIES, 0);

/// Room to build a record: 4 KiB do not fit the stack of a BPF program. One for each class of
/// programs that may interrupt each other.
#[map]
static STACK_SCRATCH: Array<StackRecord> = Array::with_max_entries(PROGRAM_CLASSES, 0);

/// Whether the tick hit user mode, so that there is no kernel stack.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn in_user_mode(context: &PerfEventContext) -> bool {
    // SAFETY: the verifier checks accesses to the context.
    unsafe { (*context.ctx).regs.cs & 3 == 3 }
}

/// Whether the tick hit user mode (EL0), so that there is no kernel stack.
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn in_user_mode(context: &PerfEventContext) -> bool {
    // SAFETY: the verifier checks accesses to the context.
    unsafe { (*context.ctx).regs.pstate & 0xf == 0 }
}

/// Takes the kernel stack and returns its hash; 0 when there is none.
#[inline(always)]
pub(crate) fn kernel_stack(context: &impl EbpfContext, class: u32) -> u64 {
    take(
        context,
        class,
        SPACE_KERNEL,
        0,
        MAX_KERNEL_FRAMES,
        counter::KERNEL_STACK_UNREADABLE,
    )
}

/// Takes the kernel stack of a task that does not run and returns its hash; 0 when there is none.
/// It begins where the task left the CPU, so nothing of this program is walked.
#[inline(always)]
pub(crate) fn kernel_stack_of(task: TypedPtr, class: u32) -> u64 {
    let Some(record) = scratch(class) else {
        return 0;
    };
    kernel_stack_into(task.as_ptr().cast_mut().cast(), record)
}

/// Room of this CPU to build a record, for one class of programs.
#[inline(always)]
pub(crate) fn scratch(class: u32) -> Option<*mut StackRecord> {
    area_of_cpu(&STACK_SCRATCH, PROGRAM_CLASSES, class)
}

/// Whether the agent was told of the stack with this hash.
#[inline(always)]
pub(crate) fn was_sent(hash: u64) -> bool {
    // SAFETY: the value is not read.
    unsafe { STACKS.get(hash) }.is_some()
}

/// The same; `record` is room for it.
#[inline(always)]
pub(crate) fn kernel_stack_into(task: *mut task_struct, record: *mut StackRecord) -> u64 {
    // SAFETY: `record` points to a map value of this size, and the helper writes `size` bytes at
    // most.
    let written = unsafe {
        bpf_get_task_stack(
            task,
            (&raw mut (*record).frames).cast(),
            (MAX_KERNEL_FRAMES * size_of::<u64>()) as u32,
            0,
        )
    };
    intern(
        record,
        SPACE_KERNEL,
        written,
        MAX_KERNEL_FRAMES,
        counter::KERNEL_STACK_UNREADABLE,
    )
}

/// Takes the user stack of the running task and returns its hash; 0 when there is none (a kernel
/// thread) or when it cannot be read, which is counted.
#[inline(always)]
pub(crate) fn user_stack(
    context: &impl EbpfContext,
    class: u32,
    ids: TaskIds,
    generation: u32,
) -> u64 {
    if config!(unwind) == UNWIND_TABLES {
        return unwind::user_stack(class, ids, generation);
    }
    take(
        context,
        class,
        SPACE_USER,
        u64::from(BPF_F_USER_STACK),
        MAX_FRAME_POINTER_FRAMES,
        counter::USER_STACK_UNREADABLE,
    )
}

#[inline(always)]
fn take(
    context: &impl EbpfContext,
    class: u32,
    space: u32,
    flags: u64,
    most: usize,
    failed: u32,
) -> u64 {
    let Some(record) = scratch(class) else {
        return 0;
    };
    // SAFETY: `record` points to a map value of this size, and the helper writes `size` bytes at
    // most.
    let written = unsafe {
        bpf_get_stack(
            context.as_ptr(),
            (&raw mut (*record).frames).cast(),
            (most * size_of::<u64>()) as u32,
            flags,
        )
    };
    intern(record, space, written, most, failed)
}

/// Sends a stack of `written` bytes unless it was sent before, and returns its hash.
#[inline(always)]
fn intern(record: *mut StackRecord, space: u32, written: i64, most: usize, failed: u32) -> u64 {
    if written < 0 {
        count(failed);
        return 0;
    }
    let frames = (written as usize / size_of::<u64>()) & (most | 1);
    if frames == 0 {
        return 0;
    }
    // SAFETY: `record` is a map value of this CPU.
    let kept = unsafe { &raw mut (*record).head.frames };
    // SAFETY: as above.
    unsafe { kept.write_volatile(frames as u32) };
    let mut hash = config!(hash_seed) ^ u64::from(space);
    for index in 0..most {
        if index >= frames {
            break;
        }
        // SAFETY: index < most < the length of the array.
        let frame = unsafe { (&raw mut (*record).frames).cast::<u64>().add(index) };
        if space == SPACE_USER {
            // What a broken chain has beyond the bits of an address must not look like a mark.
            // SAFETY: as above.
            unsafe { *frame &= ADDRESS_BITS };
        }
        // SAFETY: as above.
        hash = hash_step(hash, unsafe { *frame });
    }
    let hash = hash_finish(hash);
    // Read back, so that the verifier forgets at which iteration the loop ended: it would follow the
    // rest of the program once for each.
    // SAFETY: as above.
    let frames = unsafe { kept.read_volatile() } as usize & (most | 1);
    if frames as u32 >= config!(offsets.most_stack_frames) {
        count(if space == SPACE_USER {
            counter::USER_STACK_TRUNCATED
        } else {
            counter::KERNEL_STACK_TRUNCATED
        });
        // In place of the frame furthest to the root.
        let last = frames.wrapping_sub(1) & most;
        // SAFETY: `most` has all low bits set and is below the length of the array.
        unsafe {
            (&raw mut (*record).frames)
                .cast::<u64>()
                .add(last)
                .write(frame::error(TOO_DEEP))
        };
    }
    if !was_sent(hash) {
        send(record, hash, space, frames, frames as u32);
    }
    hash
}

/// Sends a user stack of `walked` frames unless it was sent before; false when that failed.
#[inline(always)]
pub(crate) fn intern_user(record: *mut StackRecord, hash: u64, walked: u32) -> bool {
    if !was_sent(hash) {
        let frames = (walked as usize).min(MAX_RECORD_FRAMES);
        return send(record, hash, SPACE_USER, frames, walked);
    }
    true
}

/// The same of a kernel stack that a program has walked.
#[inline(always)]
pub(crate) fn intern_kernel(record: *mut StackRecord, hash: u64, frames: u32) {
    if was_sent(hash) {
        return;
    }
    // Read back, so that the compiler keeps the mask that the verifier needs.
    // SAFETY: a map value of this CPU.
    let kept = unsafe {
        let kept = &raw mut (*record).head.frames;
        kept.write_volatile(frames);
        kept.read_volatile()
    };
    let kept = kept as usize & MAX_KERNEL_FRAMES;
    send(record, hash, SPACE_KERNEL, kept, frames);
}

#[inline(always)]
fn send(record: *mut StackRecord, hash: u64, space: u32, frames: usize, walked: u32) -> bool {
    let bytes = size_of::<StackHead>() + frames * size_of::<u64>();
    let header = RecordHeader {
        bytes: bytes as u32,
        ..emit::header::<StackHead>(KIND_STACK)
    };
    // SAFETY: `record` is a map value of this CPU.
    unsafe {
        (*record).head = StackHead {
            header,
            hash,
            space,
            frames: frames as u32,
            walked,
            padding: 0,
        }
    };
    // SAFETY: `bytes` is at most the size of the map value.
    let sent = unsafe {
        bpf_ringbuf_output(
            (&raw const RECORDS).cast_mut().cast(),
            record.cast(),
            bytes as u64,
            emit::Urgency::Polled.flags(),
        )
    };
    if sent != 0 {
        count(counter::RING_BUFFER_FULL);
        return false;
    }
    if STACKS.insert(hash, 1, 0).is_err() {
        count(counter::STACK_TABLE_FULL);
        return false;
    }
    true
}
