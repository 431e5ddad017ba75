//! Requests over the time of a task: as they are counted, and as they are published.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{EdgeId, RequestTable, Spread};

/// Requests by when they ended, in spans of the same width. Spans after the last request are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTimeline {
    /// 0: nothing was kept.
    pub width_ns: u64,
    /// Of all edges.
    pub all: Vec<RequestSpan>,
    /// Of the edges for which there was room, by their place in [`RequestTable::edges`].
    pub edges: Vec<(u32, Vec<RequestSpan>)>,
}

/// Requests that ended in one span of time. Where connections were sampled, counts are estimates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSpan {
    pub count: u64,
    pub errors: u64,
    /// Of those that were seen whole, each once.
    pub latency_ns: Spread,
}

impl RequestSpan {
    pub fn merge(&mut self, other: &Self) {
        let Self {
            count,
            errors,
            latency_ns,
        } = other;
        self.count = self.count.saturating_add(*count);
        self.errors = self.errors.saturating_add(*errors);
        self.latency_ns.merge(latency_ns);
    }
}

/// Requests over time, by when they ended. Each is counted once, at the end of the connection where operations count it; one that a
/// sidecar passes on is counted on the way to it and on the way on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RequestsOverTime {
    /// Beginning of the first span, nanoseconds since the Unix epoch. The last span ends with `window`: it lasts
    /// half to one and a half of `width_ns`.
    pub from_ns: u64,
    /// Width of each span; it grows with the task.
    pub width_ns: u64,
    pub all: RequestSpans,
    /// By the id of the edge; those for which there was no room are in `all` alone.
    pub edges: BTreeMap<String, RequestSpans>,
}

/// One number for each span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct RequestSpans {
    /// Where connections were sampled, estimates: each request that was seen counts as many as its connection stands for.
    pub count: Vec<u64>,
    pub errors: Vec<u64>,
    /// Upper bounds, at most 6.25 % above the value; null: no request was seen whole.
    pub p50_ns: Vec<Option<u64>>,
    pub p95_ns: Vec<Option<u64>>,
    pub p99_ns: Vec<Option<u64>>,
}

/// More spans than are ever kept, for results that are damaged.
const MAX_SPANS: u64 = 1024;

impl RequestTable {
    /// `None`: the agent that recorded it kept none.
    pub fn over_time(&self) -> Option<RequestsOverTime> {
        let RequestTimeline {
            width_ns,
            all,
            edges,
        } = &self.timeline;
        let width = (*width_ns).max(1);
        let covered = self.window.to_ns.saturating_sub(self.window.from_ns);
        let is_half = covered % width >= width.div_ceil(2);
        let spans = (covered / width + u64::from(is_half)).clamp(1, MAX_SPANS);
        let spans = usize::try_from(spans).unwrap_or(usize::MAX);
        let of_edge = |(place, found): &(u32, Vec<RequestSpan>)| {
            let edge = self.edges.get(usize::try_from(*place).ok()?)?;
            Some((EdgeId::of(&edge.key).to_string(), published(found, spans)))
        };
        (*width_ns > 0).then(|| RequestsOverTime {
            from_ns: self.window.from_ns,
            width_ns: *width_ns,
            all: published(all, spans),
            edges: edges.iter().filter_map(of_edge).collect(),
        })
    }
}

/// What is behind the last span goes into it: a short one would have the rate of a moment.
fn published(found: &[RequestSpan], spans: usize) -> RequestSpans {
    let mut found = found.to_vec();
    let late = found.split_off(found.len().min(spans));
    found.resize_with(spans, RequestSpan::default);
    if let Some(last) = found.last_mut() {
        for span in &late {
            last.merge(span);
        }
    }
    let each = || found.iter();
    let percentile = |thousandths| {
        each()
            .map(|span| span.latency_ns.percentile(thousandths))
            .map(|bounds| bounds.map(|bounds| bounds.to))
            .collect()
    };
    RequestSpans {
        count: each().map(|span| span.count).collect(),
        errors: each().map(|span| span.errors).collect(),
        p50_ns: percentile(500),
        p95_ns: percentile(950),
        p99_ns: percentile(990),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Window;

    #[test]
    fn spans_without_requests_are_published_up_to_the_end_of_the_window() {
        let mut span = RequestSpan {
            count: 4,
            errors: 1,
            ..RequestSpan::default()
        };
        span.latency_ns.add(7);
        let table = RequestTable {
            window: Window {
                from_ns: 100,
                to_ns: 135,
            },
            timeline: RequestTimeline {
                width_ns: 10,
                all: vec![RequestSpan::default(), span],
                edges: Vec::new(),
            },
            ..RequestTable::default()
        };
        let found = table.over_time().unwrap();
        assert_eq!((found.from_ns, found.width_ns), (100, 10));
        assert_eq!(found.all.count, [0, 4, 0, 0]);
        assert_eq!(found.all.errors, [0, 1, 0, 0]);
        assert_eq!(found.all.p99_ns, [None, Some(7), None, None]);
    }

    #[test]
    fn a_short_rest_is_a_part_of_the_last_span() {
        let span = |count| RequestSpan {
            count,
            ..RequestSpan::default()
        };
        let mut table = RequestTable {
            window: Window {
                from_ns: 100,
                to_ns: 124,
            },
            ..RequestTable::default()
        };
        table.timeline.width_ns = 10;
        table.timeline.all = vec![span(1), span(2), span(3)];
        assert_eq!(table.over_time().unwrap().all.count, [1, 5]);
        table.window.to_ns = 101;
        assert_eq!(table.over_time().unwrap().all.count, [6]);
    }

    #[test]
    fn a_result_without_a_timeline_has_none() {
        assert_eq!(RequestTable::default().over_time(), None);
    }
}
