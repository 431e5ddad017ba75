use super::super::HTTP1;
use crate::{
    Body, Direction, Exchange, Options, Privacy,
    replay::{CLIENT, Player, SERVER, Said},
};

fn play(limit: usize, said: &[Said<'_>]) -> Exchange {
    let options = Options {
        privacy: Privacy {
            body_bytes: limit,
            ..Privacy::default()
        },
        ..Options::default()
    };
    let mut player = Player::new(&HTTP1, &options, false);
    for (direction, bytes) in said {
        player.say(*direction, bytes);
    }
    let [found] = player.out.as_slice() else {
        panic!("{:?}", player.out);
    };
    found.clone()
}

fn whole(text: &str) -> Body {
    Body {
        bytes: text.into(),
        is_cut: false,
    }
}

const POST: &[u8] = b"POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc";
const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";

#[test]
fn bodies_are_kept_only_when_they_are_asked_for() {
    let said: [Said<'_>; 3] = [(CLIENT, POST), (CLIENT, b"def"), (SERVER, CHUNKED)];
    let none = play(0, &said);
    assert_eq!((none.request_body, none.response_body), (None, None));
    let found = play(100, &said);
    assert_eq!(found.request_body, Some(whole("abcdef")));
    assert_eq!(found.response_body, Some(whole("hello")));
}

#[test]
fn no_more_is_kept_than_was_asked_for() {
    let found = play(4, &[(CLIENT, POST), (CLIENT, b"def"), (SERVER, CHUNKED)]);
    let cut = |text: &str| {
        Some(Body {
            bytes: text.into(),
            is_cut: true,
        })
    };
    assert_eq!(found.request_body, cut("abcd"));
    assert_eq!(found.response_body, cut("hell"));
}

#[test]
fn nothing_behind_a_hole_is_kept() {
    let options = Options {
        privacy: Privacy {
            body_bytes: 100,
            ..Privacy::default()
        },
        ..Options::default()
    };
    let mut player = Player::new(&HTTP1, &options, false);
    player.say(CLIENT, b"GET / HTTP/1.1\r\n\r\n");
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nabcd";
    player.say_captured(SERVER, answer, answer.len() - 2);
    player.say(SERVER, b"efgh");
    let [found] = player.out.as_slice() else {
        panic!("{:?}", player.out);
    };
    let body = found.response_body.clone().unwrap();
    assert_eq!((body.bytes.as_slice(), body.is_cut), (&b"ab"[..], true));
    assert_eq!(found.response_bytes, 8);
}

/// Requests and answers, each with how many of its first bytes were captured; what came of them.
fn sizes(said: &[(Direction, &[u8], usize)]) -> Vec<(Option<u64>, Option<u64>)> {
    let mut player = Player::new(&HTTP1, &Options::default(), false);
    for (direction, bytes, captured) in said {
        player.say_captured(*direction, bytes, *captured);
    }
    player.close();
    let size = |is_known: bool, bytes| is_known.then_some(bytes);
    let of = |found: &Exchange| {
        (
            size(found.request_size_known, found.request_bytes),
            size(found.response_size_known, found.response_bytes),
        )
    };
    player.out.iter().map(of).collect()
}

const GET: &[u8] = b"GET /next HTTP/1.1\r\n\r\n";
const NONE: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
const WHOLE: usize = usize::MAX;

fn long_head(first: &str, framing: &str, body: usize) -> Vec<u8> {
    let cookie = "c".repeat(1500);
    let mut bytes = format!("{first}\r\n{framing}\r\nCookie: {cookie}\r\n\r\n").into_bytes();
    bytes.extend(vec![b'x'; body]);
    bytes
}

#[test]
fn a_body_behind_a_cut_head_is_as_long_as_the_head_says() {
    let post = long_head("POST / HTTP/1.1", "Content-Length: 200", 200);
    let ok = long_head("HTTP/1.1 200 OK", "Content-Length: 300", 300);
    let twice = [
        (CLIENT, &*post, 1024),
        (SERVER, &*ok, 1024),
        (CLIENT, &*post, 1024),
        (SERVER, NONE, WHOLE),
    ];
    assert_eq!(
        sizes(&twice),
        [(Some(200), Some(300)), (Some(200), Some(0))]
    );
    // The body in calls of its own.
    let (head, body) = post.split_at(post.len() - 200);
    let apart = [
        (CLIENT, head, 1024),
        (CLIENT, &body[..150], 100),
        (CLIENT, &body[150..], 1),
        (SERVER, NONE, WHOLE),
    ];
    assert_eq!(sizes(&apart), [(Some(200), Some(0))]);
}

#[test]
fn a_body_that_did_not_come_whole_or_without_a_known_length_has_no_size() {
    let cut = long_head("POST / HTTP/1.1", "Content-Length: 20000", 200);
    let none = long_head("POST / HTTP/1.1", "X: y", 200);
    let chunks = long_head("POST / HTTP/1.1", "Transfer-Encoding: chunked", 200);
    for post in [cut, none, chunks] {
        let said = [
            (CLIENT, &*post, 1024),
            (SERVER, NONE, WHOLE),
            (CLIENT, GET, WHOLE),
            (SERVER, NONE, WHOLE),
        ];
        assert_eq!(sizes(&said), [(None, Some(0)), (Some(0), Some(0))]);
    }
}

#[test]
fn a_chunk_whose_end_was_not_captured_is_counted_once_the_answer_has_come() {
    let chunk = |bytes: usize, end: &str| {
        let data = "x".repeat(bytes);
        format!("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{bytes:x}\r\n{data}\r\n{end}")
    };
    let whole = chunk(1000, "0\r\n\r\n");
    let said = [
        (CLIENT, whole.as_bytes(), 1024),
        (SERVER, NONE, WHOLE),
        (CLIENT, GET, WHOLE),
        (SERVER, NONE, WHOLE),
    ];
    assert_eq!(sizes(&said), [(Some(1000), Some(0)), (Some(0), Some(0))]);
    // What looks like the end may be another chunk.
    let two = chunk(1000, "1000\r");
    let said = [
        (CLIENT, two.as_bytes(), 1024),
        (CLIENT, b"\nyyyy", WHOLE),
        (SERVER, NONE, WHOLE),
    ];
    assert_eq!(sizes(&said), [(None, Some(0))]);
    // Several chunks in what was not captured.
    let many = chunk(1000, "3\r\nabc\r\n0\r\n\r\n");
    let said = [(CLIENT, many.as_bytes(), 1024), (SERVER, NONE, WHOLE)];
    assert_eq!(sizes(&said), [(None, Some(0))]);
}
