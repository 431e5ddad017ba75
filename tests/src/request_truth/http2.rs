//! Cases of HTTP/2 and gRPC.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{
    Counted, Length, Row, Truth, Verdict, View,
    http::{fixture, python},
    judge,
};
use crate::{
    paths,
    peers::{
        grpc::{self, Calls, GrpcServer},
        h2load::{self, Load},
        late::LateConnection,
        nginx::{Nginx, Speaks},
        waiting::Waiting,
        watch::{Edges, Report, Watch},
    },
    process::Launch,
};

const LIMIT: Duration = Duration::from_mins(1);
/// Bytes of an answer.
const LARGE: usize = 100_000;

/// A client that filled the table of headers before, and a server of Go, which reads a frame's head and its payload
/// apart.
pub(super) fn late_http2(folder: &Path, view: View, _length: Length) -> Result<Row> {
    let connection = LateConnection::start_go(folder)?;
    let (server, client) = (connection.server_pid(), connection.client_pid());
    let watch = Watch::start_only(&view.pids(&[server], &[client]), &[])?;
    let port = connection.port;
    let mut truth = Truth::new();
    for one in connection.go_on()? {
        let counted = truth.entry(one.path).or_default();
        counted.requests += 1;
        *counted.statuses.entry(one.status.to_string()).or_default() += 1;
        let took = Duration::from_nanos(one.at_most_ns);
        counted.at_most = counted.at_most.max(Some(took));
        counted.response_bytes = Some(counted.response_bytes.unwrap_or(0) + one.response_bytes);
    }
    let report = watch.finish()?;
    judge(&report, Edges::To(port), &truth)
}

/// The truth of calls by path and code.
fn calls(lines: impl Iterator<Item = (String, String)>) -> Truth {
    let mut truth = Truth::new();
    for (path, code) in lines {
        let counted = truth.entry(path).or_default();
        counted.requests += 1;
        *counted.statuses.entry(code).or_default() += 1;
    }
    truth
}

pub(super) fn late_grpc(folder: &Path, view: View, length: Length) -> Result<Row> {
    let server = GrpcServer::start(folder)?;
    let address = format!("127.0.0.1:{}", server.port);
    let rounds = u32::try_from(length.times(40, 200))?;
    let late = grpc::call_late(
        folder,
        &Calls {
            address: &address,
            rounds,
            connections: 1,
            netns: None,
        },
    )?;
    let pids = view.pids(&[server.pid()], &[late.pid()]);
    let watch = Watch::start_only(&pids, &[])?;
    let done = grpc::done(late.go_on()?)?;
    let report = watch.finish()?;
    let asked = done.asked.into_iter().map(|one| (one.path, one.status));
    judge(&report, Edges::To(server.port), &calls(asked))
}

pub(super) fn late_grpcio(folder: &Path, view: View, length: Length) -> Result<Row> {
    let (_, truth, report, edges) = grpcio(folder, view, "call", length.times(100, 500))?;
    judge(&report, edges, &truth)
}

pub(super) fn late_grpc_go(folder: &Path, view: View, length: Length) -> Result<Row> {
    let program = paths::tool("grpc-go-")?.join("grpc_peer");
    let mut server = Launch::new(&program, "grpc-go-server", folder)
        .args(["serve"])
        .start()?;
    let port: u16 = server.wait_for_line(LIMIT, |line| line.parse().ok())?;
    let client = Launch::new(&program, "grpc-go-client", folder)
        .args(["call", &port.to_string()])
        .args([Waiting::file(folder)])
        .args([length.times(200, 1000).to_string()]);
    let client = Waiting::start(client, folder)?;
    let pids = view.pids(&[server.pid()], &[client.pid()]);
    let watch = Watch::start_only(&pids, &[])?;
    let output = client.go_on()?.finish(LIMIT)?;
    let report = watch.finish()?;
    let lines = output.lines().filter_map(|line| {
        let (path, code) = line.split_once(' ')?;
        Some((path.to_owned(), code.to_owned()))
    });
    judge(&report, Edges::To(port), &calls(lines))
}

/// Answers that are larger than what is captured, some at once on each connection.
pub(super) fn large_answers(folder: &Path, view: View, length: Length) -> Result<Row> {
    const PATH: &str = "/large";
    let nginx = Nginx::start(folder, Speaks::Http2)?;
    fs::write(folder.join("large"), vec![b'n'; LARGE]).context("write a file")?;
    let pids = view.pids(&nginx.pids()?, &[std::process::id()]);
    let watch = Watch::start_only(&pids, &[])?;
    let requests = u32::try_from(length.times(200, 1000))?;
    h2load::run(
        folder,
        Load {
            base: &format!("http://127.0.0.1:{}", nginx.port),
            paths: &[PATH],
            requests,
            connections: 2,
            streams: 10,
            rate: None,
            http1: false,
            probed: false,
        },
    )?;
    let report = watch.finish()?;
    let counted = Counted::of(requests.into(), "200");
    let counted = counted.bytes(None, Some(u64::from(requests) * LARGE as u64));
    let truth = Truth::from([(PATH.to_owned(), counted)]);
    judge(&report, Edges::To(nginx.port), &truth)
}

/// Also the percentiles, of calls of which each tenth takes ten times as long.
pub(super) fn fresh_grpcio(folder: &Path, view: View, length: Length) -> Result<Row> {
    let (took, truth, report, edges) = grpcio(folder, view, "fresh", length.times(200, 1000))?;
    let mut row = judge(&report, edges, &truth)?;
    let operations = report.operations(edges)?;
    let wrong: Vec<String> = operations
        .iter()
        .filter_map(|operation| times_are_wrong(operation, &took))
        .collect();
    if !wrong.is_empty() {
        row.told = format!("{}; wrong: {}", row.told, wrong.join(", "));
        row.verdict = Verdict::Silent;
    }
    Ok(row)
}

/// How long calls took by the client's clock, ascending, by path.
type Took = BTreeMap<String, Vec<u64>>;

/// The server's own sleeps, see the fixture.
const SOON: Duration = Duration::from_millis(4);
const LATER: Duration = Duration::from_millis(40);
/// A percentile is the upper bound of its bucket, and clocks of programs are read before and behind the kernel's.
const BUCKET: f64 = 1.07;
const SLACK: Duration = Duration::from_millis(3);

/// Each call has a time, and the percentiles lie between what the server slept and what the client waited.
fn times_are_wrong(operation: &Value, took: &Took) -> Option<String> {
    let route = operation["route"].as_str()?;
    let Some(took) = took.get(route) else {
        return Some(format!("{route} has times"));
    };
    let times = &operation["latency_ns"];
    if times["count"] != took.len() {
        return Some(format!("{} of {} have times", times["count"], took.len()));
    }
    let percentiles = [("p50", 50, SOON), ("p99", 99, LATER)];
    percentiles.into_iter().find_map(|(name, percent, least)| {
        let told = Duration::from_nanos(times[name].as_u64()?);
        let least = if route.ends_with("/Same") {
            least
        } else {
            Duration::ZERO
        };
        let most = took[(took.len() * percent).div_ceil(100) - 1];
        let most = Duration::from_nanos(most).mul_f64(BUCKET) + SLACK;
        (told < least || told > most)
            .then(|| format!("{name} of {route}: {told:?}, not {least:?} to {most:?}"))
    })
}

/// Runs grpcio's server and client of one kind.
fn grpcio(
    folder: &Path,
    view: View,
    client: &str,
    times: u64,
) -> Result<(Took, Truth, Report, Edges)> {
    let mut server = python("grpcio_peer.py", folder, &["serve"]).start()?;
    let port: u16 = server.wait_for_line(LIMIT, |line| line.parse().ok())?;
    let client = Launch::new(Path::new("/usr/bin/python3"), "grpcio-client", folder)
        .args([fixture("grpcio_peer.py")])
        .args([client, &port.to_string()])
        .args([Waiting::file(folder)])
        .args([times.to_string()]);
    let client = Waiting::start(client, folder)?;
    let pids = view.pids(&[server.pid()], &[client.pid()]);
    let watch = Watch::start_only(&pids, &[])?;
    let output = client.go_on()?.finish(LIMIT)?;
    let report = watch.finish()?;
    let (mut took, mut lines) = (Took::new(), Vec::new());
    for line in output.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [path, code, nanoseconds] = words[..] else {
            bail!("the client says {line:?}");
        };
        took.entry(path.to_owned())
            .or_default()
            .push(nanoseconds.parse()?);
        lines.push((path.to_owned(), code.to_owned()));
    }
    for times in took.values_mut() {
        times.sort_unstable();
    }
    Ok((took, calls(lines.into_iter()), report, Edges::To(port)))
}
