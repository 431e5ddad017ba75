//! Buckets and epochs of the clock that all counters share.

use aya_ebpf::{macros::map, maps::Array};
use profiler_common::counter;

use crate::config::config;

/// `bpf_ktime_get_ns` of bucket 0, written when everything is attached; 0 before.
#[map]
static ORIGIN: Array<u64> = Array::with_max_entries(1, 0);

/// The time of bucket 0; none while the clock has not started.
#[inline(always)]
pub(crate) fn origin(now: u64) -> Option<u64> {
    let origin = ORIGIN.get(0).copied().unwrap_or(0);
    if origin == 0 || now < origin {
        None
    } else {
        Some(origin)
    }
}

/// Where something that happens now is counted.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) bucket: u32,
    /// Which of the two tables is written in this epoch.
    pub(crate) even_epoch: bool,
}

impl Moment {
    #[inline(always)]
    pub(crate) fn of(now: u64, origin: u64) -> Result<Self, u32> {
        // Never zero; the check keeps the compiler's panic path, which no verifier accepts, away.
        let bucket = (now - origin)
            .checked_div(config!(bucket_ns))
            .ok_or(counter::KERNEL_READ_FAILED)?;
        let epoch = bucket
            .checked_div(config!(buckets_per_epoch))
            .ok_or(counter::KERNEL_READ_FAILED)?;
        Ok(Self {
            bucket: bucket as u32,
            even_epoch: epoch & 1 == 0,
        })
    }
}
