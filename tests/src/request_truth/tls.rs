//! Cases of TLS.

use std::{net::Ipv4Addr, path::Path};

use anyhow::{Context as _, Result};

use super::{Length, Row, Verdict, View};
use crate::peers::{
    nginx::{Nginx, Speaks},
    short_tls::{self, Client, Load},
    tls,
    watch::{Edges, Watch},
};

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

/// Two clients, each with a path of its own: sessions, threads and descriptors of the server are used again at once.
pub(super) fn short_connections(folder: &Path, _view: View, length: Length) -> Result<Row> {
    tls::write_certificate(folder)?;
    let nginx = Nginx::start_with_workers(folder, Speaks::Tls, 1)?;
    for client in CLIENTS {
        let path = folder.join(client.path.trim_start_matches('/'));
        std::fs::write(path, [b'n'; 700]).context("write a file")?;
    }
    let certificate = folder.join("server.pem");
    let connections = usize::try_from(length.times(1000, 17_000))?;
    let runs: &[usize] = match length {
        Length::Short => &[8],
        Length::Long => &[2, 8, 32],
    };
    let (mut told, mut wrong) = (0, Vec::new());
    for at_once in runs {
        let watch = Watch::start_only(&nginx.pids()?, &["--tls"])?;
        let load = Load {
            certificate: &certificate,
            port: nginx.port,
            clients: &CLIENTS,
            connections,
            at_once: *at_once,
        };
        short_tls::run(load)?;
        let report = watch.finish()?;
        let operations = report.operations(Edges::To(nginx.port))?;
        let counts = operations.iter().map(|row| row["count"].as_u64());
        told += counts.flatten().sum::<u64>();
        let checked = short_tls::check(&report, load);
        wrong.extend(
            checked
                .err()
                .map(|error| format!("{at_once} at once: {error:#}")),
        );
    }
    let sent = u64::try_from(connections * CLIENTS.len() * runs.len())?;
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
