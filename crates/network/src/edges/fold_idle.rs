//! Keeps a collection without end small: unused edges are added up into one, and names
//! of processes that are gone are forgotten.

use std::collections::{BTreeMap, BTreeSet};

use profiler_model::{Edge, EdgeKey, FoldedEdges, ProcessKey};

use super::{
    EdgeAggregator, Flow, UnixEdgeAggregator, aggregator::Pair, unix_aggregator::UnixPair,
};

/// How much is kept apart.
#[derive(Clone, Copy, Debug)]
pub struct EdgeLimit {
    /// Edges that are kept however long they have been idle.
    pub edges: usize,
    /// Others are kept for this long after their last connection has ended.
    pub idle_ns: u64,
}

/// What a collection without end keeps.
const ENDLESS: EdgeLimit = EdgeLimit {
    edges: 2_000,
    idle_ns: 60_000_000_000,
};

impl EdgeLimit {
    /// For a collection of this length.
    pub fn of(duration_s: Option<u64>) -> Option<Self> {
        duration_s.is_none().then_some(ENDLESS)
    }

    /// The edges that have been idle for long, each with when it began to be. One that is in use is not
    /// among them, whenever it was idle `since`.
    fn idle<Key: Clone, Sums>(
        self,
        edges: &BTreeMap<Key, Sums>,
        now_ns: u64,
        since: impl Fn(&Sums) -> u64,
        is_in_use: impl Fn(&Key) -> bool,
    ) -> Vec<(u64, Key)> {
        let all = edges.iter().map(|(key, sums)| (since(sums), key));
        let idle = all.filter(|(since_ns, key)| {
            now_ns.saturating_sub(*since_ns) >= self.idle_ns && !is_in_use(key)
        });
        idle.map(|(since_ns, key)| (since_ns, key.clone()))
            .collect()
    }
}

/// An edge of one of the two books.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Idle {
    Connections(Pair),
    Unix(UnixPair),
}

/// Adds up the edges that have been idle for longest, those of connections and of Unix sockets together,
/// until the others fit `edge_limit`. What each aggregator has shown is its newest table: it knows which edges have
/// open connections, and these stay, so that no counter of an edge that is shown ever becomes less.
pub fn fold_idle(
    (aggregator, shown): (&mut EdgeAggregator, &[Edge]),
    (unix, unix_shown): (&mut UnixEdgeAggregator, &[Edge]),
    edge_limit: EdgeLimit,
    now_ns: u64,
) {
    unix.note_changes(now_ns);
    let all = shown.len().saturating_add(unix_shown.len());
    let excess = all.saturating_sub(edge_limit.edges);
    if excess == 0 {
        return;
    }
    let of_connections = aggregator.idle(shown, edge_limit, now_ns).into_iter();
    let of_connections = of_connections.map(|(since_ns, key)| (since_ns, Idle::Connections(key)));
    let of_unix = unix.idle(unix_shown, edge_limit, now_ns).into_iter();
    let of_unix = of_unix.map(|(since_ns, key)| (since_ns, Idle::Unix(key)));
    let mut idle: Vec<(u64, Idle)> = of_connections.chain(of_unix).collect();
    idle.sort();
    for (_, edge) in idle.into_iter().take(excess) {
        match edge {
            Idle::Connections(pair) => {
                if let Some(sums) = aggregator.edges.remove(&pair) {
                    aggregator.folded.fold(sums.client, sums.server);
                }
            }
            Idle::Unix(pair) => {
                if let Some(sums) = unix.edges.remove(&pair) {
                    unix.folded.fold(sums.client, sums.server);
                }
            }
        }
    }
}

impl EdgeAggregator {
    fn idle(&self, shown: &[Edge], edge_limit: EdgeLimit, now_ns: u64) -> Vec<(u64, Pair)> {
        let used: BTreeSet<Pair> = in_use(shown).into_iter().filter_map(Pair::of).collect();
        let is_in_use = |pair: &Pair| used.contains(pair);
        edge_limit.idle(&self.edges, now_ns, |sums| sums.ended_ns, is_in_use)
    }

    /// Forgets the names of processes that are gone and that no edge shows.
    pub fn forget_names(&mut self, open: &[Flow], is_alive: impl Fn(ProcessKey) -> bool) {
        let waiting = self.waiting.iter().map(|(flow, _)| flow);
        let flows = waiting.chain(open).filter_map(|flow| flow.process);
        let edges = self.edges.keys().flat_map(Pair::processes);
        let needed: BTreeSet<ProcessKey> = flows.chain(edges).collect();
        self.names
            .forget(|process| needed.contains(&process) || is_alive(process));
    }
}

impl UnixEdgeAggregator {
    /// Edges that were added to have not been idle until now.
    fn note_changes(&mut self, now_ns: u64) {
        for sums in self.edges.values_mut() {
            if std::mem::take(&mut sums.changed) {
                sums.changed_ns = now_ns;
            }
        }
    }

    fn idle(&self, shown: &[Edge], edge_limit: EdgeLimit, now_ns: u64) -> Vec<(u64, UnixPair)> {
        let used: BTreeSet<UnixPair> = in_use(shown).into_iter().filter_map(UnixPair::of).collect();
        let is_in_use = |pair: &UnixPair| used.contains(pair);
        edge_limit.idle(&self.edges, now_ns, |sums| sums.changed_ns, is_in_use)
    }

    /// What is no longer kept apart.
    pub fn folded(&self) -> &FoldedEdges {
        &self.folded
    }
}

/// Edges with open connections.
fn in_use(shown: &[Edge]) -> BTreeSet<&EdgeKey> {
    let is_open = |edge: &&Edge| {
        let sides = [&edge.client, &edge.server];
        sides.into_iter().flatten().any(|side| side.open > 0)
    };
    shown.iter().filter(is_open).map(|edge| &edge.key).collect()
}

#[cfg(test)]
mod tests {
    use profiler_model::{SideMetrics, Transfer};

    use super::super::{Identity, SocketTable, UnixListing};
    use super::*;
    use crate::edges::flow::Direction;

    const ROOM: EdgeLimit = EdgeLimit {
        edges: 2,
        idle_ns: 1_000,
    };

    fn process(pid: u32) -> ProcessKey {
        ProcessKey {
            pid,
            start_ticks: 1,
        }
    }

    /// The client's end of a connection to another node, to a port of its own.
    fn flow(port: u16, open: u64) -> Flow {
        Flow {
            cookie: u64::from(port),
            network_namespace: 1,
            local: "10.0.0.1:40000".parse().unwrap(),
            remote: format!("192.0.2.1:{port}").parse().unwrap(),
            direction: Some(Direction::Client),
            process: Some(process(7)),
            shared: false,
            comm: "app".to_owned(),
            seen_ns: 1,
            captured_bytes: None,
            http: None,
            metrics: SideMetrics {
                connections: 1,
                open,
                write: Transfer {
                    count: 1,
                    bytes: u64::from(port),
                },
                ..SideMetrics::default()
            },
        }
    }

    /// Without any Unix sockets.
    fn fold(aggregator: &mut EdgeAggregator, shown: &[Edge]) {
        let now_ns = aggregator.now_ns;
        fold_idle(
            (aggregator, shown),
            (&mut UnixEdgeAggregator::default(), &[]),
            ROOM,
            now_ns,
        );
    }

    fn ends_at(aggregator: &mut EdgeAggregator, ports: std::ops::Range<u16>, now_ns: u64) {
        for port in ports {
            aggregator.end(flow(port, 0), now_ns);
        }
        aggregator.settle(&[], (&SocketTable::default(), now_ns), now_ns, true);
    }

    fn ports(edges: &[Edge]) -> Vec<u16> {
        edges
            .iter()
            .filter_map(|edge| edge.key.server_port)
            .collect()
    }

    #[test]
    fn the_longest_idle_edges_are_folded_and_nothing_is_lost() {
        let socket_table = SocketTable::default();
        let mut aggregator = EdgeAggregator::default();
        ends_at(&mut aggregator, 1..4, 100);
        ends_at(&mut aggregator, 4..6, 200);
        aggregator.now_ns = 1_150;
        let (shown, ..) = aggregator.table(&[], &socket_table);
        fold(&mut aggregator, &shown);
        // The later ones have not been idle for long enough.
        let (edges, folded, _) = aggregator.table(&[], &socket_table);
        assert_eq!(ports(&edges), [4, 5]);
        assert_eq!(folded.edges, 3);
        assert_eq!(folded.client.write.bytes, 1 + 2 + 3);
        let kept: u64 = edges
            .iter()
            .filter_map(|edge| edge.client.as_ref())
            .map(|side| side.write.bytes)
            .sum();
        assert_eq!(kept + folded.client.write.bytes, 1 + 2 + 3 + 4 + 5);
    }

    #[test]
    fn an_edge_with_an_open_connection_stays() {
        let socket_table = SocketTable::default();
        let mut aggregator = EdgeAggregator::default();
        ends_at(&mut aggregator, 1..5, 100);
        aggregator.now_ns = 10_000;
        let open = [Flow {
            cookie: 99,
            ..flow(1, 1)
        }];
        let (shown, ..) = aggregator.table(&open, &socket_table);
        fold(&mut aggregator, &shown);
        let (edges, folded, _) = aggregator.table(&open, &socket_table);
        assert_eq!(ports(&edges), [1, 4]);
        assert_eq!(folded.edges, 2);
    }

    #[test]
    fn names_of_the_dead_are_forgotten_unless_they_are_needed() {
        let named = || Identity {
            comm: "app".to_owned(),
            container: None,
        };
        let mut aggregator = EdgeAggregator::default();
        for pid in [7, 8, 9] {
            aggregator.names().name(process(pid), || Some(named()));
        }
        aggregator.forget_names(&[flow(1, 1)], |alive| alive == process(8));
        let kept = |pid: &u32| aggregator.names.identity(process(*pid)) == named();
        let kept: Vec<u32> = (0..20).filter(kept).collect();
        assert_eq!(kept, [7, 8]);
    }

    #[test]
    fn edges_of_unix_sockets_and_of_connections_share_one_bound() {
        let mut aggregator = UnixEdgeAggregator::default();
        let key = |name: &str| {
            let end = profiler_model::Endpoint {
                pid: Some(7),
                start_ticks: Some(1),
                comm: "app".to_owned(),
                container: None,
                address: profiler_model::Address::Unix(name.to_owned()),
            };
            let key = EdgeKey {
                client: end.clone(),
                server: end,
                server_port: None,
                original_destination: None,
            };
            UnixPair::of(&key).unwrap()
        };
        let change = |aggregator: &mut UnixEdgeAggregator, name: &str, bytes: u64| {
            let sums = aggregator.edges.entry(key(name)).or_default();
            let side = sums.client.get_or_insert_default();
            side.write.bytes += bytes;
            sums.changed = true;
        };
        for (name, bytes) in [("/a", 1), ("/b", 2), ("/c", 4)] {
            change(&mut aggregator, name, bytes);
        }
        let mut connections = EdgeAggregator::default();
        ends_at(&mut connections, 1..2, 50);
        let fold =
            |aggregator: &mut UnixEdgeAggregator, connections: &mut EdgeAggregator, now_ns: u64| {
                let shown = connections.table(&[], &SocketTable::default()).0;
                let names = |_process| Identity::default();
                let (unix, _) = aggregator.table(&[], &UnixListing::default(), names);
                fold_idle((connections, &shown), (aggregator, &unix), ROOM, now_ns);
            };
        fold(&mut aggregator, &mut connections, 100);
        assert_eq!(
            (aggregator.folded().edges, connections.folded.edges),
            (0, 0)
        );
        // The first one is used again. There is room for two of four in all, and the connections have
        // been idle for longest.
        change(&mut aggregator, "/a", 8);
        fold(&mut aggregator, &mut connections, 2_000);
        assert_eq!(
            (aggregator.folded().edges, connections.folded.edges),
            (1, 1)
        );
        assert_eq!(connections.folded.client.write.bytes, 1);
        assert_eq!(aggregator.folded().client.write.bytes, 2);
        assert!(
            aggregator.edges.contains_key(&key("/a")) && aggregator.edges.contains_key(&key("/c"))
        );
    }
}
