//! One task that takes requests from access logs.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc::TryRecvError,
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use profiler_clock::{monotonic_ns, monotonic_zero_ns, wall_ns};
use profiler_model::{EdgeTable, EnvoyLogs, ProcessKey, RequestTable, SeenBy};
use profiler_network::requests::{EnvoyId, LogTracker, Missing};
use profiler_recording::{Chunk, Part, Requests, StopHandle};
use tokio::sync::mpsc;

use super::{
    AccessLogs, PERIOD,
    book::Owner,
    lookups::{Answer, Found, Lookups},
    merge::{Late, merge},
    receiver::{Service, read_again},
    subscribers::{Came, MOST_WAITING, Subscription},
};

/// How often is looked for messages whose senders were not known.
const TICK: Duration = Duration::from_millis(100);
/// How long nothing is looked at where no message has come.
const SHORTLY: Duration = Duration::from_millis(10);
/// Messages that are taken until something else is looked at.
const AT_ONCE: usize = 64;
/// How long entries of what was over before the end are waited for: Envoy sends what it holds each second, and its clock may be a
/// little behind.
const LATE: Duration = Duration::from_millis(2_500);
/// How long before the end of [`LATE`] those are looked for that are not known, and how much longer the answer is waited for: in all less than
/// what a task has when the agent stops.
const LAST_LOOK: Duration = Duration::from_millis(500);
const LAST_ANSWER: Duration = Duration::from_secs(1);
/// How often the sockets of Envoys' connections are looked at.
const SOCKETS_EVERY: Duration = Duration::from_secs(5);
/// An Envoy and its sockets may differ by so much in when a request was over.
const BORDER_NS: u64 = 10_000_000;
/// Messages that are kept until it is known whose they are. Those that are more are nobody's.
const MOST_UNKNOWN: usize = 1_024;
/// Their memory.
const MOST_UNKNOWN_BYTES: usize = 32 << 20;
const NOTHING_CAME: &str = "no Envoy of the target has sent an entry of its access log: `access-logs status` says who sends, and `access-logs \
                            snippet` prints what Envoy needs";

/// The same task as sockets show it.
#[derive(Debug)]
pub(super) struct Sockets {
    chunks: mpsc::Receiver<Chunk>,
    /// `None`: it was asked to stop.
    stop: Option<StopHandle>,
    newest: Option<Requests>,
}

impl Sockets {
    pub(super) fn new(chunks: mpsc::Receiver<Chunk>, stop: StopHandle) -> Self {
        Self {
            chunks,
            stop: Some(stop),
            newest: None,
        }
    }
}

/// A message that waits. Its entries are read once more then: they take four times its memory.
#[derive(Debug)]
struct Waiting {
    whose: Arc<OnceLock<Owner>>,
    kind: Service,
    message: Bytes,
    entries: u64,
}

/// What is known of one who sends.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// It is being looked for, or not known whose the connection is.
    Asked,
    NotOfTarget,
    /// `None`: there was no room.
    Envoy(Option<EnvoyId>),
}

#[derive(Debug)]
pub(super) struct Reading {
    logs: AccessLogs,
    lookups: Lookups,
    subscription: Subscription,
    sockets: Option<Sockets>,
    /// Requests at sockets that were over behind the end, or just before.
    late: Late,
    tracker: LogTracker,
    /// What was missing of each Envoy when the task began.
    before: BTreeMap<ProcessKey, Missing>,
    /// What is over later does not count.
    until_ns: u64,
    /// Of which it is not known whose they are.
    waiting: VecDeque<Waiting>,
    /// When sockets are looked at next.
    sockets_due: Instant,
    envoys: HashMap<Owner, Known>,
    notes: Vec<String>,
    target_ended: bool,
    to: mpsc::Sender<Chunk>,
}

impl Reading {
    pub(super) fn new(
        logs: AccessLogs,
        lookups: Lookups,
        (subscription, sockets): (Subscription, Option<Sockets>),
        tracker: LogTracker,
        to: mpsc::Sender<Chunk>,
    ) -> Self {
        Self {
            before: missing(&logs.report()),
            logs,
            lookups,
            subscription,
            sockets,
            late: Late::new(),
            tracker,
            until_ns: u64::MAX,
            waiting: VecDeque::new(),
            sockets_due: Instant::now(),
            envoys: HashMap::new(),
            notes: Vec::new(),
            target_ended: false,
            to,
        }
    }

    /// Sends a result each second until it is asked to stop, and a last one.
    pub(super) fn run(mut self, stop: &AtomicBool) {
        let mut due = Instant::now() + PERIOD;
        let mut again = Instant::now();
        let mut end: Option<Instant> = None;
        let mut has_asked = false;
        loop {
            match self.take_messages(AT_ONCE) {
                Ok(()) => {}
                Err(TryRecvError::Empty) => thread::sleep(SHORTLY),
                Err(TryRecvError::Disconnected) => break,
            }
            self.take_answers();
            if Instant::now() >= again {
                again = Instant::now() + TICK;
                self.take_waiting();
            }
            self.read_sockets();
            if stop.load(Ordering::Relaxed) && end.is_none() {
                self.until_ns = wall_ns();
                end = Some(Instant::now() + LATE);
                // Before the connections end.
                self.sockets_due = Instant::now();
                self.look_at_connections();
                if let Some(sockets) = &mut self.sockets {
                    sockets.stop = None;
                }
            }
            if let Some(end) = end {
                let now = Instant::now();
                if now + LAST_LOOK >= end && !has_asked && !self.lookups.is_looking() {
                    has_asked = true;
                    self.ask_a_last_time();
                }
                let is_answered = has_asked && !self.lookups.is_looking();
                if now >= end && (is_answered || now >= end + LAST_ANSWER) {
                    break;
                }
            }
            if Instant::now() >= due {
                due = Instant::now() + PERIOD;
                self.look();
                let table = self.tracker.table(monotonic_ns());
                if !self.send(table, false) {
                    return;
                }
            }
        }
        self.finish();
    }

    /// Takes so many messages. An error: no more have come. It is looked for now and then, because being woken by each message
    /// costs both sides as much as some of its entries.
    fn take_messages(&mut self, most: usize) -> Result<(), TryRecvError> {
        for _ in 0..most {
            let came = self.subscription.next()?;
            self.take(came);
        }
        Ok(())
    }

    fn take(&mut self, came: Came) {
        match self.known(&came.whose) {
            Known::Asked => {
                let bytes = |waiting: &VecDeque<Waiting>| {
                    let bytes = waiting.iter().map(|one| one.message.len());
                    bytes.sum::<usize>()
                };
                while (self.waiting.len() >= MOST_UNKNOWN
                    || bytes(&self.waiting) > MOST_UNKNOWN_BYTES)
                    && let Some(oldest) = self.waiting.pop_front()
                {
                    self.tracker.left_out += oldest.entries;
                }
                self.waiting.push_back(Waiting {
                    whose: came.whose,
                    kind: came.read.kind,
                    message: came.read.message.clone(),
                    entries: came.read.entries.len() as u64,
                });
            }
            Known::NotOfTarget => {}
            Known::Envoy(id) => {
                for entry in &came.read.entries {
                    self.tracker.take(id, entry, self.until_ns);
                }
            }
        }
    }

    /// What is known of somebody. Who has just been found is looked for.
    fn known(&mut self, whose: &OnceLock<Owner>) -> Known {
        let Some(owner) = whose.get() else {
            return Known::Asked;
        };
        if let Some(known) = self.envoys.get(owner) {
            return *known;
        }
        self.lookups.ask_owner(owner.clone());
        self.envoys.insert(owner.clone(), Known::Asked);
        Known::Asked
    }

    fn take_answers(&mut self) {
        while let Some(answer) = self.lookups.answer() {
            match answer {
                Answer::Owner(owner, None) => {
                    self.envoys.insert(owner, Known::NotOfTarget);
                }
                Answer::Owner(owner, Some(Found { process, namespace })) => {
                    let node_id = self.node_id(&owner);
                    let id = self.tracker.envoy(process, node_id, namespace);
                    self.envoys.insert(owner, Known::Envoy(id));
                }
                Answer::Connections(found) => {
                    for (end, other) in found.ends {
                        self.tracker.found(&end, other);
                    }
                    for (socket, now) in found.sockets {
                        self.tracker.saw(&socket, now);
                    }
                }
            }
        }
    }

    fn node_id(&self, owner: &Owner) -> String {
        match owner {
            Owner::Claimed(node_id) => node_id.clone(),
            Owner::Other => "other Envoys".to_owned(),
            Owner::Process(key) => {
                let report = self.logs.report();
                let own = report.into_iter().find(|logs| logs.process == Some(*key));
                own.map(|logs| logs.node_id).unwrap_or_default()
            }
        }
    }

    /// Takes what is known to be somebody's by now.
    fn take_waiting(&mut self) {
        for _ in 0..self.waiting.len() {
            let Some(message) = self.waiting.pop_front() else {
                return;
            };
            match self.known(&message.whose) {
                Known::Asked => self.waiting.push_back(message),
                Known::NotOfTarget => {}
                Known::Envoy(id) => read_again(message.kind, &message.message, |entry| {
                    self.tracker.take(id, &entry, self.until_ns);
                }),
            }
        }
    }

    /// The same, has processes looked for, and asks what is missing.
    fn look(&mut self) {
        self.take_waiting();
        self.look_at_connections();
        self.ask_what_is_missing();
    }

    fn ask_what_is_missing(&mut self) {
        let missing = missing(&self.logs.report());
        for (owner, known) in &self.envoys {
            if let (Owner::Process(process), Known::Envoy(Some(id))) = (owner, known) {
                let before = self.before.get(process).copied().unwrap_or_default();
                let since = missing.get(process).map(|now| now.since(before));
                self.tracker.missing(*id, since);
            }
        }
    }

    /// Has the processes at new connections looked for, and all sockets looked at, in one reading of the node's sockets.
    fn look_at_connections(&mut self) {
        if !self.lookups.is_free() {
            return;
        }
        let unknown = self.tracker.unknown_ends(false);
        let is_due = Instant::now() >= self.sockets_due || self.lookups.remembers();
        if unknown.is_empty() && !is_due {
            return;
        }
        let sockets = self.tracker.own_sockets();
        if !unknown.is_empty() || !sockets.is_empty() || self.lookups.remembers() {
            self.sockets_due = Instant::now() + SOCKETS_EVERY;
            self.lookups.ask(unknown, sockets);
        }
    }

    /// Has those looked for that are not known at the end, whatever it costs.
    fn ask_a_last_time(&mut self) {
        let unknown = self.tracker.unknown_ends(true);
        if !unknown.is_empty() {
            let sockets = self.tracker.own_sockets();
            self.lookups.ask(unknown, sockets);
        }
    }

    fn read_sockets(&mut self) {
        let next = |sockets: &mut Sockets| sockets.chunks.try_recv().ok();
        while let Some(chunk) = self.sockets.as_mut().and_then(next) {
            self.take_of_sockets(chunk);
        }
    }

    fn take_of_sockets(&mut self, chunk: Chunk) {
        self.notes.extend(chunk.notes);
        self.target_ended |= chunk.target_ended;
        if let (Some(sockets), Part::Requests(mut requests)) = (&mut self.sockets, chunk.part) {
            let at_sockets = std::mem::take(&mut requests.at_sockets);
            let end_ns = self.until_ns.saturating_sub(BORDER_NS);
            for seen in &at_sockets {
                let over_ns = seen.end_ns.saturating_add(monotonic_zero_ns());
                if seen.seen_by == SeenBy::Server && over_ns > end_ns {
                    *self.late.entry(seen.pid).or_default() += 1;
                }
            }
            self.tracker.at_sockets(at_sockets, monotonic_zero_ns());
            sockets.newest = Some(requests);
        }
    }

    /// The last result: what was over before the end, and everything that sockets have shown.
    fn finish(mut self) {
        // As many as may be in the queue.
        let _emptied = self.take_messages(MOST_WAITING);
        self.take_waiting();
        self.ask_what_is_missing();
        if let Some(sockets) = &mut self.sockets {
            sockets.stop = None;
        }
        // It ends by itself once it was asked to.
        let next = |sockets: &mut Sockets| sockets.chunks.blocking_recv();
        while let Some(chunk) = self.sockets.as_mut().and_then(next) {
            self.take_of_sockets(chunk);
        }
        let nobodys = self.waiting.iter().map(|message| message.entries);
        self.tracker.left_out += nobodys.sum::<u64>();
        let is_of_target = |known: &Known| matches!(known, Known::Envoy(_));
        if self.sockets.is_none() && !self.envoys.values().any(is_of_target) {
            self.notes.push(NOTHING_CAME.to_owned());
        }
        // The result ends where the task was told to: what came since was over before.
        let late_ns = wall_ns().saturating_sub(self.until_ns);
        let table = self.tracker.finish(monotonic_ns().saturating_sub(late_ns));
        self.send(table, true);
    }

    /// Hands a result over, the last one with `is_last`; false: nobody takes it any more.
    fn send(&mut self, mut logged: RequestTable, is_last: bool) -> bool {
        if let Some(told) = &mut logged.logged {
            told.left_out += self.subscription.left_out();
        }
        let sockets = self.sockets.as_ref();
        let requests = match sockets.and_then(|sockets| sockets.newest.as_ref()) {
            Some(newest) => Requests {
                table: merge(newest.table.clone(), logged, is_last.then_some(&self.late)),
                edges: newest.edges.clone(),
                at_sockets: Vec::new(),
            },
            None => Requests {
                edges: EdgeTable {
                    window: Some(logged.window),
                    ..EdgeTable::default()
                },
                table: logged,
                at_sockets: Vec::new(),
            },
        };
        let chunk = Chunk {
            part: Part::Requests(requests),
            target_ended: std::mem::take(&mut self.target_ended),
            notes: std::mem::take(&mut self.notes),
        };
        self.to.blocking_send(chunk).is_ok()
    }
}

/// What of the entries of each process is missing so far, by its own counters.
fn missing(logs: &[EnvoyLogs]) -> BTreeMap<ProcessKey, Missing> {
    let known = logs.iter().filter_map(|logs| {
        let own = logs.own.as_ref().ok()?;
        let missing = Missing {
            lost: own
                .dropped
                .unwrap_or(0)
                .saturating_add(logs.received.unread),
            unknown: own.unknown?,
        };
        Some((logs.process?, missing))
    });
    known.collect()
}
