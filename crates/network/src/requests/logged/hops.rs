//! Connections that entries tell of, and who is at their ends.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    net::{IpAddr, SocketAddr},
};

use foldhash::fast::RandomState;
use profiler_access_logs::{Address as Logged, text};
use profiler_model::{Address, EdgeKey, Endpoint, SeenBy, Spread, TlsSeen};
use profiler_protocols::Protocol;

use super::{EnvoyId, PATIENCE};
use crate::requests::{
    digest::digest, facts::unix_end, operations::Counted, shared_edge::SharedEdge,
};

/// Connections that are remembered.
const MAX_HOPS: usize = 32_768;
/// Reports after which a silent connection is forgotten.
const REMEMBERED: u64 = 60;
/// How often the process at an end is looked for. Right after its beginning it may not have been there to be found, and what has ended
/// is not found later.
const TRIES: u8 = 3;
/// Reports after which one that was looked for is found, if it is.
const ANSWERED: u64 = 2;
/// Reports after which no end is waited for.
const MOST_PATIENCE: u64 = 12;
/// Ends that are asked for at once.
const MOST_ASKED: usize = 4_096;
/// Where an end is that an entry does not name.
const NOT_LOGGED: &str = "not logged";
/// Bytes of a name that is kept.
const NAME_BYTES: usize = 108;

/// A connection, by the place where it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct HopId(pub(super) u64);

/// Who is at one end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Side {
    #[default]
    Unknown,
    /// It reports requests of this connection itself.
    Envoy(EnvoyId),
    Process(Endpoint),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct End {
    address: Address,
    port: u16,
}

impl Hash for End {
    /// In two pieces where it has an address of IP: a dozen small ones take several times as long. The first one says how the second one is
    /// to be read.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.address {
            Address::Ip(ip) => {
                state.write_u32(u32::from(self.port));
                // IPv4 has no other way to be written, as addresses are canonical.
                let bits = match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
                    IpAddr::V6(ip) => ip.to_bits(),
                };
                state.write_u128(bits);
            }
            Address::Unix(name) => {
                state.write_u32(u32::MAX);
                name.hash(state);
            }
        }
    }
}

impl End {
    fn of(address: &Logged) -> Self {
        match address {
            Logged::Socket(address) => Self {
                address: Address::Ip(address.ip().to_canonical()),
                port: address.port(),
            },
            Logged::Pipe(name) | Logged::Internal(name) | Logged::Other(name) => Self {
                address: Address::Unix(super::exchange::within(&text(name), NAME_BYTES)),
                port: 0,
            },
            Logged::Absent => Self {
                address: Address::Unix(NOT_LOGGED.to_owned()),
                port: 0,
            },
        }
    }

    /// The end of an edge that is this process, as far as that is known.
    fn endpoint(&self, process: Option<Endpoint>) -> Endpoint {
        let address = self.address.clone();
        match process {
            Some(process) => Endpoint { address, ..process },
            None => Endpoint {
                pid: None,
                start_ticks: None,
                comm: String::new(),
                container: None,
                address,
            },
        }
    }

    fn ip(&self) -> Option<IpAddr> {
        match self.address {
            Address::Ip(ip) => Some(ip),
            Address::Unix(_) => None,
        }
    }

    fn socket(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.ip()?, self.port))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    client: End,
    server: End,
    /// Of loopback, which is in every namespace.
    namespace: Option<u64>,
}

#[derive(Debug)]
struct Hop {
    key: Key,
    client: Side,
    server: Side,
    /// The namespace of the Envoy that was met first.
    namespace: Option<u64>,
    tries: u8,
    /// The report before which its other end was looked for first.
    asked: Option<u64>,
    /// The other end is a process that reports nothing.
    is_known: bool,
    met: u64,
    used: u64,
    /// Of its server's entries.
    protocol: Option<Protocol>,
    greeting: Option<TlsSeen>,
    /// Once a request was settled: its edge, and the side at which its requests count.
    counted: Option<(SharedEdge, SeenBy)>,
    /// One was counted.
    is_connected: bool,
    /// The client's socket, when it was looked at last.
    socket: Option<SocketNow>,
    /// Segments that it had sent again when it was looked at first.
    retransmits_before: u32,
    /// When its first request began and was over.
    first_ns: [u64; 2],
}

/// A connection as it is when a request of it has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) hop: HopId,
    /// The client's end.
    pub(super) client: SocketAddr,
    /// See [`Hop::is_settled`].
    pub(super) is_settled: bool,
}

/// What the kernel says of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketNow {
    /// Smoothed.
    pub rtt_us: u32,
    /// Segments since the connection began.
    pub retransmits: u32,
}

/// A connection that an Envoy has opened, to look at its socket.
#[derive(Clone, Copy, Debug)]
pub struct OwnSocket {
    hop: HopId,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Inode of the Envoy's network namespace.
    pub namespace: Option<u64>,
}

/// Connections of one Envoy to one address.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections {
    pub(super) rtt_ns: Spread,
    pub(super) retransmits: u64,
}

impl Hop {
    /// Whether nothing more can be learnt of the connection: its other end is known, or [`PATIENCE`] is over and that end was looked for in vain.
    /// A busy node is looked at rarely.
    fn is_settled(&self, reports: u64) -> bool {
        if self.is_known || self.counted.is_some() {
            return true;
        }
        let age = reports - self.met;
        let is_answered = || self.asked.is_some_and(|asked| reports >= asked + ANSWERED);
        age >= MOST_PATIENCE || age >= PATIENCE && (is_answered() || self.unknown_end().is_none())
    }

    /// The end whose process is not known and can be looked for: whether it is the client's, its address, and that of the Envoy.
    fn unknown_end(&self) -> Option<(bool, SocketAddr, SocketAddr)> {
        let (client, server) = (self.key.client.socket()?, self.key.server.socket()?);
        match (&self.client, &self.server) {
            (Side::Unknown, Side::Envoy(_)) => Some((true, client, server)),
            (Side::Envoy(_), Side::Unknown) => Some((false, server, client)),
            _ => None,
        }
    }

    /// Adds what its socket was like to those of the same Envoy and server.
    fn add_to(&self, all: &mut HashMap<(EnvoyId, SocketAddr), Connections>) {
        let (Side::Envoy(id), Some(server), Some(socket)) =
            (&self.client, self.key.server.socket(), self.socket)
        else {
            return;
        };
        let sum = all.entry((*id, server)).or_default();
        sum.rtt_ns.add(u64::from(socket.rtt_us) * 1_000);
        let more = socket.retransmits.saturating_sub(self.retransmits_before);
        sum.retransmits += u64::from(more);
    }
}

/// An end of a connection, of which it is not known whose it is.
#[derive(Clone, Copy, Debug)]
pub struct UnknownEnd {
    hop: HopId,
    /// It asked for the connection.
    pub is_client: bool,
    /// The end, and the one of the Envoy.
    pub end: SocketAddr,
    pub envoy: SocketAddr,
    /// Inode of the Envoy's network namespace.
    pub namespace: Option<u64>,
    /// When its first request began and was over, nanoseconds since the Unix epoch.
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// The process at such an end.
#[derive(Clone, Debug)]
pub struct OtherEnd {
    pub process: Endpoint,
    /// It is an Envoy, or may pass to one: entries of it may come.
    pub may_report: bool,
}

/// What a request is counted as.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) edge: SharedEdge,
    pub(super) counted: Counted,
    pub(super) protocol: Option<Protocol>,
    /// The first that is counted of its connection.
    pub(super) is_first: bool,
    pub(super) greeting: Option<TlsSeen>,
}

#[derive(Debug, Default)]
pub(super) struct Hops {
    kept: HashMap<u64, Hop, RandomState>,
    /// Shared by the connections of an edge.
    edges: HashMap<EdgeKey, SharedEdge>,
    /// What is known of connections that are forgotten, while there is room.
    gone: HashMap<(EnvoyId, SocketAddr), Connections>,
}

impl Hops {
    /// The connection between two ends, the client first, one of which is this Envoy. `None`: there is no room. `times` are those of the request.
    pub(super) fn of(
        &mut self,
        [client, server]: [&Logged; 2],
        namespace: Option<u64>,
        (side, id): (SeenBy, EnvoyId),
        (reports, times): (u64, [u64; 2]),
    ) -> Option<Met> {
        let (client, server) = (End::of(client), End::of(server));
        let is_everywhere = |end: &End| end.ip().is_none_or(|ip| ip.is_loopback());
        let key = Key {
            namespace: namespace.filter(|_| is_everywhere(&client) || is_everywhere(&server)),
            client,
            server,
        };
        let hash = digest(&key);
        if !self.kept.contains_key(&hash) {
            if self.kept.len() >= MAX_HOPS {
                self.make_room();
            }
            let hop = Hop {
                key,
                client: Side::Unknown,
                server: Side::Unknown,
                namespace,
                tries: 0,
                asked: None,
                is_known: false,
                met: reports,
                used: reports,
                protocol: None,
                greeting: None,
                counted: None,
                is_connected: false,
                socket: None,
                retransmits_before: 0,
                first_ns: times,
            };
            self.kept.insert(hash, hop);
        }
        let hop = self.kept.get_mut(&hash)?;
        hop.used = reports;
        let own = match side {
            SeenBy::Client => &mut hop.client,
            SeenBy::Server => &mut hop.server,
        };
        if *own != Side::Envoy(id) {
            *own = Side::Envoy(id);
        }
        Some(Met {
            hop: HopId(hash),
            client: hop.key.client.socket().unwrap_or_else(|| unix_end(0)),
            is_settled: hop.is_settled(reports),
        })
    }

    /// What the server's end says of the connection.
    pub(super) fn learn(
        &mut self,
        hop: HopId,
        protocol: Protocol,
        greeting: impl FnOnce() -> Option<TlsSeen>,
    ) {
        if let Some(hop) = self.kept.get_mut(&hop.0)
            && hop.protocol.is_none()
        {
            hop.protocol = Some(protocol);
            hop.greeting = greeting();
        }
    }

    /// [`Hop::is_settled`] of a connection; one that is forgotten is.
    pub(super) fn is_settled(&self, hop: HopId, reports: u64) -> bool {
        let hop = self.kept.get(&hop.0);
        hop.is_none_or(|hop| hop.is_settled(reports))
    }

    /// What a request that this side has seen is counted as. The first one fixes the edge, and the side at which requests count: that of
    /// the client, where it reports them. `envoy` gives the process of one.
    pub(super) fn settle(
        &mut self,
        id: HopId,
        seen_by: SeenBy,
        envoy: impl Fn(EnvoyId) -> Option<Endpoint>,
    ) -> Option<Settled> {
        let hop = self.kept.get_mut(&id.0)?;
        let (edge, counting) = if let Some(counted) = &hop.counted {
            counted.clone()
        } else {
            {
                let endpoint = |side: &Side, end: &End| {
                    let known = match side {
                        Side::Envoy(id) => envoy(*id),
                        Side::Process(process) => Some(process.clone()),
                        Side::Unknown => None,
                    };
                    end.endpoint(known)
                };
                let key = EdgeKey {
                    client: endpoint(&hop.client, &hop.key.client),
                    server: endpoint(&hop.server, &hop.key.server),
                    server_port: hop.key.server.ip().map(|_| hop.key.server.port),
                    original_destination: None,
                };
                let counting = match hop.client {
                    Side::Envoy(_) => SeenBy::Client,
                    Side::Unknown | Side::Process(_) => SeenBy::Server,
                };
                if self.edges.len() >= MAX_HOPS {
                    self.edges.clear();
                }
                let edge = self.edges.entry(key);
                let edge = edge.or_insert_with_key(|key| SharedEdge::new(key.clone()));
                hop.counted = Some((edge.clone(), counting));
                (edge.clone(), counting)
            }
        };
        let is_here = counting == seen_by;
        let is_first = is_here && !hop.is_connected;
        hop.is_connected |= is_here;
        Some(Settled {
            edge,
            counted: if is_here {
                Counted::Here
            } else {
                Counted::AtOtherEnd
            },
            protocol: hop.protocol,
            is_first,
            greeting: hop.greeting.clone().filter(|_| is_first),
        })
    }

    /// Ends of connections that are not settled and whose processes are not known.
    pub(super) fn unknown(&mut self, reports: u64, is_last: bool) -> Vec<UnknownEnd> {
        let mut ends = Vec::new();
        for (hash, hop) in &mut self.kept {
            let is_asked = is_last || hop.tries < TRIES;
            if hop.counted.is_some() || !is_asked || ends.len() >= MOST_ASKED {
                continue;
            }
            let Some((is_client, end, envoy)) = hop.unknown_end() else {
                continue;
            };
            hop.tries = hop.tries.saturating_add(1);
            hop.asked.get_or_insert(reports);
            ends.push(UnknownEnd {
                hop: HopId(*hash),
                is_client,
                end,
                envoy,
                namespace: hop.namespace,
                begin_ns: hop.first_ns[0],
                end_ns: hop.first_ns[1],
            });
        }
        ends
    }

    /// Connections that Envoys opened and used since a report.
    pub(super) fn own_sockets(&self, since: u64) -> Vec<OwnSocket> {
        let used = self.kept.iter().filter(|(_, hop)| hop.used >= since);
        let own = used.filter_map(|(hash, hop)| {
            let Side::Envoy(_) = hop.client else {
                return None;
            };
            Some(OwnSocket {
                hop: HopId(*hash),
                local: hop.key.client.socket()?,
                remote: hop.key.server.socket()?,
                namespace: hop.namespace,
            })
        });
        own.take(MOST_ASKED).collect()
    }

    /// What a socket was like just now.
    pub(super) fn saw(&mut self, socket: &OwnSocket, now: SocketNow) {
        if let Some(hop) = self.kept.get_mut(&socket.hop.0) {
            if hop.socket.is_none() {
                hop.retransmits_before = now.retransmits;
            }
            hop.socket = Some(now);
        }
    }

    /// Connections of Envoys whose sockets were found, by the address of the server.
    pub(super) fn connections(&self) -> HashMap<(EnvoyId, SocketAddr), Connections> {
        let mut all = self.gone.clone();
        for hop in self.kept.values() {
            hop.add_to(&mut all);
        }
        all
    }

    /// An end is this process.
    pub(super) fn found(&mut self, end: &UnknownEnd, other: OtherEnd) {
        let Some(hop) = self.kept.get_mut(&end.hop.0) else {
            return;
        };
        let side = if end.is_client {
            &mut hop.client
        } else {
            &mut hop.server
        };
        if *side == Side::Unknown {
            *side = Side::Process(other.process);
            hop.is_known = !other.may_report;
        }
    }

    /// Forgets connections that have been silent for long.
    pub(super) fn forget(&mut self, reports: u64) {
        self.drop_those(|hop| hop.used + REMEMBERED <= reports);
    }

    /// Forgets some connections, but for what their sockets were like.
    fn drop_those(&mut self, mut goes: impl FnMut(&Hop) -> bool) {
        for (_, hop) in self.kept.extract_if(|_, hop| goes(hop)) {
            if self.gone.len() < MAX_HOPS {
                hop.add_to(&mut self.gone);
            }
        }
    }

    /// Forgets an eighth of the connections, those that have been silent longest.
    fn make_room(&mut self) {
        let mut used: Vec<u64> = self.kept.values().map(|hop| hop.used).collect();
        used.sort_unstable();
        let oldest = used.get(used.len() / 8).copied().unwrap_or(0);
        let mut left = used.len() / 8 + 1;
        self.drop_those(|hop| {
            let goes = hop.used <= oldest && left > 0;
            left -= usize::from(goes);
            goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_ends_have_different_hashes() {
        let socket = |text: &str| End::of(&Logged::Socket(text.parse().unwrap()));
        let unix = |name: &str| End {
            address: Address::Unix(name.to_owned()),
            port: 0,
        };
        let ends = [
            unix(""),
            unix("a"),
            unix(NOT_LOGGED),
            socket("0.0.0.0:0"),
            socket("10.0.0.1:80"),
            socket("10.0.0.1:81"),
            socket("10.0.0.2:80"),
            socket("[::]:0"),
            socket("[::1]:80"),
            socket("[::a00:1]:80"),
        ];
        for one in &ends {
            for other in &ends {
                assert_eq!(digest(one) == digest(other), one == other);
            }
        }
        // The same address.
        let mapped = socket("[::ffff:10.0.0.1]:80");
        assert_eq!(digest(mapped), digest(socket("10.0.0.1:80")));
    }
}
