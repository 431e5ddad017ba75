//! Messages that Envoy 1.40.0 sent with the configurations of [`crate::snippet`], for the same five requests and connections:
//! answered, refused by a closed port and tried again, without a route, with a body, and over the TCP proxy. The
//! identifier was cut to what is read of it.

use bytes::Bytes;

use crate::{
    address::Address,
    entry::Entry,
    limits::{Counts, Limits},
    names::{HttpVersion, Kind, LogType},
    otlp::decode_records,
    testing::decode_all,
};

const REQUESTS: &[u8] = include_bytes!("../../../tests/fixtures/access_logs/requests.bin");
const CONNECTION: &[u8] = include_bytes!("../../../tests/fixtures/access_logs/connection.bin");
const RECORDS: &[u8] = include_bytes!("../../../tests/fixtures/access_logs/records.bin");
const NODE: &str = "sidecar~127.0.0.1~web.default~default.svc.cluster.local";

/// The fields of an entry that do not depend on the time and the port of the client.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    kind: Kind,
    log_type: LogType,
    route: &'static str,
    method: &'static str,
    status: Option<u16>,
    flags: &'static str,
    details: &'static str,
    cluster: &'static str,
    route_name: &'static str,
    attempts: u32,
    upstream: Option<&'static str>,
    received: u64,
    sent: u64,
}

const ANSWERED: Known = Known {
    kind: Kind::Http,
    log_type: LogType::DownstreamEnd,
    route: "/ok",
    method: "GET",
    status: Some(200),
    flags: "-",
    details: "via_upstream",
    cluster: "outbound|80||up.example",
    route_name: "the_route",
    attempts: 1,
    upstream: Some("127.0.0.1:19310"),
    received: 0,
    sent: 6,
};

const KNOWN: [Known; 5] = [
    ANSWERED,
    Known {
        route: "/dead",
        status: Some(503),
        flags: "UF,URX",
        details: "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}",
        cluster: "dead",
        route_name: "dead_route",
        attempts: 2,
        upstream: Some("127.0.0.1:1"),
        sent: 121,
        ..ANSWERED
    },
    Known {
        route: "/nowhere",
        status: Some(404),
        flags: "NR",
        details: "route_not_found",
        cluster: "",
        route_name: "",
        attempts: 0,
        upstream: None,
        sent: 0,
        ..ANSWERED
    },
    Known {
        method: "POST",
        status: Some(501),
        received: 4,
        sent: 357,
        ..ANSWERED
    },
    Known {
        kind: Kind::Tcp,
        log_type: LogType::TcpConnectionEnd,
        route: "",
        method: "",
        status: None,
        details: "",
        route_name: "",
        received: 81,
        sent: 205,
        ..ANSWERED
    },
];

#[test]
fn messages_and_records_are_the_same_entries() {
    let limits = Limits::default();
    let (requests, mut of_messages) = decode_all(REQUESTS, &limits).unwrap();
    let (connections, tcp) = decode_all(CONNECTION, &limits).unwrap();
    of_messages.extend(tcp);
    for decoded in [&requests, &connections] {
        let identifier = decoded.identifier.as_ref().unwrap();
        assert_eq!(identifier.node_id, NODE);
        assert_eq!(identifier.version, "1.40.0");
    }
    let mut of_records = Vec::new();
    let counts = decode_records(
        &Bytes::from_static(RECORDS),
        &limits,
        |identifier, entry| {
            assert_eq!(identifier.node_id, NODE);
            of_records.push(entry);
        },
    );
    let expected = |entries| Counts {
        entries,
        ..Counts::default()
    };
    assert_eq!(requests.counts, expected(4));
    assert_eq!(connections.counts, expected(1));
    assert_eq!(counts, Ok(expected(5)));
    for entries in [of_messages, of_records] {
        assert_eq!(entries.len(), KNOWN.len());
        for (entry, known) in entries.iter().zip(&KNOWN) {
            check(entry, known);
        }
    }
}

fn check(entry: &Entry, known: &Known) {
    let address = known.upstream.map(|address| address.parse().unwrap());
    assert_eq!(entry.kind, known.kind);
    assert_eq!(entry.log_type, known.log_type);
    assert!(entry.is_complete() && !entry.is_attempt());
    assert_eq!(entry.route().unwrap_or_default(), known.route);
    assert_eq!(entry.request.method, known.method);
    assert_eq!(entry.response.status, known.status);
    assert_eq!(entry.response.flags.short_names(), known.flags);
    assert_eq!(entry.response.details, known.details);
    assert_eq!(entry.upstream.cluster, known.cluster);
    assert_eq!(entry.upstream.route_name, known.route_name);
    assert_eq!(entry.upstream.attempts, known.attempts);
    assert_eq!(entry.addresses.upstream_remote.socket(), address);
    assert_eq!(entry.sizes.received, known.received);
    assert_eq!(entry.sizes.sent, known.sent);
    let is_http = known.kind == Kind::Http;
    let version = if is_http {
        HttpVersion::Http11
    } else {
        HttpVersion::Unknown
    };
    assert_eq!(entry.request.version, version);
    assert_eq!(entry.stream_id.len(), 36);
    assert!(
        entry
            .start_unix_ns
            .is_some_and(|start| start > 1_700_000_000_000_000_000)
    );
    let direct = &entry.addresses.downstream_direct_remote;
    assert!(matches!(direct, Address::Socket(address) if address.ip().is_loopback()));
    // The whole of a request is longer than its parts.
    let is_answered = is_http && known.attempts == 1;
    assert_eq!(entry.in_proxy_ns().is_some(), is_answered, "{entry:?}");
    if let Some(in_proxy) = entry.in_proxy_ns() {
        let upstream = entry.timing.upstream_ns().unwrap();
        assert!(in_proxy + upstream <= entry.timing.last_downstream_tx_ns.unwrap());
        assert!((1_000..100_000_000).contains(&in_proxy), "{in_proxy}");
    }
    assert!(entry.timing.duration_ns.is_some());
}
