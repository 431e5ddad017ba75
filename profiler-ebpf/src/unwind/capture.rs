//! Sends registers and the top of the stack to the agent, which walks what the kernel could not.

use aya_ebpf::{
    helpers::{
        bpf_get_smp_processor_id,
        generated::{bpf_probe_read_user, bpf_ringbuf_output, bpf_ringbuf_query},
    },
    macros::map,
    maps::{Array, RingBuf},
};
use profiler_common::{
    header::{KIND_CAPTURE, RecordHeader},
    limits::{
        CAPTURE_BUFFER_BYTES, CAPTURE_PIECE_BYTES, CAPTURE_STACK_BYTES, CLASS_SCHEDULER,
        PROGRAM_CLASSES,
    },
    stack::CAPTURED,
    unwind::{
        capture::{CaptureHead, CaptureRecord, NO_CODE},
        state::Memory as _,
        step::Arch as _,
    },
};

use super::{Walk, registers::Machine, user_memory::UserMemory};
use crate::{
    emit::{self, Urgency},
    maps::area_of_cpu,
};

/// Of `bpf_ringbuf_query`: bytes that were not read yet.
const BPF_RB_AVAIL_DATA: u64 = 0;

/// Pieces of a capture while the agent does not keep up: most stacks fit, and three times as many
/// samples do.
const SHORT_CAPTURE_PIECES: usize = 5;

/// Apart from the other records: a burst of captures must not displace them.
#[map]
pub(super) static CAPTURES: RingBuf = RingBuf::with_byte_size(CAPTURE_BUFFER_BYTES, 0);

/// Room to build a capture.
#[map]
static CAPTURE_SCRATCH: Array<CaptureRecord> = Array::with_max_entries(PROGRAM_CLASSES, 0);

/// A hash that no other sample of the task has.
#[inline(always)]
pub(super) fn next_hash(walk: &mut Walk) -> u64 {
    walk.captures += 1;
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    CAPTURED
        | u64::from(walk.class & 0xf) << 56
        | u64::from(cpu & 0xffff) << 40
        | walk.captures & 0xff_ffff_ffff
}

/// Sends a capture of the interrupted frame; false when the buffer is full.
#[inline(never)]
pub(super) fn send(walk: &mut Walk, hash: u64, flags: u32) -> bool {
    let Some(record) = area_of_cpu(&CAPTURE_SCRATCH, PROGRAM_CLASSES, walk.class) else {
        return false;
    };
    // The walk has gone on; what it began with is in the saved registers.
    Machine::begin(&walk.saved, &mut walk.state);
    let start = walk.state.sp & !(CAPTURE_PIECE_BYTES as u64 - 1);
    // SAFETY: a helper on a map of this object.
    let waiting =
        unsafe { bpf_ringbuf_query((&raw const CAPTURES).cast_mut().cast(), BPF_RB_AVAIL_DATA) };
    let most = if waiting > u64::from(CAPTURE_BUFFER_BYTES / 4) {
        SHORT_CAPTURE_PIECES
    } else {
        CAPTURE_STACK_BYTES / CAPTURE_PIECE_BYTES
    };
    // Counted in the record, so that the verifier forgets at which piece the loop ended: it would
    // follow what comes behind once for each.
    // SAFETY: `record` is a map value of this CPU.
    let copied = unsafe { &raw mut (*record).head.stack_bytes };
    // SAFETY: as above.
    unsafe { copied.write_volatile(0) };
    for piece in 0..CAPTURE_STACK_BYTES / CAPTURE_PIECE_BYTES {
        if piece >= most {
            break;
        }
        let offset = piece * CAPTURE_PIECE_BYTES;
        // SAFETY: the piece lies within the array of the map value; the helper checks the source.
        let result = unsafe {
            bpf_probe_read_user(
                (&raw mut (*record).stack).cast::<u8>().add(offset).cast(),
                CAPTURE_PIECE_BYTES as u32,
                (start + offset as u64) as *const _,
            )
        };
        if result != 0 {
            break;
        }
        // SAFETY: as above.
        unsafe { copied.write_volatile((offset + CAPTURE_PIECE_BYTES) as u32) };
    }
    // SAFETY: as above.
    let bytes = unsafe { copied.read_volatile() } as usize;
    if bytes > CAPTURE_STACK_BYTES {
        return false; // never; the verifier does not know
    }
    let total = size_of::<CaptureHead>() + bytes;
    let head = CaptureHead {
        header: RecordHeader {
            bytes: total as u32,
            ..emit::header::<CaptureHead>(KIND_CAPTURE)
        },
        hash,
        pid: walk.pid,
        tid: walk.tid,
        generation: walk.generation,
        outcome: walk.outcome,
        stack_start: start,
        stack_bytes: bytes as u32,
        code: UserMemory.byte(walk.state.pc).map_or(NO_CODE, u32::from),
        flags,
        arrivals: 0,
        registers: walk.saved,
    };
    // SAFETY: `record` is a map value of this CPU.
    unsafe { (*record).head = head };
    // The scheduler's programs hold the lock of a run queue: a wake-up must wait.
    let urgency = if walk.class == CLASS_SCHEDULER {
        Urgency::Polled
    } else {
        Urgency::Immediate
    };
    // SAFETY: `total` is at most the size of the map value.
    let sent = unsafe {
        bpf_ringbuf_output(
            (&raw const CAPTURES).cast_mut().cast(),
            record.cast(),
            total as u64,
            urgency.flags(),
        )
    };
    sent == 0
}
