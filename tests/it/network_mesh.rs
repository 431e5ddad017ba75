//! The hops of the demo mesh: app, sidecar, sidecar, app. Their bytes and connections are those that
//! the sidecars count, to the last one.

use profiler_tests::{
    agent::Agent,
    mesh::{
        Load, Mesh, MeshOptions, Pod, SERVER_ADDRESS, SERVER_PORT,
        interception::{INBOUND_PORT, OUTBOUND_PORT},
        load_report,
        sidecar::{INBOUND_STATS, OUTBOUND_CLUSTER, OUTBOUND_STATS},
    },
    wait::wait_for,
};
use serde_json::{Value, json};

use crate::{
    edges::{LONGEST_S, Watch, number},
    targets::{EXIT, START},
};

/// Requests of the load before the task, and at least this many after it began.
const REQUESTS: u64 = 300;
/// Requests and connections of the load that begins after the task.
const OTHER_REQUESTS: u64 = 200;
const OTHER_CONNECTIONS: u32 = 4;

/// Bytes and connections, as one end counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traffic {
    received: u64,
    sent: u64,
}

/// What a sidecar counted on one side, under a prefix of its statistics.
fn counted(pod: &Pod, prefix: &str) -> Traffic {
    let bytes = |what: &str| {
        pod.stat(&format!("{prefix}_cx_{what}_bytes_total"))
            .unwrap()
    };
    Traffic {
        received: bytes("rx"),
        sent: bytes("tx"),
    }
}

/// What both sidecars counted: towards the app, away from it, and the same of the other one.
fn all_counted(mesh: &Mesh) -> [Traffic; 4] {
    [
        counted(&mesh.client, &format!("http.{OUTBOUND_STATS}.downstream")),
        counted(
            &mesh.client,
            &format!("cluster.{OUTBOUND_CLUSTER}.upstream"),
        ),
        counted(&mesh.server, &format!("http.{INBOUND_STATS}.downstream")),
        counted(
            &mesh.server,
            &format!("cluster.inbound|{SERVER_PORT}||.upstream"),
        ),
    ]
}

fn edges_between(table: &Value, client: u32, server: u32) -> Vec<&Value> {
    let edges = table["edges"].as_array().unwrap();
    let between =
        |edge: &&Value| edge["client"]["pid"] == client && edge["server"]["pid"] == server;
    edges.iter().filter(between).collect()
}

/// The only edge between two processes.
fn edge_between(table: &Value, client: u32, server: u32) -> &Value {
    let found = edges_between(table, client, server);
    assert_eq!(found.len(), 1, "{client} to {server}: {table:#}");
    found[0]
}

/// What the ends of some edges measured.
fn seen(edges: &[&Value], end: &str) -> Traffic {
    let sum = |what: &str| {
        let bytes = edges
            .iter()
            .map(|edge| number(&edge["metrics"][end][what]["bytes"]));
        bytes.sum()
    };
    Traffic {
        received: sum("read"),
        sent: sum("write"),
    }
}

#[test]
fn every_hop_has_its_processes_ports_destination_and_exactly_the_bytes_of_the_sidecars() {
    let agent = Agent::start().unwrap();
    let mut mesh = Mesh::up(&MeshOptions::default()).unwrap();
    mesh.start_load().unwrap();
    let answered = |mesh: &Mesh| {
        let name = format!("http.{OUTBOUND_STATS}.downstream_rq_2xx");
        mesh.client.stat(&name).unwrap()
    };
    let wait_for_requests = |mesh: &Mesh, least: u64| {
        wait_for("requests are answered", START, || {
            (answered(mesh) >= least).then_some(())
        })
        .unwrap();
    };
    wait_for_requests(&mesh, REQUESTS);
    // These connections are older than the task. They rest while it starts, so that both ends begin
    // to count at the same byte.
    let before = mesh.pause_load().unwrap();
    let watch = Watch::start(&agent, &json!({ "all": true }));
    let counted_before = all_counted(&mesh);
    let answered_before = answered(&mesh);
    mesh.resume_load().unwrap();
    // And these are newer.
    let other = mesh
        .start_other_load(Load::new(OTHER_REQUESTS, OTHER_CONNECTIONS))
        .unwrap();
    let other_pid = other.pid();
    let other = load_report(&other.finish(EXIT).unwrap()).unwrap();
    wait_for_requests(&mesh, answered_before + OTHER_REQUESTS + REQUESTS);
    let report = mesh.report();
    let app = report.client_pid.unwrap();
    let load = mesh.stop_load().unwrap().unwrap();
    wait_for("the sidecar has closed its connections", START, || {
        let name = format!("http.{OUTBOUND_STATS}.downstream_cx_active");
        (mesh.client.stat(&name).unwrap() == 0).then_some(())
    })
    .unwrap();
    let counted_after = all_counted(&mesh);
    let answered_after = answered(&mesh);
    let table = watch.finish();

    let (client_envoy, server_envoy) = (report.client_envoy_pid, report.server_envoy_pid);
    let first = edge_between(&table, app, client_envoy);
    let second = edge_between(&table, other_pid, client_envoy);
    let between = edge_between(&table, client_envoy, server_envoy);
    let last = edge_between(&table, server_envoy, report.server_pid);
    let destination = json!(format!("{SERVER_ADDRESS}:{SERVER_PORT}"));
    for (edge, port, destination) in [
        (first, OUTBOUND_PORT, &destination),
        (second, OUTBOUND_PORT, &destination),
        (between, INBOUND_PORT, &destination),
        (last, SERVER_PORT, &Value::Null),
    ] {
        assert_eq!(edge["server"]["port"], port, "{edge:#}");
        assert_eq!(edge["original_destination"], *destination, "{edge:#}");
        // Both ends of each hop tell the same.
        let (client, server) = (seen(&[edge], "client"), seen(&[edge], "server"));
        assert!(client.sent > 0 && client.received > 0, "{edge:#}");
        assert_eq!(client.sent, server.received, "{edge:#}");
        assert_eq!(client.received, server.sent, "{edge:#}");
    }
    for (edge, connections) in [
        (first, MeshOptions::default().connections),
        (second, OTHER_CONNECTIONS),
    ] {
        for end in ["client", "server"] {
            let count = &edge["metrics"][end]["connections"];
            assert_eq!(
                *count,
                json!({ "count": connections, "open": 0 }),
                "{edge:#}"
            );
        }
    }

    // The sidecars' own counts.
    assert_eq!((load.errors, other.errors), (0, 0));
    let requests = load.requests - before;
    assert_eq!(requests + other.requests, answered_after - answered_before);
    let writes = |edge: &Value| number(&edge["metrics"]["client"]["write"]["count"]);
    assert_eq!(writes(first), requests, "{first:#}");
    assert_eq!(writes(second), other.requests, "{second:#}");
    let measured = [
        seen(&[first, second], "server"),
        seen(&[between], "client"),
        seen(&[between], "server"),
        seen(&[last], "client"),
    ];
    for (index, measured) in measured.into_iter().enumerate() {
        let (before, after) = (counted_before[index], counted_after[index]);
        let counted = Traffic {
            received: after.received - before.received,
            sent: after.sent - before.sent,
        };
        assert_eq!(measured, counted, "place {index}: {table:#}");
    }
}

#[test]
fn a_sidecar_alone_knows_who_came_and_where_they_were_to_go() {
    let agent = Agent::start().unwrap();
    let mut mesh = Mesh::up(&MeshOptions::default()).unwrap();
    mesh.start_load().unwrap();
    let report = mesh.report();
    let pids = [report.client_envoy_pid, report.server_envoy_pid];
    let specification = json!({
        "kind": "network",
        "target": { "pids": pids },
        "duration_s": LONGEST_S,
    });
    let id = agent.api.create_task(&specification).unwrap();
    let path = format!("/api/v1/tasks/{id}/edges");
    let app = report.client_pid.unwrap();
    // Neither app is watched: their ends are found among the node's sockets.
    wait_for("both apps are found", START, || {
        let table = agent.api.get_json(&path).unwrap();
        let inward = edges_between(&table, app, pids[0]);
        let outward = edges_between(&table, pids[1], report.server_pid);
        let found = inward.iter().any(|edge| {
            edge["original_destination"] == format!("{SERVER_ADDRESS}:{SERVER_PORT}")
                && edge["metrics"]["client"].is_null()
        });
        (found && !outward.is_empty()).then_some(())
    })
    .unwrap();
    agent.api.stop_task(&id).unwrap();
    agent.api.wait_task(&id, &["cancelled"], EXIT).unwrap();
}
