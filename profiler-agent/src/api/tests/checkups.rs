//! Check-ups over the API.

use serde_json::{Value, json};

use super::{Api, MANY_HZ, Setup, check_problem, json as body_json, text};
use crate::api::Origin;

impl Api {
    /// Starts a check-up of one second and returns it once it has ended.
    pub(super) async fn ended_checkup(&self, frequency_hz: u32) -> Value {
        let pid = std::process::id();
        self.ended_checkup_of(pid, frequency_hz).await
    }

    async fn ended_checkup_of(&self, pid: u32, frequency_hz: u32) -> Value {
        let body = format!(
            r#"{{"target":{{"pids":[{pid}]}},"duration_s":1,"frequency_hz":{frequency_hz}}}"#
        );
        let response = self.post("/api/v1/checkups", body).await;
        assert_eq!(response.status(), 201);
        let location = response.headers()["location"].to_str().unwrap().to_owned();
        let created = body_json(response).await;
        assert_eq!(
            location,
            format!("/api/v1/checkups/{}", created["id"].as_str().unwrap())
        );
        assert_eq!(created["state"], "running");
        for _ in 0..2000 {
            let checkup = self.get_json(&location).await;
            if checkup["state"] != "running" {
                return checkup;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("{}", self.get_json(&location).await);
    }
}

fn texts(list: &Value) -> String {
    serde_json::to_string(list).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_up_is_started_diagnosed_and_deleted_with_its_tasks() {
    let api = Api::new();
    let checkup = api.ended_checkup(199).await;
    let id = checkup["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("checkup-"), "{id}");
    assert_eq!(checkup["state"], "finished");
    assert_eq!(checkup["duration_s"], 1);
    assert_eq!(checkup["observed"], true);
    assert_eq!(checkup["ends_in_s"], json!(null));
    let kinds: Vec<&str> = checkup["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["on_cpu", "off_cpu", "requests"]);
    let group = api.get_json(&format!("/api/v1/tasks?group={id}")).await;
    assert_eq!(group["total"], 3);
    let frequencies: Vec<Option<u64>> = group["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["frequency_hz"].as_u64())
        .collect();
    assert_eq!(frequencies, [None, None, Some(199)], "newest first");

    let diagnosis = api
        .get_json(&format!("/api/v1/checkups/{id}/diagnosis"))
        .await;
    assert_eq!(diagnosis["version"], 1);
    assert_eq!(diagnosis["coverage"]["samples"], 8);
    assert_eq!(diagnosis["totals"]["requests"], json!(null));
    let rows: f64 = diagnosis["matrix"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["share_percent"].as_f64().unwrap())
        .sum();
    assert!((rows - 100.0).abs() < 1e-6, "{rows}");
    for (path, field) in [
        (format!("{id}/diagnosis?pid=2"), "pid"),
        (format!("compare?a={id}&b={id}&pid_b=2"), "pid_b"),
    ] {
        let response = api.get(&format!("/api/v1/checkups/{path}")).await;
        assert_eq!(response.status(), 422, "{path}");
        let problem = body_json(response).await;
        assert_eq!(problem["field"], field);
        let detail = format!("nothing was seen of a process 2 in check-up {id}");
        assert_eq!(problem["detail"], detail);
    }
    let report = api
        .get(&format!("/api/v1/checkups/{id}/diagnosis?format=markdown"))
        .await;
    let report = text(report).await;
    assert!(
        report.starts_with(&format!("# Diagnosis of `app` (pid 1), check-up {id}\n")),
        "{report}"
    );

    let all = api.get_json("/api/v1/checkups").await;
    assert_eq!(all.as_array().unwrap().len(), 1);
    let path = format!("/api/v1/checkups/{id}");
    assert_eq!(api.send_empty("DELETE", &path).await.status(), 204);
    assert_eq!(api.get(&path).await.status(), 404);
    assert_eq!(api.get_json("/api/v1/tasks").await["total"], 0);
    assert_eq!(api.get_json("/api/v1/checkups").await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_check_ups_of_the_same_are_compared_without_a_change() {
    let api = Api::new();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let checkup = api.ended_checkup(MANY_HZ).await;
        ids.push(checkup["id"].as_str().unwrap().to_owned());
    }
    let found = api
        .get_json(&format!(
            "/api/v1/checkups/compare?a={}&b={}",
            ids[0], ids[1]
        ))
        .await;
    assert_eq!(found["a"], ids[0].as_str());
    assert_eq!(found["b"], ids[1].as_str());
    let rows = found["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    assert!(
        rows.iter().all(|row| row["significant"] == false),
        "{rows:?}"
    );
    assert_eq!(found["totals"]["cpu_us_per_request"], json!(null));
    assert_eq!(found["findings"]["gone"], json!([]));
    assert!(
        found["verdict"]
            .as_str()
            .unwrap()
            .contains("no part of it changed")
    );
    let report = api
        .get(&format!(
            "/api/v1/checkups/compare?a={}&b={}&format=markdown",
            ids[0], ids[1]
        ))
        .await;
    assert_eq!(
        report.headers()["content-type"],
        "text/markdown; charset=utf-8"
    );
    let report = text(report).await;
    assert!(
        report.starts_with(&format!("# {} against {}\n", ids[1], ids[0]))
            && report.contains("What changed"),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_up_that_failed_or_saw_little_is_compared_with_nothing() {
    let api = Api::new();
    let good = api.ended_checkup(MANY_HZ).await["id"].clone();
    // As after a restart: the process is gone.
    let gone = api.ended_checkup_of(99, MANY_HZ).await["id"].clone();
    let few = api.ended_checkup(199).await["id"].clone();
    for (b, detail) in [
        (
            gone,
            "the later check-up failed: on_cpu: no such process: 99",
        ),
        (
            few,
            "the later check-up has 8 samples on a CPU; to compare what costs CPU time needs 100",
        ),
    ] {
        let (good, b) = (good.as_str().unwrap(), b.as_str().unwrap());
        let path = format!("/api/v1/checkups/compare?a={good}&b={b}");
        let response = api.get(&path).await;
        assert_eq!(response.status(), 409);
        let problem = body_json(response).await;
        assert_eq!(problem["code"], "not_comparable");
        assert_eq!(problem["detail"], detail);
        assert!(problem["hint"].is_string(), "{problem}");
    }
}

#[tokio::test]
async fn parts_that_are_missing_are_said() {
    let api = Api::new();
    let path = "/api/v1/checkups";
    // As an older page starts it.
    for kind in ["on_cpu", "network"] {
        let body = format!(
            r#"{{"kind":"{kind}","target":{{"all":true}},"duration_s":null,"group":"checkup-page"}}"#
        );
        let created = body_json(api.post("/api/v1/tasks", body).await).await;
        let id = created["id"].as_str().unwrap().to_owned();
        api.wait_for(&id, |task| task["state"] == "running").await;
    }
    // Without an end it is not a check-up.
    assert_eq!(api.get(&format!("{path}/checkup-page")).await.status(), 404);
    let body = r#"{"kind":"on_cpu","target":{"pids":[99]},"duration_s":1,"group":"checkup-bad"}"#;
    let created = body_json(api.post("/api/v1/tasks", body).await).await;
    let id = created["id"].as_str().unwrap().to_owned();
    api.wait_for(&id, |task| task["state"] == "failed").await;
    let checkup = api.get_json(&format!("{path}/checkup-bad")).await;
    assert_eq!(checkup["state"], "failed");
    assert_eq!(checkup["observed"], false);
    assert_eq!(checkup["tasks"][0]["reason"], "no such process: 99");
    let diagnosis = api.get_json(&format!("{path}/checkup-bad/diagnosis")).await;
    let limits = texts(&diagnosis["limits"]);
    for part in [
        "no such process: 99",
        "Waits are not known: the off_cpu task was deleted",
        "Requests and connections are not known: the requests task was deleted",
        "the counters were not read",
    ] {
        assert!(limits.contains(part), "{part:?} is not in {limits}");
    }
}

#[tokio::test]
async fn wrong_requests_name_their_field() {
    let api = Api::new();
    for (body, field) in [
        (r#"{"target":{"all":false}}"#, "target"),
        (r#"{"target":{"all":true},"duration_s":0}"#, "duration_s"),
        (r#"{"target":{"all":true},"duration_s":3601}"#, "duration_s"),
        (
            r#"{"target":{"all":true},"frequency_hz":5000}"#,
            "frequency_hz",
        ),
        (r#"{"target":{"comm":""}}"#, "target.comm"),
    ] {
        let response = api.post("/api/v1/checkups", body).await;
        assert_eq!(response.status(), 422, "{body}");
        assert_eq!(body_json(response).await["field"], field, "{body}");
    }
    let unknown = api
        .post(
            "/api/v1/checkups",
            r#"{"target":{"all":true},"kind":"on_cpu"}"#,
        )
        .await;
    assert!(unknown.status().is_client_error());
    for (path, field) in [
        ("/api/v1/checkups/compare", "a"),
        ("/api/v1/checkups/compare?a=x", "b"),
        ("/api/v1/checkups/compare?a=x&b=y&pid_a=z", "pid_a"),
    ] {
        let response = api.get(path).await;
        assert_eq!(response.status(), 422, "{path}");
        assert_eq!(body_json(response).await["field"], field, "{path}");
    }
    check_problem(
        api.get("/api/v1/checkups/compare?a=x&b=y").await,
        json!({
            "type": "about:blank", "title": "Not Found", "status": 404,
            "detail": "no check-up \"x\"", "code": "not_found"
        }),
    )
    .await;
}

#[tokio::test]
async fn a_running_check_up_is_not_deleted_and_a_full_agent_starts_none() {
    let setup = Setup {
        max_running: 3,
        max_queued: 1,
        ..Setup::default()
    };
    let origin = Origin {
        address: ([127, 0, 0, 1], 7117).into(),
        tls: false,
    };
    let api = Api::with(setup, origin);
    let body = r#"{"target":{"all":true},"duration_s":60}"#;
    let created = body_json(api.post("/api/v1/checkups", body).await).await;
    let path = format!("/api/v1/checkups/{}", created["id"].as_str().unwrap());
    let refused = api.send_empty("DELETE", &path).await;
    assert_eq!(refused.status(), 409);
    assert_eq!(body_json(refused).await["code"], "task_not_final");
    let running = api.get_json(&format!("{path}/diagnosis")).await;
    assert!(
        texts(&running["limits"]).contains("still runs"),
        "{running}"
    );
    let full = api.post("/api/v1/checkups", body).await;
    assert_eq!(full.status(), 429);
    assert_eq!(body_json(full).await["code"], "too_many_tasks");
    assert_eq!(api.get_json("/api/v1/tasks").await["total"], 3);
}
