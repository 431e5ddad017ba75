//! The checked-in document is the one that the code gives.

use std::path::Path;

use serde_json::Value;

use super::{Api, description};

#[test]
fn the_golden_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/http-api.json");
    let current = description::document();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == current,
        "docs/http-api.json is not what the code gives; if the change is meant, run \
         BLESS=1 cargo test -p profiler-agent golden_document, then npm run types in web/, and commit both files"
    );
}

#[tokio::test]
async fn the_served_document_is_the_same_and_names_every_route() {
    let api = Api::new();
    let served = api.get_json("/api/v1/openapi.json").await;
    assert_eq!(served, document());
    let paths: Vec<_> = served["paths"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let mut expected = [
        "/api/v1/access-logs",
        "/api/v1/access-logs/requests",
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
        "/api/v1/overview",
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

fn document() -> Value {
    serde_json::from_str(&description::document()).unwrap()
}

/// Every value below a key of this name.
fn all_below<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                if key == name {
                    found.push(inner);
                }
                all_below(inner, name, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| all_below(item, name, found)),
        _ => {}
    }
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    let document = document();
    let mut references = Vec::new();
    all_below(&document, "$ref", &mut references);
    assert!(references.len() > 100);
    for reference in references {
        let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

#[test]
fn names_of_objects_are_texts() {
    let document = document();
    let mut names = Vec::new();
    all_below(&document, "propertyNames", &mut names);
    assert!(names.len() > 3);
    assert!(names.iter().all(|names| names["type"] == "string"));
}

#[test]
fn bytes_are_no_list_of_numbers() {
    let document = document();
    let mut contents = Vec::new();
    all_below(&document, "content", &mut contents);
    let mut binary = 0;
    for content in contents {
        for (media_type, described) in content.as_object().unwrap() {
            let schema = &described["schema"];
            assert!(
                media_type == "application/json" || schema["type"] != "array",
                "{media_type}: {schema}"
            );
            binary += usize::from(schema["format"] == "binary");
        }
    }
    assert!(binary > 5);
}

#[tokio::test]
async fn an_unknown_parameter_is_refused_as_the_document_says() {
    let api = Api::new();
    for (template, item) in document()["paths"].as_object().unwrap() {
        // Prometheus may add parameters of its own.
        if template == "/metrics" || item.get("get").is_none() {
            continue;
        }
        let path = template.replace("{id}", "1").replace("{edge}", "1");
        let status = api.get(&format!("{path}?unknown=1")).await.status();
        let declared = &item["get"]["responses"][status.as_str()];
        assert!(
            status.is_client_error() && declared.is_object(),
            "{template}: {status}"
        );
    }
}
