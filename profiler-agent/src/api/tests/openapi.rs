//! The checked-in document is the one that the code gives.

use std::path::Path;

use super::Api;
use crate::api::openapi_json;

#[test]
fn the_golden_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/http-api.json");
    let current = openapi_json().unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == current,
        "docs/http-api.json is not what the code gives; if the change is meant, run \
         BLESS=1 cargo test -p profiler-agent golden_document and commit the file"
    );
}

#[tokio::test]
async fn the_served_document_is_the_same_and_names_every_route() {
    let api = Api::new();
    let served = api.get_json("/api/v1/openapi.json").await;
    assert_eq!(
        served,
        serde_json::from_str::<serde_json::Value>(&openapi_json().unwrap()).unwrap()
    );
    let paths: Vec<_> = served["paths"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let mut expected = [
        "/api/v1/checkups",
        "/api/v1/checkups/compare",
        "/api/v1/checkups/{id}",
        "/api/v1/checkups/{id}/diagnosis",
        "/api/v1/containers",
        "/api/v1/diagnosis/rules",
        "/api/v1/diff",
        "/api/v1/config",
        "/api/v1/events",
        "/api/v1/imports",
        "/api/v1/features",
        "/api/v1/self/kernel",
        "/api/v1/self/kernel/statistics",
        "/api/v1/support-bundle",
        "/api/v1/processes/{id}/symbols",
        "/api/v1/meta",
        "/api/v1/network/edges",
        "/api/v1/network/edges/events",
        "/api/v1/network/edges/{edge}/connections",
        "/api/v1/network/edges/{edge}/series",
        "/api/v1/pods",
        "/api/v1/probes",
        "/api/v1/processes",
        "/api/v1/processes/{id}",
        "/api/v1/self",
        "/api/v1/symbols",
        "/api/v1/symbols/{build_id}",
        "/api/v1/tasks",
        "/api/v1/tasks/{id}",
        "/api/v1/tasks/{id}/diagnosis",
        "/api/v1/tasks/{id}/edges",
        "/api/v1/tasks/{id}/edges/events",
        "/api/v1/tasks/{id}/edges/{edge}/connections",
        "/api/v1/tasks/{id}/edges/{edge}/series",
        "/api/v1/tasks/{id}/event-loop",
        "/api/v1/tasks/{id}/profile",
        "/api/v1/tasks/{id}/quality",
        "/api/v1/tasks/{id}/requests",
        "/api/v1/tasks/{id}/sequence",
        "/api/v1/tasks/{id}/stop",
        "/api/v1/tasks/{id}/threads",
        "/api/v1/tasks/{id}/timeline",
        "/api/v1/tasks/{id}/waits",
        "/healthz",
        "/metrics",
        "/readyz",
    ];
    expected.sort_unstable();
    let mut paths = paths;
    paths.sort();
    assert_eq!(paths, expected);
}
