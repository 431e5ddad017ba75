//! A request as one socket saw it.

use core::net::SocketAddr;

use super::event::Drawn;
use profiler_model::SeenBy;
use profiler_protocols::{Exchange, Outcome};

/// When bytes were moved, and by which thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) pid: u32,
    /// `None`: no longer known.
    pub(super) tid: Option<u32>,
    /// When they had arrived, where that was measured.
    pub(super) ready_ns: Option<u64>,
}

/// Where a request is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObservationPoint {
    /// Of the socket.
    pub(super) cookie: u64,
    /// The thread that moved something there last.
    pub(super) pid: u32,
    pub(super) drawn: Drawn,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

/// A request that is over, with what is known of it beside its payload.
#[derive(Clone, Debug)]
pub(super) struct ObservedRequest {
    /// Of the socket.
    pub(super) cookie: u64,
    pub(super) seen_by: SeenBy,
    /// It stands for so many as connections stood for its own.
    pub(super) drawn: Drawn,
    /// The bytes were read at a TLS library.
    pub(super) tls: bool,
    /// The client's end of the connection, as this socket has it.
    pub(super) client: SocketAddr,
    /// The thread that moved its first byte.
    pub(super) begin: Moved,
    /// The thread that moved the first byte of the answer; `None`: not kept until the end, or there was none.
    pub(super) answer: Option<Moved>,
    pub(super) exchange: Exchange,
}

impl ObservedRequest {
    /// Whether the answer was seen to its end, so that its times mean something.
    pub(super) fn is_whole(&self) -> bool {
        match self.exchange.outcome {
            Outcome::Ok | Outcome::ClientError | Outcome::ServerError => true,
            Outcome::Broken => false,
            // Only how it went was not seen.
            Outcome::Unknown => self.exchange.is_timed,
        }
    }
}
