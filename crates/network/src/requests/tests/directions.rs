use std::collections::HashMap;

use super::{Play, SERVER_COOKIE, SocketFacts, facts, operation, resp};
use crate::requests::CaptureOrder;

/// A connection from before the task, without a listener on either port.
fn joined(number: u64, is_client: bool) -> SocketFacts {
    SocketFacts {
        is_client: None,
        joined: true,
        ..facts(number, is_client)
    }
}

#[test]
fn who_asks_is_the_client() {
    let mut play = Play::new();
    play.tracker.connection(1, joined(1, true));
    play.tracker.connection(SERVER_COOKIE + 1, joined(1, false));
    for _ in 0..12 {
        play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
    }
    let both = [1, SERVER_COOKIE + 1];
    play.report(&both);
    let table = play.report(&both);
    let get = operation(&table, "GET");
    assert_eq!(get.client.count, 12);
    assert_eq!(get.server.count, 12);
    assert_eq!((get.tally.count, get.server_only), (12, 0));
    assert_eq!(table.counters.unknown_direction, 0);
}

#[test]
fn an_end_that_is_told_before_or_later_is_not_tried() {
    let server = SERVER_COOKIE + 1;
    let told = || HashMap::from([(server, false)]);
    for is_told_before in [true, false] {
        let mut play = Play::new();
        if is_told_before {
            play.tracker.directions(told());
        }
        play.tracker.connection(server, joined(1, false));
        play.moved(server, false, &resp("GET k"));
        if !is_told_before {
            play.tracker.directions(told());
        }
        // It ends before the answer, which alone would have shown the client.
        play.close(server);
        play.report(&[server]);
        let table = play.report(&[server]);
        assert_eq!(operation(&table, "GET").tally.count, 1);
        assert_eq!(table.counters.unknown_direction, 0);
    }
}

#[test]
fn what_makes_no_sense_either_way_is_given_up() {
    let mut play = Play::new();
    play.tracker.connection(1, joined(1, true));
    let mut orders = Vec::new();
    for round in 0..400_u32 {
        play.now_ns += 1;
        play.moved(1, round % 2 == 0, &[0xee; 200]);
        orders.extend(play.tracker.orders());
    }
    assert_eq!(orders, [(1, CaptureOrder::STOP)]);
    let table = play.report(&[1]);
    let counters = &table.counters;
    assert_eq!(
        counters.undecoded_connections + counters.unknown_direction,
        1
    );
    assert_eq!(counters.connections_by_protocol["unknown"], 1);
    assert!(counters.undecoded_bytes > 0);
    assert!(table.operations.is_empty());
}

#[test]
fn a_connection_that_speaks_nothing_known_is_not_looked_at_any_more() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    for _ in 0..100 {
        play.now_ns += 1;
        play.moved(1, true, &[0xee; 200]);
    }
    assert_eq!(play.tracker.orders(), [(1, CaptureOrder::STOP)]);
    let table = play.report(&[1]);
    assert_eq!(table.counters.undecoded_connections, 1);
    assert_eq!(table.counters.undecoded_bytes, 20_000);
}

#[test]
fn plaintext_of_a_library_stands_for_the_wire() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.plaintext = super::Plaintext::Tls;
    play.ask(1, "GET k", "$1\r\nv\r\n");
    assert_eq!(play.tracker.orders(), [(1, CaptureOrder::STOP)]);
    play.plaintext = super::Plaintext::Wire;
    play.ask(1, "PING", "+PONG\r\n");
    play.report(&[1]);
    let table = play.report(&[1]);
    assert_eq!(table.operations.len(), 1);
    assert!(operation(&table, "GET").tls);
}
