//! gRPC over HTTP/2: which streams are calls, how they ended, how many messages they had
//! (gRPC's PROTOCOL-HTTP2).

use crate::Outcome;

/// A flag, and the length of the message in four bytes.
const PREFIX_BYTES: usize = 5;

/// Whether a content type is that of gRPC: `application/grpc`, `application/grpc+proto`.
pub(super) fn is_grpc(content_type: &[u8]) -> bool {
    content_type
        .strip_prefix(b"application/grpc")
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// The end at fault for a status (gRPC's status codes, in the view of the server).
pub fn outcome_of_grpc(status: u32) -> Outcome {
    match status {
        0 => Outcome::Ok,
        // Cancelled, invalid argument, not found, already exists, permission denied, resource
        // exhausted, failed precondition, aborted, out of range, unauthenticated.
        1 | 3 | 5..=11 | 16 => Outcome::ClientError,
        // Unknown, deadline exceeded, unimplemented, internal, unavailable, data loss; and what is
        // none of gRPC's.
        _ => Outcome::ServerError,
    }
}

/// Counts the messages of one direction of a call.
#[derive(Debug, Default)]
pub(super) struct MessageCounter {
    prefix: [u8; PREFIX_BYTES],
    have: usize,
    /// Bytes of the message that are still to come.
    left: u64,
    count: u64,
    is_lost: bool,
}

impl MessageCounter {
    /// Messages that have begun; `None`: some may have been missed.
    pub(super) fn count(&self) -> Option<u64> {
        (!self.is_lost).then_some(self.count)
    }

    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        while !bytes.is_empty() && !self.is_lost {
            if self.left > 0 {
                let length = usize::try_from(self.left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                self.left -= length as u64;
                bytes = bytes.get(length..).unwrap_or_default();
                continue;
            }
            let [byte, rest @ ..] = bytes else {
                return;
            };
            bytes = rest;
            if let Some(place) = self.prefix.get_mut(self.have) {
                *place = *byte;
            }
            self.have += 1;
            if self.have == PREFIX_BYTES {
                self.begin();
            }
        }
    }

    /// Bytes that were not captured.
    pub(super) fn skip(&mut self, count: u64) {
        match self.left.checked_sub(count) {
            Some(left) => self.left = left,
            None => self.is_lost = true,
        }
    }

    fn begin(&mut self) {
        let [flag, length @ ..] = self.prefix;
        self.have = 0;
        self.left = u64::from(u32::from_be_bytes(length));
        self.count += 1;
        self.is_lost |= flag > 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{MessageCounter, is_grpc, outcome_of_grpc};
    use crate::Outcome;

    const MESSAGES: &[u8] = b"\0\0\0\0\x03abc\x01\0\0\0\0\0\0\0\0\x01x";

    #[test]
    fn messages_are_counted_at_each_split() {
        for split in 0..=MESSAGES.len() {
            let mut counter = MessageCounter::default();
            counter.take(&MESSAGES[..split]);
            counter.take(&MESSAGES[split..]);
            assert_eq!(counter.count(), Some(3));
        }
    }

    #[test]
    fn a_hole_within_a_message_is_skipped_and_no_other() {
        let mut counter = MessageCounter::default();
        counter.take(&MESSAGES[..6]);
        counter.skip(2);
        counter.take(&MESSAGES[8..]);
        assert_eq!(counter.count(), Some(3));
        counter.skip(1);
        assert_eq!(counter.count(), None);
    }

    #[test]
    fn what_is_no_message_is_not_counted() {
        let mut counter = MessageCounter::default();
        counter.take(b"\x02\0\0\0\0");
        assert_eq!(counter.count(), None);
    }

    #[test]
    fn content_types_and_statuses() {
        for yes in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;x",
        ] {
            assert!(is_grpc(yes.as_bytes()), "{yes}");
        }
        for no in ["application/grpc-web", "application/json", ""] {
            assert!(!is_grpc(no.as_bytes()), "{no}");
        }
        assert_eq!(outcome_of_grpc(0), Outcome::Ok);
        assert_eq!(outcome_of_grpc(5), Outcome::ClientError);
        assert_eq!(outcome_of_grpc(14), Outcome::ServerError);
    }
}
