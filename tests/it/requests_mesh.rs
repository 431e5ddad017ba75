//! Requests on every hop of the demo mesh: app, sidecar, sidecar, app.

use profiler_tests::{
    mesh::{Mesh, MeshOptions, Upstream, load_report},
    peers::{
        asked::Asked,
        watch::{Edges, Expected, Watch},
    },
};

use crate::targets::EXIT;

const REQUESTS: u64 = 400;
const CONNECTIONS: u32 = 8;

#[test]
fn every_request_is_reported_once_on_each_hop() {
    each_hop(Upstream::Http1, "http1");
}

#[test]
fn sidecars_that_speak_http2_with_each_other() {
    each_hop(Upstream::Http2, "http2");
}

fn each_hop(upstream: Upstream, between: &str) {
    let options = MeshOptions {
        workers: 2,
        upstream,
        ..MeshOptions::default()
    };
    let body_bytes = u64::from(options.body_bytes);
    let mesh = Mesh::up(&options).unwrap();
    let report = mesh.report();
    let [out, inward, app] = [
        report.client_envoy_pid,
        report.server_envoy_pid,
        report.server_pid,
    ];
    // Sidecars put several frames into one call of HTTP/2.
    let options = ["--capture-bytes=16320"];
    let watch = Watch::start_with(&[out, inward, app], &options).unwrap();
    let load = mesh.start_other_load(REQUESTS, CONNECTIONS).unwrap();
    let client = load.pid();
    let done = load_report(&load.finish(EXIT).unwrap()).unwrap();
    assert_eq!((done.requests, done.errors), (REQUESTS, 0));
    let seen = watch.finish().unwrap();
    let one = Asked::new("GET", "/work", "200").sizes(0, body_bytes);
    let asked = vec![one; usize::try_from(REQUESTS).unwrap()];
    let hops = [
        (client, out, "http1"),
        (out, inward, between),
        (inward, app, "http1"),
    ];
    for (from, to, protocol) in hops {
        let expected = Expected {
            protocol,
            tls: false,
            edges: Edges::Between(from, to),
            clients: &[from],
            servers: &[to],
            asked: &asked,
        };
        seen.check(&expected)
            .unwrap_or_else(|error| panic!("{from} to {to}: {error:#}"));
    }
}
