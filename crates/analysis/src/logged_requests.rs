//! What Envoys report of requests by their access logs, for people: what flags and phases mean, and which hosts stand out.

use std::{cmp::Reverse, collections::BTreeMap};

use profiler_access_logs::{
    PHASES,
    flags::{FLAGS, Flag},
};
use profiler_model::{
    Bounds, LoggedFlagged, LoggedPhase, LoggedUpstream, LoggingEnvoy,
    access_log_report::{
        AccessLogDetail, AccessLogFlag, AccessLogFlagged, AccessLogPhase, AccessLogReport,
        AccessLogTls, AccessLogUpstream,
    },
    float,
    printable::printable_within,
    short_time, thousands,
};

use crate::diagnosis::proportion;

/// Fewer requests of a host, or of the others of its cluster, are no ground to say that it differs.
const FEWEST: u64 = 30;
/// Hosts and clusters that are named of each response flag, and their longest name in columns.
const MOST_PLACES: usize = 3;
const LONGEST_PLACE: usize = 64;

/// What one Envoy reports, as it is published.
pub fn report(envoy: &LoggingEnvoy) -> AccessLogReport {
    let LoggingEnvoy {
        process: _,
        node_id,
        requests,
        connections,
        retried,
        retries,
        missing,
        joined,
        phases,
        flags,
        flagged: _,
        details,
        tls,
        upstreams,
        of_other_upstreams,
    } = envoy;
    AccessLogReport {
        node_id: node_id.clone(),
        requests: *requests,
        connections: *connections,
        retried: *retried,
        retries: *retries,
        missing: *missing,
        joined: *joined,
        phases: phases.iter().map(phase).collect(),
        flags: most_first(flags)
            .into_iter()
            .map(|(name, count)| flag(envoy, name, count))
            .collect(),
        details: most_first(details)
            .into_iter()
            .map(|(text, count)| AccessLogDetail {
                text: text.to_owned(),
                count,
            })
            .collect(),
        tls: most_first(tls)
            .into_iter()
            .map(|(version, count)| AccessLogTls {
                version: version.to_owned(),
                count,
            })
            .collect(),
        upstreams: upstreams
            .iter()
            .zip(stand_out(upstreams))
            .map(|(found, stands_out)| upstream(found, stands_out))
            .collect(),
        of_other_upstreams: *of_other_upstreams,
    }
}

/// Names and their counts, the greatest count first.
pub(crate) fn most_first(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let pairs = counts.iter().map(|(name, count)| (name.as_str(), *count));
    let mut pairs: Vec<(&str, u64)> = pairs.collect();
    pairs.sort_by_key(|(_, count)| Reverse(*count));
    pairs
}

/// What is known of a response flag; `None` for names that no known Envoy has.
pub(crate) fn known_flag(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.short_name == name)
}

/// Where requests and connections with a flag were sent, most first.
fn places<'a>(envoy: &'a LoggingEnvoy, flag: &str) -> impl Iterator<Item = &'a LoggedFlagged> {
    let flagged = envoy.flagged.iter();
    flagged.filter(move |place| place.flag == flag)
}

/// The same in words: `7 to 10.0.0.7:80 of cluster web, 2 elsewhere`. `None` where no cluster is known.
pub(crate) fn places_text(envoy: &LoggingEnvoy, flag: &str) -> Option<String> {
    let shown = places(envoy, flag).filter(|place| !place.cluster.is_empty());
    let shown: Vec<&LoggedFlagged> = shown.take(MOST_PLACES).collect();
    let mut rest = envoy.flags.get(flag).copied().unwrap_or(0);
    let mut texts = Vec::new();
    for place in shown {
        rest = rest.saturating_sub(place.count);
        let cluster = printable_within(&place.cluster, LONGEST_PLACE);
        let host = match place.address.as_str() {
            "" => "no host".to_owned(),
            address => printable_within(address, LONGEST_PLACE),
        };
        texts.push(format!(
            "{} to {host} of cluster {cluster}",
            thousands(place.count)
        ));
    }
    if rest > 0 && !texts.is_empty() {
        texts.push(format!("{} elsewhere", thousands(rest)));
    }
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn flag(envoy: &LoggingEnvoy, name: &str, count: u64) -> AccessLogFlag {
    let known = known_flag(name);
    AccessLogFlag {
        name: name.to_owned(),
        long_name: known.map_or(name, |flag| flag.long_name).to_owned(),
        meaning: known.map_or("", |flag| flag.meaning),
        cause: known.map_or("", |flag| flag.cause),
        count,
        upstreams: places(envoy, name)
            .take(MOST_PLACES)
            .map(|place| AccessLogFlagged {
                cluster: place.cluster.clone(),
                address: place.address.clone(),
                count: place.count,
            })
            .collect(),
    }
}

fn phase(found: &LoggedPhase) -> AccessLogPhase {
    let LoggedPhase { name, time_ns } = found;
    let known = PHASES.iter().find(|phase| phase.name == name);
    AccessLogPhase {
        name: name.clone(),
        meaning: known.map_or("", |phase| phase.meaning),
        ns: time_ns.into(),
    }
}

fn upstream(found: &LoggedUpstream, stands_out: Option<String>) -> AccessLogUpstream {
    let LoggedUpstream {
        cluster,
        address,
        requests,
        errors,
        time_ns,
        rtt_ns,
        retransmits,
    } = found;
    AccessLogUpstream {
        cluster: cluster.clone(),
        address: address.clone(),
        requests: *requests,
        errors: *errors,
        ns: time_ns.into(),
        rtt_ns: rtt_ns.into(),
        retransmits: (rtt_ns.count > 0).then_some(*retransmits),
        stands_out,
    }
}

/// For each host how it differs from the others of its cluster by more than chance, in sentences: it fails more often, or its
/// median time is longer. The 95 % intervals of both must not overlap.
pub(crate) fn stand_out(upstreams: &[LoggedUpstream]) -> Vec<Option<String>> {
    let mut clusters: BTreeMap<&str, Hosts> = BTreeMap::new();
    for host in upstreams {
        clusters.entry(&host.cluster).or_default().add(host);
    }
    let of_host = |host: &LoggedUpstream| {
        let others = clusters.get(host.cluster.as_str())?.without(host);
        let mut own = Hosts::default();
        own.add(host);
        let differences = [fails_more(&own, &others), is_slower(&own, &others)];
        let sentences: Vec<String> = differences.into_iter().flatten().collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    };
    upstreams.iter().map(of_host).collect()
}

fn fails_more(own: &Hosts, others: &Hosts) -> Option<String> {
    if own.requests.min(others.requests) < FEWEST {
        return None;
    }
    let share = |hosts: &Hosts| proportion(hosts.errors, hosts.requests);
    let (own, theirs) = (share(own), share(others));
    (own.low > theirs.high).then(|| {
        format!(
            "{:.1} % of its requests fail ({:.1} to {:.1} %), of those to {others} {:.1} % ({:.1} to {:.1} %).",
            own.value, own.low, own.high, theirs.value, theirs.low, theirs.high
        )
    })
}

fn is_slower(own: &Hosts, others: &Hosts) -> Option<String> {
    let (own, theirs) = (own.median_ns()?, others.median_ns()?);
    (own.from > theirs.to).then(|| {
        format!(
            "Half of its requests take at least {}, of those to {others} at most {}.",
            short_time(own.from),
            short_time(theirs.to)
        )
    })
}

/// The requests to some hosts of a cluster together.
#[derive(Clone, Debug, Default)]
struct Hosts {
    count: u64,
    requests: u64,
    errors: u64,
    /// Times by the least value of their bucket: the greatest value, and how many there are.
    times: BTreeMap<u64, (u64, u64)>,
}

impl Hosts {
    fn add(&mut self, host: &LoggedUpstream) {
        self.count += 1;
        self.requests = self.requests.saturating_add(host.requests);
        self.errors = self.errors.saturating_add(host.errors);
        for (Bounds { from, to }, times) in host.time_ns.buckets() {
            let (_, count) = self.times.entry(from).or_insert((to, 0));
            *count = count.saturating_add(times);
        }
    }

    /// The hosts but one of them.
    fn without(&self, host: &LoggedUpstream) -> Self {
        let mut rest = self.clone();
        rest.count = rest.count.saturating_sub(1);
        rest.requests = rest.requests.saturating_sub(host.requests);
        rest.errors = rest.errors.saturating_sub(host.errors);
        for (Bounds { from, .. }, times) in host.time_ns.buckets() {
            if let Some((_, count)) = rest.times.get_mut(&from) {
                *count = count.saturating_sub(times);
            }
        }
        rest
    }

    /// Between which values the median lies, 95 times of 100, by order statistics: how many of `n` values are below the median
    /// has the standard deviation `sqrt(n) / 2`. `None` of too few.
    fn median_ns(&self) -> Option<Bounds> {
        let all = self.times.values().map(|(_, count)| u128::from(*count));
        let all: u128 = all.sum();
        if all < u128::from(FEWEST) {
            return None;
        }
        // 0.98^2, rounded up.
        let half = (all * 9604 / 10_000).isqrt() + 1;
        let low = (all / 2).saturating_sub(half).max(1);
        let high = (all / 2 + 1 + half).min(all);
        Some(Bounds {
            from: self.at_rank(low)?.from,
            to: self.at_rank(high)?.to,
        })
    }

    /// The bucket of the value with this rank, from 1.
    fn at_rank(&self, rank: u128) -> Option<Bounds> {
        let mut seen = 0;
        let (from, (to, _)) = self.times.iter().find(|(_, (_, count))| {
            seen += u128::from(*count);
            seen >= rank
        })?;
        Some(Bounds {
            from: *from,
            to: *to,
        })
    }
}

/// For the middle of a sentence.
impl std::fmt::Display for Hosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count {
            1 => f.write_str("the other host of the cluster"),
            count => write!(f, "the other {count} hosts of the cluster"),
        }
    }
}

/// How many of an Envoy's requests arrived, where that is known; in percent, rounded down: less than all is never 100 %.
pub(crate) fn received_percent(envoy: &LoggingEnvoy) -> Option<f64> {
    let missing = envoy.missing?;
    let all = envoy.requests.saturating_add(missing);
    (all > 0).then(|| (float(envoy.requests) / float(all) * 10_000.0).floor() / 100.0)
}

#[cfg(test)]
#[path = "logged_requests_tests.rs"]
pub(crate) mod tests;
