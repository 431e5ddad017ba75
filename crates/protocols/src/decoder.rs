//! The seam between a connection and what it speaks.

use std::fmt::Debug;

use super::{Direction, Exchange, Piece, Privacy, Protocol, TlsFacts};

/// How much a decoder of one connection may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one text (a path, a statement).
    pub text_bytes: usize,
    /// Bytes that wait for the rest of a head or a frame.
    pub pending_bytes: usize,
    /// Requests without an answer yet.
    pub open_exchanges: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            text_bytes: 512,
            pending_bytes: 16 << 10,
            open_exchanges: 1024,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub limits: Limits,
    pub privacy: Privacy,
}

/// The connection does not speak what it was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongProtocol;

/// Turns the payload of one connection into exchanges. Never panics, whatever comes, and keeps no more
/// than its [`Limits`].
pub trait Decoder: Debug + Send {
    /// What the connection is known to speak by now.
    fn protocol(&self) -> Protocol;

    /// Takes the next piece; complete exchanges are appended to `out` in the order of their ends.
    fn feed(&mut self, piece: &Piece<'_>, out: &mut Vec<Exchange>) -> Result<(), WrongProtocol>;

    /// Payload of this direction is missing before the next piece; `None`: an unknown amount.
    /// Exchanges whose answer can no longer be determined are given out as unknown.
    fn gap(&mut self, direction: Direction, missing: Option<u64>, out: &mut Vec<Exchange>);

    /// The connection has ended; what is open is given out as broken, or as complete where the end of
    /// the connection ends an answer.
    fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>);

    /// Nothing has come until now. Requests that are over may have been held back, because their pairs were
    /// not sure; those that a silence proves are given out.
    fn rest(&mut self, _now_ns: u64, _out: &mut Vec<Exchange>) {}

    /// Ends the observation of a connection that goes on: all that was held back is given out.
    fn stop(&mut self, _now_ns: u64, _out: &mut Vec<Exchange>) {}

    /// Payload is missing, and answers cannot be assigned to requests for now.
    fn is_dirty(&self) -> bool {
        false
    }

    /// The client asks again before it was answered, and answers can only be assigned by their order.
    fn is_pipelined(&self) -> bool {
        false
    }

    /// Messages ended behind the captured bytes of a call: with more of them, later ones would be read.
    fn wants_bytes(&self) -> bool {
        false
    }

    /// Times that the captured bytes of a piece ended where more requests or answers may have followed in it.
    fn gaps(&self) -> u64 {
        0
    }

    /// Bytes that were passed over because they could not be read.
    fn not_understood(&self) -> PerDirection<u64> {
        PerDirection::default()
    }

    /// What a TLS handshake sent in plaintext.
    fn tls(&self) -> Option<&TlsFacts> {
        None
    }
}

/// Something for each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    pub to_server: T,
    pub to_client: T,
}

impl<T> PerDirection<T> {
    pub fn get(&self, direction: Direction) -> &T {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }

    pub fn get_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}

/// The first bytes of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// From the first piece on, at most some hundred bytes.
    pub to_server: &'a [u8],
    pub to_client: &'a [u8],
    /// The connection was there before: these are not its first bytes, but those of a call.
    pub joined: bool,
    /// The server's port: a hint that decides nothing alone.
    pub server_port: u16,
    /// The bytes are those of the first datagram of each way.
    pub is_udp: bool,
}

/// Whether bytes are of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    No,
    /// More bytes will tell.
    Undecided,
}

/// A protocol that a connection may turn out to speak.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub protocol: Protocol,
    pub recognise: fn(&Opening<'_>) -> Verdict,
    /// A decoder for a connection that is seen from its beginning, or joined.
    pub start: fn(&Options, joined: bool) -> Box<dyn Decoder>,
}
