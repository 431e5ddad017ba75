//! What access logs tell and what sockets show, in one table in which each request counts once.

use std::collections::{HashMap, HashSet};

use profiler_model::{
    Address, EdgeKey, Operation, RequestEdge, RequestSpan, RequestTable, RequestTimeline,
};

/// Puts both together. Requests at a socket of an Envoy that reports its requests itself are left to its access log.
///
/// Over time, requests of sockets count where their edge has a series of its own. At the end all entries have come: of the requests into
/// an Envoy that sockets show beyond them there is none. Attempts and health checks of Envoys have none of their own.
pub(super) fn merge(
    sockets: RequestTable,
    logged: RequestTable,
    end: Option<&Late>,
) -> RequestTable {
    let mut told = logged.logged.unwrap_or_default();
    let reporting = told.envoys.iter().filter(|envoy| envoy.requests > 0);
    let pids: HashSet<u32> = reporting.filter_map(|envoy| envoy.process.pid).collect();
    // Where edges of sockets go; those that are told are not kept.
    let mut places: HashMap<u32, u32> = HashMap::new();
    let mut edges: Vec<RequestEdge> = Vec::new();
    let telling = Telling::new(&pids, &logged.edges);
    let of_logs = telling.requests(&logged.edges, &logged.operations);
    for (side, seen) in telling.requests(&sockets.edges, &sockets.operations) {
        let twice = seen.min(of_logs.get(&side).copied().unwrap_or(0));
        told.seen_twice += twice;
        if let (Some(late), Side::Into(pid)) = (end, side)
            && sockets.counters.sampled_one_of <= 1
        {
            let late = late.get(&pid).copied().unwrap_or(0);
            told.without_entry += (seen - twice).saturating_sub(late);
        }
    }
    for (place, edge) in (0_u32..).zip(sockets.edges) {
        if !telling.is_about(&edge.key) {
            places.insert(place, next(&edges));
            edges.push(edge);
        }
    }
    let first = next(&edges);
    edges.extend(logged.edges);
    // Of edges for which there was no room it is not known whether they are told.
    let kept = |edge: Option<u32>| match edge {
        None => Some(None),
        Some(place) => places.get(&place).copied().map(Some),
    };
    let mut operations = Vec::new();
    for mut operation in sockets.operations {
        if let Some(edge) = kept(operation.edge) {
            operation.edge = edge;
            operations.push(operation);
        }
    }
    let behind = |edge: Option<u32>| edge.map(|place| place + first);
    operations.extend(logged.operations.into_iter().map(|mut operation| {
        operation.edge = behind(operation.edge);
        operation
    }));
    let of_sockets = sockets.samples.into_iter().filter_map(|mut sample| {
        sample.edge = kept(sample.edge)?;
        Some(sample)
    });
    let of_logs = logged.samples.into_iter().map(|mut sample| {
        sample.edge = behind(sample.edge);
        sample
    });
    let mut samples: Vec<_> = of_sockets.chain(of_logs).collect();
    samples.sort_by_key(|sample| sample.exchange.end_ns);
    let counted = sockets.counted.into_iter().filter_map(|mut counted| {
        counted.edge = *places.get(&counted.edge)?;
        Some(counted)
    });
    let is_others = |pid: Option<u32>| pid.is_none_or(|pid| !pids.contains(&pid));
    let own = sockets.sidecars.into_iter();
    let own = own.filter(|sidecar| is_others(sidecar.process.pid));
    told.edges = (first..next(&edges)).collect();
    let mut counters = sockets.counters;
    counters.other_operations += logged.counters.other_operations;
    counters.other_edges += logged.counters.other_edges;
    RequestTable {
        window: sockets.window,
        timeline: over_time(&sockets.timeline, &places, &logged.timeline, first),
        samples,
        samples_left_out: sockets.samples_left_out + logged.samples_left_out,
        counted: counted.collect(),
        sidecars: own.chain(logged.sidecars).collect(),
        counters,
        tls: sockets.tls,
        logged: Some(told),
        is_damaged: false,
        edges,
        operations,
    }
}

/// Requests into processes that were over after the end, at sockets.
pub(super) type Late = HashMap<u32, u64>;

/// What requests are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Side<'a> {
    Into(u32),
    OutOf(u32),
    /// Of an edge that both tell of, between other processes.
    Over(&'a EdgeKey),
}

/// Of what access logs tell.
#[derive(Debug)]
struct Telling<'a> {
    pids: &'a HashSet<u32>,
    /// Ports at which these processes are asked: a listener may have no access log, and the admin interface has none.
    ports: HashSet<(u32, Option<u16>)>,
    /// What they ask, without where they send their logs.
    upstreams: HashSet<(u32, Address, Option<u16>)>,
    keys: HashSet<&'a EdgeKey>,
}

impl<'a> Telling<'a> {
    fn new(pids: &'a HashSet<u32>, edges: &'a [RequestEdge]) -> Self {
        let keys = || edges.iter().map(|edge| &edge.key);
        let told = |pid: Option<u32>| pid.filter(|pid| pids.contains(pid));
        let ports = keys().filter_map(|key| Some((told(key.server.pid)?, key.server_port)));
        let upstreams = keys().filter_map(|key| {
            let client = told(key.client.pid)?;
            Some((client, key.server.address.clone(), key.server_port))
        });
        Self {
            pids,
            ports: ports.collect(),
            upstreams: upstreams.collect(),
            keys: keys().collect(),
        }
    }

    /// Whether an edge is left to the access logs.
    fn is_about(&self, key: &EdgeKey) -> bool {
        let mut ends = key.ends().into_iter().filter_map(|end| end.pid);
        ends.any(|pid| self.pids.contains(&pid)) || self.keys.contains(key)
    }

    /// Where both ends of a hop report it is at the server's. `None`: nothing tells of it.
    fn side<'k>(&self, key: &'k EdgeKey) -> Option<Side<'k>> {
        let [client, server] = key.ends().map(|end| end.pid);
        let is_told = |pid: &u32| self.pids.contains(pid);
        if let Some(pid) = server.filter(is_told) {
            let asked = key.original_destination.map(|(_, port)| Some(port));
            let mut ports = [Some(key.server_port), asked].into_iter().flatten();
            let is_logged = ports.any(|port| self.ports.contains(&(pid, port)));
            return is_logged.then_some(Side::Into(pid));
        }
        if let Some(pid) = client.filter(is_told) {
            let asked = key.original_destination;
            let asked = asked.map(|(ip, port)| (pid, Address::Ip(ip), Some(port)));
            let upstream = (pid, key.server.address.clone(), key.server_port);
            let mut upstreams = [Some(upstream), asked].into_iter().flatten();
            let is_logged = upstreams.any(|upstream| self.upstreams.contains(&upstream));
            return is_logged.then_some(Side::OutOf(pid));
        }
        self.keys.contains(key).then_some(Side::Over(key))
    }

    fn requests<'k>(
        &self,
        edges: &'k [RequestEdge],
        operations: &[Operation],
    ) -> HashMap<Side<'k>, u64> {
        let mut sums = HashMap::new();
        for operation in operations {
            let place = operation.edge.and_then(|place| usize::try_from(place).ok());
            let edge = place.and_then(|place| edges.get(place));
            if let Some(side) = edge.and_then(|edge| self.side(&edge.key)) {
                *sums.entry(side).or_default() += operation.tally.count;
            }
        }
        sums
    }
}

fn next(edges: &[RequestEdge]) -> u32 {
    u32::try_from(edges.len()).unwrap_or(u32::MAX)
}

/// The series of the edges that are kept, and of all of them together.
fn over_time(
    sockets: &RequestTimeline,
    places: &HashMap<u32, u32>,
    logged: &RequestTimeline,
    first: u32,
) -> RequestTimeline {
    let width_ns = sockets.width_ns.max(logged.width_ns);
    let mut edges = Vec::new();
    let mut all = widened(&logged.all, logged.width_ns, width_ns);
    for (place, spans) in &sockets.edges {
        if let Some(place) = places.get(place) {
            let spans = widened(spans, sockets.width_ns, width_ns);
            if all.len() < spans.len() {
                all.resize_with(spans.len(), RequestSpan::default);
            }
            for (sum, more) in all.iter_mut().zip(&spans) {
                sum.merge(more);
            }
            edges.push((*place, spans));
        }
    }
    edges.extend(
        logged
            .edges
            .iter()
            .map(|(place, spans)| (place + first, widened(spans, logged.width_ns, width_ns))),
    );
    edges.sort_by_key(|(place, _)| *place);
    RequestTimeline {
        width_ns,
        all,
        edges,
    }
}

/// Spans put together until they have the width: both are seconds times a power of two.
fn widened(spans: &[RequestSpan], from_ns: u64, to_ns: u64) -> Vec<RequestSpan> {
    let together = usize::try_from(to_ns / from_ns.max(1)).unwrap_or(1).max(1);
    let sums = spans.chunks(together).map(|spans| {
        let mut sum = RequestSpan::default();
        for span in spans {
            sum.merge(span);
        }
        sum
    });
    sums.collect()
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
