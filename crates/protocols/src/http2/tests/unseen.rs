//! Frames in bytes that were not captured.

use super::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, LAST, PADDED, PING, Peers, frame,
};
use crate::replay::{CLIENT, SERVER};

#[test]
fn requests_behind_the_captured_bytes_are_told_as_unknown() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    let blocks: Vec<Vec<u8>> = [3, 5, 7]
        .iter()
        .map(|stream| frame(HEADERS, LAST, *stream, &peers.request("/b", &[])))
        .collect();
    let captured = blocks[0].len() + 4;
    peers
        .player
        .say_captured(CLIENT, &blocks.concat(), captured);
    assert_eq!(peers.player.decoder.gaps(), 1);
    assert!(peers.player.decoder.is_dirty());
    let rest = (blocks.concat().len() - blocks[0].len()) as u64;
    assert_eq!(peers.player.decoder.not_understood().to_server, rest);
    for stream in [7, 1, 5, 3] {
        peers.ok(stream);
    }
    peers.get(9, "/c");
    assert!(!peers.player.decoder.is_dirty());
    // What is behind the requests that came again, and what was never lost, is not an answer to a missed one.
    peers.ok(9);
    peers.ok(11);
    peers.ok(3);
    assert_eq!(
        peers.summary(),
        [
            "7 http2 - - 200 Unknown 0+0?",
            "1 http2 GET /a 200 Ok 0+0?",
            "5 http2 - - 200 Unknown 0+0?",
            "3 http2 GET /b 200 Ok 0+0?",
            "9 http2 GET /c 200 Ok 0+0",
        ]
    );
    assert_eq!(peers.player.decoder.gaps(), 1);
}

#[test]
fn answers_to_missed_requests_that_break_off_are_unknown() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    peers.player.gap(CLIENT, None);
    let block = peers.answer("503", &[]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 3, &block));
    peers.player.close();
    assert_eq!(
        peers.summary(),
        [
            "1 http2 GET /a - Broken 0+0?",
            "3 http2 - - 503 Unknown 0+0?"
        ]
    );
}

#[test]
fn what_was_asked_before_joining_is_not_told() {
    let mut peers = Peers::joined(true);
    peers.ok(5);
    peers.player.gap(CLIENT, None);
    peers.ok(7);
    assert_eq!(peers.summary(), [""; 0]);
}

#[test]
fn content_of_known_length_hides_nothing() {
    let mut peers = Peers::new();
    let block = peers.request("/a", &[("x", "y")]);
    let bytes = [
        frame(HEADERS, END_HEADERS, 1, &block),
        frame(DATA, END_STREAM | PADDED, 1, &[9; 5000]),
    ];
    let captured = bytes[0].len() + 20;
    peers.player.say_captured(CLIENT, &bytes.concat(), captured);
    peers.ok(1);
    // A block that goes on behind what was captured: its fields are unknown, its place is not.
    let block = peers.request("/a", &[("x", &"z".repeat(500))]);
    let bytes = frame(HEADERS, LAST, 3, &block);
    peers.player.say_captured(CLIENT, &bytes, 40);
    peers.ok(3);
    assert_eq!(peers.player.decoder.gaps(), 0);
    assert!(!peers.player.decoder.is_dirty());
    assert_eq!(peers.player.decoder.not_understood().to_server, 0);
    assert_eq!(peers.player.out.len(), 2);
}

#[test]
fn each_byte_that_was_not_read_is_counted_once() {
    let mut peers = Peers::joined(true);
    assert!(peers.player.decoder.is_dirty());
    peers.player.say_captured(CLIENT, &[0xff; 40], 10);
    assert_eq!(peers.player.decoder.gaps(), 0);
    assert_eq!(peers.player.decoder.not_understood().to_server, 40);
    let mut peers = Peers::new();
    peers.get(1, "/a");
    peers.ok(1);
    // No frame of this length may come.
    let strange = [&[0xff, 0, 0, CONTINUATION, 0, 0, 0, 0, 0][..], &[7; 11]].concat();
    peers.player.say_captured(SERVER, &strange, 15);
    assert!(peers.player.decoder.is_dirty());
    let not_understood = peers.player.decoder.not_understood();
    assert_eq!(
        (not_understood.to_server, not_understood.to_client),
        (0, 20)
    );
}

#[test]
fn a_block_that_is_broken_off_leaves_the_table_unknown() {
    let mut peers = Peers::new();
    peers.get(1, "/a");
    let broken = peers.request("/b", &[("x-new", "1"), ("te", "trailers")]);
    peers.say(CLIENT, &frame(HEADERS, 0, 3, &broken));
    peers.say(CLIENT, &frame(PING, 0, 0, &[0; 8]));
    peers.get(5, "/c");
    peers.ok(5);
    let found = &peers.player.out[0];
    // The name of the host is in the table, behind what the broken block put there.
    assert_eq!((found.stream, found.route.as_deref()), (5, Some("/c")));
    assert_eq!(found.authority, None);
}
