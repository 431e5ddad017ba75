//! The step `new-probe`: a probe is added to a copy of the sources by `cargo xtask new-probe`, and every probe's own tests
//! run on this kernel.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::{Tally, binaries};
use crate::{exec, new_probe, workspace::Workspace};

const NAME: &str = "demo";
/// What cargo reads to build the recorder.
const SOURCES: [&str; 11] = [
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "crates",
    "profiler-agent",
    "profiler-common",
    "profiler-ebpf",
    "tests",
    "xtask",
];

pub(super) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    // Always the same place: cargo takes the crates again that are as they were.
    let copy = workspace.target.join("new-probe");
    remove(&copy)?;
    let result = with_probe(workspace, &copy, tally);
    let removed = remove(&copy);
    result.and(removed)
}

fn remove(copy: &Path) -> Result<()> {
    if !copy.exists() {
        return Ok(());
    }
    fs::remove_dir_all(copy).with_context(|| format!("remove {}", copy.display()))
}

/// Adds the probe to a new copy and runs the tests of it.
fn with_probe(workspace: &Workspace, copy: &Path, tally: &mut Tally) -> Result<()> {
    copy_sources(workspace, copy)?;
    adapt_manifest(copy)?;
    for path in new_probe::write(copy, NAME)? {
        println!("{path}");
    }
    let mut format = exec::cargo(copy);
    exec::on_terminal(format.args(["fmt", "--all", "--check"]))
        .context("a skeleton is not formatted: see xtask/src/new_probe")?;
    tally.count(true);
    binaries::kernel(workspace, copy, tally)
}

/// The version of the copy's crates. Cargo tells crates of the same version in two checkouts not apart: those of the copy
/// would take the place of this checkout's, which would all be compiled again.
const VERSION: &str = "0.0.0-new-probe";

/// Gives the crates of the copy their own version, and compiles those without optimisation that tests of large inputs have
/// optimised.
fn adapt_manifest(copy: &Path) -> Result<()> {
    let manifest = copy.join("Cargo.toml");
    let text =
        fs::read_to_string(&manifest).with_context(|| format!("read {}", manifest.display()))?;
    let begin = text
        .find("\nversion = \"")
        .with_context(|| format!("{} has no version of the workspace", manifest.display()))?;
    let (before, after) = text.split_at(begin + 1);
    let rest: String = after
        .split_inclusive('\n')
        .skip(1)
        .filter(|line| !(line.starts_with("profiler-") && line.contains("{ opt-level = 1 }")))
        .collect();
    fs::write(
        &manifest,
        format!("{before}version = \"{VERSION}\"\n{rest}"),
    )
    .with_context(|| format!("write {}", manifest.display()))
}

/// The sources with their times, and the tools that the eBPF object is built with.
fn copy_sources(workspace: &Workspace, copy: &Path) -> Result<()> {
    let tools = copy.join("target");
    fs::create_dir_all(&tools).with_context(|| format!("create {}", tools.display()))?;
    std::os::unix::fs::symlink(&workspace.tools, tools.join("tools"))
        .with_context(|| format!("link {}", workspace.tools.display()))?;
    let sources = SOURCES
        .iter()
        .map(|name| workspace.root.join(name))
        .filter(|path| path.exists())
        .collect::<Vec<PathBuf>>();
    exec::output(
        Command::new("cp")
            .args(["--archive", "--target-directory"])
            .arg(copy)
            .args(sources),
    )?;
    Ok(())
}
