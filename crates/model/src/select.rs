//! Cutting a part out of a profile.

use super::{Profile, ThreadId};

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
}

impl Selection {
    /// True when nothing is cut.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    fn keeps(&self, profile: &Profile, thread: ThreadId, bucket: u32) -> bool {
        let start = u64::from(bucket).saturating_mul(profile.bucket_ns);
        let end = start.saturating_add(profile.bucket_ns);
        let thread = &profile.threads[thread as usize];
        let pid = profile.processes[thread.process as usize].key.pid;
        self.from_ns.is_none_or(|from| end > from)
            && self.to_ns.is_none_or(|to| start < to)
            && (self.tids.is_empty() || self.tids.contains(&thread.tid))
            && !self.except_tids.contains(&thread.tid)
            && (self.pids.is_empty() || self.pids.contains(&pid))
    }

    /// The selected part of `profile`. Tables keep entries that no sample uses any more.
    /// Losses are kept whole: they are not known per thread.
    pub fn apply(&self, profile: &Profile) -> Profile {
        if self.is_all() {
            return profile.clone();
        }
        let mut kept = profile.clone();
        kept.samples
            .retain(|row| self.keeps(profile, row.thread, row.bucket));
        kept.contention
            .retain(|row| self.keeps(profile, row.thread, row.bucket));
        kept.from_ns = self
            .from_ns
            .map_or(kept.from_ns, |from| from.max(kept.from_ns));
        kept.to_ns = self.to_ns.map_or(kept.to_ns, |to| to.min(kept.to_ns));
        kept
    }
}
