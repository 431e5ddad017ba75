//! Single requests that are kept: the slowest and the first failing ones of each edge in each window of
//! ten seconds, those that a rule wants, or all.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use profiler_model::{EdgeKey, RequestSample, SampleReason};
use profiler_protocols::{Exchange, Outcome};

use super::{observed_request::ObservedRequest, rules::Rules, shared_edge::SharedEdge};

/// Within how much time requests compete for being the slowest.
const WINDOW_NS: u64 = 10_000_000_000;
/// Of each edge and window.
const SLOWEST: usize = 5;
const FAILING: usize = 5;
/// Edges whose window is kept apart; requests of others are kept for rules only.
const MAX_EDGES: usize = 4096;
/// Samples of a result, and where all requests are kept.
const MAX_SAMPLES: usize = 2000;
const MAX_ALL: usize = 32_768;
/// Memory of all samples, texts included.
const MAX_BYTES: usize = 24 << 20;

/// Which requests are kept without a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    #[default]
    SlowAndFailing,
    All,
}

#[derive(Debug)]
pub(super) struct Samples {
    keep: Keep,
    rules: Rules,
    windows: HashMap<SharedEdge, Windows, RandomState>,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    pub(super) left_out: u64,
}

/// The candidates of one edge: of the newest window and of one before, as first requests of connections are counted late.
#[derive(Debug, Default)]
struct Windows {
    newest: Window,
    before: Window,
}

#[derive(Debug, Default)]
struct Window {
    /// Windows since the clock's beginning.
    number: u64,
    /// The fastest of them first.
    #[expect(
        clippy::vec_box,
        reason = "hundreds of bytes each, which move whenever another one takes a place"
    )]
    slow: Vec<Box<ObservedRequest>>,
    failing: Vec<ObservedRequest>,
}

#[derive(Debug)]
struct Kept {
    edge: SharedEdge,
    reason: SampleReason,
    seen: ObservedRequest,
}

impl Samples {
    pub(super) fn new(keep: Keep, rules: Rules) -> Self {
        Self {
            keep,
            rules,
            windows: HashMap::default(),
            kept: VecDeque::new(),
            kept_bytes: 0,
            left_out: 0,
        }
    }

    /// Whether [`Self::add`] keeps a request, at least for now.
    pub(super) fn wants(&self, edge: &SharedEdge, seen: &ObservedRequest) -> bool {
        let is_plain = self.keep == Keep::SlowAndFailing && self.rules.is_empty();
        !is_plain
            || self
                .windows
                .get(edge)
                .is_none_or(|windows| windows.wants(seen))
    }

    /// Takes a request that is counted where it was seen.
    pub(super) fn add(&mut self, edge: &SharedEdge, seen: ObservedRequest) {
        if self.keep == Keep::All {
            return self.keep(edge, SampleReason::All, seen);
        }
        if let Some(reason) = self.rules.first_of(&seen.exchange) {
            return self.keep(edge, reason, seen);
        }
        if let Some(windows) = self.windows.get_mut(edge) {
            let over = windows.put(seen);
            self.keep_window(edge, over);
        } else if self.windows.len() < MAX_EDGES {
            self.put(edge, seen);
        }
    }

    /// Puts a request into its window, and keeps those of the one that is over by it.
    fn put(&mut self, edge: &SharedEdge, seen: ObservedRequest) {
        let windows = self.windows.entry(edge.clone()).or_default();
        let over = windows.put(seen);
        self.keep_window(edge, over);
    }

    fn keep_window(&mut self, edge: &SharedEdge, over: Option<Window>) {
        for (reason, seen) in over.into_iter().flat_map(Window::into_seen) {
            self.keep(edge, reason, seen);
        }
    }

    /// Whether every request is a sample.
    pub(super) fn keeps_all(&self) -> bool {
        self.keep == Keep::All
    }

    fn keep(&mut self, edge: &SharedEdge, reason: SampleReason, seen: ObservedRequest) {
        let bytes = bytes_of(&seen.exchange);
        match self.keep {
            // From the beginning on without a hole, as long as there is room.
            Keep::All => {
                if self.kept.len() >= MAX_ALL || self.kept_bytes + bytes > MAX_BYTES {
                    self.left_out += 1;
                    return;
                }
            }
            Keep::SlowAndFailing => {
                while self.kept.len() >= MAX_SAMPLES || self.kept_bytes + bytes > MAX_BYTES {
                    let Some(oldest) = self.kept.pop_front() else {
                        break;
                    };
                    self.kept_bytes -= bytes_of(&oldest.seen.exchange).min(self.kept_bytes);
                    self.left_out += 1;
                }
            }
        }
        self.kept_bytes += bytes;
        self.kept.push_back(Kept {
            edge: edge.clone(),
            reason,
            seen,
        });
    }

    /// Fills in the threads of requests that are kept, where they are known by now.
    pub(super) fn find_threads(&mut self, thread: impl Fn(&ObservedRequest) -> Option<u32>) {
        let windows = self.windows.values_mut();
        let in_windows = windows.flat_map(|windows| {
            let Windows { newest, before } = windows;
            before.seen_mut().chain(newest.seen_mut())
        });
        let kept = self.kept.iter_mut().map(|kept| &mut kept.seen);
        for seen in kept.chain(in_windows) {
            if seen.begin.tid.is_none() {
                seen.begin.tid = thread(seen);
            }
        }
    }

    /// An edge turned out to be another.
    pub(super) fn rename(&mut self, old: &SharedEdge, new: &SharedEdge) {
        for kept in self.kept.iter_mut().filter(|kept| kept.edge == *old) {
            kept.edge = new.clone();
        }
        let Some(moved) = self.windows.remove(old) else {
            return;
        };
        let Windows { newest, before } = moved;
        for (_, seen) in before.into_seen().chain(newest.into_seen()) {
            self.put(new, seen);
        }
    }

    /// All samples so far in the order of their ends. `epoch_ns` is what the clock's zero is since the
    /// Unix epoch.
    pub(super) fn rows(
        &self,
        places: &HashMap<&EdgeKey, u32>,
        epoch_ns: u64,
    ) -> Vec<RequestSample> {
        let row = |edge: &EdgeKey, reason, seen: &ObservedRequest| RequestSample {
            edge: places.get(edge).copied(),
            tls: seen.tls,
            seen_by: seen.seen_by,
            pid: seen.begin.pid,
            tid: seen.begin.tid,
            client: seen.client,
            begin_ns: epoch_ns.saturating_add(seen.exchange.begin_ns),
            reason,
            exchange: seen.exchange.clone(),
        };
        let kept = self.kept.iter();
        let mut rows: Vec<_> = kept
            .map(|kept| row(&kept.edge, kept.reason, &kept.seen))
            .collect();
        for (edge, Windows { newest, before }) in &self.windows {
            let seen = before.seen().chain(newest.seen());
            rows.extend(seen.map(|(reason, seen)| row(edge, reason, seen)));
        }
        rows.sort_by_key(|row| row.exchange.end_ns);
        rows
    }
}

impl Windows {
    fn wants(&self, seen: &ObservedRequest) -> bool {
        let number = seen.exchange.end_ns / WINDOW_NS;
        let window = if number == self.newest.number {
            &self.newest
        } else {
            &self.before
        };
        number > window.number || window.wants(seen)
    }

    /// Takes a request; the window that is over by it.
    fn put(&mut self, seen: ObservedRequest) -> Option<Window> {
        let number = seen.exchange.end_ns / WINDOW_NS;
        let begun = Window {
            number,
            ..Window::default()
        };
        let mut over = None;
        if number > self.newest.number {
            let newest = std::mem::replace(&mut self.newest, begun);
            over = Some(std::mem::replace(&mut self.before, newest));
        } else if number < self.newest.number && number > self.before.number {
            over = Some(std::mem::replace(&mut self.before, begun));
        }
        let window = if number == self.newest.number {
            &mut self.newest
        } else {
            &mut self.before
        };
        window.put(seen);
        over
    }
}

impl Window {
    /// Whether a request has failed. `None`: its duration says nothing.
    fn has_failed(seen: &ObservedRequest) -> Option<bool> {
        match seen.exchange.outcome {
            Outcome::ClientError | Outcome::ServerError | Outcome::Broken => Some(true),
            Outcome::Ok => Some(false),
            Outcome::Unknown => seen.is_whole().then_some(false),
        }
    }

    fn wants(&self, seen: &ObservedRequest) -> bool {
        let Some(failed) = Self::has_failed(seen) else {
            return false;
        };
        let fastest = self.slow.first();
        let is_slower = |fastest: &ObservedRequest| {
            fastest.exchange.duration_ns() <= seen.exchange.duration_ns()
        };
        failed && self.failing.len() < FAILING
            || self.slow.len() < SLOWEST
            || fastest.is_none_or(|fastest| is_slower(fastest))
    }

    fn put(&mut self, seen: ObservedRequest) {
        let Some(failed) = Self::has_failed(&seen) else {
            return;
        };
        if failed && self.failing.len() < FAILING {
            self.failing.push(seen);
            return;
        }
        let duration_ns = seen.exchange.duration_ns();
        let place = self
            .slow
            .partition_point(|known| known.exchange.duration_ns() <= duration_ns);
        if self.slow.len() < SLOWEST {
            self.slow.insert(place, Box::new(seen));
        } else if let Some(place) = place.checked_sub(1) {
            let mut fastest = self.slow.remove(0);
            *fastest = seen;
            self.slow.insert(place, fastest);
        }
    }

    fn seen(&self) -> impl Iterator<Item = (SampleReason, &ObservedRequest)> {
        let slow = self.slow.iter().map(|seen| (SampleReason::Slow, &**seen));
        let failing = self.failing.iter().map(|seen| (SampleReason::Failed, seen));
        slow.chain(failing)
    }

    fn seen_mut(&mut self) -> impl Iterator<Item = &mut ObservedRequest> {
        let slow = self.slow.iter_mut().map(|seen| &mut **seen);
        slow.chain(&mut self.failing)
    }

    fn into_seen(self) -> impl Iterator<Item = (SampleReason, ObservedRequest)> {
        let slow = self.slow.into_iter();
        let slow = slow.map(|seen| (SampleReason::Slow, *seen));
        let failing = self.failing.into_iter();
        let failing = failing.map(|seen| (SampleReason::Failed, seen));
        slow.chain(failing)
    }
}

/// About how much memory a sample needs.
fn bytes_of(exchange: &Exchange) -> usize {
    let trace = &exchange.trace;
    let texts = [
        &exchange.method,
        &exchange.route,
        &exchange.path,
        &exchange.authority,
        &trace.request_id,
        &trace.trace_id,
        &trace.span_id,
    ];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    let headers = exchange.headers.iter();
    let headers: usize = headers
        .map(|(name, value)| name.len() + value.len() + 48)
        .sum();
    let bodies = [&exchange.request_body, &exchange.response_body];
    let bodies: usize = bodies
        .into_iter()
        .flatten()
        .map(|body| body.bytes.len())
        .sum();
    size_of::<Kept>() + texts + headers + bodies
}

#[cfg(test)]
#[path = "samples_tests.rs"]
mod tests;
