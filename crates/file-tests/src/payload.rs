//! Detection and decoders of payload.
//!
//! The first bytes of an input say how the rest is cut into pieces, how much of each is captured, which
//! way it goes and what is missing. Recorded transcripts are inputs of this form too (`input`).

use profiler_protocols::{
    CANDIDATES, Connection, ConnectionFacts, Direction, Exchange, Limits, Options, Piece, Protocol,
};

/// Detection among all protocols.
pub(crate) fn connection(bytes: &[u8]) {
    detect(bytes);
}

/// Records and hellos.
pub(crate) fn tls(bytes: &[u8]) {
    decode(Protocol::Tls, bytes);
}

/// Datagrams, and messages over TCP.
pub(crate) fn dns(bytes: &[u8]) {
    decode(Protocol::Dns, bytes);
}

pub(crate) fn redis(bytes: &[u8]) {
    decode(Protocol::Redis, bytes);
}

pub(crate) fn postgresql(bytes: &[u8]) {
    decode(Protocol::PostgreSql, bytes);
}

pub(crate) fn mysql(bytes: &[u8]) {
    decode(Protocol::MySql, bytes);
}

pub(crate) fn kafka(bytes: &[u8]) {
    decode(Protocol::Kafka, bytes);
}

pub(crate) fn mongodb(bytes: &[u8]) {
    decode(Protocol::MongoDb, bytes);
}

/// Bytes before each call: a seed for its cuts, a capture limit, flags, its length (two bytes).
const CALL_HEADER: usize = 5;
const TO_CLIENT: u8 = 1;
const CUT: u8 = 2;
const MISSED: u8 = 4;
const LOST: u8 = 8;

/// An input that plays a transcript: lines of `>` or `<` and hexadecimal bytes, other lines aside.
#[cfg(test)]
pub(crate) fn input(transcript: &str) -> Vec<u8> {
    let mut input = vec![0];
    for (number, line) in transcript.lines().enumerate() {
        let Some((kind @ (">" | "<"), hex)) = line.split_once(' ') else {
            continue;
        };
        let pairs = hex.as_bytes().chunks_exact(2);
        let byte = |pair: &[u8]| {
            let text = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(text, 16).ok()
        };
        let bytes: Vec<u8> = pairs.filter_map(byte).collect();
        for chunk in bytes.chunks(usize::from(u16::MAX)) {
            let seed = u8::try_from(number % 256).unwrap_or(0);
            let way = if kind == "<" { TO_CLIENT } else { 0 };
            let cut = if number % 3 == 0 { CUT } else { 0 };
            input.extend([seed, 255, way | cut]);
            let length = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
            input.extend(length.to_be_bytes());
            input.extend(chunk);
        }
    }
    input
}

/// Finds out what an input is.
fn detect(bytes: &[u8]) {
    let Some((flags, rest)) = bytes.split_first() else {
        return;
    };
    let facts = ConnectionFacts {
        server_port: 0,
        joined: flags & 1 != 0,
        is_udp: flags & 2 != 0,
    };
    let mut connection = Connection::new(options(), facts);
    let mut out = Vec::new();
    let (mut offsets, mut at_ns) = ([0_u64; 2], 0);
    for call in calls(rest) {
        let place = usize::from(call.direction == Direction::ToClient);
        if call.flags & LOST != 0 {
            connection.gap(call.direction, &mut out);
        }
        for (length, captured) in call.pieces() {
            at_ns += 1 + u64::from(call.seed) * 1_000_000;
            let Some(offset) = offsets.get_mut(place) else {
                return;
            };
            if call.flags & MISSED == 0 {
                let piece = Piece {
                    direction: call.direction,
                    at_ns,
                    length,
                    bytes: captured,
                };
                connection.feed(&piece, *offset, &mut out);
            }
            *offset = offset.saturating_add(length);
        }
        connection.rest(at_ns, &mut out);
        check(&out);
        out.clear();
    }
    connection.stop(at_ns, &mut out);
    connection.close(at_ns, &mut out);
    check(&out);
}

/// Gives an input to the decoders of one protocol, whatever it looks like.
fn decode(protocol: Protocol, bytes: &[u8]) {
    let Some((flags, rest)) = bytes.split_first() else {
        return;
    };
    for candidate in CANDIDATES.iter().filter(|known| known.protocol == protocol) {
        let mut decoder = (candidate.start)(&options(), flags & 1 != 0);
        let mut out = Vec::new();
        let mut at_ns = 0;
        'calls: for call in calls(rest) {
            if call.flags & LOST != 0 {
                decoder.gap(call.direction, None, &mut out);
            }
            for (length, captured) in call.pieces() {
                at_ns += 1 + u64::from(call.seed) * 1_000_000;
                let piece = Piece {
                    direction: call.direction,
                    at_ns,
                    length,
                    bytes: captured,
                };
                if call.flags & MISSED != 0 {
                    decoder.gap(call.direction, Some(length), &mut out);
                } else if decoder.feed(&piece, &mut out).is_err() {
                    break 'calls;
                }
            }
            decoder.rest(at_ns, &mut out);
            check(&out);
            out.clear();
        }
        decoder.stop(at_ns, &mut out);
        decoder.close(at_ns, &mut out);
        check(&out);
    }
}

fn options() -> Options {
    Options {
        limits: Limits {
            open_exchanges: 32,
            ..Limits::default()
        },
        ..Options::default()
    }
}

/// What holds of every exchange.
fn check(exchanges: &[Exchange]) {
    for exchange in exchanges {
        assert!(exchange.begin_ns <= exchange.end_ns, "{exchange:?}");
        for text in [&exchange.method, &exchange.route].into_iter().flatten() {
            assert!(text.len() <= Limits::default().text_bytes, "{exchange:?}");
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Call<'a> {
    direction: Direction,
    seed: u8,
    capture: u8,
    flags: u8,
    bytes: &'a [u8],
}

impl<'a> Call<'a> {
    /// Lengths of pieces, with what is captured of each.
    fn pieces(self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let mut rest = self.bytes;
        let mut state = u32::from(self.seed) | 1;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let wanted = if self.flags & CUT == 0 {
                rest.len()
            } else {
                usize::try_from(state >> 24).unwrap_or(1) % 40 + 1
            };
            let (piece, behind) = rest.split_at(wanted.min(rest.len()));
            rest = behind;
            let capture = match self.capture {
                255 => piece.len(),
                little => usize::from(little) * 4,
            };
            let captured = piece.get(..capture).unwrap_or(piece);
            Some((piece.len() as u64, captured))
        })
    }
}

struct Calls<'a> {
    rest: &'a [u8],
}

fn calls(rest: &[u8]) -> Calls<'_> {
    Calls { rest }
}

impl<'a> Iterator for Calls<'a> {
    type Item = Call<'a>;

    fn next(&mut self) -> Option<Call<'a>> {
        let (header, rest) = self.rest.split_first_chunk::<CALL_HEADER>()?;
        let [seed, capture, flags, high, low] = *header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (bytes, rest) = rest.split_at(length.min(rest.len()));
        self.rest = rest;
        let to_client = flags & TO_CLIENT != 0;
        Some(Call {
            direction: if to_client {
                Direction::ToClient
            } else {
                Direction::ToServer
            },
            seed,
            capture,
            flags,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{connection, dns, kafka, mongodb, mysql, postgresql, redis, tls};
    use crate::inputs::{Numbers, transcript};

    const READERS: [fn(&[u8]); 8] = [
        connection, tls, dns, redis, postgresql, mysql, kafka, mongodb,
    ];

    const RECORDED: [&str; 7] = [
        "dns",
        "kafka",
        "mongodb",
        "redis",
        "postgresql",
        "mysql",
        "tls",
    ];

    #[test]
    fn damaged_transcripts_break_no_reader() {
        for protocol in RECORDED {
            let original = transcript(protocol).bytes;
            for read in READERS {
                read(&original);
                for seed in 0..30 {
                    let mut numbers = Numbers::of(seed);
                    let mut bytes = original.clone();
                    for _ in 0..=numbers.below(20) {
                        let at = numbers.below(bytes.len());
                        bytes[at] = numbers.byte();
                    }
                    read(&bytes);
                }
            }
        }
    }
}
