use core::net::Ipv4Addr;

use profiler_protocols::{Exchange, Messages, Outcome, Status};

use super::*;
use crate::{
    edges::Traffic,
    requests::{
        counts::{MAX_STATUSES, OTHER},
        event::Drawn,
        observed_request::Moved,
    },
};
use profiler_model::{Address, Endpoint, Outcomes, SeenBy, Spread, Tally};

fn edge(server: u8) -> SharedEdge {
    let end = |last| Endpoint {
        pid: Some(last),
        start_ticks: Some(1),
        comm: "app".to_owned(),
        container: None,
        address: Address::Ip(Ipv4Addr::new(10, 0, 0, 1).into()),
    };
    SharedEdge::new(EdgeKey {
        client: end(1),
        server: end(server.into()),
        server_port: Some(80),
        original_destination: None,
    })
}

fn seen(seen_by: SeenBy, exchange: Exchange) -> ObservedRequest {
    ObservedRequest {
        drawn: Drawn::ALL,
        cookie: 1,
        seen_by,
        tls: false,
        client: ([10, 0, 0, 1], 4000).into(),
        begin: Moved {
            pid: 1,
            tid: None,
            ready_ns: None,
        },
        answer: None,
        exchange,
    }
}

/// `GET` of this route, answered after 1 us.
fn get(route: &str) -> Exchange {
    Exchange {
        method: Some("GET".to_owned()),
        route: Some(route.to_owned()),
        status: Some(Status::Http(200)),
        outcome: Outcome::Ok,
        first_byte_ns: Some(400),
        end_ns: 1000,
        ..Exchange::new(Protocol::Http1, 0)
    }
}

/// Without connections that are open.
fn rows(
    operations: &Operations,
    fewest: u32,
) -> (Vec<RequestEdge>, Vec<Operation>, HashMap<&EdgeKey, u32>) {
    let sampling = Sampling {
        fewest,
        tls_is_steady: true,
    };
    let Rows {
        edges,
        operations,
        places,
        ..
    } = operations.rows(sampling);
    (edges, operations, places)
}

fn add(operations: &mut Operations, edge: &SharedEdge, exchange: Exchange) {
    operations.add(edge, &seen(SeenBy::Client, exchange), Counted::Here);
}

#[test]
fn requests_without_an_answer_are_counted_and_have_no_latency() {
    let mut operations = Operations::default();
    let unanswered = Exchange {
        first_byte_ns: None,
        end_ns: 0,
        ..get("/")
    };
    for exchange in [get("/"), unanswered] {
        add(&mut operations, &edge(2), exchange);
    }
    let (_, rows, _) = rows(&operations, 1);
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!((row.tally.count, row.client.latency_ns.count), (2, 1));
    assert_eq!(row.client.latency_ns.least, Some(1000));
}

#[test]
fn routes_beyond_the_room_of_an_edge_are_one_operation() {
    let mut operations = Operations::default();
    for number in 0..MAX_OPERATIONS_OF_EDGE + 10 {
        add(&mut operations, &edge(2), get(&format!("/{number}")));
        add(&mut operations, &edge(2), get(&format!("/{number}")));
    }
    add(&mut operations, &edge(3), get("/"));
    let (edges, rows, _) = rows(&operations, 1);
    assert_eq!(edges.len(), 2);
    let of_first: Vec<_> = rows.iter().filter(|row| row.edge == Some(0)).collect();
    assert_eq!(of_first.len(), MAX_OPERATIONS_OF_EDGE + 1);
    let other = of_first.iter().find(|row| row.is_other).unwrap();
    assert_eq!(
        (other.tally.count, &other.method, &other.route),
        (20, &None, &None)
    );
    assert_eq!(operations.folded, 20);
    let all: u64 = rows.iter().map(|row| row.tally.count).sum();
    assert_eq!(all, 2 * (MAX_OPERATIONS_OF_EDGE as u64 + 10) + 1);
}

#[test]
fn edges_beyond_the_room_are_one_without_a_name() {
    let mut operations = Operations::default();
    for port in 0..5000_u16 {
        let key = SharedEdge::new(EdgeKey {
            server_port: Some(port),
            ..EdgeKey::clone(&edge(2))
        });
        add(&mut operations, &key, get("/"));
    }
    let (edges, rows, _) = rows(&operations, 1);
    assert_eq!(edges.len(), MAX_EDGES);
    let rest: Vec<_> = rows.iter().filter(|row| row.edge.is_none()).collect();
    assert_eq!(rest.len(), 1);
    assert!(rest[0].is_other);
    let left = 5000 - MAX_EDGES as u64;
    assert_eq!(
        (rest[0].tally.count, operations.of_other_edges),
        (left, left)
    );
}

#[test]
fn broken_and_unknown_requests_have_no_latency() {
    let mut operations = Operations::default();
    for outcome in [Outcome::Broken, Outcome::Unknown, Outcome::ServerError] {
        let exchange = Exchange {
            outcome,
            ..get("/")
        };
        add(&mut operations, &edge(2), exchange);
    }
    let (_, rows, _) = rows(&operations, 1);
    let row = &rows[0];
    assert_eq!(row.tally.count, 3);
    assert_eq!(row.tally.outcomes.errors(), 2);
    assert_eq!(row.tally.outcomes.unknown, 1);
    assert_eq!(row.client.count, 3);
    assert_eq!(row.client.latency_ns.count, 1);
    assert_eq!(row.client.first_byte_ns.sum, 400);
}

#[test]
fn sizes_that_are_not_known_are_not_counted() {
    let mut operations = Operations::default();
    add(
        &mut operations,
        &edge(2),
        Exchange {
            response_bytes: 5,
            ..get("/")
        },
    );
    let unknown = Exchange {
        response_size_known: false,
        request_bytes: 3,
        response_bytes: 9,
        ..get("/")
    };
    add(&mut operations, &edge(2), unknown);
    let (_, rows, _) = rows(&operations, 1);
    assert_eq!(rows[0].tally.response_bytes.count, 1);
    assert_eq!(rows[0].tally.response_bytes.sum, 5);
    assert_eq!(rows[0].tally.request_bytes.count, 2);
    assert_eq!(rows[0].tally.request_bytes.sum, 3);
}

#[test]
fn messages_of_streams_add_up() {
    let mut operations = Operations::default();
    let messages = Messages {
        to_server: 1,
        to_client: 7,
    };
    let stream = Exchange {
        messages: Some(messages),
        ..get("/")
    };
    add(&mut operations, &edge(2), stream.clone());
    add(&mut operations, &edge(2), stream);
    let (_, rows, _) = rows(&operations, 1);
    let tally = &rows[0].tally;
    assert_eq!(
        (
            tally.streams,
            tally.messages_to_server,
            tally.messages_to_client
        ),
        (2, 2, 14)
    );
}

#[test]
fn statuses_are_distinct_up_to_a_bound() {
    let mut operations = Operations::default();
    for number in 0..30_u32 {
        let exchange = Exchange {
            status: Some(Status::Grpc(number)),
            ..get("/")
        };
        add(&mut operations, &edge(2), exchange);
    }
    let (_, rows, _) = rows(&operations, 1);
    let statuses = &rows[0].tally.statuses;
    assert_eq!(statuses.len(), MAX_STATUSES + 1);
    assert_eq!(statuses["grpc 0"], 1);
    assert_eq!(statuses[OTHER], 6);
}

#[test]
fn an_edge_that_is_renamed_keeps_everything() {
    let mut operations = Operations::default();
    add(&mut operations, &edge(2), get("/a"));
    add(&mut operations, &edge(2), get("/b"));
    operations.connected(&edge(2), 4000);
    add(&mut operations, &edge(3), get("/a"));
    operations.connected(&edge(3), 4001);
    operations.greeted(
        &edge(2),
        TlsSeen {
            connections: 1,
            ..TlsSeen::default()
        },
    );
    operations.greeted(
        &edge(3),
        TlsSeen {
            connections: 2,
            ..TlsSeen::default()
        },
    );
    operations.rename(&edge(2), &edge(3));
    let (edges, rows, _) = rows(&operations, 1);
    assert_eq!(edges.len(), 1);
    assert_eq!(edges[0].key, *edge(3));
    assert_eq!((edges[0].connections, edges[0].client_port), (2, None));
    assert_eq!(edges[0].tls.len(), 1);
    assert_eq!(edges[0].tls[0].connections, 3);
    let counts: Vec<_> = rows
        .iter()
        .map(|row| (row.route.as_deref(), row.tally.count))
        .collect();
    assert_eq!(counts, [(Some("/a"), 2), (Some("/b"), 1)]);
    assert_eq!(rows[0].client.latency_ns.count, 2);
}

/// Requests of connections with these numbers of them, where one in four was captured.
fn sampled(requests: &[u64]) -> Tally {
    let requests: Vec<Vec<(u32, u64)>> = requests.iter().map(|number| vec![(4, *number)]).collect();
    sampled_in_turn(&requests)
}

/// Requests of connections: for each, of how many one was captured after each other and the requests of that time.
fn sampled_in_turn(connections: &[Vec<(u32, u64)>]) -> Tally {
    let drawn = |(one_of, requests)| (Drawn::new(u32::trailing_zeros(one_of), 0), requests);
    let parts = |parts: &Vec<(u32, u64)>| parts.iter().copied().map(drawn).collect();
    let connections: Vec<Vec<(Drawn, u64)>> = connections.iter().map(parts).collect();
    tally_of(&connections)
}

/// Requests of connections: for each, how they were drawn and their number.
fn tally_of(connections: &[Vec<(Drawn, u64)>]) -> Tally {
    let one_of = connections
        .iter()
        .flatten()
        .map(|(drawn, _)| drawn.one_of());
    let fewest = one_of.max().unwrap_or(1);
    let mut operations = Operations::default();
    for (cookie, parts) in (1..).zip(connections) {
        for (drawn, requests) in parts {
            let one = ObservedRequest {
                cookie,
                client: ([10, 0, 0, 1], u16::try_from(cookie).unwrap()).into(),
                drawn: *drawn,
                ..seen(SeenBy::Client, get("/"))
            };
            for _ in 0..*requests {
                operations.add(&edge(2), &one, Counted::Here);
            }
        }
    }
    let (_, rows, _) = rows(&operations, fewest);
    rows[0].tally.clone()
}

#[test]
fn requests_of_sampled_connections_stand_for_the_others() {
    let mut requests = [1; 20];
    requests[..2].copy_from_slice(&[10, 30]);
    let tally = sampled(&requests);
    assert_eq!((tally.count, tally.seen), (232, 58));
    assert_eq!(tally.outcomes.ok, 232);
    assert_eq!(tally.statuses["200"], 232);
    // 4 * 3 * (10^2 + 30^2 + 18), within what chance does to groups
    let variance = tally.variance.unwrap();
    assert!((12_000..16_000).contains(&variance), "{variance}");
    let (low, high) = tally.interval();
    assert!(low == 58 && (440..490).contains(&high.unwrap()), "{high:?}");
    // Nine connections say too little of how different the others are.
    assert_eq!(sampled(&[1; 9]).interval(), (9, None));
    let all = Tally {
        count: 7,
        seen: 7,
        ..Tally::default()
    };
    assert_eq!(all.interval(), (7, Some(7)));
}

/// Where the bytes of all connections are known they tell how much was seen, whatever the chance was.
#[test]
fn bytes_of_all_connections_tell_how_much_was_seen() {
    let traffic = |moved, captured| EdgeOfConnection {
        edge: EdgeKey::clone(&edge(2)),
        traffic: Some(Traffic { moved, captured }),
        http: None,
        has_ended: false,
    };
    let tally_of = |edge_of_connection: &[EdgeOfConnection]| {
        let mut operations = Operations::default();
        for (one_of, exchange) in [(1, get("/")), (1, get("/")), (4, get("/"))] {
            let one = ObservedRequest {
                drawn: Drawn::new(u32::trailing_zeros(one_of), 0),
                ..seen(SeenBy::Server, exchange)
            };
            operations.add(&edge(2), &one, Counted::Here);
        }
        operations.cover(edge_of_connection.iter(), 2000);
        let (_, rows, _) = rows(&operations, 4);
        (rows[0].tally.clone(), rows[0].server_only)
    };
    let (all, server_only) = tally_of(&[traffic(900, 900)]);
    assert_eq!((all.count, all.seen, server_only), (3, 3, 3));
    assert_eq!(all.interval(), (3, Some(3)));
    let (part, server_only) = tally_of(&[traffic(900, 900), traffic(1800, 900)]);
    assert_eq!(
        (part.count, part.outcomes.ok, part.statuses["200"]),
        (5, 5, 5)
    );
    assert_eq!(server_only, 5);
    assert_eq!(part.interval(), (3, None));
    let (chance, _) = tally_of(&[]);
    assert_eq!((chance.count, chance.outcomes.ok), (6, 6));
}

/// Many connections with large requests, then with small ones of which fewer are captured: the bytes of the task would
/// hide the small ones, so its connections have to tell.
#[test]
fn enough_connections_tell_more_than_bytes() {
    let mut operations = Operations::default();
    let mut take = |first: u64, connections: u64, one_of| {
        for cookie in first..first + connections {
            let one = ObservedRequest {
                cookie,
                client: ([10, 0, 0, 1], u16::try_from(cookie).unwrap()).into(),
                drawn: Drawn::new(u32::trailing_zeros(one_of), 0),
                ..seen(SeenBy::Client, get("/"))
            };
            operations.add(&edge(2), &one, Counted::Here);
        }
    };
    take(1, 2000, 1);
    take(10_000, 900, 64);
    let edge_of = EdgeOfConnection {
        edge: EdgeKey::clone(&edge(2)),
        traffic: Some(Traffic {
            moved: 2000 * 20_000 + 57_600 * 500,
            captured: 2000 * 20_000 + 900 * 500,
        }),
        http: None,
        has_ended: false,
    };
    operations.cover([edge_of].iter(), 2000);
    let (_, rows, _) = rows(&operations, 64);
    assert_eq!(rows[0].tally.count, 59_600);
    let (low, high) = rows[0].tally.interval();
    assert!(low < 57_000 && high > Some(62_000), "{low} {high:?}");
}

/// Draws connections many times, as sampling does, and looks how often the truth lies in the interval: of how
/// many connections one is captured changes as is said, with so many requests of each connection at a time.
fn check_intervals(one_of: &[u32]) {
    const ROUNDS: u64 = 300;
    let mut state = 7_u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        u32::try_from(state >> 33).unwrap()
    };
    let mut held = 0;
    for _ in 0..ROUNDS {
        let mut truth = 0;
        let mut taken = Vec::new();
        for number in 0..300 {
            let requests = 1 + number % 3;
            truth += requests * one_of.len() as u64;
            let hash = draw();
            let captured = one_of.iter().filter(|one_of| hash & (**one_of - 1) == 0);
            let parts: Vec<(u32, u64)> = captured.map(|one_of| (*one_of, requests)).collect();
            if !parts.is_empty() {
                taken.push(parts);
            }
        }
        let (low, high) = sampled_in_turn(&taken).interval();
        held += u64::from((low..=high.unwrap()).contains(&truth));
    }
    let percent = held * 100 / ROUNDS;
    assert!((90..=99).contains(&percent), "{one_of:?}: {percent} %");
}

#[test]
fn the_truth_is_in_the_interval_as_often_as_is_said() {
    check_intervals(&[4]);
    // The share of a CPU is found in steps.
    check_intervals(&[2, 4, 8]);
    check_intervals(&[1, 8, 4, 8]);
}

/// Downloads that clients broke off have gone into the server's socket whole.
#[test]
fn broken_requests_do_not_have_the_times_of_the_server() {
    let mut operations = Operations::default();
    let broken = Exchange {
        outcome: Outcome::Broken,
        first_byte_ns: None,
        ..get("/")
    };
    let at_server = seen(SeenBy::Server, get("/"));
    for _ in 0..5 {
        operations.add(
            &edge(2),
            &seen(SeenBy::Client, broken.clone()),
            Counted::Here,
        );
        operations.add(&edge(2), &at_server, Counted::AtOtherEnd);
    }
    let end_of = |operations: &Operations| rows(operations, 1).1[0].timed_by().0;
    assert_eq!(end_of(&operations), SeenBy::Client);
    // Those that the server alone timed and that were not broken.
    operations.add(&edge(2), &at_server, Counted::Here);
    assert_eq!(end_of(&operations), SeenBy::Server);
}

/// Connections with one request each, whose ports come again: these are captured together.
#[test]
fn a_port_that_is_used_again_is_one_draw() {
    let tally_of = |ports: u16| {
        let mut operations = Operations::default();
        for round in 0..5 {
            for port in 1..=ports {
                let one = ObservedRequest {
                    cookie: round * 100_000 + u64::from(port),
                    client: ([10, 0, 0, 1], port).into(),
                    drawn: Drawn::new(2, 0),
                    ..seen(SeenBy::Client, get("/"))
                };
                operations.add(&edge(2), &one, Counted::Here);
            }
        }
        rows(&operations, 4).1[0].tally.clone()
    };
    for ports in [4000, 40_000] {
        let tally = tally_of(ports);
        let seen = 5 * u64::from(ports);
        assert_eq!((tally.count, tally.seen), (4 * seen, seen));
        // 4 * 3 * 5^2 each, within what chance does to groups
        let (variance, expected) = (tally.variance.unwrap(), 300 * u64::from(ports));
        let off = variance.abs_diff(expected) * 100 / expected;
        assert!(off < 35, "{variance}, {expected} expected");
    }
}

#[test]
fn few_turns_have_a_wide_interval_and_fewer_none() {
    let turns = |rounds| {
        let parts = |round: u64| vec![(Drawn::new(3, 1000 + round), 10)];
        tally_of(&(0..rounds).map(parts).collect::<Vec<_>>())
    };
    assert_eq!(turns(3).interval(), (30, None));
    let tally = turns(6);
    let (low, high) = tally.interval();
    assert_eq!((tally.count, low), (480, 60));
    assert!((900..1400).contains(&high.unwrap()), "{high:?}");
}

/// Where few or none were captured when the fewest were, as many are in the interval as may have been missed.
#[test]
fn what_was_not_seen_when_the_fewest_were_captured_is_in_the_interval() {
    let upper = |at_fewest: usize| {
        let mut parts = vec![vec![(2, 10)]; 40];
        for parts in &mut parts[..at_fewest] {
            parts.push((64, 10));
        }
        let mut operations = vec![vec![(64, 1)]];
        operations.append(&mut parts);
        let tally = sampled_in_turn(&operations);
        (tally.count, tally.interval().1.unwrap())
    };
    // Of 64 times as many, up to 3.7 times 10 may have been missed beside those that were not.
    let (count, high) = upper(0);
    assert_eq!(count, 864);
    assert!((864 + 1800..864 + 2800).contains(&high), "{high}");
    let (count, high) = upper(3);
    assert_eq!(count, 864 + 1920);
    assert!((2784 + 2400..2784 + 4000).contains(&high), "{high}");
    // Enough to tell by themselves.
    let (count, high) = upper(30);
    assert!(high < count + 8000, "{count} {high}");
}

/// Light connections fill the draws, and a burst of one was missed: the bytes of all connections tell that there was more.
#[test]
fn a_burst_that_was_not_drawn_leaves_no_upper_end() {
    let interval_of = |moved| {
        let mut operations = Operations::default();
        for round in 0..40 {
            let one = ObservedRequest {
                drawn: Drawn::new(4, 1000 + round),
                ..seen(SeenBy::Server, get("/"))
            };
            operations.add(&edge(2), &one, Counted::Here);
        }
        let edge_of = EdgeOfConnection {
            edge: EdgeKey::clone(&edge(2)),
            traffic: Some(Traffic {
                moved,
                captured: 40 * 500,
            }),
            http: None,
            has_ended: false,
        };
        operations.cover([edge_of].iter(), 2000);
        rows(&operations, 16).1[0].tally.interval()
    };
    assert!(interval_of(40 * 16 * 500).1.is_some_and(|high| high < 1000));
    assert_eq!(interval_of(3 * 40 * 16 * 500), (40, None));
}

/// Few connections that take turns, with much more to do in some seconds than in others: each round of each is a draw.
#[test]
fn turns_of_few_connections_have_an_interval_that_holds_the_truth() {
    const TASKS: u64 = 200;
    let mut held = 0;
    for task in 0..TASKS {
        let mut truth = 0;
        let mut taken = Vec::new();
        for connection in 0..4_u64 {
            let mut parts = Vec::new();
            for round in 1..=40_u64 {
                let turn = (task * 7919 + connection * 104_729 + round * 15_485_863) % 1009 % 8;
                // Large answers at first, then ten times as many small ones.
                let requests = |turn| {
                    if round * 8 + turn < 160 {
                        2 + turn % 3
                    } else {
                        30
                    }
                };
                truth += (0..8).map(requests).sum::<u64>();
                parts.push((Drawn::new(3, task * 1000 + round), requests(turn)));
            }
            taken.push(parts);
        }
        let tally = tally_of(&taken);
        let (low, high) = tally.interval();
        held += u64::from((low..=high.unwrap()).contains(&truth));
        assert!(
            high.unwrap() < 2 * truth && low > truth / 2,
            "{low} {high:?}"
        );
        assert!(tally.count.abs_diff(truth) * 10 < truth, "{}", tally.count);
    }
    assert!(held * 100 >= 95 * TASKS, "{held} of {TASKS}");
}

#[test]
fn one_that_the_client_counts_leaves_only_its_times() {
    let mut operations = Operations::default();
    operations.add(
        &edge(2),
        &seen(SeenBy::Server, get("/")),
        Counted::AtOtherEnd,
    );
    let (_, rows, _) = rows(&operations, 1);
    assert_eq!((rows[0].tally.count, rows[0].server.count), (0, 1));
}

/// A connection of edge 2 on which the kernel counted so many requests, as its server saw them.
fn counted(requests: u64, has_ended: bool) -> EdgeOfConnection {
    let outcomes = Outcomes {
        ok: requests,
        ..Outcomes::default()
    };
    let mut latency_ns = Spread::default();
    latency_ns.add_times(1000, requests);
    EdgeOfConnection {
        edge: EdgeKey::clone(&edge(2)),
        traffic: None,
        http: Some(Box::new(HttpEnd {
            seen_by: Some(SeenBy::Server),
            protocol: Some(Protocol::Http1),
            outcomes,
            latency_ns,
            is_sure: true,
        })),
        has_ended,
    }
}

fn kernel_counts(operations: &Operations) -> Vec<EdgeCount> {
    let sampling = Sampling {
        fewest: 1,
        tls_is_steady: true,
    };
    operations.rows(sampling).counted
}

#[test]
fn what_the_kernel_counted_is_a_sum_of_ended_and_open_connections() {
    let mut operations = Operations::default();
    operations.cover([counted(5, true), counted(2, false)].iter(), 1000);
    operations.cover([counted(3, false)].iter(), 2000);
    let counts = kernel_counts(&operations);
    let [one] = counts.as_slice() else {
        panic!("{counts:?}");
    };
    assert_eq!(
        (one.edge, one.seen_by, one.is_exact),
        (0, SeenBy::Server, true)
    );
    assert_eq!((one.outcomes.ok, one.latency_ns.count), (8, 8));
    // Both ends count the same requests: they are there once.
    let mut client = counted(8, true);
    client.http.as_mut().unwrap().seen_by = Some(SeenBy::Client);
    operations.cover([client].iter(), 3000);
    let [one] = kernel_counts(&operations).try_into().unwrap();
    assert_eq!((one.seen_by, one.outcomes.ok), (SeenBy::Client, 8));
    // The edge turns out to be another, and the decoder knows more.
    operations.rename(&edge(2), &edge(3));
    operations.contradict(&edge(3), Protocol::Http2);
    assert!(kernel_counts(&operations)[0].is_exact);
    operations.contradict(&edge(3), Protocol::Http1);
    let [one] = kernel_counts(&operations).try_into().unwrap();
    assert!(one.outcomes.ok == 8 && !one.is_exact, "{one:?}");
}

#[test]
fn protocols_of_an_edge_are_counted_apart() {
    let mut operations = Operations::default();
    let mut http2 = counted(3, true);
    let end = http2.http.as_mut().unwrap();
    (end.protocol, end.is_sure) = (Some(Protocol::Http2), false);
    operations.cover([counted(5, true), http2].iter(), 1000);
    let [one, two] = kernel_counts(&operations).try_into().unwrap();
    assert_eq!((one.protocol, one.outcomes.ok), (Protocol::Http1, 5));
    assert_eq!((two.protocol, two.outcomes.ok), (Protocol::Http2, 3));
    assert_eq!((one.is_exact, two.is_exact), (true, false));
    // Nothing is sure where a connection could not be read at all.
    let mut unread = counted(0, false);
    let end = unread.http.as_mut().unwrap();
    (end.seen_by, end.protocol, end.is_sure) = (None, None, false);
    operations.cover([unread].iter(), 2000);
    let [one, two] = kernel_counts(&operations).try_into().unwrap();
    assert_eq!((one.outcomes.ok, two.outcomes.ok), (5, 3));
    assert!(!one.is_exact && !two.is_exact);
}

#[test]
fn a_connection_that_cannot_be_read_takes_certainty_from_its_edge_and_is_none_by_itself() {
    let mut operations = Operations::default();
    let mut unread = counted(0, true);
    unread.http.as_mut().unwrap().is_sure = false;
    operations.cover([unread].iter(), 1000);
    assert_eq!(kernel_counts(&operations), []);
    operations.cover([counted(1, true)].iter(), 2000);
    assert!(!kernel_counts(&operations)[0].is_exact);
}

/// Draws one connection of eight, many times. Each has requests to two routes, some more to the one and some more to the
/// other; the kernel counted them all.
#[test]
fn estimates_add_up_to_what_the_kernel_counted_and_their_intervals_hold() {
    const ROUNDS: u64 = 200;
    let mut state = 11_u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    };
    let (mut held, mut halves) = (0, 0);
    for _ in 0..ROUNDS {
        let mut operations = Operations::default();
        let (mut all, mut truth) = (0, 0);
        for cookie in 1..=800_u64 {
            let [some, others] = if cookie % 4 == 0 { [9, 1] } else { [2, 8] };
            all += some + others;
            truth += some;
            if !draw().is_multiple_of(8) {
                continue;
            }
            let requests = (0..some)
                .map(|_| "/some")
                .chain((0..others).map(|_| "/others"));
            for route in requests {
                let one = ObservedRequest {
                    cookie,
                    client: ([10, 0, 0, 1], u16::try_from(cookie).unwrap()).into(),
                    drawn: Drawn::new(3, 0),
                    ..seen(SeenBy::Server, get(route))
                };
                operations.add(&edge(2), &one, Counted::Here);
            }
        }
        operations.cover([counted(all, true)].iter(), 2000);
        let (_, rows, _) = rows(&operations, 8);
        let [others, some] = rows.as_slice() else {
            panic!("{rows:?}");
        };
        let sum = others.tally.count + some.tally.count;
        assert!(sum.abs_diff(all) <= 1, "{sum} of {all}");
        assert_eq!(some.server_only, some.tally.count);
        let (low, high) = some.tally.interval();
        let high = high.unwrap();
        held += u64::from(low <= truth && truth <= high);
        halves += (high - low) / 2;
    }
    assert!(held * 100 >= ROUNDS * 94, "{held} of {ROUNDS}");
    // By the draws alone it is 1.96 * sqrt(7 * 800 * (9^2 / 4 + 2^2 * 3 / 4)) = 707.
    let half = halves / ROUNDS;
    assert!(half < 600, "{half}");
}

/// All requests of the edge came while everything was captured, in a task that sampled at another time.
#[test]
fn what_was_captured_whole_has_no_interval_out_of_nothing() {
    let mut operations = Operations::default();
    for _ in 0..3 {
        add(&mut operations, &edge(2), get("/"));
    }
    operations.cover([counted(3, true)].iter(), 2000);
    let (_, sampled, _) = rows(&operations, 8);
    assert_eq!(sampled[0].tally.interval(), (3, None));
    let mut whole = counted(3, true);
    whole.traffic = Some(Traffic {
        moved: 900,
        captured: 900,
    });
    operations.cover([whole].iter(), 3000);
    let (_, known, _) = rows(&operations, 8);
    assert_eq!(known[0].tally.interval(), (3, Some(3)));
}
