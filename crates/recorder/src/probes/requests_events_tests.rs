use profiler_common::{header::RecordHeader, payload::PieceEnd};
use profiler_network::requests::shown_end;

use super::*;

fn head(lost: u32) -> PieceHead {
    PieceHead {
        header: RecordHeader {
            time_ns: 9,
            ..RecordHeader::default()
        },
        cookie: 42,
        offset: 100,
        length: 20,
        captured: 3,
        pid: 11,
        tid: 12,
        flags: PIECE_SENT,
        lost,
        ..PieceHead::default()
    }
}

fn lost_of(demux: &mut PayloadDemux, head: PieceHead) -> Option<u64> {
    match demux.tell(PieceRecord::Piece {
        head,
        bytes: b"GET",
    }) {
        PayloadRecord::Piece {
            lost: Some(PayloadEvent::Lost { cookie, pieces }),
            ..
        } => {
            assert_eq!(cookie, head.cookie);
            Some(pieces)
        }
        PayloadRecord::Piece { lost: None, .. } => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_piece_is_told_with_its_bytes() {
    let record = PieceRecord::Piece {
        head: head(0),
        bytes: b"GET",
    };
    let expected = PayloadPiece {
        drawn: Drawn::ALL,
        follows: false,
        cookie: 42,
        pid: 11,
        tid: 12,
        at_ns: 9,
        ready_ns: None,
        began_ns: None,
        is_send: true,
        plaintext: Plaintext::Wire,
        offset: 100,
        length: 20,
        bytes: b"GET",
    };
    assert_eq!(
        PayloadDemux::default().tell(record),
        PayloadRecord::Piece {
            lost: None,
            piece: expected
        }
    );
}

#[test]
fn what_was_lost_is_told_once_and_added_up() {
    let mut demux = PayloadDemux::default();
    assert_eq!(lost_of(&mut demux, head(0)), None);
    assert_eq!(lost_of(&mut demux, head(3)), Some(3));
    assert_eq!(lost_of(&mut demux, head(3)), None);
    assert_eq!(lost_of(&mut demux, head(5)), Some(2));
    // The kernel's entry was made anew.
    assert_eq!(lost_of(&mut demux, head(1)), Some(1));
    assert_eq!(demux.lost(), 6);
    let closed = PayloadEvent::Closed {
        totals: ByteTotals::UNCOUNTED,
        cookie: 42,
        at_ns: 7,
    };
    assert_eq!(demux.closed(42, 7, ByteTotals::UNCOUNTED), closed);
    assert!(demux.lost.is_empty());
}

#[test]
fn the_end_of_a_connection_is_told_with_its_bytes() {
    let mut demux = PayloadDemux::default();
    assert_eq!(lost_of(&mut demux, head(3)), Some(3));
    let end = PieceEnd {
        header: RecordHeader {
            time_ns: 7,
            ..RecordHeader::default()
        },
        cookie: 42,
        sent_bytes: 10,
        received_bytes: 20,
    };
    let totals = ByteTotals {
        sent: Some(10),
        received: Some(20),
        tls: true,
    };
    let closed = PayloadEvent::Closed {
        cookie: 42,
        at_ns: 7,
        totals,
    };
    assert_eq!(
        demux.tell(PieceRecord::End(end)),
        PayloadRecord::End(closed)
    );
    assert!(demux.lost.is_empty());
}

#[test]
fn a_connection_is_told_with_what_is_known_of_it() {
    let mut local = [0; 16];
    local[..4].copy_from_slice(&[10, 0, 0, 1]);
    let mut remote = [0; 16];
    remote[..4].copy_from_slice(&[10, 0, 0, 2]);
    for (direction, is_client) in [(0, None), (1, Some(true)), (2, Some(false)), (99, None)] {
        let connection = PieceConnection {
            cookie: 5,
            direction,
            flags: FLAG_JOINED,
            family: 2,
            protocol: 6,
            local_port: 80,
            remote_port: 5000,
            local,
            remote,
            ..PieceConnection::default()
        };
        let told = PayloadDemux::default().tell(PieceRecord::Connection(connection));
        let facts = SocketFacts {
            local: "10.0.0.1:80".parse().unwrap(),
            remote: "10.0.0.2:5000".parse().unwrap(),
            is_client,
            joined: true,
            is_udp: false,
        };
        assert_eq!(told, PayloadRecord::Connection { cookie: 5, facts });
    }
}

#[test]
fn ends_of_a_unix_socket_are_known_by_their_cookies() {
    let mut local = [0; 16];
    local[..8].copy_from_slice(&5_u64.to_ne_bytes());
    let mut remote = [0; 16];
    remote[..8].copy_from_slice(&u64::MAX.to_ne_bytes());
    let connection = PieceConnection {
        cookie: 5,
        direction: DIRECTION_SERVER,
        family: UNIX,
        local,
        remote,
        ..PieceConnection::default()
    };
    let facts = facts(&connection);
    assert_eq!(facts.is_client, Some(false));
    for (end, shown) in [
        (facts.local, "unix:5"),
        (facts.remote, "unix:18446744073709551615"),
    ] {
        assert_eq!(shown_end(end), shown);
    }
    for other in ["[100::5]:80", "[fd00::5]:0", "[101::5]:0", "1.0.0.5:0"] {
        assert_eq!(shown_end(other.parse().unwrap()), other);
    }
}

#[test]
fn a_socket_of_udp_ends_when_it_rests() {
    let mut demux = PayloadDemux::default();
    for (cookie, protocol) in [(42, UDP), (6, 6)] {
        demux.tell(PieceRecord::Connection(PieceConnection {
            cookie,
            protocol,
            family: 2,
            ..PieceConnection::default()
        }));
    }
    lost_of(&mut demux, head(2));
    assert_eq!(demux.rested(9 + DATAGRAM_END_NS), Vec::new());
    let closed = PayloadEvent::Closed {
        totals: ByteTotals::UNCOUNTED,
        cookie: 42,
        at_ns: 9,
    };
    assert_eq!(demux.rested(10 + DATAGRAM_END_NS), vec![closed]);
    assert_eq!(demux.rested(u64::MAX), Vec::new(), "once");
    assert!(demux.lost.is_empty());
}
