//! First field of every record in the ring buffer.

/// A [`crate::stack::StackRecord`].
pub const KIND_STACK: u32 = 1;
/// A [`crate::process::ThreadRecord`].
pub const KIND_THREAD: u32 = 2;
/// A [`crate::process::ProcessRecord`].
pub const KIND_PROCESS: u32 = 3;
/// A [`crate::unwind::capture::CaptureHead`] and the stack behind it, in a ring buffer of its own.
pub const KIND_CAPTURE: u32 = 4;
/// A [`crate::network::Connection`] that ended, in a ring buffer of its own.
pub const KIND_CONNECTION: u32 = 5;
/// A [`crate::network::Answer`], in a ring buffer of its own.
pub const KIND_ANSWER: u32 = 6;

/// A [`crate::payload::PieceHead`] and the captured bytes behind it, in a ring buffer of its own.
pub const KIND_PIECE: u32 = 9;
/// A [`crate::payload::PieceConnection`], there as well.
pub const KIND_PIECE_CONNECTION: u32 = 10;
/// [`crate::payload::PieceEnd`].
pub const KIND_PIECE_END: u32 = 11;

/// A [`crate::event_loop::StallRecord`].
pub const KIND_STALL: u32 = 7;
/// A [`crate::event_loop::LoopThread`] that has ended.
pub const KIND_LOOP_THREAD: u32 = 8;

/// `bytes` is the length of the whole record; the reader checks it against what arrived.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordHeader {
    /// `KIND_*`; never 0.
    pub kind: u32,
    pub bytes: u32,
    /// `bpf_ktime_get_ns`.
    pub time_ns: u64,
}

const _: () = assert!(size_of::<RecordHeader>() == 16);

/// Reads a plain-old-data value from the start of `bytes`; `None` when they are too few.
#[cfg(feature = "user")]
pub fn read_pod<T: Pod>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the length was checked, `Pod` types are valid for every bit pattern, and the read
    // does not need alignment.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// Types without padding, references or invalid bit patterns.
///
/// # Safety
/// Implement only for `repr(C)` types made of integers with explicit padding.
#[cfg(feature = "user")]
pub unsafe trait Pod: Copy + 'static {}

#[cfg(feature = "user")]
mod pods {
    use super::{Pod, RecordHeader};
    use crate::{
        contention::{ContentionKey, Runs},
        event_loop::{LoopThread, StallRecord},
        http::HttpCounts,
        kernel_names::KernelNames,
        network::{Answer, Connection, DropKey, ListenerKey},
        network_calls::CallTimes,
        off_cpu::{Wait, WaitValue},
        on_cpu::CountKey,
        payload::{PieceConnection, PieceEnd, PieceHead},
        process::{ProcessRecord, ThreadRecord, ThreadState},
        stack::StackHead,
        unix_sockets::UnixSocket,
        unwind::{
            capture::CaptureHead,
            mapping::Mappings,
            process::ProcessEntry,
            rule::Rule,
            table::{PageEntry, PageKey, RowBlock},
        },
        wakers::WokenKey,
        wall::{Slice, SliceValue},
    };

    // SAFETY: repr(C), integers only, padding explicit (asserted by size below each type).
    unsafe impl Pod for RecordHeader {}
    // SAFETY: as above.
    unsafe impl Pod for HttpCounts {}
    // SAFETY: as above.
    unsafe impl Pod for KernelNames {}
    // SAFETY: as above.
    unsafe impl Pod for Answer {}
    // SAFETY: as above.
    unsafe impl Pod for StackHead {}
    // SAFETY: as above.
    unsafe impl Pod for ThreadRecord {}
    // SAFETY: as above.
    unsafe impl Pod for StallRecord {}
    // SAFETY: as above.
    unsafe impl Pod for LoopThread {}
    // SAFETY: as above.
    unsafe impl Pod for ProcessRecord {}
    // SAFETY: as above.
    unsafe impl Pod for ThreadState {}
    // SAFETY: as above.
    unsafe impl Pod for CountKey {}
    // SAFETY: as above.
    unsafe impl Pod for Wait {}
    // SAFETY: as above.
    unsafe impl Pod for WaitValue {}
    // SAFETY: as above.
    unsafe impl Pod for Slice {}
    // SAFETY: as above.
    unsafe impl Pod for SliceValue {}
    // SAFETY: as above.
    unsafe impl Pod for WokenKey {}
    // SAFETY: as above.
    unsafe impl Pod for ContentionKey {}
    // SAFETY: as above.
    unsafe impl Pod for Runs {}
    // SAFETY: as above.
    unsafe impl Pod for Connection {}
    // SAFETY: as above.
    unsafe impl Pod for UnixSocket {}
    // SAFETY: as above.
    unsafe impl Pod for DropKey {}
    // SAFETY: as above.
    unsafe impl Pod for CallTimes {}
    // SAFETY: as above.
    unsafe impl Pod for PieceHead {}
    // SAFETY: as above.
    unsafe impl Pod for PieceEnd {}
    // SAFETY: as above.
    unsafe impl Pod for PieceConnection {}
    // SAFETY: as above.
    unsafe impl Pod for ListenerKey {}
    // SAFETY: as above.
    unsafe impl Pod for CaptureHead {}
    // SAFETY: as above.
    unsafe impl Pod for ProcessEntry {}
    // SAFETY: as above.
    unsafe impl Pod for Mappings {}
    // SAFETY: as above.
    unsafe impl Pod for PageKey {}
    // SAFETY: as above.
    unsafe impl Pod for PageEntry {}
    // SAFETY: as above.
    unsafe impl Pod for RowBlock {}
    // SAFETY: as above.
    unsafe impl Pod for Rule {}
    // SAFETY: every bit pattern is a number.
    unsafe impl Pod for u64 {}
    // SAFETY: as above.
    unsafe impl Pod for u8 {}
    // SAFETY: as above.
    unsafe impl Pod for u32 {}
}
