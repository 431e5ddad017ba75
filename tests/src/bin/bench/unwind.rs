//! What walking user stacks costs: both Envoys of the mesh under load, with tables and with frame
//! pointers alone.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use profiler_tests::{
    agent::{Agent, ServeOptions, run},
    mesh::{Mesh, MeshOptions},
};
use serde_json::{Value, json};

use super::{
    Figure, LIMIT, Target, figure,
    load::Comparison,
    on_cpu::{Bench, Beside, Pair},
    peak_rss_mb, perf_dwarf,
};

/// Samples per second and CPU.
const HZ: u32 = 999;

/// What one run measured.
struct Run {
    sample_ns: f64,
    /// With tables only.
    frames_per_sample: f64,
    complete_percent: f64,
    table_kib: f64,
    peak_rss_mb: f64,
}

/// Figures of runs with tables and with frame pointers in turn.
pub(crate) fn figures(runs: u32, seconds: u64) -> Result<Vec<Figure>> {
    let unwanted_ns = unwanted_tick_ns(seconds)?;
    let mut figures = one_program(runs, unwanted_ns)?;
    figures.extend(mesh(runs, seconds, unwanted_ns)?);
    Ok(figures)
}

/// A program that does nothing but compute, 30 frames deep: time for a sample, and what is left of
/// its speed.
fn one_program(runs: u32, unwanted_ns: f64) -> Result<Vec<Figure>> {
    let bench = Bench::new(3.0)?;
    let comparison = Comparison::from_environment()?;
    let (mut tables, mut pointers) = (Vec::new(), Vec::new());
    for index in 0..runs {
        eprintln!("run {} of {runs} of a program 30 frames deep", index + 1);
        tables.push(bench.sample_ns("tables", unwanted_ns)?);
        pointers.push(bench.sample_ns("frame-pointers", unwanted_ns)?);
    }
    let extra = tables.iter().zip(&pointers);
    let extra = extra.map(|(with, without)| (with - without) / 30.0);
    let kept = |pair: &Pair| pair.with.per_wall_second / pair.without.per_wall_second;
    let throughput = |beside| -> Result<Vec<f64>> {
        eprintln!("{} pairs, {beside:?}", 2 * runs);
        let pairs = bench.pairs(&comparison, 2 * runs, beside)?;
        Ok(pairs.iter().map(kept).collect())
    };
    let control = throughput(Beside::Nothing)?;
    let sampled = throughput(Beside::Samples(HZ))?;
    Ok(vec![
        figure(
            "kernel_time_per_30_frame_sample_frame_pointers",
            "ns",
            pointers.clone(),
            None,
        ),
        figure(
            "more_time_per_frame_of_30_than_frame_pointers",
            "ns",
            extra.collect(),
            None,
        ),
        figure(
            "kernel_time_per_30_frame_sample_tables",
            "ns",
            tables,
            Some(Target::Below(6000.0)),
        ),
        figure("throughput_kept_control", "ratio", control, None),
        figure(
            "throughput_kept_999hz_tables",
            "ratio",
            sampled,
            Some(Target::AtLeast(0.975)),
        ),
    ])
}

fn mesh(runs: u32, seconds: u64, unwanted_ns: f64) -> Result<Vec<Figure>> {
    let options = MeshOptions {
        workers: 2,
        mtls: true,
        rps: 1200,
        ..MeshOptions::default()
    };
    let mut mesh = Mesh::up(&options)?;
    mesh.start_load()?;
    let report = mesh.report();
    let envoys = [report.client_envoy_pid, report.server_envoy_pid];
    let (mut tables, mut pointers, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..runs {
        eprintln!("run {} of {runs}, {seconds} s with each", index + 1);
        peer.push(perf_dwarf::complete_percent(envoys[0], seconds, HZ)?);
        tables.push(measure(&envoys, seconds, "tables", unwanted_ns)?);
        pointers.push(measure(&envoys, seconds, "frame-pointers", unwanted_ns)?);
    }
    let load = mesh.stop_load()?.context("the load has no report")?;
    let column = |runs: &[Run], pick: fn(&Run) -> f64| runs.iter().map(pick).collect::<Vec<_>>();
    let extra = tables.iter().zip(&pointers).map(|(with, without)| {
        (with.sample_ns - without.sample_ns) / with.frames_per_sample.max(1.0)
    });
    Ok(vec![
        figure(
            "requests_per_second",
            "1/s",
            vec![load.rps],
            Some(Target::AtLeast(1000.0)),
        ),
        figure(
            "kernel_time_per_unwanted_tick",
            "ns",
            vec![unwanted_ns],
            None,
        ),
        figure(
            "kernel_time_per_mesh_sample_tables",
            "ns",
            column(&tables, |run| run.sample_ns),
            None,
        ),
        figure(
            "kernel_time_per_mesh_sample_frame_pointers",
            "ns",
            column(&pointers, |run| run.sample_ns),
            None,
        ),
        figure(
            "user_frames_per_sample",
            "frames",
            column(&tables, |run| run.frames_per_sample),
            None,
        ),
        figure(
            "more_time_per_mesh_frame_than_frame_pointers",
            "ns",
            extra.collect(),
            None,
        ),
        figure(
            "complete_stacks",
            "percent",
            column(&tables, |run| run.complete_percent),
            Some(Target::AtLeast(98.0)),
        ),
        figure("complete_stacks_of_perf_dwarf", "percent", peer, None),
        figure(
            "kernel_memory_of_tables",
            "KiB",
            column(&tables, |run| run.table_kib),
            Some(Target::Below(2048.0)),
        ),
        figure(
            "agent_peak_rss",
            "MB",
            column(&tables, |run| run.peak_rss_mb),
            Some(Target::Below(100.0)),
        ),
    ])
}

/// Bytes of a page's entry in the kernel's hash table: key, value and the element's header.
const PAGE_ENTRY_BYTES: f64 = 8.0 + 128.0 + 48.0;

/// What the kernel's statistics report about the sampling program.
struct Sampled {
    task: Value,
    runs: f64,
    time_ns: f64,
    peak_rss_mb: f64,
}

fn sample(pids: &[u32], seconds: u64, method: &str) -> Result<Sampled> {
    let unwind = format!("--unwind={method}");
    let agent = Agent::start_with(ServeOptions::with_arguments(["--bpf-stats", &unwind]))?;
    let specification = json!({
        "kind": "on_cpu",
        "target": { "pids": pids },
        "duration_s": seconds,
        "frequency_hz": HZ,
    });
    let id = agent.api.create_task(&specification)?;
    agent.api.wait_sampling(&id, LIMIT)?;
    // The statistics are published once a second and leave with the program, so the last ones
    // before the end are what counts.
    let mut sampler = Value::Null;
    let task = loop {
        let task = agent.api.task(&id)?;
        if task["ended_at_ns"].is_u64() {
            break task;
        }
        let own = agent.api.get_json("/api/v1/self")?;
        let programs = own["bpf"]["programs"].as_array().cloned();
        let found = programs.unwrap_or_default().into_iter();
        if let Some(found) = found.max_by_key(|program| program["run_time_ns"].as_u64()) {
            sampler = found;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    Ok(Sampled {
        runs: number(&sampler["run_count"]),
        time_ns: number(&sampler["run_time_ns"]),
        peak_rss_mb: peak_rss_mb(agent.pid())?,
        task,
    })
}

/// What a tick of a process that is not a target costs.
pub(crate) fn unwanted_tick_ns(seconds: u64) -> Result<f64> {
    let mut idle = std::process::Command::new("sleep").arg("600").spawn()?;
    let sampled = sample(&[idle.id()], seconds, "tables");
    idle.kill()?;
    idle.wait()?;
    let sampled = sampled?;
    ensure!(sampled.runs > 100.0, "the clock did not tick");
    Ok(sampled.time_ns / sampled.runs)
}

fn measure(envoys: &[u32], seconds: u64, method: &str, unwanted_ns: f64) -> Result<Run> {
    let Sampled {
        task,
        runs,
        time_ns,
        peak_rss_mb,
    } = sample(envoys, seconds, method)?;
    #[expect(clippy::cast_precision_loss, reason = "seconds of a bench are few")]
    let ticks = seconds as f64 * f64::from(HZ) * f64::from(cpus()?);
    // The statistics are up to a second older than the samples; ticks come evenly.
    let samples = number(&task["samples"]) * (runs / ticks).min(1.0);
    ensure!(samples > 100.0, "nothing was measured: {task}");
    let stacks = &task["stacks"];
    eprintln!("{method}: {samples:.0} samples, {stacks}");
    let unwanted = (runs - samples).max(0.0) * unwanted_ns;
    let tables = &stacks["tables"];
    let pages = number(&tables["pages_loaded"]) - number(&tables["pages_evicted"]);
    Ok(Run {
        sample_ns: (time_ns - unwanted) / samples,
        frames_per_sample: number(&tables["frames"]) / number(&stacks["samples"]).max(1.0),
        complete_percent: number(&stacks["complete"]) * 100.0 / number(&stacks["samples"]).max(1.0),
        table_kib: number(&tables["blocks"]) + pages * PAGE_ENTRY_BYTES / 1024.0,
        peak_rss_mb,
    })
}

fn cpus() -> Result<u32> {
    let cpus = std::thread::available_parallelism()?.get();
    u32::try_from(cpus).context("count CPUs")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// Verified instructions and load time of every program.
pub(crate) fn programs() -> Result<Value> {
    let (status, output, errors) = run(&["doctor", "--json"], LIMIT)?;
    let doctor: Value = serde_json::from_str(&output)
        .with_context(|| format!("doctor ended with {status}: {errors}"))?;
    Ok(doctor["programs"].clone())
}
