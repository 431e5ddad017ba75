//! Buckets and epochs of the clock that all counters share.

use core::ptr::read_volatile;

use aya_ebpf::{macros::map, maps::Array};
use profiler_common::{counter, limits::PROGRAM_CLASSES};

use crate::{config::config, maps::area_of_cpu};

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

/// A bucket that was computed before.
#[repr(C)]
struct KnownBucket {
    began_ns: u64,
    bucket: u32,
    even_epoch: u32,
}

/// The bucket of the last event, for each class of programs on each CPU: most events spare the divisions.
#[map]
static BUCKETS: Array<KnownBucket> = Array::with_max_entries(PROGRAM_CLASSES, 0);

impl Moment {
    /// For programs of a class ([`PROGRAM_CLASSES`]).
    #[inline(always)]
    pub(crate) fn of(now: u64, origin: u64, class: u32) -> Result<Self, u32> {
        let known =
            area_of_cpu(&BUCKETS, PROGRAM_CLASSES, class).ok_or(counter::KERNEL_READ_FAILED)?;
        // SAFETY: a map value of this CPU; no other program of this class runs on it now.
        let known = unsafe { &mut *known };
        if now.wrapping_sub(known.began_ns) >= config!(bucket_ns) {
            // Never zero; the checks keep the compiler's panic path, which no verifier accepts, away.
            let bucket = (now - origin)
                .checked_div(config!(bucket_ns))
                .ok_or(counter::KERNEL_READ_FAILED)?;
            let epoch = bucket
                .checked_div(config!(buckets_per_epoch))
                .ok_or(counter::KERNEL_READ_FAILED)?;
            known.began_ns = origin + bucket * config!(bucket_ns);
            known.bucket = bucket as u32;
            known.even_epoch = u32::from(epoch & 1 == 0);
        }
        // Read back, so that the verifier follows what comes next once and not for both ways here.
        // SAFETY: as above.
        let (bucket, even_epoch) = unsafe {
            (
                read_volatile(&raw const known.bucket),
                read_volatile(&raw const known.even_epoch),
            )
        };
        Ok(Self {
            bucket,
            even_epoch: even_epoch != 0,
        })
    }
}
