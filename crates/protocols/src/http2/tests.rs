mod late;
mod properties;
mod unseen;

use super::HTTP2;
use crate::{
    Direction, Exchange, HTTP1, Limits, Messages, Opening, Options, Outcome, Protocol, Status,
    Verdict, WrongProtocol,
    hpack::encoder::Encoder,
    replay::{CLIENT, Numbers, Player, SERVER, STEP_NS},
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH: u8 = 5;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
const LAST: u8 = END_STREAM | END_HEADERS;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a length")
        .to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Both ends of a connection.
struct Peers {
    player: Player,
    client: Encoder,
    server: Encoder,
}

impl Peers {
    fn new() -> Self {
        let mut peers = Self::joined(false);
        peers.say(CLIENT, &[PREFACE, &frame(SETTINGS, 0, 0, b"")].concat());
        peers.say(SERVER, &frame(SETTINGS, 0, 0, b"\0\x03\0\0\0\x64"));
        peers
    }

    fn joined(joined: bool) -> Self {
        Self {
            player: Player::new(&HTTP2, &Options::default(), joined),
            client: Encoder::new(),
            server: Encoder::new(),
        }
    }

    fn say(&mut self, direction: Direction, bytes: &[u8]) {
        self.player.say(direction, bytes);
    }

    fn request(&mut self, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
        let head = [
            (":method", if more.is_empty() { "GET" } else { "POST" }),
            (":scheme", "http"),
            (":path", path),
            (":authority", "shop"),
        ];
        self.client.block(&[&head[..], more].concat())
    }

    fn answer(&mut self, status: &str, more: &[(&str, &str)]) -> Vec<u8> {
        self.server.block(&[&[(":status", status)], more].concat())
    }

    fn get(&mut self, stream: u32, path: &str) {
        let block = self.request(path, &[]);
        self.say(CLIENT, &frame(HEADERS, LAST, stream, &block));
    }

    fn ok(&mut self, stream: u32) {
        let block = self.answer("200", &[("server", "x")]);
        self.say(SERVER, &frame(HEADERS, LAST, stream, &block));
    }

    fn summary(&self) -> Vec<String> {
        summary(&self.player.out)
    }
}

#[test]
fn a_request_with_its_answer() {
    let mut peers = Peers::new();
    let block = peers.request(
        "/users/42?token=canary",
        &[("content-type", "text/x"), ("cookie", "canary")],
    );
    peers.say(CLIENT, &frame(HEADERS, END_HEADERS, 1, &block));
    peers.say(CLIENT, &frame(DATA, 0, 1, b"abc"));
    peers.say(CLIENT, &frame(DATA, END_STREAM, 1, b"de"));
    let block = peers.answer("404", &[("set-cookie", "canary")]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 1, &block));
    peers.say(SERVER, &frame(DATA, END_STREAM, 1, b"not here"));
    assert_eq!(
        peers.summary(),
        ["1 http2 POST /users/{n} 404 ClientError 5+8"]
    );
    let found = &peers.player.out[0];
    assert_eq!(found.authority.as_deref(), Some("shop"));
    assert_eq!(found.begin_ns, 3 * STEP_NS);
    assert_eq!(found.request_end_ns, Some(5 * STEP_NS));
    assert_eq!(found.first_byte_ns, Some(6 * STEP_NS));
    assert_eq!(found.end_ns, 7 * STEP_NS);
    assert!(!format!("{found:?}").contains("canary"));
}

#[test]
fn streams_end_in_any_order() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    peers.get(3, "/b");
    peers.get(5, "/c");
    peers.ok(5);
    peers.ok(1);
    peers.say(SERVER, &frame(RESET, 0, 3, b"\0\0\0\x02"));
    peers.get(7, "/d");
    peers.player.close();
    assert_eq!(
        peers.summary(),
        [
            "5 http2 GET /c 200 Ok 0+0",
            "1 http2 GET /a 200 Ok 0+0",
            "3 http2 GET /b - Broken 0+0",
            "7 http2 GET /d - Broken 0+0"
        ]
    );
}

#[test]
fn padding_and_priority_are_no_content() {
    let mut peers = Peers::new();
    let block = peers.request("/a", &[("x", "y")]);
    let head = [&[3, 0, 0, 0, 0, 9][..], &block, &[0; 3]].concat();
    peers.say(
        CLIENT,
        &frame(HEADERS, END_HEADERS | PADDED | PRIORITY, 1, &head),
    );
    peers.say(CLIENT, &frame(DATA, PADDED, 1, b"\x02abc\0\0"));
    peers.say(CLIENT, &frame(DATA, END_STREAM | PADDED, 1, b"\0"));
    peers.ok(1);
    assert_eq!(peers.summary(), ["1 http2 POST /a 200 Ok 3+0"]);
}

#[test]
fn blocks_go_on_in_other_frames() {
    let mut peers = Peers::new();
    let block = peers.request("/a", &[("user-agent", "long")]);
    let (one, rest) = block.split_at(3);
    let (two, three) = rest.split_at(4);
    let bytes = [
        frame(HEADERS, END_STREAM, 1, one),
        frame(CONTINUATION, 0, 1, two),
        frame(CONTINUATION, END_HEADERS, 1, three),
    ]
    .concat();
    peers.say(CLIENT, &bytes);
    peers.ok(1);
    assert_eq!(peers.summary(), ["1 http2 POST /a 200 Ok 0+0"]);
    assert_eq!(peers.player.out[0].headers[0].1, "long");
}

#[test]
fn interim_answers_are_not_the_answer() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    let block = peers.answer("103", &[("link", "x")]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 1, &block));
    peers.ok(1);
    assert_eq!(peers.summary(), ["1 http2 GET /a 200 Ok 0+0"]);
    assert_eq!(peers.player.out[0].first_byte_ns, Some(5 * STEP_NS));
}

#[test]
fn promises_keep_the_table_right_and_are_not_reported() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    let promised = peers
        .server
        .block(&[(":method", "GET"), (":path", "/pushed"), ("x-new", "1")]);
    peers.say(
        SERVER,
        &frame(
            PUSH,
            END_HEADERS,
            1,
            &[&[0, 0, 0, 2][..], &promised].concat(),
        ),
    );
    let block = peers.answer("200", &[("x-new", "1"), ("server", "x")]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 2, &block));
    peers.say(SERVER, &frame(DATA, END_STREAM, 2, b"pushed"));
    peers.ok(1);
    assert_eq!(peers.summary(), ["1 http2 GET /a 200 Ok 0+0"]);
    assert_eq!(
        peers.player.out[0].headers,
        [("server".to_owned(), "x".to_owned())]
    );
}

#[test]
fn a_server_that_goes_away_names_what_it_did_not_look_at() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    peers.get(3, "/b");
    peers.say(SERVER, &frame(GO_AWAY, 0, 0, b"\0\0\0\x01\0\0\0\0"));
    assert_eq!(peers.summary(), ["3 http2 GET /b - Broken 0+0"]);
    peers.ok(1);
    assert_eq!(peers.summary()[1], "1 http2 GET /a 200 Ok 0+0");
}

const GRPC: &[(&str, &str)] = &[
    ("content-type", "application/grpc+proto"),
    ("te", "trailers"),
];

#[test]
fn calls_of_grpc_have_a_status_and_messages() {
    let mut peers = Peers::new();
    let block = peers.request("/shop.v1.Orders/Get1234", GRPC);
    peers.say(CLIENT, &frame(HEADERS, END_HEADERS, 1, &block));
    peers.say(CLIENT, &frame(DATA, END_STREAM, 1, b"\0\0\0\0\x02ab"));
    let block = peers.answer("200", &GRPC[..1]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 1, &block));
    peers.say(SERVER, &frame(DATA, 0, 1, b"\0\0\0\0\x02ab\0\0\0\0"));
    peers.say(SERVER, &frame(DATA, 0, 1, b"\x01c\0\0\0\0\0"));
    let trailers = peers
        .server
        .block(&[("grpc-status", "5"), ("grpc-message", "canary")]);
    peers.say(SERVER, &frame(HEADERS, LAST, 1, &trailers));
    assert_eq!(
        peers.summary(),
        ["1 grpc POST /shop.v1.Orders/Get1234 grpc 5 ClientError 7+18"]
    );
    let found = &peers.player.out[0];
    assert_eq!(
        found.messages,
        Some(Messages {
            to_server: 1,
            to_client: 3
        })
    );
    assert!(!format!("{found:?}").contains("canary"));
}

#[test]
fn calls_of_grpc_that_fail_at_once_or_without_a_status() {
    let mut peers = Peers::new();
    for (stream, answer, more) in [
        (1, "200", &[("grpc-status", "14")][..]),
        (3, "503", &[]),
        (5, "200", &[]),
    ] {
        let block = peers.request("/s.S/M", GRPC);
        peers.say(CLIENT, &frame(HEADERS, LAST, stream, &block));
        let block = peers.answer(answer, more);
        peers.say(SERVER, &frame(HEADERS, LAST, stream, &block));
    }
    assert_eq!(
        peers.summary(),
        [
            "1 grpc POST /s.S/M grpc 14 ServerError 0+0",
            "3 grpc POST /s.S/M 503 ServerError 0+0",
            "5 grpc POST /s.S/M - Unknown 0+0"
        ]
    );
}

#[test]
fn a_websocket_is_an_upgrade_of_a_stream() {
    let mut peers = Peers::new();
    let block = peers.client.block(&[
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "shop"),
    ]);
    peers.say(CLIENT, &frame(HEADERS, END_HEADERS, 1, &block));
    let block = peers.answer("200", &[]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 1, &block));
    peers.say(CLIENT, &frame(DATA, 0, 1, b"hello"));
    peers.player.close();
    assert_eq!(peers.summary(), ["1 websocket CONNECT /chat 200 Ok 0+0"]);
}

#[test]
fn an_upgrade_from_http1_is_handed_over() {
    let mut player = Player::new(&HTTP1, &Options::default(), false);
    player.say(
        CLIENT,
        b"GET /a HTTP/1.1\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
    );
    let mut server = Encoder::new();
    let upgraded =
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    player.say(
        SERVER,
        &[&upgraded[..], &frame(SETTINGS, 0, 0, b"")].concat(),
    );
    player.say(CLIENT, &[PREFACE, &frame(SETTINGS, 0, 0, b"")].concat());
    let block = server.block(&[(":status", "200")]);
    player.say(SERVER, &frame(HEADERS, END_HEADERS, 1, &block));
    player.say(SERVER, &frame(DATA, END_STREAM, 1, b"abc"));
    assert_eq!(summary(&player.out), ["1 http2 GET /a 200 Ok 0+3"]);
    assert_eq!(player.decoder.protocol(), Protocol::Http2);
}

#[test]
fn joined_late_status_and_times_are_right_and_headers_unknown_or_right() {
    let mut peers = Peers::joined(true);
    // Sent before the observation.
    peers.request("/old", &[("user-agent", "old")]);
    peers.answer("200", &[("server", "old")]);
    peers.get(9, "/old");
    let block = peers.answer("200", &[("server", "old")]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 9, &block));
    peers.say(SERVER, &frame(DATA, END_STREAM, 9, b"abc"));
    let block = peers.request("/new", &[("user-agent", "old"), ("te", "new")]);
    peers.say(CLIENT, &frame(HEADERS, LAST, 11, &block));
    peers.ok(11);
    assert_eq!(
        peers.summary(),
        ["9 http2 GET - 200 Ok 0+3", "11 http2 POST /new 200 Ok 0+0"]
    );
    let text = format!("{:?}", peers.player.out);
    assert!(!text.contains("old") && text.contains("new"), "{text}");
}

#[test]
fn joined_in_the_middle_of_a_frame_the_next_whole_frames_are_read() {
    let mut peers = Peers::joined(true);
    let block = peers.request("/a", &[]);
    let head = frame(HEADERS, LAST, 1, &block);
    peers.say(CLIENT, &head[3..]);
    peers.say(CLIENT, &[0xff; 40]);
    let data = frame(DATA, 0, 1, &[7; 40]);
    peers.say(SERVER, &data[20..]);
    peers.get(3, "/b");
    peers.ok(3);
    assert_eq!(peers.summary(), ["3 http2 GET /b 200 Ok 0+0"]);
}

#[test]
fn content_that_was_not_captured_is_counted() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    let block = peers.answer("200", &[]);
    let bytes = [
        frame(HEADERS, END_HEADERS, 1, &block),
        frame(DATA, END_STREAM, 1, &[7; 5000]),
    ]
    .concat();
    peers.player.say_captured(SERVER, &bytes, 100);
    peers.get(3, "/b");
    peers.ok(3);
    assert_eq!(
        peers.summary(),
        ["1 http2 GET /a 200 Ok 0+5000", "3 http2 GET /b 200 Ok 0+0"]
    );
}

#[test]
fn frames_that_were_not_captured_lose_the_table_and_not_the_streams() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    peers.get(3, "/b");
    let block = peers.answer("200", &[("server", "x")]);
    let bytes = [
        frame(HEADERS, END_HEADERS, 1, &block),
        frame(DATA, 0, 1, &[7; 100]),
        frame(DATA, 0, 1, &[7; 100]),
    ]
    .concat();
    peers.player.say_captured(SERVER, &bytes, 60);
    peers.ok(3);
    peers.say(SERVER, &frame(DATA, END_STREAM, 1, b"end"));
    assert_eq!(
        peers.summary(),
        ["3 http2 GET /b 200 Ok 0+0?", "1 http2 GET /a 200 Ok 0+103?"]
    );
    // The header was said before the loss.
    assert_eq!(peers.player.out[0].headers, []);
}

#[test]
fn a_gap_makes_unknown_what_may_have_ended() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    let block = peers.answer("200", &[]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 1, &block));
    peers.player.gap(SERVER, None);
    peers.get(3, "/b");
    peers.ok(3);
    peers.player.close();
    assert_eq!(
        peers.summary(),
        [
            "3 http2 GET /b 200 Ok 0+0",
            "1 http2 GET /a 200 Unknown 0+0?"
        ]
    );
}

#[test]
fn a_gap_of_known_length_within_content_is_counted() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    let block = peers.answer("200", &[]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 1, &block));
    let data = frame(DATA, END_STREAM, 1, &[7; 100]);
    peers.say(SERVER, &data[..50]);
    peers.player.gap(SERVER, Some(20));
    peers.say(SERVER, &data[70..]);
    assert_eq!(peers.summary(), ["1 http2 GET /a 200 Ok 0+100"]);
}

#[test]
fn larger_frames_come_after_the_setting_only() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    let block = peers.answer("200", &[]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 1, &block));
    peers.say(CLIENT, &frame(SETTINGS, 0, 0, b"\0\x05\0\x01\0\0"));
    peers.say(SERVER, &frame(DATA, END_STREAM, 1, &vec![7; 60_000]));
    assert_eq!(peers.summary(), ["1 http2 GET /a 200 Ok 0+60000"]);
    let mut peers = Peers::new();
    peers.get(1, "/a");
    peers.say(SERVER, &frame(DATA, END_STREAM, 1, &vec![7; 60_000]));
    assert_eq!(peers.summary(), [""; 0]);
}

#[test]
fn very_many_streams_cost_bounded_memory() {
    let options = Options {
        limits: Limits {
            open_exchanges: 100,
            ..Limits::default()
        },
        ..Options::default()
    };
    let mut peers = Peers::new();
    let mut player = Player::new(&HTTP2, &options, false);
    player.say(CLIENT, PREFACE);
    let mut count = 0;
    for stream in 0..50_000 {
        let block = peers.request("/a", &[]);
        player.say(CLIENT, &frame(HEADERS, LAST, 2 * stream + 1, &block));
        count += player.out.len();
        assert!(
            player
                .out
                .drain(..)
                .all(|found| found.outcome == Outcome::Unknown)
        );
    }
    assert_eq!(count, 50_000 - 100);
}

#[test]
fn a_short_block_that_names_long_headers_is_bounded() {
    let mut peers = Peers::new();
    let value = "v".repeat(3000);
    let mut block = peers.client.block(&[(":method", "GET"), ("x", &value)]);
    block.extend([0xbe; 10_000]);
    peers.say(CLIENT, &frame(HEADERS, LAST, 1, &block));
    peers.ok(1);
    assert_eq!(peers.summary(), ["1 http2 GET - 200 Ok 0+0"]);
}

#[test]
fn other_bytes_are_another_protocol() {
    let try_say = |direction, bytes: &[u8]| {
        Player::new(&HTTP2, &Options::default(), false).try_say(direction, bytes, 99)
    };
    assert_eq!(try_say(CLIENT, b"GET / HTTP/1.1\r\n"), Err(WrongProtocol));
    assert_eq!(
        try_say(SERVER, b"HTTP/1.1 400 Bad Request\r\n"),
        Err(WrongProtocol)
    );
    assert_eq!(
        try_say(CLIENT, b"\x16\x03\x01\x02\0\x01"),
        Err(WrongProtocol)
    );
}

fn recognised(to_server: &[u8], to_client: &[u8], joined: bool) -> Verdict {
    (HTTP2.recognise)(&Opening {
        to_server,
        to_client,
        joined,
        server_port: 443,
        is_udp: false,
    })
}

#[test]
fn openings_are_recognised() {
    for length in 0..PREFACE.len() {
        assert_eq!(
            recognised(&PREFACE[..length], b"", false),
            Verdict::Undecided
        );
    }
    assert_eq!(recognised(PREFACE, b"", false), Verdict::Yes);
    assert_eq!(recognised(b"POST", b"", false), Verdict::No);
    let settings = frame(SETTINGS, 0, 0, b"");
    assert_eq!(recognised(b"", &settings, false), Verdict::Undecided);
    assert_eq!(recognised(b"", b"220 mail server", false), Verdict::No);
    let mut peers = Peers::new();
    let request = frame(HEADERS, LAST, 77, &peers.request("/a", &[]));
    let answer = frame(
        HEADERS,
        END_HEADERS,
        77,
        &peers.answer("200", &[("a", "b")]),
    );
    assert_eq!(recognised(&request, b"", true), Verdict::Yes);
    assert_eq!(recognised(b"", &answer, true), Verdict::Yes);
    assert_eq!(recognised(b"", &request, true), Verdict::Undecided);
    let ping = frame(PING, 0, 0, &[0; 8]);
    assert_eq!(recognised(&ping, b"", true), Verdict::Undecided);
    assert_eq!(recognised(&ping.repeat(3), b"", true), Verdict::Yes);
    // A head that goes on behind what is looked at: Kafka would take this for Produce.
    for control in [ping, frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1, 0])] {
        let next = control.len() + 9;
        let long = [control, frame(HEADERS, LAST, 77, &[0x40; 3000])].concat();
        assert_eq!(recognised(&long[..512], b"", true), Verdict::Yes);
        assert_eq!(recognised(&long[..next - 1], b"", true), Verdict::Undecided);
    }
}

#[test]
fn random_bytes_and_tls_are_not_recognised() {
    let mut numbers = Numbers::new(7);
    for _ in 0..30_000 {
        let mut bytes: Vec<u8> = (0..64)
            .map(|_| u8::try_from(numbers.below(256)).expect("a byte"))
            .collect();
        assert_ne!(recognised(&bytes, &bytes, true), Verdict::Yes);
        bytes[..3].copy_from_slice(b"\x17\x03\x03");
        assert_eq!(recognised(&bytes, &bytes, true), Verdict::No);
    }
}

/// Joined at random, cut at random, captured in part: what is given out is right or unknown.
#[test]
fn any_capture_is_right_or_unknown() {
    let mut complete = 0;
    for seed in 1..200 {
        let mut numbers = Numbers::new(seed);
        let (mut client, mut server) = (Encoder::new(), Encoder::new());
        let joined = numbers.below(3) == 0;
        let mut player = Player::new(&HTTP2, &Options::default(), joined);
        if !joined {
            player.say(CLIENT, PREFACE);
        }
        let captured = [usize::MAX, 2000, 300, 60][numbers.below(4)];
        let longest = [1, 20, 400, 5000][numbers.below(4)];
        for number in 0..40_usize {
            let stream = u32::try_from(2 * number + 1).expect("a number");
            let path = format!("/path-{}/x{}", "ab".repeat(number % 7), number % 10);
            let method = ["GET", "POST", "DELETE"][number % 3];
            let block = client.block(&[
                (":method", method),
                (":scheme", "https"),
                (":path", &path),
                (":authority", "shop"),
                ("user-agent", &"u".repeat(number % 5 * 30)),
            ]);
            let status = ["200", "201", "404", "503"][number % 4];
            let answer = server.block(&[(":status", status), ("server", "x")]);
            let content = vec![7; numbers.below(3000)];
            let to_server = frame(HEADERS, LAST, stream, &block);
            let to_client = [
                frame(HEADERS, END_HEADERS, stream, &answer),
                frame(DATA, END_STREAM, stream, &content),
            ]
            .concat();
            for (direction, bytes) in [(CLIENT, to_server), (SERVER, to_client)] {
                if joined && number < 5 {
                    continue;
                }
                if numbers.below(30) == 0 {
                    player.gap(
                        direction,
                        (numbers.below(2) == 0).then_some(bytes.len() as u64),
                    );
                    continue;
                }
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let length = (1 + numbers.below(longest)).min(rest.len());
                    player.say_captured(direction, &rest[..length], captured);
                    rest = &rest[length..];
                }
            }
        }
        player.close();
        for found in &player.out {
            let number = usize::try_from(found.stream / 2).expect("a number");
            let path = format!("/path-{}/x{}", "ab".repeat(number % 7), number % 10);
            let method = ["GET", "POST", "DELETE"][number % 3];
            let status = [200, 201, 404, 503][number % 4];
            assert!(
                found.route.as_ref().is_none_or(|route| *route == path),
                "{seed} {found:?}"
            );
            assert!(
                found.method.as_deref().is_none_or(|sent| sent == method),
                "{seed} {found:?}"
            );
            assert!(
                found
                    .status
                    .as_ref()
                    .is_none_or(|sent| *sent == Status::Http(status)),
                "{seed} {found:?}"
            );
            complete += usize::from(found.outcome != Outcome::Unknown && found.route.is_some());
        }
        if captured == usize::MAX && !joined && seed % 50 == 0 {
            assert!(player.out.len() >= 20, "{seed}: {}", player.out.len());
        }
    }
    assert!(complete > 1500, "{complete}");
}

fn summary(found: &[Exchange]) -> Vec<String> {
    let line = |each: &Exchange| {
        let status = match &each.status {
            Some(Status::Http(status)) => status.to_string(),
            Some(Status::Grpc(status)) => format!("grpc {status}"),
            _ => "-".to_owned(),
        };
        format!(
            "{} {} {} {} {status} {:?} {}+{}{}",
            each.stream,
            each.protocol.name(),
            each.method.as_deref().unwrap_or("-"),
            each.route.as_deref().unwrap_or("-"),
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
