//! Requests between sidecars that speak mutual TLS, in three releases of Envoy without symbols.

use profiler_tests::{
    mesh::{App, MeshOptions, Upstream},
    paths,
};

use crate::hops;

fn check(envoy: &str, upstream: Upstream, app: App) {
    hops::check(&MeshOptions {
        envoy: Some(paths::envoy_release(envoy).unwrap()),
        workers: 2,
        mtls: true,
        upstream,
        app,
        ..MeshOptions::default()
    });
}

#[test]
fn envoy_1_36_with_http1() {
    check("1.36.4", Upstream::Http1, App::Http1);
}

#[test]
fn envoy_1_36_with_http2() {
    check("1.36.4", Upstream::Http2, App::Http1);
}

#[test]
fn envoy_1_36_with_grpc() {
    check("1.36.4", Upstream::Http2, App::Grpc);
}

#[test]
fn envoy_1_39_with_http1() {
    check("1.39.0", Upstream::Http1, App::Http1);
}

#[test]
fn envoy_1_39_with_http2() {
    check("1.39.0", Upstream::Http2, App::Http1);
}

#[test]
fn envoy_1_39_with_grpc() {
    check("1.39.0", Upstream::Http2, App::Grpc);
}

#[test]
fn envoy_1_40_with_http1() {
    check("1.40.0", Upstream::Http1, App::Http1);
}

#[test]
fn envoy_1_40_with_http2() {
    check("1.40.0", Upstream::Http2, App::Http1);
}

#[test]
fn envoy_1_40_with_grpc() {
    check("1.40.0", Upstream::Http2, App::Grpc);
}
