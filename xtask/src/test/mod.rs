//! `cargo xtask test`: every test there is, as steps that cannot pass without having run something.

mod schedule;
mod tally;
mod libtest;
mod binaries;
mod needs;
mod preparations;
mod steps;
mod unwind_test;
mod web_test;
mod toolchain_fallback;
mod new_probe_test;
mod process;
mod jobs;
mod times;
mod report;
mod repeat;
mod room;
mod speed;
mod broken;
mod changed;

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use clap::Args;

use crate::workspace::Workspace;
pub(crate) use binaries::{Build, integration_binary, integration_with};
pub(crate) use libtest::NOT_A_TEST;
pub(crate) use needs::{ACCESS_LOG_PACKAGES, REQUESTS_TRUTH_PACKAGES, UI_PACKAGES};
pub(crate) use tally::Tally;

use jobs::Run;
use steps::{STEPS, Step};

#[derive(Args, Debug)]
pub(crate) struct TestArgs {
    /// Names from --list, or `quick`: lints and unit tests, without root; all of them by default
    names: Vec<String>,
    /// The steps that what has changed since REV can break [default: HEAD, what is not committed]
    #[arg(long, value_name = "REV", num_args = 0..=1, default_missing_value = "HEAD", conflicts_with = "names")]
    changed: Option<String>,
    /// Print each step with its lane, its budget and its last time, and exit
    #[arg(long)]
    list: bool,
    /// Run the named steps N times, one after the other, and print how often each test failed
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// With --repeat: beside a busy loop on every second processor
    #[arg(long, requires = "repeat")]
    loaded: bool,
    /// Started by the command itself: one job, in a process of its own
    #[arg(long, hide = true, value_name = "NAME")]
    job: Option<String>,
}

/// Steps for the time of writing: no root, and at most six minutes once everything is built.
const QUICK: &[&str] = &["check", "unit", "web", "supply-chain"];
const QUICK_NAME: &str = "quick";

/// Whether all passed.
pub(crate) fn run(workspace: &Workspace, arguments: &TestArgs) -> Result<bool> {
    if arguments.list {
        print!("{}", times::list(workspace));
        return Ok(true);
    }
    let steps = match &arguments.changed {
        Some(revision) => changed::select(workspace, revision)?,
        None => select(&arguments.names)?,
    };
    if steps.is_empty() {
        println!("nothing has changed");
        return Ok(true);
    }
    if let Some(job) = &arguments.job {
        jobs::run_one(workspace, job, &steps)?;
        return Ok(true);
    }
    room::check(workspace, &steps)?;
    let mut run = Run::new(workspace)?;
    if let Some(times) = arguments.repeat {
        return repeat::run(&mut run, &steps, times, arguments.loaded);
    }
    run.all(&steps)?;
    run.second_runs(&steps)?;
    let report = run.finish()?;
    print!("{report}");
    Ok(report.total().failed == 0)
}

fn select(names: &[String]) -> Result<Vec<&'static Step>> {
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    let quick = names.iter().any(|name| name == QUICK_NAME);
    let quick = if quick { QUICK } else { &[] };
    let named = names.iter().map(String::as_str);
    let mut steps: Vec<&'static Step> = Vec::new();
    for name in quick
        .iter()
        .copied()
        .chain(named.filter(|name| *name != QUICK_NAME))
    {
        let found = STEPS.iter().find(|step| step.name == name);
        let step = found.or_else(|| broken::find(name)).with_context(|| {
            format!("no test step is named {name:?}: see `cargo xtask test --list`")
        })?;
        steps.push(step);
    }
    Ok(steps)
}

/// Tests of tests/it that no step would run.
pub(crate) fn unlisted_modules(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("tests/it");
    if !folder.exists() {
        return Ok(vec!["tests/it does not exist".to_owned()]);
    }
    let mut unlisted = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry
            .with_context(|| format!("list {}", folder.display()))?
            .path();
        let Some(stem) = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
        else {
            continue;
        };
        let name = stem.replace('_', "-");
        let text = text_of(&path)?;
        // Functions that others start are not tests.
        let tests = text.matches("#[test]").count() + text.matches("::test]").count();
        let has_tests = tests > text.matches(NOT_A_TEST).count();
        let has_alone = text.contains("mod alone {");
        for (is_there, name) in [
            (has_tests, name.clone()),
            (has_alone, format!("{name}{}", binaries::ALONE)),
        ] {
            if is_there && !STEPS.iter().any(|step| step.name == name) {
                unlisted.push(format!(
                    "tests/it/{stem}: `cargo xtask test` has no step {name}"
                ));
            }
        }
    }
    Ok(unlisted)
}

/// The text of a module, or of all in a folder of modules.
fn text_of(path: &Path) -> Result<String> {
    if path.is_file() {
        return fs::read_to_string(path).with_context(|| format!("read {}", path.display()));
    }
    let mut text = String::new();
    for entry in fs::read_dir(path).with_context(|| format!("list {}", path.display()))? {
        let entry = entry.with_context(|| format!("list {}", path.display()))?;
        text.push_str(&text_of(&entry.path())?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_steps_need_no_root() {
        use needs::Need;
        let steps = select(&[QUICK_NAME.to_owned()]).unwrap();
        assert_eq!(steps.len(), QUICK.len());
        for step in steps {
            let needs_root = |need: &Need| matches!(need, Need::Root | Need::Packages(_));
            assert!(!step.needs.iter().any(needs_root), "{}", step.name);
        }
    }

    #[test]
    fn names_of_steps_are_unique() {
        let mut names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }

    #[test]
    fn an_unknown_step_is_an_error_and_no_name_means_all() {
        assert!(select(&["no-such-step".to_owned()]).is_err());
        assert_eq!(select(&[]).unwrap().len(), STEPS.len());
    }

    #[test]
    fn packages_are_asked_for_once() {
        let asked = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            preparations::packages(&select(&names).unwrap()).len()
        };
        assert!(asked(&["ui"]) > 0);
        assert_eq!(asked(&["ui", "ui-shell"]), asked(&["ui"]));
    }

    #[test]
    fn an_integration_module_without_a_step_is_found() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("tests/it");
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("main.rs", "mod helpers;"),
            ("helpers.rs", "pub fn helper() {}"),
            ("on_cpu.rs", "#[test]"),
            ("forgotten.rs", "#[test]"),
            ("api.rs", "#[test]\nmod alone {"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        let mut found = unlisted_modules(root.path()).unwrap();
        found.sort();
        assert_eq!(
            found,
            [
                "tests/it/api: `cargo xtask test` has no step api-alone",
                "tests/it/forgotten: `cargo xtask test` has no step forgotten"
            ]
        );
    }
}
