//! The socket behind a file descriptor of the running process.

use aya_ebpf::helpers::generated::bpf_get_current_task_btf;
use profiler_common::network_calls::NetworkCallConfig;

use super::socket::Socket;
use crate::kernel::{KernelPtr, TypedPtr};

/// Type bits of an inode's mode, and a socket's.
const TYPE: u16 = 0o170_000;
const SOCKET: u16 = 0o140_000;

#[unsafe(no_mangle)]
pub(super) static NETWORK_CALLS: NetworkCallConfig = NetworkCallConfig {
    timed: 0,
    counts_writes: 0,
    counts_reads: 0,
    task_compat: 0,
    compat_mask: 0,
    task_files: 0,
    files_fdt: 0,
    fdt_max_fds: 0,
    fdt_fd: 0,
    file_inode: 0,
    file_private_data: 0,
    inode_mode: 0,
    socket_sk: 0,
    registers_number: 0,
    registers_arguments: [0; 4],
};

/// Reads one field of the configuration; volatile for the reason given at
/// [`crate::config::config`].
macro_rules! calls {
    ($($field:tt)+) => {
        // SAFETY: the pointer is to a field of a static of this program.
        unsafe {
            core::ptr::read_volatile(
                &raw const $crate::probes::network::descriptor::NETWORK_CALLS.$($field)+,
            )
        }
    };
}

pub(super) use calls;

/// Whether the running thread's call is numbered as those of 32-bit programs are.
#[inline(always)]
pub(super) fn is_compat() -> bool {
    let mask = calls!(compat_mask);
    if mask == 0 {
        return false;
    }
    // SAFETY: a helper without arguments.
    let task = TypedPtr::new(unsafe { bpf_get_current_task_btf() });
    task.member::<u32>(calls!(task_compat)) & mask != 0
}

/// The socket that a descriptor of the running process stands for; `None` for other files.
///
/// `current->files->fdt->fd[n]->private_data->sk`, where the inode says that the file is a socket.
#[inline(always)]
pub(super) fn socket_of(descriptor: u32) -> Option<Socket> {
    // SAFETY: a helper without arguments.
    let task = TypedPtr::new(unsafe { bpf_get_current_task_btf() }).untyped();
    let table = task.follow(calls!(task_files))?.follow(calls!(files_fdt))?;
    let entries: u32 = table.read(calls!(fdt_max_fds))?;
    if descriptor >= entries {
        return None;
    }
    let files = table.follow(calls!(fdt_fd))?;
    let slot = KernelPtr(files.0.wrapping_add(u64::from(descriptor) * 8));
    let file = slot.follow(0)?;
    // Files of disks have none: they cost no more than this.
    let socket = file.follow(calls!(file_private_data))?;
    let inode = file.follow(calls!(file_inode))?;
    let mode: u16 = inode.read(calls!(inode_mode))?;
    if mode & TYPE != SOCKET {
        return None;
    }
    Some(Socket(socket.follow(calls!(socket_sk))?))
}
