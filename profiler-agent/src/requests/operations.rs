//! Adds requests up by edge, protocol, method and route.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
};

use profiler_protocols::Protocol;

use super::{
    counts::{Counts, EdgeBytes},
    estimate::{Coverage, Grouped, Groups},
    seen::Seen,
};
use crate::network::Home;
use profiler_model::{EdgeKey, Operation, RequestEdge, TlsSeen};

/// Operations of one edge that are told apart, `other` not among them.
pub(super) const MAX_OPERATIONS_OF_EDGE: usize = 256;
/// Operations that are told apart, of all edges.
const MAX_OPERATIONS: usize = 16_384;
/// Edges that are told apart.
const MAX_EDGES: usize = 4096;
/// Different greetings of one edge that are told apart.
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
}

/// Whether a request is counted where it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// It is.
    Here,
    /// The socket at the other end sees it as well, and it is counted there.
    AtOtherEnd,
}

/// Bytes of the connections of an edge, also of those that were not captured.
#[derive(Clone, Debug, Default)]
struct EdgeTraffic {
    ended: Coverage,
    open: Coverage,
    /// Of connections that are no longer remembered.
    captured: Grouped,
}

/// What of all connections was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampling {
    /// One in so many, when the fewest were.
    pub(super) fewest: u32,
    pub(super) tls_is_steady: bool,
}

#[derive(Debug, Default)]
pub(super) struct Operations {
    edges: HashMap<EdgeKey, EdgeCounts>,
    /// As many as edges.
    traffic: HashMap<EdgeKey, EdgeTraffic>,
    /// Of edges for which there was no room.
    rest: EdgeCounts,
    /// Operations that are told apart.
    told_apart: usize,
    /// Requests that went into `other` operations.
    pub(super) folded: u64,
    /// Requests of edges for which there was no room.
    pub(super) of_other_edges: u64,
}

impl Operations {
    pub(super) fn add(&mut self, edge: &EdgeKey, seen: &Seen, counted: Counted) {
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
        let exchange = &seen.exchange;
        let mut name = Name {
            protocol: exchange.protocol,
            tls: seen.tls,
            is_other: false,
            method: exchange.method.clone(),
            route: exchange.route.clone(),
        };
        if !counts.operations.contains_key(&name) {
            let is_full = counts.operations.len() >= MAX_OPERATIONS_OF_EDGE
                || self.told_apart >= MAX_OPERATIONS;
            if is_full || !has_room {
                name = Name {
                    is_other: true,
                    method: None,
                    route: None,
                    ..name
                };
                self.folded += u64::from(has_room);
            } else {
                self.told_apart += 1;
            }
        }
        counts
            .operations
            .entry(name)
            .or_default()
            .add(seen, counted);
    }

    /// Whether the edge is told apart, now if not before.
    fn make_room(&mut self, edge: &EdgeKey) -> bool {
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
    pub(super) fn connected(&mut self, edge: &EdgeKey, client_port: u16) {
        let has_room = self.make_room(edge);
        let own = self.edges.get_mut(edge).filter(|_| has_room);
        let counts = own.unwrap_or(&mut self.rest);
        counts.connections += 1;
        // Unix sockets have none.
        if client_port != 0 {
            counts.client_port = counts.client_port.and(ClientPort::One(client_port));
        }
    }

    /// How much of each connection was captured that is open or has just ended.
    pub(super) fn cover<'a>(&mut self, homes: impl Iterator<Item = &'a Home>) {
        for traffic in self.traffic.values_mut() {
            traffic.open = Coverage::default();
        }
        for home in homes {
            let Some(bytes) = home.traffic else {
                continue;
            };
            if let Some(of_edge) = self.traffic_of(&home.edge) {
                let sum = if home.has_ended {
                    &mut of_edge.ended
                } else {
                    &mut of_edge.open
                };
                sum.add(bytes);
            }
        }
    }

    /// What was captured in time of a connection that will not be remembered any longer.
    pub(super) fn captured(&mut self, edge: &EdgeKey, client: Option<SocketAddr>, bytes: &Groups) {
        if let Some(of_edge) = self.traffic_of(edge) {
            of_edge.captured.add_all(bytes, client);
        }
    }

    fn traffic_of(&mut self, edge: &EdgeKey) -> Option<&mut EdgeTraffic> {
        if !self.traffic.contains_key(edge) {
            if self.traffic.len() >= MAX_EDGES {
                return None;
            }
            self.traffic.insert(edge.clone(), EdgeTraffic::default());
        }
        self.traffic.get_mut(edge)
    }

    /// A connection of the edge told something before encryption began.
    pub(super) fn greeted(&mut self, edge: &EdgeKey, greeting: TlsSeen) {
        if self.make_room(edge)
            && let Some(counts) = self.edges.get_mut(edge)
        {
            add_greeting(&mut counts.tls, greeting);
        }
    }

    /// An edge turned out to be another, of which more is known: everything of it goes there.
    pub(super) fn rename(&mut self, old: &EdgeKey, new: &EdgeKey) {
        if let Some(moved) = self.traffic.remove(old)
            && let Some(of_edge) = self.traffic_of(new)
        {
            of_edge.ended.merge(&moved.ended);
            of_edge.captured.merge(&moved.captured);
        }
        let Some(moved) = self.edges.remove(old) else {
            return;
        };
        let place = self.edges.entry(new.clone()).or_default();
        for (name, counts) in moved.operations {
            if let Some(there) = place.operations.get_mut(&name) {
                there.merge(&counts);
                self.told_apart = self.told_apart.saturating_sub(1);
            } else {
                place.operations.insert(name, counts);
            }
        }
        place.client_port = place.client_port.and(moved.client_port);
        place.connections += moved.connections;
        for greeting in moved.tls {
            add_greeting(&mut place.tls, greeting);
        }
    }

    /// Everything so far, and where each edge is in it. `open`: what was captured in time of each connection that is
    /// remembered.
    pub(super) fn rows<'a>(
        &'a self,
        sampling: Sampling,
        open: impl Iterator<Item = (&'a EdgeKey, Option<SocketAddr>, &'a Groups)>,
    ) -> (Vec<RequestEdge>, Vec<Operation>, HashMap<&'a EdgeKey, u32>) {
        let mut keys: Vec<&EdgeKey> = self.edges.keys().collect();
        keys.sort();
        let places: HashMap<&EdgeKey, u32> = keys.iter().copied().zip(0..).collect();
        let bytes = self.bytes(sampling, open);
        let mut edges = Vec::with_capacity(keys.len());
        let mut operations = Vec::new();
        for key in keys {
            let Some(counts) = self.edges.get(key) else {
                continue;
            };
            edges.push(RequestEdge {
                key: key.clone(),
                client_port: match counts.client_port {
                    ClientPort::One(port) => Some(port),
                    ClientPort::None | ClientPort::Several => None,
                },
                connections: counts.connections,
                tls: counts.tls.clone(),
            });
            let place = places.get(key).copied();
            let row = |(name, counts)| row(place, name, counts, bytes.get(key), sampling);
            operations.extend(counts.operations.iter().map(row));
        }
        let rest = self.rest.operations.iter();
        operations.extend(rest.map(|(name, counts)| row(None, name, counts, None, sampling)));
        (edges, operations, places)
    }

    /// The bytes of each edge, if estimates need them.
    fn bytes<'a>(
        &'a self,
        sampling: Sampling,
        open: impl Iterator<Item = (&'a EdgeKey, Option<SocketAddr>, &'a Groups)>,
    ) -> HashMap<&'a EdgeKey, EdgeBytes> {
        if sampling.fewest <= 1 {
            return HashMap::new();
        }
        let known = self.traffic.iter().map(|(edge, traffic)| {
            let mut coverage = traffic.ended;
            coverage.merge(&traffic.open);
            let captured = traffic.captured.clone();
            let bytes = EdgeBytes { coverage, captured };
            (edge, bytes)
        });
        let mut all: HashMap<&EdgeKey, EdgeBytes> = known.collect();
        for (edge, client, captured) in open {
            if let Some(of_edge) = all.get_mut(edge) {
                of_edge.captured.add_all(captured, client);
            }
        }
        all
    }
}

fn row(
    edge: Option<u32>,
    name: &Name,
    counts: &Counts,
    bytes: Option<&EdgeBytes>,
    sampling: Sampling,
) -> Operation {
    // Of TLS that is read for a part of the time the rest is left out, and not estimated.
    let bytes = bytes.filter(|_bytes| !name.tls || sampling.tls_is_steady);
    let (tally, server_only) = counts.estimate(bytes, sampling.fewest);
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
