//! What the agent reports about itself: kernel objects, features, configuration, support bundle.

use std::{io::Read as _, os::fd::OwnedFd};

use serde_json::json;

use super::{Api, Setup, bytes, check_problem, json as body_of, text};
use crate::{
    api::{Inspection, Origin, Statistics},
    config::{
        cli::{AccessArgs, ServeArgs},
        resolve_serve,
    },
    recent_log::RecentLog,
};

/// Any word that nothing else has.
const PLANTED: &str = "planted-secret-77ab";

pub(super) fn pretend() -> std::io::Result<OwnedFd> {
    Ok(std::fs::File::open("/dev/null")?.into())
}

/// As of an agent whose configuration carries a secret.
pub(super) fn inspection(enable: fn() -> std::io::Result<OwnedFd>) -> Inspection {
    let args = ServeArgs {
        debuginfod: Some(format!(
            "https://me:{PLANTED}@debug.example/files,objects.example"
        )),
        access: AccessArgs {
            token_file: Some("/etc/profiler/token".into()),
            ..AccessArgs::default()
        },
        ..ServeArgs::default()
    };
    let config = resolve_serve(&args, None, &|_| None).unwrap();
    Inspection::new(
        config.masked(),
        RecentLog::default(),
        Statistics {
            always: false,
            enable,
        },
    )
}

#[tokio::test]
async fn the_configuration_is_shown_without_its_secrets() {
    let api = Api::new();
    let found = api.get_json("/api/v1/config").await;
    let items = found["items"].as_array().unwrap();
    let value = |name: &str| {
        let item = items.iter().find(|item| item["name"] == name);
        item.map_or("", |item| item["value"].as_str().unwrap())
    };
    assert_eq!(value("listen"), "\"127.0.0.1:7117\"");
    assert_eq!(value("token_file"), "\"/etc/profiler/token\"");
    assert_eq!(
        value("debuginfod"),
        "\"https://***@debug.example/files,objects.example\""
    );
    assert!(!found.to_string().contains(PLANTED), "{found}");
}

#[tokio::test]
async fn features_have_a_verdict_and_what_to_do() {
    let api = Api::new();
    let found = api.get_json("/api/v1/features").await;
    let items = found["items"].as_array().unwrap();
    for name in ["btf", "stack_tables", "capabilities"] {
        let item = items.iter().find(|item| item["name"] == name).unwrap();
        let is_ok = item["verdict"] == "ok";
        assert_eq!(is_ok, item["remedy"] == "", "{item}");
        assert_ne!(item["minimum_kernel"], "", "{item}");
    }
}

#[tokio::test]
async fn statistics_are_on_while_a_request_measures() {
    let api = Api::new();
    let path = "/api/v1/self/kernel";
    let unasked = api.get_json(path).await;
    assert_eq!(unasked["programs"], json!([]));
    let measure = "/api/v1/self/kernel/statistics";
    let answer = api.post(measure, r#"{"duration_ms":150}"#).await;
    assert_eq!(answer.status(), 200);
    let found = body_of(answer).await;
    assert!(found["elapsed_ns"].as_u64().unwrap() >= 150_000_000);
    for reading in ["before", "after"] {
        let statistics = &found[reading]["statistics"];
        assert_eq!(statistics["on"], true, "{found}");
        // A machine whose administrator turned them on says that.
        if unasked["statistics"]["on"] == false {
            assert_eq!(statistics["by"], "request", "{found}");
        }
    }
    let later = api.get_json(path).await;
    assert_eq!(later["statistics"], unasked["statistics"]);
    check_problem(
        api.post(measure, r#"{"duration_ms":99}"#).await,
        json!({
            "type": "about:blank", "title": "Unprocessable Entity", "status": 422,
            "code": "invalid_field", "field": "duration_ms",
            "detail": "duration_ms must be between 100 and 10000, got 99",
        }),
    )
    .await;
}

#[tokio::test]
async fn a_measurement_that_the_kernel_refuses_says_so() {
    let setup = Setup {
        enable_statistics: || Err(std::io::ErrorKind::PermissionDenied.into()),
        ..Setup::default()
    };
    let origin = Origin {
        address: ([127, 0, 0, 1], 7117).into(),
        tls: false,
    };
    let api = Api::with(setup, origin);
    let path = "/api/v1/self/kernel/statistics";
    let answer = api.post(path, r#"{"duration_ms":100}"#).await;
    assert_eq!(answer.status(), 409);
    assert_eq!(body_of(answer).await["code"], "statistics_refused");
}

#[tokio::test]
async fn the_bundle_has_everything_but_secrets() {
    use std::io::Write as _;

    let api = Api::new();
    // As if a line of the log had carried it.
    let mut log = api.state.parts.inspection.log.clone();
    let line = format!("started with {}\n", api.token);
    log.write_all(line.as_bytes()).unwrap();
    api.running_task().await;
    let answer = api.get("/api/v1/support-bundle").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/gzip");
    let disposition = answer.headers()["content-disposition"].to_str().unwrap();
    assert!(
        disposition.starts_with("attachment; filename=\"profiler-agent-"),
        "{disposition}"
    );
    let compressed = bytes(answer).await;
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(compressed.as_slice()));
    let mut names = Vec::new();
    let mut everything = String::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_string_lossy().into_owned();
        names.push(name.split_once('/').unwrap().1.to_owned());
        entry.read_to_string(&mut everything).unwrap();
    }
    assert_eq!(
        names,
        [
            "README.txt",
            "meta.json",
            "probes.json",
            "features.json",
            "kernel.json",
            "self.json",
            "config.toml",
            "tasks.json",
            "log.txt"
        ]
    );
    assert!(
        everything.contains("started with ***"),
        "the log is missing"
    );
    assert!(
        everything.contains("\"kind\": \"on_cpu\""),
        "the tasks are missing"
    );
    assert!(
        !everything.contains(PLANTED),
        "a secret of the configuration"
    );
    assert!(!everything.contains(&api.token), "the token");
}

#[tokio::test]
async fn tasks_of_a_group_are_found_together() {
    let api = Api::new();
    let create = async |kind: &str, group: &str| {
        let body = format!(r#"{{"kind":"{kind}","target":{{"all":true}},"group":{group}}}"#);
        api.post("/api/v1/tasks", body).await
    };
    assert_eq!(create("on_cpu", "\"check-1\"").await.status(), 201);
    assert_eq!(create("off_cpu", "\"check-1\"").await.status(), 201);
    let alone = body_of(create("on_cpu", "null").await).await;
    assert_eq!(alone["group"], json!(null));
    let found = api.get_json("/api/v1/tasks?group=check-1").await;
    assert_eq!(found["total"], 2);
    let kinds: Vec<_> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| &task["kind"])
        .collect();
    assert_eq!(kinds, ["off_cpu", "on_cpu"]);
    assert_eq!(api.get_json("/api/v1/tasks").await["total"], 3);
    assert_eq!(api.get_json("/api/v1/tasks?group=other").await["total"], 0);
    let refused = create("on_cpu", "\"a b\"").await;
    assert_eq!(refused.status(), 422);
    let refused = text(refused).await;
    assert!(refused.contains("letters, digits"), "{refused}");
}

#[tokio::test]
async fn names_of_a_process_are_foretold() {
    let api = Api::new();
    let own = std::process::id();
    let list = api.get_json("/api/v1/processes").await;
    let items = list["items"].as_array().unwrap();
    let id = items.iter().find(|item| item["pid"] == own).unwrap()["id"]
        .as_str()
        .unwrap();
    let found = api
        .get_json(&format!("/api/v1/processes/{id}/symbols"))
        .await;
    let program = &found["files"][0];
    assert!(
        program["path"].as_str().unwrap().contains("profiler_agent"),
        "{found}"
    );
    assert_eq!(program["complete"], true, "{found}");
    assert_eq!(found["refusal"], json!(null));
    assert_eq!(
        api.get("/api/v1/processes/1-999999999999/symbols")
            .await
            .status(),
        404
    );
    assert_eq!(api.get("/api/v1/processes/x/symbols").await.status(), 404);
}

#[tokio::test]
async fn pods_hold_every_process_once() {
    let api = Api::new();
    let found = api.get_json("/api/v1/pods").await;
    let items = found["items"].as_array().unwrap();
    let pids = items
        .iter()
        .flat_map(|pod| pod["processes"].as_array().unwrap());
    let own = pids
        .filter(|process| process["pid"] == std::process::id())
        .count();
    assert_eq!(own, 1, "{found}");
    assert!(items.iter().all(|pod| pod["summary"] != ""), "{found}");
    let kinds = ["pod", "host", "unknown"];
    assert!(
        items
            .iter()
            .all(|pod| kinds.contains(&pod["kind"].as_str().unwrap())),
        "{found}"
    );
}
