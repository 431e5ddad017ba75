//! Keeps what was counted when the collection has to be started again.
//!
//! Counters never become less: the table of a collection that has ended is the ground that the next one
//! counts on. Connections that were open at that moment are counted again by the next collection.

use std::collections::BTreeMap;

use profiler_model::{Edge, EdgeId, EdgeTable, SideMetrics};

/// Edges of earlier collections that are kept apart.
const MAX_EDGES: usize = 1_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    earlier: EdgeTable,
    newest: EdgeTable,
}

impl Ledger {
    /// Takes the table of the running collection; everything counted so far.
    pub(super) fn take(&mut self, table: EdgeTable) -> EdgeTable {
        self.newest = table;
        if self.earlier == EdgeTable::default() {
            return self.newest.clone();
        }
        sum(&self.earlier, &self.newest)
    }

    /// The collection has ended.
    pub(super) fn seal(&mut self) {
        let mut all = sum(&self.earlier, &self.newest);
        for edge in &mut all.edges {
            for side in [&mut edge.client, &mut edge.server].into_iter().flatten() {
                side.open = 0;
            }
        }
        all.connections = Vec::new();
        all.folded.client.open = 0;
        all.folded.server.open = 0;
        fold_smallest(&mut all, MAX_EDGES);
        self.earlier = all;
        self.newest = EdgeTable::default();
    }
}

/// Both together; sources and what is unavailable are those of the newest.
fn sum(earlier: &EdgeTable, newest: &EdgeTable) -> EdgeTable {
    let EdgeTable {
        edges,
        folded,
        sources: _,
        unavailable: _,
        unresolved,
        lost_events,
        lost_bytes,
        kernel_table,
        window,
        connections: _,
    } = earlier;
    let mut all = newest.clone();
    // Names of processes may have changed meanwhile.
    let mut by_id: BTreeMap<EdgeId, Edge> = edges
        .iter()
        .map(|edge| (EdgeId::of(&edge.key), edge.clone()))
        .collect();
    for edge in std::mem::take(&mut all.edges) {
        let id = EdgeId::of(&edge.key);
        match by_id.get_mut(&id) {
            None => {
                by_id.insert(id, edge);
            }
            Some(known) => {
                known.key = edge.key;
                if known.client_port != edge.client_port {
                    known.client_port = None;
                }
                known.namespaces = edge.namespaces;
                add(&mut known.client, edge.client);
                add(&mut known.server, edge.server);
            }
        }
    }
    all.edges = by_id.into_values().collect();
    all.edges.sort_by(|left, right| left.key.cmp(&right.key));
    all.folded.merge(folded);
    for (what, count) in unresolved {
        *all.unresolved.entry(what.clone()).or_default() += count;
    }
    // From the first collection on, whatever was between them.
    if let (Some(all), Some(earlier)) = (&mut all.window, window) {
        all.from_ns = all.from_ns.min(earlier.from_ns);
    }
    all.lost_events += lost_events;
    all.lost_bytes += lost_bytes;
    all.kernel_table.refused += kernel_table.refused;
    all.kernel_table.evicted += kernel_table.evicted;
    all.kernel_table.swept += kernel_table.swept;
    all.kernel_table.delayed += kernel_table.delayed;
    for (program, runs) in &kernel_table.missed_runs {
        *all.kernel_table
            .missed_runs
            .entry(program.clone())
            .or_default() += runs;
    }
    all
}

fn add(sum: &mut Option<SideMetrics>, more: Option<SideMetrics>) {
    if let Some(more) = more {
        sum.get_or_insert_default().merge(&more);
    }
}

/// Adds up the edges with the fewest bytes until `most` are left.
fn fold_smallest(table: &mut EdgeTable, most: usize) {
    let excess = table.edges.len().saturating_sub(most);
    if excess == 0 {
        return;
    }
    table.edges.sort_by_key(Edge::bytes);
    for edge in table.edges.drain(..excess) {
        table.folded.fold(edge.client, edge.server);
    }
    table.edges.sort_by(|left, right| left.key.cmp(&right.key));
}

#[cfg(test)]
mod tests {
    use profiler_model::{Address, EdgeKey, Endpoint, Transfer};

    use super::*;

    fn edge(port: u16, bytes: u64, open: u64) -> Edge {
        let end = |comm: &str| Endpoint {
            pid: Some(1),
            start_ticks: Some(1),
            comm: comm.to_owned(),
            container: None,
            address: Address::Ip([10, 0, 0, 1].into()),
        };
        Edge {
            key: EdgeKey {
                client: end("client"),
                server: end("server"),
                server_port: Some(port),
                original_destination: None,
            },
            client_port: Some(4000),
            client_name: None,
            namespaces: profiler_model::EdgeNamespaces::default(),
            server_name: None,
            client: Some(SideMetrics {
                connections: 1,
                open,
                write: Transfer { count: 1, bytes },
                ..SideMetrics::default()
            }),
            server: None,
        }
    }

    fn table(edges: Vec<Edge>) -> EdgeTable {
        EdgeTable {
            edges,
            lost_events: 1,
            ..EdgeTable::default()
        }
    }

    fn written(table: &EdgeTable, port: u16) -> u64 {
        let found = table
            .edges
            .iter()
            .find(|edge| edge.key.server_port == Some(port));
        let side = found.and_then(|edge| edge.client.as_ref());
        side.map_or(0, |side| side.write.bytes)
    }

    #[test]
    fn a_restart_loses_no_count() {
        let mut ledger = Ledger::default();
        let first = ledger.take(table(vec![edge(1, 100, 1), edge(2, 5, 0)]));
        assert_eq!(written(&first, 1), 100);
        ledger.seal();
        let second = ledger.take(table(vec![edge(1, 10, 1), edge(3, 7, 0)]));
        assert_eq!([1, 2, 3].map(|port| written(&second, port)), [110, 5, 7]);
        let side = second.edges[0].client.as_ref().unwrap();
        assert_eq!((side.connections, side.open), (2, 1));
        assert_eq!(second.lost_events, 2);
        // A newer table of the same collection is in place of the one before.
        let third = ledger.take(table(vec![edge(1, 11, 1)]));
        assert_eq!(written(&third, 1), 111);
    }

    #[test]
    fn a_restart_keeps_the_largest_edges_apart() {
        let mut ledger = Ledger::default();
        let most = u16::try_from(MAX_EDGES).unwrap();
        ledger.take(table(
            (1..=most + 2)
                .map(|port| edge(port, port.into(), 0))
                .collect(),
        ));
        ledger.seal();
        let all = ledger.take(table(vec![edge(1, 100, 1)]));
        assert_eq!(all.edges.len(), MAX_EDGES + 1);
        assert_eq!([1, 2, 3].map(|port| written(&all, port)), [100, 0, 3]);
        assert_eq!((all.folded.edges, all.folded.client.write.bytes), (2, 3));
    }

    #[test]
    fn the_smallest_edges_of_earlier_collections_are_added_up() {
        let mut all = table((1..=5).map(|port| edge(port, port.into(), 0)).collect());
        fold_smallest(&mut all, 2);
        let ports: Vec<u16> = all
            .edges
            .iter()
            .filter_map(|edge| edge.key.server_port)
            .collect();
        assert_eq!(ports, [4, 5]);
        assert_eq!(all.folded.edges, 3);
        assert_eq!(all.folded.client.write.bytes, 6);
    }
}
