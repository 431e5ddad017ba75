//! Cases of more requests than may be read at 10 % of a CPU: counts are estimates, and say between which numbers the truth
//! lies.

use std::{path::Path, thread};

use anyhow::{Context as _, Result, ensure};

use super::{
    Length, Row, Verdict, View,
    http::Connection,
    judge::{Estimate, judge_estimate},
};
use crate::peers::{
    h2load::{self, Load},
    nginx::{Nginx, Speaks},
    watch::{Edges, Watch},
};

const PATH: &str = "/files/1";
const LARGE: &str = "/files/50000";
const BUDGET: &str = "--cpu-percent=10";
const CONNECTIONS: u32 = 4;

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

/// Asks on [`CONNECTIONS`] connections at once for each path, in this order, so many times on each.
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

/// An interval is right 95 times of 100: one that is wrong has to be outweighed by two that are right.
fn estimate(
    nginx: &Nginx,
    view: View,
    requests: u64,
    load: impl Fn(u16) -> Result<()>,
) -> Result<Row> {
    let mut wrong = 0;
    let mut told = Vec::new();
    loop {
        let pids = view.pids(&nginx.pids()?, &[std::process::id()]);
        let watch = Watch::start_only(&pids, &[BUDGET])?;
        load(nginx.port)?;
        let Estimate { row, is_missed } =
            judge_estimate(&watch.finish()?, Edges::To(nginx.port), requests)?;
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
