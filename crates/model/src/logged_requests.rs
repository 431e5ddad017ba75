//! What Envoys report of a task's requests by their access logs, beside the operations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Endpoint, Spread};

/// Part of a [`super::RequestTable`] whose requests come from access logs, all or some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedRequests {
    /// Places in [`super::RequestTable::edges`] of the edges whose requests come from access logs; ascending. Those of other
    /// edges were seen at sockets.
    pub edges: Vec<u32>,
    /// Those with the most requests first.
    pub envoys: Vec<LoggingEnvoy>,
    /// Requests that were seen at sockets as well. They are counted once, as the access log has them.
    pub seen_twice: u64,
    /// Requests into these Envoys that sockets show at listeners with an access log, and of which no entry tells: it was lost, or not all of them
    /// are logged. In no operation. Known at the end of the task, where all connections were captured.
    pub without_entry: u64,
    /// Entries that came faster than they could be read.
    pub left_out: u64,
    /// Entries of Envoys for which there was no room; their operations are counted.
    pub of_other_envoys: u64,
}

/// An Envoy that sends its access log, during the task. Text is untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggingEnvoy {
    /// Without a pid: no process of this node is known to be this one, and it is only what it calls itself.
    pub process: Endpoint,
    /// What it calls itself.
    pub node_id: String,
    /// Requests that are over.
    pub requests: u64,
    /// Connections of TCP that are over.
    pub connections: u64,
    /// Requests that took several attempts, and the attempts after the first of each.
    pub retried: u64,
    pub retries: u64,
    /// Entries that it has written or dropped by its own counters, and that did not come or were not read. `None`: its counters are
    /// not known.
    pub missing: Option<u64>,
    /// `None`: sockets were not looked at.
    pub joined: Option<LoggedJoin>,
    /// How long the phases of requests took, in the order in which a request goes through them. A phase without times is
    /// left out.
    pub phases: Vec<LoggedPhase>,
    /// Requests and connections by response flag, its short name (`UF`). One may have several.
    pub flags: BTreeMap<String, u64>,
    /// The same by where they were sent, most first; some of the places where there are very many. Stored beside (`profiler_engine::store`), as
    /// older results do not have it.
    #[serde(skip)]
    pub flagged: Vec<LoggedFlagged>,
    /// Requests by where the response comes from (`via_upstream`); after some different ones `other`.
    pub details: BTreeMap<String, u64>,
    /// Requests by version of TLS of the client's connection; those without TLS are left out.
    pub tls: BTreeMap<String, u64>,
    /// Hosts that requests were sent to, those with the most requests first.
    pub upstreams: Vec<LoggedUpstream>,
    /// Requests to hosts for which there was no room.
    pub of_other_upstreams: u64,
}

/// Requests and connections that have a response flag and were sent to one place. Text is untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedFlagged {
    /// Short name of the flag (`UF`).
    pub flag: String,
    /// Empty: none was chosen.
    pub cluster: String,
    /// Address and port of the host of the last attempt; empty: there was none.
    pub address: String,
    pub count: u64,
}

/// Entries that were joined with the same request at a socket of the Envoy: by the connection and the time, or by `x-request-id`. A request
/// through an Envoy has two ends: one towards the client and one towards the upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoggedJoin {
    /// Ends of requests that were answered.
    pub ends: u64,
    /// Those that were found at a socket.
    pub joined: u64,
    /// Those of them where both have the same `x-request-id`.
    pub confirmed: u64,
    /// Requests with one attempt of which both ends were found: their times are those of the sockets.
    pub requests: u64,
    /// Ends towards the upstream whose times fit a request with another `x-request-id`. They were not joined with it.
    pub contradicted: u64,
}

/// How long one phase took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedPhase {
    /// As the documentation of access logs has it: `to_upstream`.
    pub name: String,
    pub time_ns: Spread,
}

/// A host of a cluster, as the last attempt of each request met it. Text is untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedUpstream {
    pub cluster: String,
    /// Address and port.
    pub address: String,
    pub requests: u64,
    /// Failed at the host: by status 5xx, by a status of gRPC that blames the server, or by a response flag.
    pub errors: u64,
    /// From the last byte of the request to the first one of the answer.
    pub time_ns: Spread,
    /// Smoothed round-trip times of the Envoy's connections to the address, one value of each whose socket was found.
    pub rtt_ns: Spread,
    /// Segments that these sent again since their sockets were found.
    pub retransmits: u64,
}
