//! Small answers about a profile: when its samples were taken, and by which threads.

use std::collections::{BTreeMap, HashMap};

use profiler_model::{Profile, ThreadId};

use super::Value;

/// Longest timeline. Samples beyond it are counted in its last bucket.
pub const MAX_TIMELINE_BUCKETS: usize = 1_000_000;

/// One thread of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSummary {
    pub pid: u32,
    pub tid: u32,
    /// `comm` of the process; untrusted text.
    pub process: String,
    /// Name of the thread; untrusted text.
    pub name: String,
    /// Id of the container of the process; empty outside of one.
    pub container: String,
    pub samples: u64,
    pub total_ns: u64,
    /// Tells a reused pid apart.
    start_ticks: u64,
}

impl ThreadSummary {
    pub(crate) fn identity(&self) -> (u32, u64, u32) {
        (self.pid, self.start_ticks, self.tid)
    }
}

/// Pid, start and tid of a thread, whatever it is called.
pub(crate) fn identity(profile: &Profile, thread: ThreadId) -> (u32, u64, u32) {
    let thread = &profile.threads[thread as usize];
    let key = profile.processes[thread.process as usize].key;
    (key.pid, key.start_ticks, thread.tid)
}

/// Time of the first bucket of [`timeline`], milliseconds after the task's start.
pub fn timeline_start_ms(profile: &Profile, bucket_ms: u64) -> u64 {
    let bucket_ms = bucket_ms.max(1);
    let first_row = profile
        .samples
        .iter()
        .map(|row| row_time_ms(profile, row.bucket))
        .min();
    let covered = profile.from_ns / 1_000_000;
    let start = first_row.map_or(covered, |first| first.min(covered));
    start / bucket_ms * bucket_ms
}

/// Samples, or nanoseconds, per bucket of `bucket_ms` (at least 1), from [`timeline_start_ms`] to
/// the end of the range that the profile covers; buckets without samples are 0.
pub fn timeline(profile: &Profile, bucket_ms: u64, value: Value) -> Vec<u64> {
    let mut counts = empty_timeline(profile, bucket_ms);
    let start_ms = timeline_start_ms(profile, bucket_ms);
    for row in &profile.samples {
        let index = bucket_of(profile, row.bucket, start_ms, bucket_ms);
        if index >= counts.len() {
            counts.resize(index + 1, 0);
        }
        counts[index] = counts[index].saturating_add(value.of(row));
    }
    counts
}

/// Threads or processes with a timeline, and how many others there are.
pub type Timelines = (Vec<(ThreadSummary, Vec<u64>)>, usize);

/// The same for each of the `limit` largest threads.
pub fn thread_timelines(
    profile: &Profile,
    bucket_ms: u64,
    value: Value,
    limit: usize,
) -> Timelines {
    let threads = threads_by(profile, value);
    timelines(profile, bucket_ms, value, (threads, limit), |key| key)
}

/// The same for each of the `limit` largest processes, with all of their threads. What they are
/// called is the name of the process, and their `tid` is the pid.
pub fn process_timelines(
    profile: &Profile,
    bucket_ms: u64,
    value: Value,
    limit: usize,
) -> Vec<(ThreadSummary, Vec<u64>)> {
    let mut processes: BTreeMap<(u32, u64), ThreadSummary> = BTreeMap::new();
    for thread in threads_by(profile, value) {
        let process = processes
            .entry((thread.pid, thread.start_ticks))
            .or_insert_with(|| ThreadSummary {
                tid: thread.pid,
                name: thread.process.clone(),
                samples: 0,
                total_ns: 0,
                ..thread.clone()
            });
        process.samples = process.samples.saturating_add(thread.samples);
        process.total_ns = process.total_ns.saturating_add(thread.total_ns);
    }
    let mut processes: Vec<ThreadSummary> = processes.into_values().collect();
    processes.sort_by_key(|process| std::cmp::Reverse(process.samples));
    timelines(
        profile,
        bucket_ms,
        value,
        (processes, limit),
        |(pid, start, _)| (pid, start, pid),
    )
    .0
}

/// `key_of`: of which summary a thread is part.
fn timelines(
    profile: &Profile,
    bucket_ms: u64,
    value: Value,
    (mut summaries, limit): (Vec<ThreadSummary>, usize),
    key_of: impl Fn((u32, u64, u32)) -> (u32, u64, u32),
) -> Timelines {
    let length = timeline(profile, bucket_ms, value).len();
    let start_ms = timeline_start_ms(profile, bucket_ms);
    let others = summaries.split_off(limit.min(summaries.len())).len();
    let places: HashMap<_, usize> = summaries
        .iter()
        .enumerate()
        .map(|(place, summary)| (summary.identity(), place))
        .collect();
    let mut counts = vec![vec![0_u64; length]; summaries.len()];
    for row in &profile.samples {
        if let Some(place) = places.get(&key_of(identity(profile, row.thread))) {
            let index = bucket_of(profile, row.bucket, start_ms, bucket_ms);
            let count = &mut counts[*place][index];
            *count = count.saturating_add(value.of(row));
        }
    }
    (summaries.into_iter().zip(counts).collect(), others)
}

fn empty_timeline(profile: &Profile, bucket_ms: u64) -> Vec<u64> {
    let start_ms = timeline_start_ms(profile, bucket_ms);
    let covered_ms = (profile.to_ns / 1_000_000).saturating_sub(start_ms);
    let covered = usize::try_from(covered_ms.div_ceil(bucket_ms.max(1))).unwrap_or(usize::MAX);
    vec![0; covered.min(MAX_TIMELINE_BUCKETS)]
}

fn bucket_of(profile: &Profile, bucket: u32, start_ms: u64, bucket_ms: u64) -> usize {
    let offset = (row_time_ms(profile, bucket) - start_ms) / bucket_ms.max(1);
    usize::try_from(offset)
        .unwrap_or(usize::MAX)
        .min(MAX_TIMELINE_BUCKETS - 1)
}

/// Threads with samples, most samples first, then by pid and tid. A thread that changed its name
/// is one thread with its last name.
pub fn threads(profile: &Profile) -> Vec<ThreadSummary> {
    threads_by(profile, Value::Count)
}

/// The same by samples or by nanoseconds.
pub(super) fn threads_by(profile: &Profile, value: Value) -> Vec<ThreadSummary> {
    let mut counts: BTreeMap<(u32, u64, u32), (u64, u64, u32)> = BTreeMap::new();
    for row in &profile.samples {
        let (samples, total_ns, last) = counts
            .entry(identity(profile, row.thread))
            .or_insert((0, 0, row.thread));
        *samples = samples.saturating_add(value.of(row));
        *total_ns = total_ns.saturating_add(row.total_ns);
        *last = row.thread.max(*last);
    }
    let mut threads: Vec<ThreadSummary> = counts
        .into_iter()
        .map(|((pid, start_ticks, tid), (samples, total_ns, last))| {
            let thread = &profile.threads[last as usize];
            let process = &profile.processes[thread.process as usize];
            ThreadSummary {
                pid,
                tid,
                process: profile.text(process.comm).to_owned(),
                name: profile.text(thread.name).to_owned(),
                container: profile.text(process.container).to_owned(),
                samples,
                total_ns,
                start_ticks,
            }
        })
        .collect();
    threads.sort_by(|a, b| {
        b.samples
            .cmp(&a.samples)
            .then((a.pid, a.tid).cmp(&(b.pid, b.tid)))
    });
    threads
}

pub(super) fn row_time_ms(profile: &Profile, bucket: u32) -> u64 {
    u64::from(bucket).saturating_mul(profile.bucket_ns) / 1_000_000
}
