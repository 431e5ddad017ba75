//! `cargo xtask test --changed [REV]`: the steps that a change can break.
//!
//! A changed file belongs to a package, and a package changes with those it depends on. A step runs if it uses a changed
//! package. Folders that are not packages have the steps that read them in a table here.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{
    binaries::{ALONE, UNIT_PACKAGES},
    needs::Need,
    steps::{STEPS, Step},
};
use crate::{exec, workspace::Workspace};

const AGENT: &str = "profiler-agent";
const RECORDER: &str = "profiler-recorder";
const EBPF: &str = "profiler-ebpf";
const TESTS: &str = "profiler-tests";
const XTASK: &str = "xtask";
/// Modules of the integration tests: one that changed breaks its own steps only.
const MODULES: &str = "tests/it/";
/// What every package is built with.
const OF_ALL_PACKAGES: [&str; 4] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/"];
/// What tests of every kind read.
const OF_ALL_STEPS: [&str; 2] = [".ci/", "tests/fixtures/"];

/// Folders and files that are not packages, and the steps that read them. `check` reads everything.
const READERS: &[(&str, &[&str])] = &[
    (
        "web/",
        &[
            "web",
            "ui",
            "ui-stand-in",
            "ui-shell",
            "ui-journeys",
            "ui-topology",
            "compare",
            "supply-chain",
            "shipped",
        ],
    ),
    (
        "deploy/",
        &[
            "manifests",
            "containers",
            "pods",
            "kubernetes",
            "kubernetes-names",
            "shipped",
        ],
    ),
    ("docs/", &["unit", "web", "api", "api-fuzz"]),
    ("fuzz/", &["fuzz"]),
    ("deny.toml", &["supply-chain"]),
    ("NOTICE", &["supply-chain", "shipped"]),
    ("advisories/", &["supply-chain"]),
    ("LICENSE", &["shipped"]),
    ("ARCHITECTURE.md", &[]),
    ("CHANGELOG.md", &[]),
    ("CONTRIBUTING.md", &[]),
    ("README.md", &[]),
    ("SECURITY.md", &[]),
    ("STYLE.md", &[]),
    ("clippy.toml", &[]),
    ("rustfmt.toml", &[]),
    (".editorconfig", &[]),
    (".gitignore", &[]),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

/// The packages of the workspace: where each is, and which others it needs.
#[derive(Debug, Default)]
struct Packages {
    folders: BTreeMap<String, PathBuf>,
    needs: BTreeMap<String, BTreeSet<String>>,
}

impl Packages {
    fn read(root: &Path) -> Result<Self> {
        let mut command = exec::cargo(root);
        command.args(["metadata", "--no-deps", "--format-version=1", "--locked"]);
        let text = exec::output(&mut command)?;
        let metadata: Metadata =
            serde_json::from_str(&text).context("parse what `cargo metadata` says")?;
        let mut packages = Self::default();
        for package in metadata.packages {
            let folder = package
                .manifest_path
                .parent()
                .context("a manifest's folder")?;
            let folder = folder.strip_prefix(root).unwrap_or(folder).to_owned();
            let needs = package.dependencies.into_iter().map(|needed| needed.name);
            packages.needs.insert(package.name.clone(), needs.collect());
            packages.folders.insert(package.name, folder);
        }
        // The recorder's build script compiles it, which no manifest says.
        if let Some(needs) = packages.needs.get_mut(RECORDER) {
            needs.insert(EBPF.to_owned());
        }
        // The integration tests start the agent.
        if let Some(needs) = packages.needs.get_mut(TESTS) {
            needs.insert(AGENT.to_owned());
        }
        Ok(packages)
    }

    /// The package that a file belongs to.
    fn of(&self, file: &Path) -> Option<&str> {
        let holding = self
            .folders
            .iter()
            .filter(|(_, folder)| file.starts_with(folder));
        let inner = holding.max_by_key(|(_, folder)| folder.components().count());
        inner.map(|(name, _)| name.as_str())
    }

    /// Those that change with these: they depend on them.
    fn dependents(&self, changed: BTreeSet<String>) -> BTreeSet<String> {
        let mut all = changed;
        loop {
            let more: Vec<String> = self
                .needs
                .iter()
                .filter(|(name, needs)| !all.contains(*name) && !needs.is_disjoint(&all))
                .map(|(name, _)| name.clone())
                .collect();
            if more.is_empty() {
                return all;
            }
            all.extend(more);
        }
    }
}

/// The steps that what has changed since `revision` can break, in the order of the table; none if nothing changed.
pub(super) fn select(workspace: &Workspace, revision: &str) -> Result<Vec<&'static Step>> {
    let files = changed_files(&workspace.root, revision)?;
    let packages = Packages::read(&workspace.root)?;
    let names = broken_by(&packages, &files);
    let steps = STEPS.iter().filter(|step| names.contains(step.name));
    Ok(steps.collect())
}

fn changed_files(root: &Path, revision: &str) -> Result<Vec<PathBuf>> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(root).args(arguments);
        exec::output(&mut command)
    };
    let changed = git(&["diff", "--name-only", revision, "--"])?;
    let new = git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(changed
        .lines()
        .chain(new.lines())
        .map(PathBuf::from)
        .collect())
}

/// Names of steps.
fn broken_by(packages: &Packages, files: &[PathBuf]) -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    let mut changed = BTreeSet::new();
    for file in files {
        names.insert("check");
        let is_in = |place: &str| match place.strip_suffix('/') {
            Some(folder) => file.starts_with(folder),
            None => file == Path::new(place),
        };
        if OF_ALL_STEPS.iter().copied().any(is_in) {
            names.extend(STEPS.iter().map(|step| step.name));
        } else if OF_ALL_PACKAGES.iter().copied().any(is_in) {
            changed.extend(packages.folders.keys().cloned());
        } else if let Some(module) = module_of(file) {
            let steps = STEPS.iter().map(|step| step.name);
            let own: Vec<_> = steps.filter(|name| step_of(name) == module).collect();
            if own.is_empty() {
                // Several modules share it.
                changed.insert(TESTS.to_owned());
            }
            names.extend(own);
        } else if let Some((_, readers)) = READERS.iter().find(|(place, _)| is_in(place)) {
            names.extend(readers.iter().copied());
        } else if let Some(package) = packages.of(file) {
            changed.insert(package.to_owned());
        } else {
            // Nothing is known of it.
            names.extend(STEPS.iter().map(|step| step.name));
        }
    }
    let changed = packages.dependents(changed);
    let uses = STEPS.iter().filter(|step| uses(step, &changed));
    names.extend(uses.map(|step| step.name));
    names
}

/// `requests_tls` of a file of that module.
fn module_of(file: &Path) -> Option<String> {
    let rest = file.to_str()?.strip_prefix(MODULES)?;
    let first = rest.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "main").then(|| name.to_owned())
}

/// The module of a step.
fn step_of(name: &str) -> String {
    name.strip_suffix(ALONE).unwrap_or(name).replace('-', "_")
}

/// Whether a step runs something of one of these packages.
fn uses(step: &Step, changed: &BTreeSet<String>) -> bool {
    // What runs and judges all steps.
    if changed.contains(XTASK) && step.name == "runner" {
        return true;
    }
    step.needs.iter().any(|need| match need {
        Need::Agent | Need::Tests => changed.contains(TESTS),
        Need::Ebpf => changed.contains(EBPF) || changed.contains(XTASK),
        Need::CheckedTests => UNIT_PACKAGES.iter().any(|name| changed.contains(*name)),
        Need::KernelImages => changed.contains(TESTS) || changed.contains(XTASK),
        Need::CargoDeny | Need::Helm | Need::SbomTool => changed.contains(XTASK),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages() -> Packages {
        Packages::read(&Workspace::locate().unwrap().root).unwrap()
    }

    fn of(files: &[&str]) -> BTreeSet<&'static str> {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        broken_by(&packages(), &files)
    }

    #[test]
    fn steps_in_the_table_exist() {
        for name in READERS.iter().flat_map(|(_, steps)| *steps) {
            assert!(STEPS.iter().any(|step| step.name == *name), "{name}");
        }
    }

    #[test]
    fn a_module_of_tests_breaks_its_own_steps() {
        let found = of(&["tests/it/requests_tls.rs"]);
        assert_eq!(
            found,
            BTreeSet::from(["check", "requests-tls", "requests-tls-alone"])
        );
        // What all share.
        assert!(of(&["tests/it/main.rs"]).contains("chaos"));
    }

    #[test]
    fn what_the_agent_is_made_of_breaks_every_step_that_starts_it() {
        for file in [
            "crates/protocols/src/lib.rs",
            "profiler-common/src/lib.rs",
            "profiler-ebpf/src/main.rs",
            "profiler-agent/src/main.rs",
        ] {
            let found = of(&[file]);
            assert!(found.contains("chaos") && found.contains("check"), "{file}");
            assert!(!found.contains("manifests"), "{file}");
        }
        let file_tests = of(&["crates/file-tests/src/lib.rs"]);
        assert!(file_tests.contains("fuzz") && file_tests.contains("unwind"));
        assert!(!file_tests.contains("chaos"));
        let fixture = of(&["tests/fixtures/protocols/redis.txt"]);
        assert!(fixture.contains("fuzz") && fixture.contains("unit"));
    }

    #[test]
    fn documents_and_pages_break_what_reads_them() {
        assert_eq!(of(&["README.md"]), BTreeSet::from(["check"]));
        let page = of(&["web/src/main.tsx"]);
        assert!(page.contains("web") && page.contains("ui") && !page.contains("chaos"));
    }

    #[test]
    fn nothing_breaks_where_nothing_changed_and_everything_by_what_is_not_known() {
        assert!(of(&[]).is_empty());
        assert_eq!(of(&["new/place"]).len(), STEPS.len());
        assert!(of(&["Cargo.lock"]).len() > STEPS.len() / 2);
    }
}
