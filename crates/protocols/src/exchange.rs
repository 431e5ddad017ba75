//! What comes out of a decoder.

use serde::{Deserialize, Serialize};

use super::Direction;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    Http1,
    Http2,
    Grpc,
    WebSocket,
    /// A connection whose plaintext is not seen.
    Tls,
    Dns,
    Redis,
    PostgreSql,
    MySql,
    Kafka,
    MongoDb,
    /// HTTP of a version that is not known or that no decoder reads, as an access log tells it.
    Http,
}

impl Protocol {
    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::Grpc => "grpc",
            Self::WebSocket => "websocket",
            Self::Tls => "tls",
            Self::Dns => "dns",
            Self::Redis => "redis",
            Self::PostgreSql => "postgresql",
            Self::MySql => "mysql",
            Self::Kafka => "kafka",
            Self::MongoDb => "mongodb",
            Self::Http => "http",
        }
    }
}

/// What the answer reported about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    Http(u16),
    /// The number of `grpc-status`, with the HTTP status where that is not 200.
    Grpc(u32),
    /// A code of the protocol's own: `NXDOMAIN`, `42P01`, `WRONGTYPE`.
    Code(String),
    /// The answer names no code and is none of an error.
    Fine,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Outcome {
    Ok,
    /// The answer says that the request was wrong (HTTP 4xx, a syntax error).
    ClientError,
    /// The answer says that the server failed (HTTP 5xx).
    ServerError,
    /// The connection ended, or the stream was reset, before the answer was complete.
    Broken,
    /// The answer was not seen whole: payload is missing.
    Unknown,
}

/// Messages of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    pub to_server: u64,
    pub to_client: u64,
}

/// Ids that tie requests of several connections together. Untrusted text, at most 128 bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceIds {
    /// `x-request-id`.
    pub request_id: Option<String>,
    /// The trace of `traceparent`, `b3`, `x-b3-traceid` or `sw8`.
    pub trace_id: Option<String>,
    /// The span of the same.
    pub span_id: Option<String>,
}

/// The beginning of a body, as it was sent. Untrusted bytes, and perhaps secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// From the first byte on, without a hole.
    pub bytes: Vec<u8>,
    /// More came behind them that is not kept, or was not seen.
    pub is_cut: bool,
}

/// A request with what became of it. Text is untrusted and bounded. `None`: not seen, or not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    pub protocol: Protocol,
    /// `GET`, a statement's first word, a command.
    pub method: Option<String>,
    /// The operation: a path with its numbers folded, `/service/Method`, a statement without values.
    pub route: Option<String>,
    /// As it was sent, query masked; only with [`super::Privacy::raw_paths`].
    pub path: Option<String>,
    pub authority: Option<String>,
    pub status: Option<Status>,
    pub outcome: Outcome,
    /// When the first byte of the request was moved.
    pub begin_ns: u64,
    /// When the last byte of the request was.
    pub request_end_ns: Option<u64>,
    /// When the first byte of the answer was.
    pub first_byte_ns: Option<u64>,
    /// When the last byte of the answer was, or when it broke.
    pub end_ns: u64,
    /// Of an outcome that is unknown: `first_byte_ns` and `end_ns` are those of the answer all the same.
    #[serde(default)]
    pub is_timed: bool,
    /// Body bytes (HTTP), or those of whole messages.
    pub request_bytes: u64,
    pub response_bytes: u64,
    /// Whether that was seen whole.
    pub request_size_known: bool,
    pub response_size_known: bool,
    pub messages: Option<Messages>,
    pub trace: TraceIds,
    /// Chosen headers of request and answer (`name`, `value`), values redacted where they must be.
    pub headers: Vec<(String, String)>,
    /// Number of the request on its connection and, with HTTP/2, of its stream.
    pub stream: u64,
    /// Milliseconds of `x-envoy-upstream-service-time`.
    pub upstream_service_ms: Option<u64>,
    /// A hash of the path as it was sent, query included: distinguishes requests without keeping it.
    pub path_hash: Option<u64>,
    /// Bodies of HTTP, only with [`super::Privacy::body_bytes`].
    pub request_body: Option<Body>,
    pub response_body: Option<Body>,
}

impl Exchange {
    pub(crate) fn lose_size(&mut self, direction: Direction) {
        match direction {
            Direction::ToServer => self.request_size_known = false,
            Direction::ToClient => self.response_size_known = false,
        }
    }

    pub(crate) fn lose_sizes(&mut self) {
        self.request_size_known = false;
        self.response_size_known = false;
    }

    /// One of which nothing is known but when it began.
    pub fn new(protocol: Protocol, begin_ns: u64) -> Self {
        Self {
            protocol,
            method: None,
            route: None,
            path: None,
            authority: None,
            status: None,
            outcome: Outcome::Unknown,
            begin_ns,
            request_end_ns: None,
            first_byte_ns: None,
            end_ns: begin_ns,
            is_timed: false,
            request_bytes: 0,
            response_bytes: 0,
            request_size_known: true,
            response_size_known: true,
            messages: None,
            trace: TraceIds::default(),
            headers: Vec::new(),
            stream: 0,
            upstream_service_ms: None,
            path_hash: None,
            request_body: None,
            response_body: None,
        }
    }

    /// Keeps bytes of a body as long as there are fewer than `limit`.
    pub(crate) fn keep_body(&mut self, direction: Direction, bytes: &[u8], limit: usize) {
        if limit == 0 || bytes.is_empty() {
            return;
        }
        let body = self.body(direction).get_or_insert_default();
        if body.is_cut {
            return;
        }
        let room = limit.saturating_sub(body.bytes.len());
        body.is_cut = bytes.len() > room;
        body.bytes.extend(bytes.iter().take(room));
    }

    /// Bytes of a body were not seen.
    pub(crate) fn miss_body(&mut self, direction: Direction, limit: usize) {
        if limit > 0 {
            self.body(direction).get_or_insert_default().is_cut = true;
        }
    }

    fn body(&mut self, direction: Direction) -> &mut Option<Body> {
        match direction {
            Direction::ToServer => &mut self.request_body,
            Direction::ToClient => &mut self.response_body,
        }
    }

    /// From the first byte of the request to the last one of the answer.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}
