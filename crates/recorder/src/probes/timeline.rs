//! Clocks: the kernel's monotonic time against the Unix epoch, buckets and epochs.

use std::time::Duration;

pub(super) use profiler_clock::monotonic_ns;
use profiler_clock::wall_ns;
use profiler_model::{Clock, ProfileBuilder};

/// Length of a time bucket: fine enough for a sub-second heat map.
pub(super) const BUCKET: Duration = Duration::from_millis(20);

/// Buckets in an epoch. The counting tables alternate each epoch, so a result is at most one epoch
/// and the grace old when it reaches the agent.
pub(super) const BUCKETS_PER_EPOCH: u64 = 12;

/// Time after the end of an epoch until its table is read: a sample that took its time stamp just
/// before the end has long been counted by then.
pub(super) const GRACE: Duration = Duration::from_millis(20);

/// Shortest wait of a session's loop.
pub(super) const LOOP_WAIT: Duration = Duration::from_millis(50);

/// Start of a collection on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// `CLOCK_MONOTONIC`, as `bpf_ktime_get_ns`.
    pub(super) kernel_ns: u64,
    /// Unix epoch.
    pub(super) epoch_ns: u64,
}

impl Origin {
    pub(super) fn now() -> Self {
        Self {
            kernel_ns: monotonic_ns(),
            epoch_ns: wall_ns(),
        }
    }

    /// Time since the origin.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.kernel_ns))
    }

    /// The bucket of a time stamp of the kernel.
    pub(super) fn bucket(&self, kernel_ns: u64) -> u32 {
        let bucket =
            u128::from(kernel_ns.saturating_sub(self.kernel_ns)) / BUCKET.as_nanos().max(1);
        u32::try_from(bucket).unwrap_or(u32::MAX)
    }

    /// The kernel's time stamp on the Unix clock.
    pub(super) fn to_epoch_ns(self, kernel_ns: u64) -> u64 {
        self.epoch_ns
            .saturating_add(kernel_ns)
            .saturating_sub(self.kernel_ns)
    }
}

/// The epoch's length.
pub(super) fn epoch() -> Duration {
    BUCKET * u32::try_from(BUCKETS_PER_EPOCH).unwrap_or(1)
}

/// An empty part of a result.
pub(super) fn new_builder(origin: Origin, clock: Clock) -> ProfileBuilder {
    let bucket_ns = u64::try_from(BUCKET.as_nanos()).unwrap_or(1);
    ProfileBuilder::new(origin.epoch_ns, bucket_ns, clock)
}
