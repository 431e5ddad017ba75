//! Our declarations of Envoy's messages against those of the crate `envoy-types`, which are generated from Envoy's own files.

use std::collections::HashMap;

use bytes::Bytes;
use envoy_types::pb::{
    envoy::{
        config::core::v3::{
            self as core, BuildVersion, EnvoyInternalAddress, Node, Pipe, SocketAddress,
            address::Address as AddressKind, envoy_internal_address::AddressNameSpecifier,
            node::UserAgentVersionType, socket_address::PortSpecifier,
        },
        data::accesslog::v3::{
            AccessLogCommon, ConnectionProperties, HttpAccessLogEntry, HttpRequestProperties,
            HttpResponseProperties, ResponseFlags, TcpAccessLogEntry, TlsProperties,
            response_flags::Unauthorized,
            tls_properties::{
                CertificateProperties,
                certificate_properties::{SubjectAltName, subject_alt_name::San},
            },
        },
        service::accesslog::v3::{
            StreamAccessLogsMessage,
            stream_access_logs_message::{
                HttpAccessLogEntries, Identifier as MessageIdentifier, LogEntries,
                TcpAccessLogEntries,
            },
        },
        r#type::v3::SemanticVersion,
    },
    google::protobuf::{Any, Duration, Timestamp, UInt32Value},
};
use prost::Message as _;

use crate::{
    address::Address,
    entry::{Addresses, Entry, Identifier, Request, Response, Sizes, Tls, Upstream},
    flags::{FLAGS, Flags},
    limits::Limits,
    names::{HttpVersion, Kind, LogType, Stage, TlsVersion},
    testing::{Numbers, decode_all, field, unknown_fields},
    timing::Timing,
    walk::{EntryCount, count_entries},
};

const MESSAGES: u64 = 400;

#[test]
fn entries_are_what_the_oracle_encoded() {
    for seed in 0..MESSAGES {
        let message = random_message(&mut Numbers::new(seed));
        let (decoded, entries) = decode_all(message.encode_to_vec(), &Limits::default()).unwrap();
        let expected = expected_entries(&message);
        assert_eq!(entries.len(), expected.len(), "seed {seed}");
        for (entry, (expected, _)) in entries.iter().zip(&expected) {
            assert_eq!(entry, expected, "seed {seed}");
        }
        let malformed: u64 = expected.iter().map(|(_, malformed)| malformed).sum();
        assert_eq!(decoded.counts.malformed_values, malformed, "seed {seed}");
        let identifier = message.identifier.as_ref().map(expected_identifier);
        assert_eq!(decoded.identifier, identifier, "seed {seed}");
    }
}

#[test]
fn entries_are_counted_as_they_are_decoded() {
    for seed in 0..MESSAGES {
        let message = random_message(&mut Numbers::new(seed));
        let encoded = message.encode_to_vec();
        let expected = match &message.log_entries {
            None => EntryCount::default(),
            Some(LogEntries::HttpLogs(logs)) => EntryCount {
                http: logs.log_entry.len() as u64,
                tcp: 0,
            },
            Some(LogEntries::TcpLogs(logs)) => EntryCount {
                http: 0,
                tcp: logs.log_entry.len() as u64,
            },
        };
        assert_eq!(count_entries(&encoded), Ok(expected), "seed {seed}");
        let (decoded, _) = decode_all(encoded, &Limits::default()).unwrap();
        assert_eq!(decoded.counts.all(), expected.http + expected.tcp);
        assert_eq!(decoded.counts.entries, decoded.counts.all());
    }
}

#[test]
fn fields_of_later_versions_change_nothing() {
    for seed in 0..50 {
        let mut numbers = Numbers::new(seed);
        let (entry, expected) = loop {
            let entry = random_http(&mut numbers);
            if let Some(common) = &entry.common_properties {
                let expected = expected_http(&entry).0;
                break ((entry.clone(), common.clone()), expected);
            }
        };
        let (mut entry, common) = entry;
        // The oracle writes the fields in their order: what is behind them belongs to the same message.
        entry.common_properties = None;
        let common = [common.encode_to_vec(), unknown_fields()].concat();
        let encoded = [field(1, &common), entry.encode_to_vec(), unknown_fields()].concat();
        let list = [field(1, &encoded), unknown_fields()].concat();
        let message = [unknown_fields(), field(2, &list), unknown_fields()].concat();
        let (_, entries) = decode_all(message, &Limits::default()).unwrap();
        assert_eq!(entries, [expected], "seed {seed}");
    }
}

#[test]
fn a_message_that_is_cut_anywhere_is_refused_or_has_fewer_entries() {
    for seed in 0..20 {
        let whole = random_message(&mut Numbers::new(seed)).encode_to_vec();
        let all = count_entries(&whole).unwrap();
        for length in 0..whole.len() {
            let cut = &whole[..length];
            let count = count_entries(cut);
            let decoded = decode_all(cut.to_vec(), &Limits::default());
            match (count, decoded) {
                (Ok(count), Ok((decoded, _))) => {
                    assert_eq!(decoded.counts.all(), count.http + count.tcp);
                    assert!(count.http <= all.http && count.tcp <= all.tcp);
                }
                (Err(error), Err(_)) => assert!(error.at < length.max(1)),
                other => panic!("seed {seed}, {length} bytes: {other:?}"),
            }
        }
    }
}

#[test]
fn a_damaged_message_is_counted_as_it_is_decoded() {
    for seed in 0..MESSAGES {
        let mut numbers = Numbers::new(seed);
        let mut message = random_message(&mut numbers).encode_to_vec();
        for _ in 0..=numbers.below(4) {
            let place = numbers.index(message.len());
            if let Some(byte) = message.get_mut(place) {
                *byte = numbers.next().to_be_bytes()[0];
            }
        }
        let count = count_entries(&message);
        let limits = Limits {
            text_bytes: 16,
            entries: 2,
            ..Limits::default()
        };
        if let Ok((decoded, entries)) = decode_all(message, &limits) {
            let count = count.unwrap();
            assert_eq!(decoded.counts.all(), count.http + count.tcp, "seed {seed}");
            assert_eq!(decoded.counts.entries, entries.len() as u64);
            assert!(entries.len() <= 2);
        }
    }
}

fn random_message(numbers: &mut Numbers) -> StreamAccessLogsMessage {
    let entries = numbers.below(6);
    StreamAccessLogsMessage {
        identifier: numbers.maybe(random_identifier),
        log_entries: numbers.maybe(|numbers| {
            if numbers.one_in(2) {
                LogEntries::HttpLogs(HttpAccessLogEntries {
                    log_entry: (0..entries).map(|_| random_http(numbers)).collect(),
                })
            } else {
                LogEntries::TcpLogs(TcpAccessLogEntries {
                    log_entry: (0..entries).map(|_| random_tcp(numbers)).collect(),
                })
            }
        }),
    }
}

fn random_identifier(numbers: &mut Numbers) -> MessageIdentifier {
    let number = |numbers: &mut Numbers| u32::try_from(numbers.below(99)).unwrap();
    MessageIdentifier {
        node: numbers.maybe(|numbers| Node {
            id: numbers.text(),
            cluster: numbers.text(),
            user_agent_name: numbers.text(),
            client_features: vec![numbers.text()],
            user_agent_version_type: numbers.maybe(|numbers| {
                if numbers.one_in(2) {
                    return UserAgentVersionType::UserAgentVersion(numbers.text());
                }
                UserAgentVersionType::UserAgentBuildVersion(BuildVersion {
                    version: Some(SemanticVersion {
                        major_number: number(numbers),
                        minor_number: number(numbers),
                        patch: number(numbers),
                    }),
                    metadata: None,
                })
            }),
            ..Node::default()
        }),
        log_name: numbers.text(),
    }
}

fn expected_identifier(message: &MessageIdentifier) -> Identifier {
    let node = message.node.clone().unwrap_or_default();
    let version = match node.user_agent_version_type {
        None => String::new(),
        Some(UserAgentVersionType::UserAgentVersion(version)) => version,
        Some(UserAgentVersionType::UserAgentBuildVersion(built)) => {
            let version = built.version.unwrap();
            let parts = [version.major_number, version.minor_number, version.patch];
            parts.map(|part| part.to_string()).join(".")
        }
    };
    Identifier {
        node_id: node.id.into(),
        node_cluster: node.cluster.into(),
        log_name: message.log_name.clone().into(),
        version: version.into(),
    }
}

fn random_http(numbers: &mut Numbers) -> HttpAccessLogEntry {
    HttpAccessLogEntry {
        common_properties: numbers.maybe(random_common),
        protocol_version: i32::try_from(numbers.below(6)).unwrap(),
        request: numbers.maybe(|numbers| HttpRequestProperties {
            request_method: i32::try_from(numbers.below(11)).unwrap(),
            scheme: numbers.text(),
            authority: numbers.text(),
            port: numbers.maybe(|_| UInt32Value { value: 80 }),
            path: numbers.text(),
            user_agent: numbers.text(),
            referer: numbers.text(),
            forwarded_for: numbers.text(),
            request_id: numbers.text(),
            original_path: numbers.text(),
            request_headers_bytes: numbers.size(),
            request_body_bytes: numbers.size(),
            request_headers: [(numbers.text(), numbers.text())].into(),
            upstream_header_bytes_sent: numbers.size(),
            downstream_header_bytes_received: numbers.size(),
        }),
        response: numbers.maybe(|numbers| HttpResponseProperties {
            response_code: numbers.maybe(|numbers| UInt32Value {
                value: [0, 200, 404, 503, 999, 1000, u32::MAX][numbers.index(7)],
            }),
            response_headers_bytes: numbers.size(),
            response_body_bytes: numbers.size(),
            response_headers: random_headers(numbers),
            response_trailers: random_headers(numbers),
            response_code_details: numbers.text(),
            upstream_header_bytes_received: numbers.size(),
            downstream_header_bytes_sent: numbers.size(),
        }),
    }
}

fn random_headers(numbers: &mut Numbers) -> HashMap<String, String> {
    let mut headers = HashMap::from([(numbers.text(), numbers.text())]);
    if numbers.one_in(2) {
        let status = ["0", "14", "99", "", "-1", "x"][numbers.index(6)];
        headers.insert("grpc-status".to_owned(), status.to_owned());
    }
    headers
}

fn random_tcp(numbers: &mut Numbers) -> TcpAccessLogEntry {
    TcpAccessLogEntry {
        common_properties: numbers.maybe(random_common),
        connection_properties: numbers.maybe(|numbers| ConnectionProperties {
            received_bytes: numbers.size(),
            sent_bytes: numbers.size(),
        }),
    }
}

#[expect(deprecated, reason = "Envoys without log types fill it")]
fn random_common(numbers: &mut Numbers) -> AccessLogCommon {
    let any = Any {
        type_url: "type.googleapis.com/x".to_owned(),
        value: vec![7; 9],
    };
    AccessLogCommon {
        sample_rate: 0.5,
        downstream_remote_address: numbers.maybe(random_address),
        downstream_local_address: numbers.maybe(random_address),
        tls_properties: numbers.maybe(random_tls),
        start_time: numbers.maybe(|numbers| Timestamp {
            seconds: i64::try_from(numbers.below(1 << 33)).unwrap(),
            nanos: i32::try_from(numbers.below(1_000_000_000)).unwrap(),
        }),
        time_to_last_rx_byte: numbers.maybe(random_duration),
        time_to_first_upstream_tx_byte: numbers.maybe(random_duration),
        time_to_last_upstream_tx_byte: numbers.maybe(random_duration),
        time_to_first_upstream_rx_byte: numbers.maybe(random_duration),
        time_to_last_upstream_rx_byte: numbers.maybe(random_duration),
        time_to_first_downstream_tx_byte: numbers.maybe(random_duration),
        time_to_last_downstream_tx_byte: numbers.maybe(random_duration),
        upstream_remote_address: numbers.maybe(random_address),
        upstream_local_address: numbers.maybe(random_address),
        upstream_cluster: numbers.text(),
        response_flags: numbers.maybe(random_flags),
        metadata: numbers.maybe(|_| core::Metadata::default()),
        upstream_transport_failure_reason: numbers.text(),
        route_name: numbers.text(),
        downstream_direct_remote_address: numbers.maybe(random_address),
        filter_state_objects: [(numbers.text(), any)].into(),
        custom_tags: [(numbers.text(), numbers.text())].into(),
        duration: numbers.maybe(random_duration),
        upstream_request_attempt_count: u32::try_from(numbers.below(5)).unwrap(),
        connection_termination_details: numbers.text(),
        stream_id: numbers.text(),
        intermediate_log_entry: numbers.one_in(2),
        downstream_transport_failure_reason: numbers.text(),
        downstream_wire_bytes_sent: numbers.size(),
        downstream_wire_bytes_received: numbers.size(),
        upstream_wire_bytes_sent: numbers.size(),
        upstream_wire_bytes_received: numbers.size(),
        access_log_type: i32::try_from(numbers.below(17)).unwrap() - 1,
    }
}

fn random_duration(numbers: &mut Numbers) -> Duration {
    let seconds = [
        0,
        0,
        0,
        1,
        3600,
        -1,
        18_446_744_073,
        18_446_744_074,
        i64::MAX,
    ];
    Duration {
        seconds: seconds[numbers.index(seconds.len())],
        nanos: i32::try_from(numbers.below(1_000_000_100)).unwrap() - 50,
    }
}

fn random_address(numbers: &mut Numbers) -> core::Address {
    let kind = match numbers.below(5) {
        0 => AddressKind::Pipe(Pipe {
            path: numbers.text(),
            mode: 0o600,
        }),
        1 => AddressKind::EnvoyInternalAddress(EnvoyInternalAddress {
            endpoint_id: numbers.text(),
            address_name_specifier: Some(AddressNameSpecifier::ServerListenerName(numbers.text())),
        }),
        _ => {
            let hosts = [
                "10.0.0.1",
                "::1",
                "fd00::7",
                "",
                "host.example",
                "10.0.0.300",
            ];
            AddressKind::SocketAddress(SocketAddress {
                protocol: i32::try_from(numbers.below(2)).unwrap(),
                address: hosts[numbers.index(hosts.len())].to_owned(),
                resolver_name: numbers.text(),
                ipv4_compat: numbers.one_in(2),
                network_namespace_filepath: numbers.text(),
                port_specifier: match numbers.below(8) {
                    0 => None,
                    1 => Some(PortSpecifier::NamedPort("http".to_owned())),
                    2 => Some(PortSpecifier::PortValue(65536)),
                    _ => Some(PortSpecifier::PortValue(
                        u32::try_from(numbers.below(65536)).unwrap(),
                    )),
                },
            })
        }
    };
    core::Address {
        address: numbers.maybe(|_| kind),
    }
}

fn random_tls(numbers: &mut Numbers) -> TlsProperties {
    TlsProperties {
        tls_version: i32::try_from(numbers.below(6)).unwrap(),
        tls_cipher_suite: numbers.maybe(|_| UInt32Value { value: 0x1301 }),
        tls_sni_hostname: numbers.text(),
        local_certificate_properties: numbers.maybe(random_certificate),
        peer_certificate_properties: numbers.maybe(random_certificate),
        tls_session_id: numbers.text(),
        ja3_fingerprint: numbers.text(),
    }
}

fn random_certificate(numbers: &mut Numbers) -> CertificateProperties {
    let names = numbers.below(4);
    let name = |numbers: &mut Numbers| SubjectAltName {
        san: numbers.maybe(|numbers| {
            if numbers.one_in(3) {
                San::Dns(numbers.text())
            } else {
                San::Uri(numbers.text())
            }
        }),
    };
    CertificateProperties {
        subject_alt_name: (0..names).map(|_| name(numbers)).collect(),
        subject: numbers.text(),
        issuer: numbers.text(),
    }
}

fn random_flags(numbers: &mut Numbers) -> ResponseFlags {
    let mut flag = || numbers.one_in(5);
    ResponseFlags {
        failed_local_healthcheck: flag(),
        no_healthy_upstream: flag(),
        upstream_request_timeout: flag(),
        local_reset: flag(),
        upstream_remote_reset: flag(),
        upstream_connection_failure: flag(),
        upstream_connection_termination: flag(),
        upstream_overflow: flag(),
        no_route_found: flag(),
        delay_injected: flag(),
        fault_injected: flag(),
        rate_limited: flag(),
        unauthorized_details: flag().then_some(Unauthorized { reason: 1 }),
        rate_limit_service_error: flag(),
        downstream_connection_termination: flag(),
        upstream_retry_limit_exceeded: flag(),
        stream_idle_timeout: flag(),
        invalid_envoy_request_headers: flag(),
        downstream_protocol_error: flag(),
        upstream_max_stream_duration_reached: flag(),
        response_from_cache_filter: flag(),
        no_filter_config_found: flag(),
        duration_timeout: flag(),
        upstream_protocol_error: flag(),
        no_cluster_found: flag(),
        overload_manager: flag(),
        dns_resolution_failure: flag(),
        downstream_remote_reset: flag(),
    }
}

/// Entries with their malformed values.
fn expected_entries(message: &StreamAccessLogsMessage) -> Vec<(Entry, u64)> {
    match &message.log_entries {
        None => Vec::new(),
        Some(LogEntries::HttpLogs(logs)) => logs.log_entry.iter().map(expected_http).collect(),
        Some(LogEntries::TcpLogs(logs)) => logs.log_entry.iter().map(expected_tcp).collect(),
    }
}

fn expected_http(message: &HttpAccessLogEntry) -> (Entry, u64) {
    let (mut entry, mut malformed) =
        expected_common(Kind::Http, message.common_properties.as_ref());
    let request = message.request.clone().unwrap_or_default();
    let response = message.response.clone().unwrap_or_default();
    let methods = [
        "", "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "",
    ];
    let method = methods[usize::try_from(request.request_method).unwrap()];
    entry.request = Request {
        version: match message.protocol_version {
            1 => HttpVersion::Http10,
            2 => HttpVersion::Http11,
            3 => HttpVersion::Http2,
            4 => HttpVersion::Http3,
            _ => HttpVersion::Unknown,
        },
        method: method.into(),
        authority: request.authority.into(),
        path: match request.original_path.as_str() {
            "" => request.path.into(),
            _ => request.original_path.into(),
        },
        id: request.request_id.into(),
    };
    entry.response.status = match response.response_code.map(|code| code.value) {
        None | Some(0) => None,
        Some(code @ 1..=999) => Some(u16::try_from(code).unwrap()),
        Some(_) => {
            malformed += 1;
            None
        }
    };
    let maps = [&response.response_trailers, &response.response_headers];
    let status = maps.iter().find_map(|headers| headers.get("grpc-status"));
    entry.response.grpc_status = status.and_then(|status| {
        let status = status.parse().ok();
        malformed += u64::from(status.is_none());
        status
    });
    entry.response.details = response.response_code_details.into();
    entry.sizes.received = request.request_body_bytes;
    entry.sizes.sent = response.response_body_bytes;
    entry.sizes.request_headers = request.request_headers_bytes;
    entry.sizes.response_headers = response.response_headers_bytes;
    (entry, malformed)
}

fn expected_tcp(message: &TcpAccessLogEntry) -> (Entry, u64) {
    let (mut entry, malformed) = expected_common(Kind::Tcp, message.common_properties.as_ref());
    let connection = message.connection_properties.unwrap_or_default();
    entry.sizes.received = connection.received_bytes;
    entry.sizes.sent = connection.sent_bytes;
    (entry, malformed)
}

fn expected_common(kind: Kind, message: Option<&AccessLogCommon>) -> (Entry, u64) {
    let message = message.cloned().unwrap_or_default();
    let mut malformed = 0;
    let mut duration = |duration: &Option<Duration>| {
        let Duration { seconds, nanos } = (*duration)?;
        let ns = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let is_right = seconds >= 0 && (0..1_000_000_000).contains(&nanos);
        let ns = u64::try_from(ns).ok().filter(|_| is_right);
        malformed += u64::from(ns.is_none());
        ns
    };
    let timing = Timing {
        last_downstream_rx_ns: duration(&message.time_to_last_rx_byte),
        first_upstream_tx_ns: duration(&message.time_to_first_upstream_tx_byte),
        last_upstream_tx_ns: duration(&message.time_to_last_upstream_tx_byte),
        first_upstream_rx_ns: duration(&message.time_to_first_upstream_rx_byte),
        last_upstream_rx_ns: duration(&message.time_to_last_upstream_rx_byte),
        first_downstream_tx_ns: duration(&message.time_to_first_downstream_tx_byte),
        last_downstream_tx_ns: duration(&message.time_to_last_downstream_tx_byte),
        duration_ns: duration(&message.duration),
    };
    let (log_type, stage) = expected_type(&message);
    let tls = message.tls_properties.clone().unwrap_or_default();
    let entry = Entry {
        kind,
        log_type,
        stage,
        stream_id: message.stream_id.into(),
        start_unix_ns: message.start_time.map(|time| {
            u64::try_from(time.seconds).unwrap() * 1_000_000_000
                + u64::try_from(time.nanos).unwrap()
        }),
        timing,
        request: Request::default(),
        response: Response {
            status: None,
            grpc_status: None,
            flags: expected_flags(&message.response_flags.unwrap_or_default()),
            details: Bytes::new(),
            termination_details: message.connection_termination_details.into(),
        },
        upstream: Upstream {
            cluster: message.upstream_cluster.into(),
            route_name: message.route_name.into(),
            attempts: message.upstream_request_attempt_count,
            transport_failure: message.upstream_transport_failure_reason.into(),
        },
        sizes: Sizes {
            downstream_wire_received: message.downstream_wire_bytes_received,
            downstream_wire_sent: message.downstream_wire_bytes_sent,
            upstream_wire_sent: message.upstream_wire_bytes_sent,
            upstream_wire_received: message.upstream_wire_bytes_received,
            ..Sizes::default()
        },
        addresses: Addresses {
            downstream_remote: expected_address(message.downstream_remote_address),
            downstream_direct_remote: expected_address(message.downstream_direct_remote_address),
            downstream_local: expected_address(message.downstream_local_address),
            upstream_remote: expected_address(message.upstream_remote_address),
            upstream_local: expected_address(message.upstream_local_address),
        },
        tls: Tls {
            downstream_version: match tls.tls_version {
                1 => TlsVersion::Tls10,
                2 => TlsVersion::Tls11,
                3 => TlsVersion::Tls12,
                4 => TlsVersion::Tls13,
                _ => TlsVersion::Unknown,
            },
            server_name: tls.tls_sni_hostname.into(),
            downstream_peer_id: expected_uri(tls.peer_certificate_properties),
            downstream_local_id: expected_uri(tls.local_certificate_properties),
            downstream_failure: message.downstream_transport_failure_reason.into(),
            ..Tls::default()
        },
    };
    (entry, malformed)
}

#[expect(deprecated, reason = "Envoys without log types fill it")]
fn expected_type(message: &AccessLogCommon) -> (LogType, Stage) {
    match message.access_log_type {
        0 if message.intermediate_log_entry => (LogType::NotSet, Stage::Open),
        0 => (LogType::NotSet, Stage::End),
        1 => (LogType::TcpUpstreamConnected, Stage::Start),
        2 => (LogType::TcpPeriodic, Stage::Open),
        3 => (LogType::TcpConnectionEnd, Stage::End),
        4 => (LogType::DownstreamStart, Stage::Start),
        5 => (LogType::DownstreamPeriodic, Stage::Open),
        6 => (LogType::DownstreamEnd, Stage::End),
        7 => (LogType::UpstreamPoolReady, Stage::Start),
        8 => (LogType::UpstreamPeriodic, Stage::Open),
        9 => (LogType::UpstreamEnd, Stage::End),
        10 => (
            LogType::DownstreamTunnelSuccessfullyEstablished,
            Stage::Start,
        ),
        11 => (LogType::UdpTunnelUpstreamConnected, Stage::Start),
        12 => (LogType::UdpPeriodic, Stage::Open),
        13 => (LogType::UdpSessionEnd, Stage::End),
        14 => (LogType::TcpConnectionStart, Stage::Start),
        _ => (LogType::Unrecognised, Stage::Unknown),
    }
}

fn expected_address(address: Option<core::Address>) -> Address {
    match address.and_then(|address| address.address) {
        None => Address::Absent,
        Some(AddressKind::Pipe(pipe)) => Address::Pipe(pipe.path.into()),
        Some(AddressKind::EnvoyInternalAddress(internal)) => {
            match internal.address_name_specifier {
                Some(AddressNameSpecifier::ServerListenerName(name)) => {
                    Address::Internal(name.into())
                }
                None => Address::Internal(Bytes::new()),
            }
        }
        Some(AddressKind::SocketAddress(socket)) => {
            let port = match socket.port_specifier {
                None => Some(0),
                Some(PortSpecifier::PortValue(port)) => u16::try_from(port).ok(),
                Some(PortSpecifier::NamedPort(_)) => None,
            };
            match (socket.address.parse(), port) {
                (Ok(ip), Some(port)) => Address::Socket(std::net::SocketAddr::new(ip, port)),
                _ => Address::Other(socket.address.into()),
            }
        }
    }
}

fn expected_uri(certificate: Option<CertificateProperties>) -> Bytes {
    let names = certificate.unwrap_or_default().subject_alt_name;
    let mut uris = names.into_iter().filter_map(|name| match name.san {
        Some(San::Uri(uri)) if !uri.is_empty() => Some(uri),
        Some(San::Uri(_) | San::Dns(_)) | None => None,
    });
    uris.next().unwrap_or_default().into()
}

/// Fields with the short names of Envoy's documentation.
fn expected_flags(message: &ResponseFlags) -> Flags {
    let names = [
        (message.failed_local_healthcheck, "LH"),
        (message.no_healthy_upstream, "UH"),
        (message.upstream_request_timeout, "UT"),
        (message.local_reset, "LR"),
        (message.upstream_remote_reset, "UR"),
        (message.upstream_connection_failure, "UF"),
        (message.upstream_connection_termination, "UC"),
        (message.upstream_overflow, "UO"),
        (message.no_route_found, "NR"),
        (message.delay_injected, "DI"),
        (message.fault_injected, "FI"),
        (message.rate_limited, "RL"),
        (message.unauthorized_details.is_some(), "UAEX"),
        (message.rate_limit_service_error, "RLSE"),
        (message.downstream_connection_termination, "DC"),
        (message.upstream_retry_limit_exceeded, "URX"),
        (message.stream_idle_timeout, "SI"),
        (message.invalid_envoy_request_headers, "IH"),
        (message.downstream_protocol_error, "DPE"),
        (message.upstream_max_stream_duration_reached, "UMSDR"),
        (message.response_from_cache_filter, "RFCF"),
        (message.no_filter_config_found, "NFCF"),
        (message.duration_timeout, "DT"),
        (message.upstream_protocol_error, "UPE"),
        (message.no_cluster_found, "NC"),
        (message.overload_manager, "OM"),
        (message.dns_resolution_failure, "DF"),
        (message.downstream_remote_reset, "DR"),
    ];
    let set = names.into_iter().filter(|(is_set, _)| *is_set);
    let text: Vec<&str> = set.map(|(_, name)| name).collect();
    assert!(
        text.iter()
            .all(|name| FLAGS.iter().any(|flag| flag.short_name == *name))
    );
    Flags::from_short_names(&text.join(",")).0
}
