//! Requests of HTTP on one edge as the kernel counted them, at either end.

use profiler_model::SeenBy;
use profiler_protocols::Protocol;

use crate::edges::HttpEnd;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct EdgeCounts {
    http1: Counts,
    http2: Counts,
}

/// Of one protocol.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// Of connections that have ended, and of those that are open, by the end that counted.
    ended: Ends,
    open: Ends,
    /// The decoder saw requests that the kernel did not count.
    is_contradicted: bool,
}

#[derive(Clone, Debug, Default)]
struct Ends {
    client: Option<HttpEnd>,
    server: Option<HttpEnd>,
}

impl Ends {
    fn add(&mut self, more: &HttpEnd) {
        let ends = [
            (SeenBy::Client, &mut self.client),
            (SeenBy::Server, &mut self.server),
        ];
        for (seen_by, end) in ends {
            if more.seen_by.is_some_and(|by| by != seen_by) {
                continue;
            }
            match end {
                Some(sum) => sum.merge(more),
                None => {
                    *end = Some(HttpEnd {
                        seen_by: Some(seen_by),
                        ..more.clone()
                    });
                }
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        for end in other.client.iter().chain(&other.server) {
            self.add(end);
        }
    }
}

impl EdgeCounts {
    fn all(&mut self) -> [&mut Counts; 2] {
        [&mut self.http1, &mut self.http2]
    }

    fn of(&mut self, protocol: Protocol) -> &mut Counts {
        match protocol {
            Protocol::Http2 => &mut self.http2,
            _ => &mut self.http1,
        }
    }

    /// All open connections are added again after this.
    pub(super) fn forget_open(&mut self) {
        for counts in self.all() {
            counts.open = Ends::default();
        }
    }

    /// A connection that is open, or has ended since the last report.
    pub(super) fn add(&mut self, end: &HttpEnd, has_ended: bool) {
        for protocol in [Protocol::Http1, Protocol::Http2] {
            if end.protocol.is_some_and(|spoken| spoken != protocol) {
                continue;
            }
            let counts = self.of(protocol);
            let ends = if has_ended {
                &mut counts.ended
            } else {
                &mut counts.open
            };
            ends.add(end);
        }
    }

    pub(super) fn contradict(&mut self, protocol: Protocol) {
        self.of(protocol).is_contradicted = true;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (counts, other) in self.all().into_iter().zip([&other.http1, &other.http2]) {
            counts.ended.merge(&other.ended);
            counts.open.merge(&other.open);
            counts.is_contradicted |= other.is_contradicted;
        }
    }

    /// Of each protocol of which there were requests.
    pub(super) fn sums(&self) -> Vec<(Protocol, HttpEnd)> {
        let all = [
            (Protocol::Http1, &self.http1),
            (Protocol::Http2, &self.http2),
        ];
        let sums = all.into_iter();
        sums.filter_map(|(protocol, counts)| Some((protocol, counts.sum()?)))
            .collect()
    }
}

impl Counts {
    /// What the end counted that counted more; where both counted the same the one that is sure, or the client's. `None`: there
    /// were no requests.
    fn sum(&self) -> Option<HttpEnd> {
        let mut all = self.ended.clone();
        all.merge(&self.open);
        let count = |end: &Option<HttpEnd>| {
            end.as_ref()
                .map_or((0, false), |end| (end.outcomes.all(), end.is_sure))
        };
        let end = if count(&all.server) > count(&all.client) {
            all.server
        } else {
            all.client
        };
        let mut end = end.filter(|end| end.outcomes.all() > 0)?;
        end.is_sure &= !self.is_contradicted;
        Some(end)
    }
}
