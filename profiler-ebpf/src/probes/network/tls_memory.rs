//! TLS libraries that are given and give ciphertext in memory: which connection a session belongs to, when
//! no socket is used inside of its calls.
//!
//! The function with which a library hands out records is probed. What it hands out inside of a call of
//! the session is remembered by bytes that do not come again; the socket that sends these bytes first is
//! that of the session, whichever thread and call sends them. Plaintext that is written is handed out with
//! its first record, as it would be at a socket.
//!
//! Attach point: a uprobe in `BIO_write`, only in processes that need it (`crates/recorder/src/probes/tls.rs`).
//! Expected: one or two hits for each write. Without it such sessions stay unbound, and are counted.

use aya_ebpf::{
    helpers::bpf_probe_read_user,
    macros::{map, uprobe},
    maps::LruHashMap,
    programs::ProbeContext,
};
use profiler_common::{
    network::Connection,
    tls::{
        CALL_GREETS, PROCESS_MATCHED, RECORD_WORDS, RecordMark, SITE_READS, STATE_CIPHERTEXT,
        SiteCookie, TLS_CALLS_MET, TLS_CIPHERTEXT_ENTRIES, TLS_UNREADABLE, TlsSessionKey,
    },
};

use super::{
    payload_bytes::Source,
    tls::{
        self, APPLICATION_DATA, count, current_call, emit, met, registers, state, tell_process,
        type_of,
    },
    tls_calls::value,
    tls_sessions::{bind_session, connection_of_session, remember_write, session_key},
};
use crate::config::leave_at_floor;

/// Sessions by what they have handed out.
#[map]
static TLS_CIPHERTEXT: LruHashMap<RecordMark, TlsSessionKey> =
    LruHashMap::with_max_entries(TLS_CIPHERTEXT_ENTRIES, 0);

/// Whether what sockets send is compared.
#[inline(always)]
pub(super) fn is_watched() -> bool {
    tls::is_watched() && state(STATE_CIPHERTEXT) != 0
}

/// Where a library hands out records.
#[uprobe]
pub(crate) fn tls_ciphertext(context: ProbeContext) -> u32 {
    leave_at_floor!();
    let Some(site) = met(&context, TLS_CALLS_MET) else {
        return 0;
    };
    if try_ciphertext(site).is_none() {
        count(TLS_UNREADABLE, 1);
    }
    0
}

/// `None` when it cannot be read.
#[inline(always)]
fn try_ciphertext(site: SiteCookie) -> Option<()> {
    let Some(call) = current_call() else {
        return Some(());
    };
    let registers = registers();
    let buffer = value(registers, site.buffer)?;
    let length = value(registers, site.length)? & 0xffff_ffff;
    if !(8..=0x7fff_ffff).contains(&length) {
        return Some(());
    }
    // SAFETY: the helper checks the address.
    let kind = type_of(unsafe { bpf_probe_read_user(buffer as *const u64) }.ok()?);
    if kind == 0 {
        return Some(());
    }
    let key = session_key(call.session);
    // Shorter ones, as alerts, have too little that does not come again.
    if length >= RECORD_WORDS as u64 * 8 {
        // SAFETY: as above.
        let words = unsafe { bpf_probe_read_user(buffer as *const [u64; RECORD_WORDS]) }.ok()?;
        // Fails only without memory: then the session stays unbound.
        let _made = TLS_CIPHERTEXT.insert(mark(&words), key, 0);
    }
    if kind != APPLICATION_DATA {
        call.kind |= CALL_GREETS;
        return Some(());
    }
    if call.kind & u32::from(SITE_READS) != 0 || call.done != 0 {
        return Some(());
    }
    if let Some(connection) = connection_of_session(&key) {
        call.cookie = connection.cookie;
        call.done = 1;
        remember_write(call);
        emit(connection, call, call.length, 1);
    }
    Some(())
}

/// A connection has sent something outside of a library's calls.
#[inline(never)]
pub(super) fn sent(connection: &Connection, source: &Source) -> u64 {
    let Some(words) = source.first::<RECORD_WORDS>() else {
        return 0;
    };
    if type_of(words[0]) == 0 {
        return 0;
    }
    let mark = mark(&words);
    let Some(key) = TLS_CIPHERTEXT.get_ptr(mark) else {
        return 0;
    };
    // SAFETY: a map value, copied.
    let key = unsafe { *key };
    // Fails only when it went meanwhile.
    let _gone = TLS_CIPHERTEXT.remove(mark);
    tell_process(PROCESS_MATCHED);
    bind_session(&key, connection.cookie, 1)
}

#[inline(always)]
fn mark(words: &[u64; RECORD_WORDS]) -> RecordMark {
    let [_, first, second, third, fourth] = *words;
    [first, second, third, fourth]
}
