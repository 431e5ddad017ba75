//! What receiving access logs costs the agent, and a collector of OpenTelemetry that drops them: CPU time and memory, a process for each run.
//! Every entry that was sent must have come. `--only` has what a real Envoy shows instead.

#[path = "access_log_envoy.rs"]
mod envoy;

use std::{fs, net::TcpStream, path::Path, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use profiler_tests::{
    access_logs::{CONNECTED, Sent},
    agent::{Agent, ServeOptions},
    cleanup::scratch_directory,
    paths,
    peers::free_port,
    process::{Launch, Running},
    soak::{cpu_seconds, resident_mb},
    wait::{wait_for, wait_until},
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{Figure, LIMIT, Target, figure};

/// For the agent to find the processes behind the connections, and to rest.
const QUIET: Duration = Duration::from_secs(3);
/// Between two readings of the memory.
const EVERY: Duration = Duration::from_millis(250);
const PATH: &str = "/api/v1/access-logs";
/// Streams of what is sent as fast as the agent reads.
const FAST_STREAMS: u32 = 8;

#[derive(Args)]
pub(crate) struct Options {
    /// Runs of each setting
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=50))]
    pub(crate) rounds: u32,
    /// Length of each run in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..=600))]
    pub(crate) seconds: u64,
    /// Entries per second of those that come at a rate
    #[arg(long, default_value_t = 25_000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Numbers of streams that entries come by at this rate
    #[arg(long, value_delimiter = ',', default_values_t = [500, 2_300])]
    streams: Vec<u32>,
    /// What is measured
    #[arg(long, value_enum, default_value = "replay")]
    only: Part,
    /// Requests through Envoy: all of them, of `joins` for each number of connections
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    requests: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// What receiving costs, by messages that are sent again
    Replay,
    /// Whether each of the requests through Envoy counts once
    Counts,
    /// Whether entries are joined with the right requests at sockets, and the times of those
    Joins,
    /// What an Envoy's requests feel of an agent that gets more than it can read
    Overload,
    /// How long it takes until a request is in the table
    Delay,
}

/// Who receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Agent,
    Collector,
}

/// Entries for each CPU second, by the agent: at least so many, and so many times those of the collector.
const PER_CPU_SECOND: f64 = 200_000.0;
const TIMES_THE_COLLECTOR: f64 = 5.0;
/// Megabytes with this many streams.
const MEMORY: [(u32, f64); 2] = [(500, 48.0), (2_300, 120.0)];

/// How entries come.
#[derive(Clone, Copy, Debug)]
struct Setting {
    streams: u32,
    /// Entries per second; 0: as fast as the agent reads.
    rate: u32,
    duration: Duration,
}

/// What a run was measured to be.
#[derive(Clone, Copy, Debug)]
struct Run {
    per_cpu_second: f64,
    per_second: f64,
    cpu_percent: f64,
    /// Before the first entry, with all streams open.
    resting_mb: f64,
    /// The most while entries came.
    most_mb: f64,
}

pub(crate) fn figures(options: &Options) -> Result<Vec<Figure>> {
    match options.only {
        Part::Replay => replayed(options),
        Part::Counts => envoy::counts(options.requests),
        Part::Joins => envoy::joins(options.requests),
        Part::Overload => envoy::overload(options.rounds, options.seconds),
        Part::Delay => envoy::delay(),
    }
}

fn replayed(options: &Options) -> Result<Vec<Figure>> {
    let duration = Duration::from_secs(options.seconds);
    let fast = Setting {
        streams: FAST_STREAMS,
        rate: 0,
        duration,
    };
    let at_rate = options.streams.iter().map(|&streams| Setting {
        streams,
        rate: options.rate,
        duration,
    });
    let settings: Vec<Setting> = [fast].into_iter().chain(at_rate).collect();
    let mut runs: Vec<[Vec<Run>; 2]> = settings.iter().map(|_| Default::default()).collect();
    // In turns, so that a change of the machine meets all settings.
    for round in 0..options.rounds {
        for (setting, [agent, collector]) in settings.iter().zip(&mut runs) {
            for (by, runs) in [(By::Agent, agent), (By::Collector, collector)] {
                let run = measure(setting, by).with_context(|| format!("{by:?}: {setting:?}"))?;
                eprintln!(
                    "round {} of {}, {by:?}: {setting:?}: {run:?}",
                    round + 1,
                    options.rounds
                );
                runs.push(run);
            }
        }
    }
    let all = settings.iter().zip(&runs);
    Ok(all.flat_map(|(setting, runs)| of(setting, runs)).collect())
}

fn of(setting: &Setting, [agent, collector]: &[Vec<Run>; 2]) -> Vec<Figure> {
    let Setting { streams, rate, .. } = setting;
    let name = |what: &str, by: By| {
        let who = match by {
            By::Agent => "",
            By::Collector => "collector: ",
        };
        match rate {
            0 => format!("{who}{what}, {streams} streams, as fast as read"),
            rate => format!("{who}{what}, {streams} streams, {rate} entries/s"),
        }
    };
    let memory = MEMORY.into_iter().find(|(number, _)| number == streams);
    let memory = memory.map(|(_, most)| Target::Below(most));
    let mut figures = Vec::new();
    for (by, runs) in [(By::Agent, agent), (By::Collector, collector)] {
        let runs = |value: fn(&Run) -> f64| runs.iter().map(value).collect::<Vec<_>>();
        let of = |what: &str, unit: &'static str, value: fn(&Run) -> f64, target| {
            // As fast as they come, the agent counts most of them and reads none.
            let target = Some(target)
                .filter(|_| by == By::Agent && *rate > 0)
                .flatten();
            figure(&name(what, by), unit, runs(value), target)
        };
        let enough = Some(Target::AtLeast(PER_CPU_SECOND));
        figures.extend([
            of(
                "entries per CPU second",
                "1/s",
                |run| run.per_cpu_second,
                enough,
            ),
            of("entries per second", "1/s", |run| run.per_second, None),
            of("CPU", "%", |run| run.cpu_percent, None),
            of("VmRSS before", "MB", |run| run.resting_mb, None),
            of("VmRSS, most", "MB", |run| run.most_mb, memory),
        ]);
    }
    let pairs = agent.iter().zip(collector);
    let times = pairs.map(|(agent, collector)| agent.per_cpu_second / collector.per_cpu_second);
    figures.push(figure(
        &name(
            "entries per CPU second, by those of the collector",
            By::Agent,
        ),
        "",
        times.collect(),
        Some(Target::AtLeast(TIMES_THE_COLLECTOR)).filter(|_| *rate > 0),
    ));
    figures
}

fn start_agent(port: u16) -> Result<Agent> {
    Agent::start_with(ServeOptions {
        arguments: vec![format!("--access-logs=127.0.0.1:{port}")],
        ..ServeOptions::default()
    })
}

/// What receives in one run.
#[derive(Debug)]
enum Receiver {
    Agent(Agent),
    Collector(Running),
}

impl Receiver {
    fn start(by: By, port: u16, folder: &Path) -> Result<Self> {
        let listen = format!("127.0.0.1:{port}");
        if by == By::Agent {
            return start_agent(port).map(Self::Agent);
        }
        let file = folder.join("collector.yaml");
        let configuration = json!({
            "receivers": { "envoyals": { "endpoint": listen } },
            "exporters": { "nop": null },
            "service": {
                "telemetry": { "metrics": { "level": "none" } },
                "pipelines": { "logs": { "receivers": ["envoyals"], "exporters": ["nop"] } },
            },
        });
        fs::write(&file, configuration.to_string()).context("write its configuration")?;
        let program = paths::tool("als-collector-")?.join("als_collector");
        let collector = Launch::new(&program, "als-collector", folder)
            .args([format!("--config=file:{}", file.display())])
            .start()?;
        wait_until("the collector listens", LIMIT, || {
            TcpStream::connect(&listen).is_ok()
        })?;
        Ok(Self::Collector(collector))
    }

    fn pid(&self) -> u32 {
        match self {
            Self::Agent(agent) => agent.pid(),
            Self::Collector(collector) => collector.pid(),
        }
    }
}

fn measure(setting: &Setting, by: By) -> Result<Run> {
    let port = free_port()?;
    let (folder, _guard) = scratch_directory("access-log-replay")?;
    let receiver = Receiver::start(by, port, &folder)?;
    let pid = receiver.pid();
    let mut replay = start_replay(setting, port, &folder)?;
    // The agent lists nobody before a first message.
    thread::sleep(QUIET);
    let resting_mb = resident_mb(pid)?;
    let before = cpu_seconds(pid)?;
    replay.signal(Signal::USR1)?;
    let most_mb = most_while_running(pid, &mut replay)?;
    let output = replay.finish(LIMIT)?;
    let cpu = cpu_seconds(pid)? - before;
    let last = output.lines().next_back().unwrap_or_default();
    let sent: Sent = serde_json::from_str(last).with_context(|| format!("parse {last:?}"))?;
    // The collector has read every stream to its end, and counts nothing.
    if let Receiver::Agent(mut agent) = receiver {
        all_came(&agent, sent)?;
        let status = agent.stop()?;
        ensure!(status.success(), "the agent ended with {status}");
    }
    let entries = as_float(sent.entries)?;
    Ok(Run {
        per_cpu_second: entries / cpu,
        per_second: entries / sent.seconds,
        cpu_percent: cpu / sent.seconds * 100.0,
        resting_mb,
        most_mb,
    })
}

/// It sends as soon as it gets SIGUSR1.
fn start_replay(setting: &Setting, port: u16, folder: &Path) -> Result<Running> {
    let program = paths::own_program("access-log-replay")?;
    let mut replay = Launch::new(&program, "replay", folder)
        .args([format!("--address=127.0.0.1:{port}")])
        .args([format!("--streams={}", setting.streams)])
        .args([format!("--rate={}", setting.rate)])
        .args([format!("--duration={}s", setting.duration.as_secs())])
        .start()?;
    replay.wait_for_line(LIMIT, |line| (line == CONNECTED).then_some(()))?;
    Ok(replay)
}

fn most_while_running(pid: u32, replay: &mut Running) -> Result<f64> {
    let mut most: f64 = 0.0;
    while replay.is_running() {
        most = most.max(resident_mb(pid)?);
        thread::sleep(EVERY);
    }
    Ok(most)
}

/// What the agent counted is what was sent, and it could read all of it.
fn all_came(agent: &Agent, sent: Sent) -> Result<()> {
    let received = wait_for("all entries are counted", LIMIT, || {
        let received = sum(agent, "received").ok()?;
        (received >= sent.entries).then_some(received)
    });
    let received = match received {
        Ok(received) => received,
        Err(_) => sum(agent, "received")?,
    };
    ensure!(
        received == sent.entries,
        "{} entries were sent, {received} received",
        sent.entries
    );
    for name in ["unreadable", "refused_messages"] {
        let count = sum(agent, name)?;
        ensure!(count == 0, "{count} {name}");
    }
    Ok(())
}

/// Of all rows: what has not found its process yet has one of its own.
fn sum(agent: &Agent, name: &str) -> Result<u64> {
    let answer = agent.api.get_json(PATH)?;
    let rows = answer["envoys"].as_array().context("no list of Envoys")?;
    let of = |row: &Value| row[name].as_u64().with_context(|| format!("no {name}"));
    rows.iter().map(of).sum()
}

fn as_float(entries: u64) -> Result<f64> {
    Ok(f64::from(
        u32::try_from(entries).context("too many entries")?,
    ))
}
