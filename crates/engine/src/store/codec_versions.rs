//! Profiles as blobs of older versions have them.

use profiler_model::{
    Clock, Frame, Losses, Module, Profile, ProfileProcess, ProfileThread, SampleRow, Stack,
    StackQuality, ThreadState,
};
use serde::Deserialize;

/// [`Profile`] with older rows; the order of the fields is that of the file. `Quality` is nothing
/// where the version had no such field.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct OlderProfile<Row, Quality> {
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
    pub(super) samples: Vec<Row>,
    pub(super) losses: Losses,
    pub(super) stack_quality: Quality,
}

/// Version 1: nothing is known of how complete stacks are.
pub(super) type Version1 = OlderProfile<RowWithPeriod, ()>;
/// Version 2: each sample has a period.
pub(super) type Version2 = OlderProfile<RowWithPeriod, StackQuality>;
/// Version 3: nothing is known of wakers.
pub(super) type Version3 = OlderProfile<RowWithoutWaker, StackQuality>;

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
            waker: None,
            count,
            total_ns: count.saturating_mul(period_ns),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct RowWithoutWaker {
    pub(super) thread: u32,
    pub(super) stack: u32,
    pub(super) cpu: u32,
    pub(super) bucket: u32,
    pub(super) state: ThreadState,
    pub(super) count: u64,
    pub(super) total_ns: u64,
}

impl From<RowWithoutWaker> for SampleRow {
    fn from(row: RowWithoutWaker) -> Self {
        let RowWithoutWaker {
            thread,
            stack,
            cpu,
            bucket,
            state,
            count,
            total_ns,
        } = row;
        Self {
            thread,
            stack,
            cpu,
            bucket,
            state,
            waker: None,
            count,
            total_ns,
        }
    }
}

/// How complete the stacks of an older profile are.
pub(super) trait OlderQuality {
    fn now(self) -> StackQuality;
}

impl OlderQuality for () {
    fn now(self) -> StackQuality {
        StackQuality::default()
    }
}

impl OlderQuality for StackQuality {
    fn now(self) -> StackQuality {
        self
    }
}

impl<Row: Into<SampleRow>, Quality: OlderQuality> From<OlderProfile<Row, Quality>> for Profile {
    fn from(old: OlderProfile<Row, Quality>) -> Self {
        let OlderProfile {
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
            samples: samples.into_iter().map(Row::into).collect(),
            losses,
            stack_quality: stack_quality.now(),
        }
    }
}
