//! How much of the CPU time that the kernel accounts to a target has samples.

use serde::{Deserialize, Serialize};

use crate::{float, percent};

/// Samples that stand for less of the accounted time are said to be missing.
const SUFFICIENT_PERCENT: f64 = 90.0;

/// The kernel's accounts are read in steps of this (`USER_HZ`), once at each end.
const ACCOUNT_STEP_NS: f64 = 10_000_000.0;

/// CPU time of processes between two readings of their accounts, in nanoseconds. Processes that ended
/// before the second reading are in neither sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCoverage {
    /// By the samples.
    pub sampled_ns: u64,
    /// By `utime` and `stime` of `/proc/PID/stat`.
    pub accounted_ns: u64,
    pub processes: u64,
}

impl CpuCoverage {
    /// Adds what was measured earlier or later.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            sampled_ns,
            accounted_ns,
            processes,
        } = *other;
        self.sampled_ns = self.sampled_ns.saturating_add(sampled_ns);
        self.accounted_ns = self.accounted_ns.saturating_add(accounted_ns);
        self.processes = self.processes.max(processes);
    }

    /// Whether the steps of the accounts hardly matter.
    pub fn is_known(&self) -> bool {
        self.accounted_ns > 0 && self.resolution_ns() * 20.0 <= float(self.accounted_ns)
    }

    /// What both readings of all accounts may be off together.
    fn resolution_ns(&self) -> f64 {
        2.0 * ACCOUNT_STEP_NS * float(self.processes)
    }

    /// Sampled time of the accounted, which may be above 100 by the resolution of the accounts.
    pub fn percent(&self) -> f64 {
        percent(self.sampled_ns, self.accounted_ns)
    }

    /// Samples that are missing, each of which would stand for `period_ns`. 0 where the difference is
    /// small or may be chance.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast to u64 saturates, and the number is positive"
    )]
    pub fn missing_samples(&self, period_ns: u64) -> u64 {
        let period = float(period_ns.max(1));
        let missing = (float(self.accounted_ns) - float(self.sampled_ns)) / period;
        // Short stays on a CPU are hit like throws of dice.
        let chance = 3.0 * (float(self.accounted_ns) / period).sqrt();
        let resolution = self.resolution_ns() / period;
        if self.percent() < SUFFICIENT_PERCENT && missing > chance + resolution {
            missing as u64
        } else {
            0
        }
    }

    /// For people.
    pub fn line(&self) -> String {
        format!(
            "samples stand for {:.1} % of the CPU time by the kernel's accounting ({:.2} s)",
            self.percent(),
            float(self.accounted_ns) / 1e9
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 10_000_000;

    fn check(samples: u64, accounted_ms: u64, missing: u64) {
        let coverage = CpuCoverage {
            sampled_ns: samples * PERIOD_NS,
            accounted_ns: accounted_ms * 1_000_000,
            processes: 1,
        };
        assert_eq!(coverage.missing_samples(PERIOD_NS), missing, "{coverage:?}");
    }

    #[test]
    fn only_what_is_missing_for_sure_is_missing() {
        check(1000, 10_000, 0);
        check(1010, 10_000, 0);
        check(910, 10_000, 0);
        check(600, 10_000, 400);
        // Nothing was on a CPU, or as good as nothing.
        check(0, 0, 0);
        check(0, 30, 0);
        // As chance has it with short stays.
        check(10, 200, 0);
    }

    #[test]
    fn many_processes_with_little_time_say_nothing() {
        let coverage = |accounted_ms: u64, processes| CpuCoverage {
            sampled_ns: 0,
            accounted_ns: accounted_ms * 1_000_000,
            processes,
        };
        assert!(coverage(400, 1).is_known());
        assert!(!coverage(390, 1).is_known());
        assert!(!coverage(4_140, 256).is_known());
        assert!(!coverage(0, 0).is_known());
    }

    #[test]
    fn a_line_says_how_much() {
        let coverage = CpuCoverage {
            sampled_ns: 9_950_000_000,
            accounted_ns: 10_000_000_000,
            processes: 2,
        };
        let line = "samples stand for 99.5 % of the CPU time by the kernel's accounting (10.00 s)";
        assert_eq!(coverage.line(), line);
    }
}
