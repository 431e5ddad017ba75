//! `cargo xtask bench`: what the profiler costs.

use std::{env, fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::{
    build,
    compile::Output,
    debian::Package,
    demo,
    dist::{self, DistArgs},
    exec,
    setup::{self, BINARY, Part},
    test::{self, ACCESS_LOG_PACKAGES, REQUESTS_TRUTH_PACKAGES, UI_PACKAGES},
    vm,
    workspace::Workspace,
};

/// What `bench off-cpu`, `bench unwind`, `bench network` and `bench protocols` compare with or put under load.
const PEERS: [Package; 5] = [
    Package {
        name: "golang-go",
        evidence: "/usr/bin/go",
    },
    Package {
        name: "bpftrace",
        evidence: "/usr/bin/bpftrace",
    },
    Package {
        name: "linux-perf",
        evidence: "/usr/bin/perf",
    },
    Package {
        name: "nginx-light",
        evidence: "/usr/sbin/nginx",
    },
    Package {
        name: "wrk",
        evidence: "/usr/bin/wrk",
    },
];

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let Some((first, options)) = arguments.split_first()
        && first == "ui"
    {
        return page(workspace, options);
    }
    if arguments == ["kernels"] {
        setup::run(workspace, &BINARY)?;
        setup::run(workspace, &[Part::Packages(&vm::PACKAGES)])?;
        test::Build::Integration.make(workspace)?;
        if env::var_os("PROFILER_AGENT").is_none() {
            dist::build(workspace, &DistArgs { allow_dirty: true })?;
        }
        return vm::run_more(workspace);
    }
    ensure!(
        rustix::process::geteuid().is_root(),
        "benches load eBPF programs: run them as root"
    );
    setup::run(workspace, &BINARY)?;
    let on_the_mesh = ["off-cpu", "unwind", "network", "protocols"];
    let is = |benches: &[&str]| {
        let first = arguments.first();
        first.is_some_and(|first| benches.contains(&first.as_str()))
    };
    if is(&["diagnosis", "soak", "memory"]) {
        setup::run(workspace, &[Part::Packages(&demo::PACKAGES), Part::Envoy])?;
    }
    if is(&["api-fuzz"]) {
        setup::run(workspace, &[Part::Schemathesis])?;
    }
    if is(&["access-logs"]) {
        let parts = [
            Part::AlsCollector,
            Part::Envoy,
            Part::Packages(&ACCESS_LOG_PACKAGES),
        ];
        setup::run(workspace, &parts)?;
    }
    if is(&["truth"]) {
        setup::run(
            workspace,
            &[Part::Packages(&REQUESTS_TRUTH_PACKAGES), Part::GrpcGo],
        )?;
    }
    if arguments
        .iter()
        .any(|argument| on_the_mesh.contains(&argument.as_str()))
    {
        setup::run(
            workspace,
            &[
                Part::Packages(&PEERS),
                Part::Packages(&demo::PACKAGES),
                Part::Envoy,
            ],
        )?;
    }
    // What is held is a matter of the allocator too, which the two builds do not share.
    let agent = match env::var_os("PROFILER_AGENT") {
        Some(other) => PathBuf::from(other),
        None if is(&["soak", "memory", "api-fuzz"]) => {
            dist::build(workspace, &DistArgs { allow_dirty: true })?.program
        }
        None => {
            build::agent(workspace, Output::All)?;
            workspace.agent()
        }
    };
    build::bench_programs(workspace)?;
    let program = workspace.target.join("release/profiler-bench");
    let mut bench = if is(&["api-fuzz"]) {
        // In a PID namespace of its own: names of the programs that the rest of the machine starts would be
        // growth of the agent. Its folders are named after processes: others' tests would take them for left behind.
        let folder = workspace.target.join("tmp/api-fuzz");
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let mut isolated = Command::new("unshare");
        isolated
            .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
            .arg(program)
            .env("TMPDIR", folder);
        isolated
    } else {
        Command::new(program)
    };
    bench
        .args(arguments)
        .env("PROFILER_AGENT", agent)
        .current_dir(&workspace.root);
    exec::on_terminal(&mut bench)
}

/// The page in Chromium, against a stand-in of the agent and against recorded data. Needs no root where the
/// packages are there.
fn page(workspace: &Workspace, options: &[String]) -> Result<()> {
    setup::run(workspace, &[Part::Packages(&UI_PACKAGES), Part::Web])?;
    setup::run(workspace, &BINARY)?;
    build::agent(workspace, Output::All)?;
    let mut bench = Command::new("node");
    bench
        .arg("e2e/bench.mjs")
        .args(options)
        .env("AGENT", workspace.agent())
        .current_dir(workspace.web());
    exec::on_terminal(&mut bench)
}
