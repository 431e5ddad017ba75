//! Requests: what a task may be asked for, and the shape of what comes of it.

use std::collections::BTreeMap;

use profiler_host::container_names::ContainerDirectory;
use profiler_model::{
    EdgeCount, Endpoint, LoggedJoin, LoggedRequests, LoggingEnvoy, MatchClass, Matched, Operation,
    Outcomes, RequestCounters, RequestEdge, RequestPlace, RequestSample, RequestSpan, RequestTable,
    RequestTimeline, SampleReason, SeenBy, Sidecar, SidecarTimes, Spread, Tally, TaskState,
    Timings, TlsSeen, UpstreamHeader, Window,
};
use profiler_protocols::{Exchange, Outcome, Protocol, Status};
use serde_json::{Value, json};

use super::{Api, Setup, check_problem, edges, json as body_of};
use crate::{
    api::{Origin, TaskRequests},
    config::{Allowance, CapturePolicy},
};

fn spread(values: &[u64]) -> Spread {
    let mut spread = Spread::default();
    for value in values {
        spread.add(*value);
    }
    spread
}

/// Ten requests, one of which failed, on the edge of the other tests.
pub(super) fn table() -> RequestTable {
    let key = edges::table().edges[0].key.clone();
    let exchange = Exchange {
        method: Some("GET".into()),
        route: Some("/users/*".into()),
        status: Some(Status::Http(503)),
        outcome: Outcome::ServerError,
        first_byte_ns: Some(5_000_500),
        end_ns: 5_001_000,
        request_bytes: 3,
        response_bytes: 7,
        ..Exchange::new(Protocol::Http1, 5_000_000)
    };
    let mut times = SidecarTimes {
        pairs: 3,
        ..SidecarTimes::default()
    };
    times.inside_ns = spread(&[10, 20, 30]);
    let tied = SidecarTimes {
        pairs: 1,
        inside_ns: spread(&[1000]),
        ..SidecarTimes::default()
    };
    let span = RequestSpan {
        count: 10,
        errors: 1,
        latency_ns: spread(&[1_000, 9_000]),
    };
    RequestTable {
        window: Window {
            from_ns: 1_000,
            to_ns: 2_000,
        },
        timeline: RequestTimeline {
            width_ns: 500,
            all: vec![RequestSpan::default(), span.clone()],
            edges: vec![(0, vec![span])],
        },
        counted: vec![EdgeCount {
            edge: 0,
            protocol: Protocol::Http1,
            seen_by: SeenBy::Server,
            outcomes: Outcomes {
                ok: 8,
                server_error: 2,
                ..Outcomes::default()
            },
            latency_ns: spread(&[1000]),
            is_exact: true,
        }],
        edges: vec![RequestEdge {
            key: key.clone(),
            client_port: Some(40_000),
            connections: 1,
            server_tids: Vec::new(),
            tls: vec![TlsSeen {
                server_name: Some("users.example".into()),
                offered: vec!["h2".into()],
                chosen: None,
                version: Some("1.3".into()),
                connections: 1,
            }],
        }],
        operations: vec![Operation {
            edge: Some(0),
            protocol: Protocol::Http1,
            tls: true,
            method: Some("GET".into()),
            route: Some("/users/*".into()),
            is_other: false,
            tally: Tally {
                count: 10,
                outcomes: Outcomes {
                    ok: 8,
                    server_error: 1,
                    unknown: 1,
                    ..Outcomes::default()
                },
                statuses: [("200".to_owned(), 8), ("503".to_owned(), 1)].into(),
                request_bytes: spread(&[3]),
                response_bytes: spread(&[7]),
                ..Tally::default()
            },
            server_only: 0,
            client: Timings {
                count: 10,
                latency_ns: spread(&[1000, 1000, 1000, 9000]),
                first_byte_ns: spread(&[500]),
            },
            server: Timings::default(),
        }],
        samples: vec![RequestSample {
            edge: Some(0),
            tls: true,
            seen_by: SeenBy::Client,
            pid: 1,
            tid: Some(2),
            client: ([10, 0, 0, 1], 40_000).into(),
            begin_ns: 77,
            reason: SampleReason::Failed,
            exchange,
        }],
        sidecars: vec![Sidecar {
            process: key.client,
            requests_in: 4,
            requests_out: 4,
            time_in_ns: 4000,
            time_out_ns: 2000,
            unmatched_in: 0,
            unmatched_out: 0,
            forgotten: 0,
            pairs: [(MatchClass::RequestId, times), (MatchClass::Order, tied)].into(),
            upstream_header: UpstreamHeader::default(),
            matched: vec![Matched {
                class: MatchClass::RequestId,
                inner: RequestPlace {
                    client: ([10, 0, 0, 1], 40_000).into(),
                    stream: 1,
                },
                outer: RequestPlace {
                    client: ([10, 0, 0, 2], 50_000).into(),
                    stream: 3,
                },
            }],
            matched_left_out: 0,
        }],
        tls: None,
        counters: RequestCounters {
            unbound_bytes: 5,
            lost_pieces: 6,
            sampled_one_of: 1,
            ..RequestCounters::default()
        },
        ..RequestTable::default()
    }
}

fn api(capture: CapturePolicy) -> Api {
    Api::with(
        Setup {
            capture,
            ..Setup::default()
        },
        Origin {
            address: ([127, 0, 0, 1], 7117).into(),
            tls: false,
        },
    )
}

/// Creates a requests task with more fields; the answer's status and body.
async fn create(api: &Api, more: Value) -> (u16, Value) {
    let mut body = json!({ "kind": "requests", "target": { "all": true }, "duration_s": null });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let response = api.post("/api/v1/tasks", body.to_string()).await;
    (response.status().as_u16(), body_of(response).await)
}

async fn result(api: &Api) -> Value {
    let (status, task) = create(api, json!({})).await;
    assert_eq!(status, 201, "{task}");
    let path = format!("/api/v1/tasks/{}/requests", task["id"].as_str().unwrap());
    for _ in 0..1000 {
        let result = api.get_json(&path).await;
        if result["operations"]
            .as_array()
            .is_some_and(|rows| !rows.is_empty())
        {
            return result;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("no requests came");
}

#[tokio::test]
async fn operations_say_who_asked_whom_what_and_how_it_went() {
    let result = result(&Api::new()).await;
    let operation = &result["operations"][0];
    assert_eq!(operation["edge"]["client"]["pid"], 1);
    assert_eq!(operation["edge"]["client"]["address"], "10.0.0.1");
    assert_eq!(operation["edge"]["client"]["port"], 40_000);
    assert_eq!(operation["edge"]["server"]["pid"], Value::Null);
    assert_eq!(operation["edge"]["server"]["address"], "192.0.2.1");
    assert_eq!(operation["edge"]["server"]["port"], 443);
    assert_eq!(operation["protocol"], "http1");
    assert_eq!(operation["tls"], true);
    assert_eq!(operation["method"], "GET");
    assert_eq!(operation["route"], "/users/*");
    assert_eq!(operation["count"], 10);
    assert_eq!(operation["errors"], 1);
    assert_eq!(operation["unknown"], 1);
    assert_eq!(operation["counted_from"], "client");
    assert_eq!(operation["statuses"], json!({ "200": 8, "503": 1 }));
    let latency = &operation["latency_ns"];
    assert_eq!(latency["p50"], 1023);
    assert_eq!(latency["bounds"]["p50"], json!([1000, 1023]));
    assert_eq!(latency["p99"], 9000);
    assert_eq!(latency["sum"], 12_000);
    assert_eq!(operation["server"], Value::Null);
    let counted = &result["counted"][0];
    assert_eq!(counted["edge"]["id"], operation["edge"]["id"]);
    let said = ["count", "errors", "exact", "counted_from"].map(|name| counted[name].clone());
    assert_eq!(json!(said), json!([10, 2, true, "server"]));
    assert_eq!(counted["errors_by_class"]["server"], 2);
    assert_eq!(counted["latency_ns"]["p50"], 1000);
}

#[tokio::test]
async fn samples_and_what_is_missing_are_told() {
    let result = result(&Api::new()).await;
    let sample = &result["samples"][0];
    assert_eq!(sample["method"], "GET");
    assert_eq!(sample["edge"]["client"]["port"], 40_000);
    assert_eq!(sample["route"], "/users/*");
    assert_eq!(sample["path"], Value::Null);
    assert_eq!(sample["status"], 503);
    assert_eq!(sample["duration_ns"], 1000);
    assert_eq!(sample["first_byte_ns"], 500);
    assert_eq!(sample["begin_ns"], 77);
    assert_eq!(sample["kept_as"], "failed");
    assert_eq!(sample["tls"], true);
    assert_eq!(result["unbound_bytes"], 5);
    assert_eq!(result["lost"], 6);
    assert_eq!(result["sampled_one_of"], 1);
    assert_eq!(result["damaged"], false);
    assert_eq!(result["tls"][0]["server_name"], "users.example");
    assert_eq!(result["state"], "running");
}

#[tokio::test]
async fn requests_over_time_are_those_of_all_and_of_each_edge() {
    let result = result(&Api::new()).await;
    let found = &result["over_time"];
    assert_eq!(found["from_ns"], 1_000);
    assert_eq!(found["width_ns"], 500);
    assert_eq!(found["all"]["count"], json!([0, 10]));
    assert_eq!(found["all"]["p50_ns"], json!([null, 1023]));
    let edge = result["operations"][0]["edge"]["id"].as_str().unwrap();
    assert_eq!(found["edges"][edge]["errors"], json!([1, 0]));
}

#[tokio::test]
async fn sidecars_say_how_sure_their_pairs_are() {
    let result = result(&Api::new()).await;
    let sidecar = &result["sidecars"][0];
    assert_eq!(sidecar["mean_ns"], 500);
    assert_eq!(sidecar["pairs"][0]["class"], "request_id");
    assert_eq!(sidecar["pairs"][0]["share"], 0.75);
    assert_eq!(sidecar["pairs"][1]["class"], "order");
    // Without what order alone decided.
    assert_eq!(sidecar["times"]["inside_ns"]["max"], 30);
    assert_eq!(sidecar["upstream_header"], Value::Null);
    let (came, went) = (&sidecar["matched"][0]["in"], &sidecar["matched"][0]["out"]);
    assert_eq!(sidecar["matched"][0]["class"], "request_id");
    assert_eq!(
        (&came["client"], &came["stream"]),
        (&"10.0.0.1:40000".into(), &1.into())
    );
    assert_eq!(
        (&went["client"], &went["stream"]),
        (&"10.0.0.2:50000".into(), &3.into())
    );
}

#[tokio::test]
async fn results_without_access_logs_say_so() {
    let result = result(&Api::new()).await;
    assert_eq!(result["access_logs"], Value::Null);
    assert_eq!(result["operations"][0]["source"], "tls");
    assert_eq!(result["samples"][0]["source"], "tls");
}

#[test]
fn what_envoys_report_stands_beside_their_operations() {
    let mut table = table();
    let process = table.edges[0].key.client.clone();
    let claimed = Endpoint {
        pid: None,
        ..process.clone()
    };
    let times = table.sidecars[0].pairs[&MatchClass::RequestId].clone();
    table.sidecars[0].pairs.insert(MatchClass::AccessLog, times);
    let envoys = [process, claimed].map(|process| LoggingEnvoy {
        process,
        node_id: "node".to_owned(),
        requests: 10,
        connections: 1,
        retried: 0,
        retries: 0,
        missing: Some(2),
        joined: Some(LoggedJoin {
            ends: 20,
            joined: 19,
            confirmed: 10,
            requests: 9,
            contradicted: 0,
        }),
        phases: Vec::new(),
        flags: [("UF".to_owned(), 3)].into(),
        flagged: Vec::new(),
        details: BTreeMap::new(),
        tls: BTreeMap::new(),
        upstreams: Vec::new(),
        of_other_upstreams: 0,
    });
    table.logged = Some(LoggedRequests {
        edges: vec![0],
        envoys: envoys.to_vec(),
        seen_twice: 4,
        without_entry: 0,
        left_out: 5,
        of_other_envoys: 6,
    });
    let names = ContainerDirectory::default();
    let result = TaskRequests::new(&TaskState::Finished, Some(&table), &names);
    let result = serde_json::to_value(&result).unwrap();
    assert_eq!(result["operations"][0]["source"], "access_log");
    assert_eq!(result["samples"][0]["source"], "access_log");
    // The best evidence first.
    assert_eq!(result["sidecars"][0]["pairs"][0]["class"], "access_log");
    let logs = &result["access_logs"];
    let counted = ["seen_twice", "left_out", "of_other_envoys"].map(|name| logs[name].clone());
    assert_eq!(json!(counted), json!([4, 5, 6]));
    let [known, claimed] = [&logs["envoys"][0], &logs["envoys"][1]];
    assert_eq!(
        (&known["process"]["pid"], &known["claimed"]),
        (&json!(1), &json!(false))
    );
    assert_eq!(claimed["claimed"], true);
    assert_eq!(known["process"]["port"], Value::Null);
    let joined =
        json!({ "ends": 20, "joined": 19, "confirmed": 10, "requests": 9, "contradicted": 0 });
    assert_eq!(known["joined"], joined);
    let said = ["node_id", "requests", "missing"].map(|name| known[name].clone());
    assert_eq!(json!(said), json!(["node", 10, 2]));
    assert_eq!(known["flags"][0]["long_name"], "UpstreamConnectionFailure");
}

#[tokio::test]
async fn the_answer_is_what_the_command_prints() {
    let mut answer = result(&Api::new()).await;
    answer["state"] = "finished".into();
    let printed = TaskRequests::new(
        &TaskState::Finished,
        Some(&table()),
        &ContainerDirectory::default(),
    );
    assert_eq!(answer, serde_json::to_value(&printed).unwrap());
}

#[tokio::test]
async fn the_result_outlives_the_task_and_has_edges_too() {
    let api = Api::new();
    let (_, task) = create(&api, json!({})).await;
    let id = task["id"].as_str().unwrap();
    let path = format!("/api/v1/tasks/{id}/requests");
    for _ in 0..1000 {
        if api.get_json(&path).await["operations"] != json!([]) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    api.send_empty("POST", &format!("/api/v1/tasks/{id}/stop"))
        .await;
    let task = api.wait_for(id, super::is_final).await;
    assert_eq!(task["kind"], "requests");
    let stored = api.get_json(&path).await;
    assert_eq!(stored["operations"][0]["count"], 10);
    assert_eq!(stored["state"], "cancelled");
    let edges = api.get_json(&format!("/api/v1/tasks/{id}/edges")).await;
    assert_eq!(edges["edges"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn other_kinds_have_no_requests() {
    let api = Api::new();
    let id = edges::network_task(&api).await;
    let response = api.get(&format!("/api/v1/tasks/{id}/requests")).await;
    check_problem(
        response,
        json!({
            "type": "about:blank", "title": "Conflict", "status": 409, "code": "no_requests",
            "detail": format!("task {id} does not look for requests"),
            "hint": "create a task of kind requests",
        }),
    )
    .await;
}

#[tokio::test]
async fn a_task_shows_what_it_was_asked_for() {
    let api = Api::new();
    let (_, task) = create(&api, json!({})).await;
    assert_eq!(
        task["requests"],
        json!({
            "source": ["sockets"], "tls": false, "tls_duty_percent": 100, "bodies": false, "raw_paths": false, "samples": "slow",
            "rules": [], "capture_bytes": 1024, "cpu_percent": 5,
        })
    );
    let rule = json!({
        "operation": "^GET", "min_duration_ns": 5, "min_bytes": 0, "status": ["5xx"],
        "grpc_status": [14],
    });
    let asked =
        json!({ "raw_paths": true, "samples": "all", "rules": [rule], "capture_bytes": 2048 });
    let (_, task) = create(&api, asked).await;
    assert_eq!(task["requests"]["raw_paths"], true);
    assert_eq!(task["requests"]["samples"], "all");
    assert_eq!(task["requests"]["rules"], json!([rule]));
    assert_eq!(task["requests"]["capture_bytes"], 2048);
    let id = edges::network_task(&api).await;
    let network = api.get_json(&format!("/api/v1/tasks/{id}")).await;
    assert_eq!(network["requests"], Value::Null);
}

#[track_caller]
fn check_refused((status, problem): (u16, Value), code: &str, field: &Value, detail: &str) {
    assert_eq!(problem["code"], code, "{status} {problem}");
    assert_eq!(&problem["field"], field, "{problem}");
    let said = problem["detail"].as_str().unwrap();
    assert!(said.contains(detail), "{said}");
}

#[tokio::test]
async fn plaintext_of_tls_and_bodies_need_the_operators_leave() {
    let api = Api::new();
    let (status, problem) = create(&api, json!({ "tls": true })).await;
    assert_eq!(status, 403);
    assert_eq!(problem["code"], "tls_capture_not_allowed");
    let hint = problem["hint"].as_str().unwrap();
    assert!(hint.contains("--allow-tls-capture"), "{hint}");
    let (status, problem) = create(&api, json!({ "bodies": true })).await;
    assert_eq!(status, 403);
    let hint = problem["hint"].as_str().unwrap();
    assert!(hint.contains("--allow-bodies"), "{hint}");
}

#[tokio::test]
async fn with_the_operators_leave_tls_is_read_and_bodies_are_kept() {
    let api = api(CapturePolicy {
        tls: Allowance::Allowed,
        bodies: Allowance::Allowed,
    });
    let (status, task) = create(&api, json!({ "tls": true, "tls_duty_percent": 10 })).await;
    assert_eq!(status, 201, "{task}");
    assert_eq!(task["requests"]["tls"], true);
    assert_eq!(task["requests"]["tls_duty_percent"], 10);
    let (status, task) = create(&api, json!({ "bodies": true })).await;
    assert_eq!(status, 201, "{task}");
    assert_eq!(task["requests"]["bodies"], true);
    assert_eq!(task["requests"]["capture_bytes"], 16320);
}

#[tokio::test]
async fn a_task_takes_requests_from_where_it_is_told() {
    let api = api(CapturePolicy {
        tls: Allowance::Allowed,
        bodies: Allowance::Refused,
    });
    for (asked, source, tls) in [
        (
            json!({ "source": ["access_log"] }),
            json!(["access_log"]),
            false,
        ),
        (
            json!({ "source": ["sockets", "access_log"] }),
            json!(["access_log", "sockets"]),
            false,
        ),
        (
            json!({ "source": ["tls", "sockets"] }),
            json!(["sockets", "tls"]),
            true,
        ),
        (
            json!({ "source": ["sockets"], "tls": true }),
            json!(["sockets", "tls"]),
            true,
        ),
        (
            json!({ "source": null, "tls": true }),
            json!(["sockets", "tls"]),
            true,
        ),
    ] {
        let (status, task) = create(&api, asked).await;
        assert_eq!(status, 201, "{task}");
        assert_eq!(task["requests"]["source"], source);
        assert_eq!(task["requests"]["tls"], tls);
    }
}

#[tokio::test]
async fn sources_that_do_not_go_together_are_refused() {
    let api = api(CapturePolicy {
        tls: Allowance::Allowed,
        bodies: Allowance::Allowed,
    });
    for (asked, field, detail) in [
        (
            json!({ "source": [] }),
            "source",
            "at least one of access_log, sockets, tls",
        ),
        (
            json!({ "source": ["sockets", "sockets"] }),
            "source",
            "sockets more than once",
        ),
        (
            json!({ "source": ["logs"] }),
            "source[0]",
            "unknown variant `logs`",
        ),
        (json!({ "source": ["tls"] }), "tls", "add sockets to source"),
        (
            json!({ "source": ["access_log"], "tls": true }),
            "tls",
            "add sockets to source",
        ),
        (
            json!({ "source": ["access_log"], "bodies": true }),
            "bodies",
            "add sockets to source",
        ),
        (
            json!({ "source": ["sockets", "tls"], "tls": false }),
            "tls",
            "leave one of them out",
        ),
        (
            json!({ "kind": "network", "source": ["sockets"] }),
            "source",
            "take requests",
        ),
    ] {
        let refused = create(&api, asked).await;
        check_refused(refused, "invalid_field", &json!(field), detail);
    }
}

#[tokio::test]
async fn fields_that_are_wrong_are_named() {
    let api = Api::new();
    let refused = create(&api, json!({ "rules": [{}] })).await;
    check_refused(
        refused,
        "invalid_field",
        &json!("rules"),
        "at least one condition",
    );
    let refused = create(&api, json!({ "rules": [{ "operation": "(" }] })).await;
    check_refused(
        refused,
        "invalid_field",
        &json!("rules"),
        "expression of rule 0",
    );
    let refused = create(&api, json!({ "rules": [{ "status": ["3xx"] }] })).await;
    check_refused(
        refused,
        "invalid_field",
        &json!("rules[0].status[0]"),
        "3xx",
    );
    let refused = create(&api, json!({ "tls_duty_percent": 0 })).await;
    check_refused(
        refused,
        "invalid_field",
        &json!("tls_duty_percent"),
        "between 1 and 100",
    );
    let refused = create(&api, json!({ "kind": "on_cpu", "raw_paths": true })).await;
    check_refused(
        refused,
        "invalid_field",
        &json!("raw_paths"),
        "on_cpu does not look for",
    );
    let refused = create(&api, json!({ "kind": "network", "tls": false })).await;
    check_refused(refused, "invalid_field", &json!("tls"), "take requests");
}
