use super::{PayloadEvent, Play, SERVER_COOKIE, facts, operation};
use crate::requests::{CaptureBytes, CaptureOrder, Drawn, SourceCounts};

#[test]
fn connections_beyond_the_room_are_refused_and_counted() {
    let mut play = Play::new();
    for number in 0..8200 {
        play.tracker.connection(number, facts(number, true));
    }
    assert_eq!(play.tracker.orders().len(), 8);
    play.moved(8199, true, &[1; 70]);
    let table = play.report(&[]);
    assert_eq!(table.counters.refused_connections, 8);
    assert_eq!(table.counters.refused_bytes, 70);
}

#[test]
fn counts_have_no_interval_when_connections_were_refused() {
    let mut play = Play::new();
    play.drawn = Drawn::new(1, 0);
    for number in 0..8193 {
        play.tracker.connection(number, facts(number, true));
    }
    let cookies: Vec<u64> = (0..20).collect();
    for cookie in &cookies {
        play.ask(*cookie, "GET k", "$1\r\nv\r\n");
    }
    play.report(&cookies);
    let table = play.report(&cookies);
    let get = operation(&table, "GET");
    assert_eq!((get.tally.count, get.tally.interval().1), (40, None));
}

#[test]
fn connections_that_are_over_take_no_room_from_those_that_begin() {
    // Never more than one open, more of them than may be open, and none forgotten by a report.
    for connections in [10_000, 50_000] {
        let mut play = Play::new();
        for number in 0..connections {
            play.tracker.connection(number, facts(number, true));
            play.ask(number, "GET k", "$1\r\nv\r\n");
            play.close(number);
        }
        assert_eq!(play.tracker.orders(), [] as [(u64, CaptureOrder); 0]);
        let table = play.tracker.finish(play.now_ns);
        assert_eq!(table.counters.refused_connections, 0);
        let get = operation(&table, "GET");
        assert_eq!(get.tally.count, connections);
        assert_eq!(get.client.count, connections);
    }
}

#[test]
fn a_request_is_counted_once_where_one_end_is_forgotten_before_the_other() {
    let mut play = Play::new();
    let connections = 20_000;
    for number in 0..connections {
        let server = SERVER_COOKIE + number;
        play.tracker.connection(number, facts(number, true));
        play.tracker.connection(server, facts(number, false));
        play.ask_seen_by_both(number, "GET k", "$1\r\nv\r\n");
        play.close(number);
        play.close(server);
    }
    let table = play.tracker.finish(play.now_ns);
    let counts = table.operations.iter().map(|row| row.tally.count);
    assert_eq!(counts.sum::<u64>(), connections);
}

#[test]
fn there_is_room_again_when_connections_have_ended() {
    let mut play = Play::new();
    for number in 0..8192 {
        play.tracker.connection(number, facts(number, true));
        play.close(number);
    }
    for _ in 0..8 {
        play.report(&[]);
    }
    play.tracker.connection(9000, facts(9000, true));
    assert_eq!(play.tracker.orders(), [] as [(u64, CaptureOrder); 0]);
    play.ask(9000, "PING", "+PONG\r\n");
    let table = play.tracker.finish(play.now_ns);
    assert_eq!(operation(&table, "PING").tally.count, 1);
}

#[test]
fn missing_payload_is_counted_and_answers_after_it_are_right() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.ask(1, "GET k", "$1\r\nv\r\n");
    // Something went by that did not reach the tracker.
    play.offsets.insert((1, true), 5000);
    play.offsets.insert((1, false), 7000);
    play.tracker.take(PayloadEvent::Lost {
        cookie: 1,
        pieces: 3,
    });
    play.ask(1, "PING", "+PONG\r\n");
    play.ask(1, "PING", "+PONG\r\n");
    play.report(&[1]);
    let table = play.report(&[1]);
    assert_eq!(table.counters.lost_pieces, 3);
    assert_eq!(table.counters.gap_connections, 1);
    assert!(table.counters.gaps >= 2);
    for operation in &table.operations {
        assert_eq!(operation.tally.outcomes.errors(), 0, "{operation:?}");
        let slowest = operation.client.latency_ns.greatest.unwrap_or(0);
        assert!(slowest <= 3_000_000, "{operation:?}");
    }
}

#[test]
fn how_many_requests_there_were_is_not_known_within_bounds_when_some_payload_was_lost() {
    let mut play = Play::new();
    play.drawn = Drawn::new(1, 0);
    for number in 0..20 {
        play.tracker.connection(number, facts(number, true));
        play.ask(number, "GET k", "$1\r\nv\r\n");
    }
    let cookies: Vec<u64> = (0..20).collect();
    play.report(&cookies);
    let table = play.report(&cookies);
    assert!(operation(&table, "GET").tally.interval().1.is_some());
    play.tracker.source(SourceCounts {
        lost_pieces: 1,
        ..SourceCounts::default()
    });
    let table = play.report(&cookies);
    let get = operation(&table, "GET");
    assert_eq!((get.tally.count, get.tally.interval().1), (40, None));
}

#[test]
fn requests_behind_the_captured_bytes_are_counted_and_a_gap_is_told() {
    const ASKED: &str = "GET /a HTTP/1.1\r\nHost: b\r\n\r\n";
    const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.moved_in_part(1, true, ASKED.repeat(5).as_bytes(), ASKED.len());
    play.moved(1, false, ANSWER.repeat(5).as_bytes());
    play.close(1);
    play.report(&[1]);
    let table = play.report(&[1]);
    assert_eq!(table.counters.gaps, 1);
    assert_eq!(table.counters.gap_connections, 1);
    assert_eq!(table.counters.undecoded_bytes, 4 * ASKED.len() as u64);
    assert_eq!(operation(&table, "GET").tally.outcomes.unknown, 0);
    let counts: Vec<(u64, u64)> = table
        .operations
        .iter()
        .map(|operation| (operation.tally.count, operation.tally.outcomes.unknown))
        .collect();
    assert!(
        counts.contains(&(1, 0)) && counts.contains(&(4, 4)),
        "{counts:?}"
    );
}

#[test]
fn what_was_open_when_capture_ended_is_unknown_and_not_broken() {
    for (missed, unknown) in [(0, 0), (200, 1)] {
        let mut play = Play::new();
        play.tracker.connection(1, facts(1, true));
        play.ask(1, "GET k", "$1\r\nv\r\n");
        play.moved(1, true, &super::resp("GET k"));
        // The connection is no longer captured: its answer goes by, and the connection ends.
        play.miss(1, false, missed);
        play.close(1);
        play.report(&[1]);
        let table = play.report(&[1]);
        let outcomes = operation(&table, "GET").tally.outcomes;
        assert_eq!(outcomes.ok, 1, "{missed}");
        assert_eq!(
            (outcomes.unknown, outcomes.broken),
            (unknown, 1 - unknown),
            "{missed}"
        );
    }
}

#[test]
fn what_was_sampled_is_counted_as_what_it_stands_for() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.ask(1, "GET k", "$1\r\nv\r\n");
    play.drawn = Drawn::new(3, 0);
    play.ask(1, "GET k", "$1\r\nv\r\n");
    play.report(&[1]);
    let table = play.report(&[1]);
    let get = operation(&table, "GET");
    assert_eq!((get.tally.count, get.tally.seen), (9, 2));
    assert_eq!(get.client.count, 2);
}

#[test]
fn counts_of_the_kernel_side_are_in_the_table() {
    let mut play = Play::new();
    play.tracker.source(SourceCounts {
        unbound_bytes: 11,
        lost_pieces: 12,
        sampled_one_of: 4,
        tls_is_steady: true,
    });
    let counters = play.report(&[]).counters;
    assert_eq!(counters.unbound_bytes, 11);
    assert_eq!(counters.lost_pieces, 12);
    assert_eq!(counters.sampled_one_of, 4);
    let none = Play::new().report(&[]).counters;
    assert_eq!(none.sampled_one_of, 1);
}

#[test]
fn many_requests_at_once_are_all_counted() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    for _ in 0..40_000 {
        play.ask(1, "GET k", "$1\r\nv\r\n");
    }
    let table = play.tracker.finish(play.now_ns);
    assert_eq!(operation(&table, "GET").tally.count, 40_000);
}

#[test]
fn a_connection_that_had_left_the_kernels_table_is_read_again() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.ask(1, "GET k", "$1\r\nv\r\n");
    play.ask(1, "GET k", "$1\r\nv\r\n");
    // It comes back with another announcement, and offsets from 0.
    play.tracker.connection(1, facts(1, true));
    play.offsets.clear();
    for _ in 0..3 {
        play.ask(1, "GET k", "$1\r\nv\r\n");
    }
    play.report(&[1]);
    let table = play.report(&[1]);
    assert_eq!(operation(&table, "GET").tally.count, 5);
    assert_eq!(table.counters.gaps, 2);
}

#[test]
fn what_was_ordered_of_a_connection_is_said_again_when_it_comes_back() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.moved(
        1,
        true,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    );
    play.moved(1, false, b"\0\0\0\x04\0\0\0\0\0");
    let orders = play.tracker.orders();
    assert_eq!(orders.len(), 1, "{orders:?}");
    play.tracker.connection(1, facts(1, true));
    assert_eq!(play.tracker.orders(), orders);
}

#[test]
fn bytes_that_come_late_are_counted() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.ask(1, "GET k", "$1\r\nv\r\n");
    // Two threads wrote at once: the second one is reported first.
    play.miss(1, true, 100);
    play.moved(1, true, &super::resp("GET k"));
    play.offsets.insert((1, true), 50);
    play.moved_in_part(1, true, &[0; 70], 70);
    let table = play.report(&[1]);
    assert_eq!(table.counters.undecoded_bytes, 70);
}

#[test]
fn more_is_captured_of_a_store_whose_answers_are_longer_than_what_was() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    let answer = format!("*20\r\n{}", "$3\r\nabc\r\n".repeat(20));
    play.ask(1, "PING", "+PONG\r\n");
    assert_eq!(play.tracker.orders(), [] as [(u64, CaptureOrder); 0]);
    for _ in 0..2 {
        play.now_ns += 1_000_000;
        play.moved(1, true, &super::resp("SMEMBERS k"));
        play.now_ns += 3_000_000;
        play.moved_in_part(1, false, answer.as_bytes(), 64);
    }
    assert_eq!(
        play.tracker.orders(),
        [(
            1,
            CaptureOrder {
                bytes: CaptureBytes::First(16_320),
                is_steady: false
            }
        )]
    );
    play.ask(1, "PING", "+PONG\r\n");
    let table = play.tracker.finish(play.now_ns + 1_000_000_000);
    let members = operation(&table, "SMEMBERS");
    assert_eq!((members.tally.count, members.tally.outcomes.ok), (2, 2));
    assert_eq!(members.client.latency_ns.greatest, Some(3_000_000));
}

#[test]
fn answers_that_are_held_back_are_counted_at_the_end() {
    let mut play = Play::new();
    let joined = crate::requests::SocketFacts {
        joined: true,
        ..facts(1, true)
    };
    play.tracker.connection(1, joined);
    for _ in 0..3 {
        play.ask(1, "GET k", "$1\r\nv\r\n");
    }
    let table = play.tracker.finish(play.now_ns);
    let outcomes = operation(&table, "GET").tally.outcomes;
    assert_eq!((outcomes.ok, outcomes.unknown), (0, 3));
}

/// A request without an answer at the end of the task, seen at both ends of its connection.
#[test]
fn requests_that_had_not_ended_are_counted_once() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.tracker.connection(SERVER_COOKIE + 1, facts(1, false));
    play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
    play.moved(1, true, &super::resp("BLPOP k 0"));
    play.moved(SERVER_COOKIE + 1, false, &super::resp("BLPOP k 0"));
    let table = play.tracker.finish(play.now_ns);
    assert_eq!(table.counters.under_way, 1);
    assert_eq!(operation(&table, "GET").tally.count, 1);
}

/// One connection in two, in turns: what others' turns hide is not a hole; each request stands for those of its round.
#[test]
fn turns_of_others_are_no_holes() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    for round in 1..=20 {
        play.drawn = Drawn::new(1, round);
        play.follows = false;
        for _ in 0..3 {
            get(&mut play);
            play.moved(1, false, ANSWER);
        }
        // The answer comes when others have their turn, and so does all that follows.
        get(&mut play);
        play.miss(1, false, 10 * ANSWER.len() as u64);
        play.miss(1, true, 9 * REQUEST.len() as u64);
    }
    play.report(&[1]);
    let table = play.report(&[1]);
    let get_tally = operation(&table, "GET").tally.clone();
    // The last one is still open.
    assert_eq!((get_tally.seen, get_tally.count), (79, 158));
    assert_eq!(get_tally.outcomes.unknown, 2 * 19);
    assert_eq!(get_tally.outcomes.errors(), 0);
    assert_eq!(
        (table.counters.gaps, table.counters.gap_connections),
        (0, 0)
    );
    let (low, high) = get_tally.interval();
    assert!(
        low < 158 && high.is_some_and(|high| high > 158),
        "{low} {high:?}"
    );

    // The same beside a hole of its own.
    play.miss(1, false, 10);
    play.moved(1, false, ANSWER);
    assert_eq!(play.report(&[1]).counters.gap_connections, 1);
}

const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn get(play: &mut Play) {
    play.now_ns += 1_000_000;
    play.moved(1, true, REQUEST);
    play.now_ns += 1_000_000;
}

#[test]
fn what_builds_on_what_was_said_before_takes_no_turns() {
    const STEADY: CaptureOrder = CaptureOrder {
        is_steady: true,
        ..CaptureOrder::USUAL
    };
    let mut play = Play::new();
    for number in 0..3 {
        play.tracker.connection(number, facts(number, true));
    }
    play.moved(
        0,
        true,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    );
    let orders = play.tracker.orders();
    let [(0, CaptureOrder { is_steady, .. })] = orders.as_slice() else {
        panic!("{orders:?}");
    };
    assert!(is_steady);
    let none: [(u64, CaptureOrder); 0] = [];
    play.moved(1, true, REQUEST);
    play.ask(2, "GET k", "$1\r\nv\r\n");
    assert_eq!(play.tracker.orders(), none);
    // Once not all connections are captured.
    play.drawn = Drawn::new(1, 7);
    play.moved(1, false, ANSWER);
    play.ask(2, "GET k", "$1\r\nv\r\n");
    assert_eq!(play.tracker.orders(), [(2, STEADY)]);
    // HTTP/1 is read in turns, unless its client sends ahead.
    play.moved(1, true, REQUEST);
    play.moved(1, false, ANSWER);
    assert_eq!(play.tracker.orders(), none);
    play.moved(1, true, &[REQUEST, REQUEST].concat());
    assert_eq!(play.tracker.orders(), [(1, STEADY)]);
}
