//! Plays conversations to decoders: as they were, or cut and captured in other ways.

use crate::{Candidate, Decoder, Direction, Exchange, Options, Piece, WrongProtocol};

/// What the client and the server say, in turn.
pub(crate) type Said<'a> = (Direction, &'a [u8]);

pub(crate) const CLIENT: Direction = Direction::ToServer;
pub(crate) const SERVER: Direction = Direction::ToClient;

/// Nanoseconds between two pieces; the first is at this time.
pub(crate) const STEP_NS: u64 = 1000;

/// A decoder that is given one piece after the other.
pub(crate) struct Player {
    pub(crate) decoder: Box<dyn Decoder>,
    pub(crate) out: Vec<Exchange>,
    pub(crate) at_ns: u64,
}

impl Player {
    pub(crate) fn new(candidate: &Candidate, options: &Options, joined: bool) -> Self {
        Self {
            decoder: (candidate.start)(options, joined),
            out: Vec::new(),
            at_ns: 0,
        }
    }

    pub(crate) fn say(&mut self, direction: Direction, bytes: &[u8]) {
        self.say_captured(direction, bytes, usize::MAX);
    }

    /// A piece of which at most `captured` bytes were kept.
    pub(crate) fn say_captured(&mut self, direction: Direction, bytes: &[u8], captured: usize) {
        self.try_say(direction, bytes, captured)
            .expect("the right protocol");
    }

    pub(crate) fn try_say(
        &mut self,
        direction: Direction,
        bytes: &[u8],
        captured: usize,
    ) -> Result<(), WrongProtocol> {
        self.at_ns += STEP_NS;
        let piece = Piece {
            direction,
            at_ns: self.at_ns,
            length: bytes.len() as u64,
            bytes: &bytes[..captured.min(bytes.len())],
        };
        self.decoder.feed(&piece, &mut self.out)
    }

    pub(crate) fn gap(&mut self, direction: Direction, missing: Option<u64>) {
        self.decoder.gap(direction, missing, &mut self.out);
    }

    pub(crate) fn close(&mut self) {
        self.at_ns += STEP_NS;
        self.decoder.close(self.at_ns, &mut self.out);
    }
}

/// Exchanges of a conversation that is seen whole and then closed.
pub(crate) fn play(candidate: &Candidate, said: &[Said<'_>]) -> Vec<Exchange> {
    let mut player = Player::new(candidate, &Options::default(), false);
    for (direction, bytes) in said {
        player.say(*direction, bytes);
    }
    player.close();
    player.out
}

/// Random numbers that are the same each time (xorshift64*).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).expect("below a usize")
    }
}

/// How a conversation is cut into pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cuts {
    pub(crate) seed: u64,
    /// Longest piece; what was said at once may come in many pieces.
    pub(crate) longest: usize,
    /// Bytes that are captured of a piece.
    pub(crate) captured: usize,
}

/// Exchanges of a conversation in random pieces.
pub(crate) fn play_cut(candidate: &Candidate, said: &[Said<'_>], cuts: Cuts) -> Vec<Exchange> {
    let mut numbers = Numbers::new(cuts.seed);
    let mut player = Player::new(candidate, &Options::default(), false);
    for (direction, bytes) in said {
        let mut rest = *bytes;
        while !rest.is_empty() {
            let length = (1 + numbers.below(cuts.longest)).min(rest.len());
            let (piece, after) = rest.split_at(length);
            player.say_captured(*direction, piece, cuts.captured);
            rest = after;
        }
    }
    player.close();
    player.out
}
