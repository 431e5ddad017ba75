//! What a step ran, and what failed in it.

use serde::{Deserialize, Serialize};

/// Counts of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Failed tests that are known by name. Checks that have none are counted only.
    pub(crate) failures: Vec<Failure>,
}

/// A failed test of a test binary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Its whole name.
    pub(crate) test: String,
    /// The assertion that failed judges a measurement: the test may be run once more, alone.
    pub(crate) measured: bool,
    /// What it printed, without what lies between the assertion and the last lines when that is long.
    pub(crate) output: Vec<String>,
}

impl Tally {
    pub(crate) fn count(&mut self, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    /// Adds what another part of the same step ran.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
    }
}
