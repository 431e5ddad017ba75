//! How long the requests of the diagnosed processes take, and what these do meanwhile.

use profiler_model::latency::{Latency, LatencyPlace};

use super::{
    input::DiagnosisInput,
    inside::{OwnRequests, Recorded},
};
use crate::latency::{Known, latencies_of, with_causes};

/// Most requests first; empty where none were seen. Adds to `limits` what keeps them from being known.
pub(super) fn latency(
    input: &DiagnosisInput<'_>,
    recorded: &Recorded<'_>,
    known: Known,
    limits: &mut Vec<String>,
) -> Vec<Latency> {
    let Some(table) = input.requests else {
        limits.push("How long requests take, and where: requests were not recorded.".to_owned());
        return Vec::new();
    };
    let mut found = latencies_of(table, &input.pids());
    if found.is_empty() {
        let undecoded = table.counters.undecoded_connections;
        limits.push(if undecoded > 0 {
            format!(
                "How long requests take: none could be read; {undecoded} connections are encrypted or speak what is not known here."
            )
        } else {
            "How long requests take: no request with a whole response was seen.".to_owned()
        });
    }
    for latency in &mut found {
        let own = latency.parts.iter().filter(|part| part.place.is_own());
        let own_ns: u64 = own.map(|part| part.mean_ns).sum();
        let sidecar = recorded.inside(table, &latency.process, own_ns, OwnRequests::Apart);
        let servers = latency
            .parts
            .iter()
            .filter(|part| part.place == LatencyPlace::Server)
            .filter_map(|part| {
                let server = part.process.as_ref()?;
                recorded.inside(table, server, part.mean_ns, OwnRequests::Counted)
            });
        latency.inside = sidecar.into_iter().chain(servers).collect();
        latency.text = with_causes(latency, known);
    }
    found
}
