//! What a process adds to the requests that pass through it.

use std::{collections::BTreeMap, net::SocketAddr};

use serde::{Deserialize, Serialize};

use super::{Endpoint, Spread};

/// What ties a request that came in to the one that went out for it, the best evidence first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MatchClass {
    /// Both have the same `x-request-id`, and no other request of that time has it.
    RequestId,
    /// Both have the same trace, and no other request of that time on either side has it.
    TraceId,
    /// They agree in method, authority, path and size, on one thread, and nothing else fits either.
    Fingerprint,
    /// Several fit equally well; the order in which they came and went decided.
    Order,
    /// The process itself says so, by its access log.
    AccessLog,
}

impl MatchClass {
    pub const ALL: [Self; 5] = [
        Self::AccessLog,
        Self::RequestId,
        Self::TraceId,
        Self::Fingerprint,
        Self::Order,
    ];

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestId => "request_id",
            Self::TraceId => "trace_id",
            Self::Fingerprint => "fingerprint",
            Self::Order => "order",
            Self::AccessLog => "access_log",
        }
    }
}

/// A process that requests go into and out of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sidecar {
    /// Its address is that of one of its connections.
    pub process: Endpoint,
    /// Requests that came in and went out, whose answer was seen whole, and how long they took together.
    pub requests_in: u64,
    pub requests_out: u64,
    pub time_in_ns: u64,
    pub time_out_ns: u64,
    /// Requests in of which no request out was found: answered here, or not matched.
    pub unmatched_in: u64,
    pub unmatched_out: u64,
    /// Requests for which there was no room until their other half came.
    pub forgotten: u64,
    /// Pairs by what ties them together.
    pub pairs: BTreeMap<MatchClass, SidecarTimes>,
    /// What the process itself reports about the time that it waited.
    pub upstream_header: UpstreamHeader,
    /// Each pair, where every request is kept.
    pub matched: Vec<Matched>,
    /// Pairs for which there was no room there.
    pub matched_left_out: u64,
}

/// A request that came in and the one that went out for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    pub class: MatchClass,
    pub inner: RequestPlace,
    pub outer: RequestPlace,
}

/// Where a request was, as samples say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPlace {
    /// The client's end of the connection.
    pub client: SocketAddr,
    /// Number of the request, or its stream, on that connection.
    pub stream: u64,
}

impl Sidecar {
    /// Time in the process for each request that came in, without what it waited for others. Needs no
    /// pairs: which request belongs to which does not change the sums. `None` without requests, and when
    /// more time was waited than taken, as with requests to several at once.
    pub fn mean_ns(&self) -> Option<u64> {
        let inside = self.time_in_ns.checked_sub(self.time_out_ns)?;
        inside.checked_div(self.requests_in)
    }

    /// How many pairs there are.
    pub fn pairs(&self) -> u64 {
        self.pairs.values().map(|times| times.pairs).sum()
    }

    /// The times of all pairs but those that order alone decided.
    pub fn trusted(&self) -> SidecarTimes {
        let mut sum = SidecarTimes::default();
        for (class, times) in &self.pairs {
            if *class != MatchClass::Order {
                sum.merge(times);
            }
        }
        sum
    }
}

/// Where the time of pairs went, nanoseconds. The parts up to `to_client_ns` add up to the time until
/// the client got the first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SidecarTimes {
    pub pairs: u64,
    /// The time of the request that came in, from its arrival, where that was measured, otherwise from reading its first byte,
    /// to writing the last one of the answer.
    pub whole_ns: Spread,
    /// The time of the request that came in less that of the one that went out.
    pub inside_ns: Spread,
    /// From the arrival of the request until the process read it; of pairs for which it was measured.
    pub read_wait_ns: Spread,
    /// From reading the request to writing it to the upstream.
    pub to_upstream_ns: Spread,
    /// From there to reading the first byte of the answer: network and upstream, and until it was read.
    pub upstream_ns: Spread,
    /// The part of it for which the answer lay in the socket already; of pairs for which it was measured.
    pub answer_wait_ns: Spread,
    /// From reading the first byte of the answer to writing one to the client.
    pub to_client_ns: Spread,
}

impl SidecarTimes {
    /// Adds the times of other pairs.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            pairs,
            whole_ns,
            inside_ns,
            read_wait_ns,
            to_upstream_ns,
            upstream_ns,
            answer_wait_ns,
            to_client_ns,
        } = other;
        self.pairs += pairs;
        self.whole_ns.merge(whole_ns);
        self.inside_ns.merge(inside_ns);
        self.read_wait_ns.merge(read_wait_ns);
        self.to_upstream_ns.merge(to_upstream_ns);
        self.upstream_ns.merge(upstream_ns);
        self.answer_wait_ns.merge(answer_wait_ns);
        self.to_client_ns.merge(to_client_ns);
    }
}

/// `x-envoy-upstream-service-time` of answers, beside what was measured for the same pairs. It is in
/// whole milliseconds, rounded down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamHeader {
    pub pairs: u64,
    pub header_ms: u64,
    pub measured_ns: u64,
    /// Pairs whose measured time is within 2 ms of the header's.
    pub agreeing: u64,
}
