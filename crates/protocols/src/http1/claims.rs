//! Sizes of bodies whose end was not captured.
//!
//! A head may say how long the body is and go on behind the captured bytes; the chunks of a body may have
//! been read but for what is as long as the last one. Such a size is the body's once the other end has
//! shown that the message was complete, and if as many bytes went by as that takes.

use super::{
    body::{Body, Chunked},
    decoder::{Http1, Open},
};
use crate::{Direction, Exchange};

/// How long a body is, if nothing speaks against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The head says so; the message takes at least this many bytes of its direction from the first on.
    Said { bytes: u64, at_least: u64 },
    /// Chunks were read up to what must be the last one; the message ends there in its direction.
    Chunks { bytes: u64, exactly: u64 },
}

impl Claim {
    /// The size, once the message is known to be complete and this many bytes of its direction went by.
    fn size(self, moved: u64) -> Option<u64> {
        match self {
            Self::Said { bytes, at_least } => (moved >= at_least).then_some(bytes),
            Self::Chunks { bytes, exactly } => (moved == exactly).then_some(bytes),
        }
    }
}

impl Open {
    /// The request is complete, as its answer has come.
    pub(super) fn claim_request(&mut self, moved: u64) {
        if let Some(bytes) = self.request_claim.and_then(|claim| claim.size(moved)) {
            let Exchange {
                request_bytes,
                request_size_known,
                ..
            } = &mut self.exchange;
            (*request_bytes, *request_size_known) = (bytes, true);
        }
    }

    /// The answer is complete, as the next request has come.
    pub(super) fn claim_response(&mut self, moved: u64) {
        if let Some(bytes) = self.response_claim.and_then(|claim| claim.size(moved)) {
            let Exchange {
                response_bytes,
                response_size_known,
                ..
            } = &mut self.exchange;
            (*response_bytes, *response_size_known) = (bytes, true);
        }
    }
}

impl Http1 {
    /// What a cut head states about the size of its body. What was captured has gone by, what was not has not.
    pub(super) fn claim_of_head(
        &mut self,
        direction: Direction,
        said: Option<u64>,
    ) -> Option<Claim> {
        let moved = self.side(direction).moved;
        said.map(|bytes| Claim::Said {
            bytes,
            at_least: moved.saturating_add(bytes),
        })
    }

    /// The last `count` bytes of a piece were not captured, and may be the end of the chunks of a request.
    pub(super) fn claim_chunks(&mut self, body: Body, count: u64) {
        if body != Body::Chunked(Chunked::LikelyEnded) {
            return;
        }
        let exactly = self.requests.moved.saturating_add(count);
        let stream = self.count;
        let last = self.open.back_mut();
        if let Some(open) = last.filter(|open| open.exchange.stream == stream) {
            open.request_claim = Some(Claim::Chunks {
                bytes: open.exchange.request_bytes,
                exactly,
            });
        }
    }

    /// Bytes are missing: nothing is as it was said any more.
    pub(super) fn drop_claims(&mut self, direction: Direction) {
        for open in &mut self.open {
            match direction {
                Direction::ToServer => open.request_claim = None,
                Direction::ToClient => open.response_claim = None,
            }
        }
    }
}
