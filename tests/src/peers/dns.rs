//! dnsmasq with dig, over UDP and TCP.

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{asked::Asked, free_port};
use crate::{
    process::{Launch, Running},
    wait::wait_until,
};

const LIMIT: Duration = Duration::from_secs(30);

/// Questions, and what becomes of them.
pub const QUESTIONS: [(&str, &str, &str); 6] = [
    ("one.test", "A", "ok"),
    ("none.test", "A", "NXDOMAIN"),
    ("other.example", "MX", "REFUSED"),
    ("text.test", "TXT", "ok"),
    ("one.test", "AAAA", "ok"),
    ("www.deep.one.test", "A", "ok"),
];

/// A running dnsmasq.
#[derive(Debug)]
pub struct Dnsmasq {
    server: Running,
    pub port: u16,
    log: PathBuf,
}

impl Dnsmasq {
    pub fn start(folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let log = folder.join("queries.log");
        let mut server = Launch::new(Path::new("/usr/sbin/dnsmasq"), "dnsmasq", folder)
            // Without it a child would answer each connection.
            .args([
                "--no-daemon",
                "--user=root",
                "--conf-file=/dev/null",
                "--pid-file=",
            ])
            .args(["--listen-address=127.0.0.1", "--bind-interfaces"])
            .args([
                "--no-resolv",
                "--no-hosts",
                "--local=/test/",
                "--log-queries",
            ])
            .args(["--host-record=one.test,192.0.2.1"])
            .args(["--host-record=www.deep.one.test,192.0.2.2"])
            .args(["--txt-record=text.test,hello"])
            .args([
                format!("--port={port}"),
                format!("--log-facility={}", log.display()),
            ])
            .start()?;
        wait_until("dnsmasq listens", LIMIT, || {
            !server.is_running() || TcpStream::connect(("127.0.0.1", port)).is_ok()
        })?;
        ensure!(server.is_running(), "it ended: {}", server.errors());
        Ok(Self { server, port, log })
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Asks all questions `times` times, over TCP with `options` that say so; dig's pid and what it asked.
    pub fn dig(&self, folder: &Path, times: usize, options: &[&str]) -> Result<(u32, Vec<Asked>)> {
        let file = folder.join("questions");
        let lines = QUESTIONS.map(|(name, kind, _status)| format!("{name} {kind}\n"));
        fs::write(&file, lines.concat().repeat(times)).context("write the questions")?;
        let client = Launch::new(Path::new("/usr/bin/dig"), "dig", folder)
            .args(["@127.0.0.1", "-p", &self.port.to_string(), "-f"])
            .args([&file])
            .args(["+tries=1", "+qr"])
            .args(options)
            .start()?;
        let pid = client.pid();
        let output = client.finish(LIMIT)?;
        let sizes = |prefix: &str| -> Result<Vec<u64>> {
            let lines = output.lines().filter_map(|line| line.strip_prefix(prefix));
            lines.map(|size| Ok(size.parse()?)).collect()
        };
        let (sent, received) = (sizes(";; QUERY SIZE: ")?, sizes(";; MSG SIZE  rcvd: ")?);
        let all = QUESTIONS.len() * times;
        ensure!((sent.len(), received.len()) == (all, all), "dig: {output}");
        let questions = QUESTIONS.iter().cycle().zip(sent.into_iter().zip(received));
        let asked = questions.map(|((name, kind, status), (sent, received))| {
            Asked::new(kind, &format!("{kind} {name}"), status).sizes(sent, received)
        });
        Ok((pid, asked.collect()))
    }

    /// How many questions the server was asked, by its own log.
    pub fn logged(&self) -> Result<usize> {
        let log = fs::read_to_string(&self.log).context("read the log")?;
        Ok(log.matches(" query[").count())
    }
}
