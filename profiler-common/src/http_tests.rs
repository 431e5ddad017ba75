extern crate std;

use std::format;

use super::*;

/// A connection as one of its sockets sees it, with what was counted.
struct Socket {
    is_client: bool,
    joined: bool,
    http: u32,
    pieces: usize,
    /// Classes of answered requests that are over.
    over: [u32; 16],
    number: usize,
    requests: u32,
}

impl Socket {
    fn new(is_client: bool, joined: bool) -> Self {
        Self {
            is_client,
            joined,
            http: 0,
            pieces: 0,
            over: [0; 16],
            number: 0,
            requests: 0,
        }
    }

    fn settle(&mut self) {
        if self.http & ANSWERED != 0 {
            self.over[self.number] = class_of(self.http);
            self.number += 1;
        }
    }

    fn moved(&mut self, to_server: bool, first: First, bytes: u64) {
        let is_sent = to_server == self.is_client;
        let is_first = self.pieces == 0 && !self.joined;
        self.pieces += 1;
        if !looks(self.http, is_sent) {
            return;
        }
        let moved = Moved {
            is_sent,
            is_first,
            end: UNDECIDED,
            bytes,
        };
        let (http, said) = take(self.http, moved, first);
        if said == Said::Request {
            self.settle();
            self.requests += 1;
        }
        self.http = http;
    }

    fn asks(&mut self, text: &str) {
        self.moved(true, first(text.as_bytes()), text.len() as u64);
    }

    fn answers(&mut self, text: &str) {
        self.moved(false, first(text.as_bytes()), text.len() as u64);
    }

    /// Classes of answers so far, the last one included.
    fn classes(mut self) -> ([u32; 16], usize) {
        self.settle();
        (self.over, self.number)
    }

    #[track_caller]
    fn has(self, expected: &[u32]) {
        let (classes, number) = self.classes();
        assert_eq!(&classes[..number], expected);
    }
}

fn first(bytes: &[u8]) -> First {
    let mut memory = [0; FIRST_BYTES];
    let known = bytes.len().min(FIRST_BYTES);
    memory[..known].copy_from_slice(&bytes[..known]);
    let (one, other) = memory.split_at(8);
    First {
        words: [one, other].map(|word| u64::from_ne_bytes(word.try_into().unwrap())),
        known: u32::try_from(known).unwrap(),
    }
}

const ENDS: [(bool, bool); 4] = [(true, true), (true, false), (false, true), (false, false)];

#[test]
fn requests_are_counted_by_the_class_of_their_answers_at_both_ends() {
    for (is_client, joined) in ENDS {
        let mut socket = Socket::new(is_client, joined);
        for (method, status) in [
            ("GET /", "200 OK"),
            ("POST /a", "404 Not Found"),
            ("PUT /b", "503 Service Unavailable"),
            ("DELETE /c", "204 No Content"),
            ("OPTIONS *", "302 Found"),
            ("PROPFIND /d", "207 Multi-Status"),
        ] {
            socket.asks(&format!("{method} HTTP/1.1\r\n\r\n"));
            socket.answers(&format!("HTTP/1.1 {status}\r\n\r\n"));
            socket.answers("GET / is what the body says");
        }
        assert_eq!(
            socket.http & END,
            if is_client { AT_CLIENT } else { AT_SERVER }
        );
        socket.has(&[2, 4, 5, 2, 3, 2]);
    }
}

#[test]
fn bodies_are_no_requests() {
    let mut socket = Socket::new(true, false);
    socket.asks("POST /upload HTTP/1.1\r\n\r\n");
    socket.asks("GET /this is a body");
    socket.answers("HTTP/1.1 200 OK\r\n\r\n");
    // Refused early, and sent on.
    socket.asks("POST /upload HTTP/1.1\r\n\r\n");
    socket.answers("HTTP/1.1 413 Content Too Large\r\n\r\n");
    assert_eq!(socket.http & UNSURE, 0);
    socket.asks("more of the body");
    assert_ne!(
        socket.http & UNSURE,
        0,
        "it may be a request that is not known as such"
    );
    assert_eq!(socket.requests, 2);
    socket.has(&[2, 4]);
}

#[test]
fn interim_answers_are_not_the_answer() {
    let mut socket = Socket::new(true, false);
    socket.asks("POST / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n");
    socket.answers("HTTP/1.1 100 Continue\r\n\r\n");
    socket.asks("the body");
    socket.answers("HTTP/1.1 500 Internal Server Error\r\n\r\n");
    socket.asks("GET / HTTP/1.1\r\n\r\n");
    socket.answers("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n");
    socket.answers("HTTP/1.1 200 OK\r\n\r\n");
    socket.asks("GET / HTTP/1.1\r\n\r\n");
    // The final answer in the same piece as the interim one has a class that nobody saw, and is the last of its kind.
    socket.answers("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n");
    socket.answers("a body");
    socket.asks("GET / HTTP/1.1\r\n\r\n");
    socket.answers("HTTP/1.1 404 Not Found\r\n\r\n");
    socket.has(&[5, 2, 0, 4]);
}

#[test]
fn what_speaks_something_else_is_left_alone() {
    for text in ["*1\r\n$4\r\nPING\r\n", "\u{16}\u{3}\u{1} hello"] {
        let mut socket = Socket::new(true, false);
        socket.asks(text);
        assert_eq!(socket.http, NONE, "{text:?}");
        assert!(!looks(socket.http, true) && !looks(socket.http, false));
    }
    // The server speaks first.
    let mut socket = Socket::new(true, false);
    socket.answers("220 ready for mail\r\n");
    assert_eq!(socket.http, NONE);
    // Of one that was there before, nobody knows until it has been looked at for a while.
    let mut socket = Socket::new(true, true);
    for _ in 0..=LAST_TRY {
        assert!(looks(socket.http, true));
        socket.asks("*1\r\n$4\r\nPING\r\n");
    }
    assert_eq!(
        socket.http,
        NONE | UNSURE,
        "or it was in the middle of a long body"
    );
    // Methods that are not known here, and empty lines before requests.
    for text in ["PURGE /x HTTP/1.1\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\n"] {
        let mut socket = Socket::new(false, false);
        socket.asks(text);
        assert_eq!(socket.http, NONE | UNSURE, "{text:?}");
    }
}

#[test]
fn a_connection_that_is_met_within_an_answer_counts_from_the_next_request_on() {
    let mut socket = Socket::new(false, true);
    socket.answers("HTTP/1.1 200 OK\r\n\r\n");
    socket.answers("the rest of a body");
    socket.asks("GET / HTTP/1.1\r\n\r\n");
    socket.answers("HTTP/1.1 301 Moved\r\n\r\n");
    socket.has(&[3]);
}

#[test]
fn upgrades_and_tunnels_end_it() {
    let mut socket = Socket::new(true, false);
    socket.asks("GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n");
    socket.answers("HTTP/1.1 101 Switching Protocols\r\n\r\n");
    socket.asks("GET / HTTP/1.1\r\n\r\n");
    assert!(!is_answer(socket.http, false));
    socket.has(&[1]);
    let mut socket = Socket::new(true, false);
    socket.asks("CONNECT there:443 HTTP/1.1\r\n\r\n");
    socket.answers("HTTP/1.1 403 Forbidden\r\n\r\n");
    socket.asks("CONNECT there:443 HTTP/1.1\r\n\r\n");
    socket.answers("HTTP/1.1 200 OK\r\n\r\n");
    socket.asks("GET / HTTP/1.1\r\n\r\n");
    socket.has(&[4, 2]);
}

#[test]
fn what_cannot_be_read_is_said() {
    let unread = First::NONE;
    let mut socket = Socket::new(true, false);
    socket.moved(true, unread, 100);
    assert_eq!(socket.http, NONE | UNSURE);
    let mut socket = Socket::new(true, false);
    socket.asks("GET / HTTP/1.1\r\n\r\n");
    socket.moved(false, unread, 100);
    assert_eq!(
        (class_of(socket.http), socket.http & UNSURE),
        (0, 0),
        "answered, nobody knows how"
    );
    socket.moved(true, unread, 100);
    assert_ne!(socket.http & UNSURE, 0);
}

#[test]
fn statuses_are_three_digits() {
    for (text, status) in [
        ("HTTP/1.1 200 OK\r", 200),
        ("HTTP/1.0 599 ?\r\n", 599),
        ("HTTP/1.1 600 ?\r\n", 0),
        ("HTTP/1.1 2x0 ?\r\n", 0),
        ("HTTP/2.0 200 OK\r", 0),
        ("HTTP/1.1 20", 0),
    ] {
        assert_eq!(status_of(first(text.as_bytes())), status, "{text:?}");
    }
}

#[test]
fn times_lie_in_their_buckets() {
    assert_eq!(time_bucket(0), 0);
    assert_eq!(time_bucket(u64::MAX), TIME_BUCKETS - 1);
    let mut last = 0;
    for bucket in 0..u32::try_from(TIME_BUCKETS).unwrap() {
        let from = bucket_from_ns(bucket);
        assert_eq!(time_bucket(from), bucket as usize);
        assert_eq!(time_bucket(from - 1), last, "{from}");
        last = bucket as usize;
    }
}

/// Of a connection that left the kernel's table and came back.
#[cfg(feature = "user")]
#[test]
fn what_was_known_of_a_connection_stays_known() {
    use crate::network::Connection;

    let joined = |earlier, later| {
        let of = |http| Connection {
            http,
            ..Connection::default()
        };
        of(earlier).joined(&of(later)).http
    };
    assert_eq!(joined(AT_SERVER | COUNTED, 0), AT_SERVER | COUNTED);
    let asked_again = joined(AT_SERVER | COUNTED, AT_SERVER | ASKED);
    assert_eq!(asked_again, AT_SERVER | COUNTED | ASKED);
    let forgotten = joined(AT_CLIENT | COUNTED, NONE);
    assert_eq!(forgotten, AT_CLIENT | COUNTED | UNSURE);
    let lost = joined(AT_CLIENT | ASKED, AT_CLIENT);
    assert_eq!(lost, AT_CLIENT | UNSURE);
    let upgraded = joined(AT_SERVER | SWITCHED, NONE);
    assert_eq!(upgraded, AT_SERVER | SWITCHED);
}
