//! What Envoys report of their requests by their access logs, and what is known to be missing of it.

use std::net::SocketAddr;

use crate::{ProcessKey, access_log_status::AccessLogStage};

/// An Envoy that sends its access log. Counts begin with the first of its streams that the agent has received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvoyLogs {
    /// The process that holds the other end of the connections; `None`: there is none on this node, or it has not been found.
    pub process: Option<ProcessKey>,
    /// Where the connections come from; the newest one.
    pub peer: Option<SocketAddr>,
    /// What it calls itself. Untrusted text; empty: it has not said.
    pub node_id: String,
    pub version: String,
    /// Names of its logs, each once. Untrusted text.
    pub log_names: Vec<String>,
    /// Streams that are open.
    pub streams: u64,
    pub received: ReceivedLogs,
    /// What the Envoy itself counts; an error: why that is not known.
    pub own: Result<OwnLogCounts, String>,
    /// How much of what comes is read now.
    pub stage: AccessLogStage,
    /// When its first and its newest message came, nanoseconds since the Unix epoch.
    pub first_ns: u64,
    pub newest_ns: u64,
}

impl Default for EnvoyLogs {
    fn default() -> Self {
        Self {
            process: None,
            peer: None,
            node_id: String::new(),
            version: String::new(),
            log_names: Vec::new(),
            streams: 0,
            received: ReceivedLogs::default(),
            own: Err("it has not been asked yet".to_owned()),
            stage: AccessLogStage::Full,
            first_ns: 0,
            newest_ns: 0,
        }
    }
}

/// Entries that were received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedLogs {
    pub messages: u64,
    pub bytes: u64,
    /// Requests that are over.
    pub requests: u64,
    /// Connections of TCP that are over.
    pub connections: u64,
    /// Attempts of the router, of requests that have an entry of their own as well.
    pub attempts: u64,
    /// Streams that were not over when the entry was written.
    pub open: u64,
    /// Entries that could not be decoded, those beyond the most of one message, and records that are not of Envoy.
    pub unreadable: u64,
    /// Entries that were counted and not read, as reading them all would have taken too much.
    pub unread: u64,
    /// Messages that were refused, with all of their entries.
    pub refused: u64,
    /// Requests by the first digit of the status of the response; 0: there was none.
    pub classes: [u64; 6],
    /// Requests and connections by response flag, at the place of its bit (`profiler_access_logs::flags`).
    pub flags: [u64; 32],
}

impl ReceivedLogs {
    /// Entries of every kind.
    pub fn entries(&self) -> u64 {
        let Self {
            messages: _,
            bytes: _,
            requests,
            connections,
            attempts,
            open,
            unreadable,
            unread,
            refused: _,
            classes: _,
            flags: _,
        } = self;
        requests + connections + attempts + open + unreadable + unread
    }

    pub fn add(&mut self, more: &Self) {
        self.messages += more.messages;
        self.bytes += more.bytes;
        self.requests += more.requests;
        self.connections += more.connections;
        self.attempts += more.attempts;
        self.open += more.open;
        self.unreadable += more.unreadable;
        self.unread += more.unread;
        self.refused += more.refused;
        let classes = self.classes.iter_mut().zip(&more.classes);
        let flags = self.flags.iter_mut().zip(&more.flags);
        for (sum, more) in classes.chain(flags) {
            *sum += more;
        }
    }
}

/// What an Envoy counts of its own logs and requests, since its first entry came. `unknown` counts from the reading at which the least was
/// missing, the others from the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLogCounts {
    /// Entries that it has put into its buffers. `None`: it has no such counter.
    pub written: Option<u64>,
    /// Entries that it has thrown away, because its buffers were full.
    pub dropped: Option<u64>,
    /// Entries that it could not send (Envoy 1.40).
    pub failed: Option<u64>,
    /// Requests whose answers it has begun, whether they are logged or not.
    pub completed: Option<u64>,
    /// Of `written`, those that have not come.
    pub unknown: Option<u64>,
}
