//! What goes wrong: segments sent again, packets dropped, resets, errors. All in softirqs or
//! elsewhere above any task, so that only what is watched already is counted.

use aya_ebpf::{
    bindings::BPF_NOEXIST,
    macros::{btf_tracepoint, map},
    maps::HashMap,
    programs::BtfTracePointContext,
};
use profiler_common::network::{
    DROP_ENTRIES, DROP_REASONS_LOST, DROP_UNKNOWN, DROP_WITH_REASON, DROP_WITH_SOCKET, DropKey,
};

use super::{
    connection::{add, add_one, count, find},
    segments::LENGTH,
    socket::{Socket, known_cookie, network},
};
use crate::kernel::KernelPtr;

/// `ECONNRESET`.
const CONNECTION_RESET: u32 = 104;

/// The place of a header that a packet does not have.
const NO_HEADER: u16 = u16::MAX;

/// Dropped packets by connection and reason.
#[map]
static DROPS: HashMap<DropKey, u64> = HashMap::with_max_entries(DROP_ENTRIES, 0);

#[btf_tracepoint(function = "tcp_retransmit_skb")]
pub(crate) fn network_retransmit(context: BtfTracePointContext) -> i32 {
    let socket = Socket::from_argument(context.arg(0));
    if let Some(connection) = find(known_cookie(socket.0)) {
        connection.last_retransmits = socket.retransmits();
    }
    0
}

#[btf_tracepoint(function = "kfree_skb")]
pub(crate) fn network_drop(context: BtfTracePointContext) -> i32 {
    let arguments = network!(drop_arguments);
    if arguments == DROP_UNKNOWN {
        return 0;
    }
    let packet = KernelPtr(context.arg::<u64>(0));
    let mut socket: u64 = packet.read(network!(skb_sk)).unwrap_or(0);
    let mut reason = 0;
    if arguments >= DROP_WITH_REASON {
        reason = context.arg::<u64>(2) as u32;
    }
    if arguments == DROP_WITH_SOCKET && socket == 0 {
        socket = context.arg::<u64>(3);
    }
    if socket == 0 {
        return 0; // a packet without a socket, or of one that is not known yet
    }
    let cookie = known_cookie(KernelPtr(socket));
    if cookie == 0 {
        return 0;
    }
    if let Some(connection) = find(cookie) {
        // A connection that was closed at this end throws acknowledgements away like that: nothing is
        // lost. Data is, whatever the reason.
        let has_no_reason = arguments >= DROP_WITH_REASON && reason == network!(drop_not_specified);
        if has_no_reason && payload_bytes(packet) == Some(0) {
            return 0;
        }
        add_one(&mut connection.drops);
        count_reason(DropKey {
            cookie,
            reason,
            padding: 0,
        });
    }
    0
}

/// Bytes behind the header of a TCP segment, whichever headers were taken off by now; `None` when it
/// is unknown.
#[inline(always)]
fn payload_bytes(packet: KernelPtr) -> Option<u64> {
    let transport: u16 = packet.read(network!(skb_transport_header))?;
    if transport == NO_HEADER {
        return None;
    }
    let header = packet.follow(network!(skb_head))?.at(u32::from(transport));
    let words: u8 = header.read(LENGTH)?;
    let data: u64 = packet.read(network!(skb_data))?;
    let bytes: u32 = packet.read(network!(skb_len))?;
    let end = data + u64::from(bytes);
    Some(end.saturating_sub(header.0 + u64::from(words >> 4) * 4))
}

#[inline(always)]
fn count_reason(key: DropKey) {
    if let Some(number) = DROPS.get_ptr_mut(key) {
        // SAFETY: a map value.
        add(unsafe { &mut *number }, 1);
    } else if DROPS.insert(key, 1, u64::from(BPF_NOEXIST)).is_err() {
        // Another CPU was faster, or the table is full.
        match DROPS.get_ptr_mut(key) {
            // SAFETY: a map value.
            Some(number) => add(unsafe { &mut *number }, 1),
            None => count(DROP_REASONS_LOST, 1),
        }
    }
}

#[btf_tracepoint(function = "tcp_send_reset")]
pub(crate) fn network_reset_sent(context: BtfTracePointContext) -> i32 {
    let socket = KernelPtr(context.arg::<u64>(0));
    if socket.0 == 0 {
        return 0; // the answer to a packet that no socket wants
    }
    if let Some(connection) = find(known_cookie(socket)) {
        add_one(&mut connection.resets_sent);
    }
    0
}

#[btf_tracepoint(function = "tcp_receive_reset")]
pub(crate) fn network_reset_received(context: BtfTracePointContext) -> i32 {
    let socket = KernelPtr(context.arg::<u64>(0));
    if let Some(connection) = find(known_cookie(socket)) {
        add_one(&mut connection.resets_received);
    }
    0
}

#[btf_tracepoint(function = "inet_sk_error_report")]
pub(crate) fn network_error(context: BtfTracePointContext) -> i32 {
    let socket = Socket::from_argument(context.arg(0));
    if let Some(connection) = find(known_cookie(socket.0)) {
        let error = socket.error();
        // The kernel reports a reset to the end that caused it as if the other end had.
        let own = error == CONNECTION_RESET
            && connection.resets_sent > 0
            && connection.resets_received == 0;
        // Reported once more after the process has taken the error.
        if error != 0 && !own {
            connection.last_error = error;
            add_one(&mut connection.errors);
        }
    }
    0
}
