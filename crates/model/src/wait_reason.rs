//! What a thread waited for, named after the functions on its kernel stack.

/// Kinds of waits that people tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason {
    Preempted,
    PageFault,
    Futex,
    Poll,
    SocketRead,
    SocketWrite,
    Accept,
    Connect,
    Fsync,
    Pipe,
    FileRead,
    FileWrite,
    Sleep,
    Child,
    IoUring,
    Other,
}

impl WaitReason {
    pub const ALL: [Self; 16] = [
        Self::Preempted,
        Self::PageFault,
        Self::Futex,
        Self::Poll,
        Self::SocketRead,
        Self::SocketWrite,
        Self::Accept,
        Self::Connect,
        Self::Fsync,
        Self::Pipe,
        Self::FileRead,
        Self::FileWrite,
        Self::Sleep,
        Self::Child,
        Self::IoUring,
        Self::Other,
    ];

    /// Name in exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::PageFault => "page fault",
            Self::Futex => "futex",
            Self::Poll => "poll",
            Self::SocketRead => "socket read",
            Self::SocketWrite => "socket write",
            Self::Accept => "accept",
            Self::Connect => "connect",
            Self::Fsync => "fsync",
            Self::Pipe => "pipe",
            Self::FileRead => "file read",
            Self::FileWrite => "file write",
            Self::Sleep => "sleep",
            Self::Child => "child",
            Self::IoUring => "io_uring",
            Self::Other => "other",
        }
    }

    /// The reason of a wait whose kernel stack has these functions, from the leaf on. The function
    /// nearest to the leaf that says something decides: a page fault inside a read is a page fault.
    pub fn of<'a>(mut functions: impl Iterator<Item = &'a str>) -> Self {
        functions
            .find_map(|function| {
                let found = FUNCTIONS
                    .iter()
                    .find(|(pattern, _)| pattern.holds(function));
                found.map(|(_, reason)| *reason)
            })
            .unwrap_or(Self::Other)
    }
}

/// How a function is recognised.
enum Pattern {
    Is(&'static str),
    /// Names that begin so: compilers and kernel versions add to them.
    Begins(&'static str),
}

impl Pattern {
    fn holds(&self, function: &str) -> bool {
        match self {
            Self::Is(name) => *name == function,
            Self::Begins(start) => function.starts_with(start),
        }
    }
}

use Pattern::{Begins, Is};
use WaitReason::{
    Accept, Child, Connect, FileRead, FileWrite, Fsync, Futex, IoUring, PageFault, Pipe, Poll,
    Sleep, SocketRead, SocketWrite,
};

/// Kernel functions that say what is waited for, the more particular first. Names of Linux 5.15 to
/// 6.18; a function that a kernel does not have matches nothing.
const FUNCTIONS: &[(Pattern, WaitReason)] = &[
    (Is("handle_mm_fault"), PageFault),
    (Is("do_user_addr_fault"), PageFault),
    (Is("exc_page_fault"), PageFault),
    (Is("do_page_fault"), PageFault),
    (Is("faultin_page"), PageFault),
    (Begins("futex_"), Futex),
    (Begins("do_futex"), Futex),
    (Begins("__futex"), Futex),
    (Begins("rt_mutex_"), Futex),
    (Begins("io_cqring_wait"), IoUring),
    (Begins("io_uring"), IoUring),
    (Begins("__do_sys_io_uring"), IoUring),
    (Begins("io_wq_worker"), IoUring),
    (Begins("io_sq_thread"), IoUring),
    (Begins("inet_csk_accept"), Accept),
    (Begins("inet_accept"), Accept),
    (Begins("unix_accept"), Accept),
    (Begins("do_accept"), Accept),
    (Begins("inet_wait_for_connect"), Connect),
    (Begins("__inet_stream_connect"), Connect),
    (Begins("inet_stream_connect"), Connect),
    (Begins("unix_stream_connect"), Connect),
    (Begins("unix_wait_for_peer"), Connect),
    (Begins("__sys_connect"), Connect),
    (Begins("ep_poll"), Poll),
    (Begins("do_epoll_"), Poll),
    (Begins("do_sys_poll"), Poll),
    (Begins("do_poll"), Poll),
    (Begins("do_select"), Poll),
    (Begins("core_sys_select"), Poll),
    (Begins("poll_schedule_timeout"), Poll),
    (Is("sk_stream_wait_memory"), SocketWrite),
    (Is("sock_alloc_send_pskb"), SocketWrite),
    (Is("sock_wait_for_wmem"), SocketWrite),
    (Begins("sk_wait_data"), SocketRead),
    (Begins("__skb_wait_for_more_packets"), SocketRead),
    (Begins("unix_stream_data_wait"), SocketRead),
    (Begins("unix_stream_read_generic"), SocketRead),
    (Begins("sock_recvmsg"), SocketRead),
    (Begins("__sys_recv"), SocketRead),
    (Begins("sock_read_iter"), SocketRead),
    (Begins("sock_sendmsg"), SocketWrite),
    (Begins("__sock_sendmsg"), SocketWrite),
    (Begins("__sys_send"), SocketWrite),
    (Begins("sock_write_iter"), SocketWrite),
    (Begins("vfs_fsync"), Fsync),
    (Begins("do_fsync"), Fsync),
    (Begins("__do_sys_fsync"), Fsync),
    (Begins("__do_sys_fdatasync"), Fsync),
    (Begins("__x64_sys_fsync"), Fsync),
    (Begins("__x64_sys_fdatasync"), Fsync),
    (Begins("__x64_sys_msync"), Fsync),
    (Begins("ksys_sync"), Fsync),
    (Begins("sync_file_range"), Fsync),
    (Begins("pipe_"), Pipe),
    (Begins("anon_pipe_"), Pipe),
    (Begins("fifo_"), Pipe),
    (Begins("wait_for_partner"), Pipe),
    (Begins("do_nanosleep"), Sleep),
    (Begins("hrtimer_nanosleep"), Sleep),
    (Begins("common_nsleep"), Sleep),
    (Begins("do_wait"), Child),
    (Begins("kernel_wait4"), Child),
    (Begins("kernel_waitid"), Child),
    (Begins("wait_for_vfork_done"), Child),
    (Begins("vfs_write"), FileWrite),
    (Begins("vfs_iter_write"), FileWrite),
    (Begins("do_writev"), FileWrite),
    (Begins("ksys_write"), FileWrite),
    (Begins("ksys_pwrite"), FileWrite),
    (Begins("vfs_read"), FileRead),
    (Begins("vfs_iter_read"), FileRead),
    (Begins("do_readv"), FileRead),
    (Begins("ksys_read"), FileRead),
    (Begins("ksys_pread"), FileRead),
    (Begins("filemap_read"), FileRead),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(functions: &[&str], expected: WaitReason) {
        assert_eq!(
            WaitReason::of(functions.iter().copied()),
            expected,
            "{functions:?}"
        );
    }

    #[test]
    fn the_function_nearest_to_the_leaf_decides() {
        check(
            &[
                "__schedule",
                "schedule",
                "futex_wait_queue",
                "futex_wait",
                "do_futex",
            ],
            Futex,
        );
        check(
            &[
                "__schedule",
                "schedule_hrtimeout_range",
                "ep_poll",
                "do_epoll_wait",
            ],
            Poll,
        );
        check(
            &[
                "__schedule",
                "wait_woken",
                "sk_stream_wait_memory",
                "tcp_sendmsg_locked",
                "sock_write_iter",
                "vfs_write",
                "ksys_write",
            ],
            SocketWrite,
        );
        check(
            &[
                "io_schedule",
                "folio_wait_bit_common",
                "filemap_fault",
                "handle_mm_fault",
                "vfs_read",
            ],
            PageFault,
        );
        check(
            &["schedule", "anon_pipe_read", "vfs_read", "ksys_read"],
            Pipe,
        );
        check(&["schedule", "pipe_read", "vfs_read"], Pipe);
        check(
            &[
                "schedule",
                "jbd2_log_wait_commit",
                "ext4_sync_file",
                "do_fsync",
            ],
            Fsync,
        );
        check(&["io_schedule", "filemap_read", "vfs_read"], FileRead);
    }

    #[test]
    fn what_nobody_knows_is_other() {
        check(&[], WaitReason::Other);
        check(
            &["__schedule", "schedule", "worker_thread", "kthread"],
            WaitReason::Other,
        );
    }

    #[test]
    fn every_reason_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> =
            WaitReason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), WaitReason::ALL.len());
    }
}
