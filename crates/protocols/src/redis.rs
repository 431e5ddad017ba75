//! Redis, and what speaks its protocol (Valkey, KeyDB, Dragonfly).
//!
//! Replies come in the order of the commands. Arguments are values and keys: of them only the number is
//! kept. What is pushed (subscriptions, invalidations) is not a reply.

mod commands;
mod session;
mod values;

use super::{
    Candidate, Decoder, Direction, Exchange, Opening, Options, Piece, Protocol, Verdict,
    WrongProtocol, decoder::PerDirection, frames::Rest,
};
use session::RedisSession;
use values::{NextValue, Value, Values};

pub(crate) const REDIS: Candidate = Candidate {
    protocol: Protocol::Redis,
    recognise,
    start: |options, joined| Box::new(Redis::new(options, joined)),
};

/// A connection is recognised by a command that is known, sent as an array, or by one that is not and an
/// answer of Redis. Commands in a line look like those of other protocols.
fn recognise(opening: &Opening<'_>) -> Verdict {
    if opening.is_udp {
        return Verdict::No;
    }
    let reply = b"+-:$*%~>_#,(=!|";
    let first_reply = opening.to_client.first();
    if !opening.joined && first_reply.is_some_and(|kind| !reply.contains(kind)) {
        return Verdict::No;
    }
    let Some(first) = opening.to_server.first() else {
        // The server does not speak first.
        let silent = opening.to_client.is_empty() || opening.joined;
        return if silent {
            Verdict::Undecided
        } else {
            Verdict::No
        };
    };
    if *first != b'*' {
        return Verdict::No;
    }
    match command_of(opening.to_server) {
        Some(command) if commands::is_known(&command) => Verdict::Yes,
        // One of a module, renamed or mistyped: the server's answer decides.
        Some(command) if is_word(&command) => match first_reply {
            Some(kind) if reply.contains(kind) && is_whole(opening.to_server) => Verdict::Yes,
            Some(_) => Verdict::No,
            None => Verdict::Undecided,
        },
        Some(_) => Verdict::No,
        None if begins_an_array(opening.to_server) => Verdict::Undecided,
        None => Verdict::No,
    }
}

/// Whether it may be the name of a command.
fn is_word(command: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=64).contains(&command.len()) && command.bytes().all(is_part)
}

/// The command of an array of strings, once it is there.
fn command_of(bytes: &[u8]) -> Option<String> {
    let behind_count = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let rest = bytes.get(behind_count..)?;
    let behind_length = rest.iter().position(|byte| *byte == b'\n')? + 1;
    let (length, rest) = rest.split_at_checked(behind_length)?;
    let digits = length.strip_prefix(b"$")?.strip_suffix(b"\r\n")?;
    let length: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let word = rest.get(..length)?;
    Some(String::from_utf8_lossy(word).to_ascii_uppercase())
}

fn begins_an_array(bytes: &[u8]) -> bool {
    first_array(bytes, |found| matches!(found, NextValue::Wait))
}

/// Whether all of the first command is there.
fn is_whole(bytes: &[u8]) -> bool {
    first_array(bytes, |found| matches!(found, NextValue::Value(_)))
}

fn first_array(bytes: &[u8], holds: impl Fn(&NextValue) -> bool) -> bool {
    let mut values = Values::new(Direction::ToServer);
    let mut rest = Rest {
        bytes,
        uncaptured: 0,
        at_ns: 0,
    };
    holds(&values.next(&mut rest))
}

/// Values of a direction after which the protocol is taken for granted.
const CONFIRMED: u32 = 2;

#[derive(Debug)]
struct Redis {
    session: RedisSession,
    ways: PerDirection<Way>,
    last_ns: u64,
    /// When replies last went by, read or not.
    answered_ns: u64,
    wants_bytes: bool,
}

#[derive(Debug)]
struct Way {
    values: Values,
    /// The next piece may begin anywhere.
    lost: bool,
    /// It has been lost before.
    was_lost: bool,
    /// The next piece goes on with a reply whose end is not captured.
    tail: bool,
    count: u32,
    /// Pieces of which the rest may hold values.
    gaps: u64,
    not_understood: u64,
}

impl Redis {
    fn new(options: &Options, joined: bool) -> Self {
        let way = |direction| Way {
            values: Values::new(direction),
            lost: joined,
            was_lost: joined,
            tail: false,
            count: 0,
            gaps: 0,
            not_understood: 0,
        };
        Self {
            session: RedisSession::new(options, joined),
            ways: PerDirection {
                to_server: way(Direction::ToServer),
                to_client: way(Direction::ToClient),
            },
            last_ns: 0,
            answered_ns: 0,
            wants_bytes: false,
        }
    }

    fn lose(&mut self, direction: Direction, out: &mut Vec<Exchange>) {
        let way = self.ways.get_mut(direction);
        way.lost = true;
        way.was_lost = true;
        let cut = way.values.abandon();
        if direction == Direction::ToServer {
            self.session.unseen(cut, out);
        }
        self.end_tail();
        self.session.lost(self.last_ns, out);
    }

    /// What comes next to the client begins with a reply.
    fn end_tail(&mut self) {
        let way = &mut self.ways.to_client;
        way.lost |= std::mem::take(&mut way.tail);
    }

    /// The captured bytes of a piece end where more values follow.
    fn cut(
        &mut self,
        direction: Direction,
        cut: Option<Value>,
        rest: &Rest<'_>,
        out: &mut Vec<Exchange>,
    ) {
        self.wants_bytes = true;
        match direction {
            Direction::ToServer => {
                let way = &mut self.ways.to_server;
                way.lost = true;
                way.gaps += 1;
                way.not_understood += rest.length();
                self.end_tail();
                self.session.unseen(cut, out);
            }
            Direction::ToClient => {
                let asks = &self.ways.to_server;
                let is_asked = !asks.lost && !asks.values.is_inside();
                let (bytes, at_ns) = (rest.length(), rest.at_ns);
                let is_tail = is_asked && self.session.begin_tail(cut.as_ref(), bytes, at_ns, out);
                let way = &mut self.ways.to_client;
                if is_tail {
                    way.tail = true;
                    return;
                }
                way.gaps += 1;
                way.not_understood += rest.length();
                self.lose(direction, out);
            }
        }
    }
}

impl Decoder for Redis {
    fn protocol(&self) -> Protocol {
        Protocol::Redis
    }

    fn feed(&mut self, piece: &Piece<'_>, out: &mut Vec<Exchange>) -> Result<(), WrongProtocol> {
        let direction = piece.direction;
        self.last_ns = self.last_ns.max(piece.at_ns);
        match direction {
            Direction::ToServer => self.end_tail(),
            Direction::ToClient => self.answered_ns = self.answered_ns.max(piece.at_ns),
        }
        let way = self.ways.get_mut(direction);
        if way.tail && !self.session.is_opaque() {
            if !is_pushed(piece) {
                self.session.pass_tail(piece.length, piece.at_ns);
            }
            self.session.passed(piece.at_ns);
            return Ok(());
        }
        if self.session.is_opaque() || (way.lost && !resumes(&self.session, piece)) {
            way.not_understood += piece.length;
            if direction == Direction::ToClient && self.session.awaits_any() {
                // The reply to one of them, or to another command.
                self.session.lost(piece.at_ns, out);
            }
            self.session.passed(piece.at_ns);
            return Ok(());
        }
        way.lost = false;
        if direction == Direction::ToServer && !way.values.is_inside() {
            self.session.call(piece.at_ns, out);
        }
        let mut rest = Rest::of(piece);
        loop {
            let way = self.ways.get_mut(direction);
            if self.session.is_opaque() {
                way.not_understood += rest.length();
                break;
            }
            match way.values.next(&mut rest) {
                NextValue::Wait => break,
                NextValue::Value(value) => {
                    way.count = way.count.saturating_add(1);
                    match direction {
                        Direction::ToServer => self.session.command(&value, out),
                        Direction::ToClient => self.session.reply(&value, out),
                    }
                }
                NextValue::Invalid if way.count < CONFIRMED => return Err(WrongProtocol),
                NextValue::Invalid => {
                    way.not_understood += rest.length();
                    way.values.abandon();
                    self.lose(direction, out);
                    break;
                }
                NextValue::Lost(cut) => {
                    self.cut(direction, cut, &rest, out);
                    break;
                }
            }
        }
        self.session.passed(piece.at_ns);
        Ok(())
    }

    fn gap(&mut self, direction: Direction, missing: Option<u64>, out: &mut Vec<Exchange>) {
        if !self.ways.get_mut(direction).values.gap(missing) {
            self.lose(direction, out);
        }
    }

    fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        let is_sure = self.session.is_sure() && !self.ways.to_client.was_lost;
        let answered_ns = (!is_sure).then_some(self.answered_ns);
        self.session.close(at_ns, answered_ns, out);
    }

    fn rest(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        self.session.rest(now_ns, out);
    }

    fn stop(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        self.session.stop(now_ns, out);
    }

    fn wants_bytes(&self) -> bool {
        self.wants_bytes
    }

    fn is_dirty(&self) -> bool {
        let PerDirection {
            to_server,
            to_client,
        } = &self.ways;
        self.session.is_dirty() || to_server.lost || to_client.lost
    }

    fn gaps(&self) -> u64 {
        self.ways.to_server.gaps + self.ways.to_client.gaps
    }

    fn not_understood(&self) -> PerDirection<u64> {
        PerDirection {
            to_server: self.ways.to_server.not_understood,
            to_client: self.ways.to_client.not_understood,
        }
    }
}

/// Whether a piece begins with a value, after a gap: a known command, or no more replies than commands
/// wait for, that are whole or run on behind the piece.
fn resumes(session: &RedisSession, piece: &Piece<'_>) -> bool {
    let mut values = Values::new(piece.direction);
    let mut rest = Rest::of(piece);
    let mut replies = 0;
    let valid = loop {
        match values.next(&mut rest) {
            NextValue::Value(value) => replies += usize::from(!is_push(&value)),
            NextValue::Wait => {
                replies += usize::from(values.is_inside());
                break true;
            }
            NextValue::Lost(cut) => {
                replies += usize::from(cut.is_some_and(|value| !is_push(&value)));
                break true;
            }
            NextValue::Invalid => break false,
        }
    };
    match piece.direction {
        Direction::ToServer => {
            let command = command_of(piece.bytes);
            let known = command.is_some_and(|command| commands::is_known(&command));
            valid && known && piece.bytes.first() == Some(&b'*')
        }
        Direction::ToClient => valid && replies > 0 && session.awaits(replies),
    }
}

/// Whether a piece has nothing but pushes of RESP3, which are not part of a reply.
fn is_pushed(piece: &Piece<'_>) -> bool {
    let mut values = Values::new(piece.direction);
    let mut rest = Rest::of(piece);
    loop {
        match values.next(&mut rest) {
            NextValue::Value(value) if value.kind == b'>' => {}
            NextValue::Wait => return !values.is_inside(),
            NextValue::Value(_) | NextValue::Lost(_) | NextValue::Invalid => return false,
        }
    }
}

/// Whether a value is not a reply whatever was asked.
fn is_push(value: &Value) -> bool {
    matches!(value.kind, b'>' | b'|')
}

#[cfg(test)]
mod tests;
