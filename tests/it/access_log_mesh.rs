//! Access logs of both sidecars of the mesh, with redirected connections and mutual TLS between them: each request once on each hop, without
//! a probe.

use profiler_tests::{
    agent::{Agent, ServeOptions},
    mesh::{AccessLog, Load, Mesh, MeshOptions, Upstream, load_report},
};
use serde_json::{Value, json};

use crate::targets::{EXIT, start_task, stop_task};

/// For some seconds: processes are looked for while connections are there.
const REQUESTS: u32 = 6_000;
const RATE: u32 = 1_000;
const CONNECTIONS: u32 = 8;

/// The operations from one process to another.
fn hop(result: &Value, client: u32, server: u32) -> Vec<&Value> {
    let all = result["operations"].as_array().unwrap();
    let is_it = |operation: &&Value| {
        let edge = &operation["edge"];
        edge["client"]["pid"] == client && edge["server"]["pid"] == server
    };
    all.iter().filter(is_it).collect()
}

fn check(access_log: AccessLog, upstream: Upstream, mtls: bool) {
    let mesh = Mesh::up(&MeshOptions {
        access_log,
        upstream,
        mtls,
        workers: 2,
        ..MeshOptions::default()
    })
    .unwrap();
    let report = mesh.report();
    let listen = report.access_logs.unwrap();
    let agent = Agent::start_with(ServeOptions {
        arguments: vec![
            format!("--access-logs={listen}"),
            "--access-logs-plaintext".to_owned(),
        ],
        ..ServeOptions::default()
    })
    .unwrap();
    let specification = json!({
        "kind": "requests",
        "target": { "all": true },
        "duration_s": null,
        "source": ["access_log"],
    });
    let id = start_task(&agent, &specification);
    let load = Load {
        rps: RATE,
        ..Load::new(REQUESTS.into(), CONNECTIONS)
    };
    let load = mesh.start_other_load(load).unwrap();
    let client = load.pid();
    let done = load_report(&load.finish(EXIT).unwrap()).unwrap();
    assert_eq!((done.requests, done.errors), (REQUESTS.into(), 0));
    stop_task(&agent, &id);
    let path = format!("/api/v1/tasks/{id}/requests");
    let result = agent.api.get_json(&path).unwrap();

    let [out, inward, app] = [
        report.client_envoy_pid,
        report.server_envoy_pid,
        report.server_pid,
    ];
    let between = match upstream {
        Upstream::Http1 => "http1",
        Upstream::Http2 => "http2",
    };
    let hops = [
        (client, out, "http1"),
        (out, inward, between),
        // What is spoken with the app is in no entry.
        (inward, app, "http"),
    ];
    for (from, to, protocol) in hops {
        let operations = hop(&result, from, to);
        let [operation] = operations[..] else {
            panic!("{from} to {to}: {operations:#?} of {result:#}");
        };
        assert_eq!(
            operation["count"], REQUESTS,
            "{from} to {to}: {operation:#}"
        );
        assert_eq!(operation["protocol"], protocol, "{operation:#}");
        assert_eq!(operation["route"], "/work", "{operation:#}");
        assert_eq!(operation["errors"], 0, "{operation:#}");
    }
    // Both sides of the hop between the sidecars have told.
    let both = hop(&result, out, inward)[0];
    for side in ["client", "server"] {
        assert_eq!(both[side]["count"], REQUESTS, "{side}: {both:#}");
    }
    let all = result["operations"].as_array().unwrap().iter();
    let all: u64 = all.map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(all, 3 * u64::from(REQUESTS), "{result:#}");
    let mut sidecars: Vec<u64> = result["sidecars"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sidecar| {
            assert_eq!(sidecar["requests_in"], REQUESTS, "{sidecar:#}");
            sidecar["process"]["pid"].as_u64().unwrap()
        })
        .collect();
    sidecars.sort_unstable();
    let mut expected = [u64::from(out), u64::from(inward)];
    expected.sort_unstable();
    assert_eq!(sidecars, expected);
    let told = result["access_logs"]["envoys"].as_array().unwrap();
    let has_tls = |pid: u32| {
        let row = told.iter().find(|row| row["process"]["pid"] == pid);
        let versions = row.unwrap()["tls"].as_array().unwrap();
        versions.iter().any(|one| one["count"] == REQUESTS)
    };
    assert_eq!((has_tls(out), has_tls(inward)), (false, mtls), "{told:#?}");
}

#[test]
fn both_sides_of_mutual_tls_by_grpc() {
    check(AccessLog::AgentGrpc, Upstream::Http1, true);
}

#[test]
fn both_sides_of_http2_by_opentelemetry() {
    check(AccessLog::AgentOtlp, Upstream::Http2, true);
}
