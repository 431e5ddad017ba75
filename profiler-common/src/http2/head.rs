//! Headers of frames: what they say of a stream, and whether bytes are one.

use crate::http::First;

/// Bytes of a frame's header.
pub const HEADER_BYTES: u32 = 9;
/// What a client sends before its first frame: its length, and its beginning.
pub(super) const PREFACE_BYTES: u32 = 24;
const PREFACE_BEGINS: [u8; 8] = *b"PRI * HT";
/// Bytes of a header, and behind it of the payload, that are looked at.
pub const HEAD_BYTES: u32 = 16;
/// Largest payload that is believed where no setting was seen.
const LONGEST: u32 = 1 << 20;

const DATA: u32 = 0;
const HEADERS: u32 = 1;
const PRIORITIES: u32 = 2;
const RESET: u32 = 3;
const SETTINGS: u32 = 4;
const PROMISE: u32 = 5;
const PING: u32 = 6;
const GO_AWAY: u32 = 7;
const WINDOW_UPDATE: u32 = 8;
const CONTINUATION: u32 = 9;
/// Extensions: ALTSVC, ORIGIN, `PRIORITY_UPDATE` (RFC 7838, 8336, 9218), and METADATA of Envoy.
const EXTENSIONS: [u32; 4] = [0xa, 0xc, 0x10, 0x4d];

/// Flags of frames.
pub(super) const END_STREAM: u32 = 0x1;
pub(super) const ACK: u32 = 0x1;
pub(super) const END_HEADERS: u32 = 0x4;
const PADDED: u32 = 0x8;
const PRIORITY: u32 = 0x20;

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the payload.
    pub(super) length: u32,
    kind: u32,
    flags: u32,
    pub(super) stream: u32,
    is_reserved_set: bool,
}

impl Head {
    /// By its bytes as they lie in memory.
    #[inline]
    pub const fn of(words: [u64; 2]) -> Self {
        // Length, type, flags and stream, each with its highest byte first.
        let first = u64::from_be(words[0]);
        let [last, ..] = words[1].to_ne_bytes();
        let stream = ((first & 0xff_ffff) as u32) << 8 | last as u32;
        Self {
            length: (first >> 40) as u32,
            kind: (first >> 32 & 0xff) as u32,
            flags: (first >> 24 & 0xff) as u32,
            stream: stream & 0x7fff_ffff,
            is_reserved_set: stream >> 31 != 0,
        }
    }

    /// Nothing that concerns a stream.
    pub(super) const NOTHING: Self = Self {
        length: 0,
        kind: SETTINGS,
        flags: 0,
        stream: 0,
        is_reserved_set: false,
    };

    /// Whether a peer may send this: the length and the stream are those of the type (RFC 9113, 6), or it is an extension that
    /// is known.
    #[inline]
    pub(super) const fn is_valid(self) -> bool {
        let Self { length, stream, .. } = self;
        let is_of_stream = stream != 0;
        !self.is_reserved_set
            && match self.kind {
                DATA | HEADERS | CONTINUATION => is_of_stream,
                PRIORITIES => is_of_stream && length == 5,
                RESET => is_of_stream && length == 4,
                SETTINGS => !is_of_stream && length.is_multiple_of(6) && length <= 6 * 64,
                PROMISE => is_of_stream && length >= 4,
                PING => !is_of_stream && length == 8,
                GO_AWAY => !is_of_stream && length >= 8,
                WINDOW_UPDATE => length == 4,
                extension => {
                    let [a, b, c, d] = EXTENSIONS;
                    extension == a || extension == b || extension == c || extension == d
                }
            }
    }

    /// Whether bytes that may be anything are a header: valid, of a type and with flags that are defined.
    #[inline]
    const fn is_likely(self) -> bool {
        let known = match self.kind {
            DATA => END_STREAM | PADDED,
            HEADERS => END_STREAM | END_HEADERS | PADDED | PRIORITY,
            PRIORITIES | RESET | GO_AWAY | WINDOW_UPDATE => 0,
            SETTINGS | PING => ACK,
            PROMISE => END_HEADERS | PADDED,
            CONTINUATION => END_HEADERS,
            _ => return false,
        };
        let least = if self.kind == HEADERS { 1 } else { 0 };
        self.flags & !known == 0
            && self.length >= least
            && self.length <= LONGEST
            && self.is_valid()
    }

    /// The same of one that is none of content.
    #[inline]
    pub(super) const fn is_start(self) -> bool {
        self.kind != DATA && self.is_likely()
    }

    /// Bytes of it and of its payload that are needed for [`Self::event`].
    #[inline]
    pub(super) const fn needs(self, is_answer: bool) -> u32 {
        if !is_answer || self.kind != HEADERS {
            return HEADER_BYTES;
        }
        let more = HEAD_BYTES - HEADER_BYTES;
        HEADER_BYTES
            + if self.length < more {
                self.length
            } else {
                more
            }
    }

    /// What it says of its stream; `words` are those of [`Self::of`].
    #[inline]
    pub(super) const fn event(self, is_answer: bool, words: [u64; 2]) -> Event {
        let is_last = self.flags & END_STREAM != 0;
        // Streams with even numbers are the server's own.
        if self.stream & 1 == 0 {
            return Event::Nothing;
        }
        match (self.kind, is_answer) {
            (HEADERS, false) => Event::Begins,
            (HEADERS, true) => {
                let is_plain = self.flags & (PADDED | PRIORITY) == 0;
                let class = if is_plain {
                    class_of_block(words, is_last)
                } else {
                    0
                };
                Event::Head { class, is_last }
            }
            (DATA, true) if is_last => Event::Ends,
            (RESET, _) => Event::Breaks,
            _ => Event::Nothing,
        }
    }
}

/// What a frame says of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Nothing,
    /// A request, unless it has begun.
    Begins,
    /// A header block of the answer.
    Head {
        class: u32,
        is_last: bool,
    },
    /// The answer is over behind it.
    Ends,
    /// The stream is over at once.
    Breaks,
}

/// Whether these are the first eight bytes of what a client says first.
#[inline]
pub const fn is_preface(word: u64) -> bool {
    word == u64::from_ne_bytes(PREFACE_BEGINS)
}

/// Whether the first eight bytes of a connection are those of a server that speaks before its client: its settings.
#[inline]
pub const fn is_greeting(first: First) -> bool {
    let head = Head::of([first.words[0], 0]);
    head.kind == SETTINGS && head.flags == 0 && head.is_likely()
}

/// Whether bytes that may be anything are the beginning of a frame that is none of content.
#[inline]
pub const fn is_start(first: First) -> bool {
    if first.known >= HEADER_BYTES {
        return Head::of(first.words).is_start();
    }
    // The first part of a piece may be one of these, of which the last byte of the stream's number is missing here.
    let Head {
        length,
        kind,
        flags,
        ..
    } = Head::of([first.words[0], 0]);
    first.known == HEADER_BYTES - 1
        && match kind {
            RESET | WINDOW_UPDATE => length == 4 && flags == 0,
            SETTINGS => length == 0 && flags == ACK,
            _ => false,
        }
}

/// Whether a frame is of an answer, by the first field of a header block: a request begins with another of the fields that have a
/// colon. `None`: it does not show.
#[inline]
pub const fn is_of_answer(first: First) -> Option<bool> {
    let head = Head::of(first.words);
    let [_, field, ..] = first.words[1].to_ne_bytes();
    if head.kind != HEADERS || head.flags & (PADDED | PRIORITY) != 0 || first.known <= HEADER_BYTES
    {
        return None;
    }
    // An entry of the static table, or a literal with the name of one, in its three forms.
    match (field >> 4, field & 0xf) {
        (0x8 | 0x4 | 0x0 | 0x1, 1..=7) => Some(false),
        (0x8 | 0x4 | 0x0 | 0x1, 8..=14) => Some(true),
        _ => None,
    }
}

/// Class of the status with which a header block begins; 0: not known. A status of 200 that is all of the answer is that of a call of
/// gRPC that failed, or of an answer without a body.
#[inline]
const fn class_of_block(words: [u64; 2], is_last: bool) -> u32 {
    // Behind the header; the first byte is the lowest.
    let mut block = u64::from_le(words[1]) >> 8;
    // The size of the encoder's table changes: one byte, or up to three.
    if block & 0xe0 == 0x20 {
        block >>= if block & 0x1f != 0x1f {
            8
        } else if block & 0x8000 == 0 {
            16
        } else {
            24
        };
    }
    let [name, length, value, ..] = block.to_le_bytes();
    // Entries 8 to 14 of the static table are `:status` with 200, 204, 206, 304, 400, 404 and 500.
    match name {
        0x88 if is_last => return 0,
        0x88..=0x8a => return 2,
        0x8b => return 3,
        0x8c | 0x8d => return 4,
        0x8e => return 5,
        _ => {}
    }
    let is_status = matches!(name, 0x48..=0x4e | 0x08..=0x0e | 0x18..=0x1e);
    if !is_status {
        return 0;
    }
    // The first of the digits, as a byte or by its code.
    let digit = match (length & 0x80 != 0, value) {
        (false, b'1'..=b'5') => (value - b'0') as u32,
        (false, _) => 0,
        (true, _) => match value >> 2 {
            0b00_0010 | 0b00_0011 => 1,
            0b00_0100 | 0b00_0101 => 2,
            0b01_1001 => 3,
            0b01_1010 => 4,
            0b01_1011 => 5,
            _ => 0,
        },
    };
    if digit == 2 && is_last { 0 } else { digit }
}
