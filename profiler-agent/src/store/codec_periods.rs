//! Profiles as blobs of version 2 have them: each sample with a period.

use serde::Deserialize;

use crate::model::{
    Clock, Frame, Losses, Module, Profile, ProfileProcess, ProfileThread, SampleRow, Stack,
    StackQuality, ThreadState,
};

/// [`Profile`] with older rows; the order of the fields is that of the file.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct ProfileWithPeriods {
    pub(super) origin_ns: u64,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) bucket_ns: u64,
    pub(super) clock: Clock,
    pub(super) strings: Vec<String>,
    pub(super) modules: Vec<Module>,
    pub(super) frames: Vec<Frame>,
    pub(super) stacks: Vec<Stack>,
    pub(super) processes: Vec<ProfileProcess>,
    pub(super) threads: Vec<ProfileThread>,
    pub(super) samples: Vec<RowWithPeriod>,
    pub(super) losses: Losses,
    pub(super) stack_quality: StackQuality,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct RowWithPeriod {
    pub(super) thread: u32,
    pub(super) stack: u32,
    pub(super) cpu: u32,
    pub(super) bucket: u32,
    pub(super) count: u64,
    pub(super) period_ns: u64,
}

impl From<RowWithPeriod> for SampleRow {
    fn from(row: RowWithPeriod) -> Self {
        let RowWithPeriod {
            thread,
            stack,
            cpu,
            bucket,
            count,
            period_ns,
        } = row;
        Self {
            thread,
            stack,
            cpu,
            bucket,
            state: ThreadState::OnCpu,
            count,
            total_ns: count.saturating_mul(period_ns),
        }
    }
}

impl From<ProfileWithPeriods> for Profile {
    fn from(old: ProfileWithPeriods) -> Self {
        let ProfileWithPeriods {
            origin_ns,
            from_ns,
            to_ns,
            bucket_ns,
            clock,
            strings,
            modules,
            frames,
            stacks,
            processes,
            threads,
            samples,
            losses,
            stack_quality,
        } = old;
        Self {
            origin_ns,
            from_ns,
            to_ns,
            bucket_ns,
            clock,
            strings,
            modules,
            frames,
            stacks,
            processes,
            threads,
            samples: samples.into_iter().map(SampleRow::from).collect(),
            losses,
            stack_quality,
        }
    }
}
