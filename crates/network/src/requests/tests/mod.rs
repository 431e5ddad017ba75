//! The tracker over real payload: events as the kernel side hands them over, and the table that comes of
//! them.

mod bounds;
mod both_ends;
mod directions;
mod edges;
mod sidecar;

use profiler_model::{Operation, RequestTable};

use super::{
    PayloadEvent, PayloadPiece, Plaintext, SocketFacts, TrackerOptions,
    played::{CLIENT_PID, Play, SERVER_COOKIE, edge, edge_of, facts, resp},
};

/// The only operation with this method.
#[track_caller]
pub(super) fn operation<'a>(table: &'a RequestTable, method: &str) -> &'a Operation {
    let mut found = table
        .operations
        .iter()
        .filter(|operation| operation.method.as_deref() == Some(method));
    let first = found
        .next()
        .unwrap_or_else(|| panic!("no {method}: {table:#?}"));
    assert!(
        found.next().is_none(),
        "{method} is there twice: {table:#?}"
    );
    first
}
