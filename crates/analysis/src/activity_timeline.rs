//! What threads did over time: their time laid back from the bucket in which it was counted.
//!
//! A wait is counted in the bucket in which it ended. The times of one thread do not overlap, so of
//! what ended in a bucket only one wait can have begun before it: the longest. What the thread has in
//! a bucket beyond its length is therefore the earlier part of that wait, and lies right before.
//! Shorter times keep their bucket, so that every edge is right to the length of a bucket.

use std::collections::{BTreeMap, HashMap};

use profiler_model::{Activity, ActivityTimes, Profile};

use crate::{
    activities::classified,
    render::{
        Value,
        summary::{
            ThreadSummary, identity, process_timelines, thread_timelines, timeline_start_ms,
        },
    },
};

const NS_PER_US: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

/// Time that ended in one bucket of the profile.
#[derive(Clone, Copy, Debug)]
struct Ended {
    bucket: u32,
    activity: Activity,
    ns: u64,
}

/// The time of all threads, by pid, start and tid.
#[derive(Debug, Default)]
pub struct ActivityTimeline {
    bucket_ns: u64,
    of_threads: HashMap<(u32, u64, u32), Vec<Ended>>,
}

/// The buckets of an answer.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    from_ms: u64,
    bucket_ms: u64,
    count: usize,
}

/// A thread or a process over time.
#[derive(Debug)]
pub struct TimelineRow {
    pub summary: ThreadSummary,
    /// Samples or nanoseconds in each bucket.
    pub counts: Vec<u64>,
    /// Empty where the result has no waits.
    pub activities: Vec<ActivityTimes>,
}

impl Buckets {
    fn new(from_ms: u64, bucket_ms: u64, counts: &[u64]) -> Self {
        Self {
            from_ms,
            bucket_ms,
            count: counts.len(),
        }
    }
}

impl ActivityTimeline {
    /// Of all samples of a profile, with what [`crate::idle::IdleRules::classify`] found for it; empty where it has no waits.
    pub fn of(profile: &Profile, idle: Option<&[Option<usize>]>) -> Self {
        let mut found = Self {
            bucket_ns: profile.bucket_ns.max(1),
            of_threads: HashMap::new(),
        };
        let Some(idle) = idle else {
            return found;
        };
        for (row, activity) in classified(profile, idle) {
            let ended = Ended {
                bucket: row.bucket,
                activity,
                ns: row.total_ns,
            };
            let thread = identity(profile, row.thread);
            found.of_threads.entry(thread).or_default().push(ended);
        }
        found
    }

    /// How many kinds a thread has at most.
    pub fn kinds(&self) -> usize {
        if self.of_threads.is_empty() {
            0
        } else {
            Activity::ALL.len()
        }
    }

    /// The `limit` largest threads of what is shown, and how many others there are.
    pub fn threads(
        &self,
        shown: &Profile,
        bucket_ms: u64,
        value: Value,
        limit: usize,
    ) -> (Vec<TimelineRow>, usize) {
        let (threads, others) = thread_timelines(shown, bucket_ms, value, limit);
        let from_ms = timeline_start_ms(shown, bucket_ms);
        let rows = threads.into_iter().map(|(summary, counts)| TimelineRow {
            activities: self.of_thread(&summary, Buckets::new(from_ms, bucket_ms, &counts)),
            summary,
            counts,
        });
        (rows.collect(), others)
    }

    /// The `limit` largest processes of what is shown.
    pub fn processes(
        &self,
        shown: &Profile,
        bucket_ms: u64,
        value: Value,
        limit: usize,
    ) -> Vec<TimelineRow> {
        let processes = process_timelines(shown, bucket_ms, value, limit);
        let from_ms = timeline_start_ms(shown, bucket_ms);
        let rows = processes.into_iter().map(|(summary, counts)| TimelineRow {
            activities: self.of_process(&summary, Buckets::new(from_ms, bucket_ms, &counts)),
            summary,
            counts,
        });
        rows.collect()
    }

    /// Of one thread, in the order in which kinds are shown. What began before the first bucket is
    /// left out there.
    fn of_thread(&self, thread: &ThreadSummary, buckets: Buckets) -> Vec<ActivityTimes> {
        let mut laid = Laid::new(buckets);
        if let Some(ended) = self.of_threads.get(&thread.identity()) {
            self.lay(ended.clone(), &mut laid);
        }
        laid.finish()
    }

    /// Of all threads of a process.
    fn of_process(&self, process: &ThreadSummary, buckets: Buckets) -> Vec<ActivityTimes> {
        let (pid, start, _) = process.identity();
        let mut laid = Laid::new(buckets);
        for (key, ended) in &self.of_threads {
            if (key.0, key.1) == (pid, start) {
                self.lay(ended.clone(), &mut laid);
            }
        }
        laid.finish()
    }

    /// Adds the time of one thread to `laid`.
    fn lay(&self, mut ended: Vec<Ended>, laid: &mut Laid) {
        ended.sort_by_key(|one| std::cmp::Reverse(one.bucket));
        // Earlier parts that are not laid yet, of the latest wait first.
        let mut earlier: Vec<(Activity, u64)> = Vec::new();
        let mut free_to = u64::MAX;
        for group in ended.chunk_by_mut(|a, b| a.bucket == b.bucket) {
            let start = u64::from(group[0].bucket).saturating_mul(self.bucket_ns);
            let end = start.saturating_add(self.bucket_ns);
            lay_back(laid, &mut earlier, end, free_to);
            let all = group.iter().map(|one| one.ns).fold(0, u64::saturating_add);
            let mut beyond = all.saturating_sub(self.bucket_ns);
            // Estimates of samples may overlap: then it is more than one.
            group.sort_by_key(|one| std::cmp::Reverse(one.ns));
            let mut began_before = Vec::new();
            for one in group {
                let part = one.ns.min(beyond);
                beyond -= part;
                laid.add(one.activity, start, one.ns - part);
                if part > 0 {
                    began_before.push((one.activity, part));
                }
            }
            // Room that is left belongs to the wait that goes on after this bucket.
            let room = self.bucket_ns.saturating_sub(all);
            lay_back(laid, &mut earlier, start, start.saturating_add(room));
            earlier.extend(began_before);
            free_to = start;
        }
        lay_back(laid, &mut earlier, 0, free_to);
    }
}

/// Lays what is pending into the free time from `from` to `to`, its end first.
fn lay_back(laid: &mut Laid, pending: &mut Vec<(Activity, u64)>, from: u64, to: u64) {
    let mut to = to;
    while let Some((activity, ns)) = pending.first_mut() {
        let part = (*ns).min(to.saturating_sub(from));
        laid.add(*activity, to - part, part);
        to -= part;
        *ns -= part;
        if *ns > 0 {
            return;
        }
        pending.remove(0);
    }
}

/// Nanoseconds by kind in the buckets of an answer.
struct Laid {
    buckets: Buckets,
    ns: BTreeMap<Activity, Vec<u64>>,
}

impl Laid {
    fn new(buckets: Buckets) -> Self {
        Self {
            buckets,
            ns: BTreeMap::new(),
        }
    }

    /// `ns` from `start` on, cut at the ends of the answer.
    fn add(&mut self, activity: Activity, start: u64, ns: u64) {
        let Buckets {
            from_ms,
            bucket_ms,
            count,
        } = self.buckets;
        let length = bucket_ms.max(1).saturating_mul(NS_PER_MS);
        let origin = from_ms.saturating_mul(NS_PER_MS);
        let end = start.saturating_add(ns);
        let mut at = start.max(origin);
        while at < end {
            let bucket = (at - origin) / length;
            let Some(index) = usize::try_from(bucket).ok().filter(|index| *index < count) else {
                return;
            };
            let next = (origin + (bucket + 1) * length).min(end);
            let times = self.ns.entry(activity).or_insert_with(|| vec![0; count]);
            times[index] = times[index].saturating_add(next - at);
            at = next;
        }
    }

    fn finish(self) -> Vec<ActivityTimes> {
        let rounded = |ns: u64| (ns + NS_PER_US / 2) / NS_PER_US;
        let times = |(activity, ns): (Activity, Vec<u64>)| ActivityTimes {
            activity,
            times_us: ns.into_iter().map(rounded).collect(),
        };
        self.ns.into_iter().map(times).collect()
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::{
        Clock, ProcessKey, ProfileBuilder, ProfileProcess, ProfileThread, SampleRow, ThreadState,
    };

    use super::*;
    use crate::render::summary::threads;

    const BUCKET_NS: u64 = 20 * NS_PER_MS;

    /// What the one thread did in buckets of 100 ms from `from_ms` on, in milliseconds, where times of a
    /// state, in milliseconds, ended in buckets of 20 ms.
    fn laid(rows: &[(u32, ThreadState, u64)], from_ms: u64) -> Vec<(Activity, Vec<u64>)> {
        let mut builder = ProfileBuilder::new(0, BUCKET_NS, Clock::Switches);
        let process = builder.process(ProfileProcess {
            key: ProcessKey {
                pid: 1,
                start_ticks: 0,
            },
            comm: 0,
            exe: 0,
            container: 0,
        });
        let thread = builder.thread(ProfileThread {
            process,
            tid: 1,
            name: 0,
        });
        let stack = builder.stack(Vec::new());
        for (bucket, state, ms) in rows {
            builder.sample(SampleRow {
                thread,
                stack,
                cpu: 0,
                bucket: *bucket,
                state: *state,
                waker: None,
                count: 1,
                total_ns: ms * NS_PER_MS,
            });
        }
        let profile = builder.finish();
        let idle = vec![None; profile.samples.len()];
        let timeline = ActivityTimeline::of(&profile, Some(&idle));
        let buckets = Buckets {
            from_ms,
            bucket_ms: 100,
            count: 5,
        };
        let thread = &threads(&profile)[0];
        let times = timeline.of_thread(thread, buckets);
        assert_eq!(
            timeline.of_process(thread, buckets),
            times,
            "its only thread"
        );
        let ms = |us: &u64| us / 1000;
        times
            .iter()
            .map(|one| (one.activity, one.times_us.iter().map(ms).collect()))
            .collect()
    }

    const RUNNING: ThreadState = ThreadState::OnCpu;
    const WOKEN: ThreadState = ThreadState::Woken;
    const ASLEEP: ThreadState = ThreadState::Interruptible;

    #[test]
    fn a_wait_lies_over_all_the_time_that_it_took() {
        // It ended between 400 ms and 420 ms: the later is taken.
        assert_eq!(
            laid(&[(20, ASLEEP, 280)], 0),
            [(Activity::Other, vec![0, 60, 100, 100, 20])]
        );
    }

    #[test]
    fn times_before_and_after_it_keep_their_place() {
        assert_eq!(
            laid(
                &[
                    (2, RUNNING, 10),
                    (14, ASLEEP, 232),
                    (14, WOKEN, 3),
                    (14, RUNNING, 5),
                    (15, RUNNING, 20)
                ],
                0
            ),
            [
                (Activity::Running, vec![10, 0, 5, 20, 0]),
                (Activity::WaitingForCpu, vec![0, 0, 3, 0, 0]),
                (Activity::Other, vec![40, 100, 92, 0, 0]),
            ]
        );
    }

    #[test]
    fn what_began_before_the_answer_is_left_out() {
        assert_eq!(
            laid(&[(20, ASLEEP, 400)], 200),
            [(Activity::Other, vec![100, 100, 20, 0, 0])]
        );
    }

    #[test]
    fn overlapping_estimates_are_kept_whole() {
        let laid = laid(&[(10, ASLEEP, 60), (10, WOKEN, 50), (9, RUNNING, 20)], 0);
        let sums: Vec<u64> = laid.iter().map(|(_, ms)| ms.iter().sum()).collect();
        assert_eq!(sums, [20, 50, 60]);
        let total: Vec<u64> = (0..5)
            .map(|at| laid.iter().map(|(_, ms)| ms[at]).sum())
            .collect();
        assert!(total.iter().all(|ms| *ms <= 100), "{total:?}");
    }

    #[test]
    fn results_without_waits_have_none() {
        let profile = ProfileBuilder::new(0, BUCKET_NS, Clock::CpuClock).finish();
        assert_eq!(ActivityTimeline::of(&profile, None).kinds(), 0);
    }
}
