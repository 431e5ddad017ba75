//! System calls on sockets: how long they take, and on kernels that do not announce lengths what they
//! move.

use crate::network::Histogram;

/// Kinds of system calls. This one is not looked at.
pub const CALL_NONE: u32 = 0;
/// A read whose descriptor comes first.
pub const CALL_READ: u32 = 1;
/// `recvfrom`: flags are the fourth argument.
pub const CALL_RECVFROM: u32 = 2;
/// `recvmsg`: flags are the third argument.
pub const CALL_RECVMSG: u32 = 3;
/// `recvmmsg`: flags are the fourth argument, the result is a number of messages.
pub const CALL_RECVMMSG: u32 = 4;
/// From one descriptor, the first, to another, the third; one of them is a pipe.
pub const CALL_SPLICE: u32 = 5;
/// A write whose descriptor comes first.
pub const CALL_WRITE: u32 = 6;
/// `sendmmsg`: the result is a number of messages.
pub const CALL_SENDMMSG: u32 = 7;
/// The result is a descriptor.
pub const CALL_ACCEPT: u32 = 8;

/// System calls by number: entries of the table of kinds; larger numbers are not looked at.
pub const SYSTEM_CALLS: u32 = 512;

/// Messages of one `sendmmsg` or `recvmmsg` that are added up; what further ones moved is counted in
/// [`MESSAGES_LEFT_OUT`], and is in the socket's own totals.
pub const MAX_MESSAGES: u64 = 64;

/// A call that a thread is in. Value of the kernel's table of calls, by thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// `bpf_ktime_get_ns`.
    pub began_ns: u64,
    pub cookie: u64,
    /// Address of the socket.
    pub socket: u64,
    /// Second argument: where the messages of a `CALL_*MMSG` are.
    pub messages: u64,
    /// What these moved, while they are added up.
    pub bytes: u64,
    /// `CALL_*`; that of the socket's end for [`CALL_SPLICE`]: [`CALL_WRITE`] where it writes.
    pub kind: u32,
    pub padding: u32,
}

/// Times of the calls of one connection, by its cookie.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTimes {
    /// From the establishment until `accept` returned; 0: not seen.
    pub accept_wait_ns: u64,
    pub read_sum_ns: u64,
    pub write_sum_ns: u64,
    pub read: Histogram,
    pub write: Histogram,
}

/// What is wanted of the calls, and byte offsets from the kernel's BTF. Global of the network
/// programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCallConfig {
    /// 1: times are kept.
    pub timed: u32,
    /// 1: writes are counted here, because no other program does.
    pub counts_writes: u32,
    /// The same for reads.
    pub counts_reads: u32,
    /// Where a thread says that its call is one of a 32-bit program, and the bit; mask 0: nowhere.
    pub task_compat: u32,
    pub compat_mask: u32,
    pub task_files: u32,
    pub files_fdt: u32,
    pub fdt_max_fds: u32,
    pub fdt_fd: u32,
    pub file_inode: u32,
    pub file_private_data: u32,
    pub inode_mode: u32,
    pub socket_sk: u32,
    /// Where `struct pt_regs` has the number of the call and its first four arguments.
    pub registers_number: u32,
    pub registers_arguments: [u32; 4],
}

/// Calls that did not fit the table of calls.
pub const CALLS_LEFT_OUT: u32 = 0;
/// Calls whose socket has no identity: it is older than the task and no listing has shown it.
pub const CALLS_UNBOUND: u32 = 1;
/// Calls of connections that did not fit the table of times.
pub const TIMES_LEFT_OUT: u32 = 2;
/// Messages beyond [`MAX_MESSAGES`].
pub const MESSAGES_LEFT_OUT: u32 = 3;
/// Number of these counters.
pub const CALL_COUNTERS: u32 = 4;

/// Threads that may be in a call at once.
pub const CALL_ENTRIES: u32 = 65_536;

const _: () = assert!(size_of::<Call>() == 48);
const _: () = assert!(size_of::<CallTimes>() == 24 + 2 * size_of::<Histogram>());
const _: () = assert!(size_of::<NetworkCallConfig>() == 18 * 4);

#[cfg(feature = "user")]
impl NetworkCallConfig {
    /// The bytes of the global, as the loader writes them into `.rodata`.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: repr(C) integers without padding (asserted above): every byte is initialised, and
        // the slice lives as long as `self`.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}
