//! Sessions of TLS libraries: which connection each belongs to, and for how long.
//!
//! A session is known by its address, which the library gives to the next session as soon as one is
//! freed; often before the peer has acknowledged the end of the former connection. So a binding holds only
//! until this end has closed its socket, and a connection that begins with a handshake inside of the
//! call takes the session over. Records of any other connection inside of the call put it in doubt.

use aya_ebpf::{helpers::bpf_get_current_pid_tgid, macros::map, maps::LruHashMap};
use profiler_common::{
    network::Connection,
    tls::{
        CALL_DOUBTED, PROCESS_NESTED, PROCESS_UNBOUND, SITE_RUSTLS, STATE_CIPHERTEXT,
        TLS_SESSION_ENTRIES, TLS_UNBOUND_WRITTEN, TlsCall, TlsSession, TlsSessionKey,
    },
};

use super::{
    connection::find,
    tls::{count, state, tell_process},
};

/// What is known of each session.
#[map]
pub(super) static TLS_SESSIONS: LruHashMap<TlsSessionKey, TlsSession> =
    LruHashMap::with_max_entries(TLS_SESSION_ENTRIES, 0);

#[inline(always)]
pub(super) fn session_key(session: u64) -> TlsSessionKey {
    TlsSessionKey {
        session,
        process: bpf_get_current_pid_tgid() >> 32,
    }
}

#[inline(always)]
pub(super) fn is_bound_to(session: u64, cookie: u64) -> bool {
    match TLS_SESSIONS.get_ptr(session_key(session)) {
        // SAFETY: a map value.
        Some(known) => unsafe { (*known).cookie == cookie },
        None => false,
    }
}

/// Remembers the connection of a call's session; 0 when it is in doubt which one that is. `begins`: what was
/// moved now begins a session.
#[inline(never)]
pub(super) fn bind(call: &mut TlsCall, cookie: u64, begins: u64) -> u64 {
    if call.cookie == cookie {
        return u64::from(call.kind & CALL_DOUBTED == 0);
    }
    // Objects of rustls are moved, so that an address is used again while the connection that had it is open.
    let is_certain = call.kind & u32::from(SITE_RUSTLS) != 0;
    let takes_over = u64::from(is_certain || begins != 0 && call.cookie == 0);
    if bind_session(&session_key(call.session), cookie, takes_over) == 0 {
        call.kind |= CALL_DOUBTED;
        return 0;
    }
    call.cookie = cookie;
    if state(STATE_CIPHERTEXT) != 0 {
        tell_process(PROCESS_NESTED);
    }
    1
}

/// Remembers the connection of a session. 0 when that is another one which is open, unless `takes_over` is
/// 1: then the session is in doubt until that one is used again.
#[inline(never)]
pub(super) fn bind_session(key: &TlsSessionKey, cookie: u64, takes_over: u64) -> u64 {
    if let Some(session) = TLS_SESSIONS.get_ptr_mut(*key) {
        // SAFETY: a map value; sessions are used by one thread at a time.
        let session = unsafe { &mut *session };
        if session.cookie != cookie {
            if takes_over == 0 && open(session.cookie).is_some() {
                session.doubted = 1;
                return 0;
            }
            session.cookie = cookie;
            session.blocked = 0;
        }
        session.doubted = 0;
        return 1;
    }
    let session = TlsSession {
        cookie,
        end: 0,
        length: 0,
        blocked: 0,
        unsent: 0,
        doubted: 0,
    };
    // Fails only without memory: then the session stays unbound.
    let _made = TLS_SESSIONS.insert(*key, session, 0);
    1
}

/// The connection of a call, or else of its session; none when it is not known, in doubt, or closed.
#[inline(always)]
pub(super) fn connection_of(call: &TlsCall) -> Option<&'static mut Connection> {
    if call.kind & CALL_DOUBTED != 0 {
        return None;
    }
    if call.cookie == 0 {
        return connection_of_session(&session_key(call.session));
    }
    let connection = find(call.cookie)?;
    if connection.closed_ns == 0 {
        Some(connection)
    } else {
        None
    }
}

/// The connection of a session of which nothing was moved inside of this call; none when it is not known, in
/// doubt, or closed at this end: then its address may be that of another session by now.
#[inline(always)]
pub(super) fn connection_of_session(key: &TlsSessionKey) -> Option<&'static mut Connection> {
    let session = TLS_SESSIONS.get_ptr(*key)?;
    // SAFETY: a map value, copied.
    let session = unsafe { *session };
    if session.doubted != 0 {
        return None;
    }
    open(session.cookie)
}

/// A connection that is watched, and whose socket this end has not closed.
#[inline(always)]
fn open(cookie: u64) -> Option<&'static mut Connection> {
    let connection = find(cookie)?;
    // The peer may take its time with its own end, while descriptor and session are used again.
    if connection.closed_ns == 0 && connection.closing_ns == 0 {
        Some(connection)
    } else {
        None
    }
}

/// Remembers what is written, to know it when it is written again.
#[inline(never)]
pub(super) fn remember_write(call: &TlsCall) -> u64 {
    if let Some(session) = TLS_SESSIONS.get_ptr_mut(session_key(call.session)) {
        // SAFETY: a map value; sessions are used by one thread at a time.
        let session = unsafe { &mut *session };
        session.end = call.buffer.wrapping_add(call.length);
        session.length = call.length;
        session.blocked = 0;
        count_unsent(session, call.length);
        session.unsent = 0;
    }
    0
}

/// What was written without being sent and is not what is written now, `length` bytes, was not seen.
#[inline(always)]
pub(super) fn count_unsent(session: &TlsSession, length: u64) {
    if session.unsent != 0 && session.unsent != length {
        count(TLS_UNBOUND_WRITTEN, session.unsent);
        tell_process(PROCESS_UNBOUND);
    }
}
