//! Cases of Redis, PostgreSQL and MariaDB.

use std::{
    io::{BufRead as _, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{Counted, Length, Row, Truth, View, judge};
use crate::{
    paths,
    peers::{
        mariadb::MariaDb,
        postgres::Postgres,
        redis::Redis,
        waiting::Waiting,
        watch::{Edges, Watch},
    },
    process::Launch,
};

const LIMIT: Duration = Duration::from_mins(1);

/// A connection that speaks RESP, the protocol of Redis.
pub(super) struct Client<S> {
    stream: BufReader<S>,
}

impl Client<TcpStream> {
    fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).context("connect")?;
        stream.set_nodelay(true).context("set TCP_NODELAY")?;
        Ok(Self::over(stream))
    }
}

impl<S: Read + Write> Client<S> {
    pub(super) fn over(stream: S) -> Self {
        Self {
            stream: BufReader::new(stream),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(bytes).context("send")
    }

    pub(super) fn ask(&mut self, words: &[&str]) -> Result<Duration> {
        let begun = Instant::now();
        self.send(&command(words))?;
        self.answer()?;
        Ok(begun.elapsed())
    }

    /// Reads one answer, which must be no error.
    fn answer(&mut self) -> Result<()> {
        let mut line = String::new();
        self.stream.read_line(&mut line).context("read an answer")?;
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "+" | ":" => {}
            "$" => {
                let bytes: u64 = rest.parse().context("a length")?;
                let body = &mut (&mut self.stream).take(bytes + 2);
                std::io::copy(body, &mut std::io::sink()).context("read a string")?;
            }
            "*" => {
                for _ in 0..rest.parse().context("a number of parts")? {
                    self.answer()?;
                }
            }
            _ => bail!("the server says {line:?}"),
        }
        Ok(())
    }
}

fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

/// Lists of 20 KB, and a short command behind each.
pub(super) fn redis_large(folder: &Path, view: View, length: Length) -> Result<Row> {
    let redis = Redis::start(folder)?;
    let mut client = Client::open(redis.port)?;
    for _ in 0..200 {
        client.ask(&["RPUSH", "list", &"v".repeat(100)])?;
    }
    let pids = view.pids(&[redis.pid()], &[std::process::id()]);
    let watch = Watch::start_only(&pids, &[])?;
    let mut client = Client::open(redis.port)?;
    let times = length.times(200, 2000);
    let mut longest = [Duration::ZERO; 2];
    for _ in 0..times {
        longest[0] = longest[0].max(client.ask(&["LRANGE", "list", "0", "-1"])?);
        longest[1] = longest[1].max(client.ask(&["ECHO", "hello"])?);
    }
    let report = watch.finish()?;
    let [lists, echoes] = longest;
    let truth = Truth::from([
        ("LRANGE".to_owned(), Counted::of(times, "ok").at_most(lists)),
        ("ECHO".to_owned(), Counted::of(times, "ok").at_most(echoes)),
    ]);
    judge(&report, Edges::To(redis.port), &truth)
}

pub(super) fn redis_pipelines(folder: &Path, view: View, length: Length) -> Result<Row> {
    const DEEP: u64 = 100;
    let redis = Redis::start(folder)?;
    let pids = view.pids(&[redis.pid()], &[std::process::id()]);
    let watch = Watch::start_only(&pids, &[])?;
    let mut client = Client::open(redis.port)?;
    let times = length.times(20, 200);
    let mut longest = Duration::ZERO;
    for _ in 0..times {
        let one = command(&["SET", "key", &"v".repeat(20)]);
        let all: Vec<u8> = (0..DEEP).flat_map(|_| one.clone()).collect();
        let begun = Instant::now();
        client.send(&all)?;
        for _ in 0..DEEP {
            client.answer()?;
        }
        longest = longest.max(begun.elapsed());
    }
    let report = watch.finish()?;
    let counted = Counted::of(times * DEEP, "ok").at_most(longest);
    let truth = Truth::from([("SET".to_owned(), counted)]);
    judge(&report, Edges::To(redis.port), &truth)
}

/// One connection of a pool, which was there before.
pub(super) fn late_mariadb(folder: &Path, view: View, length: Length) -> Result<Row> {
    let mariadb = MariaDb::start(folder)?;
    let script = paths::workspace().join("tests/fixtures/peers/mariadb_client.py");
    let times = length.times(100, 300);
    let client = Launch::new(Path::new("/usr/bin/python3"), "mariadb-client", folder)
        .args([&script])
        .args([mariadb.port.to_string(), times.to_string()])
        .args([Waiting::file(folder)]);
    let client = Waiting::start(client, folder)?;
    let pids = view.pids(&[mariadb.pid()], &[client.pid()]);
    let watch = Watch::start_only(&pids, &[])?;
    let output = client.go_on()?.finish(LIMIT)?;
    let report = watch.finish()?;
    let longest: u64 = output.trim().parse().context("the client's longest time")?;
    let counted = Counted::of(times, "ok").at_most(Duration::from_nanos(longest));
    let truth = Truth::from([("SELECT".to_owned(), counted)]);
    judge(&report, Edges::To(mariadb.port), &truth)
}

/// Statements that were prepared before, in a connection that was there before, by their number.
pub(super) fn late_prepared(folder: &Path, view: View, length: Length) -> Result<Row> {
    let mariadb = MariaDb::start(folder)?;
    let script = paths::workspace().join("tests/fixtures/peers/mariadb_prepared.pl");
    let times = length.times(100, 300);
    let client = Launch::new(Path::new("/usr/bin/perl"), "mariadb-client", folder)
        .args([&script])
        .args([mariadb.port.to_string(), times.to_string()])
        .args([Waiting::file(folder)]);
    let client = Waiting::start(client, folder)?;
    let pids = view.pids(&[mariadb.pid()], &[client.pid()]);
    let watch = Watch::start_only(&pids, &[])?;
    let output = client.go_on()?.finish(LIMIT)?;
    let report = watch.finish()?;
    let executed = mariadb.logged()?;
    let executed = executed.iter().filter(|(kind, _)| kind == "Execute");
    ensure!(
        u64::try_from(executed.count())? == times + 1,
        "the client does not prepare its statement at the server"
    );
    let longest: u64 = output.trim().parse().context("the client's longest time")?;
    let counted = Counted::of(times, "ok").at_most(Duration::from_nanos(longest));
    let truth = Truth::from([("EXECUTE".to_owned(), counted)]);
    judge(&report, Edges::To(mariadb.port), &truth)
}

pub(super) fn postgresql_large(folder: &Path, view: View, length: Length) -> Result<Row> {
    let postgres = Postgres::start(folder)?;
    // Each connection has a process of its own, which the client's start brings about.
    let pids = view.pids(&[postgres.pid()], &[std::process::id()]);
    let watch = Watch::start_only(&pids, &[])?;
    let times = length.times(100, 800);
    let large = "SELECT repeat('v', 100) FROM generate_series(1, 20)";
    let statements: Vec<&str> = (0..times).map(|_| large).collect();
    let begun = Instant::now();
    postgres.psql(folder, &statements)?;
    let counted = Counted::of(times, "ok").at_most(begun.elapsed());
    let report = watch.finish()?;
    let truth = Truth::from([
        ("SELECT".to_owned(), counted),
        ("CONNECT".to_owned(), Counted::of(1, "ok")),
    ]);
    judge(&report, Edges::To(postgres.port), &truth)
}
