//! Network namespaces that have a process, and questions that are asked inside of them.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::{fd::AsFd as _, linux::fs::MetadataExt as _},
};

use profiler_image::proc_dir::read_stat;
use profiler_model::ProcessKey;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::process::ProcessTable;

/// `f_type` of the file system of namespaces (include/uapi/linux/magic.h, `NSFS_MAGIC`).
const NAMESPACES: i64 = 0x6e73_6673;
/// Folders in which namespaces have names: those of iproute2 and CNI, and Docker's.
const FOLDERS: [&str; 4] = [
    "/run/netns/",
    "/var/run/netns/",
    "/run/docker/netns/",
    "/var/run/docker/netns/",
];

/// Where a network namespace may be named: nothing else is looked at, and nothing is opened there but a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespacePath<'a> {
    /// A name in one of the usual folders.
    Named { folder: &'static str, name: &'a str },
    /// `/proc/PID/ns/net`.
    Process(u32),
}

impl<'a> NamespacePath<'a> {
    /// `None` for every other path.
    pub fn parse(path: &'a str) -> Option<Self> {
        if let Some(rest) = path.strip_prefix("/proc/") {
            let pid = rest.strip_suffix("/ns/net")?;
            let is_number = pid.bytes().all(|byte| byte.is_ascii_digit());
            return pid.parse().ok().filter(|_pid| is_number).map(Self::Process);
        }
        FOLDERS.iter().find_map(|folder| {
            let name = path.strip_prefix(folder)?;
            let is_name = !name.contains(['/', '\0']) && !["", ".", ".."].contains(&name);
            is_name.then_some(Self::Named { folder, name })
        })
    }

    /// The namespace's inode; `None` when there is none. Does not open what it finds, so that neither a FIFO nor a
    /// device can hold it up, and follows no link but those of the kernel.
    pub fn inode(self) -> io::Result<Option<u32>> {
        use rustix::fs::{Mode, OFlags, fstatfs, open, openat};

        let place = OFlags::PATH | OFlags::CLOEXEC;
        let found = match self {
            Self::Named { folder, name } => {
                let folder = open(folder, place | OFlags::DIRECTORY, Mode::empty())?;
                openat(folder, name, place | OFlags::NOFOLLOW, Mode::empty())?
            }
            Self::Process(pid) => open(format!("/proc/{pid}/ns/net"), place, Mode::empty())?,
        };
        if fstatfs(&found)?.f_type != NAMESPACES {
            return Ok(None);
        }
        let inode = File::from(found).metadata()?.st_ino();
        Ok(u32::try_from(inode).ok())
    }
}

/// The processes of each namespace, by its inode.
pub(super) fn with_processes(table: &ProcessTable) -> BTreeMap<u32, Vec<u32>> {
    let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in table.snapshot() {
        let inode = process.network_namespace.map(u32::try_from);
        if let Some(Ok(inode)) = inode {
            found.entry(inode).or_default().push(process.key.pid);
        }
    }
    found
}

/// Asks inside the namespace with this inode, from a thread of its own, because a thread cannot leave
/// its namespace for a moment. Fails also when none of `pids` is there any more, and when the namespace
/// may not be entered (`PermissionDenied`), which is not needed for the agent's own. Blocks.
pub(super) fn ask_inside<T: Send>(
    inode: u32,
    pids: &[u32],
    ask: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let namespace = pids.iter().find_map(|pid| open(*pid, inode));
    let namespace = namespace.ok_or_else(|| io::Error::other("its processes have ended"))?;
    let is_own = std::fs::metadata("/proc/thread-self/ns/net")
        .is_ok_and(|own| own.st_ino() == u64::from(inode));
    let answer = std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .name("socket-diag".into())
            .spawn_scoped(scope, || {
                if !is_own {
                    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
                }
                ask()
            })?;
        worker
            .join()
            .map_err(|_panic| io::Error::other("the thread that lists sockets panicked"))?
    });
    answer.inspect_err(|error| tracing::debug!(inode, %error, "list the sockets of a namespace"))
}

/// Moves the calling thread into the network namespace of a process, for good: it is to be a thread that
/// does nothing else. Fails when the process has ended or its namespace may not be entered
/// (`PermissionDenied`), which is not needed for the agent's own. Blocks.
pub fn enter_namespace_of(process: ProcessKey) -> io::Result<()> {
    let namespace = File::open(format!("/proc/{}/ns/net", process.pid))?;
    // Opened first: when the pid has another process by then, this sees it.
    if read_stat(process.pid)?.start_ticks != process.start_ticks {
        return Err(io::Error::other("the process has ended"));
    }
    let inode = namespace.metadata()?.st_ino();
    let is_own =
        std::fs::metadata("/proc/thread-self/ns/net").is_ok_and(|own| own.st_ino() == inode);
    if !is_own {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    }
    Ok(())
}

/// Whether the process is in the namespace with this inode.
pub(super) fn is_in(pid: u32, inode: u32) -> bool {
    open(pid, inode).is_some()
}

/// The namespace of a process, when it still is in the one with this inode.
fn open(pid: u32, inode: u32) -> Option<File> {
    let file = File::open(format!("/proc/{pid}/ns/net")).ok()?;
    (file.metadata().ok()?.st_ino() == u64::from(inode)).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usual_places_are_paths_of_namespaces() {
        assert_eq!(
            NamespacePath::parse("/run/netns/blue"),
            Some(NamespacePath::Named {
                folder: "/run/netns/",
                name: "blue"
            })
        );
        assert_eq!(
            NamespacePath::parse("/proc/17/ns/net"),
            Some(NamespacePath::Process(17))
        );
        for path in [
            "",
            "/",
            "/run/netns",
            "/run/netns/",
            "/run/netns/..",
            "/run/netns/../../etc/shadow",
            "/run/netns/a/b",
            "/etc/shadow",
            "/proc/self/ns/net",
            "/proc/1/ns/mnt",
            "/proc/+1/ns/net",
            "/proc/1/root/run/netns/x",
            "/tmp/run/netns/x",
            "run/netns/x",
        ] {
            assert_eq!(NamespacePath::parse(path), None, "{path:?}");
        }
    }

    #[test]
    fn the_own_namespace_is_found_by_the_process() {
        let own = std::fs::metadata("/proc/self/ns/net").unwrap().st_ino();
        let found = NamespacePath::Process(std::process::id()).inode().unwrap();
        assert_eq!(found.map(u64::from), Some(own));
    }
}
