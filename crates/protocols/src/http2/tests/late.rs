//! Calls of gRPC over connections that were joined late: what stands in a table of headers that was
//! filled before is unknown, and no status is claimed without it.

use super::{
    DATA, END_HEADERS, END_STREAM, GRPC, HEADERS, LAST, PREFACE, Peers, SETTINGS, frame, summary,
};
use crate::{
    Connection, ConnectionFacts, Direction, Exchange, HTTP2, Options, Outcome, Piece, Protocol,
    Status,
    hpack::encoder::{Encoder, Form},
    replay::{CLIENT, Player, SERVER},
    testing::facts,
};

/// An implementation by what it puts into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    /// Every header.
    Go,
    /// No messages of errors, and no paths.
    Python,
}

/// What one call or request is, and how it ends.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Head, message, trailers.
    Unary(u32),
    /// Trailers alone.
    Refused(u32),
    /// A request with a body that is not a call; the answer ends with its content.
    Json(&'static str),
    /// The same, answered by a head alone.
    Bare(&'static str),
}

/// Frames of a connection, one after the other, with the direction of each.
fn conversation(library: Library, kinds: &[Kind]) -> Vec<(Direction, Vec<u8>)> {
    let (mut client, mut server) = (Encoder::new(), Encoder::new());
    let mut said = vec![
        (CLIENT, [PREFACE, &frame(SETTINGS, 0, 0, b"")].concat()),
        (SERVER, frame(SETTINGS, 0, 0, b"")),
    ];
    let form = |name: &str| match (library, name) {
        (Library::Python, "grpc-message" | ":path") => Form::Leave,
        (Library::Go | Library::Python, _) => Form::Best,
    };
    let block = |encoder: &mut Encoder, fields: &[(&str, &str)]| {
        let mut block = Vec::new();
        for (name, value) in fields {
            encoder.field(name, value, form(name), &mut block);
        }
        block
    };
    for (number, kind) in kinds.iter().enumerate() {
        let stream = u32::try_from(2 * number + 1).expect("a number");
        let is_call = matches!(kind, Kind::Unary(_) | Kind::Refused(_));
        // A long value now and then pushes all entries out, which are then written anew.
        let length = if number % 10 == 9 { 4000 } else { 10 };
        let trace = format!("{number}{}", "t".repeat(length));
        let path = ["/shop.Orders/Get", "/shop.Orders/List", "/stock.Stock/Take"][number % 3];
        let content_type = if is_call {
            "application/grpc"
        } else {
            "application/json"
        };
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "shop"),
            ("content-type", content_type),
            ("te", "trailers"),
            ("x-trace", &*trace),
        ];
        let request = block(&mut client, &fields);
        said.push((CLIENT, frame(HEADERS, END_HEADERS, stream, &request)));
        said.push((CLIENT, frame(DATA, END_STREAM, stream, b"\0\0\0\0\x01a")));
        let content = frame(DATA, 0, stream, b"\0\0\0\0\x02ab");
        let (mut head, mut trailers) = (vec![(":status", "200")], Vec::new());
        let code;
        match kind {
            Kind::Unary(status) | Kind::Refused(status) => {
                code = status.to_string();
                head.push(("content-type", content_type));
                trailers.push(("grpc-status", &*code));
                if *status != 0 {
                    trailers.push(("grpc-message", "it failed"));
                }
                trailers.push(("x-trace", &*trace));
            }
            Kind::Json(status) | Kind::Bare(status) => {
                head = vec![(":status", *status), ("content-type", content_type)];
            }
        }
        match kind {
            Kind::Unary(_) => {
                let head = block(&mut server, &head);
                let trailers = block(&mut server, &trailers);
                said.push((SERVER, frame(HEADERS, END_HEADERS, stream, &head)));
                said.push((SERVER, content));
                said.push((SERVER, frame(HEADERS, LAST, stream, &trailers)));
            }
            Kind::Json(_) => {
                let head = block(&mut server, &head);
                said.push((SERVER, frame(HEADERS, END_HEADERS, stream, &head)));
                said.push((SERVER, frame(DATA, END_STREAM, stream, b"{}")));
            }
            Kind::Refused(_) | Kind::Bare(_) => {
                head.append(&mut trailers);
                let head = block(&mut server, &head);
                said.push((SERVER, frame(HEADERS, LAST, stream, &head)));
            }
        }
    }
    said
}

fn play(said: &[(Direction, Vec<u8>)], joined: bool) -> Vec<Exchange> {
    let mut player = Player::new(&HTTP2, &Options::default(), joined);
    for (direction, bytes) in said {
        player.say(*direction, bytes);
    }
    player.close();
    player.out
}

/// What is found of each request that began behind the join is right or unknown.
fn check(library: Library, kinds: &[Kind]) -> Vec<Vec<Exchange>> {
    let said = conversation(library, kinds);
    let whole = play(&said, false);
    assert_eq!(whole.len(), kinds.len());
    let mut joins = Vec::new();
    for from in 2..said.len() {
        let found = play(&said[from..], true);
        for exchange in &found {
            let place = usize::try_from(exchange.stream / 2).expect("a number");
            let sent = &whole[place];
            assert_eq!(sent.stream, exchange.stream);
            let unless = |found: bool| found || exchange.outcome == Outcome::Unknown;
            assert!(
                unless(exchange.status == sent.status),
                "{from} {exchange:?}"
            );
            assert!(
                unless(exchange.outcome == sent.outcome),
                "{from} {exchange:?}"
            );
            assert!(
                exchange.status.is_none() || exchange.status == sent.status,
                "{from} {exchange:?}"
            );
            assert!(
                exchange.route.is_none() || exchange.route == sent.route,
                "{from} {exchange:?}"
            );
            assert!(
                unless(exchange.protocol != Protocol::Grpc || sent.protocol == Protocol::Grpc),
                "{from} {exchange:?}"
            );
        }
        let begun = said[from..]
            .iter()
            .filter(|(direction, bytes)| *direction == CLIENT && bytes[3] == HEADERS);
        assert!(found.len() >= begun.count(), "{from}: {found:?}");
        joins.push(found);
    }
    joins
}

#[test]
fn failed_calls_of_a_filled_table_are_unknown_and_never_fine() {
    for library in [Library::Go, Library::Python] {
        for failed in [Kind::Unary(13), Kind::Refused(5), Kind::Refused(14)] {
            let kinds: Vec<Kind> = [Kind::Unary(0), failed, Kind::Json("200")].repeat(4);
            for found in check(library, &kinds) {
                let claims_fine = |exchange: &&Exchange| {
                    exchange.outcome == Outcome::Ok && exchange.stream % 6 == 3
                };
                assert_eq!(found.iter().find(claims_fine), None);
            }
        }
    }
}

#[test]
fn statuses_are_known_again_once_they_are_written_anew() {
    let all = [
        Kind::Unary(0),
        Kind::Unary(13),
        Kind::Json("200"),
        Kind::Refused(5),
        Kind::Bare("503"),
        Kind::Unary(14),
        Kind::Bare("200"),
    ];
    for library in [Library::Go, Library::Python] {
        let kinds: Vec<Kind> = all.repeat(20);
        for (from, found) in check(library, &kinds).iter().enumerate().take(20) {
            let known = found.iter().filter(|it| it.outcome != Outcome::Unknown);
            assert!(known.count() > 60, "{from}: {:#?}", summary(found));
            let failed = |it: &&Exchange| it.status == Some(Status::Grpc(13));
            assert!(found.iter().filter(failed).count() > 5, "{from}");
        }
    }
}

#[test]
fn a_status_that_can_be_read_makes_a_call_of_a_request() {
    let mut peers = Peers::joined(true);
    // Sent before the observation.
    peers.request("/old", GRPC);
    peers.answer("200", &GRPC[..1]);
    let block = peers.request("/shop.Orders/Get1234", GRPC);
    peers.say(CLIENT, &frame(HEADERS, LAST, 1, &block));
    let block = peers.answer("200", &GRPC[..1]);
    peers.say(SERVER, &frame(HEADERS, END_HEADERS, 1, &block));
    let block = peers.server.block(&[("grpc-status", "13")]);
    peers.say(SERVER, &frame(HEADERS, LAST, 1, &block));
    assert_eq!(
        peers.summary(),
        ["1 grpc POST /shop.Orders/Get1234 grpc 13 ServerError 0+0"]
    );
}

#[test]
fn requests_that_are_no_calls_keep_their_status() {
    let kinds = [Kind::Json("200"), Kind::Json("200"), Kind::Json("503")];
    let said = conversation(Library::Go, &kinds);
    assert_eq!(
        summary(&play(&said[6..], true)),
        [
            "3 http2 POST /shop.Orders/List 200 Ok 6+2",
            "5 http2 POST /stock.Stock/Take 503 ServerError 6+2",
        ]
    );
}

#[test]
fn a_call_that_is_reset_has_no_status() {
    let said = conversation(Library::Go, &[Kind::Unary(0), Kind::Unary(0)]);
    let mut late = said[7..].to_vec();
    late.truncate(4);
    late.push((SERVER, frame(super::RESET, 0, 3, b"\0\0\0\x02")));
    assert_eq!(
        summary(&play(&late, true)),
        ["3 http2 POST /shop.Orders/List - Broken 6+7"]
    );
}

/// What each side said, the client in the pieces of a server that reads headers and payloads of frames
/// by calls of their own.
fn in_two_reads(said: &[(Direction, Vec<u8>)], longest: usize) -> Vec<(Direction, Vec<u8>)> {
    let mut pieces = Vec::new();
    for (direction, bytes) in said {
        if *direction == SERVER || bytes.starts_with(PREFACE) {
            pieces.push((*direction, bytes.clone()));
            continue;
        }
        let (header, payload) = bytes.split_at(9);
        pieces.push((*direction, header.to_vec()));
        let parts = payload.chunks(longest);
        pieces.extend(parts.map(|part| (*direction, part.to_vec())));
    }
    pieces
}

#[test]
fn headers_and_payloads_in_reads_of_their_own_are_found_wherever_one_joins() {
    let kinds: Vec<Kind> = [Kind::Unary(0), Kind::Json("200"), Kind::Refused(5)].repeat(10);
    let said = conversation(Library::Go, &kinds);
    let whole = play(&said, false);
    for longest in [usize::MAX, 13] {
        let pieces = in_two_reads(&said, longest);
        for from in 2..60 {
            let mut connection = Connection::new(
                Options::default(),
                ConnectionFacts {
                    joined: true,
                    ..facts(8080)
                },
            );
            let (mut offsets, mut out) = ([1000_u64; 2], Vec::new());
            for (number, (direction, bytes)) in pieces.iter().enumerate().skip(from) {
                let piece = Piece {
                    direction: *direction,
                    at_ns: number as u64,
                    length: bytes.len() as u64,
                    bytes,
                };
                let offset = &mut offsets[usize::from(*direction == SERVER)];
                connection.feed(&piece, *offset, &mut out);
                *offset += piece.length;
            }
            let begun = pieces[from..].iter().filter(|(direction, bytes)| {
                *direction == CLIENT && bytes.len() == 9 && bytes[3] == HEADERS
            });
            assert!(
                out.len() + 1 >= begun.count(),
                "{from}: {:#?}",
                summary(&out)
            );
            for exchange in &out {
                let sent = &whole[usize::try_from(exchange.stream / 2).expect("a number")];
                let is_unknown = exchange.outcome == Outcome::Unknown;
                assert!(is_unknown || exchange.status == sent.status, "{exchange:?}");
            }
            assert!(out.iter().any(|it| it.outcome != Outcome::Unknown));
        }
    }
}

#[test]
fn a_lone_header_without_its_payload_is_none() {
    let mut peers = Peers::joined(true);
    let ping = frame(super::PING, 0, 0, &[0; 8]);
    peers.say(CLIENT, &ping[..9]);
    // Longer than the payload would be.
    peers.say(CLIENT, &[0xff; 12]);
    assert!(peers.player.decoder.is_dirty());
    assert_eq!(peers.player.decoder.not_understood().to_server, 21);
    peers.say(CLIENT, &ping[..9]);
    peers.player.gap(CLIENT, Some(8));
    assert_eq!(peers.player.decoder.not_understood().to_server, 30);
    assert!(peers.player.decoder.is_dirty());
}
