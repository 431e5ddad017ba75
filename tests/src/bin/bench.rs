//! Benches of the agent on this machine: paired, alternating runs, printed as one JSON document.

#[path = "bench/access_logs.rs"]
mod access_logs;
#[path = "bench/api_fuzz.rs"]
mod api_fuzz;
#[path = "bench/diagnosis.rs"]
mod diagnosis;
#[path = "bench/event_loop.rs"]
mod event_loop;
#[path = "bench/load.rs"]
mod load;
#[path = "bench/memory.rs"]
mod memory;
#[path = "bench/network.rs"]
mod network;
#[path = "bench/off_cpu.rs"]
mod off_cpu;
#[path = "bench/on_cpu.rs"]
mod on_cpu;
#[path = "bench/perf_dwarf.rs"]
mod perf_dwarf;
#[path = "bench/protocols.rs"]
mod protocols;
#[path = "bench/soak.rs"]
mod soak;
#[path = "bench/truth.rs"]
mod truth;
#[path = "bench/unwind.rs"]
mod unwind;

use std::{fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};
use profiler_tests::{
    paths,
    soak::cpu_seconds,
    stats::{Estimate, estimate},
};
use serde::Serialize;
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(20);
/// Name of the measured program; tasks that wait for it are running before it starts.
const TARGET: &str = "bench-target";

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Cost of on-CPU profiling to a CPU-bound program
    OnCpu {
        /// Pairs of runs for each setting
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=200))]
        pairs: u32,
        /// Length of each run in seconds
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
    },
    /// Cost of off-CPU profiling to a program that only switches and to the mesh, beside bpftrace
    OffCpu {
        /// Pairs of runs for each setting
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=200))]
        pairs: u32,
        /// Length of each run in seconds
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Pairs of runs of the mesh
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=200))]
        mesh_pairs: u32,
        /// Length of each run of the mesh in seconds
        #[arg(long, default_value_t = 5.0)]
        mesh_seconds: f64,
    },
    /// Cost of watching connections to nginx under wrk and to the mesh, beside bpftrace
    Network {
        /// Pairs of runs for each setting
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=200))]
        pairs: u32,
        /// Length of each run in seconds
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
        /// Pairs of runs of the mesh
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=200))]
        mesh_pairs: u32,
        /// Length of each run of the mesh in seconds
        #[arg(long, default_value_t = 5.0)]
        mesh_seconds: f64,
    },
    /// Cost of reading requests, without and with TLS, to nginx, a Go server and the mesh
    Protocols {
        /// Pairs of runs for each setting
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=200))]
        pairs: u32,
        /// Length of each run in seconds
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Pairs of runs of the mesh
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=200))]
        mesh_pairs: u32,
        /// Length of each run of the mesh in seconds
        #[arg(long, default_value_t = 3.0)]
        mesh_seconds: f64,
        /// Length of each run with TLS in seconds: probes come and go in periods of ten
        #[arg(long, default_value_t = 20.0)]
        tls_seconds: f64,
        /// Measure only this program (repeat it)
        #[arg(long, value_enum)]
        only: Vec<protocols::Program>,
    },
    /// What the diagnosis puts down to a setting of Envoy, beside what switching it off saves
    Diagnosis(diagnosis::Options),
    /// What the agent holds while check-ups of the mesh run in a loop
    Soak(soak::Options),
    /// What the agent holds during tasks of the whole node
    Memory(memory::Options),
    /// What receiving access logs costs: CPU time and memory, and that every entry has come
    AccessLogs(access_logs::Options),
    /// The API fuzzed from its OpenAPI document: an error where it fails, or where the agent grows
    ApiFuzz(api_fuzz::Options),
    /// Requests against programs that count themselves: writes docs/truth.md, an error where an answer is wrong without a word
    Truth(truth::Options),
    /// Cost of watching event loops to a program that only calls epoll
    EventLoop {
        /// Pairs of runs for each setting
        #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=200))]
        pairs: u32,
        /// Length of each run in seconds
        #[arg(long, default_value_t = 0.5)]
        seconds: f64,
    },
    /// What walking user stacks of the mesh with tables costs, beside frame pointers alone
    Unwind {
        /// Runs of each way
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
        runs: u32,
        /// Length of each run in seconds
        #[arg(long, default_value_t = 6)]
        seconds: u64,
    },
}

/// One measured figure with its goal.
#[derive(Serialize)]
struct Figure {
    name: String,
    unit: &'static str,
    #[serde(flatten)]
    estimate: Estimate,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
    /// Judged by the worse end of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
    runs: Vec<f64>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Target {
    AtLeast(f64),
    Below(f64),
}

fn figure(name: &str, unit: &'static str, runs: Vec<f64>, target: Option<Target>) -> Figure {
    let estimate = estimate(&runs);
    let met = target.map(|target| match target {
        Target::AtLeast(least) => estimate.low >= least,
        Target::Below(limit) => estimate.high < limit,
    });
    Figure {
        name: name.to_owned(),
        unit,
        estimate,
        target,
        met,
        runs,
    }
}

/// Prints the figures as a table for people, beside the document.
fn table(figures: Vec<Figure>) -> Vec<Figure> {
    eprintln!(
        "{:<56} {:>10} {:>10} {:>10}",
        "FIGURE", "MEDIAN", "LOW", "HIGH"
    );
    for figure in &figures {
        let Estimate { median, low, high } = figure.estimate;
        let met = match figure.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        };
        eprintln!(
            "{:<56} {median:>10.3} {low:>10.3} {high:>10.3} {met}",
            figure.name
        );
    }
    figures
}

fn main() -> Result<()> {
    paths::require_root()?;
    let baseline = paths::baseline()?;
    let machine = json!({
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease")?.trim(),
        "cpus": std::thread::available_parallelism()?.get(),
        "baseline": baseline,
    });
    let document = match Options::parse().what {
        What::OnCpu { pairs, seconds } => json!({
            "bench": "on-cpu",
            "machine": machine,
            "pairs": pairs,
            "seconds_per_run": seconds,
            "stack_depth": on_cpu::DEPTH,
            "interval": "95 % bootstrap of the median",
            "figures": on_cpu::figures(pairs, seconds)?,
        }),
        What::OffCpu {
            pairs,
            seconds,
            mesh_pairs,
            mesh_seconds,
        } => json!({
            "bench": "off-cpu",
            "machine": machine,
            "pairs": pairs,
            "seconds_per_run": seconds,
            "mesh_pairs": mesh_pairs,
            "mesh_seconds_per_run": mesh_seconds,
            "program": "two threads of one process on one CPU pass a byte to and fro through pipes",
            "interval": "95 % bootstrap of the median",
            "figures": off_cpu::figures(&off_cpu::Options {
                pairs,
                seconds,
                mesh_pairs,
                mesh_seconds,
            })?,
        }),
        What::Network {
            pairs,
            seconds,
            mesh_pairs,
            mesh_seconds,
        } => json!({
            "bench": "network",
            "machine": machine,
            "pairs": pairs,
            "seconds_per_run": seconds,
            "mesh_pairs": mesh_pairs,
            "mesh_seconds_per_run": mesh_seconds,
            "program": "nginx on one CPU and wrk with 32 connections on the other, over loopback",
            "interval": "95 % bootstrap of the median",
            "figures": table(network::figures(&network::Options {
                pairs,
                seconds,
                mesh_pairs,
                mesh_seconds,
            })?),
        }),
        What::Protocols {
            pairs,
            seconds,
            mesh_pairs,
            mesh_seconds,
            tls_seconds,
            only,
        } => json!({
            "bench": "protocols",
            "machine": machine,
            "pairs": pairs,
            "seconds_per_run": seconds,
            "mesh_pairs": mesh_pairs,
            "mesh_seconds_per_run": mesh_seconds,
            "tls_seconds_per_run": tls_seconds,
            "program": "one worker on one CPU and wrk with 32 connections on the other, over loopback",
            "interval": "95 % bootstrap of the median",
            "figures": table(protocols::figures(&protocols::Options {
                pairs,
                seconds,
                mesh_pairs,
                mesh_seconds,
                tls_seconds,
                only,
            })?),
        }),
        What::Diagnosis(options) => diagnosis::document(&options, &machine)?,
        What::Soak(options) => soak::document(&options, &machine)?,
        What::Memory(options) => memory::document(&options, &machine)?,
        What::AccessLogs(options) => json!({
            "bench": "access-logs",
            "machine": machine,
            "rounds": options.rounds,
            "seconds_per_run": options.seconds,
            "program": "messages that Envoy 1.40 has sent, over connections with one stream each, on loopback without TLS",
            "interval": "95 % bootstrap of the median",
            "figures": table(access_logs::figures(&options)?),
        }),
        What::ApiFuzz(options) => {
            let (document, failed) = api_fuzz::document(&options, &machine)?;
            println!("{}", serde_json::to_string_pretty(&document)?);
            ensure!(!failed, "the API failed or the agent grew: see above");
            return Ok(());
        }
        What::Truth(options) => {
            let silent = truth::run(&options)?;
            ensure!(
                silent == 0,
                "{silent} answers are wrong or incomplete without a word"
            );
            return Ok(());
        }
        What::EventLoop { pairs, seconds } => json!({
            "bench": "event-loop",
            "machine": machine,
            "pairs": pairs,
            "seconds_per_run": seconds,
            "program": "a thread that calls epoll_wait with an event at hand",
            "interval": "95 % bootstrap of the median",
            "figures": table(event_loop::figures(pairs, seconds)?),
        }),
        What::Unwind { runs, seconds } => json!({
            "bench": "unwind",
            "machine": machine,
            "runs": runs,
            "seconds_per_run": seconds,
            "interval": "95 % bootstrap of the median",
            "stack_depth": on_cpu::DEPTH,
            "figures": unwind::figures(runs, seconds)?,
            "programs": unwind::programs()?,
        }),
    };
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(())
}

fn peak_rss_mb(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).context("read peak RSS")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line
        .and_then(|line| line.split_whitespace().next())
        .context("no VmHWM")?;
    let kib: f64 = kib.parse().context("parse VmHWM")?;
    Ok(kib * 1024.0 / 1e6)
}
