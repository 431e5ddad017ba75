//! Answers of name servers, as they come to the sockets that wait for them.
//!
//! Called by the program at `sk_data_ready` for sockets that are not watched connections; what is not
//! UDP leaves after one load of a member whose type the verifier knows. The answer is the last packet
//! of the socket's queue. Only what lies in its linear part is read; a name whose answer lies
//! elsewhere stays unknown.

use aya_ebpf::{
    helpers::{bpf_ktime_get_ns, generated::bpf_probe_read_kernel},
    macros::map,
    maps::RingBuf,
};
use profiler_common::{
    header::{KIND_ANSWER, RecordHeader},
    network::{ANSWER_BYTES, ANSWERS_BUFFER_BYTES, ANSWERS_LOST, Answer},
};

use super::{
    connection::{count, is_in_scope},
    socket::{Socket, network},
};
use crate::{emit::Urgency, kernel::KernelPtr};

/// The port of name servers.
const NAME_SERVER: u16 = 53;
/// `struct udphdr`; the source port is its first member.
const UDP_HEADER: u64 = 8;
/// The header of a message of a name server.
const SHORTEST: u32 = 12;
/// `struct sk_buff_head`: the second pointer is to the last packet.
const LAST: u32 = 8;

/// Answers, towards the agent.
#[map]
static ANSWERS: RingBuf = RingBuf::with_byte_size(ANSWERS_BUFFER_BYTES, 0);

/// Sends what an UDP socket has just received to the agent when a name server has sent it.
#[inline(always)]
pub(super) fn take_answer(socket: Socket) {
    if socket.is_udp_argument() {
        // `None` is not an error: most data is not a name server's answer.
        let _no_answer = take(socket);
    }
}

/// Sends the last packet of the socket's queue when a name server has sent it.
#[inline(always)]
fn take(socket: Socket) -> Option<()> {
    if !is_in_scope(socket) {
        return None;
    }
    let queue = socket.0.at(network!(sock_receive_queue));
    let packet = queue.follow(LAST)?;
    if packet.0 == queue.0 {
        return None;
    }
    // The UDP header has been taken off, so that it lies before the data.
    let data = packet.follow(network!(skb_data))?;
    let source: u16 = KernelPtr(data.0 - UDP_HEADER).read(0)?;
    if u16::from_be(source) != NAME_SERVER {
        return None;
    }
    let all: u32 = packet.read(network!(skb_len))?;
    let elsewhere: u32 = packet.read(network!(skb_data_len))?;
    let linear = all.wrapping_sub(elsewhere);
    if linear < SHORTEST || linear > all {
        return None;
    }
    let Some(mut record) = ANSWERS.reserve::<Answer>(0) else {
        count(ANSWERS_LOST, 1);
        return None;
    };
    let answer = record.as_mut_ptr();
    let bytes = if linear < ANSWER_BYTES as u32 {
        linear
    } else {
        ANSWER_BYTES as u32
    };
    // SAFETY: the record is reserved, of the size of an answer, and used here only; the helper writes
    // at most its payload.
    let read = unsafe {
        (*answer).header = RecordHeader {
            kind: KIND_ANSWER,
            bytes: size_of::<Answer>() as u32,
            time_ns: bpf_ktime_get_ns(),
        };
        (*answer).network_namespace = socket.network_namespace();
        (*answer).bytes = bytes;
        bpf_probe_read_kernel(
            (&raw mut (*answer).payload).cast(),
            bytes,
            data.0 as *const _,
        )
    };
    if read == 0 {
        record.submit(Urgency::Polled.flags());
    } else {
        record.discard(Urgency::Polled.flags());
    }
    Some(())
}
