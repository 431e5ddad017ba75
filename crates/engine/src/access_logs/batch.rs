//! Entries of one message, sorted.

use profiler_access_logs::{Counts, Entry, Kind};
use profiler_model::ReceivedLogs;

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) received: ReceivedLogs,
    /// Entries of which nothing more is known.
    pub(super) untimed: u64,
    /// Of each entry, whether it is of a request that is over, and when it was over.
    pub(super) over: Vec<(bool, Option<u64>)>,
}

impl Batch {
    pub(super) fn take(&mut self, entry: &Entry) {
        let mut is_request = false;
        if entry.is_attempt() {
            self.received.attempts += 1;
        } else if !entry.is_complete() {
            self.received.open += 1;
        } else {
            is_request = entry.kind == Kind::Http;
            self.add_ended(entry, is_request);
        }
        let over = entry
            .start_unix_ns
            .map(|start| start.saturating_add(entry.timing.duration_ns.unwrap_or(0)));
        self.over.push((is_request, over));
    }

    /// A request or a connection that is over.
    fn add_ended(&mut self, entry: &Entry, is_request: bool) {
        let received = &mut self.received;
        if is_request {
            received.requests += 1;
            let class = usize::from(entry.response.status.unwrap_or(0) / 100);
            if let Some(count) = received.classes.get_mut(class) {
                *count += 1;
            }
        } else {
            received.connections += 1;
        }
        let flags = entry.response.flags.bits();
        if flags != 0 {
            for (bit, count) in received.flags.iter_mut().enumerate() {
                *count += u64::from(flags >> bit & 1);
            }
        }
    }

    /// Entries of a message that were counted and not read.
    pub(super) fn count(&mut self, bytes: usize, entries: u64) {
        self.received.messages += 1;
        self.received.bytes += bytes as u64;
        self.untimed = entries;
        self.received.unread += entries;
    }

    /// Entries of every kind.
    pub(super) fn entries(&self) -> u64 {
        self.received.entries()
    }

    pub(super) fn end(&mut self, bytes: usize, counts: &Counts) {
        self.received.messages += 1;
        self.received.bytes += bytes as u64;
        self.untimed = counts.all() - counts.entries;
        self.received.unreadable += self.untimed;
    }
}
