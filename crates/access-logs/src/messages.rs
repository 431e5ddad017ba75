//! The messages of Envoy's access log service, reduced to the fields that are read.
//!
//! Field numbers are those of `envoy/service/accesslog/v3/als.proto`, `envoy/data/accesslog/v3/accesslog.proto` and
//! `envoy/config/core/v3/{address,base}.proto` (data-plane-api of Envoy 1.36 to 1.40). Strings are declared as `bytes`, which
//! have the same encoding: they share the memory of the message, and UTF-8 is not checked. Other fields are skipped, among
//! them filter state, metadata, custom tags and all headers but [`crate::GRPC_STATUS`], which can be large and secret.

use bytes::Bytes;

/// `StreamAccessLogsMessage`. It is walked by hand and each entry is decoded alone: a list of many empty entries would take
/// hundreds of times the memory of the message.
pub(crate) mod stream {
    pub(crate) const IDENTIFIER: u32 = 1;
    pub(crate) const HTTP_LOGS: u32 = 2;
    pub(crate) const TCP_LOGS: u32 = 3;
    /// `log_entry` of both `HTTPAccessLogEntries` and `TCPAccessLogEntries`.
    pub(crate) const LOG_ENTRY: u32 = 1;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Identifier {
    #[prost(message, optional, tag = "1")]
    pub(crate) node: Option<Node>,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) log_name: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Node {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) id: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) cluster: Bytes,
    #[prost(bytes = "bytes", tag = "7")]
    pub(crate) user_agent_version: Bytes,
    #[prost(message, optional, tag = "8")]
    pub(crate) user_agent_build_version: Option<BuildVersion>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BuildVersion {
    #[prost(message, optional, tag = "1")]
    pub(crate) version: Option<SemanticVersion>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SemanticVersion {
    #[prost(uint32, tag = "1")]
    pub(crate) major_number: u32,
    #[prost(uint32, tag = "2")]
    pub(crate) minor_number: u32,
    #[prost(uint32, tag = "3")]
    pub(crate) patch: u32,
}

/// `HTTPAccessLogEntry` and `TCPAccessLogEntry`.
pub(crate) mod entry {
    pub(crate) const COMMON: u32 = 1;
    pub(crate) const PROTOCOL_VERSION: u32 = 2;
    pub(crate) const REQUEST: u32 = 3;
    pub(crate) const RESPONSE: u32 = 4;
    /// Of connections.
    pub(crate) const CONNECTION: u32 = 2;
}

/// `ConnectionProperties`.
pub(crate) mod connection {
    pub(crate) const RECEIVED_BYTES: u32 = 1;
    pub(crate) const SENT_BYTES: u32 = 2;
}

/// `AccessLogCommon`, and `ResponseFlags` in it.
pub(crate) mod common {
    pub(crate) const DOWNSTREAM_REMOTE_ADDRESS: u32 = 2;
    pub(crate) const DOWNSTREAM_LOCAL_ADDRESS: u32 = 3;
    pub(crate) const TLS_PROPERTIES: u32 = 4;
    pub(crate) const START_TIME: u32 = 5;
    pub(crate) const TIME_TO_LAST_RX_BYTE: u32 = 6;
    pub(crate) const TIME_TO_FIRST_UPSTREAM_TX_BYTE: u32 = 7;
    pub(crate) const TIME_TO_LAST_UPSTREAM_TX_BYTE: u32 = 8;
    pub(crate) const TIME_TO_FIRST_UPSTREAM_RX_BYTE: u32 = 9;
    pub(crate) const TIME_TO_LAST_UPSTREAM_RX_BYTE: u32 = 10;
    pub(crate) const TIME_TO_FIRST_DOWNSTREAM_TX_BYTE: u32 = 11;
    pub(crate) const TIME_TO_LAST_DOWNSTREAM_TX_BYTE: u32 = 12;
    pub(crate) const UPSTREAM_REMOTE_ADDRESS: u32 = 13;
    pub(crate) const UPSTREAM_LOCAL_ADDRESS: u32 = 14;
    pub(crate) const UPSTREAM_CLUSTER: u32 = 15;
    pub(crate) const RESPONSE_FLAGS: u32 = 16;
    pub(crate) const UPSTREAM_TRANSPORT_FAILURE_REASON: u32 = 18;
    pub(crate) const ROUTE_NAME: u32 = 19;
    pub(crate) const DOWNSTREAM_DIRECT_REMOTE_ADDRESS: u32 = 20;
    pub(crate) const DURATION: u32 = 23;
    pub(crate) const UPSTREAM_REQUEST_ATTEMPT_COUNT: u32 = 24;
    pub(crate) const CONNECTION_TERMINATION_DETAILS: u32 = 25;
    pub(crate) const STREAM_ID: u32 = 26;
    pub(crate) const INTERMEDIATE_LOG_ENTRY: u32 = 27;
    pub(crate) const DOWNSTREAM_TRANSPORT_FAILURE_REASON: u32 = 28;
    pub(crate) const DOWNSTREAM_WIRE_BYTES_SENT: u32 = 29;
    pub(crate) const DOWNSTREAM_WIRE_BYTES_RECEIVED: u32 = 30;
    pub(crate) const UPSTREAM_WIRE_BYTES_SENT: u32 = 31;
    pub(crate) const UPSTREAM_WIRE_BYTES_RECEIVED: u32 = 32;
    pub(crate) const ACCESS_LOG_TYPE: u32 = 33;
    /// Flags have the numbers from 1 on.
    pub(crate) const LAST_FLAG: u32 = 28;
    /// The flag that is a message.
    pub(crate) const UNAUTHORIZED_DETAILS: u32 = 13;
    pub(crate) const UNAUTHORIZED_REASON: u32 = 1;
}

/// `TLSProperties` of the downstream connection; the message has none of the upstream connection.
pub(crate) mod tls {
    pub(crate) const VERSION: u32 = 1;
    pub(crate) const SNI_HOSTNAME: u32 = 3;
    pub(crate) const LOCAL_CERTIFICATE: u32 = 4;
    pub(crate) const PEER_CERTIFICATE: u32 = 5;
}

/// `CertificateProperties` and its `SubjectAltName`.
pub(crate) mod certificate {
    pub(crate) const SUBJECT_ALT_NAME: u32 = 1;
    pub(crate) const URI: u32 = 1;
}

/// `HTTPRequestProperties`.
pub(crate) mod request {
    pub(crate) const METHOD: u32 = 1;
    pub(crate) const AUTHORITY: u32 = 3;
    pub(crate) const PATH: u32 = 5;
    pub(crate) const ID: u32 = 9;
    pub(crate) const ORIGINAL_PATH: u32 = 10;
    pub(crate) const HEADERS_BYTES: u32 = 11;
    pub(crate) const BODY_BYTES: u32 = 12;
}

/// `HTTPResponseProperties`.
pub(crate) mod response {
    pub(crate) const CODE: u32 = 1;
    pub(crate) const CODE_VALUE: u32 = 1;
    pub(crate) const HEADERS_BYTES: u32 = 2;
    pub(crate) const BODY_BYTES: u32 = 3;
    pub(crate) const HEADERS: u32 = 4;
    pub(crate) const TRAILERS: u32 = 5;
    pub(crate) const CODE_DETAILS: u32 = 6;
}

/// A header or trailer.
pub(crate) mod header {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
}

/// `google.protobuf.Timestamp` and `google.protobuf.Duration`.
pub(crate) mod time {
    pub(crate) const SECONDS: u32 = 1;
    pub(crate) const NANOS: u32 = 2;
}

/// `Address`, and what it can be.
pub(crate) mod address {
    pub(crate) const SOCKET: u32 = 1;
    pub(crate) const PIPE: u32 = 2;
    pub(crate) const INTERNAL: u32 = 3;
    pub(crate) const SOCKET_ADDRESS: u32 = 2;
    pub(crate) const SOCKET_PORT: u32 = 3;
    pub(crate) const SOCKET_NAMED_PORT: u32 = 4;
    pub(crate) const PIPE_PATH: u32 = 1;
    pub(crate) const INTERNAL_LISTENER: u32 = 1;
}
