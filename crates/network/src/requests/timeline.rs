//! Requests over the time of a task, in a bounded number of spans: of all edges, and of some of them.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use profiler_model::{EdgeKey, RequestSpan, RequestTimeline};
use profiler_protocols::Outcome;

use super::{observed_request::ObservedRequest, shared_edge::SharedEdge};

/// The most spans. When a request is beyond them, they are merged in pairs.
const SPANS: usize = 64;
const FIRST_WIDTH_NS: u64 = 1_000_000_000;
/// Edges with spans of their own: each has up to [`SPANS`] histograms.
const MAX_EDGES: usize = 32;

#[derive(Debug)]
pub(super) struct Timeline {
    /// Of the first span, on the monotonic clock.
    begin_ns: u64,
    width_ns: u64,
    all: Vec<RequestSpan>,
    /// At most [`MAX_EDGES`].
    edges: HashMap<SharedEdge, Vec<RequestSpan>, RandomState>,
    /// An edge had no room: no other one gets any, as its first requests may be missing.
    is_full: bool,
}

impl Timeline {
    pub(super) fn new(begin_ns: u64) -> Self {
        Self {
            begin_ns,
            width_ns: FIRST_WIDTH_NS,
            all: Vec::new(),
            edges: HashMap::default(),
            is_full: false,
        }
    }

    /// Takes a request that is counted where it was seen.
    pub(super) fn add(&mut self, edge: &SharedEdge, seen: &ObservedRequest) {
        let since_begin = seen.exchange.end_ns.saturating_sub(self.begin_ns);
        let span = loop {
            match usize::try_from(since_begin / self.width_ns) {
                Ok(span) if span < SPANS => break span,
                Ok(_) | Err(_) => self.halve(),
            }
        };
        put(&mut self.all, span, seen);
        if !self.edges.contains_key(edge) {
            self.is_full |= self.edges.len() >= MAX_EDGES;
            if self.is_full {
                return;
            }
            self.edges.insert(edge.clone(), Vec::new());
        }
        if let Some(spans) = self.edges.get_mut(edge) {
            put(spans, span, seen);
        }
    }

    fn halve(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        for spans in self.edges.values_mut().chain([&mut self.all]) {
            let pairs = spans.chunks(2).map(|pair| {
                let mut sum = RequestSpan::default();
                for span in pair {
                    sum.merge(span);
                }
                sum
            });
            *spans = pairs.collect();
        }
    }

    /// An edge turned out to be another, of which more is known.
    pub(super) fn rename(&mut self, old: &SharedEdge, new: &SharedEdge) {
        let moved = self.edges.remove(old);
        if self.is_full && (moved.is_none() || !self.edges.contains_key(new)) {
            // Requests of one of both may be in the sum alone.
            self.edges.remove(new);
            return;
        }
        let Some(moved) = moved else {
            return;
        };
        let spans = self.edges.entry(new.clone()).or_default();
        if spans.len() < moved.len() {
            spans.resize_with(moved.len(), RequestSpan::default);
        }
        for (sum, more) in spans.iter_mut().zip(&moved) {
            sum.merge(more);
        }
    }

    /// Everything so far; `places` says where each edge is in the table.
    pub(super) fn rows(&self, places: &HashMap<&EdgeKey, u32>) -> RequestTimeline {
        let edges = self.edges.iter();
        let mut edges: Vec<_> = edges
            .filter_map(|(edge, spans)| Some((*places.get(&**edge)?, spans.clone())))
            .collect();
        edges.sort_by_key(|(place, _)| *place);
        RequestTimeline {
            width_ns: self.width_ns,
            all: self.all.clone(),
            edges,
        }
    }
}

fn put(spans: &mut Vec<RequestSpan>, span: usize, seen: &ObservedRequest) {
    if spans.len() <= span {
        spans.resize_with(span + 1, RequestSpan::default);
    }
    let Some(sum) = spans.get_mut(span) else {
        return;
    };
    let exchange = &seen.exchange;
    let stands_for = u64::from(seen.drawn.one_of());
    sum.count += stands_for;
    sum.errors += match exchange.outcome {
        Outcome::ClientError | Outcome::ServerError | Outcome::Broken => stands_for,
        Outcome::Ok | Outcome::Unknown => 0,
    };
    if exchange.first_byte_ns.is_some() && seen.is_whole() {
        sum.latency_ns.add(exchange.duration_ns());
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
