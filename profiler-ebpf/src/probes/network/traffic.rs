//! Bytes: what is written and read, and how long received data waits.
//!
//! Cost: an unwatched socket costs its cookie and one lookup, or the filter where it is TCP.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use profiler_common::network::{
    Connection, Histogram, LOST_BYTES, LOST_EVENTS, SEARCH_TABLE, bucket, search_table,
};

use super::{
    connection::{add, count, create, current_is_wanted, find, is_in_scope, now, use_by_current},
    socket::Socket,
    unix,
};

/// `MSG_PEEK`: the data stays in the socket and is read again.
const PEEK: u64 = 0x2;
/// `MSG_ERRQUEUE`: notices about sent data.
const ERROR_QUEUE: u64 = 0x2000;

static BOUNDS: [u32; SEARCH_TABLE] = search_table();

#[btf_tracepoint(function = "sock_send_length")]
pub(crate) fn network_send(context: BtfTracePointContext) -> i32 {
    let socket = Socket::from_argument(context.arg(0));
    let sent = context.arg::<u64>(1) as i32;
    if sent <= 0 {
        return 0;
    }
    let bytes = sent as u64;
    let cookie = socket.cookie();
    if let Some(connection) = connection_with_cookie(socket, cookie, bytes) {
        send(connection, socket, bytes, 1);
    } else if unix::is_unix(socket) {
        unix::send(socket, cookie, bytes);
    }
    0
}

/// Counts writes of the running task.
#[inline(always)]
pub(super) fn send(connection: &mut Connection, socket: Socket, bytes: u64, operations: u64) {
    add(&mut connection.sent_bytes, bytes);
    add(&mut connection.sent_count, operations);
    use_by_current(connection);
    let rtt_us = socket.rtt_us();
    if rtt_us != 0 {
        add(&mut connection.rtt_sum_us, u64::from(rtt_us));
        connection.rtt_max_us = connection.rtt_max_us.max(rtt_us);
        if connection.rtt_min_us == 0 || rtt_us < connection.rtt_min_us {
            connection.rtt_min_us = rtt_us;
        }
        count_in(&mut connection.rtt, rtt_us);
    }
}

#[btf_tracepoint(function = "sock_recv_length")]
pub(crate) fn network_receive(context: BtfTracePointContext) -> i32 {
    let socket = Socket::from_argument(context.arg(0));
    let received = context.arg::<u64>(1) as i32;
    let flags = context.arg::<u64>(2);
    if received <= 0 || !is_consumed(flags) {
        return 0;
    }
    let bytes = received as u64;
    let cookie = socket.cookie();
    if let Some(connection) = connection_with_cookie(socket, cookie, bytes) {
        receive(connection, socket, bytes, 1);
    } else if unix::is_unix(socket) {
        unix::receive(socket, cookie, bytes);
    }
    0
}

/// Whether a read with these flags takes data out of the stream.
#[inline(always)]
pub(super) fn is_consumed(flags: u64) -> bool {
    flags & (PEEK | ERROR_QUEUE) == 0
}

/// Counts reads of the running task.
#[inline(always)]
pub(super) fn receive(connection: &mut Connection, socket: Socket, bytes: u64, operations: u64) {
    add(&mut connection.received_bytes, bytes);
    add(&mut connection.received_count, operations);
    use_by_current(connection);
    let ready_ns = connection.data_ready_ns;
    if ready_ns != 0 {
        let read_ns = now();
        let waited_ns = read_ns.saturating_sub(ready_ns);
        // What is left has waited from some time on that is not known, at the latest from now.
        connection.data_ready_ns = if socket.has_unread() { read_ns } else { 0 };
        add(&mut connection.receive_wait_sum_ns, waited_ns);
        let waited_us = (waited_ns / 1000).min(u64::from(u32::MAX)) as u32;
        count_in(&mut connection.receive_wait, waited_us);
    }
}

#[btf_tracepoint(function = "sk_data_ready")]
pub(crate) fn network_ready(context: BtfTracePointContext) -> i32 {
    let socket = Socket::from_argument(context.arg(0));
    let cookie = socket.cookie();
    if let Some(connection) = find(cookie) {
        if connection.data_ready_ns == 0 {
            connection.data_ready_ns = now();
        }
    } else if unix::is_unix(socket) {
        unix::ready(cookie);
    }
    0
}

/// The entry of a socket that the running task uses: one that is there, or a new one when the task is
/// a target. Where the table is full, what is not counted is lost.
#[inline(always)]
pub(super) fn connection_with_cookie(
    socket: Socket,
    cookie: u64,
    bytes: u64,
) -> Option<&'static mut Connection> {
    if let Some(connection) = find(cookie) {
        return Some(connection);
    }
    join(socket, cookie, bytes);
    find(cookie)
}

/// Begins to watch a connection that is in use.
#[inline(never)]
fn join(socket: Socket, cookie: u64, bytes: u64) -> u64 {
    if !socket.is_tcp() || !is_in_scope(socket) || !current_is_wanted() {
        return 0;
    }
    if create(socket, cookie, 1) == 0 {
        count(LOST_EVENTS, 1);
        count(LOST_BYTES, bytes);
        return 0;
    }
    1
}

#[inline(always)]
pub(super) fn count_in(histogram: &mut Histogram, value_us: u32) {
    if let Some(slot) = histogram.counts.get_mut(bucket(&BOUNDS, value_us)) {
        add(slot, 1);
    }
}
