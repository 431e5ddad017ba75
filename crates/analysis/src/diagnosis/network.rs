//! What the connections of the diagnosed processes show.

use profiler_model::{
    EdgeTable, SideMetrics, Values,
    diagnosis::{NetworkReport, WaitLengths},
    float, percent,
};

use super::input::DiagnosisInput;

/// The report, and how much was sent, in calls.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) report: NetworkReport,
    pub(super) retransmits: u64,
    pub(super) writes: u64,
}

/// Adds up the ends of connections that the processes have. `requests` of them are known in the window.
pub(super) fn network(
    input: &DiagnosisInput<'_>,
    requests: Option<u64>,
    limits: &mut Vec<String>,
) -> Option<Network> {
    let table = input.edges?;
    let pids = input.pids();
    let is_ours = |pid: Option<u32>| pid.is_some_and(|pid| pids.contains(&pid));
    let mut opened = 0u64;
    let mut all = SideMetrics::default();
    for edge in &table.edges {
        if is_ours(edge.key.client.pid)
            && let Some(side) = &edge.client
        {
            opened = opened.saturating_add(side.connect.count);
            all.merge(side);
        }
        if is_ours(edge.key.server.pid)
            && let Some(side) = &edge.server
        {
            // Those that came in are only known by their other end, or when they have ended.
            let seen = edge.client.as_ref().map(|client| client.connect.count);
            let ended = side.connections.saturating_sub(side.open);
            opened = opened.saturating_add(seen.unwrap_or(ended));
            all.merge(side);
        }
    }
    if table.lost_events > 0 {
        limits.push(format!(
            "{} calls on connections did not fit the kernel's table and are not in the numbers of \
             the network.",
            table.lost_events
        ));
    }
    let measured = table.has("retransmit");
    if !measured {
        limits.push("Retransmitted segments are not measured on this kernel.".to_owned());
    }
    let report = NetworkReport {
        connections_opened: opened,
        connections_per_request: requests
            .filter(|requests| *requests > 0)
            .map(|requests| float(opened) / float(requests)),
        retransmit_percent: retransmit_percent(table, &all),
        resets: all.resets_sent.saturating_add(all.resets_received),
        receive_wait_ns: lengths(table, &all.receive_wait),
    };
    Some(Network {
        report,
        retransmits: all.retransmits,
        writes: if measured { all.write.count } else { 0 },
    })
}

/// Segments that were sent again, for a hundred writes; `None`: not measured, or nothing was sent.
pub(super) fn retransmit_percent(table: &EdgeTable, all: &SideMetrics) -> Option<f64> {
    (table.has("retransmit") && all.write.count > 0)
        .then(|| percent(all.retransmits, all.write.count))
}

fn lengths(table: &EdgeTable, values: &Values) -> Option<WaitLengths> {
    if !table.has("receive_wait") {
        return None;
    }
    // The upper bound of the bucket, or what is known to be the longest.
    let at = |thousandths| {
        let between = values.percentile(thousandths)?;
        between
            .up_to_us
            .map(|us| us.saturating_mul(1000))
            .or(values.greatest)
    };
    Some(WaitLengths {
        p50: at(500)?,
        p99: at(990)?,
    })
}
