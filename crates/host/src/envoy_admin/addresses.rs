//! Where an Envoy's admin interface can be: addresses on which the process itself listens.

use std::{
    collections::HashSet,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use profiler_model::ProcessKey;
use rustix::fs::{Dir, Mode, OFlags, openat, readlinkat};

use super::EnvoyAdminError;
use crate::sockets::{enter_namespace_of, sockets_of};

/// Istio's port, which is tried first.
const ISTIO_PORT: u16 = 15000;
/// Ports that are tried first, and on all addresses too. Any other port may be one that Envoy proxies, and a
/// request to it would reach a service, and be counted among the user's.
const USUAL_PORTS: [u16; 5] = [ISTIO_PORT, 9901, 19000, 9001, 8001];
/// Addresses that are tried.
const MOST: usize = 8;
/// Descriptors that are looked at.
const MAX_DESCRIPTORS: usize = 1 << 17;

/// Moves the calling thread into the network namespace of a process, for good.
pub fn enter(process: ProcessKey) -> Result<(), EnvoyAdminError> {
    enter_namespace_of(process).map_err(EnvoyAdminError::Namespace)
}

/// The addresses of a process that may be its admin interface, the likeliest first.
pub fn candidates(pid: u32) -> Result<Vec<SocketAddr>, EnvoyAdminError> {
    let own = socket_inodes(pid).map_err(EnvoyAdminError::Sockets)?;
    let sockets = sockets_of(pid)
        .map_err(EnvoyAdminError::Sockets)?
        .into_iter();
    let listening = sockets.filter(|socket| socket.listening && own.contains(&socket.inode));
    Ok(likeliest(listening.map(|socket| socket.local)))
}

/// Those of the candidates that have a usual port: what is asked again and again must not be what Envoy proxies.
pub fn usual_candidates(pid: u32) -> Result<Vec<SocketAddr>, EnvoyAdminError> {
    let mut found = candidates(pid)?;
    found.retain(|address| USUAL_PORTS.contains(&address.port()));
    Ok(found)
}

fn likeliest(listening: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut found: Vec<_> = listening
        .filter_map(|address| {
            let usual = USUAL_PORTS.iter().position(|port| *port == address.port());
            let everywhere = address.ip().is_unspecified();
            let may_be = address.ip().is_loopback() || (everywhere && usual.is_some());
            if !may_be {
                return None;
            }
            Some((usual.is_none(), everywhere, usual, reachable(address)))
        })
        .collect();
    found.sort_unstable();
    let mut addresses = Vec::new();
    for (.., address) in found {
        if !addresses.contains(&address) && addresses.len() < MOST {
            addresses.push(address);
        }
    }
    addresses
}

/// An address that leads to a socket which listens on this one.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Inodes of the sockets that a process holds open.
fn socket_inodes(pid: u32) -> io::Result<HashSet<u64>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = format!("/proc/{pid}/fd");
    let folder = openat(rustix::fs::CWD, path, flags, Mode::empty())?;
    let mut inodes = HashSet::new();
    for entry in Dir::read_from(&folder)?.flatten().take(MAX_DESCRIPTORS) {
        let Ok(target) = readlinkat(&folder, entry.file_name(), Vec::new()) else {
            continue;
        };
        let inode = target
            .to_str()
            .ok()
            .and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'))
            .and_then(|text| text.parse::<u64>().ok());
        inodes.extend(inode);
    }
    Ok(inodes)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn check(listening: &[&str], expected: &[&str]) {
        let parse = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        assert_eq!(likeliest(parse(listening).into_iter()), parse(expected));
    }

    #[test]
    fn usual_ports_come_first_and_of_those_istio_s_on_loopback() {
        check(
            &[
                "0.0.0.0:15006",
                "0.0.0.0:15000",
                "127.0.0.1:9080",
                "[::1]:7000",
                "127.0.0.1:15000",
                "127.0.0.1:9901",
                "0.0.0.0:19000",
            ],
            &[
                "127.0.0.1:15000",
                "127.0.0.1:9901",
                "127.0.0.1:19000",
                "127.0.0.1:9080",
                "[::1]:7000",
            ],
        );
    }

    #[test]
    fn what_may_be_proxied_is_not_asked() {
        check(&["0.0.0.0:15001", "10.0.0.7:15000", "0.0.0.0:8080"], &[]);
        check(&["0.0.0.0:9901"], &["127.0.0.1:9901"]);
        check(&["[::]:9901"], &["[::1]:9901"]);
    }

    #[test]
    fn only_the_process_s_own_sockets_are_tried_and_only_some() {
        let mine = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = candidates(std::process::id()).unwrap();
        assert!(found.len() <= MOST, "{found:?}");
        let own = socket_inodes(std::process::id()).unwrap();
        let mut sockets = sockets_of(std::process::id()).unwrap().into_iter();
        let inode = sockets
            .find(|socket| socket.local == mine.local_addr().unwrap())
            .map(|socket| socket.inode);
        assert!(own.contains(&inode.unwrap()));
        // The first process of the machine does not hold it.
        if let Ok(other) = socket_inodes(1) {
            assert!(!other.contains(&inode.unwrap()));
        }
        let many = (1..100).map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        assert_eq!(likeliest(many).len(), MOST);
    }
}
