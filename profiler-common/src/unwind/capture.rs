//! A sample whose stack could not be walked in the kernel: its registers and the top of its stack,
//! for the agent to walk with the same step. Tables in the kernel are only a cache.

use crate::{header::RecordHeader, limits::CAPTURE_STACK_BYTES};

/// Words of the kernel's register structures that are kept: 21 on x86-64, 34 on aarch64.
pub const REGISTER_WORDS: usize = 34;

/// The stack was complete; this copy is for comparison.
pub const CAPTURE_FOR_COMPARISON: u32 = 1;

/// The thread is asleep and nothing of its stack follows: the agent reads it from the process, and
/// checks that the thread has not run since.
pub const CAPTURE_ASLEEP: u32 = 2;

/// [`CaptureHead::code`] when the byte could not be read.
pub const NO_CODE: u32 = u32::MAX;

/// Everything of a capture but the stack, of which `stack_bytes` follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureHead {
    pub header: RecordHeader,
    /// What the sample is counted under.
    pub hash: u64,
    pub pid: u32,
    pub tid: u32,
    /// See [`crate::on_cpu::CountKey::generation`].
    pub generation: u32,
    /// Why the kernel could not go on (`super::step`).
    pub outcome: u32,
    /// Address of the first byte of the stack that follows; at or below the stack pointer.
    pub stack_start: u64,
    pub stack_bytes: u32,
    /// The byte at the interrupted instruction, or [`NO_CODE`].
    pub code: u32,
    /// `CAPTURE_*`.
    pub flags: u32,
    /// With [`CAPTURE_ASLEEP`] how often the thread had arrived on a CPU (its lower 32 bits).
    pub arrivals: u32,
    /// User registers as the kernel keeps them (`struct pt_regs`).
    pub registers: [u64; REGISTER_WORDS],
}

/// A whole capture; the stack is cut to what could be read when it is sent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CaptureRecord {
    pub head: CaptureHead,
    pub stack: [u8; CAPTURE_STACK_BYTES],
}

const _: () = assert!(size_of::<CaptureHead>() == 64 + 8 * REGISTER_WORDS);
const _: () = assert!(size_of::<CaptureRecord>() == size_of::<CaptureHead>() + CAPTURE_STACK_BYTES);
