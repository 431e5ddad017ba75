//! The step `runner`: the report of a failed test, by steps that fail on purpose.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{
    binaries,
    needs::{Need, ROOT_AND_AGENT},
    schedule::Lane,
    speed,
    steps::Step,
    tally::Tally,
};
use crate::{debian::Package, workspace::Workspace};

/// Set where these steps may be named.
const ALLOWED: &str = "PROFILER_TEST_BROKEN";
/// The cause is within this many last lines.
const LAST_LINES: usize = 40;

macro_rules! broken {
    ($name:literal, $budget:literal, $test:literal) => {
        Step {
            name: $name,
            about: "fails on purpose",
            lane: Lane::Alone,
            budget: $budget,
            lock: None,
            needs: ROOT_AND_AGENT,
            run: |workspace, tally| binaries::ignored(workspace, concat!("broken::", $test), tally),
        }
    };
}

const STEPS: &[Step] = &[
    broken!("broken-assertion", 60, "an_assertion"),
    broken!("broken-measurement", 60, "a_measurement"),
    broken!("broken-hang", 2, "a_hang"),
    broken!("broken-agent", 60, "an_agent_that_dies"),
    broken!("broken-budget", 2, "a_slow_one"),
    Step {
        name: "broken-package",
        about: "fails on purpose",
        lane: Lane::Alone,
        budget: 60,
        lock: None,
        needs: &[
            Need::Root,
            Need::Packages(&[Package {
                name: "no-such-package",
                evidence: "/usr/bin/no-such-program",
            }]),
        ],
        run: |_, _| Ok(()),
    },
];

/// Of each step what its last lines must hold.
const CAUSES: [(&str, &[&str]); 6] = [
    (
        "broken-assertion",
        &[
            "broken::an_assertion",
            "0.0.0-broken",
            "the end of what serve logged",
        ],
    ),
    (
        "broken-measurement",
        &["broken::a_measurement", "failed again in a second run"],
    ),
    (
        "broken-hang",
        &["hung: ended after 6 s", "test broken::a_hang ..."],
    ),
    (
        "broken-agent",
        &[
            "broken::an_agent_that_dies",
            "of what serve logged (signal:",
        ],
    ),
    (
        "broken-budget",
        &[
            "over budget: took",
            "and has 2 s",
            "failed again in a second run",
        ],
    ),
    (
        "broken-package",
        &["Unable to locate package no-such-package"],
    ),
];

/// Whether this run is one of the step's.
pub(super) fn are_allowed() -> bool {
    std::env::var_os(ALLOWED).is_some()
}

/// A step that fails on purpose, by its name.
pub(super) fn find(name: &str) -> Option<&'static Step> {
    if !are_allowed() {
        return None;
    }
    STEPS.iter().find(|step| step.name == name)
}

/// Runs each, and reads what it ends with.
pub(super) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let own = std::env::current_exe().context("find this program")?;
    for (name, causes) in CAUSES {
        let output = Command::new(&own)
            .args(["test", name])
            .env(ALLOWED, "1")
            .env(speed::AS_USUAL, "1")
            .current_dir(&workspace.root)
            .output()
            .context("start this program again")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let verdict = judge(&text, output.status.success(), causes);
        match &verdict {
            Ok(()) => println!("ok {name}"),
            Err(error) => println!("failed {name}: {error:#}"),
        }
        tally.count(verdict.is_ok());
    }
    ensure!(
        tally.failed == 0,
        "{} of them are not told well",
        tally.failed
    );
    Ok(())
}

fn judge(output: &str, passed: bool, causes: &[&str]) -> Result<()> {
    ensure!(!passed, "it passes");
    let lines: Vec<&str> = output.lines().collect();
    let end = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    for cause in causes {
        ensure!(
            end.contains(cause),
            "no {cause:?} in the last lines:\n{end}"
        );
    }
    let last = lines.last().copied().unwrap_or_default();
    ensure!(last.ends_with("1 failed"), "the last line is {last:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_is_far_up_is_not_told() {
        let near = "the cause\n0 passed, 1 failed\n";
        judge(near, false, &["the cause"]).unwrap();
        assert!(judge(near, true, &["the cause"]).is_err());
        let far = format!("the cause\n{}0 passed, 1 failed\n", "more\n".repeat(40));
        assert!(judge(&far, false, &["the cause"]).is_err());
    }
}
