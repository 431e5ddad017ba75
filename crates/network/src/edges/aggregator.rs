//! Adds connections up to edges.
//!
//! A connection is met twice when both ends are on this node, once from each. The ends are joined by
//! their addresses while both are known, because an edge needs the processes of both; what was
//! measured stays with the end that measured it. Only totals of edges are kept of what has ended, so
//! memory grows with the number of edges and not with that of connections.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use profiler_model::{
    Address, Edge, EdgeId, EdgeKey, EdgeNamespaces, Endpoint, FoldedEdges, ProcessKey, SideMetrics,
};

use super::{
    edge_of_connection::EdgesOfConnections,
    flow::{Direction, Flow},
    match_peers::match_peers,
    names::{AddressName, Names},
    nat::Followed,
    socket_table::{Peer, SocketTable},
};

/// How long an ended connection waits for its other end.
const WAIT_NS: u64 = 2_000_000_000;
/// How long it waits when the node's sockets were not read since it began.
const LONGEST_WAIT_NS: u64 = 20_000_000_000;
/// Ended connections that may wait.
const MAX_WAITING: usize = 100_000;
/// Edges that are kept; connections of others are counted together, and as unresolved.
const MAX_EDGES: usize = 20_000;
/// Network namespaces that an edge remembers, for the names of addresses.
const MAX_NAMESPACES: usize = 8;

/// One end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct End {
    process: Option<ProcessKey>,
    address: IpAddr,
}

/// What makes connections one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    client: End,
    server: End,
    server_port: u16,
    original_destination: Option<SocketAddr>,
}

impl Pair {
    /// `None` for an edge of Unix sockets.
    pub(super) fn of(key: &EdgeKey) -> Option<Self> {
        let end = |endpoint: &Endpoint| {
            let Address::Ip(address) = endpoint.address else {
                return None;
            };
            let process = endpoint.pid.zip(endpoint.start_ticks);
            Some(End {
                process: process.map(|(pid, start_ticks)| ProcessKey { pid, start_ticks }),
                address,
            })
        };
        Some(Self {
            client: end(&key.client)?,
            server: end(&key.server)?,
            server_port: key.server_port?,
            original_destination: key
                .original_destination
                .map(|(address, port)| SocketAddr::new(address, port)),
        })
    }

    /// The id of the edge, as of its key with names.
    pub(super) fn id(&self) -> EdgeId {
        let endpoint = |end: End| Endpoint {
            pid: end.process.map(|process| process.pid),
            start_ticks: end.process.map(|process| process.start_ticks),
            comm: String::new(),
            container: None,
            address: Address::Ip(end.address),
        };
        EdgeId::of(&EdgeKey {
            client: endpoint(self.client),
            server: endpoint(self.server),
            server_port: Some(self.server_port),
            original_destination: self
                .original_destination
                .map(|address| (address.ip(), address.port())),
        })
    }

    pub(super) fn processes(&self) -> impl Iterator<Item = ProcessKey> {
        [self.client.process, self.server.process]
            .into_iter()
            .flatten()
    }
}

/// What is known of an edge.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    client_port: Only<u16>,
    client_namespace: Only<u32>,
    server_namespace: Only<u32>,
    pub(super) client: Option<SideMetrics>,
    pub(super) server: Option<SideMetrics>,
    /// When a connection of it ended last.
    pub(super) ended_ns: u64,
    /// Where its ends were watched.
    namespaces: BTreeSet<u32>,
}

/// What all connections of an edge have in common, while they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Only<T> {
    #[default]
    None,
    One(T),
    Several,
}

impl<T: Copy + PartialEq> Only<T> {
    pub(super) fn note(&mut self, value: T) {
        *self = match *self {
            Self::None => Self::One(value),
            Self::One(known) if known == value => Self::One(known),
            Self::One(_) | Self::Several => Self::Several,
        };
    }

    pub(super) fn get(self) -> Option<T> {
        match self {
            Self::One(value) => Some(value),
            Self::None | Self::Several => None,
        }
    }
}

/// Where a connection belongs.
#[derive(Clone, Copy, Debug)]
struct ConnectionPlace {
    pair: Pair,
    client_port: u16,
    direction: Direction,
    /// Of the end that was met, and of the other one where it is known.
    network_namespace: u32,
    peer_namespace: Option<u32>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct EdgeAggregator {
    /// Ended, with the time at which they came here.
    pub(super) waiting: Vec<(Flow, u64)>,
    /// Open connections that were joined with their other end.
    places: HashMap<u64, ConnectionPlace>,
    pub(super) edges: BTreeMap<Pair, Sums>,
    /// Those that were idle for long, and those without room.
    pub(super) folded: FoldedEdges,
    pub(super) names: Names,
    /// The edges of single connections, if they are asked for.
    pub(super) edge_of_connection: Option<EdgesOfConnections>,
    unresolved: BTreeMap<String, u64>,
    /// Time of the last settling.
    pub(super) now_ns: u64,
}

impl EdgeAggregator {
    /// Takes a connection that has ended.
    pub fn end(&mut self, flow: Flow, now_ns: u64) {
        self.name_user(&flow);
        if let Some(place) = self.places.remove(&flow.cookie) {
            self.note_shared(&flow);
            self.note_edge(place.pair, &flow);
            self.fold(place, &flow.metrics);
        } else {
            self.waiting.push((flow, now_ns));
        }
    }

    pub fn names(&mut self) -> &mut Names {
        &mut self.names
    }

    /// Remembers which process uses a connection, in case it has ended when the table is made.
    pub fn name_user(&mut self, flow: &Flow) {
        if let Some(process) = flow.process {
            self.names.name_thread(process, &flow.comm);
        }
    }

    /// Whether the other end of some connection that began after `read_ns` is not known yet.
    pub fn is_open_question(&self, open: &[Flow], read_ns: u64) -> bool {
        let ended = self.waiting.iter().map(|(flow, _)| flow);
        ended
            .chain(open)
            .any(|flow| flow.seen_ns > read_ns && !self.places.contains_key(&flow.cookie))
    }

    /// Joins what can be joined and adds up what has ended. The table of sockets was read at `read_ns`.
    /// `last`: nothing more comes.
    pub fn settle(
        &mut self,
        open: &[Flow],
        (socket_table, read_ns): (&SocketTable, u64),
        now_ns: u64,
        last: bool,
    ) {
        self.now_ns = now_ns;
        let waiting = std::mem::take(&mut self.waiting);
        let flows: Vec<&Flow> = waiting.iter().map(|(flow, _)| flow).chain(open).collect();
        let other_ends = match_peers(&flows, socket_table);
        let mut decided = Vec::new();
        for (index, flow) in flows.iter().enumerate() {
            let other_end = other_ends.get(index).copied().flatten();
            let other_end = other_end
                .and_then(|other_end| flows.get(other_end))
                .copied();
            let is_open = index >= waiting.len();
            if is_open && self.places.contains_key(&flow.cookie) {
                continue;
            }
            let came_ns = waiting.get(index).map_or(now_ns, |(_, came_ns)| *came_ns);
            let waited_ns = now_ns.saturating_sub(came_ns);
            let asked = flow.seen_ns <= read_ns || waited_ns >= LONGEST_WAIT_NS;
            let expired = last || (asked && waited_ns >= WAIT_NS);
            let whole = other_end.is_some_and(|other_end| other_end.process.is_some())
                && flow.process.is_some();
            if whole || (!is_open && (expired || waiting.len() > MAX_WAITING)) {
                decided.push((index, self.place(flow, other_end, socket_table)));
            }
        }
        let mut done = vec![false; waiting.len()];
        for (index, place) in decided {
            let Some(flow) = flows.get(index) else {
                continue;
            };
            if let Some(slot) = done.get_mut(index) {
                *slot = true;
                self.note_shared(flow);
                self.note_edge(place.pair, flow);
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
    #[cfg(test)]
    pub fn table(
        &self,
        open: &[Flow],
        socket_table: &SocketTable,
    ) -> (Vec<Edge>, FoldedEdges, BTreeMap<String, u64>) {
        self.table_with(open, socket_table, |_, _, _| {})
    }

    /// The same; `note` learns where each connection belongs that is open or waits for its other end.
    pub fn table_with<'a>(
        &'a self,
        open: &'a [Flow],
        socket_table: &SocketTable,
        mut note: impl FnMut(Pair, Direction, &'a Flow),
    ) -> (Vec<Edge>, FoldedEdges, BTreeMap<String, u64>) {
        let mut all = Self {
            waiting: Vec::new(),
            places: HashMap::new(),
            edges: self.edges.clone(),
            folded: self.folded.clone(),
            names: Names::default(),
            edge_of_connection: None,
            unresolved: self.unresolved.clone(),
            now_ns: self.now_ns,
        };
        let flows: Vec<&Flow> = self
            .waiting
            .iter()
            .map(|(flow, _)| flow)
            .chain(open)
            .collect();
        let other_ends = match_peers(&flows, socket_table);
        for (flow, other_end) in flows.iter().zip(other_ends) {
            let other_end = other_end
                .and_then(|other_end| flows.get(other_end))
                .copied();
            let place = match self.places.get(&flow.cookie) {
                Some(place) => *place,
                None => all.place(flow, other_end, socket_table),
            };
            all.note_shared(flow);
            note(place.pair, place.direction, flow);
            all.fold(place, &flow.metrics);
        }
        if socket_table.cut() > 0 {
            let cut = u64::try_from(socket_table.cut()).unwrap_or(u64::MAX);
            all.unresolved
                .insert("namespaces_with_translations_left_out".to_owned(), cut);
        }
        let mut unresolved = all.unresolved;
        let edges = all.edges.into_iter();
        let edges = edges
            .map(|(pair, sums)| self.edge(pair, sums, &mut unresolved))
            .collect();
        (edges, all.folded, unresolved)
    }

    /// An edge with the names of its ends.
    fn edge(&self, pair: Pair, sums: Sums, unresolved: &mut BTreeMap<String, u64>) -> Edge {
        let Pair {
            client,
            server,
            server_port: _,
            original_destination,
        } = pair;
        let Sums {
            client_port,
            client_namespace,
            server_namespace,
            client: client_metrics,
            server: server_metrics,
            ended_ns: _,
            namespaces,
        } = sums;
        let mut address_name = |address: IpAddr| {
            let mut found = None;
            for namespace in &namespaces {
                match (self.names.address(*namespace, address), found) {
                    (AddressName::Unknown, _) => {}
                    (AddressName::Known(name), None) => found = Some(name),
                    (AddressName::Known(name), Some(other)) if name == other => {}
                    (AddressName::Known(_), Some(_)) | (AddressName::Several, _) => {
                        *unresolved
                            .entry("addresses_with_several_names".to_owned())
                            .or_default() += 1;
                        return None;
                    }
                }
            }
            found.map(str::to_owned)
        };
        // Who asks for a name gets the address that it connects to, whoever answers there.
        let asked_for = original_destination.map_or(server.address, |address| address.ip());
        Edge {
            client_name: address_name(client.address),
            server_name: address_name(asked_for),
            key: self.key(pair),
            // 0: one that never got a port.
            client_port: client_port.get().filter(|port| *port != 0),
            namespaces: EdgeNamespaces {
                client: client_namespace.get().map(u64::from),
                server: server_namespace.get().map(u64::from),
            },
            client: client_metrics,
            server: server_metrics,
        }
    }

    /// What stands for an edge, with the names of its ends.
    pub(super) fn key(&self, pair: Pair) -> EdgeKey {
        let Pair {
            client,
            server,
            server_port,
            original_destination,
        } = pair;
        EdgeKey {
            client: self.endpoint(client),
            server: self.endpoint(server),
            server_port: Some(server_port),
            original_destination: original_destination
                .map(|address| (address.ip(), address.port())),
        }
    }

    fn endpoint(&self, end: End) -> Endpoint {
        let End { process, address } = end;
        let identity = process.map(|process| self.names.identity(process));
        let identity = identity.unwrap_or_default();
        Endpoint {
            pid: process.map(|process| process.pid),
            start_ticks: process.map(|process| process.start_ticks),
            comm: identity.comm,
            container: identity.container,
            address: Address::Ip(address),
        }
    }

    fn fold(&mut self, place: ConnectionPlace, metrics: &SideMetrics) {
        let ConnectionPlace {
            pair,
            client_port,
            direction,
            network_namespace,
            peer_namespace,
        } = place;
        if self.edges.len() >= MAX_EDGES && !self.edges.contains_key(&pair) {
            self.unresolved("edges_left_out");
            match direction {
                Direction::Client => self.folded.client.merge(metrics),
                Direction::Server => self.folded.server.merge(metrics),
            }
            return;
        }
        let sums = self.edges.entry(pair).or_default();
        sums.ended_ns = self.now_ns;
        sums.client_port.note(client_port);
        if sums.namespaces.len() < MAX_NAMESPACES {
            sums.namespaces.insert(network_namespace);
        }
        let (side, own, other) = match direction {
            Direction::Client => (
                &mut sums.client,
                &mut sums.client_namespace,
                &mut sums.server_namespace,
            ),
            Direction::Server => (
                &mut sums.server,
                &mut sums.server_namespace,
                &mut sums.client_namespace,
            ),
        };
        own.note(network_namespace);
        if let Some(namespace) = peer_namespace {
            other.note(namespace);
        }
        side.get_or_insert_default().merge(metrics);
    }

    /// Where a connection belongs, by itself and by its other end when that is known.
    fn place(
        &mut self,
        flow: &Flow,
        other_end: Option<&Flow>,
        socket_table: &SocketTable,
    ) -> ConnectionPlace {
        let direction = self.direction(flow, other_end, socket_table);
        let peer = match other_end {
            Some(other_end) => Peer {
                network_namespace: Some(other_end.network_namespace),
                process: other_end.process,
                local: other_end.local,
                remote: other_end.remote,
            },
            // A socket that is connected to itself.
            None if flow.local == flow.remote => Peer {
                network_namespace: Some(flow.network_namespace),
                process: flow.process,
                local: flow.local,
                remote: flow.remote,
            },
            None => self.peer(flow, direction, socket_table),
        };
        let own = flow.process.or_else(|| match direction {
            Direction::Client => None,
            Direction::Server => socket_table
                .listeners()
                .process(flow.network_namespace, flow.local),
        });
        let peer_namespace = socket_table.namespace_of(peer.local.ip(), flow.network_namespace);
        let listener = match direction {
            Direction::Client if peer.process.is_none() => {
                peer_namespace.and_then(|at| socket_table.listeners().process(at, peer.local))
            }
            Direction::Client | Direction::Server => None,
        };
        let listener_namespace = peer_namespace.filter(|_| listener.is_some());
        let other = peer.process.or(listener);
        if own.is_none() {
            self.unresolved("owner");
        }
        // A connect that failed has no other end.
        let is_connected = flow.metrics.connects_failed == 0;
        if other.is_none() && peer_namespace.is_some() && is_connected {
            self.unresolved("peer_on_this_node");
        }
        let own = End {
            process: own,
            address: flow.local.ip(),
        };
        let other = End {
            process: other,
            address: peer.local.ip(),
        };
        let (client, server, client_port, server_address, asked_for) = match direction {
            Direction::Client => (own, other, flow.local.port(), peer.local, flow.remote),
            Direction::Server => (other, own, peer.local.port(), flow.local, peer.remote),
        };
        ConnectionPlace {
            pair: Pair {
                client,
                server,
                server_port: server_address.port(),
                original_destination: (asked_for != server_address).then_some(asked_for),
            },
            client_port,
            direction,
            network_namespace: flow.network_namespace,
            peer_namespace: peer.network_namespace.or(listener_namespace),
        }
    }

    /// The other end of a connection that was met only once.
    fn peer(&mut self, flow: &Flow, direction: Direction, socket_table: &SocketTable) -> Peer {
        let followed = match direction {
            Direction::Client => socket_table.server_view(flow),
            Direction::Server => socket_table.client_view(flow),
        };
        let (local, remote) = match (followed, direction) {
            (Followed::To(ends), Direction::Client) => (ends.server, ends.client),
            (Followed::To(ends), Direction::Server) => (ends.client, ends.server),
            (Followed::Same, _) => (flow.remote, flow.local),
            (Followed::Unclear, _) => {
                self.unresolved("translation");
                (flow.remote, flow.local)
            }
        };
        let found = socket_table.peer(flow.network_namespace, local, remote);
        let found = found.or_else(|| match (followed, direction) {
            (Followed::Same, Direction::Client) => socket_table.redirected_server(flow),
            (Followed::Same, Direction::Server) => socket_table.redirected_client(flow),
            (Followed::To(_) | Followed::Unclear, _) => None,
        });
        if found.is_none()
            && followed == Followed::Same
            && direction == Direction::Server
            && !socket_table.knows_destination(flow)
        {
            self.unresolved("original_destination");
        }
        found.unwrap_or(Peer {
            // Loopback is everybody's own, so its other end is where this one is.
            network_namespace: local.ip().is_loopback().then_some(flow.network_namespace),
            process: None,
            local,
            remote,
        })
    }

    fn direction(
        &mut self,
        flow: &Flow,
        other_end: Option<&Flow>,
        socket_table: &SocketTable,
    ) -> Direction {
        if let Some(direction) = flow.direction {
            return direction;
        }
        match other_end.and_then(|other_end| other_end.direction) {
            Some(Direction::Client) => return Direction::Server,
            Some(Direction::Server) => return Direction::Client,
            None => {}
        }
        match socket_table
            .listeners()
            .listens(flow.network_namespace, flow.local)
        {
            Some(true) => Direction::Server,
            Some(false) => Direction::Client,
            None => {
                self.unresolved("direction");
                Direction::Client
            }
        }
    }

    /// What several processes did with one connection is shown as that of one of them.
    fn note_shared(&mut self, flow: &Flow) {
        if flow.shared {
            self.unresolved("used_by_several_processes");
        }
    }

    fn unresolved(&mut self, what: &str) {
        *self.unresolved.entry(what.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
#[path = "aggregator_tests.rs"]
mod tests;
