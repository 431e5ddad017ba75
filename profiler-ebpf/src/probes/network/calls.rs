//! System calls on sockets: their times in the timed mode, and what they move where the kernel
//! announces no lengths (below 6.3).
//!
//! Hooks: `sys_enter(struct pt_regs *regs, long id)` and `sys_exit(struct pt_regs *regs, long ret)`,
//! at every system call of the machine: they are attached only where they are needed. What is not a
//! read, a write or an accept costs one lookup by number; what is not a socket, a look at its file.

use aya_ebpf::{
    bindings::{BPF_F_NO_PREALLOC, BPF_NOEXIST, pt_regs},
    helpers::{bpf_get_current_pid_tgid, bpf_probe_read_user},
    macros::{btf_tracepoint, map},
    maps::{Array, HashMap, PerCpuArray},
    programs::BtfTracePointContext,
};
use profiler_common::network_calls::{
    CALL_ACCEPT, CALL_COUNTERS, CALL_ENTRIES, CALL_NONE, CALL_RECVFROM, CALL_RECVMMSG,
    CALL_RECVMSG, CALL_SENDMMSG, CALL_SPLICE, CALL_WRITE, CALLS_LEFT_OUT, CALLS_UNBOUND, Call,
    CallTimes, MAX_MESSAGES, MESSAGES_LEFT_OUT, SYSTEM_CALLS, TIMES_LEFT_OUT,
};

use super::{
    connection::{add, current_is_wanted, find, is_in_scope, now, use_by_current},
    descriptor::{calls, is_compat, socket_of},
    socket::{Socket, known_cookie},
    traffic::{connection_with_cookie, count_in, is_consumed, receive, send},
};
use crate::{
    config::leave_at_floor,
    kernel::{KernelPtr, TypedPtr},
};

/// `struct mmsghdr` of 64-bit programs: its size, and where the length of the message is.
const MESSAGE_BYTES: u64 = 64;
const MESSAGE_LENGTH: u64 = 56;

/// Kinds of system calls, by number.
#[map]
static SYSTEM_CALL_KINDS: Array<u32> = Array::with_max_entries(SYSTEM_CALLS, 0);

/// Calls that threads are in, by thread.
#[map]
static CALLS: HashMap<u64, Call> = HashMap::with_max_entries(CALL_ENTRIES, 0);

/// Times by connection, made as they are needed.
#[map]
static CALL_TIMES: HashMap<u64, CallTimes> = HashMap::with_max_entries(1, BPF_F_NO_PREALLOC);

/// Times without any: they are larger than the stack of a program.
#[map]
static EMPTY_CALL_TIMES: Array<CallTimes> = Array::with_max_entries(1, 0);

#[map]
static CALL_COUNTS: PerCpuArray<u64> = PerCpuArray::with_max_entries(CALL_COUNTERS, 0);

#[btf_tracepoint(function = "sys_enter")]
pub(crate) fn network_call(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let kind = kind_of(context.arg::<u64>(1));
    if kind == CALL_NONE || kind == CALL_ACCEPT || is_compat() {
        return 0;
    }
    let registers = TypedPtr::new(context.arg::<*const pt_regs>(0));
    let argument = |index: usize| registers.member::<u64>(argument_offset(index));
    let flags = match kind {
        CALL_RECVMSG => argument(2),
        CALL_RECVFROM | CALL_RECVMMSG => argument(3),
        _ => 0,
    };
    if is_consumed(flags) {
        let to = if kind == CALL_SPLICE { argument(2) } else { 0 };
        enter(kind, argument(0) as u32, argument(1), to as u32);
    }
    0
}

#[inline(always)]
fn argument_offset(index: usize) -> u32 {
    match index {
        0 => calls!(registers_arguments[0]),
        1 => calls!(registers_arguments[1]),
        2 => calls!(registers_arguments[2]),
        _ => calls!(registers_arguments[3]),
    }
}

#[inline(always)]
fn kind_of(number: u64) -> u32 {
    match SYSTEM_CALL_KINDS.get(number.min(u64::from(u32::MAX)) as u32) {
        Some(kind) => *kind,
        None => CALL_NONE,
    }
}

/// Remembers the call when it is one on a watched socket, or on one that is to be watched.
#[inline(always)]
fn enter(kind: u32, descriptor: u32, messages: u64, to: u32) {
    let mut kind = kind;
    let mut found = socket_of(descriptor);
    if found.is_none() && kind == CALL_SPLICE {
        kind = CALL_WRITE;
        found = socket_of(to);
    }
    let Some(mut socket) = found else {
        return;
    };
    if let Some(first) = socket.first_of_found_mptcp() {
        socket = first;
    }
    let cookie = known_cookie(socket.0);
    let is_watched = cookie != 0 && find(cookie).is_some();
    let is_wanted = is_watched || socket.is_tcp() && is_in_scope(socket) && current_is_wanted();
    if !is_wanted {
        return;
    }
    let call = Call {
        began_ns: now(),
        cookie,
        socket: socket.0.0,
        messages,
        bytes: 0,
        kind,
        padding: 0,
    };
    if CALLS.insert(bpf_get_current_pid_tgid(), call, 0).is_err() {
        note(CALLS_LEFT_OUT);
    }
}

#[btf_tracepoint(function = "sys_exit")]
pub(crate) fn network_call_end(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let registers = TypedPtr::new(context.arg::<*const pt_regs>(0));
    let kind = kind_of(registers.member::<u64>(calls!(registers_number)));
    if kind == CALL_NONE {
        return 0;
    }
    let result = context.arg::<u64>(1) as i64;
    if kind == CALL_ACCEPT {
        if result >= 0 && !is_compat() {
            accept(result as u32);
        }
        return 0;
    }
    let thread = bpf_get_current_pid_tgid();
    let Some(call) = CALLS.get_ptr_mut(thread) else {
        return 0;
    };
    if result > 0 {
        // SAFETY: a map value that only this thread writes.
        leave(unsafe { &mut *call }, result as u64);
    }
    let _gone = CALLS.remove(thread);
    0
}

/// Counts a call that moved something.
#[inline(always)]
fn leave(call: &mut Call, result: u64) {
    let took_ns = now().saturating_sub(call.began_ns);
    let socket = Socket(KernelPtr(call.socket));
    let cookie = known_cookie(socket.0);
    if cookie == 0 || (call.cookie != 0 && call.cookie != cookie) {
        note(CALLS_UNBOUND);
        return;
    }
    let writes = call.kind == CALL_WRITE || call.kind == CALL_SENDMMSG;
    let counts = if writes {
        calls!(counts_writes) == 1
    } else {
        // Nothing else sees what splice takes out of a socket.
        calls!(counts_reads) == 1 || call.kind == CALL_SPLICE
    };
    if counts {
        transfer(call, socket, cookie, result);
    }
    if calls!(timed) == 1 && find(cookie).is_some() {
        keep_time(cookie, took_ns, u64::from(writes));
    }
}

#[inline(always)]
fn transfer(call: &mut Call, socket: Socket, cookie: u64, result: u64) {
    let in_messages = call.kind == CALL_SENDMMSG || call.kind == CALL_RECVMMSG;
    let (bytes, operations) = if in_messages {
        if result > MAX_MESSAGES {
            note_many(MESSAGES_LEFT_OUT, result - MAX_MESSAGES);
        }
        let added = result.min(MAX_MESSAGES);
        (bytes_of_messages(call, added), added)
    } else {
        (result, 1)
    };
    if bytes == 0 {
        return;
    }
    if let Some(connection) = connection_with_cookie(socket, cookie, bytes) {
        if call.kind == CALL_WRITE || call.kind == CALL_SENDMMSG {
            send(connection, socket.round_trip(), bytes, operations);
        } else {
            receive(connection, bytes, operations, socket.stream());
        }
    }
}

/// The lengths that the kernel has written behind each message.
///
/// The sum is kept in the map, of whose values the verifier knows nothing: as a number in a register
/// it would have another range after each round, and all that follows would be verified for each.
#[inline(never)]
fn bytes_of_messages(call: &mut Call, messages: u64) -> u64 {
    let first = call.messages.wrapping_add(MESSAGE_LENGTH);
    let sum = &raw mut call.bytes;
    for index in 0..MAX_MESSAGES {
        if index >= messages {
            break;
        }
        let address = first.wrapping_add(index * MESSAGE_BYTES);
        // SAFETY: the helper checks the address.
        let length = unsafe { bpf_probe_read_user(address as *const u32) };
        // SAFETY: a field of a map value that only this thread writes.
        unsafe { sum.write_volatile(sum.read_volatile() + u64::from(length.unwrap_or(0))) };
    }
    // SAFETY: as above.
    unsafe { sum.read_volatile() }
}

/// The running task has taken a connection out of the queue.
#[inline(always)]
fn accept(descriptor: u32) {
    let Some(mut socket) = socket_of(descriptor) else {
        return;
    };
    if let Some(first) = socket.first_of_found_mptcp() {
        socket = first;
    }
    let cookie = known_cookie(socket.0);
    if cookie == 0 {
        return;
    }
    let Some(connection) = find(cookie) else {
        return;
    };
    use_by_current(connection);
    let established_ns = connection.established_ns;
    if calls!(timed) == 1 && established_ns != 0 {
        let waited_ns = now().saturating_sub(established_ns);
        if let Some(times) = times_of(cookie)
            && times.accept_wait_ns == 0
        {
            times.accept_wait_ns = waited_ns.max(1);
        }
    }
}

#[inline(never)]
fn keep_time(cookie: u64, took_ns: u64, writes: u64) -> u64 {
    let Some(times) = times_of(cookie) else {
        return 0;
    };
    let took_us = (took_ns / 1000).min(u64::from(u32::MAX)) as u32;
    if writes == 1 {
        add(&mut times.write_sum_ns, took_ns);
        count_in(&mut times.write, took_us);
    } else {
        add(&mut times.read_sum_ns, took_ns);
        count_in(&mut times.read, took_us);
    }
    1
}

/// The times of a connection, made now when there are none.
#[inline(always)]
fn times_of(cookie: u64) -> Option<&'static mut CallTimes> {
    if let Some(times) = CALL_TIMES.get_ptr_mut(cookie) {
        // SAFETY: a map value; others add to it atomically as well.
        return Some(unsafe { &mut *times });
    }
    let empty = EMPTY_CALL_TIMES.get_ptr(0)?;
    #[expect(
        clippy::needless_borrows_for_generic_args,
        reason = "a copy of the entry is larger than the stack"
    )]
    // SAFETY: a map value that is never written. Fails when another CPU was faster, too.
    let _made = CALL_TIMES.insert(cookie, unsafe { &*empty }, u64::from(BPF_NOEXIST));
    let Some(times) = CALL_TIMES.get_ptr_mut(cookie) else {
        note(TIMES_LEFT_OUT);
        return None;
    };
    // SAFETY: as above.
    Some(unsafe { &mut *times })
}

#[inline(always)]
fn note(counter: u32) {
    note_many(counter, 1);
}

#[inline(always)]
fn note_many(counter: u32, number: u64) {
    if let Some(slot) = CALL_COUNTS.get_ptr_mut(counter) {
        // SAFETY: a per-CPU slot.
        add(unsafe { &mut *slot }, number);
    }
}
