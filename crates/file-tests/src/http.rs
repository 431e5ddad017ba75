//! Decoders of HTTP; the bytes say how they are cut into pieces.

use profiler_protocols::{
    Candidate, Decoder, Direction, Exchange, HTTP1, HTTP2, Limits, Opening, Options, Piece,
    Privacy, fold_path, mask_query,
};

/// Bytes of a piece.
const LONGEST_PIECE: u64 = 700;

/// HTTP/1: recogniser, decoder, routes.
pub(crate) fn http1(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    drop((fold_path(&text), mask_query(&text, 100)));
    play(&HTTP1, bytes);
}

/// HTTP/2: recogniser and decoder.
pub(crate) fn http2(bytes: &[u8]) {
    play(&HTTP2, bytes);
}

/// The first two bytes say how many of those behind them are of the client.
fn sides(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return (bytes, &[]);
    };
    rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()))
}

/// Gives the bytes to decoders in pieces: seen from the beginning and joined, each with both directions.
fn play(candidate: &Candidate, bytes: &[u8]) {
    let options = Options {
        limits: Limits {
            text_bytes: 64,
            pending_bytes: 1024,
            open_exchanges: 8,
        },
        privacy: Privacy {
            body_bytes: 64,
            raw_paths: true,
            redacted_headers: Vec::new(),
            kept_headers: vec!["location".to_owned()],
        },
    };
    let seed = bytes.iter().fold(bytes.len() as u64, |seed, byte| {
        seed.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte)
    });
    for joined in [false, true] {
        for turn in 0..2 {
            let (one, other) = sides(bytes);
            let (to_server, to_client) = if turn == 0 {
                (one, other)
            } else {
                (other, one)
            };
            let _verdict = (candidate.recognise)(&Opening {
                to_server,
                to_client,
                joined,
                server_port: 80,
                is_udp: false,
            });
            let mut decoder = (candidate.start)(&options, joined);
            let mut out = Vec::new();
            feed(decoder.as_mut(), [to_server, to_client], seed, &mut out);
            decoder.close(u64::MAX, &mut out);
            check(&out, bytes.len());
        }
    }
}

fn feed(decoder: &mut dyn Decoder, sides: [&[u8]; 2], seed: u64, out: &mut Vec<Exchange>) {
    let [mut to_server, mut to_client] = sides;
    let mut numbers = seed | 1;
    let mut at_ns = 0;
    while !to_server.is_empty() || !to_client.is_empty() {
        numbers = numbers
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let number = numbers >> 33;
        at_ns += 1;
        let (direction, side) = if number.is_multiple_of(2) && !to_server.is_empty() {
            (Direction::ToServer, &mut to_server)
        } else {
            (Direction::ToClient, &mut to_client)
        };
        let length = usize::try_from(number / 2 % LONGEST_PIECE).unwrap_or(1);
        let (piece, rest) = side.split_at(length.clamp(1, side.len().max(1)).min(side.len()));
        *side = rest;
        let captured = if number.is_multiple_of(5) {
            piece.len() / 2
        } else {
            piece.len()
        };
        let fed = decoder.feed(
            &Piece {
                direction,
                at_ns,
                length: piece.len() as u64,
                bytes: piece.get(..captured).unwrap_or(piece),
            },
            out,
        );
        if fed.is_err() {
            return;
        }
        if number.is_multiple_of(31) {
            decoder.gap(
                direction,
                number.is_multiple_of(2).then_some(number % 100),
                out,
            );
        }
    }
}

/// What holds for each exchange, whatever was said.
fn check(out: &[Exchange], bytes: usize) {
    assert!(out.len() <= bytes, "an exchange takes some bytes");
    for exchange in out {
        assert!(exchange.end_ns >= exchange.begin_ns, "{exchange:?}");
        let texts = [&exchange.route, &exchange.path, &exchange.method];
        assert!(
            texts
                .iter()
                .all(|text| text.as_ref().is_none_or(|text| text.len() <= 512)),
            "{exchange:?}"
        );
        assert!(exchange.headers.len() <= 64, "{exchange:?}");
    }
}

#[cfg(test)]
mod tests {
    use profiler_protocols::fuzzing::hpack;

    use super::{http1, http2};
    use crate::inputs::{Numbers, conversation};

    const CONVERSATIONS: [&str; 4] = ["curl_http1", "curl_http2", "nghttp", "h2load"];

    /// How many the environment asks for, or few.
    fn rounds() -> u64 {
        let rounds = std::env::var("PROFILER_FUZZ_ROUNDS");
        rounds.map_or(100, |text| text.parse().expect("a number"))
    }

    #[test]
    fn damaged_conversations_are_read_without_a_panic() {
        for original in CONVERSATIONS.map(conversation) {
            for seed in 0..rounds() {
                let mut numbers = Numbers::of(seed);
                let mut bytes = original.bytes.clone();
                for _ in 0..numbers.below(8) {
                    let at = numbers.below(bytes.len());
                    bytes[at] = numbers.byte();
                }
                bytes.truncate(bytes.len() - numbers.below(bytes.len()) / 4);
                http1(&bytes);
                http2(&bytes);
                hpack(&bytes);
            }
        }
    }

    #[test]
    fn short_and_random_inputs_are_read_without_a_panic() {
        for input in [&b""[..], b"\0", b"\0\x01", b"\xff\xff\xff"] {
            http1(input);
            http2(input);
            hpack(input);
        }
        for seed in 0..rounds() {
            let mut numbers = Numbers::of(seed);
            let length = numbers.below(400);
            let bytes: Vec<u8> = (0..length).map(|_| numbers.byte()).collect();
            http1(&bytes);
            http2(&bytes);
            hpack(&bytes);
        }
    }
}
