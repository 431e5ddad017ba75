//! Answers that wait for their readers: all together take a bounded number of bytes, however slowly they are read.
//!
//! A connection has one answer at a time, because HTTP/1 alone is served and the next request is read when the answer
//! before it is gone. An answer counts from when it is made until its last piece is handed to the connection.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use hyper::body::{Frame, SizeHint};

use super::error::ApiError;
use profiler_memory::Ceiling;

/// Most bytes that wait, where the agent's memory has no ceiling; otherwise a quarter of it.
const MOST_BYTES: u64 = 512 << 20;
/// Part of the ceiling, as a divisor.
const SHARE: u64 = 4;
/// An answer is handed to its connection in pieces of this size, each when the one before it is written.
const PIECE_BYTES: usize = 64 * 1024;

/// Bytes of all answers that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Unsent {
    bytes: Arc<AtomicU64>,
}

/// What one answer has of them, given back when this is dropped.
#[derive(Debug)]
struct Share {
    all: Arc<AtomicU64>,
    bytes: u64,
}

impl Unsent {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// `None`: too many wait already. One answer alone may be as large as it is.
    fn add(&self, bytes: u64, most: u64) -> Option<Share> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let share = Share {
            all: Arc::clone(&self.bytes),
            bytes,
        };
        (before == 0 || before.saturating_add(bytes) <= most).then_some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn most_bytes() -> u64 {
    let ceiling = Ceiling::own().limit().bytes;
    ceiling.map_or(MOST_BYTES, |bytes| bytes / SHARE)
}

/// Counts each answer whose length is known, and refuses one that has no room. Streams hold a few events each, and
/// their number has its own bound.
pub(super) async fn count(State(unsent): State<Unsent>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let Some(bytes) = response.body().size_hint().exact() else {
        return response;
    };
    match unsent.add(bytes, most_bytes()) {
        Some(share) => response.map(|inner| {
            Body::new(Counted {
                inner,
                rest: Bytes::new(),
                _share: share,
            })
        }),
        None => ApiError::Overloaded {
            detail: "too many answers wait for slow readers; try again soon",
        }
        .into_response(),
    }
}

/// A body in pieces.
#[derive(Debug)]
struct Counted {
    inner: Body,
    /// Of the frame that was read last.
    rest: Bytes,
    _share: Share,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return other,
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        self.inner
            .size_hint()
            .exact()
            .map_or_else(SizeHint::new, |bytes| {
                SizeHint::with_exact(bytes.saturating_add(rest))
            })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn what_waits_is_bounded_and_given_back() {
        let unsent = Unsent::default();
        let large = unsent.add(100, 50).unwrap();
        assert!(unsent.add(1, 50).is_none(), "one alone may be larger");
        assert_eq!(unsent.bytes(), 100);
        drop(large);
        let first = unsent.add(30, 50).unwrap();
        assert!(unsent.add(21, 50).is_none());
        let second = unsent.add(20, 50).unwrap();
        assert_eq!(unsent.bytes(), 50);
        drop((first, second));
        assert_eq!(unsent.bytes(), 0);
    }

    #[tokio::test]
    async fn a_body_is_handed_over_in_pieces_and_stays_whole() {
        let unsent = Unsent::default();
        let whole: Vec<u8> = (0..=u8::MAX).cycle().take(3 * PIECE_BYTES + 7).collect();
        let mut body = Counted {
            inner: Body::from(whole.clone()),
            rest: Bytes::new(),
            _share: unsent.add(whole.len() as u64, u64::MAX).unwrap(),
        };
        let mut got = Vec::new();
        while !body.is_end_stream() {
            assert_eq!(
                body.size_hint().exact(),
                Some((whole.len() - got.len()) as u64)
            );
            let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES);
            got.extend_from_slice(&piece);
        }
        assert!(got == whole);
        drop(body);
        assert_eq!(unsent.bytes(), 0);
    }
}
