//! What one end of an edge measured, as series.

use std::collections::BTreeMap;

use profiler_model::{EDGE_METRICS, EdgeReading, SideMetrics};

/// One value, in the unit of its metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Counter(u64),
    Gauge(u64),
    Least(u64),
    Histogram { counts: Vec<u64>, sum: u64 },
}

/// Values by the metric's place in [`EDGE_METRICS`] and the value of its own label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Readings {
    pub(super) values: BTreeMap<(usize, String), Reading>,
}

impl Readings {
    /// What `side` measured; metrics that are not available are left out.
    pub(super) fn of(side: &SideMetrics, has: impl Fn(&str) -> bool) -> Self {
        let mut readings = Self::default();
        for (metric, described) in EDGE_METRICS.iter().enumerate() {
            if !described.id.is_empty() && !has(described.id) {
                continue;
            }
            match described.reading {
                EdgeReading::Counter(read) => {
                    readings.put(metric, "", Reading::Counter(read(side)));
                }
                EdgeReading::Gauge(read) => readings.put(metric, "", Reading::Gauge(read(side))),
                EdgeReading::Least(read) => {
                    if let Some(least) = read(side) {
                        readings.put(metric, "", Reading::Least(least));
                    }
                }
                EdgeReading::Values(read) => {
                    let values = read(side);
                    // Without a value there is no histogram, which keeps most edges small.
                    if values.count > 0 {
                        let (counts, sum) = (values.counts.clone(), values.sum);
                        readings.put(metric, "", Reading::Histogram { counts, sum });
                    }
                }
                EdgeReading::Named(_label, read) => {
                    for (name, count) in read(side) {
                        readings.put(metric, name, Reading::Counter(count));
                    }
                }
            }
        }
        readings
    }

    fn put(&mut self, metric: usize, detail: &str, reading: Reading) {
        self.values.insert((metric, detail.to_owned()), reading);
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
        self.change_counts(before, u64::saturating_sub);
    }

    /// Takes the larger of each count, and the smaller of each least value; gauges stay.
    pub(super) fn never_less_than(&mut self, before: &Self) {
        self.change_counts(before, u64::max);
        for (name, reading) in &before.values {
            if let (Some(Reading::Least(least)), Reading::Least(before)) =
                (self.values.get_mut(name), reading)
            {
                *least = (*least).min(*before);
            }
        }
    }

    /// Makes each count of both what `change` makes of it and of that `before`.
    fn change_counts(&mut self, before: &Self, change: impl Fn(u64, u64) -> u64) {
        for (name, reading) in &before.values {
            match (self.values.get_mut(name), reading) {
                (Some(Reading::Counter(value)), Reading::Counter(before)) => {
                    *value = change(*value, *before);
                }
                (
                    Some(Reading::Histogram { counts, sum }),
                    Reading::Histogram {
                        counts: before,
                        sum: before_sum,
                    },
                ) => {
                    for (count, before) in counts.iter_mut().zip(before) {
                        *count = change(*count, *before);
                    }
                    *sum = change(*sum, *before_sum);
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
