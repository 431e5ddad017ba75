//! Real servers with real clients, for the proof of requests: each server is one of a usual program in
//! a folder and on a port of its own, each client says what it asked and what it was answered, and
//! [`watch`] holds what the agent reports against that.

use std::{
    fs::{self, File, OpenOptions},
    net::TcpListener,
    sync::Mutex,
};

use anyhow::{Context as _, Result};
use rustix::fs::{FlockOperation, flock};

pub mod asked;
pub mod held;
pub mod lasting;
pub mod waiting;
pub mod watch;

pub mod curl;
pub mod grpc;
pub mod gunicorn;
pub mod h2load;
pub mod haproxy;
pub mod late;
pub mod log_sink;
pub mod logging_envoy;
pub mod nginx;
pub mod mptcp;
pub mod pipelining;
pub mod websocket;

pub mod dns;
pub mod kafka;
pub mod mariadb;
pub mod mongo;
pub mod postgres;
pub mod redis;

pub mod gnutls;
pub mod short_tls;
pub mod tls;

/// Below those that the kernel gives to clients and to who asks for any port (from 32768 on), and below those of
/// workloads (from 20000 on).
const PORTS: std::ops::Range<u16> = 10_000..20_000;

/// An unused port of loopback that no other test process is given while this one lives.
pub fn free_port() -> Result<u16> {
    /// Locks go with the process.
    static GIVEN: Mutex<Vec<(u16, File)>> = Mutex::new(Vec::new());
    let mut given = GIVEN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let first = std::process::id().wrapping_mul(97);
    for number in 0..u32::from(PORTS.end - PORTS.start) {
        let offset = first.wrapping_add(number) % u32::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from(offset).context("a port")?;
        if given.iter().any(|(taken, _)| *taken == port) {
            continue;
        }
        let path = std::env::temp_dir().join(format!("pfl-port-{port}"));
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("open {}", path.display()))?;
        let is_ours = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_ours && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            given.push((port, file));
            return Ok(port);
        }
    }
    anyhow::bail!("no port of {PORTS:?} is free")
}

/// A process and those that it has started.
fn with_children(pid: u32) -> Result<Vec<u32>> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let mut pids = vec![pid];
    for child in children.split_whitespace() {
        pids.push(child.parse().context("a child's pid")?);
    }
    Ok(pids)
}
