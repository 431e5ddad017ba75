//! Where the time of requests goes, and one sentence that says it.
//!
//! Of a process that passes requests on (a sidecar) the parts are those of its pairs of requests; what the process behind it takes is
//! what that one's own sockets saw. Of a process that answers by itself there is one part.

#[cfg(test)]
pub(crate) mod samples;
mod sentence;

use std::collections::{BTreeMap, BTreeSet};

use profiler_model::{
    Address, Endpoint, RequestTable, Sidecar, SidecarTimes, Spread,
    latency::{Latency, LatencyPart, LatencyPlace, LatencyProcess},
    percent,
};

pub(crate) use sentence::{Known, NAME_COLUMNS, with_causes};

/// Processes that are reported; those with the most requests.
const MOST: usize = 8;
/// Parts are of the pairs that more than order ties where these are this part of all, in percent: percentiles depend on which is which.
const TRUSTED_PERCENT: u64 = 90;
/// The server's own sockets stand for all of a sidecar's requests from this part of them on, in percent.
const SERVER_SEEN_PERCENT: u64 = 90;

/// Sidecars with the most requests first; where nothing passes requests on, the processes that answer.
pub fn latencies(table: &RequestTable) -> Vec<Latency> {
    let found = sidecars(table);
    most_of(if found.is_empty() {
        servers(table)
    } else {
        found
    })
}

/// The same for some processes.
pub(crate) fn latencies_of(table: &RequestTable, pids: &BTreeSet<u32>) -> Vec<Latency> {
    let of_these = |mut found: Vec<Latency>| {
        found.retain(|latency| latency.process.pid.is_some_and(|pid| pids.contains(&pid)));
        found
    };
    let found = of_these(sidecars(table));
    most_of(if found.is_empty() {
        of_these(servers(table))
    } else {
        found
    })
}

fn most_of(mut found: Vec<Latency>) -> Vec<Latency> {
    found.sort_by_key(|latency| std::cmp::Reverse(latency.requests));
    found.truncate(MOST);
    found
}

fn sidecars(table: &RequestTable) -> Vec<Latency> {
    let sidecars = table.sidecars.iter();
    sidecars
        .filter_map(|sidecar| of_sidecar(table, sidecar))
        .collect()
}

fn of_sidecar(table: &RequestTable, sidecar: &Sidecar) -> Option<Latency> {
    let process = &sidecar.process;
    // How long a request took does not depend on which one went out for it. What it answers by itself, such as questions about
    // its own state, is no request that passes through.
    let every = every_pair(sidecar);
    let all = &every.whole_ns;
    let mean_ns = all.mean()?;
    let times = match sidecar.trusted() {
        trusted if trusted.pairs * 100 >= every.pairs * TRUSTED_PERCENT => trusted,
        _ => every.clone(),
    };
    let own = name_of(process);
    let part = |place, values: &Spread| {
        Some(with_percentiles(
            place,
            Some(own.clone()),
            values.mean()?,
            values,
        ))
    };
    let mut parts: Vec<LatencyPart> = Vec::new();
    parts.extend(part(LatencyPlace::InboundQueue, &times.read_wait_ns));
    parts.extend(part(LatencyPlace::RequestPath, &times.to_upstream_ns));
    parts.extend(behind(table, sidecar, &times));
    parts.extend(part(LatencyPlace::ResponseQueue, &times.answer_wait_ns));
    parts.extend(part(LatencyPlace::ResponsePath, &times.to_client_ns));
    let known: u64 = parts.iter().map(|part| part.mean_ns).sum();
    // Each mean is rounded down: as many nanoseconds are no part.
    let rounded = parts.len() as u64;
    if let Some(rest) = mean_ns.checked_sub(known).filter(|rest| *rest > rounded) {
        parts.push(mean_alone(LatencyPlace::ResponseBody, None, rest));
    }
    Some(finished(own, all, mean_ns, parts))
}

/// What comes between sending a request on and the arrival of its response.
fn behind(table: &RequestTable, sidecar: &Sidecar, times: &SidecarTimes) -> Vec<LatencyPart> {
    let waited = times.answer_wait_ns.mean().unwrap_or(0);
    let Some(upstream) = times.upstream_ns.mean() else {
        return Vec::new();
    };
    let upstream = upstream.saturating_sub(waited);
    let mut servers: Vec<(&Endpoint, u64)> = Vec::new();
    let (mut sent, mut seen) = (0, Spread::default());
    for operation in &table.operations {
        let edge = table.edge_of(operation);
        let Some(edge) = edge.filter(|edge| is_same(&edge.key.client, &sidecar.process)) else {
            continue;
        };
        sent += operation.client.count;
        seen.merge(&operation.server.first_byte_ns);
        match servers
            .iter_mut()
            .find(|(known, _)| is_same(known, &edge.key.server))
        {
            Some((_, requests)) => *requests += operation.tally.count,
            None => servers.push((&edge.key.server, operation.tally.count)),
        }
    }
    servers.sort_by_key(|(_, requests)| std::cmp::Reverse(*requests));
    let server = match servers.as_slice() {
        [] => None,
        [(only, _)] => Some(name_of(only)),
        [(first, _), rest @ ..] => Some(LatencyProcess {
            pid: None,
            name: format!("{} and {} more", name_of(first).name, rest.len()),
        }),
    };
    let is_seen = seen.count > 0 && seen.count * 100 >= sent * SERVER_SEEN_PERCENT;
    let Some(inside) = seen.mean().filter(|_| is_seen) else {
        return vec![mean_alone(LatencyPlace::Upstream, server, upstream)];
    };
    // Both are means over all requests; clocks and moments of reading differ by less than what is said.
    let inside = inside.min(upstream);
    vec![
        mean_alone(LatencyPlace::Network, None, upstream - inside),
        with_percentiles(LatencyPlace::Server, server, inside, &seen),
    ]
}

/// Processes that answer, each with one part: how long the requests that came to it took, as its own sockets saw it where they
/// did.
fn servers(table: &RequestTable) -> Vec<Latency> {
    type Identity<'a> = (Option<u32>, Option<u64>, Option<&'a Address>);
    let mut received: BTreeMap<Identity<'_>, (&Endpoint, Spread)> = BTreeMap::new();
    for operation in &table.operations {
        let Some(edge) = table.edge_of(operation) else {
            continue;
        };
        let server = &edge.key.server;
        let address = server.pid.is_none().then_some(&server.address);
        let (_, all) = received
            .entry((server.pid, server.start_ticks, address))
            .or_insert_with(|| (server, Spread::default()));
        let of_server = &operation.server.latency_ns;
        all.merge(if of_server.count > 0 {
            of_server
        } else {
            &operation.client.latency_ns
        });
    }
    received
        .into_values()
        .filter_map(|(server, all)| {
            let mean_ns = all.mean()?;
            let own = name_of(server);
            let part = with_percentiles(LatencyPlace::Server, Some(own.clone()), mean_ns, &all);
            Some(finished(own, &all, mean_ns, vec![part]))
        })
        .collect()
}

/// The times of all pairs, those that order alone decided as well: their means do not depend on which is which.
fn every_pair(sidecar: &Sidecar) -> SidecarTimes {
    let mut all = SidecarTimes::default();
    for times in sidecar.pairs.values() {
        all.merge(times);
    }
    all
}

/// By pid and start; ends that nothing is known of are told apart by their address.
fn is_same(a: &Endpoint, b: &Endpoint) -> bool {
    match (a.pid, b.pid) {
        (Some(one), Some(other)) => one == other && a.start_ticks == b.start_ticks,
        (None, None) => a.address == b.address,
        _ => false,
    }
}

fn name_of(end: &Endpoint) -> LatencyProcess {
    LatencyProcess {
        pid: end.pid,
        name: end.name(),
    }
}

fn mean_alone(place: LatencyPlace, process: Option<LatencyProcess>, mean_ns: u64) -> LatencyPart {
    LatencyPart {
        place,
        process,
        mean_ns,
        p50_ns: None,
        p95_ns: None,
        share_percent: 0.0,
    }
}

fn with_percentiles(
    place: LatencyPlace,
    process: Option<LatencyProcess>,
    mean_ns: u64,
    values: &Spread,
) -> LatencyPart {
    LatencyPart {
        p50_ns: upper(values, 500),
        p95_ns: upper(values, 950),
        ..mean_alone(place, process, mean_ns)
    }
}

fn upper(values: &Spread, thousandths: u64) -> Option<u64> {
    Some(values.percentile(thousandths)?.to)
}

fn finished(
    process: LatencyProcess,
    all: &Spread,
    mean_ns: u64,
    mut parts: Vec<LatencyPart>,
) -> Latency {
    for part in &mut parts {
        part.share_percent = percent(part.mean_ns, mean_ns);
    }
    let at = |thousandths| upper(all, thousandths).unwrap_or(mean_ns);
    let mut latency = Latency {
        process,
        requests: all.count,
        mean_ns,
        p50_ns: at(500),
        p95_ns: at(950),
        p99_ns: at(990),
        parts,
        inside: Vec::new(),
        text: String::new(),
    };
    latency.text = sentence::sentence(&latency);
    latency
}

#[cfg(test)]
#[path = "latency_tests.rs"]
mod tests;
