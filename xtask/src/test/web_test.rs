//! The step `web`: lints and unit tests of the UI, and whether its types of the API are current.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::Tally;
use crate::{exec, web, workspace::Workspace};

pub(super) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let folder = workspace.web();
    exec::on_terminal(&mut web::npm(&folder, &["run", "lint"]))?;
    tally.count(true);
    let log = workspace.logs().join("web-test.log");
    let mut test = web::npm(&folder, &["test"]);
    let result = exec::to_log(test.env("CI", "true"), &log);
    let output = fs::read_to_string(&log).with_context(|| format!("read {}", log.display()))?;
    print!("{output}");
    let counts = Counts::read(&output);
    tally.passed += counts.passed;
    tally.failed += counts.failed;
    result?;
    ensure!(counts.passed > 0, "no test ran");
    ensure!(
        counts.left_out == 0,
        "{} tests did not run",
        counts.left_out
    );
    Ok(())
}

/// Vitest's summary: `Tests  1 failed | 11 passed | 1 skipped (13)`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    left_out: usize,
}

impl Counts {
    fn read(output: &str) -> Self {
        let mut counts = Self::default();
        let Some(summary) = output
            .lines()
            .find_map(|line| line.trim().strip_prefix("Tests "))
        else {
            return counts;
        };
        let words: Vec<&str> = summary
            .split([' ', '|', '(', ')'])
            .filter(|word| !word.is_empty())
            .collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<usize>() else {
                continue;
            };
            match pair[1] {
                "passed" => counts.passed = number,
                "failed" => counts.failed = number,
                "skipped" | "todo" => counts.left_out += number,
                _ => {}
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(summary: &str, passed: usize, failed: usize, left_out: usize) {
        assert_eq!(
            Counts::read(summary),
            Counts {
                passed,
                failed,
                left_out
            },
            "{summary}"
        );
    }

    #[test]
    fn summaries() {
        check(
            " Test Files  3 passed (3)\n      Tests  12 passed (12)\n",
            12,
            0,
            0,
        );
        check(
            "      Tests  1 failed | 11 passed | 1 skipped (13)\n",
            11,
            1,
            1,
        );
        check("No test files found\n", 0, 0, 0);
    }
}
