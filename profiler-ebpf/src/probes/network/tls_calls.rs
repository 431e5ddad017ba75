//! Probes in the functions of TLS libraries that plaintext goes through.
//!
//! Attach point: uprobes at instructions that the agent chooses (`crates/tls-sites`), which
//! passes each by a cookie where the arguments are (`bpf_get_attach_cookie`, Linux 5.15). Expected: two
//! hits for each read of a process, one for each write; 0.7 us each at a cheap instruction. There is
//! no fallback: without them nothing is reported about what is encrypted.

use aya_ebpf::{helpers::bpf_probe_read_user, macros::uprobe, programs::ProbeContext};
use profiler_common::tls::{
    CALL_GREETS, FRAME_UNKNOWN, NO_FRAME, PLACE_STACK, PROCESS_UNBOUND, SITE_GOROUTINE,
    SITE_HANDSHAKE, SITE_INT, SITE_MOVED, SITE_READS, SITE_RUSTLS, SiteCookie, TLS_CALLS_MET,
    TLS_RESULTS_MET, TLS_UNBOUND_READ, TLS_UNBOUND_WRITTEN, TLS_UNREADABLE, TlsCall,
};

use super::{
    tls::{
        TLS_CALLS, caller, count, emit, is_on_stack, met, registers, stack_pointer, tell_process,
    },
    tls_sessions::{TLS_SESSIONS, connection_of, count_unsent, session_key},
};
use crate::{config::leave_at_floor, kernel::TypedPtr};

/// Where the arguments of a call are.
#[uprobe]
pub(crate) fn tls_call(context: ProbeContext) -> u32 {
    leave_at_floor!();
    let Some(site) = met(&context, TLS_CALLS_MET) else {
        return 0;
    };
    if try_call(site).is_none() {
        count(TLS_UNREADABLE, 1);
    }
    0
}

/// Where a call has its result.
#[uprobe]
pub(crate) fn tls_result(context: ProbeContext) -> u32 {
    leave_at_floor!();
    let Some(site) = met(&context, TLS_RESULTS_MET) else {
        return 0;
    };
    if try_result(site).is_none() {
        count(TLS_UNREADABLE, 1);
    }
    0
}

/// Remembers the call that begins. `None` when an argument cannot be read.
#[inline(always)]
fn try_call(site: SiteCookie) -> Option<()> {
    let registers = registers();
    let session = value(registers, site.first)?;
    let buffer = value(registers, site.buffer)?;
    let mut length = value(registers, site.length)?;
    if site.kind & SITE_INT != 0 {
        // Below zero is refused by the function itself.
        length &= 0xffff_ffff;
        if length > 0x7fff_ffff {
            length = 0;
        }
    }
    let moved = if site.kind & SITE_MOVED != 0 {
        value(registers, site.moved)?
    } else {
        0
    };
    let key = caller(site.kind, registers);
    let frame = frame(site, registers);
    let return_address = if frame == 0 {
        0
    } else {
        // SAFETY: the helper checks the address.
        unsafe { bpf_probe_read_user(frame as *const u64) }.ok()?
    };
    let mut call = TlsCall {
        session,
        buffer,
        length,
        moved,
        frame,
        return_address,
        cookie: 0,
        ready_ns: 0,
        kind: u32::from(site.kind),
        done: 0,
        here: u64::MAX,
    };
    let writes = site.kind & SITE_READS == 0;
    let is_handshake = site.kind & SITE_HANDSHAKE != 0;
    if is_handshake || writes && (length == 0 || is_repeated(&call)) {
        call.done = 1;
    }
    if let Some(before) = TLS_CALLS.get_ptr_mut(key) {
        // SAFETY: a map value of the thread that runs here.
        let before = unsafe { &mut *before };
        if is_handshake && before.session == session && is_on_stack(before, registers) {
            // A read or write asks for it, and stands for it.
            return Some(());
        }
        settle(before, &call);
        *before = call;
    } else {
        // Fails only without memory: then the call is not known.
        let _made = TLS_CALLS.insert(key, call, 0);
    }
    Some(())
}

/// Remembers a write of which nothing was sent, unless it is tried again now; of a session whose connection
/// is not known it is counted at once.
#[inline(always)]
pub(super) fn settle(before: &TlsCall, next: &TlsCall) {
    let was_write = before.kind & u32::from(SITE_READS) == 0;
    if !was_write || before.done != 0 {
        return;
    }
    // What rustls has taken is not written again.
    let is_taken = before.kind & u32::from(SITE_RUSTLS) != 0;
    let is_again =
        before.session == next.session && before.length == next.length && before.kind == next.kind;
    if !is_taken && (is_again || before.kind & CALL_GREETS != 0) {
        return;
    }
    if !is_taken && let Some(session) = TLS_SESSIONS.get_ptr_mut(session_key(before.session)) {
        // SAFETY: a map value; sessions are used by one thread at a time.
        let session = unsafe { &mut *session };
        count_unsent(session, before.length);
        session.unsent = before.length;
    } else {
        count(TLS_UNBOUND_WRITTEN, before.length);
        tell_process(PROCESS_UNBOUND);
    }
}

/// Whether the session writes again what the socket had not taken whole, of which all was handed out.
#[inline(always)]
fn is_repeated(call: &TlsCall) -> bool {
    let Some(session) = TLS_SESSIONS.get_ptr_mut(session_key(call.session)) else {
        return false;
    };
    // SAFETY: a map value; sessions are used by one thread at a time.
    let session = unsafe { &mut *session };
    if session.blocked == 0 {
        return false;
    }
    let end = call.buffer.wrapping_add(call.length);
    session.blocked = 0;
    end == session.end || call.length == session.length
}

/// Hands out what a call has read. `None` when its length cannot be read.
#[inline(always)]
fn try_result(site: SiteCookie) -> Option<()> {
    let registers = registers();
    let key = caller(site.kind, registers);
    let Some(call) = TLS_CALLS.get_ptr_mut(key) else {
        return Some(());
    };
    // SAFETY: a map value of the thread that runs here.
    let call = unsafe { &mut *call };
    let frame = frame(site, registers);
    let is_other = frame != 0 && call.frame != 0 && frame != call.frame;
    if call.done == 1 || call.kind & u32::from(SITE_READS) == 0 || is_other {
        return Some(());
    }
    let mut length = value(registers, site.first)?;
    if site.kind & (SITE_INT | SITE_MOVED) != 0 {
        length &= 0xffff_ffff;
        if length > 0x7fff_ffff {
            length = 0;
        }
    }
    if site.kind & SITE_MOVED != 0 && length == 1 {
        // SAFETY: the helper checks the address.
        length = unsafe { bpf_probe_read_user(call.moved as *const u64) }.ok()?;
    }
    call.done = 1;
    // Its return address stays in memory, where deeper calls would find it: what they move is not its own.
    call.frame = NO_FRAME;
    // Errors are below zero, and no call reads more than it has room for.
    if length == 0 || length > call.length {
        return Some(());
    }
    if let Some(connection) = connection_of(call) {
        emit(connection, call, length, 0);
    } else {
        count(TLS_UNBOUND_READ, length);
        tell_process(PROCESS_UNBOUND);
    }
    Some(())
}

/// Address of the call's return address; 0 when it is not known, or moves.
#[inline(always)]
pub(super) fn frame(site: SiteCookie, registers: TypedPtr) -> u64 {
    if site.frame_words == FRAME_UNKNOWN || site.kind & SITE_GOROUTINE != 0 {
        return 0;
    }
    stack_pointer(registers).wrapping_add(u64::from(site.frame_words) * 8)
}

/// The value at a place: a register, or a word of the stack.
#[inline(always)]
pub(super) fn value(registers: TypedPtr, place: u8) -> Option<u64> {
    let word = u64::from(place & !PLACE_STACK);
    if place & PLACE_STACK == 0 {
        return registers.untyped().read(word as u32 * 8);
    }
    let address = stack_pointer(registers).wrapping_add(word * 8) as *const u64;
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user(address) }.ok()
}
