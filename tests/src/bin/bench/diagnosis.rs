//! What the diagnosis puts down to a setting of Envoy, beside what switching it off saves.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use profiler_tests::{
    agent::{Agent, ServeOptions},
    cleanup::scratch_directory,
    truth::{
        Load, Recorded, Row, SETTINGS, Setting, Window, compare, diagnose, rounds, table,
        verdict::wrong_findings, window::RecordedSide,
    },
};
use serde_json::{Value, json};

#[derive(Args)]
pub(crate) struct Options {
    /// Rounds, each with a window for every setting; 0 judges what is recorded
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=200))]
    rounds: u32,
    /// Length of each window in seconds
    #[arg(long, default_value_t = Load::default().seconds, value_parser = clap::value_parser!(u32).range(2..=600))]
    seconds: u32,
    /// Requests per second, which the machine must keep up with
    #[arg(long, default_value_t = Load::default().requests_per_second)]
    rps: u32,
    /// Only these settings; all of them by default
    #[arg(long, value_delimiter = ',')]
    settings: Vec<String>,
    /// Keeps windows and samples in this folder, and judges those of earlier runs as well, by the rules of today
    #[arg(long)]
    record: Option<PathBuf>,
    /// Writes the table into this document, between its marks
    #[arg(long)]
    document: Option<PathBuf>,
}

pub(crate) fn document(options: &Options, machine: &Value) -> Result<Value> {
    let settings = chosen(&options.settings)?;
    let load = Load {
        requests_per_second: options.rps,
        seconds: options.seconds,
        ..Load::default()
    };
    let (scratch, _guard) = scratch_directory("diagnosis")?;
    let folder = options.record.clone().unwrap_or(scratch);
    let record = folder.join("windows.jsonl");
    let agent = agent(&folder)?;
    let mut recorded = rounds::kept(&record)?;
    let first = recorded.iter().map(|window| window.group + 1).max();
    rounds::run(
        &agent,
        &settings,
        options.rounds,
        first.unwrap_or(0),
        &load,
        |windows| {
            rounds::keep(&record, &windows)?;
            for window in &windows {
                eprintln!("{}", line(window));
            }
            recorded.extend(windows);
            Ok(())
        },
    )?;
    let windows: Vec<Window> = recorded
        .iter()
        .map(|window| diagnose(&agent, window))
        .collect::<Result<_>>()?;
    let rows: Vec<Row> = settings
        .iter()
        .filter_map(|setting| compare(setting, &windows))
        .collect();
    ensure!(!rows.is_empty(), "a comparison needs two rounds at least");
    let (bases, wrong) = wrong_findings(&windows);
    let conditions = format!(
        "Linux {} on {} CPUs, one worker, {} requests per second, {} turns of 1 s for each window, samples at {} Hz. \
         Without any setting: {} wrong findings in {bases} windows of both sidecars. Microseconds of CPU time of a request.",
        machine["kernel"].as_str().unwrap_or("?"),
        machine["cpus"],
        load.requests_per_second,
        load.seconds,
        load.frequency_hz,
        wrong.len(),
    );
    let table = table::markdown(&rows, &conditions);
    eprintln!("{table}");
    if let Some(path) = &options.document {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        fs::write(path, table::replace(&text, &table).with_context(name)?).with_context(name)?;
    }
    Ok(json!({
        "bench": "diagnosis",
        "machine": machine,
        "load": load,
        "interval": "95 % of the mean of paired differences, Student's t",
        "base_windows": bases,
        "wrong_findings_without_any_setting": wrong,
        "rows": rows,
    }))
}

fn chosen(names: &[String]) -> Result<Vec<&'static Setting>> {
    if names.is_empty() {
        return Ok(SETTINGS.iter().collect());
    }
    let known = || {
        SETTINGS
            .iter()
            .map(|setting| setting.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    names
        .iter()
        .map(|name| {
            Setting::named(name)
                .with_context(|| format!("no setting {name:?}: there are {}", known()))
        })
        .collect()
}

/// An agent that keeps its results in the folder.
fn agent(folder: &Path) -> Result<Agent> {
    let data = folder.join("data");
    fs::create_dir_all(&data).with_context(|| format!("create {}", data.display()))?;
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).context("close the folder")?;
    Agent::start_with(ServeOptions {
        data_dir: Some(data),
        ..ServeOptions::default()
    })
}

fn line(window: &Recorded) -> String {
    let us = |side: &RecordedSide| Duration::from_nanos(side.cpu_ns / side.requests.max(1));
    format!(
        "group {} {:<16} {:?} of CPU time a request in the client's sidecar, {:?} in the server's",
        window.group,
        window.setting,
        us(&window.client),
        us(&window.server),
    )
}
