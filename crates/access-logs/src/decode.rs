//! Messages of Envoy's access log service to entries.

use bytes::Bytes;
use prost::Message as _;
use thiserror::Error;

use crate::{
    address::Address,
    entry::{Addresses, Entry, Identifier, Request, Response, Sizes, Tls, Upstream},
    flags::Flags,
    limits::{Counts, Limits},
    messages::{self, certificate},
    names::{HttpVersion, Kind, LogType, Stage, TlsVersion, method_name},
    timing::Timing,
    values::Values,
    walk::{Part, Parts, count_entries},
    wire::{Content, Fields, WireError},
};

/// The header and trailer of responses that the printed configurations have Envoy log. No other one is read.
pub const GRPC_STATUS: &str = "grpc-status";

/// A message was refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    #[error("a message of {bytes} bytes, more than {limit}")]
    TooLarge { bytes: usize, limit: usize },
    #[error("not a protobuf message: {0}")]
    Wire(#[from] WireError),
    #[error("the identifier at byte {at}: {source}")]
    Identifier {
        at: usize,
        source: prost::DecodeError,
    },
}

/// The content of a message beside its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Only the first message of a stream has one. It applies to the whole stream.
    pub identifier: Option<Identifier>,
    /// [`Counts::all`] is what [`count_entries`] counts.
    pub counts: Counts,
}

/// Decodes a `StreamAccessLogsMessage` and hands out its entries in their order.
///
/// Text of the entries shares the memory of the message. Of a message that is refused no entry is handed out. An entry
/// that cannot be decoded is left out and counted; the others are not affected.
pub fn decode(
    message: &Bytes,
    limits: &Limits,
    mut take: impl FnMut(Entry),
) -> Result<Decoded, DecodeError> {
    check_size(message, limits)?;
    // Before any entry is handed out: a caller that reports the error has not counted some of the entries already.
    count_entries(message)?;
    let mut values = Values::new(limits);
    let mut identifier = None;
    let mut number = 0;
    for part in Parts::of(message) {
        let (kind, place) = match part? {
            Part::Identifier(place) => {
                identifier = Some(read_identifier(message, place, &mut values)?);
                continue;
            }
            Part::Entry(kind, place) => (kind, place),
        };
        number += 1;
        if number > limits.entries {
            values.counts.left_out += 1;
            continue;
        }
        match read_entry(kind, message.slice(place), &mut values) {
            Ok(entry) => {
                values.counts.entries += 1;
                take(entry);
            }
            Err(_) => values.counts.unreadable += 1,
        }
    }
    Ok(Decoded {
        identifier,
        counts: values.counts,
    })
}

pub(crate) fn check_size(message: &Bytes, limits: &Limits) -> Result<(), DecodeError> {
    let (bytes, limit) = (message.len(), limits.message_bytes);
    if bytes > limit {
        return Err(DecodeError::TooLarge { bytes, limit });
    }
    Ok(())
}

fn read_identifier(
    message: &Bytes,
    place: std::ops::Range<usize>,
    values: &mut Values<'_>,
) -> Result<Identifier, DecodeError> {
    let at = place.start;
    let decoded = messages::Identifier::decode(message.slice(place));
    let messages::Identifier { node, log_name } =
        decoded.map_err(|source| DecodeError::Identifier { at, source })?;
    let node = node.unwrap_or_default();
    let built = node
        .user_agent_build_version
        .and_then(|built| built.version);
    let version = built.map(|version| {
        let messages::SemanticVersion {
            major_number,
            minor_number,
            patch,
        } = version;
        Bytes::from(format!("{major_number}.{minor_number}.{patch}"))
    });
    Ok(Identifier {
        node_id: values.text(node.id),
        node_cluster: values.text(node.cluster),
        log_name: values.text(log_name),
        version: values.text(version.unwrap_or(node.user_agent_version)),
    })
}

fn read_entry(
    kind: Kind,
    encoded: Bytes,
    values: &mut Values<'_>,
) -> Result<Entry, prost::DecodeError> {
    match kind {
        Kind::Http => from_http(messages::HttpEntry::decode(encoded)?, values),
        Kind::Tcp => messages::TcpEntry::decode(encoded).map(|entry| from_tcp(entry, values)),
    }
}

fn from_http(
    message: messages::HttpEntry,
    values: &mut Values<'_>,
) -> Result<Entry, prost::DecodeError> {
    let messages::HttpEntry {
        common,
        protocol_version,
        request,
        response,
    } = message;
    let messages::Request {
        request_method,
        authority,
        path,
        request_id,
        original_path,
        request_headers_bytes,
        request_body_bytes,
    } = request.unwrap_or_default();
    let messages::Response {
        response_code,
        response_headers_bytes,
        response_body_bytes,
        response_code_details,
    } = messages::Response::decode(response.clone())?;
    let mut entry = from_common(Kind::Http, common.unwrap_or_default(), values);
    // The path of the client, before the route rewrote it.
    let path = if original_path.is_empty() {
        path
    } else {
        original_path
    };
    entry.request = Request {
        version: HttpVersion::from_number(protocol_version),
        method: Bytes::from_static(method_name(request_method).as_bytes()),
        authority: values.text(authority),
        path: values.text(path),
        id: values.text(request_id),
    };
    entry.response.status = response_code.and_then(|code| values.status(code.value));
    entry.response.details = values.text(response_code_details);
    entry.sizes.received = request_body_bytes;
    entry.sizes.sent = response_body_bytes;
    entry.sizes.request_headers = request_headers_bytes;
    entry.sizes.response_headers = response_headers_bytes;
    entry.response.grpc_status = grpc_status(&response, values);
    Ok(entry)
}

/// The status of gRPC in an encoded response: of its trailers, or of its headers where it has no body.
fn grpc_status(response: &[u8], values: &mut Values<'_>) -> Option<u32> {
    let (mut in_headers, mut in_trailers) = (None, None);
    for field in Fields::new(response).flatten() {
        let (found, pair) = match field.content {
            Content::Bytes(pair) if field.number == messages::response::HEADERS => {
                (&mut in_headers, pair)
            }
            Content::Bytes(pair) if field.number == messages::response::TRAILERS => {
                (&mut in_trailers, pair)
            }
            _ => continue,
        };
        let (mut name, mut value) = (0..0, 0..0);
        for part in Fields::of(response, pair).flatten() {
            if let Some(place) = part.bytes_of(messages::response::NAME) {
                name = place;
            } else if let Some(place) = part.bytes_of(messages::response::VALUE) {
                value = place;
            }
        }
        if response.get(name) == Some(GRPC_STATUS.as_bytes()) {
            *found = response.get(value);
        }
    }
    values.number(in_trailers.or(in_headers)?)
}

fn from_tcp(message: messages::TcpEntry, values: &mut Values<'_>) -> Entry {
    let messages::TcpEntry { common, connection } = message;
    let messages::Connection {
        received_bytes,
        sent_bytes,
    } = connection.unwrap_or_default();
    let mut entry = from_common(Kind::Tcp, common.unwrap_or_default(), values);
    entry.sizes.received = received_bytes;
    entry.sizes.sent = sent_bytes;
    entry
}

fn from_common(kind: Kind, message: messages::Common, values: &mut Values<'_>) -> Entry {
    let messages::Common {
        downstream_remote_address,
        downstream_local_address,
        tls_properties,
        start_time,
        time_to_last_rx_byte,
        time_to_first_upstream_tx_byte,
        time_to_last_upstream_tx_byte,
        time_to_first_upstream_rx_byte,
        time_to_last_upstream_rx_byte,
        time_to_first_downstream_tx_byte,
        time_to_last_downstream_tx_byte,
        upstream_remote_address,
        upstream_local_address,
        upstream_cluster,
        response_flags,
        upstream_transport_failure_reason,
        route_name,
        downstream_direct_remote_address,
        duration,
        upstream_request_attempt_count,
        connection_termination_details,
        stream_id,
        intermediate_log_entry,
        downstream_transport_failure_reason,
        downstream_wire_bytes_sent,
        downstream_wire_bytes_received,
        upstream_wire_bytes_sent,
        upstream_wire_bytes_received,
        access_log_type,
    } = message;
    let log_type = LogType::from_number(access_log_type);
    Entry {
        kind,
        log_type,
        stage: match log_type.stage() {
            // Envoys without log types say it this way.
            Stage::End if log_type == LogType::NotSet && intermediate_log_entry => Stage::Open,
            stage => stage,
        },
        stream_id: values.text(stream_id),
        start_unix_ns: values.timestamp(start_time),
        timing: Timing {
            last_downstream_rx_ns: values.duration(time_to_last_rx_byte),
            first_upstream_tx_ns: values.duration(time_to_first_upstream_tx_byte),
            last_upstream_tx_ns: values.duration(time_to_last_upstream_tx_byte),
            first_upstream_rx_ns: values.duration(time_to_first_upstream_rx_byte),
            last_upstream_rx_ns: values.duration(time_to_last_upstream_rx_byte),
            first_downstream_tx_ns: values.duration(time_to_first_downstream_tx_byte),
            last_downstream_tx_ns: values.duration(time_to_last_downstream_tx_byte),
            duration_ns: values.duration(duration),
        },
        request: Request::default(),
        response: Response {
            status: None,
            grpc_status: None,
            flags: response_flags
                .as_ref()
                .map(Flags::from_message)
                .unwrap_or_default(),
            details: Bytes::new(),
            termination_details: values.text(connection_termination_details),
        },
        upstream: Upstream {
            cluster: values.text(upstream_cluster),
            route_name: values.text(route_name),
            attempts: upstream_request_attempt_count,
            transport_failure: values.text(upstream_transport_failure_reason),
        },
        sizes: Sizes {
            downstream_wire_received: downstream_wire_bytes_received,
            downstream_wire_sent: downstream_wire_bytes_sent,
            upstream_wire_sent: upstream_wire_bytes_sent,
            upstream_wire_received: upstream_wire_bytes_received,
            ..Sizes::default()
        },
        addresses: Addresses {
            downstream_remote: Address::from_message(downstream_remote_address, values),
            downstream_direct_remote: Address::from_message(
                downstream_direct_remote_address,
                values,
            ),
            downstream_local: Address::from_message(downstream_local_address, values),
            upstream_remote: Address::from_message(upstream_remote_address, values),
            upstream_local: Address::from_message(upstream_local_address, values),
        },
        tls: from_tls(
            tls_properties.unwrap_or_default(),
            downstream_transport_failure_reason,
            values,
        ),
    }
}

fn from_tls(message: messages::TlsProperties, failure: Bytes, values: &mut Values<'_>) -> Tls {
    let messages::TlsProperties {
        tls_version,
        tls_sni_hostname,
        local_certificate_properties,
        peer_certificate_properties,
    } = message;
    Tls {
        downstream_version: TlsVersion::from_number(tls_version),
        server_name: values.text(tls_sni_hostname),
        downstream_peer_id: first_uri(&peer_certificate_properties, values),
        downstream_local_id: first_uri(&local_certificate_properties, values),
        downstream_failure: values.text(failure),
        ..Tls::default()
    }
}

/// The first URI among the names of an encoded certificate; empty if it has none.
fn first_uri(certificate: &Bytes, values: &mut Values<'_>) -> Bytes {
    let uri = find_first_uri(certificate);
    if uri.is_err() {
        values.malformed();
    }
    values.text(uri.unwrap_or_default())
}

fn find_first_uri(certificate: &Bytes) -> Result<Bytes, WireError> {
    for field in Fields::new(certificate) {
        let Some(name) = field?.bytes_of(certificate::SUBJECT_ALT_NAME) else {
            continue;
        };
        for field in Fields::of(certificate, name) {
            let uri = field?.bytes_of(certificate::URI);
            if let Some(uri) = uri.filter(|uri| !uri.is_empty()) {
                return Ok(certificate.slice(uri));
            }
        }
    }
    Ok(Bytes::new())
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "oracle_tests.rs"]
mod oracle_tests;
