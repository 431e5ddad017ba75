//! What the kernel side reports of a connection, and what it is asked to capture.

use core::net::{Ipv6Addr, SocketAddr};

/// In front of the cookies that stand for ends of Unix sockets: addresses that lead nowhere (RFC 6666).
const UNIX_PREFIX: u128 = 0x0100 << 112;

/// An end of a Unix socket in place of an address, which it has none of: the cookie of its socket.
pub fn unix_end(cookie: u64) -> SocketAddr {
    let address = Ipv6Addr::from_bits(UNIX_PREFIX | u128::from(cookie));
    SocketAddr::from((address, 0))
}

/// Whether this stands for an end of a Unix socket, see [`unix_end`].
pub fn is_unix_end(end: SocketAddr) -> bool {
    unix_cookie(end).is_some()
}

/// An address and port as they are shown, `unix:COOKIE` of a Unix socket.
pub fn shown_end(end: SocketAddr) -> String {
    match unix_cookie(end) {
        Some(cookie) => format!("unix:{cookie}"),
        None => end.to_string(),
    }
}

fn unix_cookie(end: SocketAddr) -> Option<u64> {
    let SocketAddr::V6(end) = end else {
        return None;
    };
    let bits = end.ip().to_bits() ^ UNIX_PREFIX;
    u64::try_from(bits).ok().filter(|_cookie| end.port() == 0)
}

/// A connection, known by its socket's cookie. Ends of Unix sockets are [`unix_end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketFacts {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Whether this end asked for the connection; `None`: it was there before, and no socket listens on
    /// either port.
    pub is_client: Option<bool>,
    /// The connection was there before payload was looked at.
    pub joined: bool,
    pub is_udp: bool,
}

/// What the kernel side is asked to do from now on with the calls on a socket. Payload that a TLS
/// library hands over or takes is not concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CaptureOrder {
    pub bytes: CaptureBytes,
    /// It takes no turns with others where few connections are sampled: what it says builds on what it said before.
    pub is_steady: bool,
}

/// What is captured of each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureBytes {
    /// As of all connections.
    Usual,
    /// No more payload: nothing comes of it.
    Stop,
    /// This many of the first bytes.
    First(u32),
}

impl CaptureOrder {
    /// As it is where nothing was ordered.
    pub const USUAL: Self = Self {
        bytes: CaptureBytes::Usual,
        is_steady: false,
    };
    pub const STOP: Self = Self {
        bytes: CaptureBytes::Stop,
        is_steady: false,
    };
}

/// What only the kernel side can count, from the start of the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounts {
    /// Bytes of TLS that belong to no known socket.
    pub unbound_bytes: u64,
    /// Pieces that were lost and are of no known connection; those of a connection come as
    /// [`super::PayloadEvent::Lost`].
    pub lost_pieces: u64,
    /// One in this many connections is looked at; 0 and 1: all are.
    pub sampled_one_of: u32,
    /// Probes in TLS libraries are there all the time.
    pub tls_is_steady: bool,
}
