//! Stacks: sent once, referred to by hash.

use crate::{header::RecordHeader, limits::MAX_RECORD_FRAMES};

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
}

/// Addresses from the leaf to the root; only `head.frames` of them are sent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StackRecord {
    pub head: StackHead,
    pub frames: [u64; MAX_RECORD_FRAMES],
}

const _: () = assert!(size_of::<StackHead>() == 32);
const _: () = assert!(size_of::<StackRecord>() == 32 + 8 * MAX_RECORD_FRAMES);

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

/// Last step: makes 0, which stands for "no stack", impossible.
#[expect(
    clippy::inline_always,
    reason = "a call would cost more than the step, in the sampling path"
)]
#[inline(always)]
pub fn hash_finish(hash: u64) -> u64 {
    if hash == 0 { 1 } else { hash }
}
