//! Random conversations with each kind of store, cut, captured in part, with pieces missing, and found in the
//! middle: what comes out is held against what was said.
//!
//! A request that comes out is right in all of its fields, or its outcome is unknown. What does not come out
//! is counted.

mod stores;

use std::collections::VecDeque;

use crate::{
    Connection, ConnectionFacts, Direction, Exchange, Options, Outcome, Piece, Status,
    testing::{MILLISECOND, Numbers, check_sound},
};
use stores::{Asked, Store};

/// Conversations of each kind of client.
const SEEDS: u64 = 400;

/// How a conversation is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    /// Sends up to this many requests at once, and waits for their answers.
    Waits(usize),
    /// Has up to this many requests open.
    SendsAhead(usize),
}

/// What is seen of it.
#[derive(Clone, Copy, Debug)]
struct Sight {
    seed: u64,
    client: Client,
    /// First bytes of a call that are captured.
    captured: usize,
    /// One in this many pieces is missing; 0: none is.
    missing_one_of: usize,
    joined: bool,
    /// Headers are read by themselves.
    split_header: bool,
}

/// What one end said, of a request.
#[derive(Debug)]
struct Said {
    direction: Direction,
    bytes: Vec<u8>,
    request: usize,
    /// Nothing was open before.
    is_idle: bool,
}

/// What is true of a request.
#[derive(Clone, Debug)]
struct Truth {
    asked: Asked,
    begin_ns: u64,
    /// When the last of the request was moved.
    asked_ns: u64,
    /// `None`: the connection ended before.
    end_ns: Option<u64>,
    /// The same, without what says that the store is ready for more.
    told_ns: Option<u64>,
    found: bool,
}

fn conversation(store: &Store, numbers: &mut Numbers, client: Client) -> (Vec<Said>, Vec<Truth>) {
    let mut said = Vec::new();
    let mut truths: Vec<Truth> = Vec::new();
    let mut open: VecDeque<(usize, Vec<u8>)> = VecDeque::new();
    let count = 12 + numbers.below(40);
    let last_are_open = numbers.below(3);
    let mut batch = 0;
    while truths.len() < count || (!open.is_empty() && open.len() > last_are_open) {
        let (may_ask, may_answer) = match client {
            Client::Waits(_) => (batch > 0 || open.is_empty(), batch == 0),
            Client::SendsAhead(most) => (open.len() < most, true),
        };
        let may_ask = may_ask && truths.len() < count;
        let may_answer = may_answer && !open.is_empty();
        let asks = may_ask && (!may_answer || numbers.below(2) == 0);
        if asks {
            if let Client::Waits(most) = client {
                batch = if batch == 0 {
                    numbers.below(most)
                } else {
                    batch - 1
                };
            }
            let is_idle = open.is_empty();
            let (asked, request, answer) = (store.ask)(numbers, truths.len());
            said.push(Said {
                direction: Direction::ToServer,
                bytes: request,
                request: truths.len(),
                is_idle,
            });
            open.push_back((truths.len(), answer));
            truths.push(Truth {
                asked,
                begin_ns: 0,
                asked_ns: 0,
                end_ns: None,
                told_ns: None,
                found: false,
            });
            if truths.len() == count {
                batch = 0;
            }
        } else {
            let place = if store.answers_in_order {
                0
            } else {
                numbers.below(open.len())
            };
            let Some((request, bytes)) = open.remove(place) else {
                break;
            };
            said.push(Said {
                direction: Direction::ToClient,
                bytes,
                request,
                is_idle: false,
            });
        }
    }
    (said, truths)
}

/// Plays a conversation and holds what comes out against it. Says how many requests were known.
fn check(store: &Store, sight: Sight) -> (usize, usize) {
    let mut numbers = Numbers::new(sight.seed);
    let (said, mut truths) = conversation(store, &mut numbers, sight.client);
    let mut connection = Connection::new(
        Options::default(),
        ConnectionFacts {
            server_port: store.port,
            joined: sight.joined,
            is_udp: false,
        },
    );
    let mut out = Vec::new();
    let mut offsets = [0_u64; 2];
    let mut at_ns = 1_000 * MILLISECOND;
    let mut to_skip = if sight.joined { numbers.below(20) } else { 0 };
    let mut missed = 0;
    let mut rest = said.as_slice();
    // The opening is not a request.
    for (direction, bytes) in (store.opening)() {
        if sight.joined {
            continue;
        }
        at_ns += MILLISECOND;
        feed(
            &mut connection,
            direction,
            &bytes,
            bytes.len(),
            at_ns,
            &mut offsets,
            &mut out,
        );
    }
    while let Some(first) = rest.first() {
        // What one end says before the other does may be in one call, or in many.
        let run = rest
            .iter()
            .take_while(|said| said.direction == first.direction);
        let run = 1 + numbers.below(run.count());
        let (run, behind) = rest.split_at(run);
        rest = behind;
        if first.is_idle && numbers.below(12) == 0 {
            at_ns += 300 * MILLISECOND;
        }
        let bytes: Vec<u8> = run.iter().flat_map(|said| said.bytes.clone()).collect();
        let begins: Vec<usize> = run
            .iter()
            .scan(0, |at, said| {
                *at += said.bytes.len();
                Some(*at - said.bytes.len())
            })
            .collect();
        let mut done = 0;
        let cuts = numbers.below(3) == 0;
        while done < bytes.len() {
            let left = bytes.len() - done;
            let begins_here = begins.contains(&done);
            let length = if sight.split_header && begins_here && left > store.header {
                store.header
            } else if sight.split_header {
                let next = begins.iter().find(|begin| **begin > done);
                next.map_or(left, |next| next - done)
            } else if cuts {
                1 + numbers.below(left)
            } else {
                left
            };
            at_ns += 1 + numbers.below(2 * 1_000_000) as u64;
            let piece = &bytes[done..done + length];
            for (said, begin) in run.iter().zip(&begins) {
                let truth = &mut truths[said.request];
                let (first, last) = (*begin, begin + said.bytes.len() - 1);
                match said.direction {
                    Direction::ToServer if (done..done + length).contains(&first) => {
                        truth.begin_ns = at_ns;
                    }
                    Direction::ToClient if (done..done + length).contains(&last) => {
                        truth.end_ns = Some(at_ns);
                    }
                    Direction::ToServer | Direction::ToClient => {}
                }
                if said.direction == Direction::ToServer && done < begin + said.bytes.len() {
                    truth.asked_ns = at_ns;
                }
                let told = last.checked_sub(store.trailer);
                if said.direction == Direction::ToClient
                    && told.is_some_and(|told| (done..done + length).contains(&told))
                {
                    truth.told_ns = Some(at_ns);
                }
            }
            done += length;
            let drops = sight.missing_one_of > 0 && numbers.below(sight.missing_one_of) == 0;
            if to_skip > 0 || drops {
                to_skip = usize::saturating_sub(to_skip, 1);
                missed += 1;
                offsets[usize::from(first.direction == Direction::ToClient)] += length as u64;
                continue;
            }
            feed(
                &mut connection,
                first.direction,
                piece,
                sight.captured,
                at_ns,
                &mut offsets,
                &mut out,
            );
        }
    }
    for direction in [Direction::ToServer, Direction::ToClient] {
        let bytes = offsets[usize::from(direction == Direction::ToClient)];
        connection.reaches(direction, bytes, &mut out);
    }
    at_ns += MILLISECOND;
    connection.close(at_ns, &mut out);
    check_sound(&out);
    // The most specific first: the others may be any.
    out.sort_by_key(|found| std::cmp::Reverse(found.route.as_ref().map(String::len)));
    let known = out
        .iter()
        .filter(|found| !fits(found, &mut truths, sight))
        .count();
    let trouble = connection.trouble();
    let unread = trouble.not_understood.to_server + trouble.not_understood.to_client;
    assert!(
        out.len() >= truths.len()
            || trouble.gaps + trouble.withdrawn_guesses > 0
            || unread > 0
            || missed > 0,
        "{} of {} in {sight:?}",
        out.len(),
        truths.len()
    );
    (known, truths.len())
}

fn feed(
    connection: &mut Connection,
    direction: Direction,
    bytes: &[u8],
    captured: usize,
    at_ns: u64,
    offsets: &mut [u64; 2],
    out: &mut Vec<Exchange>,
) {
    let offset = &mut offsets[usize::from(direction == Direction::ToClient)];
    let piece = Piece {
        direction,
        at_ns,
        length: bytes.len() as u64,
        bytes: &bytes[..bytes.len().min(captured)],
    };
    connection.feed(&piece, *offset, out);
    *offset += bytes.len() as u64;
}

/// Holds a request that came out against those that were sent. `true`: it is unknown.
fn fits(found: &Exchange, truths: &mut [Truth], sight: Sight) -> bool {
    let is_unknown = found.outcome == Outcome::Unknown;
    if found.route.as_deref() == Some("CONNECT") {
        return false;
    }
    if is_unknown && !found.is_timed {
        return true;
    }
    let same = |truth: &&mut Truth| {
        let asked = &truth.asked;
        let route = found.route.as_deref().is_none_or(|route| {
            // Its end may be missing.
            let cut = route.strip_suffix("...").unwrap_or(route);
            asked.route.starts_with(cut)
        });
        let outcome = match found.outcome {
            Outcome::Ok => asked.error.is_none(),
            Outcome::ClientError | Outcome::ServerError => asked.error.is_some(),
            Outcome::Broken | Outcome::Unknown => true,
        };
        let status = match &found.status {
            None => true,
            Some(Status::Fine) => asked.error.is_none(),
            Some(Status::Code(code)) => asked.error.as_deref() == Some(code),
            Some(Status::Http(_) | Status::Grpc(_)) => false,
        };
        let end = match found.outcome {
            Outcome::Broken => truth.end_ns.is_none(),
            _ => [truth.end_ns, truth.told_ns].contains(&Some(found.end_ns)),
        };
        // Of a group of messages the first may have been missed.
        let begin = found.begin_ns == truth.begin_ns
            || asked.is_group && (truth.begin_ns..=truth.asked_ns).contains(&found.begin_ns);
        !truth.found && begin && route && status && outcome && end
    };
    let Some(truth) = truths.iter_mut().find(same) else {
        let near: Vec<&Truth> = truths
            .iter()
            .filter(|truth| truth.begin_ns == found.begin_ns || truth.end_ns == Some(found.end_ns))
            .collect();
        let Exchange {
            route,
            status,
            outcome,
            begin_ns,
            end_ns,
            ..
        } = found;
        panic!(
            "{sight:?}: {route:?} {status:?} {outcome:?} {begin_ns} to {end_ns} is none of {near:#?}"
        );
    };
    truth.found = true;
    false
}

/// Conversations of all kinds with a store; at least this share of the requests must be known of those that were
/// seen whole.
fn check_all(store: &Store) {
    let clients: &[Client] = if store.is_pipelined {
        &[
            Client::Waits(1),
            Client::Waits(5),
            Client::SendsAhead(2),
            Client::SendsAhead(6),
        ]
    } else {
        &[Client::Waits(1)]
    };
    for client in clients {
        let mut sums = [(0, 0); 4];
        for seed in 0..SEEDS {
            let kind = usize::try_from(seed % 4).unwrap();
            let sight = Sight {
                seed,
                client: *client,
                captured: match seed % 5 {
                    0 => 64,
                    1 => 300,
                    2 => 1024,
                    _ => usize::MAX,
                },
                missing_one_of: if kind & 1 == 0 { 0 } else { 15 },
                joined: kind & 2 != 0,
                split_header: store.header > 0 && seed % 3 == 0,
            };
            let (known, all) = check(store, sight);
            if sight.captured >= 300 {
                sums[kind].0 += known;
                sums[kind].1 += all;
            }
        }
        let (known, all) = sums[0];
        let least = if *client == Client::Waits(1) { 95 } else { 40 };
        assert!(known * 100 >= all * least, "{client:?}: {known} of {all}");
        if *client == Client::Waits(1) {
            let (known, all) = sums[2];
            assert!(
                known * 100 >= all * 60,
                "joined, {client:?}: {known} of {all}"
            );
        }
    }
}

#[test]
fn redis() {
    check_all(&stores::REDIS);
}

#[test]
fn postgresql() {
    check_all(&stores::POSTGRESQL);
}

#[test]
fn mysql() {
    check_all(&stores::MYSQL);
}

#[test]
fn kafka() {
    check_all(&stores::KAFKA);
}

#[test]
fn mongodb() {
    check_all(&stores::MONGODB);
}

#[test]
fn dns_over_tcp() {
    check_all(&stores::DNS);
}
