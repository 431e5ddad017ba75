//! Takes idle connections out of a table that is nearly full, without losing a count.
//!
//! The agent runs the program for one connection at a time. First it marks the entry; any use takes
//! the mark away. When the agent looks again, every program that met the entry without its mark has
//! long ended, so that the program that claims the entry by exchanging the mark is alone with it: what is in it
//! is handed out whole. A read or write that comes within this moment finds neither the entry nor
//! room for a new one, and is counted as lost.

use profiler_common::{
    header::{KIND_CONNECTION, RecordHeader},
    http::ANSWERED,
    network::{
        CLAIMED, Connection, EVICTION_MARK, FLAG_COMPLETE, FLAG_EVICTED, FLAG_GONE, FLAG_JOINED,
        MARKED, STAYS,
    },
};

use super::{
    connection::{CONNECTIONS, ENDED, exchange, now},
    http, http2,
};
use crate::emit::Urgency;

/// What the agent hands over.
#[repr(C)]
pub(crate) struct Request {
    cookie: u64,
    /// `EVICTION_*`.
    action: u64,
}

/// Never attached: the agent runs it. Returns 1 when it has done what was asked for; the macro for
/// programs of this kind would have it always return 0.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp/sys_enter")]
pub(crate) extern "C" fn network_evict(request: *const Request) -> i32 {
    // SAFETY: the verifier checks accesses to the context.
    let (cookie, action) = unsafe { ((*request).cookie, (*request).action) };
    let Some(connection) = CONNECTIONS.get_ptr_mut(cookie) else {
        return 0;
    };
    // SAFETY: a map value; its writers are described in the module.
    let connection = unsafe { &mut *connection };
    if action == EVICTION_MARK {
        return i32::from(mark(connection));
    }
    if exchange(&mut connection.leaving, MARKED, CLAIMED) != MARKED {
        return 0;
    }
    if connection.http & ANSWERED != 0 {
        let noted = http::settle(connection) as u32;
        connection.http = connection.http & !ANSWERED | noted;
    }
    connection.flags |= FLAG_EVICTED;
    connection.header = RecordHeader {
        kind: KIND_CONNECTION,
        bytes: size_of::<Connection>() as u32,
        time_ns: now(),
    };
    if ENDED
        .output::<Connection>(&*connection, Urgency::Polled.flags())
        .is_ok()
    {
        http2::forget(connection);
        // Fails only when it is gone already.
        let _gone = CONNECTIONS.remove(cookie);
        return 1;
    }
    connection.flags &= !FLAG_EVICTED;
    connection.header.kind = 0;
    exchange(&mut connection.leaving, CLAIMED, STAYS);
    0
}

/// Only idle connections: established, nothing to be read, not on its way to its end.
#[inline(always)]
fn mark(connection: &mut Connection) -> bool {
    let known = connection.flags & FLAG_COMPLETE != 0 && connection.flags & FLAG_GONE == 0;
    let open = connection.established_ns != 0 || connection.flags & FLAG_JOINED != 0;
    let rests = connection.ready_next == connection.read_next
        && connection.closing_ns == 0
        && connection.closed_ns == 0;
    known && open && rests && exchange(&mut connection.leaving, STAYS, MARKED) != CLAIMED
}
