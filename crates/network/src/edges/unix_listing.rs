//! The Unix sockets of the node with their processes, as of one moment.

use std::collections::{HashMap, HashSet};

use profiler_model::{Address, ProcessKey, printable::printable_bytes, sockets::UnixDiagSocket};

/// What is known of the node's Unix sockets at one moment.
#[derive(Clone, Debug, Default)]
pub struct UnixListing {
    pub sockets: Vec<UnixDiagSocket>,
    cookies: HashSet<u64>,
    by_inode: HashMap<u64, usize>,
    listening: HashSet<Vec<u8>>,
    /// Namespaces that were read.
    namespaces: HashSet<u32>,
    /// The processes that hold them, by inode.
    owners: HashMap<u64, ProcessKey>,
}

impl UnixListing {
    /// From what each namespace said.
    pub fn new(found: Vec<(u32, Vec<UnixDiagSocket>)>) -> Self {
        let mut listing = Self::default();
        for (network_namespace, sockets) in found {
            listing.add(network_namespace, sockets);
        }
        listing
    }

    /// Inodes whose owners matter, each with its network namespace.
    pub fn inodes(&self) -> HashMap<u64, u32> {
        let sockets = self.sockets.iter().filter(|socket| socket.inode != 0);
        sockets
            .map(|socket| (socket.inode, socket.network_namespace))
            .collect()
    }

    pub fn set_owners(&mut self, owners: HashMap<u64, ProcessKey>) {
        self.owners = owners;
    }

    /// Keeps what an earlier reading found out.
    pub fn take_owners(&mut self, earlier: &mut Self) {
        self.owners = std::mem::take(&mut earlier.owners);
    }

    pub(super) fn add(&mut self, network_namespace: u32, sockets: Vec<UnixDiagSocket>) {
        self.namespaces.insert(network_namespace);
        for socket in sockets {
            self.cookies.insert(socket.cookie);
            if socket.listening {
                self.listening.insert(socket.name.clone());
            }
            if socket.inode != 0 {
                self.by_inode.insert(socket.inode, self.sockets.len());
            }
            self.sockets.push(socket);
        }
    }

    #[cfg(test)]
    pub(super) fn own(&mut self, inode: u64, pid: u32) {
        let process = ProcessKey {
            pid,
            start_ticks: 1,
        };
        self.owners.insert(inode, process);
    }

    /// Whether a socket was gone; `None` when its namespace could not be read.
    pub fn is_gone(&self, network_namespace: u32, cookie: u64) -> Option<bool> {
        self.namespaces
            .contains(&network_namespace)
            .then(|| !self.cookies.contains(&cookie))
    }

    pub fn by_inode(&self, inode: u64) -> Option<&UnixDiagSocket> {
        self.sockets.get(*self.by_inode.get(&inode)?)
    }

    /// Whether a socket listens under the name.
    pub fn listens(&self, name: &[u8]) -> bool {
        self.listening.contains(name)
    }

    /// The process that has the socket.
    pub fn owner(&self, inode: u64) -> Option<ProcessKey> {
        if inode == 0 {
            return None;
        }
        self.owners.get(&inode).copied()
    }
}

/// A name as users know it: its path, or `@` and the abstract name.
pub(super) fn shown(name: &[u8]) -> String {
    match name {
        [] => Address::UNNAMED.to_owned(),
        [0, rest @ ..] => format!("@{}", printable_bytes(rest)),
        path => {
            // A path ends at its first zero byte, which the length may include.
            let end = path.iter().position(|byte| *byte == 0);
            printable_bytes(path.get(..end.unwrap_or(path.len())).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_without_control_characters() {
        assert_eq!(shown(b""), "unnamed");
        assert_eq!(shown(b"/run/a.sock\0"), "/run/a.sock");
        assert_eq!(shown(b"\0abc\0d"), "@abc\\x00d");
        assert_eq!(shown(b"/tmp/\x1b[31m"), "/tmp/\\x1b[31m");
        assert_eq!(shown("/a\u{202e}b".as_bytes()), "/a\\u{202e}b");
    }
}
