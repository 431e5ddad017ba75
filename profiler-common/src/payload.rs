//! Payload of connections: what one read or write moved, of which the beginning leaves the kernel.

use crate::{
    header::RecordHeader,
    network::{DIRECTION_CLIENT, DIRECTION_SERVER},
};

/// [`PieceHead::flags`]: the process sent it, else it received it.
pub const PIECE_SENT: u32 = 1;
/// The bytes were given to, or taken from, a TLS library.
pub const PIECE_TLS: u32 = 2;

/// [`crate::network::Connection::capture_bytes`]: as many bytes as the task captures of each piece.
pub const CAPTURE_DEFAULT: u32 = 0;
/// No pieces of this connection.
pub const CAPTURE_STOP: u32 = u32::MAX;

/// Bytes of a piece that can leave the kernel: with its head 16 KiB.
pub const MAX_PIECE_BYTES: usize = (16 << 10) - size_of::<PieceHead>();

/// Where a piece is put together. A read begins below [`MAX_PIECE_BYTES`] and is not longer, so that
/// the verifier has nothing else to prove. The kernel has no values beyond 32 KiB in some maps.
pub const SCRATCH_BYTES: usize = size_of::<PieceHead>() + 2 * MAX_PIECE_BYTES;

/// Scratch areas of each CPU, one for each program that fills one, so that none is met half filled.
pub const SCRATCH_SENT: u32 = 0;
pub const SCRATCH_RECEIVED: u32 = 1;
/// Number of them.
pub const SCRATCH_AREAS: u32 = 2;

/// Parts of a message (`struct iovec`) that are captured; what is behind them is only counted.
pub const MAX_PARTS: u32 = 64;

/// Bytes of the ring buffer for pieces (a power of two and a multiple of the page size).
pub const PAYLOAD_BUFFER_BYTES: u32 = 16 << 20;

/// Where a system call says what it moves. This one does not, or not in memory of the process.
pub const PLACE_NONE: u32 = 0;
/// At the second argument.
pub const PLACE_BUFFER: u32 = 1;
/// In parts: the second argument is an array of them, the third their number.
pub const PLACE_PARTS: u32 = 2;
/// In the parts of a message, the second argument; the third has flags.
pub const PLACE_MESSAGE: u32 = 3;
/// In the parts of several messages: the second argument is an array of them, the third their number,
/// the fourth has flags.
pub const PLACE_MESSAGES: u32 = 4;
/// As [`PLACE_BUFFER`], and the fifth argument is the address that it goes to.
pub const PLACE_BUFFER_TO: u32 = 5;
/// As [`PLACE_BUFFER`], and the fourth argument has flags.
pub const PLACE_BUFFER_FROM: u32 = 6;

/// Threads that may be in calls with several messages. Tables that forget what was not used for long (LRU) are
/// enlarged by the agent on machines of many CPUs.
pub const MESSAGE_CALL_ENTRIES: u32 = 4096;
/// Sockets of UDP that ask name servers, or answer.
pub const DATAGRAM_ENTRIES: u32 = 8192;
/// A socket of UDP that was not used for so long is told anew.
pub const DATAGRAM_REST_NS: u64 = 5_000_000_000;

/// Writes of so many bytes or more may wait in the kernel until the socket has room. A socket takes 16 KiB at once
/// (`tcp_wmem`).
pub const LARGE_WRITE_BYTES: u64 = 16 << 10;

/// How far a thread is in a call with several messages.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCall {
    /// Address of the messages.
    pub messages: u64,
    /// Messages that were moved.
    pub moved: u64,
    /// Bytes of the last one.
    pub bytes: u64,
}

/// A socket of UDP that asks name servers, or answers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramSocket {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// When it was used last.
    pub used_ns: u64,
    /// Pieces that did not fit the ring buffer.
    pub lost: u32,
    pub padding: u32,
}

/// Where in [`PieceHead::flags`] the mask of the sampling lies.
pub const PIECE_SAMPLING_SHIFT: u32 = 8;

/// The client's port of a connection, by one of its ends and its `DIRECTION_*`. REDIRECT and DNAT change
/// the server's port at one end and leave this one alone; SNAT may change it. Where the direction is not
/// known it is the larger one: clients are given ports above those that servers use.
pub const fn client_port(direction: u32, local_port: u16, remote_port: u16) -> u16 {
    match direction {
        DIRECTION_CLIENT => local_port,
        DIRECTION_SERVER => remote_port,
        _ if local_port > remote_port => local_port,
        _ => remote_port,
    }
}

/// Whether connections with this key are captured: those whose hash has none of the bits of `mask`, which
/// is a power of two less one. With 0 all are.
pub const fn is_sampled_key(key: u64, mask: u32) -> bool {
    // Fibonacci hashing: the upper bits depend on all of the number.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    hash as u32 & mask == 0
}

/// What one call moved over one connection. Record, with the captured bytes behind it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceHead {
    /// Its time is that of the end of the call.
    pub header: RecordHeader,
    pub cookie: u64,
    /// When the data had arrived that was read, or when a write of [`LARGE_WRITE_BYTES`] or more began; 0: not known.
    pub since_ns: u64,
    /// Bytes of this direction before this piece.
    pub offset: u64,
    /// Bytes that were moved.
    pub length: u32,
    /// The first of them, which follow.
    pub captured: u32,
    /// In the agent's PID namespace; 0: none there.
    pub pid: u32,
    pub tid: u32,
    /// `PIECE_*`, and above them by [`PIECE_SAMPLING_SHIFT`] which connections were captured: one in so many and
    /// one.
    pub flags: u32,
    /// Pieces of this connection so far that did not fit the ring buffer.
    pub lost: u32,
}

/// A connection, before its first piece. Record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceConnection {
    pub header: RecordHeader,
    pub cookie: u64,
    /// Inode.
    pub network_namespace: u32,
    /// `DIRECTION_*` of [`crate::network`].
    pub direction: u32,
    /// `FLAG_*` of [`crate::network`].
    pub flags: u32,
    /// `AF_INET` or `AF_INET6`.
    pub family: u32,
    /// `IPPROTO_TCP` or `IPPROTO_UDP`.
    pub protocol: u32,
    pub pid: u32,
    pub local_port: u16,
    pub remote_port: u16,
    pub padding: u32,
    /// In network order; IPv4 in the first four bytes.
    pub local: [u8; 16],
    pub remote: [u8; 16],
}

/// The end of a connection of which pieces were handed out, behind all of them. Record. Its time is that of the end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceEnd {
    pub header: RecordHeader,
    pub cookie: u64,
    /// Bytes that went over it.
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

/// What is wanted of payload, and byte offsets from the kernel's BTF. Global of the network programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadConfig {
    /// 1: payload is captured. The verifier takes the code away where it is 0.
    pub watched: u32,
    /// First bytes of each piece that are captured where nothing else is said of the connection.
    pub capture_bytes: u32,
    pub sock_socket: u32,
    pub socket_file: u32,
    /// Register of the result of a system call, in `struct pt_regs`.
    pub registers_result: u32,
    /// Copy of the first argument there that stays when the call ends; not used on x86-64.
    pub registers_first: u32,
    /// The fifth argument.
    pub registers_fifth: u32,
    /// What TCP knows of how long it has had something to send, in ticks: of the present spell, and its kind by a mask in
    /// one byte; of those before.
    pub tcp_chrono_start: u32,
    pub tcp_chrono_stat: u32,
    pub tcp_chrono_type: u32,
    pub chrono_mask: u32,
    /// Length of a tick.
    pub tick_ns: u32,
}

/// Pieces that did not fit the ring buffer.
pub const PIECES_LOST: u32 = 0;
/// Pieces whose bytes could not be told: not moved by a call that is known, or their memory was not
/// readable.
pub const PIECES_WITHOUT_BYTES: u32 = 1;
/// Pieces that were handed out.
pub const PIECES_SENT: u32 = 2;
/// Number of these counters.
pub const PAYLOAD_COUNTERS: u32 = 3;

const _: () = assert!(size_of::<PieceHead>() == 64);
const _: () = assert!(size_of::<PieceConnection>() == 16 + 8 + 24 + 8 + 32);
const _: () = assert!(size_of::<PieceEnd>() == 16 + 3 * 8);
const _: () = assert!(size_of::<PayloadConfig>() == 12 * 4);
const _: () = assert!(size_of::<DatagramSocket>() == 32);
const _: () = assert!(size_of::<MessageCall>() == 24);
const _: () = assert!(SCRATCH_BYTES <= 32 << 10);
const _: () = assert!(PAYLOAD_BUFFER_BYTES.is_power_of_two());

#[cfg(feature = "user")]
impl PayloadConfig {
    /// The bytes of the global, as the loader writes them into `.rodata`.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: repr(C) integers without padding (asserted above): every byte is initialised, and
        // the slice lives as long as `self`.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::DIRECTION_UNKNOWN;

    #[test]
    fn both_ends_are_captured_alike_where_the_servers_port_is_translated() {
        // As the client has the server's port, and as the server has it.
        for (asked, serves) in [(80, 15_001), (80, 8080), (8080, 15_006), (8080, 8080)] {
            for mask in [1, 3, 7, 15] {
                for client in 32_768..61_000 {
                    let at_client = client_port(DIRECTION_CLIENT, client, asked);
                    for direction in [DIRECTION_SERVER, DIRECTION_UNKNOWN] {
                        let at_server = client_port(direction, serves, client);
                        let ends = [at_client, at_server];
                        let [one, other] = ends.map(|port| is_sampled_key(u64::from(port), mask));
                        assert_eq!(
                            one, other,
                            "{client} asks {asked}, {serves} serves, mask {mask}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn one_connection_in_so_many_is_captured() {
        // The kernel gives clients every second port of this range, one after the other.
        for first in [32_768, 32_769] {
            let ports = (first..60_999).step_by(2);
            let all = ports.clone().count();
            for mask in [0_u32, 1, 3, 7, 15] {
                let captured = ports.clone().filter(|port| is_sampled_key(*port, mask));
                let stands_for = captured.count() * (mask as usize + 1);
                assert!(
                    stands_for.abs_diff(all) * 100 <= all,
                    "{stands_for} of {all}, mask {mask}"
                );
            }
        }
    }
}
