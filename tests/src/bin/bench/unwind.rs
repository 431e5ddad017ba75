//! What walking user stacks costs: both Envoys of the mesh under load, with tables and with frame
//! pointers alone.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use profiler_tests::{
    agent::{Agent, ServeOptions, run},
    mesh::{Mesh, MeshOptions},
};
use serde_json::{Value, json};

use super::{Figure, LIMIT, Target, figure, peak_rss_mb};

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
    let (mut tables, mut pointers) = (Vec::new(), Vec::new());
    for index in 0..runs {
        eprintln!("run {} of {runs}, {seconds} s with each", index + 1);
        tables.push(measure(&envoys, seconds, "tables")?);
        pointers.push(measure(&envoys, seconds, "frame-pointers")?);
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
            "kernel_time_per_sample_tables",
            "ns",
            column(&tables, |run| run.sample_ns),
            Some(Target::Below(6000.0)),
        ),
        figure(
            "kernel_time_per_sample_frame_pointers",
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
            "more_time_per_frame_than_frame_pointers",
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

fn measure(envoys: &[u32], seconds: u64, method: &str) -> Result<Run> {
    let unwind = format!("--unwind={method}");
    let agent = Agent::start_with(ServeOptions::with_arguments(["--bpf-stats", &unwind]))?;
    let specification = json!({
        "kind": "on_cpu",
        "target": { "pids": envoys },
        "duration_s": null,
        "frequency_hz": HZ,
    });
    let id = agent.api.create_task(&specification)?;
    agent.api.wait_sampling(&id, LIMIT)?;
    std::thread::sleep(Duration::from_secs(seconds));
    let own = agent.api.get_json("/api/v1/self")?;
    let peak_rss_mb = peak_rss_mb(agent.pid())?;
    let task = agent.api.stop_task(&id)?;
    let programs = own["bpf"]["programs"].as_array().context("no programs")?;
    let sampler = programs.iter().find(|program| program["name"] == "on_cpu");
    let time = sampler.map_or(0.0, |program| number(&program["run_time_ns"]));
    // A last moment of sampling follows the reading, so this is a little too low, not too high:
    // ticks of other processes are charged to the samples as well.
    let samples = number(&task["samples"]);
    ensure!(
        samples > 100.0 && time > 0.0,
        "nothing was measured: {task}"
    );
    let stacks = &task["stacks"];
    let tables = &stacks["tables"];
    let pages = number(&tables["pages_loaded"]) - number(&tables["pages_evicted"]);
    Ok(Run {
        sample_ns: time / samples,
        frames_per_sample: number(&tables["frames"]) / number(&stacks["samples"]).max(1.0),
        complete_percent: number(&stacks["complete"]) * 100.0 / number(&stacks["samples"]).max(1.0),
        table_kib: number(&tables["blocks"]) + pages * PAGE_ENTRY_BYTES / 1024.0,
        peak_rss_mb,
    })
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
