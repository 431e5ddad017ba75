//! Payload of connections: the beginning of what each read and write moved, towards the agent.
//!
//! Called by the programs of [`super::traffic`]. Cost: a connection that is not captured costs some comparisons and what
//! [`super::http`] takes, a piece one system call's arguments, the copy of its bytes and one copy into the ring buffer. There
//! is no program at system calls: what announces a length runs within the call.

use aya_ebpf::{
    macros::map,
    maps::{Array, PerCpuArray, RingBuf, ring_buf::RingBufEntry},
};
use profiler_common::{
    header::{KIND_PIECE, KIND_PIECE_CONNECTION, KIND_PIECE_END, RecordHeader},
    network::{ANNOUNCED, Connection, DIRECTION_CLIENT, DIRECTION_UNKNOWN, FLAG_JOINED},
    payload::{
        CAPTURE_BEFORE, CAPTURE_CAPTURED, CAPTURE_DEFAULT, CAPTURE_PLAINTEXT, CAPTURE_STEADY,
        CAPTURE_STOP, CAPTURE_TO_SERVER, MAX_PIECE_BYTES, ORDER_DIRECTION_SHIFT,
        PAYLOAD_BUFFER_BYTES, PAYLOAD_COUNTERS, PIECE_FOLLOWS, PIECE_SAMPLING_SHIFT, PIECE_SENT,
        PIECES_LOST, PIECES_SENT, PIECES_WITHOUT_BYTES, PayloadConfig, PieceConnection, PieceEnd,
        PieceHead, SCRATCH_AREAS, SCRATCH_BYTES, SCRATCH_SENT, Sampling, client_port,
    },
};

use super::{
    connection::{add, add_one, find},
    http2::Walk,
    payload_bytes::{Source, captured, copy},
    payload_datagrams::Name,
    unix,
};
use crate::{emit::Urgency, maps::area_of_cpu, task};

/// `IPPROTO_TCP`.
const TCP: u32 = 6;

#[unsafe(no_mangle)]
pub(super) static PAYLOAD: PayloadConfig = PayloadConfig {
    watched: 0,
    capture_bytes: 0,
    sock_socket: 0,
    socket_file: 0,
    registers_result: 0,
    registers_first: 0,
    registers_fifth: 0,
    tcp_chrono_start: 0,
    tcp_chrono_stat: 0,
    tcp_chrono_type: 0,
    chrono_mask: 0,
    tick_ns: 0,
};

/// Reads one field of [`PAYLOAD`]; volatile for the reason given at [`crate::config::config`].
macro_rules! payload {
    ($field:ident) => {
        // SAFETY: the pointer is to a field of a static of this program.
        unsafe {
            core::ptr::read_volatile(&raw const $crate::probes::network::payload::PAYLOAD.$field)
        }
    };
}

pub(super) use payload;

/// Pieces, towards the agent.
#[map]
pub(super) static PIECES: RingBuf = RingBuf::with_byte_size(PAYLOAD_BUFFER_BYTES, 0);

/// Where pieces are put together: for each CPU one area for each program that does.
#[map]
static PIECE_SCRATCH: Array<Scratch> = Array::with_max_entries(SCRATCH_AREAS, 0);

/// The bits of [`Sampling`].
#[map]
static PIECE_SAMPLING: Array<u32> = Array::with_max_entries(1, 0);

#[map]
static PIECE_COUNTS: PerCpuArray<u64> = PerCpuArray::with_max_entries(PAYLOAD_COUNTERS, 0);

/// A piece that is being put together.
#[repr(C)]
pub(super) struct Scratch {
    pub(super) head: PieceHead,
    pub(super) bytes: [u8; SCRATCH_BYTES - size_of::<PieceHead>()],
    /// Where its bytes come from; not sent.
    pub(super) source: Source,
    pub(super) name: Name,
    pub(super) walk: Walk,
}

/// Whether the task captures payload.
#[inline(always)]
pub(super) fn is_watched() -> bool {
    payload!(watched) != 0
}

/// A part of a stream that the running task has moved.
pub(super) struct Part {
    pub(super) bytes: u64,
    /// Bytes of the stream before it.
    pub(super) offset: u64,
    /// Since when it was there to be read, or when its write began; 0: not known.
    pub(super) since_ns: u64,
    /// Now: the clock is read once for each part.
    pub(super) at_ns: u64,
}

/// How a piece relates to the sampling.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) sampling: Sampling,
    pub(super) is_captured: bool,
    /// The piece before was captured.
    pub(super) follows: bool,
}

/// Whether what a connection moves now is captured, by its client's port: both of its ends give the same answer. Where
/// connections take turns, a request that begins in the connection's turn is captured to its end, and nothing else: a
/// turn begins and ends where the client has something to say after the server. The first answer of a connection, which
/// has nothing before it in its direction, belongs to its request like any other.
#[inline(always)]
pub(super) fn turn_of(connection: &mut Connection, is_sent: bool, part: &Part) -> Turn {
    let Connection {
        direction,
        local_port,
        remote_port,
        capture_bytes: before,
        ..
    } = *connection;
    let sampling = sampling_of(before);
    let follows = before & CAPTURE_CAPTURED != 0;
    let is_to_server = is_sent == (direction == DIRECTION_CLIENT);
    let goes_on = sampling.takes_turns()
        && direction != DIRECTION_UNKNOWN
        && (part.offset != 0 || before & (CAPTURE_CAPTURED | CAPTURE_TO_SERVER) != 0)
        && !(is_to_server && before & CAPTURE_TO_SERVER == 0);
    let is_captured = if goes_on {
        follows
    } else {
        let key = u64::from(client_port(direction, local_port, remote_port));
        sampling.has(key, part.at_ns)
    };
    note(&mut connection.capture_bytes, CAPTURE_CAPTURED, is_captured);
    note(
        &mut connection.capture_bytes,
        CAPTURE_TO_SERVER,
        is_to_server,
    );
    Turn {
        sampling,
        is_captured,
        follows,
    }
}

/// The same of plaintext of a TLS library, which is captured as what went over the socket last.
#[inline(always)]
pub(super) fn turn_of_plaintext(connection: &mut Connection) -> Turn {
    let before = connection.capture_bytes;
    let is_captured = before & CAPTURE_CAPTURED != 0;
    note(
        &mut connection.capture_bytes,
        CAPTURE_PLAINTEXT,
        is_captured,
    );
    Turn {
        sampling: sampling_of(before),
        is_captured,
        follows: before & CAPTURE_PLAINTEXT != 0,
    }
}

/// Sets a bit, or takes it away.
#[inline(always)]
pub(super) fn note(capture_bytes: &mut u32, bit: u32, is_set: bool) {
    if is_set {
        *capture_bytes |= bit;
    } else {
        *capture_bytes &= !bit;
    }
}

impl Turn {
    /// For [`PieceHead::flags`].
    #[inline(always)]
    pub(super) fn flags(self) -> u32 {
        let follows = if self.follows { PIECE_FOLLOWS } else { 0 };
        follows | self.sampling.bits() << PIECE_SAMPLING_SHIFT
    }
}

/// Whether nothing is wanted of a connection with these `capture_bytes`.
#[inline(always)]
pub(super) fn is_stopped(capture_bytes: u32) -> bool {
    capture_bytes & CAPTURE_STOP == CAPTURE_STOP
}

/// Which connections are captured.
#[inline(always)]
pub(super) fn sampling() -> Sampling {
    match PIECE_SAMPLING.get(0) {
        Some(bits) => Sampling::from_bits(*bits),
        None => Sampling::new(0, false),
    }
}

/// The same for a connection, by its `capture_bytes`.
#[inline(always)]
pub(super) fn sampling_of(capture_bytes: u32) -> Sampling {
    if capture_bytes & CAPTURE_STEADY == 0 {
        sampling()
    } else {
        sampling().steady()
    }
}

/// Has more captured of each piece, if nothing else was ordered.
#[inline(always)]
pub(super) fn speaks_http2(capture_bytes: &mut u32) {
    if *capture_bytes & CAPTURE_STOP == CAPTURE_DEFAULT {
        *capture_bytes |= MAX_PIECE_BYTES as u32 | CAPTURE_STEADY;
    }
}

/// First bytes of each piece that are captured, by the `capture_bytes` of a connection.
#[inline(always)]
pub(super) fn limit_of(capture_bytes: u32) -> u32 {
    match capture_bytes & CAPTURE_STOP {
        CAPTURE_DEFAULT => payload!(capture_bytes),
        bytes => bytes,
    }
}

#[inline(always)]
pub(super) fn count(counter: u32) {
    if let Some(slot) = PIECE_COUNTS.get_ptr_mut(counter) {
        // SAFETY: a per-CPU slot.
        add(unsafe { &mut *slot }, 1);
    }
}

/// An area of this CPU.
#[inline(always)]
pub(super) fn scratch(area: u32) -> Option<&'static mut Scratch> {
    let scratch = area_of_cpu(&PIECE_SCRATCH, SCRATCH_AREAS, area)?;
    // SAFETY: a map value that only one program on this CPU writes.
    Some(unsafe { &mut *scratch })
}

/// Sends a piece, and before it the connection, if that was not announced yet.
#[inline(never)]
pub(super) fn piece<const AREA: u32>(
    connection: &mut Connection,
    scratch: &mut Scratch,
    part: &Part,
    turn: Turn,
) -> u64 {
    let at_ns = part.at_ns;
    if !is_announced(connection, at_ns) {
        scratch.head.captured = 0;
        return 0;
    }
    let moved = Moved {
        cookie: connection.cookie,
        offset: part.offset,
        bytes: part.bytes,
        since_ns: part.since_ns,
        lost: connection.pieces_lost,
        turn,
    };
    let wanted = part
        .bytes
        .min(u64::from(limit_of(connection.capture_bytes)));
    fill::<AREA>(scratch, wanted, &moved);
    if part.offset == 0 && begins_http2(scratch) {
        speaks_http2(&mut connection.capture_bytes);
    }
    let is_sent = send(scratch, at_ns);
    if is_sent == 0 {
        add_one(&mut connection.pieces_lost);
    }
    is_sent
}

/// Whether a client begins to speak HTTP/2 (RFC 9113, 3.4). Frames lie behind each other there, so that
/// more is captured from the first answer on; the agent's order would come too late for it.
#[inline(always)]
pub(super) fn begins_http2(scratch: &Scratch) -> bool {
    let [first, second, third, fourth, ..] = scratch.bytes;
    captured(scratch) >= 4 && [first, second, third, fourth] == *b"PRI "
}

/// What the running task has moved.
pub(super) struct Moved {
    pub(super) cookie: u64,
    /// Bytes before it.
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// As in [`Part`].
    pub(super) since_ns: u64,
    /// Pieces of the socket that were lost.
    pub(super) lost: u32,
    pub(super) turn: Turn,
}

/// Puts the piece of a source together, with the first `wanted` bytes as far as they can be read; none of a part beyond
/// [`MAX_PIECE_BYTES`], which is never asked for.
#[inline(always)]
pub(super) fn fill<const AREA: u32>(scratch: &mut Scratch, wanted: u64, moved: &Moved) {
    scratch.head.captured = 0;
    if wanted != 0 && copy(scratch, wanted) == 0 {
        count(PIECES_WITHOUT_BYTES);
    }
    let (pid, tid) = match task::current_ids() {
        Some(ids) => (ids.pid, ids.tid),
        None => (0, 0),
    };
    scratch.head.cookie = moved.cookie;
    scratch.head.since_ns = moved.since_ns;
    scratch.head.offset = moved.offset;
    scratch.head.length = moved.bytes as u32;
    scratch.head.pid = pid;
    scratch.head.tid = tid;
    let direction = if AREA == SCRATCH_SENT { PIECE_SENT } else { 0 };
    scratch.head.flags = direction | moved.turn.flags();
    scratch.head.lost = moved.lost;
}

/// Hands a piece to the agent. 0 when the ring buffer is full.
#[inline(always)]
pub(super) fn send(scratch: &mut Scratch, at_ns: u64) -> u64 {
    let length = u64::from(captured(scratch)) + size_of::<PieceHead>() as u64;
    scratch.head.header = RecordHeader {
        kind: KIND_PIECE,
        bytes: length as u32,
        time_ns: at_ns,
    };
    // SAFETY: the area is longer than any piece.
    let record =
        unsafe { core::slice::from_raw_parts((&raw const *scratch).cast::<u8>(), length as usize) };
    if PIECES
        .output::<[u8]>(record, Urgency::Polled.flags())
        .is_err()
    {
        count(PIECES_LOST);
        return 0;
    }
    count(PIECES_SENT);
    1
}

/// Tells of the connection, if that was not done yet; false when there is no room.
#[inline(always)]
pub(super) fn is_announced(connection: &mut Connection, at_ns: u64) -> bool {
    if connection.announced == 0 {
        if announce(connection, at_ns) == 0 {
            add_one(&mut connection.pieces_lost);
            return false;
        }
        connection.announced = ANNOUNCED;
    }
    true
}

/// Tells the agent of a connection. 0 when the ring buffer is full.
#[inline(never)]
fn announce(connection: &Connection, at_ns: u64) -> u64 {
    let Some(mut record) = reserve_connection(at_ns) else {
        return 0;
    };
    // SAFETY: the record is reserved, of this type, and every member was written.
    let announced = unsafe { &mut *record.as_mut_ptr() };
    announced.cookie = connection.cookie;
    announced.network_namespace = connection.network_namespace;
    announced.direction = connection.direction;
    announced.flags = connection.flags;
    if connection.capture_bytes & CAPTURE_BEFORE != 0 {
        announced.flags |= FLAG_JOINED;
    }
    announced.family = u32::from(connection.family);
    announced.protocol = TCP;
    announced.pid = connection.pid;
    announced.local_port = connection.local_port;
    announced.remote_port = connection.remote_port;
    announced.local = connection.local;
    announced.remote = connection.remote;
    record.submit(Urgency::Polled.flags());
    1
}

/// Tells of the end of a connection, behind its last piece, so that the agent needs not wait for what it reads less
/// often. Not of one whose plaintext is read, of which the agent has to know more; nor of one that was there
/// before, of which there may have been another entry.
#[inline(always)]
pub(super) fn end(connection: &Connection, at_ns: u64) {
    if !is_watched() || connection.announced != ANNOUNCED || connection.flags & FLAG_JOINED != 0 {
        return;
    }
    let closed_ns = connection.closed_ns;
    let record = PieceEnd {
        header: RecordHeader {
            kind: KIND_PIECE_END,
            bytes: size_of::<PieceEnd>() as u32,
            time_ns: if closed_ns == 0 { at_ns } else { closed_ns },
        },
        cookie: connection.cookie,
        sent_bytes: connection.sent_bytes,
        received_bytes: connection.received_bytes,
    };
    // Without room the end is reported with what the connection has counted.
    let _told = PIECES.output::<PieceEnd>(&record, Urgency::Polled.flags());
}

/// Room for the record of a connection, which is not filled in yet. `None`: the ring buffer is
/// full.
#[inline(always)]
pub(super) fn reserve_connection(at_ns: u64) -> Option<RingBufEntry<PieceConnection>> {
    let Some(mut record) = PIECES.reserve::<PieceConnection>(0) else {
        count(PIECES_LOST);
        return None;
    };
    record.write(PieceConnection {
        header: RecordHeader {
            kind: KIND_PIECE_CONNECTION,
            bytes: size_of::<PieceConnection>() as u32,
            time_ns: at_ns,
        },
        cookie: 0,
        network_namespace: 0,
        direction: 0,
        flags: 0,
        family: 0,
        protocol: 0,
        pid: 0,
        local_port: 0,
        remote_port: 0,
        padding: 0,
        local: [0; 16],
        remote: [0; 16],
    });
    Some(record)
}

/// What the agent hands over.
#[repr(C)]
pub(crate) struct Order {
    cookie: u64,
    /// For [`Connection::capture_bytes`]; or by [`ORDER_DIRECTION_SHIFT`] a `DIRECTION_*` for a connection whose own is not
    /// known.
    order: u64,
}

/// What the kernel side has noted there stays.
#[inline(always)]
fn set_order(capture_bytes: &mut u32, order: u64) {
    const ORDERED: u32 = CAPTURE_STOP | CAPTURE_STEADY;
    *capture_bytes = *capture_bytes & !ORDERED | order as u32 & ORDERED;
}

/// Never attached: the agent runs it, because it cannot write a part of an entry itself. Returns 1
/// when the connection is there.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp/sys_enter")]
pub(crate) extern "C" fn network_capture(order: *const Order) -> i32 {
    // SAFETY: the verifier checks accesses to the context.
    let (cookie, order) = unsafe { ((*order).cookie, (*order).order) };
    let direction = (order >> ORDER_DIRECTION_SHIFT) as u32;
    if let Some(connection) = find(cookie) {
        if direction == 0 {
            set_order(&mut connection.capture_bytes, order);
        } else if connection.direction == DIRECTION_UNKNOWN {
            connection.direction = direction;
        }
        return 1;
    }
    match unix::find(cookie) {
        Some(socket) if direction == 0 => {
            set_order(&mut socket.capture_bytes, order);
            1
        }
        _ => 0,
    }
}
