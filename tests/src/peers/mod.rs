//! Real servers with real clients, for the proof of requests: each server is one of a usual program in
//! a folder and on a port of its own, each client says what it asked and what it was answered, and
//! [`watch`] holds what the agent reports against that.

use std::net::TcpListener;

use anyhow::{Context as _, Result};

pub mod asked;
pub mod held;
pub mod watch;

pub mod curl;
pub mod grpc;
pub mod h2load;
pub mod late;
pub mod nginx;
pub mod pipelining;
pub mod websocket;

pub mod dns;
pub mod kafka;
pub mod mariadb;
pub mod mongo;
pub mod postgres;
pub mod redis;

pub mod gnutls;
pub mod tls;

/// A port of loopback that nobody listens on.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("bind a port")?;
    Ok(listener.local_addr().context("ask for the port")?.port())
}
