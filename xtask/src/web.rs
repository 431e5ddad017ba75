//! `cargo xtask web`: the UI's packages, its build, and its own tests.

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::{
    exec,
    progress::Outcome,
    setup::{self, Part},
    stamp::{self, Stamp},
    workspace::Workspace,
};

/// Folders of web/ that its build does not read or writes itself.
const NOT_SOURCES: [&str; 3] = ["node_modules", "dist", "test-results"];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    setup::run(workspace, &[Part::Web])
}

/// `npm ci` when the lock file changed. Packages' own install scripts do not run.
pub(crate) fn install(workspace: &Workspace) -> Result<Outcome> {
    let web = workspace.web();
    let hash = stamp::file_hash(&web.join("package-lock.json"))?;
    let stamp = Stamp::new(web.join("node_modules/.profiler-stamp"), "1", &hash);
    if stamp.is_fresh() {
        return Ok(Outcome::Cached);
    }
    let mut npm = npm(&web, &["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    exec::download(&mut npm, &workspace.logs().join("npm-ci.log"))?;
    stamp.write()?;
    Ok(Outcome::Done)
}

/// `npm run build` when a source changed; leaves web/dist.
pub(crate) fn build(workspace: &Workspace) -> Result<Outcome> {
    let web = workspace.web();
    let hash = stamp::tree_hash(std::slice::from_ref(&web), &NOT_SOURCES)?;
    // Beside the output, not in it: everything in dist is embedded.
    let stamp = Stamp::new(web.join("node_modules/.profiler-build-stamp"), "1", &hash);
    if stamp.is_fresh() && web.join("dist/index.html").exists() {
        return Ok(Outcome::Cached);
    }
    exec::to_log(
        &mut npm(&web, &["run", "build"]),
        &workspace.logs().join("web-build.log"),
    )?;
    stamp.write()?;
    Ok(Outcome::Done)
}

/// An npm command in the UI's folder.
pub(crate) fn npm(web: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .current_dir(web);
    command
}
