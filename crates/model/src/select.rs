//! Cutting a part out of a profile.

use super::{Profile, ProfileProcess, ThreadId};

/// Which samples to keep. The default keeps all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Keep samples at or after this time, nanoseconds after the task's start (whole buckets).
    pub from_ns: Option<u64>,
    /// Keep samples before this time, nanoseconds after the task's start (whole buckets).
    pub to_ns: Option<u64>,
    /// Keep these threads; empty keeps all.
    pub tids: Vec<u32>,
    /// Leave these threads out.
    pub except_tids: Vec<u32>,
    /// Keep these processes; empty keeps all.
    pub pids: Vec<u32>,
    /// Keep the processes of these containers, by their whole ids; empty keeps all.
    pub containers: Vec<String>,
}

impl Selection {
    /// True when nothing is cut.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the samples of a process are kept.
    fn keeps_process(&self, profile: &Profile, process: &ProfileProcess) -> bool {
        let container = profile.text(process.container);
        let is_wanted = || self.containers.iter().any(|id| id == container);
        (self.pids.is_empty() || self.pids.contains(&process.key.pid))
            && (self.containers.is_empty() || (!container.is_empty() && is_wanted()))
    }

    /// `processes`: of each process, whether it is kept.
    fn keeps(&self, profile: &Profile, processes: &[bool], thread: ThreadId, bucket: u32) -> bool {
        let start = u64::from(bucket).saturating_mul(profile.bucket_ns);
        let end = start.saturating_add(profile.bucket_ns);
        let thread = &profile.threads[thread as usize];
        self.from_ns.is_none_or(|from| end > from)
            && self.to_ns.is_none_or(|to| start < to)
            && (self.tids.is_empty() || self.tids.contains(&thread.tid))
            && !self.except_tids.contains(&thread.tid)
            && processes[thread.process as usize]
    }

    /// The selected part of `profile`. Tables keep entries that no sample uses any more.
    /// Losses are kept whole: they are not known per thread.
    pub fn apply(&self, profile: &Profile) -> Profile {
        if self.is_all() {
            return profile.clone();
        }
        let processes: Vec<bool> = profile
            .processes
            .iter()
            .map(|process| self.keeps_process(profile, process))
            .collect();
        let mut kept = profile.clone();
        kept.samples
            .retain(|row| self.keeps(profile, &processes, row.thread, row.bucket));
        kept.contention
            .retain(|row| self.keeps(profile, &processes, row.thread, row.bucket));
        kept.from_ns = self
            .from_ns
            .map_or(kept.from_ns, |from| from.max(kept.from_ns));
        kept.to_ns = self.to_ns.map_or(kept.to_ns, |to| to.min(kept.to_ns));
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Clock, ProcessKey, ProfileBuilder, ProfileThread, SampleRow, ThreadState};
    use super::*;

    /// Processes 1 and 2 of container `a`, 3 of `b` and 4 of none, with as many samples as their number.
    fn profile() -> Profile {
        let mut builder = ProfileBuilder::new(0, 1_000_000, Clock::CpuClock);
        let stack = builder.stack(Vec::new());
        for (pid, id) in [(1, "a"), (2, "a"), (3, "b"), (4, "")] {
            let container = builder.string(id);
            let process = builder.process(ProfileProcess {
                key: ProcessKey {
                    pid,
                    start_ticks: 0,
                },
                comm: 0,
                exe: 0,
                container,
            });
            let thread = builder.thread(ProfileThread {
                process,
                tid: pid,
                name: 0,
            });
            builder.sample(SampleRow {
                thread,
                stack,
                cpu: 0,
                bucket: 0,
                state: ThreadState::OnCpu,
                waker: None,
                count: u64::from(pid),
                total_ns: 1,
            });
        }
        builder.finish()
    }

    #[test]
    fn containers_are_kept_by_their_ids() {
        for (containers, pids, expected) in [
            (vec![], vec![], 10),
            (vec!["a"], vec![], 3),
            (vec!["a", "b"], vec![], 6),
            (vec!["a"], vec![2, 3], 2),
            (vec!["c"], vec![], 0),
            // What is not in a container is in none, not in one without an id.
            (vec![""], vec![], 0),
        ] {
            let selection = Selection {
                containers: containers.iter().map(ToString::to_string).collect(),
                pids,
                ..Selection::default()
            };
            assert_eq!(
                selection.apply(&profile()).total_count(),
                expected,
                "{selection:?}"
            );
        }
    }
}
