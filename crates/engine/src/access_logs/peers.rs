//! Which processes of this node hold ends of connections: of those to the agent, and of those that entries tell of.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs,
    net::{IpAddr, SocketAddr},
    os::unix::fs::MetadataExt as _,
};

use profiler_host::{
    process::ProcessTable,
    sockets::{Owners, Sources, list_namespaces},
};
use profiler_model::{
    ProcessKey,
    sockets::{DiagSocket, Listing},
};
use profiler_network::requests::{OwnSocket, SocketNow};

/// An end of a connection that is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought {
    pub(super) end: SocketAddr,
    pub(super) other: SocketAddr,
    /// Inode of the network namespace that the other end is in; the addresses of loopback are in every one.
    pub(super) namespace: Option<u64>,
    /// A socket that listens at the end's address in that namespace will do.
    pub(super) may_listen: bool,
}

/// Inode of the agent's own network namespace.
pub(super) fn own_namespace() -> Option<u64> {
    let own = fs::metadata("/proc/self/ns/net");
    own.map(|namespace| namespace.ino()).ok()
}

/// Sockets by network namespace.
pub(super) type Listings = Vec<(u32, Listing)>;

/// The sockets of every network namespace of the node, and of processes that have just begun. Blocks.
pub(super) fn list(table: &ProcessTable) -> Listings {
    table.refresh();
    list_namespaces(table, Sources::default())
}

/// Who holds an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) process: ProcessKey,
    /// By both addresses of the connection; otherwise it may be one to whom the end passes on what comes.
    pub(super) is_exact: bool,
}

/// The processes that hold ends, in the order of `sought`. Blocks.
pub(super) fn find(
    sought: &[Sought],
    listings: &Listings,
    table: &ProcessTable,
    owners: &mut Owners,
) -> Vec<Option<Holder>> {
    let sockets: Vec<(u32, &DiagSocket)> = listings
        .iter()
        .flat_map(|(namespace, listing)| {
            let sockets = listing.sockets.iter();
            sockets.map(move |socket| (*namespace, socket))
        })
        .collect();
    // By the address of their own: a connection has one of two ends there.
    let mut by_local: HashMap<_, Vec<(u32, &DiagSocket)>> = HashMap::new();
    for (namespace, socket) in &sockets {
        let at = by_local.entry(plain(socket.local)).or_default();
        at.push((*namespace, *socket));
    }
    let place = |one: &Sought| {
        let end = plain(one.end);
        let own = one.namespace.and_then(|inode| u32::try_from(inode).ok());
        let is_near = |namespace: u32| !end.ip().is_loopback() || Some(namespace) == own;
        let there = by_local.get(&end).into_iter().flatten().copied();
        let there = there.filter(|(namespace, _)| is_near(*namespace));
        let found = other_end(there, one.end, one.other);
        found.or_else(|| listener(&sockets, own.filter(|_| one.may_listen)?, end))
    };
    let places: Vec<Option<Place>> = sought.iter().map(place).collect();
    let wanted = places.iter().flatten();
    let wanted: HashMap<u64, u32> = wanted.map(|place| (place.inode, place.namespace)).collect();
    owners.find(&wanted, table, &BTreeSet::new());
    let holders = owners.processes();
    let holder = |place: Option<Place>| {
        let Place {
            inode, is_exact, ..
        } = place?;
        let process = *holders.get(&inode)?;
        Some(Holder { process, is_exact })
    };
    places.into_iter().map(holder).collect()
}

/// What the kernel says of a connection, where the list tells: one without round-trip times has no retransmits either.
pub(super) fn measured(socket: &DiagSocket) -> Option<SocketNow> {
    let is_measured = !socket.listening && socket.rtt_us > 0;
    is_measured.then_some(SocketNow {
        rtt_us: socket.rtt_us,
        retransmits: socket.retransmits,
    })
}

/// Sockets of connections by their own address and the other one, in the order of `sought`.
pub(super) fn sockets(sought: &[OwnSocket], listings: &Listings) -> Vec<Option<SocketNow>> {
    let mut by_ends: HashMap<(SocketAddr, SocketAddr), Vec<(u32, SocketNow)>> = HashMap::new();
    for (namespace, listing) in listings {
        for socket in &listing.sockets {
            let Some(now) = measured(socket) else {
                continue;
            };
            let ends = (plain(socket.local), plain(socket.remote));
            by_ends.entry(ends).or_default().push((*namespace, now));
        }
    }
    let find = |one: &OwnSocket| {
        let own = one.namespace.and_then(|inode| u32::try_from(inode).ok());
        let found = by_ends.get(&(plain(one.local), plain(one.remote)))?;
        match &found[..] {
            [(namespace, now)] if !one.local.ip().is_loopback() || Some(*namespace) == own => {
                Some(*now)
            }
            // Whoever has a network namespace can give himself any address.
            several => {
                let own = several
                    .iter()
                    .find(|(namespace, _)| Some(*namespace) == own);
                own.map(|(_, now)| *now)
            }
        }
    };
    sought.iter().map(find).collect()
}

/// Where a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    namespace: u32,
    inode: u64,
    is_exact: bool,
}

/// The socket at the other end: the only one with both addresses. Where the address of this end was translated on the way, the only one
/// with that address of its own. None where several could be it: whoever has a network namespace can give himself any address.
fn other_end<'a>(
    sockets: impl Iterator<Item = (u32, &'a DiagSocket)>,
    peer: SocketAddr,
    local: SocketAddr,
) -> Option<Place> {
    let (peer, local) = (plain(peer), plain(local));
    let (mut exact, mut translated) = (Vec::new(), Vec::new());
    for (namespace, socket) in sockets {
        if socket.listening || socket.inode == 0 || plain(socket.local) != peer {
            continue;
        }
        let found = if plain(socket.remote) == local {
            &mut exact
        } else {
            &mut translated
        };
        found.push((namespace, socket.inode));
    }
    let is_exact = !exact.is_empty();
    let (namespace, inode) = match (&exact[..], &translated[..]) {
        ([one], _) => *one,
        ([], [one]) if !peer.ip().is_loopback() => *one,
        _ => return None,
    };
    Some(Place {
        namespace,
        inode,
        is_exact,
    })
}

/// The only socket of a namespace that listens at an address of it: the connection itself has ended, or has not been
/// accepted.
fn listener(sockets: &[(u32, &DiagSocket)], namespace: u32, wanted: SocketAddr) -> Option<Place> {
    let own = || sockets.iter().filter(|(inode, _)| *inode == namespace);
    let is_here = wanted.ip().is_loopback()
        || own().any(|(_, socket)| plain(socket.local).ip() == wanted.ip());
    let listening = own().filter(|(_, socket)| {
        let local = plain(socket.local);
        socket.listening
            && socket.inode != 0
            && local.port() == wanted.port()
            && (local.ip() == wanted.ip() || local.ip().is_unspecified())
    });
    let inodes: HashSet<u64> = listening.map(|(_, socket)| socket.inode).collect();
    match inodes.into_iter().collect::<Vec<_>>()[..] {
        [inode] if is_here => Some(Place {
            namespace,
            inode,
            is_exact: false,
        }),
        _ => None,
    }
}

/// A mapped address as IPv4.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
        ip @ IpAddr::V4(_) => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::access_logs) fn socket(inode: u64, local: &str, remote: &str) -> DiagSocket {
        DiagSocket {
            cookie: None,
            inode,
            listening: false,
            is_ipv6: false,
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            sent_bytes: 0,
            received_bytes: 0,
            retransmits: 0,
            rtt_us: 0,
        }
    }

    fn found(sockets: &[DiagSocket], peer: &str, local: &str) -> Option<u64> {
        let all = sockets.iter().map(|socket| (1, socket));
        other_end(all, peer.parse().unwrap(), local.parse().unwrap()).map(|place| place.inode)
    }

    #[test]
    fn the_other_end_has_both_addresses() {
        let sockets = [
            socket(1, "127.0.0.1:7118", "127.0.0.1:40000"),
            socket(2, "127.0.0.1:40000", "127.0.0.1:7118"),
            socket(3, "10.0.0.7:40000", "10.0.0.1:7118"),
            socket(4, "[::ffff:10.0.0.8]:40000", "[::ffff:10.0.0.1]:7118"),
        ];
        assert_eq!(
            found(&sockets, "127.0.0.1:40000", "127.0.0.1:7118"),
            Some(2)
        );
        assert_eq!(found(&sockets, "10.0.0.7:40000", "10.0.0.1:7118"), Some(3));
        assert_eq!(found(&sockets, "10.0.0.8:40000", "10.0.0.1:7118"), Some(4));
        assert_eq!(found(&sockets, "127.0.0.1:40001", "127.0.0.1:7118"), None);
        let exactness = |peer: &str, local: &str| {
            let all = sockets.iter().map(|socket| (1, socket));
            let place = other_end(all, peer.parse().unwrap(), local.parse().unwrap());
            place.map(|place| place.is_exact)
        };
        assert_eq!(exactness("10.0.0.7:40000", "10.0.0.1:7118"), Some(true));
        // An application behind its sidecar has the address that the sidecar's client knows.
        assert_eq!(exactness("10.0.0.7:40000", "10.0.0.1:1"), Some(false));
        // Somebody has given himself the same address.
        let spoofed = [
            sockets[2].clone(),
            socket(9, "10.0.0.7:40000", "10.0.0.1:7118"),
        ];
        assert_eq!(found(&spoofed, "10.0.0.7:40000", "10.0.0.1:7118"), None);
    }

    #[test]
    fn a_translated_address_is_enough_where_there_is_one_only() {
        let one = socket(5, "10.0.0.7:40000", "10.96.0.10:7118");
        let local = "192.0.2.1:7118";
        assert_eq!(
            found(std::slice::from_ref(&one), "10.0.0.7:40000", local),
            Some(5)
        );
        let two = [one, socket(6, "10.0.0.7:40000", "10.96.0.11:80")];
        assert_eq!(found(&two, "10.0.0.7:40000", local), None);
        let loopback = socket(7, "127.0.0.1:40000", "127.0.0.1:9");
        assert_eq!(
            found(&[loopback], "127.0.0.1:40000", "127.0.0.1:7118"),
            None
        );
    }
}
