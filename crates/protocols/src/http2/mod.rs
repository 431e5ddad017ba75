//! HTTP/2 (RFC 9113) and gRPC, also on connections that were joined late or not seen whole.

mod recognise;
mod decoder;
mod stream;
pub(crate) mod grpc;
mod fields;
mod reader;
mod frame;

pub(crate) use decoder::Http2;
use frame::{FrameHeader, Kind, PADDED, PRIORITY};
use recognise::recognise;

use super::{Candidate, Protocol};

/// HTTP/2 with prior knowledge or by ALPN.
pub const HTTP2: Candidate = Candidate {
    protocol: Protocol::Http2,
    recognise,
    start: |options, joined| Box::new(Http2::new(options, joined)),
};

/// The part of a payload that is a header block; the payload may be cut.
fn block_of<'a>(header: &FrameHeader, payload: &'a [u8]) -> Option<&'a [u8]> {
    let mut begin = 0;
    let mut end = usize::try_from(header.length).ok()?;
    if header.has(PADDED) && header.kind != Kind::Continuation {
        end = end.checked_sub(usize::from(*payload.first()?))?;
        begin += 1;
    }
    if header.has(PRIORITY) && header.kind == Kind::Headers {
        begin += 5;
    }
    if header.kind == Kind::PushPromise {
        begin += 4;
    }
    if end < begin {
        return None;
    }
    Some(
        payload
            .get(begin..end.min(payload.len()))
            .unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests;
