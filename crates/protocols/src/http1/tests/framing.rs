//! Where messages end when their heads say more than one thing of it (RFC 9112, section 6.3).

use super::{GET, OK, new, one, summary};
use crate::replay::{CLIENT, SERVER};

#[test]
fn chunks_stand_above_a_length() {
    for first in [
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let body = format!("{first}\r\n5\r\nhello\r\n0\r\n\r\n");
        let request = format!("POST /a HTTP/1.1\r\n{body}");
        let answer = format!("HTTP/1.1 200 OK\r\n{body}");
        let mut player = new(false);
        for _ in 0..2 {
            player.say(CLIENT, request.as_bytes());
            player.say(SERVER, answer.as_bytes());
        }
        assert_eq!(summary(&player.out), ["/a 200 Ok 5+5"; 2]);
    }
}

#[test]
fn lengths_that_agree_are_one_and_others_are_not_believed() {
    let found = one(&[
        (
            CLIENT,
            b"POST /a HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\nabc",
        ),
        (
            SERVER,
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        ),
    ]);
    assert_eq!(summary(&[found]), ["/a 200 Ok 3+2"]);
    for lengths in [
        "Content-Length: 3\r\nContent-Length: 5",
        "Content-Length: 3, 5",
        "Content-Length: -3",
        "Content-Length: 3x",
    ] {
        let mut player = new(false);
        for _ in 0..2 {
            player.say(
                CLIENT,
                format!("POST /a HTTP/1.1\r\n{lengths}\r\n\r\nabc").as_bytes(),
            );
            player.say(SERVER, OK);
        }
        assert_eq!(summary(&player.out), ["/a 200 Ok 0+5?"; 2], "{lengths}");
        assert_eq!(player.decoder.gaps(), 0);
        // The end of such an answer shows only by the next request.
        player.say(CLIENT, GET);
        player.say(
            SERVER,
            format!("HTTP/1.1 200 OK\r\n{lengths}\r\n\r\nabcdef").as_bytes(),
        );
        assert_eq!(player.out.len(), 2, "{lengths}");
        player.say(CLIENT, GET);
        player.say(SERVER, OK);
        assert_eq!(
            summary(&player.out[2..]),
            ["/users/{n} 200 Ok 0+6?", "/users/{n} 200 Ok 0+5"],
            "{lengths}"
        );
    }
}
