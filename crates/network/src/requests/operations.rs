//! Adds requests up by edge, protocol, method and route.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::edges::{EdgeOfConnection, HttpEnd};
use foldhash::fast::RandomState;
use profiler_protocols::Protocol;

use super::{
    counts::{Counts, scaled},
    draws::Draws,
    edge_counts::EdgeCounts as KernelCounts,
    estimate::{Coverage, Spans, times},
    observed_request::ObservedRequest,
    shared_edge::SharedEdge,
};
use profiler_model::{
    EdgeCount, EdgeKey, MAX_SERVER_THREADS, Operation, RequestEdge, SeenBy, Tally, TlsSeen, float,
};

/// Distinct operations of one edge, `other` not among them.
pub(super) const MAX_OPERATIONS_OF_EDGE: usize = 256;
/// Distinct operations of all edges.
const MAX_OPERATIONS: usize = 16_384;
/// Distinct edges.
const MAX_EDGES: usize = 4096;
/// Distinct greetings of one edge.
const MAX_GREETINGS: usize = 16;

/// What makes requests one operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    protocol: Protocol,
    tls: bool,
    /// Behind those with a name.
    is_other: bool,
    method: Option<String>,
    route: Option<String>,
}

/// The client's port of the connections of an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ClientPort {
    #[default]
    None,
    One(u16),
    Several,
}

impl ClientPort {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, port) | (port, Self::None) => port,
            (Self::One(a), Self::One(b)) if a == b => self,
            (Self::One(_) | Self::Several, Self::One(_) | Self::Several) => Self::Several,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct EdgeCounts {
    operations: BTreeMap<Name, Counts>,
    connections: u64,
    client_port: ClientPort,
    tls: Vec<TlsSeen>,
    /// At most [`MAX_SERVER_THREADS`].
    server_tids: BTreeSet<u32>,
}

impl EdgeCounts {
    fn add_threads(&mut self, seen: &ObservedRequest) {
        if seen.seen_by != SeenBy::Server {
            return;
        }
        let moved = [Some(seen.begin), seen.answer].into_iter().flatten();
        self.keep_threads(moved.filter_map(|moved| moved.tid));
    }

    fn keep_threads(&mut self, tids: impl IntoIterator<Item = u32>) {
        for tid in tids {
            if self.server_tids.len() < MAX_SERVER_THREADS {
                self.server_tids.insert(tid);
            }
        }
    }
}

/// Whether a request is counted where it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// It is.
    Here,
    /// The socket at the other end sees it as well, and it is counted there.
    AtOtherEnd,
}

/// Whether a row of an edge is a part of what the kernel counted there as this protocol.
fn is_counted_as(operation: &Operation, protocol: Protocol) -> bool {
    spoken(operation.protocol) == protocol && !operation.tls
}

/// The protocol of a connection with such a request. Calls of gRPC share theirs with other requests of HTTP/2.
pub(super) fn spoken(protocol: Protocol) -> Protocol {
    match protocol {
        Protocol::Grpc => Protocol::Http2,
        other => other,
    }
}

/// What of all connections was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampling {
    /// One in this many was captured when they were fewest.
    pub(super) fewest: u32,
    pub(super) tls_is_steady: bool,
}

#[derive(Debug, Default)]
pub(super) struct Operations {
    edges: HashMap<SharedEdge, EdgeCounts, RandomState>,
    /// Bytes of the connections of each edge, captured or not. At most [`MAX_EDGES`].
    traffic: HashMap<EdgeKey, Coverage>,
    /// Requests that the kernel counted. At most [`MAX_EDGES`].
    counted: HashMap<EdgeKey, KernelCounts>,
    spans: Spans,
    /// Of edges for which there was no room.
    rest: EdgeCounts,
    /// The name that was looked for last: its memory is used again.
    sought: Option<Name>,
    /// Distinct operations.
    distinct: usize,
    /// Requests that went into `other` operations.
    pub(super) folded: u64,
    /// Requests of edges for which there was no room.
    pub(super) of_other_edges: u64,
}

impl Operations {
    pub(super) fn add(&mut self, edge: &SharedEdge, seen: &ObservedRequest, counted: Counted) {
        if counted == Counted::AtOtherEnd && seen.exchange.method.is_none() {
            // Which operation it took the time of is known only there.
            return;
        }
        let has_room = self.make_room(edge);
        if !has_room {
            self.of_other_edges += 1;
        }
        let own = self.edges.get_mut(edge).filter(|_| has_room);
        let counts = own.unwrap_or(&mut self.rest);
        counts.add_threads(seen);
        let exchange = &seen.exchange;
        let name = self.sought.get_or_insert(Name {
            protocol: exchange.protocol,
            tls: false,
            is_other: false,
            method: None,
            route: None,
        });
        name.protocol = exchange.protocol;
        name.tls = seen.tls;
        name.method.clone_from(&exchange.method);
        name.route.clone_from(&exchange.route);
        let span = self.spans.of(exchange.end_ns);
        if let Some(known) = counts.operations.get_mut(name) {
            known.add(seen, counted, span);
            return;
        }
        let mut name = name.clone();
        let is_full =
            counts.operations.len() >= MAX_OPERATIONS_OF_EDGE || self.distinct >= MAX_OPERATIONS;
        if is_full || !has_room {
            name = Name {
                is_other: true,
                method: None,
                route: None,
                ..name
            };
            self.folded += u64::from(has_room);
        } else {
            self.distinct += 1;
        }
        let counts = counts.operations.entry(name).or_default();
        counts.add(seen, counted, span);
    }

    /// Whether the edge has an entry; one is made while there is room.
    fn make_room(&mut self, edge: &SharedEdge) -> bool {
        if self.edges.contains_key(edge) {
            return true;
        }
        if self.edges.len() >= MAX_EDGES {
            return false;
        }
        self.edges.insert(edge.clone(), EdgeCounts::default());
        true
    }

    /// A connection of the edge had its first request that is counted where it was seen.
    pub(super) fn connected(&mut self, edge: &SharedEdge, client_port: u16) {
        let has_room = self.make_room(edge);
        let own = self.edges.get_mut(edge).filter(|_| has_room);
        let counts = own.unwrap_or(&mut self.rest);
        counts.connections += 1;
        // Unix sockets have none.
        if client_port != 0 {
            counts.client_port = counts.client_port.and(ClientPort::One(client_port));
        }
    }

    /// The bytes of each connection that is open or has ended since the last call. A span of time ends.
    pub(super) fn cover<'a>(
        &mut self,
        edge_of_connection: impl Iterator<Item = &'a EdgeOfConnection>,
        now_ns: u64,
    ) {
        self.traffic.values_mut().for_each(Coverage::forget_open);
        self.counted
            .values_mut()
            .for_each(KernelCounts::forget_open);
        for edge_of in edge_of_connection {
            if let Some(bytes) = edge_of.traffic
                && let Some(coverage) = self.traffic_of(&edge_of.edge)
            {
                coverage.add(bytes, edge_of.has_ended);
            }
            if let Some(http) = &edge_of.http
                && let Some(counts) = self.counts_of(&edge_of.edge)
            {
                counts.add(http, edge_of.has_ended);
            }
        }
        let span = self.spans.last();
        for coverage in self.traffic.values_mut() {
            coverage.report(span);
        }
        if self.spans.report(now_ns) {
            self.traffic.values_mut().for_each(Coverage::halve);
            let edges = self.edges.values_mut().chain([&mut self.rest]);
            let counts = edges.flat_map(|edge| edge.operations.values_mut());
            counts.for_each(Counts::halve_spans);
        }
    }

    /// `None`: there is no room for one more edge.
    fn traffic_of(&mut self, edge: &EdgeKey) -> Option<&mut Coverage> {
        if !self.traffic.contains_key(edge) {
            if self.traffic.len() >= MAX_EDGES {
                return None;
            }
            self.traffic.insert(edge.clone(), Coverage::default());
        }
        self.traffic.get_mut(edge)
    }

    /// As [`Self::traffic_of`].
    fn counts_of(&mut self, edge: &EdgeKey) -> Option<&mut KernelCounts> {
        if !self.counted.contains_key(edge) {
            if self.counted.len() >= MAX_EDGES {
                return None;
            }
            self.counted.insert(edge.clone(), KernelCounts::default());
        }
        self.counted.get_mut(edge)
    }

    /// The kernel counted fewer requests of a connection of the edge than there were.
    pub(super) fn contradict(&mut self, edge: &EdgeKey, protocol: Protocol) {
        if let Some(counts) = self.counted.get_mut(edge) {
            counts.contradict(protocol);
        }
    }

    /// A connection of the edge sent something before encryption began.
    pub(super) fn greeted(&mut self, edge: &SharedEdge, greeting: TlsSeen) {
        if self.make_room(edge)
            && let Some(counts) = self.edges.get_mut(edge)
        {
            add_greeting(&mut counts.tls, greeting);
        }
    }

    /// An edge turned out to be another, of which more is known: everything of it goes there.
    pub(super) fn rename(&mut self, old: &SharedEdge, new: &SharedEdge) {
        if let Some(moved) = self.traffic.remove(&**old) {
            let place = self.traffic.entry(EdgeKey::clone(new));
            place.or_default().merge(&moved);
        }
        if let Some(moved) = self.counted.remove(&**old) {
            let place = self.counted.entry(EdgeKey::clone(new));
            place.or_default().merge(&moved);
        }
        let Some(moved) = self.edges.remove(old) else {
            return;
        };
        let place = self.edges.entry(new.clone()).or_default();
        for (name, counts) in moved.operations {
            if let Some(there) = place.operations.get_mut(&name) {
                there.merge(&counts);
                self.distinct = self.distinct.saturating_sub(1);
            } else {
                place.operations.insert(name, counts);
            }
        }
        place.client_port = place.client_port.and(moved.client_port);
        place.connections += moved.connections;
        place.keep_threads(moved.server_tids);
        for greeting in moved.tls {
            add_greeting(&mut place.tls, greeting);
        }
    }

    /// Everything so far.
    pub(super) fn rows(&self, sampling: Sampling) -> Rows<'_> {
        let sums = self.counted.iter();
        let sums: BTreeMap<&EdgeKey, Vec<(Protocol, HttpEnd)>> = sums
            .map(|(key, counts)| (key, counts.sums()))
            .filter(|(_, sums)| !sums.is_empty())
            .collect();
        let own: HashMap<&EdgeKey, &EdgeCounts> = self
            .edges
            .iter()
            .map(|(edge, counts)| (&**edge, counts))
            .collect();
        let keys: BTreeSet<&EdgeKey> = own.keys().chain(sums.keys()).copied().collect();
        let none = EdgeCounts::default();
        let places: HashMap<&EdgeKey, u32> = keys.iter().copied().zip(0..).collect();
        let mut edges = Vec::with_capacity(keys.len());
        let mut operations = Vec::new();
        for key in keys {
            let counts = own.get(key).copied().unwrap_or(&none);
            edges.push(RequestEdge {
                key: key.clone(),
                client_port: match counts.client_port {
                    ClientPort::One(port) => Some(port),
                    ClientPort::None | ClientPort::Several => None,
                },
                connections: counts.connections,
                tls: counts.tls.clone(),
                server_tids: counts.server_tids.iter().copied().collect(),
            });
            let place = places.get(key).copied();
            let coverage = self.traffic.get(key);
            let row = |(name, counts)| row(place, name, counts, coverage, sampling);
            let mut rows: Vec<Operation> = counts.operations.iter().map(row).collect();
            let sure = sums.get(key).into_iter().flatten();
            let sure = sure.filter(|(_, sum)| sum.is_sure && sampling.fewest > 1);
            for (protocol, sum) in sure {
                let draws: Vec<_> = counts.operations.values().map(Counts::draws).collect();
                share_out((*protocol, sum.outcomes.all()), &mut rows, &draws);
            }
            operations.extend(rows);
        }
        let counted = sums.into_iter();
        let counted = counted.flat_map(|(key, sums)| sums.into_iter().map(move |sum| (key, sum)));
        let counted = counted.filter_map(|(key, (protocol, sum))| {
            Some(EdgeCount {
                edge: places.get(key).copied()?,
                protocol,
                seen_by: sum.seen_by?,
                outcomes: sum.outcomes,
                latency_ns: sum.latency_ns,
                is_exact: sum.is_sure,
            })
        });
        let counted = counted.collect();
        let rest = self.rest.operations.iter();
        operations.extend(rest.map(|(name, counts)| row(None, name, counts, None, sampling)));
        Rows {
            edges,
            operations,
            counted,
            places,
        }
    }
}

/// Everything so far.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    pub(super) edges: Vec<RequestEdge>,
    pub(super) operations: Vec<Operation>,
    pub(super) counted: Vec<EdgeCount>,
    /// Where each edge is in `edges`.
    pub(super) places: HashMap<&'a EdgeKey, u32>,
}

/// Has estimates of an edge's operations add up to what is known of all of one protocol, with the `draws` of each.
fn share_out(
    (protocol, whole): (Protocol, u64),
    operations: &mut [Operation],
    draws: &[Option<&Draws>],
) {
    let rows = operations.iter_mut().zip(draws);
    let rows: Vec<_> = rows
        .filter(|(row, _)| is_counted_as(row, protocol))
        .collect();
    let estimated: u64 = rows.iter().map(|(row, _)| row.tally.count).sum();
    let is_certain = rows.iter().all(|(row, _)| row.tally.is_certain());
    if estimated == 0 || is_certain {
        return;
    }
    let mut all = Draws::default();
    rows.iter()
        .filter_map(|(_, draws)| **draws)
        .for_each(|draws| all.merge(draws));
    let factor = float(whole) / float(estimated);
    for (row, draws) in rows {
        let part = row.tally.count;
        let is_servers = row.server_only == part;
        let none = Draws::default();
        let draws = draws.unwrap_or(&none);
        row.tally = Tally {
            variance: draws.variance_of_part(part, &all, estimated, whole),
            ..scaled(&row.tally, factor)
        };
        row.server_only = if is_servers {
            row.tally.count
        } else {
            times(row.server_only, factor)
        };
    }
}

fn row(
    edge: Option<u32>,
    name: &Name,
    counts: &Counts,
    coverage: Option<&Coverage>,
    sampling: Sampling,
) -> Operation {
    // TLS that is read for a part of the time: the rest is left out, and not estimated.
    let coverage = coverage.filter(|_| !name.tls || sampling.tls_is_steady);
    let (tally, server_only) = counts.estimate(coverage, sampling.fewest);
    Operation {
        edge,
        protocol: name.protocol,
        tls: name.tls,
        method: name.method.clone(),
        route: name.route.clone(),
        is_other: name.is_other,
        tally,
        server_only,
        client: counts.client.clone(),
        server: counts.server.clone(),
    }
}

fn add_greeting(greetings: &mut Vec<TlsSeen>, greeting: TlsSeen) {
    let is_same = |known: &&mut TlsSeen| {
        let connections = known.connections;
        **known
            == TlsSeen {
                connections,
                ..greeting.clone()
            }
    };
    if let Some(known) = greetings.iter_mut().find(is_same) {
        known.connections += greeting.connections;
    } else if greetings.len() < MAX_GREETINGS {
        greetings.push(greeting);
    }
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;
