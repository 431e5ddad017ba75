use std::collections::BTreeMap;

use profiler_protocols::Protocol;

use super::*;
use profiler_model::{
    Address, EdgeKey, Outcomes, SeenBy, Tally, Timings, TlsFileReport, UpstreamHeader, Window,
};

#[test]
fn tls_is_called_as_the_protocol_is() {
    assert_eq!(TLS, Protocol::Tls.name());
}

fn endpoint(pid: Option<u32>, last: u8) -> Endpoint {
    Endpoint {
        pid,
        start_ticks: None,
        comm: "app".to_owned(),
        container: None,
        address: Address::Ip([10, 0, 0, last].into()),
    }
}

fn spread(values: &[u64]) -> Spread {
    let mut spread = Spread::default();
    for value in values {
        spread.add(*value);
    }
    spread
}

fn operation(route: &str, count: u64) -> Operation {
    Operation {
        edge: Some(0),
        protocol: Protocol::Http1,
        tls: false,
        method: Some("GET".to_owned()),
        route: Some(route.to_owned()),
        is_other: false,
        tally: Tally {
            count,
            seen: count,
            outcomes: Outcomes {
                ok: count - 1,
                server_error: 1,
                ..Outcomes::default()
            },
            ..Tally::default()
        },
        server_only: 0,
        client: Timings {
            count,
            latency_ns: spread(&[1_500_000, 1_500_000, 2_000_000_000]),
            first_byte_ns: Spread::default(),
        },
        server: Timings::default(),
    }
}

fn table(operations: Vec<Operation>) -> RequestTable {
    RequestTable {
        window: Window {
            from_ns: 0,
            to_ns: 10_000_000_000,
        },
        edges: vec![RequestEdge {
            key: EdgeKey {
                client: endpoint(Some(17), 1),
                server: endpoint(None, 2),
                server_port: Some(80),
                original_destination: None,
            },
            client_port: None,
            connections: 2,
            server_tids: Vec::new(),
            tls: Vec::new(),
        }],
        operations,
        ..RequestTable::default()
    }
}

#[test]
fn operations_are_a_row_each_the_most_frequent_first() {
    let found = text(&table(vec![operation("/few", 5), operation("/many", 2500)]));
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(
        lines,
        [
            "Requests to app take 668 ms on average (p95 2.00 s).",
            "CLIENT            SERVER       PROTOCOL  OPERATION  COUNT  RATE/s  ERRORS      p50     p90     p99",
            "app[17] 10.0.0.1  10.0.0.2:80  http1     GET /many   2500     250       1  1.51 ms  2.00 s  2.00 s",
            "app[17] 10.0.0.1  10.0.0.2:80  http1     GET /few       5     0.5       1  1.51 ms  2.00 s  2.00 s",
            "nothing is known to be missing",
        ]
    );
}

#[test]
fn a_statement_is_told_without_saying_its_first_word_twice() {
    let mut query = operation("SELECT ? FROM t", 1);
    query.method = Some("SELECT".to_owned());
    let found = text(&table(vec![query]));
    assert!(found.contains("  SELECT ? FROM t  "), "{found}");
}

#[test]
fn text_of_payload_does_not_steer_the_terminal() {
    let found = text(&table(vec![operation("/\x1b[2J\r\n", 1)]));
    assert!(found.contains("GET /\\x1b[2J\\x0d\\x0a"), "{found}");
    assert!(!found.contains('\x1b'), "{found}");
}

#[test]
fn a_screen_has_only_so_many_rows() {
    let operations = (0..30).map(|number| operation(&format!("/{number}"), 2));
    let found = live(&table(operations.collect()), 20);
    assert_eq!(found.lines().count(), 22);
    assert!(found.ends_with("and 10 more operations\n"), "{found}");
}

#[test]
fn nothing_is_said_as_such() {
    let found = text(&RequestTable::default());
    assert!(found.contains("no requests were seen"), "{found}");
}

#[test]
fn what_the_kernel_counted_is_said_where_operations_are_estimates() {
    let mut counted = table(vec![operation("/", 5)]);
    counted.counted = [(true, 7, 0), (false, 3, 0), (true, 1, 1)]
        .map(|(is_exact, ok, unknown)| EdgeCount {
            edge: 0,
            protocol: Protocol::Http1,
            seen_by: SeenBy::Client,
            outcomes: Outcomes {
                ok,
                client_error: 1,
                unknown,
                ..Outcomes::default()
            },
            latency_ns: spread(&[1_500_000]),
            is_exact,
        })
        .to_vec();
    assert!(!text(&counted).contains("in the kernel"));
    counted.counters.sampled_one_of = 4;
    let found = text(&counted);
    let (_, behind) = found.split_once("is unknown):\n").unwrap();
    let lines: Vec<Vec<&str>> = behind
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(lines[0], COUNTED_HEADER);
    let p50 = "1.50 ms";
    assert_eq!(lines[1][2..4], ["http1", "8"], "{found}");
    assert_eq!((lines[1][5], lines[1][6]), ("1", p50), "{found}");
    assert_eq!(lines[2][3], "4 or more", "{found}");
    assert_eq!(lines[3][5], "1, 1 unknown", "{found}");
}

#[test]
fn what_is_missing_is_said() {
    let mut lacking = table(Vec::new());
    lacking.counters.lost_pieces = 3;
    lacking.counters.sampled_one_of = 4;
    let found = text(&lacking);
    assert!(
        found.contains("missing: 3 pieces of payload that were lost\n"),
        "{found}"
    );
    assert!(
        found.contains("at the busiest time one connection in 4: counts are estimates"),
        "{found}"
    );
    assert!(!found.contains("no known socket"), "{found}");
    assert!(!found.contains("nothing is known"), "{found}");
}

#[test]
fn what_is_missing_is_one_line_and_nothing_of_it_stays_in_the_json_alone() {
    let mut unknown = operation("/", 5);
    unknown.tally.outcomes.unknown = 1;
    let mut lacking = table(vec![unknown]);
    lacking.counters.undecoded_bytes = 27_980;
    lacking.counters.gaps = 2;
    lacking.counters.gap_connections = 1;
    let found = text(&lacking);
    assert!(
        found.contains(
            "missing: 1 request whose status or end was not seen; 2 gaps in the payload of 1 connection; 27980 \
             bytes that could not be decoded\n"
        ),
        "{found}"
    );
    let whole = text(&table(vec![operation("/", 5)]));
    assert!(
        whole.contains("nothing is known to be missing\n"),
        "{whole}"
    );
}

#[test]
fn an_estimate_stands_with_its_interval() {
    let mut estimated = operation("/", 100);
    estimated.tally.seen = 50;
    estimated.tally.variance = Some(100);
    let found = text(&table(vec![estimated.clone()]));
    assert!(found.contains("  ~100 (80 to 120)  "), "{found}");
    estimated.tally.variance = None;
    let found = text(&table(vec![estimated]));
    assert!(found.contains("  ~100 (50 or more)  "), "{found}");
    let mut least = operation("/", 100);
    least.tally.variance = None;
    let found = text(&table(vec![least]));
    assert!(found.contains("  100 or more  "), "{found}");
}

#[test]
fn percentiles_are_of_the_end_that_saw_the_requests() {
    let mut seen = operation("/", 800);
    seen.client.latency_ns = spread(&[4_500_000]);
    seen.server.count = 800;
    seen.server.latency_ns = spread(&[660_000; 800]);
    let found = text(&table(vec![seen.clone()]));
    assert!(!found.contains("4.5"), "{found}");
    // Enough of them: the client's contain the way.
    seen.client.latency_ns = spread(&[4_500_000; 720]);
    let found = text(&table(vec![seen]));
    assert!(found.contains("4.5"), "{found}");
}

#[test]
fn says_when_probes_of_tls_were_in_later_than_the_task_began() {
    let said = |attached_ns: u64| {
        let mut with = table(Vec::new());
        with.tls = Some(TlsReport {
            files: vec![TlsFileReport {
                path: "/bin/app".to_owned(),
                build_id: String::new(),
                library: None,
                found_by: None,
                sites: Vec::new(),
                processes: 1,
                reasons: Vec::new(),
            }],
            attached_percent: 100,
            attached_ns,
            ..TlsReport::default()
        });
        text(&with).contains("TLS was read from 190 ms on, when the probes were in")
    };
    assert!(said(9_810_000_000));
    assert!(!said(10_000_000_000) && !said(9_999_000_000));
}

#[test]
fn sidecars_follow_with_shares_and_parts() {
    let mut with = table(vec![operation("/", 2)]);
    let times = SidecarTimes {
        pairs: 3,
        to_upstream_ns: spread(&[250_000]),
        ..SidecarTimes::default()
    };
    let tied = SidecarTimes {
        pairs: 1,
        ..SidecarTimes::default()
    };
    with.sidecars = vec![Sidecar {
        process: endpoint(Some(9), 3),
        requests_in: 4,
        requests_out: 4,
        time_in_ns: 8_000_000,
        time_out_ns: 4_000_000,
        unmatched_in: 0,
        unmatched_out: 0,
        forgotten: 0,
        pairs: BTreeMap::from([(MatchClass::RequestId, times), (MatchClass::Order, tied)]),
        upstream_header: UpstreamHeader {
            pairs: 2,
            agreeing: 1,
            ..UpstreamHeader::default()
        },
        matched: Vec::new(),
        matched_left_out: 0,
    }];
    let found = text(&with);
    assert!(found.contains("each hop counts"), "{found}");
    with.sidecars.clear();
    assert!(!text(&with).contains("each hop counts"));
    assert!(
        found.contains("time in app[9] 10.0.0.3, socket queues left out: 1.00 ms per request (mean; 4 requests in, 4 out)"),
        "{found}"
    );
    assert!(
        found.contains("4 pairs: request id 75 %, order 25 %"),
        "{found}"
    );
    assert!(found.contains("request path"), "{found}");
    assert!(found.contains("250 us"), "{found}");
    assert!(found.contains("agrees within 2 ms for 1 of 2"), "{found}");
}
