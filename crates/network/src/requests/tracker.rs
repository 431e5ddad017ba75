//! Keeps what is known of every connection of a task, and adds up the requests that go over them.
//!
//! Both ends of a connection may be watched on one node, and then both see the same request. Each is
//! counted once, at one of them: at the client's, unless more of the server's was seen.
//! Which connections belong together shows with their edges, about a second after they began: until
//! then requests that are over wait. Later ones are counted at once.

mod report;
mod settle;

use core::net::SocketAddr;
use std::collections::{HashMap, HashSet, VecDeque};

use foldhash::fast::RandomState;

use crate::edges::EdgeOfConnection;
use profiler_protocols::{Exchange, Limits, Privacy, Protocol};

use super::{
    event::{ByteTotals, Drawn, PayloadEvent, PayloadPiece, Plaintext},
    facts::{CaptureOrder, SocketFacts, SourceCounts},
    observed_request::ObservedRequest,
    operations::Operations,
    rules::{RuleError, Rules},
    samples::{Keep, Samples},
    shared_edge::SharedEdge,
    sidecar::Sidecars,
    socket_requests::{Rest, SocketRequests},
    timeline::Timeline,
};
use profiler_model::{
    EdgeKey, RequestAtSocket, RequestCounters, RequestOptions, RequestTable, SeenBy,
};

/// First bytes of each body that are kept, when bodies are.
const BODY_BYTES: usize = 4096;
/// Open connections that are followed at once.
const MAX_CONNECTIONS: usize = 8192;
/// Connections that have ended and are remembered, each in about 1 KB: those of five seconds when 3000 of them begin in
/// each and both ends are seen.
const MAX_ENDED: usize = 32_768;
/// The oldest of these that are forgotten at once when they are more: all requests that wait are looked at for it.
const FORGOTTEN_AT_ONCE: usize = MAX_ENDED / 8;
/// Requests that wait for their edge.
const MAX_WAITING: usize = 32_768;
/// Reports after which a request is counted without an edge from the table of connections.
const PATIENCE: u64 = 4;
/// Requests that wait to be joined with what access logs say of them, from one report to the next.
const MAX_AT_SOCKETS: usize = 32_768;
/// Whether requests may still wait for their edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Some,
    None,
}

/// Reports after its end for which a connection is remembered: its requests are counted by then.
const REMEMBERED: u64 = PATIENCE + 2;

/// How requests are looked for.
#[derive(Clone, Debug, Default)]
pub struct TrackerOptions {
    pub privacy: Privacy,
    pub keep: Keep,
    pub rules: Rules,
    /// Nanoseconds since the Unix epoch at which the monotonic clock was 0.
    pub epoch_ns: u64,
    /// When payload began to be looked at, on the monotonic clock.
    pub begin_ns: u64,
    /// Access logs are read as well, and tell of the same requests.
    pub joins: bool,
}

impl TrackerOptions {
    /// What a task asked for.
    pub fn of(options: &RequestOptions, epoch_ns: u64, begin_ns: u64) -> Result<Self, RuleError> {
        Ok(Self {
            privacy: Privacy {
                raw_paths: options.raw_paths,
                body_bytes: if options.bodies { BODY_BYTES } else { 0 },
                ..Privacy::default()
            },
            keep: if options.samples_all {
                Keep::All
            } else {
                Keep::SlowAndFailing
            },
            rules: Rules::compile(&options.rules)?,
            epoch_ns,
            begin_ns,
            joins: options.access_log && options.sockets,
        })
    }
}

/// Turns events of the kernel side into a table of requests. Memory is bounded; what there is no room
/// for is counted.
#[derive(Debug)]
pub struct Tracker {
    privacy: Privacy,
    epoch_ns: u64,
    begin_ns: u64,
    sockets: HashMap<u64, SocketRequests, RandomState>,
    /// Which end sockets are that were there before and have moved nothing yet: `true` for clients.
    directions: HashMap<u64, bool>,
    /// Those of them that have ended, the oldest first.
    gone: VecDeque<u64>,
    /// Sockets at both ends of connections, by the client's address.
    ends: HashMap<SocketAddr, Vec<u64>>,
    /// Requests that are over and wait for their edge, with the report before which they came.
    waiting: VecDeque<(u64, ObservedRequest)>,
    operations: Operations,
    samples: Samples,
    timeline: Timeline,
    sidecars: Sidecars,
    /// Those that were over since they were taken; `None`: nobody takes them.
    at_sockets: Option<Vec<RequestAtSocket>>,
    orders: Vec<(u64, CaptureOrder)>,
    /// Of connections that are no longer remembered, and of what never was one.
    counters: RequestCounters,
    source: SourceCounts,
    reports: u64,
    /// Reused for what one piece brings.
    ended: Vec<Exchange>,
}

impl Tracker {
    pub fn new(options: TrackerOptions) -> Self {
        let TrackerOptions {
            privacy,
            keep,
            rules,
            epoch_ns,
            begin_ns,
            joins,
        } = options;
        Self {
            privacy,
            epoch_ns,
            begin_ns,
            sockets: HashMap::default(),
            directions: HashMap::new(),
            gone: VecDeque::new(),
            ends: HashMap::new(),
            waiting: VecDeque::new(),
            operations: Operations::default(),
            samples: Samples::new(keep, rules),
            timeline: Timeline::new(begin_ns),
            sidecars: Sidecars::new(keep),
            at_sockets: joins.then(Vec::new),
            orders: Vec::new(),
            counters: RequestCounters::default(),
            source: SourceCounts::default(),
            reports: 0,
            ended: Vec::new(),
        }
    }

    /// A connection begins, or is found; before its first piece. When it is known, its entry on the kernel side has
    /// made room for others and was made anew.
    pub fn connection(&mut self, cookie: u64, facts: SocketFacts) {
        if let Some(socket) = self.sockets.get_mut(&cookie) {
            let ordered = socket.restart();
            self.orders.extend(ordered.map(|order| (cookie, order)));
            return;
        }
        if self.open() >= MAX_CONNECTIONS {
            self.counters.refused_connections += 1;
            self.orders.push((cookie, CaptureOrder::STOP));
            return;
        }
        let known = self.directions.remove(&cookie);
        let facts = SocketFacts {
            is_client: facts.is_client.or(known),
            ..facts
        };
        let socket = SocketRequests::new(facts, self.reports);
        self.sockets.insert(cookie, socket);
    }

    /// Which end sockets are that were there before: `true` for clients. The kernel side may have met them
    /// before the listening ports were read.
    pub fn directions(&mut self, known: HashMap<u64, bool>) {
        self.directions = known;
        let met: Vec<(u64, bool)> = self
            .directions
            .extract_if(|cookie, _is_client| self.sockets.contains_key(cookie))
            .collect();
        for (cookie, is_client) in met {
            self.each_plaintext(cookie, |socket, plaintext, out| {
                socket.direct(plaintext, is_client, out);
            });
        }
    }

    pub fn take(&mut self, event: PayloadEvent<'_>) {
        match event {
            PayloadEvent::Piece(piece) => self.piece(&piece),
            PayloadEvent::Closed {
                cookie,
                at_ns,
                totals,
            } => self.closed(cookie, at_ns, totals),
            PayloadEvent::Lost { cookie, pieces } => {
                self.counters.lost_pieces = self.counters.lost_pieces.saturating_add(pieces);
                if let Some(socket) = self.sockets.get_mut(&cookie) {
                    socket.lost_pieces = socket.lost_pieces.saturating_add(pieces);
                }
            }
        }
    }

    /// What only the kernel side can count, from the start of the task.
    pub fn source(&mut self, counts: SourceCounts) {
        self.source = counts;
    }

    /// Which edge each connection belongs to, as far as that is known by now. `is_last`: nothing more will be moved.
    pub fn edges(
        &mut self,
        edge_of_connection: &HashMap<u64, EdgeOfConnection>,
        now_ns: u64,
        is_last: bool,
    ) {
        // What connections of an edge that was known belong to now.
        let mut successors: HashMap<SharedEdge, HashSet<SharedEdge>> = HashMap::new();
        let mut contradicted: HashSet<(SharedEdge, Protocol)> = HashSet::new();
        let mut shared: HashMap<&EdgeKey, SharedEdge> = HashMap::new();
        for (cookie, socket) in &mut self.sockets {
            let of = edge_of_connection.get(cookie);
            let confirmed = of.map(|edge_of| &edge_of.edge);
            socket.is_guess &= confirmed.is_none();
            let known = socket.edge.clone();
            if let Some(confirmed) = confirmed.filter(|key| known.as_deref() != Some(*key)) {
                let edge = shared.entry(confirmed);
                let edge = edge.or_insert_with(|| SharedEdge::new(confirmed.clone()));
                socket.edge = Some(edge.clone());
            }
            if let Some(edge) = &socket.edge {
                let missed = socket.missed_of(of, is_last);
                contradicted.extend(missed.map(|protocol| (edge.clone(), protocol)));
            }
            if let (Some(known), Some(found)) = (known, &socket.edge) {
                successors.entry(known).or_default().insert(found.clone());
            }
        }
        for (old, new) in successors {
            // Several were one before more was known: what belongs to which is not known.
            let only = new.into_iter().collect::<Vec<_>>();
            if let [new] = only.as_slice()
                && *new != old
            {
                self.operations.rename(&old, new);
                self.samples.rename(&old, new);
                self.timeline.rename(&old, new);
            }
        }
        self.operations.cover(edge_of_connection.values(), now_ns);
        for (edge, protocol) in contradicted {
            self.operations.contradict(&edge, protocol);
        }
    }

    /// What the kernel side should do from now on, since the last call.
    pub fn orders(&mut self) -> Vec<(u64, CaptureOrder)> {
        std::mem::take(&mut self.orders)
    }

    /// Everything so far. Requests that ended within the last seconds may still wait for what is known of
    /// their connections. To be called after [`Tracker::edges`], about once a second.
    pub fn table(&mut self, now_ns: u64) -> RequestTable {
        self.rest(Rest::GoesOn, now_ns);
        self.reports += 1;
        self.settle(Patience::Some);
        self.forget();
        self.rows(now_ns)
    }

    /// Everything, after the last event. Requests that go on are counted and left out: how they end is not known.
    pub fn finish(&mut self, now_ns: u64) -> RequestTable {
        self.rest(Rest::Ends, now_ns);
        self.reports += 1;
        self.settle(Patience::None);
        let mut table = self.rows(now_ns);
        table.counters.under_way = self.under_way(now_ns);
        table
    }

    /// Requests that were over since the last call, to be joined with what access logs say of them.
    pub fn take_at_sockets(&mut self) -> Vec<RequestAtSocket> {
        self.at_sockets
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Takes what connections that go on have held back.
    fn rest(&mut self, rest: Rest, now_ns: u64) {
        let open = self
            .sockets
            .iter()
            .filter(|(_, socket)| socket.gone.is_none());
        let cookies: Vec<u64> = open.map(|(cookie, _)| *cookie).collect();
        for cookie in cookies {
            self.each_plaintext(cookie, |socket, plaintext, out| {
                socket.rest(plaintext, rest, now_ns, out);
            });
        }
    }

    /// Does something with what went over a connection, of each kind, and takes the requests that are over by it.
    fn each_plaintext(
        &mut self,
        cookie: u64,
        act: impl Fn(&mut SocketRequests, Plaintext, &mut Vec<Exchange>),
    ) {
        for plaintext in [Plaintext::Wire, Plaintext::Tls] {
            if let Some(socket) = self.sockets.get_mut(&cookie) {
                let was = socket.seen_by();
                act(socket, plaintext, &mut self.ended);
                self.remember_end(cookie, was);
            }
            self.collect(cookie, plaintext);
        }
    }

    /// Remembers a socket by its client, which was known before if `was` says so.
    fn remember_end(&mut self, cookie: u64, was: Option<SeenBy>) {
        let client = self.sockets.get(&cookie).and_then(SocketRequests::client);
        if was.is_none()
            && let Some(client) = client
        {
            self.ends.entry(client).or_default().push(cookie);
        }
    }

    fn piece(&mut self, piece: &PayloadPiece<'_>) {
        let limits = self.limits();
        let Some(socket) = self.sockets.get_mut(&piece.cookie) else {
            self.counters.refused_bytes = self.counters.refused_bytes.saturating_add(piece.length);
            return;
        };
        socket.pid = piece.pid;
        let was = socket.seen_by();
        let is_sampled = [socket.drawn, piece.drawn] != [Drawn::ALL; 2];
        if socket.is_new() {
            socket.drawn = piece.drawn;
        } else if is_sampled && !piece.follows {
            socket.begin_turn(&mut self.ended);
        }
        let is_drawn_anew = socket.drawn != piece.drawn;
        if let Some(stream) = socket.stream_of(piece.plaintext, limits, &self.privacy) {
            stream.take(piece, &mut self.ended);
        }
        if let Some(order) = socket.order() {
            self.orders.push((piece.cookie, order));
        }
        self.remember_end(piece.cookie, was);
        self.collect(piece.cookie, piece.plaintext);
        // What it has ended was begun as those before it.
        if is_drawn_anew && let Some(socket) = self.sockets.get_mut(&piece.cookie) {
            socket.drawn = piece.drawn;
        }
    }

    fn closed(&mut self, cookie: u64, at_ns: u64, totals: ByteTotals) {
        let Some(socket) = self.sockets.get_mut(&cookie) else {
            return;
        };
        if socket.gone.is_some() {
            // Two events report it.
            return;
        }
        socket.gone = Some(self.reports);
        self.gone.push_back(cookie);
        self.each_plaintext(cookie, |socket, plaintext, out| {
            socket.close(plaintext, totals, at_ns, out);
        });
        if let Some(socket) = self.sockets.get_mut(&cookie) {
            socket.shrink();
        }
        if self.gone.len() > MAX_ENDED {
            self.make_room();
        }
    }

    /// Connections that have not ended.
    fn open(&self) -> usize {
        self.sockets.len().saturating_sub(self.gone.len())
    }

    /// How much each connection may keep: the more there are, the less.
    fn limits(&self) -> Limits {
        let full = Limits::default();
        let open_exchanges = match self.open() {
            0..1024 => full.open_exchanges,
            1024..4096 => 256,
            4096.. => 64,
        };
        Limits {
            open_exchanges,
            ..full
        }
    }

    /// Counts what has just ended, or puts it to the requests that wait for their edge.
    fn collect(&mut self, cookie: u64, plaintext: Plaintext) {
        if self.ended.is_empty() {
            return;
        }
        let mut ended = std::mem::take(&mut self.ended);
        if let Some(socket) = self.sockets.get_mut(&cookie) {
            let place = socket.place(cookie);
            if plaintext == Plaintext::Wire {
                for exchange in &ended {
                    socket.note(exchange);
                }
            }
            for exchange in ended.drain(..) {
                let socket = self.sockets.get_mut(&cookie);
                let stream = socket.and_then(|socket| socket.stream_mut(plaintext));
                let seen = stream.and_then(|stream| stream.seen(place, plaintext, exchange));
                if let Some(seen) = seen {
                    self.sidecars.add(&seen);
                    if let Some(at_sockets) = &mut self.at_sockets
                        && at_sockets.len() < MAX_AT_SOCKETS
                        && seen.is_whole()
                    {
                        at_sockets.push(seen.at_socket());
                    }
                    self.count_or_wait(seen);
                }
            }
        }
        ended.clear();
        self.ended = ended;
        while self.waiting.len() > MAX_WAITING
            && let Some((_, seen)) = self.waiting.pop_front()
        {
            self.count(seen);
        }
    }
}
