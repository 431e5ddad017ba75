use super::super::HTTP1;
use crate::{
    Body, Exchange, Options, Privacy,
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
