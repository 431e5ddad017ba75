//! Pieces that are held until the protocol of a connection is known.

use super::{
    super::{Decoder, Direction, Exchange, Opening, Piece, WrongProtocol, decoder::PerDirection},
    ConnectionFacts,
};

/// First bytes of a direction that candidates see.
const SHOWN: usize = 512;
/// Captured bytes that are held; what is beyond them is replayed as not captured.
const MOST_BYTES: usize = 16 << 10;
const MOST_PIECES: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Held {
    pieces: Vec<HeldPiece>,
    captured: usize,
    bytes: PerDirection<u64>,
    shown: PerDirection<Shown>,
}

#[derive(Debug)]
struct HeldPiece {
    direction: Direction,
    at_ns: u64,
    length: u64,
    bytes: Vec<u8>,
}

impl HeldPiece {
    fn piece(&self) -> Piece<'_> {
        Piece {
            direction: self.direction,
            at_ns: self.at_ns,
            length: self.length,
            bytes: &self.bytes,
        }
    }
}

/// The captured bytes of a direction up to the first that is not.
#[derive(Debug, Default)]
struct Shown {
    bytes: Vec<u8>,
    first_piece: usize,
    pieces: u32,
    ended: bool,
}

impl Held {
    pub(super) fn push(&mut self, piece: &Piece<'_>) {
        let room = MOST_BYTES.saturating_sub(self.captured);
        let kept = piece.bytes.get(..room).unwrap_or(piece.bytes);
        self.captured += kept.len();
        *self.bytes.get_mut(piece.direction) += piece.length;
        let shown = self.shown.get_mut(piece.direction);
        if !shown.ended {
            let room = SHOWN.saturating_sub(shown.bytes.len());
            shown.bytes.extend(kept.iter().take(room));
            shown.ended = piece.length > kept.len() as u64;
        }
        if shown.pieces == 0 {
            shown.first_piece = shown.bytes.len();
        }
        shown.pieces += 1;
        self.pieces.push(HeldPiece {
            direction: piece.direction,
            at_ns: piece.at_ns,
            length: piece.length,
            bytes: kept.to_vec(),
        });
    }

    /// Calls of the client that are held.
    pub(super) fn calls(&self) -> usize {
        usize::try_from(self.shown.to_server.pieces).unwrap_or(usize::MAX)
    }

    /// What is held from a later call of the client on, so many behind the first, and the bytes before it.
    /// `None`: there are no more.
    pub(super) fn behind(&self, calls: usize) -> Option<(Self, PerDirection<u64>)> {
        let is_call = |piece: &HeldPiece| piece.direction == Direction::ToServer;
        let mut places = (0..).zip(&self.pieces).filter(|(_, piece)| is_call(piece));
        let (place, _) = places.nth(calls)?;
        let (before, behind) = self.pieces.split_at_checked(place)?;
        let mut rest = Self::default();
        for piece in behind {
            rest.push(&piece.piece());
        }
        let mut dropped = PerDirection::default();
        for piece in before {
            *dropped.get_mut(piece.direction) += piece.length;
        }
        Some((rest, dropped))
    }

    /// No more is held: what comes is decided on what is there.
    pub(super) fn is_full(&self) -> bool {
        self.pieces.len() >= MOST_PIECES || self.captured >= MOST_BYTES
    }

    pub(super) fn has_both(&self) -> bool {
        self.bytes.to_server > 0 && self.bytes.to_client > 0
    }

    /// Bytes that went by.
    pub(super) fn bytes(&self) -> PerDirection<u64> {
        self.bytes
    }

    /// Bytes of the direction of which there are more.
    pub(super) fn longest(&self) -> u64 {
        self.bytes.to_server.max(self.bytes.to_client)
    }

    pub(super) fn opening(&self, facts: ConnectionFacts) -> Opening<'_> {
        let shown = |shown: &'_ Shown| -> usize {
            if facts.is_udp {
                shown.first_piece
            } else {
                shown.bytes.len()
            }
        };
        let of = |direction| {
            let way = self.shown.get(direction);
            way.bytes.get(..shown(way)).unwrap_or_default()
        };
        Opening {
            to_server: of(Direction::ToServer),
            to_client: of(Direction::ToClient),
            joined: facts.joined,
            server_port: facts.server_port,
            is_udp: facts.is_udp,
        }
    }

    pub(super) fn replay(
        &self,
        decoder: &mut dyn Decoder,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        for held in &self.pieces {
            decoder.feed(&held.piece(), out)?;
        }
        Ok(())
    }
}
