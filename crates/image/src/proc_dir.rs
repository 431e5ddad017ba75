//! Bounded access to `/proc/PID`, pinned to one process.

use std::{io, os::fd::OwnedFd, sync::Arc};

use procfs::{FromRead as _, process::Stat};
use profiler_model::ProcessKey;
use profiler_sandbox::broker::{self, Operation, OwnPath, Source};
use rustix::fs::{Mode, OFlags};

/// Largest `stat` file that is read; the kernel writes a few hundred bytes.
const STAT_LIMIT: usize = 4096;
/// Largest `status` file that is read; long CPU and memory node masks fit.
const STATUS_LIMIT: usize = 64 * 1024;
/// `PF_KTHREAD` in field 9 of `stat`.
const KERNEL_THREAD_FLAG: u32 = 0x0020_0000;

/// The numbers of `/proc/PID/stat` that the agent uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    pub comm: String,
    pub parent_pid: u32,
    /// User plus system time in clock ticks.
    pub cpu_ticks: u64,
    pub threads: u32,
    /// Clock ticks since boot.
    pub start_ticks: u64,
    pub rss_pages: u64,
    pub kernel_thread: bool,
    /// True when the process has exited and waits for its parent.
    pub zombie: bool,
    pub image: ImageIdentity,
}

/// Tells the program that a process runs from another that it runs after exec: where the code and
/// the stack begin, which address-space randomisation makes different each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageIdentity {
    start_code: u64,
    start_stack: u64,
}

/// The numbers of `/proc/PID/status` that the agent uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStatus {
    /// Effective user id.
    pub uid: u32,
    /// Pid in the innermost PID namespace of the process.
    pub namespace_pid: u32,
}

/// An open `/proc/PID`. Reads fail once the process is gone, even when its pid is used again.
#[derive(Debug)]
pub struct ProcDir {
    dir: Arc<OwnedFd>,
    pid: u32,
}

impl ProcDir {
    pub fn open(pid: u32) -> io::Result<Self> {
        let dir = broker::open_path(OwnPath::at(format!("/proc/{pid}")))?.into();
        Ok(Self { dir, pid })
    }

    /// Reads at most `limit` bytes of a file; what lies beyond is left away.
    pub fn read(&self, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        broker::read(OwnPath::below(&self.dir, name), limit)
    }

    /// The same for a file that shows memory of the process, which may have to be read from its files first. Fails when
    /// these do not answer.
    pub fn read_memory(&self, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        broker::read_of(self.pid, OwnPath::below(&self.dir, name), limit)
    }

    /// The folder `/proc/PID` itself.
    pub fn handle(&self) -> &Arc<OwnedFd> {
        &self.dir
    }

    /// Opens the root directory of the process's mount namespace, as a start for path look-ups.
    pub fn open_root(&self) -> io::Result<OwnedFd> {
        broker::open_path_of(self.pid, OwnPath::below(&self.dir, "root"))
    }

    /// Target of a link as text; bytes that are not UTF-8 are replaced.
    pub fn read_link(&self, name: &str) -> io::Result<String> {
        let target = broker::read_link(OwnPath::below(&self.dir, name))?;
        Ok(String::from_utf8_lossy(&target).into_owned())
    }

    pub fn stat(&self) -> io::Result<ProcessStat> {
        parse_stat(&self.read("stat", STAT_LIMIT)?)
    }

    pub fn status(&self) -> io::Result<ProcessStatus> {
        parse_status(&self.read("status", STATUS_LIMIT)?, self.pid)
    }

    /// Inode of the network namespace.
    pub fn network_namespace(&self) -> Option<u64> {
        parse_namespace_link(&self.read_link("ns/net").ok()?)
    }

    /// Ids of the threads, at most `limit` of them.
    pub fn thread_ids(&self, limit: usize) -> Vec<u32> {
        let entries = broker::list(OwnPath::below(&self.dir, "task"), limit).unwrap_or_default();
        entries
            .into_iter()
            .filter_map(|entry| entry.name.to_str()?.parse().ok())
            .collect()
    }

    /// `stat` of every thread, at most `limit` of them.
    pub fn thread_stats(&self, limit: usize) -> Vec<(u32, ProcessStat)> {
        self.thread_ids(limit)
            .into_iter()
            .filter_map(|tid| {
                let bytes = self.read(&format!("task/{tid}/stat"), STAT_LIMIT).ok()?;
                Some((tid, parse_stat(&bytes).ok()?))
            })
            .collect()
    }
}

/// Reads `/proc/PID/stat` alone: the cheapest way to see that a process still runs.
pub fn read_stat(pid: u32) -> io::Result<ProcessStat> {
    parse_stat(&read_path(&format!("/proc/{pid}/stat"), STAT_LIMIT)?)
}

/// Whether the process is there: its pid may be another's by now.
pub fn is_running(key: ProcessKey) -> bool {
    read_stat(key.pid).is_ok_and(|stat| stat.start_ticks == key.start_ticks)
}

/// Reads at most `limit` bytes of a file of the agent's own host.
pub fn read_path(path: &str, limit: usize) -> io::Result<Vec<u8>> {
    broker::read(OwnPath::at(path), limit)
}

/// A process as it was at one moment, to look at its mappings.
#[derive(Debug)]
pub struct Glimpse {
    /// Before and after the others were read.
    stats: [Vec<u8>; 2],
    /// `/proc/PID/maps`.
    pub maps: Vec<u8>,
    /// See [`ProcDir::handle`].
    pub process: Arc<OwnedFd>,
    /// See [`ProcDir::open_root`].
    pub root: OwnedFd,
    /// What the link `root` says: a folder after chroot(2) without a mount namespace of its own.
    pub chroot: Vec<u8>,
    /// What the link `ns/mnt` says: its mount namespace.
    pub namespace: Vec<u8>,
}

impl Glimpse {
    /// Looks at whichever process has the pid, in one go: it may be there for a moment only. At most `limit` bytes of
    /// mappings are read.
    pub fn take(pid: u32, limit: usize) -> io::Result<Self> {
        broker::perform(Look { pid, limit })?
    }

    /// `stat` before and after.
    pub fn stats(&self) -> io::Result<[ProcessStat; 2]> {
        let [before, after] = &self.stats;
        Ok([parse_stat(before)?, parse_stat(after)?])
    }
}

struct Look {
    pid: u32,
    limit: usize,
}

impl Operation for Look {
    type Answer = io::Result<Glimpse>;

    /// The mappings cannot be read while the process waits for a page that it holds them for.
    fn waits_for(&self) -> Option<Source> {
        Some(Source::Process(self.pid))
    }

    fn perform(self) -> Self::Answer {
        let process = ProcDir::open(self.pid)?;
        let before = process.read("stat", STAT_LIMIT)?;
        let maps = process.read("maps", self.limit)?;
        let after = process.read("stat", STAT_LIMIT)?;
        let root = process.open_root()?;
        let link = |name| broker::read_link(OwnPath::below(&process.dir, name)).unwrap_or_default();
        let (chroot, namespace) = (link("root"), link("ns/mnt"));
        Ok(Glimpse {
            stats: [before, after],
            maps,
            process: process.dir,
            root,
            chroot,
            namespace,
        })
    }
}

/// Pids of all processes, from the names in `/proc`.
pub fn list_pids() -> Vec<u32> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(proc) = rustix::fs::open("/proc", flags, Mode::empty()) else {
        return Vec::new();
    };
    let Ok(entries) = rustix::fs::Dir::read_from(&proc) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok())
        .collect()
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

pub(crate) fn parse_stat(bytes: &[u8]) -> io::Result<ProcessStat> {
    // The library slices between the parentheses; look that they stand where it expects them.
    let open = bytes
        .iter()
        .position(|byte| *byte == b'(')
        .ok_or_else(|| invalid("stat"))?;
    let close = bytes
        .iter()
        .rposition(|byte| *byte == b')')
        .ok_or_else(|| invalid("stat"))?;
    if open < 2 || close <= open || bytes.len() < close + 3 {
        return Err(invalid("stat"));
    }
    let stat = Stat::from_read(bytes).map_err(|_| invalid("stat"))?;
    Ok(ProcessStat {
        comm: stat.comm,
        parent_pid: u32::try_from(stat.ppid).unwrap_or(0),
        cpu_ticks: stat.utime.saturating_add(stat.stime),
        threads: u32::try_from(stat.num_threads).unwrap_or(0),
        start_ticks: stat.starttime,
        rss_pages: stat.rss,
        kernel_thread: stat.flags & KERNEL_THREAD_FLAG != 0,
        zombie: matches!(stat.state, 'Z' | 'X'),
        image: ImageIdentity {
            start_code: stat.startcode,
            start_stack: stat.startstack,
        },
    })
}

fn parse_status(bytes: &[u8], pid: u32) -> io::Result<ProcessStatus> {
    // "Name" comes first and is the process's choice, but the kernel escapes newlines in it.
    let text = String::from_utf8_lossy(bytes);
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let uid = field("Uid:")
        .and_then(|values| values.split_whitespace().nth(1))
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| invalid("status: Uid"))?;
    // Kernels without PID namespaces have no such line.
    let namespace_pid = field("NSpid:")
        .and_then(|values| values.split_whitespace().last())
        .and_then(|value| value.parse().ok())
        .unwrap_or(pid);
    Ok(ProcessStatus { uid, namespace_pid })
}

/// Parses `net:[4026531840]`.
fn parse_namespace_link(text: &str) -> Option<u64> {
    text.split_once(":[")?.1.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4242 (a) b (c) R 7 4242 4242 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 \
        987654 1000000 321 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n";

    #[test]
    fn stat_reads_the_fields_behind_a_hostile_name() {
        let stat = parse_stat(STAT.as_bytes()).unwrap();
        assert_eq!(stat.comm, "a) b (c");
        assert_eq!(stat.parent_pid, 7);
        assert_eq!(stat.cpu_ticks, 300);
        assert_eq!(stat.threads, 3);
        assert_eq!(stat.start_ticks, 987_654);
        assert_eq!(stat.rss_pages, 321);
        assert!(!stat.kernel_thread && !stat.zombie);
    }

    #[test]
    fn cut_and_broken_stat_is_an_error_and_never_a_panic() {
        for end in 0..STAT.len() - 60 {
            assert!(parse_stat(&STAT.as_bytes()[..end]).is_err(), "{end}");
        }
        for text in [
            "",
            "(",
            ")",
            ")(",
            "1 (x)",
            "1 (x) ",
            "(x) R",
            "1 (\u{e9}) R 1",
        ] {
            assert!(parse_stat(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(parse_stat(b"1 (\xff\xfe) R").is_err());
    }

    #[test]
    fn status_takes_the_effective_uid_and_the_innermost_pid() {
        let text = b"Name:\tx\\nUid:\nUid:\t1000\t1001\t1000\t1000\nNSpid:\t900\t31\t1\n";
        let status = parse_status(text, 900).unwrap();
        assert_eq!(
            status,
            ProcessStatus {
                uid: 1001,
                namespace_pid: 1
            }
        );
        assert!(parse_status(b"Name:\tx\n", 1).is_err());
    }

    #[test]
    fn own_process_is_readable_and_a_missing_one_is_an_error() {
        let dir = ProcDir::open(std::process::id()).unwrap();
        let stat = dir.stat().unwrap();
        assert!(stat.threads >= 1 && stat.rss_pages > 0 && !stat.kernel_thread);
        assert_eq!(
            dir.status().unwrap().uid,
            rustix::process::geteuid().as_raw()
        );
        assert!(dir.network_namespace().is_some());
        assert!(list_pids().contains(&std::process::id()));
        assert!(ProcDir::open(u32::MAX).is_err());
    }
}
