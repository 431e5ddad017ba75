//! HTTP/1.x (RFC 9112): requests with their answers, over pieces of which only the beginning was captured.

mod recognise;
mod decoder;
mod side;
mod pairs;
mod holes;
mod head;
mod body;
mod claims;

use decoder::Http1;
use recognise::recognise;

use super::{Candidate, Protocol};

/// HTTP/1.0 and HTTP/1.1, and what a connection is upgraded to from there.
pub const HTTP1: Candidate = Candidate {
    protocol: Protocol::Http1,
    recognise,
    start: |options, joined| Box::new(Http1::new(options, joined)),
};

#[cfg(test)]
mod tests;
