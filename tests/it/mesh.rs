//! The demo mesh itself: traffic takes the whole way and every option takes effect.

use std::time::Duration;

use profiler_tests::{
    assert_measured,
    mesh::{
        AccessLog, LoadReport, Mesh, MeshOptions, SERVER_ADDRESS, SERVER_PORT, Tracer, Tracing,
        Upstream,
        http_filters::LUA_HEADER,
        sidecar::{INBOUND_STATS, OUTBOUND_CLUSTER, OUTBOUND_STATS},
    },
    wait::wait_until,
};

const LOAD: Duration = Duration::from_millis(700);
const FLUSHED: Duration = Duration::from_secs(30);

/// Brings the mesh up, loads it, and checks what holds for all options.
fn loaded(options: &MeshOptions) -> (Mesh, LoadReport) {
    let mesh = Mesh::up(options).unwrap();
    let report = mesh.run_load(LOAD).unwrap();
    assert_eq!(report.errors, 0, "{report:?}");
    assert!(report.requests >= 50, "{report:?}");

    let outbound = counter(&mesh.client, &http(OUTBOUND_STATS, "downstream_rq_2xx"));
    let inbound = counter(&mesh.server, &http(INBOUND_STATS, "downstream_rq_2xx"));
    assert!(
        outbound >= report.requests,
        "{outbound} through the client's sidecar: {report:?}"
    );
    assert!(
        inbound >= report.requests,
        "{inbound} through the server's sidecar: {report:?}"
    );
    // Nothing took the ways beside the HTTP listeners.
    let inbound_passthrough = "cluster.InboundPassthroughCluster.upstream_cx_total";
    assert_eq!(counter(&mesh.server, inbound_passthrough), 0);
    assert_eq!(
        counter(&mesh.client, "cluster.PassthroughCluster.upstream_cx_total"),
        0
    );

    assert_eq!(
        counter(&mesh.client, "server.concurrency"),
        u64::from(options.workers)
    );
    assert_eq!(
        counter(&mesh.server, "server.concurrency"),
        u64::from(options.workers)
    );
    (mesh, report)
}

fn http(stats: &str, name: &str) -> String {
    format!("http.{stats}.{name}")
}

fn counter(pod: &profiler_tests::mesh::Pod, name: &str) -> u64 {
    pod.stat(name).unwrap()
}

/// Connections between the sidecars: (HTTP/1.1, HTTP/2, TLS handshakes).
fn between_sidecars(mesh: &Mesh) -> (u64, u64, u64) {
    let http1 = counter(
        &mesh.server,
        &http(INBOUND_STATS, "downstream_cx_http1_total"),
    );
    let http2 = counter(
        &mesh.server,
        &http(INBOUND_STATS, "downstream_cx_http2_total"),
    );
    let handshakes = counter(&mesh.server, "listener.0.0.0.0_15006.ssl.handshake");
    let client = counter(
        &mesh.client,
        &format!("cluster.{OUTBOUND_CLUSTER}.ssl.handshake"),
    );
    assert_eq!(client, handshakes, "both sidecars see the same handshakes");
    (http1, http2, handshakes)
}

#[test]
fn plain_http1_flows_through_both_sidecars() {
    let (mesh, _) = loaded(&MeshOptions::default());
    let (http1, http2, handshakes) = between_sidecars(&mesh);
    assert!(http1 > 0);
    assert_eq!((http2, handshakes), (0, 0));
    assert_eq!(lua_headers(&mesh), 0, "Lua was not asked for");
    for pod in [&mesh.client, &mesh.server] {
        assert_eq!(pod.access_log(), "");
        let errors = pod.admin("/stats?filter=lua.errors").unwrap();
        assert!(errors.lines().all(|line| line.ends_with(" 0")), "{errors}");
    }
}

#[test]
fn upstream_http2_is_used_between_sidecars() {
    let (mesh, _) = loaded(&MeshOptions {
        upstream: Upstream::Http2,
        ..MeshOptions::default()
    });
    let (http1, http2, handshakes) = between_sidecars(&mesh);
    assert!(http2 > 0);
    assert_eq!((http1, handshakes), (0, 0));
}

#[test]
fn mtls_with_http1_authenticates_both_ends() {
    let (mesh, _) = loaded(&MeshOptions {
        mtls: true,
        ..MeshOptions::default()
    });
    let (http1, http2, handshakes) = between_sidecars(&mesh);
    assert!(http1 > 0 && handshakes > 0, "{http1} {handshakes}");
    assert_eq!(http2, 0);
    let certificates = mesh.client.admin("/certs").unwrap();
    assert!(
        certificates.contains("spiffe://cluster.local/ns/demo/sa/client"),
        "{certificates}"
    );
    let peers = counter(&mesh.server, "listener.0.0.0.0_15006.ssl.no_certificate");
    assert_eq!(peers, 0, "every client showed a certificate");
}

#[test]
fn mtls_with_http2_and_two_workers() {
    let options = MeshOptions {
        mtls: true,
        upstream: Upstream::Http2,
        workers: 2,
        ..MeshOptions::default()
    };
    let (mesh, _) = loaded(&options);
    let (http1, http2, handshakes) = between_sidecars(&mesh);
    assert!(http2 > 0 && handshakes > 0, "{http2} {handshakes}");
    assert_eq!(http1, 0);
}

#[test]
fn text_access_log_has_a_line_for_each_request_on_both_sides() {
    let (mesh, report) = loaded(&MeshOptions {
        access_log: AccessLog::Text,
        rps: 300,
        ..MeshOptions::default()
    });
    for pod in [&mesh.client, &mesh.server] {
        let lines = || {
            let log = pod.access_log();
            let lines = log
                .lines()
                .filter(|line| line.contains("\"GET /work HTTP/1.1\" 200 "));
            lines.count() as u64
        };
        wait_until("the access log is written", FLUSHED, || {
            lines() >= report.requests
        })
        .unwrap();
    }
}

#[test]
fn json_access_log_has_an_object_for_each_request_on_both_sides() {
    let (mesh, report) = loaded(&MeshOptions {
        access_log: AccessLog::Json,
        rps: 300,
        ..MeshOptions::default()
    });
    for pod in [&mesh.client, &mesh.server] {
        let objects = || {
            let log = pod.access_log();
            let objects = log
                .lines()
                .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
                .filter(|entry| entry["path"] == "/work" && entry["response_code"] == 200);
            objects.count() as u64
        };
        wait_until("the access log is written", FLUSHED, || {
            objects() >= report.requests
        })
        .unwrap();
    }
}

#[test]
fn tracing_of_all_requests_sends_two_spans_each() {
    let options = MeshOptions {
        tracing: Tracing::Percent(100.0),
        rps: 300,
        ..MeshOptions::default()
    };
    let (mesh, report) = loaded(&options);
    wait_until("spans of both sidecars arrive", FLUSHED, || {
        // The last few of each worker wait for the next flush.
        mesh.spans()
            .is_ok_and(|spans| spans >= report.requests * 2 - 20)
    })
    .unwrap();
}

#[test]
fn tracing_of_some_requests_sends_some_spans() {
    let options = MeshOptions {
        tracing: Tracing::Percent(10.0),
        rps: 1000,
        ..MeshOptions::default()
    };
    let (mesh, report) = loaded(&options);
    let sent = || {
        let spans = |pod| counter(pod, "tracing.zipkin.spans_sent");
        spans(&mesh.client).min(spans(&mesh.server))
    };
    wait_until("spans are sent", FLUSHED, || sent() > 0).unwrap();
    let spans = mesh.spans().unwrap();
    assert!(
        spans < report.requests,
        "{spans} spans for {} requests at 10 %",
        report.requests
    );
}

#[test]
fn open_telemetry_tracing_sends_two_spans_each() {
    let options = MeshOptions {
        tracing: Tracing::Percent(100.0),
        tracer: Tracer::OpenTelemetry,
        rps: 300,
        ..MeshOptions::default()
    };
    let (mesh, report) = loaded(&options);
    wait_until("spans of both sidecars arrive", FLUSHED, || {
        mesh.spans()
            .is_ok_and(|spans| spans >= report.requests * 2 - 20)
    })
    .unwrap();
    for pod in [&mesh.client, &mesh.server] {
        assert!(counter(pod, "tracing.opentelemetry.spans_sent") > 0);
        assert_eq!(counter(pod, "tracing.zipkin.spans_sent"), 0);
    }
}

#[test]
fn grpc_access_log_streams_an_entry_for_each_request_of_both_sides() {
    let options = MeshOptions {
        access_log: AccessLog::Grpc,
        rps: 300,
        ..MeshOptions::default()
    };
    let (mesh, report) = loaded(&options);
    wait_until("entries of both sidecars arrive", FLUSHED, || {
        mesh.received()
            .is_ok_and(|received| received.log_entries >= report.requests * 2)
    })
    .unwrap();
    for pod in [&mesh.client, &mesh.server] {
        let written = counter(pod, "access_logs.grpc_access_log.logs_written");
        assert!(written >= report.requests, "{written}: {report:?}");
        assert_eq!(pod.access_log(), "");
    }
}

#[test]
fn lua_adds_its_header_on_both_sides() {
    let (mesh, _) = loaded(&MeshOptions {
        lua: true,
        ..MeshOptions::default()
    });
    assert_eq!(lua_headers(&mesh), 2, "one header from each sidecar");
    for pod in [&mesh.client, &mesh.server] {
        let errors = pod.admin("/stats?filter=lua.errors").unwrap();
        assert!(errors.lines().all(|line| line.ends_with(" 0")), "{errors}");
    }
}

/// Headers of an answer that Lua has added.
fn lua_headers(mesh: &Mesh) -> usize {
    let url = format!("http://{SERVER_ADDRESS}:{SERVER_PORT}/work");
    let answer = mesh.client.netns.within(|| Ok(ureq::get(&url).call()?));
    answer.unwrap().headers().get_all(LUA_HEADER).iter().count()
}

#[test]
fn rbac_with_many_policies_lets_every_request_through() {
    let (mesh, report) = loaded(&MeshOptions {
        rbac_policies: 21,
        ..MeshOptions::default()
    });
    for (pod, stats) in [
        (&mesh.client, OUTBOUND_STATS),
        (&mesh.server, INBOUND_STATS),
    ] {
        let allowed = counter(pod, &http(stats, "rbac.allowed"));
        assert!(allowed >= report.requests, "{allowed}: {report:?}");
        assert_eq!(counter(pod, &http(stats, "rbac.denied")), 0);
        let configured = pod.admin("/config_dump").unwrap();
        assert!(configured.contains("\"policy-0020\""), "21 policies");
    }
}

#[test]
fn many_statistics_are_kept_and_handed_on() {
    let (mesh, report) = loaded(&MeshOptions {
        many_stats: true,
        rps: 300,
        ..MeshOptions::default()
    });
    for (pod, virtual_host) in [
        (&mesh.client, OUTBOUND_CLUSTER),
        (&mesh.server, "inbound|8080||"),
    ] {
        let name = format!("vhost.{virtual_host}.vcluster.group_9.upstream_rq_total");
        assert!(counter(pod, &name) >= report.requests, "{name}: {report:?}");
    }
    // Several values of each request on both sides, one datagram each.
    let datagrams = || mesh.received().unwrap().datagrams;
    let arrived = wait_until("the datagrams arrive", FLUSHED, || {
        datagrams() >= report.requests * 4
    });
    assert!(arrived.is_ok(), "{}: {report:?}", datagrams());
}

#[test]
fn everything_at_once() {
    let options = MeshOptions {
        workers: 2,
        access_log: AccessLog::Json,
        mtls: true,
        upstream: Upstream::Http2,
        tracing: Tracing::Percent(100.0),
        connections: 8,
        ..MeshOptions::default()
    };
    let (mesh, report) = loaded(&options);
    let (_, http2, handshakes) = between_sidecars(&mesh);
    assert!(http2 > 0 && handshakes > 0);
    wait_until("spans arrive", FLUSHED, || {
        mesh.spans().is_ok_and(|spans| spans >= report.requests)
    })
    .unwrap();
    wait_until("the access log is written", FLUSHED, || {
        mesh.server.access_log().lines().count() as u64 >= report.requests
    })
    .unwrap();
}

/// The load generator cannot keep a rate without a processor.
mod alone {
    use super::*;

    #[test]
    fn fixed_rate_is_kept() {
        let mesh = Mesh::up(&MeshOptions {
            rps: 200,
            ..MeshOptions::default()
        })
        .unwrap();
        let report = mesh.run_load(Duration::from_secs(2)).unwrap();
        assert_measured!((190.0..=215.0).contains(&report.rps), "{report:?}");
    }
}
