//! What a diagnosis is made from.

use std::{borrow::Cow, collections::BTreeSet};

use crate::model::{
    EdgeTable, Observed, ObservedProcess, Profile, SampleRow, StackFault, ThreadState,
    diagnosis::EventLoopReport,
};

/// Everything that is known about a window of time. What is missing is missing in the diagnosis, and
/// its limits say so.
#[derive(Clone, Debug, Default)]
pub struct Evidence<'a> {
    /// Samples on the CPU; a wall-clock profile has them too.
    pub on_cpu: Option<&'a Profile>,
    /// Waits; may be the same wall-clock profile.
    pub off_cpu: Option<&'a Profile>,
    pub edges: Option<&'a EdgeTable>,
    pub observed: Option<&'a Observed>,
    pub event_loop: Option<&'a EventLoopReport>,
    /// Only these processes, which the profiles are cut to already; empty takes all.
    pub pids: Vec<u32>,
    /// What is known to be missing, as sentences; also the gaps of what was observed.
    pub limits: Vec<String>,
}

impl<'a> Evidence<'a> {
    /// Processes that the diagnosis is about.
    pub(super) fn pids(&self) -> BTreeSet<u32> {
        if !self.pids.is_empty() {
            return self.pids.iter().copied().collect();
        }
        let profiles = [self.on_cpu, self.off_cpu].into_iter().flatten();
        profiles
            .flat_map(|profile| {
                profile.samples.iter().map(|row| {
                    let process = profile.threads[row.thread as usize].process;
                    profile.processes[process as usize].key.pid
                })
            })
            .collect()
    }

    /// The observed processes among them.
    pub(super) fn observed(&self) -> Vec<&'a ObservedProcess> {
        let pids = self.pids();
        self.observed
            .iter()
            .flat_map(|observed| &observed.processes)
            .filter(|process| pids.contains(&process.key.pid))
            .collect()
    }

    /// Length of the window of the samples in nanoseconds, at least one.
    pub(super) fn window_ns(&self) -> u64 {
        let profile = self.on_cpu.or(self.off_cpu);
        profile.map_or(1, |profile| {
            profile.to_ns.saturating_sub(profile.from_ns).max(1)
        })
    }
}

/// The samples of a profile without CPU time that lies between two of them, and that time in
/// nanoseconds. Wall-clock profiles have it: where a thread ran for less than a period, nobody saw what.
pub(super) fn without_unsampled(profile: &Profile) -> (Cow<'_, Profile>, u64) {
    let marker = StackFault::NotSampled.marker();
    let is_rest = |frame: &u32| {
        let frame = &profile.frames[*frame as usize];
        let name = frame.functions.first();
        name.is_some_and(|function| profile.text(function.name) == marker)
    };
    let rest: Vec<bool> = profile
        .stacks
        .iter()
        .map(|stack| stack.frames.iter().any(is_rest))
        .collect();
    let is_unsampled =
        |row: &SampleRow| row.state == ThreadState::OnCpu && rest[row.stack as usize];
    let unsampled = profile.samples.iter().filter(|row| is_unsampled(row));
    let ns = unsampled
        .map(|row| row.total_ns)
        .fold(0, u64::saturating_add);
    if ns == 0 {
        return (Cow::Borrowed(profile), 0);
    }
    let mut sampled = profile.clone();
    sampled.samples.retain(|row| !is_unsampled(row));
    (Cow::Owned(sampled), ns)
}

/// Whether a profile has waits.
pub(super) fn has_waits(profile: &Profile) -> bool {
    profile
        .samples
        .iter()
        .any(|row| row.state != ThreadState::OnCpu)
}
