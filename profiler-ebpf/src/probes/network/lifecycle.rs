//! Beginning and end of connections.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use profiler_common::{
    config::FILTER_ALL,
    network::{
        Connection, DIRECTION_CLIENT, DIRECTION_SERVER, FLAG_CONNECT_FAILED, LISTENER_OF_SOCKETS,
        LISTENERS_LOST, ListenerKey, REFUSED,
    },
};

use super::{
    connection::{
        LISTENERS, LISTENING, count, create, current_is_wanted, find, finish, follow_stream,
        is_in_scope, is_listener, now, remember_totals, use_by_current,
    },
    socket::Socket,
};
use crate::{
    config::{config, leave_at_floor},
    task,
};

/// States of include/net/tcp_states.h.
const ESTABLISHED: u32 = 1;
const SYN_SENT: u32 = 2;
const SYN_RECEIVED: u32 = 3;
const FIN_WAIT_1: u32 = 4;
const CLOSED: u32 = 7;
const LAST_ACK: u32 = 9;
const LISTEN: u32 = 10;

#[btf_tracepoint(function = "inet_sock_set_state")]
pub(crate) fn network_state(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let socket = Socket::from_argument(context.arg(0));
    let old = context.arg::<u64>(1) as u32;
    let new = context.arg::<u64>(2) as u32;
    if !socket.is_tcp() {
        return 0;
    }
    match new {
        SYN_SENT => begin(socket),
        ESTABLISHED => establish(socket, old),
        FIN_WAIT_1 | LAST_ACK => close(socket),
        CLOSED if old == LISTEN => listen_no_more(socket),
        CLOSED => end(socket),
        LISTEN => listen(socket),
        _ => {}
    }
    0
}

/// The running task connects.
#[inline(always)]
fn begin(socket: Socket) {
    if !is_in_scope(socket) || !current_is_wanted() {
        return;
    }
    let cookie = socket.cookie();
    // A socket may connect again after a failure.
    finish(cookie);
    if create(socket, cookie, 0) == 0 {
        count(REFUSED, 1);
        return;
    }
    if let Some(connection) = find(cookie) {
        connection.connecting_ns = now();
        connection.direction = DIRECTION_CLIENT;
        use_by_current(connection);
        connection.opened_by = connection.pid;
        connection.opened_start_ns = connection.used_start_ns;
    }
}

/// A connection is there; in a softirq, above any task.
#[inline(always)]
fn establish(socket: Socket, old: u32) {
    let cookie = socket.cookie();
    // Two ends that connect to each other at once go through the same state as a server's.
    let connects = match find(cookie) {
        Some(connection) => connection.connecting_ns != 0,
        None => false,
    };
    if old == SYN_RECEIVED && !connects {
        if !is_in_scope(socket) {
            return;
        }
        let wanted = config!(filter) == FILTER_ALL
            || is_listener(socket.network_namespace(), socket.local_port());
        if !wanted {
            return;
        }
        if create(socket, cookie, 0) == 0 {
            count(REFUSED, 1);
            return;
        }
    }
    let Some(connection) = find(cookie) else {
        return;
    };
    connection.established_ns = now();
    if connects {
        connection.connect_ns = connection
            .established_ns
            .saturating_sub(connection.connecting_ns);
        // The kernel chose address and port while it connected, and the other end its numbers.
        socket.describe(connection);
        follow_stream(socket, connection);
    } else if old == SYN_RECEIVED {
        connection.direction = DIRECTION_SERVER;
    }
}

/// This end sends no more: the running task shuts it down or closes it. (A connection can get here in
/// a softirq when both ends connected to each other; then its process is known already.)
#[inline(always)]
fn close(socket: Socket) {
    let Some(connection) = find(socket.cookie()) else {
        return;
    };
    if connection.closing_ns == 0 {
        connection.closing_ns = now();
    }
    // One that did nothing else with it. The kernel's own threads close what was in flight.
    if connection.pid == 0 && !task::is_kernel_thread(task::current()) {
        use_by_current(connection);
    }
}

#[inline(always)]
fn end(socket: Socket) {
    let Some(connection) = find(socket.cookie()) else {
        return;
    };
    connection.closed_ns = now();
    if connection.connecting_ns != 0 && connection.established_ns == 0 {
        fail(connection);
    }
    remember_totals(socket, connection);
}

#[inline(always)]
fn fail(connection: &mut Connection) {
    connection.flags |= FLAG_CONNECT_FAILED;
    connection.connect_ns = connection
        .closed_ns
        .saturating_sub(connection.connecting_ns);
}

/// The running task listens.
#[inline(always)]
fn listen(socket: Socket) {
    if !is_in_scope(socket) || !current_is_wanted() {
        return;
    }
    let key = ListenerKey {
        network_namespace: socket.network_namespace(),
        port: u32::from(socket.local_port()),
    };
    // The socket first: a port without one is taken out.
    let is_kept = LISTENING.insert(socket.cookie(), key, 0).is_ok()
        && LISTENERS.insert(key, LISTENER_OF_SOCKETS, 0).is_ok();
    if !is_kept {
        count(LISTENERS_LOST, 1);
    }
}

/// A socket listens no more. Others may listen on its port, which the agent sees.
#[inline(always)]
fn listen_no_more(socket: Socket) {
    // Fails when it is none of a target.
    let _gone = LISTENING.remove(socket.cookie());
}

#[btf_tracepoint(function = "tcp_destroy_sock")]
pub(crate) fn network_destroy(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let socket = Socket::from_argument(context.arg(0));
    let cookie = socket.cookie();
    if let Some(connection) = find(cookie) {
        // A socket that was disconnected has forgotten its totals.
        if connection.closed_ns == 0 {
            remember_totals(socket, connection);
        }
        finish(cookie);
    }
    0
}
