//! What the agent holds during tasks of the whole node, an agent for each.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use profiler_tests::{
    agent::{Agent, ServeOptions},
    mesh::{Mesh, MeshOptions},
    stats::median,
};
use serde_json::{Value, json};

/// Between two readings: the agent looks as often.
const EVERY: Duration = Duration::from_millis(250);
/// How long an agent without a task is looked at.
const IDLE: Duration = Duration::from_secs(5);
/// For names to be found and the result to be written.
const LIMIT: Duration = Duration::from_mins(2);
const KINDS: [&str; 5] = ["on_cpu", "off_cpu", "wall", "network", "requests"];
const FINAL: [&str; 3] = ["finished", "failed", "cancelled"];

#[derive(Args)]
pub(crate) struct Options {
    /// Length of each task in seconds
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,
    /// Requests per second through the mesh meanwhile
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rps: u32,
}

/// Megabytes at a moment.
struct Reading {
    /// Heap, stacks and copies of symbol tables.
    own: f64,
    /// Maps and programs.
    kernel: f64,
}

pub(crate) fn document(options: &Options, machine: &Value) -> Result<Value> {
    let tasks = KINDS.len() as u64 * (Duration::from_secs(options.seconds) + LIMIT).as_secs();
    let mut mesh = Mesh::up(&MeshOptions {
        rps: options.rps,
        duration: Duration::from_secs(tasks),
        ..MeshOptions::default()
    })?;
    mesh.start_load()?;
    eprintln!("| | own and copied, median | most | kernel, most |");
    eprintln!("|---|---|---|---|");
    let idle = watch(None, options).context("without a task")?;
    let mut rows = vec![row("no task yet", &idle)];
    for kind in KINDS {
        let readings = watch(Some(kind), options).with_context(|| format!("a task of {kind}"))?;
        rows.push(row(kind, &readings));
    }
    ensure!(mesh.ended().is_none(), "{:?} has ended", mesh.ended());
    let load = mesh.stop_load()?.context("no load")?;
    Ok(json!({
        "bench": "memory",
        "machine": machine,
        "seconds": options.seconds,
        "unit": "MB",
        "load": load,
        "rows": rows,
    }))
}

/// Readings of a fresh agent until its task has ended.
fn watch(kind: Option<&str>, options: &Options) -> Result<Vec<Reading>> {
    let mut agent = Agent::start_with(ServeOptions::default())?;
    thread::sleep(IDLE);
    let task = kind
        .map(|kind| {
            let body =
                json!({ "kind": kind, "target": { "all": true }, "duration_s": options.seconds });
            agent.api.create_task(&body)
        })
        .transpose()?;
    let began = Instant::now();
    let mut readings = Vec::new();
    loop {
        let ended = match &task {
            None => began.elapsed() >= IDLE,
            Some(id) => {
                let task = agent.api.task(id)?;
                let state = task["state"].as_str().unwrap_or_default();
                ensure!(state != "failed", "{task}");
                FINAL.contains(&state)
            }
        };
        if ended {
            break;
        }
        ensure!(
            began.elapsed() < Duration::from_secs(options.seconds) + LIMIT,
            "the task does not end: {}",
            agent.log()
        );
        readings.push(read(&agent)?);
        thread::sleep(EVERY);
    }
    let status = agent.stop()?;
    ensure!(status.success(), "the agent ended with {status}");
    Ok(readings)
}

fn read(agent: &Agent) -> Result<Reading> {
    let memory = &agent.api.get_json("/api/v1/self")?["memory"];
    let megabytes = |name: &str| {
        let bytes = memory[name].as_f64().with_context(|| format!("no {name}"));
        bytes.map(|bytes| bytes / 1e6)
    };
    Ok(Reading {
        own: megabytes("own_bytes")? + megabytes("copied_bytes")?,
        kernel: megabytes("kernel_bytes")?,
    })
}

fn row(name: &str, readings: &[Reading]) -> Value {
    let figures = |figure: fn(&Reading) -> f64| readings.iter().map(figure).collect::<Vec<_>>();
    let (own, kernel) = (
        figures(|reading| reading.own),
        figures(|reading| reading.kernel),
    );
    let most = |figures: &[f64]| figures.iter().copied().fold(0.0, f64::max);
    eprintln!(
        "| {name} | {:.0} MB | {:.0} MB | {:.0} MB |",
        median(&own),
        most(&own),
        most(&kernel)
    );
    json!({
        "name": name,
        "readings": readings.len(),
        "own": { "median": median(&own), "most": most(&own) },
        "kernel": { "most": most(&kernel) },
    })
}
