mod bodies;
mod framing;
mod properties;
mod unseen;

use super::HTTP1;
use crate::{
    Exchange, Limits, Options, Outcome, Privacy, Protocol, Status, WrongProtocol,
    replay::{CLIENT, Cuts, Numbers, Player, SERVER, STEP_NS, Said, play, play_cut},
};

const GET: &[u8] = b"GET /users/42?token=canary HTTP/1.1\r\nHost: shop:80\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn a_request_with_its_answer() {
    let found = one(&[(CLIENT, GET), (SERVER, OK)]);
    assert_eq!(found.method.as_deref(), Some("GET"));
    assert_eq!(found.route.as_deref(), Some("/users/{n}"));
    assert_eq!(found.authority.as_deref(), Some("shop:80"));
    assert_eq!(found.path, None);
    assert_eq!(found.status, Some(Status::Http(200)));
    assert_eq!(found.outcome, Outcome::Ok);
    assert_eq!((found.request_bytes, found.response_bytes), (0, 5));
    assert!(found.request_size_known && found.response_size_known && found.path_hash.is_some());
}

#[test]
fn times_are_those_of_the_pieces() {
    let mut player = new(false);
    player.say(CLIENT, b"POST / HTTP/1.1\r\nContent-Length: 6\r\n");
    player.say(CLIENT, b"\r\nabc");
    player.say(CLIENT, b"def");
    player.say(SERVER, b"HTTP/1.1 200 OK\r\n");
    player.say(SERVER, b"Content-Length: 2\r\n\r\n");
    player.say(SERVER, b"ok");
    let [found] = player.out.as_slice() else {
        panic!("{:?}", player.out);
    };
    assert_eq!(found.begin_ns, STEP_NS);
    assert_eq!(found.request_end_ns, Some(3 * STEP_NS));
    assert_eq!(found.first_byte_ns, Some(4 * STEP_NS));
    assert_eq!(found.end_ns, 6 * STEP_NS);
    assert_eq!((found.request_bytes, found.response_bytes), (6, 2));
}

#[test]
fn pipelined_requests_are_paired_in_order() {
    let found = play(
        &HTTP1,
        &[
            (CLIENT, b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n\r\nHEAD /c HTTP/1.1\r\n\r\n"),
            (SERVER, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nbb"),
            (SERVER, b"HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\n"),
        ],
    );
    assert_eq!(
        summary(&found),
        [
            "/a 200 Ok 0+1",
            "/b 404 ClientError 0+2",
            "/c 500 ServerError 0+0"
        ]
    );
}

#[test]
fn bodies_in_chunks_are_counted_without_their_framing() {
    let found = play(
        &HTTP1,
        &[
            (
                CLIENT,
                b"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            ),
            (
                SERVER,
                b"HTTP/1.1 201 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n",
            ),
            (SERVER, b"3;x=\"y\"\r\nabc\r\n0\r\nSum: 1\r\n\r\n"),
            (CLIENT, GET),
            (SERVER, OK),
        ],
    );
    assert_eq!(summary(&found), ["/a 201 Ok 3+8", "/users/{n} 200 Ok 0+5"]);
}

#[test]
fn interim_answers_are_not_the_answer() {
    let found = one(&[
        (
            CLIENT,
            b"POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
        ),
        (SERVER, b"HTTP/1.1 100 Continue\r\n\r\n"),
        (CLIENT, b"abc"),
        (SERVER, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        (SERVER, b"HTTP/1.1 204 No Content\r\n\r\n"),
    ]);
    assert_eq!(summary(std::slice::from_ref(&found)), ["/a 204 Ok 3+0"]);
    assert_eq!(found.first_byte_ns, Some(5 * STEP_NS));
}

#[test]
fn answers_without_a_body_have_none() {
    for (request, answer) in [
        ("HEAD", "200 OK\r\nContent-Length: 100"),
        ("GET", "204 None\r\nContent-Length: 100"),
        ("GET", "304 Same\r\nTransfer-Encoding: chunked"),
    ] {
        let request = format!("{request} /a HTTP/1.1\r\n\r\n");
        let answer = format!("HTTP/1.1 {answer}\r\n\r\n");
        let said: [Said<'_>; 4] = [
            (CLIENT, request.as_bytes()),
            (SERVER, answer.as_bytes()),
            (CLIENT, GET),
            (SERVER, OK),
        ];
        let found = play(&HTTP1, &said);
        assert_eq!(found.len(), 2, "{answer}");
        assert_eq!(
            (found[0].response_bytes, found[0].outcome),
            (0, Outcome::Ok)
        );
        assert_eq!(found[1].response_bytes, 5);
    }
}

#[test]
fn the_end_of_the_connection_ends_an_answer_without_a_length() {
    let said: [Said<'_>; 3] = [
        (CLIENT, b"GET /a HTTP/1.0\r\n\r\n"),
        (SERVER, b"HTTP/1.0 200 OK\r\n\r\nabc"),
        (SERVER, b"def"),
    ];
    let found = one(&said);
    assert_eq!(summary(std::slice::from_ref(&found)), ["/a 200 Ok 0+6"]);
    assert_eq!(found.end_ns, 3 * STEP_NS);
}

#[test]
fn a_connection_that_ends_early_breaks_what_is_open() {
    let found = one(&[(CLIENT, GET)]);
    assert_eq!((found.outcome, found.status), (Outcome::Broken, None));
    let found = one(&[(CLIENT, GET), (SERVER, &OK[..OK.len() - 1])]);
    assert_eq!(
        (found.outcome, found.status),
        (Outcome::Broken, Some(Status::Http(200)))
    );
}

#[test]
fn an_answer_may_come_before_the_request_ended() {
    let mut player = new(false);
    player.say(CLIENT, b"POST /a HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc");
    player.say(SERVER, b"HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(summary(&player.out), ["/a 413 ClientError 3+0?"]);
    assert_eq!(player.out[0].request_end_ns, None);
    player.say(CLIENT, b"def");
    player.say(CLIENT, GET);
    player.say(SERVER, OK);
    assert_eq!(summary(&player.out[1..]), ["/users/{n} 200 Ok 0+5"]);
}

#[test]
fn a_websocket_is_an_upgrade() {
    let mut player = new(false);
    player.say(
        CLIENT,
        b"GET /chat HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    );
    player.say(
        SERVER,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n\r\n\x81\x05hello",
    );
    player.say(CLIENT, b"\x81\x85GET / HTTP/1.1\r\n\r\n");
    player.close();
    assert_eq!(summary(&player.out), ["/chat 101 Ok 0+0"]);
    assert_eq!(player.out[0].protocol, Protocol::WebSocket);
    assert_eq!(player.decoder.protocol(), Protocol::WebSocket);
}

#[test]
fn a_tunnel_is_not_looked_into() {
    let found = play(
        &HTTP1,
        &[
            (CLIENT, b"CONNECT far:443 HTTP/1.1\r\nHost: far:443\r\n\r\n"),
            (SERVER, b"HTTP/1.1 200 Connected\r\n\r\n"),
            (CLIENT, GET),
            (SERVER, OK),
        ],
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].authority.as_deref(), Some("far:443"));
    assert_eq!(
        (found[0].route.as_deref(), found[0].method.as_deref()),
        (None, Some("CONNECT"))
    );
}

#[test]
fn secrets_do_not_leave() {
    let options = Options {
        privacy: Privacy {
            body_bytes: 0,
            raw_paths: true,
            redacted_headers: vec!["x-internal".to_owned()],
            kept_headers: vec!["authorization".to_owned(), "x-internal".to_owned()],
        },
        ..Options::default()
    };
    let mut player = Player::new(&HTTP1, &options, false);
    player.say(
        CLIENT,
        b"GET http://user:canary@host/a?token=canary HTTP/1.1\r\nAuthorization: canary\r\n\
          Cookie: canary\r\nX-Api-Key: canary\r\nX-Internal: canary\r\nReferer: /canary\r\n\
          traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n",
    );
    player.say(SERVER, b"HTTP/1.1 200 OK\r\nSet-Cookie: canary\r\nContent-Length: 6\r\nx-envoy-upstream-service-time: 7\r\n\r\ncanary");
    let text = format!("{:?}", player.out);
    assert!(!text.contains("canary"), "{text}");
    let found = &player.out[0];
    assert_eq!(found.path.as_deref(), Some("/a?token=?"));
    assert_eq!(found.authority.as_deref(), Some("host"));
    assert_eq!(found.upstream_service_ms, Some(7));
    assert_eq!(found.trace.span_id.as_deref(), Some("00f067aa0ba902b7"));
}

#[test]
fn other_bytes_are_another_protocol() {
    for bytes in [
        &b"*1\r\n$4\r\nPING\r\n"[..],
        b"\x16\x03\x01",
        b"hello world\r\n",
    ] {
        assert_eq!(new(false).try_say(CLIENT, bytes, 99), Err(WrongProtocol));
    }
    assert_eq!(
        new(false).try_say(SERVER, b"220 mail\r\n", 99),
        Err(WrongProtocol)
    );
}

#[test]
fn garbage_behind_a_request_is_got_over() {
    let found = play(
        &HTTP1,
        &[
            (CLIENT, GET),
            (SERVER, OK),
            (CLIENT, b"\0\0\0garbage\r\n"),
            (CLIENT, b"GET /b HTTP/1.1\r\n\r\n"),
            (SERVER, OK),
        ],
    );
    assert_eq!(summary(&found), ["/users/{n} 200 Ok 0+5", "/b 200 Ok 0+5"]);
}

#[test]
fn a_joined_connection_begins_with_its_next_request() {
    let mut player = new(true);
    player.say(SERVER, b"rest of an answer");
    player.say(SERVER, OK);
    player.say(CLIENT, b"rest of a request GET / HTTP/1.1\r\n\r\n");
    player.say(CLIENT, b"GE");
    player.say(CLIENT, b"T /b HTTP/1.1\r\n\r\n");
    player.say(SERVER, OK);
    player.say(CLIENT, GET);
    player.say(SERVER, OK);
    assert_eq!(
        summary(&player.out),
        ["/b 200 Ok 0+5", "/users/{n} 200 Ok 0+5"]
    );
}

#[test]
fn a_gap_in_an_answer_makes_it_unknown_and_no_other() {
    let mut player = new(false);
    player.say(CLIENT, GET);
    player.say(SERVER, &OK[..OK.len() - 3]);
    player.gap(SERVER, None);
    assert_eq!(summary(&player.out), ["/users/{n} 200 Unknown 0+2?"]);
    player.say(SERVER, b"lo");
    player.say(CLIENT, b"GET /b HTTP/1.1\r\n\r\n");
    player.say(SERVER, OK);
    assert_eq!(summary(&player.out[1..]), ["/b 200 Ok 0+5"]);
}

#[test]
fn a_gap_of_known_length_within_a_body_is_counted() {
    let mut player = new(false);
    player.say(CLIENT, GET);
    player.say(SERVER, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab");
    player.gap(SERVER, Some(6));
    player.say(SERVER, b"cd");
    assert_eq!(summary(&player.out), ["/users/{n} 200 Ok 0+10"]);
}

#[test]
fn pipelined_requests_are_not_paired_behind_a_gap() {
    let mut player = new(false);
    player.say(CLIENT, b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
    player.gap(SERVER, Some(20));
    assert_eq!(
        summary(&player.out),
        ["/a - Unknown 0+0?", "/b - Unknown 0+0?"]
    );
    player.say(SERVER, OK);
    player.say(CLIENT, b"GET /c HTTP/1.1\r\n\r\n");
    player.say(SERVER, OK);
    assert_eq!(summary(&player.out[2..]), ["/c - Unknown 0+0?"]);
}

#[test]
fn bodies_need_not_be_captured() {
    let body = "x".repeat(5000);
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{body}");
    let chunked =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n{body}\r\n0\r\n\r\n");
    let request = format!("POST /a HTTP/1.1\r\nContent-Length: 5000\r\n\r\n{body}");
    let mut player = new(false);
    for answer in [&answer, &chunked] {
        player.say_captured(CLIENT, request.as_bytes(), 200);
        player.say_captured(SERVER, answer.as_bytes(), 200);
    }
    player.close();
    assert_eq!(summary(&player.out), ["/a 200 Ok 5000+5000"; 2]);
}

#[test]
fn chunks_whose_ends_were_not_captured_leave_sizes_unknown() {
    let body = "x".repeat(1000);
    let chunks = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n{body}\r\n3e8\r\n{body}\r\n"
    );
    for end in [&b"0\r\n\r\n"[..], b"1\r\nx\r\n0\r\n\r\n"] {
        let mut player = new(false);
        player.say(CLIENT, GET);
        player.say_captured(SERVER, chunks.as_bytes(), 200);
        player.say(SERVER, end);
        player.decoder.stop(0, &mut player.out);
        assert_eq!(player.out.len(), 1);
        let found = &player.out[0];
        assert!(
            found.request_size_known && !found.response_size_known && found.outcome == Outcome::Ok
        );
        assert_eq!(found.end_ns, 3 * STEP_NS);
    }
}

#[test]
fn heads_that_were_cut_say_what_was_seen() {
    let request = format!(
        "GET /a HTTP/1.1\r\nHost: b\r\nX: {}\r\nContent-Length: 3\r\n\r\nabc",
        "y".repeat(2000)
    );
    let answer = format!(
        "HTTP/1.1 503 No\r\nServer: c\r\nX: {}\r\n\r\n",
        "y".repeat(2000)
    );
    let mut player = new(false);
    for _ in 0..2 {
        player.say_captured(CLIENT, request.as_bytes(), 1024);
        player.say_captured(SERVER, answer.as_bytes(), 1024);
        player.say(SERVER, b"body");
    }
    player.say(CLIENT, GET);
    // Nothing more of the last answer has come before the next one.
    player.say(SERVER, OK);
    assert_eq!(summary(&player.out[..2]), ["/a 503 ServerError 0+4?"; 2]);
    let first = &player.out[0];
    assert_eq!(first.authority.as_deref(), Some("b"));
    assert_eq!(
        (first.request_end_ns, first.end_ns),
        (Some(STEP_NS), 3 * STEP_NS)
    );
    player.say(SERVER, OK);
    assert_eq!(summary(&player.out[2..]), ["/users/{n} 200 Ok 0+5"]);
}

#[test]
fn a_target_that_was_cut_has_no_route() {
    let mut player = new(false);
    player.say_captured(CLIENT, GET, 9);
    player.say(SERVER, OK);
    assert_eq!(player.out[0].route, None);
    assert_eq!(player.out[0].method.as_deref(), Some("GET"));
    let mut player = new(false);
    player.say_captured(CLIENT, GET, 20);
    player.say(SERVER, OK);
    assert_eq!(player.out[0].route.as_deref(), Some("/users/{n}"));
    assert_eq!(player.out[0].path_hash, None);
}

#[test]
fn long_heads_and_many_requests_cost_bounded_memory() {
    let mut player = new(false);
    player.say(CLIENT, b"GET /a HTTP/1.1\r\nX: ");
    for _ in 0..1024 {
        player.say(CLIENT, &[b'y'; 1024]);
    }
    player.say(SERVER, b"HTTP/1.1 431 Large\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(summary(&player.out), ["/a 431 ClientError 0+0?"]);
    let options = Options {
        limits: Limits {
            open_exchanges: 16,
            ..Limits::default()
        },
        ..Options::default()
    };
    let mut player = Player::new(&HTTP1, &options, false);
    for _ in 0..100 {
        player.say(CLIENT, GET);
    }
    assert_eq!(player.out.len(), 100);
    assert!(
        player
            .out
            .iter()
            .all(|found| found.outcome == Outcome::Unknown)
    );
}

#[test]
fn many_headers_are_read_as_far_as_they_go() {
    let headers = "X: y\r\n".repeat(500);
    let request = format!("GET /a HTTP/1.1\r\n{headers}Content-Length: 3\r\n\r\n");
    let found = one(&[(CLIENT, request.as_bytes()), (SERVER, OK)]);
    assert_eq!(summary(&[found]), ["/a 200 Ok 0+5?"]);
}

/// Conversations without pipelining: whatever is captured, what is given out is right or unknown.
#[test]
fn any_capture_of_turns_is_right_or_unknown() {
    let long = "z".repeat(700);
    let posted = format!("POST /p HTTP/1.1\r\nA: {long}\r\nContent-Length: 700\r\n\r\n{long}");
    let chunked = format!(
        "HTTP/1.1 500 No\r\nB: {long}\r\nTransfer-Encoding: chunked\r\n\r\n2bc\r\n{long}\r\n2bc\r\n{long}\r\n0\r\n\r\n"
    );
    let said: Vec<Said<'_>> = vec![
        (CLIENT, GET),
        (SERVER, OK),
        (CLIENT, posted.as_bytes()),
        (SERVER, chunked.as_bytes()),
        (CLIENT, b"HEAD /h HTTP/1.1\r\n\r\n"),
        (SERVER, b"HTTP/1.1 404 No\r\nContent-Length: 77\r\n\r\n"),
        (CLIENT, posted.as_bytes()),
        (SERVER, b"HTTP/1.1 204 Fine\r\n\r\n"),
        (CLIENT, GET),
        (SERVER, OK),
    ];
    let whole = play(&HTTP1, &said);
    assert_eq!(whole.len(), 5);
    let expected = summary(&whole);
    let mut numbers = Numbers::new(1);
    let mut right = 0;
    for seed in 0..1500 {
        let cuts = Cuts {
            seed,
            longest: 1 + numbers.below(3000),
            captured: 1 + numbers.below(1500),
        };
        let found = play_cut(&HTTP1, &said, cuts);
        let whole = cuts.captured >= cuts.longest;
        assert!(!whole || summary(&found) == expected, "{cuts:?}");
        for each in &found {
            check_against(each, &whole_by_stream(&said), cuts);
            right += usize::from(each.outcome != Outcome::Unknown);
        }
    }
    assert!(right > 3000, "{right}");
}

/// What was sent: method with route and status, in the order of the conversation.
fn whole_by_stream(said: &[Said<'_>]) -> Vec<(String, Option<u16>)> {
    let found = play(&HTTP1, said);
    found
        .iter()
        .map(|each| (operation(each), status_of(each)))
        .collect()
}

/// A pair that is given out must be one that was sent.
fn check_against(found: &Exchange, sent: &[(String, Option<u16>)], cuts: Cuts) {
    let same = sent.iter().any(|(sent, status)| {
        let method = found
            .method
            .as_deref()
            .is_none_or(|method| sent.starts_with(method));
        let route = found
            .route
            .as_deref()
            .is_none_or(|route| sent.ends_with(&format!(" {route}")));
        method && route && (status_of(found).is_none() || status_of(found) == *status)
    });
    assert!(same, "{found:?} of {cuts:?}");
}

fn operation(found: &Exchange) -> String {
    format!(
        "{} {}",
        found.method.as_deref().unwrap_or("-"),
        found.route.as_deref().unwrap_or("-")
    )
}

fn status_of(found: &Exchange) -> Option<u16> {
    match &found.status {
        Some(Status::Http(status)) => Some(*status),
        _ => None,
    }
}

fn new(joined: bool) -> Player {
    Player::new(&HTTP1, &Options::default(), joined)
}

fn one(said: &[Said<'_>]) -> Exchange {
    let mut found = play(&HTTP1, said);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Route, status, outcome and sizes; `?` when these are not known.
fn summary(found: &[Exchange]) -> Vec<String> {
    let line = |each: &Exchange| {
        format!(
            "{} {} {:?} {}+{}{}",
            each.route.as_deref().unwrap_or("-"),
            status_of(each).map_or("-".to_owned(), |status| status.to_string()),
            each.outcome,
            each.request_bytes,
            each.response_bytes,
            if each.request_size_known && each.response_size_known {
                ""
            } else {
                "?"
            }
        )
    };
    found.iter().map(line).collect()
}
