//! Profiles from files.

use serde_json::json;

use super::{Api, check_problem, json, text};

const FOLDED: &str = "app;main;work 3\napp;main;rest 5\n";

#[tokio::test]
async fn an_imported_file_is_a_task_like_others() {
    let api = Api::new();
    let response = api
        .post("/api/v1/imports?name=before%3Cb%3E.folded", FOLDED)
        .await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["location"], "/api/v1/tasks/1");
    let task = json(response).await;
    assert_eq!(task["kind"], "imported");
    assert_eq!(task["state"], "finished");
    assert_eq!(task["samples"], 8);
    let expected = json!({
        "imported": {
            "name": "before<b>.folded", "format": "folded", "values": "counts",
            "has_times": false, "has_threads": false,
        }
    });
    assert_eq!(task["target"], expected);
    for unknown in ["duration_s", "started_at_ns", "ended_at_ns", "clock"] {
        assert!(task[unknown].is_null(), "{unknown}: {task}");
    }
    let folded = api.get("/api/v1/tasks/1/profile?format=folded").await;
    assert_eq!(text(folded).await, "app;main;rest 5\napp;main;work 3\n");
    let listed = api.get_json("/api/v1/tasks").await;
    assert_eq!(listed["total"], 1);
    for path in ["quality", "threads", "timeline", "waits"] {
        let answer = api.get(&format!("/api/v1/tasks/1/{path}")).await;
        assert_eq!(answer.status(), 200, "{path}");
    }
    let edges = api.get("/api/v1/tasks/1/edges").await;
    assert_eq!(edges.status(), 409);
    // Exported and imported again it is the same.
    let pprof = api.get("/api/v1/tasks/1/profile?format=pprof").await;
    let response = api.post("/api/v1/imports", super::bytes(pprof).await).await;
    assert_eq!(response.status(), 201);
    let folded = api.get("/api/v1/tasks/2/profile?format=folded").await;
    assert_eq!(text(folded).await, "app;main;rest 5\napp;main;work 3\n");
    assert_eq!(
        api.send_empty("DELETE", "/api/v1/tasks/1").await.status(),
        204
    );
}

#[tokio::test]
async fn numbers_that_the_file_does_not_have_are_not_made_up() {
    let api = Api::new();
    api.post("/api/v1/imports?name=a", FOLDED).await;
    let response = api
        .get("/api/v1/tasks/1/profile?format=folded&value=duration")
        .await;
    let problem = json!({
        "type": "about:blank", "title": "Unprocessable Entity", "status": 422,
        "detail": "the imported file has counts only: leave value out, or give count",
        "code": "invalid_field", "field": "value",
    });
    check_problem(response, problem).await;
}

#[tokio::test]
async fn a_file_that_is_no_profile_is_refused_and_leaves_no_task() {
    let api = Api::new();
    let response = api.post("/api/v1/imports", "hello\n").await;
    let problem = json!({
        "type": "about:blank", "title": "Unprocessable Entity", "status": 422,
        "detail": "line 1: no count follows the stack; write `a;b;c 12`",
        "code": "unusable_profile",
        "hint": "give a pprof file (gzip or plain) with counts or times, or folded stacks (`a;b;c 12` a line)",
    });
    check_problem(response, problem).await;
    let long = format!("/api/v1/imports?name={}", "n".repeat(256));
    assert_eq!(api.post(&long, FOLDED).await.status(), 422);
    assert_eq!(api.get_json("/api/v1/tasks").await["total"], 0);
}

#[tokio::test]
async fn sums_beyond_what_is_exact_are_refused() {
    let api = Api::new();
    for counts in [[u64::MAX, u64::MAX], [1 << 53, 1]] {
        let body = format!("a;b {}\na;c {}\n", counts[0], counts[1]);
        let response = api.post("/api/v1/imports", body).await;
        assert_eq!(response.status(), 422);
        let detail = json(response).await["detail"].clone();
        let expected = "the counts of all samples add up to more than 9007199254740992";
        assert_eq!(detail, expected);
    }
    let body = format!("a;b {}\n", 1_u64 << 53);
    let response = api.post("/api/v1/imports", body).await;
    assert_eq!(response.status(), 201);
}

#[tokio::test]
async fn control_characters_in_names_are_text() {
    let api = Api::new();
    let body = "proc;a\u{1b}[31mb 5\n";
    let response = api.post("/api/v1/imports", body).await;
    assert_eq!(response.status(), 201);
    let folded = text(api.get("/api/v1/tasks/1/profile?format=folded").await).await;
    assert!(
        folded.starts_with("proc;a") && folded.ends_with("b 5\n"),
        "{folded:?}"
    );
}

#[tokio::test]
async fn nobody_starts_a_task_of_this_kind() {
    let api = Api::new();
    let body = r#"{"kind":"imported","target":{"all":true}}"#;
    let problem = json!({
        "type": "about:blank", "title": "Unprocessable Entity", "status": 422,
        "detail": "a profile is imported with POST /api/v1/imports",
        "code": "invalid_field", "field": "kind",
    });
    check_problem(api.post("/api/v1/tasks", body).await, problem).await;
}
