//! Which request at a socket an entry tells of.
//!
//! An Envoy begins to count when it has read the first bytes of a request and ends when it has made the last ones of the response, which are
//! written later. Towards the client the entry's times lie within the socket's; towards the upstream the socket's lie within the
//! entry's. On a connection that carries one request at a time only one can fit, and `x-request-id` is compared where both have it. Where
//! several requests share a connection the id alone decides.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
};

use foldhash::fast::RandomState;
use profiler_access_logs::Timing;
use profiler_model::{RequestAtSocket, SeenBy};

use super::EnvoyId;
use crate::requests::observed_request::ObservedRequest;

/// Requests at sockets that are remembered, of both ends.
const MAX_KEPT: usize = 65_536;
/// Requests of entries that wait for theirs.
const MAX_WAITING: usize = 16_384;
/// Reports after which ends are looked for: both sides are handed over once a second.
const SETTLED: u64 = 1;
/// Reports after which neither is remembered.
const PATIENCE: u64 = 4;
/// By so much times may not fit: the clocks are compared once a second, and Envoy's has microseconds.
const SLACK_NS: u64 = 50_000;
/// Most that the same request may begin apart: what a busy Envoy has made is written when it has done everything else. Where several requests
/// share a connection, also the most that it may end apart.
const APART_NS: u64 = 100_000_000;

/// One side of an Envoy's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) pid: u32,
    pub(super) seen_by: SeenBy,
    /// The client's end.
    pub(super) client: SocketAddr,
}

impl Place {
    pub(super) fn new(pid: u32, seen_by: SeenBy, client: SocketAddr) -> Self {
        let client = SocketAddr::new(client.ip().to_canonical(), client.port());
        Self {
            pid,
            seen_by,
            client,
        }
    }

    pub(super) fn of(seen: &ObservedRequest) -> Self {
        Self::new(seen.begin.pid, seen.seen_by, seen.client)
    }
}

/// One end of a request, as an entry has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedEnd {
    pub(super) place: Place,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) request_id: Option<u64>,
}

/// What was found of an end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joined {
    pub(super) at_socket: Option<RequestAtSocket>,
    /// Both have the same id.
    pub(super) is_confirmed: bool,
    /// The only one that fits has another id.
    pub(super) is_contradicted: bool,
}

/// The ends of a request that were answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedEnds {
    pub(super) envoy: EnvoyId,
    /// Of a request with one attempt.
    pub(super) timing: Option<Timing>,
    /// Towards the client, and towards the upstream, each with what was found of it.
    pub(super) ends: [Option<(LoggedEnd, Joined)>; 2],
}

impl LoggedEnds {
    fn is_empty(&self) -> bool {
        self.ends.iter().all(Option::is_none)
    }

    fn is_joined(&self) -> bool {
        let ends = self.ends.iter().flatten();
        ends.clone().all(|(_, joined)| joined.at_socket.is_some())
    }
}

#[derive(Debug)]
struct Seen {
    /// Reports before it came.
    since: u64,
    /// By the clock of entries.
    begin_ns: u64,
    end_ns: u64,
    request: RequestAtSocket,
    is_taken: bool,
}

#[derive(Debug, Default)]
pub(super) struct Joins {
    /// Those of a connection in the order of their begins.
    at_sockets: HashMap<Place, Vec<Seen>, RandomState>,
    kept: usize,
    /// With the report before which they came.
    waiting: VecDeque<(u64, LoggedEnds)>,
    /// Threads of requests that were joined, by their begin in the entry, with the report in which they were.
    threads: HashMap<(Place, u64), (u64, u32), RandomState>,
}

impl Joins {
    /// Takes requests at sockets. `shift_ns` leads from their clock to that of entries.
    pub(super) fn see(
        &mut self,
        seen: Vec<RequestAtSocket>,
        shift_ns: i64,
        is_wanted: impl Fn(u32) -> bool,
        since: u64,
    ) {
        if self.kept + seen.len() > MAX_KEPT {
            // What is old has had its time.
            self.drop_before(since);
        }
        for request in seen {
            if self.kept >= MAX_KEPT || !is_wanted(request.pid) {
                continue;
            }
            let place = Place::new(request.pid, request.seen_by, request.client);
            self.at_sockets.entry(place).or_default().push(Seen {
                since,
                begin_ns: request.begin_ns.saturating_add_signed(shift_ns),
                end_ns: request.end_ns.saturating_add_signed(shift_ns),
                request,
                is_taken: false,
            });
            self.kept += 1;
        }
        for at_socket in self.at_sockets.values_mut() {
            at_socket.sort_by_key(|seen| seen.begin_ns);
        }
    }

    /// Has ends wait for the request at their sockets. What it returns does not wait: the oldest where there is no room, or this one where
    /// there is nothing to look for.
    pub(super) fn wait(&mut self, request: &LoggedEnds, reports: u64) -> Option<LoggedEnds> {
        if request.is_empty() {
            return Some(*request);
        }
        self.waiting.push_back((reports, *request));
        if self.waiting.len() <= MAX_WAITING {
            return None;
        }
        let (_, mut oldest) = self.waiting.pop_front()?;
        self.look(&mut oldest, reports);
        Some(oldest)
    }

    /// Requests of which it is known by now where they were seen, or that it will not be known.
    pub(super) fn settle(&mut self, reports: u64, is_last: bool) -> Vec<LoggedEnds> {
        let mut settled = Vec::new();
        for _ in 0..self.waiting.len() {
            let Some((since, mut request)) = self.waiting.pop_front() else {
                break;
            };
            let age = reports - since;
            if age >= SETTLED || is_last {
                self.look(&mut request, reports);
            }
            if request.is_joined() || age >= PATIENCE || is_last {
                settled.push(request);
            } else {
                self.waiting.push_back((since, request));
            }
        }
        self.forget(reports);
        settled
    }

    /// Looks for the ends that were not found yet.
    fn look(&mut self, request: &mut LoggedEnds, reports: u64) {
        for (end, joined) in request.ends.iter_mut().flatten() {
            if joined.at_socket.is_none() {
                *joined = self.join(end, reports);
            }
        }
    }

    fn join(&mut self, end: &LoggedEnd, reports: u64) -> Joined {
        let mut joined = Joined::default();
        let Some(at_socket) = self.at_sockets.get_mut(&end.place) else {
            return joined;
        };
        let near = near(at_socket, end.begin_ns);
        let candidates = near
            .iter()
            .enumerate()
            .filter(|(_, seen)| !seen.is_taken && may_be(end, seen));
        let has_id =
            |seen: &Seen| end.request_id.is_some() && seen.request.request_id == end.request_id;
        let same_id = only(candidates.clone().filter(|(_, seen)| has_id(seen)));
        let fitting = only(candidates.filter(|(_, seen)| !seen.request.is_multiplexed));
        // At the edge of a mesh an Envoy replaces the id that a client gives, and the request at the socket has the old one. Towards the
        // upstream it writes the one that the entry has.
        let has_other_id = |index: &usize| {
            let id = near.get(*index).and_then(|seen| seen.request.request_id);
            let both = end.request_id.zip(id);
            end.place.seen_by == SeenBy::Client && both.is_some_and(|(own, its)| own != its)
        };
        joined.is_contradicted = fitting.as_ref().is_some_and(has_other_id);
        joined.is_confirmed = same_id.is_some();
        let fitting = fitting.filter(|_| !joined.is_contradicted);
        if let Some(seen) = same_id.or(fitting).and_then(|index| near.get_mut(index)) {
            seen.is_taken = true;
            joined.at_socket = Some(seen.request);
            if let Some(tid) = seen.request.tid
                && self.threads.len() < MAX_KEPT
            {
                self.threads
                    .insert((end.place, end.begin_ns), (reports, tid));
            }
        }
        joined
    }

    /// The thread at whose socket a request of an entry was found lately.
    pub(super) fn thread(&self, place: Place, begin_ns: u64) -> Option<u32> {
        let found = self.threads.get(&(place, begin_ns));
        found.map(|(_, thread)| *thread)
    }

    fn forget(&mut self, reports: u64) {
        let oldest = (reports + 1).saturating_sub(PATIENCE + SETTLED);
        self.drop_before(oldest);
        self.threads.retain(|_, (since, _)| *since >= oldest);
    }

    /// Drops requests at sockets that were joined, or came before a report.
    fn drop_before(&mut self, oldest: u64) {
        self.at_sockets.retain(|_, at_socket| {
            at_socket.retain(|seen| !seen.is_taken && seen.since >= oldest);
            !at_socket.is_empty()
        });
        self.kept = self.at_sockets.values().map(Vec::len).sum();
    }
}

/// Those that began about then, of some in the order of their begins.
fn near(at_socket: &mut [Seen], begin_ns: u64) -> &mut [Seen] {
    let from = at_socket.partition_point(|seen| seen.begin_ns.saturating_add(APART_NS) < begin_ns);
    let to = at_socket.partition_point(|seen| seen.begin_ns <= begin_ns.saturating_add(APART_NS));
    at_socket.get_mut(from..to).unwrap_or_default()
}

/// The place of the only one; `None`: there are none, or several.
fn only<'a>(mut found: impl Iterator<Item = (usize, &'a Seen)>) -> Option<usize> {
    let (index, _) = found.next()?;
    found.next().is_none().then_some(index)
}

/// Whether the times of an end can be those of a request at a socket.
fn may_be(end: &LoggedEnd, seen: &Seen) -> bool {
    if seen.request.is_multiplexed {
        // The id decides.
        return seen.end_ns.abs_diff(end.end_ns) <= APART_NS;
    }
    let logged = (end.begin_ns, end.end_ns);
    let at_socket = (seen.begin_ns, seen.end_ns);
    let (outer, inner) = match end.place.seen_by {
        SeenBy::Server => (at_socket, logged),
        SeenBy::Client => (logged, at_socket),
    };
    outer.0 <= inner.0.saturating_add(SLACK_NS) && inner.1 <= outer.1.saturating_add(SLACK_NS)
}

#[cfg(test)]
#[path = "joins_tests.rs"]
mod tests;
