//! Bytes: what is written and read, and how long received data waits.
//!
//! These hooks run millions of times a second, so each does as little as it can: members of the socket
//! are read without helpers, the clock once for each read, and an unwatched socket costs its cookie
//! and one lookup, or the filter where it is TCP.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use profiler_common::network::{
    Connection, Histogram, LOST_BYTES, LOST_EVENTS, SEARCH_TABLE, bucket, search_table,
    search_table_8ns,
};

use super::{
    connection::{
        add, count, create, current_is_wanted, exchange, find, is_in_scope, now, take,
        use_by_current,
    },
    socket::Socket,
};

/// `MSG_PEEK`: the data stays in the socket and is read again.
const PEEK: u64 = 0x2;
/// `MSG_ERRQUEUE`: notices about sent data.
const ERROR_QUEUE: u64 = 0x2000;

static BOUNDS: [u32; SEARCH_TABLE] = search_table();
static BOUNDS_8NS: [u32; SEARCH_TABLE] = search_table_8ns();

#[btf_tracepoint(function = "sock_send_length")]
pub(crate) fn network_send(context: BtfTracePointContext) -> i32 {
    let sent = context.arg::<u64>(1) as i32;
    if sent <= 0 {
        return 0;
    }
    let socket = Socket::from_argument(context.arg(0));
    let bytes = sent as u64;
    let Some(connection) = connection_of(socket, bytes) else {
        return 0;
    };
    add(&mut connection.sent_bytes, bytes);
    add(&mut connection.sent_count, 1);
    use_by_current(connection);
    let Some(tcp) = socket.tcp() else {
        return 0;
    };
    let rtt_us = tcp.rtt_us();
    if rtt_us != 0 {
        add(&mut connection.rtt_sum_us, u64::from(rtt_us));
        if rtt_us > connection.rtt_max_us {
            connection.rtt_max_us = rtt_us;
        }
        if connection.rtt_min_us == 0 || rtt_us < connection.rtt_min_us {
            connection.rtt_min_us = rtt_us;
        }
        count_in(&mut connection.rtt, bucket(&BOUNDS, rtt_us));
    }
    0
}

#[btf_tracepoint(function = "sock_recv_length")]
pub(crate) fn network_receive(context: BtfTracePointContext) -> i32 {
    let received = context.arg::<u64>(1) as i32;
    let flags = context.arg::<u64>(2);
    if received <= 0 || flags & (PEEK | ERROR_QUEUE) != 0 {
        return 0;
    }
    let socket = Socket::from_argument(context.arg(0));
    let bytes = received as u64;
    let Some(connection) = connection_of(socket, bytes) else {
        return 0;
    };
    use_by_current(connection);
    // First, for the same reason as in `network_ready`.
    let ready_ns = take(&mut connection.data_ready_ns);
    add(&mut connection.received_bytes, bytes);
    add(&mut connection.received_count, 1);
    if ready_ns == 0 {
        return 0;
    }
    let Some(tcp) = socket.tcp() else {
        return 0;
    };
    let read_ns = now();
    let waited_ns = read_ns.saturating_sub(ready_ns);
    // What is left has waited from some time on that is not known, at the latest from now.
    if tcp.has_unread() {
        connection.data_ready_ns = read_ns;
    }
    add(&mut connection.receive_wait_sum_ns, waited_ns);
    let eighths = (waited_ns >> 3).min(u64::from(u32::MAX)) as u32;
    count_in(&mut connection.receive_wait, bucket(&BOUNDS_8NS, eighths));
    0
}

#[btf_tracepoint(function = "sk_data_ready")]
pub(crate) fn network_ready(context: BtfTracePointContext) -> i32 {
    let socket = Socket::from_argument(context.arg(0));
    // Every watched socket has one.
    let cookie = socket.cookie_so_far();
    if cookie == 0 {
        return 0;
    }
    if let Some(connection) = find(cookie)
        && let Some(tcp) = socket.tcp()
    {
        // Another CPU wrote it last: one exchange has that line of the cache come over once, where
        // looking and then writing would ask for it twice.
        exchange(&mut connection.data_ready_ns, 0, tcp.packet_ns());
    }
    0
}

/// The entry of a socket that the running task uses: one that is there, or a new one when the task is
/// a target. Where the table is full, what is not counted is lost.
#[inline(always)]
fn connection_of(socket: Socket, bytes: u64) -> Option<&'static mut Connection> {
    let known = socket.cookie_so_far();
    if known != 0
        && let Some(connection) = find(known)
    {
        return Some(connection);
    }
    if !socket.is_tcp() {
        return None;
    }
    let cookie = socket.cookie();
    if join(socket, cookie, bytes) == 0 {
        return None;
    }
    find(cookie)
}

/// Begins to watch a connection that is in use. 0 when it is not wanted, or lost.
#[inline(never)]
fn join(socket: Socket, cookie: u64, bytes: u64) -> u64 {
    if !is_in_scope(socket) || !current_is_wanted() {
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
fn count_in(histogram: &mut Histogram, bucket: usize) {
    if let Some(slot) = histogram.counts.get_mut(bucket) {
        add(slot, 1);
    }
}
