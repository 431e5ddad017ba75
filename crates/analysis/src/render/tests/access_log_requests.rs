use profiler_model::{LoggedPhase, Spread};

use super::*;
use crate::{
    latency::samples::{self, operation},
    logged_requests::tests::{envoy, flagged, host},
    render::requests_table,
};

const MS: u64 = 1_000_000;

/// The text of a table with these Envoys.
fn of(envoys: Vec<LoggingEnvoy>) -> Text {
    text(&RequestTable {
        logged: Some(LoggedRequests {
            envoys,
            ..LoggedRequests::default()
        }),
        ..RequestTable::default()
    })
}

#[test]
fn an_envoy_has_a_section_with_all_that_it_reports() {
    let mut time_ns = Spread::default();
    time_ns.add_times(2 * MS, 4);
    let counts = |name: &str, count: u64| (name.to_owned(), count);
    let envoy = LoggingEnvoy {
        requests: 1_202_829,
        connections: 171,
        retried: 3,
        retries: 1_004,
        missing: Some(612),
        joined: Some(LoggedJoin {
            ends: 2_400_000,
            joined: 2_398_800,
            confirmed: 1_199_400,
            requests: 1_199_390,
            contradicted: 2,
        }),
        phases: vec![LoggedPhase {
            name: "to_upstream".to_owned(),
            time_ns,
        }],
        flags: [counts("DC", 12_030), counts("UH", 24_060)].into(),
        flagged: vec![flagged("UH", "", 24_060)],
        details: [counts("via_upstream", 1_200_000), counts("other", 2)].into(),
        tls: [counts("TLSv1.3", 1_000_000), counts("TLSv1.2", 829)].into(),
        upstreams: vec![
            host("10.0.0.1:80", 200, 20, MS),
            host("10.0.0.2:80", 1000, 5, MS),
        ],
        ..envoy(Some(12))
    };
    let found = of(vec![envoy]);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(
        lines,
        [
            "",
            "access log of envoy[12] 10.0.0.9: 1,202,829 requests, 171 TCP connections",
            "  received 99.94 % of 1,203,441 requests; 612 are missing",
            "  found at sockets: 99.95 % of 2,400,000 ends, 1,199,400 by the same x-request-id; both ends of 1,199,390 requests; the times of \
             2 fit requests with other ids",
            "  PHASE           mean      p50      p99",
            "  to_upstream  2.00 ms  2.00 ms  2.00 ms",
            "  UH NoHealthyUpstream: 24,060 (2.00 %)",
            "    24,060 to no host of cluster web",
            "    The upstream cluster had no healthy host, and Envoy answered 503.",
            "    usual cause: No ready pods, failed health checks or hosts ejected by outlier detection; `outlier_detection`, \
             `health_checks`, `healthy_panic_threshold`",
            "  DC DownstreamConnectionTermination: 12,030 (1.00 %)",
            "    The client closed its connection before the response was complete.",
            "    usual cause: The client's own timeout, or a user who left; compare the duration with the client's timeout",
            "  responses: via_upstream 1,200,000, other 2",
            "  host 10.0.0.1:80 of web: 10.0 % of its requests fail (6.6 to 14.9 %), of those to the other host of the cluster 0.5 % \
             (0.2 to 1.2 %).",
            "  retries: 3 requests were sent again, 1,004 attempts more in all",
            "  TLS of clients: TLSv1.3 1,000,000, TLSv1.2 829, without 202,000",
        ]
    );
}

#[test]
fn what_is_not_known_of_an_envoy_is_said() {
    let found = of(vec![envoy(None)]);
    assert!(
        found.contains("access log of sidecar~10.0.0.9~web-1.shop~shop.svc: 1,000 requests\n"),
        "{found}"
    );
    assert!(
        found.contains("only claimed: no process of this node"),
        "{found}"
    );
    assert!(found.contains("is not known: its own counters"), "{found}");
    let mut time_ns = Spread::default();
    time_ns.add(MS);
    let whole = LoggingEnvoy {
        missing: Some(0),
        phases: vec![LoggedPhase {
            name: "read".to_owned(),
            time_ns,
        }],
        ..envoy(Some(12))
    };
    let found = of(vec![whole]);
    assert!(
        found.contains("  none of its requests are known to be missing\n"),
        "{found}"
    );
    assert!(
        found.contains("  times start once Envoy has read a request"),
        "{found}"
    );
    let found = of(Vec::new());
    assert!(found.contains("access-logs snippet --for"), "{found}");
}

#[test]
fn names_that_an_envoy_sends_are_cut_and_do_not_steer_the_terminal() {
    let long = format!("\x1b[2J\n{}", "x".repeat(500));
    let envoy = LoggingEnvoy {
        node_id: long.clone(),
        flags: [(long.clone(), 1)].into(),
        details: (0..20)
            .map(|number| (format!("{number}{long}"), 1))
            .collect(),
        tls: [(long.clone(), 1)].into(),
        phases: vec![LoggedPhase {
            name: long.clone(),
            time_ns: Spread::default(),
        }],
        upstreams: vec![
            LoggedUpstream {
                cluster: long.clone(),
                ..host(&long, 100, 100, MS)
            },
            LoggedUpstream {
                cluster: long.clone(),
                ..host("other", 100, 0, MS)
            },
        ],
        ..envoy(None)
    };
    let found = of(vec![envoy]);
    assert!(!found.contains('\x1b'), "{found}");
    assert!(found.contains("12 more"), "{found}");
    assert!(
        found.lines().all(|line| line.chars().count() < 700),
        "{found}"
    );
    // Each but those of details is there once.
    assert_eq!(
        found.matches("\\x1b[2J\\x0ax").count(),
        6 + MOST_NAMES,
        "{found}"
    );
}

#[test]
fn requests_of_access_logs_are_marked_where_others_were_seen_at_sockets() {
    let [client, envoy_end, app] =
        [(1, "client"), (2, "envoy"), (3, "app")].map(|(pid, name)| samples::end(pid, name));
    let mut table = RequestTable {
        edges: vec![
            samples::edge(&client, &envoy_end),
            samples::edge(&envoy_end, &app),
        ],
        operations: vec![operation(0, MS, None), operation(1, MS, None)],
        logged: Some(LoggedRequests {
            edges: vec![1],
            seen_twice: 1_234,
            without_entry: 0,
            left_out: 7,
            of_other_envoys: 5,
            envoys: vec![LoggingEnvoy {
                missing: Some(3),
                ..envoy(Some(2))
            }],
        }),
        ..RequestTable::default()
    };
    let found = requests_table::text(&table);
    assert_eq!(found.matches("http1+log").count(), 1, "{found}");
    assert!(
        found.contains("+log marks requests from access logs"),
        "{found}"
    );
    assert!(
        found.contains("1,234 requests were seen at sockets as well"),
        "{found}"
    );
    assert!(
        found.contains("5 requests are of further Envoys"),
        "{found}"
    );
    assert!(
        found.contains(
            "missing: 3 requests that Envoys logged and that did not arrive; 7 entries of access logs that arrived faster than they \
             could be read\n"
        ),
        "{found}"
    );
    for edges in [vec![0, 1], Vec::new()] {
        table.logged.as_mut().unwrap().edges = edges;
        assert!(!requests_table::text(&table).contains("+log"));
    }
}
