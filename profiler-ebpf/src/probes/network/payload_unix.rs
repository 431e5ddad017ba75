//! Payload of Unix sockets: streams, which processes read and write as they do connections.
//!
//! Called by the programs of [`super::traffic`]. Their sockets have no ports: each end is known by its
//! cookie, and names its peer by that one's.

use profiler_common::{
    network::{ANNOUNCED, DIRECTION_CLIENT, DIRECTION_SERVER, DIRECTION_UNKNOWN},
    payload::{CAPTURE_CAPTURED, PieceConnection, SCRATCH_SENT},
    unix_sockets::UnixSocket,
};

use super::{
    connection::{add_one, now},
    payload::{
        self, Moved, Turn, begins_http2, fill, is_stopped, limit_of, note, reserve_connection,
        sampling_of, send, speaks_http2,
    },
    payload_bytes::find_source,
    socket::Socket,
    unix::{self, FAMILY},
};
use crate::emit::Urgency;

/// `SOCK_STREAM`.
const STREAM: u32 = 1;

/// The running task has moved `bytes` over a Unix socket, which are counted already.
#[inline(never)]
pub(super) fn moved<const AREA: u32>(socket: Socket, bytes: u64) -> u64 {
    let Some(entry) = unix::find(socket.cookie_so_far()) else {
        return 0;
    };
    if entry.kind != STREAM {
        return 0;
    }
    let at_ns = now();
    entry.used_ns = at_ns;
    let turn = turn_of(entry, at_ns);
    if is_stopped(entry.capture_bytes) || !turn.is_captured {
        return 0;
    }
    if entry.announced == 0 {
        if announce(entry, at_ns) == 0 {
            add_one(&mut entry.pieces_lost);
            return 0;
        }
        entry.announced = u32::from(ANNOUNCED);
    }
    let Some(scratch) = payload::scratch(AREA) else {
        return 0;
    };
    find_source(&mut scratch.source, socket, bytes);
    let (all, since_ns) = if AREA == SCRATCH_SENT {
        (entry.sent_bytes, 0)
    } else {
        (entry.received_bytes, entry.taken_ns)
    };
    let moved = Moved {
        cookie: entry.cookie,
        offset: all.saturating_sub(bytes),
        bytes,
        since_ns,
        lost: entry.pieces_lost,
        turn,
    };
    let wanted = bytes.min(u64::from(limit_of(entry.capture_bytes)));
    fill::<AREA>(scratch, wanted, &moved);
    if moved.offset == 0 && begins_http2(scratch) {
        speaks_http2(&mut entry.capture_bytes);
    }
    let is_sent = send(scratch, at_ns);
    if is_sent == 0 {
        add_one(&mut entry.pieces_lost);
    }
    is_sent
}

/// Whether what is moved now is captured; a turn begins and ends anywhere, as the client is not known.
#[inline(always)]
fn turn_of(entry: &mut UnixSocket, at_ns: u64) -> Turn {
    let sampling = sampling_of(entry.capture_bytes);
    let follows = entry.capture_bytes & CAPTURE_CAPTURED != 0;
    let is_captured = sampling.has(sampling_key(entry), at_ns);
    note(&mut entry.capture_bytes, CAPTURE_CAPTURED, is_captured);
    Turn {
        sampling,
        is_captured,
        follows,
    }
}

/// Both ends of a connection give the same.
#[inline(always)]
fn sampling_key(entry: &UnixSocket) -> u64 {
    if entry.peer_cookie != 0 && entry.peer_cookie < entry.cookie {
        entry.peer_cookie
    } else {
        entry.cookie
    }
}

/// Tells the agent of a socket; in place of addresses stand the cookies of both ends. 0 when the ring buffer
/// is full.
#[inline(never)]
fn announce(entry: &UnixSocket, at_ns: u64) -> u64 {
    let Some(mut record) = reserve_connection(at_ns) else {
        return 0;
    };
    // SAFETY: the record is reserved, of this type, and every member was written.
    let connection: &mut PieceConnection = unsafe { &mut *record.as_mut_ptr() };
    connection.cookie = entry.cookie;
    connection.network_namespace = entry.network_namespace;
    connection.family = u32::from(FAMILY);
    connection.flags = entry.flags;
    connection.pid = entry.pid;
    // The connecting end has no name, and is connected to one.
    connection.direction = match (entry.name_bytes, entry.peer_name_bytes) {
        (0, 0) => DIRECTION_UNKNOWN,
        (0, _) => DIRECTION_CLIENT,
        (_, 0) => DIRECTION_SERVER,
        _ => DIRECTION_UNKNOWN,
    };
    connection.local[..8].copy_from_slice(&entry.cookie.to_ne_bytes());
    connection.remote[..8].copy_from_slice(&entry.peer_cookie.to_ne_bytes());
    record.submit(Urgency::Polled.flags());
    1
}
