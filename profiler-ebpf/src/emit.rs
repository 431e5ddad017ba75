//! Headers of records, which of them are urgent, and records of fixed size for `RECORDS`.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use profiler_common::header::RecordHeader;

use crate::{counters::count, maps::RECORDS};

/// Bit of `bpf_ringbuf_output`: do not wake the reader, it polls.
const BPF_RB_NO_WAKEUP: u64 = 1;
/// Bit of `bpf_ringbuf_output`: wake the reader now.
const BPF_RB_FORCE_WAKEUP: u64 = 2;

/// Whether the reader must look at once.
#[derive(Clone, Copy)]
pub(crate) enum Urgency {
    /// With the next poll (some 10 ms).
    Polled,
    /// Now: a process may exit before the next poll.
    Immediate,
}

impl Urgency {
    #[inline(always)]
    pub(crate) fn flags(self) -> u64 {
        match self {
            Self::Polled => BPF_RB_NO_WAKEUP,
            Self::Immediate => BPF_RB_FORCE_WAKEUP,
        }
    }
}

/// A header for a record of type `T`.
#[inline(always)]
pub(crate) fn header<T>(kind: u32) -> RecordHeader {
    RecordHeader {
        kind,
        bytes: size_of::<T>() as u32,
        // SAFETY: a helper without arguments.
        time_ns: unsafe { bpf_ktime_get_ns() },
    }
}

/// Sends a record of fixed size; on a full buffer adds to `drop_counter`.
#[inline(always)]
pub(crate) fn send<T: 'static>(record: &T, urgency: Urgency, drop_counter: u32) -> bool {
    if RECORDS.output::<T>(record, urgency.flags()).is_err() {
        count(drop_counter);
        return false;
    }
    true
}
