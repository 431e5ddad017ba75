//! Whose turn it is among the processes of a task: which are looked at next for TLS libraries, and which of those
//! that have one get probes.

use std::time::{Duration, Instant};

/// Processes that are probed at once.
pub(super) const MOST_PROBED: usize = 512;

/// Processes are looked at again after this time: libraries are loaded late.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The same for one that has begun just now.
pub(super) const LOOK_SOON: Duration = Duration::from_millis(200);
/// How long a process is young.
const YOUNG: Duration = Duration::from_secs(3);
/// With more processes than this, looks are as many times rarer, so that their number in a second stays.
const YOUNG_AT_ONCE: usize = 64;
const OLD_AT_ONCE: usize = 512;

/// A process that may be looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) pid: u32,
    pub(super) seen: Instant,
    /// When it was looked at last.
    pub(super) looked: Option<Instant>,
}

/// Those that are due of `waiting`, of `all` processes: first those that were never looked at, then those whose last
/// look is longest ago.
pub(super) fn due(waiting: impl Iterator<Item = Waiting>, all: usize, now: Instant) -> Vec<u32> {
    let is_due = |process: &Waiting| {
        let since = |time| now.saturating_duration_since(time);
        let rest = rest(since(process.seen), all);
        process.looked.is_none_or(|looked| since(looked) >= rest)
    };
    let mut due: Vec<Waiting> = waiting.filter(is_due).collect();
    due.sort_by_key(|process| (process.looked, process.pid));
    due.into_iter().map(|process| process.pid).collect()
}

/// Time between two looks at a process that has been known for `age`, of `all`.
fn rest(age: Duration, all: usize) -> Duration {
    let times = |at_once: usize| u32::try_from(1 + all / at_once).unwrap_or(u32::MAX);
    if age < YOUNG {
        (LOOK_SOON * times(YOUNG_AT_ONCE)).min(LOOK_AGAIN)
    } else {
        LOOK_AGAIN * times(OLD_AT_ONCE)
    }
}

/// Room for processes with probes.
#[derive(Debug)]
pub(super) struct ProbeRoom {
    left: usize,
}

impl ProbeRoom {
    /// With this many that have probes.
    pub(super) fn beside(probed: usize) -> Self {
        Self {
            left: MOST_PROBED.saturating_sub(probed),
        }
    }

    /// Whether one more process has room, which it then takes.
    pub(super) fn take(&mut self) -> bool {
        let has_room = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_never_looked_at_comes_before_those_that_were() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let looked_at = |pid, seconds| Waiting {
            pid,
            seen: start,
            looked: Some(at(seconds)),
        };
        let never = Waiting {
            pid: 900,
            seen: start,
            looked: None,
        };
        let waiting = [
            looked_at(1, 570),
            looked_at(2, 596),
            looked_at(3, 540),
            never,
        ];
        assert_eq!(due(waiting.into_iter(), 4, at(600)), [900, 3, 1]);
    }

    #[test]
    fn looks_in_a_second_do_not_grow_with_the_processes() {
        let (young, old) = (Duration::ZERO, Duration::from_mins(1));
        assert_eq!(rest(young, 3), LOOK_SOON);
        assert_eq!(rest(young, 640), LOOK_SOON * 11);
        assert_eq!(rest(young, 30_000), LOOK_AGAIN);
        assert_eq!(rest(old, 3), LOOK_AGAIN);
        assert_eq!(rest(old, 5120), LOOK_AGAIN * 11);
    }

    #[test]
    fn processes_beyond_the_room_have_none() {
        let mut room = ProbeRoom::beside(MOST_PROBED - 2);
        assert_eq!([(); 4].map(|()| room.take()), [true, true, false, false]);
        assert!(!ProbeRoom::beside(MOST_PROBED + 1).take());
    }
}
