//! Arrival of data, on kernels that do not announce it (below 6.3).
//!
//! Hook: `tcp_probe(struct sock *sk, const struct sk_buff *skb)`, one per received segment of an
//! established connection, before the segment is looked at. A connection whose own end has stopped
//! to send has none.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};

use super::{
    connection::{find, now},
    descriptor::calls,
    socket::{Socket, known_cookie},
};
use crate::kernel::KernelPtr;

/// `struct tcphdr`: the sequence number, and the byte with the header's length.
const SEQUENCE: u32 = 4;
const LENGTH: u32 = 12;

#[btf_tracepoint(function = "tcp_probe")]
pub(crate) fn network_segment(context: BtfTracePointContext) -> i32 {
    let socket = Socket::from_argument(context.arg(0));
    if let Some(connection) = find(known_cookie(socket.0))
        && connection.data_ready_ns == 0
        && brings_next(socket, KernelPtr(context.arg::<u64>(1)))
    {
        connection.data_ready_ns = now();
    }
    0
}

/// Whether a segment brings data that can be read now: what continues the stream, and is not a
/// repetition.
#[inline(always)]
fn brings_next(socket: Socket, segment: KernelPtr) -> bool {
    let Some(header) = segment.follow(calls!(skb_data)) else {
        return false;
    };
    let bytes: u32 = segment.read(calls!(skb_len)).unwrap_or(0);
    let words: u8 = header.read(LENGTH).unwrap_or(0);
    let payload = bytes.saturating_sub(u32::from(words >> 4) * 4);
    let first = u32::from_be(header.read(SEQUENCE).unwrap_or(0));
    let next = socket.next_expected();
    // Sequence numbers go round.
    let begins = first.wrapping_sub(next) as i32 <= 0;
    let ends = first.wrapping_add(payload).wrapping_sub(next) as i32 > 0;
    payload != 0 && begins && ends
}
