//! `profiler-demo mesh up`: brings the demo mesh up and loads it until Ctrl-C or `--duration`.
//! `profiler-demo record`: records it for `profiler-agent serve --demo-data`.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use profiler_tests::{
    cleanup, demo_data,
    mesh::{Mesh, MeshOptions},
    wait::wait_for,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Time for the load generator to end by itself after its duration.
const GRACE: Duration = Duration::from_secs(10);

/// Demo mesh of the profiler: two pods with Envoy sidecars under load
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The mesh
    Mesh {
        #[command(subcommand)]
        action: MeshAction,
    },
    /// Records the mesh under load for `serve --demo-data` (`PROFILER_AGENT` names the agent)
    Record {
        /// Folder that the files are written into
        folder: PathBuf,
        /// Envoy to run instead of the one that the set-up fetched
        #[arg(long)]
        envoy: Option<PathBuf>,
    },
}

#[derive(Subcommand)]
enum MeshAction {
    /// Brings it up, prints a line of JSON when ready, and takes it down at the end
    Up {
        #[command(flatten)]
        options: MeshOptions,
        /// Brings the mesh up without load
        #[arg(long)]
        idle: bool,
    },
}

enum End {
    Signal,
    LoadDone,
    Lost(String),
}

fn main() -> ExitCode {
    let done = match Options::parse().what {
        What::Mesh {
            action: MeshAction::Up { options, idle },
        } => up(&options, idle),
        What::Record { folder, envoy } => record(&folder, envoy.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn record(folder: &Path, envoy: Option<&Path>) -> Result<()> {
    demo_data::record(envoy, folder)
}

fn up(options: &MeshOptions, idle: bool) -> Result<()> {
    cleanup::handle_signals_yourself();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("catch signals")?;
    }
    let mut mesh = Mesh::up(options)?;
    // Before the load: its own clock must not have run out first.
    let started = Instant::now();
    if !idle {
        mesh.start_load()?;
    }
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", serde_json::to_string(&mesh.report())?).context("print report")?;
    stdout.flush().context("print report")?;

    let limit = options.duration + GRACE;
    let end = wait_for("the end of the load", limit, || {
        if stop.load(Ordering::Relaxed) {
            return Some(End::Signal);
        }
        match mesh.ended() {
            Some(name) if name == "client" && started.elapsed() >= options.duration => {
                Some(End::LoadDone)
            }
            Some(name) => Some(End::Lost(name)),
            None if idle && started.elapsed() >= options.duration => Some(End::LoadDone),
            None => None,
        }
    })?;
    if let End::Lost(name) = end {
        anyhow::bail!("{name} ended unexpectedly; the mesh was taken down");
    }
    if let Some(report) = mesh.stop_load()? {
        writeln!(stdout, "{}", serde_json::to_string(&report)?).context("print load report")?;
    }
    Ok(())
}
