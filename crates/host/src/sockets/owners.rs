//! Whose sockets are whose: the inodes that processes hold open.
//!
//! Reading every descriptor of a node is the most expensive part of finding both ends of connections, so
//! what is known is kept as long as its process lives, and the search ends when nothing is missing.

use std::collections::{BTreeSet, HashMap, HashSet};

use profiler_model::{ProcessKey, sockets::Holder};
use rustix::fs::{Dir, Mode, OFlags, openat, readlinkat};

use crate::process::ProcessTable;

/// Descriptors that are looked at in one reading of the node.
const MAX_DESCRIPTORS: usize = 2_000_000;

/// A process that may hold sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Candidate {
    process: ProcessKey,
    network_namespace: Option<u32>,
}

/// The processes of the node; kernel threads have no descriptors.
fn candidates(table: &ProcessTable) -> Vec<Candidate> {
    let processes = table.snapshot();
    let users = processes.iter().filter(|process| !process.kernel_thread);
    users
        .map(|process| Candidate {
            process: process.key,
            network_namespace: process
                .network_namespace
                .and_then(|inode| u32::try_from(inode).ok()),
        })
        .collect()
}

/// Holders of sockets by inode.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    holders: HashMap<u64, Holder>,
    /// Descriptors that were looked at the last time.
    looked_at: usize,
}

impl Owners {
    /// Finds the processes that hold `wanted` (inodes, each with its network namespace). Of several holders the
    /// first in the order of: `preferred`, the socket's own namespace, the lowest pid. Processes
    /// that cannot be read are left out.
    pub fn find(
        &mut self,
        wanted: &HashMap<u64, u32>,
        table: &ProcessTable,
        preferred: &BTreeSet<u32>,
    ) {
        self.find_among(wanted, &candidates(table), preferred);
    }

    /// The same among the processes of the sockets' own network namespaces, which is cheaper where nobody may hold some.
    pub fn find_near(&mut self, wanted: &HashMap<u64, u32>, table: &ProcessTable) {
        let namespaces: HashSet<Option<u32>> = wanted.values().copied().map(Some).collect();
        let mut near = candidates(table);
        near.retain(|one| namespaces.contains(&one.network_namespace));
        self.find_among(wanted, &near, &BTreeSet::new());
    }

    fn find_among(
        &mut self,
        wanted: &HashMap<u64, u32>,
        candidates: &[Candidate],
        preferred: &BTreeSet<u32>,
    ) {
        let alive: HashSet<ProcessKey> = candidates.iter().map(|one| one.process).collect();
        self.holders
            .retain(|inode, holder| wanted.contains_key(inode) && alive.contains(&holder.process));
        self.looked_at = 0;
        let mut missing: HashSet<u64> = wanted
            .keys()
            .copied()
            .filter(|inode| !self.holders.contains_key(inode))
            .collect();
        let places: HashSet<u32> = missing
            .iter()
            .filter_map(|inode| wanted.get(inode).copied())
            .collect();
        let is_near = |one: &Candidate| {
            one.network_namespace
                .is_some_and(|namespace| places.contains(&namespace))
        };
        let mut order: Vec<&Candidate> = candidates.iter().collect();
        order.sort_unstable_by_key(|one| {
            let pid = one.process.pid;
            (!preferred.contains(&pid), !is_near(one), pid)
        });
        for candidate in order {
            if missing.is_empty() || self.looked_at >= MAX_DESCRIPTORS {
                return;
            }
            self.look_at(candidate.process, &mut missing);
        }
    }

    pub fn holder(&self, inode: u64) -> Option<Holder> {
        self.holders.get(&inode).copied()
    }

    /// The processes that hold what was looked for last, by inode.
    pub fn processes(&self) -> HashMap<u64, ProcessKey> {
        let holders = self.holders.iter();
        holders
            .map(|(inode, holder)| (*inode, holder.process))
            .collect()
    }

    fn look_at(&mut self, process: ProcessKey, missing: &mut HashSet<u64>) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = format!("/proc/{}/fd", process.pid);
        let Ok(folder) = openat(rustix::fs::CWD, path, flags, Mode::empty()) else {
            return;
        };
        let Ok(entries) = Dir::read_from(&folder) else {
            return;
        };
        for entry in entries.flatten() {
            if missing.is_empty() || self.looked_at >= MAX_DESCRIPTORS {
                return;
            }
            self.looked_at += 1;
            let name = entry.file_name();
            let Ok(target) = readlinkat(&folder, name, Vec::new()) else {
                continue;
            };
            let descriptor = name.to_str().ok().and_then(|name| name.parse().ok());
            if let Some(inode) = socket_inode(target.as_bytes())
                && let Some(descriptor) = descriptor
                && missing.remove(&inode)
            {
                let holder = Holder {
                    process,
                    descriptor,
                };
                self.holders.insert(inode, holder);
            }
        }
    }
}

/// The inode in `socket:[INODE]`.
fn socket_inode(target: &[u8]) -> Option<u64> {
    let digits = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, os::fd::AsRawFd as _};

    use super::*;

    fn own() -> Candidate {
        Candidate {
            process: ProcessKey {
                pid: std::process::id(),
                start_ticks: 1,
            },
            network_namespace: Some(1),
        }
    }

    fn inode(listener: &TcpListener) -> u64 {
        rustix::fs::fstat(listener).unwrap().st_ino
    }

    #[test]
    fn own_sockets_are_found_with_their_descriptors() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut owners = Owners::default();
        let wanted = HashMap::from([(inode(&listener), 1)]);
        owners.find_among(&wanted, &[own()], &BTreeSet::new());
        let holder = owners.holder(inode(&listener)).unwrap();
        assert_eq!(holder.process, own().process);
        assert_eq!(holder.descriptor, listener.as_raw_fd());
    }

    #[test]
    fn what_is_known_is_not_looked_for_again_while_its_process_lives() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut owners = Owners::default();
        let wanted = HashMap::from([(inode(&listener), 1)]);
        owners.find_among(&wanted, &[own()], &BTreeSet::new());
        assert!(owners.looked_at > 0);
        owners.find_among(&wanted, &[own()], &BTreeSet::new());
        assert_eq!(owners.looked_at, 0);
        // Another process has its number now.
        let mut other = own();
        other.process.start_ticks = 2;
        owners.find_among(&wanted, &[other], &BTreeSet::new());
        let holder = owners.holder(inode(&listener)).unwrap();
        assert_eq!(holder.process, other.process);
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
