//! The protocol of MySQL and MariaDB (MySQL internals, "Client/Server Protocol"; MariaDB knowledge base,
//! "Client/Server Protocol").
//!
//! Packets are numbered within each command, which is what the answer is known by after a gap.
//! Statements are kept folded; parameters, rows, files and authentication never are.

mod answer;
mod command;
mod handshake;
mod session;

use super::{
    Candidate, Opening, Protocol, Verdict,
    framed::Framed,
    reader::Reader,
    sql::{Dialect, fold},
};
use command::Command;
use session::MysqlSession;

pub(crate) const MYSQL: Candidate = Candidate {
    protocol: Protocol::MySql,
    recognise,
    start: |options, joined| Box::new(Framed::new(MysqlSession::new(options, joined), joined)),
};

/// A length of three bytes and the number of the packet.
const HEADER: usize = 4;
/// A packet of this length goes on in the next.
const MOST_PACKET: u32 = 0xff_ffff;

/// Length of the payload and number of a packet.
fn packet(header: &[u8]) -> Option<(u32, u8)> {
    let mut reader = Reader::new(header);
    Some((reader.u24_le()?, reader.u8()?))
}

fn recognise(opening: &Opening<'_>) -> Verdict {
    if opening.is_udp {
        return Verdict::No;
    }
    if opening.joined {
        return recognise_joined(opening);
    }
    // The server speaks first.
    let bytes = opening.to_client;
    if bytes.is_empty() {
        let silent = opening.to_server.is_empty();
        return if silent {
            Verdict::Undecided
        } else {
            Verdict::No
        };
    }
    let Some((length, number)) = packet(bytes) else {
        return Verdict::Undecided;
    };
    let greeting = bytes.get(HEADER..).unwrap_or_default();
    if number != 0 || !(40..=1024).contains(&length) || !matches!(greeting.first(), None | Some(10))
    {
        return Verdict::No;
    }
    let version = greeting.get(1..).unwrap_or_default();
    let version: Vec<u8> = version
        .iter()
        .copied()
        .take_while(|byte| *byte != 0)
        .collect();
    if !version.iter().all(u8::is_ascii_graphic) {
        return Verdict::No;
    }
    if bytes.len() < HEADER + 8 {
        return Verdict::Undecided;
    }
    match version.first() {
        Some(b'0'..=b'9') if version.contains(&b'.') => Verdict::Yes,
        _ => Verdict::No,
    }
}

/// In the middle: a command, alone in its call.
fn recognise_joined(opening: &Opening<'_>) -> Verdict {
    let bytes = opening.to_server;
    let Some((length, 0)) = packet(bytes) else {
        let undecided = bytes.len() < HEADER;
        return if undecided {
            Verdict::Undecided
        } else {
            Verdict::No
        };
    };
    if !opening.to_client.is_empty() && opening.to_client.get(3) != Some(&1) {
        return Verdict::No;
    }
    let mut reader = Reader::new(bytes.get(HEADER..).unwrap_or_default());
    let Some(kind) = reader.u8() else {
        return Verdict::Undecided;
    };
    let valid = match Command::of(kind) {
        Some(Command::Query | Command::Prepare) => fold(reader.rest(), false, Dialect::MySql, 64)
            .method
            .is_some(),
        Some(Command::Execute) => {
            // The statement, flags, and a count that is always one.
            let once = reader.take(5).and_then(|_| reader.u32_le());
            once == Some(1)
        }
        // A few bytes, and an answer.
        Some(command) if few_bytes(command) == Some(length) => {
            if opening.to_client.is_empty() {
                return Verdict::Undecided;
            }
            opening.to_client.get(HEADER) == Some(&0)
        }
        _ => false,
    };
    if valid { Verdict::Yes } else { Verdict::No }
}

/// The length of commands that are too short to be known by themselves.
fn few_bytes(command: Command) -> Option<u32> {
    match command {
        Command::Ping | Command::Statistics | Command::ResetConnection => Some(1),
        // With the number of the statement.
        Command::ResetStatement => Some(5),
        _ => None,
    }
}

/// An integer of variable length, as lengths and counts are sent.
fn variable(reader: &mut Reader<'_>) -> Option<u64> {
    match reader.u8()? {
        0xfc => reader.u16_le().map(u64::from),
        0xfd => reader.u24_le().map(u64::from),
        0xfe => {
            let low = reader.u32_le()?;
            let high = reader.u32_le()?;
            Some(u64::from(high) << 32 | u64::from(low))
        }
        0xfb | 0xff => None,
        small => Some(u64::from(small)),
    }
}

#[cfg(test)]
mod tests;
