//! What the diagnosis puts down to a setting of Envoy, beside what switching it off saves.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use profiler_tests::{
    agent::Agent,
    truth::{
        Load, Row, SETTINGS, Setting, Window, compare, rounds, table, verdict::wrong_findings,
    },
};
use serde_json::{Value, json};

#[derive(Args)]
pub(crate) struct Options {
    /// Rounds, each with a window for every setting; 0 judges what is recorded
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=200))]
    rounds: u32,
    /// Length of each window in seconds
    #[arg(long, default_value_t = Load::default().seconds, value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,
    /// Requests per second, which the machine must keep up with
    #[arg(long, default_value_t = Load::default().requests_per_second)]
    rps: u32,
    /// Only these settings; all of them by default
    #[arg(long, value_delimiter = ',')]
    settings: Vec<String>,
    /// Keeps every window in this file and judges those of earlier runs as well
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
    let mut windows = match &options.record {
        Some(path) => rounds::recorded(path)?,
        None => Vec::new(),
    };
    let first = windows
        .iter()
        .map(|window| window.round + 1)
        .max()
        .unwrap_or(0);
    if options.rounds > 0 {
        let agent = Agent::start()?;
        rounds::run(
            &agent,
            &settings,
            first..first + options.rounds,
            &load,
            |window| {
                eprintln!("{}", line(&window));
                if let Some(path) = &options.record {
                    rounds::record(path, &window)?;
                }
                windows.push(window);
                Ok(())
            },
        )?;
    }
    let rows: Vec<Row> = settings
        .iter()
        .filter_map(|setting| compare(setting, &windows))
        .collect();
    ensure!(!rows.is_empty(), "a comparison needs two rounds at least");
    let (bases, wrong) = wrong_findings(&windows);
    let conditions = format!(
        "Linux {} on {} CPUs, one worker, {} requests per second, windows of {} s, samples at {} Hz. \
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

fn line(window: &Window) -> String {
    format!(
        "round {} {:<16} {:>6.1} us a request in the client's sidecar, {:>6.1} in the server's; {} and {} samples; {:?}",
        window.round,
        window.setting,
        window.client.us_per_request(),
        window.server.us_per_request(),
        window.client.samples,
        window.server.samples,
        window.client.findings,
    )
}
