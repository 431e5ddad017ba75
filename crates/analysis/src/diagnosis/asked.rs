//! What a process asks others while it has requests, and what it waits for before it can.

use std::collections::{BTreeMap, BTreeSet};

use profiler_model::{
    EdgeKey, RequestTable,
    latency::{LatencyActivity, LatencyActivityKind as Kind},
    printable::printable_within,
};
use profiler_protocols::Protocol;

use super::inside::{Holder, activity};
use crate::latency::NAME_COLUMNS;

/// A pool is full where its connections had requests for this part of the time, in percent.
const FULL_PERCENT: u128 = 85;

/// All connections to the process that requests are passed on to had a request nearly all the time. Connections that
/// carry several requests at once are never full in this way.
pub(super) fn full_pool(table: &RequestTable, pid: u32, holder: Holder<'_>) -> Option<String> {
    let server = holder.passes_on_to?;
    let window_ns = table.window.to_ns.checked_sub(table.window.from_ns)?;
    let (mut busy_ns, mut used) = (0u128, BTreeSet::new());
    for operation in &table.operations {
        let Some(edge) = table.edge_of(operation) else {
            continue;
        };
        if edge.key.client.pid != Some(pid) || edge.key.server.pid != server.pid {
            continue;
        }
        if operation.protocol != Protocol::Http1 {
            return None;
        }
        let (_, timings) = operation.timed_by();
        busy_ns += u128::from(timings.latency_ns.mean()?) * u128::from(operation.tally.count);
        used.extend(operation.edge);
    }
    let edges = used
        .iter()
        .filter_map(|edge| table.edges.get(*edge as usize));
    let connections: u64 = edges.map(|edge| edge.connections).sum();
    let could_ns = u128::from(window_ns) * u128::from(connections);
    if could_ns == 0 || busy_ns * 100 < could_ns * FULL_PERCENT {
        return None;
    }
    let name = printable_within(&server.name, NAME_COLUMNS);
    let which = match connections {
        1 => "its only one".to_owned(),
        count => format!("all {count}"),
    };
    Some(format!(
        "for a free connection: {which} to {name} had requests all the time"
    ))
}

/// Requests that a process makes itself, for each of those that came to it. Without those that take longer than it has a request:
/// nothing of these waits for them.
pub(super) fn own_requests(
    table: &RequestTable,
    pid: u32,
    requests: u64,
    holder: Holder<'_>,
) -> Option<LatencyActivity> {
    let passes_on = holder.passes_on_to.map(|server| server.pid);
    if passes_on == Some(None) {
        // It passes requests on to several, which are not told apart here.
        return None;
    }
    let mut all_ns = 0u128;
    let mut servers: BTreeMap<String, u128> = BTreeMap::new();
    for operation in &table.operations {
        let edge = table.edge_of(operation);
        let Some(edge) = edge.filter(|edge| {
            edge.key.client.pid == Some(pid) && passes_on != Some(edge.key.server.pid)
        }) else {
            continue;
        };
        let (_, timings) = operation.timed_by();
        let mean_ns = timings.latency_ns.mean().unwrap_or(0);
        if mean_ns > holder.mean_ns {
            continue;
        }
        let ns = u128::from(mean_ns) * u128::from(operation.tally.count);
        all_ns += ns;
        *servers.entry(server_name(&edge.key)).or_default() += ns;
    }
    let (server, _) = servers.into_iter().max_by_key(|(_, ns)| *ns)?;
    let each = all_ns.checked_div(u128::from(requests))?;
    Some(LatencyActivity {
        what: Some(server),
        ..activity(Kind::OwnRequests, u64::try_from(each).unwrap_or(u64::MAX))
    })
}

/// Where the client asked to go; a sidecar on the way is nobody's answer.
pub(super) fn server_name(key: &EdgeKey) -> String {
    match key.original_destination {
        Some((address, port)) => std::net::SocketAddr::new(address, port).to_string(),
        None => key.server.name(),
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::{Window, latency::LatencyProcess};

    use super::*;
    use crate::latency::samples::{REQUESTS, edge, end, operation};

    const MS: u64 = 1_000_000;
    const ENVOY: u32 = 5;

    /// What is said of a sidecar whose requests take this long on its connections to an app.
    fn said(each_ms: u64, connections: u64, protocol: Protocol) -> Option<String> {
        let [envoy, app] = [(ENVOY, "envoy"), (7, "app")].map(|(pid, name)| end(pid, name));
        let mut operation = operation(0, each_ms * MS, None);
        operation.protocol = protocol;
        let mut edge = edge(&envoy, &app);
        edge.connections = connections;
        let table = RequestTable {
            window: Window {
                from_ns: 0,
                to_ns: REQUESTS * 100 * MS,
            },
            edges: vec![edge],
            operations: vec![operation],
            ..RequestTable::default()
        };
        let process = |pid, name: &str| LatencyProcess {
            pid: Some(pid),
            name: name.to_owned(),
        };
        let holder = Holder {
            process: &process(ENVOY, "envoy"),
            mean_ns: each_ms * MS,
            queue_ns: 0,
            passes_on_to: Some(&process(7, "app")),
            is_sidecar: true,
        };
        full_pool(&table, ENVOY, holder)
    }

    #[test]
    fn a_pool_is_full_when_all_its_connections_had_requests_nearly_all_the_time() {
        let text = said(95, 1, Protocol::Http1).unwrap();
        assert!(text.contains("its only one to app had requests"), "{text}");
        let text = said(190, 2, Protocol::Http1).unwrap();
        assert!(text.contains("all 2 to app"), "{text}");
        assert_eq!(said(60, 1, Protocol::Http1), None);
        assert_eq!(said(95, 2, Protocol::Http1), None);
        // Requests share its connections.
        assert_eq!(said(95, 1, Protocol::Http2), None);
    }
}
