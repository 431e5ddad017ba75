//! `cargo xtask build`: the release binary with UI and eBPF object inside.

use anyhow::Result;

use crate::{
    compile::{self, Output},
    exec,
    setup::{self, BINARY},
    workspace::Workspace,
};

pub(crate) fn run(workspace: &Workspace, output: Output) -> Result<()> {
    setup::run(workspace, &BINARY)?;
    agent(workspace, output)?;
    println!("built {}", workspace.agent().display());
    Ok(())
}

/// Compiles the agent; the set-up must be done.
pub(crate) fn agent(workspace: &Workspace, output: Output) -> Result<()> {
    release(workspace, &["--package", "profiler-agent"], output)
}

/// Compiles the programs of the demo mesh. Apart from the agent, whose dependencies would otherwise get the features
/// that these ask for.
pub(crate) fn mesh_programs(workspace: &Workspace, output: Output) -> Result<()> {
    let mut packages = vec!["--package", "profiler-tests"];
    packages.extend(MESH.iter().flat_map(|program| ["--bin", program]));
    release(workspace, &packages, output)
}

/// The same and those of the benches.
pub(crate) fn bench_programs(workspace: &Workspace) -> Result<()> {
    release(
        workspace,
        &["--package", "profiler-tests", "--bins"],
        Output::All,
    )
}

/// What the demo starts; its other programs are for tests.
const MESH: [&str; 3] = ["profiler-demo", "mesh-client", "mesh-server"];

fn release(workspace: &Workspace, packages: &[&str], output: Output) -> Result<()> {
    let mut build = exec::cargo(&workspace.root);
    build
        .args(["build", "--release", "--locked"])
        .args(packages);
    // The stub would be embedded silently otherwise.
    build.env_remove("PROFILER_SKIP_EBPF");
    compile::run(&mut build, output)
}
