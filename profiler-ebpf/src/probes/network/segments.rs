//! Arrival of data, on kernels that do not announce it (below 6.3).
//!
//! Hook: `tcp_probe(struct sock *sk, const struct sk_buff *skb)`, one per received segment of an
//! established connection, before the segment is looked at. A connection whose own end has stopped
//! to send has none.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};

use super::{
    connection::{find, now},
    socket::{Socket, Stream, known_cookie, network},
    traffic::arrive,
};
use crate::{config::leave_at_floor, kernel::KernelPtr};

/// `struct tcphdr`: the sequence number, and the byte with the header's length.
const SEQUENCE: u32 = 4;
pub(super) const LENGTH: u32 = 12;

#[btf_tracepoint(function = "tcp_probe")]
pub(crate) fn network_segment(context: BtfTracePointContext) -> i32 {
    leave_at_floor!();
    let socket = Socket::from_argument(context.arg(0));
    if let Some(connection) = find(known_cookie(socket.0))
        && let Some(after) = next_after(socket, KernelPtr(context.arg::<u64>(1)))
    {
        let stream = socket.stream();
        let with_it = Stream {
            next: after,
            ..stream
        };
        if connection.ready_next == 0 {
            // As for data that the kernel announces.
            connection.read_next = stream.copied;
        }
        arrive(connection, with_it, stream.next, now());
    }
    0
}

/// The sequence number behind a segment that brings data which can be read now: what continues the
/// stream, and is not a repetition.
#[inline(always)]
fn next_after(socket: Socket, segment: KernelPtr) -> Option<u32> {
    let header = segment.follow(network!(skb_data))?;
    let bytes: u32 = segment.read(network!(skb_len)).unwrap_or(0);
    let words: u8 = header.read(LENGTH).unwrap_or(0);
    let payload = bytes.saturating_sub(u32::from(words >> 4) * 4);
    let first = u32::from_be(header.read(SEQUENCE).unwrap_or(0));
    let next = socket.next_expected();
    // Sequence numbers go round.
    let begins = first.wrapping_sub(next) as i32 <= 0;
    let after = first.wrapping_add(payload);
    let ends = after.wrapping_sub(next) as i32 > 0;
    if payload != 0 && begins && ends {
        Some(after)
    } else {
        None
    }
}
