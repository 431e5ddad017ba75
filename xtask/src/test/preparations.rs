//! What must be there before steps can run, each as a job of its own.

use anyhow::Result;

use super::{binaries::Build, needs::Need, schedule::Lane, steps::Step};
use crate::{
    debian::{self, Package},
    dist::{self, DistArgs},
    exec, manifests, sbom,
    setup::{self, Part},
    supply_chain, vm,
    workspace::Workspace,
};

/// One thing that steps need.
pub(super) struct Preparation {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) lane: Lane,
    /// It is expected to take at most this many seconds on two processors.
    pub(super) budget: u32,
    /// It is made where a step needs one of these; empty: always.
    pub(super) needs: &'static [Need],
    pub(super) after: &'static [&'static str],
    pub(super) run: fn(&Workspace, &[&Step]) -> Result<()>,
}

macro_rules! part {
    ($name:literal, $about:literal, $lane:ident, $budget:literal, $need:expr, $part:expr) => {
        Preparation {
            name: $name,
            about: $about,
            lane: Lane::$lane,
            budget: $budget,
            needs: &[$need],
            after: &["packages"],
            run: |workspace, _| setup::run(workspace, &[$part]),
        }
    };
}

/// Those whose result others wait for come first.
pub(super) const PREPARATIONS: &[Preparation] = &[
    Preparation {
        name: "packages",
        about: "Debian's packages of all steps",
        lane: Lane::Fetch,
        budget: 180,
        needs: &[],
        after: &[],
        run: |workspace, steps| debian::install(workspace, &packages(steps)).map(drop),
    },
    Preparation {
        name: "crates",
        about: "sources of all crates in Cargo.lock",
        lane: Lane::Fetch,
        budget: 120,
        needs: &[],
        after: &[],
        run: |workspace, _| {
            let mut fetch = exec::cargo(&workspace.root);
            fetch.args(["fetch", "--locked"]);
            exec::download(&mut fetch, &workspace.logs().join("cargo-fetch.log"))
        },
    },
    Preparation {
        name: "ebpf-tools",
        about: "the nightly compiler and bpf-linker",
        lane: Lane::Compute,
        budget: 150,
        needs: &[Need::Ebpf],
        after: &[],
        run: |workspace, _| setup::run(workspace, &[Part::Ebpf]),
    },
    Preparation {
        name: "page",
        about: "the web UI's packages and its build",
        lane: Lane::Compute,
        budget: 90,
        needs: &[Need::Web],
        after: &[],
        run: |workspace, _| setup::run(workspace, &[Part::Web]),
    },
    Preparation {
        name: "agent",
        about: "the program that is shipped: its build for size and its checks",
        lane: Lane::Compute,
        budget: 900,
        needs: &[Need::Agent],
        after: &["packages", "crates", "ebpf-tools", "page"],
        run: |workspace, _| {
            let agent = workspace.agent_under_test();
            println!("agent under test: {}", agent.display());
            if agent != dist::program(workspace) {
                return Ok(());
            }
            // Files may differ from the commit while one works; what CI tests does not.
            dist::build(workspace, &DistArgs { allow_dirty: true }).map(drop)
        },
    },
    Preparation {
        name: "integration-tests",
        about: "the integration tests and the programs that they start",
        lane: Lane::Compute,
        budget: 400,
        needs: &[Need::Agent, Need::Tests],
        after: &["crates"],
        run: |workspace, _| Build::Integration.make(workspace),
    },
    part!("envoy", "Envoy", Fetch, 60, Need::Envoy, Part::Envoy),
    part!(
        "older-envoys",
        "Envoys of two older releases",
        Fetch,
        60,
        Need::OlderEnvoys,
        Part::OlderEnvoys
    ),
    part!(
        "brokers",
        "Kafka, a server of MongoDB's protocol, their clients",
        Fetch,
        90,
        Need::Brokers,
        Part::Brokers
    ),
    part!(
        "old-tls",
        "a client with OpenSSL 1.1.1",
        Fetch,
        30,
        Need::OldTls,
        Part::OldTls
    ),
    part!(
        "schemathesis",
        "Schemathesis, which fuzzes the API, in Python",
        Fetch,
        240,
        Need::Schemathesis,
        Part::Schemathesis
    ),
    Preparation {
        name: "kernel-images",
        about: "kernels and busybox of the virtual machines",
        lane: Lane::Fetch,
        budget: 120,
        needs: &[Need::KernelImages],
        after: &["packages"],
        run: |workspace, _| vm::fetch(workspace),
    },
    Preparation {
        name: "validators",
        about: "what checks manifests, in Python",
        lane: Lane::Fetch,
        budget: 60,
        needs: &[Need::Helm],
        after: &[],
        run: |workspace, _| manifests::prepare(workspace),
    },
    Preparation {
        name: "cargo-deny",
        about: "what checks advisories, licences and sources of crates",
        lane: Lane::Fetch,
        budget: 30,
        needs: &[Need::CargoDeny],
        // The step reads the sources of crates.
        after: &["crates"],
        run: |workspace, _| supply_chain::prepare(workspace),
    },
    Preparation {
        name: "go-programs",
        about: "Helm, Kubernetes' API server with etcd and peers of grpc-go, from the Go module proxy",
        lane: Lane::Compute,
        budget: 600,
        needs: &[Need::Helm, Need::Kubernetes, Need::GrpcGo],
        after: &[],
        run: |workspace, steps| {
            let parts = [
                (Need::Helm, Part::Helm),
                (Need::Kubernetes, Part::Kubernetes),
                (Need::GrpcGo, Part::GrpcGo),
            ];
            let parts: Vec<Part> = parts
                .into_iter()
                .filter(|(need, _)| steps.iter().any(|step| step.needs.contains(need)))
                .map(|(_, part)| part)
                .collect();
            setup::run(workspace, &parts)
        },
    },
    Preparation {
        name: "checked-tests",
        about: "unit tests, and tests that read files, with the checks of a debug build",
        lane: Lane::Compute,
        budget: 500,
        needs: &[Need::CheckedTests],
        // Its build embeds the page where there is one.
        after: &["crates", "page"],
        run: |workspace, _| Build::Checked.make(workspace),
    },
    Preparation {
        name: "sbom-tool",
        about: "cargo-cyclonedx, which lists the parts of what is shipped",
        lane: Lane::Compute,
        budget: 200,
        needs: &[Need::SbomTool],
        after: &["crates"],
        run: |workspace, _| sbom::ensure_tool(workspace).map(drop),
    },
];

/// The Debian packages of the steps, and of what prepares them, each once.
pub(super) fn packages(steps: &[&Step]) -> Vec<Package> {
    let mut all = Vec::new();
    for need in steps.iter().flat_map(|step| step.needs) {
        let packages: &[Package] = match need {
            Need::Packages(packages) => packages,
            Need::Agent => dist::PACKAGES,
            _ => &[],
        };
        for &package in packages {
            if !all.contains(&package) {
                all.push(package);
            }
        }
    }
    all
}
