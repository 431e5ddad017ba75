//! DNS over UDP and TCP (RFC 1035 section 4).
//!
//! A query and its response have the id and the question in common; order says nothing. Of names only
//! the question's is kept, folded.

mod message;
mod pairs;

use super::{
    Candidate, Decoder, Direction, Exchange, Opening, Options, Piece, Protocol, Verdict,
    WrongProtocol,
    decoder::PerDirection,
    framed::{Framed, Speech},
    frames::{Extent, Frame},
};
use message::read;
use pairs::{Moved, Pairs};

pub(crate) const DNS_UDP: Candidate = Candidate {
    protocol: Protocol::Dns,
    recognise: recognise_datagram,
    start: |options, _joined| Box::new(Datagrams::new(options)),
};

pub(crate) const DNS_TCP: Candidate = Candidate {
    protocol: Protocol::Dns,
    recognise: recognise_stream,
    start: |options, joined| Box::new(Framed::new(Stream::new(options), joined)),
};

/// Multicast DNS has unsolicited answers without queries (RFC 6762).
const MULTICAST_PORT: u16 = 5353;
/// Bytes of a message before its records.
const MESSAGE_HEADER: usize = 12;
/// Bytes of the length before a message over TCP.
const LENGTH_BYTES: usize = 2;

fn recognise_datagram(opening: &Opening<'_>) -> Verdict {
    if !opening.is_udp || opening.server_port == MULTICAST_PORT {
        return Verdict::No;
    }
    let fits = |bytes, way| read(bytes).is_some_and(|message| message.goes(way));
    match (
        fits(opening.to_server, Direction::ToServer),
        fits(opening.to_client, Direction::ToClient),
    ) {
        (true, _) => Verdict::Yes,
        (false, true) if opening.to_server.is_empty() => Verdict::Undecided,
        _ => Verdict::No,
    }
}

fn recognise_stream(opening: &Opening<'_>) -> Verdict {
    if opening.is_udp {
        return Verdict::No;
    }
    let bytes = opening.to_server;
    let Some((length, message)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
        let silent = opening.to_client.is_empty();
        return if silent || opening.joined {
            Verdict::Undecided
        } else {
            Verdict::No
        };
    };
    let length = usize::from(u16::from_be_bytes(*length));
    // Queries are short: this keeps text and other protocols out early.
    if !(MESSAGE_HEADER + 5..=4096).contains(&length) {
        return Verdict::No;
    }
    if let Some(message) = message.get(..length) {
        let valid = read(message).is_some_and(|message| message.goes(Direction::ToServer));
        return if valid { Verdict::Yes } else { Verdict::No };
    }
    // What is there of the header must be that of a query: one question, nothing answered.
    let header = [None, None, None, None, Some(0), Some(1), Some(0), Some(0)];
    let plausible = message
        .iter()
        .zip(header)
        .all(|(byte, wanted)| wanted.is_none_or(|w| w == *byte));
    let query = message.get(2).is_none_or(|flags| flags & 0xf8 == 0);
    if plausible && query {
        Verdict::Undecided
    } else {
        Verdict::No
    }
}

/// Each piece is a datagram.
#[derive(Debug)]
struct Datagrams {
    pairs: Pairs,
    understood: bool,
    not_understood: PerDirection<u64>,
}

impl Datagrams {
    fn new(options: &Options) -> Self {
        Self {
            pairs: Pairs::new(options),
            understood: false,
            not_understood: PerDirection::default(),
        }
    }
}

impl Decoder for Datagrams {
    fn protocol(&self) -> Protocol {
        Protocol::Dns
    }

    fn feed(&mut self, piece: &Piece<'_>, out: &mut Vec<Exchange>) -> Result<(), WrongProtocol> {
        match read(piece.bytes) {
            Some(message) if message.goes(piece.direction) => {
                self.understood = true;
                let moved = Moved {
                    begin_ns: piece.at_ns,
                    end_ns: piece.at_ns,
                    bytes: piece.length,
                };
                self.pairs.take(message, moved, out);
                Ok(())
            }
            _ if !self.understood => Err(WrongProtocol),
            _ => {
                *self.not_understood.get_mut(piece.direction) += piece.length;
                Ok(())
            }
        }
    }

    /// Datagrams stand alone: what is missing is one without an answer, or an answer.
    fn gap(&mut self, direction: Direction, _missing: Option<u64>, _out: &mut Vec<Exchange>) {
        if direction == Direction::ToClient {
            self.pairs.answers_missing();
        }
    }

    fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        self.pairs.close(at_ns, out);
    }

    fn not_understood(&self) -> PerDirection<u64> {
        self.not_understood
    }
}

/// Messages behind their lengths (RFC 1035 section 4.2.2, RFC 7766).
#[derive(Debug)]
struct Stream {
    pairs: Pairs,
    keep: usize,
}

impl Stream {
    fn new(options: &Options) -> Self {
        Self {
            pairs: Pairs::new(options),
            keep: options.limits.pending_bytes.min(1024),
        }
    }
}

impl Speech for Stream {
    fn protocol(&self) -> Protocol {
        Protocol::Dns
    }

    fn header(&self, _direction: Direction) -> usize {
        LENGTH_BYTES
    }

    fn measure(&self, _direction: Direction, header: &[u8]) -> Option<Extent> {
        let length = usize::from(u16::from_be_bytes(*header.first_chunk()?));
        (length >= MESSAGE_HEADER).then_some(Extent {
            length: (LENGTH_BYTES + length) as u64,
            keep: self.keep,
        })
    }

    fn resumes(&self, direction: Direction, bytes: &[u8], _at_ns: u64) -> bool {
        let message = bytes.get(LENGTH_BYTES..).and_then(read);
        message.is_some_and(|message| message.goes(direction))
    }

    fn frame(
        &mut self,
        direction: Direction,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let message = frame.head.get(LENGTH_BYTES..).and_then(read);
        let message = message.filter(|message| message.goes(direction));
        let moved = Moved {
            begin_ns: frame.begin_ns,
            end_ns: frame.end_ns,
            bytes: frame.length,
        };
        self.pairs.take(message.ok_or(WrongProtocol)?, moved, out);
        Ok(())
    }

    fn lost(&mut self, direction: Direction, _at_ns: u64, _out: &mut Vec<Exchange>) {
        if direction == Direction::ToClient {
            self.pairs.answers_missing();
        }
    }

    fn resumed_answers(&mut self, at_ns: u64) {
        self.pairs.answers_missing_until(at_ns);
    }

    fn skipped_answers(&mut self, at_ns: u64, _out: &mut Vec<Exchange>) {
        self.pairs.answers_missing_until(at_ns);
    }

    fn close(&mut self, at_ns: u64, answered_ns: Option<u64>, out: &mut Vec<Exchange>) {
        if let Some(answered_ns) = answered_ns {
            self.pairs.answers_missing_until(answered_ns);
        }
        self.pairs.close(at_ns, out);
    }
}

#[cfg(test)]
mod tests;
