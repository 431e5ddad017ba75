//! Requests of HTTP/1 that the kernel side counts itself, by the first bytes of messages.
//!
//! A connection alternates: the client says something, then the server. A request begins with the first bytes of the
//! client's turn, and its status is in the first bytes of the server's, so that two short reads for each request are enough; all
//! other bytes have no say. What cannot be told this way is noted ([`UNSURE`]): the counts are then too low by an
//! unknown number. Requests of which several are under way at once (pipelines) look like one.
//!
//! What begins as HTTP/2 is followed by its frames instead ([`crate::http2`]).
//!
//! Formats: RFC 9112, sections 3 and 4 (start lines), RFC 9110, 15.2 (interim answers) and 9.3.6 (`CONNECT`).

use crate::http2;

/// [`crate::network::Connection::http`]: which end the socket is.
pub const END: u32 = 3;
/// Nothing has shown yet whether the connection speaks HTTP/1.
pub const UNDECIDED: u32 = 0;
pub const AT_CLIENT: u32 = 1;
pub const AT_SERVER: u32 = 2;
/// It does not.
pub const NONE: u32 = 3;
/// A request has begun, and its answer has not.
pub const ASKED: u32 = 1 << 2;
/// The answer of the last request has begun.
pub const ANSWERED: u32 = 1 << 3;
/// What was said to a request so far may not be its final answer.
pub const INTERIM: u32 = 1 << 4;
/// The request is one for a tunnel.
pub const TUNNEL: u32 = 1 << 5;
/// There may be requests that are not counted.
pub const UNSURE: u32 = 1 << 6;
/// There is an [`HttpCounts`] of the connection.
pub const COUNTED: u32 = 1 << 7;
/// First digit of the status of the answer; 0: not known.
const CLASS_SHIFT: u32 = 8;
/// From the last answer on it speaks something else.
pub const SWITCHED: u32 = 1 << 11;
/// Pieces that did not show what the connection speaks, as long as it is [`UNDECIDED`].
const TRIES_SHIFT: u32 = 12;
const LAST_TRY: u32 = 15;
/// It speaks HTTP/2. Beside it there are only [`END`], [`COUNTED`], [`UNSURE`] and [`SWITCHED`], which says here that the
/// frames could not be followed.
pub const HTTP2: u32 = 1 << 16;
/// Among the pieces that did not show it there may have been one with requests of HTTP/2, which may begin within a piece.
pub const PASSED_OVER: u32 = 1 << 17;

/// First bytes of a piece that are looked at.
pub const FIRST_BYTES: usize = 16;
/// An answer that asks to go on, without fields: `HTTP/1.1 100 Continue` and two ends of lines.
const CONTINUE_BYTES: u64 = 25;

/// Unit of [`crate::network::Connection::http_took`], in nanoseconds.
pub const TOOK_UNIT_NS: u64 = 64;

/// Two to the power of this is how many buckets of times each doubling has, as in results.
const STEP_BITS: u32 = 4;
/// Two to the power of this is the least time, in nanoseconds, with a bucket of its width: 512 ns. Shorter ones are in the first.
const FIRST_DOUBLING: u32 = 9;
/// 512 ns to 275 s.
const DOUBLINGS: u32 = 29;
pub const TIME_BUCKETS: usize = (DOUBLINGS << STEP_BITS) as usize;
const IN_DOUBLING: u64 = (1 << STEP_BITS) - 1;
/// A power of two, for the verifier.
const TIME_BUCKETS_MASK: usize = TIME_BUCKETS.next_power_of_two() - 1;

/// Entries of the kernel's table of counts: one for each connection with more than one request.
pub const HTTP_ENTRIES: u32 = 65_536;

/// Requests of one connection that are over, in HTTP/1 but for the last one. Value of the kernel's table of counts.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpCounts {
    /// Of their times, nanoseconds.
    pub sum_ns: u64,
    pub least_ns: u64,
    pub greatest_ns: u64,
    /// By the first digit of the status; 0: not known, [`BROKEN`]: none.
    pub answers: [u32; CLASSES],
    /// By [`time_bucket`].
    pub times: [u32; TIME_BUCKETS],
}

/// In the place of a first digit: a stream of HTTP/2 that was reset.
pub const BROKEN: u32 = 6;
/// Places for classes; the last one is not used.
pub const CLASSES: usize = 8;

impl Default for HttpCounts {
    fn default() -> Self {
        Self {
            sum_ns: 0,
            least_ns: 0,
            greatest_ns: 0,
            answers: [0; CLASSES],
            times: [0; TIME_BUCKETS],
        }
    }
}

/// The first bytes of a piece, as they lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct First {
    pub words: [u64; FIRST_BYTES / 8],
    /// How many of them there are; fewer than [`FIRST_BYTES`]: no more could be read.
    pub known: u32,
}

impl First {
    /// Nothing could be read.
    pub const NONE: Self = Self {
        words: [0; FIRST_BYTES / 8],
        known: 0,
    };
}

/// A piece that one call moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    pub is_sent: bool,
    /// The socket's first in any direction, and it was watched from its beginning.
    pub is_first: bool,
    /// Which end it is, where that is known otherwise: [`AT_CLIENT`], [`AT_SERVER`] or [`UNDECIDED`].
    pub end: u32,
    pub bytes: u64,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing that matters.
    Nothing,
    /// The beginning of a request.
    Request,
    /// A part of an answer.
    Answer,
    /// The connection speaks HTTP/2.
    Http2,
}

/// Whether the first bytes of a piece have a say.
#[inline]
pub const fn looks(http: u32, is_sent: bool) -> bool {
    if http & (SWITCHED | HTTP2) != 0 {
        return false;
    }
    match http & END {
        NONE => false,
        UNDECIDED => true,
        end if is_sent == (end == AT_CLIENT) => http & ASKED == 0,
        _ => http & (ASKED | INTERIM) != 0,
    }
}

/// Whether a piece that has no say is a part of an answer.
#[inline]
pub const fn is_answer(http: u32, is_sent: bool) -> bool {
    let end = http & END;
    (end == AT_CLIENT || end == AT_SERVER)
        && is_sent != (end == AT_CLIENT)
        && http & (ANSWERED | SWITCHED) == ANSWERED
}

/// Takes in a piece for which [`looks`] holds. Behind [`Said::Request`] the request before it is over: it was answered if
/// [`ANSWERED`] was set.
#[inline]
pub const fn take(http: u32, moved: Moved, first: First) -> (u32, Said) {
    let end = http & END;
    if end == UNDECIDED {
        return decide(http, moved, first);
    }
    if moved.is_sent == (end == AT_CLIENT) {
        if is_request(first) {
            return (asked(http, first), Said::Request);
        }
        // More of a request that is answered already, or one that is not known as such.
        return (http | UNSURE, Said::Nothing);
    }
    answer(http, moved.bytes, first)
}

#[inline]
const fn decide(http: u32, moved: Moved, first: First) -> (u32, Said) {
    if is_request(first) {
        let end = if moved.is_sent { AT_CLIENT } else { AT_SERVER };
        return (asked(http, first) | end, Said::Request);
    }
    // The client's first piece may be the second one.
    let is_preface = first.known >= 8 && http2::is_preface(first.words[0]);
    let is_greeting = moved.is_first && first.known >= 8 && http2::is_greeting(first);
    if is_preface || is_greeting {
        let is_client = moved.is_sent == is_preface;
        let end = if is_client { AT_CLIENT } else { AT_SERVER };
        return (end | http & UNSURE | HTTP2 | COUNTED, Said::Http2);
    }
    if moved.is_first {
        let unsure = if is_something_else(first) { 0 } else { UNSURE };
        return (NONE | unsure, Said::Nothing);
    }
    // In the middle of something.
    if http2::is_start(first) {
        let end = match (moved.end, http2::is_of_answer(first)) {
            (UNDECIDED, None) => UNDECIDED,
            (UNDECIDED, Some(is_answer)) if is_answer == moved.is_sent => AT_SERVER,
            (UNDECIDED, Some(_)) => AT_CLIENT,
            (end, _) => end,
        };
        if end != UNDECIDED {
            let unsure = if http & PASSED_OVER == 0 { 0 } else { UNSURE };
            return (end | http & UNSURE | unsure | HTTP2 | COUNTED, Said::Http2);
        }
    }
    let tries = http >> TRIES_SHIFT & LAST_TRY;
    if tries == LAST_TRY {
        return (NONE | UNSURE, Said::Nothing);
    }
    let unsure = if first.known < 8 { UNSURE } else { 0 };
    // What a server says holds none.
    let is_answer = moved.end != UNDECIDED && moved.is_sent == (moved.end == AT_SERVER);
    let passed_over = if is_answer { 0 } else { PASSED_OVER };
    (
        (http | unsure | passed_over) + (1 << TRIES_SHIFT),
        Said::Nothing,
    )
}

#[inline]
const fn asked(http: u32, first: First) -> u32 {
    let tunnel = if is_tunnel(first) { TUNNEL } else { 0 };
    http & (END | UNSURE | COUNTED) | ASKED | tunnel
}

#[inline]
const fn answer(http: u32, bytes: u64, first: First) -> (u32, Said) {
    let status = status_of(first);
    let class = status / 100;
    let answered = http & !(ASKED | INTERIM | 7 << CLASS_SHIFT) | ANSWERED;
    if status == 100 && bytes == CONTINUE_BYTES {
        return (http, Said::Nothing);
    }
    if class == 1 && status != 101 {
        // The final answer may be behind it, or come by itself.
        return (answered | INTERIM, Said::Answer);
    }
    if class == 0 && http & ANSWERED != 0 {
        // It was behind the interim one.
        return (http & !INTERIM, Said::Answer);
    }
    let is_last = status == 101 || (http & TUNNEL != 0 && class == 2);
    let switched = if is_last { SWITCHED } else { 0 };
    (answered | class << CLASS_SHIFT | switched, Said::Answer)
}

/// First digit of the status of the last answer; 0: not known.
#[inline]
pub const fn class_of(http: u32) -> u32 {
    http >> CLASS_SHIFT & 7
}

const fn word(bytes: [u8; 8]) -> u64 {
    u64::from_ne_bytes(bytes)
}

/// Methods of RFC 9110, RFC 5789 and `WebDAV` with the space behind them, as far as eight bytes go; 0 is any byte.
const METHODS: [[u8; 8]; 16] = [
    *b"GET \0\0\0\0",
    *b"POST \0\0\0",
    *b"PUT \0\0\0\0",
    *b"HEAD \0\0\0",
    *b"DELETE \0",
    *b"PATCH \0\0",
    *b"OPTIONS ",
    CONNECT,
    *b"TRACE \0\0",
    *b"PROPFIND",
    *b"PROPPATC",
    *b"MKCOL \0\0",
    *b"COPY \0\0\0",
    *b"MOVE \0\0\0",
    *b"LOCK \0\0\0",
    *b"UNLOCK \0",
];
const CONNECT: [u8; 8] = *b"CONNECT ";

const fn mask(pattern: [u8; 8]) -> u64 {
    let mut mask = [0; 8];
    let mut at = 0;
    while at < 8 {
        if pattern[at] != 0 {
            mask[at] = 0xff;
        }
        at += 1;
    }
    word(mask)
}

const fn patterns() -> [(u64, u64); METHODS.len()] {
    let mut patterns = [(0, 0); METHODS.len()];
    let mut at = 0;
    while at < METHODS.len() {
        patterns[at] = (mask(METHODS[at]), word(METHODS[at]));
        at += 1;
    }
    patterns
}

static PATTERNS: [(u64, u64); METHODS.len()] = patterns();

#[inline]
const fn is_request(first: First) -> bool {
    if first.known < 8 {
        return false;
    }
    let mut at = 0;
    while at < METHODS.len() {
        let (mask, method) = PATTERNS[at];
        if first.words[0] & mask == method {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether the first bytes of a connection are certainly none of HTTP/1: no method that is not known here, nor an empty line.
#[inline]
const fn is_something_else(first: First) -> bool {
    let [byte, ..] = first.words[0].to_ne_bytes();
    let is_text = byte.is_ascii_uppercase() || byte == b'\r' || byte == b'\n';
    first.known >= 8 && !is_text
}

#[inline]
const fn is_tunnel(first: First) -> bool {
    first.words[0] == word(CONNECT)
}

/// The status of an answer whose first bytes these are; 0: none.
#[inline]
const fn status_of(first: First) -> u32 {
    const VERSION: [u8; 8] = *b"HTTP/1.\0";
    if first.known < 12 || first.words[0] & mask(VERSION) != word(VERSION) {
        return 0;
    }
    let [space, hundreds, tens, ones, ..] = first.words[1].to_ne_bytes();
    let digits = [
        hundreds.wrapping_sub(b'0') as u32,
        tens.wrapping_sub(b'0') as u32,
        ones.wrapping_sub(b'0') as u32,
    ];
    if space != b' ' || digits[0] < 1 || digits[0] > 5 || digits[1] > 9 || digits[2] > 9 {
        return 0;
    }
    digits[0] * 100 + digits[1] * 10 + digits[2]
}

/// The bucket of a time. The same steps whatever the value is, so that the kernel's verifier walks one path.
#[inline]
pub const fn time_bucket(time_ns: u64) -> usize {
    const LEAST: u64 = 1 << FIRST_DOUBLING;
    const LONGEST: u64 = (1 << (FIRST_DOUBLING + DOUBLINGS)) - 1;
    let time_ns = if time_ns < LEAST {
        LEAST
    } else if time_ns > LONGEST {
        LONGEST
    } else {
        time_ns
    };
    // The place of the highest bit, by halves.
    let mut rest = time_ns;
    let mut log = 0;
    let mut step = 32;
    while step > 0 {
        let is_above = (rest >> step != 0) as u32;
        rest >>= is_above * step;
        log += is_above * step;
        step /= 2;
    }
    let in_doubling = (time_ns >> (log - STEP_BITS)) & IN_DOUBLING;
    let doubling = log - FIRST_DOUBLING;
    ((doubling << STEP_BITS) as usize + in_doubling as usize) & TIME_BUCKETS_MASK
}

/// The least time of a bucket.
pub const fn bucket_from_ns(bucket: u32) -> u64 {
    let log = FIRST_DOUBLING + (bucket >> STEP_BITS);
    let in_doubling = bucket as u64 & IN_DOUBLING;
    (IN_DOUBLING + 1 + in_doubling) << (log - STEP_BITS)
}

const _: () = assert!(size_of::<HttpCounts>() == 3 * 8 + 4 * CLASSES + 4 * TIME_BUCKETS);
const _: () = assert!(size_of::<HttpCounts>().is_multiple_of(8));

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
