//! Who had the CPU while threads waited for one.

use crate::limits::RUNS_OF_CPU;

/// [`Run::pid`]: the CPU was idle.
pub const HOLDER_IDLE: u32 = 0;
/// The same: a process outside the agent's PID namespace.
pub const HOLDER_OUTSIDE: u32 = u32::MAX;

/// From when on threads of one process ran, until the next run of the CPU began.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    pub began_ns: u64,
    /// In the agent's PID namespace, or `HOLDER_*`.
    pub pid: u32,
    pub padding: u32,
}

/// The last runs of a CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Runs so far. The last one is at `(count - 1) % RUNS_OF_CPU`.
    pub count: u64,
    /// Other CPUs write what lies before.
    pub padding: [u64; 7],
    pub runs: [Run; RUNS_OF_CPU],
}

const LAST: u64 = RUNS_OF_CPU as u64 - 1;

impl Runs {
    /// Number `number` of the runs so far.
    #[inline]
    pub fn at(&self, number: u64) -> Run {
        self.runs[(number & LAST) as usize]
    }

    /// Whose runs filled the time from `from_ns` to `to_ns`, and how many nanoseconds of it, latest first. Time before
    /// the oldest run that is kept is left out.
    ///
    /// Another CPU may write meanwhile: a run that it replaces begins later than `to_ns`.
    #[inline]
    pub fn between(&self, from_ns: u64, to_ns: u64, mut visit: impl FnMut(u32, u64)) {
        let count = self.count;
        if from_ns >= to_ns {
            return;
        }
        let mut end_ns = to_ns;
        for back in 1..=RUNS_OF_CPU as u64 {
            if back > count {
                return;
            }
            let run = self.at(count - back);
            if run.began_ns <= from_ns {
                visit(run.pid, end_ns - from_ns);
                return;
            }
            if run.began_ns < end_ns {
                visit(run.pid, end_ns - run.began_ns);
                end_ns = run.began_ns;
            }
        }
    }
}

/// Key of a counter of nanoseconds: a thread could have run, and the holder did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContentionKey {
    /// Of the thread that waited, as in [`crate::on_cpu::CountKey`].
    pub pid: u32,
    pub tid: u32,
    pub generation: u32,
    /// As [`Run::pid`].
    pub holder: u32,
    /// The CPU on which the thread went on, and the bucket in which it did.
    pub cpu: u32,
    pub bucket: u32,
}

const _: () = assert!(size_of::<Run>() == 16);
const _: () = assert!(size_of::<Runs>() == 64 + 16 * RUNS_OF_CPU);
const _: () = assert!(size_of::<ContentionKey>() == 24);

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    fn runs(began: &[(u64, u32)]) -> Runs {
        let mut all = Runs {
            count: 0,
            padding: [0; 7],
            runs: [Run::default(); RUNS_OF_CPU],
        };
        for (place, &(began_ns, pid)) in began.iter().enumerate() {
            all.runs[place % RUNS_OF_CPU] = Run {
                began_ns,
                pid,
                padding: 0,
            };
            all.count += 1;
        }
        all
    }

    fn between(runs: &Runs, from_ns: u64, to_ns: u64) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        runs.between(from_ns, to_ns, |pid, ns| found.push((pid, ns)));
        found
    }

    #[test]
    fn runs_share_out_the_time_between_two_moments() {
        let some = runs(&[(10, 1), (20, 2), (30, HOLDER_IDLE), (40, 3)]);
        assert_eq!(between(&some, 15, 35), [(HOLDER_IDLE, 5), (2, 10), (1, 5)]);
        assert_eq!(between(&some, 40, 50), [(3, 10)]);
        assert_eq!(between(&some, 45, 50), [(3, 5)]);
        assert_eq!(between(&some, 50, 50), []);
        assert_eq!(between(&some, 50, 40), []);
        // Before the first one nobody is known.
        assert_eq!(between(&some, 0, 12), [(1, 2)]);
        assert_eq!(between(&runs(&[]), 0, 12), []);
    }

    #[test]
    fn time_before_the_oldest_run_that_is_kept_is_left_out() {
        let began: Vec<(u64, u32)> = (0..100).map(|i| (10 * u64::from(i), i)).collect();
        let many = runs(&began);
        let found = between(&many, 0, 1000);
        assert_eq!(found.len(), RUNS_OF_CPU);
        assert_eq!((found[0], found[31]), ((99, 10), (68, 10)));
    }
}
