//! Entries as prost decodes them, to hold [`crate::encoded`] against it.

#![expect(
    clippy::struct_field_names,
    reason = "the fields have the names of Envoy's"
)]

use bytes::Bytes;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HttpEntry {
    #[prost(message, optional, tag = "1")]
    pub(crate) common: Option<Common>,
    #[prost(int32, tag = "2")]
    pub(crate) protocol_version: i32,
    #[prost(message, optional, tag = "3")]
    pub(crate) request: Option<Request>,
    /// An encoded [`Response`], whose headers are searched and not listed.
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) response: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TcpEntry {
    #[prost(message, optional, tag = "1")]
    pub(crate) common: Option<Common>,
    #[prost(message, optional, tag = "2")]
    pub(crate) connection: Option<Connection>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Connection {
    #[prost(uint64, tag = "1")]
    pub(crate) received_bytes: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) sent_bytes: u64,
}

/// `AccessLogCommon`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Common {
    #[prost(message, optional, tag = "2")]
    pub(crate) downstream_remote_address: Option<Address>,
    #[prost(message, optional, tag = "3")]
    pub(crate) downstream_local_address: Option<Address>,
    #[prost(message, optional, tag = "4")]
    pub(crate) tls_properties: Option<TlsProperties>,
    #[prost(message, optional, tag = "5")]
    pub(crate) start_time: Option<Timestamp>,
    #[prost(message, optional, tag = "6")]
    pub(crate) time_to_last_rx_byte: Option<Duration>,
    #[prost(message, optional, tag = "7")]
    pub(crate) time_to_first_upstream_tx_byte: Option<Duration>,
    #[prost(message, optional, tag = "8")]
    pub(crate) time_to_last_upstream_tx_byte: Option<Duration>,
    #[prost(message, optional, tag = "9")]
    pub(crate) time_to_first_upstream_rx_byte: Option<Duration>,
    #[prost(message, optional, tag = "10")]
    pub(crate) time_to_last_upstream_rx_byte: Option<Duration>,
    #[prost(message, optional, tag = "11")]
    pub(crate) time_to_first_downstream_tx_byte: Option<Duration>,
    #[prost(message, optional, tag = "12")]
    pub(crate) time_to_last_downstream_tx_byte: Option<Duration>,
    #[prost(message, optional, tag = "13")]
    pub(crate) upstream_remote_address: Option<Address>,
    #[prost(message, optional, tag = "14")]
    pub(crate) upstream_local_address: Option<Address>,
    #[prost(bytes = "bytes", tag = "15")]
    pub(crate) upstream_cluster: Bytes,
    #[prost(message, optional, tag = "16")]
    pub(crate) response_flags: Option<ResponseFlags>,
    #[prost(bytes = "bytes", tag = "18")]
    pub(crate) upstream_transport_failure_reason: Bytes,
    #[prost(bytes = "bytes", tag = "19")]
    pub(crate) route_name: Bytes,
    #[prost(message, optional, tag = "20")]
    pub(crate) downstream_direct_remote_address: Option<Address>,
    #[prost(message, optional, tag = "23")]
    pub(crate) duration: Option<Duration>,
    #[prost(uint32, tag = "24")]
    pub(crate) upstream_request_attempt_count: u32,
    #[prost(bytes = "bytes", tag = "25")]
    pub(crate) connection_termination_details: Bytes,
    #[prost(bytes = "bytes", tag = "26")]
    pub(crate) stream_id: Bytes,
    #[prost(bool, tag = "27")]
    pub(crate) intermediate_log_entry: bool,
    #[prost(bytes = "bytes", tag = "28")]
    pub(crate) downstream_transport_failure_reason: Bytes,
    #[prost(uint64, tag = "29")]
    pub(crate) downstream_wire_bytes_sent: u64,
    #[prost(uint64, tag = "30")]
    pub(crate) downstream_wire_bytes_received: u64,
    #[prost(uint64, tag = "31")]
    pub(crate) upstream_wire_bytes_sent: u64,
    #[prost(uint64, tag = "32")]
    pub(crate) upstream_wire_bytes_received: u64,
    #[prost(int32, tag = "33")]
    pub(crate) access_log_type: i32,
}

#[expect(clippy::struct_excessive_bools, reason = "Envoy's message has them")]
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResponseFlags {
    #[prost(bool, tag = "1")]
    pub(crate) failed_local_healthcheck: bool,
    #[prost(bool, tag = "2")]
    pub(crate) no_healthy_upstream: bool,
    #[prost(bool, tag = "3")]
    pub(crate) upstream_request_timeout: bool,
    #[prost(bool, tag = "4")]
    pub(crate) local_reset: bool,
    #[prost(bool, tag = "5")]
    pub(crate) upstream_remote_reset: bool,
    #[prost(bool, tag = "6")]
    pub(crate) upstream_connection_failure: bool,
    #[prost(bool, tag = "7")]
    pub(crate) upstream_connection_termination: bool,
    #[prost(bool, tag = "8")]
    pub(crate) upstream_overflow: bool,
    #[prost(bool, tag = "9")]
    pub(crate) no_route_found: bool,
    #[prost(bool, tag = "10")]
    pub(crate) delay_injected: bool,
    #[prost(bool, tag = "11")]
    pub(crate) fault_injected: bool,
    #[prost(bool, tag = "12")]
    pub(crate) rate_limited: bool,
    #[prost(message, optional, tag = "13")]
    pub(crate) unauthorized_details: Option<Unauthorized>,
    #[prost(bool, tag = "14")]
    pub(crate) rate_limit_service_error: bool,
    #[prost(bool, tag = "15")]
    pub(crate) downstream_connection_termination: bool,
    #[prost(bool, tag = "16")]
    pub(crate) upstream_retry_limit_exceeded: bool,
    #[prost(bool, tag = "17")]
    pub(crate) stream_idle_timeout: bool,
    #[prost(bool, tag = "18")]
    pub(crate) invalid_envoy_request_headers: bool,
    #[prost(bool, tag = "19")]
    pub(crate) downstream_protocol_error: bool,
    #[prost(bool, tag = "20")]
    pub(crate) upstream_max_stream_duration_reached: bool,
    #[prost(bool, tag = "21")]
    pub(crate) response_from_cache_filter: bool,
    #[prost(bool, tag = "22")]
    pub(crate) no_filter_config_found: bool,
    #[prost(bool, tag = "23")]
    pub(crate) duration_timeout: bool,
    #[prost(bool, tag = "24")]
    pub(crate) upstream_protocol_error: bool,
    #[prost(bool, tag = "25")]
    pub(crate) no_cluster_found: bool,
    #[prost(bool, tag = "26")]
    pub(crate) overload_manager: bool,
    #[prost(bool, tag = "27")]
    pub(crate) dns_resolution_failure: bool,
    #[prost(bool, tag = "28")]
    pub(crate) downstream_remote_reset: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Unauthorized {
    /// 1: denied by the external authorization service. Envoy sends no other value.
    #[prost(int32, tag = "1")]
    pub(crate) reason: i32,
}

/// `TLSProperties` of the downstream connection; the message has none of the upstream connection.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TlsProperties {
    #[prost(int32, tag = "1")]
    pub(crate) tls_version: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) tls_sni_hostname: Bytes,
    /// An encoded `CertificateProperties`. Only its first URI is needed (`messages::certificate`); a list of names would take
    /// many times the memory of the message.
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) local_certificate_properties: Bytes,
    /// As the local one.
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) peer_certificate_properties: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Request {
    #[prost(int32, tag = "1")]
    pub(crate) request_method: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) authority: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) path: Bytes,
    #[prost(bytes = "bytes", tag = "9")]
    pub(crate) request_id: Bytes,
    #[prost(bytes = "bytes", tag = "10")]
    pub(crate) original_path: Bytes,
    #[prost(uint64, tag = "11")]
    pub(crate) request_headers_bytes: u64,
    #[prost(uint64, tag = "12")]
    pub(crate) request_body_bytes: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Response {
    #[prost(message, optional, tag = "1")]
    pub(crate) response_code: Option<UInt32Value>,
    #[prost(uint64, tag = "2")]
    pub(crate) response_headers_bytes: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) response_body_bytes: u64,
    #[prost(bytes = "bytes", tag = "6")]
    pub(crate) response_code_details: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Address {
    #[prost(oneof = "AddressKind", tags = "1, 2, 3")]
    pub(crate) address: Option<AddressKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum AddressKind {
    #[prost(message, tag = "1")]
    Socket(SocketAddress),
    #[prost(message, tag = "2")]
    Pipe(Pipe),
    #[prost(message, tag = "3")]
    Internal(EnvoyInternalAddress),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SocketAddress {
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) address: Bytes,
    #[prost(uint32, tag = "3")]
    pub(crate) port_value: u32,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) named_port: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Pipe {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) path: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EnvoyInternalAddress {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) server_listener_name: Bytes,
}

/// `google.protobuf.Timestamp`: Unix time.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

/// `google.protobuf.Duration`: both parts have the same sign.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Duration {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UInt32Value {
    #[prost(uint32, tag = "1")]
    pub(crate) value: u32,
}
