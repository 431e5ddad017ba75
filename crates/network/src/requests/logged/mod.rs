//! From entries of Envoys' access logs to the same table that sockets give.
//!
//! A request through an Envoy is two hops: from the client to Envoy, and from Envoy to the upstream. Envoy reports both in one entry,
//! so that what it adds between them needs no pairing. Between two Envoys there is one hop that both report: it is one operation,
//! counted at the client's side, with the times of both. Which entries belong together shows by the addresses of the connection;
//! until the entries of the other side can have come, those of a new connection wait.
//!
//! Counted is what was over between the beginning and the end, by Envoy's clock.

mod envoy;
mod exchange;
mod hops;
mod joins;
mod missing;
mod waiting;

use std::{
    collections::{HashSet, VecDeque},
    ops::RangeInclusive,
};

use profiler_access_logs::{Address, Entry, Kind};
use profiler_model::{
    Endpoint, LoggedJoin, LoggedRequests, RequestAtSocket, RequestCounters, RequestTable, SeenBy,
    TlsSeen, Window,
};
use profiler_protocols::Protocol;

use super::{
    digest::digest,
    observed_request::ObservedRequest,
    operations::{Counted, Operations, Rows, Sampling, spoken},
    samples::Samples,
    timeline::Timeline,
    tracker::TrackerOptions,
};
use envoy::Envoy;
use exchange::{Halves, add_texts};
use hops::{HopId, Hops, Met};
use joins::{Joined, Joins, LoggedEnd, LoggedEnds, Place};
use waiting::Waiting;

pub use hops::{OtherEnd, OwnSocket, SocketNow, UnknownEnd};
pub use missing::Missing;

/// Envoys that are told apart.
const MAX_ENVOYS: usize = 1_024;
/// Requests that wait for what is known of their connection. When there are more, they are counted with what is known.
const MAX_WAITING: usize = 16_384;
/// Reports after which no entry of the other side is waited for: Envoy sends them each second.
const PATIENCE: u64 = 3;
/// Reports after which the socket of a connection that was not used is not looked at.
const LATELY: u64 = 10;

/// Reports in which sockets of all processes are remembered.
const EARLY: u64 = 5;

/// Which Envoy an entry is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnvoyId(usize);

/// Turns entries of access logs into a table of requests. Memory is bounded; what there is no room for is counted.
#[derive(Debug)]
pub struct LogTracker {
    epoch_ns: u64,
    begin_ns: u64,
    raw_paths: bool,
    envoys: Vec<Envoy>,
    hops: Hops,
    waiting: VecDeque<Waiting>,
    /// Of the entry that was taken last.
    halves: Option<Box<Halves>>,
    operations: Operations,
    samples: Samples,
    timeline: Timeline,
    /// `None`: nobody looks at sockets.
    joins: Option<Joins>,
    reports: u64,
    /// Entries and requests for which there was no room.
    pub left_out: u64,
    of_other_envoys: u64,
}

impl LogTracker {
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
            epoch_ns,
            begin_ns,
            raw_paths: privacy.raw_paths,
            envoys: Vec::new(),
            hops: Hops::default(),
            waiting: VecDeque::new(),
            halves: None,
            operations: Operations::default(),
            samples: Samples::new(keep, rules),
            timeline: Timeline::new(begin_ns),
            joins: joins.then(Joins::default),
            reports: 0,
            left_out: 0,
            of_other_envoys: 0,
        }
    }

    /// An Envoy that sends entries. Its address is taken from them. `namespace` is the inode of its network namespace, where that
    /// is known: the addresses of loopback are in every one.
    pub fn envoy(
        &mut self,
        process: Endpoint,
        node_id: String,
        namespace: Option<u64>,
    ) -> Option<EnvoyId> {
        if self.envoys.len() >= MAX_ENVOYS {
            return None;
        }
        let is_looked_for = self.joins.is_some() && process.pid.is_some();
        let joined = is_looked_for.then(LoggedJoin::default);
        self.envoys
            .push(Envoy::new(process, node_id, namespace, joined));
        Some(EnvoyId(self.envoys.len() - 1))
    }

    /// Takes an entry; `None`: of an Envoy for which there was no room.
    ///
    /// `until_ns`: only what was over before, in nanoseconds since the Unix epoch.
    pub fn take(&mut self, from: Option<EnvoyId>, entry: &Entry, until_ns: u64) {
        if entry.is_attempt() || !entry.is_complete() {
            return;
        }
        let within = self.epoch_ns.saturating_add(self.begin_ns)..=until_ns;
        if !is_within(entry, &within) {
            return;
        }
        let Some((id, envoy)) = from.and_then(|id| Some((id, self.envoys.get_mut(id.0)?))) else {
            self.of_other_envoys += 1;
            return;
        };
        envoy.add(entry);
        if entry.kind != Kind::Http {
            return;
        }
        let (pid, namespace) = (envoy.process.pid.unwrap_or(0), envoy.namespace);
        let mut halves = self.halves.take().unwrap_or_default();
        halves.read(entry, pid, self.epoch_ns);
        self.see_both((id, namespace), &mut halves, entry);
        self.halves = Some(halves);
    }

    fn see_both(
        &mut self,
        (id, namespace): (EnvoyId, Option<u64>),
        halves: &mut Halves,
        entry: &Entry,
    ) {
        let addresses = &entry.addresses;
        // Behind a proxy the client's own address may come from a header: that one is not at the other end.
        let client = [
            &addresses.downstream_direct_remote,
            &addresses.downstream_remote,
        ];
        let client = client
            .into_iter()
            .find(|address| address.socket().is_some());
        let client = client.unwrap_or(&addresses.downstream_direct_remote);
        let timing = &entry.timing;
        let inner = period(&halves.inner);
        let outer = halves.outer().map(|outer| period(outer));
        let answered = [
            (client, timing.last_downstream_tx_ns.map(|_| inner)),
            (
                &addresses.upstream_local,
                outer.filter(|_| timing.last_upstream_rx_ns.is_some()),
            ),
        ];
        self.look_for(id, entry, answered);
        let ends = [client, &addresses.downstream_local];
        if let Some(met) =
            self.hops
                .of(ends, namespace, (SeenBy::Server, id), (self.reports, inner))
        {
            let protocol = halves.inner.exchange.protocol;
            self.hops
                .learn(met.hop, spoken(protocol), || greeting(entry));
            self.see(met, &mut halves.inner, entry);
        }
        if let Some(outer) = halves.outer() {
            let ends = [&addresses.upstream_local, &addresses.upstream_remote];
            if let Some(met) = self.hops.of(
                ends,
                namespace,
                (SeenBy::Client, id),
                (self.reports, period(outer)),
            ) {
                self.see(met, outer, entry);
            }
        }
    }

    fn see(&mut self, met: Met, request: &mut ObservedRequest, entry: &Entry) {
        let Met {
            hop,
            client,
            is_settled,
        } = met;
        request.client = client;
        if is_settled && !self.samples.keeps_all() {
            self.count(hop, request, Some(entry));
            return;
        }
        add_texts(&mut request.exchange, entry, self.raw_paths);
        if self.waiting.len() >= MAX_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.count(oldest.hop, &mut oldest.request(), None);
        }
        self.waiting
            .push_back(Waiting::new(self.reports, hop, request));
    }

    /// Has the ends of an entry be looked for at the sockets of its process: those that were answered, by the client's address.
    fn look_for(
        &mut self,
        id: EnvoyId,
        entry: &Entry,
        [inner, outer]: [(&Address, Option<[u64; 2]>); 2],
    ) {
        let Some(envoy) = self.envoys.get_mut(id.0) else {
            return;
        };
        let timing = (entry.upstream.attempts <= 1).then_some(entry.timing);
        let pid = envoy.process.pid.filter(|_| self.joins.is_some());
        let end = |seen_by, (client, period): (&Address, Option<[u64; 2]>)| {
            let [begin_ns, end_ns] = period?;
            let end = LoggedEnd {
                place: Place::new(pid?, seen_by, client.socket()?),
                begin_ns,
                end_ns,
                request_id: exchange::request_id(entry).as_ref().map(digest),
            };
            Some((end, Joined::default()))
        };
        let request = LoggedEnds {
            envoy: id,
            timing,
            ends: [end(SeenBy::Server, inner), end(SeenBy::Client, outer)],
        };
        let Some(joins) = &mut self.joins else {
            return envoy.settle(&request);
        };
        envoy.waiting += 1;
        if let Some(settled) = joins.wait(&request, self.reports) {
            self.settle(&settled);
        }
    }

    /// A request waits no more.
    fn settle(&mut self, request: &LoggedEnds) {
        if let Some(envoy) = self.envoys.get_mut(request.envoy.0) {
            envoy.waiting = envoy.waiting.saturating_sub(1);
            envoy.settle(request);
        }
    }

    /// Requests at sockets of these and other processes that were over since the last call. `epoch_ns` is the wall clock's time, since the
    /// Unix epoch, at which their clock was 0: as it is now, for the wall clock may be set.
    pub fn at_sockets(&mut self, seen: Vec<RequestAtSocket>, epoch_ns: u64) {
        let Some(joins) = &mut self.joins else {
            return;
        };
        let reports = self.reports;
        let known: HashSet<u32> = self
            .envoys
            .iter()
            .filter_map(|envoy| envoy.process.pid)
            .collect();
        // Until then not all Envoys are known.
        let is_wanted = |pid| reports < EARLY || known.contains(&pid);
        let shift_ns = epoch_ns
            .cast_signed()
            .wrapping_sub(self.epoch_ns.cast_signed());
        joins.see(seen, shift_ns, is_wanted, reports);
    }

    /// Joins what can be joined by now.
    fn join(&mut self, is_last: bool) {
        let Some(joins) = &mut self.joins else {
            return;
        };
        let settled = joins.settle(self.reports, is_last);
        self.samples
            .find_threads(|seen| joins.thread(Place::of(seen), seen.exchange.begin_ns));
        for request in settled {
            self.settle(&request);
        }
    }

    /// Counts a request where it belongs by now. `entry` is the one that it is of, if it has no texts yet.
    fn count(&mut self, hop: HopId, request: &mut ObservedRequest, entry: Option<&Entry>) {
        let envoys = &self.envoys;
        let process = |id: EnvoyId| Some(envoys.get(id.0)?.process.clone());
        let Some(settled) = self.hops.settle(hop, request.seen_by, process) else {
            self.left_out += 1;
            return;
        };
        if let Some(protocol) = settled.protocol
            && request.exchange.protocol == Protocol::Http
        {
            request.exchange.protocol = protocol;
        }
        self.operations.add(&settled.edge, request, settled.counted);
        if settled.counted == Counted::AtOtherEnd {
            return;
        }
        if settled.is_first {
            self.operations
                .connected(&settled.edge, request.client.port());
            if let Some(greeting) = settled.greeting {
                self.operations.greeted(&settled.edge, greeting);
            }
        }
        self.timeline.add(&settled.edge, request);
        if self.samples.wants(&settled.edge, request) {
            if let Some(entry) = entry {
                add_texts(&mut request.exchange, entry, self.raw_paths);
            }
            self.samples.add(&settled.edge, request.clone());
        }
    }

    /// Ends of connections of which it is not known which processes they are: each a few times, and all of them at the end (`is_last`).
    pub fn unknown_ends(&mut self, is_last: bool) -> Vec<UnknownEnd> {
        let mut ends = self.hops.unknown(self.reports, is_last);
        for end in &mut ends {
            end.begin_ns = end.begin_ns.saturating_add(self.epoch_ns);
            end.end_ns = end.end_ns.saturating_add(self.epoch_ns);
        }
        ends
    }

    /// An end is this process, on this node.
    pub fn found(&mut self, end: &UnknownEnd, other: OtherEnd) {
        self.hops.found(end, other);
    }

    /// Connections that Envoys opened and used lately, to look at their sockets.
    pub fn own_sockets(&self) -> Vec<OwnSocket> {
        self.hops.own_sockets(self.reports.saturating_sub(LATELY))
    }

    /// What a socket was like just now.
    pub fn saw(&mut self, socket: &OwnSocket, now: SocketNow) {
        self.hops.saw(socket, now);
    }

    /// What of the entries of an Envoy is missing; `None`: its own counters are not known.
    pub fn missing(&mut self, id: EnvoyId, missing: Option<Missing>) {
        if let Some(envoy) = self.envoys.get_mut(id.0) {
            envoy.missing = missing;
        }
    }

    /// Everything so far; to be called about once a second.
    pub fn table(&mut self, now_ns: u64) -> RequestTable {
        self.reports += 1;
        for _ in 0..self.waiting.len() {
            let Some(next) = self.waiting.pop_front() else {
                break;
            };
            // Where all are kept they are in their order, about.
            let is_next = !self.samples.keeps_all() || self.reports - next.since >= PATIENCE;
            if is_next && self.hops.is_settled(next.hop, self.reports) {
                self.count(next.hop, &mut next.request(), None);
            } else {
                self.waiting.push_back(next);
            }
        }
        // Gives back the memory of a burst of new connections.
        self.waiting.shrink_to(2 * self.waiting.len());
        self.hops.forget(self.reports);
        self.join(false);
        self.rows(now_ns)
    }

    /// Everything, after the last entry.
    pub fn finish(&mut self, now_ns: u64) -> RequestTable {
        self.reports += 1;
        while let Some(next) = self.waiting.pop_front() {
            self.count(next.hop, &mut next.request(), None);
        }
        self.join(true);
        self.rows(now_ns)
    }

    fn rows(&self, now_ns: u64) -> RequestTable {
        let everything = Sampling {
            fewest: 1,
            tls_is_steady: true,
        };
        let Rows {
            edges,
            mut operations,
            counted: _,
            places,
        } = self.operations.rows(everything);
        missing::make_up(&mut operations, &edges, &self.envoys);
        let connections = self.hops.connections();
        let envoys = (0..).map(EnvoyId).zip(&self.envoys);
        let mut envoys: Vec<_> = envoys.filter(|(_, envoy)| envoy.has_any()).collect();
        envoys.sort_by_key(|(_, envoy)| std::cmp::Reverse(envoy.requests()));
        let rows = envoys.iter();
        let rows = rows.map(|(id, envoy)| envoy.row(|host| connections.get(&(*id, host))));
        let rows = rows.collect();
        let envoys = envoys.iter().map(|(_, envoy)| envoy);
        RequestTable {
            window: Window {
                from_ns: self.epoch_ns.saturating_add(self.begin_ns),
                to_ns: self.epoch_ns.saturating_add(now_ns),
            },
            samples: self.samples.rows(&places, self.epoch_ns),
            samples_left_out: self.samples.left_out,
            timeline: self.timeline.rows(&places),
            sidecars: envoys.filter_map(|envoy| envoy.sidecar()).collect(),
            counters: RequestCounters {
                sampled_one_of: 1,
                other_operations: self.operations.folded,
                other_edges: self.operations.of_other_edges,
                ..RequestCounters::default()
            },
            logged: Some(LoggedRequests {
                edges: (0..edges.len())
                    .filter_map(|place| u32::try_from(place).ok())
                    .collect(),
                envoys: rows,
                seen_twice: 0,
                without_entry: 0,
                left_out: self.left_out,
                of_other_envoys: self.of_other_envoys,
            }),
            edges,
            operations,
            ..RequestTable::default()
        }
    }
}

/// When a request began and was over.
fn period(request: &ObservedRequest) -> [u64; 2] {
    [request.exchange.begin_ns, request.exchange.end_ns]
}

/// Whether a request was over in a span of time. One of which that is not known was: it has just come.
fn is_within(entry: &Entry, span: &RangeInclusive<u64>) -> bool {
    let Some(start) = entry.start_unix_ns else {
        return true;
    };
    span.contains(&start.saturating_add(entry.timing.duration_ns.unwrap_or(0)))
}

/// What the client's connection said before encryption began; `None`: it is not encrypted.
fn greeting(entry: &Entry) -> Option<TlsSeen> {
    let tls = &entry.tls;
    let version = tls.downstream_version.name()?;
    let name = profiler_access_logs::text(&tls.server_name);
    Some(TlsSeen {
        server_name: (!name.is_empty()).then(|| exchange::bounded(&name)),
        version: Some(version.to_owned()),
        connections: 1,
        ..TlsSeen::default()
    })
}

#[cfg(test)]
mod tests;
