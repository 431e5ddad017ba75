//! What edges counted within a span of time: the difference of two tables.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{Address, EdgeKey, Endpoint, SideMetrics, edge::most_bytes};

/// Tells edges apart in addresses and in stored steps. Made of what does not change while the edge lives:
/// processes, addresses, port and original destination; not of names, which may be learnt later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EdgeId(pub u64);

impl EdgeId {
    pub fn of(key: &EdgeKey) -> Self {
        let EdgeKey {
            client,
            server,
            server_port,
            original_destination,
        } = key;
        let mut hash = Hash::default();
        for end in [client, server] {
            let Endpoint {
                pid,
                start_ticks,
                comm: _,
                container: _,
                address,
            } = end;
            hash.number(pid.map(u64::from));
            hash.number(*start_ticks);
            match address {
                Address::Ip(address) => hash.ip(*address),
                Address::Unix(name) => {
                    hash.bytes(&[2]);
                    hash.number(Some(name.len() as u64));
                    hash.bytes(name.as_bytes());
                }
            }
        }
        hash.number(server_port.map(u64::from));
        hash.number(original_destination.map(|(_, port)| u64::from(port)));
        if let Some((address, _)) = original_destination {
            hash.ip(*address);
        }
        Self(hash.0)
    }
}

impl fmt::Display for EdgeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for EdgeId {
    type Err = ();

    /// Takes the form that is printed, and no other.
    fn from_str(text: &str) -> Result<Self, ()> {
        let id = Self(u64::from_str_radix(text, 16).map_err(drop)?);
        if id.to_string() == text {
            Ok(id)
        } else {
            Err(())
        }
    }
}

/// FNV-1a, 64 bits: the numbers are part of stored results, so the function must never change.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn number(&mut self, number: Option<u64>) {
        self.bytes(&[u8::from(number.is_some())]);
        self.bytes(&number.unwrap_or(0).to_le_bytes());
    }

    fn ip(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.bytes(&[4]);
                self.bytes(&address.octets());
            }
            IpAddr::V6(address) => {
                self.bytes(&[6]);
                self.bytes(&address.octets());
            }
        }
    }
}

/// What both ends of an edge counted within a step; `open` is the number at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeDelta {
    pub client: Option<SideMetrics>,
    pub server: Option<SideMetrics>,
}

impl EdgeDelta {
    /// Adds what came after `self`.
    pub fn append(&mut self, later: &Self) {
        append(&mut self.client, later.client.as_ref());
        append(&mut self.server, later.server.as_ref());
    }

    /// What the processes wrote and read, at the end that saw more of it.
    pub fn bytes(&self) -> u64 {
        most_bytes([&self.client, &self.server])
    }
}

fn append(sum: &mut Option<SideMetrics>, later: Option<&SideMetrics>) {
    let Some(later) = later else { return };
    let sum = sum.get_or_insert_default();
    sum.merge(later);
    sum.open = later.open;
}

/// A span of time, with what every edge counted in it that counted anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeStep {
    /// Milliseconds since counting began.
    pub from_ms: u64,
    pub to_ms: u64,
    /// Ordered by edge.
    pub edges: Vec<(EdgeId, EdgeDelta)>,
    /// Edges whose counts come with a later step, because too many changed at once.
    pub late: u64,
    /// Edges whose counts of this step come in no step: too many were late.
    pub left_out: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> EdgeKey {
        let end = |pid| Endpoint {
            pid,
            start_ticks: Some(5),
            comm: "app".to_owned(),
            container: None,
            address: Address::Ip([10, 0, 0, 1].into()),
        };
        EdgeKey {
            client: end(Some(7)),
            server: end(None),
            server_port: Some(80),
            original_destination: None,
        }
    }

    #[test]
    fn an_id_stays_when_names_are_learnt_and_differs_with_every_other_field() {
        let id = EdgeId::of(&key());
        // Part of stored results and of links.
        assert_eq!(id.to_string(), "8cfd6cc4c15d88fa");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!("EDCD".parse::<EdgeId>(), Err(()));
        let mut named = key();
        named.client.comm = "other".to_owned();
        named.server.container = Some("c".to_owned());
        assert_eq!(EdgeId::of(&named), id);
        let changes: [fn(&mut EdgeKey); 6] = [
            |key| key.client.pid = Some(8),
            |key| key.client.start_ticks = None,
            |key| key.server.address = Address::Ip([10, 0, 0, 2].into()),
            |key| key.server.address = Address::Unix("/run/a".to_owned()),
            |key| key.server_port = None,
            |key| key.original_destination = Some(([10, 0, 0, 1].into(), 80)),
        ];
        for change in changes {
            let mut changed = key();
            change(&mut changed);
            assert_ne!(EdgeId::of(&changed), id, "{changed:?}");
        }
    }

    #[test]
    fn steps_add_up_to_the_table() {
        let mut first = SideMetrics {
            connections: 2,
            open: 2,
            drops: 1,
            drops_by_reason: [("NO_SOCKET".to_owned(), 1)].into(),
            ..SideMetrics::default()
        };
        first.write_rtt.add(4, 300);
        let mut second = first.clone();
        second.open = 1;
        second.write.bytes = 9;
        second.drops = 3;
        second.drops_by_reason.insert("OTHER".to_owned(), 2);
        second.write_rtt.add(6, 1100);
        let mut all = EdgeDelta {
            client: first.counted_since(None),
            server: None,
        };
        let later = second.counted_since(Some(&first)).unwrap();
        assert_eq!((later.connections, later.open, later.drops), (0, 1, 2));
        assert_eq!(later.drops_by_reason, [("OTHER".to_owned(), 2)].into());
        assert_eq!(later.write_rtt.counts.iter().sum::<u64>(), 1);
        all.append(&EdgeDelta {
            client: Some(later),
            server: None,
        });
        assert_eq!(all.client, Some(second.clone().without_extremes()));
        assert_eq!(second.counted_since(Some(&second)), None);
        // What went to another edge is not counted again.
        assert_eq!(first.counted_since(Some(&second)).unwrap().drops, 0);
    }
}
