//! Messages of gRPC out of the pieces that they come in.

use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};

/// A flag for compression and the length, before each message.
pub(super) const PREFIX: usize = 5;
/// How long a message may take from its first byte to its last.
const MESSAGE: Duration = Duration::from_secs(10);
/// How many times what has just come of a message is reserved for its rest.
const AHEAD: usize = 4;

/// Numbers of gRPC.
pub(super) const INVALID_ARGUMENT: u16 = 3;
const DEADLINE_EXCEEDED: u16 = 4;
pub(super) const RESOURCE_EXHAUSTED: u16 = 8;
pub(super) const UNIMPLEMENTED: u16 = 12;

/// Why a stream is ended by the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Of gRPC.
    pub(super) status: u16,
    pub(super) why: String,
}

impl Refusal {
    pub(super) fn cut() -> Self {
        Self {
            status: INVALID_ARGUMENT,
            why: "the stream ended within a message".to_owned(),
        }
    }

    pub(super) fn late() -> Self {
        Self {
            status: DEADLINE_EXCEEDED,
            why: format!("a message took more than {} s", MESSAGE.as_secs()),
        }
    }
}

/// What of a stream has come and was not taken. A message that comes in one piece is not copied.
#[derive(Debug)]
pub(super) struct Pieces {
    /// What has come last and was not looked at.
    fresh: Bytes,
    /// A message of which the rest has not come, with its prefix.
    part: BytesMut,
    /// When that has to be whole.
    due: Option<Instant>,
    /// Bytes that a message may have.
    limit: usize,
}

impl Pieces {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            fresh: Bytes::new(),
            part: BytesMut::new(),
            due: None,
            limit,
        }
    }

    /// Whether everything that has come was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.part.is_empty() && self.fresh.is_empty()
    }

    /// Bytes of memory for what was not taken.
    pub(super) fn held(&self) -> usize {
        self.part.capacity() + self.fresh.len()
    }

    /// When the message has to be whole that has begun.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes what has come. To be called when there is no message in what came before.
    pub(super) fn put(&mut self, data: Bytes) {
        self.fresh = data;
    }

    /// A message that has come whole, without its prefix.
    pub(super) fn take(&mut self) -> Result<Option<Bytes>, Refusal> {
        if self.part.is_empty()
            && let Some(length) = self.length_of(&self.fresh)?
            && self.fresh.len() - PREFIX >= length
        {
            self.fresh.advance(PREFIX);
            return Ok(Some(self.fresh.split_to(length)));
        }
        self.gather(PREFIX);
        let Some(length) = self.length_of(&self.part)? else {
            return Ok(None);
        };
        self.gather(PREFIX + length);
        if self.part.len() < PREFIX + length {
            return Ok(None);
        }
        self.due = None;
        let mut message = std::mem::take(&mut self.part).freeze();
        message.advance(PREFIX);
        Ok(Some(message))
    }

    /// Moves what has come to the message that is not whole, until that has so many bytes.
    fn gather(&mut self, bytes: usize) {
        let missing = bytes.saturating_sub(self.part.len());
        let more = self.fresh.split_to(missing.min(self.fresh.len()));
        if more.is_empty() {
            return;
        }
        self.part.reserve(missing.min(more.len() * AHEAD));
        self.part.extend_from_slice(&more);
        self.due.get_or_insert_with(|| Instant::now() + MESSAGE);
    }

    /// Bytes of the message behind a prefix; `None`: the prefix has not come whole.
    fn length_of(&self, mut begin: &[u8]) -> Result<Option<usize>, Refusal> {
        if begin.len() < PREFIX {
            return Ok(None);
        }
        let is_compressed = begin.get_u8() != 0;
        let length = usize::try_from(begin.get_u32()).unwrap_or(usize::MAX);
        if is_compressed {
            return Err(Refusal {
                status: UNIMPLEMENTED,
                why: "compressed messages are not read: switch compression off".to_owned(),
            });
        }
        let limit = self.limit;
        if length > limit {
            return Err(Refusal {
                status: RESOURCE_EXHAUSTED,
                why: format!(
                    "a message of {length} bytes, more than {limit}: lower buffer_size_bytes"
                ),
            });
        }
        Ok(Some(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[flag], &length[..], message].concat()
    }

    #[test]
    fn messages_are_the_same_whatever_pieces_they_come_in() {
        let messages: [&[u8]; 5] = [b"first", b"", b"a longer one, of some bytes", b"", b"x"];
        let stream: Vec<u8> = messages.iter().flat_map(|one| framed(0, one)).collect();
        for size in 1..=stream.len() {
            let mut pieces = Pieces::new(100);
            let mut found = Vec::new();
            for data in stream.chunks(size) {
                pieces.put(Bytes::copy_from_slice(data));
                while let Some(message) = pieces.take().unwrap() {
                    found.push(message);
                }
                // What has begun has to end.
                assert_eq!(pieces.due().is_none(), pieces.is_empty());
            }
            assert_eq!(found, messages, "pieces of {size} bytes");
        }
    }

    #[test]
    fn what_is_too_long_or_compressed_is_refused_by_its_prefix() {
        for (prefix, status) in [
            ([0, 0, 0, 0, 101], RESOURCE_EXHAUSTED),
            ([0, 255, 255, 255, 255], RESOURCE_EXHAUSTED),
            ([1, 0, 0, 0, 3], UNIMPLEMENTED),
        ] {
            let mut pieces = Pieces::new(100);
            let (begin, end) = prefix.split_at(4);
            pieces.put(Bytes::copy_from_slice(begin));
            assert_eq!(pieces.take(), Ok(None));
            pieces.put(Bytes::copy_from_slice(end));
            assert_eq!(pieces.take().unwrap_err().status, status);
        }
    }
}
