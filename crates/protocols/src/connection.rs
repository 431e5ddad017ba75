//! A connection: what it speaks is found out from its opening, then one decoder takes it.
//!
//! Pieces are kept until it is known, and replayed with their own times. A guess that turns out wrong
//! is withdrawn: what came of it is dropped and counted, and the others are asked again.

mod opening;

use super::{
    Candidate, Decoder, Direction, Exchange, Options, Piece, Protocol, TlsFacts,
    decoder::PerDirection,
    detect::{CANDIDATES, Choice, choose},
};
use opening::Held;

/// What is known of a connection beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionFacts {
    pub server_port: u16,
    /// It was there before: its first piece is not its beginning.
    pub joined: bool,
    pub is_udp: bool,
}

/// What did not go as it should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Bytes that no decoder read, including repeated and late ones.
    pub not_understood: PerDirection<u64>,
    /// Bytes that are missing, where it is known how many.
    pub missing: PerDirection<u64>,
    /// Times that payload was missing which may have held messages.
    pub gaps: u64,
    pub withdrawn_guesses: u64,
    /// Exchanges that were dropped with them.
    pub withdrawn_exchanges: u64,
}

/// Bytes of one direction that are looked at before a connection is taken for unknown.
const MOST_OPENING: u64 = 4096;
/// Calls of the client of a joined connection that may go by before one begins a message.
const MOST_ATTEMPTS: u32 = 256;
/// Times that an unknown connection is looked at again after a gap.
const MOST_SECOND_LOOKS: u32 = 3;

#[derive(Debug)]
pub struct Connection {
    options: Options,
    facts: ConnectionFacts,
    candidates: &'static [Candidate],
    state: State,
    /// Protocols that it was taken for, and does not speak.
    excluded: Vec<Protocol>,
    /// Where the next piece begins.
    positions: PerDirection<Option<u64>>,
    /// Offsets of a direction may begin anew with the next piece.
    restarted: PerDirection<bool>,
    /// A piece of the direction has come.
    begun: PerDirection<bool>,
    attempts: u32,
    second_looks: u32,
    trouble: Trouble,
    last_ns: u64,
}

#[derive(Debug)]
enum State {
    /// Not known yet.
    Looking(Held),
    /// What was held is kept until the guess has proved right.
    Trying(Box<dyn Decoder>, Held, Vec<Exchange>, Protocol),
    Decoding(Box<dyn Decoder>),
    Unknown,
}

impl Connection {
    pub fn new(options: Options, facts: ConnectionFacts) -> Self {
        Self::among(CANDIDATES, options, facts)
    }

    pub(crate) fn among(
        candidates: &'static [Candidate],
        options: Options,
        facts: ConnectionFacts,
    ) -> Self {
        Self {
            options,
            facts,
            candidates,
            state: State::Looking(Held::default()),
            excluded: Vec::new(),
            positions: PerDirection::default(),
            restarted: PerDirection::default(),
            begun: PerDirection::default(),
            attempts: 0,
            second_looks: 0,
            trouble: Trouble::default(),
            last_ns: 0,
        }
    }

    /// Takes the next piece, before which `offset` bytes of its direction have gone by. Complete
    /// exchanges are appended to `out`.
    pub fn feed(&mut self, piece: &Piece<'_>, offset: u64, out: &mut Vec<Exchange>) {
        let direction = piece.direction;
        self.last_ns = self.last_ns.max(piece.at_ns);
        let restarted = std::mem::take(self.restarted.get_mut(direction));
        let is_first = !std::mem::replace(self.begun.get_mut(direction), true);
        match *self.positions.get(direction) {
            // It is unknown whether this went by before the first piece of the other direction or after it.
            None if offset > 0
                && is_first
                && self.facts.joined
                && *self.begun.get(direction.reverse()) =>
            {
                self.tear(direction, None, out);
            }
            None if offset > 0 && !self.facts.joined => {
                // It was not seen from its beginning after all.
                self.missed(direction, Some(offset), out);
                self.facts.joined = true;
            }
            Some(position) if offset > position => {
                self.missed(direction, Some(offset - position), out);
            }
            Some(position) if offset < position && restarted => {
                self.missed(direction, None, out);
            }
            Some(position) if offset < position => {
                *self.trouble.not_understood.get_mut(direction) += piece.length;
                return;
            }
            None | Some(_) => {}
        }
        *self.positions.get_mut(direction) = Some(offset.saturating_add(piece.length));
        if piece.length > 0 {
            self.take(piece, out);
        }
    }

    /// Offsets may begin anew in both directions: a lower one is a gap from now on, and not what came again.
    pub fn restart(&mut self) {
        self.restarted = PerDirection {
            to_server: true,
            to_client: true,
        };
    }

    /// Payload of this direction was lost; how much, shows the next piece.
    pub fn gap(&mut self, direction: Direction, out: &mut Vec<Exchange>) {
        self.missed(direction, None, out);
        // The next offset says nothing that is not known now.
        *self.positions.get_mut(direction) = None;
        self.facts.joined = true;
    }

    /// Total bytes that went by in this direction; those behind the last piece were not seen.
    pub fn reaches(&mut self, direction: Direction, bytes: u64, out: &mut Vec<Exchange>) {
        let is_heard = matches!(self.state, State::Trying(..) | State::Decoding(_));
        let seen = self.positions.get(direction).unwrap_or(0);
        if is_heard && bytes > seen {
            self.missed(direction, Some(bytes - seen), out);
        }
    }

    /// The connection has ended.
    pub fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        match std::mem::replace(&mut self.state, State::Unknown) {
            State::Looking(held) => self.give_up(&held),
            State::Trying(mut decoder, _, mut tried, _) => {
                out.append(&mut tried);
                decoder.close(at_ns, out);
                self.keep_trouble(decoder.as_ref());
            }
            State::Decoding(mut decoder) => {
                decoder.close(at_ns, out);
                self.keep_trouble(decoder.as_ref());
            }
            State::Unknown => {}
        }
    }

    /// Nothing has come until now: gives out requests that were held back, if that proves them.
    pub fn rest(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        match std::mem::replace(&mut self.state, State::Unknown) {
            State::Trying(mut decoder, held, mut tried, guess) => {
                decoder.rest(now_ns, &mut tried);
                self.settle(decoder, held, tried, guess, out);
            }
            State::Decoding(mut decoder) => {
                decoder.rest(now_ns, out);
                self.state = State::Decoding(decoder);
            }
            state @ (State::Looking(_) | State::Unknown) => self.state = state,
        }
    }

    /// Ends the observation of a connection that goes on: what was held back is given out.
    pub fn stop(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        match &mut self.state {
            State::Trying(decoder, _, tried, _) => {
                out.append(tried);
                decoder.stop(now_ns, out);
            }
            State::Decoding(decoder) => decoder.stop(now_ns, out),
            State::Looking(_) | State::Unknown => {}
        }
    }

    /// More captured bytes of each call would let later messages be read.
    pub fn wants_bytes(&self) -> bool {
        match &self.state {
            State::Trying(decoder, ..) | State::Decoding(decoder) => decoder.wants_bytes(),
            State::Looking(_) | State::Unknown => false,
        }
    }

    /// What it speaks, once that is known.
    pub fn protocol(&self) -> Option<Protocol> {
        match &self.state {
            State::Trying(decoder, ..) | State::Decoding(decoder) => Some(decoder.protocol()),
            State::Looking(_) | State::Unknown => None,
        }
    }

    /// Whether the protocol is unknown for good.
    pub fn is_unknown(&self) -> bool {
        matches!(self.state, State::Unknown)
    }

    /// Payload is missing, and answers cannot be assigned to requests for now.
    pub fn is_dirty(&self) -> bool {
        match &self.state {
            State::Trying(decoder, ..) | State::Decoding(decoder) => decoder.is_dirty(),
            State::Looking(_) | State::Unknown => false,
        }
    }

    /// The client asks again before it was answered, and answers can only be assigned by their order.
    pub fn is_pipelined(&self) -> bool {
        match &self.state {
            State::Trying(decoder, ..) | State::Decoding(decoder) => decoder.is_pipelined(),
            State::Looking(_) | State::Unknown => false,
        }
    }

    /// What a TLS handshake sent in plaintext.
    pub fn tls(&self) -> Option<&TlsFacts> {
        match &self.state {
            State::Trying(decoder, ..) | State::Decoding(decoder) => decoder.tls(),
            State::Looking(_) | State::Unknown => None,
        }
    }

    pub fn trouble(&self) -> Trouble {
        let mut trouble = self.trouble;
        if let State::Trying(decoder, ..) | State::Decoding(decoder) = &self.state {
            add(&mut trouble.not_understood, decoder.not_understood());
            trouble.gaps += decoder.gaps();
        }
        trouble
    }

    fn missed(&mut self, direction: Direction, missing: Option<u64>, out: &mut Vec<Exchange>) {
        self.trouble.gaps += 1;
        *self.trouble.missing.get_mut(direction) += missing.unwrap_or(0);
        self.tear(direction, missing, out);
    }

    /// What follows in this direction may not be what comes next.
    fn tear(&mut self, direction: Direction, missing: Option<u64>, out: &mut Vec<Exchange>) {
        match std::mem::replace(&mut self.state, State::Unknown) {
            State::Looking(held) => {
                // The opening is torn: what follows is that of a joined connection.
                self.give_up(&held);
                self.facts.joined = true;
                self.state = State::Looking(Held::default());
            }
            State::Trying(mut decoder, _, mut tried, _) => {
                // It can no longer be replayed: the guess stands.
                out.append(&mut tried);
                decoder.gap(direction, missing, out);
                self.state = State::Decoding(decoder);
            }
            State::Decoding(mut decoder) => {
                decoder.gap(direction, missing, out);
                self.state = State::Decoding(decoder);
            }
            State::Unknown if self.second_looks < MOST_SECOND_LOOKS => {
                self.second_looks += 1;
                self.attempts = 0;
                self.facts.joined = true;
                self.state = State::Looking(Held::default());
            }
            State::Unknown => {}
        }
    }

    fn take(&mut self, piece: &Piece<'_>, out: &mut Vec<Exchange>) {
        match std::mem::replace(&mut self.state, State::Unknown) {
            State::Looking(mut held) => {
                held.push(piece);
                self.look(held, out);
            }
            State::Trying(mut decoder, mut held, mut tried, guess) => {
                held.push(piece);
                if decoder.feed(piece, &mut tried).is_err() {
                    self.withdraw(guess, tried.len());
                    self.look(held, out);
                } else {
                    self.settle(decoder, held, tried, guess, out);
                }
            }
            State::Decoding(mut decoder) => {
                let before = out.len();
                if decoder.feed(piece, out).is_ok() {
                    self.state = State::Decoding(decoder);
                    return;
                }
                let dropped = out.len().saturating_sub(before);
                out.truncate(before);
                self.keep_trouble(decoder.as_ref());
                self.withdraw(decoder.protocol(), dropped);
                // The pieces before are gone.
                self.facts.joined = true;
                let mut held = Held::default();
                held.push(piece);
                self.look(held, out);
            }
            State::Unknown => {
                *self.trouble.not_understood.get_mut(piece.direction) += piece.length;
            }
        }
    }

    /// Asks what the held pieces are, until that is decided for now.
    fn look(&mut self, mut held: Held, out: &mut Vec<Exchange>) {
        loop {
            let opening = held.opening(self.facts);
            match choose(self.candidates, &opening, &self.excluded) {
                Choice::Taken(candidate) => {
                    let mut decoder = (candidate.start)(&self.options, self.facts.joined);
                    let mut tried = Vec::new();
                    if held.replay(decoder.as_mut(), &mut tried).is_ok() {
                        self.settle(decoder, held, tried, candidate.protocol, out);
                        return;
                    }
                    self.withdraw(candidate.protocol, tried.len());
                }
                // The rest of an answer to a request that was not seen.
                Choice::Undecided | Choice::Nobody
                    if self.facts.joined && held.bytes().to_server == 0 =>
                {
                    self.give_up(&held);
                    self.state = State::Looking(Held::default());
                    return;
                }
                Choice::Undecided if let Some((rest, dropped)) = self.later_opening(&held) => {
                    add(&mut self.trouble.not_understood, dropped);
                    held = rest;
                }
                Choice::Undecided if held.longest() < MOST_OPENING && !held.is_full() => {
                    self.state = State::Looking(held);
                    return;
                }
                Choice::Undecided | Choice::Nobody => {
                    self.attempts += 1;
                    // On a joined connection a later call may begin with a message.
                    let goes_on = self.facts.joined && self.attempts < MOST_ATTEMPTS;
                    if goes_on {
                        self.excluded.clear();
                    }
                    if goes_on && let Some((rest, dropped)) = held.behind(1) {
                        add(&mut self.trouble.not_understood, dropped);
                        held = rest;
                        continue;
                    }
                    self.give_up(&held);
                    if goes_on {
                        self.state = State::Looking(Held::default());
                    }
                    return;
                }
            }
        }
    }

    /// Of a joined connection: what is held from one of the client's last two calls on, where that shows what it
    /// speaks (the two may be a header and what belongs to it). With the bytes before.
    fn later_opening(&self, held: &Held) -> Option<(Held, PerDirection<u64>)> {
        let calls = held.calls().max(1);
        let later = (calls.saturating_sub(2).max(1)..calls).filter(|_| self.facts.joined);
        later
            .filter_map(|calls| held.behind(calls))
            .find(|(rest, _)| {
                let opening = rest.opening(self.facts);
                let choice = choose(self.candidates, &opening, &self.excluded);
                matches!(choice, Choice::Taken(_))
            })
    }

    /// Keeps the guess on trial until both ends have spoken and an exchange has come of it.
    fn settle(
        &mut self,
        decoder: Box<dyn Decoder>,
        held: Held,
        mut tried: Vec<Exchange>,
        guess: Protocol,
        out: &mut Vec<Exchange>,
    ) {
        let proved = held.has_both() && (!tried.is_empty() || decoder.tls().is_some());
        if proved || held.is_full() || tried.len() > self.options.limits.open_exchanges {
            out.append(&mut tried);
            self.state = State::Decoding(decoder);
        } else {
            self.state = State::Trying(decoder, held, tried, guess);
        }
    }

    fn withdraw(&mut self, guess: Protocol, exchanges: usize) {
        self.trouble.withdrawn_guesses += 1;
        self.trouble.withdrawn_exchanges += exchanges as u64;
        if !self.excluded.contains(&guess) {
            self.excluded.push(guess);
        }
    }

    /// Counts the held pieces as not understood.
    fn give_up(&mut self, held: &Held) {
        add(&mut self.trouble.not_understood, held.bytes());
        self.state = State::Unknown;
    }

    fn keep_trouble(&mut self, decoder: &dyn Decoder) {
        self.trouble.gaps += decoder.gaps();
        add(&mut self.trouble.not_understood, decoder.not_understood());
    }
}

fn add(sum: &mut PerDirection<u64>, more: PerDirection<u64>) {
    sum.to_server += more.to_server;
    sum.to_client += more.to_client;
}

#[cfg(test)]
mod tests;
