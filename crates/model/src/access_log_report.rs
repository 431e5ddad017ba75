//! What an Envoy reports of a task's requests by its access log, as it is published.

use serde::Serialize;
use utoipa::ToSchema;

use super::{LoggedJoin, RequestValues};

/// What an Envoy reported during the task. Text is untrusted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedReport)]
pub struct AccessLogReport {
    /// What it calls itself; empty where it has not said.
    pub node_id: String,
    /// Requests that are over.
    pub requests: u64,
    /// TCP connections that are over.
    pub connections: u64,
    /// Requests that took several attempts.
    pub retried: u64,
    /// Attempts after the first of each request.
    pub retries: u64,
    /// Requests that the Envoy has logged, or dropped, by its own counters, and that did not arrive or were not read. Counts of
    /// operations contain an estimate of what was dropped or not read. Null: its counters are not known.
    #[schema(required)]
    pub missing: Option<u64>,
    /// How entries were joined with requests at sockets. Null: sockets were not looked at.
    #[schema(required)]
    pub joined: Option<LoggedJoin>,
    /// In the order in which a request goes through them; those without times are left out.
    pub phases: Vec<AccessLogPhase>,
    /// Response flags, those with the most requests and connections first. One request may have several.
    pub flags: Vec<AccessLogFlag>,
    /// Where responses come from, most first; after some different ones `other`.
    pub details: Vec<AccessLogDetail>,
    /// Versions of TLS of the clients' connections, most requests first. Requests without TLS are left out.
    pub tls: Vec<AccessLogTls>,
    /// Hosts that requests were sent to, those with the most requests first.
    pub upstreams: Vec<AccessLogUpstream>,
    /// Requests to hosts for which there was no room.
    pub of_other_upstreams: u64,
}

/// How long one phase of a request took.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedPhase)]
pub struct AccessLogPhase {
    /// `read`, `to_upstream`, `upstream`, `response`, `to_client`, `tail` or `cleanup`.
    pub name: String,
    /// What happens in it, in a sentence.
    pub meaning: &'static str,
    pub ns: RequestValues,
}

/// A response flag.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedFlag)]
pub struct AccessLogFlag {
    /// `UF`, as in `%RESPONSE_FLAGS%`.
    pub name: String,
    /// `UpstreamConnectionFailure`, as in `%RESPONSE_FLAGS_LONG%`.
    pub long_name: String,
    /// What happened, in a sentence.
    pub meaning: &'static str,
    /// The usual cause, and the setting to look at.
    pub cause: &'static str,
    /// Requests and connections that have it.
    pub count: u64,
    /// Where they were sent, most first: at most three places. Those that are missing from the sum of their counts went elsewhere.
    pub upstreams: Vec<AccessLogFlagged>,
}

/// Where requests with a response flag were sent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedFlagged)]
pub struct AccessLogFlagged {
    /// Empty: no cluster was chosen.
    pub cluster: String,
    /// Address and port of the host of the last attempt; empty: there was none.
    pub address: String,
    pub count: u64,
}

/// Where responses come from.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedDetail)]
pub struct AccessLogDetail {
    /// `via_upstream`, as in `%RESPONSE_CODE_DETAILS%`.
    pub text: String,
    pub count: u64,
}

/// A version of TLS.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedTls)]
pub struct AccessLogTls {
    /// `TLSv1.3`.
    pub version: String,
    pub count: u64,
}

/// A host of a cluster. Requests with several attempts belong to the host of the last one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedUpstream)]
pub struct AccessLogUpstream {
    pub cluster: String,
    /// Address and port.
    pub address: String,
    pub requests: u64,
    /// Requests that failed at the host: by status 5xx, by a status of gRPC that blames the server, or by a response flag.
    pub errors: u64,
    /// From the last byte of the request to the first one of the response.
    pub ns: RequestValues,
    /// Round-trip times of the Envoy's connections to the address, by the kernel: one of each connection that was open when its socket was
    /// looked for.
    pub rtt_ns: RequestValues,
    /// Segments that these connections sent again during the task; null: the socket of none was found.
    #[schema(required)]
    pub retransmits: Option<u64>,
    /// How the host differs from the others of its cluster by more than chance; null: it does not, or there are too few requests.
    #[schema(required)]
    pub stands_out: Option<String>,
}
