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

    /// Whether these bytes, shorter than a header, are all that some ends read first: how long a frame is.
    fn is_length(&self, _bytes: &[u8]) -> bool {
        false
    }

    /// Whether this frame may begin a piece after a gap. `bytes` are at least a header.
    fn resumes(&self, direction: Direction, bytes: &[u8], at_ns: u64) -> bool;

    /// A call of the client begins with a frame. An answer whose end was not captured ended before it.
    fn call(&mut self, _at_ns: u64, _out: &mut Vec<Exchange>) {}

    /// Takes a frame.
    fn frame(
        &mut self,
        direction: Direction,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol>;

    /// This many bytes of answers go by behind those that were captured. `true`: they can only belong to one
    /// answer, and so does all that comes before the client's next call.
    fn begin_tail(&mut self, _bytes: u64, _at_ns: u64) -> bool {
        false
    }

    /// A piece that goes on with that answer, from anywhere in it.
    fn pass_tail(&mut self, _piece: &Piece<'_>) {}

    /// Frames of this direction were missed. Gives out what can no longer be determined.
    fn lost(&mut self, direction: Direction, at_ns: u64, out: &mut Vec<Exchange>);

    /// Answers are read again from here on. What has waited until now may have had its answer, unread.
    fn resumed_answers(&mut self, _at_ns: u64) {}

    /// Answers went by that could not be read: what waits for one may have had it.
    fn skipped_answers(&mut self, _at_ns: u64, _out: &mut Vec<Exchange>) {}

    /// Payload went by, understood or not.
    fn passed(&mut self, _direction: Direction, _at_ns: u64) {}

    /// The connection has ended. `answered_ns`: until then answers may have gone by unread, so that a request
    /// is broken only if it came later.
    fn close(&mut self, at_ns: u64, answered_ns: Option<u64>, out: &mut Vec<Exchange>);

    /// Nothing has come until now: gives out what that proves.
    fn rest(&mut self, _now_ns: u64, _out: &mut Vec<Exchange>) {}

    /// Ends the observation: gives out what was held back.
    fn stop(&mut self, _now_ns: u64, _out: &mut Vec<Exchange>) {}

    /// Answers are known to belong to their requests, and not only so far as has shown.
    fn is_sure(&self) -> bool {
        true
    }

    /// Answers cannot be assigned to requests for now.
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
    /// When answers last went by, read or not.
    answered_ns: u64,
    wants_bytes: bool,
}

#[derive(Debug, Default)]
struct Way {
    reader: FrameReader,
    /// The next piece may begin anywhere.
    lost: bool,
    /// A header that was moved by itself while lost: with the next piece it may begin a frame.
    alone: Option<Header>,
    /// It has been lost before.
    was_lost: bool,
    /// The next piece goes on with an answer whose end is not captured.
    tail: bool,
    frames: u32,
    /// Pieces of which the rest may hold frames.
    gaps: u64,
    not_understood: u64,
}

/// A piece that was held back.
#[derive(Debug)]
struct Header {
    bytes: Vec<u8>,
    at_ns: u64,
}

impl<S: Speech> Framed<S> {
    pub(crate) fn new(speech: S, joined: bool) -> Self {
        let way = || Way {
            lost: joined,
            was_lost: joined,
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
            answered_ns: 0,
            wants_bytes: false,
        }
    }

    fn lose(&mut self, direction: Direction, out: &mut Vec<Exchange>) {
        let way = self.ways.get_mut(direction);
        way.lost = true;
        way.was_lost = true;
        way.reader = FrameReader::default();
        way.alone = None;
        self.end_tail();
        self.speech.lost(direction, self.last_ns, out);
    }

    /// What comes next to the client begins with an answer.
    fn end_tail(&mut self) {
        let way = &mut self.ways.to_client;
        way.lost |= std::mem::take(&mut way.tail);
    }

    /// Whether the rest of an answer, with this many bytes of this piece, can be measured without being read.
    fn begin_tail(&mut self, direction: Direction, bytes: u64, at_ns: u64) -> bool {
        let asks = &self.ways.to_server;
        let is_asked = direction == Direction::ToClient && !asks.lost && !asks.reader.is_inside();
        if is_asked && self.speech.begin_tail(bytes, at_ns) {
            let way = &mut self.ways.to_client;
            way.reader = FrameReader::default();
            way.tail = true;
        }
        self.ways.to_client.tail
    }

    /// Looks for the way back in. `true`: the piece begins with a frame, or goes on with the one whose header
    /// came alone before it, which has been taken then.
    fn resume(
        &mut self,
        piece: &Piece<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<bool, WrongProtocol> {
        let direction = piece.direction;
        let header = self.speech.header(direction);
        let measure = |bytes: &[u8]| self.speech.measure(direction, bytes);
        let valid = |bytes: &[u8], length| {
            let whole = Piece {
                length,
                bytes,
                ..*piece
            };
            self.speech.resumes(direction, bytes, piece.at_ns)
                && begins_with_frames(&whole, header, measure)
        };
        let alone = self.ways.get(direction).alone.as_ref();
        let joined = alone.is_some_and(|alone| {
            let bytes = [alone.bytes.as_slice(), piece.bytes].concat();
            valid(&bytes, alone.bytes.len() as u64 + piece.length)
        });
        let begins = !joined && valid(piece.bytes, piece.length);
        let is_all = piece.bytes.len() as u64 == piece.length;
        let is_header = piece.bytes.len() == header && measure(piece.bytes).is_some();
        let is_first = is_header || self.speech.is_length(piece.bytes);
        let waits = !joined && !begins && is_all && is_first;
        let way = self.ways.get_mut(direction);
        let alone = way.alone.take().filter(|_| joined);
        way.lost = !joined && !begins;
        if waits {
            way.alone = Some(Header {
                bytes: piece.bytes.to_vec(),
                at_ns: piece.at_ns,
            });
        }
        if let Some(Header { bytes, at_ns }) = alone {
            way.not_understood = way.not_understood.saturating_sub(bytes.len() as u64);
            if direction == Direction::ToServer {
                self.speech.call(at_ns, out);
            }
            let mut rest = Rest {
                bytes: &bytes,
                uncaptured: 0,
                at_ns,
            };
            self.frames(direction, &mut rest, out)?;
        }
        Ok(joined || begins)
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
            let left = rest.length() + way.reader.header_bytes();
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
                        self.ways.get_mut(direction).gaps += 1;
                        break;
                    }
                }
                Step::Invalid if !confirmed => return Err(WrongProtocol),
                Step::Invalid => {
                    way.gaps += 1;
                    break;
                }
                Step::Lost => {
                    self.wants_bytes = true;
                    if self.begin_tail(direction, left, rest.at_ns) {
                        return Ok(());
                    }
                    self.ways.get_mut(direction).gaps += 1;
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
            match direction {
                Direction::ToServer => self.end_tail(),
                Direction::ToClient => self.answered_ns = self.answered_ns.max(piece.at_ns),
            }
            if self.ways.get(direction).tail {
                self.speech.pass_tail(piece);
                self.speech.passed(direction, piece.at_ns);
                return Ok(());
            }
            let was_lost = self.ways.get(direction).lost;
            if was_lost && !self.resume(piece, out)? {
                let way = self.ways.get_mut(direction);
                way.not_understood += piece.length;
                if direction == Direction::ToClient && way.alone.is_none() {
                    self.speech.skipped_answers(piece.at_ns, out);
                }
                self.speech.passed(direction, piece.at_ns);
                return Ok(());
            }
            if was_lost && direction == Direction::ToClient {
                self.speech.resumed_answers(piece.at_ns);
            }
            let is_inside = self.ways.get(direction).reader.is_inside();
            if direction == Direction::ToServer && !is_inside {
                self.speech.call(piece.at_ns, out);
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
        } else if self.ways.get(direction).lost
            || self.ways.get(direction).tail
            || !self.ways.get_mut(direction).reader.gap(missing)
        {
            self.lose(direction, out);
        }
    }

    fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        let way = &self.ways.to_client;
        let is_read = self.speech.is_sure() && !way.was_lost && !way.tail;
        let answered_ns = (!is_read).then_some(self.answered_ns);
        self.speech.close(at_ns, answered_ns, out);
    }

    fn rest(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        self.speech.rest(now_ns, out);
    }

    fn stop(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        self.speech.stop(now_ns, out);
    }

    fn wants_bytes(&self) -> bool {
        self.wants_bytes
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
