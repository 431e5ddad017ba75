use profiler_model::SeenBy;

use super::{Play, SERVER_COOKIE, edge, facts, operation};
use crate::requests::{Plaintext, SocketFacts, played::resp, unix_end};

const MS: u64 = 1_000_000;

#[test]
fn a_request_that_both_ends_see_is_counted_once() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.tracker.connection(SERVER_COOKIE + 1, facts(1, false));
    for _ in 0..10 {
        play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
    }
    // Only addresses show which sockets belong together.
    let table = play.tracker.finish(play.now_ns);
    let counts: u64 = table.operations.iter().map(|row| row.tally.count).sum();
    assert_eq!(counts, 10);
}

#[test]
fn ends_of_a_unix_socket_find_each_other_and_have_no_ports() {
    let mut play = Play::new();
    let server = SERVER_COOKIE + 1;
    for (own, other, is_client) in [(1, server, true), (server, 1, false)] {
        let facts = SocketFacts {
            local: unix_end(own),
            remote: unix_end(other),
            ..facts(1, is_client)
        };
        play.tracker.connection(own, facts);
    }
    for _ in 0..10 {
        play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
    }
    let table = play.tracker.finish(play.now_ns);
    let get = operation(&table, "GET");
    assert_eq!(
        (get.tally.count, get.client.count, get.server.count),
        (10, 10, 10)
    );
    let edge = &table.edges[0];
    assert_eq!((edge.client_port, edge.key.server_port), (None, None));
    assert_eq!(edge.key.server.address.protocol(), "unix");
}

#[test]
fn each_end_has_its_own_times() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.tracker.connection(SERVER_COOKIE + 1, facts(1, false));
    for _ in 0..10 {
        play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
    }
    let both = [1, SERVER_COOKIE + 1];
    play.report(&both);
    let table = play.report(&both);
    let get = operation(&table, "GET");
    assert_eq!(get.tally.count, 10);
    assert_eq!(get.server_only, 0);
    assert_eq!((get.client.count, get.server.count), (10, 10));
    assert_eq!(get.client.latency_ns.least, Some(3 * MS));
    assert_eq!(get.server.latency_ns.least, Some(MS));
    assert_eq!(table.edges.len(), 1);
    assert_eq!(table.edges[0].key, edge());
    assert_eq!(table.edges[0].connections, 1);
    assert_eq!(table.edges[0].client_port, Some(40_001));
}

#[test]
fn a_request_begins_when_its_first_write_does_and_an_answer_ends_when_its_last_one_does() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.tracker.connection(SERVER_COOKIE + 2, facts(2, false));
    play.now_ns += 2000 * MS;
    play.waited_ns = 2000 * MS;
    play.ask(1, "SET k v", "+OK\r\n");
    play.waited_ns = 0;
    play.moved(SERVER_COOKIE + 2, false, &super::resp("GET k"));
    play.now_ns += 5000 * MS;
    play.waited_ns = 3000 * MS;
    play.moved(SERVER_COOKIE + 2, true, b"$1\r\nv\r\n");
    let table = play.tracker.finish(play.now_ns);
    // Three milliseconds from the end of the write to the answer.
    assert_eq!(operation(&table, "SET").client.latency_ns.sum, 2003 * MS);
    assert_eq!(operation(&table, "GET").server.latency_ns.sum, 5000 * MS);
}

/// The kernel side has counted what its session carried before the task.
#[test]
fn plaintext_of_a_session_from_before_begins_where_it_is_found() {
    let mut play = Play::new();
    play.plaintext = Plaintext::Tls;
    let joined = SocketFacts {
        joined: true,
        ..facts(1, true)
    };
    play.tracker.connection(1, joined);
    play.miss(1, true, 764);
    play.miss(1, false, 1276);
    let ask = b"GET /work HTTP/1.1\r\nHost: a\r\n\r\n";
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for _ in 0..3 {
        play.now_ns += MS;
        play.moved(1, true, ask);
        play.now_ns += MS;
        play.moved(1, false, answer);
    }
    let table = play.tracker.finish(play.now_ns);
    let get = operation(&table, "GET");
    assert_eq!((get.tally.count, get.tally.outcomes.ok), (3, 3));
    assert_eq!(table.counters.undecoded_bytes, 0);
}

#[test]
fn the_server_counts_where_the_client_is_not_seen() {
    let mut play = Play::new();
    let server = SERVER_COOKIE + 1;
    play.tracker.connection(server, facts(1, false));
    play.moved(server, false, &super::resp("GET k"));
    play.now_ns += 2 * MS;
    play.moved(server, true, b"$1\r\nv\r\n");
    play.report(&[server]);
    let table = play.report(&[server]);
    let get = operation(&table, "GET");
    assert_eq!((get.tally.count, get.server_only), (1, 1));
    assert_eq!(get.client.count, 0);
    assert_eq!(get.server.latency_ns.sum, 2 * MS);
    assert_eq!(table.samples.len(), 1);
    assert_eq!(table.samples[0].seen_by, SeenBy::Server);
}

#[test]
fn a_client_that_understands_nothing_does_not_count() {
    let mut play = Play::new();
    let server = SERVER_COOKIE + 1;
    play.tracker.connection(1, facts(1, true));
    play.tracker.connection(server, facts(1, false));
    // A ClientHello: the client's library is not known; the server's is.
    play.moved(1, true, &[22, 3, 1, 0, 5, 1, 0, 0, 1, 0]);
    let table = play.report(&[1, server]);
    assert_eq!(table.counters.connections_by_protocol["tls"], 1);
    play.plaintext = super::Plaintext::Tls;
    play.moved(server, false, &super::resp("GET k"));
    play.moved(server, true, b"$1\r\nv\r\n");
    play.report(&[1, server]);
    let table = play.report(&[1, server]);
    let get = operation(&table, "GET");
    assert_eq!((get.tally.count, get.server_only), (1, 1));
    assert!(get.tls);
    let protocols = &table.counters.connections_by_protocol;
    assert_eq!(protocols.keys().collect::<Vec<_>>(), ["redis"]);
}

#[test]
fn the_end_of_which_more_was_seen_counts() {
    let mut play = Play::new();
    let server = SERVER_COOKIE + 1;
    play.tracker.connection(1, facts(1, true));
    play.tracker.connection(server, facts(1, false));
    play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
    // Something of the client's is not seen; the request that is next is seen by both.
    play.miss(1, true, 100);
    play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
    play.moved(server, false, &super::resp("DEL k"));
    play.moved(server, true, b":1\r\n");
    let both = [1, server];
    play.report(&both);
    let table = play.report(&both);
    let get = operation(&table, "GET");
    assert_eq!((get.tally.count, get.server_only), (2, 2));
    let del = operation(&table, "DEL");
    assert_eq!((del.tally.count, del.client.count), (1, 0));
    // What is settled stays so.
    play.miss(server, false, 100);
    play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
    play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
    play.report(&both);
    let table = play.report(&both);
    let get = operation(&table, "GET");
    assert_eq!(get.tally.count, get.server_only);
}

#[test]
fn requests_wait_until_their_edge_is_known() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.ask(1, "GET k", "$1\r\nv\r\n");
    for _ in 0..3 {
        assert!(play.report(&[]).operations.is_empty());
    }
    let table = play.report(&[1]);
    assert_eq!(operation(&table, "GET").tally.count, 1);
    assert_eq!(table.edges[0].key, edge());
}

#[test]
fn later_requests_of_a_known_connection_are_counted_at_once() {
    let mut play = Play::new();
    let both = [1, SERVER_COOKIE + 1];
    play.tracker.connection(1, facts(1, true));
    play.tracker.connection(SERVER_COOKIE + 1, facts(1, false));
    play.tracker.connection(2, facts(2, true));
    let sockets = [both.as_slice(), &[2]].concat();
    for (asked, counted) in [(1, 0), (2, 2), (3, 6), (4, 8)] {
        play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
        play.ask(2, "GET k", "$1\r\nv\r\n");
        let table = play.report(&sockets);
        let counts = table.operations.iter().map(|row| row.tally.count);
        assert_eq!(counts.sum::<u64>(), counted, "after {asked} of each");
    }
    let get = operation(&play.tracker.finish(play.now_ns), "GET").clone();
    assert_eq!((get.tally.count, get.client.count), (8, 8));
    assert_eq!(get.server.count, 4);
}

/// A command and its answer as the server sees them, within 2 ms.
fn ask_server(play: &mut Play, number: u64) {
    let server = SERVER_COOKIE + number;
    play.now_ns += MS;
    play.moved(server, false, &resp("GET k"));
    play.now_ns += MS;
    play.moved(server, true, b"$1\r\nv\r\n");
}

/// The same as the client saw them, from `begin_ns` on and for 1 ms longer; told of late.
fn tell_at_client(play: &mut Play, number: u64, begin_ns: u64) {
    play.now_ns = begin_ns;
    play.moved(number, true, &resp("GET k"));
    play.now_ns = begin_ns + 3 * MS;
    play.moved(number, false, b"$1\r\nv\r\n");
}

#[test]
fn an_end_that_shows_late_does_not_count_again() {
    let mut play = Play::new();
    let server = SERVER_COOKIE + 1;
    play.tracker.connection(server, facts(1, false));
    for _ in 0..3 {
        ask_server(&mut play, 1);
        play.report(&[server]);
    }
    // The next one is counted at once, before the client's end says that it has seen it, too.
    play.tracker.connection(1, facts(1, true));
    let asked_ns = play.now_ns;
    ask_server(&mut play, 1);
    tell_at_client(&mut play, 1, asked_ns);
    for _ in 0..3 {
        play.ask_seen_by_both(1, "GET k", "$1\r\nv\r\n");
        play.report(&[1, server]);
    }
    let table = play.tracker.finish(play.now_ns);
    let get = operation(&table, "GET");
    assert_eq!((get.tally.count, get.server_only), (7, 4));
    assert_eq!((get.client.count, get.server.count), (4, 7));
}

#[test]
fn an_end_that_shows_late_with_all_it_has_seen_leaves_no_request_out() {
    let mut play = Play::new();
    let server = SERVER_COOKIE + 1;
    play.tracker.connection(server, facts(1, false));
    // The first waits until the second report, the second until the third, and the third is counted at once.
    let mut asked_ns = Vec::new();
    for _ in 0..3 {
        asked_ns.push(play.now_ns);
        ask_server(&mut play, 1);
        if asked_ns.len() < 3 {
            play.report(&[server]);
        }
    }
    let now_ns = play.now_ns;
    play.tracker.connection(1, facts(1, true));
    for begin_ns in asked_ns {
        tell_at_client(&mut play, 1, begin_ns);
    }
    play.now_ns = now_ns + MS;
    for _ in 0..4 {
        play.report(&[1, server]);
    }
    let table = play.tracker.finish(play.now_ns);
    let get = operation(&table, "GET");
    assert_eq!((get.tally.count, get.server_only), (3, 3));
    assert_eq!((get.client.count, get.server.count), (3, 3));
}

#[test]
fn nothing_is_left_waiting_at_the_end() {
    let mut play = Play::new();
    play.tracker.connection(1, facts(1, true));
    play.ask(1, "GET k", "$1\r\nv\r\n");
    let table = play.tracker.finish(play.now_ns);
    assert_eq!(operation(&table, "GET").tally.count, 1);
    assert_eq!(table.edges[0].key.client.pid, Some(super::CLIENT_PID));
    assert_eq!(table.edges[0].key.server_port, Some(6379));
}
