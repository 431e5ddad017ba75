//! Connections of Envoys as they were seen last, for a minute: an entry comes a second after its request, and one of a long request when
//! its connection has ended.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    time::{Duration, Instant},
};

use profiler_model::sockets::DiagSocket;
use profiler_network::requests::{OtherEnd, OwnSocket, SocketNow};

use super::peers::{Listings, Sought, measured, plain};

/// For how long connections are remembered that have ended.
const REMEMBERED: Duration = Duration::from_mins(1);
/// Connections that are remembered.
const MOST: usize = 16_384;
/// Addresses whose connections are remembered.
const MOST_ADDRESSES: usize = 4_096;
/// How often the process at an end is looked for: a connection may not have been accepted, and processes cannot all be read.
const TRIES: u8 = 3;

/// The address of a socket and the one at its other end.
type Ends = (SocketAddr, SocketAddr);

#[derive(Debug)]
struct Kept {
    namespace: u32,
    inode: u64,
    /// The process that holds it.
    holder: Option<OtherEnd>,
    tries: u8,
    now: Option<SocketNow>,
    seen: Instant,
}

/// Sockets that are connected to one of the addresses at which Envoys are asked, and ask.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    addresses: HashSet<SocketAddr>,
    /// Those of several network namespaces may have the same addresses.
    kept: HashMap<Ends, Vec<Kept>>,
}

impl Remembered {
    /// Remembers connections to these addresses from now on.
    pub(super) fn learn(&mut self, addresses: impl Iterator<Item = SocketAddr>) {
        for address in addresses {
            // Those that are asked for are there again with the next look.
            if self.addresses.len() >= MOST_ADDRESSES {
                self.addresses.clear();
            }
            self.addresses.insert(plain(address));
        }
    }

    /// Takes what is there now, and forgets what has ended long ago. Those whose processes have to be looked for.
    pub(super) fn see(&mut self, listings: &Listings, at: Instant) -> Vec<Sought> {
        self.kept.retain(|_, there| {
            there.retain(|kept| at.saturating_duration_since(kept.seen) < REMEMBERED);
            !there.is_empty()
        });
        let mut sought = Vec::new();
        for (namespace, listing) in listings {
            for socket in &listing.sockets {
                if let Some(ends) = self.ends_of(socket)
                    && self.note(ends, *namespace, socket, at)
                {
                    sought.push(Sought {
                        end: ends.0,
                        other: ends.1,
                        namespace: Some(u64::from(*namespace)),
                        may_listen: false,
                    });
                }
            }
        }
        sought
    }

    /// `None`: it is not remembered.
    fn ends_of(&self, socket: &DiagSocket) -> Option<Ends> {
        let is_connected = !socket.listening && socket.inode != 0;
        let ends = (plain(socket.local), plain(socket.remote));
        let has_room = self.kept.len() < MOST || self.kept.contains_key(&ends);
        (is_connected && self.addresses.contains(&ends.1) && has_room).then_some(ends)
    }

    /// Whether its process has to be looked for.
    fn note(&mut self, ends: Ends, namespace: u32, socket: &DiagSocket, at: Instant) -> bool {
        let there = self.kept.entry(ends).or_default();
        // Another one may come from the same port later.
        there.retain(|kept| kept.namespace != namespace || kept.inode == socket.inode);
        let place = there.iter().position(|kept| kept.namespace == namespace);
        let place = place.unwrap_or_else(|| {
            there.push(Kept {
                namespace,
                inode: socket.inode,
                holder: None,
                tries: 0,
                now: None,
                seen: at,
            });
            there.len() - 1
        });
        let Some(kept) = there.get_mut(place) else {
            return false;
        };
        kept.seen = at;
        kept.now = measured(socket).or(kept.now);
        let is_sought = kept.holder.is_none() && kept.tries < TRIES;
        kept.tries += u8::from(is_sought);
        is_sought
    }

    /// Takes the answer to one that had to be looked for.
    pub(super) fn found(&mut self, sought: &Sought, holder: Option<OtherEnd>) {
        let there = self.kept.get_mut(&(sought.end, sought.other));
        let mut there = there.into_iter().flatten();
        if let Some(kept) = there.find(|kept| Some(u64::from(kept.namespace)) == sought.namespace) {
            kept.holder = holder;
        }
    }

    /// The process that held an end: of loopback in its namespace; else the only one, for whoever has a network namespace can give himself
    /// any address.
    pub(super) fn holder(&self, sought: &Sought) -> Option<OtherEnd> {
        let end = plain(sought.end);
        let there = self.kept.get(&(end, plain(sought.other)))?;
        let is_near = |kept: &&Kept| {
            !end.ip().is_loopback() || Some(u64::from(kept.namespace)) == sought.namespace
        };
        let mut near = there.iter().filter(is_near);
        let only = near.next().filter(|_| near.next().is_none())?;
        only.holder.clone()
    }

    /// What an Envoy's own socket was like.
    pub(super) fn socket(&self, own: &OwnSocket) -> Option<SocketNow> {
        let there = self.kept.get(&(plain(own.local), plain(own.remote)))?;
        let mut there = there.iter();
        there
            .find(|kept| Some(u64::from(kept.namespace)) == own.namespace)?
            .now
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::{
        Endpoint,
        sockets::{Listing, Tracked},
    };

    use super::*;
    use crate::access_logs::ends::NOWHERE;

    const SERVER: &str = "10.0.0.1:80";

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn socket(inode: u64, local: &str, remote: &str) -> DiagSocket {
        DiagSocket {
            cookie: None,
            inode,
            listening: false,
            is_ipv6: false,
            local: address(local),
            remote: address(remote),
            sent_bytes: 0,
            received_bytes: 0,
            retransmits: 2,
            rtt_us: 70,
        }
    }

    fn listings(sockets: &[(u32, DiagSocket)]) -> Listings {
        let of = |(namespace, socket): &(u32, DiagSocket)| {
            let listing = Listing {
                sockets: vec![socket.clone()],
                addresses: Vec::new(),
                tracked: Ok(Tracked::default()),
                without_diag: None,
            };
            (*namespace, listing)
        };
        sockets.iter().map(of).collect()
    }

    fn process(pid: u32) -> OtherEnd {
        OtherEnd {
            process: Endpoint {
                pid: Some(pid),
                start_ticks: Some(1),
                comm: "client".to_owned(),
                container: None,
                address: NOWHERE,
            },
            may_report: false,
        }
    }

    fn sought(end: &str, other: &str, namespace: u64) -> Sought {
        Sought {
            end: address(end),
            other: address(other),
            namespace: Some(namespace),
            may_listen: false,
        }
    }

    /// Sees what is there, and finds `pid` at each end that is asked for; the number of them.
    fn see(
        remembered: &mut Remembered,
        there: &[(u32, DiagSocket)],
        at: Instant,
        pid: u32,
    ) -> usize {
        let asked = remembered.see(&listings(there), at);
        for one in &asked {
            remembered.found(one, Some(process(pid)));
        }
        asked.len()
    }

    fn pid(remembered: &Remembered, one: &Sought) -> Option<u32> {
        remembered.holder(one).and_then(|found| found.process.pid)
    }

    #[test]
    fn a_connection_is_known_for_a_minute_after_its_end() {
        let begin = Instant::now();
        let mut remembered = Remembered::default();
        let there = [
            (1, socket(5, "10.0.0.7:40000", SERVER)),
            (1, socket(6, "10.0.0.7:40001", "10.0.0.1:81")),
        ];
        assert_eq!(see(&mut remembered, &there, begin, 9), 0);
        remembered.learn([address(SERVER)].into_iter());
        assert_eq!(see(&mut remembered, &there, begin, 9), 1);
        // What is known is not looked for again.
        assert_eq!(see(&mut remembered, &there, begin, 8), 0);
        let (end, own) = (
            sought("10.0.0.7:40000", SERVER, 4),
            (address("10.0.0.7:40000"), address(SERVER)),
        );
        for (seconds, expected) in [(59, Some(9)), (60, None)] {
            let asked = see(
                &mut remembered,
                &[],
                begin + Duration::from_secs(seconds),
                8,
            );
            assert_eq!((asked, pid(&remembered, &end)), (0, expected));
            let kept = remembered.kept.get(&own);
            assert_eq!(kept.is_some(), expected.is_some());
        }
        assert_eq!(
            pid(&remembered, &sought("10.0.0.7:40001", "10.0.0.1:81", 1)),
            None
        );
    }

    #[test]
    fn another_connection_from_the_same_port_is_another_one() {
        let at = Instant::now();
        let mut remembered = Remembered::default();
        remembered.learn([address(SERVER)].into_iter());
        let end = sought("10.0.0.7:40000", SERVER, 1);
        see(
            &mut remembered,
            &[(1, socket(5, "10.0.0.7:40000", SERVER))],
            at,
            9,
        );
        see(
            &mut remembered,
            &[(1, socket(6, "10.0.0.7:40000", SERVER))],
            at,
            8,
        );
        assert_eq!(pid(&remembered, &end), Some(8));
    }

    #[test]
    fn the_same_addresses_in_two_namespaces_are_nobody_s_but_for_loopback() {
        let at = Instant::now();
        let mut remembered = Remembered::default();
        remembered.learn([address(SERVER), address("127.0.0.1:80")].into_iter());
        let local = "127.0.0.1:40000";
        let there = [
            (1, socket(5, "10.0.0.7:40000", SERVER)),
            (2, socket(6, "10.0.0.7:40000", SERVER)),
            (1, socket(7, local, "127.0.0.1:80")),
            (2, socket(8, local, "127.0.0.1:80")),
        ];
        assert_eq!(see(&mut remembered, &there, at, 9), 4);
        assert_eq!(pid(&remembered, &sought("10.0.0.7:40000", SERVER, 1)), None);
        assert_eq!(pid(&remembered, &sought(local, "127.0.0.1:80", 2)), Some(9));
        assert_eq!(pid(&remembered, &sought(local, "127.0.0.1:80", 3)), None);
    }

    #[test]
    fn who_is_not_found_is_looked_for_some_times() {
        let at = Instant::now();
        let mut remembered = Remembered::default();
        remembered.learn([address(SERVER)].into_iter());
        let there = listings(&[(1, socket(5, "10.0.0.7:40000", SERVER))]);
        let asked = (0..10).map(|_| remembered.see(&there, at).len());
        assert_eq!(asked.sum::<usize>(), usize::from(TRIES));
    }
}
