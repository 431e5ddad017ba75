//! Holds what the agent reports of requests against what their client or server counted.

use std::{collections::BTreeMap, fmt, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::peers::watch::{Edges, Report};

/// Which ends of a connection are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Server,
    Client,
    Both,
}

impl View {
    pub const ALL: [Self; 3] = [Self::Server, Self::Client, Self::Both];

    /// The processes to watch.
    pub fn pids<'a>(self, servers: &'a [u32], clients: &'a [u32]) -> Vec<u32> {
        let (servers, clients) = match self {
            Self::Server => (servers, &[][..]),
            Self::Client => (&[][..], clients),
            Self::Both => (servers, clients),
        };
        servers.iter().chain(clients).copied().collect()
    }
}

impl fmt::Display for View {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Both => "both",
        })
    }
}

/// Requests of one kind as counted by one of the peers.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub requests: u64,
    /// By the status that the agent tells; `broken` for those that ended without an answer.
    pub statuses: BTreeMap<String, u64>,
    /// No request took longer.
    pub at_most: Option<Duration>,
    /// And none less.
    pub at_least: Option<Duration>,
    /// Bytes of all requests' and all answers' bodies, where they are counted.
    pub request_bytes: Option<u64>,
    pub response_bytes: Option<u64>,
}

impl Counted {
    /// Number of requests with one status.
    pub fn of(requests: u64, status: &str) -> Self {
        Self {
            requests,
            statuses: BTreeMap::from([(status.to_owned(), requests)]),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn at_most(mut self, at_most: Duration) -> Self {
        self.at_most = Some(at_most);
        self
    }

    #[must_use]
    pub fn bytes(mut self, request: Option<u64>, response: Option<u64>) -> Self {
        (self.request_bytes, self.response_bytes) = (request, response);
        self
    }
}

/// What was asked, by the path or command; requests of other names are wrong.
pub type Truth = BTreeMap<String, Counted>;

/// How far an answer can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it was.
    Exact,
    /// Something is missing or unknown, and the answer says so.
    Said,
    /// Something is wrong, or missing without a word.
    Silent,
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Exact => "exact",
            Self::Said => "said",
            Self::Silent => "**SILENT**",
        })
    }
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    pub truth: String,
    pub told: String,
    pub verdict: Verdict,
}

/// A clock is read by the client before and behind what the kernel sees, on a machine with other work.
pub(super) const SLACK: Duration = Duration::from_millis(3);

#[derive(Debug, Default)]
struct Told {
    requests: u64,
    unknown: u64,
    wrong: Vec<String>,
    request_bytes: u64,
    response_bytes: u64,
    /// Requests without sizes.
    unsized_requests: u64,
}

/// Compares the requests of `edges` with the truth.
pub fn judge(report: &Report, edges: Edges, truth: &Truth) -> Result<Row> {
    let mut told = Told::default();
    let mut left = truth.clone();
    // Those without a name last: they could be any of what is left.
    let mut samples = report.samples(edges)?;
    samples.sort_by_key(|sample| sample["path"].is_null() && sample["route"].is_null());
    for sample in samples {
        told.requests += 1;
        compare(sample, &mut left, &mut told);
    }
    let all: u64 = truth.values().map(|counted| counted.requests).sum();
    let counts = report.operations(edges)?;
    let counted: u64 = counts.iter().filter_map(|row| row["count"].as_u64()).sum();
    // Samples are kept as far as there is room; the counts have all.
    let left_out = report.json["samples_left_out"].as_u64().unwrap_or(0);
    if counted != told.requests + left_out {
        told.wrong.push(format!("operations count {counted}"));
    }
    let bytes = bytes_are_wrong(truth, &told);
    told.wrong.extend(bytes);
    told.requests = counted.max(told.requests);
    if told.requests > all {
        told.wrong.push(format!("{} too many", told.requests - all));
    }
    let lost = all.saturating_sub(told.requests);
    let said = missing(report)?;
    let verdict = if !told.wrong.is_empty() {
        Verdict::Silent
    } else if lost == 0 && told.unknown == 0 {
        Verdict::Exact
    } else if told.unknown > 0 && lost == 0 || !said.is_empty() {
        Verdict::Said
    } else {
        Verdict::Silent
    };
    Ok(Row {
        truth: truth_text(truth, all),
        told: told.text(&said),
        verdict,
    })
}

/// What was asked, by name where there are few of them.
fn truth_text(truth: &Truth, all: u64) -> String {
    const MOST_NAMES: usize = 5;
    if truth.len() > MOST_NAMES {
        return format!("{all} of {} names", truth.len());
    }
    let each = truth.iter();
    let each = each.map(|(name, counted)| format!("{} {name}", counted.requests));
    each.collect::<Vec<_>>().join(", ")
}

/// What [`judge_estimate`] finds.
pub(super) struct Estimate {
    pub(super) row: Row,
    /// The truth lies beside an interval that was told, as it may 5 times of 100.
    pub(super) is_missed: bool,
}

/// Compares counts that may be estimates with the number of all requests. Of an estimate the truth lies in its interval; what
/// was counted without one is exact, or what is missing is said.
pub(super) fn judge_estimate(report: &Report, edges: Edges, truth: u64) -> Result<Estimate> {
    let (mut all, mut low, mut high, mut is_estimate) = (0, 0, Some(0_u64), false);
    for operation in report.operations(edges)? {
        let count = operation["count"].as_u64().context("a count")?;
        let interval = &operation["count_interval"];
        let [least, most] = if interval.is_null() {
            [Some(count); 2]
        } else {
            is_estimate = true;
            ["low", "high"].map(|end| interval[end].as_u64())
        };
        all += count;
        low += least.context("the lower end of an interval")?;
        high = high.zip(most).map(|(high, most)| high + most);
    }
    let said = missing(report)?;
    let is_sampled = report.json["sampled_one_of"].as_u64() > Some(1);
    let is_said = !is_estimate && !is_sampled && all < truth && !said.is_empty();
    let lies_within = low <= truth && high.is_none_or(|high| truth <= high);
    let most = high.map_or_else(|| "any".to_owned(), |high| high.to_string());
    let mut told = vec![format!("{all} ({low} to {most})")];
    if !said.is_empty() {
        told.push(format!("says {}", said.join(", ")));
    }
    let verdict = if !lies_within && !is_said {
        Verdict::Silent
    } else if is_estimate || all != truth {
        Verdict::Said
    } else {
        Verdict::Exact
    };
    Ok(Estimate {
        row: Row {
            truth: truth.to_string(),
            told: told.join(", "),
            verdict,
        },
        is_missed: is_estimate && !lies_within,
    })
}

/// Takes a request from what is left of the truth; says what of it is wrong.
fn compare(sample: &Value, left: &mut Truth, told: &mut Told) {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let outcome = sample["outcome"].as_str().unwrap_or_default();
    let status = match (text(&sample["status"]), outcome) {
        (_, "unknown") => None,
        (_, "broken") => Some("broken".to_owned()),
        (status, _) => status,
    };
    let name = text(&sample["path"])
        .or_else(|| text(&sample["route"]))
        .map(|name| name.split(['?', ' ']).next().unwrap_or_default().to_owned());
    let is_known = name.is_some() && status.is_some();
    told.unknown += u64::from(!is_known);
    let fits = |counted: &Counted| match &status {
        None => counted.statuses.values().any(|left| *left > 0),
        Some(status) => counted.statuses.get(status).is_some_and(|left| *left > 0),
    };
    let mut matching = left.iter_mut().filter(|(known, counted)| {
        name.as_ref().is_none_or(|name| name == *known) && fits(counted)
    });
    let Some((known, counted)) = matching.next() else {
        told.wrong.push(format!(
            "{} {}",
            name.as_deref().unwrap_or("?"),
            status.as_deref().unwrap_or("?")
        ));
        return;
    };
    if let Some(status) = &status
        && let Some(of_status) = counted.statuses.get_mut(status)
    {
        *of_status -= 1;
    }
    let has_latency = outcome != "unknown" && outcome != "broken" && name.is_some();
    let took = sample["duration_ns"].as_u64().map(Duration::from_nanos);
    if let Some(took) = took.filter(|_| has_latency) {
        let is_longer = counted.at_most.is_some_and(|most| took > most + SLACK);
        let is_shorter = counted.at_least.is_some_and(|least| took + SLACK < least);
        if is_longer || is_shorter {
            told.wrong.push(format!("{known} took {took:?}"));
        }
    }
    let sizes = [&sample["request_bytes"], &sample["response_bytes"]].map(Value::as_u64);
    if let [Some(request), Some(response)] = sizes {
        told.request_bytes += request;
        told.response_bytes += response;
    } else {
        told.unsized_requests += 1;
    }
}

/// Reported sizes must be right; where some are not known, the sum is less.
fn bytes_are_wrong(truth: &Truth, told: &Told) -> Vec<String> {
    let sum =
        |bytes: fn(&Counted) -> Option<u64>| -> Option<u64> { truth.values().map(bytes).sum() };
    let all: u64 = truth.values().map(|counted| counted.requests).sum();
    let is_all = told.unsized_requests == 0 && told.requests == all;
    let check = |name: &str, truth: Option<u64>, told: u64| {
        let truth = truth?;
        let is_wrong = told > truth || (is_all && told != truth);
        is_wrong.then(|| format!("{told} bytes of {name}, not {truth}"))
    };
    [
        check(
            "requests",
            sum(|counted| counted.request_bytes),
            told.request_bytes,
        ),
        check(
            "answers",
            sum(|counted| counted.response_bytes),
            told.response_bytes,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// From so much on the table says when probes of TLS were in.
const LATE_NS: u64 = 10_000_000;

/// What the answer says is missing, by counter.
fn missing(report: &Report) -> Result<Vec<String>> {
    let json = &report.json;
    let incomplete = json["incomplete"].as_object().context("no incomplete")?;
    let inner = incomplete
        .iter()
        .map(|(name, value)| (name.as_str(), value));
    let outer = ["lost", "unbound_bytes"].map(|name| (name, &json[name]));
    let encrypted = ("encrypted", &json["connections_by_protocol"]["tls"]);
    let mut said: Vec<String> = inner
        .chain(outer)
        .chain([encrypted])
        .filter_map(|(name, value)| Some((name, value.as_u64()?)))
        .filter(|(name, value)| *value > 0 && *name != "withdrawn_guesses")
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let number = |value: &Value| value.as_u64();
    let window = number(&json["window"]["to_ns"]).zip(number(&json["window"]["from_ns"]));
    if let Some(((to, from), attached)) = window.zip(number(&json["plaintext"]["attached_ns"]))
        && let Some(before) = (to - from).checked_sub(attached)
        && before >= LATE_NS
    {
        said.push(format!("TLS read {} ms late", before / 1_000_000));
    }
    if json["sampled_one_of"].as_u64() > Some(1) {
        said.push(format!("sampled 1 of {}", json["sampled_one_of"]));
    }
    Ok(said)
}

impl Told {
    fn text(&self, said: &[String]) -> String {
        let mut parts = vec![self.requests.to_string()];
        if self.unknown > 0 {
            parts.push(format!("{} unknown", self.unknown));
        }
        if self.unsized_requests > 0 {
            parts.push(format!("{} without sizes", self.unsized_requests));
        }
        let mut wrong: BTreeMap<&str, u64> = BTreeMap::new();
        for one in &self.wrong {
            *wrong.entry(one).or_default() += 1;
        }
        let wrong = wrong.iter().take(5);
        parts.extend(wrong.map(|(one, times)| format!("wrong: {times} × {one}")));
        if !said.is_empty() {
            parts.push(format!("says {}", said.join(", ")));
        }
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(samples: &Value, count: u64, gaps: u64) -> Report {
        let edge = json!({"client": {"pid": 1}, "server": {"pid": 2, "port": 80}});
        let mut samples = samples.clone();
        for sample in samples.as_array_mut().unwrap() {
            sample["edge"] = edge.clone();
        }
        Report::of_json(json!({
            "samples": samples,
            "operations": [{"edge": edge, "count": count}],
            "incomplete": {"gaps": gaps},
            "sampled_one_of": 1,
        }))
    }

    fn sample(path: &str, status: u64, duration_ns: u64) -> Value {
        json!({"path": path, "status": status, "outcome": "ok", "duration_ns": duration_ns,
               "request_bytes": 0, "response_bytes": 5})
    }

    fn verdict(samples: &[Value], gaps: u64) -> Row {
        let truth = Truth::from([(
            "/a".to_owned(),
            Counted::of(2, "200")
                .at_most(Duration::from_millis(20))
                .bytes(None, Some(10)),
        )]);
        let count = u64::try_from(samples.len()).unwrap();
        let report = report(&json!(samples), count, gaps);
        judge(&report, Edges::To(80), &truth).unwrap()
    }

    #[test]
    fn the_truth_lies_in_the_interval_of_an_estimate() {
        let verdict = |count: u64, interval: Value, gaps: u64, one_of: u64| {
            let edge = json!({"client": {"pid": 1}, "server": {"pid": 2, "port": 80}});
            let report = Report::of_json(json!({
                "operations": [{"edge": edge, "count": count, "count_interval": interval}],
                "incomplete": {"gaps": gaps},
                "sampled_one_of": one_of,
            }));
            let found = judge_estimate(&report, Edges::To(80), 100).unwrap();
            (found.row.verdict, found.is_missed)
        };
        let between = |low: u64, high: u64| json!({"low": low, "high": high});
        for (count, interval, gaps, one_of, expected) in [
            (100, Value::Null, 0, 1, Verdict::Exact),
            (90, between(80, 110), 0, 2, Verdict::Said),
            (90, json!({"low": 80, "high": null}), 0, 2, Verdict::Said),
            (90, Value::Null, 1, 1, Verdict::Said),
            (90, between(80, 95), 1, 2, Verdict::Silent),
            (120, between(101, 140), 1, 2, Verdict::Silent),
            (90, Value::Null, 0, 1, Verdict::Silent),
            // An estimate without an interval.
            (90, Value::Null, 1, 2, Verdict::Silent),
            (110, Value::Null, 1, 1, Verdict::Silent),
        ] {
            let told = verdict(count, interval.clone(), gaps, one_of);
            let is_missed = expected == Verdict::Silent && !interval.is_null();
            assert_eq!(
                told,
                (expected, is_missed),
                "{count}, {interval}, 1 of {one_of}"
            );
        }
    }

    #[test]
    fn what_is_right_is_exact_what_is_missing_must_be_said_and_what_is_wrong_is_silent() {
        let good = sample("/a", 200, 1_000_000);
        let whole = verdict(&[good.clone(), good.clone()], 0);
        assert_eq!(whole.verdict, Verdict::Exact, "{whole:?}");
        let few = std::slice::from_ref(&good);
        assert_eq!(verdict(few, 0).verdict, Verdict::Silent);
        assert_eq!(verdict(few, 1).verdict, Verdict::Said);
        for wrong in [
            sample("/b", 200, 1_000_000),
            sample("/a", 404, 1_000_000),
            sample("/a", 200, 40_000_000),
        ] {
            let row = verdict(&[good.clone(), wrong], 1);
            assert_eq!(row.verdict, Verdict::Silent, "{row:?}");
        }
        let mut unknown = good.clone();
        unknown["outcome"] = json!("unknown");
        unknown["status"] = Value::Null;
        let row = verdict(&[good.clone(), unknown], 0);
        assert_eq!(row.verdict, Verdict::Said, "{row:?}");
        let mut more = good.clone();
        more["response_bytes"] = json!(6);
        let row = verdict(&[good.clone(), more], 0);
        assert_eq!(row.verdict, Verdict::Silent, "{row:?}");
        let row = verdict(&[good.clone(), good.clone(), good], 1);
        assert_eq!(row.verdict, Verdict::Silent, "{row:?}");
    }
}
