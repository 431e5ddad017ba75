//! What reading requests costs: web servers that do nothing but answer, as fast as they can, and the
//! mesh; without and with TLS.
//!
//! The server has the first CPU and wrk the second. Only the server's process is watched, as a user
//! would. At these rates the agent samples by connection; how much is in what it prints.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use profiler_tests::{agent, cleanup::scratch_directory, process::Running, wait::wait_for};
use rustix::process::Signal;
use serde_json::Value;

use super::{
    Figure, LIMIT, cpu_seconds,
    load::{Comparison, Load, NGINX, Row, Transport, WRK, WebServer, compare, compare_mesh},
    peak_rss_mb,
};

/// What runs beside the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// Connections alone.
    Light,
    LightFloor,
    Requests,
    RequestsFloor,
    RequestsWithTls,
    RequestsWithTlsFloor,
}

impl Beside {
    /// The same with programs that return at once.
    fn floor(self) -> Option<Self> {
        match self {
            Self::Light => Some(Self::LightFloor),
            Self::Requests => Some(Self::RequestsFloor),
            Self::RequestsWithTls => Some(Self::RequestsWithTlsFloor),
            Self::Nothing | Self::LightFloor | Self::RequestsFloor | Self::RequestsWithTlsFloor => {
                None
            }
        }
    }

    fn is_floor(self) -> bool {
        self != Self::Nothing && self.floor().is_none()
    }
}

/// What the sockets carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Plaintext,
    Ciphertext,
}

/// Fewer would mean that the agent slept.
const LEAST_REQUESTS: u64 = 50;

// Shares of the requests that are to be kept.
const NGINX_PLAIN: f64 = 0.65;
const NGINX_TLS: f64 = 0.60;
const GO: f64 = 0.75;
const MESH_PLAIN: f64 = 0.95;
const MESH_TLS: f64 = 0.88;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Program {
    Nginx,
    NginxTls,
    Go,
    Mesh,
}

pub(crate) struct Options {
    pub(crate) pairs: u32,
    pub(crate) seconds: f64,
    pub(crate) mesh_pairs: u32,
    pub(crate) mesh_seconds: f64,
    /// Of nginx with TLS.
    pub(crate) tls_seconds: f64,
    /// None: all.
    pub(crate) only: Vec<Program>,
}

pub(crate) fn figures(options: &Options) -> Result<Vec<Figure>> {
    ensure!(options.seconds > 0.1, "--seconds must be above 0.1");
    for program in [NGINX, WRK] {
        ensure!(Path::new(program).exists(), "no {program}");
    }
    let is_wanted = |program| options.only.is_empty() || options.only.contains(&program);
    let mut figures = Vec::new();
    if is_wanted(Program::Nginx) {
        let plain = rows(&[(Beside::Light, None), (Beside::Requests, Some(NGINX_PLAIN))]);
        let nginx = WebServer::nginx(Transport::Plain)?;
        figures.extend(server("nginx", &nginx, Seen::Plaintext, &plain, options)?);
    }
    if is_wanted(Program::NginxTls) {
        figures.extend(nginx_tls(options)?);
    }
    if is_wanted(Program::Go) {
        let go = rows(&[(Beside::Light, None), (Beside::Requests, Some(GO))]);
        let program = WebServer::go()?;
        figures.extend(server("go", &program, Seen::Plaintext, &go, options)?);
    }
    if is_wanted(Program::Mesh) {
        figures.extend(mesh(options)?);
    }
    Ok(figures)
}

fn nginx_tls(options: &Options) -> Result<Vec<Figure>> {
    let tls = rows(&[
        (Beside::Light, None),
        (Beside::Requests, None),
        (Beside::RequestsWithTls, Some(NGINX_TLS)),
    ]);
    let nginx = WebServer::nginx(Transport::Tls)?;
    server("nginx_tls", &nginx, Seen::Ciphertext, &tls, options)
}

fn rows(besides: &[(Beside, Option<f64>)]) -> Vec<Row<Beside>> {
    [(Beside::Nothing, None)]
        .iter()
        .chain(besides)
        .flat_map(|&(beside, kept)| {
            let floor = beside.floor().map(|floor| (floor, None));
            [Some((beside, kept)), floor].into_iter().flatten()
        })
        .map(|(beside, kept)| Row {
            name: match beside {
                Beside::Nothing => "control",
                Beside::Light => "light",
                Beside::LightFloor => "light_floor",
                Beside::Requests => "requests",
                Beside::RequestsFloor => "requests_floor",
                Beside::RequestsWithTls => "requests_with_tls",
                Beside::RequestsWithTlsFloor => "requests_with_tls_floor",
            },
            beside,
            kept,
        })
        .collect()
}

fn server(
    name: &str,
    server: &WebServer,
    seen: Seen,
    rows: &[Row<Beside>],
    options: &Options,
) -> Result<Vec<Figure>> {
    let pids = server.pids()?;
    let seconds = match seen {
        Seen::Plaintext => options.seconds,
        Seen::Ciphertext => options.tls_seconds,
    };
    let run = |beside, agent: &Path| {
        let load = || server.load(true, seconds);
        watched(beside, agent, &pids, &server.folder, seen, &load)
    };
    let comparison = Comparison::from_environment()?;
    run(Beside::Nothing, &comparison.agent)?;
    let pairs = options.pairs;
    compare(&comparison, name, rows, Beside::Nothing, pairs, &run)
}

/// Both sidecars are watched.
fn mesh(options: &Options) -> Result<Vec<Figure>> {
    let rows = rows(&[
        (Beside::Light, None),
        (Beside::Requests, Some(MESH_PLAIN)),
        (Beside::RequestsWithTls, Some(MESH_TLS)),
    ]);
    let (folder, _guard) = scratch_directory("bench")?;
    let (pairs, seconds) = (options.mesh_pairs, options.mesh_seconds);
    let comparison = Comparison::from_environment()?;
    let nothing = Beside::Nothing;
    compare_mesh(
        &comparison,
        &rows,
        nothing,
        pairs,
        seconds,
        |beside, agent, load| {
            // The applications' sides of the sidecars are plain.
            watched(beside, agent, &envoys()?, &folder, Seen::Plaintext, load)
        },
    )
}

/// A load, and what the agent beside it spent meanwhile.
fn watched(
    beside: Beside,
    agent: &Path,
    pids: &[u32],
    folder: &Path,
    seen: Seen,
    load: &dyn Fn() -> Result<Load>,
) -> Result<Load> {
    let Some(companion) = Companion::start(beside, agent, pids, folder)? else {
        return load();
    };
    let before = cpu_seconds(companion.agent.pid())?;
    let load = load()?;
    let spent = cpu_seconds(companion.agent.pid())? - before;
    companion.end(seen)?;
    Ok(load.beside_agent(spent))
}

/// The sidecars of the only mesh that runs.
fn envoys() -> Result<Vec<u32>> {
    let output = Command::new("pgrep")
        .args(["--exact", "envoy"])
        .output()
        .context("look for the sidecars with pgrep")?;
    let pids: Vec<u32> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    ensure!(pids.len() == 2, "{} sidecars run, not two", pids.len());
    Ok(pids)
}

/// An agent that watches beside a run.
struct Companion {
    agent: Running,
    beside: Beside,
}

impl Companion {
    fn start(beside: Beside, agent: &Path, pids: &[u32], folder: &Path) -> Result<Option<Self>> {
        let command = match beside {
            Beside::Nothing => return Ok(None),
            Beside::Light | Beside::LightFloor => "net",
            Beside::Requests
            | Beside::RequestsFloor
            | Beside::RequestsWithTls
            | Beside::RequestsWithTlsFloor => "requests",
        };
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        let mut arguments = vec![command, "--duration=3600s", "--json"];
        for pid in &pids {
            arguments.extend(["--pid", pid]);
        }
        if matches!(
            beside,
            Beside::RequestsWithTls | Beside::RequestsWithTlsFloor
        ) {
            arguments.push("--tls");
        }
        if beside.is_floor() {
            arguments.push(agent::FLOOR);
        }
        let agent = agent::launch_program(agent, &arguments, command, folder)?;
        wait_for("the agent watches", LIMIT, || {
            (agent.errors().contains("watching") || agent.errors().contains("looking for requests"))
                .then_some(())
        })
        .with_context(|| agent.errors())?;
        Ok(Some(Self { agent, beside }))
    }

    /// Ends it, and checks that it did what it was measured for.
    fn end(mut self, seen: Seen) -> Result<()> {
        let agent = &mut self.agent;
        let (cpu_s, mb) = (cpu_seconds(agent.pid())?, peak_rss_mb(agent.pid())?);
        agent.signal(Signal::TERM)?;
        agent.wait(LIMIT)?;
        let result: Value =
            serde_json::from_str(&agent.output()).with_context(|| agent.errors())?;
        let mut said = String::new();
        if matches!(self.beside, Beside::Requests | Beside::RequestsWithTls) {
            let operations = result["operations"].as_array();
            let requests: u64 = operations
                .into_iter()
                .flatten()
                .filter_map(|operation| operation["count"].as_u64())
                .sum();
            let is_blind = seen == Seen::Ciphertext && self.beside == Beside::Requests;
            ensure!(
                is_blind || requests > LEAST_REQUESTS,
                "the agent saw {requests} requests: {}",
                agent.errors()
            );
            let read = &result["plaintext"]["attached_percent"];
            said = format!(
                ", {requests} requests, one in {} connections, TLS read for {read} % of the time",
                result["sampled_one_of"]
            );
        }
        eprintln!(
            "  agent: {cpu_s:.2} s of CPU, {mb:.0} MB, lost {}{said}",
            result["lost"]
        );
        Ok(())
    }
}
