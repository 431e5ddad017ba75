//! The hops of the demo mesh: app, sidecar, sidecar, app.

use profiler_tests::{
    agent::Agent,
    mesh::{Mesh, MeshOptions, SERVER_ADDRESS, SERVER_PORT},
    wait::wait_for,
};
use serde_json::{Value, json};

use crate::targets::{EXIT, START};

fn edges_between(table: &Value, client: u32, server: u32) -> Vec<&Value> {
    let edges = table["edges"].as_array().unwrap();
    let between =
        |edge: &&Value| edge["client"]["pid"] == client && edge["server"]["pid"] == server;
    edges.iter().filter(between).collect()
}

fn sum(edges: &[&Value], end: &str, what: &str) -> u64 {
    let bytes = edges
        .iter()
        .map(|edge| edge["metrics"][end][what]["bytes"].as_u64().unwrap_or(0));
    bytes.sum()
}

/// Largest message of the load.
const LARGEST_MESSAGE: u64 = 4096;

/// Both ends of a hop saw the same bytes within 0.1 %, but for one message on each connection: the
/// load ends without reading what it has asked for.
fn assert_agreement(edges: &[&Value], what: &str) {
    let connections: u64 = edges
        .iter()
        .filter_map(|edge| edge["metrics"]["client"]["connections"]["count"].as_u64())
        .sum();
    for (from, to) in [("client", "server"), ("server", "client")] {
        let (sent, received) = (sum(edges, from, "write"), sum(edges, to, "read"));
        assert!(sent > 0 && received > 0, "{what}: {edges:#?}");
        assert!(
            sent.abs_diff(received) <= sent / 1000 + connections * LARGEST_MESSAGE,
            "{what}: {from} wrote {sent}, {to} read {received} on {connections} connections"
        );
    }
}

#[test]
fn every_hop_is_found_with_its_processes_ports_and_original_destination() {
    let agent = Agent::start().unwrap();
    let mut mesh = Mesh::up(&MeshOptions::default()).unwrap();
    mesh.start_load().unwrap();
    // The connections are there before the task, and carry traffic all the time.
    let report = mesh.report();
    let specification = json!({ "kind": "network", "target": { "all": true }, "duration_s": 60 });
    let id = agent.api.create_task(&specification).unwrap();
    let path = format!("/api/v1/tasks/{id}/edges");
    let app = report.client_pid.unwrap();
    let hops = [
        ("app to sidecar", app, report.client_envoy_pid),
        (
            "sidecar to sidecar",
            report.client_envoy_pid,
            report.server_envoy_pid,
        ),
        ("sidecar to app", report.server_envoy_pid, report.server_pid),
    ];
    wait_for("every hop has traffic", START, || {
        let table = agent.api.get_json(&path).unwrap();
        let busy = |(_, client, server): &(&str, u32, u32)| {
            sum(&edges_between(&table, *client, *server), "server", "read") > 0
        };
        hops.iter().all(busy).then_some(())
    })
    .unwrap();
    mesh.stop_load().unwrap();
    agent.api.stop_task(&id).unwrap();
    agent.api.wait_task(&id, &["cancelled"], EXIT).unwrap();
    let table = agent.api.get_json(&path).unwrap();
    for (what, client, server) in hops {
        assert_agreement(&edges_between(&table, client, server), what);
    }
    let destination = format!("{SERVER_ADDRESS}:{SERVER_PORT}");
    for (hop, port) in [(0, 15001), (1, 15006)] {
        let (what, client, server) = hops[hop];
        for edge in edges_between(&table, client, server) {
            assert_eq!(edge["server"]["port"], port, "{what}: {edge:#}");
            assert_eq!(
                edge["original_destination"], destination,
                "{what}: {edge:#}"
            );
        }
    }
    for edge in edges_between(&table, report.server_envoy_pid, report.server_pid) {
        assert_eq!(edge["server"]["port"], SERVER_PORT, "{edge:#}");
        assert_eq!(edge["original_destination"], Value::Null, "{edge:#}");
    }
}
