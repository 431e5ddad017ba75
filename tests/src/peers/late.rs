//! A server and a connection of HTTP/2 to it that has carried requests already.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};

use super::{free_port, waiting::Waiting};
use crate::{
    paths,
    process::{Launch, Running},
    wait::wait_until,
    workload::Workload,
};

const LIMIT: Duration = Duration::from_mins(1);
/// Files `/files/N` of N bytes.
const FILES: usize = 140;

/// An open connection whose client waits.
#[derive(Debug)]
pub struct LateConnection {
    server: Running,
    client: Waiting,
    pub port: u16,
}

/// A request over it, by its client.
#[derive(Clone, Debug)]
pub struct Repeated {
    pub path: String,
    pub status: u16,
    pub response_bytes: u64,
    /// It took no longer.
    pub at_most_ns: u64,
    /// The path was asked for before.
    pub is_old: bool,
}

impl LateConnection {
    /// To nghttpd.
    pub fn start(folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let files = folder.join("files");
        fs::create_dir(&files).context("make the folder of files")?;
        for size in 0..FILES {
            fs::write(files.join(size.to_string()), vec![b'n'; size]).context("write a file")?;
        }
        let mut server = Launch::new(Path::new("/usr/sbin/nghttpd"), "nghttpd", folder)
            .args(["--no-tls", "--address=127.0.0.1"])
            .args([format!("--htdocs={}", folder.display()), port.to_string()])
            .start()?;
        wait_until("nghttpd listens", LIMIT, || {
            !server.is_running() || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        })?;
        ensure!(server.is_running(), "it ended: {}", server.errors());
        Self::connect(folder, server, port)
    }

    /// To a server of Go's own library.
    pub fn start_go(folder: &Path) -> Result<Self> {
        let program = Workload::Http2ServerGo.build("http2_server")?;
        let mut server = Launch::new(&program, "http2-server", folder).start()?;
        let port = server.wait_for_line(LIMIT, |line| line.parse().ok())?;
        Self::connect(folder, server, port)
    }

    fn connect(folder: &Path, server: Running, port: u16) -> Result<Self> {
        let script = paths::workspace().join("tests/fixtures/peers/h2_client.py");
        let client = Launch::new(Path::new("/usr/bin/python3"), "h2-client", folder).args([
            script.as_os_str(),
            port.to_string().as_ref(),
            Waiting::file(folder).as_os_str(),
        ]);
        let client = Waiting::start(client, folder)?;
        Ok(Self {
            server,
            client,
            port,
        })
    }

    pub fn client_pid(&self) -> u32 {
        self.client.pid()
    }

    pub fn server_pid(&self) -> u32 {
        self.server.pid()
    }

    /// Lets the client go on to its end: what it asked since, in the order of its streams.
    pub fn go_on(self) -> Result<Vec<Repeated>> {
        let output = self.client.go_on()?.finish(LIMIT)?;
        let lines = output.lines().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [path, status, received, took, old] = words.as_slice() else {
                bail!("the client says {line:?}");
            };
            Ok(Repeated {
                path: (*path).to_owned(),
                status: status.parse()?,
                response_bytes: received.parse()?,
                at_most_ns: took.parse()?,
                is_old: *old == "1",
            })
        });
        lines.collect()
    }
}
