//! rustls: which connection a session belongs to, and what it reads and writes.
//!
//! Its methods work on memory, but the one that takes ciphertext calls the socket from within
//! (`DeframerVecBuffer::read`), and the very next call of the thread makes plaintext of what is in that
//! buffer (`ConnectionCore::process_new_packets`): that binds the session to the socket, anew each time.
//! Plaintext is what that call takes in (`CommonState::take_received_plaintext`), and what
//! `CommonState::buffer_plaintext` says that it took. The address of the buffer for plaintext that waits
//! is an argument of both directions, and the name of the session.
//!
//! A connection may be moved in memory, and write before it reads again. Then the socket that is given the
//! ciphertext right after that write (`ChunkVecBuffer::write_to`) is that of the session, if both addresses
//! are as far from each other as they were in the first connections of the process, and the write is handed out
//! there.
//!
//! Attach point: uprobes at instructions that the agent chooses, in programs whose symbols have all four
//! methods (rustls 0.23). Expected: one hit for each record that is read, four for each turn of a
//! connection. What slices and vectors look like in memory is not promised by the language: it is held
//! against their lengths, and what does not fit is counted as not readable.

use aya_ebpf::{helpers::bpf_probe_read_user, macros::uprobe, programs::ProbeContext};
use profiler_common::tls::{
    NO_FRAME, PROCESS_DISTANCE, PROCESS_WORDS, SITE_HANDSHAKE, SITE_PROCESSES, SITE_READS,
    SITE_RUSTLS, SiteCookie, TLS_CALLS_MET, TLS_RESULTS_MET, TLS_UNBOUND_READ, TLS_UNBOUND_WRITTEN,
    TLS_UNREADABLE, TlsCall, TlsCaller,
};

use super::{
    tls::{TLS_CALLS, TLS_PROCESSES, caller, count, emit, is_on_stack, met, registers},
    tls_calls::{frame, settle, value},
    tls_sessions::{bind_session, connection_of, session_key},
};
use crate::{config::leave_at_floor, kernel::TypedPtr, task};

const TAKES: u32 = (SITE_RUSTLS | SITE_HANDSHAKE) as u32;
const PROCESSES: u32 = (SITE_RUSTLS | SITE_PROCESSES) as u32;
const WRITES: u32 = SITE_RUSTLS as u32;
const GIVES: u8 = SITE_HANDSHAKE | SITE_PROCESSES;
/// Larger than any connection's object.
const OBJECT_BYTES: u64 = 8192;
/// Plaintext of one record (RFC 8446, section 5.1).
const RECORD_BYTES: u64 = 1 << 14;
/// In place of a vector's capacity: the bytes are borrowed.
const BORROWED: u64 = 1 << 63;
/// Most bytes, and slices, of one write.
const WRITE_BYTES: u64 = 0x7fff_ffff;
const WRITE_SLICES: u64 = 4096;
/// Slices of one write that are looked at.
const SLICES: u64 = 8;

/// Where one of the methods has its arguments.
#[uprobe]
pub(crate) fn tls_rustls(context: ProbeContext) -> u32 {
    leave_at_floor!();
    let Some(site) = met(&context, TLS_CALLS_MET) else {
        return 0;
    };
    let registers = registers();
    let done = if site.kind & GIVES == GIVES {
        give(site, registers)
    } else if site.kind & SITE_PROCESSES != 0 {
        process(site, registers)
    } else if site.kind & SITE_READS != 0 {
        receive(site, registers)
    } else {
        write(site, registers)
    };
    if done.is_none() {
        count(TLS_UNREADABLE, 1);
    }
    0
}

/// Where it is said how much of what was written has been taken.
#[uprobe]
pub(crate) fn tls_rustls_result(context: ProbeContext) -> u32 {
    leave_at_floor!();
    let Some(site) = met(&context, TLS_RESULTS_MET) else {
        return 0;
    };
    if wrote(site, registers()).is_none() {
        count(TLS_UNREADABLE, 1);
    }
    0
}

/// A session takes what was read before.
#[inline(always)]
fn process(site: SiteCookie, registers: TypedPtr) -> Option<()> {
    let session = value(registers, site.first)?;
    let taken = value(registers, site.buffer)?;
    let key = caller(site.kind, registers);
    let at = frame(site, registers);
    // SAFETY: the helper checks the address.
    let return_address = unsafe { bpf_probe_read_user(at as *const u64) }.ok()?;
    let mut call = TlsCall {
        session,
        buffer: 0,
        length: 0,
        moved: 0,
        frame: at,
        return_address,
        cookie: 0,
        ready_ns: 0,
        kind: PROCESSES,
        done: 1,
        here: u64::MAX,
    };
    if let Some(before) = TLS_CALLS.get_ptr(key) {
        // SAFETY: a map value of the thread that runs here.
        let before = unsafe { &*before };
        if before.kind == TAKES
            && before.cookie != 0
            && before.session == taken
            && bind_session(&session_key(session), before.cookie, 1) != 0
        {
            call.cookie = before.cookie;
            call.ready_ns = before.ready_ns;
        }
    }
    remember(key, &call);
    Some(())
}

/// Puts a call in the place of the last one of its thread.
#[inline(always)]
fn remember(key: TlsCaller, call: &TlsCall) {
    if let Some(before) = TLS_CALLS.get_ptr_mut(key) {
        // SAFETY: a map value of the thread that runs here.
        let before = unsafe { &mut *before };
        settle(before, call);
        *before = *call;
    } else {
        // Fails only without memory: then the call is not known.
        let _made = TLS_CALLS.insert(key, call, 0);
    }
}

/// A session gives ciphertext to the socket: if it was asked to write just now and its connection is not known,
/// the socket inside of this call will say.
#[inline(always)]
fn give(site: SiteCookie, registers: TypedPtr) -> Option<()> {
    let ciphertext = value(registers, site.first)?;
    let Some(call) = TLS_CALLS.get_ptr_mut(caller(site.kind, registers)) else {
        return Some(());
    };
    // SAFETY: a map value of the thread that runs here.
    let call = unsafe { &mut *call };
    let at = frame(site, registers);
    if call.kind != WRITES || call.done != 0 {
        return Some(());
    }
    call.frame = NO_FRAME;
    if at != 0 && is_one_object(call.session, ciphertext) {
        // SAFETY: the helper checks the address.
        call.return_address = unsafe { bpf_probe_read_user(at as *const u64) }.ok()?;
        call.frame = at;
    }
    Some(())
}

/// Whether two addresses lie in one connection: at a distance that a process shows for those of its kind,
/// of which there are two, its clients and its servers.
#[inline(always)]
fn is_one_object(first: u64, second: u64) -> bool {
    let distance = second.wrapping_sub(first).wrapping_add(OBJECT_BYTES);
    if distance == 0 || distance >= 2 * OBJECT_BYTES {
        return false;
    }
    let Some(ids) = task::current_ids() else {
        return false;
    };
    let Some(words) = TLS_PROCESSES.get_ptr_mut(ids.pid) else {
        return false;
    };
    // SAFETY: a map value; words that two threads set at once are told apart by what they hold.
    let words = unsafe { &mut *words };
    let mut at = PROCESS_DISTANCE;
    while at < PROCESS_WORDS {
        if words[at] == 0 {
            words[at] = distance;
        }
        if words[at] == distance {
            return true;
        }
        at += 1;
    }
    false
}

/// A session has made plaintext of a record.
#[inline(always)]
fn receive(site: SiteCookie, registers: TypedPtr) -> Option<()> {
    let payload = value(registers, site.buffer)?;
    // SAFETY: the helper checks the address.
    let [room, buffer, length] = unsafe { bpf_probe_read_user(payload as *const [u64; 3]) }.ok()?;
    if length == 0 {
        return Some(());
    }
    if length > RECORD_BYTES || room < length || (room > BORROWED) {
        return None;
    }
    if let Some(call) = TLS_CALLS.get_ptr_mut(caller(site.kind, registers)) {
        // SAFETY: a map value of the thread that runs here.
        let call = unsafe { &mut *call };
        // One that began before the probes were there is not known.
        if call.kind == PROCESSES && is_on_stack(call, registers) {
            call.buffer = buffer;
            if let Some(connection) = connection_of(call) {
                emit(connection, call, length, 0);
                return Some(());
            }
        }
    }
    count(TLS_UNBOUND_READ, length);
    Some(())
}

/// A session is asked to write: one slice, or several in an array with the range of their bytes.
#[inline(always)]
fn write(site: SiteCookie, registers: TypedPtr) -> Option<()> {
    let session = value(registers, site.first)?;
    let payload = value(registers, site.buffer)?;
    // SAFETY: the helper checks the address.
    let words = unsafe { bpf_probe_read_user(payload as *const [u64; 4]) }.ok()?;
    let (buffer, slices, length, skipped) = match words {
        [0, buffer, length, _] => (buffer, 0, length, 0),
        [slices, number, start, end] => (slices, number, end.wrapping_sub(start), start),
    };
    if length > WRITE_BYTES || slices > WRITE_SLICES || skipped > WRITE_BYTES {
        return None;
    }
    let key = caller(site.kind, registers);
    let call = TlsCall {
        session,
        buffer,
        length,
        moved: slices,
        frame: NO_FRAME,
        // Its frame, by which its result is known.
        return_address: frame(site, registers),
        cookie: 0,
        ready_ns: skipped,
        kind: WRITES,
        done: 1,
        here: u64::MAX,
    };
    remember(key, &call);
    Some(())
}

/// A session has taken some of what it was asked to write.
#[inline(always)]
fn wrote(site: SiteCookie, registers: TypedPtr) -> Option<()> {
    let Some(call) = TLS_CALLS.get_ptr_mut(caller(site.kind, registers)) else {
        return Some(());
    };
    // SAFETY: a map value of the thread that runs here.
    let call = unsafe { &mut *call };
    let at = frame(site, registers);
    if call.kind != WRITES || at == 0 || call.return_address != at {
        return Some(());
    }
    call.return_address = 0;
    let mut left = value(registers, site.first)?;
    if left > call.length {
        return None;
    }
    if left == 0 {
        return Some(());
    }
    let mut connection = connection_of(call);
    let (slices, number, mut skipped) = (call.buffer, call.moved, call.ready_ns);
    if number == 0 {
        match &mut connection {
            Some(connection) => {
                emit(connection, call, left, 1);
            }
            None => {
                call.length = left;
                call.done = 0;
            }
        }
        return Some(());
    }
    let mut index = 0;
    while index < SLICES && index < number && left > 0 {
        let slice = (slices + index * 16) as *const [u64; 2];
        // SAFETY: the helper checks the address.
        let Ok([buffer, length]) = (unsafe { bpf_probe_read_user(slice) }) else {
            break;
        };
        index += 1;
        if length <= skipped {
            skipped -= length;
            continue;
        }
        call.buffer = buffer.wrapping_add(skipped);
        let mut taken = length - skipped;
        if taken > left {
            taken = left;
        }
        let Some(connection) = &mut connection else {
            // What is behind the first slice is not read later on.
            call.length = left;
            call.here = taken;
            call.done = 0;
            return Some(());
        };
        skipped = 0;
        left -= taken;
        emit(connection, call, taken, 1);
    }
    if left > 0 {
        // The length is known all the same.
        call.here = 0;
        if let Some(connection) = connection {
            emit(connection, call, left, 1);
        } else {
            count(TLS_UNBOUND_WRITTEN, left);
        }
    }
    Some(())
}
