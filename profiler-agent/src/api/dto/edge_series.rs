//! One edge over time.

use std::collections::{BTreeMap, BTreeSet};

use profiler_analysis::edge_series;
use profiler_common::network::BOUNDS_US;
use profiler_model::{EdgeId, EdgeTable, SideMetrics, Transfer, Values};
use serde::Serialize;
use utoipa::ToSchema;

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

/// One end over time.
#[derive(Debug, Serialize, ToSchema)]
struct SideSeries {
    /// New connections.
    connections: Vec<u64>,
    /// Open at the end of the step.
    open: Vec<u64>,
    #[schema(required)]
    write: Option<CallSeries>,
    #[schema(required)]
    read: Option<CallSeries>,
    #[schema(required)]
    connect: Option<ValueSeries>,
    #[schema(required)]
    connects_failed: Option<Vec<u64>>,
    #[schema(required)]
    accept: Option<ValueSeries>,
    #[schema(required)]
    close: Option<ValueSeries>,
    #[schema(required)]
    write_rtt_us: Option<ValueSeries>,
    #[schema(required)]
    receive_wait: Option<ValueSeries>,
    #[schema(required)]
    retransmit: Option<Vec<u64>>,
    #[schema(required)]
    drop: Option<NamedSeries>,
    #[schema(required)]
    reset: Option<ResetSeries>,
    #[schema(required)]
    error: Option<NamedSeries>,
}

#[derive(Debug, Serialize, ToSchema)]
struct CallSeries {
    count: Vec<u64>,
    bytes: Vec<u64>,
    /// Time in the calls, nanoseconds.
    #[schema(required)]
    time: Option<ValueSeries>,
}

/// Values in buckets. `bounds` are nanoseconds; of `write_rtt_us` microseconds.
#[derive(Debug, Serialize, ToSchema)]
struct ValueSeries {
    count: Vec<u64>,
    sum: Vec<u64>,
    /// As in the histograms of edges.
    bounds: Vec<u64>,
    /// For each step the buckets that are not empty: number of the bucket, and count.
    #[schema(value_type = Vec<Vec<(u64, u64)>>)]
    buckets: Vec<Vec<[u64; 2]>>,
}

#[derive(Debug, Serialize, ToSchema)]
struct NamedSeries {
    count: Vec<u64>,
    /// By reason (drops) or `errno` (errors).
    by_name: BTreeMap<String, Vec<u64>>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ResetSeries {
    sent: Vec<u64>,
    received: Vec<u64>,
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
            (known || steps.iter().any(Option::is_some)).then(|| side(steps, has))
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

fn side(steps: &[Option<&SideMetrics>], has: impl Fn(&str) -> bool) -> SideSeries {
    let numbers = |of: fn(&SideMetrics) -> u64| {
        let numbers = steps.iter().map(|step| step.map_or(0, of));
        numbers.collect::<Vec<u64>>()
    };
    let times = |of: fn(&SideMetrics) -> &Values| values(steps, of, 1000);
    let calls =
        |metric: &str, of: fn(&SideMetrics) -> Transfer, time: fn(&SideMetrics) -> &Values| {
            has(metric).then(|| CallSeries {
                count: counted(steps, |side| of(side).count),
                bytes: counted(steps, |side| of(side).bytes),
                time: has(&format!("{metric}.time_ns")).then(|| times(time)),
            })
        };
    let mut open = 0;
    let opened = steps.iter().map(|step| {
        open = step.map_or(open, |side| side.open);
        open
    });
    SideSeries {
        open: opened.collect(),
        connections: numbers(|side| side.connections),
        write: calls("write", |side| side.write, |side| &side.write_time),
        read: calls("read", |side| side.read, |side| &side.read_time),
        connect: has("connect").then(|| times(|side| &side.connect)),
        connects_failed: has("connect").then(|| numbers(|side| side.connects_failed)),
        accept: has("accept").then(|| times(|side| &side.accept)),
        close: has("close").then(|| times(|side| &side.close)),
        write_rtt_us: has("write_rtt_us").then(|| values(steps, |side| &side.write_rtt, 1)),
        receive_wait: has("receive_wait").then(|| times(|side| &side.receive_wait)),
        retransmit: has("retransmit").then(|| numbers(|side| side.retransmits)),
        drop: has("drop").then(|| NamedSeries {
            count: numbers(|side| side.drops),
            by_name: named(steps, |side| &side.drops_by_reason),
        }),
        reset: has("reset").then(|| ResetSeries {
            sent: numbers(|side| side.resets_sent),
            received: numbers(|side| side.resets_received),
        }),
        error: has("error").then(|| NamedSeries {
            count: numbers(|side| side.errors),
            by_name: named(steps, |side| &side.errors_by_number),
        }),
    }
}

fn counted(steps: &[Option<&SideMetrics>], of: impl Fn(&SideMetrics) -> u64) -> Vec<u64> {
    steps.iter().map(|step| step.map_or(0, &of)).collect()
}

fn values(
    steps: &[Option<&SideMetrics>],
    of: fn(&SideMetrics) -> &Values,
    units_per_us: u64,
) -> ValueSeries {
    let buckets = |values: &Values| {
        let numbered = (0..).zip(&values.counts).filter(|(_, count)| **count > 0);
        numbered.map(|(bucket, count)| [bucket, *count]).collect()
    };
    ValueSeries {
        count: counted(steps, |side| of(side).count),
        sum: counted(steps, |side| of(side).sum),
        bounds: BOUNDS_US
            .iter()
            .map(|bound| u64::from(*bound) * units_per_us)
            .collect(),
        buckets: steps
            .iter()
            .map(|step| step.map_or_else(Vec::new, |side| buckets(of(side))))
            .collect(),
    }
}

fn named<K: Ord + ToString>(
    steps: &[Option<&SideMetrics>],
    of: fn(&SideMetrics) -> &BTreeMap<K, u64>,
) -> BTreeMap<String, Vec<u64>> {
    let names: BTreeSet<&K> = steps
        .iter()
        .flatten()
        .flat_map(|side| of(side).keys())
        .collect();
    let number = |side: &SideMetrics, name: &K| of(side).get(name).copied().unwrap_or(0);
    let series = names
        .into_iter()
        .map(|name| (name.to_string(), counted(steps, |side| number(side, name))));
    series.collect()
}
