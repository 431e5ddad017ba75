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
    network::Connection,
    payload::{SCRATCH_RECEIVED, SCRATCH_SENT},
};

use super::{
    connection::find,
    payload::{self, Part},
    payload_bytes::find_source,
    payload_datagrams,
    socket::Socket,
    tls, tls_memory,
    traffic::is_consumed,
};

/// `-EAGAIN`.
const BLOCKED: i32 = -11;

#[btf_tracepoint(function = "sock_send_length")]
pub(crate) fn network_payload_sent(context: BtfTracePointContext) -> i32 {
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
        let part = Part {
            bytes,
            offset: connection.sent_bytes.saturating_sub(bytes),
            ready_ns: 0,
        };
        moved::<SCRATCH_SENT>(socket, connection, part);
    } else if socket.is_udp_argument() {
        payload_datagrams::datagram::<SCRATCH_SENT>(socket, bytes);
    }
    0
}

#[btf_tracepoint(function = "sock_recv_length")]
pub(crate) fn network_payload_received(context: BtfTracePointContext) -> i32 {
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
            ready_ns: connection.taken_ns,
        };
        moved::<SCRATCH_RECEIVED>(socket, connection, part);
    } else if socket.is_udp_argument() {
        payload_datagrams::datagram::<SCRATCH_RECEIVED>(socket, bytes);
    }
    0
}

/// The connection of the socket, if it is watched.
#[inline(always)]
fn known(socket: Socket) -> Option<&'static mut Connection> {
    match socket.cookie_so_far() {
        0 => None,
        cookie => find(cookie),
    }
}

/// The running task has moved a part of a connection's stream.
#[inline(always)]
fn moved<const AREA: u32>(socket: Socket, connection: &mut Connection, part: Part) {
    let call = if tls::is_watched() {
        tls::current_call()
    } else {
        None
    };
    let is_wanted = payload::is_wanted(connection);
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
            tls::sent(call, connection, &scratch.source);
        } else {
            tls::received(call, connection, &scratch.source, part.ready_ns);
        }
    } else if may_match {
        tls_memory::sent(connection, &scratch.source);
    }
    // Where the plaintext is known, what goes over the wire is not wanted.
    if is_wanted && !(tls::is_watched() && tls::is_bound(connection.cookie)) {
        payload::piece::<AREA>(connection, scratch, &part);
    }
}
