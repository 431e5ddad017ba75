//! Which processes the kernel knows the mappings of, and where.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use profiler_common::unwind::process::NO_MAPPINGS_SLOT;
use profiler_unwind::ProcessCode;

/// Time after which a slot that nothing refers to is written again: no program runs that long.
const REST: Duration = Duration::from_secs(1);

/// Least time between two readings of one process's mappings; doubled by each reading that did not
/// help, up to the second bound.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Seconds without a walk after which a process may lose its slot to another one. It gets one again
/// with its next capture.
const IDLE_SECONDS: u32 = 5;

/// Programs that have begun and were not sampled yet, whose code is kept: each has its files open.
const EXPECTED: usize = 64;

/// What is known of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) generation: u32,
    /// [`NO_MAPPINGS_SLOT`] when its mappings could not be read or found no room.
    pub(super) slot: u32,
    read_at: Instant,
    pause: Duration,
    /// It was to have a slot, and none was free.
    left_out: bool,
    /// Second of the last walk in the kernel, as far as it was read.
    used: u32,
}

impl Known {
    /// Whether the mappings may be read again for an address that is in none.
    pub(super) fn may_read_again(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.read_at) >= self.pause
    }
}

/// Processes by pid, and the slots of the kernel's table.
///
/// A process gets a slot when it is first sampled. Where slots run short, those that were not walked
/// for the longest time give theirs back.
#[derive(Debug)]
pub(super) struct Processes {
    known: HashMap<u32, Known>,
    /// By pid and generation, oldest first.
    expected: VecDeque<(u32, u32, ProcessCode)>,
    free: Vec<u32>,
    resting: VecDeque<(Instant, u32)>,
    /// Slots that should be free or resting.
    reserve: usize,
}

/// What a process got when its mappings were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessSlot {
    Slot(u32),
    /// All slots are in use.
    LeftOut,
    /// Its mappings cannot be known.
    Unreadable,
}

impl ProcessSlot {
    pub(super) fn slot(self) -> u32 {
        match self {
            Self::Slot(slot) => slot,
            Self::LeftOut | Self::Unreadable => NO_MAPPINGS_SLOT,
        }
    }
}

impl Processes {
    /// With slots 1 to `slots - 1`; slot 0 is for processes without mappings.
    pub(super) fn new(slots: u32) -> Self {
        Self {
            known: HashMap::new(),
            expected: VecDeque::new(),
            free: (NO_MAPPINGS_SLOT + 1..slots).rev().collect(),
            resting: VecDeque::new(),
            reserve: (slots / 16) as usize,
        }
    }

    pub(super) fn get(&self, pid: u32) -> Option<Known> {
        self.known.get(&pid).copied()
    }

    /// A slot that nothing refers to; `None` when all are in use.
    pub(super) fn take_slot(&mut self, now: Instant) -> Option<u32> {
        self.end_rests(now);
        self.free.pop()
    }

    fn end_rests(&mut self, now: Instant) {
        while let Some((since, slot)) = self.resting.front().copied() {
            if now.saturating_duration_since(since) < REST {
                break;
            }
            self.resting.pop_front();
            self.free.push(slot);
        }
    }

    /// Whether processes wait for a slot, or will soon.
    pub(super) fn is_short(&self) -> bool {
        self.free.len() + self.resting.len() < self.reserve
            || self.known.values().any(|known| known.left_out)
    }

    /// Learns when the kernel last walked a stack of a process.
    pub(super) fn note_use(&mut self, pid: u32, seconds: u32) {
        if let Some(known) = self.known.get_mut(&pid) {
            known.used = known.used.max(seconds);
        }
    }

    /// Processes that are to be forgotten at `seconds`, so that slots go where stacks are walked: those
    /// that give theirs back, and those without one for which there is one now. What is sampled of
    /// them next is a capture, which makes them known again.
    pub(super) fn forgettable(&mut self, seconds: u32, now: Instant) -> Vec<u32> {
        self.end_rests(now);
        let mut left_out = self.by_use(|known| known.left_out);
        let free = self.free.len();
        let wanted = self.reserve.max(left_out.len());
        let missing = wanted.saturating_sub(free + self.resting.len());
        let mut idle = self.by_use(|known| {
            known.slot != NO_MAPPINGS_SLOT && seconds.saturating_sub(known.used) >= IDLE_SECONDS
        });
        idle.truncate(missing);
        left_out.reverse();
        left_out.truncate(free);
        idle.append(&mut left_out);
        idle
    }

    /// Pids of some processes, those that were not walked for the longest time first.
    fn by_use(&self, which: impl Fn(&Known) -> bool) -> Vec<u32> {
        let found = self.known.iter().filter(|(_, known)| which(known));
        let mut found: Vec<(u32, u32)> = found.map(|(pid, known)| (known.used, *pid)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, pid)| pid).collect()
    }

    /// Keeps what a process executes that was not sampled yet.
    pub(super) fn expect(&mut self, pid: u32, generation: u32, code: ProcessCode) {
        if self.expected.len() >= EXPECTED {
            self.expected.pop_front();
        }
        self.expected.push_back((pid, generation, code));
    }

    /// What [`Self::expect`] has kept.
    pub(super) fn take_expected(&mut self, pid: u32, generation: u32) -> Option<ProcessCode> {
        let of_it = |(other, its, _): &(u32, u32, ProcessCode)| (*other, *its) == (pid, generation);
        let at = self.expected.iter().rposition(of_it)?;
        self.expected.remove(at).map(|(_, _, code)| code)
    }

    /// Gives back a slot that was taken and not used.
    pub(super) fn return_slot(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Notes at `seconds` that the mappings of a process were read, or could not be. The result is the
    /// slot that it had before.
    pub(super) fn set(
        &mut self,
        pid: u32,
        generation: u32,
        place: ProcessSlot,
        (seconds, now): (u32, Instant),
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
            slot: place.slot(),
            read_at: now,
            pause,
            left_out: place == ProcessSlot::LeftOut,
            used: seconds,
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
        self.expected.retain(|(other, _, _)| *other != pid);
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

    const PID: u32 = 7;

    /// Processes from 1 on, each with a slot of its own and last walked in the second of its pid.
    fn full(slots: u32, now: Instant) -> Processes {
        let mut processes = Processes::new(slots);
        for pid in 1..slots {
            let slot = processes.take_slot(now).expect("one is free");
            processes.set(pid, 0, ProcessSlot::Slot(slot), (0, now));
            processes.note_use(pid, pid);
        }
        processes
    }

    #[test]
    fn a_slot_rests_before_another_process_gets_it() {
        let start = Instant::now();
        let mut processes = Processes::new(2);
        let slot = processes.take_slot(start).expect("one is free");
        assert_eq!(slot, 1);
        assert_eq!(processes.take_slot(start), None);
        assert_eq!(
            processes.set(PID, 0, ProcessSlot::Slot(slot), (0, start)),
            None
        );
        assert_eq!(processes.remove(PID, start), Some(slot));
        assert_eq!(processes.take_slot(start), None);
        assert_eq!(processes.take_slot(start + REST), Some(slot));
    }

    #[test]
    fn slots_of_processes_that_are_not_walked_go_to_those_left_out() {
        let now = Instant::now();
        let mut processes = full(9, now);
        processes.set(100, 0, ProcessSlot::LeftOut, (8, now));
        processes.set(101, 0, ProcessSlot::LeftOut, (9, now));
        assert!(processes.is_short());
        assert_eq!(
            processes.forgettable(5, now),
            Vec::<u32>::new(),
            "all were walked just now"
        );
        assert_eq!(processes.forgettable(9, now), [1, 2]);
        for pid in [1, 2] {
            processes.remove(pid, now);
        }
        assert_eq!(
            processes.forgettable(9, now),
            Vec::<u32>::new(),
            "slots rest"
        );
        // Both may try again; the one that was walked last comes first.
        assert_eq!(processes.forgettable(9, now + REST), [101, 100]);
    }

    #[test]
    fn a_process_that_cannot_be_read_waits_for_no_slot() {
        let now = Instant::now();
        let mut processes = Processes::new(64);
        processes.set(PID, 0, ProcessSlot::Unreadable, (0, now));
        assert!(!processes.is_short());
        assert_eq!(processes.forgettable(100, now), Vec::<u32>::new());
    }

    #[test]
    fn code_of_a_program_is_kept_until_it_is_sampled_or_ends() {
        let code = || ProcessCode {
            mappings: Vec::new(),
            files: Vec::new(),
        };
        let now = Instant::now();
        let mut processes = Processes::new(2);
        processes.expect(PID, 1, code());
        assert!(processes.take_expected(PID, 2).is_none());
        assert!(processes.take_expected(PID, 1).is_some());
        assert!(processes.take_expected(PID, 1).is_none());
        processes.expect(PID, 2, code());
        processes.remove(PID, now);
        assert!(processes.take_expected(PID, 2).is_none());
    }

    #[test]
    fn readings_that_do_not_help_become_rare() {
        let start = Instant::now();
        let mut processes = Processes::new(2);
        let unreadable = |processes: &mut Processes, generation| {
            processes.set(PID, generation, ProcessSlot::Unreadable, (0, start));
        };
        unreadable(&mut processes, 0);
        let known = |processes: &Processes| processes.get(PID).expect("known");
        assert!(known(&processes).may_read_again(start + FIRST_PAUSE));
        for _ in 0..20 {
            unreadable(&mut processes, 0);
        }
        assert!(!known(&processes).may_read_again(start + FIRST_PAUSE));
        assert!(known(&processes).may_read_again(start + LONGEST_PAUSE));
        processes.reading_helped(PID);
        assert!(known(&processes).may_read_again(start + FIRST_PAUSE));
        unreadable(&mut processes, 1);
        assert!(known(&processes).may_read_again(start + FIRST_PAUSE));
    }
}
