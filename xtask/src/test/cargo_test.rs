//! Steps that are `cargo test` runs: their output is shown and counted.

use std::{
    fmt,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{Tally, steps::STEPS};
use crate::{engine::Engine, exec, workspace::Workspace};

/// One step, compilation included.
const LIMIT: Duration = Duration::from_mins(20);

/// Unit tests: they need no root, no eBPF object and no UI.
pub(super) fn unit(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let mut command = cargo_test(workspace);
    command
        .args([
            "--package",
            "profiler-common",
            "--package",
            "profiler-protocols",
            "--package",
            "profiler-agent",
            "--package",
            "xtask",
        ])
        .env("PROFILER_SKIP_EBPF", "1");
    counted(command, tally)
}

/// What the agent infers about stripped C++ programs. Built as the unit tests are.
pub(super) fn inferred(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    without_ebpf(workspace, "inferred", tally)
}

pub(super) fn tls_sites(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    without_ebpf(workspace, "tls_sites", tally)
}

/// A test target of the agent that needs files of other programs, and no kernel.
fn without_ebpf(workspace: &Workspace, target: &str, tally: &mut Tally) -> Result<()> {
    let mut command = cargo_test(workspace);
    command
        .args(["--package", "profiler-agent", "--test", target])
        .args(["--", "--nocapture"])
        .env("PROFILER_SKIP_EBPF", "1");
    counted(command, tally)
}

/// A module that needs a Docker engine: the machine's, or one for as long as the tests run.
pub(super) fn with_engine(workspace: &Workspace, name: &str, tally: &mut Tally) -> Result<()> {
    let engine = Engine::start(workspace)?;
    let mut command = integration_of(workspace, name);
    command.env("DOCKER_HOST", &engine.host);
    counted(command, tally)
}

/// The module that runs what is shipped as an image of an engine.
pub(crate) fn image(
    workspace: &Workspace,
    engine: &Engine,
    tag: &str,
    tally: &mut Tally,
) -> Result<()> {
    let mut command = integration_of(workspace, "shipped");
    command
        .env("DOCKER_HOST", &engine.host)
        .env("PROFILER_IMAGE", tag);
    counted(command, tally)
}

/// One module of tests/it.
pub(super) fn integration(workspace: &Workspace, name: &str, tally: &mut Tally) -> Result<()> {
    counted(integration_of(workspace, name), tally)
}

/// Tests share the kernel, so they run one after the other.
fn integration_of(workspace: &Workspace, name: &str) -> Command {
    let module = module_of(name);
    let mut command = cargo_test(workspace);
    command
        .args([
            "--release",
            "--package",
            "profiler-tests",
            "--test",
            "it",
            "--",
            "--test-threads=1",
        ])
        .arg(module)
        .args(others(name, STEPS.iter().map(|step| step.name)))
        .env("PROFILER_AGENT", workspace.agent_under_test());
    command
}

/// What the names of the tests of an integration module begin with.
fn module_of(name: &str) -> String {
    format!("{}::", name.replace('-', "_"))
}

/// Arguments that leave out modules whose names end like this one's: a filter holds anywhere in a name,
/// so `mesh::` would run `network_mesh::` as well.
fn others<'a>(name: &str, steps: impl Iterator<Item = &'a str>) -> Vec<String> {
    let end = format!("-{name}");
    steps
        .filter(|step| step.ends_with(&end))
        .flat_map(|step| ["--skip".to_owned(), module_of(step)])
        .collect()
}

/// One test target that `cargo test` leaves out unless it is named. It runs in a release build, and
/// what it prints is shown. The package's programs are built as well, so they must have their needs.
pub(super) fn release_target(
    workspace: &Workspace,
    package: &str,
    target: &str,
    variables: &[(&str, &Path)],
    tally: &mut Tally,
) -> Result<()> {
    let mut command = cargo_test(workspace);
    command
        .args(["--release", "--package", package, "--test", target])
        .args(["--", "--nocapture"])
        .envs(variables.iter().copied());
    counted(command, tally)
}

/// A test binary that no other step runs, with the checks of a debug build.
pub(super) fn checked_target(
    workspace: &Workspace,
    package: &str,
    target: &str,
    tally: &mut Tally,
) -> Result<()> {
    let mut command = cargo_test(workspace);
    command
        .args(["--package", package, "--test", target])
        .args(["--", "--nocapture"]);
    counted(command, tally)
}

fn cargo_test(workspace: &Workspace) -> Command {
    let mut command = exec::limited(LIMIT, exec::cargo(&workspace.root).get_program());
    command
        .args(["test", "--locked", "--no-fail-fast"])
        .current_dir(&workspace.root);
    command
}

fn counted(mut command: Command, tally: &mut Tally) -> Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("start cargo test")?;
    let stdout = child
        .stdout
        .take()
        .context("a piped child has a standard output")?;
    let mut counts = Counts::default();
    let mut failures = Failures::default();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("read the output of cargo test")?;
        println!("{line}");
        counts.read(&line);
        failures.read(&line);
    }
    let status = child.wait().context("wait for cargo test")?;
    tally.passed += counts.passed;
    tally.failed += counts.failed;
    ensure!(status.success(), "cargo test: {status}{failures}");
    counts.verdict()
}

/// Most lines of failed tests that are repeated at the end of the run.
const FAILURE_LINES: usize = 60;

/// What the test harness prints of failed tests behind the list of all.
#[derive(Debug, Default)]
struct Failures {
    inside: bool,
    lines: Vec<String>,
}

impl Failures {
    fn read(&mut self, line: &str) {
        match line {
            "failures:" => self.inside = true,
            _ if line.starts_with("test result: ") => self.inside = false,
            _ if self.inside && !line.is_empty() && self.lines.len() < FAILURE_LINES => {
                self.lines.push(line.to_owned());
            }
            _ => {}
        }
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines
            .iter()
            .try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// What the test harness says about itself, summed over its binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    announced: usize,
    passed: usize,
    failed: usize,
    ignored: usize,
    /// Ignored functions that are no tests but child processes of tests, and say so in their reason.
    children: usize,
}

/// How the reason of such a function begins.
pub(crate) const NOT_A_TEST: &str = "not a test:";

impl Counts {
    fn read(&mut self, line: &str) {
        if line.starts_with("test ") && line.contains(&format!(" ... ignored, {NOT_A_TEST}")) {
            self.children += 1;
        } else if let Some(rest) = line.strip_prefix("running ") {
            self.announced += first_number(rest);
        } else if let Some(rest) = line.strip_prefix("test result: ") {
            for part in rest.split(['.', ';']).map(str::trim) {
                if part.ends_with(" passed") {
                    self.passed += first_number(part);
                } else if part.ends_with(" failed") {
                    self.failed += first_number(part);
                } else if part.ends_with(" ignored") {
                    self.ignored += first_number(part);
                }
            }
        }
    }

    /// Nothing ran, something was left out, or a binary died before its summary: all are failures.
    fn verdict(&self) -> Result<()> {
        ensure!(self.announced > self.ignored, "no test ran");
        if self.ignored != self.children {
            bail!(
                "{} tests did not run",
                self.ignored.saturating_sub(self.children)
            );
        }
        ensure!(
            self.passed + self.failed + self.children == self.announced,
            "{} tests were announced, {} passed and {} failed",
            self.announced,
            self.passed,
            self.failed
        );
        ensure!(self.failed == 0, "{} tests failed", self.failed);
        Ok(())
    }
}

fn first_number(text: &str) -> usize {
    text.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &str) -> Counts {
        let mut counts = Counts::default();
        output.lines().for_each(|line| counts.read(line));
        counts
    }

    #[test]
    fn a_step_does_not_run_those_whose_names_end_like_its_own() {
        let steps = ["mesh", "network-mesh", "mesh-profile", "remesh"];
        assert_eq!(
            others("mesh", steps.into_iter()),
            ["--skip", "network_mesh::"]
        );
        assert!(others("network-mesh", steps.into_iter()).is_empty());
    }

    #[test]
    fn what_failed_is_kept_for_the_end() {
        let mut failures = Failures::default();
        let output = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\n3 is not 4\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed\nelse\n";
        output.lines().for_each(|line| failures.read(line));
        assert_eq!(
            failures.to_string(),
            "\n  ---- a stdout ----\n  3 is not 4\n      a"
        );
    }

    #[test]
    fn counts_are_summed_over_binaries() {
        let counts = read(
            "running 2 tests\ntest a ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s\n\
             running 1 test\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n",
        );
        assert_eq!(
            counts,
            Counts {
                announced: 3,
                passed: 2,
                failed: 1,
                ignored: 0,
                children: 0
            }
        );
        assert!(counts.verdict().is_err());
    }

    #[test]
    fn a_run_of_zero_tests_does_not_pass() {
        assert!(
            read("running 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored\n")
                .verdict()
                .is_err()
        );
        assert!(read("").verdict().is_err());
    }

    #[test]
    fn a_skipped_test_does_not_pass() {
        assert!(
            read("running 2 tests\ntest result: ok. 1 passed; 0 failed; 1 ignored\n")
                .verdict()
                .is_err()
        );
    }

    #[test]
    fn a_child_process_of_a_test_is_no_test() {
        let child = "test writer ... ignored, not a test: started by another\n";
        let other = "test slow ... ignored, takes long\n";
        let result =
            |ignored: u32| format!("test result: ok. 1 passed; 0 failed; {ignored} ignored\n");
        read(&format!("running 2 tests\n{child}{}", result(1)))
            .verdict()
            .unwrap();
        assert!(
            read(&format!("running 2 tests\n{other}{}", result(1)))
                .verdict()
                .is_err()
        );
        assert!(
            read(&format!("running 3 tests\n{child}{other}{}", result(2)))
                .verdict()
                .is_err()
        );
        assert!(
            read(&format!(
                "running 1 test\n{child}test result: ok. 0 passed; 0 failed; 1 ignored\n"
            ))
            .verdict()
            .is_err()
        );
    }

    #[test]
    fn a_binary_that_dies_does_not_pass() {
        assert!(read("running 2 tests\ntest a ... ok\n").verdict().is_err());
    }

    #[test]
    fn all_passed_is_a_pass() {
        read(
            "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored; finished in 1.50s\n",
        )
        .verdict()
        .unwrap();
    }
}
