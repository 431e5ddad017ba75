//! What came, by connection and by the Envoy that it belongs to.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use profiler_access_logs::{Identifier, text};
use profiler_host::envoy_admin::LogCounters;
use profiler_model::{EnvoyLogs, ProcessKey};

use super::{batch::Batch, governor::Governor, ledger::Ledger, subscribers::Subscribers};

/// Envoys that are told apart, by process and by what they call themselves; connections of others count for one more.
const MOST_ENVOYS: usize = 1_024;
/// Names of logs that are kept of each.
const MOST_NAMES: usize = 16;
/// Bytes of a text that is kept.
const TEXT_BYTES: usize = 256;
/// Entries whose times are kept until it is known whose connections they came over, of all connections.
const MOST_WAITING: usize = 1 << 20;
/// How often the other end of a connection is looked for.
const TRIES: u32 = 5;
/// An Envoy without a connection is forgotten when its newest message is older.
const KEPT_NS: u64 = 3_600_000_000_000;

/// Whose entries they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Owner {
    Process(ProcessKey),
    /// No process of this node, by what it calls itself.
    Claimed(String),
    /// Those for which there is no room.
    Other,
}

/// A connection that is open.
#[derive(Debug)]
struct Connection {
    local: SocketAddr,
    /// That are open.
    streams: u64,
    tries: u32,
    /// `None`: not known yet.
    owner: Option<Owner>,
    /// The same, for those who have taken entries before it was known.
    whose: Arc<OnceLock<Owner>>,
    /// Everything that came while the owner was not known, with its times.
    logs: EnvoyLogs,
    waiting: Vec<(bool, Option<u64>)>,
    untimed: u64,
}

#[derive(Debug, Default)]
struct Envoy {
    logs: EnvoyLogs,
    ledger: Ledger,
}

#[derive(Debug, Default)]
pub(super) struct Book {
    envoys: BTreeMap<Owner, Envoy>,
    connections: HashMap<u64, Connection>,
    opened: u64,
    /// Entries whose times are kept.
    waiting: usize,
    /// Entries of all Envoys, also of those that are forgotten.
    pub(super) entries: u64,
    /// Connections that came when there were too many.
    pub(super) refused: u64,
    /// Connections that failed before anything was received, and of the newest from where it came and why.
    pub(super) failed: u64,
    pub(super) newest_failure: Option<String>,
    pub(super) subscribers: Subscribers,
    pub(super) governor: Governor,
}

impl Book {
    /// Whose the entries of a connection are, as soon as it is known.
    pub(super) fn whose(&self, number: u64) -> Option<Arc<OnceLock<Owner>>> {
        let connection = self.connections.get(&number)?;
        Some(Arc::clone(&connection.whose))
    }

    /// A connection was accepted: its number here.
    pub(super) fn open(&mut self, peer: SocketAddr, local: SocketAddr) -> u64 {
        self.opened += 1;
        let connection = Connection {
            local,
            streams: 0,
            tries: 0,
            owner: None,
            whose: Arc::default(),
            logs: EnvoyLogs {
                peer: Some(peer),
                ..EnvoyLogs::default()
            },
            waiting: Vec::new(),
            untimed: 0,
        };
        self.connections.insert(self.opened, connection);
        self.opened
    }

    /// A stream of a connection began, or ended.
    pub(super) fn stream(&mut self, number: u64, began: bool) {
        let count = |streams: &mut u64| {
            *streams = if began {
                *streams + 1
            } else {
                streams.saturating_sub(1)
            };
        };
        if let Some(connection) = self.connections.get_mut(&number) {
            count(&mut connection.streams);
        }
        if let Some((logs, _)) = self.logs_of(number) {
            count(&mut logs.streams);
        }
    }

    /// The other end has said what it calls itself.
    pub(super) fn identify(&mut self, number: u64, identifier: &Identifier) {
        let connection = self.connections.get(&number);
        let owner = connection.and_then(|connection| connection.owner.as_ref());
        // It stands under the name that it had then.
        let is_fixed = matches!(owner, Some(Owner::Claimed(_) | Owner::Other));
        if let Some((logs, _)) = self.logs_of(number) {
            let keep = |known: &mut String, said: &Bytes| {
                if !said.is_empty() && !is_fixed {
                    *known = shortened(&text(said));
                }
            };
            keep(&mut logs.node_id, &identifier.node_id);
            keep(&mut logs.version, &identifier.version);
            add_name(logs, shortened(&text(&identifier.log_name)));
        }
    }

    /// A message came over a connection.
    pub(super) fn came(&mut self, number: u64, batch: &Batch, now_ns: u64) {
        let room = MOST_WAITING.saturating_sub(self.waiting);
        self.entries += batch.received.entries();
        let Some((logs, ledger)) = self.logs_of(number) else {
            return;
        };
        logs.received.add(&batch.received);
        logs.newest_ns = now_ns;
        if logs.first_ns == 0 {
            logs.first_ns = now_ns;
        }
        match ledger {
            Times::Of(ledger) => {
                for (is_request, over) in &batch.over {
                    ledger.came(*is_request, *over);
                }
                ledger.came_untimed(batch.untimed);
            }
            Times::Waiting(waiting, untimed) => {
                let before = waiting.len();
                waiting.extend(batch.over.iter().take(room));
                let more = waiting.len() - before;
                let left = batch.over.len() - more;
                *untimed += batch.untimed + left as u64;
                self.waiting += more;
            }
        }
    }

    /// A message was refused.
    pub(super) fn refuse(&mut self, number: u64) {
        if let Some((logs, _)) = self.logs_of(number) {
            logs.received.refused += 1;
        }
    }

    /// The connection is gone. What came over one whose other end was never found counts for what it calls itself.
    pub(super) fn close(&mut self, number: u64) {
        let has_sent = |connection: &Connection| connection.logs.newest_ns != 0;
        if self.connections.get(&number).is_some_and(has_sent) {
            self.settle_owner(number, None);
        }
        let Some(connection) = self.connections.remove(&number) else {
            return;
        };
        if let Some(envoy) = connection
            .owner
            .and_then(|owner| self.envoys.get_mut(&owner))
        {
            envoy.logs.streams = envoy.logs.streams.saturating_sub(connection.streams);
        }
    }

    /// Connections whose other ends are not known: number, the other end, and this one. `again`: also those that were looked for.
    pub(super) fn unknown(&self, again: bool) -> Vec<(u64, SocketAddr, SocketAddr)> {
        let unknown = self.connections.iter();
        // Who has sent nothing is nobody's business.
        let unknown = unknown
            .filter(|(_, connection)| connection.owner.is_none() && connection.logs.newest_ns != 0)
            .filter(|(_, connection)| again || connection.tries == 0);
        unknown
            .filter_map(|(number, connection)| {
                Some((*number, connection.logs.peer?, connection.local))
            })
            .collect()
    }

    /// Whether a process holds the other end; `None`: none was found this time.
    pub(super) fn find(&mut self, number: u64, process: Option<ProcessKey>) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        connection.tries += 1;
        if process.is_some() || connection.tries >= TRIES {
            self.settle_owner(number, process);
        }
    }

    fn settle_owner(&mut self, number: u64, process: Option<ProcessKey>) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        if connection.owner.is_some() {
            return;
        }
        let logs = std::mem::take(&mut connection.logs);
        let waiting = std::mem::take(&mut connection.waiting);
        self.waiting -= waiting.len();
        let untimed = std::mem::take(&mut connection.untimed);
        let mut owner = match process {
            Some(process) => Owner::Process(process),
            None => Owner::Claimed(logs.node_id.clone()),
        };
        if !self.make_room(&owner) {
            owner = Owner::Other;
        }
        if let Some(connection) = self.connections.get_mut(&number) {
            // It is settled once.
            connection.whose.get_or_init(|| owner.clone());
            connection.owner = Some(owner.clone());
        }
        let process = process.filter(|_| owner != Owner::Other);
        let envoy = self.envoys.entry(owner).or_default();
        envoy.logs.process = process;
        for (is_request, over) in waiting {
            envoy.ledger.came(is_request, over);
        }
        envoy.ledger.came_untimed(untimed);
        merge(&mut envoy.logs, logs);
    }

    /// Whether there is room for an Envoy: of those of its kind without a stream the one that was silent for longest goes.
    fn make_room(&mut self, owner: &Owner) -> bool {
        let is_alike =
            |other: &Owner| std::mem::discriminant(other) == std::mem::discriminant(owner);
        let alike = self.envoys.iter().filter(|(other, _)| is_alike(other));
        if self.envoys.contains_key(owner) || alike.clone().count() < MOST_ENVOYS {
            return true;
        }
        let silent = alike.filter(|(_, envoy)| envoy.logs.streams == 0);
        let oldest = silent.min_by_key(|(_, envoy)| envoy.logs.newest_ns);
        let Some(oldest) = oldest.map(|(owner, _)| owner.clone()) else {
            return false;
        };
        self.envoys.remove(&oldest);
        true
    }

    /// Forgets Envoys that have gone long ago.
    pub(super) fn forget(&mut self, now_ns: u64) {
        let connections = &self.connections;
        self.envoys.retain(|owner, envoy| {
            let is_old = envoy.logs.newest_ns.saturating_add(KEPT_NS) < now_ns;
            let mut open = connections.values();
            !is_old || open.any(|connection| connection.owner.as_ref() == Some(owner))
        });
    }

    /// Processes that hold the other ends of connections.
    pub(super) fn processes(&self) -> Vec<ProcessKey> {
        let owners = self.envoys.keys();
        owners
            .filter_map(|owner| match owner {
                Owner::Process(process) => Some(*process),
                Owner::Claimed(_) | Owner::Other => None,
            })
            .collect()
    }

    /// An Envoy is asked for what it counts of its own logs.
    pub(super) fn ask(&mut self, process: ProcessKey, now_ns: u64) {
        if let Some(envoy) = self.envoys.get_mut(&Owner::Process(process)) {
            envoy.ledger.ask(now_ns);
        }
    }

    /// It has answered.
    pub(super) fn answered(&mut self, process: ProcessKey, now_ns: u64, counters: LogCounters) {
        if let Some(envoy) = self.envoys.get_mut(&Owner::Process(process)) {
            envoy.ledger.answered(now_ns, counters);
        }
    }

    /// Tells what is known of an Envoy's own counts by now, or why nothing is.
    pub(super) fn settle(
        &mut self,
        process: ProcessKey,
        is_known: Result<(), String>,
        now_ns: u64,
    ) {
        let Some(envoy) = self.envoys.get_mut(&Owner::Process(process)) else {
            return;
        };
        envoy.ledger.settle(now_ns);
        match is_known {
            Ok(()) => {
                if let Some(own) = envoy.ledger.own() {
                    envoy.logs.own = Ok(own);
                }
            }
            Err(why) => envoy.logs.own = Err(why),
        }
    }

    /// Everything so far, those with the most entries first.
    pub(super) fn report(&self) -> Vec<EnvoyLogs> {
        let stage = self.governor.stage();
        let known = self.envoys.values().map(|envoy| envoy.logs.clone());
        let unknown = self.connections.values();
        let unknown = unknown
            .filter(|connection| connection.owner.is_none() && connection.logs.newest_ns != 0);
        let mut all: Vec<EnvoyLogs> = known
            .chain(unknown.map(|connection| connection.logs.clone()))
            .collect();
        for logs in &mut all {
            logs.stage = stage;
        }
        all.sort_by_key(|logs| std::cmp::Reverse(logs.received.entries()));
        all
    }

    fn logs_of(&mut self, number: u64) -> Option<(&mut EnvoyLogs, Times<'_>)> {
        let connection = self.connections.get_mut(&number)?;
        match &connection.owner {
            None => Some((
                &mut connection.logs,
                Times::Waiting(&mut connection.waiting, &mut connection.untimed),
            )),
            Some(owner) => {
                let envoy = self.envoys.get_mut(owner)?;
                Some((&mut envoy.logs, Times::Of(&mut envoy.ledger)))
            }
        }
    }
}

/// Where the times of entries go.
enum Times<'a> {
    Of(&'a mut Ledger),
    Waiting(&'a mut Vec<(bool, Option<u64>)>, &'a mut u64),
}

fn merge(envoy: &mut EnvoyLogs, more: EnvoyLogs) {
    envoy.received.add(&more.received);
    envoy.streams += more.streams;
    envoy.peer = more.peer;
    if !more.node_id.is_empty() {
        envoy.node_id = more.node_id;
        envoy.version = more.version;
    }
    for name in more.log_names {
        add_name(envoy, name);
    }
    if envoy.first_ns == 0 {
        envoy.first_ns = more.first_ns;
    }
    envoy.newest_ns = envoy.newest_ns.max(more.newest_ns);
}

/// Each name once.
fn add_name(logs: &mut EnvoyLogs, name: String) {
    let names = &mut logs.log_names;
    if !name.is_empty() && !names.contains(&name) && names.len() < MOST_NAMES {
        names.push(name);
    }
}

fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES);
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use profiler_access_logs::Counts;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn process(pid: u32) -> ProcessKey {
        ProcessKey {
            pid,
            start_ticks: 7,
        }
    }

    /// A message with this many requests that are over.
    fn batch(requests: usize) -> Batch {
        let mut batch = Batch::default();
        for _ in 0..requests {
            batch.received.requests += 1;
            batch.over.push((true, Some(1)));
        }
        let counts = Counts {
            entries: requests as u64,
            ..Counts::default()
        };
        batch.end(100, &counts);
        batch
    }

    fn opened(book: &mut Book) -> u64 {
        book.open(address("127.0.0.1:40000"), address("127.0.0.1:7118"))
    }

    #[test]
    fn connections_of_one_process_are_one_envoy() {
        let mut book = Book::default();
        let numbers = [opened(&mut book), opened(&mut book)];
        for number in numbers {
            book.stream(number, true);
            book.came(number, &batch(3), 10);
        }
        assert_eq!(book.report().len(), 2);
        for number in numbers {
            book.find(number, Some(process(1)));
            book.came(number, &batch(2), 20);
        }
        let [envoy] = &book.report()[..] else {
            panic!("{:?}", book.report())
        };
        assert_eq!(envoy.process, Some(process(1)));
        assert_eq!((envoy.received.requests, envoy.received.messages), (10, 4));
        assert_eq!(
            (envoy.streams, envoy.first_ns, envoy.newest_ns),
            (2, 10, 20)
        );
        assert_eq!(book.waiting, 0);
        for number in numbers {
            book.close(number);
            // The stream ends behind its connection.
            book.stream(number, false);
        }
        assert_eq!(book.report()[0].streams, 0);
        assert!(book.connections.is_empty());
    }

    #[test]
    fn who_has_gone_is_forgotten_and_stays_in_the_sum() {
        let mut book = Book::default();
        let number = opened(&mut book);
        book.came(number, &batch(3), 10);
        book.find(number, Some(process(1)));
        book.forget(KEPT_NS + 11);
        assert_eq!(book.report().len(), 1);
        book.close(number);
        book.forget(KEPT_NS + 10);
        assert_eq!(book.report().len(), 1);
        book.forget(KEPT_NS + 11);
        assert!(book.report().is_empty());
        assert_eq!(book.entries, 3);
    }

    #[test]
    fn who_is_not_found_counts_for_what_he_calls_himself() {
        let mut book = Book::default();
        let number = opened(&mut book);
        let identifier = Identifier {
            node_id: Bytes::from_static(b"router~10.0.0.1~gateway.mesh"),
            ..Identifier::default()
        };
        book.identify(number, &identifier);
        book.came(number, &batch(1), 10);
        for tries in 0..TRIES {
            assert_eq!(book.unknown(true).len(), 1);
            // At once the first time alone.
            assert_eq!(book.unknown(false).is_empty(), tries > 0);
            book.find(number, None);
        }
        assert!(book.unknown(true).is_empty() && book.processes().is_empty());
        let again = opened(&mut book);
        book.identify(again, &identifier);
        book.came(again, &batch(1), 20);
        book.close(again);
        let [envoy] = &book.report()[..] else {
            panic!("{:?}", book.report())
        };
        assert_eq!((envoy.process, envoy.received.requests), (None, 2));
        assert_eq!(envoy.node_id, "router~10.0.0.1~gateway.mesh");
    }

    #[test]
    fn names_that_are_made_up_take_bounded_room() {
        let mut book = Book::default();
        for name in 0..MOST_ENVOYS + 10 {
            let number = opened(&mut book);
            let identifier = Identifier {
                node_id: Bytes::from(format!("{name}{}", "x".repeat(10_000))),
                ..Identifier::default()
            };
            book.identify(number, &identifier);
            book.came(number, &batch(1), 10 + name as u64);
            book.close(number);
        }
        let all = book.report();
        assert_eq!(all.len(), MOST_ENVOYS);
        assert!(all.iter().all(|envoy| envoy.node_id.len() <= TEXT_BYTES));
        assert_eq!(book.entries, MOST_ENVOYS as u64 + 10);
        // They take no place from processes.
        let number = opened(&mut book);
        book.came(number, &batch(1), 10);
        book.find(number, Some(process(1)));
        let is_process = |envoy: &&EnvoyLogs| envoy.process.is_some();
        assert_eq!(book.report().iter().filter(is_process).count(), 1);
    }

    #[test]
    fn who_sends_nothing_is_no_envoy() {
        let mut book = Book::default();
        let number = opened(&mut book);
        assert!(book.unknown(true).is_empty());
        book.close(number);
        assert!(book.report().is_empty());
    }

    #[test]
    fn what_is_not_said_replaces_nothing() {
        let mut book = Book::default();
        let number = opened(&mut book);
        let said = Identifier {
            node_id: Bytes::from_static(b"one"),
            version: Bytes::from_static(b"1.40.0"),
            ..Identifier::default()
        };
        book.identify(number, &said);
        book.identify(number, &Identifier::default());
        book.came(number, &batch(1), 10);
        for _ in 0..TRIES {
            book.find(number, None);
        }
        let other = Identifier {
            node_id: Bytes::from_static(b"two"),
            ..Identifier::default()
        };
        book.identify(number, &other);
        let all = book.report();
        assert_eq!((&*all[0].node_id, &*all[0].version), ("one", "1.40.0"));
    }
}
