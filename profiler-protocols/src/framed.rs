//! The decoder of protocols that consist of frames: positions, gaps and the way back in.
//!
//! What a frame means is left to a [`Speech`]. After a gap, or on a joined connection, a direction is
//! passed over until a piece begins with frames that are valid.

use std::fmt::Debug;

use super::{
    Decoder, Direction, Exchange, Piece, Protocol, TlsFacts, WrongProtocol,
    decoder::PerDirection,
    frames::{Extent, Frame, FrameReader, Rest, Step, begins_with_frames},
    tls::TlsDecoder,
};

/// What the frames of a protocol mean.
pub(crate) trait Speech: Debug + Send {
    fn protocol(&self) -> Protocol;

    /// Bytes that tell how long the next frame of a direction is.
    fn header(&self, direction: Direction) -> usize;

    /// The extent of the frame that begins with a header; `None`: it is none of this protocol.
    fn measure(&self, direction: Direction, header: &[u8]) -> Option<Extent>;

    /// Whether this frame may begin a piece after a gap. `bytes` are at least a header.
    fn resumes(&self, direction: Direction, bytes: &[u8], at_ns: u64) -> bool;

    /// A call of the client begins with a frame.
    fn call(&mut self, _at_ns: u64) {}

    /// Takes a frame.
    fn frame(
        &mut self,
        direction: Direction,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol>;

    /// Frames of this direction were missed. Gives out what can no longer be told.
    fn lost(&mut self, direction: Direction, at_ns: u64, out: &mut Vec<Exchange>);

    /// Payload went by, understood or not.
    fn passed(&mut self, _direction: Direction, _at_ns: u64) {}

    fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>);

    /// Answers cannot be told to belong to requests for now.
    fn is_dirty(&self) -> bool {
        false
    }

    /// Both ends have agreed to go on encrypted.
    fn is_encrypted(&self) -> bool {
        false
    }

    /// What follows has no frames that are understood (a replication stream, compression).
    fn is_opaque(&self) -> bool {
        false
    }
}

/// Frames of a direction after which the protocol is taken for granted: an invalid one is a hole in
/// what was seen then, not a wrong guess.
const CONFIRMED: u32 = 3;

#[derive(Debug)]
pub(crate) struct Framed<S> {
    speech: S,
    ways: PerDirection<Way>,
    tls: Option<TlsDecoder>,
    last_ns: u64,
}

#[derive(Debug, Default)]
struct Way {
    reader: FrameReader,
    /// The next piece may begin anywhere.
    lost: bool,
    frames: u32,
    /// Pieces of which the rest may hold frames.
    gaps: u64,
    not_understood: u64,
}

impl<S: Speech> Framed<S> {
    pub(crate) fn new(speech: S, joined: bool) -> Self {
        let way = || Way {
            lost: joined,
            ..Way::default()
        };
        Self {
            speech,
            ways: PerDirection {
                to_server: way(),
                to_client: way(),
            },
            tls: None,
            last_ns: 0,
        }
    }

    fn lose(&mut self, direction: Direction, out: &mut Vec<Exchange>) {
        let way = self.ways.get_mut(direction);
        way.lost = true;
        way.reader = FrameReader::default();
        self.speech.lost(direction, self.last_ns, out);
    }

    fn frames(
        &mut self,
        direction: Direction,
        rest: &mut Rest<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        loop {
            if self.speech.is_encrypted() || self.speech.is_opaque() {
                return Ok(());
            }
            let confirmed = self.ways.get(direction).frames >= CONFIRMED;
            let way = self.ways.get_mut(direction);
            let speech = &self.speech;
            let header = speech.header(direction);
            let step = way
                .reader
                .next(rest, header, |bytes| speech.measure(direction, bytes));
            match step {
                Step::Wait => return Ok(()),
                Step::Frame(frame) => {
                    way.frames = way.frames.saturating_add(1);
                    if self.speech.frame(direction, &frame, out).is_err() {
                        if !confirmed {
                            return Err(WrongProtocol);
                        }
                        break;
                    }
                }
                Step::Invalid if !confirmed => return Err(WrongProtocol),
                Step::Invalid => break,
                Step::Lost => {
                    way.gaps += 1;
                    break;
                }
            }
        }
        self.ways.get_mut(direction).not_understood += rest.length();
        self.lose(direction, out);
        Ok(())
    }
}

impl<S: Speech> Decoder for Framed<S> {
    fn protocol(&self) -> Protocol {
        if self.speech.is_encrypted() {
            return Protocol::Tls;
        }
        self.speech.protocol()
    }

    fn feed(&mut self, piece: &Piece<'_>, out: &mut Vec<Exchange>) -> Result<(), WrongProtocol> {
        let direction = piece.direction;
        self.last_ns = self.last_ns.max(piece.at_ns);
        let mut rest = Rest::of(piece);
        if !self.speech.is_encrypted() && !self.speech.is_opaque() {
            let way = self.ways.get_mut(direction);
            if way.lost {
                let speech = &self.speech;
                let header = speech.header(direction);
                let valid = speech.resumes(direction, piece.bytes, piece.at_ns)
                    && begins_with_frames(piece, header, |bytes| speech.measure(direction, bytes));
                if !valid {
                    way.not_understood += piece.length;
                    self.speech.passed(direction, piece.at_ns);
                    return Ok(());
                }
                way.lost = false;
            }
            if direction == Direction::ToServer && !way.reader.is_inside() {
                self.speech.call(piece.at_ns);
            }
            self.frames(direction, &mut rest, out)?;
            self.speech.passed(direction, piece.at_ns);
        }
        if self.speech.is_opaque() {
            self.ways.get_mut(direction).not_understood += rest.length();
        } else if self.speech.is_encrypted() && rest.length() > 0 {
            let tls = self.tls.get_or_insert_with(|| TlsDecoder::new(false));
            let behind = Piece {
                length: rest.length(),
                bytes: rest.bytes,
                ..*piece
            };
            // What is behind an agreement to encrypt and is none of TLS is counted by that decoder.
            if tls.feed(&behind, out).is_err() {
                self.ways.get_mut(direction).not_understood += behind.length;
            }
        }
        Ok(())
    }

    fn gap(&mut self, direction: Direction, missing: Option<u64>, out: &mut Vec<Exchange>) {
        if let Some(tls) = &mut self.tls {
            tls.gap(direction, missing, out);
        } else if self.ways.get(direction).lost || !self.ways.get_mut(direction).reader.gap(missing)
        {
            self.lose(direction, out);
        }
    }

    fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        self.speech.close(at_ns, out);
    }

    fn is_dirty(&self) -> bool {
        let PerDirection {
            to_server,
            to_client,
        } = &self.ways;
        self.speech.is_dirty() || to_server.lost || to_client.lost
    }

    fn gaps(&self) -> u64 {
        self.ways.to_server.gaps + self.ways.to_client.gaps
    }

    fn not_understood(&self) -> PerDirection<u64> {
        let encrypted = self.tls.as_ref().map(TlsDecoder::not_understood);
        let encrypted = encrypted.unwrap_or_default();
        PerDirection {
            to_server: self.ways.to_server.not_understood + encrypted.to_server,
            to_client: self.ways.to_client.not_understood + encrypted.to_client,
        }
    }

    fn tls(&self) -> Option<&TlsFacts> {
        self.tls.as_ref().and_then(TlsDecoder::tls)
    }
}
