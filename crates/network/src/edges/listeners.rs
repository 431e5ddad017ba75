//! Who listens where.

use core::net::{IpAddr, SocketAddr};
use std::collections::{HashMap, HashSet};

use profiler_model::ProcessKey;

/// A listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    address: IpAddr,
    /// `None`: no process that can be read holds it.
    process: Option<ProcessKey>,
}

/// The listening sockets of the node.
#[derive(Clone, Debug, Default)]
pub struct Listeners {
    by_port: HashMap<(u32, u16), Vec<Listener>>,
    namespaces: HashSet<u32>,
}

impl Listeners {
    /// Says that the namespace was read.
    pub(super) fn know(&mut self, network_namespace: u32) {
        self.namespaces.insert(network_namespace);
    }

    pub(super) fn add(
        &mut self,
        network_namespace: u32,
        address: SocketAddr,
        process: Option<ProcessKey>,
    ) {
        let key = (network_namespace, address.port());
        self.by_port.entry(key).or_default().push(Listener {
            address: address.ip(),
            process,
        });
    }

    /// Whether something listens at the address; `None` when the namespace could not be read.
    pub fn listens(&self, network_namespace: u32, address: SocketAddr) -> Option<bool> {
        self.namespaces
            .contains(&network_namespace)
            .then(|| self.at(network_namespace, address).next().is_some())
    }

    /// The process that listens at the address; `None` also when several do.
    pub fn process(&self, network_namespace: u32, address: SocketAddr) -> Option<ProcessKey> {
        let mut found = self.at(network_namespace, address);
        let first = found.next()?.process?;
        found
            .all(|other| other.process == Some(first))
            .then_some(first)
    }

    /// Those that listen at exactly this address, or else at all addresses.
    fn at(&self, network_namespace: u32, address: SocketAddr) -> impl Iterator<Item = &Listener> {
        let all = self.by_port.get(&(network_namespace, address.port()));
        let all = all.map_or(&[][..], Vec::as_slice);
        let exact = all.iter().any(|one| one.address == address.ip());
        all.iter().filter(move |one| {
            if exact {
                one.address == address.ip()
            } else {
                one.address.is_unspecified()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32) -> ProcessKey {
        ProcessKey {
            pid,
            start_ticks: 1,
        }
    }

    fn listeners(all: &[(&str, u32)]) -> Listeners {
        let mut listeners = Listeners::default();
        listeners.know(1);
        for (address, pid) in all {
            listeners.add(1, address.parse().unwrap(), Some(process(*pid)));
        }
        listeners
    }

    fn at(listeners: &Listeners, address: &str) -> Option<ProcessKey> {
        listeners.process(1, address.parse().unwrap())
    }

    #[test]
    fn the_exact_address_comes_before_all_addresses() {
        let all = listeners(&[("0.0.0.0:80", 1), ("127.0.0.1:80", 2), ("[::]:81", 3)]);
        assert_eq!(at(&all, "127.0.0.1:80"), Some(process(2)));
        assert_eq!(at(&all, "10.0.0.1:80"), Some(process(1)));
        assert_eq!(at(&all, "10.0.0.1:81"), Some(process(3)));
        assert_eq!(at(&all, "10.0.0.1:82"), None);
    }

    #[test]
    fn several_processes_on_one_port_are_not_told_apart() {
        let all = listeners(&[("0.0.0.0:80", 1), ("0.0.0.0:80", 2), ("0.0.0.0:81", 3)]);
        assert_eq!(at(&all, "10.0.0.1:80"), None);
        assert_eq!(all.listens(1, "10.0.0.1:80".parse().unwrap()), Some(true));
        assert_eq!(all.listens(1, "10.0.0.1:90".parse().unwrap()), Some(false));
        assert_eq!(all.listens(2, "10.0.0.1:80".parse().unwrap()), None);
    }
}
