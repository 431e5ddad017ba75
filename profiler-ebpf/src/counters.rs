//! Per-CPU counters of everything that goes wrong or is skipped.

use profiler_common::counter::COUNTERS as COUNTER_COUNT;

use aya_ebpf::{macros::map, maps::PerCpuArray};

#[map]
static COUNTERS: PerCpuArray<u64> = PerCpuArray::with_max_entries(COUNTER_COUNT, 0);

/// Adds one to a counter of `profiler_common::counter`.
#[inline(always)]
pub(crate) fn count(counter: u32) {
    if let Some(slot) = COUNTERS.get_ptr_mut(counter) {
        // SAFETY: a per-CPU slot; programs on one CPU may interrupt each other and then lose one
        // increment at worst.
        unsafe { *slot += 1 };
    }
}

/// Adds `number` to a counter.
#[inline(always)]
pub(crate) fn count_many(counter: u32, number: u64) {
    if let Some(slot) = COUNTERS.get_ptr_mut(counter) {
        // SAFETY: as above.
        unsafe { *slot += number };
    }
}
