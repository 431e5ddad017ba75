//! Requests of a task.

use std::collections::BTreeMap;

use profiler_analysis::latency::latencies;
use profiler_host::container_names::ContainerDirectory;
use profiler_model::{self as model, RequestSource, RequestValues, latency::Latency};
use profiler_network::requests::is_unix_end;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    containers::{NamedContainers, named},
    edges::{CountedWindow, EdgeEnd, end},
    request_access_logs::RequestAccessLogs,
    request_plaintext::RequestPlaintext,
    request_samples::{RequestSample, sample},
    request_sidecars::RequestSidecar,
    tasks::{TaskState, state_of},
};

/// Requests between processes, from the task's start until now, with the state of the task. Text comes
/// from payload and is untrusted. Times are nanoseconds.
#[derive(Debug, Serialize, ToSchema)]
pub struct TaskRequests {
    state: TaskState,
    /// Why the task failed.
    #[schema(required)]
    reason: Option<String>,
    /// In which time this was counted; null before the first result.
    #[schema(required)]
    window: Option<CountedWindow>,
    /// How long requests take and where, of the processes that pass requests on; where none does, of those that answer. Most
    /// requests first.
    latency: Vec<Latency>,
    /// Null: the agent that recorded the task kept none.
    #[schema(required)]
    over_time: Option<model::RequestsOverTime>,
    /// Most requests first.
    operations: Vec<RequestOperation>,
    /// Requests of HTTP/1 without TLS by edge, counted in the kernel, whatever was captured. Most first.
    counted: Vec<RequestCount>,
    /// In the order of their ends.
    samples: Vec<RequestSample>,
    /// Samples for which there was no room.
    samples_left_out: u64,
    /// What was told before encryption began, by edge.
    tls: Vec<RequestTls>,
    /// Processes that requests go into and out of, with the time that they add.
    sidecars: Vec<RequestSidecar>,
    /// Bytes of TLS that belong to no known socket.
    unbound_bytes: u64,
    /// Pieces of payload that did not fit the ring buffer.
    lost: u64,
    /// One connection in so many was looked at when they were fewest; 1 is all, all the time. Counts are then
    /// estimates.
    sampled_one_of: u32,
    /// Connections whose payload was looked at, by what they speak. Both ends of a connection count, where
    /// both are seen.
    connections_by_protocol: BTreeMap<String, u64>,
    incomplete: RequestGaps,
    /// Where plaintext of TLS was captured and what that costs; null where it was not asked for.
    #[schema(required)]
    plaintext: Option<RequestPlaintext>,
    /// What Envoys report by their access logs; null where these were not asked for.
    #[schema(required)]
    access_logs: Option<RequestAccessLogs>,
    /// The stored result cannot be read: nothing here was counted.
    damaged: bool,
    /// Names of the containers of these edges, by id; those that nobody has named are missing.
    containers: NamedContainers,
}

/// What could not be told.
#[derive(Debug, Default, Serialize, ToSchema)]
struct RequestGaps {
    /// Places where payload is missing, and connections that have one.
    gaps: u64,
    gap_connections: u64,
    /// Connections that speak nothing that is known here.
    undecoded_connections: u64,
    /// Bytes that no decoder understood.
    undecoded_bytes: u64,
    /// Times that a connection did not speak what it was taken for.
    withdrawn_guesses: u64,
    /// Connections of which nobody can tell which end is the client.
    unknown_direction: u64,
    /// Connections for which there was no room, and bytes of connections that are not known.
    refused_connections: u64,
    refused_bytes: u64,
    /// Requests whose operation is one of those that are told as `other`.
    other_operations: u64,
    /// Requests of edges for which there was no room.
    other_edges: u64,
    /// Requests that had not ended when the task did; they are in no operation.
    under_way: u64,
}

/// From which process to which.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct RequestEdge {
    /// As at `/edges`.
    id: String,
    /// Its port is null for several connections.
    client: EdgeEnd,
    server: EdgeEnd,
    /// Where the client asked to go (`ADDRESS:PORT`), when that is not where it came out.
    #[schema(required)]
    original_destination: Option<String>,
}

impl RequestEdge {
    /// The edge of one connection.
    pub(super) fn of_client(mut self, client: std::net::SocketAddr) -> Self {
        self.client.port = (!is_unix_end(client)).then(|| client.port());
        self
    }
}

/// Requests of one kind on one edge, each counted once, whichever ends saw it.
#[derive(Debug, Serialize, ToSchema)]
struct RequestOperation {
    /// Null: edges for which there was no room.
    #[schema(required)]
    edge: Option<RequestEdge>,
    /// `http1`, `http2`, `grpc`, `websocket`, `dns`, `redis`, `postgresql`, `mysql`.
    protocol: &'static str,
    source: RequestSource,
    /// The plaintext was read at a TLS library.
    tls: bool,
    /// `GET`, the first word of a statement, a command; null: not seen.
    #[schema(required)]
    method: Option<String>,
    /// The path with its numbers folded, a statement without values; null: not seen.
    #[schema(required)]
    route: Option<String>,
    /// Operations of the edge for which there was no room.
    other: bool,
    /// Requests that are over. Where connections were sampled, or entries of access logs dropped, all by estimate, as are errors and
    /// statuses.
    count: u64,
    /// Those that were seen.
    seen: u64,
    /// Between which `count` is, 95 times of 100; null where it is certain.
    #[schema(required)]
    count_interval: Option<CountInterval>,
    /// Of these, those that are known to have gone wrong.
    errors: u64,
    errors_by_class: RequestErrors,
    /// Requests whose end was not seen whole; they are no errors.
    unknown: u64,
    counted_from: CountedFrom,
    /// Requests by status: `404`, `grpc 14`, `42P01`, `ok`; after some different ones `other`.
    statuses: BTreeMap<String, u64>,
    /// From the first byte of the request to the last one of the answer, of requests whose answer was seen
    /// whole: as `latency_from` saw it, the client unless its sockets timed fewer than nine in ten of what the
    /// server's did.
    latency_ns: RequestValues,
    latency_from: RequestEnd,
    /// What each end's socket saw; null: nothing.
    #[schema(required)]
    client: Option<RequestTimings>,
    #[schema(required)]
    server: Option<RequestTimings>,
    /// Bytes of bodies (HTTP) or messages, of requests whose sizes are known.
    request_bytes: RequestValues,
    response_bytes: RequestValues,
    /// Requests of `seen` that are not in `request_bytes`: the size was not seen whole.
    request_sizes_unknown: u64,
    /// As `request_sizes_unknown`, of `response_bytes`.
    response_sizes_unknown: u64,
    /// Messages of streams; null: there are none.
    #[schema(required)]
    messages: Option<RequestMessages>,
}

/// Requests of HTTP without TLS on one edge, each counted once. Upgrades are left out.
#[derive(Debug, Serialize, ToSchema)]
struct RequestCount {
    edge: RequestEdge,
    /// `http1`, or `http2`, which calls of gRPC are counted as.
    protocol: &'static str,
    /// Requests that are over.
    count: u64,
    /// No request is known to be missing; else there may be more.
    exact: bool,
    errors: u64,
    /// A request is broken here if its connection ended before the answer began, or its stream of HTTP/2 was reset or open at the
    /// end of the connection.
    errors_by_class: RequestErrors,
    /// Their status could not be read: of HTTP/2 that of every answer with trailers, as calls of gRPC have.
    unknown: u64,
    /// From the first byte of the request to the last one of the answer; `min`, `max` and `sum` of HTTP/1 are rounded down to 64 ns for
    /// each.
    latency_ns: RequestValues,
    /// The end whose sockets counted.
    counted_from: RequestEnd,
}

/// How sure an estimated count is.
#[derive(Debug, Serialize, ToSchema)]
struct CountInterval {
    low: u64,
    /// Null: nobody can tell, of too few or too many connections, or because payload was lost.
    #[schema(required)]
    high: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct RequestErrors {
    /// The answer says that the request was wrong (HTTP 4xx).
    client: u64,
    /// The answer says that the server failed (HTTP 5xx).
    server: u64,
    /// The connection ended or the stream was reset before the answer was complete.
    broken: u64,
}

/// Whose sockets requests were counted at.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CountedFrom {
    Client,
    /// The clients' sockets are not seen.
    Server,
    /// Each request at one of them.
    Both,
    /// These were counted as another operation, of which the other end knows more.
    None,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequestEnd {
    Client,
    Server,
}

impl From<model::SeenBy> for RequestEnd {
    fn from(seen_by: model::SeenBy) -> Self {
        match seen_by {
            model::SeenBy::Client => Self::Client,
            model::SeenBy::Server => Self::Server,
        }
    }
}

/// What one end's socket saw.
#[derive(Debug, Serialize, ToSchema)]
struct RequestTimings {
    count: u64,
    latency_ns: RequestValues,
    /// From the first byte of the request to the first one of the answer.
    first_byte_ns: RequestValues,
}

#[derive(Debug, Serialize, ToSchema)]
struct RequestMessages {
    /// Requests that are streams.
    streams: u64,
    to_server: u64,
    to_client: u64,
}

/// What clients and servers of an edge told each other before encryption began.
#[derive(Debug, Serialize, ToSchema)]
struct RequestTls {
    edge: RequestEdge,
    /// Name of the server that the client asked for.
    #[schema(required)]
    server_name: Option<String>,
    /// Protocols that the client offered.
    alpn_offered: Vec<String>,
    /// The one that the server chose; null from TLS 1.3 on, where that is encrypted.
    #[schema(required)]
    alpn_chosen: Option<String>,
    /// `1.3`; null: the server's answer was not seen.
    #[schema(required)]
    version: Option<String>,
    /// Connections that told this.
    connections: u64,
}

impl TaskRequests {
    /// Without a `table` nothing has been counted yet, or nothing was.
    pub fn new(
        state: &model::TaskState,
        table: Option<&model::RequestTable>,
        names: &ContainerDirectory,
    ) -> Self {
        let (state, reason) = state_of(state);
        let empty = model::RequestTable::default();
        let found = table.unwrap_or(&empty);
        let counters = &found.counters;
        let edges: Vec<RequestEdge> = found.edges.iter().map(edge).collect();
        let edge_at = |place: Option<u32>| {
            place
                .and_then(|place| edges.get(usize::try_from(place).unwrap_or(usize::MAX)))
                .cloned()
        };
        let mut operations: Vec<_> = found.operations.iter().collect();
        operations.sort_by_key(|operation| std::cmp::Reverse(operation.tally.count));
        Self {
            containers: named(found.edges.iter().flat_map(|edge| edge.key.ends()), names),
            state,
            reason,
            window: table
                .filter(|table| !table.is_damaged)
                .map(|table| table.window.into()),
            latency: latencies(found),
            over_time: found.over_time(),
            operations: operations
                .into_iter()
                .map(|operation| published(operation, edge_at(operation.edge), found))
                .collect(),
            counted: counts(found, &edges),
            samples: found
                .samples
                .iter()
                .map(|kept| {
                    sample(
                        kept,
                        edge_at(kept.edge),
                        found.source_of(kept.edge, kept.tls),
                    )
                })
                .collect(),
            samples_left_out: found.samples_left_out,
            tls: found.edges.iter().flat_map(tls).collect(),
            sidecars: found.sidecars.iter().map(Into::into).collect(),
            unbound_bytes: counters.unbound_bytes,
            lost: counters.lost_pieces,
            sampled_one_of: counters.sampled_one_of.max(1),
            connections_by_protocol: counters.connections_by_protocol.clone(),
            incomplete: counters.into(),
            plaintext: found.tls.as_ref().map(Into::into),
            access_logs: found.logged.as_ref().map(Into::into),
            damaged: found.is_damaged,
        }
    }
}

impl From<&model::RequestCounters> for RequestGaps {
    fn from(counters: &model::RequestCounters) -> Self {
        let model::RequestCounters {
            connections_by_protocol: _,
            sampled_one_of: _,
            unbound_bytes: _,
            lost_pieces: _,
            gaps,
            gap_connections,
            undecoded_connections,
            undecoded_bytes,
            withdrawn_guesses,
            unknown_direction,
            refused_connections,
            refused_bytes,
            other_operations,
            other_edges,
            under_way,
        } = counters;
        Self {
            gaps: *gaps,
            gap_connections: *gap_connections,
            undecoded_connections: *undecoded_connections,
            undecoded_bytes: *undecoded_bytes,
            withdrawn_guesses: *withdrawn_guesses,
            unknown_direction: *unknown_direction,
            refused_connections: *refused_connections,
            refused_bytes: *refused_bytes,
            other_operations: *other_operations,
            other_edges: *other_edges,
            under_way: *under_way,
        }
    }
}

fn edge(found: &model::RequestEdge) -> RequestEdge {
    let model::RequestEdge {
        key,
        client_port,
        connections: _,
        tls: _,
        server_tids: _,
    } = found;
    let original = key.original_destination;
    RequestEdge {
        id: model::EdgeId::of(key).to_string(),
        client: end(&key.client, None, *client_port),
        server: end(&key.server, None, key.server_port),
        original_destination: original
            .map(|(address, port)| std::net::SocketAddr::new(address, port).to_string()),
    }
}

fn tls(found: &model::RequestEdge) -> impl Iterator<Item = RequestTls> + '_ {
    found.tls.iter().map(|seen| RequestTls {
        edge: edge(found),
        server_name: seen.server_name.clone(),
        alpn_offered: seen.offered.clone(),
        alpn_chosen: seen.chosen.clone(),
        version: seen.version.clone(),
        connections: seen.connections,
    })
}

fn published(
    found: &model::Operation,
    edge: Option<RequestEdge>,
    table: &model::RequestTable,
) -> RequestOperation {
    let model::Operation {
        edge: place,
        protocol,
        tls,
        method,
        route,
        is_other,
        tally,
        server_only,
        client,
        server,
    } = found;
    let (latency_from, timed) = found.timed_by();
    RequestOperation {
        edge,
        protocol: protocol.name(),
        source: table.source_of(*place, *tls),
        tls: *tls,
        method: method.clone(),
        route: route.clone(),
        other: *is_other,
        count: tally.count,
        seen: tally.seen,
        count_interval: (!tally.is_certain()).then(|| {
            let (low, high) = tally.interval();
            CountInterval { low, high }
        }),
        errors: tally.outcomes.errors(),
        errors_by_class: tally.outcomes.into(),
        unknown: tally.outcomes.unknown,
        counted_from: match (tally.count, *server_only) {
            (0, _) => CountedFrom::None,
            (_, 0) => CountedFrom::Client,
            (all, of_server) if all == of_server => CountedFrom::Server,
            _ => CountedFrom::Both,
        },
        statuses: tally.statuses.clone(),
        latency_ns: (&timed.latency_ns).into(),
        latency_from: latency_from.into(),
        client: timings(client),
        server: timings(server),
        request_bytes: (&tally.request_bytes).into(),
        response_bytes: (&tally.response_bytes).into(),
        request_sizes_unknown: tally.seen.saturating_sub(tally.request_bytes.count),
        response_sizes_unknown: tally.seen.saturating_sub(tally.response_bytes.count),
        messages: (tally.streams > 0).then_some(RequestMessages {
            streams: tally.streams,
            to_server: tally.messages_to_server,
            to_client: tally.messages_to_client,
        }),
    }
}

fn counts(table: &model::RequestTable, edges: &[RequestEdge]) -> Vec<RequestCount> {
    let counts = table.counted.iter().filter_map(|found| {
        let place = usize::try_from(found.edge).ok()?;
        Some(RequestCount {
            edge: edges.get(place)?.clone(),
            protocol: found.protocol.name(),
            count: found.outcomes.all(),
            exact: found.is_exact,
            errors: found.outcomes.errors(),
            errors_by_class: found.outcomes.into(),
            unknown: found.outcomes.unknown,
            latency_ns: (&found.latency_ns).into(),
            counted_from: found.seen_by.into(),
        })
    });
    let mut counts: Vec<RequestCount> = counts.collect();
    counts.sort_by_key(|found| std::cmp::Reverse(found.count));
    counts
}

impl From<model::Outcomes> for RequestErrors {
    fn from(outcomes: model::Outcomes) -> Self {
        Self {
            client: outcomes.client_error,
            server: outcomes.server_error,
            broken: outcomes.broken,
        }
    }
}

fn timings(found: &model::Timings) -> Option<RequestTimings> {
    (found.count > 0).then(|| RequestTimings {
        count: found.count,
        latency_ns: (&found.latency_ns).into(),
        first_byte_ns: (&found.first_byte_ns).into(),
    })
}
