//! Whose sockets are whose: the inodes that processes hold open.

use std::collections::{BTreeSet, HashMap};

use rustix::fs::{Dir, Mode, OFlags, openat, readlinkat};

use crate::process::proc_dir::list_pids;

/// Descriptors that are looked at in one reading of the node.
const MAX_DESCRIPTORS: usize = 2_000_000;

/// The lowest pid that holds each socket, by inode; one of `preferred` where several do. Processes
/// that cannot be read are left out.
pub(crate) fn socket_owners(preferred: &BTreeSet<u32>) -> HashMap<u64, u32> {
    let mut owners = HashMap::new();
    let mut left = MAX_DESCRIPTORS;
    let mut pids = list_pids();
    pids.sort_unstable_by_key(|pid| (!preferred.contains(pid), *pid));
    for pid in pids {
        for inode in sockets_of(pid, &mut left) {
            owners.entry(inode).or_insert(pid);
        }
    }
    owners
}

fn sockets_of(pid: u32, left: &mut usize) -> Vec<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(
        rustix::fs::CWD,
        format!("/proc/{pid}/fd"),
        flags,
        Mode::empty(),
    ) else {
        return Vec::new();
    };
    let Ok(entries) = Dir::read_from(&folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let Ok(target) = readlinkat(&folder, entry.file_name(), Vec::new()) else {
            continue;
        };
        found.extend(socket_inode(target.as_bytes()));
    }
    found
}

/// The inode in `socket:[INODE]`.
fn socket_inode(target: &[u8]) -> Option<u64> {
    let digits = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn own_sockets_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stat = rustix::fs::fstat(&listener).unwrap();
        assert_eq!(
            socket_owners(&BTreeSet::new()).get(&stat.st_ino),
            Some(&std::process::id())
        );
    }

    #[test]
    fn other_links_are_no_sockets() {
        assert_eq!(socket_inode(b"socket:[42]"), Some(42));
        for other in [
            &b"pipe:[42]"[..],
            b"socket:[]",
            b"socket:[x]",
            b"/tmp/socket:[42]",
            b"",
        ] {
            assert_eq!(socket_inode(other), None);
        }
    }
}
