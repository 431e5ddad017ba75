//! Counts with what missing entries would have added.

use std::collections::HashMap;

use profiler_model::{Operation, RequestEdge, Tally, float};

use super::envoy::Envoy;
use crate::requests::{counts::scaled, estimate::times};

/// Entries of an Envoy that are missing since the task began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Dropped by the Envoy, or not read here.
    pub lost: u64,
    /// Written by the Envoy, and not received; it may still come.
    pub unknown: u64,
}

impl Missing {
    /// What is missing since an earlier moment.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            lost: self.lost.saturating_sub(before.lost),
            unknown: self.unknown.saturating_sub(before.unknown),
        }
    }

    pub(super) fn all(self) -> u64 {
        self.lost.saturating_add(self.unknown)
    }
}

/// Adds what was lost to the counts of operations, to each by its share in what came. Entries are dropped in bursts, so that nobody knows
/// of which operations they were. The interval goes from what came to that and everything that is missing of the Envoy.
pub(super) fn make_up(operations: &mut [Operation], edges: &[RequestEdge], envoys: &[Envoy]) {
    let known = envoys.iter().filter_map(|envoy| {
        let missing = envoy.missing.filter(|missing| missing.all() > 0)?;
        Some((
            (envoy.process.pid?, envoy.process.start_ticks),
            (envoy.entries(), missing),
        ))
    });
    let known: HashMap<_, _> = known.collect();
    for operation in operations {
        let place = operation.edge.and_then(|place| usize::try_from(place).ok());
        let Some(edge) = place.and_then(|place| edges.get(place)) else {
            continue;
        };
        let is_servers = operation.server_only == operation.tally.count;
        let counted_by = if is_servers {
            &edge.key.server
        } else {
            &edge.key.client
        };
        let envoy = counted_by.pid.map(|pid| (pid, counted_by.start_ticks));
        let Some((came, missing)) = envoy.and_then(|envoy| known.get(&envoy)).copied() else {
            continue;
        };
        operation.tally = with(&operation.tally, came, missing);
        if is_servers {
            operation.server_only = operation.tally.count;
        }
    }
}

/// A tally with what is missing. `came`: all entries of the Envoy that were received.
fn with(tally: &Tally, came: u64, missing: Missing) -> Tally {
    let factor = float(came.saturating_add(missing.lost)) / float(came.max(1));
    let all = scaled(tally, factor);
    let most = tally.seen.saturating_add(missing.all());
    // At the least nothing of what was lost is of this operation, at the most everything.
    let half = (all.count - tally.seen.min(all.count)).max(most.saturating_sub(all.count));
    Tally {
        // The interval is 1.96 standard deviations to each side.
        variance: Some(times(half, float(half) / (1.96 * 1.96))),
        ..all
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::Outcomes;

    use super::*;

    #[test]
    fn what_was_lost_is_shared_out_and_the_interval_has_all_of_it() {
        let came = Tally {
            count: 900,
            seen: 900,
            outcomes: Outcomes {
                ok: 800,
                server_error: 100,
                ..Outcomes::default()
            },
            statuses: [("200".to_owned(), 800), ("503".to_owned(), 100)].into(),
            ..Tally::default()
        };
        let missing = Missing {
            lost: 200,
            unknown: 50,
        };
        let all = with(&came, 1_000, missing);
        assert_eq!((all.count, all.seen), (1_080, 900));
        assert_eq!((all.outcomes.ok, all.outcomes.server_error), (960, 120));
        assert_eq!(all.statuses["503"], 120);
        assert!(!all.is_certain());
        let (low, high) = all.interval();
        assert_eq!(low, 900);
        assert!((1_260..=1_262).contains(&high.unwrap()), "{high:?}");
        // What is unknown widens the interval alone.
        let late = Missing {
            lost: 0,
            unknown: 2,
        };
        let all = with(&came, 1_000, late);
        assert_eq!((all.count, all.interval().0), (900, 900));
        assert!((902..=903).contains(&all.interval().1.unwrap()));
    }
}
