//! Frames out of pieces: for protocols whose messages begin with their length.

use super::Piece;

/// How long a frame is, and how much of it is of use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Bytes of the frame, header included; never less than the header.
    pub(crate) length: u64,
    /// First bytes to keep, header included.
    pub(crate) keep: usize,
}

/// A frame that has passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Its first bytes, header included: as many as were wanted and captured.
    pub(crate) head: &'a [u8],
    /// Bytes of the whole frame.
    pub(crate) length: u64,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
}

/// What is left of a piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) uncaptured: u64,
    pub(crate) at_ns: u64,
}

impl<'a> Rest<'a> {
    pub(crate) fn of(piece: &Piece<'a>) -> Self {
        Self {
            bytes: piece.bytes,
            uncaptured: piece.uncaptured(),
            at_ns: piece.at_ns,
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.bytes.len() as u64 + self.uncaptured
    }

    /// Passes over up to `count` bytes, captured ones first; returns the number of each.
    pub(crate) fn pass(&mut self, count: u64) -> (&'a [u8], u64) {
        let captured = usize::try_from(count).unwrap_or(usize::MAX);
        let (taken, left) = self.bytes.split_at(captured.min(self.bytes.len()));
        self.bytes = left;
        let unseen = (count - taken.len() as u64).min(self.uncaptured);
        self.uncaptured -= unseen;
        (taken, unseen)
    }
}

/// What a look for the next frame found.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    Frame(Frame<'a>),
    /// The piece is used up.
    Wait,
    /// The header is none of the protocol.
    Invalid,
    /// The header was not captured: where the next frame begins is unknown.
    Lost,
}

/// Puts the frames of one direction together. Keeps no more of a frame than is asked for.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    head: Vec<u8>,
    extent: Option<Extent>,
    /// Bytes of the frame that have passed.
    passed: u64,
    /// All that passed so far was captured.
    unbroken: bool,
    begin_ns: u64,
}

impl FrameReader {
    /// Takes what belongs to the next frame. `header` bytes tell its extent through `measure`.
    pub(crate) fn next(
        &mut self,
        rest: &mut Rest<'_>,
        header: usize,
        measure: impl Fn(&[u8]) -> Option<Extent>,
    ) -> Step<'_> {
        if self
            .extent
            .is_some_and(|extent| self.passed >= extent.length)
        {
            self.reset();
        }
        if rest.length() == 0 {
            return Step::Wait;
        }
        if self.passed == 0 {
            self.begin_ns = rest.at_ns;
            self.unbroken = true;
        }
        let extent = if let Some(extent) = self.extent {
            extent
        } else {
            let wanted = header.saturating_sub(self.head.len()) as u64;
            let (taken, unseen) = rest.pass(wanted);
            self.head.extend_from_slice(taken);
            self.passed += taken.len() as u64;
            if unseen > 0 {
                self.reset();
                return Step::Lost;
            }
            if self.head.len() < header {
                return Step::Wait;
            }
            let Some(extent) = measure(&self.head) else {
                self.reset();
                return Step::Invalid;
            };
            self.extent = Some(extent);
            extent
        };
        let (taken, unseen) = rest.pass(extent.length.saturating_sub(self.passed));
        if self.unbroken {
            let room = extent.keep.saturating_sub(self.head.len());
            self.head.extend(taken.iter().take(room));
        }
        self.unbroken &= unseen == 0;
        self.passed += taken.len() as u64 + unseen;
        if self.passed < extent.length {
            return Step::Wait;
        }
        Step::Frame(Frame {
            head: &self.head,
            length: extent.length,
            begin_ns: self.begin_ns,
            end_ns: rest.at_ns,
        })
    }

    /// In the middle of a frame.
    pub(crate) fn is_inside(&self) -> bool {
        match self.extent {
            Some(extent) => self.passed < extent.length,
            None => self.passed > 0,
        }
    }

    /// Bytes that have passed of a header that is not whole.
    pub(crate) fn header_bytes(&self) -> u64 {
        match self.extent {
            Some(_) => 0,
            None => self.passed,
        }
    }

    /// Bytes are missing. `true`: they were all of the frame at hand, more of which follows.
    pub(crate) fn gap(&mut self, missing: Option<u64>) -> bool {
        if let (Some(missing), Some(extent)) = (missing, self.extent)
            && missing < extent.length.saturating_sub(self.passed)
        {
            self.passed += missing;
            self.unbroken = false;
            return true;
        }
        self.reset();
        false
    }

    fn reset(&mut self) {
        self.head.clear();
        self.extent = None;
        self.passed = 0;
    }
}

/// Whether a piece looks like whole frames from its first byte on: every header that was captured is
/// valid, and the frames end with the piece, or the last one goes on behind it.
pub(crate) fn begins_with_frames(
    piece: &Piece<'_>,
    header: usize,
    measure: impl Fn(&[u8]) -> Option<Extent>,
) -> bool {
    let mut rest = Rest::of(piece);
    let mut frames = 0;
    while rest.length() > 0 {
        let Some(head) = rest.bytes.get(..header) else {
            // A header that is cut or was not captured is of no use.
            return frames > 0;
        };
        let Some(extent) = measure(head) else {
            return false;
        };
        rest.pass(extent.length.max(1));
        frames += 1;
    }
    frames > 0
}
