//! Connections: starts the programs that watch them, and adds up what they count, on a thread of its
//! own for each task.

#[path = "network_remarks.rs"]
mod remarks;
#[path = "network_requests.rs"]
mod requests;
#[path = "network_upkeep.rs"]
mod upkeep;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use profiler_common::{
    config::ProbeConfig,
    http::{COUNTED, HttpCounts},
    network::{CONNECTION_ENTRIES, Connection, FLAG_EVICTED, LOST_BYTES, LOST_EVENTS, REFUSED},
    network_calls::CallTimes,
};
use profiler_host::process::ProcessTable;
use profiler_model::{EdgeSpec, EdgeTable, ProcessKey, RequestOptions, Target, Window};
use profiler_network::edges::{
    Connections, EdgeAggregator, EdgeLimit, EvictedConnections, Flow, Met, SocketTable, fold_idle,
    user_of,
};
use profiler_recording::{self as recording, Chunk, CollectError, Collection, Part, StopHandle};
use profiler_sandbox::broker::Helper;
use requests::Requests;
use tokio::sync::mpsc;

use super::{
    board::{ProbeStatuses, ProgramRuns},
    ended::Ended,
    network_sources::MetricSources,
    node_sockets::{
        SocketReader, announce_sources, existing, identify, report_sources, wanted_pids,
    },
    process_events::event,
    targets::{ResolvedTarget, TARGET_ENDED},
    timeline::{LOOP_WAIT, Origin, monotonic_ns},
    tls_targets::TlsTargets,
    unix_sockets::{self, UnixReport, UnixSockets},
};
use crate::bpf::{
    AnswerReader, Counting, LoadError, LoadedObject, NetworkLinks, ObjectRequest, ProgramRow,
    Record, RecordReader, drop_reasons, network_programs, row,
};

/// Time between two results.
const REPORT: Duration = Duration::from_secs(1);
/// Results take at most one part of the time in this many.
const BUSY_SHARE: u32 = 5;
/// Results that may wait for the engine; each holds what the earlier ones held.
const TABLE_QUEUE: usize = 2;

/// The program that makes room in the kernel's table, and what it is called where it is missing.
const EVICTOR: &ProgramRow = row("network_evict");
const EVICTION: &str = "eviction";

#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// Programs that must not be used (`--deny-probe`).
    pub denied: Vec<String>,
    /// Connections that are watched at once.
    pub connections: u32,
    /// The kernel counts runs and times of programs.
    pub bpf_statistics: bool,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            denied: Vec::new(),
            connections: CONNECTION_ENTRIES,
            bpf_statistics: false,
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
        for program in network_programs() {
            statuses.announce(program.name, program.minimum_kernel, &config.denied);
        }
        requests::announce(&statuses, &config.denied);
        announce_sources(&statuses, &config.denied);
        Self {
            table,
            statuses,
            config,
            next_id: AtomicU64::new(1),
        }
    }

    fn load(
        &self,
        target: &ResolvedTarget,
        EdgeSpec { timed }: EdgeSpec,
        options: Option<&RequestOptions>,
    ) -> Result<LoadedObject, LoadError> {
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
                capture_bytes: options.map(|options| options.capture_bytes),
                tls_bytes: options.and_then(requests::tls_bytes),
            },
            denied: self.config.denied.clone(),
        })?;
        for failure in failures {
            tracing::debug!(%failure, "children of targets may be missed");
        }
        target.fill(&mut object)?;
        Ok(object)
    }

    /// Watches the connections of a target, and looks for requests in them where `options` are given. Loads and
    /// attaches; blocks. The task's `duration_s` bounds what is kept of it; to stop then is the caller's business.
    pub fn start(
        &self,
        target: &Target,
        duration_s: Option<u64>,
        edges: EdgeSpec,
        options: Option<&RequestOptions>,
    ) -> Result<Collection, CollectError> {
        let mut target = ResolvedTarget::resolve(target, &self.table)?;
        let failed = |error: LoadError| CollectError::Probe {
            probe: "network",
            reason: error.to_string(),
        };
        let mut object = self.load(&target, edges, options).map_err(failed)?;
        let reader = object.take_reader().map_err(failed)?;
        let ended = object.take_ended().map_err(failed)?;
        let answers = object.take_answers().map_err(failed)?;
        let (links, mut failures) = object.attach_network();
        // Reads and writes are counted from now on; what follows may take a second.
        let origin = Origin::now();
        let mut sources = self.report(&links, &failures);
        let evictor = failures
            .iter()
            .find(|failure| failure.program() == Some(EVICTOR.name));
        if let Some(failure) = evictor {
            sources
                .unavailable
                .insert(EVICTION.to_owned(), failure.to_string());
        }
        let can_evict = evictor.is_none();
        if options.is_some() {
            self.statuses.set(requests::status(&links, &failures));
            requests::check(&links, &failures)?;
        }
        if links.is_empty() && !failures.is_empty() {
            return Err(failed(failures.swap_remove(0)));
        }
        // Now, and not before: what begins from here on is seen by the programs.
        let wanted = wanted_pids(&target, &self.table);
        let mut sockets = SocketReader::new(&self.config.denied);
        let reading = Instant::now();
        let socket_table = sockets.read(&self.table, &wanted, &SocketTable::default());
        report_sources(&self.statuses, &self.config.denied, &socket_table);
        let notes = std::mem::take(&mut target.notes);
        let (sender, chunks) = mpsc::channel(TABLE_QUEUE);
        let (stop, stopped) = StopHandle::new();
        let unix =
            UnixSockets::start(&mut object, &self.table, &target, &wanted).map_err(failed)?;
        let can_end = target.can_end();
        let mut aggregator = EdgeAggregator::default();
        if options.is_some() {
            aggregator.remember_edges();
        }
        let mut session = NetworkSession {
            unix,
            requests: None,
            closed: 0,
            program_runs: self.statuses.program_runs(self.config.bpf_statistics),
            object,
            reader,
            answers,
            dns: Helper::start("dns").map_err(|error| CollectError::Probe {
                probe: "network",
                reason: format!("start the thread that reads answers: {error}"),
            })?,
            ended: Ended::start(ended).map_err(|error| CollectError::Probe {
                probe: "network",
                reason: format!("start the thread that reads ends: {error}"),
            })?,
            links,
            table: self.table.clone(),
            wanted,
            socket_table,
            sockets_read_ns: monotonic_ns(),
            reading_took: reading.elapsed(),
            listeners_refused: 0,
            sockets,
            swept_ns: monotonic_ns(),
            capacity: self.config.connections,
            can_evict,
            can_end,
            evicted: EvictedConnections::new(self.config.connections),
            aggregator,
            sought: HashSet::new(),
            edge_limit: EdgeLimit::of(duration_s),
            finished: Vec::new(),
            reasons: drop_reasons(),
            sources,
            origin,
            ends_ns: duration_s.map(|seconds| {
                let duration_ns = seconds.saturating_mul(1_000_000_000);
                origin.kernel_ns.saturating_add(duration_ns)
            }),
            sender,
            target,
        };
        let directions = session.add_existing(options.is_some()).map_err(failed)?;
        if let Some(options) = options {
            session.requests = Some(Requests::start(
                &mut session.object,
                &failures,
                (options, TlsTargets::of(&session.target)),
                directions,
                origin,
                &mut session.sources,
            )?);
        }
        session.settle_tls();
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
            already: origin.elapsed(),
            clock: None,
            effective_frequency_hz: None,
            notes,
            chunks,
            stop,
        })
    }
}

/// The thread's own state.
#[derive(Debug)]
struct NetworkSession {
    object: LoadedObject,
    program_runs: ProgramRuns,
    reader: RecordReader,
    ended: Ended,
    answers: AnswerReader,
    /// Reads what name servers have said.
    dns: Helper,
    links: NetworkLinks,
    table: ProcessTable,
    wanted: BTreeSet<u32>,
    target: ResolvedTarget,
    socket_table: SocketTable,
    /// When it was, on the kernel's clock.
    sockets_read_ns: u64,
    reading_took: Duration,
    /// Ports that are listened on and were not given to the kernel side, for want of room.
    listeners_refused: u64,
    sockets: SocketReader,
    /// When ends that were missed were looked for.
    swept_ns: u64,
    /// Entries of the kernel's table.
    capacity: u32,
    can_evict: bool,
    /// The target may end, and its end has not been reported.
    can_end: bool,
    evicted: EvictedConnections,
    aggregator: EdgeAggregator,
    unix: UnixSockets,
    /// Processes of Unix sockets that were looked for because they were not in the table.
    sought: HashSet<ProcessKey>,
    /// For a collection without end.
    edge_limit: Option<EdgeLimit>,
    /// Ended since the last result.
    finished: Vec<Connection>,
    /// Where the task looks for requests.
    requests: Option<Requests>,
    /// Of [`Self::finished`], those whose end was reported there.
    closed: usize,
    reasons: BTreeMap<u32, String>,
    sources: MetricSources,
    origin: Origin,
    /// When it will be asked to stop, on the kernel's clock; `None` without a duration.
    ends_ns: Option<u64>,
    sender: mpsc::Sender<Chunk>,
}

impl NetworkSession {
    fn run(mut self, stopped: &Arc<AtomicBool>) {
        let mut reported = Instant::now();
        let mut pause = REPORT;
        let mut longest = Duration::ZERO;
        loop {
            let last = stopped.load(Ordering::Relaxed) || self.sender.is_closed();
            let (mut detached_ns, mut ended) = (None, None);
            if last {
                (detached_ns, ended) = (Some(monotonic_ns()), Some(Instant::now()));
                self.links.detach();
            } else {
                self.reader.wait(LOOP_WAIT);
            }
            self.read();
            self.probe_tls(ended);
            if last || (reported.elapsed() >= pause && self.has_time(longest)) {
                reported = Instant::now();
                if let Err(error) = self.report(detached_ns) {
                    tracing::error!(%error, "read the kernel's table of connections");
                }
                longest = longest.max(reported.elapsed());
                // With very many connections a result takes long; it must not take all of a CPU.
                pause = REPORT.max(reported.elapsed() * BUSY_SHARE);
            }
            if last {
                return;
            }
        }
    }

    /// Empties the ring buffers.
    fn read(&mut self) {
        let (table, origin) = (&self.table, self.origin);
        let _undecodable = self.reader.read(|record| {
            if let Record::Process(record) = record
                && let Some(event) = event(&record, origin)
            {
                table.observe(&event);
            }
        });
        self.read_answers();
        let known = self.finished.len();
        let finished = &mut self.finished;
        for connection in self.ended.take() {
            if connection.flags & FLAG_EVICTED != 0 {
                self.evicted.rest(connection);
            } else {
                finished.push(self.evicted.end(&connection));
            }
        }
        let ended = self.finished.iter().skip(known);
        let users: BTreeSet<ProcessKey> = ended.filter_map(user_of).collect();
        for process in users {
            self.name_process(process);
        }
        self.close_ended();
    }

    /// Tells of the newest ends where requests are looked for.
    fn close_ended(&mut self) {
        if let Some(requests) = &mut self.requests {
            requests.close(self.finished.get(self.closed..).unwrap_or_default());
        }
        self.closed = self.finished.len();
    }

    /// Whether a result that takes this long is made before the end, which must not wait for it: the
    /// last one has all of it.
    fn has_time(&self, takes: Duration) -> bool {
        let takes_ns = u64::try_from(takes.as_nanos()).unwrap_or(u64::MAX);
        self.ends_ns
            .is_none_or(|ends_ns| monotonic_ns().saturating_add(takes_ns) <= ends_ns)
    }

    /// Sends the result so far; the last one when the programs are detached.
    fn report(&mut self, detached_ns: Option<u64>) -> Result<(), LoadError> {
        let last = detached_ns.is_some();
        self.program_runs.publish(&self.object);
        // Listing Unix sockets may take long; all counts are of the time after it.
        let unix_ends = self
            .unix
            .read(&self.object, &self.table, &self.wanted, last)?;
        self.read();
        let counted_ns = detached_ns.unwrap_or_else(monotonic_ns);
        // Before the connections: a request that becomes one of these meanwhile is missing, and not there twice.
        let http = self.http_counts()?;
        let entries = self.entries(last)?;
        let table: HashSet<u64> = entries.iter().map(|entry| entry.cookie).collect();
        let mut open: Vec<Flow> = entries
            .iter()
            .map(|entry| Flow::decode(&self.evicted.whole(entry)))
            .collect();
        let evicted = self.evicted.outside(&table);
        open.extend(evicted.iter().map(Flow::decode));
        for flow in &open {
            self.aggregator.name_user(flow);
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
        self.close_ended();
        self.closed = 0;
        for connection in std::mem::take(&mut self.finished) {
            let mut flow = Flow::decode(&connection);
            if let Some(times) = times.remove(&flow.cookie) {
                flow.add_times(&times);
                self.object.forget_call_times(flow.cookie)?;
            }
            // Read now: what was read before may be older than its end.
            if connection.http & COUNTED != 0
                && let Some(counts) = self.object.take_http_counts(flow.cookie)?
            {
                flow.add_requests(&counts);
            }
            for key in keys.remove(&flow.cookie).unwrap_or_default() {
                self.object.forget_drop(key)?;
            }
            flow.metrics.drops_by_reason = drops.remove(&flow.cookie).unwrap_or_default();
            self.aggregator.end(flow, now_ns);
        }
        for flow in &mut open {
            if let Some(times) = times.get(&flow.cookie) {
                flow.add_times(times);
            }
            if let Some(counts) = http.get(&flow.cookie) {
                flow.add_requests(counts);
            }
            flow.metrics.drops_by_reason = drops.remove(&flow.cookie).unwrap_or_default();
        }
        self.read_sockets(&open, last);
        self.name_processes(&open);
        let socket_table = (&self.socket_table, self.sockets_read_ns);
        self.aggregator.settle(&open, socket_table, now_ns, last);
        let mut connections = Connections::default();
        let mut met = Vec::new();
        let (mut edges, folded, mut unresolved) =
            self.aggregator
                .table_with(&open, &self.socket_table, |pair, direction, flow| {
                    met.push(Met::new(pair, flow));
                    connections.note(pair, direction, flow);
                });
        let connections = connections.finish(now_ns);
        let UnixReport {
            edges: unix_edges,
            unresolved: unix_unresolved,
            edge_of_connection: of_unix_sockets,
            gone: unix_gone,
        } = self.report_unix(unix_ends)?;
        let requests = match &mut self.requests {
            Some(requests) => {
                requests.close_unix(&unix_gone);
                let mut edge_of_connection = self.aggregator.take_edges_of_connections(met);
                edge_of_connection.extend(of_unix_sockets);
                requests.table(&self.object, edge_of_connection, counted_ns, last)?
            }
            None => None,
        };
        unresolved.extend(self.uncounted_calls()?);
        let folded = self.unix.with_folded(folded);
        if let Some(edge_limit) = self.edge_limit {
            let unix_aggregator = self.unix.aggregator_mut();
            let unix = (unix_aggregator, unix_edges.as_slice());
            fold_idle((&mut self.aggregator, &edges), unix, edge_limit, now_ns);
            self.forget_names(&open);
        }
        let mut unavailable = self.unavailable();
        unix_sockets::explain(
            &mut unavailable,
            &self.sources.from,
            &self.object,
            &unix_edges,
        );
        edges.extend(unix_edges);
        for (what, count) in unix_unresolved {
            *unresolved.entry(what).or_default() += count;
        }
        let counters = self.counters()?;
        unresolved.extend(self.not_kept(&counters));
        let result = EdgeTable {
            edges,
            folded,
            sources: self.sources_now(),
            unavailable,
            unresolved,
            lost_events: counters.of(LOST_EVENTS),
            lost_bytes: counters.of(LOST_BYTES),
            kernel_table: self.kernel_table(table.len(), &counters),
            window: Some(Window {
                from_ns: self.origin.epoch_ns,
                to_ns: self.origin.to_epoch_ns(counted_ns),
            }),
            connections,
        };
        let gone = self.is_target_gone()?;
        let remark = self.requests.as_mut().and_then(Requests::remark);
        let ended = gone.then(|| TARGET_ENDED.to_owned());
        let part = match requests {
            Some((mut table, at_sockets)) => {
                // What did not fit the table of connections was not counted, nor what the programs were not called for.
                let is_whole = result.lost_events == 0
                    && counters.of(REFUSED) == 0
                    && !requests::has_missed(&result.kernel_table);
                for counted in &mut table.counted {
                    counted.is_exact &= is_whole;
                }
                Part::Requests(recording::Requests {
                    edges: result,
                    table,
                    at_sockets,
                })
            }
            None => Part::Edges(result),
        };
        // Pods that fit the target's selector by now.
        let followed = if last {
            Vec::new()
        } else {
            self.target.follow(&self.table, &mut self.object)
        };
        let notes = ended.into_iter().chain(remark).chain(followed).collect();
        let chunk = Chunk {
            part,
            target_ended: gone,
            notes,
        };
        if self.send(chunk, last) && gone {
            // It is reported once.
            self.can_end = false;
        }
        if !last {
            self.make_room(&table)?;
        }
        Ok(())
    }

    /// Times of system calls so far, by connection.
    fn times(&self) -> Result<HashMap<u64, CallTimes>, LoadError> {
        if !self.links.plan().timed {
            return Ok(HashMap::new());
        }
        self.object.call_times()
    }

    /// Requests of HTTP so far, by connection.
    fn http_counts(&self) -> Result<HashMap<u64, HttpCounts>, LoadError> {
        if self.requests.is_none() {
            return Ok(HashMap::new());
        }
        self.object.http_counts()
    }

    /// Hands a result over; false when there is no room for it.
    fn send(&self, chunk: Chunk, last: bool) -> bool {
        if last {
            // Fails only without a receiver, which then misses nothing.
            self.sender.blocking_send(chunk).is_ok()
        } else {
            // Full: the next one holds all of it.
            self.sender.try_send(chunk).is_ok()
        }
    }
}
