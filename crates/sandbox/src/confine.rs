//! Blocks system calls the agent never makes (seccomp), and for threads that parse untrusted input
//! also all files, and new connections where they need none (Landlock).
//!
//! The filter of the whole process is a list of what is refused and not of what is allowed: two C libraries, the async
//! runtime and the allocator make calls that no list of ours could promise to hold. The HTTP thread does little, and has
//! a list of what is allowed. Refused calls fail with EPERM, so that a library that only tries them goes on.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, geteuid, set_dumpable_behavior, setrlimit,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// Whether the agent confines itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confinement {
    /// As far as the kernel can.
    #[default]
    Auto,
    /// Not at all, for a debugger or a tracer of system calls.
    Off,
}

impl Confinement {
    /// As in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

/// Whether [`confine_process`] was asked for in this process.
static WANTED: AtomicBool = AtomicBool::new(false);

#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    #[error("make a filter of system calls: {0}")]
    Filter(#[from] seccompiler::BackendError),
    #[error("set a filter of system calls: {0}; start with --confine off to do without")]
    Apply(#[from] seccompiler::Error),
    #[error("Landlock: {0}; start with --confine off to do without")]
    Landlock(#[from] landlock::RulesetError),
    #[error("forbid core dumps: {0}; start with --confine off to do without")]
    Dumps(rustix::io::Errno),
    #[error("no filter of system calls is known for this machine")]
    Machine,
}

/// Takes from this thread, and every thread that it starts, what no part of the agent does: running programs,
/// loading kernel modules, mounting, tracing, keys, clocks, asynchronous system calls that no filter sees. Needs
/// `no_new_privs` or `CAP_SYS_ADMIN`. Call before there are other threads.
pub fn confine_process() -> Result<(), ConfineError> {
    WANTED.store(true, Ordering::Relaxed);
    forbid_dumps()?;
    set_filters()
}

/// Memory holds the token and payload: no core file of it. As another user than root the kernel would take the process's
/// own files of `/proc` away as well.
fn forbid_dumps() -> Result<(), ConfineError> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none).map_err(ConfineError::Dumps)?;
    if geteuid().is_root() {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(ConfineError::Dumps)?;
    }
    Ok(())
}

fn set_filters() -> Result<(), ConfineError> {
    apply_filter(&refused()?)?;
    // Threads only, no processes. The arguments of clone3 cannot be seen by a filter; without it C libraries
    // take clone.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    apply_filter(&refusing(clone3, libc::ENOSYS)?)?;
    Ok(())
}

/// Leaves the calling thread, and those that it starts, its open sockets, its memory and the clock. Does nothing
/// unless the process is confined.
pub fn confine_http_thread() -> Result<(), ConfineError> {
    if !WANTED.load(Ordering::Relaxed) {
        return Ok(());
    }
    confine_http()
}

fn confine_http() -> Result<(), ConfineError> {
    let ruled = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))?
        .handle_access(AccessNet::from_all(ABI::V6))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        .restrict_self()?;
    match ruled.ruleset {
        RulesetStatus::FullyEnforced => tracing::debug!("Landlock: the HTTP thread opens no file"),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            tracing::info!(status = ?ruled.ruleset, "Landlock is not complete on this kernel");
        }
    }
    let allowed = ALLOWED_TO_HTTP
        .iter()
        .chain(ALLOWED_TO_HTTP_HERE)
        .map(|call| (*call, Vec::new()));
    let filter = SeccompFilter::new(
        allowed.collect(),
        SeccompAction::Errno(errno(libc::EPERM)),
        SeccompAction::Allow,
        machine()?,
    )?;
    apply_filter(&BpfProgram::try_from(filter)?)?;
    Ok(())
}

/// What a thread that understands what others wrote needs beside what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Files and sockets that others have opened.
    Given,
    /// Connections of its own as well.
    Network,
    /// The same, and what finds and authenticates a server: names of hosts, certificates, the pod's account and
    /// these files and folders.
    Servers(Vec<PathBuf>),
    /// The same, and this folder, which it writes.
    Folder(PathBuf),
}

/// Files that name servers and certificates are looked up in.
const SERVERS: [&str; 10] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/lib/ssl",
    "/run/secrets",
    "/var/run/secrets",
];

/// Leaves the calling thread, and those that it starts, no files but those it is given, and no more connections than it
/// needs. Does nothing unless the process is confined.
pub fn confine_reader(reach: &Reach) -> Result<(), ConfineError> {
    if !WANTED.load(Ordering::Relaxed) {
        return Ok(());
    }
    confine_to(reach)
}

fn confine_to(reach: &Reach) -> Result<(), ConfineError> {
    let files = AccessFs::from_all(ABI::V6);
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(files)?;
    let rules = match reach {
        Reach::Given => rules.handle_access(AccessNet::from_all(ABI::V6))?,
        Reach::Network | Reach::Servers(_) | Reach::Folder(_) => rules,
    };
    let read: Vec<&Path> = match reach {
        Reach::Given | Reach::Network => Vec::new(),
        Reach::Servers(more) => {
            let more = more.iter().map(PathBuf::as_path);
            SERVERS.iter().map(Path::new).chain(more).collect()
        }
        Reach::Folder(_) => SERVERS.iter().map(Path::new).collect(),
    };
    let mut rules = rules
        .create()?
        // What is not there is left out.
        .add_rules(path_beneath_rules(read, AccessFs::from_read(ABI::V6)))?;
    if let Reach::Folder(folder) = reach {
        rules = rules.add_rules(path_beneath_rules([folder], files))?;
    }
    let ruled = rules.restrict_self()?;
    if ruled.ruleset != RulesetStatus::FullyEnforced {
        tracing::debug!(status = ?ruled.ruleset, "Landlock is not complete on this kernel");
    }
    let mut rules = BTreeMap::new();
    refuse(&mut rules, ENTERING);
    match reach {
        Reach::Given => {
            refuse(&mut rules, CHANGING);
            refuse(&mut rules, CONNECTING);
        }
        Reach::Network | Reach::Servers(_) => refuse(&mut rules, CHANGING),
        // It makes, renames and removes what it keeps; Landlock says where.
        Reach::Folder(_) => {}
    }
    apply_filter(&refusing(rules, libc::EPERM)?)?;
    Ok(())
}

/// Whether the kernel filters system calls, and whether it does so here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    InForce,
    Off,
    Unknown,
}

/// What `/proc/self/status` reports about the first thread.
pub fn filtering() -> Filtering {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    match mode.map(str::trim) {
        Some("2") => Filtering::InForce,
        Some(_) => Filtering::Off,
        None => Filtering::Unknown,
    }
}

/// Version of Landlock that the kernel has; 0 where it has none.
pub fn landlock_version() -> i64 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call takes no memory and changes nothing.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    version.max(0)
}

/// Whether this process was asked to confine itself.
pub fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

fn refused() -> Result<BpfProgram, ConfineError> {
    // clone makes threads, but no processes.
    let process = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(CLONE_THREAD),
        0,
    )?;
    let mut rules = BTreeMap::from([(libc::SYS_clone, vec![SeccompRule::new(vec![process])?])]);
    refuse(&mut rules, REFUSED);
    refuse(&mut rules, REFUSED_HERE);
    #[cfg(target_arch = "x86_64")]
    for call in X32_ONLY.chain([libc::SYS_clone, libc::SYS_clone3]) {
        rules.insert(call | X32, Vec::new());
    }
    refusing(rules, libc::EPERM)
}

/// Adds calls, and the same of the x32 ABI, where the kernel has it.
fn refuse(rules: &mut BTreeMap<i64, Vec<SeccompRule>>, calls: &[libc::c_long]) {
    for call in calls {
        rules.insert(*call, Vec::new());
        #[cfg(target_arch = "x86_64")]
        rules.insert(*call | X32, Vec::new());
    }
}

/// A filter that allows everything but these calls.
fn refusing(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    error: i32,
) -> Result<BpfProgram, ConfineError> {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno(error)),
        machine()?,
    )?;
    Ok(BpfProgram::try_from(filter)?)
}

fn errno(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

fn machine() -> Result<TargetArch, ConfineError> {
    TargetArch::try_from(std::env::consts::ARCH).map_err(|_| ConfineError::Machine)
}

/// Of `include/uapi/linux/sched.h`.
const CLONE_THREAD: u64 = 0x0001_0000;
/// Bit of calls of the x32 ABI.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
/// Numbers that calls have in that ABI alone (`arch/x86/entry/syscalls/syscall_64.tbl`).
#[cfg(target_arch = "x86_64")]
const X32_ONLY: std::ops::RangeInclusive<i64> = 512..=547;

/// What no part of the agent does. `fsopen`, `fsconfig` and `fsmount` are missing: with them tracefs is read where it is
/// not mounted, by a descriptor that no path leads to; `move_mount`, which would give it one, is here. So is `setns` missing:
/// sockets of other network namespaces are read from inside.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_settimeofday,
    libc::SYS_adjtimex,
    libc::SYS_personality,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_mknodat,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// The same where only this machine has the call.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_fork,
    libc::SYS_kexec_file_load,
    libc::SYS_vfork,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_mknod,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[KEXEC_FILE_LOAD];

/// Of `include/uapi/asm-generic/unistd.h`: libc has no name for it with musl on aarch64.
#[cfg(not(target_arch = "x86_64"))]
const KEXEC_FILE_LOAD: libc::c_long = 294;

/// Entering and making places where there are other files.
const ENTERING: &[libc::c_long] = &[libc::SYS_setns, libc::SYS_fsopen, libc::SYS_fsmount];

/// What readers never do, also where the kernel has no Landlock: changing files, above all.
const CHANGING: &[libc::c_long] = &[
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_truncate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_perf_event_open,
    libc::SYS_kill,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
];

/// Making connections.
const CONNECTING: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
];

/// What accepting connections, TLS and HTTP need of the kernel, with the allocators, locks and logging of both C
/// libraries.
const ALLOWED_TO_HTTP: &[libc::c_long] = &[
    libc::SYS_accept4,
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_ioctl,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_prctl,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_socketpair,
    libc::SYS_tgkill,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
    // Threads of the runtime, without another process: the filter of the whole process sees to that.
    libc::SYS_clone,
    // Of two filters that refuse a call, the later one names the error. It must stay that of the whole process, "no
    // such call", with which C libraries take clone instead.
    libc::SYS_clone3,
    libc::SYS_set_tid_address,
];

/// The same where only this machine has the call.
#[cfg(target_arch = "x86_64")]
const ALLOWED_TO_HTTP_HERE: &[libc::c_long] = &[libc::SYS_epoll_wait, libc::SYS_poll];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_TO_HTTP_HERE: &[libc::c_long] = &[];

#[cfg(test)]
#[path = "confine_tests.rs"]
mod tests;
