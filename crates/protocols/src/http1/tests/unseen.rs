//! Requests in bytes that were not captured.

use super::{GET, OK, new, summary};
use crate::{
    replay::{CLIENT, Numbers, SERVER},
    testing::{Cut, Driver, WHOLE, facts, to_client, to_server},
};

fn ask(path: &str) -> String {
    format!("GET /{path} HTTP/1.1\r\nHost: b\r\n\r\n")
}

#[test]
fn requests_behind_the_captured_bytes_are_told_as_unknown() {
    let calls: String = ["a", "b", "c", "d"].map(ask).concat();
    // Captured: the first with the beginning of the second, or with no byte of it.
    for (captured, second) in [(40, "GET"), (29, "-")] {
        let mut player = new(false);
        player.say_captured(CLIENT, calls.as_bytes(), captured);
        assert_eq!(player.decoder.gaps(), 1, "{captured}");
        assert!(player.decoder.is_dirty());
        for _ in 0..4 {
            player.say(SERVER, OK);
        }
        let methods: Vec<&str> = player
            .out
            .iter()
            .map(|found| found.method.as_deref().unwrap_or("-"))
            .collect();
        assert_eq!(methods, ["GET", second, "-", "-"]);
        let found = summary(&player.out);
        assert_eq!(found[0], "/a 200 Ok 0+5");
        assert_eq!(&found[2..], ["- 200 Unknown 0+5?"; 2]);
        assert_eq!(player.decoder.gaps(), 1);
    }
}

#[test]
fn every_answer_counts_a_request_once_whatever_is_pipelined() {
    for seed in 1..300 {
        let mut numbers = Numbers::new(seed);
        let captured = 20 + numbers.below(300);
        let mut player = new(false);
        let mut sent = 0;
        for _ in 0..20 {
            let count = 1 + numbers.below(10);
            let calls: String = (0..count).map(|number| ask(&"x".repeat(number))).collect();
            player.say_captured(CLIENT, calls.as_bytes(), captured);
            for _ in 0..count {
                player.say(SERVER, OK);
            }
            sent += count;
            let was_cut = calls.len() > captured;
            assert!(
                !was_cut || count == 1 || player.decoder.gaps() > 0,
                "{seed}"
            );
        }
        player.close();
        assert_eq!(player.out.len(), sent, "{seed} {captured}");
    }
}

#[test]
fn a_long_head_alone_in_its_call_is_no_gap() {
    let long = format!("GET /a HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(2000));
    let mut player = new(false);
    for _ in 0..3 {
        player.say_captured(CLIENT, long.as_bytes(), 1024);
        player.say(SERVER, OK);
    }
    assert_eq!(summary(&player.out), ["/a 200 Ok 0+5?"; 3]);
    assert_eq!(player.decoder.not_understood().to_server, 0);
    assert_eq!(player.decoder.gaps(), 0);
}

#[test]
fn a_request_behind_a_long_head_is_told_when_its_answer_comes() {
    let long = format!("GET /a HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(2000));
    let mut player = new(false);
    player.say_captured(CLIENT, (long + &ask("b")).as_bytes(), 1024);
    player.say(SERVER, OK);
    assert_eq!(player.decoder.gaps(), 0);
    player.say(SERVER, OK);
    assert_eq!(player.decoder.gaps(), 1);
    assert_eq!(
        summary(&player.out),
        ["/a 200 Ok 0+5?", "- 200 Unknown 0+5?"]
    );
}

#[test]
fn a_body_of_known_length_hides_nothing() {
    let posted = |length: usize| {
        let body = "z".repeat(length);
        format!("POST /a HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let mut player = new(false);
    for length in [100, 5000] {
        player.say_captured(CLIENT, posted(length).as_bytes(), 60);
        assert!(!player.decoder.is_dirty());
        player.say(SERVER, OK);
    }
    player.say_captured(CLIENT, (posted(100) + "\r\n").as_bytes(), 60);
    player.say(SERVER, OK);
    assert_eq!(player.decoder.gaps(), 0);
    assert_eq!(player.decoder.not_understood().to_server, 0);
    player.say_captured(CLIENT, (posted(100) + &ask("b")).as_bytes(), 60);
    assert_eq!(player.decoder.gaps(), 1);
    assert_eq!(
        player.decoder.not_understood().to_server,
        ask("b").len() as u64
    );
    player.say(SERVER, OK);
    player.say(SERVER, OK);
    assert_eq!(
        summary(&player.out),
        [
            "/a 200 Ok 100+5",
            "/a 200 Ok 5000+5",
            "/a 200 Ok 100+5",
            "/a 200 Ok 100+5",
            "- 200 Unknown 0+5?"
        ]
    );
}

#[test]
fn answers_behind_the_captured_bytes_are_a_gap() {
    let mut player = new(false);
    player.say(CLIENT, (ask("a") + &ask("b")).as_bytes());
    player.say_captured(SERVER, &[OK, OK].concat(), OK.len());
    assert_eq!(player.decoder.gaps(), 1);
    assert!(player.decoder.is_dirty());
    assert_eq!(summary(&player.out), ["/a 200 Ok 0+5", "/b - Unknown 0+0?"]);
}

#[test]
fn an_answer_behind_a_cut_interim_one_is_a_gap() {
    let interim = format!("HTTP/1.1 103 Hints\r\nLink: {}\r\n\r\n", "l".repeat(200));
    let mut player = new(false);
    player.say(CLIENT, GET);
    player.say_captured(SERVER, &[interim.as_bytes(), OK].concat(), 100);
    assert_eq!(player.decoder.gaps(), 1);
    player.say(CLIENT, ask("b").as_bytes());
    player.say(SERVER, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(
        summary(&player.out),
        ["/users/{n} - Unknown 0+0?", "/b 404 ClientError 0+0"]
    );
}

#[test]
fn what_a_server_says_unasked_is_no_answer() {
    let mut player = new(false);
    player.say(CLIENT, GET);
    player.say(SERVER, OK);
    player.say(CLIENT, GET);
    player.say(SERVER, OK);
    player.say(SERVER, b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n");
    let cut = ask(&"x".repeat(300));
    player.say(CLIENT, GET);
    player.say(SERVER, OK);
    player.say_captured(CLIENT, cut.as_bytes(), 100);
    player.say(SERVER, OK);
    player.say(SERVER, b"HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(player.out.len(), 4);
    assert_eq!(player.decoder.gaps(), 0);
}

#[test]
fn a_silence_brings_pairs_back() {
    let mut driver = Driver::new(facts(80));
    let calls: String = ["a", "b", "c"].map(ask).concat();
    let cut = Cut {
        capture: 40,
        ..WHOLE
    };
    let all = to_client(OK.repeat(3));
    driver.call(&to_server(&calls), cut).call(&all, WHOLE);
    driver.call(&to_server(&calls), cut).call(&all, WHOLE);
    assert_eq!(
        driver.take(),
        [
            "/a => 200",
            "/b => 200",
            "- => 200 unknown",
            // The next call may have come before all answers did.
            "/a => - unknown",
            "/b => - unknown",
            "- => 200 unknown",
        ]
    );
    driver.wait(300_000_000);
    driver
        .call(&to_server(ask("d")), WHOLE)
        .call(&to_client(OK), WHOLE);
    assert_eq!(driver.take(), ["/d => 200"]);
    let trouble = driver.connection.trouble();
    assert_eq!((trouble.gaps, trouble.missing.to_server), (2, 0));
    assert!(!driver.connection.is_dirty());
    driver.close();
    assert_eq!(driver.connection.trouble().gaps, 2);
}

#[test]
fn dirty_is_where_the_next_head_is_searched() {
    let mut player = new(false);
    assert!(!player.decoder.is_dirty());
    player.say(CLIENT, GET);
    player.gap(SERVER, None);
    assert!(player.decoder.is_dirty());
    player.say(SERVER, b"rest of an answer");
    assert_eq!(player.decoder.not_understood().to_client, 17);
    player.say(CLIENT, GET);
    player.say(SERVER, OK);
    assert!(!player.decoder.is_dirty());
    assert!(new(true).decoder.is_dirty());
}

#[test]
fn each_byte_that_was_not_read_is_counted_once() {
    let mut player = new(true);
    // A beginning that turns out not to be one, in two pieces; the end of a head behind other bytes.
    player.say(SERVER, b"HTTP");
    player.say(SERVER, b"/9");
    player.say(CLIENT, b"GE");
    player.say(CLIENT, b"!");
    player.say_captured(CLIENT, b"not captured", 3);
    let not_understood = player.decoder.not_understood();
    assert_eq!(
        (not_understood.to_server, not_understood.to_client),
        (15, 6)
    );
    let mut player = new(false);
    player.say(
        CLIENT,
        b"GET /chat HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    );
    player.say(
        SERVER,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x05hello",
    );
    player.say_captured(CLIENT, &[0x81; 50], 7);
    let not_understood = player.decoder.not_understood();
    assert_eq!(
        (not_understood.to_server, not_understood.to_client),
        (50, 7)
    );
    assert!(!player.decoder.is_dirty());
}

#[test]
fn a_request_that_is_missing_takes_no_answer_of_another() {
    let mut player = new(false);
    player.say(CLIENT, ask("a").as_bytes());
    player.gap(CLIENT, Some(28));
    player.say(CLIENT, ask("c").as_bytes());
    player.say(SERVER, OK);
    player.say(SERVER, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
    player.say(SERVER, OK);
    assert_eq!(
        summary(&player.out),
        ["/a 200 Ok 0+5", "- 404 Unknown 0+0?", "- 200 Unknown 0+5?"]
    );
}

/// As where probes are away for a time: requests and answers of a client that waits for each answer.
#[test]
fn a_client_that_waits_for_answers_is_paired_again_behind_each_time_without_probes() {
    let mut player = new(false);
    for round in 0..5 {
        for number in 0..4 {
            player.say(CLIENT, ask(&format!("r{round}/{number}")).as_bytes());
            player.say(SERVER, OK);
        }
        // Probes go between a request and its answer; the jump shows with the next piece of each way.
        player.say(CLIENT, ask("cut").as_bytes());
        player.gap(CLIENT, Some(1));
        player.say(CLIENT, ask("first").as_bytes());
        player.gap(SERVER, Some(1));
        player.say(SERVER, OK);
    }
    let found = summary(&player.out);
    let fine = found.iter().filter(|line| line.contains(" Ok "));
    // All but the one that comes first behind each gap and the one that was cut.
    assert_eq!(fine.count(), 4 * 5, "{found:#?}");
    assert!(
        !found.iter().any(|line| line.contains("Broken")),
        "{found:#?}"
    );
}

#[test]
fn paths_that_were_cut_one_after_the_other_hide_nothing() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(3000));
    let not_found = format!("HTTP/1.1 404 No\r\nX: {}\r\n\r\nbody", "y".repeat(2000));
    for joined in [false, true] {
        // The client waits, and its requests follow one another at once.
        let mut player = new(joined);
        for (answer, captured) in [(OK, WHOLE.capture), (not_found.as_bytes(), 1024)] {
            for _ in 0..2 {
                player.say_captured(CLIENT, long.as_bytes(), 1024);
                player.say_captured(SERVER, answer, captured);
            }
        }
        player.say(CLIENT, GET);
        player.say(SERVER, OK);
        assert_eq!(player.decoder.gaps(), 0);
        assert_eq!(
            summary(&player.out),
            [
                "- 200 Ok 0+5?",
                "- 200 Ok 0+5?",
                "- 404 ClientError 0+0?",
                "- 404 ClientError 0+0?",
                "/users/{n} 200 Ok 0+5",
            ]
        );
    }
}
