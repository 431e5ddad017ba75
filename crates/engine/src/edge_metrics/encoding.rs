//! Series of edges as text.

use std::{fmt::Error, time::Instant};

use profiler_common::network::BOUNDS_US;
use profiler_model::{
    EDGE_METRICS, EdgeMetric, EdgeReading, EdgeTable, EdgeUnit, float, printable::printable,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabel, EncodeLabelSet, LabelSetEncoder, NoLabelSet},
    metrics::MetricType,
    registry::Unit,
};

use super::{
    Names, Side,
    choice::{Choice, EdgeSeries},
    readings::Reading,
};
use crate::network_watch::WatchedEdges;

/// Those of the bounds that histograms have here, in microseconds: each is a series for each edge.
pub(super) const SHOWN_US: [u32; 9] = [
    100, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 1_000_000, 5_000_000,
];
const _: () = assert!(are_bounds(&SHOWN_US));

const fn are_bounds(shown: &[u32]) -> bool {
    let mut next = 0;
    let mut index = 0;
    while index < BOUNDS_US.len() {
        if next < shown.len() && BOUNDS_US[index] == shown[next] {
            next += 1;
        }
        index += 1;
    }
    next == shown.len()
}

/// Everything that the always-on collection has to say at one moment.
#[derive(Debug)]
pub struct NetworkMetrics {
    series: Vec<EdgeSeries>,
    edges: usize,
    folded: u64,
    restarts: u64,
    lost_calls: u64,
    lost_bytes: u64,
    unresolved: Vec<(String, u64)>,
}

impl NetworkMetrics {
    /// The metrics of what was watched, read `now`; `most` bounds the edges with series of their own.
    pub fn read(watched: &WatchedEdges, choice: &mut Choice, most: usize, now: Instant) -> Self {
        let nothing = EdgeTable::default();
        let table = watched.table.as_deref().unwrap_or(&nothing);
        Self {
            series: choice.series(table, most, now),
            edges: table.edges.len(),
            folded: table.folded.edges,
            restarts: watched.restarts,
            lost_calls: table.lost_events,
            lost_bytes: table.lost_bytes,
            unresolved: table
                .unresolved
                .iter()
                .map(|(what, count)| (what.clone(), *count))
                .collect(),
        }
    }
}

impl Collector for NetworkMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for (metric, described) in EDGE_METRICS.iter().enumerate() {
            encode_metric(metric, described, &self.series, &mut encoder)?;
        }
        let gauges = [(
            "network_edges",
            "Edges that are kept apart",
            self.edges as u64,
        )];
        for (name, help, value) in gauges {
            encoder
                .encode_descriptor(name, help, None, MetricType::Gauge)?
                .encode_gauge(&signed(value))?;
        }
        let counters = [
            (
                "network_folded_edges",
                "Edges that were silent and are no longer kept apart",
                None,
                self.folded,
            ),
            (
                "network_collection_restarts",
                "Times that the collection had to be started again",
                None,
                self.restarts,
            ),
            (
                "network_lost_calls",
                "Reads and writes of connections without room in the kernel's table",
                None,
                self.lost_calls,
            ),
            (
                "network_lost",
                "Bytes of connections without room in the kernel's table",
                Some(&Unit::Bytes),
                self.lost_bytes,
            ),
        ];
        for (name, help, unit, value) in counters {
            encoder
                .encode_descriptor(name, help, unit, MetricType::Counter)?
                .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        let mut unresolved = encoder.encode_descriptor(
            "network_unresolved_connections",
            "Connections of which something could not be told",
            None,
            MetricType::Gauge,
        )?;
        for (what, count) in &self.unresolved {
            unresolved
                .encode_family(&[("what", what.as_str())])?
                .encode_gauge(&signed(*count))?;
        }
        Ok(())
    }
}

/// `metric` is the place of `described` in [`EDGE_METRICS`].
fn encode_metric(
    metric: usize,
    described: &EdgeMetric,
    series: &[EdgeSeries],
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let (kind, label) = match described.reading {
        EdgeReading::Counter(_) => (MetricType::Counter, None),
        EdgeReading::Named(label, _) => (MetricType::Counter, Some(label)),
        EdgeReading::Gauge(_) | EdgeReading::Least(_) => (MetricType::Gauge, None),
        EdgeReading::Values(_) => (MetricType::Histogram, None),
    };
    let (unit, of_unit) = match described.unit {
        EdgeUnit::Events => (None, 1.0),
        EdgeUnit::Bytes => (Some(Unit::Bytes), 1.0),
        EdgeUnit::Microseconds => (Some(Unit::Seconds), 1e6),
        EdgeUnit::Nanoseconds => (Some(Unit::Seconds), 1e9),
    };
    let mut family =
        encoder.encode_descriptor(described.name, described.help, unit.as_ref(), kind)?;
    for EdgeSeries { names, ends } in series {
        for (side, readings) in ends {
            let from = (metric, String::new());
            let own = readings
                .values
                .range(from..)
                .take_while(|((found, _), _)| *found == metric);
            for ((_, detail), reading) in own {
                let labels = Labels {
                    names,
                    side: *side,
                    detail: label.map(|name| (name, detail.as_str())),
                };
                let mut encoder = family.encode_family(&labels)?;
                match reading {
                    Reading::Counter(value) => {
                        encoder.encode_counter::<NoLabelSet, _, u64>(value, None)?;
                    }
                    Reading::Gauge(value) => encoder.encode_gauge(&signed(*value))?,
                    Reading::Least(value) => encoder.encode_gauge(&(float(*value) / of_unit))?,
                    Reading::Histogram { counts, sum } => {
                        encoder.encode_histogram::<NoLabelSet>(
                            float(*sum) / of_unit,
                            counts.iter().sum(),
                            &buckets(counts),
                            None,
                        )?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Upper bounds in seconds with their counts; the last is what is above all bounds. What lies between
/// two bounds is added up, so that every count is exact.
fn buckets(counts: &[u64]) -> Vec<(f64, u64)> {
    let all = BOUNDS_US.iter().map(Some).chain([None]);
    let mut buckets = Vec::with_capacity(SHOWN_US.len() + 1);
    let mut below = 0_u64;
    for (bound, count) in all.zip(counts) {
        below = below.saturating_add(*count);
        match bound {
            Some(bound) if !SHOWN_US.contains(bound) => continue,
            Some(bound) => buckets.push((f64::from(*bound) / 1e6, below)),
            None => buckets.push((f64::MAX, below)),
        }
        below = 0;
    }
    buckets
}

pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The labels of one series.
struct Labels<'a> {
    names: &'a Names,
    side: Side,
    detail: Option<(&'static str, &'a str)>,
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), Error> {
        let Names {
            client,
            client_container,
            server,
            server_container,
            server_port,
        } = self.names;
        for (name, value) in [
            ("client", client),
            ("client_container", client_container),
            ("server", server),
            ("server_container", server_container),
            ("server_port", server_port),
        ] {
            (name, escaped(value).as_str()).encode(encoder.encode_label())?;
        }
        ("side", self.side.name()).encode(encoder.encode_label())?;
        if let Some((name, value)) = self.detail {
            (name, escaped(value).as_str()).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

/// The library writes values as they are; names of processes are untrusted. What is not printable
/// becomes text, so that no terminal interprets it.
pub(super) fn escaped(value: &str) -> String {
    let shown = printable(value);
    let mut text = String::with_capacity(shown.len());
    for letter in shown.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            other => text.push(other),
        }
    }
    text
}
