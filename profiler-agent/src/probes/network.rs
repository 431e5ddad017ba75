//! Connections: starts the programs that watch them, and adds up what they count, on a thread of its
//! own for each task.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use profiler_common::{
    config::{FILTER_ALL, FILTER_PIDS, ProbeConfig},
    network::{
        CONNECTION_ENTRIES, Connection, DIRECTION_CLIENT, DIRECTION_SERVER, DIRECTION_UNKNOWN,
        FLAG_COMPLETE, FLAG_GONE, FLAG_JOINED, LOST_BYTES, LOST_EVENTS, ListenerKey,
    },
    network_calls::{CALLS_LEFT_OUT, CALLS_UNBOUND, CallTimes, TIMES_LEFT_OUT},
};
use tokio::sync::mpsc;

use super::{
    Chunk, CollectError, CollectRequest, Collection, Collector, StopHandle,
    board::ProbeStatuses,
    network_sources::MetricSources,
    on_cpu::LOOP_WAIT,
    status::{ProbeState, ProbeStatus},
    targets::ResolvedTarget,
    timeline::{Origin, monotonic_ns},
    unix_sockets::{self, UnixSockets},
};
use crate::{
    bpf::{
        Counting, EndedReader, LoadError, LoadedObject, NETWORK_PROGRAMS, NetworkLinks,
        ObjectRequest, RecordReader, drop_reasons,
    },
    model::{Clock, Edge, EdgeTable, ProfileBuilder, WaitCounts},
    network::{Book, DiagSocket, Directory, Flow, Identity, Owner, Room},
    process::ProcessTable,
};

/// Time between two results.
const REPORT: Duration = Duration::from_secs(1);
/// Time between two readings of the node's sockets, while something is not resolved.
const READ_AGAIN_NS: u64 = 2_000_000_000;
/// Results that may wait for the engine; each holds what the earlier ones held.
const TABLE_QUEUE: usize = 2;

#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// Programs that must not be used (`--deny-probe`).
    pub denied: Vec<String>,
    /// Connections that are watched at once.
    pub connections: u32,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            denied: Vec::new(),
            connections: CONNECTION_ENTRIES,
        }
    }
}

/// Starts network tasks over eBPF.
#[derive(Debug)]
pub struct NetworkCollector {
    table: ProcessTable,
    statuses: ProbeStatuses,
    config: NetworkConfig,
    next_id: AtomicU64,
}

impl NetworkCollector {
    pub fn new(table: ProcessTable, statuses: ProbeStatuses, config: NetworkConfig) -> Self {
        for program in NETWORK_PROGRAMS {
            let denied = config.denied.iter().any(|denied| denied == program.name);
            statuses.set(ProbeStatus {
                name: program.name.to_owned(),
                state: if denied {
                    ProbeState::Denied
                } else {
                    ProbeState::Available
                },
                reason: denied.then(|| LoadError::Denied(program.name).to_string()),
                minimum_kernel: program.minimum_kernel.to_owned(),
            });
        }
        Self {
            table,
            statuses,
            config,
            next_id: AtomicU64::new(1),
        }
    }

    fn load(&self, target: &ResolvedTarget, timed: bool) -> Result<LoadedObject, LoadError> {
        let mut config = ProbeConfig {
            bucket_ns: 1,
            buckets_per_epoch: 1,
            ..ProbeConfig::default()
        };
        target.configure(&mut config);
        let (mut object, failures) = LoadedObject::load(&ObjectRequest {
            config,
            v1_controller: target.v1_controller.clone(),
            counting: Counting::Connections {
                entries: self.config.connections,
                network_namespace: target.network_namespace,
                timed,
            },
            denied: self.config.denied.clone(),
        })?;
        for failure in failures {
            tracing::debug!(%failure, "children of targets may be missed");
        }
        target.fill(&mut object)?;
        Ok(object)
    }

    /// Writes the state of every program, and says where each metric comes from.
    fn report(&self, links: &NetworkLinks, failures: &[LoadError]) -> MetricSources {
        let failure_of = |name: &str| {
            failures
                .iter()
                .find(|failure| failure.program() == Some(name))
        };
        for program in NETWORK_PROGRAMS {
            let failure = failure_of(program.name);
            let state = match failure {
                None if links.is_attached(program.name) => ProbeState::Attached,
                None => ProbeState::Available,
                Some(LoadError::Denied(_)) => ProbeState::Denied,
                Some(_) => ProbeState::Unavailable,
            };
            self.statuses.set(ProbeStatus {
                name: program.name.to_owned(),
                state,
                reason: failure.map(ToString::to_string),
                minimum_kernel: program.minimum_kernel.to_owned(),
            });
        }
        MetricSources::new(links.plan(), |name| {
            if links.is_attached(name) {
                return Ok(());
            }
            Err(failure_of(name)
                .map_or_else(|| format!("{name} is not needed"), ToString::to_string))
        })
    }
}

impl Collector for NetworkCollector {
    fn start(&self, request: &CollectRequest) -> Result<Collection, CollectError> {
        let mut target = ResolvedTarget::resolve(&request.spec.target, &self.table)?;
        let failed = |error: LoadError| CollectError::Probe {
            probe: "network",
            reason: error.to_string(),
        };
        let mut object = self.load(&target, request.spec.timed).map_err(failed)?;
        let reader = object.take_reader().map_err(failed)?;
        let ended = object.take_ended().map_err(failed)?;
        let (links, failures) = object.attach_network();
        let sources = self.report(&links, &failures);
        if links.is_empty()
            && let Some(first) = failures.into_iter().next()
        {
            return Err(failed(first));
        }
        // Now, and not before: what begins from here on is seen by the programs.
        let wanted = wanted_pids(&target, &self.table);
        let directory = Directory::read(&self.table, &wanted);
        let origin = Origin::now();
        let notes = std::mem::take(&mut target.notes);
        let (sender, chunks) = mpsc::channel(TABLE_QUEUE);
        let (stop, stopped) = StopHandle::new();
        let unix =
            UnixSockets::start(&mut object, &self.table, &target, &wanted).map_err(failed)?;
        let mut session = Session {
            unix,
            object,
            reader,
            ended,
            links,
            table: self.table.clone(),
            wanted,
            directory,
            directory_read_ns: monotonic_ns(),
            book: Book::default(),
            room: Room::of(request.spec.duration_s),
            finished: Vec::new(),
            reasons: drop_reasons(),
            sources,
            origin,
            sender,
        };
        session.add_existing(&target).map_err(failed)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        std::thread::Builder::new()
            .name(format!("network-{id}"))
            .spawn(move || session.run(&stopped))
            .map_err(|error| CollectError::Probe {
                probe: "network",
                reason: format!("start its thread: {error}"),
            })?;
        Ok(Collection {
            origin_ns: origin.epoch_ns,
            clock: None,
            effective_frequency_hz: request.spec.frequency_hz,
            notes,
            chunks,
            stop,
        })
    }
}

/// The processes of the target that run now.
fn wanted_pids(target: &ResolvedTarget, table: &ProcessTable) -> BTreeSet<u32> {
    if target.filter == FILTER_PIDS {
        return target.pids.clone();
    }
    table.refresh();
    let below = |cgroup: &str, path: &str| {
        cgroup
            .strip_prefix(path.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    table
        .snapshot()
        .iter()
        .filter(|process| {
            let paths = &target.cgroup_paths;
            paths.iter().any(|path| below(&process.cgroup, path))
        })
        .map(|process| process.key.pid)
        .collect()
}

/// The thread's own state.
#[derive(Debug)]
struct Session {
    object: LoadedObject,
    reader: RecordReader,
    ended: EndedReader,
    links: NetworkLinks,
    table: ProcessTable,
    wanted: BTreeSet<u32>,
    directory: Directory,
    /// When it was, on the kernel's clock.
    directory_read_ns: u64,
    book: Book,
    unix: UnixSockets,
    /// For a collection without end.
    room: Option<Room>,
    /// Ended since the last result.
    finished: Vec<Connection>,
    reasons: BTreeMap<u32, String>,
    sources: MetricSources,
    origin: Origin,
    sender: mpsc::Sender<Chunk>,
}

impl Session {
    fn run(mut self, stopped: &Arc<AtomicBool>) {
        let mut reported = Instant::now();
        loop {
            let last = stopped.load(Ordering::Relaxed) || self.sender.is_closed();
            if last {
                self.links.detach();
            } else {
                self.reader.wait(LOOP_WAIT);
            }
            self.read();
            if last || reported.elapsed() >= REPORT {
                reported = Instant::now();
                if let Err(error) = self.report(last) {
                    tracing::error!(%error, "read the kernel's table of connections");
                }
            }
            if last {
                return;
            }
        }
    }

    /// Empties the ring buffers.
    fn read(&mut self) {
        // Forks, execs and exits keep the kernel's filter right; nothing is to be done here.
        let _undecodable = self.reader.read(|_record| {});
        let finished = &mut self.finished;
        let undecodable = self.ended.read(|connection| finished.push(connection));
        if undecodable > 0 {
            tracing::error!(undecodable, "records of connections");
        }
        let known = finished.len();
        for index in 0..known {
            let Some(connection) = self.finished.get(index) else {
                break;
            };
            for pid in [connection.pid, connection.opened_by] {
                let table = &self.table;
                self.book.name(pid, || identify(table, pid));
            }
        }
    }

    /// Sends the result so far.
    fn report(&mut self, last: bool) -> Result<(), LoadError> {
        let mut open = Vec::new();
        for connection in self.object.connections()? {
            if connection.flags & FLAG_GONE != 0 {
                self.object.forget_connection(connection.cookie)?;
                self.finished.push(connection);
            } else if connection.flags & FLAG_COMPLETE != 0 {
                open.push(Flow::decode(&connection));
            }
        }
        let mut drops: HashMap<u64, BTreeMap<String, u64>> = HashMap::new();
        let mut keys = HashMap::new();
        for (key, number) in self.object.drops()? {
            let reason = self.reasons.get(&key.reason).cloned();
            let reason = reason.unwrap_or_else(|| format!("reason_{}", key.reason));
            drops.entry(key.cookie).or_default().insert(reason, number);
            keys.entry(key.cookie).or_insert_with(Vec::new).push(key);
        }
        let mut times = self.times()?;
        let now_ns = monotonic_ns();
        for connection in std::mem::take(&mut self.finished) {
            let mut flow = Flow::decode(&connection);
            if let Some(times) = times.remove(&flow.cookie) {
                flow.add_times(&times);
                self.object.forget_call_times(flow.cookie)?;
            }
            for key in keys.remove(&flow.cookie).unwrap_or_default() {
                self.object.forget_drop(key)?;
            }
            flow.metrics.drops_by_reason = drops.remove(&flow.cookie).unwrap_or_default();
            self.book.end(flow, now_ns);
        }
        for flow in &mut open {
            if let Some(times) = times.get(&flow.cookie) {
                flow.add_times(times);
            }
            flow.metrics.drops_by_reason = drops.remove(&flow.cookie).unwrap_or_default();
        }
        let due = last || now_ns.saturating_sub(self.directory_read_ns) >= READ_AGAIN_NS;
        if due && self.book.is_open_question(&open, self.directory_read_ns) {
            self.directory = Directory::read(&self.table, &self.wanted);
            self.directory_read_ns = now_ns;
        }
        let pids = open.iter().filter_map(|flow| flow.pid);
        for pid in pids.chain(self.directory.pids()) {
            let table = &self.table;
            self.book.name(pid, || identify(table, pid));
        }
        self.book.settle(&open, &self.directory, now_ns, last);
        let (mut edges, folded, mut unresolved) = self.book.table(&open, &self.directory);
        if let Some(room) = self.room {
            self.book.fold_silent(&edges, room);
            let table = &self.table;
            self.book
                .forget_names(&open, |pid| table.get(pid).is_some());
        }
        unresolved.extend(self.uncounted_calls()?);
        let (unix_edges, unix_unresolved) = self.report_unix(last)?;
        if let Some(room) = self.room {
            self.unix.fold_silent(&unix_edges, room, now_ns);
        }
        let folded = self.unix.with_folded(folded);
        let mut unavailable = self.sources.unavailable.clone();
        unix_sockets::explain(&mut unavailable, &self.object, &unix_edges);
        edges.extend(unix_edges);
        for (what, count) in unix_unresolved {
            *unresolved.entry(what).or_default() += count;
        }
        let counters = self.object.network_counters()?;
        let counter = |index: u32| counters.get(index as usize).copied().unwrap_or(0);
        let table = EdgeTable {
            edges,
            folded,
            sources: self.sources.from.clone(),
            unavailable,
            unresolved,
            lost_events: counter(LOST_EVENTS),
            lost_bytes: counter(LOST_BYTES),
        };
        self.send(table, last);
        Ok(())
    }

    fn report_unix(&mut self, last: bool) -> Result<(Vec<Edge>, BTreeMap<String, u64>), LoadError> {
        let (book, table) = (&self.book, &self.table);
        let identify = |pid| book.identity(pid).or_else(|| identify(table, pid));
        self.unix
            .report(&mut self.object, table, &self.wanted, identify, last)
    }

    /// Times of system calls so far, by connection.
    fn times(&self) -> Result<HashMap<u64, CallTimes>, LoadError> {
        if !self.links.plan().timed {
            return Ok(HashMap::new());
        }
        Ok(self.object.call_times()?.into_iter().collect())
    }

    /// Calls that could not be counted or timed.
    fn uncounted_calls(&self) -> Result<BTreeMap<String, u64>, LoadError> {
        let counters = self.object.call_counters()?;
        let named = [
            ("calls_left_out", CALLS_LEFT_OUT),
            ("calls_of_unknown_sockets", CALLS_UNBOUND),
            ("times_left_out", TIMES_LEFT_OUT),
        ];
        let numbers = named.into_iter().filter_map(|(name, counter)| {
            let number = *counters.get(counter as usize)?;
            (number > 0).then(|| (name.to_owned(), number))
        });
        Ok(numbers.collect())
    }

    fn send(&self, table: EdgeTable, last: bool) {
        let profile = ProfileBuilder::new(self.origin.epoch_ns, 1, Clock::Switches).finish();
        let chunk = Chunk {
            profile,
            edges: Some(table),
            effective_frequency_hz: 0,
            waits: WaitCounts::default(),
            notes: Vec::new(),
        };
        if last {
            // Nobody listens any more: then nobody misses it.
            let _closed = self.sender.blocking_send(chunk);
        } else {
            // Full: the next one holds all of it.
            let _full = self.sender.try_send(chunk);
        }
    }

    /// Tells the kernel side which connections and listening ports were there before it.
    fn add_existing(&mut self, target: &ResolvedTarget) -> Result<(), LoadError> {
        let now_ns = monotonic_ns();
        for (socket, owner) in self.directory.sockets() {
            if !self.is_wanted(*owner, target) {
                continue;
            }
            if socket.listening {
                let key = ListenerKey {
                    network_namespace: owner.network_namespace,
                    port: u32::from(socket.local.port()),
                };
                self.object.add_listener(key, owner.pid.unwrap_or(0))?;
            } else {
                let listens = self
                    .directory
                    .listens(owner.network_namespace, socket.local.port());
                let connection = existing(socket, *owner, listens, now_ns);
                if !self.object.add_connection(&connection)? {
                    tracing::warn!("more connections than the kernel's table has room for");
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn is_wanted(&self, owner: Owner, target: &ResolvedTarget) -> bool {
        if target.filter == FILTER_ALL {
            return target.network_namespace == 0
                || target.network_namespace == owner.network_namespace;
        }
        owner.pid.is_some_and(|pid| self.wanted.contains(&pid))
    }
}

/// The entry of a connection that is older than the programs. Its totals count from now on.
fn existing(socket: &DiagSocket, owner: Owner, listens: Option<bool>, now_ns: u64) -> Connection {
    let pid = owner.pid.unwrap_or(0);
    Connection {
        cookie: socket.cookie,
        seen_ns: now_ns,
        first_sent: socket.sent_bytes,
        last_sent: socket.sent_bytes,
        first_received: socket.received_bytes,
        last_received: socket.received_bytes,
        first_retransmits: socket.retransmits,
        last_retransmits: socket.retransmits,
        opened_by: pid,
        direction: match listens {
            Some(true) => DIRECTION_SERVER,
            Some(false) => DIRECTION_CLIENT,
            None => DIRECTION_UNKNOWN,
        },
        flags: FLAG_COMPLETE | FLAG_JOINED,
        network_namespace: owner.network_namespace,
        family: if socket.is_ipv6 { 10 } else { 2 },
        local_port: socket.local.port(),
        remote_port: socket.remote.port(),
        local: socket.address_bytes(socket.local.ip()),
        remote: socket.address_bytes(socket.remote.ip()),
        ..Connection::default()
    }
}

/// Name and container of a process that is in the table.
fn identify(table: &ProcessTable, pid: u32) -> Option<Identity> {
    let process = table.get(pid)?;
    Some(Identity {
        comm: process.comm.clone(),
        container: process
            .container
            .as_ref()
            .map(|container| container.id.clone()),
    })
}
