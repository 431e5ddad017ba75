//! Edges of a network task.

use std::{collections::BTreeMap, net::SocketAddr};

use profiler_host::container_names::ContainerDirectory;
use profiler_model as model;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    containers::{NamedContainers, named},
    edge_sides::SideMetrics,
    tasks::{TaskState, state_of},
};
use profiler_engine::network_watch::{WatchState, WatchedEdges};

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
    /// In which time this was counted; null before the first result.
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
    /// lost.
    delayed: u64,
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
    pub(in crate::api) fn new(watched: &WatchedEdges, names: &ContainerDirectory) -> Self {
        let WatchedEdges {
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
    /// What the program is in its pod, by its name; null for what is neither a proxy nor serves one or the pod.
    #[schema(required)]
    program_kind: Option<model::ProgramKind>,
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

impl EdgeTable {
    pub fn new(table: &model::EdgeTable, names: &ContainerDirectory) -> Self {
        let has = |metric: &str| table.has(metric);
        Self {
            containers: named(table.edges.iter().flat_map(|edge| edge.key.ends()), names),
            edges: table.edges.iter().map(|found| edge(found, table)).collect(),
            sources: table.sources.clone(),
            other: (table.folded != model::FoldedEdges::default()).then(|| OtherEdges {
                edges: table.folded.edges,
                metrics: EdgeMetrics {
                    client: Some(SideMetrics::new(&table.folded.client, has)),
                    server: Some(SideMetrics::new(&table.folded.server, has)),
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
            client: client.as_ref().map(|side| SideMetrics::new(side, has)),
            server: server.as_ref().map(|side| SideMetrics::new(side, has)),
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
    let comm = pid.filter(|_pid| !comm.is_empty()).map(|_pid| comm.clone());
    EdgeEnd {
        pid: *pid,
        start_ticks: *start_ticks,
        program_kind: comm.as_deref().and_then(model::ProgramKind::of),
        comm,
        container: container.clone(),
        name,
        address: address.to_string(),
        network_namespace: None,
        port,
    }
}
