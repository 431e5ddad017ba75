//! The single connections behind edges: those with most bytes, so that memory and answers stay small.

use std::collections::HashMap;

use profiler_model::{EdgeConnection, EdgeId};

use super::{
    aggregator::Pair,
    flow::{Direction, Flow},
};

/// Connections that are listed at once, over all edges.
const MOST: usize = 2_000;
/// Of one end of an edge.
pub const MOST_OF_EDGE: usize = 100;

/// Connections as they are met, each with its place.
#[derive(Debug, Default)]
pub struct Connections<'a> {
    met: Vec<(Pair, Direction, &'a Flow)>,
}

impl<'a> Connections<'a> {
    pub fn note(&mut self, pair: Pair, direction: Direction, flow: &'a Flow) {
        self.met.push((pair, direction, flow));
        // Sorting now and then keeps this small with any number of connections.
        if self.met.len() >= 4 * MOST {
            self.keep_largest();
        }
    }

    fn keep_largest(&mut self) {
        self.met
            .sort_by_key(|(_, _, flow)| (std::cmp::Reverse(flow.bytes()), flow.cookie));
        let mut of_edge: HashMap<(Pair, bool), usize> = HashMap::new();
        self.met.retain(|(pair, direction, _)| {
            let number = of_edge
                .entry((*pair, *direction == Direction::Client))
                .or_default();
            *number += 1;
            *number <= MOST_OF_EDGE
        });
        self.met.truncate(MOST);
    }

    /// Those with most bytes, by edge. `now_ns`: on the kernel's clock.
    pub fn finish(mut self, now_ns: u64) -> Vec<(EdgeId, EdgeConnection)> {
        self.keep_largest();
        let listed = self.met.iter().map(|(pair, direction, flow)| {
            let metrics = &flow.metrics;
            let connection = EdgeConnection {
                is_client: *direction == Direction::Client,
                local: flow.local,
                remote: flow.remote,
                pid: flow.process.map(|process| process.pid),
                age_ns: now_ns.saturating_sub(flow.seen_ns),
                is_open: metrics.open > 0,
                write: metrics.write,
                read: metrics.read,
                rtt_us: (metrics.write_rtt.count > 0)
                    .then(|| metrics.write_rtt.sum / metrics.write_rtt.count),
                min_rtt_us: metrics.min_rtt_us,
                retransmits: metrics.retransmits,
                drops: metrics.drops,
            };
            (pair.id(), connection)
        });
        listed.collect()
    }
}
