//! Programs at reads and writes that capture what was moved; only where a task wants payload.
//!
//! They run behind those of [`super::traffic`] at the same hooks, which are attached before them: the
//! connection is in the table and its bytes are counted. Programs of their own, so that network tasks
//! carry none of it, and that each is verified by itself.
//!
//! Hooks: `sock_send_length`, `sock_recv_length(struct sock *sk, int ret, int flags)`, since 6.3, one
//! per read and write of any socket.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use profiler_common::{
    network::{Connection, FLAG_JOINED},
    payload::{LARGE_WRITE_BYTES, SCRATCH_RECEIVED, SCRATCH_SENT},
};

use super::{
    connection::{add, find, now},
    payload::{self, Part, payload},
    payload_bytes::find_source,
    payload_datagrams, payload_unix,
    socket::{Socket, known_cookie},
    tls, tls_memory,
    traffic::is_consumed,
    unix,
};
use crate::config::leave_at_floor;

/// `-EAGAIN`.
const BLOCKED: i32 = -11;

/// When a large write that has just ended began: it has waited for room in the socket for as long as data was under way since
/// the connection was last used. To within two ticks, never too early; 0: now, or that is not known.
#[inline(always)]
fn began_ns(connection: &Connection, busy_ticks: u32, bytes: u64) -> u64 {
    let ticks = busy_ticks.wrapping_sub(connection.busy_ticks);
    let is_joined = connection.flags & FLAG_JOINED != 0 && connection.busy_ticks == 0;
    if bytes < LARGE_WRITE_BYTES || is_joined || ticks < 2 {
        return 0;
    }
    let waited_ns = u64::from(ticks - 1) * u64::from(payload!(tick_ns));
    now().saturating_sub(waited_ns)
}

/// As in [`Connection::busy_ticks`], until now.
#[inline(always)]
fn busy_ticks(socket: Socket) -> u32 {
    match socket.tcp() {
        Some(tcp) => tcp.busy_ticks(),
        None => 0,
    }
}

#[btf_tracepoint(function = "sock_send_length")]
pub(crate) fn network_payload_sent(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let sent = context.arg::<u64>(1) as i32;
    if sent <= 0 {
        if sent == BLOCKED && tls::is_watched() {
            tls::blocked();
        }
        return 0;
    }
    let socket = Socket::from_argument(context.arg(0));
    let bytes = sent as u64;
    if let Some(connection) = known(socket) {
        let busy_ticks = busy_ticks(socket);
        let part = Part {
            bytes,
            offset: connection.sent_bytes.saturating_sub(bytes),
            since_ns: began_ns(connection, busy_ticks, bytes),
        };
        connection.busy_ticks = busy_ticks;
        moved::<SCRATCH_SENT>(socket, connection, part);
    } else if unix::is_unix(socket.family_of_argument()) {
        payload_unix::moved::<SCRATCH_SENT>(socket, bytes);
    } else if socket.is_udp_argument() {
        payload_datagrams::datagram::<SCRATCH_SENT>(socket, bytes);
    }
    0
}

#[btf_tracepoint(function = "sock_recv_length")]
pub(crate) fn network_payload_received(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let received = context.arg::<u64>(1) as i32;
    let flags = context.arg::<u64>(2);
    if received <= 0 || !is_consumed(flags) {
        return 0;
    }
    let socket = Socket::from_argument(context.arg(0));
    let bytes = received as u64;
    if let Some(connection) = known(socket) {
        let part = Part {
            bytes,
            offset: connection.received_bytes.saturating_sub(bytes),
            since_ns: connection.taken_ns,
        };
        connection.busy_ticks = busy_ticks(socket);
        moved::<SCRATCH_RECEIVED>(socket, connection, part);
    } else if unix::is_unix(socket.family_of_argument()) {
        payload_unix::moved::<SCRATCH_RECEIVED>(socket, bytes);
    } else if socket.is_udp_argument() {
        payload_datagrams::datagram::<SCRATCH_RECEIVED>(socket, bytes);
    }
    0
}

/// The connection of the socket, if it is watched.
#[inline(always)]
fn known(socket: Socket) -> Option<&'static mut Connection> {
    let cookie = socket.cookie_so_far();
    if cookie != 0
        && let Some(connection) = find(cookie)
    {
        return Some(connection);
    }
    find(known_cookie(socket.first_of_mptcp()?.0))
}

/// The running task has moved a part of a connection's stream.
#[inline(always)]
fn moved<const AREA: u32>(socket: Socket, connection: &mut Connection, part: Part) {
    let call = if tls::is_watched() {
        tls::current_call()
    } else {
        None
    };
    let turn = payload::turn_of(connection, AREA == SCRATCH_SENT, part.offset == 0);
    let is_wanted = turn.is_captured && !payload::is_stopped(connection.capture_bytes);
    if is_wanted || (turn.is_captured && call.is_some()) {
        add(&mut connection.captured_bytes, part.bytes);
    }
    let may_match = AREA == SCRATCH_SENT && call.is_none() && tls_memory::is_watched();
    if call.is_none() && !is_wanted && !may_match {
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
    if is_wanted && !(tls::is_watched() && tls::is_bound(connection.cookie)) {
        payload::piece::<AREA>(connection, scratch, &part, turn);
    }
}
