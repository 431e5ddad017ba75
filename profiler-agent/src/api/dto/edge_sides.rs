//! What one end of an edge measured, in all and over time: the same metrics in the same order.

use std::collections::{BTreeMap, BTreeSet};

use profiler_common::network::BOUNDS_US;
use profiler_model as model;
use serde::Serialize;
use utoipa::ToSchema;

type Side = model::SideMetrics;

/// Null metrics are named in `unavailable`. Times are nanoseconds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SideMetrics {
    connections: ConnectionCount,
    #[schema(required)]
    write: Option<EdgeTransfer>,
    #[schema(required)]
    read: Option<EdgeTransfer>,
    #[schema(required)]
    connect: Option<EdgeConnects>,
    /// From the establishment until the process took the connection out of the queue.
    #[schema(required)]
    accept: Option<EdgeTimes>,
    /// From the end of sending until the socket was closed.
    #[schema(required)]
    close: Option<EdgeTimes>,
    /// Smoothed round-trip time (`tcp_sock.srtt_us`) at each write, microseconds. Acknowledgements that the
    /// peer delays are in it, so that it can be much longer than the network takes.
    #[schema(required)]
    write_rtt_us: Option<EdgeValues>,
    /// The smallest round-trip time that the kernel measured (`tcp_sock.rtt_min`), microseconds: what the
    /// network takes. Null also before the first write.
    #[schema(required)]
    min_rtt_us: Option<u64>,
    /// From the arrival of data until the process read it.
    #[schema(required)]
    receive_wait: Option<EdgeTimes>,
    #[schema(required)]
    retransmit: Option<EventCount>,
    #[schema(required)]
    drop: Option<EdgeDrops>,
    #[schema(required)]
    reset: Option<EdgeResets>,
    #[schema(required)]
    error: Option<EdgeErrors>,
    #[schema(required)]
    socket: Option<EdgeSocketTotals>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ConnectionCount {
    count: u64,
    /// Of these, open now.
    open: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct EventCount {
    count: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeTransfer {
    count: u64,
    bytes: u64,
    /// Time in the calls that moved something, until they returned. What moved without a system call
    /// of its own, by `io_uring` or as one of several messages, has no time of its own.
    #[schema(required)]
    time_ns: Option<u64>,
    #[schema(required)]
    histogram: Option<EdgeHistogram>,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeConnects {
    /// Connections that were established.
    count: u64,
    failed: u64,
    time_ns: u64,
    histogram: EdgeHistogram,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeTimes {
    count: u64,
    time_ns: u64,
    histogram: EdgeHistogram,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeValues {
    count: u64,
    sum: u64,
    /// Null before the first value.
    #[schema(required)]
    min: Option<u64>,
    #[schema(required)]
    max: Option<u64>,
    histogram: EdgeHistogram,
}

/// `counts[i]` values are not above `bounds[i]` and above the bound before it; the last of `counts`
/// are those above all bounds.
#[derive(Debug, Serialize, ToSchema)]
struct EdgeHistogram {
    bounds: Vec<u64>,
    counts: Vec<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeDrops {
    count: u64,
    /// The kernel's names of the reasons.
    by_reason: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeResets {
    count: u64,
    sent: u64,
    received: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct EdgeErrors {
    count: u64,
    /// Connections by the number of their last error (`errno`).
    // Names of JSON are texts, whatever the map has.
    #[schema(value_type = BTreeMap<String, u64>)]
    by_errno: BTreeMap<u32, u64>,
}

/// Payload of connections that have ended, by the kernel's own counts, beside what the calls that
/// were seen add up to. The kernel counts the end of a stream as one byte.
#[derive(Debug, Serialize, ToSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "units are part of the names in the API"
)]
struct EdgeSocketTotals {
    sent_bytes: u64,
    received_bytes: u64,
    written_bytes: u64,
    read_bytes: u64,
}

impl SideMetrics {
    /// `has`: whether a metric is available.
    pub(super) fn new(metrics: &Side, has: impl Fn(&str) -> bool) -> Self {
        let transfer = |found: &model::Transfer, times: &model::Values, metric: &str| {
            let timed = has(metric).then_some(times);
            EdgeTransfer {
                count: found.count,
                bytes: found.bytes,
                time_ns: timed.map(|times| times.sum),
                histogram: timed.map(nanoseconds),
            }
        };
        let times = |found: &model::Values| EdgeTimes {
            count: found.count,
            time_ns: found.sum,
            histogram: nanoseconds(found),
        };
        Self {
            connections: ConnectionCount {
                count: metrics.connections,
                open: metrics.open,
            },
            write: has("write")
                .then(|| transfer(&metrics.write, &metrics.write_time, "write.time_ns")),
            read: has("read").then(|| transfer(&metrics.read, &metrics.read_time, "read.time_ns")),
            connect: has("connect").then(|| EdgeConnects {
                count: metrics.connect.count,
                failed: metrics.connects_failed,
                time_ns: metrics.connect.sum,
                histogram: nanoseconds(&metrics.connect),
            }),
            accept: has("accept").then(|| times(&metrics.accept)),
            close: has("close").then(|| times(&metrics.close)),
            write_rtt_us: has("write_rtt_us").then(|| EdgeValues {
                count: metrics.write_rtt.count,
                sum: metrics.write_rtt.sum,
                min: metrics.write_rtt.least,
                max: metrics.write_rtt.greatest,
                histogram: histogram(&metrics.write_rtt, 1),
            }),
            min_rtt_us: metrics.min_rtt_us.filter(|_| has("min_rtt_us")),
            receive_wait: has("receive_wait").then(|| times(&metrics.receive_wait)),
            retransmit: has("retransmit").then_some(EventCount {
                count: metrics.retransmits,
            }),
            drop: has("drop").then(|| EdgeDrops {
                count: metrics.drops,
                by_reason: metrics.drops_by_reason.clone(),
            }),
            reset: has("reset").then_some(EdgeResets {
                count: metrics.resets_sent + metrics.resets_received,
                sent: metrics.resets_sent,
                received: metrics.resets_received,
            }),
            error: has("error").then(|| EdgeErrors {
                count: metrics.errors,
                by_errno: metrics.errors_by_number.clone(),
            }),
            socket: has("socket").then_some(EdgeSocketTotals {
                sent_bytes: metrics.socket.sent_bytes,
                received_bytes: metrics.socket.received_bytes,
                written_bytes: metrics.socket.written_bytes,
                read_bytes: metrics.socket.read_bytes,
            }),
        }
    }
}

fn nanoseconds(values: &model::Values) -> EdgeHistogram {
    histogram(values, 1000)
}

fn histogram(values: &model::Values, units_per_us: u64) -> EdgeHistogram {
    let mut counts = values.counts.clone();
    counts.resize(BOUNDS_US.len() + 1, 0);
    EdgeHistogram {
        bounds: bounds(units_per_us),
        counts,
    }
}

fn bounds(units_per_us: u64) -> Vec<u64> {
    let bounds = BOUNDS_US.iter().map(|bound| u64::from(*bound));
    bounds.map(|bound| bound * units_per_us).collect()
}

/// One end over time.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SideSeries {
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

impl SideSeries {
    /// `steps`: what the end counted in each; `None`: nothing.
    pub(super) fn new(steps: &[Option<&Side>], has: impl Fn(&str) -> bool) -> Self {
        let numbers = |of: fn(&Side) -> u64| counted(steps, of);
        let times = |of: fn(&Side) -> &model::Values| values(steps, of, 1000);
        let calls =
            |metric: &str, of: fn(&Side) -> model::Transfer, time: fn(&Side) -> &model::Values| {
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
        Self {
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
}

fn counted(steps: &[Option<&Side>], of: impl Fn(&Side) -> u64) -> Vec<u64> {
    steps.iter().map(|step| step.map_or(0, &of)).collect()
}

fn values(
    steps: &[Option<&Side>],
    of: fn(&Side) -> &model::Values,
    units_per_us: u64,
) -> ValueSeries {
    let buckets = |values: &model::Values| {
        let numbered = (0..).zip(&values.counts).filter(|(_, count)| **count > 0);
        numbered.map(|(bucket, count)| [bucket, *count]).collect()
    };
    ValueSeries {
        count: counted(steps, |side| of(side).count),
        sum: counted(steps, |side| of(side).sum),
        bounds: bounds(units_per_us),
        buckets: steps
            .iter()
            .map(|step| step.map_or_else(Vec::new, |side| buckets(of(side))))
            .collect(),
    }
}

fn named<K: Ord + ToString>(
    steps: &[Option<&Side>],
    of: fn(&Side) -> &BTreeMap<K, u64>,
) -> BTreeMap<String, Vec<u64>> {
    let names: BTreeSet<&K> = steps
        .iter()
        .flatten()
        .flat_map(|side| of(side).keys())
        .collect();
    let number = |side: &Side, name: &K| of(side).get(name).copied().unwrap_or(0);
    let series = names
        .into_iter()
        .map(|name| (name.to_string(), counted(steps, |side| number(side, name))));
    series.collect()
}
