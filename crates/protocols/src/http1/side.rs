//! One direction of a connection.

use super::{body::Body, head::HeadBuffer};

/// What comes next in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextPart {
    /// A head begins, or has begun.
    Head,
    Body(Body),
    /// Something was missed: a head is taken for one only at the beginning of a piece.
    Lost,
}

#[derive(Debug)]
pub(super) struct Side {
    pub(super) place: NextPart,
    pub(super) head: HeadBuffer,
    /// When the last piece was moved.
    pub(super) last_ns: u64,
    /// The head was found while the side was lost.
    pub(super) is_found_again: bool,
    /// Bytes that were passed over.
    pub(super) not_understood: u64,
    /// Bytes that went by, of a piece those that were captured before it is read.
    pub(super) moved: u64,
    /// Bytes before the head were not captured: the end of a line, or letters of its method.
    pub(super) may_be_torn: bool,
    /// Bytes are missing before the next piece.
    pub(super) is_torn: bool,
}

impl Side {
    pub(super) fn new(place: NextPart) -> Self {
        Self {
            place,
            head: HeadBuffer::default(),
            last_ns: 0,
            is_found_again: false,
            not_understood: 0,
            moved: 0,
            may_be_torn: false,
            is_torn: false,
        }
    }

    pub(super) fn lose(&mut self) {
        self.place = NextPart::Lost;
        self.drop_head();
        self.is_found_again = false;
    }

    /// Passes over what there is of a head.
    pub(super) fn drop_head(&mut self) {
        self.not_understood += self.head.bytes().len() as u64;
        self.head.clear();
    }
}
