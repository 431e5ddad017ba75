//! Requests of HTTP/1 on one edge as the kernel counted them, at either end.

use profiler_model::SeenBy;

use crate::edges::HttpEnd;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct EdgeCounts {
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
        let end = match more.seen_by {
            SeenBy::Client => &mut self.client,
            SeenBy::Server => &mut self.server,
        };
        match end {
            Some(sum) => sum.merge(more),
            None => *end = Some(more.clone()),
        }
    }

    fn merge(&mut self, other: &Self) {
        for end in other.client.iter().chain(&other.server) {
            self.add(end);
        }
    }
}

impl EdgeCounts {
    /// All open connections are added again after this.
    pub(super) fn forget_open(&mut self) {
        self.open = Ends::default();
    }

    /// A connection that is open, or has ended since the last report.
    pub(super) fn add(&mut self, end: &HttpEnd, has_ended: bool) {
        let ends = if has_ended {
            &mut self.ended
        } else {
            &mut self.open
        };
        ends.add(end);
    }

    pub(super) fn contradict(&mut self) {
        self.is_contradicted = true;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.ended.merge(&other.ended);
        self.open.merge(&other.open);
        self.is_contradicted |= other.is_contradicted;
    }

    /// What the end counted that counted more; where both counted the same the one that is sure, or the client's. `None`: there
    /// were no requests.
    pub(super) fn sum(&self) -> Option<HttpEnd> {
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
