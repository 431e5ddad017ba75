//! Event loops: how long threads stay away from epoll, and what held them when that was long.

use profiler_common::event_loop::{TURN_BUCKETS, turn_bound};
use serde::{Deserialize, Serialize};

/// Longest threshold of a stall, in milliseconds.
pub const MAX_STALL_MS: u32 = 60_000;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopRules {
    /// Turns from this length on are stalls: 1 to [`MAX_STALL_MS`].
    pub threshold_ms: u32,
}

/// Turns of one thread: from its return from epoll until its next call. Those that are not over
/// count among the stalls alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopThread {
    pub pid: u32,
    pub tid: u32,
    /// Untrusted text.
    pub name: String,
    pub turns: u64,
    /// Time of all of them.
    pub turns_ns: u64,
    /// Lengths that half and that 99 % of the turns do not exceed: upper bounds of the buckets that
    /// they were counted in, at most a quarter too long. `None` without turns.
    pub half_ns: Option<u64>,
    pub most_ns: Option<u64>,
    pub longest_ns: Option<u64>,
    pub stalls: u64,
    pub stalls_ns: u64,
}

/// A turn that was as long as a stall.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopTurn {
    pub pid: u32,
    pub tid: u32,
    /// Of the thread; untrusted text.
    pub name: String,
    /// Nanoseconds since the Unix epoch.
    pub start_ns: u64,
    pub duration_ns: u64,
    /// The thread had not gone back when it ended, or when the table was made.
    pub open: bool,
}

/// What a task has seen of event loops so far, as it is stored: each newer table replaces it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLoopTable {
    pub threshold_ms: u32,
    /// By process and thread.
    pub threads: Vec<LoopThread>,
    /// The longest, by their length.
    pub stalls: Vec<LoopTurn>,
    /// All of them.
    pub stall_count: u64,
    /// Threads that are missing, and stalls that are counted and could not be listed.
    pub lost: u64,
}

/// What held a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// At least half of the time is known, and it ran for most of that.
    OnCpu,
    /// At least half of the time is known, and it was off the CPU for most of that.
    OffCpu,
    /// What was recorded of it explains less than half of the time.
    Unknown,
}

impl Hold {
    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::OnCpu => "on_cpu",
            Self::OffCpu => "off_cpu",
            Self::Unknown => "unknown",
        }
    }
}

/// A stall with what was recorded of its thread meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    pub turn: LoopTurn,
    pub hold: Hold,
    /// The stack that most of that time was spent in, from the leaf on; empty when nothing was
    /// recorded. Untrusted text.
    pub stack: Vec<String>,
    /// Samples or waits of the thread in the stall that the stack was chosen from.
    pub samples: u64,
}

/// What a task has seen of event loops, with stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLoop {
    pub threshold_ms: u32,
    pub threads: Vec<LoopThread>,
    /// The longest, by their length.
    pub stalls: Vec<Stall>,
    /// All of them.
    pub stall_count: u64,
    /// As in [`EventLoopTable`].
    pub lost: u64,
}

impl EventLoopTable {
    /// Forgets everything that is not about these processes; what is lost may be. As in
    /// [`super::Selection`], an empty list keeps all.
    pub fn keep(&mut self, pids: &[u32]) {
        if pids.is_empty() {
            return;
        }
        self.threads.retain(|thread| pids.contains(&thread.pid));
        self.stalls.retain(|turn| pids.contains(&turn.pid));
        self.stall_count = self.threads.iter().map(|thread| thread.stalls).sum();
    }
}

impl LoopThread {
    /// Reads the percentiles off a histogram.
    #[must_use]
    pub fn counted(mut self, counts: &[u64; TURN_BUCKETS], longest_ns: u64) -> Self {
        self.half_ns = percentile(counts, 500, longest_ns);
        self.most_ns = percentile(counts, 990, longest_ns);
        self.longest_ns = (self.turns > 0).then_some(longest_ns);
        self
    }
}

/// An upper bound of the length that `thousandths` of the turns do not exceed.
fn percentile(counts: &[u64; TURN_BUCKETS], thousandths: u64, longest_ns: u64) -> Option<u64> {
    let all: u128 = counts.iter().map(|count| u128::from(*count)).sum();
    if all == 0 {
        return None;
    }
    let rank = (all * u128::from(thousandths)).div_ceil(1000).max(1);
    let mut seen = 0;
    let bucket = counts.iter().position(|count| {
        seen += u128::from(*count);
        seen >= rank
    })?;
    Some(turn_bound(bucket).map_or(longest_ns, |bound| bound.min(longest_ns)))
}

#[cfg(test)]
mod tests {
    use profiler_common::event_loop::turn_bucket;

    use super::*;

    fn check(turns_ns: &[u64], expected: (Option<u64>, Option<u64>, Option<u64>)) {
        let mut counts = [0; TURN_BUCKETS];
        for turn in turns_ns {
            counts[turn_bucket(*turn)] += 1;
        }
        let longest = turns_ns.iter().copied().max().unwrap_or(0);
        let thread = LoopThread {
            turns: turns_ns.len() as u64,
            ..LoopThread::default()
        };
        let found = thread.counted(&counts, longest);
        assert_eq!(
            (found.half_ns, found.most_ns, found.longest_ns),
            expected,
            "{turns_ns:?}"
        );
    }

    #[test]
    fn percentiles_are_bounds_of_buckets_and_never_above_the_longest() {
        check(&[], (None, None, None));
        check(&[0], (Some(0), Some(0), Some(0)));
        check(
            &[1_000_000],
            (Some(1_000_000), Some(1_000_000), Some(1_000_000)),
        );
        let mut many = vec![100_000; 99];
        many.push(70_000_000);
        check(&many, (Some(114_688), Some(114_688), Some(70_000_000)));
        many.push(70_000_000);
        check(&many, (Some(114_688), Some(70_000_000), Some(70_000_000)));
    }

    #[test]
    fn every_length_lies_in_its_bucket_and_the_bucket_is_at_most_a_quarter_wide() {
        let mut length = 1_u64;
        while length < 1 << 45 {
            for turn_ns in [length - 1, length, length + length / 3] {
                let bucket = turn_bucket(turn_ns);
                assert!(bucket < TURN_BUCKETS);
                let Some(above) = turn_bound(bucket) else {
                    assert!(turn_ns >= 1 << 41, "{turn_ns}");
                    continue;
                };
                assert!(turn_ns < above, "{turn_ns} in bucket {bucket}");
                let from = bucket.checked_sub(1).and_then(turn_bound).unwrap_or(0);
                assert!(from <= turn_ns, "{turn_ns} in bucket {bucket}");
                assert!(bucket == 0 || (above - from) * 4 <= from.max(4096));
            }
            length *= 2;
        }
    }
}
