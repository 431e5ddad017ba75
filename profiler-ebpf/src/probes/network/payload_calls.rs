//! What reads and writes moved, captured where a task wants payload.
//!
//! The programs of [`super::traffic`] call it, when the connection is in the table and its bytes are counted. Where nobody
//! wants payload the kernel's verifier takes it out of them.

use profiler_common::{
    network::{Connection, FLAG_JOINED},
    payload::{CAPTURE_BEFORE, LARGE_WRITE_BYTES, PIECES_BEFORE, SCRATCH_RECEIVED, SCRATCH_SENT},
};

use super::{
    connection::{add, now},
    http::{self, Wanted},
    payload::{self, Part, payload},
    payload_bytes::find_source,
    socket::Socket,
    tls, tls_memory,
};

/// `-EAGAIN`.
const BLOCKED: i32 = -11;

/// When a large write that ended at `at_ns` began: it has waited for room in the socket for as long as data was under way since
/// the connection was last used. To within two ticks, never too early; 0: now, or that is not known.
#[inline(always)]
fn began_ns(connection: &Connection, busy_ticks: u32, bytes: u64, at_ns: u64) -> u64 {
    let ticks = busy_ticks.wrapping_sub(connection.busy_ticks);
    let is_joined = connection.flags & FLAG_JOINED != 0 && connection.busy_ticks == 0;
    if bytes < LARGE_WRITE_BYTES || is_joined || ticks < 2 {
        return 0;
    }
    let waited_ns = u64::from(ticks - 1) * u64::from(payload!(tick_ns));
    at_ns.saturating_sub(waited_ns)
}

/// As in [`Connection::busy_ticks`], until now.
#[inline(always)]
fn busy_ticks(socket: Socket) -> u32 {
    match socket.tcp() {
        Some(tcp) => tcp.busy_ticks(),
        None => 0,
    }
}

/// A write has ended without moving anything.
#[inline(always)]
pub(super) fn refused(result: i32) {
    if result == BLOCKED && tls::is_watched() {
        tls::blocked();
    }
}

/// The running task has written to a connection.
#[inline(always)]
pub(super) fn sent(socket: Socket, connection: &mut Connection, bytes: u64) {
    let busy_ticks = busy_ticks(socket);
    let at_ns = now();
    let part = Part {
        bytes,
        offset: connection.sent_bytes.saturating_sub(bytes),
        since_ns: began_ns(connection, busy_ticks, bytes, at_ns),
        at_ns,
    };
    connection.busy_ticks = busy_ticks;
    moved::<SCRATCH_SENT>(socket, connection, part);
}

/// The running task has read from a connection, at `read_ns`; 0: that was not looked up.
#[inline(always)]
pub(super) fn received(socket: Socket, connection: &mut Connection, bytes: u64, read_ns: u64) {
    let part = Part {
        bytes,
        offset: connection.received_bytes.saturating_sub(bytes),
        since_ns: connection.taken_ns,
        at_ns: if read_ns == 0 { now() } else { read_ns },
    };
    connection.busy_ticks = busy_ticks(socket);
    moved::<SCRATCH_RECEIVED>(socket, connection, part);
}

/// The running task has moved a part of a connection's stream.
#[inline(always)]
fn moved<const AREA: u32>(socket: Socket, connection: &mut Connection, part: Part) {
    let call = if tls::is_watched() {
        tls::current_call()
    } else {
        None
    };
    let turn = payload::turn_of(connection, AREA == SCRATCH_SENT, &part);
    if !turn.sampling.is_open() {
        connection.capture_bytes |= CAPTURE_BEFORE;
        payload::count(PIECES_BEFORE);
        return;
    }
    let is_wanted = turn.is_captured && !payload::is_stopped(connection.capture_bytes);
    if is_wanted || (turn.is_captured && call.is_some()) {
        add(&mut connection.captured_bytes, part.bytes);
    }
    let may_match = AREA == SCRATCH_SENT && call.is_none() && tls_memory::is_watched();
    let wanted = http::wants(connection, &part, AREA == SCRATCH_SENT);
    let is_counted = !matches!(wanted, Wanted::Nothing);
    if call.is_none() && !is_wanted && !may_match && !is_counted {
        return;
    }
    let Some(scratch) = payload::scratch(AREA) else {
        return;
    };
    find_source(&mut scratch.source, socket, part.bytes);
    if let Some(call) = call {
        if AREA == SCRATCH_SENT {
            tls::sent(call, connection, &scratch.source, part.offset);
        } else {
            tls::received(
                call,
                connection,
                &scratch.source,
                part.since_ns,
                part.offset,
            );
        }
    } else if may_match {
        tls_memory::sent(connection, &scratch.source);
    }
    // Where the plaintext is known, what goes over the wire is not wanted.
    let is_piece = is_wanted && !(tls::is_watched() && tls::is_bound(connection.cookie));
    if is_piece {
        payload::piece::<AREA>(connection, scratch, &part, turn);
    }
    let is_sent = AREA == SCRATCH_SENT;
    http::moved(connection, scratch, &part, is_piece, is_sent, wanted);
}
