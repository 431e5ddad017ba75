//! `/stats`: requests, failures and times of Envoy's HTTP connection managers, by the direction that their names tell.
//!
//! Times are Envoy's histogram `downstream_rq_time`, in whole milliseconds, cut off. `histogram_buckets=detailed` (Envoy 1.26)
//! gives its buckets, at most 10 % wide, with counts since the start; they are brought up to date every `stats_flush_interval`
//! (5 s by default). Envoys before 1.26 refuse the word, and have no times here.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    EnvoyAdminError,
    client::{Client, ClientError},
    text::harmless,
};
use crate::foreign_answers::json;

const WITH_TIMES: &str = "/stats?usedonly&format=json&histogram_buckets=detailed&filter=%5Ehttp%5C..%2A%5C.downstream_rq_%28completed%7C5xx%7Ctime%29%24";
const WITHOUT_TIMES: &str =
    "/stats?usedonly&format=json&filter=%5Ehttp%5C..%2A%5C.downstream_rq_%28completed%7C5xx%29%24";
/// Three names for each connection manager, of which one has up to some hundred buckets of 50 bytes.
const LIMIT: usize = 4 << 20;
const BEFORE: &str = "http.";
/// Prefixes of connection managers that serve no traffic: Envoy's admin interface, and in Istio the
/// listeners for readiness and for scraping.
const OWN: [&str; 3] = ["admin", "agent", "stats"];
const COMPLETED: &str = ".downstream_rq_completed";
const ERRORS: &str = ".downstream_rq_5xx";
const TIME: &str = ".downstream_rq_time";
/// Distinct buckets of a direction. Envoy has 90 for each power of ten, so fewer than 700 up to an hour.
const MOST_BUCKETS: usize = 1_000;
/// Longer times are not told apart: an hour is the end of Envoy's own buckets.
const LONGEST_MS: f64 = 3_600_000.0;

/// A bucket of times: from, and up to but without, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeBucket {
    pub from_us: u64,
    pub to_us: u64,
}

/// What connection managers have counted since Envoy started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpCounts {
    pub completed: u64,
    /// Answers with status 5xx, also Envoy's own.
    pub errors: u64,
    pub times: BTreeMap<TimeBucket, u64>,
}

impl HttpCounts {
    /// What came after an earlier reading; `None` where a count is smaller than it was: Envoy has begun anew.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let mut times = BTreeMap::new();
        for (bucket, count) in &self.times {
            let more = count.checked_sub(earlier.times.get(bucket).copied().unwrap_or(0))?;
            if more > 0 {
                times.insert(*bucket, more);
            }
        }
        Some(Self {
            completed: self.completed.checked_sub(earlier.completed)?,
            errors: self.errors.checked_sub(earlier.errors)?,
            times,
        })
    }

    pub fn add(&mut self, more: &Self) {
        self.completed = self.completed.saturating_add(more.completed);
        self.errors = self.errors.saturating_add(more.errors);
        for (bucket, count) in &more.times {
            let sum = self.times.entry(*bucket).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// The bucket below whose end so many of 100 requests are; `None` without any.
    pub fn percentile(&self, percent: u64) -> Option<TimeBucket> {
        let all = self
            .times
            .values()
            .map(|count| u128::from(*count))
            .sum::<u128>();
        let wanted = (all * u128::from(percent)).div_ceil(100).max(1);
        let mut below = 0;
        self.times.iter().find_map(|(bucket, count)| {
            below += u128::from(*count);
            (below >= wanted).then_some(*bucket)
        })
    }
}

/// Counts by direction; `None` where no manager of it has counted anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpTraffic {
    /// Managers whose name begins with `inbound`, as Istio calls those of a sidecar's own app.
    pub inbound: Option<HttpCounts>,
    /// Those whose name begins with `outbound`, as Istio calls those of what the app asks, and those of its gateways.
    pub outbound: Option<HttpCounts>,
    pub other: Option<HttpCounts>,
}

#[derive(Deserialize)]
pub(super) struct Answer {
    pub(super) stats: Vec<Stat>,
}

#[derive(Deserialize)]
pub(super) struct Stat {
    #[serde(default)]
    pub(super) name: String,
    pub(super) value: Option<serde_json::Number>,
    histograms: Option<Histograms>,
}

#[derive(Deserialize)]
struct Histograms {
    #[serde(default)]
    details: Vec<Histogram>,
}

#[derive(Deserialize)]
struct Histogram {
    #[serde(default)]
    name: String,
    #[serde(default)]
    totals: Vec<Total>,
}

#[derive(Deserialize)]
struct Total {
    lower_bound: f64,
    width: f64,
    count: u64,
}

pub(super) fn traffic(client: &Client) -> Result<HttpTraffic, EnvoyAdminError> {
    let body = match client.get(WITH_TIMES, LIMIT) {
        Err(ClientError::Status(400)) => client.get(WITHOUT_TIMES, LIMIT),
        answer => answer,
    };
    read(body)
}

/// What Envoy answered to a question for statistics of connection managers.
pub(super) fn read(body: Result<Vec<u8>, ClientError>) -> Result<HttpTraffic, EnvoyAdminError> {
    let path = "/stats";
    let body = body.map_err(|source| EnvoyAdminError::Request { path, source })?;
    parse(&body).map_err(|detail| EnvoyAdminError::Answer { path, detail })
}

pub(super) fn parse(body: &[u8]) -> Result<HttpTraffic, String> {
    let answer: Answer = json(body).map_err(|error| harmless(&error.to_string()))?;
    let mut traffic = HttpTraffic::default();
    for stat in &answer.stats {
        for histogram in stat.histograms.iter().flat_map(|found| &found.details) {
            let Some(counts) = traffic.of(&histogram.name, TIME) else {
                continue;
            };
            for total in &histogram.totals {
                let sum = counts.times.entry(bucket(total)).or_default();
                *sum = sum.saturating_add(total.count);
                if counts.times.len() > MOST_BUCKETS {
                    return Err(format!("it has more than {MOST_BUCKETS} buckets of times"));
                }
            }
        }
        let Some(value) = stat.value.as_ref().and_then(serde_json::Number::as_u64) else {
            continue;
        };
        if let Some(counts) = traffic.of(&stat.name, COMPLETED) {
            counts.completed = counts.completed.saturating_add(value);
        } else if let Some(counts) = traffic.of(&stat.name, ERRORS) {
            counts.errors = counts.errors.saturating_add(value);
        }
    }
    Ok(traffic)
}

impl HttpTraffic {
    /// Requests of all directions; `None` where none were counted.
    pub(super) fn completed(&self) -> Option<u64> {
        let all = [&self.inbound, &self.outbound, &self.other];
        all.into_iter().flatten().fold(None, |sum, counts| {
            Some(sum.unwrap_or(0_u64).saturating_add(counts.completed))
        })
    }

    /// Where a statistic with this ending is added; `None` for those that are not traffic.
    fn of(&mut self, name: &str, ending: &str) -> Option<&mut HttpCounts> {
        let prefix = prefix_of(name, ending)?;
        let counts = if prefix.starts_with("inbound") {
            &mut self.inbound
        } else if prefix.starts_with("outbound") {
            &mut self.outbound
        } else {
            &mut self.other
        };
        Some(counts.get_or_insert_default())
    }
}

/// The connection manager that a statistic with this ending belongs to; `None` for others, and for managers that serve no
/// traffic.
fn prefix_of<'a>(name: &'a str, ending: &str) -> Option<&'a str> {
    let prefix = name.strip_prefix(BEFORE)?.strip_suffix(ending)?;
    (!OWN.contains(&prefix)).then_some(prefix)
}

/// Envoy cuts milliseconds off: what it counts as 8 took less than 9.
fn bucket(total: &Total) -> TimeBucket {
    let bound = |value: f64| {
        if value.is_finite() {
            value.clamp(0.0, LONGEST_MS)
        } else {
            LONGEST_MS
        }
    };
    let from = bound(total.lower_bound);
    let to = bound(total.lower_bound + total.width)
        .ceil()
        .max(from.floor() + 1.0);
    let microseconds = |ms: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between zero and a little more than an hour"
        )]
        let whole = (ms * 1000.0).round() as u64;
        whole
    };
    TimeBucket {
        from_us: microseconds(from),
        to_us: microseconds(to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Envoy 1.40 answers.
    const ANSWER: &[u8] = br#"{"stats":[
        {"name":"http.admin.downstream_rq_completed","value":1},
        {"name":"http.inbound_0.0.0.0_8080.downstream_rq_5xx","value":3},
        {"name":"http.inbound_0.0.0.0_8080.downstream_rq_completed","value":53},
        {"name":"http.outbound_0.0.0.0_80;.downstream_rq_completed","value":9},
        {"name":"http.ingress.downstream_rq_completed","value":2},
        {"histograms":{"supported_percentiles":[0,25],"details":[
            {"name":"http.inbound_0.0.0.0_8080.downstream_rq_time",
             "totals":[{"lower_bound":0,"width":0,"count":45},{"lower_bound":8,"width":0.1,"count":4},{"lower_bound":110,"width":10,"count":4}],
             "intervals":[{"lower_bound":0,"width":0,"count":52}],"percentiles":[{"cumulative":0,"interval":0}]},
            {"name":"http.admin.downstream_rq_time","totals":[{"lower_bound":0,"width":0,"count":7}]}]}}]}"#;

    fn bucket(from_us: u64, to_us: u64) -> TimeBucket {
        TimeBucket { from_us, to_us }
    }

    #[test]
    fn managers_are_added_up_by_their_direction() {
        let traffic = parse(ANSWER).unwrap();
        let inbound = traffic.inbound.unwrap();
        assert_eq!((inbound.completed, inbound.errors), (53, 3));
        assert_eq!(inbound.percentile(50), Some(bucket(0, 1_000)));
        assert_eq!(inbound.percentile(90), Some(bucket(8_000, 9_000)));
        assert_eq!(inbound.percentile(95), Some(bucket(110_000, 120_000)));
        assert_eq!(traffic.outbound.unwrap().completed, 9);
        assert_eq!(traffic.other.unwrap().completed, 2);
    }

    #[test]
    fn what_came_after_a_reading_is_the_difference() {
        let earlier = parse(ANSWER).unwrap().inbound.unwrap();
        assert_eq!(earlier.since(&earlier), Some(HttpCounts::default()));
        let mut later = earlier.clone();
        later.completed += 10;
        *later.times.get_mut(&bucket(8_000, 9_000)).unwrap() += 10;
        let between = later.since(&earlier).unwrap();
        assert_eq!((between.completed, between.errors), (10, 0));
        assert_eq!(between.percentile(1), Some(bucket(8_000, 9_000)));
        assert_eq!(earlier.since(&later), None, "Envoy has begun anew");
        assert_eq!(HttpCounts::default().percentile(95), None);
    }

    #[test]
    fn odd_answers_are_errors_or_nothing() {
        for text in [
            &b""[..],
            b"{}",
            br#"{"stats":7}"#,
            br#"{"stats":[{"histograms":7}]}"#,
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert_eq!(parse(br#"{"stats":[]}"#), Ok(HttpTraffic::default()));
        let many: Vec<String> = (0..=MOST_BUCKETS)
            .map(|bound| format!(r#"{{"lower_bound":{bound},"width":1,"count":1}}"#))
            .collect();
        let many = format!(
            r#"{{"stats":[{{"histograms":{{"details":[{{"name":"http.a.downstream_rq_time","totals":[{}]}}]}}}}]}}"#,
            many.join(",")
        );
        assert!(parse(many.as_bytes()).unwrap_err().contains("buckets"));
        let wild = br#"{"stats":[{"histograms":{"details":[{"name":"http.a.downstream_rq_time","totals":[
            {"lower_bound":-5,"width":1e300,"count":18446744073709551615},{"lower_bound":1e308,"width":1e308,"count":9}]}]}},
            {"name":"http.a.downstream_rq_completed","value":-4}]}"#;
        let other = parse(wild).unwrap().other.unwrap();
        assert_eq!(other.completed, 0);
        assert_eq!(other.percentile(99).unwrap().from_us, 0);
    }
}
