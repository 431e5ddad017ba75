//! Edges between processes, each with what both ends measured.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, SocketAddr},
};

use serde::{Deserialize, Serialize};

use super::{SideMetrics, Transfer};

/// Where one end of an edge is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Address {
    Ip(IpAddr),
    /// A Unix socket: its path, `@NAME` of an abstract one, or `unnamed`. Whatever is not printable
    /// is escaped.
    Unix(String),
}

impl Address {
    /// What a Unix socket without a name is called.
    pub const UNNAMED: &str = "unnamed";
    /// The name of a Unix socket's peer that the kernel does not give.
    pub const UNKNOWN_PEER: &str = "unknown";

    /// Short name of the transport that has such addresses.
    pub fn protocol(&self) -> &'static str {
        match self {
            Self::Ip(_) => "tcp",
            Self::Unix(_) => "unix",
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix(name) => f.write_str(name),
        }
    }
}

/// One end of an edge. Text is untrusted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// `None`: the process is not on this node, or was not seen.
    pub pid: Option<u32>,
    /// When the process started, as in [`super::ProcessKey`]; `None` as for `pid`.
    pub start_ticks: Option<u64>,
    /// Empty when the process is not known.
    pub comm: String,
    /// Id of the container.
    pub container: Option<String>,
    pub address: Address,
}

impl Endpoint {
    /// The process's name; where that is not known, the address. Untrusted text.
    pub fn name(&self) -> String {
        if self.comm.is_empty() {
            self.address.to_string()
        } else {
            self.comm.clone()
        }
    }
}

/// What makes connections one edge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EdgeKey {
    pub client: Endpoint,
    pub server: Endpoint,
    /// `None`: a Unix socket.
    pub server_port: Option<u16>,
    /// Where the client asked to go, when the connection was redirected to `server` on its way.
    pub original_destination: Option<(IpAddr, u16)>,
}

impl EdgeKey {
    /// The client and the server.
    pub fn ends(&self) -> [&Endpoint; 2] {
        [&self.client, &self.server]
    }
}

/// Inodes of the network namespaces that the sockets of an edge's ends are in. No part of what makes
/// an edge one, and of use only while the node runs: the kernel gives a number again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeNamespaces {
    /// `None`: the end was not seen on this node, or its sockets are in several.
    pub client: Option<u64>,
    pub server: Option<u64>,
}

/// Connections between two processes, in one direction, to one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub key: EdgeKey,
    /// Stored beside the table (`store::codec`).
    #[serde(skip)]
    pub namespaces: EdgeNamespaces,
    /// The client's port, when the edge is one connection.
    pub client_port: Option<u16>,
    /// What name servers were asked for to get the client's address, in the namespaces of the ends
    /// that were watched. `None` when no answer was seen, or several names lead to it.
    pub client_name: Option<String>,
    /// The same of the address that the client asked for.
    pub server_name: Option<String>,
    /// `None`: this end was not watched.
    pub client: Option<SideMetrics>,
    pub server: Option<SideMetrics>,
}

impl Edge {
    /// What the processes wrote and read, at the end that saw more of it.
    pub fn bytes(&self) -> u64 {
        most_bytes([&self.client, &self.server])
    }
}

/// What was written and read, at the end that saw more of it.
pub(crate) fn most_bytes(sides: [&Option<SideMetrics>; 2]) -> u64 {
    let sides = sides.into_iter().flatten();
    sides.map(SideMetrics::bytes).max().unwrap_or(0)
}

/// Edges that are no longer told apart, with everything that they had counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldedEdges {
    /// Edges that were put here. One that comes back and is put here again counts again.
    pub edges: u64,
    pub client: SideMetrics,
    pub server: SideMetrics,
}

impl FoldedEdges {
    /// Puts an edge here.
    pub fn fold(&mut self, client: Option<SideMetrics>, server: Option<SideMetrics>) {
        self.merge(&Self {
            edges: 1,
            client: client.unwrap_or_default(),
            server: server.unwrap_or_default(),
        });
    }

    /// Adds others that are no longer told apart.
    pub fn merge(&mut self, more: &Self) {
        self.edges += more.edges;
        self.client.merge(&more.client);
        self.server.merge(&more.server);
    }
}

/// The result of a network task, from its start until now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeTable {
    /// Ordered by key.
    pub edges: Vec<Edge>,
    /// Where each metric comes from.
    pub sources: BTreeMap<String, String>,
    /// Edges that were silent for long, or for which there was no room.
    pub folded: FoldedEdges,
    /// Metrics that this kernel or this mode cannot give, with the reason.
    pub unavailable: BTreeMap<String, String>,
    /// What could not be told, by kind, in connections.
    pub unresolved: BTreeMap<String, u64>,
    /// Calls and bytes of connections that did not fit the kernel's table.
    pub lost_events: u64,
    pub lost_bytes: u64,
    pub kernel_table: KernelTable,
    /// `None` before the first result.
    pub window: Option<Window>,
    /// The largest open connections of the edges; not stored.
    #[serde(skip)]
    pub connections: Vec<(super::EdgeId, EdgeConnection)>,
}

/// In which time a table was counted, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// When the programs were attached.
    pub from_ns: u64,
    /// When the counts were read; in the last table of a collection, when the programs were detached.
    pub to_ns: u64,
}

/// One connection of an edge, as one end saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeConnection {
    /// Which end saw it.
    pub is_client: bool,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub pid: Option<u32>,
    /// Since it was first seen.
    pub age_ns: u64,
    /// Ended ones wait a moment for their other end.
    pub is_open: bool,
    pub write: Transfer,
    pub read: Transfer,
    /// Mean of the smoothed round-trip times at its writes; `None` before the first.
    pub rtt_us: Option<u64>,
    /// As in [`SideMetrics`].
    pub min_rtt_us: Option<u64>,
    pub retransmits: u64,
    pub drops: u64,
}

/// The kernel's table of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelTable {
    pub capacity: u64,
    /// Connections that are in it.
    pub used: u64,
    /// Connections that found no room when they began; their reads and writes are in
    /// [`EdgeTable::lost_events`] unless there was room later.
    pub refused: u64,
    /// Connections that rested and left it to make room, each time; none of their counts is lost.
    pub evicted: u64,
    /// Connections whose end was missed, found because the kernel does not list them any more.
    pub swept: u64,
    /// Runs that the kernel left out because the same program was at work on that CPU, by program:
    /// what they would have counted is missing.
    pub missed_runs: BTreeMap<String, u64>,
    /// Connections whose end waited in the table because the agent was slow; none of their counts is
    /// lost.
    pub delayed: u64,
}

impl EdgeTable {
    /// Whether a metric is measured here.
    pub fn has(&self, metric: &str) -> bool {
        !self.unavailable.contains_key(metric)
    }

    /// Whether it is measured for edges of a protocol (see [`Address::protocol`]).
    pub fn has_of(&self, protocol: &str, metric: &str) -> bool {
        self.has(metric) && self.has(&format!("{protocol}.{metric}"))
    }
}
