//! Transcripts of real connections, cut and captured in any way, through a [`Connection`].

use super::{Connection, ConnectionFacts, Direction, Exchange, Options, Outcome, Piece, Status};

/// What one end sent in one call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) direction: Direction,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn to_server(bytes: impl AsRef<[u8]>) -> Call {
    Call {
        direction: Direction::ToServer,
        bytes: bytes.as_ref().to_vec(),
    }
}

pub(crate) fn to_client(bytes: impl AsRef<[u8]>) -> Call {
    Call {
        direction: Direction::ToClient,
        bytes: bytes.as_ref().to_vec(),
    }
}

/// The connections of a recorded file: `>` and `<` with hexadecimal bytes, `#` before each.
pub(crate) fn transcript(text: &str) -> Vec<Vec<Call>> {
    let mut connections = Vec::new();
    for line in text.lines() {
        let (kind, hex) = line.split_once(' ').unwrap_or((line, ""));
        let bytes = || -> Vec<u8> {
            let pairs = hex.as_bytes().chunks_exact(2);
            let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            pairs.map(byte).collect()
        };
        match kind {
            "#" => connections.push(Vec::new()),
            ">" => connections.last_mut().unwrap().push(to_server(bytes())),
            "<" => connections.last_mut().unwrap().push(to_client(bytes())),
            other => panic!("{other}"),
        }
    }
    connections
}

/// A generator of numbers (xorshift64*).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap() % limit.max(1)
    }
}

/// How calls become pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// First bytes of a piece that are captured.
    pub(crate) capture: usize,
    /// Calls are cut into pieces by numbers of this seed.
    pub(crate) seed: Option<u64>,
}

pub(crate) const WHOLE: Cut = Cut {
    capture: usize::MAX,
    seed: None,
};

pub(crate) const MILLISECOND: u64 = 1_000_000;

pub(crate) fn facts(server_port: u16) -> ConnectionFacts {
    ConnectionFacts {
        server_port,
        joined: false,
        is_udp: false,
    }
}

/// Drives a connection; the clock moves on by a millisecond with each call.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) connection: Connection,
    pub(crate) now_ns: u64,
    pub(crate) out: Vec<Exchange>,
    sent: [u64; 2],
}

impl Driver {
    pub(crate) fn new(facts: ConnectionFacts) -> Self {
        Self {
            connection: Connection::new(Options::default(), facts),
            now_ns: 1_000 * MILLISECOND,
            out: Vec::new(),
            sent: [0; 2],
        }
    }

    pub(crate) fn call(&mut self, call: &Call, cut: Cut) -> &mut Self {
        let mut numbers = cut.seed.map(Numbers::new);
        let mut rest = call.bytes.as_slice();
        while !rest.is_empty() {
            let most = rest.len();
            let length = numbers.as_mut().map_or(most, |numbers| {
                let scale = if numbers.below(2) == 0 { 8 } else { most };
                1 + numbers.below(scale.min(most))
            });
            let (bytes, behind) = rest.split_at(length);
            self.piece(call.direction, bytes, length as u64, cut.capture);
            rest = behind;
        }
        self.now_ns += MILLISECOND;
        self
    }

    fn piece(&mut self, direction: Direction, bytes: &[u8], length: u64, capture: usize) {
        let piece = Piece {
            direction,
            at_ns: self.now_ns,
            length,
            bytes: &bytes[..bytes.len().min(capture)],
        };
        let sent = &mut self.sent[usize::from(direction == Direction::ToClient)];
        self.connection.feed(&piece, *sent, &mut self.out);
        *sent += length;
        self.now_ns += 10;
    }

    /// An unseen call.
    pub(crate) fn miss(&mut self, call: &Call) -> &mut Self {
        self.sent[usize::from(call.direction == Direction::ToClient)] += call.bytes.len() as u64;
        self.now_ns += MILLISECOND;
        self
    }

    pub(crate) fn wait(&mut self, ns: u64) -> &mut Self {
        self.now_ns += ns;
        self
    }

    pub(crate) fn close(&mut self) -> &mut Self {
        self.connection.close(self.now_ns, &mut self.out);
        self
    }

    /// What has come out, and what a silence would bring out.
    pub(crate) fn take(&mut self) -> Vec<String> {
        let now_ns = self.now_ns + 1_000 * MILLISECOND;
        self.connection.stop(now_ns, &mut self.out);
        shown(&std::mem::take(&mut self.out))
    }
}

pub(crate) fn run(calls: &[Call], facts: ConnectionFacts, cut: Cut) -> Driver {
    let mut driver = Driver::new(facts);
    for (number, call) in calls.iter().enumerate() {
        let seed = cut.seed.map(|seed| seed * 1000 + number as u64);
        driver.call(call, Cut { seed, ..cut });
    }
    driver.close();
    driver
}

/// Each exchange as a line: route, status, what became of it when that is not the usual.
pub(crate) fn shown(exchanges: &[Exchange]) -> Vec<String> {
    exchanges.iter().map(line).collect()
}

/// How long each exchange took, and whether that is known although its outcome is not.
pub(crate) fn timings(exchanges: &[Exchange]) -> Vec<(u64, bool)> {
    let timing = |exchange: &Exchange| (exchange.duration_ns(), exchange.is_timed);
    exchanges.iter().map(timing).collect()
}

fn line(exchange: &Exchange) -> String {
    let status = match &exchange.status {
        None => "-".to_owned(),
        Some(Status::Fine) => "fine".to_owned(),
        Some(Status::Code(code)) => code.clone(),
        Some(Status::Http(number)) => number.to_string(),
        Some(Status::Grpc(number)) => format!("grpc {number}"),
    };
    let outcome = match exchange.outcome {
        Outcome::Ok => "",
        Outcome::ClientError => " client error",
        Outcome::ServerError => " server error",
        Outcome::Broken => " broken",
        Outcome::Unknown => " unknown",
    };
    let route = exchange.route.as_deref().unwrap_or("-");
    format!("{route} => {status}{outcome}")
}

/// What must hold of any exchange: times in their order, text within limits.
pub(crate) fn check_sound(exchanges: &[Exchange]) {
    for exchange in exchanges {
        let times = [
            Some(exchange.begin_ns),
            exchange.request_end_ns,
            Some(exchange.end_ns),
        ];
        assert!(times.iter().flatten().is_sorted(), "{exchange:?}");
        let first_byte = exchange.first_byte_ns.unwrap_or(exchange.begin_ns);
        assert!(
            (exchange.begin_ns..=exchange.end_ns).contains(&first_byte),
            "{exchange:?}"
        );
        for text in [&exchange.method, &exchange.route].into_iter().flatten() {
            assert!(text.len() <= 512, "{exchange:?}");
        }
    }
}

/// Connections through random cuts give what they give whole, sizes and all but times; with little
/// captured, no more is given, and what is given is right or unknown.
pub(crate) fn check_cuts(connections: &[Vec<Call>], facts: ConnectionFacts) {
    for calls in connections {
        let whole = run(calls, facts, WHOLE);
        check_sound(&whole.out);
        let timeless = |exchanges: &[Exchange]| -> Vec<Exchange> {
            let blank = |exchange: &Exchange| Exchange {
                begin_ns: 0,
                request_end_ns: None,
                first_byte_ns: None,
                end_ns: 0,
                ..exchange.clone()
            };
            exchanges.iter().map(blank).collect()
        };
        for seed in 0..40 {
            let cut = Cut {
                seed: Some(seed),
                ..WHOLE
            };
            let run = run(calls, facts, cut);
            check_sound(&run.out);
            check_secrets(&run.out);
            assert_eq!(timeless(&run.out), timeless(&whole.out), "seed {seed}");
        }
        for (capture, seed) in [
            (1024, None),
            (256, None),
            (64, None),
            (1024, Some(1)),
            (40, Some(2)),
        ] {
            let cut = Cut { capture, seed };
            let run = run(calls, facts, cut);
            check_sound(&run.out);
            check_secrets(&run.out);
            // Nothing is missing silently.
            let trouble = run.connection.trouble();
            let not_understood = trouble.not_understood;
            assert!(
                run.out.len() >= whole.out.len()
                    || trouble.gaps > 0
                    || not_understood.to_server + not_understood.to_client > 0,
                "captured {capture}: {:#?}",
                run.out
            );
            let mut known = whole.out.iter();
            for exchange in run.out.iter().filter(|it| it.outcome != Outcome::Unknown) {
                let same = |other: &&Exchange| {
                    let routes = exchange.route.is_none() || other.route.is_none();
                    other.begin_ns / MILLISECOND == exchange.begin_ns / MILLISECOND
                        && (routes || other.method == exchange.method)
                        && (other.status == exchange.status || exchange.status.is_none())
                };
                let same = |other: &Exchange| same(&other);
                assert!(
                    known.clone().any(same) || seed.is_some() && known.any(|_| true),
                    "captured {capture}: {exchange:?} is none of {:#?}",
                    whole.out
                );
            }
        }
    }
}

/// No secret that was planted is in what comes out.
pub(crate) fn check_secrets(exchanges: &[Exchange]) {
    for exchange in exchanges {
        let text = format!("{exchange:?}").to_ascii_lowercase();
        assert!(!text.contains("canary"), "{text}");
    }
}
