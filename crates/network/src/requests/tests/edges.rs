use std::collections::HashMap;

use profiler_model::EdgeKey;
use profiler_model::Endpoint;

use super::{Play, edge, edge_of, facts, operation};

/// The edge before the server's process was found.
fn early() -> EdgeKey {
    let mut key = edge();
    key.server.pid = None;
    key.server.start_ticks = None;
    key.server.comm.clear();
    key
}

#[test]
fn what_was_counted_goes_with_an_edge_of_which_more_is_known() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.ask(1, "GET k", "$1\r\nv\r\n");
    let say = |play: &mut Play, key: EdgeKey| {
        play.tracker
            .edges(&HashMap::from([(1, edge_of(key))]), play.now_ns, false);
        play.tracker.table(play.now_ns)
    };
    say(&mut play, early());
    let before = say(&mut play, early());
    assert_eq!(before.edges[0].key, early());
    play.ask(1, "GET k", "$1\r\nv\r\n");
    say(&mut play, edge());
    let after = say(&mut play, edge());
    assert_eq!(after.edges.len(), 1);
    assert_eq!(after.edges[0].key, edge());
    assert_eq!(operation(&after, "GET").tally.count, 2);
    assert!(after.samples.iter().all(|sample| sample.edge == Some(0)));
    assert_eq!(after.samples.len(), 2);
}

#[test]
fn what_turns_out_to_be_several_edges_stays() {
    let mut play = Play::new();
    for number in [1, 2] {
        play.tracker.connection(number, facts(number, true));
        play.ask(number, "GET k", "$1\r\nv\r\n");
    }
    let other = EdgeKey {
        server: Endpoint {
            pid: Some(201),
            ..edge().server
        },
        ..edge()
    };
    let one = HashMap::from([(1, edge_of(early())), (2, edge_of(early()))]);
    play.tracker.edges(&one, play.now_ns, false);
    play.tracker.table(0);
    play.tracker.table(0);
    let two = HashMap::from([(1, edge_of(edge())), (2, edge_of(other))]);
    play.tracker.edges(&two, play.now_ns, false);
    let table = play.tracker.table(0);
    assert_eq!(table.edges.len(), 1);
    assert_eq!(table.edges[0].key, early());
    assert_eq!(operation(&table, "GET").tally.count, 2);
}

#[test]
fn an_edge_of_several_connections_has_no_client_port() {
    let mut play = Play::new();
    for number in [1, 2] {
        play.tracker.connection(number, facts(number, true));
        play.ask(number, "GET k", "$1\r\nv\r\n");
    }
    play.report(&[1, 2]);
    let table = play.report(&[1, 2]);
    assert_eq!(table.edges[0].connections, 2);
    assert_eq!(table.edges[0].client_port, None);
}

#[test]
fn a_connection_that_went_is_still_counted_with_its_edge() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.ask(1, "GET k", "$1\r\nv\r\n");
    play.close(1);
    play.report(&[1]);
    let table = play.report(&[]);
    assert_eq!(operation(&table, "GET").tally.count, 1);
    assert_eq!(table.edges[0].key, edge());
    for _ in 0..10 {
        play.report(&[]);
    }
    let late = play.report(&[]);
    assert_eq!(late.counters.connections_by_protocol["redis"], 1);
}
