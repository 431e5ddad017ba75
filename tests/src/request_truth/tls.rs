//! Cases of TLS.

use std::{net::Ipv4Addr, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{Counted, Length, Row, Truth, Verdict, View, http::python, judge};
use crate::{
    paths,
    peers::{
        free_port,
        gunicorn::{At, Gunicorn},
        haproxy::HaProxy,
        nginx::{Nginx, Speaks},
        short_tls::{self, Client, Load},
        tls,
        waiting::Waiting,
        watch::{Edges, Watch},
    },
    process::Launch,
};

const LIMIT: Duration = Duration::from_mins(1);
const CLIENTS: [Client; 2] = [
    Client {
        address: Ipv4Addr::new(127, 0, 0, 2),
        path: "/a",
    },
    Client {
        address: Ipv4Addr::new(127, 0, 0, 3),
        path: "/c",
    },
];

pub(super) fn short_to_nginx(folder: &Path, _view: View, length: Length) -> Result<Row> {
    tls::write_certificate(folder)?;
    let nginx = Nginx::start_with_workers(folder, Speaks::Tls, 1)?;
    for client in CLIENTS {
        let path = folder.join(client.path.trim_start_matches('/'));
        std::fs::write(path, [b'n'; 700]).context("write a file")?;
    }
    let connections = length.times(1000, 51_000);
    short_connections(folder, &nginx.pids()?, nginx.port, connections, length)
}

pub(super) fn short_to_haproxy(folder: &Path, _view: View, length: Length) -> Result<Row> {
    tls::write_certificate(folder)?;
    let haproxy = HaProxy::start(folder)?;
    let connections = length.times(1000, 15_000);
    short_connections(folder, &[haproxy.pid()], haproxy.port, connections, length)
}

pub(super) fn short_to_gunicorn(folder: &Path, _view: View, length: Length) -> Result<Row> {
    tls::write_certificate(folder)?;
    let port = free_port()?;
    let gunicorn = Gunicorn::start(folder, &At::TlsPort(port))?;
    let connections = length.times(500, 4500);
    short_connections(folder, &gunicorn.pids()?, port, connections, length)
}

/// Two clients, each with a path of its own: sessions, threads and descriptors of the server are used again at once.
fn short_connections(
    folder: &Path,
    servers: &[u32],
    port: u16,
    connections: u64,
    length: Length,
) -> Result<Row> {
    let certificate = folder.join("server.pem");
    let connections = usize::try_from(connections)?;
    // How many are open at once, and the connections of each client then. With few at once each waits 40 ms for a
    // delayed acknowledgement.
    let (some, many) = (connections / 50, connections / 8);
    let runs = match length {
        Length::Short => vec![(8, connections)],
        Length::Long => vec![(2, some), (8, many), (32, connections - some - many)],
    };
    let (mut told, mut wrong) = (0, Vec::new());
    for (at_once, connections) in runs {
        let watch = Watch::start_only(servers, &["--tls"])?;
        let load = Load {
            certificate: &certificate,
            port,
            clients: &CLIENTS,
            connections,
            at_once,
        };
        short_tls::run(load)?;
        let report = watch.finish()?;
        let operations = report.operations(Edges::To(port))?;
        let counts = operations.iter().map(|row| row["count"].as_u64());
        told += counts.flatten().sum::<u64>();
        let checked = short_tls::check(&report, load);
        wrong.extend(
            checked
                .err()
                .map(|error| format!("{at_once} at once: {error:#}")),
        );
    }
    let sent = u64::try_from(connections * CLIENTS.len())?;
    Ok(Row {
        truth: format!("{sent} of two clients"),
        told: if wrong.is_empty() {
            told.to_string()
        } else {
            format!("{told}; wrong: {}", wrong.join("; "))
        },
        verdict: match (wrong.is_empty(), told == sent) {
            (false, _) => Verdict::Silent,
            (true, true) => Verdict::Exact,
            (true, false) => Verdict::Said,
        },
    })
}

/// Java does TLS by itself, which is not read.
pub(super) fn java(folder: &Path, view: View, length: Length) -> Result<Row> {
    tls::write_certificate(folder)?;
    let source = paths::workspace().join("tests/workloads/OwnTls.java");
    let mut java = Launch::new(Path::new("/usr/bin/java"), "java", folder)
        .args([source])
        .args([folder.join("server.pem"), folder.join("server.key")])
        .start()?;
    let port = java.wait_for_line(LIMIT, |line| line.parse().ok())?;
    let watch = Watch::start_only(&view.pids(&[java.pid()], &[]), &["--tls"])?;
    let certificate = folder.join("server.pem");
    let connections = length.times(100, 200);
    short_tls::run(Load {
        certificate: &certificate,
        port,
        clients: &CLIENTS,
        connections: usize::try_from(connections)?,
        at_once: 4,
    })?;
    let report = watch.finish()?;
    let truth = CLIENTS.map(|client| (client.path.to_owned(), Counted::of(connections, "200")));
    judge(&report, Edges::To(port), &Truth::from(truth))
}

/// A connection over which requests go when the task begins. The answer says when the probes were in: each request behind
/// that must be there.
pub(super) fn late(folder: &Path, view: View, length: Length) -> Result<Row> {
    const PATH: &str = "/files/700";
    tls::write_certificate(folder)?;
    let nginx = Nginx::start_with_workers(folder, Speaks::Tls, 1)?;
    let client = python("https_client.py", folder, &[&nginx.port.to_string(), PATH])
        .args([folder.join("server.pem"), Waiting::file(folder)]);
    let client = Waiting::start(client, folder)?;
    let watch = Watch::start_only(&view.pids(&nginx.pids()?, &[client.pid()]), &["--tls"])?;
    let before = nginx.log(0)?.len();
    let more = usize::try_from(length.times(300, 5000))?;
    nginx.log(before + more)?;
    let output = client.go_on()?.finish(LIMIT)?;
    let report = watch.finish()?;
    let json = &report.json;
    let number = |value: &Value| value.as_u64().context("a time");
    let (from, to) = (&json["window"]["from_ns"], &json["window"]["to_ns"]);
    let probed = number(to)?.saturating_sub(number(&json["plaintext"]["attached_ns"])?);
    let (mut requests, mut unprobed, mut longest) = (0, 0, 0);
    for line in output.lines() {
        let (begun, ended) = line.split_once(' ').context("two times")?;
        let (begun, ended): (u64, u64) = (begun.parse()?, ended.parse()?);
        // The last one before may have ended inside.
        if ended >= number(from)? {
            requests += 1;
            unprobed += u64::from(begun < probed);
            longest = longest.max(ended - begun);
        }
    }
    ensure!(
        requests > unprobed && requests >= u64::try_from(more)?,
        "{requests} requests of the client, {unprobed} of them before the probes"
    );
    let counted = Counted::of(requests, "200").at_most(Duration::from_nanos(longest));
    let truth = Truth::from([(PATH.to_owned(), counted)]);
    let edges = Edges::To(nginx.port);
    let mut row = judge(&report, edges, &truth)?;
    let told = u64::try_from(report.samples(edges)?.len())?;
    row.truth = format!(
        "{}, {unprobed} of them before the probes were in",
        row.truth
    );
    if told + unprobed < requests {
        row.told += "; wrong: some after the probes were in are missing";
        row.verdict = Verdict::Silent;
    }
    Ok(row)
}
