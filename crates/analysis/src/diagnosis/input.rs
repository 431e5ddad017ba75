//! What a diagnosis is made from.

use std::collections::BTreeSet;

use profiler_model::{
    EdgeTable, Observed, ObservedProcess, Profile, ProfileProcess, RequestTable, ThreadState,
    diagnosis::EventLoopReport,
};

/// Everything that is known about a window of time. What is missing is missing in the diagnosis, and
/// its limits say so.
#[derive(Clone, Debug, Default)]
pub struct DiagnosisInput<'a> {
    /// Samples on the CPU; a wall-clock profile has them too.
    pub on_cpu: Option<&'a Profile>,
    /// Waits; may be the same wall-clock profile.
    pub off_cpu: Option<&'a Profile>,
    pub edges: Option<&'a EdgeTable>,
    pub requests: Option<&'a RequestTable>,
    pub observed: Option<&'a Observed>,
    pub event_loop: Option<&'a EventLoopReport>,
    /// Only these processes; empty takes all.
    pub pids: Vec<u32>,
    /// Only requests to these processes; empty takes all.
    pub requests_to: Vec<u32>,
    /// What is known to be missing, as sentences; also the gaps of what was observed.
    pub limits: Vec<String>,
}

impl<'a> DiagnosisInput<'a> {
    /// Processes that the diagnosis is about.
    pub(super) fn pids(&self) -> BTreeSet<u32> {
        if !self.pids.is_empty() {
            return self.pids.iter().copied().collect();
        }
        self.sampled()
    }

    /// Processes whose requests are looked at.
    pub(super) fn answering(&self) -> BTreeSet<u32> {
        if !self.requests_to.is_empty() {
            return self.requests_to.iter().copied().collect();
        }
        self.sampled()
    }

    fn sampled(&self) -> BTreeSet<u32> {
        let profiles = [self.on_cpu, self.off_cpu].into_iter().flatten();
        profiles
            .flat_map(sampled_processes)
            .map(|process| process.key.pid)
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

/// Processes that have samples, each once.
pub(super) fn sampled_processes(profile: &Profile) -> impl Iterator<Item = &ProfileProcess> {
    let rows = profile.samples.iter();
    let used: BTreeSet<u32> = rows
        .map(|row| profile.threads[row.thread as usize].process)
        .collect();
    used.into_iter()
        .map(|process| &profile.processes[process as usize])
}

/// Whether a profile has waits.
pub(super) fn has_waits(profile: &Profile) -> bool {
    profile
        .samples
        .iter()
        .any(|row| row.state != ThreadState::OnCpu)
}
