//! Requests between processes: operations with their counts and times, and single requests that stand
//! out.

use std::{collections::BTreeMap, net::SocketAddr};

use profiler_protocols::{Exchange, Outcome, Protocol};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{EdgeKey, LoggedRequests, RequestTimeline, Sidecar, Spread, TlsReport, Window};

/// The result of a requests task, from its start until now. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTable {
    pub window: Window,
    /// Those that operations and samples belong to.
    pub edges: Vec<RequestEdge>,
    /// Ordered by edge, then by protocol, method and route.
    pub operations: Vec<Operation>,
    /// In the order of their ends.
    pub samples: Vec<RequestSample>,
    /// Samples for which there was no room.
    pub samples_left_out: u64,
    /// Processes through which requests pass.
    pub sidecars: Vec<Sidecar>,
    pub counters: RequestCounters,
    /// Of TLS libraries, where their plaintext is captured.
    pub tls: Option<TlsReport>,
    /// Stored behind the table, which older results end with.
    #[serde(skip)]
    pub timeline: RequestTimeline,
    /// Stored behind the timeline. Edges without such requests are missing.
    #[serde(skip)]
    pub counted: Vec<EdgeCount>,
    /// Stored behind `counted`. `None`: access logs were not asked for.
    #[serde(skip)]
    pub logged: Option<LoggedRequests>,
    /// What was stored could not be read: nothing here was counted.
    #[serde(skip)]
    pub is_damaged: bool,
}

/// Threads of one server that are kept.
pub const MAX_SERVER_THREADS: usize = 256;

impl RequestTable {
    /// The edge of an operation; `None`: there was no room for it.
    pub fn edge_of(&self, operation: &Operation) -> Option<&RequestEdge> {
        let place = usize::try_from(operation.edge?).ok()?;
        self.edges.get(place)
    }

    /// Where the requests of an operation, or of a sample, come from.
    pub fn source_of(&self, edge: Option<u32>, tls: bool) -> RequestSource {
        let is_logged = |logged: &LoggedRequests| match edge {
            Some(edge) => logged.edges.binary_search(&edge).is_ok(),
            // Nobody else has any.
            None => self.edges.len() == logged.edges.len(),
        };
        if self.logged.as_ref().is_some_and(is_logged) {
            RequestSource::AccessLog
        } else if tls {
            RequestSource::Tls
        } else {
            RequestSource::Sockets
        }
    }
}

/// Where requests are taken from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RequestSource {
    /// What Envoys report by their access logs.
    AccessLog,
    /// What is moved over sockets.
    Sockets,
    /// What TLS libraries are given.
    Tls,
}

impl RequestSource {
    pub const ALL: [Self; 3] = [Self::AccessLog, Self::Sockets, Self::Tls];

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::AccessLog => "access_log",
            Self::Sockets => "sockets",
            Self::Tls => "tls",
        }
    }
}

/// Connections over which requests went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEdge {
    pub key: EdgeKey,
    /// The client's port, when all connections have the same.
    pub client_port: Option<u16>,
    /// Each once, whichever ends were seen.
    pub connections: u64,
    /// What was sent before encryption began.
    pub tls: Vec<TlsSeen>,
    /// Threads of the server that moved the first byte of a request or of an answer, in their order; with
    /// [`MAX_SERVER_THREADS`] some may be missing.
    pub server_tids: Vec<u32>,
}

/// Requests of HTTP without TLS on one edge, counted in the kernel, whatever was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeCount {
    /// Place in [`RequestTable::edges`].
    pub edge: u32,
    /// [`Protocol::Http1`], or [`Protocol::Http2`] for calls of gRPC as well.
    pub protocol: Protocol,
    /// The end whose sockets counted them.
    pub seen_by: SeenBy,
    pub outcomes: Outcomes,
    /// As [`Timings::latency_ns`], of those that were answered.
    pub latency_ns: Spread,
    /// No request is known to be missing.
    pub is_exact: bool,
}

/// What a client and a server sent each other before encryption began. Text is untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TlsSeen {
    /// Name of the server that the client asked for.
    pub server_name: Option<String>,
    /// Protocols that the client offered.
    pub offered: Vec<String>,
    /// The one that the server chose; from TLS 1.3 on it is sent encrypted.
    pub chosen: Option<String>,
    /// `TLS 1.3`.
    pub version: Option<String>,
    /// Connections with these values.
    pub connections: u64,
}

/// Which end's socket saw a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SeenBy {
    Client,
    Server,
}

/// Requests of one kind on one edge. Text is untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Place in [`RequestTable::edges`]; `None`: edges for which there was no room.
    pub edge: Option<u32>,
    pub protocol: Protocol,
    /// The bytes were read at a TLS library.
    pub tls: bool,
    /// `None`: not seen, or one of several.
    pub method: Option<String>,
    /// As `method`.
    pub route: Option<String>,
    /// Operations for which there was no room on this edge.
    pub is_other: bool,
    /// Each request once, whichever ends saw it.
    pub tally: Tally,
    /// Of these, those that are counted as the server's socket saw them.
    pub server_only: u64,
    /// What the clients' sockets saw.
    pub client: Timings,
    /// What the servers' sockets saw.
    pub server: Timings,
}

impl Operation {
    /// The end whose times are shown: the client's, which include the network, unless the server's sockets timed more than
    /// ten ninths as many requests. Broken requests do not count for the server: it timed what the client never got.
    pub fn timed_by(&self) -> (SeenBy, &Timings) {
        let (client, server) = (self.client.latency_ns.count, self.server.latency_ns.count);
        let Tally { seen, count, .. } = self.tally;
        let broken =
            u128::from(self.tally.outcomes.broken) * u128::from(seen) / u128::from(count.max(1));
        let answered = u128::from(server).saturating_sub(broken);
        let is_poor = u128::from(client) * 10 < answered * 9;
        if is_poor || self.client.count == 0 {
            (SeenBy::Server, &self.server)
        } else {
            (SeenBy::Client, &self.client)
        }
    }
}

/// How many requests, what became of them, and how large they were.
/// Where connections were sampled, or entries of access logs are missing, each request that was seen stands for those that were not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// All, by estimate.
    pub count: u64,
    /// Those that were seen.
    pub seen: u64,
    /// Of the estimate; `None`: not known, of too many or too few connections, or because payload was lost.
    pub variance: Option<u64>,
    pub outcomes: Outcomes,
    /// Requests by what the answer reported about itself; beyond some different ones `other`.
    pub statuses: BTreeMap<String, u64>,
    /// Bytes of requests and answers whose size is known.
    pub request_bytes: Spread,
    pub response_bytes: Spread,
    /// Messages of streams, of requests that are such.
    pub streams: u64,
    pub messages_to_server: u64,
    pub messages_to_client: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            count: 0,
            seen: 0,
            variance: Some(0),
            outcomes: Outcomes::default(),
            statuses: BTreeMap::new(),
            request_bytes: Spread::default(),
            response_bytes: Spread::default(),
            streams: 0,
            messages_to_server: 0,
            messages_to_client: 0,
        }
    }
}

impl Tally {
    /// Whether the number of all is that of those that were seen, and known for certain.
    pub fn is_certain(&self) -> bool {
        self.count == self.seen && self.variance == Some(0)
    }

    /// The 95 % confidence interval of the number of all requests; the number itself where all were seen. Without an
    /// upper end: at least those that were seen, and an unknown number of others.
    pub fn interval(&self) -> (u64, Option<u64>) {
        let Some(variance) = self.variance else {
            return (self.seen, None);
        };
        let half = match variance {
            0 => 0,
            // 1.96^2, rounded up.
            variance => (u128::from(variance) * 38_416 / 10_000).isqrt() + 1,
        };
        let half = u64::try_from(half).unwrap_or(u64::MAX);
        // What was seen is certain.
        let low = self.count.saturating_sub(half).max(self.seen);
        (low, Some(self.count.saturating_add(half)))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    pub ok: u64,
    pub client_error: u64,
    pub server_error: u64,
    pub broken: u64,
    pub unknown: u64,
}

impl Outcomes {
    pub fn add(&mut self, outcome: Outcome, times: u64) {
        let slot = match outcome {
            Outcome::Ok => &mut self.ok,
            Outcome::ClientError => &mut self.client_error,
            Outcome::ServerError => &mut self.server_error,
            Outcome::Broken => &mut self.broken,
            Outcome::Unknown => &mut self.unknown,
        };
        *slot += times;
    }

    /// Adds answers of HTTP by the first digit of their status; 0: not known.
    pub fn add_class(&mut self, class: u32, times: u64) {
        let outcome = match class {
            0 => Outcome::Unknown,
            4 => Outcome::ClientError,
            5 => Outcome::ServerError,
            _ => Outcome::Ok,
        };
        self.add(outcome, times);
    }

    pub fn merge(&mut self, other: Self) {
        let Self {
            ok,
            client_error,
            server_error,
            broken,
            unknown,
        } = other;
        self.ok += ok;
        self.client_error += client_error;
        self.server_error += server_error;
        self.broken += broken;
        self.unknown += unknown;
    }

    pub fn all(&self) -> u64 {
        self.errors() + self.ok + self.unknown
    }

    /// Requests that went wrong, as far as that is known.
    pub fn errors(&self) -> u64 {
        self.client_error + self.server_error + self.broken
    }
}

/// How long requests took, of those whose answer was seen whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    /// Requests that were seen here, whatever became of them.
    pub count: u64,
    /// From the first byte of the request to the last one of the answer.
    pub latency_ns: Spread,
    /// From the first byte of the request to the first one of the answer.
    pub first_byte_ns: Spread,
}

/// Why a request was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SampleReason {
    /// One of the slowest of its edge in its time.
    Slow,
    /// One of the first that failed on its edge in its time.
    Failed,
    /// The rule with this number, from 0, holds.
    Rule(u8),
    /// All are kept.
    All,
}

/// One request. Text is untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSample {
    /// As in [`Operation`].
    pub edge: Option<u32>,
    pub tls: bool,
    /// Where it was seen; when both ends saw it, the client.
    pub seen_by: SeenBy,
    /// The process and the thread that moved its first byte; the thread where it is still known.
    pub pid: u32,
    pub tid: Option<u32>,
    /// The client's end, as it was seen.
    pub client: SocketAddr,
    /// Nanoseconds since the Unix epoch.
    pub begin_ns: u64,
    pub reason: SampleReason,
    /// Its times are those of the kernel's monotonic clock.
    pub exchange: Exchange,
}

/// What could not be determined, and what was left out. All count from the start of the task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounters {
    /// Connections whose payload was looked at, by what they speak; `unknown` for those that could
    /// not be identified. Both ends of a connection count, where both are seen.
    pub connections_by_protocol: BTreeMap<String, u64>,
    /// One in N connections was looked at when they were fewest; 1 is all.
    pub sampled_one_of: u32,
    /// Bytes of TLS that belong to no known socket.
    pub unbound_bytes: u64,
    /// Pieces of payload that did not fit the ring buffer.
    pub lost_pieces: u64,
    /// Places where payload is missing that may have held messages.
    pub gaps: u64,
    /// Connections that had such a place.
    pub gap_connections: u64,
    /// Connections that speak nothing that is known here.
    pub undecoded_connections: u64,
    /// Bytes that no decoder read, of these connections and of others.
    pub undecoded_bytes: u64,
    /// Times that a connection turned out not to speak what it was taken for.
    pub withdrawn_guesses: u64,
    /// Connections for which it is unknown which end is the client.
    pub unknown_direction: u64,
    /// Connections for which there was no room, and their bytes.
    pub refused_connections: u64,
    pub refused_bytes: u64,
    /// Operations that were put together as `other`, each time a request was.
    pub other_operations: u64,
    /// Requests of edges for which there was no room.
    pub other_edges: u64,
    /// Requests that had not ended when the task did; they are in no operation.
    pub under_way: u64,
}
