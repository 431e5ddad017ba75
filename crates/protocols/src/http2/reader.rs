//! Frames of one direction over pieces of which only the beginning was captured.
//!
//! A frame says how long it is, so what was not captured of it is skipped. When bytes were missed that
//! may hold headers of frames, reading begins again at a piece that consists of whole frames, or that
//! begins with a chain of frames too long for chance. A peer that reads the header of a frame by one call
//! and its payload by others shows one frame in as many pieces: a header alone, then exactly its payload.

use super::frame::{FrameHeader, HEADER_BYTES, Kind, PADDED, SMALLEST_LIMIT, UNKNOWN_LIMIT};
use crate::Piece;

/// What a client sends first (RFC 9113, section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Content of a frame that is too short to be no chance.
const SHORT_CONTENT: u64 = 32;
/// Numbers of streams that may have been used since a request was seen last, before the next is.
const MOST_UNSEEN: u32 = 1 << 16;
/// Headers in a row that are not chance.
const CHAIN: usize = 3;

/// What is left of a piece.
#[derive(Debug)]
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    /// Bytes behind them that were not captured.
    hole: u64,
    /// All bytes of the piece, as long as none was used.
    whole: Option<u64>,
    at_ns: u64,
}

impl<'a> Input<'a> {
    pub(super) fn new(piece: &Piece<'a>) -> Self {
        Self {
            bytes: piece.bytes,
            hole: piece.uncaptured(),
            whole: Some(piece.length),
            at_ns: piece.at_ns,
        }
    }

    /// Bytes that were missed.
    pub(super) fn missing(count: u64, at_ns: u64) -> Self {
        Self {
            bytes: &[],
            hole: count,
            whole: None,
            at_ns,
        }
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .unwrap_or((self.bytes, &[]));
        self.bytes = rest;
        if !taken.is_empty() {
            self.whole = None;
        }
        taken
    }

    fn skip(&mut self, count: u64) -> u64 {
        let count = count.min(self.hole);
        self.hole -= count;
        count
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.hole == 0
    }

    /// Passes over what is left; returns how much that was.
    fn drop_all(&mut self) -> u64 {
        let count = self.bytes.len() as u64 + self.hole;
        self.bytes = &[];
        self.hole = 0;
        count
    }
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// The piece has nothing more.
    Done,
    /// The client has said what it speaks.
    Preface,
    Frame(Frame),
    /// Content of a DATA frame.
    Content {
        stream: u32,
        bytes: &'a [u8],
    },
    /// The same, not captured.
    MissingContent {
        stream: u32,
        count: u64,
    },
    /// A part of a DATA frame of which it is not known whether it is padding.
    MissingPadding {
        stream: u32,
    },
    DataEnd(FrameHeader),
    /// Frames may have been missed.
    Lost,
    /// These are not frames.
    Garbage,
}

/// A frame other than DATA.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) header: FrameHeader,
    /// When its first byte was moved.
    pub(super) begin_ns: u64,
    /// As far as it was captured.
    pub(super) payload: Vec<u8>,
    pub(super) is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
enum ReadState {
    /// Bytes of the preface received so far.
    Preface(usize),
    Header,
    Payload {
        header: FrameHeader,
        left: u32,
        is_whole: bool,
    },
    Data {
        header: FrameHeader,
        content: u32,
        padding: Padding,
    },
    Lost,
    /// A piece was what may be a header, and nothing else; it is one if its payload ends with a piece.
    Alone {
        header: FrameHeader,
        left: u32,
        is_whole: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum Padding {
    /// The next byte says how long it is.
    Due,
    Bytes(u32),
}

#[derive(Debug)]
pub(super) struct FrameReader {
    place: ReadState,
    header: Vec<u8>,
    payload: Vec<u8>,
    begin_ns: u64,
    /// Largest payload that the peer may send.
    pub(super) limit: u32,
    /// Streams that content may be of.
    pub(super) streams: Streams,
    pending_bytes: usize,
    /// Pieces of which the rest may hold frames.
    pub(super) gaps: u64,
    /// Bytes that were passed over.
    pub(super) not_understood: u64,
}

/// Which streams were begun, as far as that is known. What is read from a wrong place on is of any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Streams {
    /// The newest of the client; 0: none was seen.
    pub(super) newest: u32,
    /// The server has promised some.
    pub(super) has_promises: bool,
}

impl Streams {
    /// Whether a frame, if it holds content, is of a stream that may have begun.
    fn may_have(self, header: &FrameHeader) -> bool {
        let is_promised = header.stream.is_multiple_of(2);
        header.kind != Kind::Data
            || self.newest == 0
            || header.stream <= self.newest.saturating_add(MOST_UNSEEN)
                && (!is_promised || self.has_promises)
    }
}

/// How reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Preface,
    Frames,
    /// In the middle.
    Joined,
}

impl FrameReader {
    pub(super) fn new(start: Start, pending_bytes: usize) -> Self {
        let (place, limit) = match start {
            Start::Preface => (ReadState::Preface(0), super::frame::SMALLEST_LIMIT),
            Start::Frames => (ReadState::Header, super::frame::SMALLEST_LIMIT),
            Start::Joined => (ReadState::Lost, UNKNOWN_LIMIT),
        };
        Self {
            place,
            header: Vec::new(),
            payload: Vec::new(),
            begin_ns: 0,
            limit,
            streams: Streams::default(),
            pending_bytes,
            gaps: 0,
            not_understood: 0,
        }
    }

    /// Where the next frame begins is not known.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.place, ReadState::Lost | ReadState::Alone { .. })
    }

    /// What passes may be the payload of a frame, or frames that are missed.
    pub(super) fn is_guessing(&self) -> bool {
        matches!(self.place, ReadState::Alone { .. })
    }

    /// Nothing more of a piece can be read.
    pub(super) fn pass_over(&mut self, input: &mut Input<'_>) {
        self.not_understood += input.drop_all();
    }

    pub(super) fn lose(&mut self) {
        if let ReadState::Alone { header, left, .. } = self.place {
            let passed = header.length.saturating_sub(left);
            self.not_understood += HEADER_BYTES as u64 + u64::from(passed);
        }
        self.place = ReadState::Lost;
        self.not_understood += self.header.len() as u64;
        self.header.clear();
        self.payload = Vec::new();
    }

    /// Whether `count` bytes end within the content of a frame, and hide nothing but content.
    pub(super) fn is_content(&self, count: u64) -> bool {
        match self.place {
            ReadState::Data {
                header: _,
                content,
                padding: Padding::Bytes(_),
            } => count < u64::from(content),
            ReadState::Data { .. }
            | ReadState::Preface(_)
            | ReadState::Header
            | ReadState::Payload { .. }
            | ReadState::Lost
            | ReadState::Alone { .. } => false,
        }
    }

    pub(super) fn next<'a>(&mut self, input: &mut Input<'a>) -> Event<'a> {
        loop {
            let event = match self.place {
                ReadState::Preface(seen) => self.preface(seen, input),
                ReadState::Header => self.header(input),
                ReadState::Payload {
                    header,
                    left,
                    is_whole,
                } => Some(self.payload(header, left, is_whole, input)),
                ReadState::Data {
                    header,
                    content,
                    padding,
                } => self.data(header, content, padding, input),
                ReadState::Lost => {
                    if is_frames(input, self.limit, self.streams) {
                        self.place = ReadState::Header;
                        None
                    } else if input.is_empty() {
                        Some(Event::Done)
                    } else if let Some(header) = lone_header(input) {
                        self.begin_ns = input.at_ns;
                        self.place = ReadState::Alone {
                            header,
                            left: header.length,
                            is_whole: true,
                        };
                        input.drop_all();
                        // It may be none, and what follows it is then missed.
                        Some(Event::Lost)
                    } else {
                        self.pass_over(input);
                        Some(Event::Lost)
                    }
                }
                ReadState::Alone {
                    header,
                    left,
                    is_whole,
                } => Some(self.alone(header, left, is_whole, input)),
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    fn missed(&mut self, input: &mut Input<'_>) -> Event<'static> {
        if input.hole == 0 {
            return Event::Done;
        }
        self.gaps += 1;
        self.pass_over(input);
        self.lose();
        Event::Lost
    }

    fn preface(&mut self, seen: usize, input: &mut Input<'_>) -> Option<Event<'static>> {
        if input.bytes.is_empty() {
            return Some(self.missed(input));
        }
        let expected = PREFACE.get(seen..).unwrap_or_default();
        let taken = input.take(expected.len());
        if !expected.starts_with(taken) {
            return Some(Event::Garbage);
        }
        if taken.len() == expected.len() {
            self.place = ReadState::Header;
            return Some(Event::Preface);
        }
        self.place = ReadState::Preface(seen + taken.len());
        None
    }

    fn header(&mut self, input: &mut Input<'_>) -> Option<Event<'static>> {
        if input.bytes.is_empty() {
            return Some(self.missed(input));
        }
        if self.header.is_empty() {
            self.begin_ns = input.at_ns;
        }
        let taken = input.take(HEADER_BYTES.saturating_sub(self.header.len()));
        self.header.extend_from_slice(taken);
        let header = FrameHeader::read(&self.header)?;
        if !header.is_valid(self.limit) || !self.streams.may_have(&header) {
            return Some(Event::Garbage);
        }
        self.header.clear();
        self.place = if header.kind == Kind::Data {
            ReadState::Data {
                header,
                content: header.length,
                padding: if header.has(PADDED) {
                    Padding::Due
                } else {
                    Padding::Bytes(0)
                },
            }
        } else {
            ReadState::Payload {
                header,
                left: header.length,
                is_whole: true,
            }
        };
        None
    }

    fn payload(
        &mut self,
        header: FrameHeader,
        mut left: u32,
        mut is_whole: bool,
        input: &mut Input<'_>,
    ) -> Event<'static> {
        let taken = input.take(usize::try_from(left).unwrap_or(usize::MAX));
        left = left.saturating_sub(u32::try_from(taken.len()).unwrap_or(u32::MAX));
        if header.kind.is_read() && is_whole {
            let room = self.pending_bytes.saturating_sub(self.payload.len());
            is_whole = taken.len() <= room;
            self.payload
                .extend_from_slice(taken.get(..room).unwrap_or(taken));
        }
        if left > 0 && input.bytes.is_empty() && input.hole > 0 {
            is_whole = false;
            let skipped = input.skip(u64::from(left));
            left = left.saturating_sub(u32::try_from(skipped).unwrap_or(u32::MAX));
        }
        if left > 0 {
            self.place = ReadState::Payload {
                header,
                left,
                is_whole,
            };
            return Event::Done;
        }
        self.place = ReadState::Header;
        Event::Frame(Frame {
            header,
            begin_ns: self.begin_ns,
            payload: std::mem::take(&mut self.payload),
            is_whole,
        })
    }

    /// Takes a piece behind a header that came alone.
    fn alone(
        &mut self,
        header: FrameHeader,
        left: u32,
        is_whole: bool,
        input: &mut Input<'_>,
    ) -> Event<'static> {
        if input.is_empty() {
            return Event::Done;
        }
        if input.whole.is_none_or(|length| length > u64::from(left)) {
            self.lose();
            // The piece is looked at again, as one behind bytes that were missed.
            return Event::Lost;
        }
        let event = self.payload(header, left, is_whole, input);
        if let ReadState::Payload {
            header,
            left,
            is_whole,
        } = self.place
        {
            self.place = ReadState::Alone {
                header,
                left,
                is_whole,
            };
        }
        match event {
            // What it held is counted nowhere: bytes of its stream were missed before it.
            Event::Frame(_) if header.kind == Kind::Data => Event::DataEnd(header),
            event => event,
        }
    }

    fn data<'a>(
        &mut self,
        header: FrameHeader,
        content: u32,
        padding: Padding,
        input: &mut Input<'a>,
    ) -> Option<Event<'a>> {
        let stream = header.stream;
        // A request has shown since then that there is no such stream.
        if !self.streams.may_have(&header) {
            return Some(Event::Garbage);
        }
        let (content, padding, event) = match padding {
            Padding::Due => match (input.take(1), input.hole) {
                ([length], _) => {
                    let padding = u32::from(*length);
                    let Some(content) = content.checked_sub(1 + padding) else {
                        return Some(Event::Garbage);
                    };
                    (content, padding, None)
                }
                (_, 0) => return Some(Event::Done),
                (_, _) => (0, content, Some(Event::MissingPadding { stream })),
            },
            Padding::Bytes(padding) if content > 0 => {
                let bytes = input.take(usize::try_from(content).unwrap_or(usize::MAX));
                if !bytes.is_empty() {
                    let taken = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                    let content = content.saturating_sub(taken);
                    (content, padding, Some(Event::Content { stream, bytes }))
                } else if input.hole > 0 {
                    let count = input.skip(u64::from(content));
                    let taken = u32::try_from(count).unwrap_or(u32::MAX);
                    let content = content.saturating_sub(taken);
                    (
                        content,
                        padding,
                        Some(Event::MissingContent { stream, count }),
                    )
                } else {
                    return Some(Event::Done);
                }
            }
            Padding::Bytes(padding) if padding > 0 => {
                let taken = input
                    .take(usize::try_from(padding).unwrap_or(usize::MAX))
                    .len() as u64;
                let taken = if taken == 0 {
                    input.skip(u64::from(padding))
                } else {
                    taken
                };
                if taken == 0 {
                    return Some(Event::Done);
                }
                (
                    0,
                    padding.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX)),
                    None,
                )
            }
            Padding::Bytes(_) => {
                self.place = ReadState::Header;
                return Some(Event::DataEnd(header));
            }
        };
        self.place = ReadState::Data {
            header,
            content,
            padding: Padding::Bytes(padding),
        };
        event
    }
}

/// Whether a piece begins with a frame, as far as that can be determined. One short frame of content is too
/// little: zeros of a message and of a torn header behind it look the same.
fn is_frames(input: &Input<'_>, limit: u32, streams: Streams) -> bool {
    let is_weak = |length| {
        length < HEADER_BYTES as u64 + SHORT_CONTENT
            && FrameHeader::read(input.bytes).is_none_or(|header| header.kind == Kind::Data)
    };
    let is_possible = |header: &FrameHeader| header.is_likely(limit) && streams.may_have(header);
    input.whole.is_some_and(|length| {
        !is_weak(length) && frames_of(input.bytes, length, is_possible) == Frames::Yes
    })
}

/// The header that is all of a piece, if it may be one of a frame with a payload. Larger frames than any
/// peer has to take are not waited for, as what is taken for a header by chance hides what follows it.
fn lone_header(input: &Input<'_>) -> Option<FrameHeader> {
    let header = FrameHeader::read(input.bytes)?;
    let is_alone = input.whole == Some(HEADER_BYTES as u64);
    (is_alone && header.length > 0 && header.is_likely(SMALLEST_LIMIT)).then_some(header)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frames {
    Yes,
    /// So far they are, but they are too few.
    Few,
    No,
}

/// Whether bytes, the first of `length`, are frames one after the other.
pub(super) fn frames_of(
    bytes: &[u8],
    length: u64,
    is_possible: impl Fn(&FrameHeader) -> bool,
) -> Frames {
    let (mut at, mut count) = (0_u64, 0);
    loop {
        if count >= CHAIN || count > 0 && at == length {
            return Frames::Yes;
        }
        let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
        let Some(header) = rest.and_then(FrameHeader::read) else {
            return Frames::Few;
        };
        if !is_possible(&header) {
            return Frames::No;
        }
        count += 1;
        at += HEADER_BYTES as u64 + u64::from(header.length);
    }
}
