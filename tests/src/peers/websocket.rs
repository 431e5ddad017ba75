//! A WebSocket server and its client, in Python.

use std::{path::Path, time::Duration};

use anyhow::{Result, bail};

use super::asked::Asked;
use crate::{
    paths,
    process::{Launch, Running},
};

/// Debian's, which has Debian's packages.
const PYTHON: &str = "/usr/bin/python3";
const LIMIT: Duration = Duration::from_mins(1);

/// A running server.
#[derive(Debug)]
pub struct WebSocketServer {
    server: Running,
    pub port: u16,
}

impl WebSocketServer {
    pub fn start(folder: &Path) -> Result<Self> {
        let mut server = launch(folder, "websocket_server").start()?;
        let port = server.wait_for_line(LIMIT, |line| line.parse().ok())?;
        Ok(Self { server, port })
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Runs the client: its pid, and the upgrades that it asked for.
    pub fn upgrade(&self, folder: &Path) -> Result<(u32, Vec<Asked>)> {
        let client = launch(folder, "websocket_client")
            .args([self.port.to_string()])
            .start()?;
        let pid = client.pid();
        let output = client.finish(LIMIT)?;
        let mut asked = Vec::new();
        for line in output.lines() {
            let Some((path, status)) = line.split_once(' ') else {
                bail!("the client says {line:?}");
            };
            asked.push(Asked::new("GET", path, status));
        }
        Ok((pid, asked))
    }
}

fn launch(folder: &Path, name: &str) -> Launch {
    let script = format!("tests/fixtures/peers/{name}.py");
    Launch::new(Path::new(PYTHON), name, folder).args([paths::workspace().join(script)])
}
