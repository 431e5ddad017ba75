//! How frames are written in a stack record: addresses, and marks that are not addresses.

use super::mapping::USER_ADDRESS_LIMIT;

/// Set in the address of a frame that was interrupted although it is not the leaf (below a signal
/// frame): the address is an instruction, not a return address.
pub const INTERRUPTED: u64 = 1 << 62;

/// Bits of an address; what a broken stack has beyond them is cut off, so that it is not a mark.
pub const ADDRESS_BITS: u64 = USER_ADDRESS_LIMIT - 1;

/// An address on its way to a record.
#[inline(always)]
pub const fn code(pc: u64, interrupted: bool) -> u64 {
    (pc & ADDRESS_BITS) | ((interrupted as u64) << 62)
}

/// Marks have all of these bits.
pub const MARK: u64 = 0xffff_ffff_ffff_0000;

/// The last frame of an incomplete stack: a mark with the outcome of the step that failed
/// (`super::step`) in its low byte.
#[inline(always)]
pub const fn error(outcome: u32) -> u64 {
    MARK | outcome as u64
}

/// Marks that stand for left out frames have these bits set, and the number in the lower half.
const ELIDED_MARK: u64 = 0xffff_fffe << 32;

/// Stands for frames in the middle of a stack that were left out.
#[inline(always)]
pub const fn elided(frames: u32) -> u64 {
    ELIDED_MARK | frames as u64
}

/// How many frames a mark stands for; none for anything else.
#[inline(always)]
pub const fn elided_of(frame: u64) -> Option<u32> {
    if frame & (0xffff_ffff << 32) == ELIDED_MARK {
        Some((frame & 0xffff_ffff) as u32)
    } else {
        None
    }
}

/// The outcome in an error mark; none for an address.
#[inline(always)]
pub const fn error_of(frame: u64) -> Option<u32> {
    if frame & MARK == MARK {
        Some((frame & 0xff) as u32)
    } else {
        None
    }
}
