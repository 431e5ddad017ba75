//! Threads and processes: announced once, then followed by events.

use crate::{header::RecordHeader, limits::COMM_BYTES};

pub const EVENT_FORK: u32 = 1;
pub const EVENT_EXEC: u32 = 2;
pub const EVENT_EXIT: u32 = 3;

/// Clock tick of times in /proc, nanoseconds (`USER_HZ` is 100 on every Linux we support).
pub const PROC_TICK_NS: u64 = 10_000_000;

/// A start time of /proc in nanoseconds.
pub const fn start_ns(ticks: u64) -> u64 {
    ticks.saturating_mul(PROC_TICK_NS)
}

/// Boot time in nanoseconds as /proc shows start times.
pub const fn start_ticks(boottime_ns: u64) -> u64 {
    boottime_ns / PROC_TICK_NS
}

/// Sent before the first sample of a thread, and again when its name or its process changed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadRecord {
    pub header: RecordHeader,
    pub pid: u32,
    pub tid: u32,
    /// Start of the process in nanoseconds of boot time (`group_leader->start_boottime`).
    pub start_boottime_ns: u64,
    pub comm: [u8; COMM_BYTES],
    /// See [`crate::on_cpu::CountKey::generation`].
    pub generation: u32,
    pub padding: u32,
}

/// Value of the kernel's table of announced threads.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadState {
    pub start_boottime_ns: u64,
    pub pid: u32,
    pub generation: u32,
    pub comm: [u8; COMM_BYTES],
}

/// A fork, exec or exit of a whole process (not of a thread).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessRecord {
    pub header: RecordHeader,
    /// `EVENT_*`.
    pub event: u32,
    pub pid: u32,
    /// For a fork; otherwise 0.
    pub parent_pid: u32,
    /// See [`crate::on_cpu::CountKey::generation`].
    pub generation: u32,
    pub start_boottime_ns: u64,
}

const _: () = assert!(size_of::<ThreadRecord>() == 56);
const _: () = assert!(size_of::<ThreadState>() == 32);
const _: () = assert!(size_of::<ProcessRecord>() == 40);
