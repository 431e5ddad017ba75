//! What the agent holds while check-ups of the mesh run in a loop.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use profiler_tests::{
    soak::{self, Reading, Soaked},
    stats::{Slope, median},
};
use serde_json::{Value, json};

/// Readings between two lines of the table.
const LINES: usize = 12;

#[derive(Args)]
pub(crate) struct Options {
    /// Length of the loop in minutes
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1440))]
    minutes: u32,
    /// Requests per second through the mesh
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rps: u32,
    /// Length of each check-up in seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=600))]
    checkup_seconds: u64,
}

/// A figure of each reading.
type Figure = (&'static str, fn(&Reading) -> f64);

const FIGURES: [Figure; 7] = [
    ("RSS, MB", |reading| reading.rss_mb),
    ("RSS without files, MB", |reading| reading.anonymous_mb),
    ("open files", |reading| f64::from(reading.descriptors)),
    ("threads", |reading| f64::from(reading.threads)),
    ("programs, maps, links", |reading| {
        f64::from(reading.kernel_objects)
    }),
    ("CPU since the start, s", |reading| reading.cpu_s),
    ("store, MB", |reading| reading.store_mb),
];

pub(crate) fn document(options: &Options, machine: &Value) -> Result<Value> {
    let mut count = 0;
    let soaked = soak::run(
        &soak::Options {
            duration: Duration::from_mins(u64::from(options.minutes)),
            requests_per_second: options.rps,
            checkup_s: options.checkup_seconds,
            warm_up: 1.0 / 3.0,
        },
        |reading| {
            if count % LINES == 0 {
                eprintln!(
                    "{:>6.0} s  {:>6.1} MB  {:>6.1} MB without files  {:>7.1} s of CPU  {} files  {} threads  {} kernel objects",
                    reading.at_s,
                    reading.rss_mb,
                    reading.anonymous_mb,
                    reading.cpu_s,
                    reading.descriptors,
                    reading.threads,
                    reading.kernel_objects
                );
            }
            count += 1;
        },
    )?;
    let rows: Vec<Value> = FIGURES
        .iter()
        .map(|(name, figure)| row(name, *figure, &soaked))
        .collect();
    print(&soaked);
    Ok(json!({
        "bench": "soak",
        "machine": machine,
        "minutes": options.minutes,
        "requests_per_second": options.rps,
        "checkup_seconds": options.checkup_seconds,
        "checkups": soaked.readings.len(),
        "interval": "95 % of the slope by Student's t over ten means of the later two thirds",
        "figures": rows,
        "without_requests": soaked.without_requests,
        "load": soaked.load,
        "left_in_the_kernel": soaked.left,
        "complaints": soaked.complaints,
        "readings": soaked.readings,
    }))
}

fn row(name: &str, figure: fn(&Reading) -> f64, soaked: &Soaked) -> Value {
    let all: Vec<f64> = soaked.settled().iter().map(figure).collect();
    json!({
        "name": name,
        "median": median(&all),
        "least": all.iter().copied().reduce(f64::min),
        "most": all.iter().copied().reduce(f64::max),
        "per_hour": soaked.per_hour(figure),
    })
}

/// As rows of a table in Markdown.
fn print(soaked: &Soaked) {
    eprintln!("| figure | median | least | most | change in an hour |");
    eprintln!("|---|---|---|---|---|");
    for (name, figure) in FIGURES {
        let all: Vec<f64> = soaked.settled().iter().map(figure).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let change = match soaked.per_hour(figure) {
            Some(Slope { slope, half_width }) => format!(
                "{slope:.2} ({:.2} to {:.2})",
                slope - half_width,
                slope + half_width
            ),
            None => "unknown".to_owned(),
        };
        let middle = median(&all);
        eprintln!("| {name} | {middle:.1} | {least:.1} | {most:.1} | {change} |");
    }
    eprintln!(
        "{} check-ups ({} without requests), {} requests, {} errors, {} objects left in the kernel, {} warnings and errors logged",
        soaked.readings.len(),
        soaked.without_requests.len(),
        soaked.load.requests,
        soaked.load.errors,
        soaked.left.len(),
        soaked.complaints.len()
    );
}
