//! Estimates for edges with too few captured connections, by the bytes that all connections moved.
//!
//! The kernel counts the bytes of every connection, and how many of them were captured. The requests that were seen, times
//! all bytes, divided by the captured bytes, is a ratio estimator (Cochran 1977, Sampling Techniques, 6.3). The mix of
//! requests and the captured part both change over time, so each span of time has its own ratio. A span without captured
//! bytes is added to the one before. The error is not known: spans are not captured at random.

use core::ops::Add;

use profiler_model::float;

use crate::edges::Traffic;

/// The most spans. When they are full, they are merged in pairs.
const SPANS: usize = 64;

/// The spans of a task. Each ends with a report, after the same number of reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    /// When each of them ended. The last one goes on.
    ends_ns: Vec<u64>,
    reports: u64,
    /// Reports of one span are two to the power of this.
    halvings: u32,
}

impl Spans {
    /// A report was made. `true`: spans were merged in pairs, call [`PerSpan::halve`].
    pub(super) fn report(&mut self, now_ns: u64) -> bool {
        self.reports += 1;
        if !self.reports.is_multiple_of(1 << self.halvings) {
            return false;
        }
        self.ends_ns.push(now_ns);
        let is_full = self.ends_ns.len() >= SPANS;
        if is_full {
            // A pair ends where its second span ends.
            let mut is_second = true;
            self.ends_ns.retain(|_| {
                is_second = !is_second;
                is_second
            });
            self.halvings += 1;
        }
        is_full
    }

    /// Index of the span that holds a time.
    pub(super) fn of(&self, at_ns: u64) -> usize {
        self.ends_ns.partition_point(|end_ns| *end_ns < at_ns)
    }

    /// Index of the span that goes on.
    pub(super) fn last(&self) -> usize {
        self.ends_ns.len()
    }
}

/// One value for each span.
#[derive(Clone, Debug, Default)]
pub(super) struct PerSpan<T>(Vec<T>);

impl<T: Copy + Default + Add<Output = T>> PerSpan<T> {
    pub(super) fn at(&mut self, span: usize) -> &mut T {
        let span = span.min(SPANS - 1);
        if self.0.len() <= span {
            self.0.resize(span + 1, T::default());
        }
        &mut self.0[span]
    }

    fn get(&self, span: usize) -> T {
        self.0.get(span).copied().unwrap_or_default()
    }

    pub(super) fn halve(&mut self) {
        let pairs = self.0.chunks(2).map(|pair| match pair {
            [first, second] => *first + *second,
            rest => rest.first().copied().unwrap_or_default(),
        });
        self.0 = pairs.collect();
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (span, more) in other.0.iter().enumerate() {
            let sum = self.at(span);
            *sum = *sum + *more;
        }
    }
}

/// Bytes of the connections of an edge.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    ended: Traffic,
    open: Traffic,
    /// All of them when the last span ended.
    before: Traffic,
    spans: PerSpan<Traffic>,
}

impl Coverage {
    /// All open connections are added again after this.
    pub(super) fn forget_open(&mut self) {
        self.open = Traffic::default();
    }

    /// A connection that is open, or has ended since the last report.
    pub(super) fn add(&mut self, traffic: Traffic, has_ended: bool) {
        let sum = if has_ended {
            &mut self.ended
        } else {
            &mut self.open
        };
        *sum = *sum + traffic;
    }

    /// What is new belongs to this span.
    pub(super) fn report(&mut self, span: usize) {
        let new = self.all().since(self.before);
        self.before = self.all();
        let sum = self.spans.at(span);
        *sum = *sum + new;
    }

    fn all(&self) -> Traffic {
        self.ended + self.open
    }

    pub(super) fn halve(&mut self) {
        self.spans.halve();
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.ended = self.ended + other.ended;
        self.open = self.open + other.open;
        self.before = self.before + other.before;
        self.spans.merge(&other.spans);
    }

    /// Whether all was captured.
    pub(super) fn is_whole(&self) -> bool {
        self.all().captured >= self.all().moved
    }

    /// All requests divided by those that were seen, at least 1. `None`: nothing was captured or seen.
    pub(super) fn factor(&self, seen: &PerSpan<u64>) -> Option<f64> {
        if self.all().captured == 0 {
            return None;
        }
        let spans = self.spans.0.len().max(seen.0.len());
        let (mut estimate, mut sum) = (0.0, 0);
        // Spans before the first captured one are added to it.
        let mut run = Traffic::default();
        let mut seen_in_run = 0;
        for span in 0..spans {
            let (traffic, requests) = (self.spans.get(span), seen.get(span));
            if traffic.captured > 0 && run.captured > 0 {
                estimate += float(seen_in_run) * ratio(run);
                (run, seen_in_run) = (Traffic::default(), 0);
            }
            run = run + traffic;
            seen_in_run += requests;
            sum += requests;
        }
        estimate += float(seen_in_run) * ratio(run);
        (sum > 0).then(|| (estimate / float(sum)).max(1.0))
    }
}

fn ratio(traffic: Traffic) -> f64 {
    float(traffic.moved.max(traffic.captured)) / float(traffic.captured.max(1))
}

/// So many times `number`, rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; beyond the range it is the greatest number"
)]
pub(super) fn times(number: u64, factor: f64) -> u64 {
    (float(number) * factor).round() as u64
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
