//! Counts requests of HTTP/1, whether their payload is captured or not ([`profiler_common::http`]).
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
        ANSWERED, COUNTED, First, HttpCounts, Moved, Said, TOOK_UNIT_NS, UNSURE, class_of,
        is_answer, looks, take, time_bucket,
    },
    network::{Connection, FLAG_JOINED},
};

use super::{
    connection::{add, add_one, now},
    payload::Part,
};

/// Requests that are over, by the cookie of their connection.
#[map]
static HTTP_COUNTS: HashMap<u64, HttpCounts> = HashMap::with_max_entries(1, BPF_F_NO_PREALLOC);

/// Counts of nothing: they are larger than the stack of a program.
#[map]
static EMPTY_HTTP_COUNTS: Array<HttpCounts> = Array::with_max_entries(1, 0);

/// Whether the first bytes of what is moved now are to be given to [`note`]. Else it is done with the piece.
#[inline(always)]
pub(super) fn wants(connection: &mut Connection, is_sent: bool) -> bool {
    if looks(connection.http, is_sent) {
        return true;
    }
    if is_answer(connection.http, is_sent) {
        answered(connection);
    }
    false
}

/// How many first bytes there are of a piece, and whether it was sent.
#[inline(always)]
pub(super) fn how(known: u32, is_sent: bool) -> u64 {
    u64::from(known) << 1 | u64::from(is_sent)
}

/// Takes in a piece by its first bytes, in registers: `how` is that of [`how`].
#[inline(never)]
pub(super) fn note(
    connection: &mut Connection,
    part: &Part,
    word: u64,
    next: u64,
    how: u64,
) -> u64 {
    let is_sent = how & 1 != 0;
    let first = First {
        words: [word, next],
        known: (how >> 1) as u32,
    };
    let moved = Moved {
        is_sent,
        is_first: connection.flags & FLAG_JOINED == 0
            && connection.sent_bytes + connection.received_bytes == part.bytes,
        bytes: part.bytes,
    };
    let (http, said) = take(connection.http, moved, first);
    match said {
        Said::Nothing => connection.http = http,
        Said::Answer => {
            connection.http = http;
            answered(connection);
        }
        Said::Request => {
            let noted = if connection.http & ANSWERED == 0 {
                0
            } else {
                settle(connection)
            };
            connection.http = http | noted as u32;
            let is_large = is_sent && part.since_ns != 0;
            connection.http_began_ns = if is_large { part.since_ns } else { now() };
        }
    }
    0
}

/// A part of an answer was moved.
#[inline(always)]
fn answered(connection: &mut Connection) {
    let took = now().saturating_sub(connection.http_began_ns) / TOOK_UNIT_NS;
    connection.http_took = took.min(u64::from(u32::MAX)) as u32;
}

/// Counts the last request, which was answered. What is to be noted of the connection: `COUNTED`, or `UNSURE` where there was no
/// room.
#[inline(never)]
pub(super) fn settle(connection: &Connection) -> u64 {
    let cookie = connection.cookie;
    if HTTP_COUNTS.get_ptr_mut(cookie).is_none() {
        let Some(empty) = EMPTY_HTTP_COUNTS.get_ptr(0) else {
            return u64::from(UNSURE);
        };
        #[expect(
            clippy::needless_borrows_for_generic_args,
            reason = "a copy of the counts is larger than the stack"
        )]
        // SAFETY: a map value that is never written. Fails where it is there by now.
        let _made = HTTP_COUNTS.insert(cookie, unsafe { &*empty }, u64::from(BPF_NOEXIST));
    }
    let Some(counts) = HTTP_COUNTS.get_ptr_mut(cookie) else {
        return u64::from(UNSURE);
    };
    // SAFETY: a map value; what others write at the same time is added atomically, and of the least and the greatest time one
    // may be missed.
    let counts = unsafe { &mut *counts };
    let time_ns = u64::from(connection.http_took) * TOOK_UNIT_NS;
    add(&mut counts.sum_ns, time_ns);
    if counts.least_ns == 0 || time_ns < counts.least_ns {
        counts.least_ns = time_ns;
    }
    if time_ns > counts.greatest_ns {
        counts.greatest_ns = time_ns;
    }
    if let Some(answers) = counts.answers.get_mut(class_of(connection.http) as usize) {
        add_one(answers);
    }
    if let Some(times) = counts.times.get_mut(time_bucket(time_ns)) {
        add_one(times);
    }
    u64::from(COUNTED)
}
