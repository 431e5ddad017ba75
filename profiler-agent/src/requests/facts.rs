//! What the kernel side tells of a connection, and what it is told in return.

use std::net::SocketAddr;

/// A connection, known by its socket's cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Whether this end asked for the connection; `None`: it was there before, and nobody listens on
    /// either port.
    pub is_client: Option<bool>,
    /// The connection was there before payload was looked at.
    pub joined: bool,
    pub is_udp: bool,
}

/// What the kernel side is asked to do from now on with the calls on a socket. Payload that a TLS
/// library hands over or takes is not concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureOrder {
    /// No more payload: nothing comes of it.
    Stop,
    /// So many of the first bytes of each call.
    Bytes(u32),
}

/// What only the kernel side can count, from the start of the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounts {
    /// Bytes of TLS that belong to no known socket.
    pub unbound_bytes: u64,
    /// Pieces that were lost and are of no known connection; those of a connection come as
    /// [`super::PayloadEvent::Lost`].
    pub lost_pieces: u64,
    /// One connection in so many is looked at; 0 and 1: all are.
    pub sampled_one_of: u32,
}
