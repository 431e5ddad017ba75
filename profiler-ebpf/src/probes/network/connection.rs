//! The table of connections: entries are made here, found here, and leave here.

use core::intrinsics::{AtomicOrdering, atomic_cxchg, atomic_xadd};

use aya_ebpf::{
    bindings::{BPF_F_NO_PREALLOC, BPF_NOEXIST},
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns, generated::bpf_get_current_task_btf},
    macros::map,
    maps::{Array, HashMap, PerCpuArray, RingBuf},
};
use profiler_common::{
    config::FILTER_ALL,
    header::{KIND_CONNECTION, RecordHeader},
    limits::COMM_BYTES,
    network::{
        CLAIMED, CONNECTION_ENTRIES, Connection, ENDED_BUFFER_BYTES, FLAG_COMPLETE, FLAG_GONE,
        FLAG_JOINED, FLAG_SHARED, LISTENER_ENTRIES, ListenerKey, MARKED, NETWORK_COUNTERS,
        RECORDS_DELAYED, STAYS,
    },
};

use super::{
    http2, payload,
    socket::{Socket, network},
    tls,
};
use crate::{config::config, emit::Urgency, filter, kernel::TypedPtr, task};

/// Every connection that is watched, by cookie. Memory is taken for connections that are there and
/// not for as many as there may be: none of the hooks that make entries is within the kernel's
/// allocator.
#[map]
pub(super) static CONNECTIONS: HashMap<u64, Connection> =
    HashMap::with_max_entries(CONNECTION_ENTRIES, BPF_F_NO_PREALLOC);

/// One connection without anything: an entry is larger than the stack of a program.
#[map]
static EMPTY_CONNECTION: Array<Connection> = Array::with_max_entries(1, 0);

/// Connections that ended, towards the agent.
#[map]
pub(super) static ENDED: RingBuf = RingBuf::with_byte_size(ENDED_BUFFER_BYTES, 0);

/// Ports that targets listen on: `LISTENER_*`. The agent takes those out that no socket has any more.
#[map]
pub(super) static LISTENERS: HashMap<ListenerKey, u32> =
    HashMap::with_max_entries(LISTENER_ENTRIES, 0);

/// Sockets of targets that listen, by cookie.
#[map]
pub(super) static LISTENING: HashMap<u64, ListenerKey> =
    HashMap::with_max_entries(LISTENER_ENTRIES, 0);

#[map]
static NETWORK_COUNTS: PerCpuArray<u64> = PerCpuArray::with_max_entries(NETWORK_COUNTERS, 0);

/// Adds to one of the counters of the network programs.
#[inline(always)]
pub(super) fn count(counter: u32, number: u64) {
    if let Some(slot) = NETWORK_COUNTS.get_ptr_mut(counter) {
        // SAFETY: a per-CPU slot; a softirq may interrupt, hence an atomic addition.
        add(unsafe { &mut *slot }, number);
    }
}

/// Adds to a number that other CPUs and softirqs add to as well.
#[inline(always)]
pub(super) fn add(number: &mut u64, more: u64) {
    // SAFETY: aligned and alive; every other writer adds in the same way.
    unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(number, more) };
}

/// The same for a small number.
#[inline(always)]
pub(super) fn add_one(number: &mut u32) {
    // SAFETY: as above.
    unsafe { atomic_xadd::<u32, u32, { AtomicOrdering::Relaxed }>(number, 1) };
}

/// Takes one away: adds what makes the number come round, as there is no other instruction for it.
#[inline(always)]
pub(super) fn take_one(number: &mut u32) {
    // SAFETY: as above.
    unsafe { atomic_xadd::<u32, u32, { AtomicOrdering::Relaxed }>(number, u32::MAX) };
}

#[inline(always)]
pub(super) fn now() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// The entry of a watched connection.
#[inline(always)]
pub(super) fn find(cookie: u64) -> Option<&'static mut Connection> {
    let connection = CONNECTIONS.get_ptr_mut(cookie)?;
    // SAFETY: a map value, which outlives the program's run; what is written at the same time by
    // others is added atomically, the rest is written where only one context can be.
    let connection = unsafe { &mut *connection };
    if connection.leaving != STAYS && keep(connection) == 0 {
        return None;
    }
    Some(connection)
}

/// Keeps an entry that was marked to leave, because it is used. 0 when it is on its way out.
#[inline(never)]
fn keep(connection: &mut Connection) -> u64 {
    u64::from(exchange(&mut connection.leaving, MARKED, STAYS) != CLAIMED)
}

/// Writes `new` if `number` is `old`; what it was.
#[inline(always)]
pub(super) fn exchange(number: &mut u64, old: u64, new: u64) -> u64 {
    const ORDER: AtomicOrdering = AtomicOrdering::SeqCst;
    // SAFETY: aligned and alive, and every other writer does so in the same way.
    let (was, _changed) = unsafe { atomic_cxchg::<u64, ORDER, ORDER>(number, old, new) };
    was
}

/// Whether the socket's network namespace is one that is watched.
#[inline(always)]
pub(super) fn is_in_scope(socket: Socket) -> bool {
    let only = network!(network_namespace);
    only == 0 || socket.network_namespace() == only
}

/// Whether the running task is a target. Only where a socket call of that task is what runs.
#[inline(always)]
pub(super) fn current_is_wanted() -> bool {
    if config!(filter) == FILTER_ALL {
        return true;
    }
    if !current_may_be_wanted() {
        return false;
    }
    match task::current_ids() {
        Some(ids) => filter::wants(task::current(), ids),
        None => false,
    }
}

/// False only where the running task is surely no target: what others say costs little more than the program's start.
#[inline(always)]
pub(super) fn current_may_be_wanted() -> bool {
    // SAFETY: a helper without arguments.
    filter::may_want(TypedPtr::new(unsafe { bpf_get_current_task_btf() }))
}

/// Pid of the running task; 0 when it has none in the agent's namespace.
#[inline(always)]
pub(super) fn current_pid() -> u32 {
    match task::current_ids() {
        Some(ids) => ids.pid,
        None => 0,
    }
}

/// Remembers the running task as the user of the connection.
#[inline(always)]
pub(super) fn use_by_current(connection: &mut Connection) {
    let user = (bpf_get_current_pid_tgid() >> 32) as u32;
    if connection.user != user {
        let pid = current_pid();
        if connection.pid != 0 && connection.pid != pid {
            connection.flags |= FLAG_SHARED;
        }
        connection.user = user;
        connection.pid = pid;
        connection.used_start_ns = task::process_start(task::current()).unwrap_or(0);
        connection.comm = process_name();
    }
}

/// Name of the running process: that of its main thread, whichever thread runs.
#[inline(always)]
pub(super) fn process_name() -> [u8; COMM_BYTES] {
    let leader = task::leader(task::current());
    let name = leader.and_then(|leader| leader.read(network!(task_comm)));
    name.unwrap_or([0; COMM_BYTES])
}

/// Whether a target listens on the port.
#[inline(always)]
pub(super) fn is_listener(network_namespace: u32, port: u16) -> bool {
    let key = ListenerKey {
        network_namespace,
        port: u32::from(port),
    };
    LISTENERS.get_ptr(key).is_some()
}

/// Makes an entry for a socket. `joined` 1: its beginning was not seen. Returns 0 when the table is
/// full; another CPU may have made the entry.
///
/// Not inlined, so that its paths are verified once.
#[inline(never)]
pub(super) fn create(socket: Socket, cookie: u64, joined: u64) -> u64 {
    let Some(empty) = EMPTY_CONNECTION.get_ptr(0) else {
        return 0;
    };
    #[expect(
        clippy::needless_borrows_for_generic_args,
        reason = "a copy of the entry is larger than the stack"
    )]
    // SAFETY: a map value that is never written.
    let made = CONNECTIONS.insert(cookie, unsafe { &*empty }, u64::from(BPF_NOEXIST));
    let Some(connection) = find(cookie) else {
        return 0;
    };
    if made.is_err() {
        return 1;
    }
    connection.cookie = cookie;
    connection.seen_ns = now();
    connection.network_namespace = socket.network_namespace();
    socket.describe(connection);
    follow_stream(socket, connection);
    let mut flags = FLAG_COMPLETE;
    if joined == 1 {
        flags |= FLAG_JOINED;
        connection.first_sent = socket.bytes_sent();
        connection.first_received = socket.bytes_received();
        connection.first_retransmits = socket.retransmits();
        connection.last_retransmits = connection.first_retransmits;
    }
    connection.flags |= flags;
    1
}

/// Arrivals and reads are recorded from here on.
#[inline(always)]
pub(super) fn follow_stream(socket: Socket, connection: &mut Connection) {
    let stream = socket.stream();
    connection.ready_next = stream.next;
    connection.read_next = stream.copied;
}

/// Hands a connection to the agent and forgets it.
#[inline(never)]
pub(super) fn finish(cookie: u64) -> u64 {
    let Some(connection) = find(cookie) else {
        return 0;
    };
    tls::forget(cookie);
    http2::forget(connection);
    let at_ns = now();
    payload::end(connection, at_ns);
    connection.header = RecordHeader {
        kind: KIND_CONNECTION,
        bytes: size_of::<Connection>() as u32,
        time_ns: at_ns,
    };
    if ENDED
        .output::<Connection>(&*connection, Urgency::Polled.flags())
        .is_ok()
    {
        // Fails only when it is gone already.
        let _gone = CONNECTIONS.remove(cookie);
    } else {
        connection.flags |= FLAG_GONE;
        count(RECORDS_DELAYED, 1);
    }
    1
}

/// Keeps what the socket itself has counted.
#[inline(always)]
pub(super) fn remember_totals(socket: Socket, connection: &mut Connection) {
    connection.last_sent = socket.bytes_sent();
    connection.last_received = socket.bytes_received();
    connection.last_retransmits = socket.retransmits();
}
