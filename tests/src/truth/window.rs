//! Windows of several meshes at once, and what the kernel and the diagnosis report about each.
//!
//! All meshes of a group are up together, each with its own setting, and have the load in turn, for a second
//! each time: a change of the machine's speed meets all of them alike. One task samples all of their sidecars.

use std::{
    collections::BTreeMap,
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{BASE, Setting, Side};
use crate::{
    agent::Agent,
    mesh::{
        Mesh, MeshOptions, Pod,
        sidecar::{INBOUND_STATS, OUTBOUND_STATS},
    },
    workload::process_cpu_ns,
};

const LIMIT: Duration = Duration::from_mins(1);
/// How long one mesh has the load before the next one has.
const TURN: Duration = Duration::from_secs(1);
/// Part of the load's rate that must be kept, or the sidecars were not at equal load.
const RATE_KEPT: f64 = 0.95;
/// How an error says that less was kept: the machine was busy with something else.
pub const FELL_BEHIND: &str = "the load fell behind";

/// The load that every mesh has in its turns.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load {
    pub requests_per_second: u32,
    /// Turns of a second that are counted.
    pub seconds: u32,
    /// Turns before: caches fill, and the sampler has the tables of the binary.
    pub warm_up_seconds: u32,
    pub frequency_hz: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            requests_per_second: 1500,
            seconds: 8,
            warm_up_seconds: 2,
            frequency_hz: 999,
        }
    }
}

/// What the kernel and Envoy counted in the turns of one mesh, and where its samples are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recorded {
    /// Name of the setting, or [`BASE`].
    pub setting: String,
    /// Windows of one group were measured together.
    pub group: u32,
    /// The task with the samples.
    pub task: String,
    /// The counted part of the task, in milliseconds after its start.
    pub from_ms: u64,
    pub to_ms: u64,
    pub client: RecordedSide,
    pub server: RecordedSide,
}

/// One sidecar.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RecordedSide {
    pub pid: u32,
    /// By the kernel's account of all threads.
    pub cpu_ns: u64,
    /// By Envoy's own counter.
    pub requests: u64,
}

/// What one window showed.
#[derive(Clone, Debug)]
pub struct Window {
    /// Name of the setting, or [`BASE`].
    pub setting: String,
    pub group: u32,
    pub client: Measured,
    pub server: Measured,
}

impl Window {
    pub fn side(&self, side: Side) -> &Measured {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

/// What one window showed of one sidecar.
#[derive(Clone, Debug)]
pub struct Measured {
    pub cpu_ns: u64,
    pub requests: u64,
    pub samples: u64,
    /// Percent of the samples, by `feature/mechanism`.
    pub cells: BTreeMap<String, f64>,
    /// Most could be saved by the first one.
    pub findings: Vec<String>,
}

impl Measured {
    /// CPU time of a request in microseconds.
    #[expect(clippy::cast_precision_loss, reason = "a window is short: below 2^52")]
    pub fn us_per_request(&self) -> f64 {
        self.cpu_ns as f64 / 1e3 / self.requests.max(1) as f64
    }

    /// CPU time of a request in microseconds, by cell, as samples share it out.
    pub fn cells_us(&self) -> impl Iterator<Item = (&str, f64)> {
        let whole = self.us_per_request();
        self.cells
            .iter()
            .map(move |(cell, percent)| (cell.as_str(), percent / 100.0 * whole))
    }

    /// The same of all cells of some features.
    pub fn features_us(&self, features: &[&str]) -> f64 {
        self.cells_us()
            .filter(|(cell, _)| features.contains(&feature_of(cell)))
            .map(|(_, us)| us)
            .sum()
    }
}

/// The feature of a cell `feature/mechanism`.
pub fn feature_of(cell: &str) -> &str {
    cell.rsplit_once('/').map_or(cell, |(feature, _)| feature)
}

/// The mesh without any of the settings: one worker, so that all requests of a sidecar share a thread.
pub fn base_mesh(load: &Load) -> MeshOptions {
    MeshOptions {
        rps: load.requests_per_second,
        ..MeshOptions::default()
    }
}

/// Measures one window of each setting (`None`: the base) in turns.
pub fn record(
    agent: &Agent,
    settings: &[Option<&Setting>],
    group: u32,
    load: &Load,
) -> Result<Vec<Recorded>> {
    let base = base_mesh(load);
    let (names, options): (Vec<&str>, Vec<MeshOptions>) = settings
        .iter()
        .map(|setting| match setting {
            Some(setting) => (setting.name, setting.mesh(&base)),
            None => (BASE, base.clone()),
        })
        .unzip();
    let meshes =
        Mesh::up_together(&options).with_context(|| format!("meshes of {}", names.join(", ")))?;
    let mut meshes: Vec<(&str, Mesh)> = names.into_iter().zip(meshes).collect();
    for (_, mesh) in &mut meshes {
        mesh.start_load()?;
        mesh.pause_load()?;
    }
    let pids: Vec<u32> = meshes
        .iter()
        .flat_map(|(_, mesh)| [mesh.client.envoy.pid(), mesh.server.envoy.pid()])
        .collect();
    let id = agent.api.create_task(&json!({
        "kind": "on_cpu",
        "target": { "pids": pids },
        "duration_s": null,
        "frequency_hz": load.frequency_hz,
    }))?;
    agent.api.wait_sampling(&id, LIMIT)?;
    take_turns(&mut meshes, load.warm_up_seconds)?;
    let before = readings(&meshes)?;
    let from_ns = now_ns()?;
    take_turns(&mut meshes, load.seconds)?;
    let to_ns = now_ns()?;
    let after = readings(&meshes)?;
    agent.api.stop_task(&id)?;
    let task = agent.api.wait_task(&id, &["cancelled"], LIMIT)?;
    let started_ns = task["started_at_ns"].as_u64().context("no start time")?;
    let after_start_ms = |time_ns: u64| time_ns.saturating_sub(started_ns) / 1_000_000;

    let mut windows = Vec::new();
    for (index, (name, mesh)) in meshes.iter_mut().enumerate() {
        let report = mesh.stop_load()?.context("no load ran")?;
        ensure!(report.errors == 0, "{name}: requests failed: {report:?}");
        let side = |side: usize| -> RecordedSide {
            let (before, after) = (before[index][side], after[index][side]);
            RecordedSide {
                pid: pids[index * 2 + side],
                cpu_ns: after.cpu_ns - before.cpu_ns,
                requests: after.requests - before.requests,
            }
        };
        let window = Recorded {
            setting: (*name).to_owned(),
            group,
            task: id.clone(),
            from_ms: after_start_ms(from_ns),
            to_ms: after_start_ms(to_ns),
            client: side(0),
            server: side(1),
        };
        let asked = f64::from(load.requests_per_second) * f64::from(load.seconds);
        #[expect(clippy::cast_precision_loss, reason = "a window is short: below 2^52")]
        let kept = window.client.requests as f64 / asked;
        ensure!(
            kept >= RATE_KEPT,
            "{name}: {FELL_BEHIND} ({:.0} % of {} requests a second), which makes loads unequal: \
             is the machine busy?",
            kept * 100.0,
            load.requests_per_second
        );
        windows.push(window);
    }
    Ok(windows)
}

/// Gives each mesh the load in turn, this many times.
fn take_turns(meshes: &mut [(&str, Mesh)], times: u32) -> Result<()> {
    for _ in 0..times {
        for (_, mesh) in &mut *meshes {
            mesh.resume_load()?;
            sleep(TURN);
            mesh.pause_load()?;
        }
    }
    Ok(())
}

/// What was counted of one sidecar so far.
#[derive(Clone, Copy)]
struct Reading {
    cpu_ns: u64,
    requests: u64,
}

/// Counts of both sidecars of each mesh. Asking costs the sidecar a little, in all meshes alike.
fn readings(meshes: &[(&str, Mesh)]) -> Result<Vec<[Reading; 2]>> {
    let reading = |mesh: &Mesh, side: Side| -> Result<Reading> {
        let (pod, stats) = match side {
            Side::Client => (&mesh.client, OUTBOUND_STATS),
            Side::Server => (&mesh.server, INBOUND_STATS),
        };
        Ok(Reading {
            requests: requests(pod, stats)?,
            cpu_ns: process_cpu_ns(pod.envoy.pid())?,
        })
    };
    let both = |mesh| Ok([reading(mesh, Side::Client)?, reading(mesh, Side::Server)?]);
    meshes.iter().map(|(_, mesh)| both(mesh)).collect()
}

fn now_ns() -> Result<u64> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .context("read the clock")?;
    u64::try_from(now.as_nanos()).context("time does not fit")
}

/// What the diagnosis reports about a window now. The agent must have its task.
pub fn diagnose(agent: &Agent, recorded: &Recorded) -> Result<Window> {
    let measured = |side: &RecordedSide| -> Result<Measured> {
        let path = format!(
            "/api/v1/tasks/{}/diagnosis?pid={}&from={}&to={}",
            recorded.task, side.pid, recorded.from_ms, recorded.to_ms
        );
        let diagnosis = agent.api.get_json(&path)?;
        Ok(Measured {
            cpu_ns: side.cpu_ns,
            requests: side.requests,
            samples: diagnosis["coverage"]["samples"]
                .as_u64()
                .context("no samples in the diagnosis")?,
            cells: cells(&diagnosis)?,
            findings: findings(&diagnosis)?,
        })
    };
    Ok(Window {
        setting: recorded.setting.clone(),
        group: recorded.group,
        client: measured(&recorded.client)?,
        server: measured(&recorded.server)?,
    })
}

/// Requests that a sidecar has completed.
fn requests(pod: &Pod, stats: &str) -> Result<u64> {
    let name = format!("http.{stats}.downstream_rq_completed");
    let text = pod.admin(&format!("/stats?filter={name}"))?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(&name)?.strip_prefix(": ")?.parse().ok());
    value.with_context(|| format!("no {name} in {text:?}"))
}

fn cells(diagnosis: &Value) -> Result<BTreeMap<String, f64>> {
    let cells = diagnosis["matrix"]["cells"]
        .as_array()
        .context("no cells")?;
    cells
        .iter()
        .map(|cell| {
            let text = |key: &str| {
                cell[key]
                    .as_str()
                    .with_context(|| format!("no {key}: {cell}"))
            };
            let share = cell["share_percent"].as_f64().context("no share")?;
            Ok((
                format!("{}/{}", text("feature")?, text("mechanism")?),
                share,
            ))
        })
        .collect()
}

fn findings(diagnosis: &Value) -> Result<Vec<String>> {
    let findings = diagnosis["findings"].as_array().context("no findings")?;
    let id = |finding: &Value| finding["id"].as_str().map(str::to_owned).context("no id");
    findings.iter().map(id).collect()
}
