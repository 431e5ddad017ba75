//! One window: a fresh mesh under paced load, with a task for both sidecars, and what the kernel says meanwhile.

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

const LIMIT: Duration = Duration::from_secs(60);
/// Part of the load's rate that must be kept, or the Envoys were not at equal load.
const RATE_KEPT: f64 = 0.95;

/// The load that every window has.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load {
    pub requests_per_second: u32,
    pub seconds: u64,
    /// Before the window: caches fill, and the sampler has the tables of the binary.
    pub warm_up_seconds: u64,
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

/// What one window showed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Window {
    /// Name of the setting, or [`BASE`].
    pub setting: String,
    pub round: u32,
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// By the kernel's account of all threads.
    pub cpu_ns: u64,
    /// By Envoy's own counter.
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

/// Runs one window with `setting` on, or with none.
pub fn measure(
    agent: &Agent,
    setting: Option<&Setting>,
    round: u32,
    load: &Load,
) -> Result<Window> {
    let base = base_mesh(load);
    let options = setting.map_or(base.clone(), |setting| setting.mesh(&base));
    let name = setting.map_or(BASE, |setting| setting.name);
    window(agent, name, &options, round, load)
        .with_context(|| format!("window of {name}, round {round}"))
}

fn window(
    agent: &Agent,
    name: &str,
    options: &MeshOptions,
    round: u32,
    load: &Load,
) -> Result<Window> {
    let mut mesh = Mesh::up(options)?;
    mesh.start_load()?;
    let pids = [mesh.client.envoy.pid(), mesh.server.envoy.pid()];
    let id = agent.api.create_task(&json!({
        "kind": "on_cpu",
        "target": { "pids": pids },
        "duration_s": null,
        "frequency_hz": load.frequency_hz,
    }))?;
    agent.api.wait_sampling(&id, LIMIT)?;
    sleep(Duration::from_secs(load.warm_up_seconds));

    // The admin interface costs its Envoy something: it is asked outside of the counted time.
    let requests = [
        requests(&mesh, Side::Client)?,
        requests(&mesh, Side::Server)?,
    ];
    let from = Reading::take(pids)?;
    sleep(Duration::from_secs(load.seconds));
    let to = Reading::take(pids)?;
    let requests = [
        self::requests(&mesh, Side::Client)? - requests[0],
        self::requests(&mesh, Side::Server)? - requests[1],
    ];
    agent.api.stop_task(&id)?;
    let task = agent.api.wait_task(&id, &["cancelled"], LIMIT)?;
    let started_ns = task["started_at_ns"].as_u64().context("no start time")?;
    let after_start_ms = |reading: &Reading| reading.time_ns.saturating_sub(started_ns) / 1_000_000;
    let report = mesh.stop_load()?.context("no load ran")?;
    ensure!(report.errors == 0, "requests failed: {report:?}");
    ensure!(
        report.rps >= f64::from(load.requests_per_second) * RATE_KEPT,
        "the load fell behind, which makes loads unequal: {report:?}"
    );
    let measured = |index: usize| -> Result<Measured> {
        let path = format!(
            "/api/v1/tasks/{id}/diagnosis?pid={}&from={}&to={}",
            pids[index],
            after_start_ms(&from),
            after_start_ms(&to)
        );
        let diagnosis = agent.api.get_json(&path)?;
        Ok(Measured {
            cpu_ns: to.cpu_ns[index] - from.cpu_ns[index],
            requests: requests[index],
            samples: diagnosis["coverage"]["samples"]
                .as_u64()
                .context("no samples in the diagnosis")?,
            cells: cells(&diagnosis)?,
            findings: findings(&diagnosis)?,
        })
    };
    Ok(Window {
        setting: name.to_owned(),
        round,
        client: measured(0)?,
        server: measured(1)?,
    })
}

/// CPU time of both sidecars at one time.
struct Reading {
    time_ns: u64,
    cpu_ns: [u64; 2],
}

impl Reading {
    fn take(pids: [u32; 2]) -> Result<Self> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .context("read the clock")?;
        Ok(Self {
            time_ns: u64::try_from(now.as_nanos()).context("time does not fit")?,
            cpu_ns: [process_cpu_ns(pids[0])?, process_cpu_ns(pids[1])?],
        })
    }
}

/// Requests that a sidecar has completed.
fn requests(mesh: &Mesh, side: Side) -> Result<u64> {
    let (pod, stats): (&Pod, _) = match side {
        Side::Client => (&mesh.client, OUTBOUND_STATS),
        Side::Server => (&mesh.server, INBOUND_STATS),
    };
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
