//! Project automation. One file for each command; the modules below are in the order of a build.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

mod workspace;
mod pins;
mod progress;
mod exec;
mod stamp;
mod debian;
mod setup;
mod web;
mod ebpf;
mod compile;
mod build;
mod dist;
mod notice;
mod sbom;
mod shipped;
mod engine;
mod image;
mod run;
mod demo;
mod record_demo_data;
mod manifests;
mod new_probe;
mod check;
mod tidy;
mod supply_chain;
mod test;
mod vm;
mod bench;

use crate::{
    compile::Output, dist::DistArgs, supply_chain::AdvisoriesArgs, test::TestArgs,
    workspace::Workspace,
};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Sets up, builds, runs and tests the profiler"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set up, build, start the demo mesh and the agent, print the URL
    Demo(DemoArgs),
    /// Record the demo mesh for `profiler-agent serve --demo-data` (as root)
    RecordDemoData,
    /// Run every test (as root), or the named ones
    Test(TestArgs),
    /// Set up and build target/release/profiler-agent
    Build(Verbose),
    /// Build the static program that is shipped, check it and print its size
    Dist(DistArgs),
    /// Put the shipped program and its list of parts into an OCI image
    Image(DistArgs),
    /// Build and start the agent on this machine
    Run {
        /// Passed to `profiler-agent serve`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Fetch the tools of the build and of the tests into target/tools
    Setup,
    /// Build the eBPF object alone and print its size
    Ebpf,
    /// Install, type-check and build the web UI
    Web,
    /// Formatting, lints, documentation and house rules
    Check,
    /// Write the skeleton of a probe, which counts execs until it is changed, and register it
    NewProbe {
        /// Its name: small letters, digits and `_`, as in `exec_count`
        name: String,
    },
    /// Write NOTICE, the list of what the shipped program consists of
    Notice,
    /// Replace the snapshot of security advisories for crates
    Advisories(AdvisoriesArgs),
    /// Measure the agent's cost on a workload (prints JSON)
    Bench {
        /// What to measure, and its options
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Args, Debug)]
struct Verbose {
    /// Show all that cargo prints
    #[arg(long)]
    verbose: bool,
}

impl Verbose {
    fn output(&self) -> Output {
        if self.verbose {
            Output::All
        } else {
            Output::Short
        }
    }
}

#[derive(Args, Debug)]
struct DemoArgs {
    #[command(flatten)]
    verbose: Verbose,
    /// The sidecars send their access logs to the agent, by Envoy's access log service or by OpenTelemetry
    #[arg(long, value_enum)]
    access_log: Option<demo::AccessLog>,
}

fn dispatch(command: Command) -> Result<()> {
    let workspace = Workspace::locate()?;
    match command {
        Command::Demo(DemoArgs {
            verbose,
            access_log,
        }) => demo::run(&workspace, verbose.output(), access_log),
        Command::RecordDemoData => record_demo_data::run(&workspace),
        Command::Test(args) => {
            // Its last line says what failed, and nothing comes behind it.
            if !test::run(&workspace, &args)? {
                std::process::exit(1);
            }
            Ok(())
        }
        Command::Build(args) => build::run(&workspace, args.output()),
        Command::Dist(args) => dist::run(&workspace, &args),
        Command::Image(args) => image::run(&workspace, &args),
        Command::Run { arguments } => run::run(&workspace, &arguments),
        Command::Setup => setup::run(&workspace, &setup::EVERYTHING),
        Command::Ebpf => ebpf::run(&workspace),
        Command::Web => web::run(&workspace),
        Command::Check => check::run(&workspace),
        Command::NewProbe { name } => new_probe::run(&workspace, &name),
        Command::Notice => notice::run(&workspace),
        Command::Advisories(args) => supply_chain::renew(&workspace, &args),
        Command::Bench { arguments } => bench::run(&workspace, &arguments),
    }
}
