//! What receiving access logs costs the agent: CPU time and memory, an agent for each run. Every entry that was sent must have come.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use profiler_tests::{
    access_logs::{CONNECTED, Sent},
    agent::{Agent, ServeOptions},
    cleanup::scratch_directory,
    paths,
    peers::free_port,
    process::{Launch, Running},
    soak::{cpu_seconds, resident_mb},
    wait::wait_for,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::{Figure, LIMIT, figure};

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
}

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
    let mut runs: Vec<Vec<Run>> = settings.iter().map(|_| Vec::new()).collect();
    // In turns, so that a change of the machine meets all settings.
    for round in 0..options.rounds {
        for (setting, runs) in settings.iter().zip(&mut runs) {
            let run = measure(setting).with_context(|| format!("{setting:?}"))?;
            eprintln!(
                "round {} of {}: {setting:?}: {run:?}",
                round + 1,
                options.rounds
            );
            runs.push(run);
        }
    }
    let all = settings.iter().zip(&runs);
    Ok(all.flat_map(|(setting, runs)| of(setting, runs)).collect())
}

fn of(setting: &Setting, runs: &[Run]) -> Vec<Figure> {
    let Setting { streams, rate, .. } = setting;
    let name = |what: &str| match rate {
        0 => format!("{what}, {streams} streams, as fast as read"),
        rate => format!("{what}, {streams} streams, {rate} entries/s"),
    };
    let runs = |value: fn(&Run) -> f64| runs.iter().map(value).collect::<Vec<_>>();
    let of = |what: &str, unit: &'static str, value: fn(&Run) -> f64| {
        figure(&name(what), unit, runs(value), None)
    };
    vec![
        of("entries per CPU second", "1/s", |run: &Run| {
            run.per_cpu_second
        }),
        of("entries per second", "1/s", |run: &Run| run.per_second),
        of("CPU of the agent", "%", |run: &Run| run.cpu_percent),
        of("VmRSS before", "MB", |run: &Run| run.resting_mb),
        of("VmRSS, most", "MB", |run: &Run| run.most_mb),
    ]
}

fn measure(setting: &Setting) -> Result<Run> {
    let port = free_port()?;
    let mut agent = Agent::start_with(ServeOptions {
        arguments: vec![format!("--access-logs=127.0.0.1:{port}")],
        ..ServeOptions::default()
    })?;
    let (folder, _guard) = scratch_directory("access-log-replay")?;
    let mut replay = Launch::new(&paths::own_program("access-log-replay")?, "replay", &folder)
        .args([format!("--address=127.0.0.1:{port}")])
        .args([format!("--streams={}", setting.streams)])
        .args([format!("--rate={}", setting.rate)])
        .args([format!("--duration={}s", setting.duration.as_secs())])
        .start()?;
    replay.wait_for_line(LIMIT, |line| (line == CONNECTED).then_some(()))?;
    // The agent lists nobody before a first message.
    thread::sleep(QUIET);
    let resting_mb = resident_mb(agent.pid())?;
    let before = cpu_seconds(agent.pid())?;
    replay.signal(Signal::USR1)?;
    let most_mb = most_while_running(&agent, &mut replay)?;
    let output = replay.finish(LIMIT)?;
    let cpu = cpu_seconds(agent.pid())? - before;
    let last = output.lines().next_back().unwrap_or_default();
    let sent: Sent = serde_json::from_str(last).with_context(|| format!("parse {last:?}"))?;
    all_came(&agent, sent)?;
    let status = agent.stop()?;
    ensure!(status.success(), "the agent ended with {status}");
    let entries = as_float(sent.entries)?;
    Ok(Run {
        per_cpu_second: entries / cpu,
        per_second: entries / sent.seconds,
        cpu_percent: cpu / sent.seconds * 100.0,
        resting_mb,
        most_mb,
    })
}

fn most_while_running(agent: &Agent, replay: &mut Running) -> Result<f64> {
    let mut most: f64 = 0.0;
    while replay.is_running() {
        most = most.max(resident_mb(agent.pid())?);
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
