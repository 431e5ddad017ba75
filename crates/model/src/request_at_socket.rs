//! Requests at sockets, as they are joined with what an access log says of them.

use core::net::SocketAddr;

use super::SeenBy;

/// A request that was answered, as one socket showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestAtSocket {
    /// The thread that moved its first byte.
    pub pid: u32,
    /// `None`: no longer known.
    pub tid: Option<u32>,
    pub seen_by: SeenBy,
    /// The client's end of the connection.
    pub client: SocketAddr,
    /// From the first byte of the request to the last one of the answer, on `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    pub end_ns: u64,
    /// When the first byte of the answer was moved.
    pub first_byte_ns: Option<u64>,
    /// When the first byte of the request had arrived, and that of the answer, where that was measured.
    pub ready_ns: Option<u64>,
    pub answer_ready_ns: Option<u64>,
    /// Stands for `x-request-id`, in this process alone.
    pub request_id: Option<u64>,
    /// Others may be under way on the connection at the same time.
    pub is_multiplexed: bool,
}
