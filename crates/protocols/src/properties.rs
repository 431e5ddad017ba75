//! Conversations cut, captured and lost in any way, against the same seen whole: what is given out of them
//! is right, or unknown, or missing and counted.
//!
//! A test makes conversations of random requests and hands them to [`check`], which is the same for all
//! protocols. Requests need routes of their own, by which they are known again.

use super::{
    Candidate, Connection, ConnectionFacts, Direction, Exchange, Options, Outcome, Piece, Trouble,
};
use crate::testing::{Call, MILLISECOND, Numbers};

/// What both ends say over one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) calls: Vec<Call>,
    /// Calls before which nothing is said for a second.
    pub(crate) silences: Vec<usize>,
    /// Calls at the beginning that are always seen whole, as they tell what the client is like.
    pub(crate) shown: usize,
    /// Calls are cut into pieces of at most this many bytes.
    pub(crate) longest: Vec<usize>,
    /// How many requests there are.
    pub(crate) requests: usize,
}

impl Conversation {
    pub(crate) fn say(&mut self, direction: Direction, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.calls.push(Call { direction, bytes });
        }
    }

    /// Nothing is said for a while before the next call.
    pub(crate) fn pause(&mut self) {
        self.silences.push(self.calls.len());
    }
}

/// What a call of the watched end moved.
#[derive(Clone, Debug)]
struct Moved {
    direction: Direction,
    at_ns: u64,
    /// Bytes of its direction before it.
    offset: u64,
    bytes: Vec<u8>,
    is_shown: bool,
}

/// How much of a conversation is seen.
#[derive(Clone, Copy, Debug)]
struct Sight {
    /// First bytes of each piece that are captured.
    captured: usize,
    /// Pieces of a hundred that are lost.
    lost: usize,
    /// Pieces before the first that is looked at.
    from: usize,
    /// Offsets count from there on.
    rebased: bool,
    seed: u64,
}

const WHOLE: Sight = Sight {
    captured: usize::MAX,
    lost: 0,
    from: 0,
    rebased: false,
    seed: 0,
};

/// What tests want to know beside that everything is right.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcomes {
    /// Requests in all that was played.
    pub(crate) sent: usize,
    /// Those that were given out, and of them those whose end is known.
    pub(crate) found: usize,
    pub(crate) known: usize,
    /// Sizes of bodies that are known.
    pub(crate) sizes: usize,
}

/// Seeds of conversations: this many, or those of `SEED=FROM SEEDS=NUMBER`.
pub(crate) fn seeds(many: u64) -> std::ops::Range<u64> {
    let given = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let from = given("SEED").unwrap_or(1);
    from..from + given("SEEDS").unwrap_or(many)
}

/// Plays a conversation in many ways over a connection that may speak what the candidates are.
pub(crate) fn check(
    conversation: &Conversation,
    candidates: &'static [Candidate],
    facts: ConnectionFacts,
    seed: u64,
) -> Outcomes {
    let mut numbers = Numbers::new(seed);
    let mut outcomes = Outcomes::default();
    for _ in 0..4 {
        let longest = conversation.longest[numbers.below(conversation.longest.len())];
        let merges = numbers.below(3) == 0;
        let pieces = cut(conversation, &mut numbers, longest, merges);
        let (truth, trouble) = play(&pieces, (candidates, facts), WHOLE);
        assert_eq!(
            truth.len(),
            conversation.requests,
            "seed {seed}, pieces of {longest}: {truth:#?}"
        );
        assert_eq!(trouble.gaps, 0, "seed {seed}");
        for _ in 0..6 {
            let sight = Sight {
                captured: [usize::MAX, 16_320, 1024, 200, 40][numbers.below(5)],
                lost: [0, 0, 3, 20][numbers.below(4)],
                from: match numbers.below(2) {
                    0 if conversation.shown == 0 => numbers.below(pieces.len()),
                    _ => 0,
                },
                rebased: numbers.below(2) == 0,
                seed: seed.wrapping_mul(1000) + numbers.below(1000) as u64,
            };
            let (found, trouble) = play(&pieces, (candidates, facts), sight);
            compare(&found, &truth, trouble, sight);
            outcomes.sent += truth.len();
            outcomes.found += found.len();
            for exchange in &found {
                outcomes.known += usize::from(exchange.outcome != Outcome::Unknown);
                outcomes.sizes += usize::from(exchange.response_size_known);
            }
        }
    }
    outcomes
}

/// Cuts calls at random, or joins several of one direction as a late reader does.
fn cut(
    conversation: &Conversation,
    numbers: &mut Numbers,
    longest: usize,
    merges: bool,
) -> Vec<Moved> {
    let mut pieces: Vec<Moved> = Vec::new();
    let mut at_ns = 1000 * MILLISECOND;
    let mut offsets = [0_u64; 2];
    for (number, call) in conversation.calls.iter().enumerate() {
        at_ns += MILLISECOND;
        let is_silent = conversation.silences.contains(&number);
        if is_silent {
            at_ns += 1000 * MILLISECOND;
        }
        let offset = &mut offsets[usize::from(call.direction == Direction::ToClient)];
        if merges
            && !is_silent
            && number > conversation.shown
            && numbers.below(2) == 0
            && let Some(last) = pieces.last_mut()
            && last.direction == call.direction
        {
            last.bytes.extend_from_slice(&call.bytes);
            last.at_ns = at_ns;
            *offset += call.bytes.len() as u64;
            continue;
        }
        let mut rest = call.bytes.as_slice();
        while !rest.is_empty() {
            let most = rest.len().min(longest);
            let length = if longest == usize::MAX {
                most
            } else {
                1 + numbers.below(most)
            };
            let (bytes, behind) = rest.split_at(length);
            at_ns += 1000;
            pieces.push(Moved {
                direction: call.direction,
                at_ns,
                offset: *offset,
                bytes: bytes.to_vec(),
                is_shown: number < conversation.shown,
            });
            *offset += length as u64;
            rest = behind;
        }
    }
    pieces
}

fn play(
    pieces: &[Moved],
    (candidates, facts): (&'static [Candidate], ConnectionFacts),
    sight: Sight,
) -> (Vec<Exchange>, Trouble) {
    let mut numbers = Numbers::new(sight.seed);
    let mut out = Vec::new();
    let mut connection = Connection::among(
        candidates,
        Options::default(),
        ConnectionFacts {
            joined: facts.joined || sight.from > 0,
            ..facts
        },
    );
    let mut bases = [0_u64; 2];
    for moved in pieces.iter().take(sight.from).filter(|_| sight.rebased) {
        bases[usize::from(moved.direction == Direction::ToClient)] += moved.bytes.len() as u64;
    }
    let mut ends = [0_u64; 2];
    let mut last_ns = 0;
    for (number, moved) in pieces.iter().enumerate() {
        let length = moved.bytes.len() as u64;
        let way = usize::from(moved.direction == Direction::ToClient);
        let offset = moved.offset.saturating_sub(bases[way]);
        ends[way] = offset + length;
        last_ns = moved.at_ns;
        let is_lost = numbers.below(100) < sight.lost && !moved.is_shown;
        if number < sight.from || is_lost {
            continue;
        }
        let most = if moved.is_shown {
            usize::MAX
        } else {
            sight.captured
        };
        let captured = moved.bytes.len().min(most);
        let piece = Piece {
            direction: moved.direction,
            at_ns: moved.at_ns,
            length,
            bytes: &moved.bytes[..captured],
        };
        connection.feed(&piece, offset, &mut out);
    }
    // What was lost at the end shows in what the kernel has counted.
    for (direction, bytes) in [Direction::ToServer, Direction::ToClient]
        .into_iter()
        .zip(ends)
    {
        connection.reaches(direction, bytes, &mut out);
    }
    connection.close(last_ns + MILLISECOND, &mut out);
    (out, connection.trouble())
}

/// Whether each request that was found is one that was sent, and none is there twice.
fn compare(found: &[Exchange], truth: &[Exchange], trouble: Trouble, sight: Sight) {
    let mut free: Vec<&Exchange> = truth.iter().collect();
    // First those that can be one request alone.
    let mut order: Vec<&Exchange> = found.iter().collect();
    order.sort_by_key(|it| (it.route.is_none(), it.outcome == Outcome::Unknown));
    for exchange in order {
        let wrong = |sent: &&Exchange| difference(exchange, sent);
        let place = if exchange.route.is_some() || exchange.outcome != Outcome::Unknown {
            free.iter().position(|sent| wrong(sent).is_none())
        } else {
            // Which of several unseen ones this is cannot be determined.
            let status = exchange.status.as_ref();
            let same = |sent: &&Exchange| status.is_none() || sent.status.as_ref() == status;
            let is_there = truth.iter().filter(|sent| same(sent)).count();
            let is_said = found
                .iter()
                .filter(|it| it.status.as_ref() == status)
                .count();
            (is_said <= is_there || status.is_none())
                .then(|| free.len().checked_sub(1))
                .flatten()
        };
        let Some(place) = place else {
            let same = truth.iter().find(|sent| {
                exchange.route.is_some() && sent.route == exchange.route
                    || sent.begin_ns == exchange.begin_ns
            });
            panic!(
                "{sight:?}\n{}\nis none of what was sent, or is there twice; it may be ({:?})\n{}\nof\n{}",
                brief(exchange),
                same.and_then(|sent| difference(exchange, sent)),
                same.map(brief).unwrap_or_default(),
                truth.iter().map(brief).collect::<Vec<_>>().join("\n"),
            );
        };
        free.remove(place);
    }
    let Trouble {
        not_understood,
        missing,
        gaps,
        withdrawn_guesses: _,
        withdrawn_exchanges: _,
    } = trouble;
    let counted = not_understood.to_server
        + not_understood.to_client
        + missing.to_server
        + missing.to_client
        + gaps;
    assert!(
        free.is_empty() || counted > 0 || sight.from > 0,
        "{sight:?}: missing and not counted: {:?}",
        free.iter().map(|sent| brief(sent)).collect::<Vec<_>>()
    );
}

/// An exchange in a line; times in microseconds.
fn brief(exchange: &Exchange) -> String {
    let size = |is_known: bool, bytes: u64| {
        if is_known {
            bytes.to_string()
        } else {
            "?".to_owned()
        }
    };
    format!(
        "{} {:?} {:?} {:?} {:?} {}..{:?}..{} {}+{}",
        exchange.stream,
        exchange.method,
        exchange.route,
        exchange.status,
        exchange.outcome,
        exchange.begin_ns / 1000,
        exchange.first_byte_ns.map(|at_ns| at_ns / 1000),
        exchange.end_ns / 1000,
        size(exchange.request_size_known, exchange.request_bytes),
        size(exchange.response_size_known, exchange.response_bytes),
    )
}

/// What an exchange says that is not so of the request that was sent; `None`: all of it may be.
fn difference(found: &Exchange, sent: &Exchange) -> Option<&'static str> {
    fn known<T: PartialEq>(found: Option<&T>, sent: Option<&T>) -> bool {
        found.is_none() || found == sent
    }
    if !known(found.method.as_ref(), sent.method.as_ref()) {
        return Some("method");
    }
    if !known(found.route.as_ref(), sent.route.as_ref()) {
        return Some("route");
    }
    if !known(found.status.as_ref(), sent.status.as_ref()) {
        return Some("status");
    }
    if found.request_size_known
        && sent.request_size_known
        && found.request_bytes != sent.request_bytes
    {
        return Some("size of the request");
    }
    if found.response_size_known
        && sent.response_size_known
        && found.response_bytes != sent.response_bytes
    {
        return Some("size of the answer");
    }
    if !known(found.messages.as_ref(), sent.messages.as_ref()) {
        return Some("messages");
    }
    if found.outcome == Outcome::Unknown {
        return None;
    }
    // Whether it is a call of gRPC may not be known, and then no status is.
    if found.protocol != sent.protocol && found.status.is_some() {
        return Some("protocol");
    }
    if found.outcome != sent.outcome {
        return Some("outcome");
    }
    if found.begin_ns != sent.begin_ns {
        return Some("begin");
    }
    if found.outcome != Outcome::Broken && found.end_ns != sent.end_ns {
        return Some("end");
    }
    if !known(found.first_byte_ns.as_ref(), sent.first_byte_ns.as_ref()) {
        return Some("first byte");
    }
    None
}
