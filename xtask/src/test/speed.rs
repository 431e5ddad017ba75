//! How fast this machine is now, against the one that budgets were set on: machines are shared, and one was half as fast as the
//! day before.

use std::{env, hint::black_box, sync::LazyLock, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// CPU time of [`work`] on the usual machine, by estimate: it took 250 to 307 ms on one where the step `kernels` had used 814 s of
/// CPU time an hour before, in place of 304.
const USUAL: Duration = Duration::from_millis(110);
/// Numbers that are sorted: 2 MiB.
const NUMBERS: usize = 1 << 18;
/// Beyond this a budget shows nothing.
const MOST: f64 = 6.0;

/// Set where the machine is to be taken for a usual one: by the step that shows what budgets do.
pub(super) const AS_USUAL: &str = "PROFILER_TEST_AS_USUAL";

/// [`slowness`] when it was first asked for: what a job may take at most needs no better one.
pub(super) static AT_FIRST: LazyLock<f64> = LazyLock::new(slowness);

/// How many times as much CPU time as usual the same work takes now; at least 1. Takes about a second.
pub(super) fn slowness() -> f64 {
    if env::var_os(AS_USUAL).is_some() {
        return 1.0;
    }
    let times = [(); 3].map(|()| {
        let before = cpu_time();
        black_box(work());
        cpu_time().saturating_sub(before)
    });
    let least = times.into_iter().min().unwrap_or(USUAL);
    (least.as_secs_f64() / USUAL.as_secs_f64()).clamp(1.0, MOST)
}

/// Of this thread: however many others want the processor.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// Sorts numbers that are always the same (xorshift, Marsaglia 2003).
fn work() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut numbers: Vec<u64> = (0..NUMBERS)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        })
        .collect();
    numbers.sort_unstable();
    numbers[NUMBERS / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_never_faster_than_usual() {
        assert!((1.0..=MOST).contains(&slowness()));
        assert_eq!(work(), work());
    }
}
