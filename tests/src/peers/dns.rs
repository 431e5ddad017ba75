//! dnsmasq with dig, over UDP and TCP.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::asked::Asked;
use crate::{
    netns::Netns,
    process::{Launch, Running},
    wait::wait_until,
};

const LIMIT: Duration = Duration::from_mins(1);

/// Questions, and what becomes of them.
pub const QUESTIONS: [(&str, &str, &str); 6] = [
    ("one.test", "A", "ok"),
    ("none.test", "A", "NXDOMAIN"),
    ("other.example", "MX", "REFUSED"),
    ("text.test", "TXT", "ok"),
    ("one.test", "AAAA", "ok"),
    ("www.deep.one.test", "A", "ok"),
];

/// Where name servers listen.
pub const PORT: u16 = 53;

/// A running dnsmasq, in a network namespace of its own.
#[derive(Debug)]
pub struct Dnsmasq {
    server: Running,
    log: PathBuf,
    netns: Netns,
}

impl Dnsmasq {
    pub fn start(folder: &Path) -> Result<Self> {
        let netns = Netns::create("dns")?;
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
                format!("--port={PORT}"),
                format!("--log-facility={}", log.display()),
            ])
            .netns(&netns)
            .start()?;
        wait_until("dnsmasq listens", LIMIT, || {
            let started = fs::read_to_string(&log).is_ok_and(|log| log.contains("started"));
            started || !server.is_running()
        })?;
        ensure!(server.is_running(), "it ended: {}", server.errors());
        Ok(Self { server, log, netns })
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
            .args(["@127.0.0.1", "-f"])
            .args([&file])
            .args(["+tries=1", "+qr"])
            .args(options)
            .netns(&self.netns)
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
        // Over TCP the length stands before each message (RFC 1035 section 4.2.2).
        let more = if options.contains(&"+tcp") { 2 } else { 0 };
        let questions = QUESTIONS.iter().cycle().zip(sent.into_iter().zip(received));
        let asked = questions.map(|((name, kind, status), (sent, received))| {
            Asked::new(kind, name, status).sizes(sent + more, received + more)
        });
        Ok((pid, asked.collect()))
    }

    /// How many questions the server was asked, by its own log.
    pub fn logged(&self) -> Result<usize> {
        let log = fs::read_to_string(&self.log).context("read the log")?;
        Ok(log.matches(" query[").count())
    }
}
