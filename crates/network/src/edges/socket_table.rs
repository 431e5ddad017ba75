//! The sockets of the whole node with their processes: who is at the other end, and what was there
//! before a task began.

use core::net::{IpAddr, SocketAddr};
use std::collections::{HashMap, HashSet};

use profiler_model::{
    ProcessKey,
    sockets::{DiagSocket, Ends, Listing, Original},
};

use super::{
    flow::Flow,
    listeners::Listeners,
    nat::{Followed, Translations},
};

/// Sockets that are asked where their connection was to go, in one reading of the node.
const MAX_QUESTIONS: usize = 256;

/// Where a socket is, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Inode.
    pub network_namespace: u32,
    /// `None`: no process that can be read holds it.
    pub process: Option<ProcessKey>,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Inode; `None`: no socket of this node is known to be it.
    pub network_namespace: Option<u32>,
    pub process: Option<ProcessKey>,
    /// The peer's own address and port, which redirection hides from this end.
    pub local: SocketAddr,
    /// Where the peer thinks that it is connected to.
    pub remote: SocketAddr,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct SocketTable {
    sockets: Vec<(DiagSocket, Owner)>,
    by_local: HashMap<SocketAddr, Vec<usize>>,
    by_remote: HashMap<SocketAddr, Vec<usize>>,
    listeners: Listeners,
    addresses: HashMap<IpAddr, HashSet<u32>>,
    translations: Translations,
    /// By cookie.
    originals: HashMap<u64, Original>,
    originals_failed: Option<String>,
    /// Namespaces whose sockets are known by their cookies.
    with_cookies: HashSet<u32>,
    /// Why those of others are not.
    without_diag: Option<String>,
}

impl SocketTable {
    /// From what each namespace said, and who holds which inode.
    pub fn new(found: Vec<(u32, Listing)>, holder_of: impl Fn(u64) -> Option<ProcessKey>) -> Self {
        let mut socket_table = Self::default();
        for (network_namespace, listing) in found {
            let Listing {
                sockets,
                addresses,
                tracked,
                without_diag,
            } = listing;
            match without_diag {
                None => drop(socket_table.with_cookies.insert(network_namespace)),
                Some(reason) => socket_table.without_diag = Some(reason),
            }
            socket_table.translations.add(network_namespace, tracked);
            socket_table.listeners.know(network_namespace);
            for address in addresses {
                socket_table.add_address(network_namespace, address);
            }
            for socket in sockets {
                let owner = Owner {
                    network_namespace,
                    process: holder_of(socket.inode),
                };
                socket_table.add(socket, owner);
            }
        }
        socket_table
    }

    fn add(&mut self, socket: DiagSocket, owner: Owner) {
        self.add_address(owner.network_namespace, socket.local.ip());
        if socket.listening {
            self.listeners
                .add(owner.network_namespace, socket.local, owner.process);
        } else {
            let index = self.sockets.len();
            self.by_local.entry(socket.local).or_default().push(index);
            self.by_remote.entry(socket.remote).or_default().push(index);
        }
        self.sockets.push((socket, owner));
    }

    fn add_address(&mut self, network_namespace: u32, address: IpAddr) {
        if !address.is_unspecified() && !address.is_loopback() {
            let namespaces = self.addresses.entry(address).or_default();
            namespaces.insert(network_namespace);
        }
    }

    /// Asks servers' sockets for what connection tracking did not say: `ask` answers with the socket's cookie
    /// beside. What `before` knows is not asked again.
    pub fn ask_for_originals(
        &mut self,
        before: &Self,
        ask: impl Fn(&DiagSocket) -> Result<(u64, Original), String>,
    ) {
        let mut questions = 0;
        for (socket, owner) in &self.sockets {
            let namespace = owner.network_namespace;
            let is_server = self.listeners.listens(namespace, socket.local) == Some(true);
            if socket.listening || !is_server || self.translations.knows(namespace) {
                continue;
            }
            if let Some(cookie) = socket.cookie
                && let Some(answer) = before.originals.get(&cookie)
            {
                self.originals.insert(cookie, *answer);
                continue;
            }
            if owner.process.is_none() {
                continue;
            }
            questions += 1;
            if questions > MAX_QUESTIONS {
                return;
            }
            match ask(socket) {
                Ok((cookie, answer)) => drop(self.originals.insert(cookie, answer)),
                Err(reason) => self.originals_failed = Some(reason),
            }
        }
    }

    /// Every socket, also those that listen.
    pub fn sockets(&self) -> impl Iterator<Item = &(DiagSocket, Owner)> {
        self.sockets.iter()
    }

    /// The processes that own a socket.
    pub fn processes(&self) -> impl Iterator<Item = ProcessKey> {
        self.sockets.iter().filter_map(|(_, owner)| owner.process)
    }

    pub fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// Why redirected connections may not be recognised: connection tracking, and sockets.
    pub fn failures(&self) -> (Option<&str>, Option<&str>) {
        (
            self.translations.failure(),
            self.originals_failed.as_deref(),
        )
    }

    /// Why sockets of some namespace are not known by their cookies.
    pub fn without_diag(&self) -> Option<&str> {
        self.without_diag.as_deref()
    }

    /// Whether a socket of the namespace that is there is known by its cookie.
    pub fn knows_cookies(&self, network_namespace: u32) -> bool {
        self.with_cookies.contains(&network_namespace)
    }

    /// Namespaces whose translations were not all read.
    pub fn cut(&self) -> usize {
        self.translations.cut()
    }

    /// What the server sees of a client's connection.
    pub fn server_view(&self, client: &Flow) -> Followed {
        let own = Ends {
            client: client.local,
            server: client.remote,
        };
        self.translations.server_view(client.network_namespace, own)
    }

    /// What the client sees of a server's connection.
    pub fn client_view(&self, server: &Flow) -> Followed {
        let own = Ends {
            client: server.remote,
            server: server.local,
        };
        let followed = self.translations.client_view(server.network_namespace, own);
        match (followed, self.originals.get(&server.cookie)) {
            (Followed::Same, Some(Original::At(address))) => Followed::To(Ends {
                server: *address,
                ..own
            }),
            (followed, _) => followed,
        }
    }

    /// Whether a redirection of a server's connection would be known.
    pub fn knows_destination(&self, server: &Flow) -> bool {
        self.translations.knows(server.network_namespace)
            || self.originals.contains_key(&server.cookie)
    }

    /// The namespace that has the address, as seen from another: loopback is everybody's own.
    pub fn namespace_of(&self, address: IpAddr, seen_from: u32) -> Option<u32> {
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

    /// The socket on this node that is the other end of a connection of the namespace, by what that
    /// end sees.
    pub fn peer(
        &self,
        network_namespace: u32,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<Peer> {
        let confined = local.ip().is_loopback() || remote.ip().is_loopback();
        self.only(&self.by_local, local, |socket, owner| {
            socket.remote == remote && (!confined || owner.network_namespace == network_namespace)
        })
    }

    /// The server's end of a connection that was redirected on its way, where no translation says
    /// so: it knows the client by its address and port, and no other socket is its client.
    pub fn redirected_server(&self, client: &Flow) -> Option<Peer> {
        self.only(&self.by_remote, client.local, |socket, owner| {
            let namespace = owner.network_namespace;
            let near =
                namespace == client.network_namespace || socket.local.ip() == client.remote.ip();
            near && self.listeners.listens(namespace, socket.local) == Some(true)
                && self.peer(namespace, socket.remote, socket.local).is_none()
        })
    }

    /// The client's end of such a connection.
    pub fn redirected_client(&self, server: &Flow) -> Option<Peer> {
        self.only(&self.by_local, server.remote, |socket, owner| {
            let namespace = owner.network_namespace;
            let near =
                namespace == server.network_namespace || socket.remote.ip() == server.local.ip();
            near && self.peer(namespace, socket.remote, socket.local).is_none()
        })
    }

    /// The only socket at `address` that fits.
    fn only(
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
            network_namespace: Some(owner.network_namespace),
            process: owner.process,
            local: socket.local,
            remote: socket.remote,
        })
    }
}
