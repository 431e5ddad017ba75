//! `cargo xtask bench`: what the profiler costs.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::{
    build,
    debian::Package,
    demo, exec,
    setup::{self, BINARY, Part},
    workspace::Workspace,
};

/// What `bench off-cpu` compares with.
const PEERS: [Package; 1] = [Package {
    name: "bpftrace",
    evidence: "/usr/bin/bpftrace",
}];

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "benches load eBPF programs: run them as root"
    );
    setup::run(workspace, &BINARY)?;
    if arguments.iter().any(|argument| argument == "off-cpu") {
        setup::run(
            workspace,
            &[
                Part::Packages(&PEERS),
                Part::Packages(&demo::PACKAGES),
                Part::Envoy,
            ],
        )?;
    }
    build::agent(workspace)?;
    build::demo_programs(workspace)?;
    let mut bench = Command::new(workspace.target.join("release/profiler-bench"));
    bench
        .args(arguments)
        .env("PROFILER_AGENT", workspace.agent())
        .current_dir(&workspace.root);
    exec::on_terminal(&mut bench)
}
