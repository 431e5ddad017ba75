//! The sockets of the whole node with their processes: who is at the other end, and what was there
//! before a task began.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs::File,
    net::{IpAddr, SocketAddr},
    os::linux::fs::MetadataExt as _,
};

use super::{
    diag::{DiagSocket, sockets_of},
    flow::{Direction, Flow},
    owners::socket_owners,
};
use crate::process::ProcessTable;

/// Where a socket is, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Inode.
    pub(crate) network_namespace: u32,
    /// `None`: no process that can be read holds it.
    pub(crate) pid: Option<u32>,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) pid: Option<u32>,
    /// The peer's own address and port, which redirection hides from this end.
    pub(crate) local: SocketAddr,
    /// Where the peer thinks that it is connected to.
    pub(crate) remote: SocketAddr,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    sockets: Vec<(DiagSocket, Owner)>,
    by_local: HashMap<SocketAddr, Vec<usize>>,
    by_remote: HashMap<SocketAddr, Vec<usize>>,
    listeners: HashMap<(u32, u16), Option<u32>>,
    addresses: HashMap<IpAddr, HashSet<u32>>,
    namespaces: HashSet<u32>,
}

impl Directory {
    /// Reads the sockets of every network namespace that has a process. Where several processes hold
    /// a socket, one of `preferred` is its owner. Blocks.
    pub(crate) fn read(table: &ProcessTable, preferred: &BTreeSet<u32>) -> Self {
        table.refresh();
        let mut namespaces: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for process in table.snapshot() {
            if let Some(inode) = process.network_namespace {
                namespaces.entry(inode).or_default().push(process.key.pid);
            }
        }
        let mut found = Vec::new();
        for (inode, pids) in namespaces {
            let Some(namespace) = pids.iter().find_map(|pid| open(*pid, inode)) else {
                continue;
            };
            match sockets_of(&namespace) {
                Ok(sockets) => found.push((u32::try_from(inode).unwrap_or(0), sockets)),
                Err(error) => tracing::debug!(inode, %error, "list the sockets of a namespace"),
            }
        }
        Self::new(found, &socket_owners(preferred))
    }

    /// From the sockets of each namespace, and who holds which inode.
    pub(super) fn new(found: Vec<(u32, Vec<DiagSocket>)>, owners: &HashMap<u64, u32>) -> Self {
        let mut directory = Self::default();
        for (network_namespace, sockets) in found {
            directory.namespaces.insert(network_namespace);
            for socket in sockets {
                let owner = Owner {
                    network_namespace,
                    pid: owners.get(&socket.inode).copied(),
                };
                directory.add(socket, owner);
            }
        }
        directory
    }

    fn add(&mut self, socket: DiagSocket, owner: Owner) {
        if !socket.local.ip().is_unspecified() && !socket.local.ip().is_loopback() {
            self.addresses
                .entry(socket.local.ip())
                .or_default()
                .insert(owner.network_namespace);
        }
        if socket.listening {
            let key = (owner.network_namespace, socket.local.port());
            let pid = self.listeners.entry(key).or_default();
            *pid = pid.or(owner.pid);
        } else {
            let index = self.sockets.len();
            self.by_local.entry(socket.local).or_default().push(index);
            self.by_remote.entry(socket.remote).or_default().push(index);
        }
        self.sockets.push((socket, owner));
    }

    /// Every socket, also those that listen.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &(DiagSocket, Owner)> {
        self.sockets.iter()
    }

    /// The processes that own a socket.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> {
        self.sockets.iter().filter_map(|(_, owner)| owner.pid)
    }

    /// Whether something listens on the port; `None` when the namespace could not be read.
    pub(crate) fn listens(&self, network_namespace: u32, port: u16) -> Option<bool> {
        self.namespaces
            .contains(&network_namespace)
            .then(|| self.listeners.contains_key(&(network_namespace, port)))
    }

    /// The process that listens on the port.
    pub(crate) fn listener(&self, network_namespace: u32, port: u16) -> Option<u32> {
        self.listeners.get(&(network_namespace, port)).copied()?
    }

    /// The namespace that has the address, as seen from another: loopback is everybody's own.
    pub(crate) fn namespace_of(&self, address: IpAddr, seen_from: u32) -> Option<u32> {
        if address.is_loopback() {
            return Some(seen_from);
        }
        let found = self.addresses.get(&address)?;
        match found.iter().next() {
            // One address in two namespaces: not told apart.
            Some(only) if found.len() == 1 => Some(*only),
            _ => None,
        }
    }

    /// The other end of a connection that is open on this node.
    pub(crate) fn peer(&self, flow: &Flow, direction: Direction) -> Option<Peer> {
        let mirrored = self.candidates(&self.by_local, flow.remote, |socket, owner| {
            socket.remote == flow.local && is_reachable(flow, owner)
        });
        if let Some(peer) = mirrored {
            return Some(peer);
        }
        match direction {
            // Redirected on its way: the server knows the client by its address and port.
            Direction::Client => self.candidates(&self.by_remote, flow.local, |socket, owner| {
                owner.network_namespace == flow.network_namespace
                    || socket.local.ip() == flow.remote.ip()
            }),
            Direction::Server => self.candidates(&self.by_local, flow.remote, |socket, owner| {
                owner.network_namespace == flow.network_namespace
                    || socket.remote.ip() == flow.local.ip()
            }),
        }
    }

    /// The only socket at `address` that fits.
    fn candidates(
        &self,
        index: &HashMap<SocketAddr, Vec<usize>>,
        address: SocketAddr,
        fits: impl Fn(&DiagSocket, &Owner) -> bool,
    ) -> Option<Peer> {
        let mut found = index
            .get(&address)?
            .iter()
            .filter_map(|index| self.sockets.get(*index))
            .filter(|(socket, owner)| fits(socket, owner));
        let (socket, owner) = found.next()?;
        if found.next().is_some() {
            return None;
        }
        Some(Peer {
            pid: owner.pid,
            local: socket.local,
            remote: socket.remote,
        })
    }
}

/// Loopback connections stay in their namespace.
fn is_reachable(flow: &Flow, owner: &Owner) -> bool {
    !flow.remote.ip().is_loopback() || owner.network_namespace == flow.network_namespace
}

/// The namespace of a process, when it still is in the one with this inode.
fn open(pid: u32, inode: u64) -> Option<File> {
    let file = File::open(format!("/proc/{pid}/ns/net")).ok()?;
    (file.metadata().ok()?.st_ino() == inode).then_some(file)
}
