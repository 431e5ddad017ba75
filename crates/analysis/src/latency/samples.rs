//! Requests between processes, for tests of what follows from them.

use std::net::IpAddr;

use profiler_model::{Address, EdgeKey, Endpoint, Operation, RequestEdge, Spread, Tally, Timings};
use profiler_protocols::Protocol;

/// On every edge.
pub(crate) const REQUESTS: u64 = 100;

pub(crate) fn end(pid: u32, name: &str) -> Endpoint {
    Endpoint {
        pid: Some(pid),
        start_ticks: Some(1),
        comm: name.to_owned(),
        container: None,
        address: Address::Ip(IpAddr::from([127, 0, 0, 1])),
    }
}

pub(crate) fn times(ns: u64) -> Spread {
    let mut spread = Spread::default();
    spread.add_times(ns, REQUESTS);
    spread
}

pub(crate) fn edge(client: &Endpoint, server: &Endpoint) -> RequestEdge {
    RequestEdge {
        key: EdgeKey {
            client: client.clone(),
            server: server.clone(),
            server_port: Some(80),
            original_destination: None,
        },
        client_port: None,
        connections: 1,
        server_tids: Vec::new(),
        tls: Vec::new(),
    }
}

/// Requests on an edge as both ends saw them, nanoseconds.
pub(crate) fn operation(place: u32, client_ns: u64, server_ns: Option<u64>) -> Operation {
    let timings = |ns| Timings {
        count: REQUESTS,
        latency_ns: times(ns),
        first_byte_ns: times(ns),
    };
    Operation {
        edge: Some(place),
        protocol: Protocol::Http1,
        tls: false,
        method: None,
        route: None,
        is_other: false,
        tally: Tally {
            count: REQUESTS,
            seen: REQUESTS,
            ..Tally::default()
        },
        server_only: 0,
        client: timings(client_ns),
        server: server_ns.map(timings).unwrap_or_default(),
    }
}
