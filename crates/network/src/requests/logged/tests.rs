use bytes::Bytes;
use profiler_access_logs::{
    Address as Logged, Addresses, HttpVersion, LogType, Request, Response, Stage, Timing, Upstream,
    flags::Flags,
};
use profiler_model::{Address, MatchClass, Operation, RequestSource};
use profiler_protocols::Protocol;

use super::*;

const EPOCH: u64 = 1_000_000_000_000;
const BEGIN: u64 = 50_000_000_000;
const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

const CLIENT: &str = "10.0.0.1:40000";
const FIRST: &str = "10.0.0.2:8080";
const FIRSTS_OWN: &str = "10.0.0.2:50000";
const SECOND_ENVOY: &str = "10.0.0.3:9080";
const SECONDS_OWN: &str = "127.0.0.1:50001";
const APP: &str = "127.0.0.1:3000";

fn at(address: &str) -> Logged {
    Logged::Socket(address.parse().unwrap())
}

fn process(pid: u32) -> Endpoint {
    Endpoint {
        pid: Some(pid),
        start_ticks: Some(7),
        comm: format!("p{pid}"),
        container: None,
        address: Address::Unix(String::new()),
    }
}

/// A request of 10 ms that began so long after the beginning, of which it was on its way to the upstream for 6 ms.
fn entry([client, own, sent_from, upstream]: [&str; 4], after_ns: u64) -> Entry {
    Entry {
        kind: Kind::Http,
        log_type: LogType::DownstreamEnd,
        stage: Stage::End,
        start_unix_ns: Some(EPOCH + BEGIN + after_ns),
        timing: Timing {
            last_downstream_rx_ns: Some(0),
            first_upstream_tx_ns: Some(3 * MS),
            last_upstream_tx_ns: Some(3 * MS),
            first_upstream_rx_ns: Some(8 * MS),
            last_upstream_rx_ns: Some(9 * MS),
            first_downstream_tx_ns: Some(9 * MS),
            last_downstream_tx_ns: Some(10 * MS),
            duration_ns: Some(10 * MS),
        },
        request: Request {
            version: HttpVersion::Http11,
            method: Bytes::from_static(b"GET"),
            path: Bytes::from_static(b"/users/7?token=canary"),
            id: Bytes::from_static(b"one"),
            ..Request::default()
        },
        response: Response {
            status: Some(200),
            details: Bytes::from_static(b"via_upstream"),
            ..Response::default()
        },
        upstream: Upstream {
            cluster: Bytes::from_static(b"outbound|80||app"),
            attempts: 1,
            ..Upstream::default()
        },
        addresses: Addresses {
            downstream_remote: at(client),
            downstream_direct_remote: at(client),
            downstream_local: at(own),
            upstream_local: at(sent_from),
            upstream_remote: at(upstream),
        },
        ..Entry::default()
    }
}

fn through_first(after_ns: u64) -> Entry {
    entry([CLIENT, FIRST, FIRSTS_OWN, SECOND_ENVOY], after_ns)
}

fn through_second(after_ns: u64) -> Entry {
    let second = entry([FIRSTS_OWN, SECOND_ENVOY, SECONDS_OWN, APP], after_ns);
    Entry {
        timing: Timing {
            last_downstream_tx_ns: Some(5 * MS),
            first_downstream_tx_ns: Some(4 * MS),
            first_upstream_tx_ns: Some(MS),
            last_upstream_tx_ns: Some(MS),
            first_upstream_rx_ns: Some(3 * MS),
            last_upstream_rx_ns: Some(3 * MS),
            duration_ns: Some(5 * MS),
            ..second.timing
        },
        request: Request {
            version: HttpVersion::Http2,
            ..second.request
        },
        ..second
    }
}

fn tracker() -> LogTracker {
    LogTracker::new(TrackerOptions {
        epoch_ns: EPOCH,
        begin_ns: BEGIN,
        ..TrackerOptions::default()
    })
}

/// The row of an operation, by the pids of its ends.
fn operation(table: &RequestTable, ends: [Option<u32>; 2]) -> &Operation {
    let found = table.operations.iter().filter(|operation| {
        let edge = table.edge_of(operation).unwrap();
        edge.key.ends().map(|end| end.pid) == ends
    });
    let found: Vec<_> = found.collect();
    let [one] = found[..] else {
        panic!("{ends:?}: {table:#?}");
    };
    one
}

fn other(pid: u32, may_report: bool) -> OtherEnd {
    OtherEnd {
        process: process(pid),
        may_report,
    }
}

/// Requests of all operations.
fn counted(table: &RequestTable) -> u64 {
    let operations = table.operations.iter();
    operations.map(|operation| operation.tally.count).sum()
}

/// Only an Envoy at the other end may tell of the same requests later.
#[test]
fn requests_wait_no_longer_when_the_other_end_is_no_envoy() {
    for (may_report, is_counted) in [(false, true), (true, false)] {
        let mut tracker = tracker();
        let envoy = tracker.envoy(process(2), "node".to_owned(), Some(1));
        tracker.take(envoy, &through_first(0), u64::MAX);
        let ends = tracker.unknown_ends(false);
        let client = ends.iter().find(|end| end.is_client).unwrap();
        tracker.found(client, other(1, may_report));
        let table = tracker.table(BEGIN + SECOND);
        assert_eq!(counted(&table), u64::from(is_counted));
        // It is counted once.
        let table = tracker.finish(BEGIN + 2 * SECOND);
        assert_eq!(operation(&table, [Some(1), Some(2)]).tally.count, 1);
    }
}

/// A busy node is looked at rarely: until then it is not said that nobody was found.
#[test]
fn requests_wait_until_their_other_ends_were_looked_for() {
    let mut tracker = tracker();
    let envoy = tracker.envoy(process(2), "node".to_owned(), Some(1));
    tracker.take(envoy, &through_first(0), u64::MAX);
    for _ in 0..PATIENCE + 2 {
        assert_eq!(counted(&tracker.table(BEGIN + SECOND)), 0);
    }
    let ends = tracker.unknown_ends(false);
    tracker.found(&ends[0], other(1, false));
    // One was found; that nobody is at the other is known when the answer has come.
    assert_eq!(counted(&tracker.table(BEGIN + SECOND)), 1);
    assert_eq!(counted(&tracker.table(BEGIN + SECOND)), 2);
}

#[test]
fn a_request_is_two_hops_and_what_lies_between() {
    let mut tracker = tracker();
    let envoy = tracker.envoy(process(2), "node".to_owned(), Some(1));
    for number in 0..5 {
        tracker.take(envoy, &through_first(number * MS), u64::MAX);
    }
    // Nothing is counted before the other sides can have told of the connections.
    assert!(tracker.table(BEGIN + SECOND).operations.is_empty());
    let ends = tracker.unknown_ends(false);
    assert_eq!(ends.len(), 2);
    for end in &ends {
        assert_eq!(end.namespace, Some(1));
        if end.is_client {
            assert_eq!(end.end, CLIENT.parse().unwrap());
            tracker.found(end, other(1, false));
        }
    }
    let table = tracker.finish(BEGIN + 2 * SECOND);
    assert_eq!(table.operations.len(), 2);
    let inner = operation(&table, [Some(1), Some(2)]);
    assert_eq!((inner.tally.count, inner.server_only), (5, 5));
    assert_eq!(inner.protocol, Protocol::Http1);
    assert_eq!(inner.route.as_deref(), Some("/users/{n}"));
    assert_eq!(inner.server.latency_ns.sum, 50 * MS);
    assert_eq!(inner.tally.statuses["200"], 5);
    let outer = operation(&table, [Some(2), None]);
    // What is spoken there is in no entry.
    assert_eq!(outer.protocol, Protocol::Http);
    assert_eq!(outer.client.latency_ns.sum, 30 * MS);
    assert_eq!(outer.client.first_byte_ns.sum, 25 * MS);
    let [sidecar] = &table.sidecars[..] else {
        panic!("{:?}", table.sidecars);
    };
    assert_eq!(sidecar.mean_ns(), Some(4 * MS));
    let times = &sidecar.pairs[&MatchClass::AccessLog];
    assert_eq!(times.inside_ns.sum, 20 * MS);
    let parts = [
        &times.to_upstream_ns,
        &times.upstream_ns,
        &times.to_client_ns,
    ];
    assert_eq!(parts.map(|part| part.sum), [15 * MS, 25 * MS, 5 * MS]);
    assert_eq!(table.over_time().unwrap().all.count.iter().sum::<u64>(), 10);
    let text = format!("{table:?}");
    assert!(!text.contains("canary"), "{text}");
    let logged = table.logged.as_ref().unwrap();
    let [row] = &logged.envoys[..] else {
        panic!("{logged:?}");
    };
    assert_eq!(
        (row.requests, row.retries, row.node_id.as_str()),
        (5, 0, "node")
    );
    assert_eq!(row.process.address, Address::Ip([10, 0, 0, 2].into()));
    let phase = |name: &str| row.phases.iter().find(|phase| phase.name == name);
    assert_eq!(phase("upstream").unwrap().time_ns.sum, 25 * MS);
    for operation in &table.operations {
        let source = table.source_of(operation.edge, operation.tls);
        assert_eq!(source, RequestSource::AccessLog);
    }
}

/// Texts that nothing is counted by are made where they are kept.
#[test]
fn samples_have_their_texts_whether_they_waited_or_not() {
    let mut tracker = tracker();
    let envoy = tracker.envoy(process(2), String::new(), None);
    let entry = |id: &'static [u8]| {
        let mut entry = through_first(0);
        entry.request.id = Bytes::from_static(id);
        entry.request.authority = Bytes::from_static(b"shop");
        entry
    };
    tracker.take(envoy, &entry(b"one"), u64::MAX);
    while counted(&tracker.table(BEGIN + SECOND)) < 2 {}
    tracker.take(envoy, &entry(b"two"), u64::MAX);
    // It waits no more.
    let table = tracker.table(BEGIN + SECOND);
    assert_eq!(counted(&table), 4);
    let samples = table.samples.iter().map(|sample| &sample.exchange);
    let mut ids: Vec<_> = samples
        .clone()
        .map(|exchange| exchange.trace.request_id.as_deref())
        .collect();
    ids.sort_unstable();
    let expected = ["one", "one", "two", "two"];
    assert_eq!(ids, expected.map(Some));
    let authorities = samples.clone().map(|exchange| &exchange.authority);
    assert!(authorities.flatten().all(|authority| authority == "shop"));
    assert!(samples.clone().all(|exchange| exchange.path.is_none()));
}

#[test]
fn a_call_of_grpc_has_its_own_status_on_both_hops() {
    let mut tracker = tracker();
    let envoy = tracker.envoy(process(2), String::new(), None);
    for status in [None, Some(0), Some(5), Some(14)] {
        let mut call = through_first(0);
        call.request.version = HttpVersion::Http2;
        call.request.path = Bytes::from_static(b"/shop.Cart2/Get");
        call.response.grpc_status = status;
        tracker.take(envoy, &call, u64::MAX);
    }
    let table = tracker.finish(BEGIN + SECOND);
    let calls: Vec<&Operation> = table
        .operations
        .iter()
        .filter(|operation| operation.protocol == Protocol::Grpc)
        .collect();
    assert_eq!(calls.len(), 2, "{table:#?}");
    for call in calls {
        assert_eq!(call.route.as_deref(), Some("/shop.Cart2/Get"));
        let outcomes = call.tally.outcomes;
        assert_eq!(
            (outcomes.ok, outcomes.client_error, outcomes.server_error),
            (1, 1, 1)
        );
        assert_eq!(call.tally.statuses["grpc 14"], 1);
    }
    let host = &table.logged.unwrap().envoys[0].upstreams[0];
    assert_eq!((host.requests, host.errors), (4, 1));
}

#[test]
fn what_an_envoy_dropped_is_made_up_for_where_it_counts() {
    let mut tracker = tracker();
    let first = tracker.envoy(process(2), String::new(), Some(1));
    let second = tracker.envoy(process(3), String::new(), Some(2));
    for round in 0..6 {
        for number in 0..10 {
            let after = round * SECOND + number * MS;
            tracker.take(first, &through_first(after), u64::MAX);
            tracker.take(second, &through_second(after), u64::MAX);
        }
        tracker.table(BEGIN + (round + 1) * SECOND);
    }
    let lost = Missing {
        lost: 60,
        unknown: 0,
    };
    tracker.missing(first.unwrap(), Some(lost));
    tracker.missing(second.unwrap(), None);
    let table = tracker.finish(BEGIN + 7 * SECOND);
    for (ends, count, certain) in [
        ([None, Some(2)], 120, false),
        ([Some(2), Some(3)], 120, false),
        ([Some(3), None], 60, true),
    ] {
        let tally = &operation(&table, ends).tally;
        assert_eq!((tally.seen, tally.count), (60, count), "{ends:?}");
        assert_eq!(tally.is_certain(), certain, "{ends:?}");
    }
    assert_eq!(table.logged.unwrap().envoys[0].missing, Some(60));
}

#[test]
fn a_hop_between_two_envoys_counts_once_with_the_times_of_both() {
    for first_comes_first in [true, false] {
        let mut tracker = tracker();
        let first = tracker.envoy(process(2), String::new(), Some(1));
        let second = tracker.envoy(process(3), String::new(), Some(2));
        for round in 0..6 {
            for number in 0..10 {
                let after = round * SECOND + number * MS;
                if first_comes_first {
                    tracker.take(first, &through_first(after), u64::MAX);
                    tracker.take(second, &through_second(after), u64::MAX);
                } else {
                    tracker.take(second, &through_second(after), u64::MAX);
                    tracker.take(first, &through_first(after), u64::MAX);
                }
            }
            tracker.table(BEGIN + (round + 1) * SECOND);
        }
        let table = tracker.finish(BEGIN + 7 * SECOND);
        assert_eq!(table.operations.len(), 3, "{table:#?}");
        let between = operation(&table, [Some(2), Some(3)]);
        assert_eq!((between.tally.count, between.server_only), (60, 0));
        assert_eq!((between.client.count, between.server.count), (60, 60));
        assert_eq!(between.client.latency_ns.sum, 60 * 6 * MS);
        assert_eq!(between.server.latency_ns.sum, 60 * 5 * MS);
        // The server knows.
        assert_eq!(between.protocol, Protocol::Http2);
        assert_eq!(operation(&table, [None, Some(2)]).tally.count, 60);
        assert_eq!(operation(&table, [Some(3), None]).tally.count, 60);
        let place = between.edge.unwrap();
        assert_eq!(table.edges[usize::try_from(place).unwrap()].connections, 1);
    }
}

#[test]
fn a_host_has_what_the_kernel_says_of_the_connections_to_it() {
    let mut tracker = tracker();
    let envoy = tracker.envoy(process(2), String::new(), Some(1));
    tracker.take(envoy, &through_first(0), u64::MAX);
    let [socket] = tracker.own_sockets()[..] else {
        panic!("{:?}", tracker.own_sockets());
    };
    let ends = [socket.local, socket.remote];
    assert_eq!(
        ends,
        [FIRSTS_OWN, SECOND_ENVOY].map(|end| end.parse().unwrap())
    );
    for (rtt_us, retransmits) in [(900, 7), (400, 9)] {
        let now = SocketNow {
            rtt_us,
            retransmits,
        };
        tracker.saw(&socket, now);
    }
    // Long after the connection was used last.
    for since in [0, 90] {
        let mut table = RequestTable::default();
        for second in 0..=since {
            table = tracker.table(BEGIN + (since + second) * SECOND);
        }
        let host = &table.logged.unwrap().envoys[0].upstreams[0];
        assert_eq!(
            (host.rtt_ns.sum, host.rtt_ns.count),
            (400_000, 1),
            "{since}"
        );
        assert_eq!(host.retransmits, 2, "{since}");
    }
    assert!(tracker.own_sockets().is_empty());
}

#[test]
fn the_same_addresses_of_loopback_in_two_namespaces_are_two_connections() {
    let mut tracker = tracker();
    let ends = [
        "127.0.0.1:1000",
        "127.0.0.1:80",
        "127.0.0.1:1001",
        "127.0.0.1:81",
    ];
    for (pid, namespace) in [(2, 1), (3, 2)] {
        let envoy = tracker.envoy(process(pid), String::new(), Some(namespace));
        tracker.take(envoy, &entry(ends, 0), u64::MAX);
    }
    let table = tracker.finish(BEGIN + SECOND);
    assert_eq!(table.operations.len(), 4, "{table:#?}");
}

#[test]
fn only_what_was_over_within_the_task_counts() {
    let mut tracker = tracker();
    let envoy = tracker.envoy(process(2), String::new(), None);
    let until = EPOCH + BEGIN + SECOND;
    let mut before = through_first(0);
    before.start_unix_ns = Some(EPOCH + BEGIN - 20 * MS);
    let mut begun_before = through_first(0);
    begun_before.start_unix_ns = Some(EPOCH + BEGIN - 5 * MS);
    let mut open = through_first(0);
    (open.log_type, open.stage) = (LogType::DownstreamPeriodic, Stage::Open);
    let mut attempt = through_first(0);
    attempt.log_type = LogType::UpstreamEnd;
    for one in [
        &before,
        &begun_before,
        &open,
        &attempt,
        &through_first(SECOND - 5 * MS),
    ] {
        tracker.take(envoy, one, until);
    }
    let table = tracker.finish(BEGIN + SECOND);
    assert_eq!(table.logged.unwrap().envoys[0].requests, 1);
}

#[test]
fn what_went_wrong_is_told_by_flag_detail_and_host() {
    let mut tracker = tracker();
    let envoy = tracker.envoy(process(2), String::new(), None);
    let (flags, unknown) = Flags::from_short_names("UF,URX");
    assert_eq!(unknown, 0);
    let mut failed = through_first(0);
    failed.response = Response {
        status: Some(503),
        flags,
        details: Bytes::from_static(b"upstream_reset_before_response_started"),
        ..Response::default()
    };
    failed.upstream.attempts = 3;
    failed.timing = Timing {
        last_downstream_rx_ns: Some(0),
        first_downstream_tx_ns: Some(7 * MS),
        last_downstream_tx_ns: Some(7 * MS),
        duration_ns: Some(7 * MS),
        ..Timing::default()
    };
    let mut broken = through_first(0);
    broken.response.flags = Flags::from_short_names("DC").0;
    for one in [&failed, &broken, &through_first(0)] {
        tracker.take(envoy, one, u64::MAX);
    }
    let table = tracker.finish(BEGIN + SECOND);
    let row = &table.logged.as_ref().unwrap().envoys[0];
    assert_eq!((row.requests, row.retried, row.retries), (3, 1, 2));
    let flags = [("DC", 1), ("UF", 1), ("URX", 1)];
    assert_eq!(
        row.flags,
        flags.map(|(name, count)| (name.to_owned(), count)).into()
    );
    let places = row.flagged.iter();
    let places: Vec<_> = places
        .map(|place| (place.flag.as_str(), place.address.as_str(), place.count))
        .collect();
    assert_eq!(
        places,
        flags.map(|(name, count)| (name, SECOND_ENVOY, count))
    );
    assert_eq!(row.details["via_upstream"], 2);
    let [host] = &row.upstreams[..] else {
        panic!("{row:?}");
    };
    assert_eq!(
        (host.address.as_str(), host.requests, host.errors),
        (SECOND_ENVOY, 3, 1)
    );
    let inner = operation(&table, [None, Some(2)]);
    let outcomes = inner.tally.outcomes;
    assert_eq!(
        (outcomes.ok, outcomes.server_error, outcomes.broken),
        (1, 1, 1)
    );
    // The failed one was never sent.
    assert_eq!(operation(&table, [Some(2), None]).tally.count, 2);
    // Its time is no time in the proxy.
    assert_eq!(table.sidecars[0].requests_in, 2);
}

#[test]
fn names_that_are_made_up_take_bounded_room() {
    let mut tracker = tracker();
    let envoy = tracker.envoy(process(2), String::new(), None);
    for number in 0..70_000_u32 {
        let client = format!(
            "10.{}.{}.{}:{}",
            number >> 16,
            number >> 8 & 255,
            number & 255,
            1000
        );
        let mut one = entry([&client, FIRST, FIRSTS_OWN, &client], 0);
        one.response.details = Bytes::from(format!("{number}{}", "x".repeat(1_000)));
        one.request.path = Bytes::from(format!("/{}", "y".repeat(2_000)));
        one.upstream.cluster = Bytes::from(format!("cluster-{number}"));
        one.response.flags = Flags::from_short_names("UF,URX").0;
        tracker.take(envoy, &one, u64::MAX);
        if number % 10_000 == 0 {
            tracker.table(BEGIN + SECOND);
        }
    }
    let table = tracker.finish(BEGIN + SECOND);
    let row = &table.logged.as_ref().unwrap().envoys[0];
    assert_eq!(row.requests, 70_000);
    assert!(row.details.len() <= 25 && row.upstreams.len() <= 256);
    assert_eq!((row.flags["UF"], row.flagged.len()), (70_000, 64));
    assert!(row.flagged.iter().all(|place| place.cluster.len() <= 256));
    assert!(row.details.keys().all(|details| details.len() <= 256));
    assert_eq!(row.of_other_upstreams, 70_000 - 256);
    let counted: u64 = table
        .operations
        .iter()
        .map(|operation| operation.tally.count)
        .sum();
    assert_eq!(counted + tracker.left_out, 140_000);
    for pid in 0..2_000 {
        tracker.envoy(process(pid), String::new(), None);
    }
    assert_eq!(tracker.envoy(process(1), String::new(), None), None);
    tracker.take(None, &through_first(0), u64::MAX);
    assert_eq!(tracker.finish(BEGIN).logged.unwrap().of_other_envoys, 1);
}

#[test]
fn ends_without_sockets_are_told_by_their_names() {
    let mut tracker = tracker();
    let envoy = tracker.envoy(process(2), String::new(), Some(1));
    let mut one = through_first(0);
    one.addresses.upstream_remote = Logged::Pipe(Bytes::from_static(b"/run/app.sock"));
    one.addresses.downstream_local = Logged::Internal(Bytes::from_static(b"inner"));
    one.addresses.upstream_local = Logged::Absent;
    tracker.take(envoy, &one, u64::MAX);
    assert!(tracker.unknown_ends(false).is_empty());
    let table = tracker.finish(BEGIN + SECOND);
    let ends: Vec<String> = table
        .edges
        .iter()
        .flat_map(|edge| edge.key.ends().map(|end| end.address.to_string()))
        .collect();
    for name in ["/run/app.sock", "inner", "not logged"] {
        assert!(ends.iter().any(|end| end == name), "{ends:?}");
    }
}

/// A request at a socket of the first Envoy, as its clock has it: this much before and behind what the entry says.
fn at_socket(seen_by: SeenBy, client: &str, times: [u64; 2]) -> RequestAtSocket {
    RequestAtSocket {
        pid: 2,
        tid: Some(22),
        seen_by,
        client: client.parse().unwrap(),
        begin_ns: BEGIN + times[0],
        end_ns: BEGIN + times[1],
        first_byte_ns: Some(BEGIN + times[1]),
        ready_ns: Some(BEGIN + times[0] - 2 * MS),
        answer_ready_ns: Some(BEGIN + times[1] - MS),
        request_id: None,
        is_multiplexed: false,
    }
}

#[test]
fn requests_that_sockets_see_as_well_say_how_long_they_waited_and_in_which_thread() {
    let mut tracker = LogTracker::new(TrackerOptions {
        epoch_ns: EPOCH,
        begin_ns: BEGIN,
        joins: true,
        ..TrackerOptions::default()
    });
    let envoy = tracker.envoy(process(2), "node".to_owned(), Some(1));
    tracker.take(envoy, &through_first(MS), u64::MAX);
    tracker.take(envoy, &through_first(40 * MS), u64::MAX);
    let table = tracker.table(BEGIN + SECOND);
    // They wait for what sockets have seen.
    assert!(table.sidecars.is_empty());
    let seen = vec![
        at_socket(SeenBy::Server, CLIENT, [MS - 1_000, 11 * MS + 1_000]),
        at_socket(
            SeenBy::Client,
            FIRSTS_OWN,
            [4 * MS + 1_000, 10 * MS - 1_000],
        ),
    ];
    // The clocks were compared anew: they have come a microsecond apart.
    tracker.at_sockets(seen, EPOCH + 1_000);
    let table = tracker.finish(BEGIN + 2 * SECOND);
    let joined = table.logged.as_ref().unwrap().envoys[0].joined.unwrap();
    assert_eq!((joined.ends, joined.joined, joined.requests), (4, 2, 1));
    assert_eq!((joined.confirmed, joined.contradicted), (0, 0));
    let sidecar = &table.sidecars[0];
    assert_eq!((sidecar.requests_in, sidecar.unmatched_in), (2, 0));
    let times = &sidecar.pairs[&MatchClass::AccessLog];
    assert_eq!(times.read_wait_ns.count, 1);
    assert_eq!(times.read_wait_ns.mean(), Some(2 * MS));
    assert_eq!(times.answer_wait_ns.count, 1);
    assert_eq!(times.answer_wait_ns.mean(), Some(MS));
    // Of one the sockets have the times, of the other the entry.
    let at_sockets = 10 * MS + 2_000;
    assert_eq!(
        times.whole_ns.mean(),
        Some(u64::midpoint(at_sockets + 2 * MS, 10 * MS))
    );
    let inside = at_sockets - (6 * MS - 2_000);
    assert_eq!(times.inside_ns.mean(), Some(u64::midpoint(inside, 4 * MS)));
    let threads = table.samples.iter().filter(|sample| sample.tid == Some(22));
    assert_eq!(threads.count(), 2, "{:#?}", table.samples);
}
