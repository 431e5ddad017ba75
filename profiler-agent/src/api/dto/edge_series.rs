//! One edge over time.

use std::collections::BTreeMap;

use profiler_analysis::edge_series;
use profiler_model::{EdgeId, EdgeTable, SideMetrics};
use serde::Serialize;
use utoipa::ToSchema;

use super::edge_sides::SideSeries;

/// What an edge counted in each step. Every array has one number for each step; sums over steps are exact.
#[derive(Debug, Serialize, ToSchema)]
pub struct EdgeSeries {
    edge: String,
    /// Steps in milliseconds since counting began, in order: from, and to. One may be missing where stored
    /// results were removed.
    #[schema(value_type = Vec<(u64, u64)>)]
    steps_ms: Vec<[u64; 2]>,
    /// Null: this end was not watched.
    #[schema(required)]
    client: Option<SideSeries>,
    #[schema(required)]
    server: Option<SideSeries>,
    /// Metrics that are null, with the reason.
    unavailable: BTreeMap<String, String>,
    /// Steps in which so many edges changed that the counts of some came with a later step.
    late_steps: u64,
    /// Counts that are in no step, in edges and steps: more edges changed at once than there is room for.
    left_out: u64,
    /// Stored parts that cannot be read.
    damaged: u64,
}

impl EdgeSeries {
    /// `table`: says what is measured, and which ends were watched.
    pub fn new(id: EdgeId, series: &edge_series::EdgeSeries, table: &EdgeTable) -> Self {
        let known = table.edges.iter().find(|edge| EdgeId::of(&edge.key) == id);
        let protocol = known.map_or("", |edge| edge.key.server.address.protocol());
        let has = |metric: &str| table.has_of(protocol, metric);
        let steps = &series.steps;
        let client: Vec<_> = steps
            .iter()
            .map(|step| step.delta.client.as_ref())
            .collect();
        let server: Vec<_> = steps
            .iter()
            .map(|step| step.delta.server.as_ref())
            .collect();
        let watched = |steps: &[Option<&SideMetrics>], known: bool| {
            (known || steps.iter().any(Option::is_some)).then(|| SideSeries::new(steps, has))
        };
        let prefix = format!("{protocol}.");
        let reasons = table.unavailable.iter().map(|(metric, reason)| {
            let metric = metric.strip_prefix(&prefix).unwrap_or(metric);
            (metric.to_owned(), reason.clone())
        });
        Self {
            edge: id.to_string(),
            steps_ms: steps
                .iter()
                .map(|step| [step.from_ms, step.to_ms])
                .collect(),
            client: watched(&client, known.is_some_and(|edge| edge.client.is_some())),
            server: watched(&server, known.is_some_and(|edge| edge.server.is_some())),
            unavailable: reasons.collect(),
            late_steps: series.late,
            left_out: series.left_out,
            damaged: series.damaged,
        }
    }
}
