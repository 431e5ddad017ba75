//! Bytes: what is written and read, and how long received data waits.
//!
//! These hooks run millions of times a second, so each does as little as it can: members of the socket
//! are read without helpers, the clock once for each read, and an unwatched socket costs its cookie
//! and one lookup, and where it is TCP a look at the running process: the filter, if that may be a
//! target. Where a task wants payload, the same programs capture it ([`super::payload_calls`]).
//!
//! Hooks: `sock_send_length`, `sock_recv_length(struct sock *sk, int ret, int flags)`, since 6.3, one
//! per read and write of any socket.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use profiler_common::{
    network::{
        ARRIVALS, Connection, Histogram, LOST_BYTES, LOST_EVENTS, SEARCH_TABLE, bucket,
        search_table, search_table_8ns,
    },
    payload::{SCRATCH_RECEIVED, SCRATCH_SENT},
};

use super::{
    connection::{
        add, count, create, current_is_wanted, current_may_be_wanted, find, is_in_scope, now,
        use_by_current,
    },
    names, payload, payload_calls, payload_datagrams, payload_unix,
    socket::{RoundTrip, Socket, Stream, known_cookie},
    unix,
};
use crate::config::leave_at_floor;

/// `MSG_PEEK`: the data stays in the socket and is read again.
const PEEK: u64 = 0x2;
/// `MSG_ERRQUEUE`: notices about sent data.
const ERROR_QUEUE: u64 = 0x2000;

static BOUNDS: [u32; SEARCH_TABLE] = search_table();
static BOUNDS_8NS: [u32; SEARCH_TABLE] = search_table_8ns();

#[btf_tracepoint(function = "sock_send_length")]
pub(crate) fn network_send(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let sent = context.arg::<u64>(1) as i32;
    if sent <= 0 {
        if payload::is_watched() {
            payload_calls::refused(sent);
        }
        return 0;
    }
    let socket = Socket::from_argument(context.arg(0));
    let bytes = sent as u64;
    match connection_of(socket, bytes) {
        Met::Connection(connection) => {
            let round_trip = match socket.tcp() {
                Some(tcp) => tcp.round_trip(),
                None => RoundTrip::default(),
            };
            send(connection, round_trip, bytes, 1);
            if payload::is_watched() {
                payload_calls::sent(socket, connection, bytes);
            }
        }
        Met::Unix => {
            unix::send(socket, socket.cookie(), bytes);
            if payload::is_watched() {
                payload_unix::moved::<SCRATCH_SENT>(socket, bytes);
            }
        }
        Met::Other => {
            if payload::is_watched() && socket.is_udp_argument() {
                payload_datagrams::datagram::<SCRATCH_SENT>(socket, bytes);
            }
        }
    }
    0
}

/// Counts writes of the running task.
#[inline(always)]
pub(super) fn send(
    connection: &mut Connection,
    round_trip: RoundTrip,
    bytes: u64,
    operations: u64,
) {
    let RoundTrip {
        smoothed_us: rtt_us,
        min_us,
    } = round_trip;
    add(&mut connection.sent_bytes, bytes);
    use_by_current(connection);
    // One of them is in the histogram, so that most writes have one addition less.
    let others = if rtt_us == 0 {
        operations
    } else {
        operations - 1
    };
    if others != 0 {
        add(&mut connection.sent_without_rtt, others);
    }
    if rtt_us != 0 {
        add(&mut connection.rtt_sum_us, u64::from(rtt_us));
        if rtt_us > connection.srtt_max_us {
            connection.srtt_max_us = rtt_us;
        }
        if connection.srtt_min_us == 0 || rtt_us < connection.srtt_min_us {
            connection.srtt_min_us = rtt_us;
        }
        count_in(&mut connection.rtt, rtt_us);
    }
    if min_us != 0 && (connection.min_rtt_us == 0 || min_us < connection.min_rtt_us) {
        connection.min_rtt_us = min_us;
    }
}

#[btf_tracepoint(function = "sock_recv_length")]
pub(crate) fn network_receive(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let received = context.arg::<u64>(1) as i32;
    let flags = context.arg::<u64>(2);
    if received <= 0 || !is_consumed(flags) {
        return 0;
    }
    let socket = Socket::from_argument(context.arg(0));
    let bytes = received as u64;
    match connection_of(socket, bytes) {
        Met::Connection(connection) => {
            let stream = match socket.tcp() {
                Some(tcp) => tcp.stream(),
                None => Stream::default(),
            };
            let read_ns = receive(connection, bytes, 1, stream);
            if payload::is_watched() {
                payload_calls::received(socket, connection, bytes, read_ns);
            }
        }
        Met::Unix => {
            unix::receive(socket, socket.cookie(), bytes);
            if payload::is_watched() {
                payload_unix::moved::<SCRATCH_RECEIVED>(socket, bytes);
            }
        }
        Met::Other => {
            if payload::is_watched() && socket.is_udp_argument() {
                payload_datagrams::datagram::<SCRATCH_RECEIVED>(socket, bytes);
            }
        }
    }
    0
}

/// Whether a read with these flags takes data out of the stream.
#[inline(always)]
pub(super) fn is_consumed(flags: u64) -> bool {
    flags & (PEEK | ERROR_QUEUE) == 0
}

/// Counts reads of the running task, after which the stream is as given. The time, where it was looked up; else 0.
#[inline(always)]
pub(super) fn receive(
    connection: &mut Connection,
    bytes: u64,
    operations: u64,
    stream: Stream,
) -> u64 {
    use_by_current(connection);
    add(&mut connection.received_bytes, bytes);
    let ready_ns = arrival(connection);
    if payload::is_watched() {
        connection.taken_ns = ready_ns;
    }
    connection.read_next = stream.copied;
    // As for writes.
    let others = if ready_ns == 0 {
        operations
    } else {
        operations - 1
    };
    if others != 0 {
        add(&mut connection.received_without_wait, others);
    }
    let has_left = stream.next != stream.copied;
    if ready_ns == 0 && !has_left {
        connection.left_ns = 0;
        return 0;
    }
    let read_ns = now();
    // What is left has waited from some time on that is not known, at the latest from now.
    connection.left_ns = if has_left { read_ns } else { 0 };
    if ready_ns == 0 {
        return read_ns;
    }
    let waited_ns = read_ns.saturating_sub(ready_ns);
    add(&mut connection.receive_wait_sum_ns, waited_ns);
    let eighths = (waited_ns >> 3).min(u64::from(u32::MAX)) as u32;
    let place = bucket(&BOUNDS_8NS, eighths);
    if let Some(slot) = connection.receive_wait.counts.get_mut(place) {
        add(slot, 1);
    }
    read_ns
}

/// Since when the data that is read now was there; 0 when that is not known.
///
/// Not inlined, so that what follows is verified once and not for each place.
#[inline(never)]
fn arrival(connection: &Connection) -> u64 {
    for (sequence, ready_ns) in connection.ready_sequence.iter().zip(connection.ready_ns) {
        if *sequence == connection.read_next && ready_ns != 0 {
            return ready_ns;
        }
    }
    connection.left_ns
}

/// Data has arrived; before it the stream had `before` received. Only under the socket's own lock.
#[inline(always)]
pub(super) fn arrive(connection: &mut Connection, stream: Stream, before: u32, time_ns: u64) {
    // While something is unread, what comes waits behind it.
    if stream.copied == before {
        let place = (connection.ready_latest as usize + 1) & (ARRIVALS - 1);
        connection.ready_sequence[place] = before;
        connection.ready_ns[place] = time_ns;
        connection.ready_latest = place as u32;
    }
    connection.ready_next = stream.next;
}

#[btf_tracepoint(function = "sk_data_ready")]
pub(crate) fn network_ready(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let socket = Socket::from_argument(context.arg(0));
    let cookie = socket.cookie_so_far();
    if cookie == 0 {
        // Every watched connection has one. A Unix socket that is written to gets it here, before
        // its process has it: the writer's entry names its peer by it.
        if unix::is_unix(socket.family_of_argument()) {
            socket.cookie();
        } else {
            names::take_answer(socket);
        }
        return 0;
    }
    if let Some(connection) = find(cookie) {
        if let Some(tcp) = socket.tcp() {
            let stream = tcp.stream();
            let mut before = connection.ready_next;
            if before == 0 {
                // The agent has made the entry, of a connection from before: the first data to come
                // is taken for the first that is unread.
                before = stream.copied;
                connection.read_next = before;
            }
            if stream.next != before {
                arrive(connection, stream, before, tcp.packet_ns());
            }
        }
    } else if unix::is_unix(socket.family_of_argument()) {
        unix::ready(cookie);
    } else {
        names::take_answer(socket);
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
    if let Some(first) = socket.first_of_mptcp() {
        let cookie = known_cookie(first.0);
        return match find(cookie) {
            Some(connection) => Met::Connection(connection),
            None => joined(first, cookie, bytes),
        };
    }
    // What the rest of the machine says is most of what comes by: it ends here.
    if !socket.is_tcp_argument() || !current_may_be_wanted() {
        return Met::Other;
    }
    joined(socket, socket.cookie(), bytes)
}

/// The entry of a socket that is not watched yet, when it is to be.
#[inline(always)]
fn joined(socket: Socket, cookie: u64, bytes: u64) -> Met {
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
    // The cookie of a connection inside MPTCP has not been asked for yet.
    if cookie == 0 || create(socket, cookie, 1) == 0 {
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
