//! How long the requests of the diagnosed processes take, and what these do meanwhile.

use profiler_model::{
    EdgeTable, SideMetrics,
    latency::{Latency, LatencyPlace, LatencyProcess},
};

use super::{
    input::DiagnosisInput,
    inside::{Holder, Recorded, Unknown},
    network::retransmit_percent,
};
use crate::latency::{Known, latencies_of, with_causes};

/// Most requests first; empty with the reason where none are known. `recorded` is there where requests are. Adds to `limits`
/// what is not in them.
pub(super) fn latency(
    input: &DiagnosisInput<'_>,
    recorded: Option<&Recorded<'_>>,
    limits: &mut Vec<String>,
) -> (Vec<Latency>, Option<String>) {
    let (Some(table), Some(recorded)) = (input.requests, recorded) else {
        limits.push("How long requests take, and where: requests were not recorded.".to_owned());
        return (Vec::new(), None);
    };
    let undecoded = table.counters.undecoded_connections;
    let unread = format!("{undecoded} connections are encrypted or speak what is not known here");
    let mut found = latencies_of(table, &input.answering());
    if found.is_empty() {
        let why = if table.is_damaged {
            "what was recorded cannot be read".to_owned()
        } else if undecoded > 0 {
            unread
        } else if table.operations.is_empty() {
            "no requests were seen".to_owned()
        } else {
            "none with a whole response came to these processes".to_owned()
        };
        limits.push(format!("How long requests take: {why}."));
        return (found, Some(why));
    }
    if undecoded > 0 {
        limits.push(format!("How long other requests take: {unread}."));
    }
    for latency in &mut found {
        let mut unknown: Vec<(LatencyProcess, Unknown)> = Vec::new();
        let mut inside = Vec::new();
        for holder in holders(latency) {
            match recorded.inside(holder) {
                Ok(found) => inside.push(found),
                Err(why) => unknown.push((holder.process.clone(), why)),
            }
        }
        latency.inside = inside;
        let sent_again = input.edges.and_then(|edges| sent_again(edges, latency));
        latency.text = with_causes(
            latency,
            &Known {
                unknown: &unknown,
                retransmit_percent: sent_again,
            },
        );
    }
    (found, None)
}

/// The process that passes requests on, if one does, and the one that answers.
fn holders(latency: &Latency) -> Vec<Holder<'_>> {
    let parts = || latency.parts.iter();
    let server = parts()
        .find(|part| part.place.is_behind())
        .and_then(|part| Some((part.process.as_ref()?, part)));
    let mut holders = Vec::new();
    let own = parts().filter(|part| part.place.is_own());
    let own_ns: u64 = own.map(|part| part.mean_ns).sum();
    if own_ns > 0 {
        let queue = parts().find(|part| part.place == LatencyPlace::InboundQueue);
        holders.push(Holder {
            process: &latency.process,
            mean_ns: own_ns,
            queue_ns: queue.map_or(0, |part| part.mean_ns),
            passes_on_to: server.map(|(process, _)| process),
            is_sidecar: true,
        });
    }
    let known = server.filter(|(_, part)| part.place == LatencyPlace::Server);
    holders.extend(known.map(|(process, part)| Holder {
        process,
        mean_ns: part.mean_ns,
        queue_ns: 0,
        passes_on_to: None,
        is_sidecar: false,
    }));
    holders
}

/// Of what the two processes sent each other, in percent; `None`: not measured, or nothing was sent.
fn sent_again(edges: &EdgeTable, latency: &Latency) -> Option<f64> {
    let server = latency.parts.iter().find(|part| part.place.is_behind())?;
    let (client, server) = (latency.process.pid?, server.process.as_ref()?.pid?);
    let mut both = SideMetrics::default();
    let between = edges
        .edges
        .iter()
        .filter(|edge| edge.key.client.pid == Some(client) && edge.key.server.pid == Some(server));
    let sides = between.flat_map(|edge| [&edge.client, &edge.server]);
    for side in sides.flatten() {
        both.merge(side);
    }
    retransmit_percent(edges, &both)
}
