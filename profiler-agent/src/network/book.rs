//! Adds connections up to edges.
//!
//! A connection is met twice when both ends are on this node, once from each. The ends are joined by
//! their addresses while both are known, because an edge needs the processes of both; what was
//! measured stays with the end that measured it. Only totals of edges are kept of what has ended, so
//! memory grows with the number of edges and not with that of connections.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
};

use super::{
    directory::Directory,
    flow::{Direction, Flow},
};
use crate::model::{Address, Edge, EdgeKey, Endpoint, FoldedEdges, SideMetrics};

/// How long an ended connection waits for its other end.
const WAIT_NS: u64 = 2_000_000_000;
/// Ended connections that may wait.
const MAX_WAITING: usize = 100_000;
/// Edges that are kept; connections of others are counted together, and as unresolved.
const MAX_EDGES: usize = 20_000;
/// Processes whose names are kept.
const MAX_NAMES: usize = 100_000;

/// Name and container of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) comm: String,
    pub(crate) container: Option<String>,
}

/// What is known of an edge.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    client_port: Port,
    pub(super) client: Option<SideMetrics>,
    pub(super) server: Option<SideMetrics>,
    /// When a connection of it ended last.
    pub(super) ended_ns: u64,
}

/// The client's port, while there is only one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Port {
    #[default]
    None,
    One(u16),
    Several,
}

/// Where a connection belongs.
#[derive(Clone, Debug)]
struct Place {
    key: EdgeKey,
    client_port: u16,
    direction: Direction,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    /// Ended, with the time at which they came here.
    pub(super) waiting: Vec<(Flow, u64)>,
    /// Open connections that were joined with their other end.
    places: HashMap<u64, Place>,
    pub(super) edges: BTreeMap<EdgeKey, Sums>,
    /// Those that were silent for long, and those without room.
    pub(super) folded: FoldedEdges,
    pub(super) names: HashMap<u32, Identity>,
    unresolved: BTreeMap<String, u64>,
    /// Time of the last settling.
    pub(super) now_ns: u64,
}

impl Book {
    /// Takes a connection that has ended.
    pub(crate) fn end(&mut self, flow: Flow, now_ns: u64) {
        if let Some(place) = self.places.remove(&flow.cookie) {
            self.fold(place, &flow.metrics);
        } else {
            self.waiting.push((flow, now_ns));
        }
    }

    /// Remembers the name of a process while it is there.
    pub(crate) fn name(&mut self, pid: u32, identify: impl FnOnce() -> Option<Identity>) {
        if self.names.len() < MAX_NAMES
            && !self.names.contains_key(&pid)
            && let Some(identity) = identify()
        {
            self.names.insert(pid, identity);
        }
    }

    /// The name of a process that was remembered.
    pub(crate) fn identity(&self, pid: u32) -> Option<Identity> {
        self.names.get(&pid).cloned()
    }

    /// Whether the other end of some connection that began after `read_ns` is not known yet.
    pub(crate) fn is_open_question(&self, open: &[Flow], read_ns: u64) -> bool {
        let ended = self.waiting.iter().map(|(flow, _)| flow);
        ended
            .chain(open)
            .any(|flow| flow.seen_ns > read_ns && !self.places.contains_key(&flow.cookie))
    }

    /// Joins what can be joined and adds up what has ended. `last`: nothing more comes.
    pub(crate) fn settle(&mut self, open: &[Flow], directory: &Directory, now_ns: u64, last: bool) {
        self.now_ns = now_ns;
        let waiting = std::mem::take(&mut self.waiting);
        let flows: Vec<&Flow> = waiting.iter().map(|(flow, _)| flow).chain(open).collect();
        let mates = mates(&flows);
        let mut decided = Vec::new();
        for (index, flow) in flows.iter().enumerate() {
            let mate = mates.get(index).copied().flatten();
            let mate = mate.and_then(|mate| flows.get(mate)).copied();
            let is_open = index >= waiting.len();
            let came_ns = waiting.get(index).map_or(now_ns, |(_, came_ns)| *came_ns);
            let expired = last || now_ns.saturating_sub(came_ns) >= WAIT_NS;
            let whole = mate.is_some_and(|mate| mate.pid.is_some()) && flow.pid.is_some();
            if whole || (!is_open && (expired || waiting.len() > MAX_WAITING)) {
                decided.push((index, self.place(flow, mate, directory)));
            }
        }
        let mut done = vec![false; waiting.len()];
        for (index, place) in decided {
            let Some(flow) = flows.get(index) else {
                continue;
            };
            if let Some(slot) = done.get_mut(index) {
                *slot = true;
                self.fold(place, &flow.metrics);
            } else {
                self.places.insert(flow.cookie, place);
            }
        }
        let mut done = done.into_iter();
        self.waiting = waiting;
        self.waiting.retain(|_| !done.next().unwrap_or(false));
    }

    /// The edges so far, those of open connections included, and what could not be told.
    pub(crate) fn table(
        &self,
        open: &[Flow],
        directory: &Directory,
    ) -> (Vec<Edge>, FoldedEdges, BTreeMap<String, u64>) {
        let mut all = self.clone();
        all.waiting.clear();
        let flows: Vec<&Flow> = self
            .waiting
            .iter()
            .map(|(flow, _)| flow)
            .chain(open)
            .collect();
        let mates = mates(&flows);
        for (flow, mate) in flows.iter().zip(mates) {
            let mate = mate.and_then(|mate| flows.get(mate)).copied();
            let place = match self.places.get(&flow.cookie) {
                Some(place) => place.clone(),
                None => all.place(flow, mate, directory),
            };
            all.fold(place, &flow.metrics);
        }
        let edges = all.edges.into_iter().map(|(key, sums)| {
            let Sums {
                client_port,
                client,
                server,
                ended_ns: _,
            } = sums;
            Edge {
                key,
                client_port: match client_port {
                    // One that never got a port.
                    Port::One(0) | Port::None | Port::Several => None,
                    Port::One(port) => Some(port),
                },
                client,
                server,
            }
        });
        (edges.collect(), all.folded, all.unresolved)
    }

    fn fold(&mut self, place: Place, metrics: &SideMetrics) {
        let Place {
            key,
            client_port,
            direction,
        } = place;
        if self.edges.len() >= MAX_EDGES && !self.edges.contains_key(&key) {
            self.unresolved("edges_left_out");
            match direction {
                Direction::Client => self.folded.client.merge(metrics),
                Direction::Server => self.folded.server.merge(metrics),
            }
            return;
        }
        let sums = self.edges.entry(key).or_default();
        sums.ended_ns = self.now_ns;
        sums.client_port = match sums.client_port {
            Port::None => Port::One(client_port),
            Port::One(port) if port == client_port => Port::One(port),
            Port::One(_) | Port::Several => Port::Several,
        };
        let side = match direction {
            Direction::Client => &mut sums.client,
            Direction::Server => &mut sums.server,
        };
        side.get_or_insert_default().merge(metrics);
    }

    /// Where a connection belongs, by itself and by its other end when that is known.
    fn place(&mut self, flow: &Flow, mate: Option<&Flow>, directory: &Directory) -> Place {
        let direction = self.direction(flow, mate, directory);
        let seen = mate.map(|mate| (mate.pid, mate.local, mate.remote));
        let (peer_pid, peer_local, peer_remote) = seen
            .or_else(|| {
                let peer = directory.peer(flow, direction)?;
                Some((peer.pid, peer.local, peer.remote))
            })
            .unwrap_or((None, flow.remote, flow.local));
        let own_pid = flow
            .pid
            .or_else(|| self.fallback_owner(flow, direction, directory));
        let peer_pid = peer_pid.or_else(|| {
            let namespace = directory.namespace_of(peer_local.ip(), flow.network_namespace)?;
            (direction == Direction::Client)
                .then(|| directory.listener(namespace, peer_local.port()))?
        });
        if own_pid.is_none() {
            self.unresolved("owner");
        }
        if peer_pid.is_none()
            && directory
                .namespace_of(flow.remote.ip(), flow.network_namespace)
                .is_some()
        {
            self.unresolved("peer_on_this_node");
        }
        let own = self.endpoint(own_pid, &flow.comm, flow.local);
        let mate_comm = mate.map(|mate| mate.comm.as_str()).unwrap_or_default();
        let peer = self.endpoint(peer_pid, mate_comm, peer_local);
        let (client, server, client_port, server_address, asked_for) = match direction {
            Direction::Client => (own, peer, flow.local.port(), peer_local, flow.remote),
            Direction::Server => (peer, own, flow.remote.port(), flow.local, peer_remote),
        };
        Place {
            key: EdgeKey {
                client,
                server,
                server_port: Some(server_address.port()),
                original_destination: (asked_for != server_address)
                    .then(|| (asked_for.ip(), asked_for.port())),
            },
            client_port,
            direction,
        }
    }

    fn direction(&mut self, flow: &Flow, mate: Option<&Flow>, directory: &Directory) -> Direction {
        if let Some(direction) = flow.direction {
            return direction;
        }
        match mate.and_then(|mate| mate.direction) {
            Some(Direction::Client) => return Direction::Server,
            Some(Direction::Server) => return Direction::Client,
            None => {}
        }
        match directory.listens(flow.network_namespace, flow.local.port()) {
            Some(true) => Direction::Server,
            Some(false) => Direction::Client,
            None => {
                self.unresolved("direction");
                Direction::Client
            }
        }
    }

    /// Who owns a connection that no process has used yet.
    #[expect(
        clippy::unused_self,
        reason = "belongs to the decisions that this type makes"
    )]
    fn fallback_owner(
        &self,
        flow: &Flow,
        direction: Direction,
        directory: &Directory,
    ) -> Option<u32> {
        match direction {
            Direction::Client => None,
            Direction::Server => directory.listener(flow.network_namespace, flow.local.port()),
        }
    }

    fn endpoint(&self, pid: Option<u32>, comm: &str, address: SocketAddr) -> Endpoint {
        let identity = pid.and_then(|pid| self.names.get(&pid));
        let identity = identity.cloned().unwrap_or_else(|| Identity {
            comm: comm.to_owned(),
            container: None,
        });
        Endpoint {
            pid,
            comm: if pid.is_some() {
                identity.comm
            } else {
                String::new()
            },
            container: identity.container,
            address: Address::Ip(address.ip()),
        }
    }

    fn unresolved(&mut self, what: &str) {
        *self.unresolved.entry(what.to_owned()).or_default() += 1;
    }
}

/// For each connection the index of its other end.
fn mates(flows: &[&Flow]) -> Vec<Option<usize>> {
    let mut by_ends: HashMap<(SocketAddr, SocketAddr), Vec<usize>> = HashMap::new();
    for (index, flow) in flows.iter().enumerate() {
        by_ends
            .entry((flow.local, flow.remote))
            .or_default()
            .push(index);
    }
    let mut mates = vec![None; flows.len()];
    let exact = |index: usize, flow: &Flow| {
        let candidates = by_ends.get(&(flow.remote, flow.local))?;
        nearest(flows, index, candidates, |other| {
            !flow.remote.ip().is_loopback() || other.network_namespace == flow.network_namespace
        })
    };
    join(flows, &mut mates, exact);
    // What was redirected on its way: only the client's end is the same on both sides.
    let mut servers: HashMap<SocketAddr, Vec<usize>> = HashMap::new();
    let mut clients: HashMap<SocketAddr, Vec<usize>> = HashMap::new();
    for (index, flow) in flows.iter().enumerate() {
        if mates.get(index).copied().flatten().is_none() {
            match flow.direction {
                Some(Direction::Client) => clients.entry(flow.local).or_default().push(index),
                Some(Direction::Server) => servers.entry(flow.remote).or_default().push(index),
                None => {
                    clients.entry(flow.local).or_default().push(index);
                    servers.entry(flow.remote).or_default().push(index);
                }
            }
        }
    }
    let redirected = |index: usize, flow: &Flow| {
        let to_server = |flow: &Flow| {
            nearest(flows, index, servers.get(&flow.local)?, |server| {
                is_redirection(flow, server)
            })
        };
        let to_client = |flow: &Flow| {
            nearest(flows, index, clients.get(&flow.remote)?, |client| {
                is_redirection(client, flow)
            })
        };
        match flow.direction {
            Some(Direction::Client) => to_server(flow),
            Some(Direction::Server) => to_client(flow),
            None => to_server(flow).or_else(|| to_client(flow)),
        }
    };
    join(flows, &mut mates, redirected);
    mates
}

/// Joins connections that choose each other.
fn join(
    flows: &[&Flow],
    mates: &mut [Option<usize>],
    choose: impl Fn(usize, &Flow) -> Option<usize>,
) {
    let chosen: Vec<Option<usize>> = flows
        .iter()
        .enumerate()
        .map(|(index, flow)| {
            let free = mates.get(index).copied().flatten().is_none();
            if free { choose(index, flow) } else { None }
        })
        .collect();
    for (index, other) in chosen.iter().enumerate() {
        if let Some(other) = *other
            && chosen.get(other).copied().flatten() == Some(index)
            && let Some(slot) = mates.get_mut(index)
        {
            *slot = Some(other);
        }
    }
}

/// A redirection stays in the namespace (an app and its sidecar), or keeps the address and changes
/// the port (a sidecar in front of what was asked for).
fn is_redirection(client: &Flow, server: &Flow) -> bool {
    client.network_namespace == server.network_namespace || client.remote.ip() == server.local.ip()
}

/// Of those that fit, the one that was first seen at about the same time: a port may be used again.
fn nearest(
    flows: &[&Flow],
    own: usize,
    candidates: &[usize],
    fits: impl Fn(&Flow) -> bool,
) -> Option<usize> {
    let seen_ns = flows.get(own)?.seen_ns;
    candidates
        .iter()
        .copied()
        .filter(|index| *index != own && flows.get(*index).is_some_and(|flow| fits(flow)))
        .min_by_key(|index| {
            flows
                .get(*index)
                .map_or(u64::MAX, |flow| flow.seen_ns.abs_diff(seen_ns))
        })
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
