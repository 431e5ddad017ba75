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
    connection::{add, count, create, current_is_wanted, find, is_in_scope, now, use_by_current},
    socket::Socket,
    unix,
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
    match connection_of(socket, bytes) {
        Met::Connection(connection) => {
            let rtt_us = match socket.tcp() {
                Some(tcp) => tcp.rtt_us(),
                None => 0,
            };
            send(connection, rtt_us, bytes, 1);
        }
        Met::Unix => {
            unix::send(socket, socket.cookie(), bytes);
        }
        Met::Other => {}
    }
    0
}

/// Counts writes of the running task.
#[inline(always)]
pub(super) fn send(connection: &mut Connection, rtt_us: u32, bytes: u64, operations: u64) {
    add(&mut connection.sent_bytes, bytes);
    add(&mut connection.sent_count, operations);
    use_by_current(connection);
    if rtt_us != 0 {
        add(&mut connection.rtt_sum_us, u64::from(rtt_us));
        if rtt_us > connection.rtt_max_us {
            connection.rtt_max_us = rtt_us;
        }
        if connection.rtt_min_us == 0 || rtt_us < connection.rtt_min_us {
            connection.rtt_min_us = rtt_us;
        }
        count_in(&mut connection.rtt, rtt_us);
    }
}

#[btf_tracepoint(function = "sock_recv_length")]
pub(crate) fn network_receive(context: BtfTracePointContext) -> i32 {
    let received = context.arg::<u64>(1) as i32;
    let flags = context.arg::<u64>(2);
    if received <= 0 || !is_consumed(flags) {
        return 0;
    }
    let socket = Socket::from_argument(context.arg(0));
    let bytes = received as u64;
    match connection_of(socket, bytes) {
        Met::Connection(connection) => receive(connection, bytes, 1, || match socket.tcp() {
            Some(tcp) => tcp.has_unread(),
            None => false,
        }),
        Met::Unix => {
            unix::receive(socket, socket.cookie(), bytes);
        }
        Met::Other => {}
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
pub(super) fn receive(
    connection: &mut Connection,
    bytes: u64,
    operations: u64,
    has_unread: impl FnOnce() -> bool,
) {
    use_by_current(connection);
    // The additions come first: often another CPU took the data in, and an addition has that line of
    // the cache come over once, to be written, where reading it first would ask for it twice.
    add(&mut connection.received_bytes, bytes);
    add(&mut connection.received_count, operations);
    let ready_ns = connection.data_ready_ns;
    if ready_ns == 0 {
        return;
    }
    let read_ns = now();
    let waited_ns = read_ns.saturating_sub(ready_ns);
    // What is left has waited from some time on that is not known, at the latest from now.
    connection.data_ready_ns = if has_unread() { read_ns } else { 0 };
    add(&mut connection.receive_wait_sum_ns, waited_ns);
    let eighths = (waited_ns >> 3).min(u64::from(u32::MAX)) as u32;
    let place = bucket(&BOUNDS_8NS, eighths);
    if let Some(slot) = connection.receive_wait.counts.get_mut(place) {
        add(slot, 1);
    }
}

#[btf_tracepoint(function = "sk_data_ready")]
pub(crate) fn network_ready(context: BtfTracePointContext) -> i32 {
    let socket = Socket::from_argument(context.arg(0));
    let cookie = socket.cookie_so_far();
    if cookie == 0 {
        // Every watched connection has one. A Unix socket that is written to gets it here, before
        // its process has it: the writer's entry names its peer by it.
        if unix::is_unix(socket.family_of_argument()) {
            socket.cookie();
        }
        return 0;
    }
    if let Some(connection) = find(cookie) {
        if connection.data_ready_ns == 0
            && let Some(tcp) = socket.tcp()
        {
            connection.data_ready_ns = tcp.packet_ns();
        }
    } else if unix::is_unix(socket.family_of_argument()) {
        unix::ready(cookie);
    }
    0
}

/// What a socket call was about.
enum Met {
    Connection(&'static mut Connection),
    /// A Unix socket, and such are watched.
    Unix,
    /// Something that is not watched, or lost.
    Other,
}

/// The entry of the socket that a hook was given.
#[inline(always)]
fn connection_of(socket: Socket, bytes: u64) -> Met {
    let known = socket.cookie_so_far();
    if known != 0
        && let Some(connection) = find(known)
    {
        return Met::Connection(connection);
    }
    if unix::is_unix(socket.family_of_argument()) {
        return Met::Unix;
    }
    if !socket.is_tcp() {
        return Met::Other;
    }
    let cookie = socket.cookie();
    if join(socket, cookie, bytes) == 0 {
        return Met::Other;
    }
    match find(cookie) {
        Some(connection) => Met::Connection(connection),
        None => Met::Other,
    }
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
    if !socket.is_tcp() || join(socket, cookie, bytes) == 0 {
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
pub(super) fn count_in(histogram: &mut Histogram, value_us: u32) {
    if let Some(slot) = histogram.counts.get_mut(bucket(&BOUNDS, value_us)) {
        add(slot, 1);
    }
}
