//! Cases of HTTP/1.1.

use std::{
    io::{BufRead as _, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use super::{Counted, Length, Row, Truth, View, judge};
use crate::{
    paths,
    peers::{
        free_port,
        gunicorn::{At, Gunicorn},
        mptcp,
        nginx::{Nginx, Speaks},
        watch::{Edges, Watch},
    },
    process::{Launch, Running},
};

const LIMIT: Duration = Duration::from_mins(1);

/// A server over plain sockets, see the fixture.
pub(super) struct Server {
    pub(super) running: Running,
    pub(super) port: u16,
}

/// A file of the fixtures.
pub(super) fn fixture(name: &str) -> PathBuf {
    paths::workspace().join("tests/fixtures/peers").join(name)
}

/// One of them, run by Python.
pub(super) fn python(name: &str, folder: &Path, arguments: &[&str]) -> Launch {
    Launch::new(Path::new("/usr/bin/python3"), name, folder)
        .args([fixture(name)])
        .args(arguments)
}

impl Server {
    pub(super) fn start(folder: &Path) -> Result<Self> {
        Self::start_with(folder, &[])
    }

    fn start_with(folder: &Path, arguments: &[&str]) -> Result<Self> {
        let mut running = python("http1_server.py", folder, arguments).start()?;
        let port = running.wait_for_line(LIMIT, |line| line.parse().ok())?;
        Ok(Self { running, port })
    }

    fn watch(&self, view: View, options: &[&str]) -> Result<Watch> {
        let pids = view.pids(&[self.running.pid()], &[std::process::id()]);
        Watch::start_only(&pids, options)
    }
}

/// A connection of HTTP/1.1.
pub(super) struct Connection<S> {
    stream: BufReader<S>,
}

impl Connection<TcpStream> {
    /// To loopback.
    pub(super) fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).context("connect")?;
        stream.set_nodelay(true).context("set TCP_NODELAY")?;
        Ok(Self::over(stream))
    }
}

impl<S: Read + Write> Connection<S> {
    pub(super) fn over(stream: S) -> Self {
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Writes each part in a call of its own, then reads the answer.
    pub(super) fn ask(&mut self, parts: &[&[u8]]) -> Result<Answer> {
        let begun = Instant::now();
        for part in parts {
            self.stream.get_mut().write_all(part).context("send")?;
        }
        let (status, body) = self.answer()?;
        Ok(Answer {
            status,
            body,
            took: begun.elapsed(),
        })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).context("read a line")?;
        Ok(line.trim_end().to_owned())
    }

    fn skip(&mut self, bytes: u64) -> Result<()> {
        let read = std::io::copy(&mut (&mut self.stream).take(bytes), &mut std::io::sink());
        ensure!(read.context("read a body")? == bytes, "the body is shorter");
        Ok(())
    }

    /// The status and the bytes of the body.
    fn answer(&mut self) -> Result<(String, u64)> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).context("no status")?.to_owned();
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().context("a length")?;
            }
            is_chunked |= line == "transfer-encoding: chunked";
        }
        if !is_chunked {
            self.skip(length)?;
            return Ok((status, length));
        }
        let mut body = 0;
        loop {
            let size = u64::from_str_radix(&self.line()?, 16).context("the size of a chunk")?;
            self.skip(size)?;
            self.line()?;
            body += size;
            if size == 0 {
                return Ok((status, body));
            }
        }
    }
}

pub(super) struct Answer {
    pub(super) status: String,
    body: u64,
    took: Duration,
}

/// Adds an answer to the truth.
pub(super) fn count(truth: &mut Truth, path: &str, sent: u64, answer: &Answer) {
    let counted = truth.entry(path.to_owned()).or_insert_with(|| Counted {
        at_most: Some(Duration::ZERO),
        request_bytes: Some(0),
        response_bytes: Some(0),
        ..Counted::default()
    });
    counted.requests += 1;
    *counted.statuses.entry(answer.status.clone()).or_default() += 1;
    counted.at_most = counted.at_most.max(Some(answer.took));
    counted.request_bytes = counted.request_bytes.map(|bytes| bytes + sent);
    counted.response_bytes = counted.response_bytes.map(|bytes| bytes + answer.body);
}

fn post(path: &str, body: usize, more: &str) -> Vec<u8> {
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: truth\r\nContent-Length: {body}\r\n{more}\r\n");
    let mut bytes = head.into_bytes();
    bytes.resize(bytes.len() + body, b'b');
    bytes
}

/// The client's one write waits for the server, which reads slowly.
pub(super) fn upload(folder: &Path, view: View, length: Length) -> Result<Row> {
    const BYTES: usize = 8_000_000;
    let server = Server::start(folder)?;
    let watch = server.watch(view, &[])?;
    let mut truth = Truth::new();
    let mut shortest = Duration::MAX;
    for _ in 0..length.times(1, 3) {
        let answer = Connection::open(server.port)?.ask(&[&post("/slow", BYTES, "")])?;
        shortest = shortest.min(answer.took);
        count(&mut truth, "/slow", BYTES as u64, &answer);
    }
    if let Some(counted) = truth.get_mut("/slow") {
        // The client's clock also has its own wait for a processor.
        counted.at_least = Some(shortest.mul_f64(0.9));
    }
    let report = watch.finish()?;
    judge(&report, Edges::To(server.port), &truth)
}

pub(super) fn answers_in_chunks(folder: &Path, view: View, length: Length) -> Result<Row> {
    let server = Server::start(folder)?;
    let watch = server.watch(view, &[])?;
    let mut truth = Truth::new();
    let mut connection = Connection::open(server.port)?;
    // Chunks in writes of their own, all in one, and heads of chunks apart from what follows.
    for path in ["/chunks/own", "/chunks/one", "/chunks/torn"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: truth\r\n\r\n");
        for _ in 0..length.times(20, 200) {
            let answer = connection.ask(&[request.as_bytes()])?;
            count(&mut truth, path, 0, &answer);
        }
    }
    // A request whose end was not captured goes on until then.
    drop(connection);
    let report = watch.finish()?;
    judge(&report, Edges::To(server.port), &truth)
}

pub(super) fn requests_in_chunks(folder: &Path, view: View, length: Length) -> Result<Row> {
    let server = Server::start(folder)?;
    let watch = server.watch(view, &[])?;
    let mut truth = Truth::new();
    let mut connection = Connection::open(server.port)?;
    let head = "POST /put HTTP/1.1\r\nHost: truth\r\nTransfer-Encoding: chunked\r\n\r\n";
    for bytes in [1000_usize, 20_000] {
        let chunk = format!("{bytes:x}\r\n{}\r\n", "b".repeat(bytes));
        for _ in 0..length.times(20, 100) {
            let parts = [head.as_bytes(), chunk.as_bytes(), b"0\r\n\r\n"];
            let answer = connection.ask(&parts)?;
            count(&mut truth, "/put", bytes as u64, &answer);
            let answer = connection.ask(&[parts.concat().as_slice()])?;
            count(&mut truth, "/put", bytes as u64, &answer);
        }
    }
    // A request whose end was not captured goes on until then.
    drop(connection);
    let report = watch.finish()?;
    judge(&report, Edges::To(server.port), &truth)
}

/// A token of 1.5 KB, with the body in the same write; then a path that is longer than what is captured, and requests
/// right behind it.
pub(super) fn long_heads(folder: &Path, view: View, length: Length) -> Result<Row> {
    let server = Server::start(folder)?;
    let watch = server.watch(view, &[])?;
    let mut truth = Truth::new();
    let mut connection = Connection::open(server.port)?;
    let token = format!("Authorization: Bearer {}\r\n", "t".repeat(1500));
    for bytes in [200_usize, 20_000] {
        for _ in 0..length.times(20, 200) {
            let answer = connection.ask(&[&post("/put", bytes, &token)])?;
            count(&mut truth, "/put", bytes as u64, &answer);
        }
    }
    let long = format!("/{}", "p".repeat(3000));
    let answer = connection.ask(&[&post(&long, 0, "")])?;
    count(&mut truth, &long, 0, &answer);
    for _ in 0..60 {
        let answer = connection.ask(&[&post("/put", 10, "")])?;
        count(&mut truth, "/put", 10, &answer);
    }
    // A request whose end was not captured goes on until then.
    drop(connection);
    let report = watch.finish()?;
    let mut row = judge(&report, Edges::To(server.port), &truth)?;
    row.truth = row.truth.replace(&long, "/ppp…");
    Ok(row)
}

/// More connections in a few seconds than are followed at once, of which few are open.
pub(super) fn short_connections(folder: &Path, view: View, length: Length) -> Result<Row> {
    const THREADS: u64 = 4;
    const PAUSE: Duration = Duration::from_millis(2);
    let nginx = Nginx::start(folder, Speaks::Http1)?;
    let servers = nginx.pids()?;
    let pids = view.pids(&servers, &[std::process::id()]);
    let watch = Watch::start_only(&pids, &[])?;
    let each = length.times(3500, 15_000);
    let port = nginx.port;
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            thread::spawn(move || -> Result<()> {
                for _ in 0..each {
                    let begun = Instant::now();
                    let request =
                        b"GET /files/1 HTTP/1.1\r\nHost: truth\r\nConnection: close\r\n\r\n";
                    let answer = Connection::open(port)?.ask(&[request])?;
                    ensure!(answer.status == "200", "status {}", answer.status);
                    thread::sleep(PAUSE.saturating_sub(begun.elapsed()));
                }
                Ok(())
            })
        })
        .collect();
    for thread in threads {
        thread.join().ok().context("a client panicked")??;
    }
    let report = watch.finish()?;
    let truth = Truth::from([("/files/1".to_owned(), Counted::of(THREADS * each, "200"))]);
    judge(&report, Edges::To(port), &truth)
}

/// gunicorn's `sync` workers end each connection behind its answer, which has no length.
pub(super) fn chunks_until_close(folder: &Path, view: View, length: Length) -> Result<Row> {
    const THREADS: u64 = 4;
    let port = free_port()?;
    let server = Gunicorn::start(folder, &At::Port(port))?;
    let pids = view.pids(&server.pids()?, &[std::process::id()]);
    let watch = Watch::start_only(&pids, &[])?;
    let each = length.times(50, 200);
    let ask = move || -> Result<Vec<Answer>> {
        let request: &[u8] = b"GET /chunks HTTP/1.1\r\nHost: truth\r\n\r\n";
        (0..each)
            .map(|_| Connection::open(port)?.ask(&[request]))
            .collect()
    };
    let threads: Vec<_> = (0..THREADS).map(|_| thread::spawn(ask)).collect();
    let mut truth = Truth::new();
    for thread in threads {
        for answer in thread.join().ok().context("a client panicked")?? {
            count(&mut truth, "/chunks", 0, &answer);
        }
    }
    let report = watch.finish()?;
    judge(&report, Edges::To(port), &truth)
}

/// Both ends ask for MPTCP.
pub(super) fn over_mptcp(folder: &Path, view: View, length: Length) -> Result<Row> {
    let server = Server::start_with(folder, &["mptcp"])?;
    let watch = server.watch(view, &[])?;
    let mut truth = Truth::new();
    let mut connection = Connection::over(mptcp::connect(server.port)?);
    let request: &[u8] = b"GET /mptcp HTTP/1.1\r\nHost: truth\r\n\r\n";
    for _ in 0..length.times(50, 500) {
        count(&mut truth, "/mptcp", 0, &connection.ask(&[request])?);
    }
    let report = watch.finish()?;
    judge(&report, Edges::To(server.port), &truth)
}
