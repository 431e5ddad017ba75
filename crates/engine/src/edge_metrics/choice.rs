//! Which edges have series of their own.
//!
//! As many as there is room for, the largest first. An edge keeps its series until it has ended: it has no open
//! connection and has counted nothing for a while. Then its place is free for the largest of the others.
//!
//! `other` is the sum of everything without series of its own. An edge that gets them later begins at zero:
//! what it had counted until then stays in `other`. An edge that has ended gives everything to `other`.
//! So the sum over all series is that of all edges.
//!
//! No series ever becomes less. Where more is learnt of an open connection, such as the process at its other end,
//! it moves to another edge: the series it leaves stands still until its edge has counted as much anew. Until then
//! the sum is above that of all edges, by what moved.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use profiler_model::{EdgeTable, Endpoint};

use super::{Names, Side, readings::Readings};

/// An edge without open connections has series for so long after it has counted something.
pub(super) const ENDED_AFTER: Duration = Duration::from_mins(10);

/// Both ends' readings of one edge.
type Ends = BTreeMap<Side, Readings>;

/// One edge with its series.
#[derive(Debug)]
pub(super) struct EdgeSeries {
    pub(super) names: Names,
    pub(super) ends: Ends,
}

/// The choice, which is kept from one reading to the next.
#[derive(Debug, Default)]
pub struct Choice {
    /// Edges with series of their own, with what of them is counted in `other`.
    apart: BTreeMap<Names, Ends>,
    /// All edges: how much each had done when something was last seen of it.
    alive: BTreeMap<Names, (u64, Instant)>,
    /// What the series were at the last reading.
    shown: BTreeMap<Names, Ends>,
}

#[derive(Debug, Default)]
struct Sum {
    bytes: u64,
    /// Connections and bytes: grows with whatever the edge does.
    done: u64,
    /// Open connections.
    open: u64,
    ends: Ends,
}

impl Choice {
    /// The series of a table, read `now`; at most `most` edges, and `other`.
    pub(super) fn series(
        &mut self,
        table: &EdgeTable,
        most: usize,
        now: Instant,
    ) -> Vec<EdgeSeries> {
        let sums = sums(table);
        let new = self.meet(&sums, now);
        self.choose(&sums, &new, most, now);
        let mut other = Ends::new();
        for (side, folded) in [
            (Side::Client, &table.folded.client),
            (Side::Server, &table.folded.server),
        ] {
            if *folded != profiler_model::SideMetrics::default() {
                add(
                    &mut other,
                    side,
                    &Readings::of(folded, |metric| table.has(metric)),
                );
            }
        }
        let mut all = Vec::new();
        for (names, Sum { mut ends, .. }) in sums {
            let Some(before) = self.apart.get(&names) else {
                for (side, readings) in ends {
                    add(&mut other, side, &readings);
                }
                continue;
            };
            for (side, readings) in before {
                add(&mut other, *side, readings);
                if let Some(end) = ends.get_mut(side) {
                    end.subtract(readings);
                }
            }
            all.push(EdgeSeries { names, ends });
        }
        if !other.is_empty() {
            all.push(EdgeSeries {
                names: Names::other(),
                ends: other,
            });
        }
        self.keep_up(&mut all);
        all
    }

    /// Lets no series be less than it was at the last reading.
    fn keep_up(&mut self, all: &mut [EdgeSeries]) {
        for EdgeSeries { names, ends } in &mut *all {
            for (side, before) in self.shown.get(names).into_iter().flatten() {
                if let Some(readings) = ends.get_mut(side) {
                    readings.never_less_than(before);
                }
            }
        }
        let shown = all.iter();
        self.shown = shown
            .map(|series| (series.names.clone(), series.ends.clone()))
            .collect();
    }

    /// Notes which edges are alive, and takes the series of those that have ended. Returns the new ones, of which
    /// nothing is counted in `other`.
    fn meet<'a>(&mut self, sums: &'a BTreeMap<Names, Sum>, now: Instant) -> BTreeSet<&'a Names> {
        let mut new = BTreeSet::new();
        self.alive.retain(|names, _| sums.contains_key(names));
        for (names, sum) in sums {
            match self.alive.get_mut(names) {
                Some(alive) if sum.open > 0 || alive.0 != sum.done => *alive = (sum.done, now),
                Some(_) => {}
                None => {
                    self.alive.insert(names.clone(), (sum.done, now));
                    new.insert(names);
                }
            }
        }
        let alive = &self.alive;
        self.apart.retain(|names, _| is_alive(alive, names, now));
        new
    }

    /// Gives free places to the largest of the others.
    fn choose(
        &mut self,
        sums: &BTreeMap<Names, Sum>,
        new: &BTreeSet<&Names>,
        most: usize,
        now: Instant,
    ) {
        // Processes that are called `other` never get series of their own.
        let reserved = Names::other();
        let mut others: Vec<(&Names, &Sum)> = sums
            .iter()
            .filter(|(names, _)| !self.apart.contains_key(*names) && **names != reserved)
            .filter(|(names, _)| is_alive(&self.alive, names, now))
            .collect();
        others.sort_by_key(|(_, sum)| Reverse(sum.bytes));
        others.truncate(most.saturating_sub(self.apart.len()));
        for (names, sum) in others {
            let before = if new.contains(names) {
                Ends::new()
            } else {
                sum.counters()
            };
            self.apart.insert(names.clone(), before);
        }
    }
}

fn is_alive(alive: &BTreeMap<Names, (u64, Instant)>, names: &Names, now: Instant) -> bool {
    let seen = alive.get(names);
    seen.is_some_and(|(_, seen)| now.saturating_duration_since(*seen) < ENDED_AFTER)
}

impl Sum {
    /// What counts up, as read now.
    fn counters(&self) -> Ends {
        let ends = self.ends.iter();
        ends.map(|(side, readings)| (*side, readings.clone().without_gauges()))
            .collect()
    }
}

fn add(ends: &mut Ends, side: Side, more: &Readings) {
    ends.entry(side).or_default().add(more);
}

/// Edges by name, because processes come and go while what they do stays.
fn sums(table: &EdgeTable) -> BTreeMap<Names, Sum> {
    let mut sums: BTreeMap<Names, Sum> = BTreeMap::new();
    for edge in &table.edges {
        let (client, client_container) = name(&edge.key.client);
        let (server, server_container) = name(&edge.key.server);
        let protocol = edge.key.server.address.protocol();
        let names = Names {
            client,
            client_container,
            server,
            server_container,
            server_port: edge
                .key
                .server_port
                .map_or_else(String::new, |port| port.to_string()),
        };
        let sum = sums.entry(names).or_default();
        sum.bytes = sum.bytes.saturating_add(edge.bytes());
        for side in [&edge.client, &edge.server].into_iter().flatten() {
            let bytes = side.write.bytes.saturating_add(side.read.bytes);
            sum.done = sum
                .done
                .saturating_add(side.connections)
                .saturating_add(bytes);
            sum.open = sum.open.saturating_add(side.open);
        }
        for (side, metrics) in [(Side::Client, &edge.client), (Side::Server, &edge.server)] {
            if let Some(metrics) = metrics {
                let readings = Readings::of(metrics, |metric| table.has_of(protocol, metric));
                add(&mut sum.ends, side, &readings);
            }
        }
    }
    sums
}

/// The process and its container; the address of an end without a known process.
fn name(end: &Endpoint) -> (String, String) {
    let container = end.container.clone().unwrap_or_default();
    if end.pid.is_some() && !end.comm.is_empty() {
        (end.comm.clone(), container)
    } else {
        (end.address.to_string(), container)
    }
}
