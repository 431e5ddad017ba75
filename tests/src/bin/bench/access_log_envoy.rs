//! What a real Envoy shows: that every request counts once, is joined with the right one at sockets, and is soon in the table, and what its
//! requests feel of an agent that gets more than it can read.

use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use profiler_tests::{
    agent::Agent,
    cleanup::{Guard, scratch_directory},
    mesh::{LoadReport, load_report},
    paths,
    peers::{
        free_port, h2load,
        logging_envoy::{self, Logger, LoggingEnvoy},
        nginx::{Nginx, Speaks},
    },
    process::Launch,
    wait::wait_until,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{FAST_STREAMS, Setting, as_float, start_agent, start_replay, sum};
use crate::{Figure, LIMIT, Target, figure};

const BUFFER: u32 = 262_144;
/// None at all.
const NONE: Option<Target> = Some(Target::Below(1.0));
/// Of the ends of requests at this node, those that are to be joined.
const MOST_JOINED: f64 = 0.999;
/// What medians may differ by.
const APART: f64 = 0.05;
/// Seconds until a request is in the table.
const SOON: f64 = 2.5;
const JOIN_CONNECTIONS: [u32; 2] = [8, 64];
/// Requests per second beside a task that captures all of them.
const JOIN_RATE: u32 = 2_000;
/// Requests per second beside an agent that gets more than it can read.
const OVERLOAD_RATE: u32 = 1_000;
const OVERLOAD_CONNECTIONS: u32 = 8;
/// The p99 beside an agent that gets too much, by that beside another one, is less. The control has as much between two runs of one load.
const SLOWER: f64 = 1.25;
/// Seconds in which the agent has not read everything, of each round.
const NOT_FULL: f64 = 4.0;
/// Requests whose way into the table is measured.
const DELAYS: u32 = 100;

/// An Envoy in front of nginx, which sends its access log to the agent.
struct Scene {
    agent: Agent,
    envoy: LoggingEnvoy,
    _nginx: Nginx,
    /// Where access logs are received.
    port: u16,
    folder: PathBuf,
    _guard: Guard,
}

impl Scene {
    fn start() -> Result<Self> {
        let (folder, guard) = scratch_directory("access-log-envoy")?;
        let port = free_port()?;
        let agent = start_agent(port)?;
        let nginx = Nginx::start(&folder, Speaks::Http1)?;
        let options = logging_envoy::Options {
            version: "1.40.0",
            logger: Logger::Grpc,
            server: nginx.port,
            http2: false,
            sink: port,
            buffer_bytes: BUFFER,
            attributes: &[],
            file: false,
        };
        Ok(Self {
            agent,
            envoy: LoggingEnvoy::start(&folder, &options)?,
            _nginx: nginx,
            port,
            folder,
            _guard: guard,
        })
    }

    /// Requests that have an id each.
    fn load(&self, requests: u32, connections: u32, rate: u32) -> Result<LoadReport> {
        let limit = Duration::from_secs(u64::from(requests / rate)) + LIMIT;
        let load = Launch::new(&paths::own_program("mesh-client")?, "client", &self.folder)
            .args([format!(
                "--url=http://127.0.0.1:{}/files/700",
                self.envoy.port
            )])
            .args([format!("--requests={requests}")])
            .args([format!("--connections={connections}")])
            .args([format!("--rps={rate}")])
            .args(["--unique=request-id".to_owned()])
            .args([format!("--duration={}s", limit.as_secs())])
            .start()?;
        let report = load_report(&load.finish(limit + LIMIT)?)?;
        ensure!(
            report.requests == u64::from(requests) && report.errors == 0,
            "{report:?} of {requests}"
        );
        Ok(report)
    }

    /// A task of this Envoy's requests that runs; of all of them, whatever that takes, where sockets are read.
    fn task(&self, sources: &[&str]) -> Result<String> {
        let mut specification = json!({
            "kind": "requests",
            "target": { "pids": [self.envoy.pid()] },
            "duration_s": null,
            "source": sources,
        });
        if sources.contains(&"sockets") {
            specification["cpu_percent"] = json!(100);
        }
        let id = self.agent.api.create_task(&specification)?;
        self.agent.api.wait_sampling(&id, LIMIT)?;
        Ok(id)
    }

    fn counter(&self, name: &str) -> Result<u64> {
        self.envoy
            .counter(&format!("access_logs.grpc_access_log.{name}"))
    }

    /// Waits until Envoy has sent or dropped so many entries, and the agent has counted what was sent.
    fn wait_for(&self, entries: u64) -> Result<()> {
        let sent = || self.counter("grpc_entries_flushed");
        let dropped = || self.counter("logs_dropped");
        wait_until("Envoy has sent everything", LIMIT, || {
            let told = sent().ok().zip(dropped().ok());
            told.is_some_and(|(sent, dropped)| sent + dropped >= entries)
        })?;
        let sent = sent()?;
        // For what is under way; what did not come is in the figures.
        let _come = wait_until("all entries are counted", LIMIT, || {
            self.own("received").is_ok_and(|received| received >= sent)
        });
        Ok(())
    }

    /// A count of the agent's row of this Envoy.
    fn own(&self, name: &str) -> Result<u64> {
        let answer = self.agent.api.get_json(super::PATH)?;
        let rows = answer["envoys"].as_array().context("no list of Envoys")?;
        let own = rows.iter().find(|row| row["pid"] == self.envoy.pid());
        let own = own.context("no row of this Envoy")?;
        own[name].as_u64().with_context(|| format!("no {name}"))
    }
}

/// A figure that is one number.
fn one(name: &str, value: u64, target: Option<Target>) -> Result<Figure> {
    Ok(figure(name, "", vec![as_float(value)?], target))
}

/// Requests through Envoy, as fast as they go: each entry that it has sent counts once, and each request is an entry unless Envoy says
/// that it dropped it.
pub(super) fn counts(requests: u32) -> Result<Vec<Figure>> {
    let scene = Scene::start()?;
    let load = h2load::Load {
        base: &format!("http://127.0.0.1:{}", scene.envoy.port),
        paths: &["/files/700", "/files/0"],
        requests,
        connections: 32,
        streams: 1,
        rate: None,
        http1: true,
        probed: false,
    };
    h2load::run(&scene.folder, load)?;
    let all = u64::from(requests);
    scene.wait_for(all)?;
    let sent = scene.counter("grpc_entries_flushed")?;
    let dropped = scene.counter("logs_dropped")?;
    let received = sum(&scene.agent, "received")?;
    let unknown = sum(&scene.agent, "unknown")?;
    Ok(vec![
        one("requests", all, None)?,
        one("entries that Envoy sent", sent, None)?,
        one("entries that Envoy dropped", dropped, None)?,
        one("entries that the agent counted", received, None)?,
        one(
            "requests without an entry or a drop",
            all.abs_diff(sent + dropped),
            NONE,
        )?,
        one(
            "entries sent and counted apart",
            sent.abs_diff(received),
            NONE,
        )?,
        one("entries that the agent calls unknown", unknown, NONE)?,
    ])
}

/// Each end of a request has its id, at the socket and in the entry: what was joined has to have the same, and where the times fit one request
/// alone that must not have another. The times are held against those of a task that pairs the requests at sockets by their ids.
pub(super) fn joins(requests: u32) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for connections in JOIN_CONNECTIONS {
        let scene = Scene::start()?;
        let both = scene.task(&["access_log", "sockets"])?;
        let sockets = scene.task(&["sockets"])?;
        scene.load(requests, connections, JOIN_RATE)?;
        let result = |id: &str| {
            scene.agent.api.stop_task(id)?;
            scene.agent.api.wait_task(id, &["cancelled"], LIMIT)?;
            let path = format!("/api/v1/tasks/{id}/requests");
            scene.agent.api.get_json(&path)
        };
        let (both, sockets) = (result(&both)?, result(&sockets)?);
        let name = |what: &str| format!("{what}, {connections} connections");
        let joined = &both["access_logs"]["envoys"][0]["joined"];
        let count = |name: &str| {
            let count = joined[name].as_u64();
            count.with_context(|| format!("no {name}: {joined}"))
        };
        let [ends, found, confirmed] = [count("ends")?, count("joined")?, count("confirmed")?];
        let share = as_float(found)? / as_float(ends)?;
        let enough = Some(Target::AtLeast(MOST_JOINED));
        figures.extend([
            one(&name("requests"), u64::from(requests), None)?,
            one(
                &name("ends of requests that entries lack"),
                (2 * u64::from(requests)).abs_diff(ends),
                NONE,
            )?,
            figure(&name("joined of them"), "", vec![share], enough),
            one(
                &name("joined without the same id"),
                found.abs_diff(confirmed),
                NONE,
            )?,
            one(&name("only another id fits"), count("contradicted")?, NONE)?,
        ]);
        for (what, field) in [
            ("time in Envoy", "inside_ns"),
            ("wait until it read a request", "read_wait_ns"),
        ] {
            let by_log = median(&both, field)?;
            let by_sockets = median(&sockets, field)?;
            figures.extend([
                figure(
                    &name(&format!("{what}, median, joined")),
                    "us",
                    vec![by_log],
                    None,
                ),
                figure(
                    &name(&format!("{what}, median, by sockets")),
                    "us",
                    vec![by_sockets],
                    None,
                ),
                figure(
                    &name(&format!("{what}, medians apart")),
                    "",
                    vec![(by_log / by_sockets - 1.0).abs()],
                    Some(Target::Below(APART)),
                ),
            ]);
        }
    }
    Ok(figures)
}

/// Of the only sidecar of a result, in microseconds: the middle of the bucket.
fn median(result: &Value, field: &str) -> Result<f64> {
    let sidecars = result["sidecars"].as_array().context("no sidecars")?;
    let [sidecar] = &sidecars[..] else {
        anyhow::bail!("{} sidecars", sidecars.len());
    };
    let bounds = &sidecar["times"][field]["bounds"]["p50"];
    let [Some(from), Some(to)] = [bounds[0].as_f64(), bounds[1].as_f64()] else {
        anyhow::bail!("no median of {field}: {sidecar:#}");
    };
    Ok(f64::midpoint(from, to) / 1_000.0)
}

/// Requests through an Envoy while the agent that gets its entries gets more of others than it can read; and, for the same load of the
/// machine, while another agent gets those.
pub(super) fn overload(rounds: u32, seconds: u64) -> Result<Vec<Figure>> {
    let scene = Scene::start()?;
    let other_port = free_port()?;
    let _other = start_agent(other_port)?;
    let setting = Setting {
        streams: FAST_STREAMS,
        rate: 0,
        duration: Duration::from_secs(seconds + 4),
    };
    let requests = OVERLOAD_RATE * u32::try_from(seconds)?;
    let p99 = |port: u16| {
        let replay = start_replay(&setting, port, &scene.folder)?;
        replay.signal(Signal::USR1)?;
        // Until the agent is at the stage that it needs.
        thread::sleep(Duration::from_secs(2));
        let report = scene.load(requests, OVERLOAD_CONNECTIONS, OVERLOAD_RATE)?;
        replay.finish(setting.duration + LIMIT)?;
        as_float(report.latency_us.p99)
    };
    let (mut own, mut ratios, mut controls) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let [before, beside, after] = [p99(other_port)?, p99(scene.port)?, p99(other_port)?];
        eprintln!(
            "round {} of {rounds}: {before} us, {beside} us beside its own agent, {after} us",
            round + 1
        );
        own.push(beside);
        ratios.push(beside / f64::midpoint(before, after));
        controls.push(after / before);
    }
    let all = u64::from(requests) * u64::from(rounds) * 3;
    scene.wait_for(all)?;
    let written = scene.counter("logs_written")?;
    let dropped = scene.counter("logs_dropped")?;
    let stages = scene.agent.api.get_json(super::PATH)?["stage_seconds"].clone();
    let stage = |name: &str| {
        let seconds = stages[name].as_f64();
        seconds.with_context(|| format!("no {name}: {stages}"))
    };
    let not_full = stage("counted")? + stage("held")?;
    let enough = Some(Target::AtLeast(NOT_FULL * f64::from(rounds)));
    Ok(vec![
        figure("p99 of requests", "us", own, None),
        figure(
            "p99, by that beside another agent's load",
            "",
            ratios,
            Some(Target::Below(SLOWER)),
        ),
        figure("control: the same load twice", "", controls, None),
        figure("in stage counted", "s", vec![stage("counted")?], None),
        figure("in stage held", "s", vec![stage("held")?], None),
        figure("in both", "s", vec![not_full], enough),
        one("requests", all, None)?,
        one("entries that Envoy dropped", dropped, None)?,
        one("counted and not read", scene.own("unread")?, None)?,
        one(
            "requests neither written nor dropped",
            all.abs_diff(written + dropped),
            NONE,
        )?,
        one(
            "entries written and not counted",
            written.abs_diff(scene.own("received")?),
            NONE,
        )?,
    ])
}

/// From the answer to a request until a running task has it in its table. Over one connection: what a new one is counted as is known some
/// seconds later.
pub(super) fn delay() -> Result<Vec<Figure>> {
    let scene = Scene::start()?;
    let id = scene.task(&["access_log"])?;
    let path = format!("/api/v1/tasks/{id}/requests");
    let counted = || {
        let Ok(answer) = scene.agent.api.get_json(&path) else {
            return 0;
        };
        let rows = answer["operations"].as_array().into_iter().flatten();
        let came = rows.filter(|row| row["edge"]["server"]["pid"] == scene.envoy.pid());
        came.filter_map(|row| row["count"].as_u64()).sum::<u64>()
    };
    let client = ureq::Agent::new_with_defaults();
    let url = format!("http://127.0.0.1:{}/files/1", scene.envoy.port);
    let mut delays = Vec::new();
    for number in 0..=DELAYS {
        // At another moment of the second each time.
        thread::sleep(Duration::from_millis(u64::from(number * 37 % 100) * 10));
        let mut answer = client.get(&url).call().context("ask")?;
        // To its end: the connection is kept then.
        answer.body_mut().read_to_vec().context("read the answer")?;
        let answered = Instant::now();
        wait_until("the request is in the table", LIMIT, || {
            counted() > u64::from(number)
        })?;
        delays.push(answered.elapsed().as_secs_f64());
    }
    delays.remove(0);
    delays.sort_by(f64::total_cmp);
    let p99 = delays.iter().rev().nth(1).context("no delay")?;
    let p99 = figure("99 of 100", "s", vec![*p99], Some(Target::Below(SOON)));
    Ok(vec![
        figure("from the answer to the table", "s", delays, None),
        p99,
    ])
}
