//! What goes over one connection in one kind of plaintext, and which of its ends is the client.

use profiler_model::SeenBy;
use profiler_protocols::{
    Connection, ConnectionFacts as Opened, Direction, Exchange, Options, Piece, Protocol, TlsFacts,
    Trouble,
};

use super::{
    event::{PayloadPiece, Plaintext},
    facts::SocketFacts,
    observed_request::{Moved, ObservationPoint, ObservedRequest},
    stamps::Stamps,
};

/// Pieces of a connection within which its direction has to show.
const MOST_UNDECIDED: u32 = 128;
/// Pieces after which a reading that makes sense wins over one that does not yet.
const ENOUGH: u32 = 8;

#[derive(Debug)]
pub(super) struct DecodedStream {
    decoding: Decoding,
    pub(super) stamps: Stamps,
    pub(super) bytes: u64,
    pub(super) exchanges: u64,
    /// Which end this is, once that is known.
    pub(super) seen_by: Option<SeenBy>,
    pub(super) protocol: Option<Protocol>,
    /// What was sent before encryption began.
    pub(super) tls: Option<TlsFacts>,
    /// Of what was decoded, once decoding has stopped.
    trouble: Trouble,
    /// Bytes after decoding has stopped.
    undecoded_bytes: u64,
    /// Of plaintext from before, which the kernel side has counted since it knew the session: bytes of what was received
    /// and sent before the first piece of each.
    before: [Option<u64>; 2],
    is_joined: bool,
}

#[derive(Debug)]
enum Decoding {
    Fixed(Box<Connection>),
    /// Both are tried until one of them makes sense.
    Undecided(Vec<Reading>, u32),
    Stopped(StopReason),
}

/// Why a connection is not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    Ended,
    /// It speaks nothing that is known here.
    Unknown,
    /// Which end is the client is not known.
    Undirected,
}

/// A connection read as if this end were the client, or the server.
#[derive(Debug)]
struct Reading {
    seen_by: SeenBy,
    connection: Connection,
    exchanges: Vec<Exchange>,
}

impl Reading {
    fn new(options: &Options, facts: &SocketFacts, seen_by: SeenBy) -> Self {
        Self {
            seen_by,
            connection: connection(options, facts, seen_by),
            exchanges: Vec::new(),
        }
    }

    /// How much sense it makes: none, a protocol, requests with their answers.
    fn sense(&self) -> u8 {
        let is_spoken = self
            .connection
            .protocol()
            .is_some_and(|protocol| protocol != Protocol::Tls || self.connection.tls().is_some());
        if self
            .exchanges
            .iter()
            .any(|exchange| exchange.method.is_some())
        {
            2
        } else {
            u8::from(is_spoken)
        }
    }
}

fn connection(options: &Options, facts: &SocketFacts, seen_by: SeenBy) -> Connection {
    let server = match seen_by {
        SeenBy::Client => facts.remote,
        SeenBy::Server => facts.local,
    };
    Connection::new(
        options.clone(),
        Opened {
            server_port: server.port(),
            joined: facts.joined,
            is_udp: facts.is_udp,
        },
    )
}

impl DecodedStream {
    pub(super) fn new(options: &Options, facts: &SocketFacts) -> Self {
        let seen_by = facts.is_client.map(|is_client| {
            if is_client {
                SeenBy::Client
            } else {
                SeenBy::Server
            }
        });
        let reading = |seen_by| Reading::new(options, facts, seen_by);
        let decoding = if let Some(seen_by) = seen_by {
            Decoding::Fixed(Box::new(connection(options, facts, seen_by)))
        } else {
            let both = [SeenBy::Client, SeenBy::Server].map(reading);
            Decoding::Undecided(both.into(), 0)
        };
        Self {
            decoding,
            stamps: Stamps::default(),
            bytes: 0,
            exchanges: 0,
            seen_by,
            protocol: None,
            tls: None,
            trouble: Trouble::default(),
            undecoded_bytes: 0,
            before: [None; 2],
            is_joined: facts.joined,
        }
    }

    /// Bytes before a piece since the connection was found.
    fn offset(&mut self, piece: &PayloadPiece<'_>) -> u64 {
        if piece.plaintext == Plaintext::Wire || !self.is_joined {
            return piece.offset;
        }
        let [received, sent] = &mut self.before;
        let before = if piece.is_send { sent } else { received };
        piece
            .offset
            .saturating_sub(*before.get_or_insert(piece.offset))
    }

    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        match &self.decoding {
            Decoding::Stopped(why) => Some(*why),
            Decoding::Fixed(_) | Decoding::Undecided(..) => None,
        }
    }

    /// What went wrong so far.
    pub(super) fn trouble(&self) -> Trouble {
        let mut trouble = match &self.decoding {
            Decoding::Fixed(connection) => connection.trouble(),
            Decoding::Undecided(readings, _) => readings
                .first()
                .map_or(self.trouble, |reading| reading.connection.trouble()),
            Decoding::Stopped(_) => self.trouble,
        };
        // Which way they went is not asked.
        trouble.not_understood.to_server += self.undecoded_bytes;
        trouble
    }

    /// Takes the next piece; requests that are over are appended to `out`.
    pub(super) fn take(&mut self, piece: &PayloadPiece<'_>, out: &mut Vec<Exchange>) {
        self.bytes = self.bytes.saturating_add(piece.length);
        let offset = self.offset(piece);
        match &mut self.decoding {
            Decoding::Fixed(connection) => {
                let Some(seen_by) = self.seen_by else {
                    return;
                };
                let seen = as_seen(piece, seen_by);
                self.stamps.add(piece, seen.at_ns);
                connection.feed(&seen, offset, out);
                self.note();
            }
            Decoding::Undecided(readings, pieces) => {
                *pieces += 1;
                for Reading {
                    seen_by,
                    connection,
                    exchanges,
                } in readings.iter_mut()
                {
                    let seen = as_seen(piece, *seen_by);
                    self.stamps.add(piece, seen.at_ns);
                    connection.feed(&seen, offset, exchanges);
                }
                self.decide(out);
            }
            Decoding::Stopped(_) => {
                self.undecoded_bytes = self.undecoded_bytes.saturating_add(piece.length);
            }
        }
    }

    /// Which end this is has become known in another way than by what is said.
    pub(super) fn direct(&mut self, end: SeenBy, out: &mut Vec<Exchange>) {
        let Decoding::Undecided(readings, _) = &self.decoding else {
            return;
        };
        let place = readings.iter().position(|reading| reading.seen_by == end);
        if let Some(place) = place {
            self.settle_on(place, out);
        }
    }

    /// Offsets of its pieces may begin anew.
    pub(super) fn restart(&mut self) {
        match &mut self.decoding {
            Decoding::Fixed(connection) => connection.restart(),
            Decoding::Undecided(readings, _) => {
                for reading in readings {
                    reading.connection.restart();
                }
            }
            Decoding::Stopped(_) => {}
        }
    }

    /// Total bytes that went over it.
    pub(super) fn reaches(
        &mut self,
        sent: Option<u64>,
        received: Option<u64>,
        out: &mut Vec<Exchange>,
    ) {
        let (Decoding::Fixed(connection), Some(seen_by)) = (&mut self.decoding, self.seen_by)
        else {
            return;
        };
        let (to_server, to_client) = match seen_by {
            SeenBy::Client => (sent, received),
            SeenBy::Server => (received, sent),
        };
        for (direction, bytes) in [
            (Direction::ToServer, to_server),
            (Direction::ToClient, to_client),
        ] {
            if let Some(bytes) = bytes {
                connection.reaches(direction, bytes, out);
            }
        }
    }

    /// What went over it since is unknown.
    pub(super) fn lose(&mut self, out: &mut Vec<Exchange>) {
        if let Decoding::Fixed(connection) = &mut self.decoding {
            for direction in [Direction::ToServer, Direction::ToClient] {
                connection.gap(direction, out);
            }
        }
    }

    /// Nothing has come until now: requests that were held back, because it was not sure which answers are
    /// theirs, are given out if that proves them.
    pub(super) fn rest(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        if let Decoding::Fixed(connection) = &mut self.decoding {
            connection.rest(now_ns, out);
        }
    }

    /// The task has ended, and the connection goes on: all that was held back is given out.
    pub(super) fn stop(&mut self, now_ns: u64, out: &mut Vec<Exchange>) {
        if let Decoding::Fixed(connection) = &mut self.decoding {
            connection.stop(now_ns, out);
        }
    }

    /// Answers belong to requests by their order alone.
    pub(super) fn is_pipelined(&self) -> bool {
        match &self.decoding {
            Decoding::Fixed(connection) => connection.is_pipelined(),
            Decoding::Undecided(..) | Decoding::Stopped(_) => false,
        }
    }

    /// More captured bytes of each call would let later messages be read.
    pub(super) fn wants_bytes(&self) -> bool {
        match &self.decoding {
            Decoding::Fixed(connection) => connection.wants_bytes(),
            Decoding::Undecided(..) | Decoding::Stopped(_) => false,
        }
    }

    /// The connection has ended.
    pub(super) fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        let why = match &mut self.decoding {
            Decoding::Fixed(connection) => {
                connection.close(at_ns, out);
                StopReason::Ended
            }
            Decoding::Undecided(..) => StopReason::Undirected,
            Decoding::Stopped(_) => return,
        };
        self.stop_for(why);
    }

    /// A request that went over it, with the threads that moved its bytes. `None`: which end this is is not known.
    pub(super) fn seen(
        &mut self,
        place: ObservationPoint,
        plaintext: Plaintext,
        exchange: Exchange,
    ) -> Option<ObservedRequest> {
        let seen_by = self.seen_by?;
        self.exchanges += 1;
        let (client, sends_request) = match seen_by {
            SeenBy::Client => (place.local, true),
            SeenBy::Server => (place.remote, false),
        };
        let begin = self.stamps.find(exchange.begin_ns, sends_request);
        let answer = exchange
            .first_byte_ns
            .and_then(|at_ns| self.stamps.find(at_ns, !sends_request));
        Some(ObservedRequest {
            cookie: place.cookie,
            seen_by,
            drawn: place.drawn,
            tls: plaintext == Plaintext::Tls,
            client,
            begin: begin.unwrap_or(Moved {
                pid: place.pid,
                tid: None,
                ready_ns: None,
            }),
            answer,
            exchange,
        })
    }

    fn stop_for(&mut self, why: StopReason) {
        self.trouble = self.trouble();
        self.decoding = Decoding::Stopped(why);
    }

    /// Keeps the protocol beyond the end of decoding, and stops decoding what no decoder understands.
    fn note(&mut self) {
        let Decoding::Fixed(connection) = &self.decoding else {
            return;
        };
        self.protocol = connection.protocol().or(self.protocol);
        if let Some(tls) = connection
            .tls()
            .filter(|tls| self.tls.as_ref() != Some(tls))
        {
            self.tls = Some(tls.clone());
        }
        if connection.is_unknown() {
            self.protocol = None;
            self.stop_for(StopReason::Unknown);
        }
    }

    /// Takes one of two readings and forgets the other.
    fn settle_on(&mut self, place: usize, out: &mut Vec<Exchange>) {
        let Decoding::Undecided(readings, _) = &mut self.decoding else {
            return;
        };
        if place >= readings.len() {
            return;
        }
        let Reading {
            seen_by,
            connection,
            mut exchanges,
        } = readings.swap_remove(place);
        out.append(&mut exchanges);
        self.seen_by = Some(seen_by);
        self.decoding = Decoding::Fixed(Box::new(connection));
        self.note();
    }

    /// Takes one of two readings when only that one makes sense, and none when neither ever does.
    fn decide(&mut self, out: &mut Vec<Exchange>) {
        let Decoding::Undecided(readings, pieces) = &mut self.decoding else {
            return;
        };
        let pieces = *pieces;
        readings.sort_by_key(|reading| std::cmp::Reverse(reading.sense()));
        let [best, other] = readings.as_slice() else {
            return;
        };
        let is_clear = best.sense() > other.sense()
            && (best.sense() == 2 || other.connection.is_unknown() || pieces >= ENOUGH);
        let is_hopeless = best.connection.is_unknown() && other.connection.is_unknown();
        let is_encrypted = |reading: &Reading| reading.connection.protocol() == Some(Protocol::Tls);
        if is_clear {
            self.settle_on(0, out);
        } else if is_hopeless {
            self.stop_for(StopReason::Unknown);
        } else if pieces >= MOST_UNDECIDED {
            // Encrypted either way: nothing is missed by not knowing.
            self.protocol = is_encrypted(best).then_some(Protocol::Tls);
            self.stop_for(StopReason::Undirected);
        }
    }
}

/// A piece as the decoders have it. A request begins when its first write does, which may wait for room in the socket
/// for most of an upload; an answer ends when its last write does.
fn as_seen<'a>(piece: &PayloadPiece<'a>, seen_by: SeenBy) -> Piece<'a> {
    let direction = match (seen_by, piece.is_send) {
        (SeenBy::Client, true) | (SeenBy::Server, false) => Direction::ToServer,
        (SeenBy::Client, false) | (SeenBy::Server, true) => Direction::ToClient,
    };
    let at_ns = match direction {
        Direction::ToServer => piece.began_ns.unwrap_or(piece.at_ns),
        Direction::ToClient => piece.at_ns,
    };
    Piece {
        direction,
        at_ns,
        length: piece.length,
        bytes: piece.bytes,
    }
}
