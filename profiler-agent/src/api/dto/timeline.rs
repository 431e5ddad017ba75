//! Samples over time: counts, and stacks in the order of their buckets.

use profiler_analysis::activity_timeline::TimelineRow;
use profiler_model::ActivityTimes;
use serde::Serialize;
use utoipa::ToSchema;

use super::tasks::ProfileValue;

/// Samples over time.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::api) struct Timeline {
    pub(in crate::api) bucket_ms: u64,
    /// Start of the first bucket, milliseconds after the task's start.
    pub(in crate::api) from_ms: u64,
    /// Samples in each bucket, or nanoseconds; waits are counted where they end.
    pub(in crate::api) counts: Vec<u64>,
    /// The same by thread, largest first; only with `by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(in crate::api) threads: Option<Vec<TimelineThread>>,
    /// Threads that are not listed for themselves; only with `by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(in crate::api) other_threads: Option<usize>,
    /// The same by process, with all of its threads; only with `by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(in crate::api) processes: Option<Vec<TimelineThread>>,
}

/// One thread over time, or a process: then `tid` is its pid.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::api) struct TimelineThread {
    pub(in crate::api) pid: u32,
    pub(in crate::api) tid: u32,
    /// Name of the process.
    pub(in crate::api) process: String,
    /// Name of the thread.
    pub(in crate::api) name: String,
    pub(in crate::api) total: u64,
    pub(in crate::api) counts: Vec<u64>,
    /// What it did in each bucket, idle waits included whatever is shown, with waits over all the
    /// time that they took; only with `by=activity`, and where the result has waits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(in crate::api) activities: Vec<ActivityTimes>,
}

impl TimelineThread {
    pub(in crate::api) fn new(row: TimelineRow) -> Self {
        Self {
            pid: row.summary.pid,
            tid: row.summary.tid,
            process: row.summary.process,
            name: row.summary.name,
            total: row.summary.samples,
            counts: row.counts,
            activities: row.activities,
        }
    }
}

/// Stacks of threads in the order of time buckets. Inside a bucket the order is not known.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::api) struct Sequence {
    pub(in crate::api) bucket_ms: u64,
    /// Start of bucket 0, milliseconds after the task's start.
    pub(in crate::api) from_ms: u64,
    pub(in crate::api) buckets: u64,
    /// `count` of samples, or `duration` in nanoseconds.
    #[schema(value_type = ProfileValue)]
    pub(in crate::api) value: &'static str,
    pub(in crate::api) labels: Vec<SequenceLabel>,
    /// Indexes of labels from the root to the leaf.
    pub(in crate::api) stacks: Vec<Vec<u32>>,
    /// Largest first.
    pub(in crate::api) threads: Vec<SequenceThread>,
    /// Threads that are left out, and what they have.
    pub(in crate::api) other_threads: usize,
    pub(in crate::api) other_amount: u64,
    /// Stacks of a thread in one bucket that are told apart; the smaller ones are one "(other)".
    pub(in crate::api) stacks_per_bucket: usize,
}

/// A function; kinds and sources of names have the numbers of docs/flamegraph-format.md.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::api) struct SequenceLabel {
    pub(in crate::api) name: String,
    pub(in crate::api) module: String,
    pub(in crate::api) file: String,
    pub(in crate::api) line: u32,
    pub(in crate::api) kind: u8,
    pub(in crate::api) source: u8,
}

/// Three columns with one entry for each stack that the thread has in a bucket.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::api) struct SequenceThread {
    pub(in crate::api) pid: u32,
    pub(in crate::api) tid: u32,
    /// Name of the process.
    pub(in crate::api) process: String,
    /// Name of the thread.
    pub(in crate::api) name: String,
    pub(in crate::api) total: u64,
    /// In ascending order.
    pub(in crate::api) bucket: Vec<u32>,
    pub(in crate::api) stack: Vec<u32>,
    pub(in crate::api) amount: Vec<u64>,
}
