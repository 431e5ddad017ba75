//! What was lost, and where. Every drop has a kind and a count; none is silent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One way in which data can be lost or degraded between the kernel and the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LossKind {
    /// Samples dropped because the kernel's counting table was full.
    CountTableFull,
    /// Stacks whose frames could not be sent because the ring buffer was full (sent again later).
    RingBufferFull,
    /// Stacks sent more than once because the kernel's table of known stacks was full.
    StackTableFull,
    /// Samples whose user stack could not be read.
    UserStackUnreadable,
    /// Samples whose kernel stack could not be read.
    KernelStackUnreadable,
    /// Samples whose user stack was longer than the kernel copies.
    UserStackTruncated,
    /// Samples of tasks whose pid has no number in the agent's PID namespace.
    PidNotVisible,
    /// Samples counted for a stack whose frames never arrived.
    StackMissing,
    /// Samples of processes that had exited before their mappings were read.
    MappingsMissing,
    /// Records from the kernel that could not be decoded.
    RecordUndecodable,
    /// Result chunks that could not be written to the store.
    StoreWriteFailed,
    /// Process events (fork, exec, exit) dropped because the ring buffer was full.
    ProcessEventDropped,
    /// New processes that could not be added to the kernel's filter because it was full.
    FilterFull,
    /// Samples dropped because a kernel structure could not be read.
    KernelReadFailed,
    /// Threads announced more than once because the kernel's table of threads was full.
    ThreadTableFull,
    /// Samples that are missing of the CPU time that the kernel accounts to the target.
    TickMissed,
    /// Stored result chunks that could not be decoded any more.
    StoredChunkDamaged,
    /// Waits whose end the kernel did not report.
    SwitchMissed,
    /// Waits of threads that did not fit the kernel's table of waits.
    WaitTableFull,
    /// Turns of event loops of threads that did not fit the kernel's table of them.
    LoopTableFull,
    /// Stalls, and ends of threads with event loops, that did not fit the ring buffer.
    LoopRecordDropped,
    /// Calls of epoll that the kernel did not report.
    LoopCallMissed,
    /// Samples whose kernel stack was longer than the kernel copies.
    KernelStackTruncated,
}

impl LossKind {
    /// All kinds, in display order.
    pub const ALL: [Self; 23] = [
        Self::CountTableFull,
        Self::RingBufferFull,
        Self::StackTableFull,
        Self::UserStackUnreadable,
        Self::KernelStackUnreadable,
        Self::UserStackTruncated,
        Self::PidNotVisible,
        Self::StackMissing,
        Self::MappingsMissing,
        Self::RecordUndecodable,
        Self::StoreWriteFailed,
        Self::ProcessEventDropped,
        Self::FilterFull,
        Self::KernelReadFailed,
        Self::ThreadTableFull,
        Self::TickMissed,
        Self::StoredChunkDamaged,
        Self::SwitchMissed,
        Self::WaitTableFull,
        Self::LoopTableFull,
        Self::LoopRecordDropped,
        Self::LoopCallMissed,
        Self::KernelStackTruncated,
    ];

    /// Stable `snake_case` name used in the API, in metrics and in exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::CountTableFull => "count_table_full",
            Self::RingBufferFull => "ring_buffer_full",
            Self::StackTableFull => "stack_table_full",
            Self::UserStackUnreadable => "user_stack_unreadable",
            Self::KernelStackUnreadable => "kernel_stack_unreadable",
            Self::UserStackTruncated => "user_stack_truncated",
            Self::PidNotVisible => "pid_not_visible",
            Self::StackMissing => "stack_missing",
            Self::MappingsMissing => "mappings_missing",
            Self::RecordUndecodable => "record_undecodable",
            Self::StoreWriteFailed => "store_write_failed",
            Self::ProcessEventDropped => "process_event_dropped",
            Self::FilterFull => "filter_full",
            Self::KernelReadFailed => "kernel_read_failed",
            Self::ThreadTableFull => "thread_table_full",
            Self::TickMissed => "tick_missed",
            Self::StoredChunkDamaged => "stored_chunk_damaged",
            Self::SwitchMissed => "switch_missed",
            Self::WaitTableFull => "wait_table_full",
            Self::LoopTableFull => "loop_table_full",
            Self::LoopRecordDropped => "loop_record_dropped",
            Self::LoopCallMissed => "loop_call_missed",
            Self::KernelStackTruncated => "kernel_stack_truncated",
        }
    }

    /// One sentence for people: what was lost and what it means for the result.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::CountTableFull => {
                "samples dropped because the kernel's counting table was full; totals are too low"
            }
            Self::RingBufferFull => {
                "stacks that did not fit the ring buffer and were sent with a later sample"
            }
            Self::StackTableFull => {
                "stacks sent more than once because the kernel's table of known stacks was full; totals are right"
            }
            Self::UserStackUnreadable => {
                "samples counted without user frames because the user stack could not be read"
            }
            Self::KernelStackUnreadable => {
                "samples counted without kernel frames because the kernel stack could not be read"
            }
            Self::UserStackTruncated => {
                "samples whose user stack was deeper than the kernel copies (kernel.perf_event_max_stack); the root is missing"
            }
            Self::PidNotVisible => {
                "samples of processes that have no number in the agent's PID namespace; not shown"
            }
            Self::StackMissing => {
                "samples shown under [stack lost] because their frames never arrived"
            }
            Self::MappingsMissing => {
                "samples without names because the process had exited before its mappings were read"
            }
            Self::RecordUndecodable => "kernel records that could not be decoded and were skipped",
            Self::StoreWriteFailed => {
                "result chunks that could not be written to the data directory"
            }
            Self::ProcessEventDropped => {
                "fork, exec or exit events dropped because the ring buffer was full"
            }
            Self::FilterFull => {
                "new processes that did not fit the kernel's filter and were not profiled"
            }
            Self::KernelReadFailed => {
                "samples dropped because a kernel structure could not be read; totals are too low"
            }
            Self::ThreadTableFull => {
                "threads announced more than once because the kernel's table of threads was full; totals are right"
            }
            Self::TickMissed => {
                "samples that the clock did not take of the CPU time that the kernel accounts to the target; totals are too low"
            }
            Self::StoredChunkDamaged => {
                "stored result chunks that were damaged and left out; totals are too low"
            }
            Self::SwitchMissed => {
                "waits whose end the kernel did not report; their time waiting for a CPU is missing, or estimated in a wall-clock profile"
            }
            Self::WaitTableFull => {
                "waits of threads that did not fit the kernel's table; not measured"
            }
            Self::LoopTableFull => {
                "turns of event loops of threads that did not fit the kernel's table; not counted"
            }
            Self::LoopRecordDropped => {
                "stalls of event loops that are counted and not listed, or ended threads that are missing, because the ring buffer was full"
            }
            Self::LoopCallMissed => {
                "entries to epoll or returns from it that the kernel did not report because it was at work on another one; the turns are not counted"
            }
            Self::KernelStackTruncated => {
                "samples whose kernel stack was deeper than the kernel copies (kernel.perf_event_max_stack); the root is missing"
            }
        }
    }
}

/// Counts per kind of loss.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    counts: BTreeMap<LossKind, u64>,
}

impl Losses {
    /// Adds `count` to `kind`; zero adds nothing.
    pub fn add(&mut self, kind: LossKind, count: u64) {
        if count > 0 {
            let slot = self.counts.entry(kind).or_default();
            *slot = slot.saturating_add(count);
        }
    }

    /// Takes `count` of `kind` back, which were not lost after all.
    pub fn take_back(&mut self, kind: LossKind, count: u64) {
        let left = self.get(kind).saturating_sub(count);
        self.counts.remove(&kind);
        self.add(kind, left);
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (kind, count) in other.iter() {
            self.add(kind, count);
        }
    }

    /// The count of one kind.
    pub fn get(&self, kind: LossKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// Non-zero counts in display order.
    pub fn iter(&self) -> impl Iterator<Item = (LossKind, u64)> + '_ {
        self.counts.iter().map(|(kind, count)| (*kind, *count))
    }

    /// True when nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}
