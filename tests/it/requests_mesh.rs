//! Requests on every hop of the demo mesh.

use profiler_tests::mesh::{App, MeshOptions, Upstream};

use crate::hops;

fn check(upstream: Upstream, app: App) {
    hops::check(&MeshOptions {
        workers: 2,
        upstream,
        app,
        ..MeshOptions::default()
    });
}

#[test]
fn every_request_is_reported_once_on_each_hop() {
    check(Upstream::Http1, App::Http1);
}

#[test]
fn sidecars_that_speak_http2_with_each_other() {
    check(Upstream::Http2, App::Http1);
}

#[test]
fn every_call_of_grpc_is_reported_once_on_each_hop() {
    check(Upstream::Http2, App::Grpc);
}
