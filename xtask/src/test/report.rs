//! The table at the end of a test run.

use std::{fmt, time::Duration};

use super::Tally;
use crate::progress::seconds;

/// One finished step.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) took: Duration,
    pub(super) tally: Tally,
    /// What went wrong, so that the end of a long log tells it.
    pub(super) error: Option<String>,
}

/// All finished steps.
#[derive(Debug, Default)]
pub(super) struct Report {
    notes: Vec<(&'static str, Duration)>,
    rows: Vec<Row>,
}

impl Report {
    /// Work that is no test.
    pub(super) fn note(&mut self, what: &'static str, took: Duration) {
        self.notes.push((what, took));
    }

    pub(super) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(super) fn total(&self) -> Tally {
        self.rows.iter().fold(Tally::default(), |sum, row| Tally {
            passed: sum.passed + row.tally.passed,
            failed: sum.failed + row.tally.failed,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:20} {:>10} {:>8} {:>8}",
            "step", "time", "passed", "failed"
        )?;
        for (what, took) in &self.notes {
            writeln!(f, "{what:20} {:>10}", seconds(*took))?;
        }
        for Row {
            name, took, tally, ..
        } in &self.rows
        {
            writeln!(
                f,
                "{name:20} {:>10} {:>8} {:>8}",
                seconds(*took),
                tally.passed,
                tally.failed
            )?;
        }
        for Row { name, error, .. } in &self.rows {
            if let Some(error) = error {
                writeln!(f, "\n{name}: {error}")?;
            }
        }
        let Tally { passed, failed } = self.total();
        writeln!(f, "\n{passed} passed, {failed} failed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_sums_up() {
        let mut report = Report::default();
        report.note("set-up", Duration::from_secs(3));
        let tallies = [
            Tally {
                passed: 3,
                failed: 0,
            },
            Tally {
                passed: 1,
                failed: 2,
            },
        ];
        for tally in tallies {
            report.add(Row {
                name: "unit",
                took: Duration::from_secs(1),
                error: (tally.failed > 0).then(|| "2 tests failed\n  names::one".to_owned()),
                tally,
            });
        }
        let text = report.to_string();
        assert!(
            text.ends_with("unit: 2 tests failed\n  names::one\n\n4 passed, 2 failed\n"),
            "{text}"
        );
    }
}
