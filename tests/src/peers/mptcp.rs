//! Connections of MPTCP over loopback, as programs make them that ask for `IPPROTO_MPTCP` (also Go's listeners).

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
};

use anyhow::{Context as _, Result, ensure};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};

/// Both ends of a connection.
#[derive(Debug)]
pub struct Pair {
    pub client: TcpStream,
    pub server: TcpStream,
    /// The server's.
    pub port: u16,
    /// By which it shows the client of a connection from before.
    _listener: TcpListener,
}

impl Pair {
    pub fn connect() -> Result<Self> {
        let listener = socket()?;
        rustix::net::bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        rustix::net::listen(&listener, 1)?;
        let listener = TcpListener::from(listener);
        let port = listener
            .local_addr()
            .context("the server's address")?
            .port();
        let client = connect(port)?;
        let (server, from) = listener.accept().context("accept")?;
        ensure!(from == client.local_addr()?, "another client has connected");
        Ok(Self {
            client,
            server,
            port,
            _listener: listener,
        })
    }
}

/// Connects to a port of 127.0.0.1.
pub fn connect(port: u16) -> Result<TcpStream> {
    let client = socket()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    rustix::net::connect(&client, &address).context("connect")?;
    Ok(TcpStream::from(client))
}

fn socket() -> Result<OwnedFd> {
    let kind = SocketType::STREAM;
    let protocol = Some(ipproto::MPTCP);
    socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, protocol)
        .context("make a socket of MPTCP (sysctl net.mptcp.enabled=1)")
}
