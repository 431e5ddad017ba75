//! Cases over Unix sockets.

use std::{
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::{
    Counted, Length, Row, Truth, View,
    http::{Connection, count},
    judge,
    stores::Client,
};
use crate::peers::{
    gunicorn::{At, Gunicorn},
    postgres::Postgres,
    redis::Redis,
    watch::{Edges, Watch},
};

/// gunicorn behind a proxy listens so.
pub(super) fn http(folder: &Path, view: View, length: Length) -> Result<Row> {
    let path = folder.join("gunicorn.sock");
    let server = Gunicorn::start(folder, &At::Socket(path.clone()))?;
    let pids = view.pids(&server.pids()?, &[std::process::id()]);
    let watch = Watch::start_only(&pids, &[])?;
    let mut truth = Truth::new();
    let request: &[u8] = b"GET /unix HTTP/1.1\r\nHost: truth\r\n\r\n";
    for _ in 0..length.times(20, 200) {
        let stream = UnixStream::connect(&path).context("connect")?;
        let answer = Connection::over(stream).ask(&[request])?;
        count(&mut truth, "/unix", 0, &answer);
    }
    let report = watch.finish()?;
    judge(&report, Edges::Unix, &truth)
}

pub(super) fn postgresql(folder: &Path, view: View, length: Length) -> Result<Row> {
    let postgres = Postgres::start(folder)?;
    // Each connection has a process of its own, which the client's start brings about.
    let pids = view.pids(&[postgres.pid()], &[std::process::id()]);
    let watch = Watch::start_only(&pids, &[])?;
    let times = length.times(20, 200);
    let statements: Vec<&str> = (0..times).map(|_| "SELECT 1").collect();
    let begun = Instant::now();
    postgres.psql_unix(folder, &statements)?;
    let counted = Counted::of(times, "ok").at_most(begun.elapsed());
    let report = watch.finish()?;
    let truth = Truth::from([
        ("SELECT".to_owned(), counted),
        ("CONNECT".to_owned(), Counted::of(1, "ok")),
    ]);
    judge(&report, Edges::Unix, &truth)
}

pub(super) fn redis(folder: &Path, view: View, length: Length) -> Result<Row> {
    let redis = Redis::start(folder)?;
    let pids = view.pids(&[redis.pid()], &[std::process::id()]);
    let watch = Watch::start_only(&pids, &[])?;
    let stream = UnixStream::connect(&redis.socket).context("connect")?;
    let mut client = Client::over(stream);
    let times = length.times(100, 1000);
    let mut longest = Duration::ZERO;
    for _ in 0..times {
        longest = longest.max(client.ask(&["ECHO", "hello"])?);
    }
    let report = watch.finish()?;
    let counted = Counted::of(times, "ok").at_most(longest);
    let truth = Truth::from([("ECHO".to_owned(), counted)]);
    judge(&report, Edges::Unix, &truth)
}
