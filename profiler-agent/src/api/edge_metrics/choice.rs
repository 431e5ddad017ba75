//! Which edges have series of their own.
//!
//! `other` is the sum of everything without series of its own. An edge that gets them later begins at zero:
//! what it had counted until then stays in `other`. An edge that loses them gives everything to `other`.
//! So the sum over all series is always that of all edges, and no series ever becomes less.
//!
//! An edge that has no open connection and has counted nothing for a while has ended: it has no series.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use profiler_model::{EdgeTable, Endpoint};

use super::{Names, Side, readings::Readings};

/// An edge takes the place of one that is this many times smaller.
const TAKES_OVER: u64 = 2;

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
pub(crate) struct Choice {
    /// Edges with series of their own, with what of them is counted in `other`.
    chosen: BTreeMap<Names, Ends>,
    /// Edges that have been counted in `other`.
    in_other: BTreeSet<Names>,
    /// How much each edge had done when something was last seen of it.
    alive: BTreeMap<Names, (u64, Instant)>,
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
        self.end(&sums, now);
        self.choose(&sums, most, now);
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
        for (names, Sum { ends, .. }) in sums {
            match self.chosen.get(&names) {
                None => {
                    for (side, readings) in ends {
                        add(&mut other, side, &readings);
                    }
                }
                Some(before) => {
                    let mut ends = ends;
                    for (side, readings) in before {
                        add(&mut other, *side, readings);
                        if let Some(end) = ends.get_mut(side) {
                            end.subtract(readings);
                        }
                    }
                    all.push(EdgeSeries { names, ends });
                }
            }
        }
        if !other.is_empty() {
            all.push(EdgeSeries {
                names: Names::other(),
                ends: other,
            });
        }
        all
    }

    /// Takes the series of edges that have ended.
    fn end(&mut self, sums: &BTreeMap<Names, Sum>, now: Instant) {
        self.alive.retain(|names, _| sums.contains_key(names));
        for (names, sum) in sums {
            match self.alive.get_mut(names) {
                Some(alive) if sum.open > 0 || alive.0 != sum.done => *alive = (sum.done, now),
                Some(_) => {}
                None => {
                    self.alive.insert(names.clone(), (sum.done, now));
                }
            }
        }
        let ended = self
            .chosen
            .keys()
            .filter(|names| !self.is_alive(names, now));
        for names in ended.cloned().collect::<Vec<_>>() {
            self.chosen.remove(&names);
            self.in_other.insert(names);
        }
    }

    fn is_alive(&self, names: &Names, now: Instant) -> bool {
        let seen = self.alive.get(names);
        seen.is_some_and(|(_, seen)| now.saturating_duration_since(*seen) < ENDED_AFTER)
    }

    fn choose(&mut self, sums: &BTreeMap<Names, Sum>, most: usize, now: Instant) {
        self.chosen.retain(|names, _| sums.contains_key(names));
        self.in_other.retain(|names| sums.contains_key(names));
        let bytes = |names: &Names| sums.get(names).map_or(0, |sum| sum.bytes);
        let (mut rest, ended): (Vec<&Names>, Vec<&Names>) = sums
            .keys()
            .filter(|names| !self.chosen.contains_key(*names) && **names != Names::other())
            .partition(|names| self.is_alive(names, now));
        self.in_other.extend(ended.into_iter().cloned());
        // The largest comes last. Processes that are called `other` never get series of their own.
        rest.sort_by_key(|names| bytes(names));
        while let Some(largest) = rest.last().copied() {
            if self.chosen.len() >= most {
                let smallest = self.chosen.keys().min_by_key(|names| bytes(names)).cloned();
                let Some(smallest) = smallest else { break };
                if bytes(largest) <= bytes(&smallest).saturating_mul(TAKES_OVER) {
                    break;
                }
                self.chosen.remove(&smallest);
                self.in_other.insert(smallest);
            }
            rest.pop();
            let before = if self.in_other.remove(largest) {
                let ends = sums.get(largest).map(|sum| sum.ends.clone());
                ends.unwrap_or_default()
                    .into_iter()
                    .map(|(side, readings)| (side, readings.without_gauges()))
                    .collect()
            } else {
                Ends::new()
            };
            self.chosen.insert(largest.clone(), before);
        }
        self.in_other.extend(rest.into_iter().cloned());
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
