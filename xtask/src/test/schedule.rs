//! Which job may start when: a job waits for those that it needs, and shares the machine as its lane allows.

use std::fmt;

/// Which jobs share the machine with this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Waits for other machines: all of them at once.
    Fetch,
    /// Computes and judges nothing that depends on time: as many at once as there are processors and one more.
    Compute,
    /// Computes in one thread, which takes only what others leave of a processor: one at a time, beside tests that
    /// wait. More than that would make those miss their deadlines.
    Spare,
    /// Waits most of the time and judges what happened, not how fast: some beside each other, once nothing computes.
    Beside,
    /// Judges shares, rates or times: nothing else runs.
    Alone,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fetch => "fetch",
            Self::Compute => "compute",
            Self::Spare => "spare",
            Self::Beside => "beside",
            Self::Alone => "alone",
        })
    }
}

/// How many jobs of a lane may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) compute: usize,
    pub(super) beside: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Running,
    Passed,
    Failed,
}

/// A job as the schedule sees it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) lane: Lane,
    /// Others wait for it: among the computing jobs it begins before those without dependents.
    pub(super) is_preparation: bool,
    /// Jobs, by their place in the schedule, that must have passed before.
    pub(super) after: Vec<usize>,
    /// Jobs with the same word do not run beside each other.
    pub(super) lock: Option<&'static str>,
    pub(super) state: State,
}

/// Jobs in the order in which they are to start where they can.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) entries: Vec<Entry>,
    pub(super) room: Room,
}

impl Schedule {
    /// The next job that may start now.
    pub(super) fn next(&self) -> Option<usize> {
        let alone_runs = self.running(Lane::Alone) > 0;
        let candidates = self.entries.iter().enumerate();
        let mut candidates = candidates.filter(|(_, entry)| entry.state == State::Waiting);
        candidates
            .find(|(_, entry)| !alone_runs && self.is_free(entry) && self.has_room(entry))
            .map(|(index, _)| index)
    }

    pub(super) fn is_over(&self) -> bool {
        let mut states = self.entries.iter().map(|entry| entry.state);
        states.all(|state| matches!(state, State::Passed | State::Failed))
    }

    fn is_free(&self, entry: &Entry) -> bool {
        let ready = |&needed: &usize| self.entries[needed].state == State::Passed;
        let locked = entry.lock.is_some()
            && self
                .entries
                .iter()
                .any(|other| other.state == State::Running && other.lock == entry.lock);
        entry.after.iter().all(ready) && !locked
    }

    fn has_room(&self, entry: &Entry) -> bool {
        match entry.lane {
            Lane::Fetch => true,
            Lane::Compute => {
                let mut others = self.entries.iter();
                let waits = others.any(|other| {
                    other.is_preparation
                        && other.lane == Lane::Compute
                        && other.state == State::Waiting
                });
                self.running(Lane::Compute) < self.room.compute && (entry.is_preparation || !waits)
            }
            Lane::Spare => self.running(Lane::Spare) == 0 && !self.computes(),
            Lane::Beside => self.running(Lane::Beside) < self.room.beside && !self.computes(),
            // After everything that shares the machine, so that it does not keep a processor idle.
            Lane::Alone => self.entries.iter().all(|other| {
                other.state != State::Running
                    && (other.lane == Lane::Alone || other.state != State::Waiting)
            }),
        }
    }

    /// Whether anything computes, or is going to.
    fn computes(&self) -> bool {
        self.entries.iter().any(|entry| {
            entry.lane == Lane::Compute && matches!(entry.state, State::Waiting | State::Running)
        })
    }

    fn running(&self, lane: Lane) -> usize {
        let all = self.entries.iter();
        all.filter(|entry| entry.lane == lane && entry.state == State::Running)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(lane: Lane, after: &[usize]) -> Entry {
        Entry {
            lane,
            is_preparation: false,
            after: after.to_vec(),
            lock: None,
            state: State::Waiting,
        }
    }

    /// Starts all that may start; which they were.
    fn start(schedule: &mut Schedule) -> Vec<usize> {
        let mut started = Vec::new();
        while let Some(index) = schedule.next() {
            schedule.entries[index].state = State::Running;
            started.push(index);
        }
        started
    }

    fn schedule(entries: Vec<Entry>) -> Schedule {
        let room = Room {
            compute: 2,
            beside: 2,
        };
        Schedule { entries, room }
    }

    #[test]
    fn lanes_share_and_the_last_one_does_not() {
        let mut all = schedule(vec![
            entry(Lane::Alone, &[]),
            entry(Lane::Fetch, &[]),
            entry(Lane::Compute, &[1]),
            entry(Lane::Beside, &[]),
            entry(Lane::Beside, &[]),
            entry(Lane::Beside, &[]),
            entry(Lane::Alone, &[]),
            entry(Lane::Spare, &[]),
            entry(Lane::Spare, &[]),
        ]);
        assert_eq!(start(&mut all), [1]);
        all.entries[1].state = State::Passed;
        assert_eq!(start(&mut all), [2]);
        all.entries[2].state = State::Passed;
        assert_eq!(start(&mut all), [3, 4, 7]);
        all.entries[3].state = State::Passed;
        all.entries[7].state = State::Passed;
        assert_eq!(start(&mut all), [5, 8]);
        all.entries[8].state = State::Passed;
        all.entries[4].state = State::Passed;
        assert!(start(&mut all).is_empty());
        all.entries[5].state = State::Failed;
        assert_eq!(start(&mut all), [0]);
        all.entries[0].state = State::Passed;
        assert_eq!(start(&mut all), [6]);
        assert!(!all.is_over());
        all.entries[6].state = State::Passed;
        assert!(all.is_over());
    }

    #[test]
    fn what_others_wait_for_comes_before_steps() {
        let mut all = schedule(vec![
            entry(Lane::Fetch, &[]),
            entry(Lane::Compute, &[0]),
            entry(Lane::Compute, &[]),
        ]);
        all.entries[1].is_preparation = true;
        assert_eq!(start(&mut all), [0]);
        all.entries[0].state = State::Passed;
        assert_eq!(start(&mut all), [1, 2]);
    }

    #[test]
    fn a_lock_is_held_by_one() {
        let mut all = schedule(vec![entry(Lane::Beside, &[]), entry(Lane::Beside, &[])]);
        for entry in &mut all.entries {
            entry.lock = Some("engine");
        }
        assert_eq!(start(&mut all), [0]);
        all.entries[0].state = State::Passed;
        assert_eq!(start(&mut all), [1]);
    }
}
