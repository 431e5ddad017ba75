//! Unix sockets: what the kernel side keeps of each that a task watches.
//!
//! The kernel has no tracepoint for the end of a Unix socket: entries stay until the agent, which
//! lists the sockets, finds that one is gone.

use crate::{limits::COMM_BYTES, network::Histogram};

/// Bytes of `sun_path`.
pub const UNIX_NAME_BYTES: usize = 108;

/// One Unix socket. Value of the kernel's table of Unix sockets, by cookie. Times are
/// `bpf_ktime_get_ns`; 0: not seen.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixSocket {
    pub cookie: u64,
    /// Cookie of the socket at the other end; 0 when it has none yet, or there is no other end.
    pub peer_cookie: u64,
    /// Inode by which `/proc/PID/fd` shows it; 0 when no process has a descriptor for it.
    pub inode: u64,
    pub peer_inode: u64,
    /// When it was first seen.
    pub seen_ns: u64,
    /// When data came that has not been read yet.
    pub data_ready_ns: u64,
    /// Where payload is captured: when the data had come that was read last, and when the socket was used last.
    pub taken_ns: u64,
    pub used_ns: u64,

    pub sent_bytes: u64,
    pub sent_count: u64,
    pub received_bytes: u64,
    pub received_count: u64,
    pub receive_wait_sum_ns: u64,
    pub receive_wait: Histogram,

    /// When that of `pid` started, nanoseconds of boot time.
    pub used_start_ns: u64,
    /// The process that used it last, in the agent's PID namespace; 0: none was seen.
    pub pid: u32,
    /// `SOCK_STREAM`, `SOCK_DGRAM` or `SOCK_SEQPACKET`.
    pub kind: u32,
    /// [`crate::network::FLAG_COMPLETE`] and [`crate::network::FLAG_JOINED`].
    pub flags: u32,
    /// Inode of the network namespace.
    pub network_namespace: u32,
    /// Bytes of the names that are there; 0: unnamed.
    pub name_bytes: u32,
    pub peer_name_bytes: u32,
    /// First bytes of each piece that are captured: [`crate::payload::CAPTURE_DEFAULT`],
    /// [`crate::payload::CAPTURE_STOP`], or the number of bytes.
    pub capture_bytes: u32,
    /// [`crate::network::ANNOUNCED`] once it was reported to the agent.
    pub announced: u32,
    /// Pieces that did not fit the ring buffer.
    pub pieces_lost: u32,
    pub padding: u32,
    /// `sun_path` of this end and of the other one; abstract names begin with a zero byte.
    pub name: [u8; UNIX_NAME_BYTES],
    pub peer_name: [u8; UNIX_NAME_BYTES],
    /// Name of [`UnixSocket::pid`]: that of its main thread, whichever used the socket.
    pub comm: [u8; COMM_BYTES],
}

impl Default for UnixSocket {
    fn default() -> Self {
        Self {
            cookie: 0,
            peer_cookie: 0,
            inode: 0,
            peer_inode: 0,
            seen_ns: 0,
            data_ready_ns: 0,
            taken_ns: 0,
            used_ns: 0,
            sent_bytes: 0,
            sent_count: 0,
            received_bytes: 0,
            received_count: 0,
            receive_wait_sum_ns: 0,
            receive_wait: Histogram::default(),
            used_start_ns: 0,
            pid: 0,
            kind: 0,
            flags: 0,
            network_namespace: 0,
            name_bytes: 0,
            peer_name_bytes: 0,
            capture_bytes: 0,
            announced: 0,
            pieces_lost: 0,
            padding: 0,
            name: [0; UNIX_NAME_BYTES],
            peer_name: [0; UNIX_NAME_BYTES],
            comm: [0; COMM_BYTES],
        }
    }
}

/// Byte offsets of what is read of Unix sockets, from the kernel's BTF. Global of the network
/// programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnixOffsets {
    /// 0: Unix sockets are not watched.
    pub watched: u32,
    /// Of `struct sock`.
    pub sock_type: u32,
    pub sock_socket: u32,
    pub sock_queue_length: u32,
    /// From a `struct socket` to the number of its inode.
    pub socket_inode: u32,
    /// Of `struct unix_sock`.
    pub address: u32,
    pub peer: u32,
    /// Of `struct unix_address`.
    pub address_bytes: u32,
    pub address_name: u32,
}

/// Entries of the table of Unix sockets. They are allocated when used.
pub const UNIX_ENTRIES: u32 = 16_384;

const _: () = assert!(size_of::<UnixSocket>() == 14 * 8 + 280 + 10 * 4 + 2 * 108 + 16);
const _: () = assert!(size_of::<UnixSocket>().is_multiple_of(8));
const _: () = assert!(size_of::<UnixOffsets>() == 9 * 4);

#[cfg(feature = "user")]
impl UnixSocket {
    /// The bytes as they lie in the kernel's table.
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        // SAFETY: repr(C) integers without padding (asserted above): every byte is initialised.
        unsafe { core::mem::transmute(*self) }
    }
}

#[cfg(feature = "user")]
impl UnixOffsets {
    /// The bytes of the global, as the loader writes them into `.rodata`.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: repr(C) integers without padding (asserted above): every byte is initialised, and
        // the slice lives as long as `self`.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}
