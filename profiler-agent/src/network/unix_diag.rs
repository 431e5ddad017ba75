//! The Unix sockets of network namespaces, as the kernel lists them (`unix_diag` over netlink), with
//! their processes.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    io,
    os::unix::ffi::OsStrExt as _,
};

use netlink_packet_sock_diag::{
    SockDiagMessage,
    unix::{ShowFlags, StateFlags, UnixRequest, UnixResponse, nlas::UnixDiagName},
};

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use profiler_model::{ProcessKey, printable::printable_bytes};

use super::{
    namespaces,
    netlink::{Next, list},
    owners::Owners,
};
use crate::process::ProcessTable;

/// Sockets of one namespace that are kept.
const MAX_SOCKETS: usize = 262_144;
/// State of `include/net/tcp_states.h`.
const LISTEN: u8 = 10;

/// One socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnixDiagSocket {
    pub(crate) cookie: u64,
    pub(crate) inode: u64,
    /// 0: no peer, or one that no process has.
    pub(crate) peer_inode: u64,
    /// `SOCK_*`.
    pub(crate) kind: u32,
    pub(crate) listening: bool,
    pub(crate) network_namespace: u32,
    /// As it stands in `sun_path`: abstract names begin with a zero byte.
    pub(crate) name: Vec<u8>,
}

/// What is known of the node's Unix sockets at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnixListing {
    pub(crate) sockets: Vec<UnixDiagSocket>,
    cookies: HashSet<u64>,
    by_inode: HashMap<u64, usize>,
    listening: HashSet<Vec<u8>>,
    /// Namespaces that were read.
    namespaces: HashSet<u32>,
    owners: Owners,
}

impl UnixListing {
    /// Reads the sockets of the `wanted` namespaces, or of every one that has a process. Blocks.
    pub(crate) fn read(table: &ProcessTable, wanted: Option<&BTreeSet<u32>>) -> Self {
        let mut listing = Self::default();
        for (inode, pids) in namespaces::with_processes(table) {
            if wanted.is_some_and(|wanted| !wanted.contains(&inode)) {
                continue;
            }
            let sockets = namespaces::ask_inside(inode, &pids, || sockets_here(inode));
            if let Ok(sockets) = sockets {
                listing.add(inode, sockets);
            }
        }
        listing
    }

    /// Finds out whose the sockets are. Where several processes hold one, one of `preferred` is its
    /// owner. Blocks.
    pub(crate) fn find_owners(&mut self, table: &ProcessTable, preferred: &BTreeSet<u32>) {
        let sockets = self.sockets.iter().filter(|socket| socket.inode != 0);
        let wanted: HashMap<u64, u32> = sockets
            .map(|socket| (socket.inode, socket.network_namespace))
            .collect();
        self.owners.find(&wanted, table, preferred);
    }

    /// Keeps what an earlier reading found out.
    pub(crate) fn take_owners(&mut self, earlier: &mut Self) {
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
        self.owners.hold(inode, pid);
    }

    /// Whether a socket was gone; `None` when its namespace could not be read.
    pub(crate) fn is_gone(&self, network_namespace: u32, cookie: u64) -> Option<bool> {
        self.namespaces
            .contains(&network_namespace)
            .then(|| !self.cookies.contains(&cookie))
    }

    pub(crate) fn by_inode(&self, inode: u64) -> Option<&UnixDiagSocket> {
        self.sockets.get(*self.by_inode.get(&inode)?)
    }

    /// Whether a socket listens under the name.
    pub(crate) fn listens(&self, name: &[u8]) -> bool {
        self.listening.contains(name)
    }

    /// The process that has the socket.
    pub(crate) fn owner(&self, inode: u64) -> Option<ProcessKey> {
        if inode == 0 {
            return None;
        }
        self.owners.holder(inode).map(|holder| holder.process)
    }
}

/// What a socket without a name is called.
pub(crate) const UNNAMED: &str = "unnamed";

/// A name as users know it: its path, or `@` and the abstract name.
pub(crate) fn shown(name: &[u8]) -> String {
    match name {
        [] => UNNAMED.to_owned(),
        [0, rest @ ..] => format!("@{}", printable_bytes(rest)),
        path => {
            // A path ends at its first zero byte, which the length may include.
            let end = path.iter().position(|byte| *byte == 0);
            printable_bytes(path.get(..end.unwrap_or(path.len())).unwrap_or_default())
        }
    }
}

/// Lists the sockets of the calling thread's namespace.
fn sockets_here(network_namespace: u32) -> io::Result<Vec<UnixDiagSocket>> {
    let mut found = Vec::new();
    let question = SockDiagMessage::UnixRequest(UnixRequest {
        // The crate knows two states; datagram sockets have others.
        state_flags: StateFlags::from_bits_retain(u32::MAX),
        inode: 0,
        show_flags: ShowFlags::NAME | ShowFlags::PEER,
        cookie: [0xff; 8],
    });
    list(NETLINK_SOCK_DIAG, question, |answer| {
        if let SockDiagMessage::UnixResponse(response) = answer {
            found.push(decode(&response, network_namespace));
        }
        if found.len() < MAX_SOCKETS {
            Next::More
        } else {
            Next::Enough
        }
    })?;
    Ok(found)
}

fn decode(response: &UnixResponse, network_namespace: u32) -> UnixDiagSocket {
    let header = &response.header;
    UnixDiagSocket {
        cookie: u64::from_ne_bytes(header.cookie),
        inode: u64::from(header.inode),
        peer_inode: response.peer().map_or(0, u64::from),
        kind: u32::from(header.kind),
        listening: header.state == LISTEN,
        network_namespace,
        name: match response.name() {
            None => Vec::new(),
            Some(UnixDiagName::Pathname(path)) => path.as_bytes().to_vec(),
            Some(UnixDiagName::Abstract(name)) => [&[0], name.as_slice()].concat(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    };

    use super::*;

    #[test]
    fn names_are_shown_without_control_characters() {
        assert_eq!(shown(b""), "unnamed");
        assert_eq!(shown(b"/run/a.sock\0"), "/run/a.sock");
        assert_eq!(shown(b"\0abc\0d"), "@abc\\x00d");
        assert_eq!(shown(b"/tmp/\x1b[31m"), "/tmp/\\x1b[31m");
        assert_eq!(shown("/a\u{202e}b".as_bytes()), "/a\\u{202e}b");
    }

    #[test]
    fn own_sockets_are_listed_with_their_names_and_peers() {
        let name = format!("kinds-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let client = UnixStream::connect_addr(&address).unwrap();
        let (server, _from) = listener.accept().unwrap();
        let inode = |end: &UnixStream| rustix::fs::fstat(end).unwrap().st_ino;
        let mut listing = UnixListing::default();
        listing.add(7, sockets_here(7).unwrap());
        let bytes = [b"\0", name.as_bytes()].concat();
        assert!(listing.listens(&bytes));
        let end = listing.by_inode(inode(&client)).unwrap();
        assert_eq!(end.peer_inode, inode(&server));
        assert!(end.name.is_empty());
        let other = listing.by_inode(inode(&server)).unwrap();
        assert_eq!(other.name, bytes);
        assert_eq!(listing.is_gone(7, other.cookie), Some(false));
        assert_eq!(listing.is_gone(7, u64::MAX), Some(true));
        assert_eq!(listing.is_gone(8, other.cookie), None);
        let table = ProcessTable::new();
        table.refresh();
        listing.find_owners(&table, &BTreeSet::new());
        let owner = listing.owner(inode(&client));
        assert_eq!(owner.map(|owner| owner.pid), Some(std::process::id()));
    }
}
