use profiler_model::SeenBy;
use profiler_protocols::{Exchange, Protocol};

use super::*;
use crate::requests::{Drawn, observed_request::Moved, played};

const SECOND: u64 = FIRST_WIDTH_NS;
const BEGIN: u64 = 1_000 * SECOND;

fn edge(server_port: u16) -> SharedEdge {
    SharedEdge::new(EdgeKey {
        server_port: Some(server_port),
        ..played::edge()
    })
}

/// One that ends after this time, of `one_of` connections.
fn ended(after_ns: u64, outcome: Outcome, exponent: u32) -> ObservedRequest {
    let end_ns = BEGIN + after_ns;
    ObservedRequest {
        drawn: Drawn::new(exponent, 0),
        cookie: 1,
        seen_by: SeenBy::Client,
        tls: false,
        client: ([127, 0, 0, 1], 4000).into(),
        begin: Moved {
            pid: 1,
            tid: None,
            ready_ns: None,
        },
        answer: None,
        exchange: Exchange {
            outcome,
            first_byte_ns: Some(end_ns - 1),
            end_ns,
            ..Exchange::new(Protocol::Http1, end_ns - 10)
        },
    }
}

fn counts(spans: &[RequestSpan]) -> Vec<u64> {
    spans.iter().map(|span| span.count).collect()
}

fn of_edge(timeline: &Timeline, edge: &EdgeKey) -> Option<Vec<u64>> {
    let rows = timeline.rows(&HashMap::from([(edge, 0)]));
    rows.edges.first().map(|(_, spans)| counts(spans))
}

#[test]
fn requests_are_in_the_span_of_their_end() {
    let mut timeline = Timeline::new(BEGIN);
    for (seconds, outcome) in [
        (0, Outcome::Ok),
        (2, Outcome::ServerError),
        (2, Outcome::Broken),
        (2, Outcome::Unknown),
    ] {
        timeline.add(&edge(80), &ended(seconds * SECOND, outcome, 0));
    }
    let rows = timeline.rows(&HashMap::new());
    assert_eq!(rows.width_ns, SECOND);
    assert_eq!(counts(&rows.all), [1, 0, 3]);
    assert_eq!(rows.all[2].errors, 2);
    // Broken and unknown ones were not seen whole.
    assert_eq!(rows.all[2].latency_ns.count, 1);
}

#[test]
fn a_request_stands_for_as_many_as_its_connection() {
    let mut timeline = Timeline::new(BEGIN);
    timeline.add(&edge(80), &ended(0, Outcome::ClientError, 2));
    let rows = timeline.rows(&HashMap::new());
    assert_eq!((rows.all[0].count, rows.all[0].errors), (4, 4));
    assert_eq!(rows.all[0].latency_ns.count, 1);
}

#[test]
fn spans_get_wider_and_nothing_is_lost() {
    let mut timeline = Timeline::new(BEGIN);
    for second in 0..1000 {
        timeline.add(&edge(80), &ended(second * SECOND, Outcome::Ok, 0));
    }
    let rows = timeline.rows(&HashMap::new());
    assert_eq!(rows.width_ns, 16 * SECOND);
    assert_eq!(rows.all.len(), 63);
    assert_eq!(counts(&rows.all)[..62], [16; 62]);
    assert_eq!(of_edge(&timeline, &edge(80)), Some(counts(&rows.all)));
    // However far a time is.
    timeline.add(&edge(80), &ended(u64::MAX - BEGIN, Outcome::Ok, 0));
    let all = timeline.rows(&HashMap::new()).all;
    assert_eq!(counts(&all).iter().sum::<u64>(), 1001);
    assert!(all.len() <= SPANS);
}

#[test]
fn edges_beyond_the_room_are_in_the_sum_alone() {
    let mut timeline = Timeline::new(BEGIN);
    let edges: Vec<SharedEdge> = (0..=u16::try_from(MAX_EDGES).unwrap()).map(edge).collect();
    for edge in &edges {
        timeline.add(edge, &ended(0, Outcome::Ok, 0));
    }
    let last = edges.last().unwrap();
    assert_eq!(of_edge(&timeline, last), None);
    assert_eq!(
        counts(&timeline.rows(&HashMap::new()).all),
        [edges.len() as u64]
    );
    // What turns out to be the same edge has requests that were not kept: it has no spans any more, rather than too few.
    timeline.rename(last, &edges[0]);
    assert_eq!(of_edge(&timeline, &edges[0]), None);
    // The same where the other had no room.
    timeline.rename(&edges[1], last);
    assert_eq!(of_edge(&timeline, last), None);
    // Nor does the room that it left make another one begin in the middle.
    timeline.add(last, &ended(0, Outcome::Ok, 0));
    assert_eq!(of_edge(&timeline, last), None);
}

#[test]
fn an_edge_that_is_renamed_keeps_its_time() {
    let mut timeline = Timeline::new(BEGIN);
    timeline.add(&edge(80), &ended(3 * SECOND, Outcome::Ok, 0));
    timeline.add(&edge(81), &ended(SECOND, Outcome::Ok, 0));
    timeline.rename(&edge(80), &edge(81));
    assert_eq!(of_edge(&timeline, &edge(81)), Some(vec![0, 1, 0, 1]));
    assert_eq!(of_edge(&timeline, &edge(80)), None);
}
