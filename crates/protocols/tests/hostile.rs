//! What peers can cost that mean harm: memory of connections stays within bounds, whatever comes.
//!
//! Measured as the growth of this process. All connections are kept to the end, so that nothing is measured
//! in memory that others have left.

#[cfg(test)]
mod hostile {
    use profiler_protocols::{Connection, ConnectionFacts, Direction, Exchange, Options, Piece};

    const CLIENT: Direction = Direction::ToServer;
    const SERVER: Direction = Direction::ToClient;
    const KIB: u64 = 1 << 10;
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    const CONTINUATION: u8 = 9;

    /// One connection that is fed.
    struct Peer {
        connection: Connection,
        offsets: [u64; 2],
        at_ns: u64,
        exchanges: u64,
        out: Vec<Exchange>,
    }

    impl Peer {
        fn new(server_port: u16) -> Self {
            let facts = ConnectionFacts {
                server_port,
                joined: false,
                is_udp: false,
            };
            Self {
                connection: Connection::new(Options::default(), facts),
                offsets: [0; 2],
                at_ns: 0,
                exchanges: 0,
                out: Vec::new(),
            }
        }

        fn say(&mut self, direction: Direction, bytes: &[u8]) {
            self.at_ns += 1000;
            let offset = &mut self.offsets[usize::from(direction == SERVER)];
            let piece = Piece {
                direction,
                at_ns: self.at_ns,
                length: bytes.len() as u64,
                bytes,
            };
            self.connection.feed(&piece, *offset, &mut self.out);
            *offset += bytes.len() as u64;
            self.exchanges += self.out.len() as u64;
            self.out.clear();
        }

        fn slowly(&mut self, direction: Direction, bytes: &[u8]) {
            for byte in bytes {
                self.say(direction, std::slice::from_ref(byte));
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test of what the process uses, which the kernel says in a file"
    )]
    fn resident_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.unwrap().parse::<u64>().unwrap() * KIB
    }

    /// Lets this many connections go through the same and prints the cost of each.
    fn cost(kept: &mut Vec<Peer>, count: u64, port: u16, play: impl Fn(&mut Peer)) -> u64 {
        let before = resident_bytes();
        for _ in 0..count {
            let mut peer = Peer::new(port);
            play(&mut peer);
            kept.push(peer);
        }
        resident_bytes().saturating_sub(before) / count
    }

    /// Bytes that follow no protocol (xorshift64*).
    fn garbage(length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let byte = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes()[0]
        };
        std::iter::repeat_with(byte).take(length).collect()
    }

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    }

    /// What makes a connection be taken for each protocol, with its port and the end that sends it.
    fn openings() -> Vec<(u16, Direction, Vec<u8>)> {
        let greeting = b"\x4a\0\0\0\x0a8.0.36\0\x01\0\0\0abcdefgh\0\xff\xff\xff\x02\0\xff\xdf";
        let startup = b"\0\0\0\x15\0\x03\0\0user\0canary\0\0";
        let hello = b"\x16\x03\x01\x20\x00\x01\x00\x1f\xfc\x03\x03";
        vec![
            (80, CLIENT, b"GET / HTTP/1.1\r\n\r\n".to_vec()),
            (80, CLIENT, PREFACE.to_vec()),
            (6379, CLIENT, b"*1\r\n$4\r\nPING\r\n".to_vec()),
            (5432, CLIENT, startup.to_vec()),
            (3306, SERVER, greeting.to_vec()),
            (443, CLIENT, hello.to_vec()),
            (1, CLIENT, Vec::new()),
        ]
    }

    /// One test, for growth is that of the whole process.
    #[test]
    fn what_peers_can_cost_is_bounded() {
        let mut kept = Vec::new();
        requests_without_an_answer(&mut kept);
        messages_without_an_end(&mut kept);
        bytes_that_follow_no_protocol(&mut kept);
    }

    fn bytes_that_follow_no_protocol(kept: &mut Vec<Peer>) {
        let garbage = garbage(1 << 19);

        for (port, direction, opening) in openings() {
            let bytes = cost(kept, 8, port, |peer| {
                peer.say(direction, &opening);
                let is_known = peer.connection.protocol().is_some();
                assert!(is_known || opening.is_empty(), "port {port}");
                for piece in garbage.chunks(4000) {
                    peer.say(CLIENT, piece);
                    peer.say(SERVER, piece);
                }
            });
            assert!(bytes <= 64 * KIB, "garbage, port {port}: {bytes}");
            let bytes = cost(kept, 8, port, |peer| {
                peer.slowly(direction, &opening);
                peer.slowly(direction, &garbage[..20_000]);
                peer.slowly(direction.reverse(), &garbage[..20_000]);
            });
            assert!(bytes <= 96 * KIB, "slow garbage, port {port}: {bytes}");
        }
    }

    fn messages_without_an_end(kept: &mut Vec<Peer>) {
        let mut head = b"GET /a HTTP/1.1\r\nX: ".to_vec();
        head.resize(1 << 20, b'y');
        let bytes = cost(kept, 16, 80, |peer| {
            for piece in head.chunks(1000) {
                peer.say(CLIENT, piece);
            }
            assert!(peer.connection.protocol().is_some());
        });
        assert!(bytes <= 96 * KIB, "a head of 1 MB: {bytes}");
        let bytes = cost(kept, 4, 80, |peer| peer.slowly(CLIENT, &head[..200_000]));
        assert!(bytes <= 128 * KIB, "a head in single bytes: {bytes}");

        // A block that never ends, of a header whose value is 1 MB.
        let mut block = b"\x82\x84\x86\x40\x01x\x7f\x81\xff\x3f".to_vec();
        block.resize(1 << 20, b'y');
        let block_frames = |peer: &mut Peer, say: fn(&mut Peer, Direction, &[u8])| {
            peer.say(CLIENT, PREFACE);
            say(peer, CLIENT, &frame(HEADERS, 0, 1, &block[..1000]));
            for piece in block[1000..].chunks(16_000).take(64) {
                say(peer, CLIENT, &frame(CONTINUATION, 0, 1, piece));
            }
        };
        let bytes = cost(kept, 16, 80, |peer| block_frames(peer, Peer::say));
        assert!(bytes <= 96 * KIB, "a block of 1 MB: {bytes}");
        let bytes = cost(kept, 1, 80, |peer| block_frames(peer, Peer::slowly));
        assert!(bytes <= 512 * KIB, "a block in single bytes: {bytes}");

        // As many entries of a table as it holds, each as short as can be, and its size set beyond reason.
        let entries = [&b"\x3f\xe1\xff\x03"[..], &b"\x40\x01a\x00".repeat(5000)].concat();
        let bytes = cost(kept, 8, 80, |peer| {
            peer.say(CLIENT, PREFACE);
            for number in 0..40 {
                let begin = [&b"\x82\x84\x86"[..], &entries[..16_000]].concat();
                peer.say(CLIENT, &frame(HEADERS, 5, 2 * number + 1, &begin));
            }
        });
        assert!(bytes <= 1024 * KIB, "a full table: {bytes}");
    }

    fn requests_without_an_answer(kept: &mut Vec<Peer>) {
        const MILLION: u32 = 1_000_000;
        let block = b"\x82\x86\x44\x0a/some/path\x41\x04shop";
        let bytes = cost(kept, 1, 80, |peer| {
            peer.say(CLIENT, PREFACE);
            let mut frames = Vec::new();
            for number in 0..MILLION {
                frames.extend(frame(HEADERS, 5, 2 * number + 1, block));
                if frames.len() > 16_000 || number + 1 == MILLION {
                    peer.say(CLIENT, &frames);
                    frames.clear();
                }
            }
            // All but those that may still be answered were given out.
            assert_eq!(peer.exchanges, u64::from(MILLION) - 1024);
        });
        assert!(bytes <= 4096 * KIB, "a million streams: {bytes}");

        let bytes = cost(kept, 1, 80, |peer| {
            peer.say(CLIENT, PREFACE);
            for number in 0..MILLION / 10 {
                let stream = 2 * number + 1;
                let both = [
                    frame(HEADERS, 5, stream, block),
                    frame(RESET, 0, stream, b"\0\0\0\x08"),
                ];
                peer.say(CLIENT, &both.concat());
            }
            assert_eq!(peer.exchanges, u64::from(MILLION / 10));
        });
        assert!(bytes <= 512 * KIB, "streams that are reset: {bytes}");

        for (port, opening, request) in [
            (
                80,
                &b""[..],
                &b"GET /some/path HTTP/1.1\r\nHost: shop\r\n\r\n"[..],
            ),
            (6379, b"", b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
            (
                5432,
                b"\0\0\0\x15\0\x03\0\0user\0canary\0\0",
                b"Q\0\0\0\x0dSELECT 1\0",
            ),
        ] {
            let calls = request.repeat(300);
            let bytes = cost(kept, 1, port, |peer| {
                peer.say(CLIENT, opening);
                for _ in 0..MILLION / 3000 {
                    peer.say(CLIENT, &calls);
                }
                assert!(peer.exchanges > u64::from(MILLION / 20), "port {port}");
            });
            assert!(bytes <= 4096 * KIB, "requests, port {port}: {bytes}");
        }
    }
}
