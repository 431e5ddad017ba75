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
    let nginx = Nginx::start(folder, Speaks::Http1)?;
    let each = length.times(5000, 20_000);
    let ask = move |port: u16| -> Result<()> {
        let request = format!("GET {PATH} HTTP/1.1\r\nHost: truth\r\nConnection: close\r\n\r\n");
        for _ in 0..each {
            let answer = Connection::open(port)?.ask(&[request.as_bytes()])?;
            ensure!(answer.status == "200", "status {}", answer.status);
        }
        Ok(())
    };
    estimate(&nginx, view, each * u64::from(CONNECTIONS), |port| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|_| thread::spawn(move || ask(port)))
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
                truth: format!("{requests} {PATH}"),
                told: told.join("; then "),
                verdict: row.verdict,
            });
        }
    }
}
