//! Check-ups of the mesh in a loop, with the always-on collections on, and what the agent holds after each.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    agent::{Agent, ServeOptions},
    kernel_objects::KernelObjects,
    mesh::{LoadReport, Mesh, MeshOptions},
    stats::{Slope, slope},
    wait::wait_for,
};

/// Collections that never end.
const ALWAYS: [&str; 4] = ["--network", "always", "--profile", "always"];
/// For a check-up to end after its time: names of a large program take a while.
const CHECKUP_LIMIT: Duration = Duration::from_mins(1);
/// From the end of a check-up until what it held is read: its programs go with the last reader. After the shortest
/// time on an idle machine; until the agent holds no more of the kernel than at first, at most, on a busy one.
const QUIET: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(20)];
/// For the agent to end while the machine is busy; how fast it ends is another test's.
const STOP: Duration = Duration::from_mins(1);
/// For the kernel, which frees what a process held.
const GONE: Duration = Duration::from_secs(15);
/// Clock ticks per second of /proc/PID/stat, the same on every Linux.
pub const TICKS_PER_SECOND: f64 = 100.0;
/// Neighbouring readings resemble each other; so many means of readings in a row are nearly independent.
const BLOCKS: usize = 10;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub duration: Duration,
    /// Of the load through the mesh.
    pub requests_per_second: u32,
    /// Length of each check-up.
    pub checkup_s: u64,
    /// Share of the duration in which caches fill: readings of it are not judged.
    pub warm_up: f64,
}

/// What the agent held at a moment without a check-up.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Reading {
    /// Since the beginning of the loop.
    pub at_s: f64,
    pub rss_mb: f64,
    /// Without pages of files.
    pub anonymous_mb: f64,
    pub descriptors: u32,
    pub threads: u32,
    /// Programs, maps and links of the kernel that it has descriptors of.
    pub kernel_objects: u32,
    /// User and system time since the agent's start.
    pub cpu_s: f64,
    /// Of the data directory's file.
    pub store_mb: f64,
}

/// A loop that has ended.
#[derive(Debug)]
pub struct Soaked {
    pub readings: Vec<Reading>,
    /// Check-ups whose diagnosis has no requests, with what it reports about its limits.
    pub without_requests: Vec<String>,
    pub load: LoadReport,
    /// Programs, maps, links and pins that were not there before the agent and belong to no process.
    pub left: Vec<String>,
    /// Warnings and errors that the agent logged.
    pub complaints: Vec<String>,
    /// As asked for in [`Options::warm_up`].
    warm_up: f64,
}

impl Soaked {
    /// Those after the warm-up.
    pub fn settled(&self) -> &[Reading] {
        let whole = self.readings.last().map_or(0.0, |last| last.at_s);
        let first = self
            .readings
            .partition_point(|reading| reading.at_s < whole * self.warm_up);
        &self.readings[first..]
    }

    /// How a figure moves in an hour, after the warm-up. `None` with too few readings.
    pub fn per_hour(&self, figure: impl Fn(&Reading) -> f64) -> Option<Slope> {
        let settled = self.settled();
        let length = settled.len().div_ceil(BLOCKS).max(1);
        let points: Vec<(f64, f64)> = settled
            .chunks(length)
            .map(|block| (mean(block, |r| r.at_s / 3600.0), mean(block, &figure)))
            .collect();
        slope(&points)
    }

    /// Between the first and the last of the settled readings, in hours.
    pub fn settled_hours(&self) -> f64 {
        let settled = self.settled();
        match (settled.first(), settled.last()) {
            (Some(first), Some(last)) => (last.at_s - first.at_s) / 3600.0,
            _ => 0.0,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of readings are small")]
fn mean(block: &[Reading], figure: impl Fn(&Reading) -> f64) -> f64 {
    block.iter().map(figure).sum::<f64>() / block.len().max(1) as f64
}

/// Runs the loop; `seen` gets each reading as it is made.
pub fn run(options: &Options, mut seen: impl FnMut(&Reading)) -> Result<Soaked> {
    let mut mesh = Mesh::up(&MeshOptions {
        rps: options.requests_per_second,
        duration: options.duration + Duration::from_mins(10),
        ..MeshOptions::default()
    })?;
    let before = KernelObjects::now()?;
    let mut agent = Agent::start_with(ServeOptions::with_arguments(ALWAYS))?;
    mesh.start_load()?;
    let pid = mesh.report().server_envoy_pid;
    let body = json!({
        "target": { "pids": [pid] }, "duration_s": options.checkup_s, "frequency_hz": 99,
    });
    let began = Instant::now();
    let (mut readings, mut without_requests) = (Vec::new(), Vec::new());
    while began.elapsed() < options.duration {
        let limits = checkup(&agent, &body, pid)
            .with_context(|| format!("check-up {}; {}", readings.len() + 1, agent.log()))?;
        without_requests.extend(limits);
        let quiet_from = Instant::now();
        thread::sleep(QUIET[0]);
        let mut reading = read(&agent, began)?;
        let first = readings
            .first()
            .map_or(u32::MAX, |first: &Reading| first.kernel_objects);
        while reading.kernel_objects > first && quiet_from.elapsed() < QUIET[1] {
            thread::sleep(QUIET[0]);
            reading = read(&agent, began)?;
        }
        seen(&reading);
        readings.push(reading);
        ensure!(mesh.ended().is_none(), "{:?} has ended", mesh.ended());
    }
    let load = mesh.stop_load()?.context("no load")?;
    let status = agent.stop_within(STOP)?;
    ensure!(status.success(), "the agent ended with {status}");
    let left = KernelObjects::left_behind(&before, GONE)?;
    let complaints = agent
        .log()
        .lines()
        .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "))
        .map(str::to_owned)
        .collect();
    Ok(Soaked {
        readings,
        without_requests,
        load,
        left,
        complaints,
        warm_up: options.warm_up,
    })
}

/// One check-up from its start to its deletion, with its diagnosis read; its limits when that has no requests.
fn checkup(agent: &Agent, body: &Value, pid: u32) -> Result<Option<String>> {
    let answer = agent
        .api
        .send("POST", "/api/v1/checkups", Some(&body.to_string()))?;
    ensure!(answer.status == 201, "{}", answer.text());
    let id = answer.json()?["id"].as_str().context("no id")?.to_owned();
    let path = format!("/api/v1/checkups/{id}");
    let ended = wait_for("the check-up ends", CHECKUP_LIMIT, || {
        thread::sleep(Duration::from_millis(200));
        let checkup = agent.api.get_json(&path).ok()?;
        (checkup["state"] != "running").then_some(checkup)
    })?;
    ensure!(ended["state"] == "finished", "{ended:#}");
    let diagnosis = agent.api.get_json(&format!("{path}/diagnosis?pid={pid}"))?;
    let rate = diagnosis["totals"]["requests"]["per_second"].as_f64();
    let limits = (rate.is_none() || rate <= Some(0.0)).then(|| diagnosis["limits"].to_string());
    let deleted = agent.api.send("DELETE", &path, None)?;
    ensure!(deleted.status == 204, "{}", deleted.text());
    Ok(limits)
}

/// What the agent holds now.
pub(crate) fn read(agent: &Agent, began: Instant) -> Result<Reading> {
    let pid = agent.pid();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("read status")?;
    let field = |name: &str| -> Result<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        let number = number.with_context(|| format!("no {name} in {status}"))?;
        number.parse().with_context(|| format!("parse {number:?}"))
    };
    let mb = |name: &str| -> Result<f64> { Ok(f64::from(field(name)?) * 1024.0 / 1e6) };
    let (descriptors, kernel_objects) = descriptors(pid)?;
    let store = fs::metadata(agent.data_dir.join("store.redb")).context("look at the store")?;
    let store_kib = u32::try_from(store.len() / 1024).context("the store is too large")?;
    Ok(Reading {
        at_s: began.elapsed().as_secs_f64(),
        rss_mb: mb("VmRSS:")?,
        anonymous_mb: mb("RssAnon:")?,
        descriptors,
        threads: field("Threads:")?,
        kernel_objects,
        cpu_s: cpu_seconds(pid)?,
        store_mb: f64::from(store_kib) * 1024.0 / 1e6,
    })
}

/// Open files of a process, and how many of them are programs, maps and links of the kernel.
fn descriptors(pid: u32) -> Result<(u32, u32)> {
    let (mut all, mut objects) = (0, 0);
    let folder = format!("/proc/{pid}/fdinfo");
    for entry in fs::read_dir(&folder).with_context(|| format!("list {folder}"))? {
        let entry = entry.with_context(|| format!("list {folder}"))?;
        // One that is closed meanwhile does not count.
        let Ok(text) = fs::read_to_string(entry.path()) else {
            continue;
        };
        all += 1;
        let is_object = ["prog_id:", "map_id:", "link_id:"]
            .iter()
            .any(|name| text.contains(name));
        objects += u32::from(is_object);
    }
    Ok((all, objects))
}

/// Memory of a process that is in RAM (`VmRSS`).
pub fn resident_mb(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("read VmRSS")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: u32 = kib.context("no VmRSS")?.parse().context("parse VmRSS")?;
    Ok(f64::from(kib) * 1024.0 / 1e6)
}

/// User and system time of a process with all threads it ever had.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("read the agent's times")?;
    let after_name = stat.rsplit_once(')').context("parse stat")?.1;
    let ticks: Vec<f64> = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse().ok())
        .collect();
    ensure!(ticks.len() == 2, "parse {stat:?}");
    Ok((ticks[0] + ticks[1]) / TICKS_PER_SECOND)
}
