//! Who talks to whom: edges between processes, each with what both ends measured.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, SocketAddr},
};

use serde::{Deserialize, Serialize};

/// Where one end of an edge is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Address {
    Ip(IpAddr),
    /// A Unix socket: its path, `@NAME` of an abstract one, or `unnamed`. Whatever is not printable
    /// is escaped.
    Unix(String),
}

impl Address {
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

/// Values in buckets, with their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Values {
    pub count: u64,
    /// In the unit of the metric.
    pub sum: u64,
    /// One for each bound of [`profiler_common::network::BOUNDS_US`], and one for what is larger;
    /// empty before the first value.
    pub counts: Vec<u64>,
    pub least: Option<u64>,
    pub greatest: Option<u64>,
}

impl Values {
    /// Adds one value that falls into `bucket`.
    pub fn add(&mut self, bucket: usize, value: u64) {
        if self.counts.is_empty() {
            self.counts = vec![0; profiler_common::network::BUCKETS];
        }
        if let Some(slot) = self.counts.get_mut(bucket) {
            *slot += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.greatest = Some(self.greatest.map_or(value, |greatest| greatest.max(value)));
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            count,
            sum,
            counts,
            least,
            greatest,
        } = other;
        if *count == 0 {
            return;
        }
        if self.counts.len() < counts.len() {
            self.counts.resize(counts.len(), 0);
        }
        for (slot, more) in self.counts.iter_mut().zip(counts) {
            *slot = slot.saturating_add(*more);
        }
        self.count = self.count.saturating_add(*count);
        self.sum = self.sum.saturating_add(*sum);
        self.least = [self.least, *least].into_iter().flatten().min();
        self.greatest = self.greatest.max(*greatest);
    }
}

/// Calls and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub count: u64,
    pub bytes: u64,
}

/// What one end of an edge measured, over all its connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideMetrics {
    pub connections: u64,
    /// Connections that are still open.
    pub open: u64,
    pub write: Transfer,
    pub read: Transfer,
    /// Nanoseconds in the calls, of those that were timed.
    pub write_time: Values,
    pub read_time: Values,
    /// Nanoseconds from the establishment until the process took the connection.
    pub accept: Values,
    /// Nanoseconds from asking to the answer.
    pub connect: Values,
    pub connects_failed: u64,
    /// Nanoseconds from the end of sending until the socket was closed.
    pub close: Values,
    /// Smoothed round-trip time at each write, microseconds.
    pub write_rtt: Values,
    /// The smallest round-trip time that the kernel measured, microseconds; `None`: none yet. Stored beside
    /// the table (`store::codec`), and not part of steps.
    #[serde(skip)]
    pub min_rtt_us: Option<u64>,
    /// Nanoseconds from the arrival of data until the process read it.
    pub receive_wait: Values,
    /// Segments.
    pub retransmits: u64,
    pub drops: u64,
    pub drops_by_reason: BTreeMap<String, u64>,
    pub resets_sent: u64,
    pub resets_received: u64,
    pub errors: u64,
    /// Last error of each connection that had one (`errno`).
    pub errors_by_number: BTreeMap<u32, u64>,
    /// Payload by the sockets' own counts, of connections that have ended.
    pub socket: SocketTotals,
}

/// Payload of ended connections, by the sockets' own counts and by the calls that were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketTotals {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub written_bytes: u64,
    pub read_bytes: u64,
}

impl SideMetrics {
    /// Adds everything of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            connections,
            open,
            write,
            read,
            write_time,
            read_time,
            accept,
            connect,
            connects_failed,
            close,
            write_rtt,
            min_rtt_us,
            receive_wait,
            retransmits,
            drops,
            drops_by_reason,
            resets_sent,
            resets_received,
            errors,
            errors_by_number,
            socket,
        } = other;
        self.connections += connections;
        self.open += open;
        for (sum, more) in [(&mut self.write, write), (&mut self.read, read)] {
            sum.count += more.count;
            sum.bytes = sum.bytes.saturating_add(more.bytes);
        }
        self.write_time.merge(write_time);
        self.read_time.merge(read_time);
        self.accept.merge(accept);
        self.connect.merge(connect);
        self.connects_failed += connects_failed;
        self.close.merge(close);
        self.write_rtt.merge(write_rtt);
        self.min_rtt_us = [self.min_rtt_us, *min_rtt_us].into_iter().flatten().min();
        self.receive_wait.merge(receive_wait);
        self.retransmits += retransmits;
        self.drops += drops;
        for (reason, number) in drops_by_reason {
            *self.drops_by_reason.entry(reason.clone()).or_default() += number;
        }
        self.resets_sent += resets_sent;
        self.resets_received += resets_received;
        self.errors += errors;
        for (number, count) in errors_by_number {
            *self.errors_by_number.entry(*number).or_default() += count;
        }
        self.socket.sent_bytes += socket.sent_bytes;
        self.socket.received_bytes += socket.received_bytes;
        self.socket.written_bytes += socket.written_bytes;
        self.socket.read_bytes += socket.read_bytes;
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
        let sides = [&self.client, &self.server].into_iter().flatten();
        sides
            .map(|side| side.write.bytes.saturating_add(side.read.bytes))
            .max()
            .unwrap_or(0)
    }
}

/// Edges that are no longer told apart, with everything that they had counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldedEdges {
    /// Edges that were put here. One that comes back and is put here again counts again.
    pub edges: u64,
    pub client: SideMetrics,
    pub server: SideMetrics,
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
    /// `None`: a result of an older agent, which did not say.
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
    /// lost. `None`: a result of an older agent, which did not say.
    pub delayed: Option<u64>,
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
