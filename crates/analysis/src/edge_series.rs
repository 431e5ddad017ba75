//! Edges over time: tables that grow become steps, and steps become the series of one edge.
//!
//! A step is the difference of two tables, so counters and histograms of any span are exact sums of the
//! steps in it. Only edges that counted something are in a step: an idle node costs nothing. A busy edge
//! costs about 100 to 200 bytes a step before compression; `MAX_EDGES` bounds a step.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use profiler_model::{Edge, EdgeDelta, EdgeId, EdgeStep, EdgeTable, SideMetrics};

/// Edges of one step; what others counted comes with a later one.
const MAX_EDGES: usize = 1_000;
/// Edges that may be late.
const MAX_LATE: usize = 4_000;

/// Makes steps of tables, each of which holds everything that the earlier ones held.
#[derive(Debug, Default)]
pub struct StepRecorder {
    before: Option<Arc<EdgeTable>>,
    to_ms: u64,
    late: HashMap<EdgeId, EdgeDelta>,
}

impl StepRecorder {
    /// When the newest step ended.
    pub fn to_ms(&self) -> u64 {
        self.to_ms
    }

    /// The step that ends now, in milliseconds since counting began. `None` when nothing was counted.
    pub fn step(&mut self, table: &Arc<EdgeTable>, now_ms: u64) -> Option<EdgeStep> {
        let mut changed = std::mem::take(&mut self.late);
        {
            let before = self.before.as_deref().map_or(&[][..], |table| &table.edges);
            let before: HashMap<EdgeId, &Edge> = before
                .iter()
                .map(|edge| (EdgeId::of(&edge.key), edge))
                .collect();
            for edge in &table.edges {
                let id = EdgeId::of(&edge.key);
                let known = before.get(&id);
                if known.is_some_and(|known| is_same(known, edge)) {
                    continue;
                }
                let delta = delta(edge, known.copied());
                if delta != EdgeDelta::default() {
                    changed.entry(id).or_default().append(&delta);
                }
            }
        }
        self.before = Some(Arc::clone(table));
        let from_ms = self.to_ms.min(now_ms);
        self.to_ms = now_ms.max(self.to_ms);
        if changed.is_empty() {
            return None;
        }
        let mut edges: Vec<(EdgeId, EdgeDelta)> = changed.into_iter().collect();
        let mut left_out = 0;
        if edges.len() > MAX_EDGES {
            edges.sort_by_key(|(id, delta)| (std::cmp::Reverse(delta.bytes()), *id));
            let late = edges.split_off(MAX_EDGES);
            left_out = late.len().saturating_sub(MAX_LATE) as u64;
            self.late = late.into_iter().take(MAX_LATE).collect();
        }
        edges.sort_by_key(|(id, _)| *id);
        Some(EdgeStep {
            from_ms,
            to_ms: self.to_ms,
            edges,
            late: self.late.len() as u64,
            left_out,
        })
    }

    /// What is late, when no table comes any more.
    pub fn rest(&mut self) -> Option<EdgeStep> {
        let mut edges: Vec<_> = std::mem::take(&mut self.late).into_iter().collect();
        edges.sort_by_key(|(id, _)| *id);
        (!edges.is_empty()).then_some(EdgeStep {
            from_ms: self.to_ms,
            to_ms: self.to_ms,
            edges,
            late: 0,
            left_out: 0,
        })
    }
}

fn is_same(before: &Edge, now: &Edge) -> bool {
    before.client == now.client && before.server == now.server
}

fn delta(edge: &Edge, before: Option<&Edge>) -> EdgeDelta {
    let since =
        |side: fn(&Edge) -> Option<&SideMetrics>| side(edge)?.counted_since(before.and_then(side));
    EdgeDelta {
        client: since(|edge| edge.client.as_ref()),
        server: since(|edge| edge.server.as_ref()),
    }
}

/// What part of a series is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesCut {
    pub edge: EdgeId,
    pub from_ms: Option<u64>,
    pub to_ms: Option<u64>,
    /// At most so many steps: neighbours are added up until they fit.
    pub most: usize,
}

/// One step of a series: spans in which the edge counted nothing have an empty delta.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesStep {
    pub from_ms: u64,
    pub to_ms: u64,
    pub delta: EdgeDelta,
}

/// One edge over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeSeries {
    pub steps: Vec<SeriesStep>,
    /// Steps in which counts of some edges came late.
    pub late: u64,
    /// Counts of edges that are in no step, in edges and steps.
    pub left_out: u64,
    /// Stored steps that cannot be read.
    pub damaged: u64,
}

impl EdgeSeries {
    /// Adds a step of all edges; later ones follow in order.
    pub fn add(&mut self, step: &EdgeStep, cut: &SeriesCut) {
        let outside = cut.from_ms.is_some_and(|from| step.to_ms <= from)
            || cut.to_ms.is_some_and(|to| step.from_ms >= to);
        if outside {
            return;
        }
        self.late += u64::from(step.late > 0);
        self.left_out += step.left_out;
        let found = step.edges.binary_search_by_key(&cut.edge, |(id, _)| *id);
        let delta = found
            .ok()
            .and_then(|index| step.edges.get(index))
            .map(|(_, delta)| delta.clone());
        let delta = delta.unwrap_or_default();
        if let Some(last) = self.steps.last_mut()
            && step.to_ms <= last.to_ms
        {
            // What was late at the end has no span of its own.
            return last.delta.append(&delta);
        }
        self.silence_until(step.from_ms);
        self.steps.push(SeriesStep {
            from_ms: step.from_ms,
            to_ms: step.to_ms,
            delta,
        });
    }

    /// A span in which no edge counted anything has no step: then this edge counted nothing either.
    pub fn silence_until(&mut self, to_ms: u64) {
        if let Some(last) = self.steps.last()
            && last.to_ms < to_ms
        {
            let from_ms = last.to_ms;
            self.steps.push(SeriesStep {
                from_ms,
                to_ms,
                delta: EdgeDelta::default(),
            });
        }
    }

    /// Whether the edge counted anything.
    pub fn is_silent(&self) -> bool {
        let silent = EdgeDelta::default();
        self.steps.iter().all(|step| step.delta == silent)
    }

    /// Adds neighbours up until there are at most `most`.
    pub fn thin(&mut self, most: usize) {
        let together = self.steps.len().div_ceil(most.max(1)).max(1);
        if together == 1 {
            return;
        }
        let merged = self.steps.chunks(together).map(|steps| {
            let mut all = SeriesStep {
                from_ms: steps.first().map_or(0, |step| step.from_ms),
                to_ms: steps.last().map_or(0, |step| step.to_ms),
                delta: EdgeDelta::default(),
            };
            for step in steps {
                all.delta.append(&step.delta);
            }
            all
        });
        self.steps = merged.collect();
    }
}

/// The newest steps, as bytes, bounded in time and memory.
#[derive(Debug, Default)]
pub struct StepRing {
    steps: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
}

impl StepRing {
    /// Keeps a step and forgets those that ended `span_ms` before it, and the oldest beyond `most_bytes`.
    pub fn push(&mut self, step: &EdgeStep, span_ms: u64, most_bytes: usize) {
        let Ok(bytes) = postcard::to_stdvec(step) else {
            return;
        };
        self.bytes += bytes.len();
        self.steps.push_back((step.to_ms, bytes));
        while let Some((to_ms, oldest)) = self.steps.front() {
            let old = to_ms.saturating_add(span_ms) < step.to_ms;
            if !old && self.bytes <= most_bytes {
                break;
            }
            self.bytes -= oldest.len();
            self.steps.pop_front();
        }
    }

    /// The series of an edge in what is kept.
    pub fn series(&self, cut: &SeriesCut) -> EdgeSeries {
        let mut series = EdgeSeries::default();
        for (_, bytes) in &self.steps {
            match postcard::from_bytes::<EdgeStep>(bytes) {
                Ok(step) => series.add(&step, cut),
                Err(_) => series.damaged += 1,
            }
        }
        series
    }
}

#[cfg(test)]
mod tests;
