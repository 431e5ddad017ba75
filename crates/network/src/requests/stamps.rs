//! Who moved the recent pieces of a connection, and when they had arrived: decoders know times only.

use std::collections::VecDeque;

use super::{event::PayloadPiece, observed_request::Moved};

/// Pieces of one connection that are remembered: those between the start and the end of a request
/// beside others on its connection.
const MAX_STAMPS: usize = 512;

#[derive(Clone, Copy, Debug)]
struct Stamp {
    at_ns: u64,
    is_send: bool,
    moved: Moved,
}

#[derive(Debug, Default)]
pub(super) struct Stamps {
    recent: VecDeque<Stamp>,
}

impl Stamps {
    /// `at_ns` is the time that the decoders know the piece by.
    pub(super) fn add(&mut self, piece: &PayloadPiece<'_>, at_ns: u64) {
        if self.recent.len() >= MAX_STAMPS {
            self.recent.pop_front();
        }
        self.recent.push_back(Stamp {
            at_ns,
            is_send: piece.is_send,
            moved: Moved {
                pid: piece.pid,
                tid: Some(piece.tid),
                ready_ns: piece.ready_ns,
            },
        });
    }

    /// The piece of this direction and this very time; `None`: it is no longer remembered.
    pub(super) fn find(&self, at_ns: u64, is_send: bool) -> Option<Moved> {
        let found = self
            .recent
            .iter()
            .rev()
            .find(|stamp| stamp.at_ns == at_ns && stamp.is_send == is_send);
        found.map(|stamp| stamp.moved)
    }
}
