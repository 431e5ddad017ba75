//! Requests through a proxy, from payload to the time that it added.

use std::collections::HashMap;

use profiler_model::{MatchClass, RequestTable};

use super::{PayloadEvent, PayloadPiece, Plaintext, SocketFacts, TrackerOptions, edge, edge_of};
use crate::{
    edges::EdgeOfConnection,
    requests::{Drawn, Tracker},
};

const MS: u64 = 1_000_000;
const PROXY: u32 = 300;
/// Sockets of the proxy towards its client and towards the upstream.
const DOWN: u64 = 1;
const UP: u64 = 2;

fn facts(is_client: bool) -> SocketFacts {
    let proxy = ([10, 0, 0, 2], if is_client { 41_000 } else { 15_001 }).into();
    let other = ([10, 0, 0, 3], if is_client { 8080 } else { 42_000 }).into();
    SocketFacts {
        local: proxy,
        remote: other,
        is_client: Some(is_client),
        joined: false,
        is_udp: false,
    }
}

fn edges() -> HashMap<u64, EdgeOfConnection> {
    let mut down = edge();
    down.server.pid = Some(PROXY);
    down.server.comm = "envoy".to_owned();
    let mut up = edge();
    up.client.pid = Some(PROXY);
    HashMap::from([(DOWN, edge_of(down)), (UP, edge_of(up))])
}

struct Proxy {
    tracker: Tracker,
    offsets: HashMap<(u64, bool), u64>,
}

impl Proxy {
    fn new() -> Self {
        let mut tracker = Tracker::new(TrackerOptions::default());
        tracker.connection(DOWN, facts(false));
        tracker.connection(UP, facts(true));
        Self {
            tracker,
            offsets: HashMap::new(),
        }
    }

    fn moved(&mut self, cookie: u64, is_send: bool, at_ms: u64, text: &str) {
        let offset = self.offsets.entry((cookie, is_send)).or_default();
        let piece = PayloadPiece {
            drawn: Drawn::ALL,
            follows: true,
            cookie,
            pid: PROXY,
            tid: PROXY + 7,
            at_ns: at_ms * MS,
            ready_ns: (!is_send).then_some(at_ms * MS - 2 * MS),
            began_ns: None,
            is_send,
            plaintext: Plaintext::Wire,
            offset: *offset,
            length: text.len() as u64,
            bytes: text.as_bytes(),
        };
        *offset += text.len() as u64;
        self.tracker.take(PayloadEvent::Piece(piece));
    }

    /// One request that is read, passed on after 3 ms, answered after 20 and passed back after 5.
    fn pass(&mut self, at_ms: u64, more: &str) {
        let request = format!("GET /users/17 HTTP/1.1\r\nHost: shop\r\n{more}\r\n");
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let to_client =
            "HTTP/1.1 200 OK\r\nx-envoy-upstream-service-time: 20\r\nContent-Length: 2\r\n\r\nok";
        self.moved(DOWN, false, at_ms, &request);
        self.moved(UP, true, at_ms + 3, &request);
        self.moved(UP, false, at_ms + 23, answer);
        self.moved(DOWN, true, at_ms + 28, to_client);
    }

    fn finish(mut self) -> RequestTable {
        self.tracker.edges(&edges(), 100_000 * MS, false);
        self.tracker.finish(100_000 * MS)
    }
}

#[test]
fn the_time_in_a_proxy_is_found_and_split() {
    let mut proxy = Proxy::new();
    for round in 0..5_u64 {
        proxy.pass(1000 + 100 * round, &format!("x-request-id: id-{round}\r\n"));
    }
    let table = proxy.finish();
    assert_eq!(table.sidecars.len(), 1);
    let sidecar = &table.sidecars[0];
    assert_eq!(sidecar.process.pid, Some(PROXY));
    assert_eq!(sidecar.process.comm, "envoy");
    assert_eq!((sidecar.requests_in, sidecar.requests_out), (5, 5));
    assert_eq!(sidecar.mean_ns(), Some(8 * MS));
    let times = &sidecar.pairs[&MatchClass::RequestId];
    assert_eq!(times.pairs, 5);
    assert_eq!(times.read_wait_ns.mean(), Some(2 * MS));
    assert_eq!(times.to_upstream_ns.mean(), Some(3 * MS));
    assert_eq!(times.upstream_ns.mean(), Some(20 * MS));
    assert_eq!(times.answer_wait_ns.mean(), Some(2 * MS));
    assert_eq!(times.to_client_ns.mean(), Some(5 * MS));
    assert_eq!(sidecar.upstream_header.agreeing, 5);
}

#[test]
fn without_ids_what_is_alike_and_alone_is_paired() {
    let mut proxy = Proxy::new();
    proxy.pass(1000, "");
    proxy.pass(1100, "");
    let table = proxy.finish();
    let pairs = &table.sidecars[0].pairs;
    assert_eq!(pairs.len(), 1);
    assert_eq!(pairs[&MatchClass::Fingerprint].pairs, 2);
}
