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
    config::{FILTER_ALL, ProbeConfig},
    network::{
        ANSWERS_LOST, CONNECTION_ENTRIES, Connection, FLAG_COMPLETE, FLAG_GONE, LOST_BYTES,
        LOST_EVENTS, ListenerKey,
    },
};
use tokio::sync::mpsc;

use super::{
    Chunk, CollectError, CollectRequest, Collection, Collector, StopHandle,
    board::ProbeStatuses,
    node_sockets::{announce_sources, existing, identify, report_sources, sources, wanted_pids},
    on_cpu::LOOP_WAIT,
    status::{ProbeState, ProbeStatus},
    targets::ResolvedTarget,
    timeline::{Origin, monotonic_ns},
};
use crate::{
    bpf::{
        AnswerReader, Counting, EndedReader, LoadError, LoadedObject, NETWORK_PROGRAMS,
        NetworkLinks, ObjectRequest, RecordReader, drop_reasons,
    },
    model::{Clock, EdgeTable, ProfileBuilder, WaitCounts},
    network::{Book, Directory, Flow, Owner, Sources},
    process::ProcessTable,
};

/// Time between two results.
const REPORT: Duration = Duration::from_secs(1);
/// Time between two readings of the node's sockets, while something is not resolved.
const READ_AGAIN_NS: u64 = 2_000_000_000;
/// So many times as long as a reading takes, at least, is none: it may use 5 % of one CPU.
const READING_SHARE: u32 = 20;
/// Results that may wait for the engine; each holds what the earlier ones held.
const TABLE_QUEUE: usize = 2;

/// Metrics that a program gives.
const METRICS: [(&str, &[&str]); 11] = [
    ("network_destroy", &["close"]),
    ("network_state", &["connect", "close"]),
    ("network_names", &["name"]),
    ("network_ready", &["receive_wait"]),
    ("network_retransmit", &["retransmit"]),
    ("network_drop", &["drop"]),
    ("network_reset_sent", &["reset"]),
    ("network_reset_received", &["reset"]),
    ("network_error", &["error"]),
    ("network_receive", &["read", "receive_wait"]),
    ("network_send", &["write", "write_rtt_us"]),
];

/// Metrics that need more than counting, with what is missing.
const NOT_MEASURED: [(&str, &str); 4] = [
    ("accept", "times of accept calls are not measured"),
    ("read.time_ns", "times of read calls are not measured"),
    ("tls", "payload is not looked at"),
    ("write.time_ns", "times of write calls are not measured"),
];

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
        announce_sources(&statuses, &config.denied);
        Self {
            table,
            statuses,
            config,
            next_id: AtomicU64::new(1),
        }
    }

    fn load(&self, target: &ResolvedTarget) -> Result<LoadedObject, LoadError> {
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
            },
            denied: self.config.denied.clone(),
        })?;
        for failure in failures {
            tracing::debug!(%failure, "children of targets may be missed");
        }
        target.fill(&mut object)?;
        Ok(object)
    }

    /// Writes the state of every program, and says which metrics are missing for which reason.
    fn report(&self, failures: &[LoadError]) -> BTreeMap<String, String> {
        let mut unavailable: BTreeMap<String, String> = NOT_MEASURED
            .iter()
            .map(|(metric, reason)| ((*metric).to_owned(), (*reason).to_owned()))
            .collect();
        for program in NETWORK_PROGRAMS {
            let failure = failures
                .iter()
                .find(|failure| failure.program() == Some(program.name));
            let state = match failure {
                None => ProbeState::Attached,
                Some(LoadError::Denied(_)) => ProbeState::Denied,
                Some(_) => ProbeState::Unavailable,
            };
            self.statuses.set(ProbeStatus {
                name: program.name.to_owned(),
                state,
                reason: failure.map(ToString::to_string),
                minimum_kernel: program.minimum_kernel.to_owned(),
            });
            let metrics = METRICS.iter().find(|(name, _)| *name == program.name);
            if let (Some(failure), Some((_, metrics))) = (failure, metrics) {
                for metric in *metrics {
                    unavailable.insert((*metric).to_owned(), failure.to_string());
                }
            }
        }
        unavailable
    }
}

impl Collector for NetworkCollector {
    fn start(&self, request: &CollectRequest) -> Result<Collection, CollectError> {
        let mut target = ResolvedTarget::resolve(&request.spec.target, &self.table)?;
        let failed = |error: LoadError| CollectError::Probe {
            probe: "network",
            reason: error.to_string(),
        };
        let mut object = self.load(&target).map_err(failed)?;
        let reader = object.take_reader().map_err(failed)?;
        let ended = object.take_ended().map_err(failed)?;
        let answers = object.take_answers().map_err(failed)?;
        let (links, failures) = object.attach_network();
        let unavailable = self.report(&failures);
        if failures.len() == NETWORK_PROGRAMS.len()
            && let Some(first) = failures.into_iter().next()
        {
            return Err(failed(first));
        }
        // Now, and not before: what begins from here on is seen by the programs.
        let wanted = wanted_pids(&target, &self.table);
        let sources = sources(&self.config.denied);
        let reading = Instant::now();
        let directory = Directory::read(&self.table, &wanted, sources, Directory::default());
        report_sources(&self.statuses, &self.config.denied, &directory);
        let origin = Origin::now();
        let notes = std::mem::take(&mut target.notes);
        let (sender, chunks) = mpsc::channel(TABLE_QUEUE);
        let (stop, stopped) = StopHandle::new();
        let mut session = Session {
            object,
            reader,
            ended,
            answers,
            links,
            table: self.table.clone(),
            wanted,
            directory,
            directory_read_ns: monotonic_ns(),
            reading_took: reading.elapsed(),
            sources,
            book: Book::default(),
            finished: Vec::new(),
            reasons: drop_reasons(),
            unavailable,
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

/// The thread's own state.
#[derive(Debug)]
struct Session {
    object: LoadedObject,
    reader: RecordReader,
    ended: EndedReader,
    answers: AnswerReader,
    links: NetworkLinks,
    table: ProcessTable,
    wanted: BTreeSet<u32>,
    directory: Directory,
    /// When it was, on the kernel's clock.
    directory_read_ns: u64,
    reading_took: Duration,
    sources: Sources,
    book: Book,
    /// Ended since the last result.
    finished: Vec<Connection>,
    reasons: BTreeMap<u32, String>,
    unavailable: BTreeMap<String, String>,
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
        let names = self.book.names();
        self.answers
            .read(|namespace, message| names.answer(namespace, message));
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
            let flow = Flow::decode(connection);
            if let Some(process) = flow.process {
                let table = &self.table;
                self.book.names().name(process, || identify(table, process));
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
                let flow = Flow::decode(&connection);
                self.book.name_user(&flow);
                open.push(flow);
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
        let now_ns = monotonic_ns();
        for connection in std::mem::take(&mut self.finished) {
            let mut flow = Flow::decode(&connection);
            for key in keys.remove(&flow.cookie).unwrap_or_default() {
                self.object.forget_drop(key)?;
            }
            flow.metrics.drops_by_reason = drops.remove(&flow.cookie).unwrap_or_default();
            self.book.end(flow, now_ns);
        }
        for flow in &mut open {
            flow.metrics.drops_by_reason = drops.remove(&flow.cookie).unwrap_or_default();
        }
        self.read_directory(&open, last);
        self.name_processes(&open);
        let directory = (&self.directory, self.directory_read_ns);
        self.book.settle(&open, directory, now_ns, last);
        let (edges, mut unresolved) = self.book.table(&open, &self.directory);
        let counters = self.object.network_counters()?;
        let counter = |index: u32| counters.get(index as usize).copied().unwrap_or(0);
        if counter(ANSWERS_LOST) > 0 {
            unresolved.insert("name_answers_lost".to_owned(), counter(ANSWERS_LOST));
        }
        let table = EdgeTable {
            edges,
            unavailable: self.unavailable(),
            unresolved,
            lost_events: counter(LOST_EVENTS),
            lost_bytes: counter(LOST_BYTES),
        };
        self.send(table, last);
        Ok(())
    }

    /// Reads the node's sockets again when something may be found there, and not too often.
    fn read_directory(&mut self, open: &[Flow], last: bool) {
        let now_ns = monotonic_ns();
        let rest = self.reading_took * READING_SHARE;
        let rest_ns = u64::try_from(rest.as_nanos()).unwrap_or(u64::MAX);
        let due_ns = self
            .directory_read_ns
            .saturating_add(rest_ns.max(READ_AGAIN_NS));
        let due = last || now_ns >= due_ns;
        if !due || !self.book.is_open_question(open, self.directory_read_ns) {
            return;
        }
        let reading = Instant::now();
        let before = std::mem::take(&mut self.directory);
        self.directory = Directory::read(&self.table, &self.wanted, self.sources, before);
        self.reading_took = reading.elapsed();
        tracing::debug!(took = ?self.reading_took, sockets = self.directory.sockets().count(), "read the node's sockets");
        // What began while it was read may be missing.
        self.directory_read_ns = now_ns;
    }

    /// Names the processes of connections, while they are there.
    fn name_processes(&mut self, open: &[Flow]) {
        let mut missing = BTreeSet::new();
        let used = open.iter().filter_map(|flow| flow.process);
        for process in used {
            let table = &self.table;
            let names = self.book.names();
            if !names.name(process, || identify(table, process)) {
                missing.insert(process);
            }
        }
        for process in self.directory.processes() {
            let table = &self.table;
            self.book.names().name(process, || identify(table, process));
        }
        if missing.is_empty() {
            return;
        }
        self.table.refresh();
        for process in missing {
            let table = &self.table;
            let names = self.book.names();
            if !names.name(process, || identify(table, process)) {
                // It is gone, or hidden: nobody looks for it again.
                names.give_up(process);
            }
        }
    }

    /// Metrics that are missing, and facts that may be.
    fn unavailable(&self) -> BTreeMap<String, String> {
        let mut unavailable = self.unavailable.clone();
        let (conntrack, originals) = self.directory.failures();
        if let Some(reason) = conntrack {
            unavailable.insert("translated_addresses".to_owned(), reason.to_owned());
        }
        if let Some(reason) = originals {
            unavailable.insert("original_destination".to_owned(), reason.to_owned());
        }
        unavailable
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
        // Not later, so that the directory is known to hold them.
        let now_ns = self.directory_read_ns;
        for (socket, owner) in self.directory.sockets() {
            if !self.is_wanted(*owner, target) {
                continue;
            }
            if socket.listening {
                let key = ListenerKey {
                    network_namespace: owner.network_namespace,
                    port: u32::from(socket.local.port()),
                };
                let pid = owner.process.map_or(0, |process| process.pid);
                self.object.add_listener(key, pid)?;
            } else {
                let listens = self
                    .directory
                    .listeners()
                    .listens(owner.network_namespace, socket.local);
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
        owner
            .process
            .is_some_and(|process| self.wanted.contains(&process.pid))
    }
}
