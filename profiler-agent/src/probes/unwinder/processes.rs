//! Which processes the kernel knows the mappings of, and where.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use profiler_common::unwind::process::NO_MAPPINGS_SLOT;

/// Time after which a slot that nothing refers to is written again: no program runs so long.
const REST: Duration = Duration::from_secs(1);

/// Least time between two readings of one process's mappings; doubled by each reading that did not
/// help, up to the second bound.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What is known of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) generation: u32,
    /// [`NO_MAPPINGS_SLOT`] when its mappings could not be read or found no room.
    pub(super) slot: u32,
    read_at: Instant,
    pause: Duration,
}

impl Known {
    /// Whether the mappings may be read again for an address that is in none.
    pub(super) fn may_read_again(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.read_at) >= self.pause
    }
}

/// Processes by pid, and the slots of the kernel's table.
#[derive(Debug)]
pub(super) struct Processes {
    known: HashMap<u32, Known>,
    free: Vec<u32>,
    resting: VecDeque<(Instant, u32)>,
}

impl Processes {
    /// With slots 1 to `slots - 1`; slot 0 is for processes without mappings.
    pub(super) fn new(slots: u32) -> Self {
        Self {
            known: HashMap::new(),
            free: (NO_MAPPINGS_SLOT + 1..slots).rev().collect(),
            resting: VecDeque::new(),
        }
    }

    pub(super) fn get(&self, pid: u32) -> Option<Known> {
        self.known.get(&pid).copied()
    }

    /// A slot that nothing refers to; `None` when all are in use.
    pub(super) fn take_slot(&mut self, now: Instant) -> Option<u32> {
        while let Some((since, slot)) = self.resting.front().copied() {
            if now.saturating_duration_since(since) < REST {
                break;
            }
            self.resting.pop_front();
            self.free.push(slot);
        }
        self.free.pop()
    }

    /// Gives back a slot that was taken and not used.
    pub(super) fn return_slot(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Notes that the mappings of a process were read, or could not be. The result is the slot that
    /// it had before.
    pub(super) fn set(
        &mut self,
        pid: u32,
        generation: u32,
        slot: u32,
        now: Instant,
    ) -> Option<u32> {
        let before = self.known.get(&pid);
        let pause = match before {
            Some(before) if before.generation == generation => {
                (before.pause * 2).min(LONGEST_PAUSE)
            }
            Some(_) | None => FIRST_PAUSE,
        };
        let known = Known {
            generation,
            slot,
            read_at: now,
            pause,
        };
        let before = self.known.insert(pid, known)?;
        self.rest(before.slot, now)
    }

    /// New mappings were found: the next reading may come soon again.
    pub(super) fn reading_helped(&mut self, pid: u32) {
        if let Some(known) = self.known.get_mut(&pid) {
            known.pause = FIRST_PAUSE;
        }
    }

    /// Forgets a process; the result is the slot that it had.
    pub(super) fn remove(&mut self, pid: u32, now: Instant) -> Option<u32> {
        let known = self.known.remove(&pid)?;
        self.rest(known.slot, now)
    }

    /// Pids of everything that is known.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.known.keys().copied().collect()
    }

    fn rest(&mut self, slot: u32, now: Instant) -> Option<u32> {
        if slot == NO_MAPPINGS_SLOT {
            return None;
        }
        self.resting.push_back((now, slot));
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_rests_before_another_process_gets_it() {
        let start = Instant::now();
        let mut processes = Processes::new(2);
        let slot = processes.take_slot(start).expect("one is free");
        assert_eq!(slot, 1);
        assert_eq!(processes.take_slot(start), None);
        assert_eq!(processes.set(7, 0, slot, start), None);
        assert_eq!(processes.remove(7, start), Some(slot));
        assert_eq!(processes.take_slot(start), None);
        assert_eq!(processes.take_slot(start + REST), Some(slot));
    }

    #[test]
    fn readings_that_do_not_help_become_rare() {
        let start = Instant::now();
        let mut processes = Processes::new(2);
        processes.set(7, 0, NO_MAPPINGS_SLOT, start);
        let known = |processes: &Processes| processes.get(7).expect("known");
        assert!(known(&processes).may_read_again(start + FIRST_PAUSE));
        for _ in 0..20 {
            processes.set(7, 0, NO_MAPPINGS_SLOT, start);
        }
        assert!(!known(&processes).may_read_again(start + FIRST_PAUSE));
        assert!(known(&processes).may_read_again(start + LONGEST_PAUSE));
        processes.reading_helped(7);
        assert!(known(&processes).may_read_again(start + FIRST_PAUSE));
        processes.set(7, 1, NO_MAPPINGS_SLOT, start);
        assert!(known(&processes).may_read_again(start + FIRST_PAUSE));
    }
}
