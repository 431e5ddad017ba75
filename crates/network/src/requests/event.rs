//! What the kernel side saw of the payload of connections.

/// Where the bytes were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plaintext {
    /// They went over the socket as they are.
    Wire,
    /// They were given to, or taken from, a TLS library; the socket carries other bytes.
    Tls,
}

/// What one call moved over one connection. Times are `CLOCK_MONOTONIC` in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadPiece {
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
    pub bytes: Vec<u8>,
    /// Of so many connections one was captured.
    pub one_of: u32,
}

/// What is known at the end of a connection of whether all of it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Bytes that went over the socket; `None`: not counted.
    pub sent: Option<u64>,
    pub received: Option<u64>,
    /// Plaintext of TLS was captured all the time.
    pub tls: bool,
}

impl Whole {
    /// Nothing says that anything is missing.
    pub const UNCOUNTED: Self = Self {
        sent: None,
        received: None,
        tls: true,
    };
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadEvent {
    Piece(PayloadPiece),
    /// The socket is gone.
    Closed {
        cookie: u64,
        at_ns: u64,
        whole: Whole,
    },
    /// Pieces of this connection did not fit the ring buffer.
    Lost {
        cookie: u64,
        pieces: u64,
    },
}
