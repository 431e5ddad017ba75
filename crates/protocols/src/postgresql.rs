//! PostgreSQL's protocol, version 3 (PostgreSQL documentation, chapter "Frontend/Backend Protocol").
//!
//! A request is a simple query, or an `Execute` with the messages before it; answers come in the same
//! order. Statements are kept folded; parameters, rows, COPY data and authentication never are.

mod ending;
mod session;
mod units;

use super::{
    Candidate, Direction, Opening, Piece, Protocol, Verdict,
    framed::Framed,
    frames::{Extent, begins_with_frames},
    reader::Reader,
};
use session::PostgresqlSession;

pub(crate) const POSTGRESQL: Candidate = Candidate {
    protocol: Protocol::PostgreSql,
    recognise,
    start: |options, joined| Box::new(Framed::new(PostgresqlSession::new(options, joined), joined)),
};

/// A type and a length that counts itself.
const HEADER: usize = 5;
/// A length and a code: the client's first messages have no type.
const STARTUP_HEADER: usize = 8;
/// pqcomm.h: `MAX_STARTUP_PACKET_LENGTH`.
const MOST_STARTUP: u32 = 10_000;
/// `PQ_LARGE_MESSAGE_LIMIT`: one byte less than 1 GB.
const MOST_MESSAGE: u32 = 0x3fff_ffff;

/// What a first message asks for, by its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Startup {
    Session,
    Cancel,
    /// TLS or GSSAPI, which the server grants with one byte.
    Encryption,
}

impl Startup {
    fn of(header: &[u8]) -> Option<(Self, u32)> {
        let mut reader = Reader::new(header);
        let (length, code) = (reader.u32_be()?, reader.u32_be()?);
        let kind = match code {
            80_877_102 => Self::Cancel,
            80_877_103 | 80_877_104 => Self::Encryption,
            _ if code >> 16 == 3 && code & 0xffff <= 9 => Self::Session,
            _ => return None,
        };
        let fits = match kind {
            Self::Session => (9..=MOST_STARTUP).contains(&length),
            Self::Cancel => (16..=268).contains(&length),
            Self::Encryption => length == 8,
        };
        fits.then_some((kind, length))
    }
}

fn recognise(opening: &Opening<'_>) -> Verdict {
    if opening.is_udp {
        return Verdict::No;
    }
    if opening.joined {
        return recognise_joined(opening);
    }
    let bytes = opening.to_server;
    if bytes.len() >= STARTUP_HEADER {
        let startup = bytes.get(..STARTUP_HEADER).and_then(Startup::of);
        return if startup.is_some() {
            Verdict::Yes
        } else {
            Verdict::No
        };
    }
    // The first two bytes of a length that is at most 10,000.
    let plausible = bytes
        .iter()
        .zip([0, 0x27])
        .all(|(byte, most)| *byte <= most);
    if opening.to_client.is_empty() && plausible {
        Verdict::Undecided
    } else {
        Verdict::No
    }
}

/// In the middle: a query with its text, or several messages in a row, and answers of their form.
fn recognise_joined(opening: &Opening<'_>) -> Verdict {
    let frames = |direction, bytes: &[u8]| {
        let piece = Piece {
            direction,
            at_ns: 0,
            length: bytes.len() as u64,
            bytes,
        };
        begins_with_frames(&piece, HEADER, |header| message(direction, header, 0))
    };
    let bytes = opening.to_server;
    if bytes.is_empty() {
        let answers = frames(Direction::ToClient, opening.to_client);
        return if answers {
            Verdict::Undecided
        } else {
            Verdict::No
        };
    }
    if !frames(Direction::ToServer, bytes) {
        return Verdict::No;
    }
    let mut reader = Reader::new(bytes);
    let (kind, _length) = (reader.u8(), reader.u32_be());
    let text = match kind {
        Some(b'Q') => Some(reader.rest()),
        // Behind the name of the statement.
        Some(b'P') => reader.until_nul().map(|_| reader.rest()),
        _ => None,
    };
    let is_statement = text.is_some_and(|text| {
        super::sql::fold(text, false, super::sql::Dialect::PostgreSql, 64)
            .method
            .is_some()
    });
    // `Bind`, `Execute` or `Describe`, `Sync` behind each other.
    let is_bound = kind == Some(b'B') && bytes.ends_with(b"S\0\0\0\x04");
    if is_statement || is_bound {
        Verdict::Yes
    } else {
        Verdict::No
    }
}

/// The extent of a message with a type.
fn message(direction: Direction, header: &[u8], statement_bytes: usize) -> Option<Extent> {
    let mut reader = Reader::new(header);
    let (kind, length) = (reader.u8()?, reader.u32_be()?);
    let keep = match direction {
        Direction::ToServer => match kind {
            b'Q' | b'P' => statement_bytes,
            // Names of portals and statements, each shorter than NAMEDATALEN.
            b'B' | b'C' | b'D' | b'E' => HEADER + 160,
            b'd' | b'c' | b'f' | b'F' | b'H' | b'S' | b'X' => HEADER,
            // A password, or what proves one.
            b'p' => HEADER,
            _ => return None,
        },
        Direction::ToClient => match kind {
            b'E' => HEADER + 256,
            b'R' => HEADER + 4,
            b'Z' => HEADER + 1,
            b'1' | b'2' | b'3' | b'A' | b'C' | b'D' | b'G' | b'H' | b'I' | b'K' | b'N' | b'S'
            | b'T' | b'V' | b'W' | b'c' | b'd' | b'n' | b's' | b't' | b'v' => HEADER,
            _ => return None,
        },
    };
    let exact = match (direction, kind) {
        (Direction::ToServer, b'S' | b'H' | b'X' | b'c') => Some(4),
        (Direction::ToClient, b'1' | b'2' | b'3' | b'I' | b'n' | b's' | b'c') => Some(4),
        (Direction::ToClient, b'Z') => Some(5),
        _ => None,
    };
    let fits = (4..=MOST_MESSAGE).contains(&length) && exact.is_none_or(|exact| exact == length);
    fits.then_some(Extent {
        length: 1 + u64::from(length),
        keep,
    })
}

#[cfg(test)]
mod tests;
