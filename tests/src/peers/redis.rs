//! redis-server with redis-cli and redis-benchmark.

use std::{
    collections::BTreeMap,
    net::TcpStream,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::free_port;
use crate::{
    process::{Launch, Running},
    wait::wait_until,
};

const LIMIT: Duration = Duration::from_mins(1);

/// A running redis-server.
#[derive(Debug)]
pub struct Redis {
    server: Running,
    pub port: u16,
    /// Where it also listens.
    pub socket: PathBuf,
}

impl Redis {
    pub fn start(folder: &Path) -> Result<Self> {
        let (port, socket) = (free_port()?, folder.join("redis.sock"));
        let mut server = Launch::new(Path::new("/usr/bin/redis-server"), "redis-server", folder)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", ""])
            .args(["--unixsocket".as_ref(), socket.as_os_str()])
            .current_dir(folder)
            .start()?;
        wait_until("redis-server listens", LIMIT, || {
            !server.is_running() || TcpStream::connect(("127.0.0.1", port)).is_ok()
        })?;
        ensure!(server.is_running(), "it ended: {}", server.output());
        Ok(Self {
            server,
            port,
            socket,
        })
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Runs redis-cli; its pid.
    pub fn command_line(&self, folder: &Path, arguments: &[&str]) -> Result<u32> {
        self.client(folder, "/usr/bin/redis-cli", arguments)
    }

    /// Runs redis-benchmark; its pid.
    pub fn benchmark(&self, folder: &Path, arguments: &[&str]) -> Result<u32> {
        self.client(folder, "/usr/bin/redis-benchmark", arguments)
    }

    fn client(&self, folder: &Path, program: &str, arguments: &[&str]) -> Result<u32> {
        let client = self.launch(folder, program, arguments)?;
        let pid = client.pid();
        client.finish(LIMIT)?;
        Ok(pid)
    }

    fn launch(&self, folder: &Path, program: &str, arguments: &[&str]) -> Result<Running> {
        Launch::new(Path::new(program), "redis-client", folder)
            .args(["-p", &self.port.to_string()])
            .args(arguments)
            .start()
    }

    /// How often the server ran each command, by its own account: `get`, `config|get`.
    pub fn counts(&self, folder: &Path) -> Result<BTreeMap<String, u64>> {
        let asked = ["INFO", "commandstats"];
        let client = self.launch(folder, "/usr/bin/redis-cli", &asked)?;
        let text = client.finish(LIMIT)?;
        let lines = text.lines().filter_map(|line| {
            let (name, values) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            let count = values.split(',').next()?;
            Some((name.to_owned(), count))
        });
        lines
            .map(|(name, count)| Ok((name, count.parse().context("a count of commands")?)))
            .collect()
    }
}
