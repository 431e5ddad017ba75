use profiler_model::{
    Address, Endpoint, LoggedRequests, LoggingEnvoy, Operation, RequestSource, Tally, Timings,
};
use profiler_protocols::Protocol;

use super::*;

use RequestSource::{AccessLog, Sockets};

const ENVOY: u32 = 7;

fn end(pid: Option<u32>, last: u8) -> Endpoint {
    Endpoint {
        pid,
        start_ticks: pid.map(|_| 1),
        comm: String::new(),
        container: None,
        address: Address::Ip([10, 0, 0, last].into()),
    }
}

fn edge(client: Option<u32>, server: Option<u32>) -> RequestEdge {
    RequestEdge {
        key: EdgeKey {
            client: end(client, 1),
            server: end(server, 2),
            server_port: Some(80),
            original_destination: None,
        },
        client_port: None,
        connections: 1,
        tls: Vec::new(),
        server_tids: Vec::new(),
    }
}

fn operation(edge: Option<u32>, count: u64) -> Operation {
    Operation {
        edge,
        protocol: Protocol::Http1,
        tls: false,
        method: None,
        route: None,
        is_other: false,
        tally: Tally {
            count,
            seen: count,
            ..Tally::default()
        },
        server_only: 0,
        client: Timings::default(),
        server: Timings::default(),
    }
}

fn spans(counts: &[u64]) -> Vec<RequestSpan> {
    let span = |count: &u64| RequestSpan {
        count: *count,
        ..RequestSpan::default()
    };
    counts.iter().map(span).collect()
}

fn of_sockets() -> RequestTable {
    RequestTable {
        edges: vec![
            edge(Some(1), Some(ENVOY)),
            edge(Some(2), Some(3)),
            edge(None, Some(4)),
        ],
        operations: vec![
            operation(Some(0), 100),
            operation(Some(1), 20),
            operation(Some(2), 3),
            operation(None, 4),
        ],
        timeline: RequestTimeline {
            width_ns: 1_000_000_000,
            all: spans(&[60, 60, 3]),
            edges: vec![
                (0, spans(&[50, 50])),
                (1, spans(&[10, 10])),
                (2, spans(&[0, 0, 3])),
            ],
        },
        ..RequestTable::default()
    }
}

fn of_logs() -> RequestTable {
    let told = LoggingEnvoy {
        process: end(Some(ENVOY), 2),
        node_id: String::new(),
        requests: 101,
        connections: 0,
        retried: 0,
        retries: 0,
        missing: None,
        joined: None,
        phases: Vec::new(),
        flags: std::collections::BTreeMap::new(),
        flagged: Vec::new(),
        details: std::collections::BTreeMap::new(),
        tls: std::collections::BTreeMap::new(),
        upstreams: Vec::new(),
        of_other_upstreams: 0,
    };
    RequestTable {
        // The last one is the hop of an Envoy of another node to a process that is watched here.
        edges: vec![
            edge(Some(1), Some(ENVOY)),
            edge(Some(ENVOY), Some(5)),
            edge(None, Some(4)),
        ],
        operations: vec![
            operation(Some(0), 101),
            operation(Some(1), 99),
            operation(Some(2), 3),
        ],
        timeline: RequestTimeline {
            width_ns: 2_000_000_000,
            all: spans(&[200, 3]),
            edges: vec![(0, spans(&[101]))],
        },
        logged: Some(LoggedRequests {
            edges: vec![0, 1, 2],
            envoys: vec![told],
            ..LoggedRequests::default()
        }),
        ..RequestTable::default()
    }
}

#[test]
fn each_request_counts_once_and_where_it_comes_from_is_known() {
    let table = merge(of_sockets(), of_logs(), Some(&Late::new()));
    let counts: Vec<_> = table
        .operations
        .iter()
        .map(|operation| {
            let ends = table
                .edge_of(operation)
                .map(|edge| edge.key.ends().map(|end| end.pid));
            let source = table.source_of(operation.edge, operation.tls);
            (ends, operation.tally.count, source)
        })
        .collect();
    let expected = [
        (Some([Some(2), Some(3)]), 20, Sockets),
        (None, 4, Sockets),
        (Some([Some(1), Some(ENVOY)]), 101, AccessLog),
        (Some([Some(ENVOY), Some(5)]), 99, AccessLog),
        (Some([None, Some(4)]), 3, AccessLog),
    ];
    assert_eq!(counts, expected);
    let told = table.logged.as_ref().unwrap();
    assert_eq!((told.seen_twice, &told.edges[..]), (103, &[1, 2, 3][..]));
    assert_eq!(told.without_entry, 0);
}

/// Only of listeners that have an access log, and of the rest only at the end.
#[test]
fn what_sockets_show_beyond_the_entries_has_none() {
    let late = |requests| Some(Late::from([(ENVOY, requests), (5, 99)]));
    for (port, end, one_of, expected) in [
        (80, late(0), 1, (104, 7)),
        (80, late(5), 1, (104, 2)),
        (80, late(9), 1, (104, 0)),
        (80, None, 1, (104, 0)),
        (80, late(0), 8, (104, 0)),
        (9901, late(0), 1, (3, 0)),
    ] {
        let mut sockets = of_sockets();
        sockets.edges[0].key.server_port = Some(port);
        sockets.operations[0].tally.count = 108;
        sockets.counters.sampled_one_of = one_of;
        let table = merge(sockets, of_logs(), end.as_ref());
        let told = table.logged.unwrap();
        let found = (told.seen_twice, told.without_entry);
        assert_eq!(found, expected, "{port}, {end:?}, 1 of {one_of}");
    }
    // The connection was redirected to a port that no entry has.
    let mut sockets = of_sockets();
    let key = &mut sockets.edges[0].key;
    key.server_port = Some(15_006);
    key.original_destination = Some(([10, 0, 0, 1].into(), 80));
    assert_eq!(
        merge(sockets, of_logs(), Some(&Late::new()))
            .logged
            .unwrap()
            .seen_twice,
        103
    );
}

#[test]
fn series_of_both_have_one_width() {
    let table = merge(of_sockets(), of_logs(), Some(&Late::new()));
    let timeline = &table.timeline;
    assert_eq!(timeline.width_ns, 2_000_000_000);
    let counts = |spans: &[RequestSpan]| spans.iter().map(|span| span.count).collect::<Vec<_>>();
    assert_eq!(counts(&timeline.all), [220, 3]);
    let edges: Vec<(u32, Vec<u64>)> = timeline
        .edges
        .iter()
        .map(|(place, spans)| (*place, counts(spans)))
        .collect();
    assert_eq!(edges, [(0, vec![20]), (1, vec![101])]);
}
