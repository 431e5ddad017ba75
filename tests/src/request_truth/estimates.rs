//! Cases of more requests than may be read at 10 % of a CPU: counts are estimates, and say between which numbers the truth
//! lies.

use std::{
    iter,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use super::{
    Length, Row, Verdict, View,
    http::{Connection, Server},
    judge::{Estimate, SLACK, judge_estimate},
};
use crate::peers::{
    h2load::{self, Load},
    nginx::{Nginx, Speaks},
    watch::{Edges, Report, Watch},
};

const PATH: &str = "/files/1";
const LARGE: &str = "/files/50000";
const BUDGET: &str = "--cpu-percent=10";
const CONNECTIONS: u32 = 4;
/// nginx closes a connection after twice as many requests.
const ON_ONE_CONNECTION: u32 = 50_000;
/// How long the fixture waits at `/wait`.
const WAIT: Duration = Duration::from_millis(100);
/// Of so many samples one may be without status or time: what began before its connection was captured.
const SAMPLES_FOR_AN_UNKNOWN: usize = 8;

/// Few connections, each with a hundred requests at once.
pub(super) fn of_few_connections(folder: &Path, view: View, length: Length) -> Result<Row> {
    let nginx = Nginx::start(folder, Speaks::Http2)?;
    let requests = length.times(20_000, 100_000);
    estimate(&nginx, view, requests, |port| {
        h2load::run(
            folder,
            Load {
                base: &format!("http://127.0.0.1:{port}"),
                paths: &[PATH],
                requests: u32::try_from(requests)?,
                connections: CONNECTIONS,
                streams: 100,
                rate: None,
                http1: false,
                probed: false,
            },
        )?;
        Ok(())
    })
}

/// A connection for each request, as fast as they can.
pub(super) fn of_short_connections(folder: &Path, view: View, length: Length) -> Result<Row> {
    let each = length.times(5000, 20_000);
    estimate_http1(folder, view, &[(PATH, each)], Connections::Short)
}

/// The same, with a few large answers first: most of the bytes, and captured while there was room.
pub(super) fn of_short_connections_that_change(
    folder: &Path,
    view: View,
    length: Length,
) -> Result<Row> {
    estimate_http1(folder, view, &mix(length), Connections::Short)
}

/// The same over four connections that stay open.
pub(super) fn of_connections_that_change(folder: &Path, view: View, length: Length) -> Result<Row> {
    estimate_http1(folder, view, &mix(length), Connections::Kept)
}

fn mix(length: Length) -> [(&'static str, u64); 2] {
    let small = length.times(5000, 20_000);
    [(LARGE, small / 50), (PATH, small)]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connections {
    Kept,
    Short,
}

/// Asks on [`CONNECTIONS`] connections at once for each path, in this order, this many times on each.
fn estimate_http1(
    folder: &Path,
    view: View,
    paths: &[(&'static str, u64)],
    connections: Connections,
) -> Result<Row> {
    let nginx = Nginx::start(folder, Speaks::Http1)?;
    let each = paths.iter().map(|(_, times)| times).sum::<u64>();
    let paths = paths.to_vec();
    let ask = move |port: u16| -> Result<()> {
        let end = match connections {
            Connections::Kept => "",
            Connections::Short => "Connection: close\r\n",
        };
        let mut kept = None;
        for (path, times) in paths {
            let request = format!("GET {path} HTTP/1.1\r\nHost: truth\r\n{end}\r\n");
            for _ in 0..times {
                let mut connection = match kept.take() {
                    Some(connection) => connection,
                    None => Connection::open(port)?,
                };
                let answer = connection.ask(&[request.as_bytes()])?;
                ensure!(answer.status == "200", "status {}", answer.status);
                if connections == Connections::Kept {
                    kept = Some(connection);
                }
            }
        }
        Ok(())
    };
    estimate(&nginx, view, each * u64::from(CONNECTIONS), |port| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let ask = ask.clone();
                thread::spawn(move || ask(port))
            })
            .collect();
        for thread in threads {
            thread.join().ok().context("a client panicked")??;
        }
        Ok(())
    })
}

fn estimate(
    nginx: &Nginx,
    view: View,
    requests: u64,
    load: impl Fn(u16) -> Result<()>,
) -> Result<Row> {
    outweighed(requests, || {
        let pids = view.pids(&nginx.pids()?, &[std::process::id()]);
        let watch = Watch::start_only(&pids, &[BUDGET])?;
        load(nginx.port)?;
        judge_estimate(&watch.finish()?, Edges::To(nginx.port), requests)
    })
}

/// An interval is right 95 times of 100: one that is wrong has to be outweighed by two that are right.
fn outweighed(requests: u64, measure: impl Fn() -> Result<Estimate>) -> Result<Row> {
    let mut wrong = 0;
    let mut told = Vec::new();
    loop {
        let Estimate { row, is_missed } = measure()?;
        told.push(row.told);
        let is_silent = row.verdict == Verdict::Silent;
        wrong += usize::from(is_silent);
        // Right at once, wrong twice, or right twice. Without an interval there is no chance to be wrong.
        let is_wrong = wrong == 2 || (is_silent && !is_missed);
        if wrong == 0 || is_wrong || told.len() == 3 {
            return Ok(Row {
                truth: requests.to_string(),
                told: told.join("; then "),
                verdict: row.verdict,
            });
        }
    }
}

/// Answers that take longer than a connection's turn, beside connections that use up what may be read: each that is seen
/// has its status and its time.
pub(super) fn of_slow_answers(folder: &Path, view: View, length: Length) -> Result<Row> {
    let busy = Nginx::start(folder, Speaks::Http1)?;
    let slow = Server::start(folder)?;
    let requests = length.times(80, 600);
    outweighed(requests, || slow_answers(&busy, &slow, view, requests))
}

fn slow_answers(busy: &Nginx, slow: &Server, view: View, requests: u64) -> Result<Estimate> {
    let mut servers = busy.pids()?;
    servers.push(slow.running.pid());
    let watch = Watch::start_only(&view.pids(&servers, &[std::process::id()]), &[BUDGET])?;
    let ends = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (port, ends) = (busy.port, Arc::clone(&ends));
            thread::spawn(move || ask_until(port, &ends))
        })
        .collect();
    let longest = ask_slowly(slow.port, requests);
    ends.store(true, Ordering::Relaxed);
    for other in others {
        other.join().ok().context("a client panicked")??;
    }
    let report = watch.finish()?;
    let edges = Edges::To(slow.port);
    let Estimate { mut row, is_missed } = judge_estimate(&report, edges, requests)?;
    let wrong = wrong_samples(&report, edges, longest?)?;
    if !wrong.is_empty() {
        row.verdict = Verdict::Silent;
    }
    let is_missed = is_missed && wrong.is_empty();
    row.told = iter::once(row.told)
        .chain(wrong)
        .collect::<Vec<_>>()
        .join("; ");
    Ok(Estimate { row, is_missed })
}

fn ask_until(port: u16, ends: &AtomicBool) -> Result<()> {
    let request = format!("GET {PATH} HTTP/1.1\r\nHost: truth\r\n\r\n");
    while !ends.load(Ordering::Relaxed) {
        let mut connection = Connection::open(port)?;
        for _ in 0..ON_ONE_CONNECTION {
            connection.ask(&[request.as_bytes()])?;
        }
    }
    Ok(())
}

/// Asks on one connection, one request after the other; how long the longest took.
fn ask_slowly(port: u16, requests: u64) -> Result<Duration> {
    let mut connection = Connection::open(port)?;
    let mut longest = Duration::ZERO;
    for _ in 0..requests {
        let began = Instant::now();
        let answer = connection.ask(&[b"GET /wait HTTP/1.1\r\nHost: truth\r\n\r\n"])?;
        ensure!(answer.status == "500", "status {}", answer.status);
        longest = longest.max(began.elapsed());
    }
    Ok(longest)
}

/// Samples whose status or time is wrong; also when too many have none.
fn wrong_samples(report: &Report, edges: Edges, longest: Duration) -> Result<Vec<String>> {
    let samples = report.samples(edges)?;
    let mut unknown = 0;
    let mut wrong = Vec::new();
    for sample in &samples {
        let took = sample["duration_ns"].as_u64().map(Duration::from_nanos);
        match (sample["status"].as_u64(), took) {
            (Some(500), Some(took)) if took + SLACK >= WAIT && took <= longest + SLACK => {}
            (Some(status), Some(took)) => wrong.push(format!("{status} after {took:?}")),
            _ => unknown += 1,
        }
    }
    if samples.is_empty() || unknown > samples.len() / SAMPLES_FOR_AN_UNKNOWN + 1 {
        wrong.push(format!(
            "{unknown} of {} samples without status or time",
            samples.len()
        ));
    }
    Ok(wrong)
}
