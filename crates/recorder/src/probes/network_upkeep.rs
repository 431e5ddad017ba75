//! Keeps what a session knows in order: the kernel's table of connections, which entries leave when
//! they rest and it is nearly full, or when their end was missed; the node's sockets; and the names of
//! processes.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Instant,
};

use profiler_common::{
    config::FILTER_ALL,
    network::{
        ANSWERS_LOST, Connection, DROP_REASONS_LOST, FLAG_COMPLETE, FLAG_GONE, LISTENERS_LOST,
        ListenerKey, NETWORK_COUNTERS, RECORDS_DELAYED, REFUSED,
    },
};
use profiler_model::{KernelTable, ProcessKey};
use profiler_network::edges::{Flow, Owner, UnixEnd, read_answer};

use super::{
    super::{
        targets::is_process,
        unix_sockets::{SocketsWanted, UnixReport},
    },
    NetworkSession, existing, identify, monotonic_ns,
};
use crate::bpf::{LoadError, LoadedObject};

/// Time between two readings of the node's sockets, while something is not resolved.
const READ_AGAIN_NS: u64 = 2_000_000_000;
/// So many times as long as a reading takes, at least, is none: it may use 5 % of one CPU.
const READING_SHARE: u32 = 20;

/// Answers of name servers that are decoded at once: a bound on what is copied, as more may come while they are taken.
const ANSWERS_AT_ONCE: usize = 1 << 14;

/// Processes of Unix sockets that are remembered as not found; then each may be looked for again.
const MAX_SOUGHT: usize = 10_000;

/// Time between two looks for connections whose end was missed.
const SWEEP_NS: u64 = 20_000_000_000;

/// Counters of the network programs at one moment.
pub(super) struct NetworkCounters([u64; NETWORK_COUNTERS as usize]);

impl NetworkCounters {
    pub(super) fn of(&self, counter: u32) -> u64 {
        self.0.get(counter as usize).copied().unwrap_or(0)
    }
}

impl NetworkSession {
    /// What is known of Unix sockets.
    pub(super) fn report_unix(&mut self, ends: Vec<UnixEnd>) -> Result<UnixReport, LoadError> {
        if self.sought.len() > MAX_SOUGHT {
            self.sought.clear();
        }
        let table = &self.table;
        let names = RefCell::new(self.aggregator.names());
        let sought = RefCell::new(&mut self.sought);
        let mut may_refresh = true;
        // The name that was seen with the socket is used when the process is gone before it is looked up.
        for end in &ends {
            if let Some(process) = end.process {
                names.borrow_mut().name_thread(process, &end.comm);
            }
        }
        let identify = RefCell::new(|process: ProcessKey| {
            let mut names = names.borrow_mut();
            let is_named = names.name(process, || identify(table, process));
            if !is_named && may_refresh && sought.borrow_mut().insert(process) {
                may_refresh = false;
                table.refresh();
                names.name(process, || identify(table, process));
            }
            names.identity(process)
        });
        let identify = |process| identify.borrow_mut()(process);
        let wants = if self.requests.is_some() {
            SocketsWanted::Yes
        } else {
            SocketsWanted::No
        };
        self.unix.report(&mut self.object, ends, identify, wants)
    }

    pub(super) fn counters(&self) -> Result<NetworkCounters, LoadError> {
        self.object.network_counters().map(NetworkCounters)
    }

    /// What the kernel side could not keep, beside the counts of connections: by its name in
    /// `unresolved`, without what is complete.
    pub(super) fn not_kept(&self, counters: &NetworkCounters) -> BTreeMap<String, u64> {
        let listeners = counters.of(LISTENERS_LOST) + self.listeners_refused;
        let named = [
            ("name_answers_lost", counters.of(ANSWERS_LOST)),
            ("drop_reasons_lost", counters.of(DROP_REASONS_LOST)),
            ("listening_ports_lost", listeners),
        ];
        let named = named.into_iter().filter(|(_, number)| *number > 0);
        named
            .map(|(name, number)| (name.to_owned(), number))
            .collect()
    }

    /// Tells the kernel side which connections and listening ports were there before it. Which end connections are: `true` for
    /// clients.
    pub(super) fn add_existing(
        &mut self,
        has_requests: bool,
    ) -> Result<HashMap<u64, bool>, LoadError> {
        // Not later, so that the table of sockets is known to hold them.
        let now_ns = self.sockets_read_ns;
        // The programs have met busy ones before, and could not know which end they are.
        let mut directions = HashMap::new();
        for (socket, owner) in self.socket_table.sockets() {
            if !self.is_wanted(*owner) {
                continue;
            }
            let cookie = socket.cookie;
            if socket.listening {
                let key = ListenerKey {
                    network_namespace: owner.network_namespace,
                    port: u32::from(socket.local.port()),
                };
                if !self.object.add_listener(key, cookie)? {
                    self.listeners_refused += 1;
                }
            } else if let Some(cookie) = cookie {
                let listens = self
                    .socket_table
                    .listeners()
                    .listens(owner.network_namespace, socket.local);
                if let Some(listens) = listens {
                    directions.insert(cookie, !listens);
                }
                let connection = existing((socket, cookie), *owner, listens, now_ns);
                if !self.object.add_connection(&connection)? {
                    tracing::warn!("more connections than the kernel's table has room for");
                    break;
                }
                if has_requests && listens.is_some() {
                    self.object.direct(cookie, connection.direction)?;
                }
            }
        }
        Ok(directions)
    }

    /// Connections in the kernel's table, without those that have ended. Ports that are no longer listened on
    /// leave its table as well, so that connections of others to them are not taken for the target's.
    pub(super) fn entries(&mut self, last: bool) -> Result<Vec<Connection>, LoadError> {
        self.object.forget_listeners()?;
        let mut entries = self.object.connections()?;
        let mut forgotten = Vec::new();
        entries.retain(|entry| {
            if entry.flags & FLAG_GONE != 0 {
                forgotten.push(*entry);
            }
            entry.flags & (FLAG_GONE | FLAG_COMPLETE) == FLAG_COMPLETE
        });
        for entry in forgotten {
            self.object.forget_connection(entry.cookie)?;
            let whole = self.evicted.end(&entry);
            self.finished.push(whole);
        }
        // At the end as well: idle connections may have ended unnoticed.
        if last || monotonic_ns().saturating_sub(self.swept_ns) >= SWEEP_NS {
            self.sweep(&mut entries)?;
        }
        Ok(entries)
    }

    /// Whether no process is left that the target could be.
    pub(super) fn is_target_gone(&self) -> Result<bool, LoadError> {
        if !self.can_end {
            return Ok(false);
        }
        // One that ended before it was watched stays in the kernel's table.
        Ok(!self.object.target_pids()?.into_iter().any(is_process))
    }

    /// What is to be reported about the table, given the number of its entries in use.
    pub(super) fn kernel_table(&mut self, used: usize, counters: &NetworkCounters) -> KernelTable {
        KernelTable {
            capacity: u64::from(self.capacity),
            used: used as u64,
            refused: counters.of(REFUSED),
            evicted: self.evicted.evicted,
            swept: self.evicted.swept,
            missed_runs: self.object.missed_runs(),
            delayed: counters.of(RECORDS_DELAYED),
        }
    }

    /// Takes the answers of name servers, which a thread without capabilities reads.
    pub(super) fn read_answers(&mut self) {
        let (dns, names) = (&self.dns, self.aggregator.names());
        let mut decode = |messages: Vec<(u32, Vec<u8>)>| {
            let read = dns.run(move || {
                let read = messages
                    .into_iter()
                    .filter_map(|(namespace, message)| Some((namespace, read_answer(&message)?)));
                read.collect::<Vec<_>>()
            });
            match read {
                Ok(answers) => {
                    for (namespace, answer) in answers {
                        names.answer(namespace, answer);
                    }
                }
                Err(error) => tracing::error!(%error, "read the answers of name servers"),
            }
        };
        let mut messages = Vec::new();
        self.answers.read(|namespace, message| {
            messages.push((namespace, message.to_vec()));
            if messages.len() == ANSWERS_AT_ONCE {
                decode(std::mem::take(&mut messages));
            }
        });
        if !messages.is_empty() {
            decode(messages);
        }
    }

    /// Reads the node's sockets again when something may be found there, and not too often.
    pub(super) fn read_sockets(&mut self, open: &[Flow], last: bool) {
        let rest = self.reading_took * READING_SHARE;
        let rest_ns = u64::try_from(rest.as_nanos()).unwrap_or(u64::MAX);
        let due_ns = self
            .sockets_read_ns
            .saturating_add(rest_ns.max(READ_AGAIN_NS));
        // At the end the sweep has read them, and then this has no question that is younger.
        let due = last || monotonic_ns() >= due_ns;
        if due && self.aggregator.is_open_question(open, self.sockets_read_ns) {
            self.read_node();
        }
    }

    /// Reads the node's sockets.
    fn read_node(&mut self) {
        // What begins while they are read may be missing.
        self.sockets_read_ns = monotonic_ns();
        let reading = Instant::now();
        let before = std::mem::take(&mut self.socket_table);
        self.socket_table = self.sockets.read(&self.table, &self.wanted, &before);
        self.reading_took = reading.elapsed();
        tracing::debug!(took = ?self.reading_took, sockets = self.socket_table.sockets().count(), "read the node's sockets");
    }

    /// Names the processes of connections, while they are there. Each is asked for once, however many
    /// connections it has.
    pub(super) fn name_processes(&mut self, open: &[Flow]) {
        let used: BTreeSet<ProcessKey> = open.iter().filter_map(|flow| flow.process).collect();
        let beside: BTreeSet<ProcessKey> = self.socket_table.processes().collect();
        for process in beside.difference(&used) {
            self.name_process(*process);
        }
        let missing: Vec<ProcessKey> = used
            .into_iter()
            .filter(|process| !self.name_process(*process))
            .collect();
        if missing.is_empty() {
            return;
        }
        self.table.refresh();
        for process in missing {
            if !self.name_process(process) {
                // It is gone, or hidden: it is not looked for again.
                self.aggregator.names().give_up(process);
            }
        }
    }

    /// Forgets the names of processes that are gone and that no edge shows.
    pub(super) fn forget_names(&mut self, open: &[Flow]) {
        let unix: HashSet<ProcessKey> = self.unix.processes().collect();
        let table = &self.table;
        self.aggregator.forget_names(open, |process| {
            let known = table.get(process.pid);
            unix.contains(&process) || known.is_some_and(|known| known.key == process)
        });
    }

    /// False: the process is not there and was never named.
    pub(super) fn name_process(&mut self, process: ProcessKey) -> bool {
        let table = &self.table;
        self.aggregator
            .names()
            .name(process, || identify(table, process))
    }

    /// Ends the connections whose end was missed; takes them out of `entries`.
    ///
    /// Only a connection that two readings do not list is gone: the kernel lists sockets in pieces and
    /// continues within a hash bucket by the number of sockets already listed, so it passes over a socket
    /// when one before it in its bucket has closed meanwhile (`inet_diag_dump_icsk`).
    fn sweep(&mut self, entries: &mut Vec<Connection>) -> Result<(), LoadError> {
        let mut gone = self.unlisted(entries);
        self.swept_ns = self.sockets_read_ns;
        if !gone.is_empty() {
            let again = self.unlisted(entries);
            gone.retain(|cookie| again.contains(cookie));
        }
        for entry in entries.extract_if(.., |entry| gone.contains(&entry.cookie)) {
            self.object.forget_connection(entry.cookie)?;
            self.finished
                .extend(self.evicted.sweep(entry.cookie, Some(&entry)));
        }
        for cookie in gone {
            self.finished.extend(self.evicted.sweep(cookie, None));
        }
        Ok(())
    }

    /// Cookies of the connections that the kernel does not list, read now.
    fn unlisted(&mut self, entries: &[Connection]) -> HashSet<u64> {
        self.read_node();
        let socket_table = &self.socket_table;
        let listed: HashSet<u64> = socket_table
            .sockets()
            .filter_map(|(socket, _owner)| socket.cookie)
            .collect();
        let is_known = |namespace| socket_table.knows_cookies(namespace);
        let listed_ns = self.sockets_read_ns;
        self.evicted
            .gone(entries.iter(), &listed, listed_ns, is_known)
    }

    /// Takes connections that rest out of a table that is nearly full.
    pub(super) fn make_room(&mut self, table: &HashSet<u64>) -> Result<(), LoadError> {
        if !self.can_evict {
            return Ok(());
        }
        if self.evicted.has_marked() {
            LoadedObject::let_programs_end();
        }
        let object = &mut self.object;
        self.evicted
            .make(table, |cookie, action| object.evict(cookie, action))?;
        // Their counts are in the ring buffer until then.
        self.read();
        Ok(())
    }

    fn is_wanted(&self, owner: Owner) -> bool {
        let target = &self.target;
        if target.filter == FILTER_ALL {
            return target.network_namespace == 0
                || target.network_namespace == owner.network_namespace;
        }
        owner
            .process
            .is_some_and(|process| self.wanted.contains(&process.pid))
    }
}
