extern crate std;

use std::{vec, vec::Vec};

use super::{
    head::{ACK, END_HEADERS, END_STREAM},
    *,
};
use crate::http::{AT_CLIENT, AT_SERVER, First, HTTP2, Moved, Said, UNDECIDED, UNSURE, take};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A status of 200 in a block.
const GOOD: u8 = 0x88;
/// Requests in a row that have a place.
const PLACES: u32 = 224;

fn frame(kind: u8, flags: u32, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, u8::try_from(flags).unwrap()]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn headers(flags: u32, stream: u32, block: &[u8]) -> Vec<u8> {
    frame(1, flags | END_HEADERS, stream, block)
}

fn settings() -> Vec<u8> {
    frame(4, 0, 0, &[0, 3, 0, 0, 0, 100])
}

/// A connection as one of its ends sees it.
struct Followed {
    http2: Http2,
    /// Class and time of each request that is over.
    over: Vec<(u32, Option<u64>)>,
    open: u32,
    missed: u32,
    lost: u32,
    is_other: bool,
    now_ns: u64,
}

impl Followed {
    fn new() -> Self {
        Self {
            http2: Http2::default(),
            over: Vec::new(),
            open: 0,
            missed: 0,
            lost: 0,
            is_other: false,
            now_ns: 100,
        }
    }

    fn note(&mut self, became: Became) {
        match became {
            Became::Nothing => {}
            Became::Open => self.open += 1,
            Became::Missed => self.missed += 1,
            Became::Over { began_ns, class } => {
                self.open -= 1;
                let time = (began_ns != 0).then(|| self.now_ns - began_ns);
                self.over.push((class, time));
            }
        }
    }

    /// As the kernel side goes through a piece.
    fn moved(&mut self, is_answer: bool, mut bytes: &[u8]) {
        self.now_ns += 10;
        while !bytes.is_empty() {
            let frames = self.http2.frames(is_answer);
            let (have, size) = match frames.next(bytes.len() as u64) {
                Next::Payload(count) => {
                    frames.rest -= u32::try_from(count).unwrap();
                    bytes = &bytes[usize::try_from(count).unwrap()..];
                    let became = self.http2.passed(is_answer);
                    self.note(became);
                    continue;
                }
                Next::Head { have, size } => (have as usize, usize::try_from(size).unwrap()),
                Next::None => panic!("damaged"),
            };
            frames.head[have..have + size].copy_from_slice(&bytes[..size]);
            let word = |at: usize| u64::from_ne_bytes(frames.head[at..at + 8].try_into().unwrap());
            let words = [word(0), word(8)];
            let [known, more] = [have, size].map(|bytes| u32::try_from(bytes).unwrap());
            match self.http2.begin_frame(is_answer, words, known, more) {
                Taken::More => bytes = &bytes[size..],
                Taken::Begun { head, header_bytes } => {
                    bytes = &bytes[header_bytes as usize..];
                    let became = self.http2.take(is_answer, head, words, self.now_ns);
                    self.note(became);
                    let became = self.http2.passed(is_answer);
                    self.note(became);
                }
                Taken::Garbage => {
                    self.is_other |= self.http2.lose(is_answer);
                    self.lost += 1;
                    return;
                }
            }
        }
    }

    fn asks(&mut self, bytes: &[u8]) {
        self.moved(false, bytes);
    }

    fn answers(&mut self, bytes: &[u8]) {
        self.moved(true, bytes);
    }

    fn classes(&self) -> Vec<u32> {
        self.over.iter().map(|(class, _)| *class).collect()
    }
}

/// An answer's first header block, and whether it is all of the answer: the class of its status.
fn class_of(block: &[u8], is_last: bool) -> u32 {
    let mut followed = Followed::new();
    followed.asks(&[PREFACE, &headers(END_STREAM, 1, &[0x82])].concat());
    let last = if is_last { END_STREAM } else { 0 };
    followed.answers(&headers(last, 1, block));
    if !is_last {
        followed.answers(&frame(0, END_STREAM, 1, b"body"));
    }
    assert_eq!((followed.over.len(), followed.open), (1, 0));
    followed.over[0].0
}

#[test]
fn a_status_is_read_where_it_stands_in_the_block_itself() {
    for (block, class) in [
        (&[GOOD][..], 2),
        (&[0x89, 0xc0], 2),
        (&[0x8b], 3),
        (&[0x8d, 1, 2, 3, 4, 5, 6, 7, 8], 4),
        (&[0x8e], 5),
        // Literals: with the name of entry 8, and of 14 as Go's encoder has it.
        (b"\x48\x03503", 5),
        (b"\x4e\x03201", 2),
        (b"\x08\x03429", 4),
        // Their Huffman codes, by RFC 7541, C.6.1: 302, and 307.
        (&[0x48, 0x82, 0x64, 0x02], 3),
        (&[0x48, 0x83, 0x64, 0x0e, 0xff], 3),
        // 503 and 404 begin with six bits, 200 and 100 with five.
        (&[0x48, 0x82, 0x6c, 0x19], 5),
        (&[0x48, 0x82, 0x68, 0x1a], 4),
        (&[0x48, 0x82, 0x10, 0x01], 2),
        // The table's size first.
        (&[0x20, GOOD], 2),
        (&[0x3f, 0xe1, 0x1f, 0x8d], 4),
        (&[0x3f, 0x01, 0x8d], 4),
        // Of the encoder's own table, and another field.
        (&[0xbe], 0),
        (b"\x58\x03abc", 0),
        (&[0x40, 0x05], 0),
    ] {
        assert_eq!(class_of(block, false), class, "{block:x?}");
    }
}

#[test]
fn a_head_alone_with_a_status_of_200_may_be_a_call_that_failed() {
    assert_eq!(class_of(&[GOOD], true), 0);
    assert_eq!(class_of(b"\x48\x03200", true), 0);
    assert_eq!(class_of(&[0x89], true), 2);
    assert_eq!(class_of(&[0x8d], true), 4);
}

/// Two calls on one connection, by direction and in their order.
fn calls() -> Vec<(bool, Vec<u8>)> {
    vec![
        (true, settings()),
        (
            false,
            [
                PREFACE,
                &settings(),
                &frame(8, 0, 0, &[0, 1, 0, 0]),
                &headers(0, 1, &[0x83, 0x86, 0x41, 3, 1, 2, 3]),
                &frame(0, END_STREAM, 1, &[0; 40]),
            ]
            .concat(),
        ),
        (
            true,
            [
                frame(4, ACK, 0, &[]),
                headers(0, 1, &[GOOD, 0xc0, 0xc1]),
                frame(0, 0, 1, &[7; 300]),
                headers(END_STREAM, 1, &[0xbf]),
            ]
            .concat(),
        ),
        (
            false,
            [headers(END_STREAM, 3, &[0x82]), frame(6, 0, 0, &[0; 8])].concat(),
        ),
        (
            true,
            [
                headers(0, 3, b"\x48\x03103\x01"),
                headers(0, 3, &[0x8d, 0xc0]),
                frame(0, END_STREAM, 3, &[]),
            ]
            .concat(),
        ),
    ]
}

#[test]
fn calls_are_counted_however_they_are_cut_into_pieces() {
    for size in (1..60).chain([1000]) {
        let mut followed = Followed::new();
        for (is_answer, bytes) in calls() {
            for piece in bytes.chunks(size) {
                followed.moved(is_answer, piece);
            }
        }
        // How a call went stands in its trailers; an interim answer is none.
        assert_eq!(followed.classes(), [0, 4], "{size}");
        assert_eq!((followed.open, followed.lost, followed.missed), (0, 0, 0));
        if size == 1000 {
            assert_eq!(followed.over, [(0, Some(10)), (4, Some(10))]);
        }
    }
}

#[test]
fn a_connection_from_before_is_followed_from_its_next_frame_on() {
    let mut followed = Followed::new();
    // The rest of an upload, and the end of an answer to a request that was not seen.
    followed.asks(&[b'x'; 50]);
    followed.answers(&headers(END_STREAM, 7, &[0xbf]));
    assert_eq!((followed.lost, followed.over.len()), (1, 0));
    followed.asks(&headers(END_STREAM, 9, &[0x82]));
    followed.answers(&[headers(0, 5, &[GOOD]), headers(0, 9, &[GOOD])].concat());
    followed.answers(&frame(0, END_STREAM, 9, b"body"));
    assert_eq!((followed.classes(), followed.open), (vec![2], 0));
    // What is no frame is not taken for one.
    followed.answers(b"HTTP/1.1 200 OK\r\n");
    assert_eq!((followed.lost, followed.is_other), (2, false));
    // While requests cannot be followed, answers to them are left alone.
    followed.asks(&[b'x'; 50]);
    followed.answers(&[headers(0, 11, &[GOOD]), frame(0, END_STREAM, 11, b"body")].concat());
    followed.asks(&headers(END_STREAM, 13, &[0x82]));
    followed.answers(&headers(END_STREAM, 13, &[0x89]));
    assert_eq!((followed.classes(), followed.open), (vec![2, 2], 0));
}

#[test]
fn something_else_that_begins_like_a_frame_is_found_out() {
    let mut followed = Followed::new();
    followed.asks(b"\x00\x00\x01\x01\x00\x00\x00\x00\x05\x00\x0alibrdkafka");
    assert_eq!((followed.lost, followed.is_other), (1, true));
}

#[test]
fn an_answer_may_be_noted_before_its_request() {
    let mut followed = Followed::new();
    followed.asks(PREFACE);
    followed.answers(&headers(0, 1, &[GOOD]));
    followed.asks(&headers(END_STREAM, 1, &[0x82]));
    followed.answers(&frame(0, END_STREAM, 1, b"body"));
    followed.answers(&[headers(0, 3, &[0x8e]), frame(0, END_STREAM, 3, &[])].concat());
    assert_eq!((followed.classes(), followed.open), (vec![2], 1));
    followed.asks(&headers(END_STREAM, 3, &[0x82]));
    // When they began is not known.
    assert_eq!(
        (followed.over, followed.open),
        (vec![(2, None), (5, None)], 0)
    );
}

#[test]
fn a_reset_may_be_noted_before_its_request() {
    let mut followed = Followed::new();
    followed.asks(PREFACE);
    // One that is refused, and one that is reset behind its answer.
    followed.answers(&frame(3, 0, 1, &[0, 0, 0, 7]));
    followed.asks(&headers(END_STREAM, 1, &[0x82]));
    followed.answers(&[headers(END_STREAM, 3, &[0x8d]), frame(3, 0, 3, &[0; 4])].concat());
    followed.asks(&headers(0, 3, &[0x82]));
    assert_eq!((followed.classes(), followed.open), (vec![BROKEN, 4], 0));
}

#[test]
fn trailers_behind_an_answer_are_no_request() {
    let mut followed = Followed::new();
    followed.asks(&[PREFACE, &headers(0, 1, &[0x82])].concat());
    followed.answers(&headers(END_STREAM, 1, &[0x8d]));
    followed.asks(&headers(END_STREAM, 1, &[0x40, 1, b'a', 1, b'b']));
    assert_eq!((followed.classes(), followed.open), (vec![4], 0));
}

#[test]
fn frames_that_no_peer_may_send_end_the_count() {
    for (wrong, kind, length) in [
        (true, 6, 9),
        (true, 8, 5),
        (true, 4, 7),
        (true, 0x77, 3),
        (false, 0x4d, 3),
    ] {
        let mut followed = Followed::new();
        followed.asks(&[PREFACE, &headers(0, 1, &[0x82])].concat());
        followed.asks(&frame(kind, 0, 0, &vec![0; length]));
        assert_eq!(followed.lost > 0, wrong, "{kind}");
    }
}

#[test]
fn streams_that_stay_open_find_a_place_although_their_numbers_are_alike() {
    let mut followed = Followed::new();
    followed.asks(PREFACE);
    // All in one set, which has room for seven, and each in another one.
    for watch in 0..16 {
        followed.asks(&headers(0, 1 + 64 * watch, &[0x82]));
    }
    assert_eq!((followed.open, followed.missed), (16, 0));
}

#[test]
fn a_reset_stream_is_broken_and_a_promised_one_no_request() {
    let mut followed = Followed::new();
    followed.asks(&[PREFACE, &headers(0, 1, &[0x82]), &headers(0, 3, &[0x82])].concat());
    followed.answers(&headers(0, 2, &[GOOD]));
    followed.asks(&frame(3, 0, 1, &[0, 0, 0, 8]));
    followed.answers(&headers(0, 3, &[GOOD]));
    followed.answers(&[frame(3, 0, 3, &[0, 0, 0, 0]), frame(3, 0, 3, &[0; 4])].concat());
    assert_eq!((followed.classes(), followed.open), (vec![BROKEN; 2], 0));
}

#[test]
fn a_long_stream_takes_no_place_from_later_ones() {
    let mut followed = Followed::new();
    followed.asks(&[PREFACE, &headers(0, 1, &[0x83])].concat());
    for stream in (3..4001).step_by(2) {
        followed.asks(&headers(END_STREAM, stream, &[0x82]));
        followed.answers(&headers(END_STREAM, stream, &[0x89]));
    }
    assert_eq!((followed.over.len(), followed.open), (1999, 1));
    assert_eq!(followed.missed, 0);
}

#[test]
fn requests_that_find_no_place_are_known_to_be_missing() {
    let mut followed = Followed::new();
    followed.asks(PREFACE);
    for request in 0..PLACES + 5 {
        followed.asks(&headers(0, 1 + 2 * request, &[0x82]));
    }
    assert_eq!((followed.open, followed.missed), (PLACES, 5));
    // Their answers are none of others.
    for request in 0..PLACES + 5 {
        followed.answers(&headers(END_STREAM, 1 + 2 * request, &[0x89]));
    }
    assert_eq!((followed.classes(), followed.open), (vec![2; STREAMS], 0));
}

#[test]
fn a_connection_shows_by_its_first_piece_what_it_speaks() {
    let first = |bytes: &[u8]| {
        let mut words = [0; 16];
        let known = bytes.len().min(16);
        words[..known].copy_from_slice(&bytes[..known]);
        let word = |at: usize| u64::from_ne_bytes(words[at..at + 8].try_into().unwrap());
        First {
            words: [word(0), word(8)],
            known: if known < 16 { 8 } else { 16 },
        }
    };
    let said = |is_sent, is_first, end, bytes: &[u8]| {
        let moved = Moved {
            is_sent,
            is_first,
            end,
            bytes: bytes.len() as u64,
        };
        let (http, said) = take(0, moved, first(bytes));
        (said == Said::Http2).then_some(http & !crate::http::COUNTED)
    };
    let of = |is_sent, is_first, bytes: &[u8]| said(is_sent, is_first, UNDECIDED, bytes);
    assert_eq!(of(true, true, PREFACE), Some(AT_CLIENT | HTTP2));
    assert_eq!(of(false, true, PREFACE), Some(AT_SERVER | HTTP2));
    // A server may say its settings first.
    assert_eq!(of(true, true, &settings()), Some(AT_SERVER | HTTP2));
    assert_eq!(
        of(false, true, &frame(4, 0, 0, &[])),
        Some(AT_CLIENT | HTTP2)
    );
    for other in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\x00\x00\x00"[..],
        // MySQL's greeting, Kafka's request, PostgreSQL's, Redis's.
        b"\x4a\x00\x00\x00\x0a8.0.36\x00\x08\x00\x00\x00",
        b"\x00\x00\x00\x2f\x00\x12\x00\x04\x00\x00\x00\x01\x00\x09rd",
        b"\x00\x00\x00\x54\x00\x03\x00\x00user\x00postg",
        b"*1\r\n$4\r\nPING\r\n\r\n",
    ] {
        assert_eq!(of(true, true, other), None, "{other:x?}");
        assert_eq!(said(true, false, AT_CLIENT, other), None, "{other:x?}");
    }
    // In the middle a frame shows it, where the end is known.
    let ping = frame(6, 0, 0, &[0; 8]);
    assert_eq!(said(true, false, AT_SERVER, &ping), Some(AT_SERVER | HTTP2));
    assert_eq!(said(true, false, UNDECIDED, &ping), None);
    for short in [frame(8, 0, 3, &[0; 4]), frame(4, ACK, 0, &[])] {
        assert_eq!(
            said(true, false, AT_SERVER, &short),
            Some(AT_SERVER | HTTP2)
        );
    }
    // What the client said before may have held requests, and what the server said none.
    let content = frame(0, 0, 1, &[0; 9]);
    for (is_sent, unsure) in [(true, 0), (false, UNSURE)] {
        let moved = Moved {
            is_sent,
            is_first: false,
            end: AT_SERVER,
            bytes: 18,
        };
        let (http, said) = take(0, moved, first(&content));
        assert_eq!(said, Said::Nothing);
        let (http, said) = take(http, moved, first(&ping));
        assert_eq!(said, Said::Http2);
        assert_eq!(http & UNSURE, unsure);
    }
    // Or a header block.
    let asks = headers(0, 9, &[0x86, 0x41, 0x8a, 1, 2, 3, 4]);
    let answers = headers(0, 9, b"\x48\x03503....");
    for (is_sent, block, end) in [
        (true, &asks, AT_CLIENT),
        (false, &asks, AT_SERVER),
        (true, &answers, AT_SERVER),
        (false, &answers, AT_CLIENT),
    ] {
        assert_eq!(said(is_sent, false, UNDECIDED, block), Some(end | HTTP2));
    }
    let unknown = headers(0, 9, &[0xbe; 7]);
    assert_eq!(said(true, false, UNDECIDED, &unknown), None);
    assert_eq!(said(true, false, AT_SERVER, &frame(0, 0, 1, &[0; 9])), None);
    assert!(!crate::http::looks(AT_SERVER | HTTP2 | UNSURE, true));
}
