//! Edges: their shape, live and of the always-on collection.

use std::sync::Arc;

use profiler_model::{
    Address, EDGE_METRICS, Edge, EdgeConnection, EdgeId, EdgeKey, EdgeNamespaces, EdgeTable,
    Endpoint, SideMetrics, Transfer,
};
use serde_json::{Value, json};

use super::{Api, FakeCollector, Setup, check_problem, live::Events, text};
use crate::api::Origin;
use profiler_engine::network_watch::NetworkWatch;

/// One edge: process 1 wrote 700 bytes to another node.
pub(super) fn table() -> EdgeTable {
    let end = |pid, comm: &str, address: [u8; 4]| Endpoint {
        pid,
        start_ticks: pid.map(|_pid| 1),
        comm: comm.to_owned(),
        container: None,
        address: Address::Ip(address.into()),
    };
    EdgeTable {
        edges: vec![Edge {
            key: EdgeKey {
                client: end(Some(1), "app", [10, 0, 0, 1]),
                server: end(None, "", [192, 0, 2, 1]),
                server_port: Some(443),
                original_destination: Some(([192, 0, 2, 7].into(), 80)),
            },
            client_port: Some(40_000),
            client_name: None,
            namespaces: EdgeNamespaces {
                client: Some(4_026_531_840),
                server: None,
            },
            server_name: None,
            client: Some(SideMetrics {
                connections: 1,
                write: Transfer {
                    count: 2,
                    bytes: 700,
                },
                ..SideMetrics::default()
            }),
            server: None,
        }],
        unavailable: [("tls".to_owned(), "not looked at".to_owned())].into(),
        ..EdgeTable::default()
    }
}

/// The same with the connection behind the edge.
pub(super) fn table_with_connection() -> EdgeTable {
    let mut table = table();
    let id = EdgeId::of(&table.edges[0].key);
    let connection = EdgeConnection {
        is_client: true,
        local: ([10, 0, 0, 1], 40_000).into(),
        remote: ([192, 0, 2, 7], 80).into(),
        pid: Some(1),
        age_ns: 2_500_000_000,
        is_open: true,
        write: Transfer {
            count: 2,
            bytes: 700,
        },
        read: Transfer::default(),
        rtt_us: None,
        min_rtt_us: Some(6),
        retransmits: 3,
        drops: 0,
    };
    table.connections = vec![(EdgeId(0), connection.clone()), (id, connection)];
    table
}

/// An agent whose always-on collection runs over the fake collector.
pub(super) fn always() -> Api {
    let shutdown = tokio_util::sync::CancellationToken::new();
    let (network, work) = NetworkWatch::start(Arc::new(FakeCollector), shutdown);
    tokio::spawn(work);
    Api::with(
        Setup {
            network,
            ..Setup::default()
        },
        Origin {
            address: ([127, 0, 0, 1], 7117).into(),
            tls: false,
        },
    )
}

pub(super) async fn network_task(api: &Api) -> String {
    let body = r#"{"kind":"network","target":{"all":true},"duration_s":null}"#;
    let response = api.post("/api/v1/tasks", body).await;
    assert_eq!(response.status(), 201);
    let task = super::json(response).await;
    task["id"].as_str().unwrap().to_owned()
}

/// Checks that every key is there that users of the API rely on.
fn check_shape(table: &Value) {
    let edge = &table["edges"][0];
    assert_eq!(edge["id"].as_str().unwrap().len(), 16);
    let port = |port: u16| Value::from(port);
    assert_eq!(
        edge["client"],
        json!({ "pid": 1, "start_ticks": 1, "comm": "app", "program_kind": null, "container": null, "name": null, "address": "10.0.0.1", "network_namespace": 4_026_531_840_u64, "port": port(40_000) })
    );
    assert_eq!(
        edge["server"],
        json!({ "pid": null, "start_ticks": null, "comm": null, "program_kind": null, "container": null, "name": null, "address": "192.0.2.1", "network_namespace": null, "port": port(443) })
    );
    assert_eq!(edge["original_destination"], "192.0.2.7:80");
    assert_eq!(edge["protocol"], "tcp");
    assert_eq!(edge["tls"], Value::Null);
    assert_eq!(edge["metrics"]["server"], Value::Null);
    let side = edge["metrics"]["client"].as_object().unwrap();
    let ids = EDGE_METRICS.iter().map(|metric| metric.id);
    for id in ids.filter(|id| !id.is_empty()) {
        let mut parts = id.split('.');
        let metric = side.get(parts.next().unwrap());
        let metric = metric.unwrap_or_else(|| panic!("no {id} in {side:?}"));
        for part in parts {
            assert!(metric.get(part).is_some(), "no {id} in {metric}");
        }
    }
    for key in ["count", "bytes", "time_ns", "histogram"] {
        let write = side["write"].as_object().unwrap();
        assert!(write.contains_key(key), "no {key} in {write:?}");
    }
    let histogram = &side["connect"]["histogram"];
    let length = |key: &str| histogram[key].as_array().unwrap().len();
    assert_eq!(length("counts"), length("bounds") + 1);
    assert!(side["drop"]["by_reason"].is_object());
    assert_eq!(table["unavailable"]["tls"], "not looked at");
    assert!(table["unresolved"].is_object());
    assert_eq!(table["lost"], json!({ "events": 0, "bytes": 0 }));
    assert_eq!(table["other"], Value::Null);
}

#[tokio::test]
async fn a_tasks_edges_arrive_live_and_the_stream_ends_with_the_task() {
    let api = Api::new();
    let id = network_task(&api).await;
    let path = format!("/api/v1/tasks/{id}/edges");
    let mut events = Events::open_at(&api, &format!("{path}/events")).await;
    let (name, first) = events.next().await.unwrap();
    assert_eq!(name, "edges");
    check_shape(&first);
    assert_eq!(first["state"], "running");
    assert_eq!(api.get_json(&path).await, first);
    api.send_empty("POST", &format!("/api/v1/tasks/{id}/stop"))
        .await;
    let (name, last) = events.next().await.unwrap();
    assert_eq!(name, "edges");
    assert_eq!(last["state"], "cancelled");
    assert_eq!(last["edges"], first["edges"]);
    assert!(events.next().await.is_none());
    // One that comes later gets the result and the end.
    let mut late = Events::open_at(&api, &format!("{path}/events")).await;
    assert_eq!(late.next().await.unwrap().1, last);
    assert!(late.next().await.is_none());
}

/// Creates a task and returns its id when it is in the state.
async fn task_in(api: &Api, body: &Value, state: &str) -> String {
    let response = api.post("/api/v1/tasks", body.to_string()).await;
    assert_eq!(response.status(), 201);
    let task = super::json(response).await;
    let id = task["id"].as_str().unwrap().to_owned();
    let mut events = Events::open(api).await;
    let is_it = |data: &Value| data["id"] == *id && data["state"] == *state;
    if api.get_json(&format!("/api/v1/tasks/{id}")).await["state"] != *state {
        events.find(|_name, data| is_it(data)).await;
    }
    id
}

#[tokio::test]
async fn a_task_that_failed_before_it_had_a_result_says_so() {
    let api = Api::new();
    let body = json!({ "kind": "network", "target": { "pids": [99] } });
    let id = task_in(&api, &body, "failed").await;
    for path in ["edges", "edges/events"] {
        check_problem(
            api.get(&format!("/api/v1/tasks/{id}/{path}")).await,
            json!({
                "type": "about:blank",
                "title": "Conflict",
                "status": 409,
                "code": "task_failed",
                "detail": format!("task {id} failed before it had a result: no such process: 99"),
            }),
        )
        .await;
    }
}

#[tokio::test]
async fn a_task_that_waits_for_its_turn_says_so_instead_of_no_connections() {
    let api = Api::with(
        Setup {
            max_running: 1,
            ..Setup::default()
        },
        Origin {
            address: ([127, 0, 0, 1], 7117).into(),
            tls: false,
        },
    );
    network_task(&api).await;
    let waiting = network_task(&api).await;
    let table = api
        .get_json(&format!("/api/v1/tasks/{waiting}/edges"))
        .await;
    assert_eq!(table["state"], "queued");
    assert_eq!(table["reason"], Value::Null);
    assert_eq!(table["edges"], json!([]));
}

#[tokio::test]
async fn the_wrong_kind_of_result_is_refused_with_the_way_to_the_right_one() {
    let api = Api::new();
    let network = network_task(&api).await;
    for path in [
        "profile?format=folded",
        "threads",
        "timeline",
        "waits",
        "quality",
    ] {
        let response = api.get(&format!("/api/v1/tasks/{network}/{path}")).await;
        assert_eq!(response.status(), 409, "{path}");
        let problem = super::json(response).await;
        assert_eq!(problem["code"], "no_profile", "{path}");
        let hint = format!("ask for /api/v1/tasks/{network}/edges");
        assert_eq!(problem["hint"], hint);
    }
    let body = json!({ "kind": "on_cpu", "target": { "all": true }, "duration_s": null });
    let profile = task_in(&api, &body, "running").await;
    let response = api.get(&format!("/api/v1/tasks/{profile}/edges")).await;
    assert_eq!(response.status(), 409);
    assert_eq!(super::json(response).await["code"], "no_edges");
}

#[tokio::test]
async fn an_unknown_task_has_no_live_edges() {
    let api = Api::new();
    let response = api.get("/api/v1/tasks/77/edges/events").await;
    assert_eq!(response.status(), 404);
}

#[tokio::test]
async fn the_always_on_collection_says_that_it_is_off() {
    let api = Api::new();
    for path in ["/api/v1/network/edges", "/api/v1/network/edges/events"] {
        check_problem(
            api.get(path).await,
            json!({
                "type": "about:blank",
                "title": "Conflict",
                "status": 409,
                "code": "network_off",
                "detail": "connections are watched for tasks only",
                "hint": "start the agent with --network always, or create a task of kind network",
            }),
        )
        .await;
    }
    assert_eq!(api.get_json("/api/v1/meta").await["network"], "tasks");
    let metrics = text(api.get("/metrics").await).await;
    assert!(!metrics.contains("profiler_agent_network_"), "{metrics}");
}

#[tokio::test]
async fn the_always_on_collection_is_served_live_and_as_metrics() {
    let api = always();
    let mut events = Events::open_at(&api, "/api/v1/network/edges/events").await;
    let found = events
        .find(|name, data| {
            name == "edges" && data["edges"].as_array().is_some_and(|e| !e.is_empty())
        })
        .await;
    check_shape(&found);
    assert_eq!(found["state"], "running");
    assert_eq!(found["reason"], Value::Null);
    assert_eq!(found["restarts"], 0);
    assert!(found["since_ns"].as_u64().unwrap() > 0);
    assert!(found["age_ms"].is_u64());
    let answered = api.get_json("/api/v1/network/edges").await;
    assert_eq!(answered["edges"], found["edges"]);
    assert_eq!(api.get_json("/api/v1/meta").await["network"], "always");
    let probes = api.get_json("/api/v1/probes").await;
    let probes = probes["items"].as_array().unwrap();
    let probe = probes
        .iter()
        .find(|probe| probe["name"] == "network_always");
    assert_eq!(probe.unwrap()["state"], "attached");
    let metrics = text(api.get("/metrics").await).await;
    let line = "profiler_agent_network_write_bytes_total{client=\"app\",client_container=\"\",\
                server=\"192.0.2.1\",server_container=\"\",server_port=\"443\",side=\"client\"} 700";
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
}
