//! What the answers hold.

use serde_json::json;

use super::{Api, json as body_json, text};

#[tokio::test]
async fn kinds_without_a_clock_have_no_frequency() {
    let api = Api::new();
    for (kind, frequency_hz) in [
        ("wall", json!(99)),
        ("off_cpu", json!(null)),
        ("network", json!(null)),
    ] {
        let body = json!({ "kind": kind, "target": { "all": true } }).to_string();
        let created = body_json(api.post("/api/v1/tasks", body).await).await;
        assert_eq!(created["kind"], kind, "{created}");
        assert_eq!(created["frequency_hz"], frequency_hz, "{created}");
    }
}

#[tokio::test]
async fn a_task_is_created_followed_stopped_and_deleted() {
    let api = Api::new();
    let body = r#"{"kind":"on_cpu","target":{"pids":[1]}}"#;
    let response = api.post("/api/v1/tasks", body).await;
    assert_eq!(response.status(), 201);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let created = body_json(response).await;
    let id = created["id"].as_str().unwrap();
    assert_eq!(location, format!("/api/v1/tasks/{id}"));
    assert_eq!(created["target"], json!({"pids": [1]}));
    assert_eq!(created["duration_s"], 10);
    assert_eq!(created["frequency_hz"], 99);

    let running = api.wait_for(id, |task| task["samples"] == 8).await;
    assert_eq!(running["state"], "running");
    assert_eq!(running["clock"], "cpu-clock");
    assert_eq!(running["effective_frequency_hz"], 99);
    assert_eq!(running["reason"], json!(null));
    assert_eq!(running["losses"][0]["kind"], "ring_buffer_full");
    assert_eq!(running["losses"][0]["count"], 2);
    assert_eq!(running["notes"], json!(["a remark"]));
    let progress = running["progress"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&progress), "{progress}");

    let stopped = body_json(api.send_empty("POST", &format!("{location}/stop")).await).await;
    assert_eq!(stopped["state"], "cancelled");
    let again = api.send_empty("POST", &format!("{location}/stop")).await;
    assert_eq!(again.status(), 200);
    assert_eq!(api.get_json("/api/v1/tasks").await["total"], 1);
    assert_eq!(api.send_empty("DELETE", &location).await.status(), 204);
    assert_eq!(api.get(&location).await.status(), 404);
    assert_eq!(
        api.get_json("/api/v1/tasks").await,
        json!({"items": [], "total": 0})
    );
}

#[tokio::test]
async fn an_endless_task_has_no_progress() {
    let api = Api::new();
    let id = api.running_task().await;
    let task = api.get_json(&format!("/api/v1/tasks/{id}")).await;
    assert_eq!(task["duration_s"], json!(null));
    assert_eq!(task["progress"], json!(null));
}

#[tokio::test]
async fn a_running_result_is_cut_by_thread_and_time() {
    let api = Api::new();
    let id = api.running_task().await;
    let threads = api.get_json(&format!("/api/v1/tasks/{id}/threads")).await;
    assert_eq!(
        threads,
        json!({"items": [
            {"pid": 1, "tid": 2, "process": "app", "name": "thread-2", "container": null, "pod": null, "activities": [], "samples": 5, "total_ns": 50_000_000},
            {"pid": 1, "tid": 1, "process": "app", "name": "thread-1", "container": null, "pod": null, "activities": [], "samples": 3, "total_ns": 30_000_000}
        ]})
    );
    let timeline = api.get_json(&format!("/api/v1/tasks/{id}/timeline")).await;
    assert_eq!(
        timeline,
        json!({"bucket_ms": 100, "from_ms": 0, "counts": [3, 5]})
    );
    let one = api
        .get_json(&format!("/api/v1/tasks/{id}/timeline?tid=2&bucket_ms=200"))
        .await;
    assert_eq!(one["counts"], json!([5]));
    let odd = body_json(
        api.get(&format!("/api/v1/tasks/{id}/timeline?bucket_ms=150"))
            .await,
    )
    .await;
    assert_eq!(odd["detail"], "bucket_ms must be a multiple of 100");
    let cut = api
        .get_json(&format!("/api/v1/tasks/{id}/threads?from=100&to=200"))
        .await;
    assert_eq!(cut["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn every_format_has_its_media_type() {
    let api = Api::new();
    let id = api.running_task().await;
    for (format, media_type) in [
        ("folded", "text/plain; charset=utf-8"),
        ("pprof", "application/vnd.google.protobuf+gzip"),
        ("svg", "image/svg+xml"),
        ("speedscope", "application/json"),
        ("flamegraph", "application/vnd.profiler-agent.flamegraph"),
    ] {
        let response = api
            .get(&format!(
                "/api/v1/tasks/{id}/profile?format={format}&tid=1&tid=2&pid=1"
            ))
            .await;
        assert_eq!(response.status(), 200, "{format}");
        assert_eq!(response.headers()["content-type"], media_type);
        assert!(!super::bytes(response).await.is_empty(), "{format}");
    }
}

#[tokio::test]
async fn html_is_a_download_that_runs_nothing_at_the_agents_address() {
    let api = Api::new();
    let id = api.running_task().await;
    let response = api
        .get(&format!("/api/v1/tasks/{id}/profile?format=html"))
        .await;
    if crate::api::offline_viewer().is_none() {
        // An agent that was built without the page.
        assert_eq!(response.status(), 422);
        return;
    }
    assert_eq!(response.status(), 200);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert!(header("content-disposition").ends_with("\"task-1.html\""));
    assert!(header("content-security-policy").starts_with("sandbox; default-src 'none'"));
    let page = String::from_utf8(super::bytes(response).await).unwrap();
    assert!(page.starts_with("<!doctype html>") && !page.contains("@@"));
}

#[tokio::test]
async fn meta_probes_and_self_describe_the_agent() {
    let api = Api::new();
    let meta = api.get_json("/api/v1/meta").await;
    assert_eq!(meta["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(meta["auth"], "token");
    assert_eq!(meta["arch"], "x86_64");
    assert!(meta["cpus"].as_u64().unwrap() > 0);
    assert_eq!(
        meta["limits"],
        json!({"max_duration_s": 3600, "max_frequency_hz": 4999, "max_running_tasks": 8})
    );
    let revision = meta["git_revision"].as_str().unwrap();
    assert!(revision == "unknown" || revision.len() >= 40, "{revision}");
    let probes = api.get_json("/api/v1/probes").await;
    assert_eq!(
        probes,
        json!({"items": [{
            "name": "on_cpu", "state": "denied", "reason": "perf_event_open: permission denied",
            "minimum_kernel": "5.15"
        }]})
    );
    api.running_task().await;
    api.wait_for_totals().await;
    let own = api.get_json("/api/v1/self").await;
    assert_eq!(own["running_tasks"], 1);
    assert!(own["rss_bytes"].as_u64().unwrap() > 0);
    assert!(own["store_bytes"].as_u64().unwrap() > 0);
    let kinds: Vec<_> = own["losses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|loss| &loss["kind"])
        .collect();
    assert_eq!(kinds, ["ring_buffer_full", "process_event_dropped"]);
    assert_eq!(
        own["bpf"]["programs"],
        json!([{"name": "sample", "run_count": 7, "run_time_ns": 1_500_000_000, "verified_instructions": null}])
    );
    assert_eq!(api.get_json("/healthz").await, json!({"status": "ok"}));
}

#[tokio::test]
async fn metrics_count_cost_samples_losses_and_requests() {
    let api = Api::new();
    api.running_task().await;
    api.wait_for_totals().await;
    api.get("/nothing").await;
    let response = api.get("/metrics").await;
    assert_eq!(
        response.headers()["content-type"],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let metrics = text(response).await;
    for line in [
        "profiler_agent_samples_total 8",
        "profiler_agent_losses_total{kind=\"ring_buffer_full\"} 2",
        "profiler_agent_losses_total{kind=\"process_event_dropped\"} 4",
        "profiler_agent_losses_total{kind=\"tick_missed\"} 0",
        "profiler_agent_tasks{state=\"running\"} 1",
        "profiler_agent_tasks{state=\"failed\"} 0",
        "profiler_agent_probe_state{probe=\"on_cpu\",state=\"denied\"} 1",
        "profiler_agent_probe_state{probe=\"on_cpu\",state=\"attached\"} 0",
        "profiler_agent_bpf_runs_total{program=\"sample\"} 7",
        "profiler_agent_bpf_run_time_seconds_total{program=\"sample\"} 1.5",
        "profiler_agent_http_requests_total{class=\"4xx\"} 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} is not in\n{metrics}"
        );
    }
    for name in [
        "cpu_seconds_total",
        "resident_memory_bytes",
        "peak_resident_memory_bytes",
        "store_bytes",
    ] {
        assert!(
            metrics.contains(&format!("profiler_agent_{name} ")),
            "{name} is not in\n{metrics}"
        );
    }
    assert!(metrics.ends_with("# EOF\n"));
}

#[tokio::test]
async fn processes_are_sorted_searched_and_limited() {
    let api = Api::new();
    let own = std::process::id();
    let by_pid = api.get_json("/api/v1/processes?sort=pid").await;
    let pids: Vec<_> = by_pid["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["pid"].as_u64().unwrap())
        .collect();
    assert!(pids.is_sorted() && pids.contains(&u64::from(own)));
    let one = api
        .get_json(&format!("/api/v1/processes?q={own}&limit=5"))
        .await;
    assert!(
        one["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|item| item["pid"] == own),
        "{one}"
    );
    let limited = api.get_json("/api/v1/processes?limit=1").await;
    assert_eq!(limited["items"].as_array().unwrap().len(), 1);
    assert_eq!(limited["total"], by_pid["total"]);
    let all = by_pid["items"].as_array().unwrap();
    assert!(all.iter().all(|item| item["kernel_thread"] == false));
    let id = one["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["pid"] == own)
        .unwrap()["id"]
        .clone();
    let detail = api
        .get_json(&format!("/api/v1/processes/{}", id.as_str().unwrap()))
        .await;
    assert!(!detail["thread_list"].as_array().unwrap().is_empty());
    assert!(api.get_json("/api/v1/containers").await["items"].is_array());
}

#[tokio::test]
async fn a_result_without_waits_has_no_idle_share() {
    let api = Api::new();
    let id = api.running_task().await;
    let waits = api.get_json(&format!("/api/v1/tasks/{id}/waits")).await;
    assert_eq!(waits["idle"], json!(null));
    assert_eq!(waits["reasons"], json!([]));
    assert_eq!(waits["states"][0]["name"], "on_cpu");
    assert_eq!(waits["states"][0]["count"], 8);
    let folded = |more: &str| format!("/api/v1/tasks/{id}/profile?format=folded{more}");
    let whole = text(api.get(&folded("")).await).await;
    for same in ["&idle=hide", "&idle=show", "&state=on_cpu"] {
        assert_eq!(text(api.get(&folded(same)).await).await, whole, "{same}");
    }
    for none in ["&idle=only", "&state=io", "&state=io&state=woken"] {
        assert_eq!(text(api.get(&folded(none)).await).await, "", "{none}");
    }
    for (wrong, names) in [
        ("idle=maybe", "show, hide, only"),
        ("state=x", "on_cpu"),
        ("reason=x", "futex"),
    ] {
        let refused = api.get(&folded(&format!("&{wrong}"))).await;
        assert_eq!(refused.status(), 422);
        let detail = body_json(refused).await["detail"].to_string();
        assert!(detail.contains(names), "{detail}");
    }
}
