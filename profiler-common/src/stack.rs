//! Stacks: sent once, referred to by hash.

use crate::{
    header::RecordHeader,
    limits::{LEAF_FRAMES, MAX_RECORD_FRAMES, ROOT_FRAMES},
};

pub const SPACE_KERNEL: u32 = 1;
pub const SPACE_USER: u32 = 2;

/// Everything of a [`StackRecord`] but its frames.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackHead {
    pub header: RecordHeader,
    pub hash: u64,
    /// `SPACE_*`.
    pub space: u32,
    /// Number of frames that follow.
    pub frames: u32,
    /// Number of frames of the whole stack. When it is greater, the frames from `LEAF_FRAMES` on
    /// are a ring that holds the last ones; [`place`] says where.
    pub walked: u32,
    pub padding: u32,
}

/// A hash with this bit stands for one sample whose stack the agent walks from a capture.
pub const CAPTURED: u64 = 1 << 63;

/// In place of the hash of a user stack: it was not taken, because a wait of this length was not expected.
pub const NOT_TAKEN: u64 = 2;

/// In place of the hash of a user stack: this is what was left when sampling ended.
pub const NOT_SAMPLED: u64 = 3;

/// Where in a record the frame with this number (from the leaf) is written.
#[expect(
    clippy::inline_always,
    reason = "a call would cost more than the sum, in the sampling path"
)]
#[inline(always)]
pub const fn place(frame: usize) -> usize {
    if frame < LEAF_FRAMES {
        frame
    } else {
        LEAF_FRAMES + (frame & (ROOT_FRAMES - 1))
    }
}

/// Addresses from the leaf to the root; only `head.frames` of them are sent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StackRecord {
    pub head: StackHead,
    pub frames: [u64; MAX_RECORD_FRAMES],
}

const _: () = assert!(size_of::<StackHead>() == 40);
const _: () = assert!(size_of::<StackRecord>() == 40 + 8 * MAX_RECORD_FRAMES);

/// Adds one address to a stack hash.
///
/// A multiplication by the 64-bit golden ratio and a fold of the high half: for a given `hash` it
/// is a bijection of `address`, so two stacks that differ in one frame never collide, and others
/// collide with probability 2^-64 for each pair.
#[expect(
    clippy::inline_always,
    reason = "a call would cost more than the step, in the sampling path"
)]
#[inline(always)]
pub fn hash_step(hash: u64, address: u64) -> u64 {
    let mixed = (hash ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

/// Last step: makes 0, which stands for "no stack", the other hashes with a meaning and [`CAPTURED`]
/// impossible.
#[expect(
    clippy::inline_always,
    reason = "a call would cost more than the step, in the sampling path"
)]
#[inline(always)]
pub fn hash_finish(hash: u64) -> u64 {
    let hash = hash & !CAPTURED;
    if hash <= NOT_SAMPLED { 1 } else { hash }
}
