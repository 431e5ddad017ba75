//! Diagnoses of results, the rules, and cells as parameters.

use serde_json::json;

use super::{Api, json as body_json, text};

#[tokio::test]
async fn a_result_is_diagnosed_while_it_runs() {
    let api = Api::new();
    let id = api.running_task().await;
    let path = format!("/api/v1/tasks/{id}/diagnosis");
    let document = api.get_json(&path).await;
    assert_eq!(document["version"], 1);
    assert_eq!(document["rules"], json!({"version": 1, "user_file": null}));
    assert_eq!(document["coverage"]["samples"], 8);
    assert_eq!(document["network"], json!(null));
    assert_eq!(document["event_loop"], json!(null));
    assert_eq!(document["totals"]["requests"], json!(null));
    assert!(document["limits"].as_array().unwrap().len() > 3);
    let cells = document["matrix"]["cells"].as_array().unwrap();
    let samples: u64 = cells
        .iter()
        .map(|cell| cell["samples"].as_u64().unwrap())
        .sum();
    assert_eq!(samples, 8);
    let share: f64 = cells
        .iter()
        .map(|cell| cell["share_percent"].as_f64().unwrap())
        .sum();
    assert!((share - 100.0).abs() < 1e-6, "{share}");

    // Each cell can be looked at by itself.
    for cell in cells {
        let (feature, mechanism) = (&cell["feature"], &cell["mechanism"]);
        let name = format!(
            "{}:{}",
            feature.as_str().unwrap(),
            mechanism.as_str().unwrap()
        );
        let threads = api
            .get_json(&format!("/api/v1/tasks/{id}/threads?cell={name}"))
            .await;
        let samples: u64 = threads["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|thread| thread["samples"].as_u64().unwrap())
            .sum();
        assert_eq!(samples, cell["samples"].as_u64().unwrap(), "{name}");
    }
    let none = api
        .get_json(&format!("/api/v1/tasks/{id}/threads?cell=tracing"))
        .await;
    assert_eq!(none["items"], json!([]));
    let cut = api.get_json(&format!("{path}?pid=4294967295")).await;
    assert_eq!(cut["coverage"]["samples"], 0);
    assert_eq!(cut["processes"], json!([]));
}

#[tokio::test]
async fn a_diagnosis_is_a_report_where_that_is_asked_for() {
    let api = Api::new();
    let id = api.running_task().await;
    let path = format!("/api/v1/tasks/{id}/diagnosis?format=markdown");
    let response = api.get(&path).await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()["content-type"],
        "text/markdown; charset=utf-8"
    );
    let report = text(response).await;
    let title = report.lines().next().unwrap();
    assert!(title.starts_with("# Diagnosis of `"), "{title}");
    assert!(title.ends_with(&format!(", task {id}")), "{title}");
    for part in ["\n**", "\n## Findings\n", "\n## Limits\n"] {
        assert!(report.contains(part), "{part:?} is not in\n{report}");
    }
    let path = format!("/api/v1/tasks/{id}/diagnosis?format=html");
    assert_eq!(api.get(&path).await.status(), 422);
}

#[tokio::test]
async fn wrong_cells_are_refused_with_those_that_there_are() {
    let api = Api::new();
    let id = api.running_task().await;
    for (cell, said) in [
        ("x", "the feature"),
        (":x", "the mechanism"),
        ("tracing:x", "the feature"),
    ] {
        let path = format!("/api/v1/tasks/{id}/profile?format=folded&cell={cell}");
        let response = api.get(&path).await;
        assert_eq!(response.status(), 422, "{cell}");
        let problem = body_json(response).await;
        assert_eq!(problem["code"], "invalid_field");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains(said) && detail.contains("is not one of"),
            "{detail}"
        );
    }
    let response = api
        .get(&format!("/api/v1/tasks/{id}/diagnosis?cell=tracing"))
        .await;
    assert_eq!(response.status(), 422);
    assert_eq!(api.get("/api/v1/tasks/999/diagnosis").await.status(), 404);
}

#[tokio::test]
async fn rules_are_listed() {
    let api = Api::new();
    let rules = api.get_json("/api/v1/diagnosis/rules").await;
    assert_eq!(rules["version"], 1);
    assert_eq!(rules["sets"], json!(["envoy", "nginx", "generic"]));
    let first = &rules["rules"][0];
    assert_eq!(first["origin"], "embedded");
    assert!(
        first["frames"]
            .as_array()
            .is_some_and(|frames| !frames.is_empty())
    );
    let tracing = rules["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["id"] == "tracing");
    assert!(tracing.is_some_and(|tracing| tracing["settings"].as_array().unwrap().len() > 2));
}
