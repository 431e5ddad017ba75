//! The agent's clocks: the wall clock, which may be set at any moment, and a monotonic one.
//!
//! | what | clock |
//! |---|---|
//! | when a task was made and began, names by time | the wall clock, read once |
//! | everything later in a result, the end of a task, its progress | its beginning and the time that has passed |
//! | time-outs, durations, pauses | `Instant` (`CLOCK_MONOTONIC`) |
//! | the age of results | [`Clocks::undisturbed_ns`] |

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use profiler_common::process::start_ns;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the Unix epoch by the wall clock. The only place that reads it.
pub fn wall_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds since the machine's start, sleep included (`CLOCK_BOOTTIME`). It cannot be set.
pub fn steady_ns() -> u64 {
    clock_ns(ClockId::Boottime)
}

/// `CLOCK_MONOTONIC` in nanoseconds, which the kernel side counts times by.
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// What the wall clock shows, in nanoseconds since the Unix epoch, less [`monotonic_ns`] at the same moment. Off by the time between the
/// two readings, of which the shortest of some is taken: less than a microsecond unless each was interrupted.
pub fn monotonic_zero_ns() -> u64 {
    let tries = (0..5).map(|_| {
        let before = monotonic_ns();
        let wall = wall_ns();
        let took = monotonic_ns().saturating_sub(before);
        (took, wall.saturating_sub(before + took / 2))
    });
    let best = tries.min_by_key(|(took, _)| *took);
    best.map_or(0, |(_, zero)| zero)
}

/// When a process started, by the wall clock as it is set now; `start_ticks` is that of `/proc/PID/stat`. Off by what
/// the clock has been set since.
pub fn started_wall_ns(start_ticks: u64) -> u64 {
    let age_ns = steady_ns().saturating_sub(start_ns(start_ticks));
    wall_ns().saturating_sub(age_ns)
}

/// When a process started, on [`steady_ns`]; `start_ticks` is that of `/proc/PID/stat`, so in steps of 10 ms.
pub fn started_steady_ns(start_ticks: u64) -> u64 {
    start_ns(start_ticks)
}

/// CPU time of the calling thread since it began, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// A clock of the kernel in nanoseconds.
pub fn clock_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

/// Reads a clock, in nanoseconds.
pub type ClockReader = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Both clocks, related to each other when this was made.
#[derive(Clone)]
pub struct Clocks {
    wall: ClockReader,
    steady: ClockReader,
    wall_at_start_ns: u64,
    steady_at_start_ns: u64,
}

impl Clocks {
    pub fn of_the_machine() -> Self {
        Self::new(Arc::new(wall_ns), Arc::new(steady_ns))
    }

    /// Clocks that a test moves.
    pub fn new(wall: ClockReader, steady: ClockReader) -> Self {
        let (wall_at_start_ns, steady_at_start_ns) = (wall(), steady());
        Self {
            wall,
            steady,
            wall_at_start_ns,
            steady_at_start_ns,
        }
    }

    /// Nanoseconds since the Unix epoch.
    pub fn wall_ns(&self) -> u64 {
        (self.wall)()
    }

    /// What the wall clock showed when this was made.
    pub fn wall_at_start_ns(&self) -> u64 {
        self.wall_at_start_ns
    }

    /// What the wall clock would show now if it had not been set since the start.
    pub fn undisturbed_ns(&self) -> u64 {
        let passed = (self.steady)().saturating_sub(self.steady_at_start_ns);
        self.wall_at_start_ns.saturating_add(passed)
    }

    /// By how much the wall clock has been set since the start, in nanoseconds; negative: set back. Slewing by a time
    /// server is in it.
    pub fn set_by_ns(&self) -> i64 {
        difference(self.wall_ns(), self.undisturbed_ns())
    }
}

impl std::fmt::Debug for Clocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clocks")
            .field("set_by_ns", &self.set_by_ns())
            .finish_non_exhaustive()
    }
}

/// `a - b`, as precisely as possible.
fn difference(a: u64, b: u64) -> i64 {
    let magnitude = i64::try_from(a.abs_diff(b)).unwrap_or(i64::MAX);
    if a < b { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_wall_clock_that_is_set_moves_nothing_else() {
        let hand = |start| {
            let value = Arc::new(AtomicU64::new(start));
            let reader = Arc::clone(&value);
            let clock: ClockReader = Arc::new(move || reader.load(Ordering::Relaxed));
            (value, clock)
        };
        let (wall, wall_clock) = hand(1_000);
        let (steady, steady_clock) = hand(50);
        let clocks = Clocks::new(wall_clock, steady_clock);
        steady.store(57, Ordering::Relaxed);
        wall.store(1_007, Ordering::Relaxed);
        assert_eq!((clocks.undisturbed_ns(), clocks.set_by_ns()), (1_007, 0));
        wall.store(9_007, Ordering::Relaxed);
        assert_eq!(
            (clocks.undisturbed_ns(), clocks.set_by_ns()),
            (1_007, 8_000)
        );
        wall.store(7, Ordering::Relaxed);
        assert_eq!(
            (clocks.undisturbed_ns(), clocks.set_by_ns()),
            (1_007, -1_000)
        );
        assert_eq!((clocks.wall_ns(), clocks.wall_at_start_ns()), (7, 1_000));
    }

    #[test]
    fn the_machine_s_clocks_run_together() {
        let clocks = Clocks::of_the_machine();
        assert!(clocks.wall_ns() >= clocks.wall_at_start_ns());
        assert!(clocks.set_by_ns().unsigned_abs() < 1_000_000_000);
    }
}
