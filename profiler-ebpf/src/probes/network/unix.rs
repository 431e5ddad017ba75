//! Unix sockets: what is written and read, by which process, and which socket is at the other end.
//!
//! Called by the programs of [`super::traffic`] for sockets that are not in the table of
//! connections. Cost: other kinds of sockets cost the comparison of their family.

use aya_ebpf::{
    bindings::{BPF_F_NO_PREALLOC, BPF_NOEXIST},
    helpers::generated::bpf_probe_read_kernel,
    macros::map,
    maps::{Array, HashMap},
};
use profiler_common::{
    network::{FLAG_COMPLETE, LOST_BYTES, LOST_EVENTS},
    unix_sockets::{UNIX_ENTRIES, UNIX_NAME_BYTES, UnixOffsets, UnixSocket},
};

use super::{
    connection::{add, count, current_is_wanted, current_pid, is_in_scope, now, process_name},
    payload,
    socket::{Socket, known_cookie},
    traffic::count_in,
};
use crate::{kernel::KernelPtr, task};

/// `AF_UNIX`.
pub(super) const FAMILY: u16 = 1;

/// Every Unix socket that is watched, by cookie.
#[map]
static UNIX_SOCKETS: HashMap<u64, UnixSocket> =
    HashMap::with_max_entries(UNIX_ENTRIES, BPF_F_NO_PREALLOC);

/// One socket without anything: an entry is larger than the stack of a program.
#[map]
static EMPTY_UNIX_SOCKET: Array<UnixSocket> = Array::with_max_entries(1, 0);

#[unsafe(no_mangle)]
static UNIX: UnixOffsets = UnixOffsets {
    watched: 0,
    sock_type: 0,
    sock_socket: 0,
    sock_queue_length: 0,
    socket_inode: 0,
    address: 0,
    peer: 0,
    address_bytes: 0,
    address_name: 0,
};

/// Reads one field of [`UNIX`]; volatile for the reason given at [`crate::config::config`].
macro_rules! unix {
    ($field:ident) => {
        // SAFETY: the pointer is to a field of a static of this program.
        unsafe { core::ptr::read_volatile(&raw const UNIX.$field) }
    };
}

/// Whether this is the family of Unix sockets, and such are watched.
#[inline(always)]
pub(super) fn is_unix(family: u16) -> bool {
    family == FAMILY && unix!(watched) != 0
}

/// The running task has written to a Unix socket.
#[inline(never)]
pub(super) fn send(socket: Socket, cookie: u64, bytes: u64) -> u64 {
    let Some(entry) = entry_of(socket, cookie, bytes) else {
        return 0;
    };
    add(&mut entry.sent_bytes, bytes);
    add(&mut entry.sent_count, 1);
    use_by_current(entry);
    meet_peer(socket, entry);
    1
}

/// The running task has read from a Unix socket.
#[inline(never)]
pub(super) fn receive(socket: Socket, cookie: u64, bytes: u64) -> u64 {
    let Some(entry) = entry_of(socket, cookie, bytes) else {
        return 0;
    };
    add(&mut entry.received_bytes, bytes);
    add(&mut entry.received_count, 1);
    use_by_current(entry);
    meet_peer(socket, entry);
    let ready_ns = entry.data_ready_ns;
    if payload::is_watched() {
        entry.taken_ns = ready_ns;
    }
    if ready_ns != 0 {
        let read_ns = now();
        let waited_ns = read_ns.saturating_sub(ready_ns);
        let queued: u32 = socket.0.read(unix!(sock_queue_length)).unwrap_or(0);
        // What is left has waited from some time on that is not known, at the latest from now.
        entry.data_ready_ns = if queued > 0 { read_ns } else { 0 };
        add(&mut entry.receive_wait_sum_ns, waited_ns);
        let waited_us = (waited_ns / 1000).min(u64::from(u32::MAX)) as u32;
        count_in(&mut entry.receive_wait, waited_us);
    }
    1
}

/// Data is there for a Unix socket; the running task is the one that sent it.
#[inline(always)]
pub(super) fn ready(cookie: u64) {
    if let Some(entry) = find(cookie)
        && entry.data_ready_ns == 0
    {
        entry.data_ready_ns = now();
    }
}

#[inline(always)]
pub(super) fn find(cookie: u64) -> Option<&'static mut UnixSocket> {
    let entry = UNIX_SOCKETS.get_ptr_mut(cookie)?;
    // SAFETY: a map value, which outlives the program's run; what others write at the same time is
    // added atomically, or the same for every writer.
    Some(unsafe { &mut *entry })
}

/// The socket's entry, made when the running task is a target.
#[inline(always)]
fn entry_of(socket: Socket, cookie: u64, bytes: u64) -> Option<&'static mut UnixSocket> {
    if let Some(entry) = find(cookie) {
        return Some(entry);
    }
    if !is_in_scope(socket) || !current_is_wanted() {
        return None;
    }
    create(socket, cookie);
    let entry = find(cookie);
    if entry.is_none() {
        count(LOST_EVENTS, 1);
        count(LOST_BYTES, bytes);
    }
    entry
}

/// Makes an entry, unless another CPU was faster or there is no room.
#[inline(never)]
fn create(socket: Socket, cookie: u64) -> u64 {
    let Some(empty) = EMPTY_UNIX_SOCKET.get_ptr(0) else {
        return 0;
    };
    #[expect(
        clippy::needless_borrows_for_generic_args,
        reason = "a copy of the entry is larger than the stack"
    )]
    // SAFETY: a map value that is never written.
    let made = UNIX_SOCKETS.insert(cookie, unsafe { &*empty }, u64::from(BPF_NOEXIST));
    if made.is_err() {
        return 0;
    }
    let Some(entry) = find(cookie) else {
        return 0;
    };
    entry.cookie = cookie;
    entry.seen_ns = now();
    entry.network_namespace = socket.network_namespace();
    entry.inode = inode_of(socket.0);
    let kind: u16 = socket.0.read(unix!(sock_type)).unwrap_or(0);
    entry.kind = u32::from(kind);
    entry.name_bytes = read_name(socket.0, &mut entry.name);
    entry.flags = FLAG_COMPLETE;
    1
}

#[inline(always)]
fn use_by_current(entry: &mut UnixSocket) {
    let pid = current_pid();
    if entry.pid != pid {
        entry.pid = pid;
        entry.used_start_ns = task::process_start(task::current()).unwrap_or(0);
        entry.comm = process_name();
    }
}

/// Learns what is not known yet of the other end: it gets its inode when it is accepted, and its
/// cookie when it is used.
#[inline(always)]
fn meet_peer(socket: Socket, entry: &mut UnixSocket) {
    if entry.peer_cookie == 0 || entry.peer_inode == 0 {
        learn_peer(socket, entry);
    }
}

#[inline(always)]
fn learn_peer(socket: Socket, entry: &mut UnixSocket) {
    let Some(peer) = socket.0.follow(unix!(peer)) else {
        return;
    };
    if entry.peer_cookie == 0 {
        entry.peer_cookie = known_cookie(peer);
    }
    if entry.peer_inode == 0 {
        entry.peer_inode = inode_of(peer);
    }
    if entry.peer_name_bytes == 0 {
        entry.peer_name_bytes = read_name(peer, &mut entry.peer_name);
    }
}

/// Number of the inode that stands for a socket; 0 when it has none.
#[inline(always)]
fn inode_of(socket: KernelPtr) -> u64 {
    match socket.follow(unix!(sock_socket)) {
        Some(file) => file.read(unix!(socket_inode)).unwrap_or(0),
        None => 0,
    }
}

/// Copies the name that a socket is bound to; the number of its bytes.
#[inline(always)]
fn read_name(socket: KernelPtr, name: &mut [u8; UNIX_NAME_BYTES]) -> u32 {
    let Some(address) = socket.follow(unix!(address)) else {
        return 0;
    };
    let all: u32 = address.read(unix!(address_bytes)).unwrap_or(0);
    // In front of the name is the family. The mask is for the verifier.
    let bytes = all.saturating_sub(2) & 0x7f;
    if bytes == 0 || bytes > UNIX_NAME_BYTES as u32 {
        return 0;
    }
    let from = address.at(unix!(address_name) + 2);
    // SAFETY: the helper checks the address that it reads; the name is at least `bytes` long.
    let failed =
        unsafe { bpf_probe_read_kernel(name.as_mut_ptr().cast(), bytes, from.0 as *const _) };
    if failed == 0 { bytes } else { 0 }
}
