//! A request as one socket saw it.

use core::net::SocketAddr;

use super::{digest::digest, event::Drawn};
use profiler_model::{RequestAtSocket, SeenBy};
use profiler_protocols::{Exchange, Outcome, Protocol};

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

    /// What an entry of an access log is compared with.
    pub(super) fn at_socket(&self) -> RequestAtSocket {
        let exchange = &self.exchange;
        RequestAtSocket {
            pid: self.begin.pid,
            tid: self.begin.tid,
            seen_by: self.seen_by,
            client: self.client,
            begin_ns: exchange.begin_ns,
            end_ns: exchange.end_ns,
            first_byte_ns: exchange.first_byte_ns,
            ready_ns: self.begin.ready_ns,
            answer_ready_ns: self.answer.and_then(|answer| answer.ready_ns),
            request_id: request_id(exchange),
            is_multiplexed: matches!(exchange.protocol, Protocol::Http2 | Protocol::Grpc),
        }
    }
}

/// A number for `x-request-id`, which is compared and nothing else.
pub(super) fn request_id(exchange: &Exchange) -> Option<u64> {
    exchange.trace.request_id.as_ref().map(digest)
}
