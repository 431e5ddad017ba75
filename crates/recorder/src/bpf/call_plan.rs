//! What system calls are watched for.

use super::programs::{Group, ProgramRow, is_of, row};

/// What announces writes, reads and the arrival of data.
const SEND: &ProgramRow = row("network_send");
const RECEIVE: &ProgramRow = row("network_receive");
const READY: &ProgramRow = row("network_ready");

/// What system calls are watched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a need of its own")]
pub struct CallPlan {
    /// For their times.
    pub timed: bool,
    /// For what they write, because nothing else announces it.
    pub counts_writes: bool,
    /// The same for reads.
    pub counts_reads: bool,
    /// Whether arrival of data is taken from received segments.
    pub watches_segments: bool,
}

impl CallPlan {
    /// `is_usable` says whether a program can be loaded here.
    pub fn new(timed: bool, is_usable: impl Fn(&str) -> bool) -> Self {
        Self {
            timed,
            counts_writes: !is_usable(SEND.name),
            counts_reads: !is_usable(RECEIVE.name),
            watches_segments: !is_usable(READY.name),
        }
    }

    /// For checks.
    pub const EVERYTHING: Self = Self {
        timed: true,
        counts_writes: true,
        counts_reads: true,
        watches_segments: true,
    };

    /// Whether programs look at every system call.
    pub(super) fn watches_calls(self) -> bool {
        self.timed || self.counts_writes || self.counts_reads
    }

    /// Whether a program is needed.
    pub fn needs(self, program: &str) -> bool {
        // These slow more than the connections they watch.
        if is_of(Group::Calls, program) {
            self.watches_calls()
        } else if is_of(Group::Segments, program) {
            self.watches_segments
        } else {
            true
        }
    }
}
