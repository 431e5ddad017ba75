//! Adds Unix sockets up to edges.
//!
//! Sockets know their peer, by its cookie once it has been used and by its inode once a process has a
//! descriptor for it. The side that connected is unnamed or connected to a name that a socket listens
//! on; the two ends of a pair have no sides, and the one that was made first is shown as the client.

use std::collections::{BTreeMap, HashMap};

use profiler_common::{
    network::{FLAG_COMPLETE, FLAG_JOINED},
    process::{start_ns, start_ticks},
    unix_sockets::UnixSocket,
};
use profiler_model::{
    Address, Edge, EdgeKey, EdgeNamespaces, Endpoint, FoldedEdges, ProcessKey, SideMetrics,
    Transfer, sockets::UnixDiagSocket,
};

use super::{
    aggregator::Only,
    edge_of_connection::EdgeOfConnection,
    flow::{Direction, text, values},
    names::Identity,
    unix_listing::{UnixListing, shown},
};

/// Edges that are kept; sockets of others are counted as unresolved.
const MAX_EDGES: usize = 20_000;
/// Pairs of sockets whose edge is remembered.
const MAX_PLACES: usize = 100_000;
/// `SOCK_DGRAM`.
const DATAGRAM: u32 = 2;

/// One socket as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixEnd {
    pub cookie: u64,
    pub peer_cookie: u64,
    inode: u64,
    peer_inode: u64,
    kind: u32,
    pub network_namespace: u32,
    pub seen_ns: u64,
    /// When it was used last, where payload is captured.
    pub used_ns: u64,
    name: Vec<u8>,
    peer_name: Vec<u8>,
    pub process: Option<ProcessKey>,
    /// Name of its main thread.
    pub comm: String,
    metrics: SideMetrics,
}

impl UnixEnd {
    /// Decodes an entry of the kernel's table; any bytes are accepted.
    pub fn decode(socket: &UnixSocket) -> Self {
        let name = |bytes: &[u8], length: u32| {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            bytes.get(..length).unwrap_or_default().to_vec()
        };
        Self {
            cookie: socket.cookie,
            peer_cookie: socket.peer_cookie,
            inode: socket.inode,
            peer_inode: socket.peer_inode,
            kind: socket.kind,
            network_namespace: socket.network_namespace,
            seen_ns: socket.seen_ns,
            used_ns: socket.used_ns,
            name: name(&socket.name, socket.name_bytes),
            peer_name: name(&socket.peer_name, socket.peer_name_bytes),
            process: (socket.pid != 0).then(|| ProcessKey {
                pid: socket.pid,
                start_ticks: start_ticks(socket.used_start_ns),
            }),
            comm: text(&socket.comm),
            metrics: SideMetrics {
                connections: 1,
                open: 1,
                write: Transfer {
                    count: socket.sent_count,
                    bytes: socket.sent_bytes,
                },
                read: Transfer {
                    count: socket.received_count,
                    bytes: socket.received_bytes,
                },
                receive_wait: values(&socket.receive_wait, socket.receive_wait_sum_ns),
                ..SideMetrics::default()
            },
        }
    }

    /// Bytes that were sent and received.
    pub fn bytes(&self) -> (u64, u64) {
        (self.metrics.write.bytes, self.metrics.read.bytes)
    }

    /// Adds what was found out since the kernel side met the socket.
    fn complete(&mut self, listing: &UnixListing) {
        if self.peer_inode == 0
            && let Some(own) = listing.by_inode(self.inode)
        {
            self.peer_inode = own.peer_inode;
        }
        if let Some(peer) = listing.by_inode(self.peer_inode) {
            if self.peer_cookie == 0 {
                self.peer_cookie = peer.cookie;
            }
            if self.peer_name.is_empty() {
                self.peer_name.clone_from(&peer.name);
            }
        }
    }

    fn has_peer(&self) -> bool {
        self.peer_cookie != 0 || self.peer_inode != 0 || !self.peer_name.is_empty()
    }

    /// Which end this is, by who has a name and who listens.
    fn direction(&self, listing: &UnixListing) -> Direction {
        let first = if self.peer_inode == 0 || self.inode < self.peer_inode {
            Direction::Client
        } else {
            Direction::Server
        };
        match (self.name.is_empty(), self.peer_name.is_empty()) {
            (true, false) => Direction::Client,
            (false, true) => Direction::Server,
            (true, true) => first,
            (false, false) => match (
                listing.listens(&self.name),
                listing.listens(&self.peer_name),
            ) {
                (true, false) => Direction::Server,
                (false, true) => Direction::Client,
                _ => first,
            },
        }
    }
}

/// One end of an edge: its process and the name of its socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct PairEnd {
    process: Option<ProcessKey>,
    address: String,
}

/// What makes sockets one edge. What processes are called is no part of it: it changes, and every thread
/// has a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UnixPair {
    client: PairEnd,
    server: PairEnd,
}

impl UnixPair {
    /// `None` for an edge of connections.
    pub(super) fn of(key: &EdgeKey) -> Option<Self> {
        let end = |endpoint: &Endpoint| {
            let Address::Unix(address) = &endpoint.address else {
                return None;
            };
            let process = endpoint.pid.zip(endpoint.start_ticks);
            Some(PairEnd {
                process: process.map(|(pid, start_ticks)| ProcessKey { pid, start_ticks }),
                address: address.clone(),
            })
        };
        Some(Self {
            client: end(&key.client)?,
            server: end(&key.server)?,
        })
    }

    /// The key with the names of its processes.
    fn named(self, identify: impl Fn(ProcessKey) -> Identity) -> EdgeKey {
        let end = |end: PairEnd| {
            let PairEnd { process, address } = end;
            let identity = process.map(&identify).unwrap_or_default();
            Endpoint {
                pid: process.map(|process| process.pid),
                start_ticks: process.map(|process| process.start_ticks),
                comm: identity.comm,
                container: identity.container,
                address: Address::Unix(address),
            }
        };
        EdgeKey {
            client: end(self.client),
            server: end(self.server),
            server_port: None,
            original_destination: None,
        }
    }
}

/// What both ends measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) client: Option<SideMetrics>,
    pub(super) server: Option<SideMetrics>,
    client_namespace: Only<u32>,
    server_namespace: Only<u32>,
    /// A socket of it was added up since silence was last looked for.
    pub(super) changed: bool,
    /// When silence was looked for and had not begun.
    pub(super) changed_ns: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct UnixEdgeAggregator {
    pub(super) edges: BTreeMap<UnixPair, Sums>,
    /// Those that were idle for long, and those without room.
    pub(super) folded: FoldedEdges,
    /// The edge of sockets whose peer was known, by cookie.
    places: HashMap<u64, (UnixPair, Direction)>,
    unresolved: BTreeMap<String, u64>,
}

impl UnixEdgeAggregator {
    /// Takes the sockets of the kernel's table; those for which `is_gone` are added up for good.
    pub fn settle(
        &mut self,
        ends: &[UnixEnd],
        listing: &UnixListing,
        is_gone: impl Fn(&UnixEnd) -> bool,
    ) {
        let mut unresolved = std::mem::take(&mut self.unresolved);
        let placed = self.place_all(ends, listing, |end, what| {
            if is_gone(end) {
                *unresolved.entry(what.to_owned()).or_default() += 1;
            }
        });
        self.unresolved = unresolved;
        if self.places.len() > MAX_PLACES {
            self.places.clear();
        }
        for (end, (place, whole)) in ends.iter().zip(placed) {
            if whole {
                self.places.insert(end.cookie, place.clone());
            }
            if is_gone(end) {
                let mut metrics = end.metrics.clone();
                metrics.open = 0;
                self.fold(place, &metrics, end.network_namespace);
            }
        }
    }

    /// The edges so far with those of open sockets, and what could not be told.
    pub fn table(
        &self,
        open: &[UnixEnd],
        listing: &UnixListing,
        identify: impl Fn(ProcessKey) -> Identity,
    ) -> (Vec<Edge>, BTreeMap<String, u64>) {
        let mut all = self.clone();
        let mut unresolved = std::mem::take(&mut all.unresolved);
        let placed = self.place_all(open, listing, |_end, what| {
            *unresolved.entry(what.to_owned()).or_default() += 1;
        });
        for (end, (place, _whole)) in open.iter().zip(placed) {
            all.fold(place, &end.metrics, end.network_namespace);
        }
        for (what, count) in all.unresolved {
            *unresolved.entry(what).or_default() += count;
        }
        let edges = all.edges.into_iter().map(|(pair, sums)| Edge {
            key: pair.named(&identify),
            client_port: None,
            client_name: None,
            server_name: None,
            namespaces: EdgeNamespaces {
                client: sums.client_namespace.get().map(u64::from),
                server: sums.server_namespace.get().map(u64::from),
            },
            client: sums.client,
            server: sums.server,
        });
        (edges.collect(), unresolved)
    }

    /// The edge of each socket.
    pub fn edge_of_connection(
        &self,
        ends: &[UnixEnd],
        listing: &UnixListing,
        identify: impl Fn(ProcessKey) -> Identity,
    ) -> HashMap<u64, EdgeOfConnection> {
        let placed = self.place_all(ends, listing, |_end, _what| {});
        let pairs = placed.into_iter().map(|((pair, _direction), _whole)| pair);
        let edge_of_connection = pairs.map(|pair| EdgeOfConnection {
            edge: pair.named(&identify),
            traffic: None,
            http: None,
            has_ended: false,
        });
        let cookies = ends.iter().map(|end| end.cookie);
        cookies.zip(edge_of_connection).collect()
    }

    /// The processes of every edge that is known.
    pub fn processes(&self) -> impl Iterator<Item = ProcessKey> {
        let placed = self.places.values().map(|(pair, _)| pair);
        let ends = self.edges.keys().chain(placed);
        let ends = ends.flat_map(|pair| [pair.client.process, pair.server.process]);
        ends.flatten()
    }

    /// The edge of each end, and whether both its processes are known.
    fn place_all(
        &self,
        ends: &[UnixEnd],
        listing: &UnixListing,
        mut missing: impl FnMut(&UnixEnd, &str),
    ) -> Vec<((UnixPair, Direction), bool)> {
        let ends: Vec<UnixEnd> = ends
            .iter()
            .map(|end| {
                let mut end = end.clone();
                end.complete(listing);
                end
            })
            .collect();
        let mut by_cookie = HashMap::new();
        let mut by_inode = HashMap::new();
        for end in &ends {
            by_cookie.insert(end.cookie, end);
            if end.inode != 0 {
                by_inode.insert(end.inode, end);
            }
        }
        let mut placed = Vec::with_capacity(ends.len());
        for end in &ends {
            let other_end = by_cookie
                .get(&end.peer_cookie)
                .or_else(|| by_inode.get(&end.peer_inode))
                .copied()
                .filter(|other_end| other_end.cookie != end.cookie);
            if let Some(place) = self.remembered(end, other_end.is_some()) {
                placed.push((place, true));
                continue;
            }
            let direction = end.direction(listing);
            let process = end.process.or_else(|| listing.owner(end.inode));
            let peer_process = other_end
                .and_then(|other_end| other_end.process)
                .or_else(|| listing.owner(end.peer_inode));
            if process.is_none() {
                missing(end, "owner");
            }
            if peer_process.is_none() {
                missing(
                    end,
                    if end.has_peer() {
                        "unix_peer_process"
                    } else {
                        "unix_peer"
                    },
                );
            }
            let peer_address = if end.has_peer() {
                shown(&end.peer_name)
            } else {
                Address::UNKNOWN_PEER.to_owned()
            };
            let own = PairEnd {
                process,
                address: shown(&end.name),
            };
            let peer = PairEnd {
                process: peer_process,
                address: peer_address,
            };
            let (client, server) = match direction {
                Direction::Client => (own, peer),
                Direction::Server => (peer, own),
            };
            let whole = process.is_some() && peer_process.is_some();
            let place = (UnixPair { client, server }, direction);
            placed.push((place, whole));
        }
        placed
    }

    /// Where this socket was placed when its peer was still there. While it is there, its processes
    /// may change, as a descriptor is passed on.
    fn remembered(&self, end: &UnixEnd, has_mate: bool) -> Option<(UnixPair, Direction)> {
        if has_mate {
            return None;
        }
        if let Some(own) = self.places.get(&end.cookie) {
            return Some(own.clone());
        }
        // Datagram sockets have many at the other end.
        if end.kind == DATAGRAM {
            return None;
        }
        let (key, direction) = self.places.get(&end.peer_cookie)?;
        let other = match direction {
            Direction::Client => Direction::Server,
            Direction::Server => Direction::Client,
        };
        Some((key.clone(), other))
    }

    fn fold(
        &mut self,
        place: (UnixPair, Direction),
        metrics: &SideMetrics,
        network_namespace: u32,
    ) {
        let (key, direction) = place;
        if self.edges.len() >= MAX_EDGES && !self.edges.contains_key(&key) {
            *self
                .unresolved
                .entry("edges_left_out".to_owned())
                .or_default() += 1;
            match direction {
                Direction::Client => self.folded.client.merge(metrics),
                Direction::Server => self.folded.server.merge(metrics),
            }
            return;
        }
        let sums = self.edges.entry(key).or_default();
        sums.changed = true;
        let (side, namespace) = match direction {
            Direction::Client => (&mut sums.client, &mut sums.client_namespace),
            Direction::Server => (&mut sums.server, &mut sums.server_namespace),
        };
        // 0: older than the programs, and its namespace could not be read.
        if network_namespace != 0 {
            namespace.note(network_namespace);
        }
        side.get_or_insert_default().merge(metrics);
    }
}

/// The entry of a socket that is older than the programs; it counts from now on.
pub fn existing(socket: &UnixDiagSocket, listing: &UnixListing, now_ns: u64) -> UnixSocket {
    let peer = listing.by_inode(socket.peer_inode);
    let owner = listing.owner(socket.inode);
    let mut entry = UnixSocket {
        cookie: socket.cookie,
        peer_cookie: peer.map_or(0, |peer| peer.cookie),
        inode: socket.inode,
        peer_inode: socket.peer_inode,
        seen_ns: now_ns,
        pid: owner.map_or(0, |owner| owner.pid),
        used_start_ns: owner.map_or(0, |owner| start_ns(owner.start_ticks)),
        kind: socket.kind,
        flags: FLAG_COMPLETE | FLAG_JOINED,
        network_namespace: socket.network_namespace,
        ..UnixSocket::default()
    };
    let copy = |from: &[u8], to: &mut [u8]| {
        let length = from.len().min(to.len());
        for (slot, byte) in to.iter_mut().zip(from) {
            *slot = *byte;
        }
        u32::try_from(length).unwrap_or(0)
    };
    entry.name_bytes = copy(&socket.name, &mut entry.name);
    if let Some(peer) = peer {
        entry.peer_name_bytes = copy(&peer.name, &mut entry.peer_name);
    }
    entry
}

#[cfg(test)]
#[path = "unix_aggregator_tests.rs"]
mod tests;
