//! Small answers about a profile: when its samples were taken, and by which threads.

use std::collections::BTreeMap;

use crate::model::Profile;

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
    pub samples: u64,
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

/// Samples per bucket of `bucket_ms` (at least 1), from [`timeline_start_ms`] to the end of the
/// range that the profile covers; buckets without samples are 0.
pub fn timeline(profile: &Profile, bucket_ms: u64) -> Vec<u64> {
    let bucket_ms = bucket_ms.max(1);
    let start_ms = timeline_start_ms(profile, bucket_ms);
    let covered_ms = (profile.to_ns / 1_000_000).saturating_sub(start_ms);
    let covered = usize::try_from(covered_ms.div_ceil(bucket_ms)).unwrap_or(usize::MAX);
    let mut counts = vec![0_u64; covered.min(MAX_TIMELINE_BUCKETS)];
    for row in &profile.samples {
        let offset = (row_time_ms(profile, row.bucket) - start_ms) / bucket_ms;
        let index = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(MAX_TIMELINE_BUCKETS - 1);
        if index >= counts.len() {
            counts.resize(index + 1, 0);
        }
        counts[index] = counts[index].saturating_add(row.count);
    }
    counts
}

/// Threads with samples, most samples first, then by pid and tid. A thread that changed its name
/// is one thread with its last name.
pub fn threads(profile: &Profile) -> Vec<ThreadSummary> {
    let mut counts: BTreeMap<(u32, u64, u32), (u64, u32)> = BTreeMap::new();
    for row in &profile.samples {
        let thread = &profile.threads[row.thread as usize];
        let key = profile.processes[thread.process as usize].key;
        let (samples, last) = counts
            .entry((key.pid, key.start_ticks, thread.tid))
            .or_insert((0, row.thread));
        *samples = samples.saturating_add(row.count);
        *last = row.thread.max(*last);
    }
    let mut threads: Vec<ThreadSummary> = counts
        .into_iter()
        .map(|((pid, _, tid), (samples, last))| {
            let thread = &profile.threads[last as usize];
            let process = &profile.processes[thread.process as usize];
            ThreadSummary {
                pid,
                tid,
                process: profile.text(process.comm).to_owned(),
                name: profile.text(thread.name).to_owned(),
                samples,
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

fn row_time_ms(profile: &Profile, bucket: u32) -> u64 {
    u64::from(bucket).saturating_mul(profile.bucket_ns) / 1_000_000
}
