//! What threads did with their time, in a few kinds.

use std::collections::{BTreeMap, HashMap};

use profiler_model::{Activity, ActivitySum, Profile, SampleRow, ThreadActivity};

use crate::render::{
    summary::{ThreadSummary, identity},
    wait_reasons::WaitReasons,
};

/// Counts and nanoseconds by kind, in the order of [`Activity::ALL`].
type Sums = BTreeMap<Activity, (u64, u64)>;

/// Sums of all threads, and of each by its pid, start and tid.
#[derive(Debug, Default)]
pub struct Activities {
    all: Sums,
    of_threads: HashMap<(u32, u64, u32), Sums>,
}

/// What each sample is the time of; `idle`: what [`crate::idle::IdleRules::classify`] found.
pub(crate) fn classified<'a>(
    profile: &'a Profile,
    idle: &'a [Option<usize>],
) -> impl Iterator<Item = (&'a SampleRow, Activity)> {
    let reasons = WaitReasons::of(profile);
    let samples = profile.samples.iter().zip(idle);
    samples.map(move |(row, rule)| match rule {
        Some(_) => (row, Activity::Idle),
        None => (row, Activity::of(row.state, reasons.of_row(row))),
    })
}

impl Activities {
    /// Of all samples of a profile, with what [`crate::idle::IdleRules::classify`] found for it; empty where it has no waits.
    pub fn of(profile: &Profile, idle: Option<&[Option<usize>]>) -> Self {
        let mut found = Self::default();
        let Some(idle) = idle else {
            return found;
        };
        for (row, activity) in classified(profile, idle) {
            let of_thread = found
                .of_threads
                .entry(identity(profile, row.thread))
                .or_default();
            for sums in [&mut found.all, of_thread] {
                let (count, ns) = sums.entry(activity).or_default();
                *count = count.saturating_add(row.count);
                *ns = ns.saturating_add(row.total_ns);
            }
        }
        found
    }

    /// Of all threads, in the order in which they are shown.
    pub fn sums(&self) -> Vec<ActivitySum> {
        let sum = |(activity, (count, ns)): (&Activity, &(u64, u64))| activity.sum(*count, *ns);
        self.all.iter().map(sum).collect()
    }

    /// Of one thread.
    pub fn of_thread(&self, thread: &ThreadSummary) -> Vec<ThreadActivity> {
        let sums = self.of_threads.get(&thread.identity());
        let time = |(activity, (_, ns)): (&Activity, &(u64, u64))| ThreadActivity {
            activity: *activity,
            total_ns: *ns,
        };
        sums.into_iter().flatten().map(time).collect()
    }
}
