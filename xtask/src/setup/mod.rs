//! `cargo xtask setup`: fetches and builds what the other commands need, under target/tools.

mod prerequisites;
mod toolchain;
mod private_sysroot;
mod bpf_linker;
mod kept;
mod wheel;
mod cargo_deny;
mod envoy;
mod jars;
mod go;
mod helm;
mod kubernetes;
mod go_program;
mod schemathesis;

use anyhow::Result;

pub(crate) use cargo_deny::path as cargo_deny_path;
pub(crate) use envoy::path as envoy_path;
pub(crate) use helm::path as helm_path;
pub(crate) use kept::ensure as ensure_kept;
pub(crate) use prerequisites::check as check_prerequisites;
pub(crate) use private_sysroot::{LibrarySource, build as build_private_sysroot};
pub(crate) use toolchain::{EbpfToolchain, installed_with_commit};

use crate::{
    debian::{self, Package},
    pins,
    progress::{Outcome, Progress},
    web,
    workspace::Workspace,
};

/// A part of the set-up; commands ask for the parts they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The compiler and linker of the eBPF crate.
    Ebpf,
    /// The embedded UI.
    Web,
    /// The proxy of the demo mesh.
    Envoy,
    /// Older releases of the same proxy, which only tests use.
    OlderEnvoys,
    /// Kafka, a server of MongoDB's protocol and clients of both, which only tests use. They need Debian's
    /// `maven`.
    Brokers,
    /// A program with an old TLS library, which only tests use.
    OldTls,
    /// What checks the supply chain, which only tests use.
    CargoDeny,
    /// What renders the chart, which only tests use.
    Helm,
    /// The API server of Kubernetes with its store, which only tests use.
    Kubernetes,
    /// A server and a client of grpc-go, which only tests use.
    GrpcGo,
    /// A collector of OpenTelemetry that receives access logs of Envoys, which only a bench uses.
    AlsCollector,
    /// What fuzzes the API, which only tests use.
    Schemathesis,
    /// Debian packages that only tests and the demo use.
    Packages(&'static [Package]),
}

/// What the release binary is made from.
pub(crate) const BINARY: [Part; 2] = [Part::Ebpf, Part::Web];
/// Everything that changes nothing outside target/ and web/.
pub(crate) const EVERYTHING: [Part; 3] = [Part::Ebpf, Part::Web, Part::Envoy];

/// Runs the parts in order, each only as far as it is not done yet.
pub(crate) fn run(workspace: &Workspace, parts: &[Part]) -> Result<()> {
    let steps: usize = parts.iter().map(|part| part.steps()).sum();
    let mut progress = Progress::new(1 + steps);
    progress.quiet("check prerequisites", || prerequisites::check(parts))?;
    for part in parts {
        match part {
            Part::Ebpf => {
                let mut toolchain = None;
                progress.quiet(&toolchain::label(), || {
                    let (found, outcome) = toolchain::ensure(workspace)?;
                    toolchain = Some(found);
                    Ok(outcome)
                })?;
                progress.quiet(&bpf_linker::label(), || {
                    bpf_linker::ensure(workspace, toolchain.as_ref())
                })?;
            }
            Part::Web => {
                progress.quiet("install the web UI's packages", || web::install(workspace))?;
                progress.quiet("build the web UI", || web::build(workspace))?;
            }
            Part::Envoy => fetch(workspace, &mut progress, &pins::ENVOY)?,
            Part::OlderEnvoys => {
                for envoy in &pins::OLDER_ENVOYS {
                    fetch(workspace, &mut progress, envoy)?;
                }
            }
            Part::Brokers => {
                for program in [&pins::KAFKA, &pins::MONGO_JAVA_SERVER] {
                    progress.quiet(&jars::label(program), || jars::ensure(workspace, program))?;
                }
                for client in [&pins::PYMONGO, &pins::KAFKA_PYTHON] {
                    progress.quiet(&wheel::label(client), || wheel::ensure(workspace, client))?;
                }
            }
            Part::OldTls => {
                let client = &pins::PSYCOPG2;
                progress.quiet(&wheel::label(client), || wheel::ensure(workspace, client))?;
            }
            Part::CargoDeny => {
                progress.quiet(&cargo_deny::label(), || cargo_deny::ensure(workspace))?;
            }
            Part::Helm => {
                progress.quiet(&helm::label(), || helm::ensure(workspace))?;
            }
            Part::Kubernetes => {
                progress.quiet(&kubernetes::label(), || kubernetes::ensure(workspace))?;
            }
            Part::GrpcGo => build(workspace, &mut progress, &pins::GRPC_GO)?,
            Part::AlsCollector => build(workspace, &mut progress, &pins::ALS_COLLECTOR)?,
            Part::Schemathesis => {
                progress.quiet(&schemathesis::label(), || schemathesis::ensure(workspace))?;
            }
            Part::Packages(packages) => {
                progress.quiet("install Debian packages for tests and demo", || {
                    let installed = debian::install(workspace, packages)?;
                    Ok(if installed {
                        Outcome::Done
                    } else {
                        Outcome::Cached
                    })
                })?;
            }
        }
    }
    // Another process may be using them for these.
    let from_go = [
        Part::Helm,
        Part::Kubernetes,
        Part::GrpcGo,
        Part::AlsCollector,
    ];
    if from_go.iter().any(|part| parts.contains(part)) {
        go::clean(workspace)?;
    }
    Ok(())
}

impl Part {
    fn steps(self) -> usize {
        match self {
            Self::Ebpf | Self::Web => 2,
            Self::Envoy
            | Self::OldTls
            | Self::CargoDeny
            | Self::Helm
            | Self::Kubernetes
            | Self::GrpcGo
            | Self::AlsCollector
            | Self::Schemathesis
            | Self::Packages(_) => 1,
            Self::Brokers => 4,
            Self::OlderEnvoys => pins::OLDER_ENVOYS.len(),
        }
    }
}

fn build(workspace: &Workspace, progress: &mut Progress, program: &pins::GoProgram) -> Result<()> {
    progress.quiet(&go_program::label(program), || {
        go_program::ensure(workspace, program)
    })
}

fn fetch(workspace: &Workspace, progress: &mut Progress, envoy: &pins::Envoy) -> Result<()> {
    progress.quiet(&envoy::label(envoy), || envoy::ensure(workspace, envoy))
}
