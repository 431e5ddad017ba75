//! What the kernel side saw of the payload of connections.

/// Where the bytes were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plaintext {
    /// They went over the socket as they are.
    Wire,
    /// They were given to, or taken from, a TLS library; the socket carries other bytes.
    Tls,
}

/// Why something that went over a connection was captured: of how many connections one was, a power of two, and where connections
/// take turns, in which round of turns. In one number, as every request carries it: exponent and round, which begins
/// again after 2^27 rounds, half a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn(u32);

const EXPONENT_BITS: u32 = 5;

impl Drawn {
    /// All connections were captured.
    pub const ALL: Self = Self(0);

    /// One connection of two to the power of `exponent`; `round` is 0 without turns.
    #[expect(clippy::cast_possible_truncation, reason = "rounds begin again")]
    pub const fn new(exponent: u32, round: u64) -> Self {
        Self((round as u32) << EXPONENT_BITS | exponent & ((1 << EXPONENT_BITS) - 1))
    }

    /// One in this many connections was captured.
    pub const fn one_of(self) -> u32 {
        1 << (self.0 & ((1 << EXPONENT_BITS) - 1))
    }

    /// 0 without turns.
    pub const fn round(self) -> u32 {
        self.0 >> EXPONENT_BITS
    }
}

/// What one call moved over one connection. Times are `CLOCK_MONOTONIC` in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadPiece<'a> {
    /// Of the socket.
    pub cookie: u64,
    pub pid: u32,
    pub tid: u32,
    pub at_ns: u64,
    /// When the data had arrived that was read; `None`: sent, or not measured.
    pub ready_ns: Option<u64>,
    /// When the write began that sent the data, where it may have waited for room; `None`: at `at_ns`, received, or not
    /// measured.
    pub began_ns: Option<u64>,
    /// The process sent it (else it received it).
    pub is_send: bool,
    pub plaintext: Plaintext,
    /// Bytes of this direction and kind before this piece; a jump is a gap.
    pub offset: u64,
    /// Bytes that were moved.
    pub length: u64,
    /// The first of them.
    pub bytes: &'a [u8],
    pub drawn: Drawn,
    /// Nothing of its kind was left out between it and the piece before because other connections were captured.
    pub follows: bool,
}

/// What is known at the end of a connection of whether all of it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteTotals {
    /// Bytes that went over the socket; `None`: not counted.
    pub sent: Option<u64>,
    pub received: Option<u64>,
    /// Plaintext of TLS was captured all the time.
    pub tls: bool,
}

impl ByteTotals {
    /// Nothing says that anything is missing.
    pub const UNCOUNTED: Self = Self {
        sent: None,
        received: None,
        tls: true,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadEvent<'a> {
    Piece(PayloadPiece<'a>),
    /// The socket is gone.
    Closed {
        cookie: u64,
        at_ns: u64,
        totals: ByteTotals,
    },
    /// Pieces of this connection did not fit the ring buffer.
    Lost {
        cookie: u64,
        pieces: u64,
    },
}
