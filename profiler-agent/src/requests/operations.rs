//! Adds requests up by edge, protocol, method and route.

use std::collections::{BTreeMap, HashMap};

use profiler_protocols::{Protocol, Status};

use super::seen::Seen;
use crate::model::{EdgeKey, Operation, RequestEdge, SeenBy, Tally, Timings, TlsSeen};

/// Operations of one edge that are told apart, `other` not among them.
pub(super) const MAX_OPERATIONS_OF_EDGE: usize = 256;
/// Operations that are told apart, of all edges.
const MAX_OPERATIONS: usize = 16_384;
/// Edges that are told apart.
const MAX_EDGES: usize = 4096;
/// Different statuses of one operation that are told apart.
const MAX_STATUSES: usize = 24;
/// Different greetings of one edge that are told apart.
const MAX_GREETINGS: usize = 16;
/// Connections of one operation that are told apart while they are sampled; with more the interval is not
/// known.
const MAX_SAMPLED_CONNECTIONS: usize = 4096;
/// With fewer it would promise too much.
const LEAST_SAMPLED_CONNECTIONS: usize = 10;
const OTHER: &str = "other";

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

#[derive(Clone, Debug, Default)]
struct Counts {
    tally: Tally,
    server_only: u64,
    client: Timings,
    server: Timings,
    sampled: Sampled,
}

/// Requests by their connection and of how many connections one was captured then.
#[derive(Clone, Debug, Default)]
struct Sampled {
    requests: BTreeMap<(u64, u32), u64>,
    /// There was no room for some of them.
    is_cut: bool,
}

impl Sampled {
    fn add(&mut self, cookie: u64, one_of: u32, requests: u64) {
        let key = (cookie, one_of);
        if self.requests.len() < MAX_SAMPLED_CONNECTIONS || self.requests.contains_key(&key) {
            *self.requests.entry(key).or_default() += requests;
        } else {
            self.is_cut = true;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.is_cut |= other.is_cut;
        for ((cookie, one_of), requests) in &other.requests {
            self.add(*cookie, *one_of, *requests);
        }
    }

    /// Whole connections are captured or not, each with the same chance 1/n: of `y` requests that a captured
    /// one had, `n * (n - 1) * y^2` comes to the variance of the sum of all `n * y` (Horvitz and Thompson 1952,
    /// for independent draws). Where n changes meanwhile, those that are captured at the larger one are among
    /// those of the smaller: `y` requests at n and `z` at m > n bring `2 * m * (n - 1) * y * z` as well.
    /// `None`: not known, as where few or none were captured when `fewest`, one in so many, were.
    fn variance(&self, fewest: u32) -> Option<u64> {
        // In their order, so that those of one connection stand together, the smaller n first.
        let parts: Vec<(u64, u64, u64)> = self
            .requests
            .iter()
            .map(|((cookie, one_of), requests)| (*cookie, u64::from(*one_of), *requests))
            .collect();
        let at_fewest = parts
            .iter()
            .filter(|part| part.1 == u64::from(fewest))
            .count();
        if self.is_cut || (fewest > 1 && at_fewest < LEAST_SAMPLED_CONNECTIONS) {
            return None;
        }
        let mut variance: u64 = 0;
        for parts in parts.chunk_by(|one, next| one.0 == next.0) {
            // Sum of `(n - 1) * y` before the part.
            let mut before: u64 = 0;
            for (_cookie, of, requests) in parts {
                let own = (of - 1).saturating_mul(*requests);
                let with = own.saturating_add(before.saturating_mul(2));
                let part = of.saturating_mul(*requests).saturating_mul(with);
                variance = variance.saturating_add(part);
                before = before.saturating_add(own);
            }
        }
        Some(variance)
    }
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

#[derive(Debug, Default)]
pub(super) struct Operations {
    edges: HashMap<EdgeKey, EdgeCounts>,
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

    /// Everything so far, and where each edge is in it. When the fewest connections were captured, it was one of
    /// `fewest`.
    pub(super) fn rows(
        &self,
        fewest: u32,
    ) -> (Vec<RequestEdge>, Vec<Operation>, HashMap<&EdgeKey, u32>) {
        let mut keys: Vec<&EdgeKey> = self.edges.keys().collect();
        keys.sort();
        let places: HashMap<&EdgeKey, u32> = keys.iter().copied().zip(0..).collect();
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
            operations.extend(
                counts
                    .operations
                    .iter()
                    .map(|(name, counts)| row(place, name, counts, fewest)),
            );
        }
        let rest = self.rest.operations.iter();
        operations.extend(rest.map(|(name, counts)| row(None, name, counts, fewest)));
        (edges, operations, places)
    }
}

fn row(edge: Option<u32>, name: &Name, counts: &Counts, fewest: u32) -> Operation {
    let Counts {
        tally,
        server_only,
        client,
        server,
        sampled,
    } = counts;
    Operation {
        edge,
        protocol: name.protocol,
        tls: name.tls,
        method: name.method.clone(),
        route: name.route.clone(),
        is_other: name.is_other,
        tally: Tally {
            variance: sampled.variance(fewest),
            ..tally.clone()
        },
        server_only: *server_only,
        client: client.clone(),
        server: server.clone(),
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

impl Counts {
    fn add(&mut self, seen: &Seen, counted: Counted) {
        let timings = match seen.seen_by {
            SeenBy::Client => &mut self.client,
            SeenBy::Server => &mut self.server,
        };
        let exchange = &seen.exchange;
        timings.count += 1;
        // What nobody answers, as Kafka's records without acknowledgements, takes no time that could be told.
        if let Some(first) = exchange.first_byte_ns.filter(|_| seen.is_whole()) {
            timings.latency_ns.add(exchange.duration_ns());
            let until = first.saturating_sub(exchange.begin_ns);
            timings.first_byte_ns.add(until);
        }
        if counted == Counted::Here {
            if seen.seen_by == SeenBy::Server {
                self.server_only += u64::from(seen.one_of);
            }
            add_to_tally(&mut self.tally, seen);
            if seen.one_of > 1 {
                self.sampled.add(seen.cookie, seen.one_of, 1);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        let Self {
            tally,
            server_only,
            client,
            server,
            sampled,
        } = other;
        self.sampled.merge(sampled);
        self.server_only += server_only;
        for (sum, more) in [(&mut self.client, client), (&mut self.server, server)] {
            sum.count += more.count;
            sum.latency_ns.merge(&more.latency_ns);
            sum.first_byte_ns.merge(&more.first_byte_ns);
        }
        merge_tally(&mut self.tally, tally);
    }
}

fn add_to_tally(tally: &mut Tally, seen: &Seen) {
    let exchange = &seen.exchange;
    let of = u64::from(seen.one_of);
    tally.count += of;
    tally.seen += 1;
    tally.outcomes.add(exchange.outcome, of);
    if let Some(status) = &exchange.status {
        add_status(&mut tally.statuses, &status_name(status), of);
    }
    if exchange.request_size_known {
        tally.request_bytes.add(exchange.request_bytes);
    }
    if exchange.response_size_known {
        tally.response_bytes.add(exchange.response_bytes);
    }
    if let Some(messages) = exchange.messages {
        let (to_server, to_client) = (messages.to_server, messages.to_client);
        tally.streams += of;
        tally.messages_to_server = tally
            .messages_to_server
            .saturating_add(to_server.saturating_mul(of));
        tally.messages_to_client = tally
            .messages_to_client
            .saturating_add(to_client.saturating_mul(of));
    }
}

fn merge_tally(sum: &mut Tally, more: &Tally) {
    let Tally {
        count,
        seen,
        // Made of the connections of both.
        variance: _,
        outcomes,
        statuses,
        request_bytes,
        response_bytes,
        streams,
        messages_to_server,
        messages_to_client,
    } = more;
    sum.count += count;
    sum.seen += seen;
    sum.outcomes.merge(*outcomes);
    for (status, times) in statuses {
        add_status(&mut sum.statuses, status, *times);
    }
    sum.request_bytes.merge(request_bytes);
    sum.response_bytes.merge(response_bytes);
    sum.streams += streams;
    sum.messages_to_server = sum.messages_to_server.saturating_add(*messages_to_server);
    sum.messages_to_client = sum.messages_to_client.saturating_add(*messages_to_client);
}

fn add_status(statuses: &mut BTreeMap<String, u64>, status: &str, times: u64) {
    let has_room = statuses.len() < MAX_STATUSES || statuses.contains_key(status);
    let name = if has_room { status } else { OTHER };
    *statuses.entry(name.to_owned()).or_default() += times;
}

/// A status as the API has it: `404`, `grpc 14`, `NXDOMAIN`, `ok`.
pub(crate) fn status_name(status: &Status) -> String {
    match status {
        Status::Http(code) => code.to_string(),
        Status::Grpc(number) => format!("grpc {number}"),
        Status::Code(code) => code.clone(),
        Status::Fine => "ok".to_owned(),
    }
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;
