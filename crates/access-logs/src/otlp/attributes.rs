//! The attributes of OpenTelemetry records: one table for the configuration of Envoy and for reading.

use bytes::Bytes;

use crate::{
    address::Address,
    entry::Entry,
    flags::Flags,
    names::{HttpVersion, LogType, TlsVersion},
    values::Values,
};

/// One attribute of a log record.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    pub name: &'static str,
    /// The command operator in Envoy's configuration.
    pub operator: &'static str,
    /// The field of the message of the access log service with the same content.
    pub field: &'static str,
    fill: fn(&mut Entry, Bytes, &mut Values<'_>),
}

impl Attribute {
    /// Fills a field of the entry with a value that is there.
    pub(super) fn fill(&self, entry: &mut Entry, text: Bytes, values: &mut Values<'_>) {
        (self.fill)(entry, text, values);
    }
}

/// The place in [`ATTRIBUTES`] of the attribute of a name, searched from `expected` on.
pub(super) fn find(name: &[u8], expected: usize) -> Option<usize> {
    let is_at = |place: &usize| {
        let row = ATTRIBUTES.get(*place);
        row.is_some_and(|row| row.name.as_bytes() == name)
    };
    let rows = 0..ATTRIBUTES.len();
    Some(expected)
        .filter(is_at)
        .or_else(|| rows.into_iter().find(is_at))
}

/// All attributes, in the order of the configuration. The prefix keeps records of other applications from being mistaken for
/// entries.
pub const ATTRIBUTES: [Attribute; 47] = [
    attribute(
        "envoy.access_log_type",
        "%ACCESS_LOG_TYPE%",
        "access_log_type",
        |entry, text, _| {
            entry.log_type = LogType::from_name(&text);
        },
    ),
    attribute(
        "envoy.stream_id",
        "%STREAM_ID%",
        "stream_id",
        |entry, text, values| {
            entry.stream_id = values.text(text);
        },
    ),
    attribute(
        "envoy.start_time",
        "%START_TIME(%s.%9f)%",
        "start_time",
        |entry, text, values| {
            entry.start_unix_ns = values.decimal_time(&text);
        },
    ),
    attribute(
        "envoy.time_to_last_rx_byte_ns",
        "%COMMON_DURATION(DS_RX_BEG:DS_RX_END:ns)%",
        "time_to_last_rx_byte",
        |entry, text, values| entry.timing.last_downstream_rx_ns = values.number(&text),
    ),
    attribute(
        "envoy.time_to_first_upstream_tx_byte_ns",
        "%COMMON_DURATION(DS_RX_BEG:US_TX_BEG:ns)%",
        "time_to_first_upstream_tx_byte",
        |entry, text, values| entry.timing.first_upstream_tx_ns = values.number(&text),
    ),
    attribute(
        "envoy.time_to_last_upstream_tx_byte_ns",
        "%COMMON_DURATION(DS_RX_BEG:US_TX_END:ns)%",
        "time_to_last_upstream_tx_byte",
        |entry, text, values| entry.timing.last_upstream_tx_ns = values.number(&text),
    ),
    attribute(
        "envoy.time_to_first_upstream_rx_byte_ns",
        "%COMMON_DURATION(DS_RX_BEG:US_RX_BEG:ns)%",
        "time_to_first_upstream_rx_byte",
        |entry, text, values| entry.timing.first_upstream_rx_ns = values.number(&text),
    ),
    attribute(
        "envoy.time_to_last_upstream_rx_byte_ns",
        "%COMMON_DURATION(DS_RX_BEG:US_RX_END:ns)%",
        "time_to_last_upstream_rx_byte",
        |entry, text, values| entry.timing.last_upstream_rx_ns = values.number(&text),
    ),
    attribute(
        "envoy.time_to_first_downstream_tx_byte_ns",
        "%COMMON_DURATION(DS_RX_BEG:DS_TX_BEG:ns)%",
        "time_to_first_downstream_tx_byte",
        |entry, text, values| entry.timing.first_downstream_tx_ns = values.number(&text),
    ),
    attribute(
        "envoy.time_to_last_downstream_tx_byte_ns",
        "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:ns)%",
        "time_to_last_downstream_tx_byte",
        |entry, text, values| entry.timing.last_downstream_tx_ns = values.number(&text),
    ),
    // No operator has it in nanoseconds.
    attribute(
        "envoy.duration_ms",
        "%DURATION%",
        "duration",
        |entry, text, values| {
            entry.timing.duration_ns = values.milliseconds(&text);
        },
    ),
    attribute(
        "envoy.protocol",
        "%PROTOCOL%",
        "protocol_version",
        |entry, text, _| {
            entry.request.version = HttpVersion::from_name(&text);
        },
    ),
    attribute(
        "envoy.request_method",
        "%REQ(:METHOD)%",
        "request_method",
        |entry, text, values| {
            entry.request.method = values.text(text);
        },
    ),
    attribute(
        "envoy.authority",
        "%REQ(:AUTHORITY)%",
        "authority",
        |entry, text, values| {
            entry.request.authority = values.text(text);
        },
    ),
    attribute(
        "envoy.path",
        "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
        "original_path, or path",
        |entry, text, values| entry.request.path = values.text(text),
    ),
    attribute(
        "envoy.request_id",
        "%REQ(X-REQUEST-ID)%",
        "request_id",
        |entry, text, values| {
            entry.request.id = values.text(text);
        },
    ),
    attribute(
        "envoy.response_code",
        "%RESPONSE_CODE%",
        "response_code",
        |entry, text, values| {
            let code = values.number(&text);
            entry.response.status = code.and_then(|code| values.status(code));
        },
    ),
    attribute(
        "envoy.grpc_status",
        "%GRPC_STATUS_NUMBER%",
        "response_trailers or response_headers: grpc-status",
        |entry, text, values| entry.response.grpc_status = values.number(&text),
    ),
    attribute(
        "envoy.response_flags",
        "%RESPONSE_FLAGS%",
        "response_flags",
        |entry, text, values| {
            let (flags, unknown) = Flags::from_short_names(&String::from_utf8_lossy(&text));
            entry.response.flags = flags;
            values.counts.malformed_values += u64::from(unknown);
        },
    ),
    attribute(
        "envoy.response_code_details",
        "%RESPONSE_CODE_DETAILS%",
        "response_code_details",
        |entry, text, values| entry.response.details = values.text(text),
    ),
    attribute(
        "envoy.connection_termination_details",
        "%CONNECTION_TERMINATION_DETAILS%",
        "connection_termination_details",
        |entry, text, values| entry.response.termination_details = values.text(text),
    ),
    attribute(
        "envoy.upstream_cluster",
        "%UPSTREAM_CLUSTER%",
        "upstream_cluster",
        |entry, text, values| {
            entry.upstream.cluster = values.text(text);
        },
    ),
    attribute(
        "envoy.route_name",
        "%ROUTE_NAME%",
        "route_name",
        |entry, text, values| {
            entry.upstream.route_name = values.text(text);
        },
    ),
    attribute(
        "envoy.upstream_request_attempt_count",
        "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
        "upstream_request_attempt_count",
        |entry, text, values| entry.upstream.attempts = values.number(&text).unwrap_or_default(),
    ),
    attribute(
        "envoy.upstream_transport_failure_reason",
        "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
        "upstream_transport_failure_reason",
        |entry, text, values| entry.upstream.transport_failure = values.text(text),
    ),
    attribute(
        "envoy.bytes_received",
        "%BYTES_RECEIVED%",
        "request_body_bytes, or received_bytes",
        |entry, text, values| entry.sizes.received = size(&text, values),
    ),
    attribute(
        "envoy.bytes_sent",
        "%BYTES_SENT%",
        "response_body_bytes, or sent_bytes",
        |entry, text, values| entry.sizes.sent = size(&text, values),
    ),
    attribute(
        "envoy.request_headers_bytes",
        "%REQUEST_HEADERS_BYTES%",
        "request_headers_bytes",
        |entry, text, values| entry.sizes.request_headers = size(&text, values),
    ),
    attribute(
        "envoy.response_headers_bytes",
        "%RESPONSE_HEADERS_BYTES%",
        "response_headers_bytes",
        |entry, text, values| entry.sizes.response_headers = size(&text, values),
    ),
    attribute(
        "envoy.downstream_wire_bytes_received",
        "%DOWNSTREAM_WIRE_BYTES_RECEIVED%",
        "downstream_wire_bytes_received",
        |entry, text, values| entry.sizes.downstream_wire_received = size(&text, values),
    ),
    attribute(
        "envoy.downstream_wire_bytes_sent",
        "%DOWNSTREAM_WIRE_BYTES_SENT%",
        "downstream_wire_bytes_sent",
        |entry, text, values| entry.sizes.downstream_wire_sent = size(&text, values),
    ),
    attribute(
        "envoy.upstream_wire_bytes_sent",
        "%UPSTREAM_WIRE_BYTES_SENT%",
        "upstream_wire_bytes_sent",
        |entry, text, values| entry.sizes.upstream_wire_sent = size(&text, values),
    ),
    attribute(
        "envoy.upstream_wire_bytes_received",
        "%UPSTREAM_WIRE_BYTES_RECEIVED%",
        "upstream_wire_bytes_received",
        |entry, text, values| entry.sizes.upstream_wire_received = size(&text, values),
    ),
    attribute(
        "envoy.downstream_remote_address",
        "%DOWNSTREAM_REMOTE_ADDRESS%",
        "downstream_remote_address",
        |entry, text, values| entry.addresses.downstream_remote = Address::from_text(text, values),
    ),
    attribute(
        "envoy.downstream_direct_remote_address",
        "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%",
        "downstream_direct_remote_address",
        |entry, text, values| {
            entry.addresses.downstream_direct_remote = Address::from_text(text, values);
        },
    ),
    attribute(
        "envoy.downstream_local_address",
        "%DOWNSTREAM_LOCAL_ADDRESS%",
        "downstream_local_address",
        |entry, text, values| entry.addresses.downstream_local = Address::from_text(text, values),
    ),
    attribute(
        "envoy.upstream_remote_address",
        "%UPSTREAM_REMOTE_ADDRESS%",
        "upstream_remote_address",
        |entry, text, values| entry.addresses.upstream_remote = Address::from_text(text, values),
    ),
    // A failed connection has a host but no remote address.
    attribute(
        "envoy.upstream_host",
        "%UPSTREAM_HOST%",
        "upstream_remote_address, if it is not connected",
        |entry, text, values| {
            if entry.addresses.upstream_remote == Address::Absent {
                entry.addresses.upstream_remote = Address::from_text(text, values);
            }
        },
    ),
    attribute(
        "envoy.upstream_local_address",
        "%UPSTREAM_LOCAL_ADDRESS%",
        "upstream_local_address",
        |entry, text, values| entry.addresses.upstream_local = Address::from_text(text, values),
    ),
    attribute(
        "envoy.downstream_tls_version",
        "%DOWNSTREAM_TLS_VERSION%",
        "tls_version",
        |entry, text, _| entry.tls.downstream_version = TlsVersion::from_name(&text),
    ),
    attribute(
        "envoy.requested_server_name",
        "%REQUESTED_SERVER_NAME%",
        "tls_sni_hostname",
        |entry, text, values| entry.tls.server_name = values.text(text),
    ),
    attribute(
        "envoy.downstream_peer_uri_san",
        "%DOWNSTREAM_PEER_URI_SAN%",
        "peer_certificate_properties",
        |entry, text, values| entry.tls.downstream_peer_id = first_name(text, values),
    ),
    attribute(
        "envoy.downstream_local_uri_san",
        "%DOWNSTREAM_LOCAL_URI_SAN%",
        "local_certificate_properties",
        |entry, text, values| entry.tls.downstream_local_id = first_name(text, values),
    ),
    attribute(
        "envoy.downstream_transport_failure_reason",
        "%DOWNSTREAM_TRANSPORT_FAILURE_REASON%",
        "downstream_transport_failure_reason",
        |entry, text, values| entry.tls.downstream_failure = values.text(text),
    ),
    attribute(
        "envoy.upstream_tls_version",
        "%UPSTREAM_TLS_VERSION%",
        "none",
        |entry, text, _| {
            entry.tls.upstream_version = TlsVersion::from_name(&text);
        },
    ),
    attribute(
        "envoy.upstream_peer_uri_san",
        "%UPSTREAM_PEER_URI_SAN%",
        "none",
        |entry, text, values| {
            entry.tls.upstream_peer_id = first_name(text, values);
        },
    ),
    attribute(
        "envoy.upstream_local_uri_san",
        "%UPSTREAM_LOCAL_URI_SAN%",
        "none",
        |entry, text, values| {
            entry.tls.upstream_local_id = first_name(text, values);
        },
    ),
];

const fn attribute(
    name: &'static str,
    operator: &'static str,
    field: &'static str,
    fill: fn(&mut Entry, Bytes, &mut Values<'_>),
) -> Attribute {
    Attribute {
        name,
        operator,
        field,
        fill,
    }
}

fn size(text: &[u8], values: &mut Values<'_>) -> u64 {
    values.number(text).unwrap_or_default()
}

/// The first of names that Envoy writes with commas between them.
fn first_name(text: Bytes, values: &mut Values<'_>) -> Bytes {
    let end = text.iter().position(|byte| *byte == b',');
    values.text(text.slice(..end.unwrap_or(text.len())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ATTRIBUTES, find};

    #[test]
    fn names_are_unique_and_found_from_any_place() {
        let names: BTreeSet<&str> = ATTRIBUTES.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ATTRIBUTES.len());
        for (place, row) in ATTRIBUTES.iter().enumerate() {
            for expected in [0, place, place + 1, usize::MAX] {
                assert_eq!(find(row.name.as_bytes(), expected), Some(place));
            }
        }
        assert_eq!(find(b"envoy.other", 3), None);
        assert_eq!(find(b"", 3), None);
    }

    #[test]
    fn operators_are_unique_and_whole() {
        let operators: BTreeSet<&str> = ATTRIBUTES.iter().map(|row| row.operator).collect();
        assert_eq!(operators.len(), ATTRIBUTES.len());
        for operator in operators {
            assert!(operator.len() > 2 && operator.starts_with('%') && operator.ends_with('%'));
        }
    }
}
