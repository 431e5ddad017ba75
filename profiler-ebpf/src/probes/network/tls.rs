//! Plaintext of TLS libraries: which connection a call of a library belongs to, and what it wrote.
//!
//! A library that is asked to write or read calls the socket from within. What announces a length of
//! the socket then runs on the same thread, above the frame of the call, and its bytes are records of
//! TLS: that binds the session to the connection, anew each time. A write is handed out at its first
//! record, a read when it returns ([`super::tls_calls`]). Nothing is guessed: what is not bound is
//! counted. How long a binding holds is in [`super::tls_sessions`].
//!
//! The state of a call is kept under its thread, and under its goroutine in Go programs, which move
//! between threads (`r14` is theirs in Go's calling convention, also in a system call).

use aya_ebpf::{
    EbpfContext as _,
    bindings::pt_regs,
    helpers::{
        bpf_get_current_pid_tgid, bpf_probe_read_user,
        generated::{
            bpf_get_attach_cookie, bpf_get_current_task_btf, bpf_probe_read_user as read_user,
            bpf_task_pt_regs,
        },
    },
    macros::map,
    maps::{Array, HashMap, LruHashMap, PerCpuArray},
    programs::ProbeContext,
};
use profiler_common::{
    header::{KIND_PIECE, RecordHeader},
    network::{ANNOUNCED_TLS, Connection, FLAG_JOINED},
    payload::{PIECE_SENT, PIECE_TLS, PIECES_LOST, PieceHead},
    tls::{
        CALL_GREETS, NO_FRAME, PROCESS_EPOCH, PROCESS_SINCE, PROCESS_UNBOUND, PROCESS_WORDS,
        SITE_GOROUTINE, SITE_READS, SITE_STEPPED, STATE_GOROUTINES, STATE_PAUSED, STATE_WORDS,
        SiteCookie, TLS_CALL_ENTRIES, TLS_CONNECTION_ENTRIES, TLS_COUNTERS, TLS_PIECES,
        TLS_PROCESS_ENTRIES, TLS_ROOM_LARGE, TLS_ROOM_LARGEST, TLS_ROOM_MIDDLE, TLS_ROOM_SMALL,
        TLS_STEPPED_MET, TLS_UNBOUND_WRITTEN, TLS_UNREADABLE, TlsCall, TlsCaller, TlsConfig,
        TlsConnection,
    },
};

use super::{
    connection::{add, add_one, current_is_wanted, now},
    payload,
    payload_bytes::Source,
    tls_sessions::{TLS_SESSIONS, bind, is_bound_to, remember_write, session_key},
};
use crate::{emit::Urgency, kernel::TypedPtr, task};

#[unsafe(no_mangle)]
static TLS: TlsConfig = TlsConfig {
    watched: 0,
    capture_bytes: 0,
};

/// Reads one field of [`TLS`]; volatile for the reason given at [`crate::config::config`].
macro_rules! tls {
    ($field:ident) => {
        // SAFETY: the pointer is to a field of a static of this program.
        unsafe { core::ptr::read_volatile(&raw const TLS.$field) }
    };
}

/// `STATE_*`.
#[map]
static TLS_STATE: Array<u64> = Array::with_max_entries(STATE_WORDS, 0);

#[map]
pub(super) static TLS_CALLS: LruHashMap<TlsCaller, TlsCall> =
    LruHashMap::with_max_entries(TLS_CALL_ENTRIES, 0);

#[map]
static TLS_CONNECTIONS: LruHashMap<u64, TlsConnection> =
    LruHashMap::with_max_entries(TLS_CONNECTION_ENTRIES, 0);

/// By pid: since when there are probes, `PROCESS_*`.
#[map]
pub(super) static TLS_PROCESSES: HashMap<u32, [u64; PROCESS_WORDS]> =
    HashMap::with_max_entries(TLS_PROCESS_ENTRIES, 0);

#[map]
static TLS_COUNTS: PerCpuArray<u64> = PerCpuArray::with_max_entries(TLS_COUNTERS, 0);

/// Words of `struct pt_regs`: the stack pointer, and the register that holds the goroutine.
#[cfg(bpf_target_arch = "x86_64")]
const STACK_WORD: u32 = 19;
#[cfg(bpf_target_arch = "x86_64")]
const GOROUTINE_WORD: u32 = 1;
#[cfg(bpf_target_arch = "aarch64")]
const STACK_WORD: u32 = 31;
#[cfg(bpf_target_arch = "aarch64")]
const GOROUTINE_WORD: u32 = 28;

/// Types of records: `change_cipher_spec` to `application_data` (RFC 8446, section 5.1), and the
/// first byte of their version.
const FIRST_TYPE: u8 = 20;
const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;
const VERSION: u8 = 3;

/// Whether the task captures plaintext.
#[inline(always)]
pub(super) fn is_watched() -> bool {
    tls!(watched) != 0
}

#[inline(always)]
pub(super) fn count(counter: u32, number: u64) {
    if let Some(slot) = TLS_COUNTS.get_ptr_mut(counter) {
        // SAFETY: a per-CPU slot; another thread of this CPU may come between, hence atomic.
        add(unsafe { &mut *slot }, number);
    }
}

/// The site of a probe that is met, which is counted by `TLS_CALLS_MET` or `TLS_RESULTS_MET`; none where
/// nothing is to be looked at.
#[inline(always)]
pub(super) fn met(context: &ProbeContext, counter: u32) -> Option<SiteCookie> {
    // SAFETY: the context of the running program.
    let site = SiteCookie::from_bits(unsafe { bpf_get_attach_cookie(context.as_ptr()) });
    if !current_is_wanted() {
        return None;
    }
    count(counter, 1);
    if site.kind & SITE_STEPPED != 0 {
        count(TLS_STEPPED_MET, 1);
    }
    if is_paused() {
        return None;
    }
    Some(SiteCookie {
        kind: site.kind & !SITE_STEPPED,
        ..site
    })
}

#[inline(always)]
pub(super) fn state(word: u32) -> u64 {
    match TLS_STATE.get(word) {
        Some(value) => *value,
        None => 0,
    }
}

/// Whether probes are being put in or taken out, so that only some are there.
#[inline(always)]
pub(super) fn is_paused() -> bool {
    state(STATE_PAUSED) != 0
}

/// The registers with which the running thread has entered the kernel.
#[inline(always)]
pub(super) fn registers() -> TypedPtr {
    // SAFETY: helpers that give the place of the running task's registers.
    let registers: *const pt_regs =
        unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) as *const pt_regs };
    TypedPtr::new(registers)
}

#[inline(always)]
pub(super) fn stack_pointer(registers: TypedPtr) -> u64 {
    registers.member(STACK_WORD * 8)
}

/// The running thread or goroutine.
#[inline(always)]
pub(super) fn caller(kind: u8, registers: TypedPtr) -> TlsCaller {
    let both = bpf_get_current_pid_tgid();
    if kind & SITE_GOROUTINE == 0 {
        TlsCaller {
            process: (both >> 32) as u32,
            thread: both as u32,
            goroutine: 0,
        }
    } else {
        TlsCaller {
            process: (both >> 32) as u32,
            thread: 0,
            goroutine: registers.member(GOROUTINE_WORD * 8),
        }
    }
}

/// The call that the running thread is in, if a call of a library is on its stack.
#[inline(always)]
pub(super) fn current_call() -> Option<&'static mut TlsCall> {
    if is_paused() {
        return None;
    }
    let registers = registers();
    if let Some(call) = TLS_CALLS.get_ptr_mut(caller(0, registers)) {
        // SAFETY: a map value that only its thread writes.
        let call = unsafe { &mut *call };
        return if is_on_stack(call, registers) {
            Some(call)
        } else {
            None
        };
    }
    if state(STATE_GOROUTINES) == 0 {
        return None;
    }
    let call = TLS_CALLS.get_ptr_mut(caller(SITE_GOROUTINE, registers))?;
    // SAFETY: a map value that only its goroutine writes.
    let call = unsafe { &mut *call };
    // Stacks of goroutines are moved: their frames say nothing but that the call is over.
    if call.frame == NO_FRAME {
        None
    } else {
        Some(call)
    }
}

/// Whether a call is not over: its frame lies above the stack pointer, and its return address is
/// still there. Of a goroutine's call, whose stack is moved, nothing can be said.
#[inline(always)]
pub(super) fn is_on_stack(call: &TlsCall, registers: TypedPtr) -> bool {
    if call.frame == 0 {
        return true;
    }
    if call.frame == NO_FRAME {
        return false;
    }
    if stack_pointer(registers) >= call.frame {
        return false;
    }
    // SAFETY: the helper checks the address.
    match unsafe { bpf_probe_read_user(call.frame as *const u64) } {
        Ok(address) => address == call.return_address,
        Err(_) => false,
    }
}

/// The call has sent on a connection, behind `offset` bytes of it.
#[inline(never)]
pub(super) fn sent(
    call: &mut TlsCall,
    connection: &mut Connection,
    source: &Source,
    offset: u64,
) -> u64 {
    let kind = record_type(source);
    if kind == 0 {
        return 0;
    }
    let is_bound = bind(call, connection.cookie, begins(connection, kind, offset)) != 0;
    if kind == APPLICATION_DATA && call.kind & u32::from(SITE_READS) == 0 && call.done == 0 {
        call.done = 1;
        if !is_bound {
            count(TLS_UNBOUND_WRITTEN, call.length);
            tell_process(PROCESS_UNBOUND);
            return 0;
        }
        remember_write(call);
        emit(connection, call, call.length, 1);
    } else if kind != APPLICATION_DATA {
        call.kind |= CALL_GREETS;
    }
    1
}

/// The call has received on a connection, behind `offset` bytes of it; the data was there at `ready_ns`, or
/// that is not known.
#[inline(never)]
pub(super) fn received(
    call: &mut TlsCall,
    connection: &Connection,
    source: &Source,
    ready_ns: u64,
    offset: u64,
) -> u64 {
    let cookie = connection.cookie;
    // A record's header and its body may be read one after the other.
    let is_known = call.cookie == cookie || is_bound_to(call.session, cookie);
    let kind = record_type(source);
    if (is_known || kind != 0) && bind(call, cookie, begins(connection, kind, offset)) != 0 {
        call.ready_ns = ready_ns;
    }
    1
}

/// 1 when this is the first that a connection moves, and a handshake's record: it begins a session.
#[inline(always)]
fn begins(connection: &Connection, kind: u8, offset: u64) -> u64 {
    let is_first = offset == 0 && connection.flags & FLAG_JOINED == 0;
    u64::from(is_first && kind == HANDSHAKE)
}

/// The socket takes no more from the running thread: what it writes now it will write again.
#[inline(never)]
pub(super) fn blocked() -> u64 {
    let Some(call) = current_call() else {
        return 0;
    };
    if call.done == 1
        && call.kind & u32::from(SITE_READS) == 0
        && let Some(session) = TLS_SESSIONS.get_ptr_mut(session_key(call.session))
    {
        // SAFETY: a map value; sessions are used by one thread at a time.
        unsafe { (*session).blocked = 1 };
    }
    1
}

#[inline(always)]
pub(super) fn is_bound(cookie: u64) -> bool {
    TLS_CONNECTIONS.get_ptr(cookie).is_some()
}

/// Forgets what is known of a connection that is closed, so that those that are open keep their room.
#[inline(always)]
pub(super) fn forget(cookie: u64) {
    if is_watched() {
        // Fails when nothing is known of it.
        let _gone = TLS_CONNECTIONS.remove(cookie);
    }
}

/// Counts something of the running process, by `PROCESS_*`.
#[inline(never)]
pub(super) fn tell_process(word: usize) -> u64 {
    if let Some(ids) = task::current_ids()
        && let Some(process) = TLS_PROCESSES.get_ptr_mut(ids.pid)
        && word < PROCESS_WORDS
    {
        // SAFETY: a map value; additions are atomic.
        add(unsafe { &mut (*process)[word] }, 1);
    }
    0
}

/// Type of the record that the running system call has moved first; 0 when it is none.
#[inline(always)]
fn record_type(source: &Source) -> u8 {
    match source.first::<1>() {
        Some([first]) => type_of(first),
        None => 0,
    }
}

/// Type of a record by its first bytes; 0 when it is none.
#[inline(always)]
pub(super) fn type_of(first: u64) -> u8 {
    let [kind, version, ..] = first.to_le_bytes();
    if version == VERSION && (FIRST_TYPE..=APPLICATION_DATA).contains(&kind) {
        kind
    } else {
        0
    }
}

/// Hands out what a call has moved: `length` bytes from its buffer on. 0 when that failed.
#[inline(never)]
pub(super) fn emit(connection: &mut Connection, call: &TlsCall, length: u64, is_send: u64) -> u64 {
    let at_ns = now();
    if connection.announced == ANNOUNCED_TLS && !is_bound(connection.cookie) {
        // Its offsets have made room for those of others.
        connection.announced = 0;
    }
    if !payload::is_announced(connection, at_ns) {
        return 0;
    }
    connection.announced = ANNOUNCED_TLS;
    let (pid, tid) = match task::current_ids() {
        Some(ids) => (ids.pid, ids.tid),
        None => (0, 0),
    };
    let offset = offset(connection, pid, length, is_send);
    // What is left out shows in the next offset.
    let turn = payload::turn_of_plaintext(connection);
    if !turn.is_captured {
        return 0;
    }
    let direction = if is_send == 0 { 0 } else { PIECE_SENT };
    let wanted = length.min(u64::from(tls!(capture_bytes))).min(call.here);
    let head = PieceHead {
        header: RecordHeader {
            kind: KIND_PIECE,
            bytes: (size_of::<PieceHead>() as u64 + wanted) as u32,
            time_ns: at_ns,
        },
        cookie: connection.cookie,
        since_ns: if is_send == 0 { call.ready_ns } else { 0 },
        offset,
        length: length as u32,
        captured: wanted as u32,
        pid,
        tid,
        flags: PIECE_TLS | direction | turn.flags(),
        lost: connection.pieces_lost,
    };
    const HEAD: u64 = size_of::<PieceHead>() as u64;
    let handed = if wanted <= TLS_ROOM_SMALL as u64 - HEAD {
        put::<{ TLS_ROOM_SMALL - size_of::<PieceHead>() }>(&head, call.buffer)
    } else if wanted <= TLS_ROOM_MIDDLE as u64 - HEAD {
        put::<{ TLS_ROOM_MIDDLE - size_of::<PieceHead>() }>(&head, call.buffer)
    } else if wanted <= TLS_ROOM_LARGE as u64 - HEAD {
        put::<{ TLS_ROOM_LARGE - size_of::<PieceHead>() }>(&head, call.buffer)
    } else {
        put::<{ TLS_ROOM_LARGEST - size_of::<PieceHead>() }>(&head, call.buffer)
    };
    if handed == 0 {
        payload::count(PIECES_LOST);
        add_one(&mut connection.pieces_lost);
        return 0;
    }
    count(TLS_PIECES, 1);
    1
}

/// A record of fixed length, as the ring buffer wants it; the piece's own length is in its head.
#[repr(C)]
struct Room<const BYTES: usize> {
    head: PieceHead,
    bytes: [u8; BYTES],
}

/// Writes a piece right into the ring buffer: where probes of user space run, another thread may come
/// between, so that no area of the CPU can be used.
#[inline(never)]
fn put<const BYTES: usize>(head: &PieceHead, buffer: u64) -> u64 {
    let Some(mut room) = payload::PIECES.reserve::<Room<BYTES>>(0) else {
        return 0;
    };
    let mut captured = u64::from(head.captured);
    if captured > BYTES as u64 {
        captured = BYTES as u64;
    }
    let to = room.as_mut_ptr();
    // SAFETY: the room is ours until it is handed over.
    unsafe { (&raw mut (*to).head).write(*head) };
    // SAFETY: the room has this many bytes, and the helper checks the source.
    let read = unsafe {
        read_user(
            (&raw mut (*to).bytes).cast(),
            captured as u32,
            buffer as *const _,
        )
    };
    if read != 0 {
        // The memory may be swapped out: the length is known all the same.
        // SAFETY: as above.
        unsafe { (*to).head.captured = 0 };
        // SAFETY: as above.
        unsafe { (*to).head.header.bytes = size_of::<PieceHead>() as u32 };
        count(TLS_UNREADABLE, 1);
    }
    room.submit(Urgency::Polled.flags());
    1
}

/// Plaintext of this direction before what is moved now. Where some of it may have been missed, the
/// offset jumps.
#[inline(never)]
fn offset(connection: &Connection, pid: u32, length: u64, is_send: u64) -> u64 {
    let cookie = connection.cookie;
    // SAFETY: words that the agent sets before the probes are attached.
    let (epoch, since_ns) = match unsafe { TLS_PROCESSES.get(pid) } {
        Some(process) => (process[PROCESS_EPOCH], process[PROCESS_SINCE]),
        // Earlier data is unknown.
        None => (0, u64::MAX),
    };
    if TLS_CONNECTIONS.get_ptr(cookie).is_none() {
        let is_late = connection.flags & FLAG_JOINED != 0 || connection.seen_ns < since_ns;
        let missed = u64::from(is_late);
        let made = TlsConnection {
            sent: missed,
            received: missed,
            epoch,
        };
        // Fails only without memory.
        let _made = TLS_CONNECTIONS.insert(cookie, made, 0);
    }
    let Some(known) = TLS_CONNECTIONS.get_ptr_mut(cookie) else {
        return 0;
    };
    // SAFETY: a map value; additions are atomic.
    let known = unsafe { &mut *known };
    if known.epoch != epoch {
        known.epoch = epoch;
        add(&mut known.sent, 1);
        add(&mut known.received, 1);
    }
    let moved = if is_send == 0 {
        &mut known.received
    } else {
        &mut known.sent
    };
    let before = *moved;
    add(moved, length);
    before
}
