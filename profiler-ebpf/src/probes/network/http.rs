//! Counts requests of HTTP/1, whether their payload is captured or not ([`profiler_common::http`]). Connections that speak HTTP/2 are
//! handed on to [`super::http2`].
//!
//! The state of the request under way is in the connection's entry. What is over is added to a table of its own when the next
//! request begins, so that a connection of one request needs no entry there: the agent takes that one from the connection.
//! Cost: a comparison for each piece, two short reads of the process's memory and one lookup for each request.

use aya_ebpf::{
    bindings::{BPF_F_NO_PREALLOC, BPF_NOEXIST},
    macros::map,
    maps::{Array, HashMap},
};
use profiler_common::{
    http::{
        ANSWERED, AT_CLIENT, AT_SERVER, COUNTED, First, HTTP2, HttpCounts, Moved, Said,
        TOOK_UNIT_NS, UNDECIDED, UNSURE, class_of, is_answer, looks, take, time_bucket,
    },
    http2::Http2,
    network::{Connection, DIRECTION_CLIENT, DIRECTION_SERVER, FLAG_JOINED},
};

use super::{
    connection::{add, add_one},
    http2,
    payload::{Part, Scratch},
    payload_bytes::{first_bytes, first_of_piece},
};

/// Requests that are over, by the cookie of their connection.
#[map]
static HTTP_COUNTS: HashMap<u64, HttpCounts> = HashMap::with_max_entries(1, BPF_F_NO_PREALLOC);

/// Counts of nothing: they are larger than the stack of a program.
#[map]
static EMPTY_HTTP_COUNTS: Array<HttpCounts> = Array::with_max_entries(1, 0);

/// For [`count`]: how long a request took is not known.
pub(super) const NO_TIME: u64 = u64::MAX;

/// What of a piece is to be given to [`moved`], with its source.
pub(super) enum Wanted {
    /// It is done with the piece.
    Nothing,
    /// Its first bytes.
    First,
    /// Its frames.
    Frames(&'static mut Http2),
}

#[inline(always)]
pub(super) fn wants(connection: &mut Connection, part: &Part, is_sent: bool) -> Wanted {
    if connection.http & HTTP2 != 0 {
        return match http2::wants(connection, part, is_sent) {
            Some(http2) => Wanted::Frames(http2),
            None => Wanted::Nothing,
        };
    }
    if looks(connection.http, is_sent) {
        return Wanted::First;
    }
    if is_answer(connection.http, is_sent) {
        answered(connection, part);
    }
    Wanted::Nothing
}

/// Takes in a piece, of which `is_captured` says whether its bytes are in the area.
#[inline(always)]
pub(super) fn moved(
    connection: &mut Connection,
    scratch: &mut Scratch,
    part: &Part,
    is_captured: bool,
    is_sent: bool,
    wanted: Wanted,
) {
    let mut frames = None;
    match wanted {
        Wanted::Nothing => return,
        Wanted::Frames(http2) => frames = Some(http2),
        Wanted::First => {
            let of_piece = if is_captured {
                first_of_piece(scratch)
            } else {
                First::NONE
            };
            let first = if of_piece.known == 0 {
                first_bytes(&scratch.source, part.bytes).unwrap_or(First::NONE)
            } else {
                of_piece
            };
            let [word, next] = first.words;
            note(connection, part, word, next, how(first.known, is_sent));
            if connection.http & HTTP2 != 0 {
                frames = http2::begin(connection);
            }
        }
    }
    if let Some(http2) = frames {
        http2::follow(connection, http2, scratch, part, u64::from(is_sent));
    }
}

/// How many first bytes there are of a piece, and whether it was sent.
#[inline(always)]
fn how(known: u32, is_sent: bool) -> u64 {
    u64::from(known) << 1 | u64::from(is_sent)
}

/// Takes in a piece by its first bytes, in registers: `how` is that of [`how`].
#[inline(never)]
fn note(connection: &mut Connection, part: &Part, word: u64, next: u64, how: u64) -> u64 {
    let is_sent = how & 1 != 0;
    let first = First {
        words: [word, next],
        known: (how >> 1) as u32,
    };
    let moved = Moved {
        is_sent,
        is_first: connection.flags & FLAG_JOINED == 0
            && connection.sent_bytes + connection.received_bytes == part.bytes,
        end: match connection.direction {
            DIRECTION_CLIENT => AT_CLIENT,
            DIRECTION_SERVER => AT_SERVER,
            _ => UNDECIDED,
        },
        bytes: part.bytes,
    };
    let (http, said) = take(connection.http, moved, first);
    match said {
        Said::Nothing => connection.http = http,
        Said::Answer => {
            connection.http = http;
            answered(connection, part);
        }
        Said::Request => {
            let noted = if connection.http & ANSWERED == 0 {
                0
            } else {
                settle(connection)
            };
            connection.http = http | noted as u32;
            let is_large = is_sent && part.since_ns != 0;
            connection.http_began_ns = if is_large { part.since_ns } else { part.at_ns };
        }
        Said::Http2 => connection.http = http,
    }
    0
}

/// A part of an answer was moved.
#[inline(always)]
fn answered(connection: &mut Connection, part: &Part) {
    let took = part.at_ns.saturating_sub(connection.http_began_ns) / TOOK_UNIT_NS;
    connection.http_took = took.min(u64::from(u32::MAX)) as u32;
}

/// Counts the last request, which was answered. What is to be noted of the connection: `COUNTED`, or `UNSURE` where there was no
/// room.
#[inline(always)]
pub(super) fn settle(connection: &Connection) -> u64 {
    let time_ns = u64::from(connection.http_took) * TOOK_UNIT_NS;
    count(
        connection.cookie,
        u64::from(class_of(connection.http)),
        time_ns,
    )
}

/// Counts a request of a connection that is over, by its class and its time or [`NO_TIME`]; as [`settle`].
#[inline(never)]
pub(super) fn count(cookie: u64, class: u64, time_ns: u64) -> u64 {
    let mut found = HTTP_COUNTS.get_ptr_mut(cookie);
    if found.is_none() {
        let Some(empty) = EMPTY_HTTP_COUNTS.get_ptr(0) else {
            return u64::from(UNSURE);
        };
        #[expect(
            clippy::needless_borrows_for_generic_args,
            reason = "a copy of the counts is larger than the stack"
        )]
        // SAFETY: a map value that is never written. Fails where it is there by now.
        let _made = HTTP_COUNTS.insert(cookie, unsafe { &*empty }, u64::from(BPF_NOEXIST));
        found = HTTP_COUNTS.get_ptr_mut(cookie);
    }
    let Some(counts) = found else {
        return u64::from(UNSURE);
    };
    // SAFETY: a map value; what others write at the same time is added atomically, and of the least and the greatest time one
    // may be missed.
    let counts = unsafe { &mut *counts };
    if let Some(answers) = counts.answers.get_mut(class as usize) {
        add_one(answers);
    }
    if time_ns == NO_TIME {
        return u64::from(COUNTED);
    }
    add(&mut counts.sum_ns, time_ns);
    if counts.least_ns == 0 || time_ns < counts.least_ns {
        counts.least_ns = time_ns;
    }
    if time_ns > counts.greatest_ns {
        counts.greatest_ns = time_ns;
    }
    if let Some(times) = counts.times.get_mut(time_bucket(time_ns)) {
        add_one(times);
    }
    u64::from(COUNTED)
}
