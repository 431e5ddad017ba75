//! What time it is for each task: its beginning by the wall clock, and what has passed since then.
//!
//! Setting the wall clock moves neither the times within a result nor its age. Two things are left:
//!
//! - A result of this run of the agent ages by the time that passes. The age of one that an earlier run left counts from
//!   the wall clock at this run's start; what ended in the future is as old as this run.
//! - The times of a task are those of the wall clock at its beginning, right or wrong. A task says when the clock was
//!   set while it ran.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use profiler_clock::Clocks;
use profiler_model::TaskId;

/// A time server may slew the clock by 0.05 %; a result says more than this only.
const WORTH_SAYING: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Times {
    clocks: Clocks,
    /// By how much the wall clock had been set when a task of this run began, in nanoseconds.
    set_by_ns: Mutex<BTreeMap<TaskId, i64>>,
}

impl Times {
    pub(super) fn new(clocks: Clocks) -> Self {
        Self {
            clocks,
            set_by_ns: Mutex::default(),
        }
    }

    pub(super) fn wall_ns(&self) -> u64 {
        self.clocks.wall_ns()
    }

    /// From now on the times of `task` count from the wall clock as it is.
    pub(super) fn begin(&self, task: TaskId) {
        let set_by_ns = self.clocks.set_by_ns();
        self.tasks().insert(task, set_by_ns);
    }

    /// Nanoseconds since the Unix epoch, as the task's other times are.
    pub(super) fn now_of(&self, task: TaskId) -> u64 {
        let set_by_ns = self.tasks().get(&task).copied();
        set_by_ns.map_or_else(
            || self.clocks.wall_ns(),
            |set_by_ns| {
                self.clocks
                    .undisturbed_ns()
                    .saturating_add_signed(set_by_ns)
            },
        )
    }

    /// Time since the `end_ns` of something of this task.
    pub(super) fn age_ns(&self, task: TaskId, end_ns: u64) -> u64 {
        let set_by_ns = self.tasks().get(&task).copied();
        let now_ns = self.clocks.undisturbed_ns();
        let end_ns = match set_by_ns {
            Some(set_by_ns) => end_ns.saturating_add_signed(set_by_ns.saturating_neg()),
            // The clock was set back since then.
            None if end_ns > now_ns => self.clocks.wall_at_start_ns(),
            None => end_ns,
        };
        now_ns.saturating_sub(end_ns)
    }

    /// What to report about the wall clock when it was set since the task began, or since `told_ns`, the last time that
    /// something was said.
    pub(super) fn remark(&self, task: TaskId, told_ns: &mut i64) -> Option<String> {
        let begun_ns = self.tasks().get(&task).copied()?;
        let set_by_ns = self.clocks.set_by_ns().saturating_sub(begun_ns);
        let news = Duration::from_nanos(set_by_ns.abs_diff(*told_ns));
        if news < WORTH_SAYING {
            return None;
        }
        let direction = if set_by_ns < *told_ns {
            "back"
        } else {
            "forward"
        };
        *told_ns = set_by_ns;
        Some(format!(
            "the machine's clock was set {direction} by {:.0} s while this ran; times in the result count on from its beginning",
            news.as_secs_f64()
        ))
    }

    /// For a task that is gone.
    pub(super) fn forget(&self, task: TaskId) {
        self.tasks().remove(&task);
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<TaskId, i64>> {
        self.set_by_ns.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use profiler_clock::ClockReader;

    use super::*;

    const S: u64 = 1_000_000_000;
    const DAYS: u64 = 10 * 86_400 * S;
    /// The wall clock at the start.
    const START: u64 = 100 * DAYS;

    struct Hands {
        wall: Arc<AtomicU64>,
        steady: Arc<AtomicU64>,
        times: Times,
    }

    impl Hands {
        fn new() -> Self {
            let hand = |start| {
                let value = Arc::new(AtomicU64::new(start));
                let reader = Arc::clone(&value);
                let clock: ClockReader = Arc::new(move || reader.load(Ordering::Relaxed));
                (value, clock)
            };
            let (wall, wall_clock) = hand(START);
            let (steady, steady_clock) = hand(7);
            let times = Times::new(Clocks::new(wall_clock, steady_clock));
            Self {
                wall,
                steady,
                times,
            }
        }

        fn pass(&self, seconds: u64) {
            self.wall.fetch_add(seconds * S, Ordering::Relaxed);
            self.steady.fetch_add(seconds * S, Ordering::Relaxed);
        }
    }

    #[test]
    fn ages_are_of_the_time_that_passed_wherever_the_clock_was() {
        let hands = Hands::new();
        let (before, ahead, behind, earlier) = (TaskId(1), TaskId(2), TaskId(3), TaskId(9));
        hands.times.begin(before);
        hands.pass(10);
        let mut ends = vec![(before, hands.times.now_of(before), 60)];
        hands.wall.fetch_add(DAYS, Ordering::Relaxed);
        assert_eq!(hands.times.now_of(before), START + 10 * S);
        hands.times.begin(ahead);
        hands.pass(20);
        ends.push((ahead, hands.times.now_of(ahead), 40));
        assert_eq!(ends[1].1, START + DAYS + 30 * S);
        hands.wall.fetch_sub(2 * DAYS, Ordering::Relaxed);
        hands.times.begin(behind);
        hands.pass(30);
        ends.push((behind, hands.times.now_of(behind), 10));
        assert_eq!(ends[2].1, START - DAYS + 60 * S);
        hands.pass(10);
        for (task, end_ns, seconds) in ends {
            assert_eq!(hands.times.age_ns(task, end_ns), seconds * S, "{task}");
        }
        // Of an earlier run: by the wall clock at the start; never longer than this run for what is in the future.
        assert_eq!(hands.times.age_ns(earlier, START - DAYS), DAYS + 70 * S);
        assert_eq!(hands.times.age_ns(earlier, START + DAYS), 70 * S);
        hands.times.forget(before);
        assert_eq!(hands.times.age_ns(before, START + 60 * S), 10 * S);
    }

    #[test]
    fn a_clock_that_was_set_is_said_once_for_each_time() {
        let hands = Hands::new();
        hands.times.begin(TaskId(1));
        let mut told = 0;
        hands.pass(100);
        hands.wall.fetch_add(S, Ordering::Relaxed);
        assert_eq!(hands.times.remark(TaskId(1), &mut told), None);
        hands.wall.fetch_add(DAYS, Ordering::Relaxed);
        let said = hands.times.remark(TaskId(1), &mut told).unwrap();
        assert!(said.contains("set forward by 864001 s"), "{said}");
        assert_eq!(hands.times.remark(TaskId(1), &mut told), None);
        hands.wall.fetch_sub(2 * DAYS, Ordering::Relaxed);
        let said = hands.times.remark(TaskId(1), &mut told).unwrap();
        assert!(said.contains("set back by 1728000 s"), "{said}");
        // One that begins afterwards knows nothing of it.
        hands.times.begin(TaskId(2));
        assert_eq!(hands.times.remark(TaskId(2), &mut 0), None);
    }
}
