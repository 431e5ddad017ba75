//! gunicorn with workers that answer one request after the other, each over a connection of its own (`sync`), and
//! `wsgi_app.py` of the fixtures.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, ensure};

use super::with_children;
use crate::{
    paths,
    process::{Launch, Running},
    wait::wait_until,
};

const START_LIMIT: Duration = Duration::from_mins(1);
const WORKERS: usize = 2;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    Port(u16),
    /// At a port over TLS, by `server.pem` and `server.key` of the folder.
    TlsPort(u16),
    Socket(PathBuf),
}

/// A running gunicorn.
#[derive(Debug)]
pub struct Gunicorn {
    master: Running,
}

impl Gunicorn {
    pub fn start(folder: &Path, at: &At) -> Result<Self> {
        let bind = match at {
            At::Port(port) | At::TlsPort(port) => format!("127.0.0.1:{port}"),
            At::Socket(path) => format!("unix:{}", path.display()),
        };
        let mut launch = Launch::new(Path::new("/usr/bin/gunicorn"), "gunicorn", folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .args(["--worker-class=sync", &format!("--workers={WORKERS}")])
            .args([
                "--pythonpath".into(),
                paths::workspace().join("tests/fixtures/peers"),
            ])
            .args([format!("--bind={bind}")]);
        if matches!(at, At::TlsPort(_)) {
            launch = launch
                .args(["--certfile".into(), folder.join("server.pem")])
                .args(["--keyfile".into(), folder.join("server.key")]);
        }
        let mut master = launch.args(["wsgi_app:application"]).start()?;
        wait_until("gunicorn has its workers", START_LIMIT, || {
            let workers = master.errors().matches("Booting worker").count();
            !master.is_running() || workers == WORKERS
        })?;
        ensure!(master.is_running(), "gunicorn ended: {}", master.errors());
        Ok(Self { master })
    }

    /// The master and its workers.
    pub fn pids(&self) -> Result<Vec<u32>> {
        with_children(self.master.pid())
    }
}
