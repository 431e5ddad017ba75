//! `cargo xtask test`: every test there is, as steps that cannot pass without having run something.

mod steps;
mod needs;
mod cargo_test;
mod unwind_test;
mod web_test;
mod toolchain_fallback;
mod report;

use std::{fs, path::Path, time::Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    debian::Package,
    dist::{self, DistArgs},
    progress::Progress,
    setup::{self, Part},
    workspace::Workspace,
};
pub(crate) use cargo_test::{NOT_A_TEST, image};
use needs::Need;
use report::{Report, Row};
use steps::{STEPS, Step};

/// What a step ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Tally {
    pub(crate) fn count(&mut self, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }
}

pub(crate) fn list() {
    for Step { name, about, .. } in STEPS {
        println!("{name:20} {about}");
    }
}

/// Runs the named steps, or all of them. A failed step does not stop the others.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Result<()> {
    let steps = select(names)?;
    if let Some(step) = steps.iter().find(|step| step.needs.contains(&Need::Root)) {
        ensure!(
            rustix::process::geteuid().is_root(),
            "the test step {} needs root (eBPF, network namespaces): run `sudo -E env PATH=$PATH cargo xtask test`",
            step.name
        );
    }
    let mut report = Report::default();
    let start = Instant::now();
    let agent = workspace.agent_under_test();
    let builds_agent = needs(&steps, Need::Agent) && agent == dist::program(workspace);
    setup::run(workspace, &parts(&steps))?;
    report.note("set-up", start.elapsed());
    if builds_agent {
        let start = Instant::now();
        // Files may differ from the commit while one works; what CI tests does not.
        dist::build(workspace, &DistArgs { allow_dirty: true })?;
        report.note("build of what is shipped", start.elapsed());
    }
    if needs(&steps, Need::Agent) {
        println!("agent under test: {}", agent.display());
    }
    let mut progress = Progress::new(steps.len());
    for step in steps {
        let start = Instant::now();
        let mut tally = Tally::default();
        let result = progress.loud(step.name, || (step.run)(workspace, &mut tally));
        if let Err(error) = &result {
            println!("error: {error:#}");
            if tally.failed == 0 {
                tally.failed = 1;
            }
        }
        report.add(Row {
            name: step.name,
            took: start.elapsed(),
            tally,
            error: result.err().map(|error| format!("{error:#}")),
        });
    }
    print!("{report}");
    let total = report.total();
    if total.failed > 0 {
        bail!("{} tests failed", total.failed);
    }
    Ok(())
}

fn select(names: &[String]) -> Result<Vec<&'static Step>> {
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    names
        .iter()
        .map(|name| {
            STEPS
                .iter()
                .find(|step| step.name == name)
                .with_context(|| {
                    format!("no test step is named {name:?}: see `cargo xtask test --list`")
                })
        })
        .collect()
}

fn needs(steps: &[&Step], need: Need) -> bool {
    steps.iter().any(|step| step.needs.contains(&need))
}

/// What the steps need beside the agent, whose build prepares what it needs.
fn parts(steps: &[&Step]) -> Vec<Part> {
    let mut parts: Vec<Part> = steps
        .iter()
        .flat_map(|step| step.needs)
        .filter_map(|need| match need {
            Need::Packages(packages) => Some(Part::Packages(packages)),
            Need::OlderEnvoys => Some(Part::OlderEnvoys),
            Need::Brokers => Some(Part::Brokers),
            Need::OldTls => Some(Part::OldTls),
            Need::Kubernetes => Some(Part::Kubernetes),
            Need::Agent | Need::Envoy | Need::Ebpf | Need::Web | Need::Root => None,
        })
        .fold(Vec::new(), |mut unique, part| {
            if !unique.contains(&part) {
                unique.push(part);
            }
            unique
        });
    if needs(steps, Need::Ebpf) {
        parts.push(Part::Ebpf);
    }
    if needs(steps, Need::Web) {
        parts.push(Part::Web);
    }
    if needs(steps, Need::Envoy) {
        parts.push(Part::Envoy);
    }
    parts
}

/// Modules of tests/it that no step would run.
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
        if has_tests(&path)? && !STEPS.iter().any(|step| step.name == name) {
            unlisted.push(format!(
                "tests/it/{stem}: `cargo xtask test` has no step {name}"
            ));
        }
    }
    Ok(unlisted)
}

/// Whether a module, or a folder of modules, holds a test.
fn has_tests(path: &Path) -> Result<bool> {
    if path.is_file() {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        return Ok(text.contains("#[test]") || text.contains("::test]"));
    }
    for entry in fs::read_dir(path).with_context(|| format!("list {}", path.display()))? {
        let entry = entry.with_context(|| format!("list {}", path.display()))?;
        if has_tests(&entry.path())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Packages of the steps, by what they test.
pub(crate) const UI_PACKAGES: [Package; 1] = [Package {
    name: "chromium",
    evidence: "/usr/bin/chromium",
}];
const INFERRED_PACKAGES: [Package; 2] = [
    Package {
        name: "g++",
        evidence: "/usr/bin/g++",
    },
    Package {
        name: "binutils",
        evidence: "/usr/bin/strip",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

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
            parts(&select(&names).unwrap())
                .into_iter()
                .filter(|part| matches!(part, Part::Packages(_)))
                .count()
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
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        assert_eq!(
            unlisted_modules(root.path()).unwrap(),
            ["tests/it/forgotten: `cargo xtask test` has no step forgotten"]
        );
    }
}
