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

/// Longest cause in the closing table, in characters.
const CAUSE_CHARS: usize = 160;

impl Failure {
    /// What its last failed assertion said, on one line.
    pub(crate) fn cause(&self) -> String {
        let last = self.output.iter().rposition(|line| is_panic(line));
        let message = self.output.iter().skip(last.map_or(0, |at| at + 1));
        let words: Vec<&str> = message
            .take_while(|line| !line.starts_with("note: run with"))
            .flat_map(|line| line.split_whitespace())
            .collect();
        words.join(" ").chars().take(CAUSE_CHARS).collect()
    }
}

/// The line that the standard library prints above the message of a panic.
pub(crate) fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_what_the_last_assertion_said() {
        let lines = [
            "a figure",
            "thread 'a' (7) panicked at tests/it/a.rs:3:5:",
            "assertion `left == right` failed: requests",
            "  left: 3",
            " right: 4",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        ];
        let failure = Failure {
            test: "a".to_owned(),
            measured: false,
            output: lines.map(str::to_owned).to_vec(),
        };
        let cause = "assertion `left == right` failed: requests left: 3 right: 4";
        assert_eq!(failure.cause(), cause);
    }
}
