//! `serve`: the agent with its API and web UI.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

use super::CliError;
use crate::{
    app::{App, KernelSide, LAST_WORK},
    clock,
    config::{
        AuthConfig, ContinuousProfile, NetworkMode, ServeConfig, cli::ServeArgs,
        mistyped_variables, resolve_serve,
    },
    confine::{Confinement, confine_process},
    demo_data::{self, DemoFolder},
    diagnosis::DiagnosisRules,
    idle::IdleRules,
    memory_ceiling::Ceiling,
    privileges::{self, Tier},
    telemetry,
    terminal::{self, Text},
};

/// For tests: a file with the nanoseconds that the wall clock is moved by.
const MOVED_CLOCK: &str = "PROFILER_WALL_CLOCK_MOVED_BY";

/// Runs the agent until SIGINT or SIGTERM. `kernel_side` loads the probes.
pub fn run(
    args: &ServeArgs,
    log: Option<&str>,
    kernel_side: impl FnOnce(&ServeConfig) -> std::io::Result<KernelSide>,
) -> Result<(), CliError> {
    let environment = |name: &str| std::env::var(name).ok();
    let config = resolve_serve(args, log, &environment)?;
    telemetry::check_filter(&config.log).map_err(|error| CliError::Config(error.into()))?;
    // Only looked at: the application reads them when it starts.
    IdleRules::load(config.idle_rules.as_deref())
        .map_err(|error| CliError::Config(error.into()))?;
    DiagnosisRules::load(config.diagnosis_rules.as_deref())
        .map_err(|error| CliError::Config(error.into()))?;
    if args.print_config {
        return Ok(terminal::out(&Text::of(&config.to_toml()))?);
    }
    // What the agent writes is its user's alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    telemetry::init(&config.log).context("start the log")?;
    // Names alone: some are not UTF-8.
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for (name, meant) in mistyped_variables(variables) {
        tracing::warn!("{name} is no setting and does nothing: was {meant} meant?");
    }
    privileges::keep_at_most(if config.demo_data {
        Tier::Nothing
    } else {
        config.privileges
    })
    .map_err(anyhow::Error::from)?;
    if config.confine == Confinement::Auto {
        confine_process().map_err(anyhow::Error::from)?;
    }
    Ceiling::own().set(config.max_memory.clone());
    if let Some(path) = std::env::var_os(MOVED_CLOCK) {
        let path = Path::new(&path);
        clock::follow(path).with_context(|| {
            format!(
                "{MOVED_CLOCK}: read {}; put a whole number of nanoseconds into it, or unset the variable",
                path.display()
            )
        })?;
        tracing::warn!(file = %path.display(), "the wall clock is moved, as {MOVED_CLOCK} asks");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("agent")
        .enable_all()
        .build()
        .context("start the async runtime")?;
    let served = runtime.block_on(serve(config, kernel_side));
    // Work that blocks and does not end must not keep the process alive.
    runtime.shutdown_timeout(LAST_WORK);
    Ok(served?)
}

/// The first line of the program, which says where to look.
fn greeting(app: &App, auth: &AuthConfig) -> Text {
    let mut line = format!("listening on {}", app.url());
    if app.origin().is_everywhere() {
        line.push_str(" and on every other address of this machine");
    }
    if let AuthConfig::File(path) = auth {
        line.push_str("; the token is in ");
        line.push_str(&path.display().to_string());
    }
    let mut text = Text::default();
    text.line(format_args!("{line}"));
    text
}

async fn serve(
    config: ServeConfig,
    kernel_side: impl FnOnce(&ServeConfig) -> std::io::Result<KernelSide>,
) -> Result<()> {
    // Before anything starts, so that an early signal is not lost.
    let mut interrupt = signal(SignalKind::interrupt()).context("watch for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("watch for SIGTERM")?;
    let mut config = config;
    // Lives as long as the application.
    let demo = config.demo_data.then(DemoFolder::new).transpose()?;
    let kernel = match &demo {
        Some(folder) => {
            folder.path().clone_into(&mut config.data_dir);
            // Recorded once, it would soon be too old.
            config.retention_age = Duration::MAX;
            config.profile = ContinuousProfile::Off;
            config.network = NetworkMode::Always;
            demo_data::prepare(folder)?
        }
        None => kernel_side(&config).context("start the kernel side")?,
    };
    let auth = config.auth.clone();
    let app = App::start(config, kernel)?;
    terminal::out(&greeting(&app, &auth))?;
    let stop = async move {
        let name = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
        };
        tracing::info!(signal = name, "stopping");
    };
    Ok(app.run_until(stop).await?)
}
