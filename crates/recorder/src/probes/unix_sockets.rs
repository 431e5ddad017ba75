//! Unix sockets of a network task: finds those that were there before it, and those that are gone.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use profiler_common::{config::FILTER_ALL, network::FLAG_COMPLETE, unix_sockets::UNIX_ENTRIES};
use profiler_host::{
    process::ProcessTable,
    sockets::{Owners, unix_sockets},
};
use profiler_network::edges::{
    EdgeOfConnection, Identity, UnixEdgeAggregator, UnixEnd, UnixListing, existing_unix,
};

use super::{network_sources::OF_UNIX_SOCKETS, targets::ResolvedTarget, timeline::monotonic_ns};
use crate::bpf::{LoadError, LoadedObject};
use profiler_model::{Edge, FoldedEdges, ProcessKey};

/// Time between two listings, while some socket is watched. What is gone stays in the kernel's table
/// for this long.
const LIST_AGAIN_NS: u64 = 2_000_000_000;
/// Entries of the kernel's table with which it is listed each time.
const MANY: usize = UNIX_ENTRIES as usize / 4;
const NO_ROUND_TRIPS: &str = "Unix sockets measure no round trips";
/// What of an edge between Unix sockets is null, with the reason.
const NOT_OF_UNIX_SOCKETS: [(&str, &str); 12] = [
    ("unix.accept", "calls on Unix sockets are not timed"),
    (
        "unix.close",
        "the kernel has no hook for the end of a Unix socket",
    ),
    ("unix.connect", "calls on Unix sockets are not timed"),
    ("unix.read.time_ns", "calls on Unix sockets are not timed"),
    ("unix.write.time_ns", "calls on Unix sockets are not timed"),
    ("unix.drop", "Unix sockets lose nothing on the way"),
    (
        "unix.error",
        "the kernel has no hook for errors of Unix sockets",
    ),
    (
        "unix.reset",
        "the kernel has no hook for resets of Unix sockets",
    ),
    ("unix.retransmit", "Unix sockets send nothing twice"),
    ("unix.socket", "Unix sockets do not count their bytes"),
    ("unix.write_rtt_us", NO_ROUND_TRIPS),
    ("unix.min_rtt_us", NO_ROUND_TRIPS),
];

/// Whether no kernel reports this metric of Unix sockets: then its absence is expected.
pub fn is_never_of_unix_sockets(metric: &str) -> bool {
    NOT_OF_UNIX_SOCKETS
        .iter()
        .any(|(never, _reason)| *never == metric)
}

/// Whether it is asked which edge each socket belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketsWanted {
    Yes,
    No,
}

/// What is known of Unix sockets.
#[derive(Debug, Default)]
pub(super) struct UnixReport {
    pub(super) edges: Vec<Edge>,
    /// What could not be determined.
    pub(super) unresolved: BTreeMap<String, u64>,
    /// The edge of each socket, where that is wanted.
    pub(super) edge_of_connection: HashMap<u64, EdgeOfConnection>,
    /// Sockets that are gone since the last report.
    pub(super) gone: Vec<UnixEnd>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnixSockets {
    aggregator: UnixEdgeAggregator,
    listing: UnixListing,
    owners: Owners,
    /// When the listing was begun, on the kernel's clock.
    listed_ns: u64,
    owners_ns: u64,
}

impl UnixSockets {
    /// Tells the kernel side which connected sockets of the target were there before it.
    pub(super) fn start(
        object: &mut LoadedObject,
        table: &ProcessTable,
        target: &ResolvedTarget,
        wanted: &BTreeSet<u32>,
    ) -> Result<Self, LoadError> {
        if object.unix_failure().is_some() {
            return Ok(Self::default());
        }
        let listed_ns = monotonic_ns();
        let mut listing = UnixListing::new(unix_sockets(table, None));
        let mut owners = Owners::default();
        find_owners(&mut listing, &mut owners, table, wanted);
        for socket in &listing.sockets {
            let is_wanted = if target.filter == FILTER_ALL {
                [0, socket.network_namespace].contains(&target.network_namespace)
            } else {
                let owner = listing.owner(socket.inode);
                owner.is_some_and(|owner| wanted.contains(&owner.pid))
            };
            if !is_wanted || socket.peer_inode == 0 {
                continue;
            }
            let entry = existing_unix(socket, &listing, listed_ns);
            if !object.add_unix_socket(&entry)? {
                tracing::warn!("more Unix sockets than the kernel's table has room for");
                break;
            }
        }
        Ok(Self {
            aggregator: UnixEdgeAggregator::default(),
            listing,
            owners,
            listed_ns,
            owners_ns: listed_ns,
        })
    }

    /// The sockets with what they have counted. Before that they are listed, which takes long, when it is
    /// time for it. `last`: nothing more comes.
    pub(super) fn read(
        &mut self,
        object: &LoadedObject,
        table: &ProcessTable,
        wanted: &BTreeSet<u32>,
        last: bool,
    ) -> Result<Vec<UnixEnd>, LoadError> {
        let mut ends = read(object)?;
        let now_ns = monotonic_ns();
        let due = now_ns.saturating_sub(self.listed_ns) >= LIST_AGAIN_NS;
        if !ends.is_empty() && (due || last || ends.len() >= MANY) {
            self.list(table, &ends, now_ns);
            if self.has_open_question(&ends) {
                find_owners(&mut self.listing, &mut self.owners, table, wanted);
                self.owners_ns = now_ns;
            }
            // Once more: what is gone by the listing changes no more.
            ends = read(object)?;
        }
        Ok(ends)
    }

    /// The edges so far, and what of their sockets `wants` it.
    pub(super) fn report(
        &mut self,
        object: &mut LoadedObject,
        ends: Vec<UnixEnd>,
        identify: impl Fn(ProcessKey) -> Identity,
        wants: SocketsWanted,
    ) -> Result<UnixReport, LoadError> {
        let (listing, listed_ns) = (&self.listing, self.listed_ns);
        let is_gone = |end: &UnixEnd| {
            end.seen_ns < listed_ns
                && listing.is_gone(end.network_namespace, end.cookie) == Some(true)
        };
        self.aggregator.settle(&ends, listing, is_gone);
        let edge_of_connection = match wants {
            SocketsWanted::Yes => self
                .aggregator
                .edge_of_connection(&ends, listing, &identify),
            SocketsWanted::No => HashMap::new(),
        };
        let (gone, open): (Vec<UnixEnd>, Vec<UnixEnd>) = ends.into_iter().partition(is_gone);
        for end in &gone {
            object.forget_unix_socket(end.cookie)?;
        }
        let (edges, unresolved) = self.aggregator.table(&open, &self.listing, identify);
        Ok(UnixReport {
            edges,
            unresolved,
            edge_of_connection,
            gone,
        })
    }

    /// The processes of every edge that is known.
    pub(super) fn processes(&self) -> impl Iterator<Item = ProcessKey> {
        self.aggregator.processes()
    }

    pub(super) fn aggregator_mut(&mut self) -> &mut UnixEdgeAggregator {
        &mut self.aggregator
    }

    /// What is no longer kept apart, with that of connections.
    pub(super) fn with_folded(&self, mut folded: FoldedEdges) -> FoldedEdges {
        folded.merge(self.aggregator.folded());
        folded
    }

    fn list(&mut self, table: &ProcessTable, ends: &[UnixEnd], now_ns: u64) {
        let namespaces: BTreeSet<u32> = ends.iter().map(|end| end.network_namespace).collect();
        let mut listing = UnixListing::new(unix_sockets(table, Some(&namespaces)));
        listing.take_owners(&mut self.listing);
        self.listing = listing;
        self.listed_ns = now_ns;
    }

    /// Whether the process at the other end of some new socket is not known.
    fn has_open_question(&self, ends: &[UnixEnd]) -> bool {
        let known: HashSet<u64> = ends.iter().map(|end| end.cookie).collect();
        ends.iter()
            .any(|end| end.seen_ns > self.owners_ns && !known.contains(&end.peer_cookie))
    }
}

/// Adds why metrics of Unix sockets are null, when there are such edges.
pub(super) fn explain(
    unavailable: &mut BTreeMap<String, String>,
    sources: &BTreeMap<String, String>,
    object: &LoadedObject,
    edges: &[Edge],
) {
    if let Some(failure) = object.unix_failure() {
        unavailable.insert("unix".to_owned(), failure.to_string());
    }
    if !edges.is_empty() {
        for (metric, reason) in NOT_OF_UNIX_SOCKETS {
            unavailable.insert(metric.to_owned(), reason.to_owned());
        }
        for (metric, source) in OF_UNIX_SOCKETS {
            if sources.get(metric).is_some_and(|used| used != source) {
                let reason = format!("only {source} tells it of Unix sockets");
                unavailable.insert(format!("unix.{metric}"), reason);
            }
        }
    }
}

/// Finds out whose the sockets are. Where several processes hold one, one of `preferred` is its
/// owner. Blocks.
fn find_owners(
    listing: &mut UnixListing,
    owners: &mut Owners,
    table: &ProcessTable,
    preferred: &BTreeSet<u32>,
) {
    owners.find(&listing.inodes(), table, preferred);
    listing.set_owners(owners.processes());
}

fn read(object: &LoadedObject) -> Result<Vec<UnixEnd>, LoadError> {
    let sockets = object.unix_sockets()?;
    let whole = sockets
        .iter()
        .filter(|socket| socket.flags & FLAG_COMPLETE != 0);
    Ok(whole.map(UnixEnd::decode).collect())
}

#[cfg(test)]
mod tests {
    use std::os::{
        linux::{fs::MetadataExt as _, net::SocketAddrExt as _},
        unix::net::{SocketAddr, UnixListener, UnixStream},
    };

    use super::*;

    #[test]
    fn own_sockets_are_listed_with_their_names_and_peers() {
        let name = format!("kinds-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let client = UnixStream::connect_addr(&address).unwrap();
        let (server, _from) = listener.accept().unwrap();
        let inode = |end: &UnixStream| rustix::fs::fstat(end).unwrap().st_ino;
        let table = ProcessTable::new();
        table.refresh();
        let here = std::fs::metadata("/proc/self/ns/net").unwrap().st_ino();
        let here = u32::try_from(here).unwrap();
        let found = unix_sockets(&table, Some(&BTreeSet::from([here])));
        assert_eq!(found.len(), 1);
        let mut listing = UnixListing::new(found);
        let bytes = [b"\0", name.as_bytes()].concat();
        assert!(listing.listens(&bytes));
        let end = listing.by_inode(inode(&client)).unwrap();
        assert_eq!(end.peer_inode, inode(&server));
        assert!(end.name.is_empty());
        let other = listing.by_inode(inode(&server)).unwrap();
        assert_eq!(other.name, bytes);
        assert_eq!(listing.is_gone(here, other.cookie), Some(false));
        assert_eq!(listing.is_gone(here, u64::MAX), Some(true));
        assert_eq!(listing.is_gone(here + 1, other.cookie), None);
        find_owners(
            &mut listing,
            &mut Owners::default(),
            &table,
            &BTreeSet::new(),
        );
        let owner = listing.owner(inode(&client));
        assert_eq!(owner.map(|owner| owner.pid), Some(std::process::id()));
    }
}
