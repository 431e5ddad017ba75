//! From captured payload to requests: which connection a piece belongs to, what it speaks, and what was
//! asked over it.
//!
//! `event` is what the kernel side hands over; [`Tracker`] makes a table of it. [`LogTracker`] makes the same table of what Envoys report
//! by their access logs.

mod event;
mod facts;
mod stamps;
mod decoded_stream;
mod socket_requests;
mod digest;
mod observed_request;
mod shared_edge;
mod tracker;
mod rules;
mod estimate;
mod draws;
mod counts;
mod edge_counts;
mod operations;
mod samples;
mod timeline;
mod sidecar;
mod logged;

pub use counts::status_name;
pub use event::{ByteTotals, Drawn, PayloadEvent, PayloadPiece, Plaintext};
pub use facts::{
    CaptureBytes, CaptureOrder, SocketFacts, SourceCounts, is_unix_end, shown_end, unix_end,
};
pub use logged::{EnvoyId, LogTracker, Missing, OtherEnd, OwnSocket, SocketNow, UnknownEnd};
pub use rules::{MAX_EXPRESSION_BYTES, MAX_RULES, RuleError, Rules};
pub use samples::Keep;
pub use tracker::{Tracker, TrackerOptions};

#[cfg(any(test, feature = "played"))]
pub mod played;
#[cfg(test)]
mod tests;
