//! The end of a test run: times, what failed tests said, and the closing table.

use std::{fmt, time::Duration};

use super::{
    process::Ended,
    schedule::Lane,
    tally::{Failure, Tally},
};
use crate::progress::seconds;

/// Lines of a failed job without named tests that are shown: those of errors, and the last ones.
const ERROR_LINES: usize = 8;
const TAIL_LINES: usize = 15;
/// Most lines of causes in the closing table.
const CAUSE_LINES: usize = 10;

/// One finished job.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    lane: Lane,
    budget: u32,
    is_step: bool,
    pub(super) took: Duration,
    pub(super) tally: Tally,
    /// Tests that passed when they were run once more, and the step where it kept its budget then.
    second: usize,
    is_over_budget: bool,
    cpu_s: f64,
    /// What went wrong.
    pub(super) error: Option<String>,
    pub(super) output: String,
}

/// All finished jobs.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) rows: Vec<Row>,
    pub(super) took: Duration,
}

impl Row {
    pub(super) fn new(
        name: &'static str,
        lane: Lane,
        budget: u32,
        is_step: bool,
        ended: Ended,
    ) -> Self {
        let Ended {
            outcome,
            took,
            output,
        } = ended;
        Self {
            name,
            lane,
            budget,
            is_step,
            took,
            tally: outcome.tally,
            second: 0,
            is_over_budget: false,
            cpu_s: outcome.cpu_s,
            error: outcome.error,
            output,
        }
    }

    /// A step that takes half as long again as it may has failed. The machine's slowness is asked for only where it decides.
    pub(super) fn judge_budget(&mut self, slowness: impl FnOnce() -> f64) {
        // What computes waits for everything else, so its own CPU time counts. Downloads and builds take as long as
        // they take.
        let (spent_s, of_what) = match self.lane {
            Lane::Fetch => (0.0, ""),
            Lane::Compute | Lane::Spare => (self.cpu_s, " of CPU time"),
            Lane::Beside | Lane::Alone => (self.took.as_secs_f64(), ""),
        };
        let budget = self.budget;
        let most_s = 1.5 * f64::from(budget);
        if !self.is_step || self.error.is_some() || spent_s <= most_s {
            return;
        }
        let slowness = slowness();
        if spent_s > most_s * slowness {
            self.error = Some(format!(
                "over budget: took {spent_s:.1} s{of_what}, and has {budget} s on a machine {slowness:.1} times as slow as usual"
            ));
            self.tally.failed += 1;
            self.is_over_budget = true;
        }
    }

    /// How a step that took too long ended when it was run once more, alone.
    fn second_in_budget(&mut self, passed: bool) {
        if passed {
            self.error = None;
            self.tally.failed -= 1;
            self.second += 1;
        } else if let Some(error) = &mut self.error {
            error.push_str(", and failed again in a second run");
        }
    }

    /// `unit: 1146 passed, 0 failed in 20.1 s`.
    pub(super) fn line(&self) -> String {
        let Self { name, tally, .. } = self;
        let took = seconds(self.took);
        let Tally { passed, failed, .. } = tally;
        match (&self.error, self.is_step) {
            (None, false) => format!("{name}: done in {took}"),
            (Some(error), false) => format!("{name}: failed after {took}: {error}"),
            (None, true) => format!("{name}: {passed} passed in {took}"),
            (Some(error), true) => {
                let first = error.lines().next().unwrap_or_default();
                format!("{name}: {passed} passed, {failed} failed in {took}: {first}")
            }
        }
    }

    /// A line for each failed test, or for the job where none is known by name.
    fn causes(&self) -> Vec<String> {
        let failures = &self.tally.failures;
        if failures.is_empty() {
            let error = self.error.as_deref().unwrap_or_default();
            let first = error.lines().next().unwrap_or_default();
            return vec![format!("{}: {first}", self.name)];
        }
        let line = |failure: &Failure| format!("{}: {}", failure.test, failure.cause());
        failures.iter().map(line).collect()
    }

    /// What its failed tests said; where none is known by name, what it printed last.
    fn failure(&self, f: &mut fmt::Formatter<'_>, error: &str) -> fmt::Result {
        writeln!(f, "\n==== {}: {error}", self.name)?;
        for failure in &self.tally.failures {
            writeln!(f, "---- {}", failure.test)?;
            for line in &failure.output {
                writeln!(f, "{line}")?;
            }
        }
        let lines: Vec<&str> = self.output.lines().collect();
        if self.tally.failures.is_empty() {
            let from = lines.len().saturating_sub(TAIL_LINES);
            let is_error = |line: &&&str| line.trim_start().starts_with("error");
            for line in lines[..from].iter().filter(is_error).take(ERROR_LINES) {
                writeln!(f, "{line}")?;
            }
            for line in &lines[from..] {
                writeln!(f, "{line}")?;
            }
            return Ok(());
        }
        for line in lines.iter().filter(|line| line.starts_with("kernel: ")) {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

impl Report {
    pub(super) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(super) fn total(&self) -> Tally {
        let mut total = Tally::default();
        for row in &self.rows {
            total.add(row.tally.clone());
        }
        total
    }

    /// Steps and tests of which a measurement failed; a step without a test took longer than it may.
    pub(super) fn measured_failures(&self) -> Vec<(&'static str, Option<String>)> {
        let rows = self.rows.iter();
        rows.flat_map(|row| {
            let failures = row.tally.failures.iter();
            let tests = failures
                .filter(|failure| failure.measured)
                .map(|failure| (row.name, Some(failure.test.clone())));
            tests.chain(row.is_over_budget.then_some((row.name, None)))
        })
        .collect()
    }

    /// Notes how a test, or a whole step, ended that was run once more.
    pub(super) fn second(&mut self, step: &str, test: Option<&str>, passed: bool) {
        let Some(row) = self.rows.iter_mut().find(|row| row.name == step) else {
            return;
        };
        let Some(test) = test else {
            row.second_in_budget(passed);
            return;
        };
        let failures = &mut row.tally.failures;
        if !passed {
            for failure in failures.iter_mut().filter(|failure| failure.test == test) {
                failure
                    .output
                    .push("failed again in a second run".to_owned());
            }
            return;
        }
        failures.retain(|failure| failure.test != test);
        row.tally.failed -= 1;
        row.tally.passed += 1;
        row.second += 1;
        if row.tally.failed == 0 {
            row.error = None;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:22} {:8} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7}",
            "job", "lane", "time", "CPU", "budget", "passed", "failed", "second"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:22} {:8} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7}",
                row.name,
                row.lane,
                seconds(row.took),
                format!("{:.1} s", row.cpu_s),
                format!("{} s", row.budget),
                row.tally.passed,
                row.tally.failed,
                row.second
            )?;
        }
        let failed: Vec<&Row> = self.rows.iter().filter(|row| row.error.is_some()).collect();
        for row in &failed {
            if let Some(error) = &row.error {
                row.failure(f, error)?;
            }
        }
        let second: usize = self.rows.iter().map(|row| row.second).sum();
        writeln!(f, "\n{:28} {}", "time in all", seconds(self.took))?;
        writeln!(f, "{:28} {second}", "passed at the second time")?;
        if !failed.is_empty() {
            let names: Vec<&str> = failed.iter().map(|row| row.name).collect();
            writeln!(f, "{:28} {}", "failed", names.join(" "))?;
            // Again and short: of a long record often only the very end is left.
            let causes = failed.iter().flat_map(|row| row.causes());
            for cause in causes.take(CAUSE_LINES) {
                writeln!(f, "  {cause}")?;
            }
        }
        let Tally { passed, failed, .. } = self.total();
        writeln!(f, "{passed} passed, {failed} failed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::process::Outcome;

    fn ended(tally: Tally, error: Option<&str>, seconds: u64) -> Ended {
        Ended {
            outcome: Outcome {
                tally,
                error: error.map(str::to_owned),
                cpu_s: 2.0,
            },
            took: Duration::from_secs(seconds),
            output: "a figure\nkernel: [1] panic\n".to_owned(),
        }
    }

    fn failed(measured: bool) -> Tally {
        Tally {
            passed: 1,
            failed: 1,
            failures: vec![Failure {
                test: "on_cpu::shares".to_owned(),
                measured,
                output: vec!["3 is not 4".to_owned()],
            }],
        }
    }

    fn report(rows: Vec<Row>) -> Report {
        Report {
            rows,
            took: Duration::from_secs(9),
        }
    }

    #[test]
    fn what_failed_stands_before_the_last_lines() {
        let row = Row::new(
            "on-cpu",
            Lane::Alone,
            60,
            true,
            ended(failed(false), Some("1 tests failed"), 3),
        );
        let text = report(vec![row]).to_string();
        let end = "\
==== on-cpu: 1 tests failed
---- on_cpu::shares
3 is not 4
kernel: [1] panic

time in all                  9.0 s
passed at the second time    0
failed                       on-cpu
  on_cpu::shares: 3 is not 4
1 passed, 1 failed
";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn half_over_budget_is_a_failure_with_that_word() {
        let passed = Tally {
            passed: 1,
            ..Tally::default()
        };
        let row = |lane, is_step, took| {
            let mut row = Row::new("a", lane, 10, is_step, ended(passed.clone(), None, took));
            row.judge_budget(|| 1.0);
            row
        };
        let mut slow = Row::new("a", Lane::Beside, 10, true, ended(passed.clone(), None, 29));
        slow.judge_budget(|| 2.0);
        assert!(slow.error.is_none());
        assert!(row(Lane::Beside, true, 15).error.is_none());
        let late = row(Lane::Beside, true, 16);
        assert!(late.error.as_ref().unwrap().starts_with("over budget"));
        assert_eq!(late.tally.failed, 1);
        // It has used 2 s of CPU time.
        assert!(row(Lane::Compute, true, 60).error.is_none());
        assert!(row(Lane::Fetch, false, 60).error.is_none());
    }

    #[test]
    fn a_measurement_may_pass_at_the_second_time_and_logic_may_not() {
        let row = |measured| {
            Row::new(
                "on-cpu",
                Lane::Alone,
                60,
                true,
                ended(failed(measured), Some("1 tests failed"), 3),
            )
        };
        assert!(report(vec![row(false)]).measured_failures().is_empty());
        let mut report = report(vec![row(true)]);
        let wanted = report.measured_failures();
        assert_eq!(wanted, [("on-cpu", Some("on_cpu::shares".to_owned()))]);
        report.second("on-cpu", Some("on_cpu::shares"), true);
        let text = report.to_string();
        assert!(
            text.ends_with("passed at the second time    1\n2 passed, 0 failed\n"),
            "{text}"
        );
    }

    #[test]
    fn a_measurement_that_fails_twice_has_failed() {
        let row = Row::new(
            "on-cpu",
            Lane::Alone,
            60,
            true,
            ended(failed(true), Some("1 tests failed"), 3),
        );
        let mut report = report(vec![row]);
        report.second("on-cpu", Some("on_cpu::shares"), false);
        assert_eq!(report.total().failed, 1);
        assert!(report.to_string().contains("failed again in a second run"));
    }
    #[test]
    fn a_step_over_its_budget_has_a_second_run() {
        let over = || {
            let passed = Tally {
                passed: 3,
                ..Tally::default()
            };
            let mut row = Row::new("a", Lane::Beside, 10, true, ended(passed, None, 16));
            row.judge_budget(|| 1.0);
            report(vec![row])
        };
        assert_eq!(over().measured_failures(), [("a", None)]);
        let mut better = over();
        better.second("a", None, true);
        assert!(
            better
                .to_string()
                .ends_with("passed at the second time    1\n3 passed, 0 failed\n")
        );
        let mut again = over();
        again.second("a", None, false);
        let text = again.to_string();
        assert!(text.contains(
            "has 10 s on a machine 1.0 times as slow as usual, and failed again in a second run"
        ));
        assert!(text.ends_with("3 passed, 1 failed\n"));
    }
}
