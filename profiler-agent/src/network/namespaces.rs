//! Network namespaces that have a process, and questions that are asked inside of them.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::{fd::AsFd as _, linux::fs::MetadataExt as _},
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{
    model::ProcessKey,
    process::{ProcessTable, proc_dir::read_stat},
};

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
pub(crate) fn enter_namespace_of(process: ProcessKey) -> io::Result<()> {
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
