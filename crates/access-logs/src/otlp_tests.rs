//! Log records as Envoy writes them.

use bytes::Bytes;
use envoy_types::pb::opentelemetry::proto::common::v1::{AnyValue, KeyValue, any_value::Value};
use prost::Message as _;

use super::{ATTRIBUTES, count_records, decode_records};
use crate::{
    address::Address,
    decode::DecodeError,
    entry::{Addresses, Entry, Identifier, Request, Response, Sizes, Tls, Upstream},
    flags::{FLAGS, Flags},
    limits::{Counts, Limits},
    names::{HttpVersion, Kind, LOG_TYPES, LogType, Stage, TlsVersion},
    testing::{Numbers, field, unknown_fields},
    timing::Timing,
    wire::{WireError, WireProblem},
};

/// A record with a time and attributes.
fn record(time_unix_ns: u64, attributes: &[(&str, Value)]) -> Vec<u8> {
    let mut record = vec![1 << 3 | 1];
    record.extend(time_unix_ns.to_le_bytes());
    // A body before the attributes.
    record.extend(field(5, &field(1, b"body")));
    for (key, value) in attributes {
        record.extend(field(6, &key_value(key, value.clone())));
    }
    record
}

fn key_value(key: &str, value: Value) -> Vec<u8> {
    let attribute = KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    };
    attribute.encode_to_vec()
}

fn string(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

/// A request with one resource and one scope.
fn request(resource: &[(&str, &str)], records: &[Vec<u8>]) -> Vec<u8> {
    let resource: Vec<u8> = resource
        .iter()
        .flat_map(|(key, value)| field(1, &key_value(key, string(value))))
        .collect();
    let records: Vec<u8> = records.iter().flat_map(|record| field(2, record)).collect();
    // Fields may have any order: the resource comes last.
    let logs = [field(2, &records), field(1, &resource)].concat();
    field(1, &logs)
}

fn decode_all(
    request: impl Into<Bytes>,
    limits: &Limits,
) -> Result<(Counts, Vec<(Identifier, Entry)>), DecodeError> {
    let mut entries = Vec::new();
    let counts = decode_records(&request.into(), limits, |identifier, entry| {
        entries.push((identifier.clone(), entry));
    })?;
    Ok((counts, entries))
}

fn one_entry(attributes: &[(&str, Value)]) -> (Entry, Counts) {
    let request = request(&[], &[record(0, attributes)]);
    let (counts, mut entries) = decode_all(request, &Limits::default()).unwrap();
    let (_, entry) = entries.pop().expect("an entry");
    (entry, counts)
}

#[test]
fn records_are_the_entries_that_were_written() {
    for seed in 0..400 {
        let mut numbers = Numbers::new(seed);
        let entry = random_entry(&mut numbers);
        let mut attributes: Vec<(&str, Value)> = ATTRIBUTES
            .iter()
            .map(|row| (row.name, string(&written(&entry, row.name))))
            .collect();
        // Some configurations order them by name.
        if numbers.one_in(2) {
            attributes.sort_by_key(|(name, _)| *name);
        }
        attributes.push(("other", string("x")));
        let (found, counts) = one_entry(&attributes);
        assert_eq!(found, entry, "seed {seed}");
        let expected = Counts {
            entries: 1,
            ..Counts::default()
        };
        assert_eq!(counts, expected, "seed {seed}");
    }
}

#[test]
fn the_resource_names_the_proxy() {
    let resource = [
        ("log_name", "profiler"),
        ("zone_name", "z"),
        ("node_name", "sidecar~10.0.0.1~web"),
        ("cluster_name", "web.default"),
    ];
    let ours = record(7, &[("envoy.stream_id", string("1"))]);
    let both = [
        request(&resource, &[ours.clone(), ours.clone()]),
        request(&[], &[ours]),
    ];
    let (counts, entries) = decode_all(both.concat(), &Limits::default()).unwrap();
    let identifier = Identifier {
        node_id: Bytes::from_static(b"sidecar~10.0.0.1~web"),
        node_cluster: Bytes::from_static(b"web.default"),
        log_name: Bytes::from_static(b"profiler"),
        version: Bytes::new(),
    };
    let found: Vec<&Identifier> = entries.iter().map(|(identifier, _)| identifier).collect();
    assert_eq!(found, [&identifier, &identifier, &Identifier::default()]);
    assert_eq!(counts.entries, 3);
}

#[test]
fn a_record_without_our_attributes_is_foreign() {
    let records = [
        record(1, &[]),
        record(
            1,
            &[("method", string("GET")), ("envoy.other", string("x"))],
        ),
        record(1, &[("envoy.stream_id", string("-"))]),
    ];
    let (counts, entries) = decode_all(request(&[], &records), &Limits::default()).unwrap();
    assert_eq!((counts.foreign, counts.entries), (2, 1));
    assert_eq!(entries[0].1.stream_id, "");
}

#[test]
fn the_upstream_is_the_host_where_there_is_no_connection() {
    let check = |remote: &str, host: &str, expected: &str| {
        let mut attributes = vec![
            ("envoy.upstream_remote_address", string(remote)),
            ("envoy.upstream_host", string(host)),
        ];
        for _ in 0..2 {
            let (entry, _) = one_entry(&attributes);
            let address = entry.addresses.upstream_remote.socket();
            assert_eq!(address, expected.parse().ok(), "{attributes:?}");
            attributes.reverse();
        }
    };
    check("10.0.0.1:80", "10.0.0.2:80", "10.0.0.1:80");
    check("-", "10.0.0.2:80", "10.0.0.2:80");
    check("-", "-", "");
}

#[test]
fn the_start_is_that_of_the_record_unless_an_attribute_has_it() {
    let check = |time: u64, attribute: &str, expected: Option<u64>| {
        let attributes = [
            ("envoy.stream_id", string("1")),
            ("envoy.start_time", string(attribute)),
        ];
        let request = request(&[], &[record(time, &attributes)]);
        let (_, entries) = decode_all(request, &Limits::default()).unwrap();
        assert_eq!(entries[0].1.start_unix_ns, expected);
    };
    check(5, "-", Some(5));
    check(0, "-", None);
    check(5, "1.000000007", Some(1_000_000_007));
    check(5, "yesterday", Some(5));
}

#[test]
fn values_of_other_types_are_read_as_their_text() {
    let (entry, counts) = one_entry(&[
        ("envoy.response_code", Value::IntValue(503)),
        ("envoy.bytes_sent", Value::DoubleValue(12.0)),
        ("envoy.route_name", Value::BoolValue(true)),
        ("envoy.stream_id", Value::BytesValue(b"id".to_vec())),
        (
            "envoy.path",
            Value::ArrayValue(
                envoy_types::pb::opentelemetry::proto::common::v1::ArrayValue::default(),
            ),
        ),
    ]);
    assert_eq!(entry.response.status, Some(503));
    assert_eq!(entry.sizes.sent, 12);
    assert_eq!(entry.upstream.route_name, "true");
    assert_eq!(entry.stream_id, "id");
    assert_eq!(entry.request.path, "");
    assert_eq!(counts.malformed_values, 0);
}

#[test]
fn values_that_cannot_be_right_are_absent_and_counted() {
    let (entry, counts) = one_entry(&[
        ("envoy.time_to_last_rx_byte_ns", string("-5")),
        ("envoy.duration_ms", string("1.5")),
        ("envoy.response_code", string("abc")),
        ("envoy.bytes_sent", string("many")),
        ("envoy.response_flags", string("UF,NEW,OTHER")),
        ("envoy.upstream_request_attempt_count", string("4294967296")),
    ]);
    assert_eq!(entry.timing, Timing::default());
    assert_eq!(entry.response.status, None);
    assert_eq!(entry.response.flags.short_names(), "UF");
    assert_eq!(entry.upstream.attempts, 0);
    assert_eq!(counts.malformed_values, 7);
}

#[test]
fn the_kind_follows_from_the_type_or_from_what_belongs_to_http() {
    let check = |attributes: &[(&str, Value)], kind: Kind, stage: Stage| {
        let (entry, _) = one_entry(attributes);
        assert_eq!((entry.kind, entry.stage), (kind, stage), "{attributes:?}");
    };
    let log_type = |name: &str| ("envoy.access_log_type", string(name));
    check(&[log_type("TcpConnectionEnd")], Kind::Tcp, Stage::End);
    check(&[log_type("DownstreamPeriodic")], Kind::Http, Stage::Open);
    check(&[log_type("NotSet")], Kind::Tcp, Stage::End);
    check(&[log_type("Later")], Kind::Tcp, Stage::Unknown);
    let method = ("envoy.request_method", string("PROPFIND"));
    check(
        &[log_type("NotSet"), method.clone()],
        Kind::Http,
        Stage::End,
    );
    check(&[log_type("Later"), method], Kind::Http, Stage::Unknown);
}

#[test]
fn records_and_attributes_beyond_the_limits_are_left_out_and_counted() {
    let limits = Limits {
        entries: 2,
        attributes: 2,
        text_bytes: 8,
        ..Limits::default()
    };
    let attributes = [
        ("envoy.stream_id", string("123456789")),
        ("x", string("")),
        ("envoy.path", string("/left-out")),
    ];
    let records = vec![record(1, &attributes); 3];
    let resource = [("a", "b"), ("node_name", "n"), ("log_name", "left out")];
    let (counts, entries) = decode_all(request(&resource, &records), &limits).unwrap();
    let expected = Counts {
        entries: 2,
        left_out: 1,
        attributes_left_out: 3,
        cut_texts: 2,
        ..Counts::default()
    };
    assert_eq!(counts, expected);
    let (identifier, entry) = &entries[0];
    assert_eq!(entry.stream_id, "12345…".as_bytes());
    assert_eq!(entry.request.path, "");
    assert_eq!(
        (identifier.node_id.as_ref(), identifier.log_name.as_ref()),
        (&b"n"[..], &b""[..])
    );
}

#[test]
fn a_damaged_record_does_not_affect_the_others() {
    let good = record(1, &[("envoy.stream_id", string("1"))]);
    let mut cut = good.clone();
    cut.pop();
    let damaged_attribute = field(6, &[0x08, 1]);
    let records = [good.clone(), cut, damaged_attribute, good];
    let (counts, entries) = decode_all(request(&[], &records), &Limits::default()).unwrap();
    assert_eq!(
        (counts.entries, counts.unreadable, entries.len()),
        (2, 2, 2)
    );
}

#[test]
fn records_are_counted_as_they_are_decoded_however_the_request_is_cut_or_damaged() {
    for seed in 0..60 {
        let mut numbers = Numbers::new(seed);
        let mut records = Vec::new();
        for _ in 0..numbers.below(4) {
            let entry = random_entry(&mut numbers);
            let rows = ATTRIBUTES.iter().filter(|_| numbers.one_in(4));
            let attributes: Vec<(&str, Value)> = rows
                .map(|row| (row.name, string(&written(&entry, row.name))))
                .collect();
            records.push([record(1, &attributes), unknown_fields()].concat());
        }
        let whole = [request(&[("node_name", "n")], &records), unknown_fields()].concat();
        assert_eq!(count_records(&whole), Ok(records.len() as u64));
        let check = |request: &[u8]| {
            let count = count_records(request);
            let decoded = decode_all(request.to_vec(), &Limits::default());
            match (count, decoded) {
                (Ok(count), Ok((counts, _))) => assert_eq!(counts.all(), count),
                (Err(error), Err(refused)) => assert_eq!(refused, DecodeError::Wire(error)),
                other => panic!("seed {seed}: {other:?}"),
            }
        };
        for length in 0..=whole.len() {
            check(&whole[..length]);
        }
        for _ in 0..100 {
            let mut damaged = whole.clone();
            let place = numbers.index(damaged.len());
            damaged[place] = numbers.next().to_be_bytes()[0];
            check(&damaged);
        }
    }
}

#[test]
fn an_error_says_where() {
    let problem = WireProblem::Length { length: 9, left: 0 };
    let error = WireError { at: 4, problem };
    let request = [0x0a, 4, 0x12, 2, 0x12, 9];
    assert_eq!(count_records(&request), Err(error));
    let refused = decode_all(request.to_vec(), &Limits::default());
    assert_eq!(refused, Err(DecodeError::Wire(error)));
}

/// An entry that records can carry.
fn random_entry(numbers: &mut Numbers) -> Entry {
    let row = &LOG_TYPES[numbers.index(LOG_TYPES.len())];
    let ns = |numbers: &mut Numbers| numbers.maybe(Numbers::next);
    let text = |numbers: &mut Numbers| Bytes::from(numbers.text().replace('-', "_"));
    // The first of several names is taken.
    let name = |numbers: &mut Numbers| Bytes::from(numbers.text().replace('-', "_"));
    let versions = [
        HttpVersion::Http10,
        HttpVersion::Http11,
        HttpVersion::Http2,
        HttpVersion::Http3,
    ];
    let is_http = match row.kind {
        Some(kind) => kind == Kind::Http,
        None => numbers.one_in(2),
    };
    Entry {
        kind: if is_http { Kind::Http } else { Kind::Tcp },
        log_type: row.log_type,
        stage: row.stage,
        stream_id: text(numbers),
        start_unix_ns: numbers.maybe(Numbers::next),
        timing: Timing {
            last_downstream_rx_ns: ns(numbers),
            first_upstream_tx_ns: ns(numbers),
            last_upstream_tx_ns: ns(numbers),
            first_upstream_rx_ns: ns(numbers),
            last_upstream_rx_ns: ns(numbers),
            first_downstream_tx_ns: ns(numbers),
            last_downstream_tx_ns: ns(numbers),
            duration_ns: numbers.maybe(|numbers| numbers.below(1 << 40) * 1_000_000),
        },
        request: if is_http {
            Request {
                version: versions[numbers.index(versions.len())],
                method: text(numbers),
                authority: text(numbers),
                path: text(numbers),
                id: text(numbers),
            }
        } else {
            Request::default()
        },
        response: Response {
            status: numbers.maybe(|numbers| u16::try_from(100 + numbers.below(500)).unwrap()),
            grpc_status: numbers.maybe(|numbers| u32::try_from(numbers.below(17)).unwrap()),
            flags: random_flags(numbers),
            details: text(numbers),
            termination_details: text(numbers),
        },
        upstream: Upstream {
            cluster: text(numbers),
            route_name: text(numbers),
            attempts: u32::try_from(numbers.below(4)).unwrap(),
            transport_failure: text(numbers),
        },
        sizes: Sizes {
            received: numbers.size(),
            sent: numbers.size(),
            request_headers: numbers.size(),
            response_headers: numbers.size(),
            downstream_wire_received: numbers.size(),
            downstream_wire_sent: numbers.size(),
            upstream_wire_sent: numbers.size(),
            upstream_wire_received: numbers.size(),
        },
        addresses: Addresses {
            downstream_remote: random_address(numbers),
            downstream_direct_remote: random_address(numbers),
            downstream_local: random_address(numbers),
            upstream_remote: random_address(numbers),
            upstream_local: random_address(numbers),
        },
        tls: Tls {
            downstream_version: random_tls(numbers),
            server_name: text(numbers),
            downstream_peer_id: name(numbers),
            downstream_local_id: name(numbers),
            upstream_version: random_tls(numbers),
            upstream_peer_id: name(numbers),
            upstream_local_id: name(numbers),
            downstream_failure: text(numbers),
        },
    }
}

fn random_flags(numbers: &mut Numbers) -> Flags {
    let names: Vec<&str> = FLAGS
        .iter()
        .filter(|_| numbers.one_in(8))
        .map(|flag| flag.short_name)
        .collect();
    Flags::from_short_names(&names.join(",")).0
}

fn random_address(numbers: &mut Numbers) -> Address {
    match numbers.below(6) {
        0 => Address::Absent,
        1 => Address::Internal(Bytes::from_static(b"inner")),
        2 => Address::Pipe(Bytes::from_static(b"/run/app.sock")),
        3 => Address::Other(Bytes::from_static(b"host.example:80")),
        4 => Address::Socket("[fd00::1]:8080".parse().unwrap()),
        _ => Address::Socket("10.0.0.1:80".parse().unwrap()),
    }
}

fn random_tls(numbers: &mut Numbers) -> TlsVersion {
    let versions = [
        TlsVersion::Unknown,
        TlsVersion::Tls10,
        TlsVersion::Tls11,
        TlsVersion::Tls12,
        TlsVersion::Tls13,
    ];
    versions[numbers.index(versions.len())]
}

/// The text that Envoy writes into an attribute.
fn written(entry: &Entry, attribute: &str) -> String {
    let Entry {
        timing,
        request,
        response,
        upstream,
        sizes,
        addresses,
        tls,
        ..
    } = entry;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let text = |text: &Bytes| {
        let text = String::from_utf8(text.to_vec()).unwrap();
        or_dash(Some(text).filter(|text| !text.is_empty()))
    };
    let names = |names: &Bytes| match text(names) {
        one if one == "-" => one,
        one => format!("{one},spiffe://mesh/second"),
    };
    let number = |number: Option<u64>| or_dash(number.map(|number| number.to_string()));
    let size = |size: u64| size.to_string();
    let tls_version = |version| match version {
        TlsVersion::Unknown => "-".to_owned(),
        TlsVersion::Tls10 => "TLSv1".to_owned(),
        TlsVersion::Tls11 => "TLSv1.1".to_owned(),
        TlsVersion::Tls12 => "TLSv1.2".to_owned(),
        TlsVersion::Tls13 => "TLSv1.3".to_owned(),
    };
    let address = |address: &Address| match address {
        Address::Absent => "-".to_owned(),
        Address::Socket(socket) => socket.to_string(),
        Address::Internal(name) => format!("envoy://{}/10.0.0.1:80", text(name)),
        Address::Pipe(path) => text(path),
        Address::Other(other) => text(other),
    };
    match attribute.strip_prefix("envoy.").unwrap() {
        "access_log_type" => match entry.log_type {
            LogType::Unrecognised => panic!("no name"),
            log_type => format!("{log_type:?}"),
        },
        "stream_id" => text(&entry.stream_id),
        "start_time" => or_dash(entry.start_unix_ns.map(|ns| {
            let (seconds, nanos) = (ns / 1_000_000_000, ns % 1_000_000_000);
            format!("{seconds}.{nanos:09}")
        })),
        "time_to_last_rx_byte_ns" => number(timing.last_downstream_rx_ns),
        "time_to_first_upstream_tx_byte_ns" => number(timing.first_upstream_tx_ns),
        "time_to_last_upstream_tx_byte_ns" => number(timing.last_upstream_tx_ns),
        "time_to_first_upstream_rx_byte_ns" => number(timing.first_upstream_rx_ns),
        "time_to_last_upstream_rx_byte_ns" => number(timing.last_upstream_rx_ns),
        "time_to_first_downstream_tx_byte_ns" => number(timing.first_downstream_tx_ns),
        "time_to_last_downstream_tx_byte_ns" => number(timing.last_downstream_tx_ns),
        "duration_ms" => number(timing.duration_ns.map(|ns| ns / 1_000_000)),
        "protocol" => match request.version {
            HttpVersion::Unknown => "-".to_owned(),
            HttpVersion::Http10 => "HTTP/1.0".to_owned(),
            HttpVersion::Http11 => "HTTP/1.1".to_owned(),
            HttpVersion::Http2 => "HTTP/2".to_owned(),
            HttpVersion::Http3 => "HTTP/3".to_owned(),
        },
        "request_method" => text(&request.method),
        "authority" => text(&request.authority),
        "path" => text(&request.path),
        "request_id" => text(&request.id),
        "response_code" => response.status.unwrap_or_default().to_string(),
        "grpc_status" => number(response.grpc_status.map(u64::from)),
        "response_flags" => response.flags.short_names(),
        "response_code_details" => text(&response.details),
        "connection_termination_details" => text(&response.termination_details),
        "upstream_cluster" => text(&upstream.cluster),
        "route_name" => text(&upstream.route_name),
        "upstream_request_attempt_count" => upstream.attempts.to_string(),
        "upstream_transport_failure_reason" => text(&upstream.transport_failure),
        "bytes_received" => size(sizes.received),
        "bytes_sent" => size(sizes.sent),
        "request_headers_bytes" => size(sizes.request_headers),
        "response_headers_bytes" => size(sizes.response_headers),
        "downstream_wire_bytes_received" => size(sizes.downstream_wire_received),
        "downstream_wire_bytes_sent" => size(sizes.downstream_wire_sent),
        "upstream_wire_bytes_sent" => size(sizes.upstream_wire_sent),
        "upstream_wire_bytes_received" => size(sizes.upstream_wire_received),
        "downstream_remote_address" => address(&addresses.downstream_remote),
        "downstream_direct_remote_address" => address(&addresses.downstream_direct_remote),
        "downstream_local_address" => address(&addresses.downstream_local),
        "upstream_remote_address" | "upstream_host" => address(&addresses.upstream_remote),
        "upstream_local_address" => address(&addresses.upstream_local),
        "downstream_tls_version" => tls_version(tls.downstream_version),
        "requested_server_name" => text(&tls.server_name),
        "downstream_peer_uri_san" => names(&tls.downstream_peer_id),
        "downstream_local_uri_san" => names(&tls.downstream_local_id),
        "downstream_transport_failure_reason" => text(&tls.downstream_failure),
        "upstream_tls_version" => tls_version(tls.upstream_version),
        "upstream_peer_uri_san" => names(&tls.upstream_peer_id),
        "upstream_local_uri_san" => names(&tls.upstream_local_id),
        other => panic!("{other}: no value for the test"),
    }
}
