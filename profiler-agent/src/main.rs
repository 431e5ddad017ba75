//! Parses the command line, runs the command, and turns its result into an exit code.

use std::process::ExitCode;

use clap::Parser;
use profiler_agent::{
    app::KernelSide,
    cli::{self, CliError},
    config::cli::{Cli, Command},
    telemetry, terminal,
};
use profiler_host::descriptors;
use profiler_memory::allocator;

fn main() -> ExitCode {
    terminal::report_panics();
    allocator::return_freed_memory();
    let cli = Cli::parse();
    if let Command::Held(held) = &cli.command {
        return cli::record_command::become_command(held);
    }
    // A command that is started has the limit of whoever started it: some use `select`.
    let starts = matches!(&cli.command, Command::Record(args) if !args.command.is_empty());
    if !starts {
        descriptors::raise_limit();
    }
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.report();
            error.exit_code()
        }
    }
}

fn run(cli: &Cli) -> Result<(), CliError> {
    if let Command::Serve(args) = &cli.command {
        return cli::serve::run(args, cli.log.as_deref(), KernelSide::load);
    }
    // Commands without a configuration file: warnings only, unless asked.
    let filter = cli
        .log
        .clone()
        .or_else(|| std::env::var("PROFILER_LOG").ok());
    telemetry::init(filter.as_deref().unwrap_or("warn"))
        .map_err(|error| CliError::Config(error.into()))?;
    match &cli.command {
        Command::Serve(_) => Ok(()),
        Command::Record(args) => Ok(cli::record::run(args)?),
        // Before everything else.
        Command::Held(_) => Ok(()),
        Command::Net(args) => Ok(cli::net::run(args)?),
        Command::Requests(args) => Ok(cli::requests::run(args)?),
        Command::Diagnose(args) => Ok(cli::diagnose::run(args)?),
        Command::Ps(args) => Ok(cli::ps::run(args)?),
        Command::Top(args) => Ok(cli::top::run(args)?),
        Command::Doctor(args) => Ok(cli::doctor::run(args)?),
        Command::Diff(args) => Ok(cli::diff::run(args)?),
        Command::Import(args) => Ok(cli::import::run(args)?),
        Command::AccessLogs(args) => Ok(cli::access_logs::run(args)?),
        Command::SupportBundle(args) => Ok(cli::support_bundle::run(args)?),
        Command::Url(args) => cli::url::run(args),
        Command::Health(args) => Ok(cli::health::run(args)?),
        Command::Openapi => Ok(cli::openapi::run()?),
    }
}
