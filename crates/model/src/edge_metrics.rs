//! What one end of an edge measures: the numbers, how they add up, and the table by which they are shown.
//!
//! A new metric is a field of [`SideMetrics`], whose type says how it adds up over connections and what it was
//! within a step, and a row of [`EDGE_METRICS`]. Stored results have the fields in this order: a new one needs a
//! version of its own in `store::codec`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Values in buckets, with their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Values {
    pub count: u64,
    /// In the unit of the metric.
    pub sum: u64,
    /// One for each bound of [`profiler_common::network::BOUNDS_US`], and one for what is larger;
    /// empty before the first value.
    pub counts: Vec<u64>,
    pub least: Option<u64>,
    pub greatest: Option<u64>,
}

impl Values {
    /// Adds one value that falls into `bucket`.
    pub fn add(&mut self, bucket: usize, value: u64) {
        if self.counts.is_empty() {
            self.counts = vec![0; profiler_common::network::BUCKETS];
        }
        if let Some(slot) = self.counts.get_mut(bucket) {
            *slot += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.greatest = Some(self.greatest.map_or(value, |greatest| greatest.max(value)));
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            count,
            sum,
            counts,
            least,
            greatest,
        } = other;
        if *count == 0 {
            return;
        }
        if self.counts.len() < counts.len() {
            self.counts.resize(counts.len(), 0);
        }
        for (slot, more) in self.counts.iter_mut().zip(counts) {
            *slot = slot.saturating_add(*more);
        }
        self.count = self.count.saturating_add(*count);
        self.sum = self.sum.saturating_add(*sum);
        self.least = [self.least, *least].into_iter().flatten().min();
        self.greatest = self.greatest.max(*greatest);
    }
}

/// Calls and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub count: u64,
    pub bytes: u64,
}

/// Payload of ended connections, by the sockets' own counts and by the calls that were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketTotals {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub written_bytes: u64,
    pub read_bytes: u64,
}

/// Declares the numbers of one end with everything that treats them alike; each type says how by [`Measured`].
macro_rules! side_metrics {
    ($($(#[$attribute:meta])* $field:ident: $type:ty,)*) => {
        /// What one end of an edge measured, over all its connections.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct SideMetrics {
            $($(#[$attribute])* pub $field: $type,)*
        }

        impl SideMetrics {
            /// Adds everything of `other`.
            pub fn merge(&mut self, other: &Self) {
                $(Measured::merge(&mut self.$field, &other.$field);)*
            }

            /// Everything that is kept in buckets.
            pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Values> {
                [$(Measured::values_mut(&mut self.$field)),*].into_iter().flatten()
            }

            /// What was counted since `before`.
            fn since(&self, before: &Self) -> Self {
                Self {
                    $($field: Measured::since(&self.$field, &before.$field),)*
                }
            }
        }
    };
}

side_metrics! {
    connections: u64,
    /// Connections that are still open.
    open: u64,
    write: Transfer,
    read: Transfer,
    /// Nanoseconds in the calls, of those that were timed.
    write_time: Values,
    read_time: Values,
    /// Nanoseconds from the establishment until the process took the connection.
    accept: Values,
    /// Nanoseconds from asking to the answer.
    connect: Values,
    connects_failed: u64,
    /// Nanoseconds from the end of sending until the socket was closed.
    close: Values,
    /// Smoothed round-trip time at each write, microseconds.
    write_rtt: Values,
    /// The smallest round-trip time that the kernel measured, microseconds; `None`: none yet. Stored beside
    /// the table (`store::codec`), and not part of steps.
    #[serde(skip)]
    min_rtt_us: Option<u64>,
    /// Nanoseconds from the arrival of data until the process read it.
    receive_wait: Values,
    /// Segments.
    retransmits: u64,
    drops: u64,
    drops_by_reason: BTreeMap<String, u64>,
    resets_sent: u64,
    resets_received: u64,
    errors: u64,
    /// Last error of each connection that had one (`errno`).
    errors_by_number: BTreeMap<u32, u64>,
    /// Payload by the sockets' own counts, of connections that have ended.
    socket: SocketTotals,
}

impl SideMetrics {
    /// Bytes that were written and read.
    pub fn bytes(&self) -> u64 {
        self.write.bytes.saturating_add(self.read.bytes)
    }

    /// What was counted since `before`; `None` when nothing was. Counters that became less, because
    /// connections turned out to belong to another edge, count as unchanged.
    pub fn counted_since(&self, before: Option<&Self>) -> Option<Self> {
        match before {
            Some(before) if before == self => None,
            Some(before) => Some(Self {
                open: self.open,
                ..self.since(before)
            }),
            None => Some(self.clone().without_extremes()),
        }
    }

    /// Without what is not known of a step.
    pub(crate) fn without_extremes(mut self) -> Self {
        for values in self.values_mut() {
            (values.least, values.greatest) = (None, None);
        }
        self.min_rtt_us = None;
        self
    }
}

/// How numbers of one kind add up over connections, and what they were within a span of time.
trait Measured {
    /// Adds those of other connections.
    fn merge(&mut self, more: &Self);

    /// What came since `before`.
    fn since(&self, before: &Self) -> Self;

    /// Itself, if it is values in buckets.
    fn values_mut(&mut self) -> Option<&mut Values> {
        None
    }
}

/// A counter.
impl Measured for u64 {
    fn merge(&mut self, more: &Self) {
        *self = self.saturating_add(*more);
    }

    fn since(&self, before: &Self) -> Self {
        self.saturating_sub(*before)
    }
}

/// The smallest of all the time, which no step has.
impl Measured for Option<u64> {
    fn merge(&mut self, more: &Self) {
        *self = [*self, *more].into_iter().flatten().min();
    }

    fn since(&self, _before: &Self) -> Self {
        None
    }
}

impl Measured for Transfer {
    fn merge(&mut self, more: &Self) {
        self.count.merge(&more.count);
        self.bytes.merge(&more.bytes);
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            count: self.count.since(&before.count),
            bytes: self.bytes.since(&before.bytes),
        }
    }
}

impl Measured for SocketTotals {
    fn merge(&mut self, more: &Self) {
        self.sent_bytes.merge(&more.sent_bytes);
        self.received_bytes.merge(&more.received_bytes);
        self.written_bytes.merge(&more.written_bytes);
        self.read_bytes.merge(&more.read_bytes);
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            sent_bytes: self.sent_bytes.since(&before.sent_bytes),
            received_bytes: self.received_bytes.since(&before.received_bytes),
            written_bytes: self.written_bytes.since(&before.written_bytes),
            read_bytes: self.read_bytes.since(&before.read_bytes),
        }
    }
}

impl Measured for Values {
    fn merge(&mut self, more: &Self) {
        self.merge(more);
    }

    /// The least and the greatest of a step are not known.
    fn since(&self, before: &Self) -> Self {
        if self.count == before.count {
            return Self::default();
        }
        let earlier = before.counts.iter().chain(std::iter::repeat(&0));
        let counts = self.counts.iter().zip(earlier);
        Self {
            count: self.count.since(&before.count),
            sum: self.sum.since(&before.sum),
            counts: counts.map(|(now, before)| now.since(before)).collect(),
            least: None,
            greatest: None,
        }
    }

    fn values_mut(&mut self) -> Option<&mut Values> {
        Some(self)
    }
}

/// Counts by name.
impl<K: Ord + Clone> Measured for BTreeMap<K, u64> {
    fn merge(&mut self, more: &Self) {
        for (name, count) in more {
            self.entry(name.clone()).or_default().merge(count);
        }
    }

    fn since(&self, before: &Self) -> Self {
        let counted = self.iter().filter_map(|(name, count)| {
            let more = count.since(before.get(name).unwrap_or(&0));
            (more > 0).then(|| (name.clone(), more))
        });
        counted.collect()
    }
}

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeUnit {
    /// Connections, calls, packets and the like.
    Events,
    Bytes,
    Microseconds,
    Nanoseconds,
}

/// How a metric is read from one end.
#[derive(Clone, Copy, Debug)]
pub enum EdgeReading {
    /// Only grows.
    Counter(fn(&SideMetrics) -> u64),
    /// The number now.
    Gauge(fn(&SideMetrics) -> u64),
    /// The smallest so far.
    Least(fn(&SideMetrics) -> Option<u64>),
    Values(fn(&SideMetrics) -> &Values),
    /// Counters that a label tells apart, with its name. Names are untrusted.
    Named(&'static str, fn(&SideMetrics) -> Vec<(&str, u64)>),
}

/// One metric of an end, as it is shown over time by other programs.
#[derive(Clone, Copy, Debug)]
pub struct EdgeMetric {
    /// What [`super::EdgeTable::sources`] and `unavailable` call it; empty: it is always there.
    pub id: &'static str,
    /// Without its unit.
    pub name: &'static str,
    pub help: &'static str,
    pub unit: EdgeUnit,
    pub reading: EdgeReading,
}

const fn metric(
    id: &'static str,
    name: &'static str,
    help: &'static str,
    unit: EdgeUnit,
    reading: EdgeReading,
) -> EdgeMetric {
    EdgeMetric {
        id,
        name,
        help,
        unit,
        reading,
    }
}

/// In the order in which they are shown.
pub const EDGE_METRICS: [EdgeMetric; 20] = [
    metric(
        "",
        "network_connections",
        "Connections",
        EdgeUnit::Events,
        EdgeReading::Counter(|side| side.connections),
    ),
    metric(
        "",
        "network_open_connections",
        "Connections that are open now",
        EdgeUnit::Events,
        EdgeReading::Gauge(|side| side.open),
    ),
    metric(
        "write",
        "network_write",
        "Bytes that processes wrote to sockets",
        EdgeUnit::Bytes,
        EdgeReading::Counter(|side| side.write.bytes),
    ),
    metric(
        "write",
        "network_write_calls",
        "Writes to sockets",
        EdgeUnit::Events,
        EdgeReading::Counter(|side| side.write.count),
    ),
    metric(
        "write.time_ns",
        "network_write_duration",
        "Time in writes to sockets",
        EdgeUnit::Nanoseconds,
        EdgeReading::Values(|side| &side.write_time),
    ),
    metric(
        "read",
        "network_read",
        "Bytes that processes read from sockets",
        EdgeUnit::Bytes,
        EdgeReading::Counter(|side| side.read.bytes),
    ),
    metric(
        "read",
        "network_read_calls",
        "Reads from sockets",
        EdgeUnit::Events,
        EdgeReading::Counter(|side| side.read.count),
    ),
    metric(
        "read.time_ns",
        "network_read_duration",
        "Time in reads from sockets",
        EdgeUnit::Nanoseconds,
        EdgeReading::Values(|side| &side.read_time),
    ),
    metric(
        "connect",
        "network_connect_duration",
        "Time from asking to connect to the answer",
        EdgeUnit::Nanoseconds,
        EdgeReading::Values(|side| &side.connect),
    ),
    metric(
        "connect",
        "network_connect_failures",
        "Attempts to connect that failed",
        EdgeUnit::Events,
        EdgeReading::Counter(|side| side.connects_failed),
    ),
    metric(
        "accept",
        "network_accept_wait",
        "Time from the establishment until the process accepted the connection",
        EdgeUnit::Nanoseconds,
        EdgeReading::Values(|side| &side.accept),
    ),
    metric(
        "close",
        "network_close_duration",
        "Time from the end of sending until the socket was closed",
        EdgeUnit::Nanoseconds,
        EdgeReading::Values(|side| &side.close),
    ),
    metric(
        "write_rtt_us",
        "network_write_rtt",
        "Smoothed round-trip time at each write, with delayed acknowledgements",
        EdgeUnit::Microseconds,
        EdgeReading::Values(|side| &side.write_rtt),
    ),
    metric(
        "min_rtt_us",
        "network_min_rtt",
        "Smallest round-trip time that the kernel measured",
        EdgeUnit::Microseconds,
        EdgeReading::Least(|side| side.min_rtt_us),
    ),
    metric(
        "receive_wait",
        "network_receive_wait",
        "Time from the arrival of data until the process read it",
        EdgeUnit::Nanoseconds,
        EdgeReading::Values(|side| &side.receive_wait),
    ),
    metric(
        "retransmit",
        "network_retransmitted_segments",
        "Segments that were retransmitted",
        EdgeUnit::Events,
        EdgeReading::Counter(|side| side.retransmits),
    ),
    metric(
        "drop",
        "network_dropped_packets",
        "Packets that the kernel dropped",
        EdgeUnit::Events,
        EdgeReading::Counter(|side| side.drops),
    ),
    metric(
        "drop",
        "network_dropped_packets_by_reason",
        "Packets that the kernel dropped, by its reason",
        EdgeUnit::Events,
        EdgeReading::Named("reason", |side| {
            let counts = side.drops_by_reason.iter();
            counts
                .map(|(name, count)| (name.as_str(), *count))
                .collect()
        }),
    ),
    metric(
        "reset",
        "network_resets",
        "Resets that were sent or received",
        EdgeUnit::Events,
        EdgeReading::Named("direction", |side| {
            vec![
                ("sent", side.resets_sent),
                ("received", side.resets_received),
            ]
        }),
    ),
    metric(
        "error",
        "network_errors",
        "Errors of sockets",
        EdgeUnit::Events,
        EdgeReading::Counter(|side| side.errors),
    ),
];
