//! Turns of event loops: from a thread's return from epoll until it goes back there.

use crate::{header::RecordHeader, limits::COMM_BYTES};

/// Buckets of a histogram of turns (a power of two).
pub const TURN_BUCKETS: usize = 128;
/// Turns that are shorter than two to this power of nanoseconds share the first bucket.
const FIRST_POWER: u32 = 10;
/// Binary logarithm of the number of buckets of equal width in each power of two.
const PARTS_POWER: u32 = 2;
/// Longer turns share the last bucket: from 2^41 ns on, more than half an hour.
const LAST_POWER: u32 = 40;

/// A thread that has returned from epoll, by its number in the initial PID namespace. Sent as a
/// record when the thread ends.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopThread {
    /// All zero until the thread ends.
    pub header: RecordHeader,
    /// When it returned from epoll; 0 while it is there, and after a failed call.
    pub began_ns: u64,
    /// Turns that are over, and their time.
    pub turns: u64,
    pub turns_ns: u64,
    pub longest_ns: u64,
    /// Those that were as long as a stall, and their time.
    pub stalls: u64,
    pub stalls_ns: u64,
    /// `task->cgroups` when it was found to be wanted.
    pub cgroups: u64,
    /// In the agent's PID namespace; 0 while the entry is being made.
    pub pid: u32,
    pub tid: u32,
    /// See [`crate::on_cpu::CountKey::generation`].
    pub generation: u32,
    pub padding: u32,
    /// Its name in one of its last turns.
    pub comm: [u8; COMM_BYTES],
    /// Turns by length, see [`turn_bucket`].
    pub counts: [u64; TURN_BUCKETS],
}

/// A turn that was as long as a stall.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallRecord {
    pub header: RecordHeader,
    pub pid: u32,
    pub tid: u32,
    /// When the thread had returned from epoll.
    pub began_ns: u64,
    pub duration_ns: u64,
    pub comm: [u8; COMM_BYTES],
}

/// The bucket of a turn; below [`TURN_BUCKETS`].
#[expect(
    clippy::inline_always,
    reason = "eBPF programs do not call functions of other crates"
)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "it is below the number of buckets"
)]
#[inline(always)]
pub fn turn_bucket(turn_ns: u64) -> usize {
    if turn_ns < 1 << FIRST_POWER {
        return 0;
    }
    let power = turn_ns.ilog2();
    if power > LAST_POWER {
        return TURN_BUCKETS - 1;
    }
    let part = (turn_ns >> (power - PARTS_POWER)) & ((1 << PARTS_POWER) - 1);
    (1 + (u64::from(power - FIRST_POWER) << PARTS_POWER) + part) as usize
}

/// The first length that lies above a bucket; none for the last one.
pub fn turn_bound(bucket: usize) -> Option<u64> {
    let index = u32::try_from(bucket).ok()?;
    let Some(above) = index.checked_sub(1) else {
        return Some(1 << FIRST_POWER);
    };
    let power = FIRST_POWER + (above >> PARTS_POWER);
    let part = above & ((1 << PARTS_POWER) - 1);
    (power <= LAST_POWER).then(|| u64::from((1 << PARTS_POWER) + part + 1) << (power - PARTS_POWER))
}

const _: () = assert!(TURN_BUCKETS.is_power_of_two());
const _: () = assert!(
    1 + (((LAST_POWER - FIRST_POWER + 1) << PARTS_POWER) as usize) < TURN_BUCKETS,
    "the last bucket is one of its own"
);
const _: () = assert!(size_of::<LoopThread>() == 16 + 7 * 8 + 16 + 16 + 8 * TURN_BUCKETS);
const _: () = assert!(size_of::<StallRecord>() == 56);
