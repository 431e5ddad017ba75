//! What goes into a decoder.

/// Which way payload goes. The client is the end that connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    ToServer,
    ToClient,
}

impl Direction {
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }
}

/// Payload that one call moved.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub direction: Direction,
    /// When it was moved, in nanoseconds of any clock that does not jump; never before that of the
    /// piece before it of the same direction.
    pub at_ns: u64,
    /// Bytes that were moved.
    pub length: u64,
    /// The first of them; the rest was not captured, but its length is known.
    pub bytes: &'a [u8],
}

impl Piece<'_> {
    /// Bytes behind those that were captured.
    pub fn uncaptured(&self) -> u64 {
        self.length.saturating_sub(self.bytes.len() as u64)
    }
}
