//! `cargo xtask build`: the release binary with UI and eBPF object inside.

use anyhow::Result;

use crate::{
    exec,
    setup::{self, BINARY},
    workspace::Workspace,
};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    setup::run(workspace, &BINARY)?;
    agent(workspace)?;
    println!("built {}", workspace.agent().display());
    Ok(())
}

/// Compiles the agent; the set-up must be done.
pub(crate) fn agent(workspace: &Workspace) -> Result<()> {
    release(workspace, &["--package", "profiler-agent"])
}

/// Compiles the programs of the demo and the benches. Apart from the agent, whose dependencies would
/// otherwise get the features that these ask for.
pub(crate) fn demo_programs(workspace: &Workspace) -> Result<()> {
    release(workspace, &["--package", "profiler-tests", "--bins"])
}

fn release(workspace: &Workspace, packages: &[&str]) -> Result<()> {
    let mut build = exec::cargo(&workspace.root);
    build
        .args(["build", "--release", "--locked"])
        .args(packages);
    // The stub would be embedded silently otherwise.
    build.env_remove("PROFILER_SKIP_EBPF");
    exec::on_terminal(&mut build)
}
