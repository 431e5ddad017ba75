//! Messages of Envoy's access log service to entries.

use bytes::Bytes;
use prost::Message as _;
use thiserror::Error;

use crate::{
    address::Address,
    encoded::{self, HttpEntry, TcpEntry},
    entry::{Addresses, Entry, Identifier, Request, Response, Sizes, Tls, Upstream},
    flags::Flags,
    limits::{Counts, Limits},
    messages::{self, certificate},
    names::{HttpVersion, Kind, LogType, Stage, TlsVersion, method_name},
    timing::Timing,
    values::Values,
    walk::{Part, Parts, count_entries},
    wire::{Fields, Place, WireError},
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
    let (mut http, mut tcp) = <(HttpEntry, TcpEntry)>::default();
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
        let read = match kind {
            Kind::Http => http.read(message, place),
            Kind::Tcp => tcp.read(message, place),
        };
        if read.is_err() {
            values.counts.unreadable += 1;
            continue;
        }
        values.counts.entries += 1;
        take(match kind {
            Kind::Http => from_http(message, &http, &mut values),
            Kind::Tcp => from_tcp(message, &tcp, &mut values),
        });
    }
    Ok(Decoded {
        identifier,
        counts: values.counts,
    })
}

pub(crate) fn check_size(message: &Bytes, limits: &Limits) -> Result<(), DecodeError> {
    // Places have 32 bits.
    let limit = limits.message_bytes.min(u32::MAX as usize);
    let bytes = message.len();
    if bytes > limit {
        return Err(DecodeError::TooLarge { bytes, limit });
    }
    Ok(())
}

fn read_identifier(
    message: &Bytes,
    place: Place,
    values: &mut Values<'_>,
) -> Result<Identifier, DecodeError> {
    let place = place.range();
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

fn from_http(message: &Bytes, read: &HttpEntry, values: &mut Values<'_>) -> Entry {
    let HttpEntry {
        common,
        protocol_version,
        request,
        response,
    } = read;
    // The path of the client, before the route rewrote it.
    let path = if request.original_path.is_empty() {
        request.path
    } else {
        request.original_path
    };
    // Headers have it where the response has no body.
    let grpc_status = response.status_in_trailers.or(response.status_in_headers);
    let own = Own {
        request: Request {
            version: HttpVersion::from_number(*protocol_version),
            method: Bytes::from_static(method_name(request.method).as_bytes()),
            authority: values.text_at(message, request.authority),
            path: values.text_at(message, path),
            id: values.text_at(message, request.id),
        },
        status: response.code.and_then(|code| values.status(code)),
        grpc_status: grpc_status.and_then(|place| values.number(message.get(place.range())?)),
        details: values.text_at(message, response.code_details),
        received: request.body_bytes,
        sent: response.body_bytes,
        request_headers: request.headers_bytes,
        response_headers: response.headers_bytes,
    };
    entry_of(Kind::Http, message, (common, own), values)
}

fn from_tcp(message: &Bytes, read: &TcpEntry, values: &mut Values<'_>) -> Entry {
    let TcpEntry {
        common,
        received_bytes,
        sent_bytes,
    } = read;
    let own = Own {
        received: *received_bytes,
        sent: *sent_bytes,
        ..Own::default()
    };
    entry_of(Kind::Tcp, message, (common, own), values)
}

/// What requests and connections do not have in common.
#[derive(Default)]
struct Own {
    request: Request,
    status: Option<u16>,
    grpc_status: Option<u32>,
    details: Bytes,
    received: u64,
    sent: u64,
    request_headers: u64,
    response_headers: u64,
}

/// The whole entry at once: it is large, and is not moved to be completed.
fn entry_of(
    kind: Kind,
    message: &Bytes,
    (read, own): (&encoded::Common, Own),
    values: &mut Values<'_>,
) -> Entry {
    let log_type = LogType::from_number(read.access_log_type);
    Entry {
        kind,
        log_type,
        stage: match log_type.stage() {
            // Envoys without log types say it this way.
            Stage::End if log_type == LogType::NotSet && read.intermediate_log_entry => Stage::Open,
            stage => stage,
        },
        stream_id: values.text_at(message, read.stream_id),
        start_unix_ns: values.nanoseconds(read.start_time),
        timing: Timing {
            last_downstream_rx_ns: values.nanoseconds(read.time_to_last_rx_byte),
            first_upstream_tx_ns: values.nanoseconds(read.time_to_first_upstream_tx_byte),
            last_upstream_tx_ns: values.nanoseconds(read.time_to_last_upstream_tx_byte),
            first_upstream_rx_ns: values.nanoseconds(read.time_to_first_upstream_rx_byte),
            last_upstream_rx_ns: values.nanoseconds(read.time_to_last_upstream_rx_byte),
            first_downstream_tx_ns: values.nanoseconds(read.time_to_first_downstream_tx_byte),
            last_downstream_tx_ns: values.nanoseconds(read.time_to_last_downstream_tx_byte),
            duration_ns: values.nanoseconds(read.duration),
        },
        request: own.request,
        response: Response {
            status: own.status,
            grpc_status: own.grpc_status,
            flags: Flags::from_fields(read.response_flags),
            details: own.details,
            termination_details: values.text_at(message, read.connection_termination_details),
        },
        upstream: Upstream {
            cluster: values.text_at(message, read.upstream_cluster),
            route_name: values.text_at(message, read.route_name),
            attempts: read.upstream_request_attempt_count,
            transport_failure: values.text_at(message, read.upstream_transport_failure_reason),
        },
        sizes: Sizes {
            received: own.received,
            sent: own.sent,
            request_headers: own.request_headers,
            response_headers: own.response_headers,
            downstream_wire_received: read.downstream_wire_bytes_received,
            downstream_wire_sent: read.downstream_wire_bytes_sent,
            upstream_wire_sent: read.upstream_wire_bytes_sent,
            upstream_wire_received: read.upstream_wire_bytes_received,
        },
        addresses: Addresses {
            downstream_remote: Address::at(message, &read.downstream_remote_address, values),
            downstream_direct_remote: Address::at(
                message,
                &read.downstream_direct_remote_address,
                values,
            ),
            downstream_local: Address::at(message, &read.downstream_local_address, values),
            upstream_remote: Address::at(message, &read.upstream_remote_address, values),
            upstream_local: Address::at(message, &read.upstream_local_address, values),
        },
        tls: Tls {
            downstream_version: TlsVersion::from_number(read.tls.version),
            server_name: values.text_at(message, read.tls.sni_hostname),
            downstream_peer_id: first_uri(message, read.tls.peer_certificate, values),
            downstream_local_id: first_uri(message, read.tls.local_certificate, values),
            downstream_failure: values.text_at(message, read.downstream_transport_failure_reason),
            ..Tls::default()
        },
    }
}

/// The first URI among the names of an encoded certificate; empty if it has none.
fn first_uri(message: &Bytes, certificate: Place, values: &mut Values<'_>) -> Bytes {
    let uri = find_first_uri(message, certificate);
    if uri.is_err() {
        values.malformed();
    }
    values.text_at(message, uri.unwrap_or_default())
}

fn find_first_uri(message: &[u8], certificate: Place) -> Result<Place, WireError> {
    for field in Fields::of(message, certificate) {
        let Some(name) = field?.bytes_of(certificate::SUBJECT_ALT_NAME) else {
            continue;
        };
        for field in Fields::of(message, name) {
            let uri = field?.bytes_of(certificate::URI);
            if let Some(uri) = uri.filter(|uri| !uri.is_empty()) {
                return Ok(uri);
            }
        }
    }
    Ok(Place::default())
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "oracle_tests.rs"]
mod oracle_tests;
