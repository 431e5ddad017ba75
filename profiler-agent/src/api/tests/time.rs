//! Results over time, and compared.

use serde_json::json;

use super::{Api, bytes, json as body_json};

#[tokio::test]
async fn a_timeline_by_thread_adds_up_and_leaves_threads_out_on_demand() {
    let api = Api::new();
    let id = api.running_task().await;
    let by_thread = api
        .get_json(&format!("/api/v1/tasks/{id}/timeline?by=thread"))
        .await;
    assert_eq!(
        by_thread,
        json!({
            "bucket_ms": 100, "from_ms": 0, "counts": [3, 5], "other_threads": 0,
            "threads": [
                {"pid": 1, "tid": 2, "process": "app", "name": "thread-2", "total": 5, "counts": [0, 5]},
                {"pid": 1, "tid": 1, "process": "app", "name": "thread-1", "total": 3, "counts": [3, 0]}
            ],
            "processes": [
                {"pid": 1, "tid": 1, "process": "app", "name": "app", "total": 8, "counts": [3, 5]}
            ]
        })
    );
    // A result without waits cannot say more.
    let by_activity = api
        .get_json(&format!("/api/v1/tasks/{id}/timeline?by=activity"))
        .await;
    assert_eq!(by_activity, by_thread);
    let without = api
        .get_json(&format!(
            "/api/v1/tasks/{id}/timeline?not_tid=2&value=duration"
        ))
        .await;
    assert_eq!(without["counts"], json!([30_000_000, 0]));
    let odd = body_json(
        api.get(&format!("/api/v1/tasks/{id}/timeline?by=cpu"))
            .await,
    )
    .await;
    assert_eq!(odd["detail"], "by \"cpu\" is not thread or activity");
}

#[tokio::test]
async fn stacks_come_in_the_order_of_their_buckets() {
    let api = Api::new();
    let id = api.running_task().await;
    let sequence = api
        .get_json(&format!("/api/v1/tasks/{id}/sequence?threads=1"))
        .await;
    assert_eq!(sequence["other_threads"], 1);
    assert_eq!(sequence["other_amount"], 3);
    assert_eq!(sequence["value"], "count");
    let thread = &sequence["threads"][0];
    assert_eq!(
        (&thread["tid"], &thread["bucket"], &thread["amount"]),
        (&json!(2), &json!([1]), &json!([5]))
    );
    let stack = sequence["stacks"][0][0].as_u64().unwrap();
    let label = &sequence["labels"][usize::try_from(stack).unwrap()];
    assert_eq!(label["name"], "hot<script>alert(1)</script>");
    for threads in ["0", "65", "many"] {
        let path = format!("/api/v1/tasks/{id}/sequence?threads={threads}");
        assert_eq!(api.get(&path).await.status(), 422, "{threads}");
    }
}

#[tokio::test]
async fn two_parts_of_a_task_are_compared() {
    let api = Api::new();
    let id = api.running_task().await;
    let path = format!("/api/v1/diff?a={id}&b={id}&a_to=100&b_from=100");
    let diff = api.get_json(&path).await;
    assert_eq!(diff["a"]["total"], 3);
    assert_eq!(diff["b"]["total"], 5);
    assert_eq!(diff["a"]["covered_ns"], 100_000_000);
    assert_eq!(diff["norm"], "share");
    let hot = &diff["functions"][0];
    assert_eq!(hot["self"], json!([3, 5]));
    assert_eq!(hot["change"], 0.0);
    assert_eq!(hot["verdict"], "too_few");
    let columns = api.get(&format!("{path}&format=flamegraph")).await;
    assert_eq!(
        columns.headers()["content-type"],
        "application/vnd.profiler-agent.diff"
    );
    assert!(bytes(columns).await.starts_with(b"PFD2"));
    // Node 0 is everything, then come process and thread.
    assert_eq!(diff["root"], json!({"name": "all", "total": [3, 5]}));
    let below = api.get_json(&format!("{path}&below=2")).await;
    assert_eq!(below["root"]["total"], json!([3, 5]));
    assert_ne!(below["root"]["name"], "all");
    assert_eq!(below["a"]["total"], 3);
    assert!(below["all_functions"].as_u64() < diff["all_functions"].as_u64());
    let threads = api
        .get_json(&format!(
            "/api/v1/diff?a={id}&b={id}&a_tid=1&b_not_tid=1&norm=rate&limit=1"
        ))
        .await;
    assert_eq!(threads["functions"].as_array().unwrap().len(), 1);
    assert_eq!(threads["all_functions"], 2);
    assert_eq!(threads["b"]["total"], 5);
}

#[tokio::test]
async fn a_comparison_that_means_nothing_is_refused() {
    let api = Api::new();
    let id = api.running_task().await;
    for (query, status, field) in [
        (String::new(), 422, "a"),
        (format!("a={id}"), 422, "b"),
        (format!("a={id}&b=999999"), 404, ""),
        (format!("a={id}&b=x"), 404, ""),
        (format!("a={id}&b={id}&format=svg"), 422, "format"),
        (format!("a={id}&b={id}&norm=request"), 422, "norm"),
        (format!("a={id}&b={id}&limit=10001"), 422, "limit"),
        (format!("a={id}&b={id}&below=99"), 422, "below"),
        (format!("a={id}&b={id}&a_from=9&a_to=3"), 422, "a_to"),
        (format!("a={id}&b={id}&from=9"), 422, "from"),
    ] {
        let response = api.get(&format!("/api/v1/diff?{query}")).await;
        assert_eq!(response.status(), status, "{query}");
        let body = body_json(response).await;
        assert_eq!(body["field"].as_str().unwrap_or(""), field, "{query}");
    }
    let body = r#"{"kind":"network","target":{"all":true}}"#;
    let network = body_json(api.post("/api/v1/tasks", body).await).await;
    let other = network["id"].as_str().unwrap();
    let response = api.get(&format!("/api/v1/diff?a={id}&b={other}")).await;
    assert_eq!(response.status(), 422);
}
