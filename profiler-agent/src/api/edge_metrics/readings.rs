//! What one end of an edge measured, as series.

use std::collections::BTreeMap;

use profiler_model::{SideMetrics, Values};
use prometheus_client::registry::Unit;

/// One metric of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Metric {
    Connections,
    OpenConnections,
    WriteBytes,
    WriteCalls,
    WriteTime,
    ReadBytes,
    ReadCalls,
    ReadTime,
    Connect,
    ConnectFailures,
    Accept,
    Close,
    WriteRtt,
    MinRtt,
    ReceiveWait,
    Retransmits,
    Drops,
    DropsByReason,
    Resets,
    Errors,
}

/// How a metric is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Counter,
    Gauge,
    /// The smallest of some microseconds, in seconds.
    Least,
    /// Values in nanoseconds or, where it says so, microseconds.
    Histogram {
        units_per_second: u32,
    },
}

const NANOSECONDS: Form = Form::Histogram {
    units_per_second: 1_000_000_000,
};
const MICROSECONDS: Form = Form::Histogram {
    units_per_second: 1_000_000,
};

/// Name, help, unit and form of a metric.
pub(super) struct Description {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) unit: Option<Unit>,
    pub(super) form: Form,
    /// Label of its own.
    pub(super) detail: Option<&'static str>,
}

impl Metric {
    pub(super) const ALL: [Self; 20] = [
        Self::Connections,
        Self::OpenConnections,
        Self::WriteBytes,
        Self::WriteCalls,
        Self::WriteTime,
        Self::ReadBytes,
        Self::ReadCalls,
        Self::ReadTime,
        Self::Connect,
        Self::ConnectFailures,
        Self::Accept,
        Self::Close,
        Self::WriteRtt,
        Self::MinRtt,
        Self::ReceiveWait,
        Self::Retransmits,
        Self::Drops,
        Self::DropsByReason,
        Self::Resets,
        Self::Errors,
    ];

    pub(super) fn description(self) -> Description {
        let described = |name, help, unit, form| Description {
            name,
            help,
            unit,
            form,
            detail: None,
        };
        let counter = |name, help| described(name, help, None, Form::Counter);
        let bytes = |name, help| described(name, help, Some(Unit::Bytes), Form::Counter);
        let times = |name, help| described(name, help, Some(Unit::Seconds), NANOSECONDS);
        match self {
            Self::Connections => counter("network_connections", "Connections"),
            Self::OpenConnections => described(
                "network_open_connections",
                "Connections that are open now",
                None,
                Form::Gauge,
            ),
            Self::WriteBytes => bytes("network_write", "Bytes that processes wrote to sockets"),
            Self::WriteCalls => counter("network_write_calls", "Writes to sockets"),
            Self::WriteTime => times("network_write_duration", "Time in writes to sockets"),
            Self::ReadBytes => bytes("network_read", "Bytes that processes read from sockets"),
            Self::ReadCalls => counter("network_read_calls", "Reads from sockets"),
            Self::ReadTime => times("network_read_duration", "Time in reads from sockets"),
            Self::Connect => times(
                "network_connect_duration",
                "Time from asking to connect to the answer",
            ),
            Self::ConnectFailures => counter(
                "network_connect_failures",
                "Attempts to connect that failed",
            ),
            Self::Accept => times(
                "network_accept_wait",
                "Time from the establishment until the process accepted the connection",
            ),
            Self::Close => times(
                "network_close_duration",
                "Time from the end of sending until the socket was closed",
            ),
            Self::WriteRtt => described(
                "network_write_rtt",
                "Smoothed round-trip time at each write, with delayed acknowledgements",
                Some(Unit::Seconds),
                MICROSECONDS,
            ),
            Self::MinRtt => described(
                "network_min_rtt",
                "Smallest round-trip time that the kernel measured",
                Some(Unit::Seconds),
                Form::Least,
            ),
            Self::ReceiveWait => times(
                "network_receive_wait",
                "Time from the arrival of data until the process read it",
            ),
            Self::Retransmits => counter(
                "network_retransmitted_segments",
                "Segments that were sent again",
            ),
            Self::Drops => counter("network_dropped_packets", "Packets that the kernel dropped"),
            Self::DropsByReason => Description {
                detail: Some("reason"),
                ..counter(
                    "network_dropped_packets_by_reason",
                    "Packets that the kernel dropped, by its reason",
                )
            },
            Self::Resets => Description {
                detail: Some("direction"),
                ..counter("network_resets", "Resets that were sent or received")
            },
            Self::Errors => counter("network_errors", "Errors of sockets"),
        }
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Counter(u64),
    Gauge(u64),
    /// Microseconds.
    Least(u64),
    Histogram {
        counts: Vec<u64>,
        sum: u64,
    },
}

/// Values by metric and the value of its own label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Readings {
    pub(super) values: BTreeMap<(Metric, String), Reading>,
}

impl Readings {
    /// What `side` measured; metrics that are not available are left out.
    pub(super) fn of(side: &SideMetrics, has: impl Fn(&str) -> bool) -> Self {
        let SideMetrics {
            connections,
            open,
            write,
            write_time,
            read,
            read_time,
            connect,
            connects_failed,
            accept,
            close,
            write_rtt,
            min_rtt_us,
            receive_wait,
            retransmits,
            drops,
            drops_by_reason,
            resets_sent,
            resets_received,
            errors,
            errors_by_number: _,
            socket: _,
        } = side;
        let mut readings = Self::default();
        readings.counter(Metric::Connections, *connections);
        let gauge = Reading::Gauge(*open);
        readings.put(Metric::OpenConnections, "", gauge);
        if has("write") {
            readings.counter(Metric::WriteBytes, write.bytes);
            readings.counter(Metric::WriteCalls, write.count);
        }
        if has("read") {
            readings.counter(Metric::ReadBytes, read.bytes);
            readings.counter(Metric::ReadCalls, read.count);
        }
        if has("connect") {
            readings.histogram(Metric::Connect, connect);
            readings.counter(Metric::ConnectFailures, *connects_failed);
        }
        for (name, metric, values) in [
            ("write.time_ns", Metric::WriteTime, write_time),
            ("read.time_ns", Metric::ReadTime, read_time),
            ("accept", Metric::Accept, accept),
            ("close", Metric::Close, close),
            ("write_rtt_us", Metric::WriteRtt, write_rtt),
            ("receive_wait", Metric::ReceiveWait, receive_wait),
        ] {
            if has(name) {
                readings.histogram(metric, values);
            }
        }
        if let Some(least) = min_rtt_us
            && has("min_rtt_us")
        {
            readings.put(Metric::MinRtt, "", Reading::Least(*least));
        }
        if has("retransmit") {
            readings.counter(Metric::Retransmits, *retransmits);
        }
        if has("drop") {
            readings.counter(Metric::Drops, *drops);
            for (reason, count) in drops_by_reason {
                readings.put(Metric::DropsByReason, reason, Reading::Counter(*count));
            }
        }
        if has("reset") {
            readings.put(Metric::Resets, "sent", Reading::Counter(*resets_sent));
            let received = Reading::Counter(*resets_received);
            readings.put(Metric::Resets, "received", received);
        }
        if has("error") {
            readings.counter(Metric::Errors, *errors);
        }
        readings
    }

    fn put(&mut self, metric: Metric, detail: &str, reading: Reading) {
        self.values.insert((metric, detail.to_owned()), reading);
    }

    fn counter(&mut self, metric: Metric, value: u64) {
        self.put(metric, "", Reading::Counter(value));
    }

    /// Without a value there is no histogram, which keeps most edges small.
    fn histogram(&mut self, metric: Metric, values: &Values) {
        if values.count > 0 {
            let counts = values.counts.clone();
            let sum = values.sum;
            self.put(metric, "", Reading::Histogram { counts, sum });
        }
    }

    pub(super) fn add(&mut self, more: &Self) {
        for (name, reading) in &more.values {
            match (self.values.get_mut(name), reading) {
                (
                    Some(Reading::Counter(sum) | Reading::Gauge(sum)),
                    Reading::Counter(more) | Reading::Gauge(more),
                ) => {
                    *sum = sum.saturating_add(*more);
                }
                (Some(Reading::Least(least)), Reading::Least(more)) => {
                    *least = (*least).min(*more);
                }
                (
                    Some(Reading::Histogram { counts, sum }),
                    Reading::Histogram {
                        counts: more,
                        sum: more_sum,
                    },
                ) => {
                    for (count, more) in counts.iter_mut().zip(more) {
                        *count = count.saturating_add(*more);
                    }
                    *sum = sum.saturating_add(*more_sum);
                }
                _ => {
                    self.values.insert(name.clone(), reading.clone());
                }
            }
        }
    }

    /// Takes away what had been counted before; gauges stay, because they do not add up over time.
    pub(super) fn subtract(&mut self, before: &Self) {
        for (name, reading) in &before.values {
            match (self.values.get_mut(name), reading) {
                (Some(Reading::Counter(value)), Reading::Counter(before)) => {
                    *value = value.saturating_sub(*before);
                }
                (
                    Some(Reading::Histogram { counts, sum }),
                    Reading::Histogram {
                        counts: before,
                        sum: before_sum,
                    },
                ) => {
                    for (count, before) in counts.iter_mut().zip(before) {
                        *count = count.saturating_sub(*before);
                    }
                    *sum = sum.saturating_sub(*before_sum);
                }
                _ => {}
            }
        }
    }

    /// Only what counts up.
    pub(super) fn without_gauges(mut self) -> Self {
        self.values
            .retain(|_, reading| !matches!(reading, Reading::Gauge(_) | Reading::Least(_)));
        self
    }
}
