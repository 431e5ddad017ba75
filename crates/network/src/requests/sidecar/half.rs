//! What is kept of a request until the other one of its pair is there.

use profiler_model::{RequestAtSocket, RequestPlace};

use crate::requests::{
    digest::digest,
    observed_request::{ObservedRequest, request_id},
};

/// When one request of a pair was where.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "all are nanoseconds")]
pub(in crate::requests) struct PairTimes {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) first_byte_ns: Option<u64>,
    /// When its first byte had arrived, and that of its answer.
    pub(super) ready_ns: Option<u64>,
    pub(super) answer_ready_ns: Option<u64>,
}

impl PairTimes {
    pub(in crate::requests) fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

impl From<&RequestAtSocket> for PairTimes {
    fn from(seen: &RequestAtSocket) -> Self {
        Self {
            begin_ns: seen.begin_ns,
            end_ns: seen.end_ns,
            first_byte_ns: seen.first_byte_ns,
            ready_ns: seen.ready_ns,
            answer_ready_ns: seen.answer_ready_ns,
        }
    }
}

/// A request into, or out of, a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Half {
    /// Reports before it came.
    pub(super) since: u64,
    pub(super) place: RequestPlace,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) request_end_ns: Option<u64>,
    pub(super) first_byte_ns: Option<u64>,
    /// When its first byte had arrived, and that of its answer.
    pub(super) ready_ns: Option<u64>,
    pub(super) answer_ready_ns: Option<u64>,
    /// By [`digest`]: they are compared and nothing else.
    pub(super) request_id: Option<u64>,
    pub(super) trace_id: Option<u64>,
    /// What a request and the one that goes out for it have in common, in the same way. `None`: too little is known of it to tell
    /// it from others.
    pub(super) alike: Option<u64>,
    pub(super) upstream_service_ms: Option<u64>,
    /// It fitted a request out that was given to another one by order: what is left for it is no more
    /// certain than that.
    pub(super) is_doubtful: bool,
}

impl Half {
    pub(super) fn new(seen: &ObservedRequest, since: u64) -> Self {
        let exchange = &seen.exchange;
        let alike = match (seen.begin.tid, &exchange.method, exchange.path_hash) {
            (Some(tid), Some(method), Some(path_hash)) if exchange.request_size_known => {
                let (authority, bytes) = (&exchange.authority, exchange.request_bytes);
                Some(digest((tid, method, authority, path_hash, bytes)))
            }
            _ => None,
        };
        Self {
            since,
            place: RequestPlace {
                client: seen.client,
                stream: exchange.stream,
            },
            begin_ns: exchange.begin_ns,
            end_ns: exchange.end_ns,
            request_end_ns: exchange.request_end_ns,
            first_byte_ns: exchange.first_byte_ns,
            ready_ns: seen.begin.ready_ns,
            answer_ready_ns: seen.answer.and_then(|answer| answer.ready_ns),
            request_id: request_id(exchange),
            trace_id: exchange.trace.trace_id.as_ref().map(digest),
            alike,
            upstream_service_ms: exchange.upstream_service_ms,
            is_doubtful: false,
        }
    }

    pub(super) fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    pub(super) fn times(&self) -> PairTimes {
        PairTimes {
            begin_ns: self.begin_ns,
            end_ns: self.end_ns,
            first_byte_ns: self.first_byte_ns,
            ready_ns: self.ready_ns,
            answer_ready_ns: self.answer_ready_ns,
        }
    }

    /// Whether `other` may have gone out for this one.
    pub(super) fn contains(&self, other: &Self) -> bool {
        self.begin_ns <= other.begin_ns && other.end_ns <= self.end_ns
    }
}
