//! Edges of a network task.

use std::{collections::BTreeMap, net::SocketAddr};

use profiler_common::network::BOUNDS_US;
use profiler_host::container_names::ContainerDirectory;
use profiler_model as model;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    containers::{NamedContainers, named},
    tasks::{TaskState, state_of},
};
use profiler_engine::network_watch::{WatchState, Watched};

/// Connections between processes, from the task's start until now.
#[derive(Debug, Serialize, ToSchema)]
pub struct EdgeTable {
    edges: Vec<Edge>,
    /// Where each metric comes from: the kernel's hook, or `system calls`.
    sources: BTreeMap<String, String>,
    /// Edges that are no longer told apart: they were silent for long, or there was no room for them. Null
    /// when there are none.
    #[schema(required)]
    other: Option<OtherEdges>,
    /// Metrics that are null because this kernel or this mode cannot give them, with the reason.
    unavailable: BTreeMap<String, String>,
    /// Connections of which something could not be told, by what.
    unresolved: BTreeMap<String, u64>,
    lost: LostTraffic,
    kernel_table: KernelTable,
    /// In which time this was counted; null before the first result, and in results of older agents,
    /// which did not say.
    #[schema(required)]
    window: Option<CountedWindow>,
    /// Names of the containers of these edges, by id; those that nobody has named are missing.
    containers: NamedContainers,
}

/// Nanoseconds since the Unix epoch.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CountedWindow {
    /// When the programs were attached.
    from_ns: u64,
    /// When the counts were read; at the end, when the programs were detached.
    to_ns: u64,
}

impl From<model::Window> for CountedWindow {
    fn from(window: model::Window) -> Self {
        Self {
            from_ns: window.from_ns,
            to_ns: window.to_ns,
        }
    }
}

/// The edges of a task, with what became of the task.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct TaskEdges {
    state: TaskState,
    /// Why the task failed.
    #[schema(required)]
    reason: Option<String>,
    #[serde(flatten)]
    table: EdgeTable,
}

impl TaskEdges {
    /// Without a `table` nothing has been counted yet, or nothing was.
    pub(in crate::api) fn new(
        task: &model::Task,
        table: Option<&model::EdgeTable>,
        names: &ContainerDirectory,
    ) -> Self {
        let (state, reason) = state_of(&task.state);
        Self {
            state,
            reason,
            table: EdgeTable::new(table.unwrap_or(&model::EdgeTable::default()), names),
        }
    }
}

/// The kernel's table of connections.
#[derive(Debug, Serialize, ToSchema)]
struct KernelTable {
    capacity: u64,
    /// Connections that are in it.
    used: u64,
    /// Connections that found no room when they began; their reads and writes are in `lost` unless
    /// there was room later.
    refused: u64,
    /// How often a connection that rested left it to make room; none of its counts is lost.
    evicted: u64,
    /// Connections whose end was missed, found because the kernel does not list them any more.
    swept: u64,
    /// Runs that the kernel left out because the same program was at work on that CPU, by program:
    /// what they would have counted is missing. Empty: none.
    missed_runs: BTreeMap<String, u64>,
    /// Connections whose end waited in the table because the agent was slow; none of their counts is
    /// lost. Null in results of older agents, which did not say.
    #[schema(required)]
    delayed: Option<u64>,
}

/// Everything that edges had counted which are no longer told apart.
#[derive(Debug, Serialize, ToSchema)]
struct OtherEdges {
    /// How many; an edge that came back and went again counts again.
    edges: u64,
    metrics: EdgeMetrics,
}

/// The always-on collection of the whole node, with everything that it has counted.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct NetworkEdges {
    state: NetworkState,
    /// Why it does not run.
    #[schema(required)]
    reason: Option<String>,
    /// When counting began; null before that.
    #[schema(required)]
    since_ns: Option<u64>,
    /// Times that it had to be started again. Counts go on; connections that were open count again.
    restarts: u64,
    /// Age of the table; null before the first.
    #[schema(required)]
    age_ms: Option<u64>,
    #[serde(flatten)]
    table: EdgeTable,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NetworkState {
    Starting,
    Running,
    /// It failed and is started again after a pause.
    Waiting,
}

impl NetworkEdges {
    pub(in crate::api) fn new(watched: &Watched, names: &ContainerDirectory) -> Self {
        let Watched {
            state,
            since_ns,
            restarts,
            table,
            updated,
        } = watched;
        let (state, reason) = match state {
            WatchState::Starting => (NetworkState::Starting, None),
            WatchState::Running => (NetworkState::Running, None),
            WatchState::Waiting(reason) => (NetworkState::Waiting, Some(reason.clone())),
        };
        let age = updated.map(|updated| updated.elapsed());
        Self {
            state,
            reason,
            since_ns: *since_ns,
            restarts: *restarts,
            age_ms: age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            table: EdgeTable::new(
                table.as_deref().unwrap_or(&model::EdgeTable::default()),
                names,
            ),
        }
    }
}

/// Reads and writes of connections that did not fit the kernel's table.
#[derive(Debug, Serialize, ToSchema)]
struct LostTraffic {
    events: u64,
    bytes: u64,
}

/// Connections from one process to one port of another.
#[derive(Debug, Serialize, ToSchema)]
struct Edge {
    /// The same for the same edge as long as it lives: what `.../edges/{edge}/series` takes.
    id: String,
    client: EdgeEnd,
    server: EdgeEnd,
    /// Where the client asked to go (`ADDRESS:PORT`), when that is not where it came out.
    #[schema(required)]
    original_destination: Option<String>,
    /// `tcp` or `unix`.
    protocol: &'static str,
    /// Null: not looked at.
    #[schema(required)]
    tls: Option<bool>,
    metrics: EdgeMetrics,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct EdgeEnd {
    /// Null when the end is not on this node or was not seen.
    #[schema(required)]
    pid: Option<u32>,
    /// Clock ticks from boot to the start of the process: a number may be used again.
    #[schema(required)]
    start_ticks: Option<u64>,
    #[schema(required)]
    comm: Option<String>,
    #[schema(required)]
    container: Option<String>,
    /// What name servers were asked for to get the address (the original destination's, for a
    /// server); null when no answer was seen, or several names lead to it.
    #[schema(required)]
    name: Option<String>,
    /// An IP address; of a Unix socket its path, `@NAME`, or `unnamed`.
    address: String,
    /// Inode of the network namespace that its sockets are in; null when the end is not on this node, was
    /// not seen, or has sockets in several. The kernel gives the number of a namespace that is gone again.
    #[schema(required)]
    network_namespace: Option<u64>,
    /// Null for the client's end of several connections, and for Unix sockets.
    #[schema(required)]
    pub(super) port: Option<u16>,
}

/// What each end measured; null for an end that was not watched.
#[derive(Debug, Serialize, ToSchema)]
struct EdgeMetrics {
    #[schema(required)]
    client: Option<SideMetrics>,
    #[schema(required)]
    server: Option<SideMetrics>,
}

/// Null metrics are named in `unavailable`. Times are nanoseconds.
#[derive(Debug, Serialize, ToSchema)]
struct SideMetrics {
    connections: ConnectionCount,
    #[schema(required)]
    write: Option<EdgeTransfer>,
    #[schema(required)]
    read: Option<EdgeTransfer>,
    #[schema(required)]
    connect: Option<EdgeConnects>,
    /// From the establishment until the process took the connection out of the queue.
    #[schema(required)]
    accept: Option<EdgeTimes>,
    /// From the end of sending until the socket was closed.
    #[schema(required)]
    close: Option<EdgeTimes>,
    /// Smoothed round-trip time (`tcp_sock.srtt_us`) at each write, microseconds. Acknowledgements that the
    /// peer delays are in it, so that it can be much longer than the network takes.
    #[schema(required)]
    write_rtt_us: Option<EdgeValues>,
    /// The smallest round-trip time that the kernel measured (`tcp_sock.rtt_min`), microseconds: what the
    /// network takes. Null also before the first write.
    #[schema(required)]
    min_rtt_us: Option<u64>,
    /// From the arrival of data until the process read it.
    #[schema(required)]
    receive_wait: Option<EdgeTimes>,
    #[schema(required)]
    retransmit: Option<EventCount>,
    #[schema(required)]
    drop: Option<EdgeDrops>,
    #[schema(required)]
    reset: Option<EdgeResets>,
    #[schema(required)]
    error: Option<EdgeErrors>,
    #[schema(required)]
    socket: Option<EdgeSocketTotals>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ConnectionCount {
    count: u64,
    /// Of these, open now.
    open: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct EventCount {
    count: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeTransfer {
    count: u64,
    bytes: u64,
    /// Time in the calls that moved something, until they returned. What moved without a system call
    /// of its own, by `io_uring` or as one of several messages, has no time of its own.
    #[schema(required)]
    time_ns: Option<u64>,
    #[schema(required)]
    histogram: Option<EdgeHistogram>,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeConnects {
    /// Connections that were established.
    count: u64,
    failed: u64,
    time_ns: u64,
    histogram: EdgeHistogram,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeTimes {
    count: u64,
    time_ns: u64,
    histogram: EdgeHistogram,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeValues {
    count: u64,
    sum: u64,
    /// Null before the first value.
    #[schema(required)]
    min: Option<u64>,
    #[schema(required)]
    max: Option<u64>,
    histogram: EdgeHistogram,
}

/// `counts[i]` values are not above `bounds[i]` and above the bound before it; the last of `counts`
/// are those above all bounds.
#[derive(Debug, Serialize, ToSchema)]
struct EdgeHistogram {
    bounds: Vec<u64>,
    counts: Vec<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeDrops {
    count: u64,
    /// The kernel's names of the reasons.
    by_reason: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeResets {
    count: u64,
    sent: u64,
    received: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeErrors {
    count: u64,
    /// Connections by the number of their last error (`errno`).
    // Names of JSON are texts, whatever the map has.
    #[schema(value_type = BTreeMap<String, u64>)]
    by_errno: BTreeMap<u32, u64>,
}

/// Payload of connections that have ended, by the kernel's own counts, beside what the calls that
/// were seen add up to. The kernel counts the end of a stream as one byte.
#[derive(Debug, Serialize, ToSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "units are part of the names in the API"
)]
struct EdgeSocketTotals {
    sent_bytes: u64,
    received_bytes: u64,
    written_bytes: u64,
    read_bytes: u64,
}

impl EdgeTable {
    pub fn new(table: &model::EdgeTable, names: &ContainerDirectory) -> Self {
        Self {
            containers: named(table.edges.iter().flat_map(|edge| edge.key.ends()), names),
            edges: table.edges.iter().map(|found| edge(found, table)).collect(),
            sources: table.sources.clone(),
            other: (table.folded != model::FoldedEdges::default()).then(|| OtherEdges {
                edges: table.folded.edges,
                metrics: EdgeMetrics {
                    client: Some(side(&table.folded.client, |metric| table.has(metric))),
                    server: Some(side(&table.folded.server, |metric| table.has(metric))),
                },
            }),
            unavailable: table.unavailable.clone(),
            unresolved: table.unresolved.clone(),
            lost: LostTraffic {
                events: table.lost_events,
                bytes: table.lost_bytes,
            },
            kernel_table: KernelTable {
                capacity: table.kernel_table.capacity,
                used: table.kernel_table.used,
                refused: table.kernel_table.refused,
                evicted: table.kernel_table.evicted,
                swept: table.kernel_table.swept,
                missed_runs: table.kernel_table.missed_runs.clone(),
                delayed: table.kernel_table.delayed,
            },
            window: table.window.map(Into::into),
        }
    }
}

fn edge(found: &model::Edge, table: &model::EdgeTable) -> Edge {
    let model::Edge {
        key,
        namespaces,
        client_port,
        client_name,
        server_name,
        client,
        server,
    } = found;
    let original_destination = key
        .original_destination
        .map(|(address, port)| SocketAddr::new(address, port).to_string());
    let protocol = key.server.address.protocol();
    let has = |metric: &str| table.has_of(protocol, metric);
    Edge {
        id: model::EdgeId::of(key).to_string(),
        client: EdgeEnd {
            network_namespace: namespaces.client,
            ..end(&key.client, client_name.clone(), *client_port)
        },
        server: EdgeEnd {
            network_namespace: namespaces.server,
            ..end(&key.server, server_name.clone(), key.server_port)
        },
        original_destination,
        protocol,
        tls: None,
        metrics: EdgeMetrics {
            client: client.as_ref().map(|metrics| side(metrics, has)),
            server: server.as_ref().map(|metrics| side(metrics, has)),
        },
    }
}

pub(super) fn end(endpoint: &model::Endpoint, name: Option<String>, port: Option<u16>) -> EdgeEnd {
    let model::Endpoint {
        pid,
        start_ticks,
        comm,
        container,
        address,
    } = endpoint;
    EdgeEnd {
        pid: *pid,
        start_ticks: *start_ticks,
        comm: pid.filter(|_pid| !comm.is_empty()).map(|_pid| comm.clone()),
        container: container.clone(),
        name,
        address: address.to_string(),
        network_namespace: None,
        port,
    }
}

fn side(metrics: &model::SideMetrics, has: impl Fn(&str) -> bool) -> SideMetrics {
    let transfer = |found: &model::Transfer, times: &model::Values, metric: &str| {
        let timed = has(metric).then_some(times);
        EdgeTransfer {
            count: found.count,
            bytes: found.bytes,
            time_ns: timed.map(|times| times.sum),
            histogram: timed.map(nanoseconds),
        }
    };
    let times = |found: &model::Values| EdgeTimes {
        count: found.count,
        time_ns: found.sum,
        histogram: nanoseconds(found),
    };
    SideMetrics {
        connections: ConnectionCount {
            count: metrics.connections,
            open: metrics.open,
        },
        write: has("write").then(|| transfer(&metrics.write, &metrics.write_time, "write.time_ns")),
        read: has("read").then(|| transfer(&metrics.read, &metrics.read_time, "read.time_ns")),
        connect: has("connect").then(|| EdgeConnects {
            count: metrics.connect.count,
            failed: metrics.connects_failed,
            time_ns: metrics.connect.sum,
            histogram: nanoseconds(&metrics.connect),
        }),
        accept: has("accept").then(|| times(&metrics.accept)),
        close: has("close").then(|| times(&metrics.close)),
        write_rtt_us: has("write_rtt_us").then(|| EdgeValues {
            count: metrics.write_rtt.count,
            sum: metrics.write_rtt.sum,
            min: metrics.write_rtt.least,
            max: metrics.write_rtt.greatest,
            histogram: histogram(&metrics.write_rtt, 1),
        }),
        min_rtt_us: metrics.min_rtt_us.filter(|_| has("min_rtt_us")),
        receive_wait: has("receive_wait").then(|| times(&metrics.receive_wait)),
        retransmit: has("retransmit").then_some(EventCount {
            count: metrics.retransmits,
        }),
        drop: has("drop").then(|| EdgeDrops {
            count: metrics.drops,
            by_reason: metrics.drops_by_reason.clone(),
        }),
        reset: has("reset").then_some(EdgeResets {
            count: metrics.resets_sent + metrics.resets_received,
            sent: metrics.resets_sent,
            received: metrics.resets_received,
        }),
        error: has("error").then(|| EdgeErrors {
            count: metrics.errors,
            by_errno: metrics.errors_by_number.clone(),
        }),
        socket: has("socket").then_some(EdgeSocketTotals {
            sent_bytes: metrics.socket.sent_bytes,
            received_bytes: metrics.socket.received_bytes,
            written_bytes: metrics.socket.written_bytes,
            read_bytes: metrics.socket.read_bytes,
        }),
    }
}

fn nanoseconds(values: &model::Values) -> EdgeHistogram {
    histogram(values, 1000)
}

fn histogram(values: &model::Values, units_per_us: u64) -> EdgeHistogram {
    let mut counts = values.counts.clone();
    counts.resize(BOUNDS_US.len() + 1, 0);
    EdgeHistogram {
        bounds: BOUNDS_US
            .iter()
            .map(|bound| u64::from(*bound) * units_per_us)
            .collect(),
        counts,
    }
}
