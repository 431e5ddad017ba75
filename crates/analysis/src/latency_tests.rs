use std::collections::BTreeMap;

use profiler_model::{MatchClass, Timings, UpstreamHeader};

use super::{
    samples::{REQUESTS, edge, end, operation, times},
    *,
};

const MS: u64 = 1_000_000;

/// wrk, an Envoy that keeps each request for 6 ms, and an app that takes 100 ms, over 2 ms of network.
fn mesh(class: MatchClass, app_ns: Option<u64>) -> RequestTable {
    let [wrk, envoy, app] =
        [(1, "wrk"), (2, "envoy"), (3, "mesh-server")].map(|(pid, name)| end(pid, name));
    let pairs = SidecarTimes {
        pairs: REQUESTS,
        whole_ns: times(109 * MS),
        inside_ns: times(6 * MS),
        read_wait_ns: times(MS),
        to_upstream_ns: times(4 * MS),
        upstream_ns: times(103 * MS),
        answer_wait_ns: times(MS / 2),
        to_client_ns: times(MS / 2),
    };
    RequestTable {
        edges: vec![edge(&wrk, &envoy), edge(&envoy, &app)],
        operations: vec![
            operation(0, 110 * MS, Some(108 * MS)),
            operation(1, 103 * MS, app_ns),
        ],
        sidecars: vec![Sidecar {
            process: envoy,
            requests_in: REQUESTS,
            requests_out: REQUESTS,
            time_in_ns: 108 * MS * REQUESTS,
            time_out_ns: 103 * MS * REQUESTS,
            unmatched_in: 0,
            unmatched_out: 0,
            forgotten: 0,
            pairs: BTreeMap::from([(class, pairs)]),
            upstream_header: UpstreamHeader::default(),
            matched: Vec::new(),
            matched_left_out: 0,
        }],
        ..RequestTable::default()
    }
}

fn parts(latency: &Latency) -> Vec<(LatencyPlace, u64)> {
    let parts = latency.parts.iter();
    parts
        .map(|part| (part.place, part.mean_ns / 1000))
        .collect()
}

#[test]
fn the_time_of_requests_divides_between_the_sidecar_and_the_app() {
    let found = latencies(&mesh(MatchClass::RequestId, Some(100 * MS)));
    let [latency] = found.as_slice() else {
        panic!("{found:#?}");
    };
    assert_eq!(latency.mean_ns, 109 * MS);
    assert_eq!(
        parts(latency),
        [
            (LatencyPlace::InboundQueue, 1_000),
            (LatencyPlace::RequestPath, 4_000),
            (LatencyPlace::Network, 2_500),
            (LatencyPlace::Server, 100_000),
            (LatencyPlace::ResponseQueue, 500),
            (LatencyPlace::ResponsePath, 500),
            (LatencyPlace::ResponseBody, 500),
        ]
    );
    let sum: u64 = latency.parts.iter().map(|part| part.mean_ns).sum();
    assert_eq!(sum, latency.mean_ns);
    assert_eq!(
        latency.text,
        "Requests to envoy (2) take 109 ms on average (p95 109 ms): 100 ms in mesh-server, 6.00 ms in envoy."
    );
}

/// The table of parts has what is left without it.
#[test]
fn a_sidecar_that_reads_late_is_said_to() {
    let mut table = mesh(MatchClass::RequestId, Some(100 * MS));
    let pairs = table.sidecars[0].pairs.values_mut().next().unwrap();
    pairs.read_wait_ns = times(4 * MS);
    let found = latencies(&table);
    assert!(
        found[0]
            .text
            .contains("9.00 ms in envoy (4.50 ms of it unread in its sockets)"),
        "{}",
        found[0].text
    );
}

/// Its sockets are on another node.
#[test]
fn an_app_that_is_not_seen_has_the_network_with_it() {
    let found = latencies(&mesh(MatchClass::Order, None));
    assert_eq!(parts(&found[0])[2], (LatencyPlace::Upstream, 102_500));
    assert!(
        found[0].text.ends_with(
            ": 103 ms until mesh-server responds, the network included, 6.00 ms in envoy."
        ),
        "{}",
        found[0].text
    );
}

#[test]
fn a_process_that_answers_by_itself_has_one_part() {
    let mut table = mesh(MatchClass::RequestId, None);
    table.sidecars.clear();
    table.operations.truncate(1);
    let found = latencies(&table);
    assert_eq!(found.len(), 1);
    assert_eq!(parts(&found[0]), [(LatencyPlace::Server, 108_000)]);
    assert_eq!(
        found[0].text,
        "Requests to envoy (2) take 108 ms on average (p95 108 ms)."
    );
}

#[test]
fn what_a_sidecar_answers_by_itself_does_not_pass_through_it() {
    let mut table = mesh(MatchClass::RequestId, Some(100 * MS));
    let mut stats = operation(0, MS, Some(MS));
    stats.route = Some("/stats".to_owned());
    table.operations.push(stats);
    let [latency] = latencies(&table).try_into().unwrap();
    assert_eq!((latency.requests, latency.mean_ns), (REQUESTS, 109 * MS));
}

#[test]
fn without_responses_there_is_nothing_to_say() {
    let mut table = mesh(MatchClass::RequestId, None);
    for operation in &mut table.operations {
        operation.client = Timings::default();
        operation.server = Timings::default();
    }
    // What has no response is in no pair.
    table.sidecars[0].pairs.clear();
    assert_eq!(latencies(&table), []);
    table.sidecars.clear();
    assert_eq!(latencies(&table), []);
    assert_eq!(latencies(&RequestTable::default()), []);
}

#[test]
fn names_steer_no_terminal() {
    let mut table = mesh(MatchClass::RequestId, Some(MS));
    table.edges[1].key.server.comm = "\u{1b}[31mred".to_owned();
    assert!(!latencies(&table)[0].text.contains('\u{1b}'));
}

#[test]
fn a_sidecar_behind_a_sidecar_has_words_of_its_own() {
    let mut table = mesh(MatchClass::RequestId, Some(100 * MS));
    table.edges[1].key.server.comm = "envoy".to_owned();
    let text = &latencies(&table)[0].text;
    assert!(
        text.ends_with(": 100 ms in the envoy behind it, 6.00 ms in envoy."),
        "{text}"
    );
}
