//! Results of every kind for requests to find, and their removal.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{api::Api, wait::wait_for};

/// For tasks of a second to end on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);
/// Edges that requests name.
const EDGES: usize = 5;

/// What requests can name.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) tasks: Vec<String>,
    pub(super) checkups: Vec<String>,
    pub(super) processes: Vec<String>,
    pub(super) edges: Vec<String>,
}

impl Results {
    /// The same names for everything.
    pub(super) fn named<const N: usize>(names: [&str; N]) -> Self {
        let names = || names.map(str::to_owned).to_vec();
        Self {
            tasks: names(),
            checkups: names(),
            processes: names(),
            edges: names(),
        }
    }
}

/// A task of each kind on a process, an import and a check-up, all of which have ended.
pub(super) fn make(api: &Api, target: u32) -> Result<Results> {
    let wanted = json!({ "pids": [target] });
    let mut tasks = Vec::new();
    for more in [
        json!({ "kind": "on_cpu", "event_loop": { "threshold_ms": 20 } }),
        json!({ "kind": "off_cpu", "wakers": true }),
        json!({ "kind": "wall" }),
        json!({ "kind": "network" }),
        json!({ "kind": "requests" }),
    ] {
        let mut task = json!({ "target": wanted, "duration_s": 1 });
        if let (Some(task), Some(more)) = (task.as_object_mut(), more.as_object()) {
            task.extend(more.clone());
        }
        tasks.push(api.create_task(&task)?);
    }
    for id in &tasks {
        api.wait_task(id, &["finished"], LIMIT)?;
    }
    tasks.push(import(api)?);
    let mut edges = named(&api.get_json("/api/v1/network/edges")?["edges"]);
    edges.truncate(EDGES);
    let processes = api.get_json(&format!("/api/v1/processes?q={target}"))?;
    Ok(Results {
        tasks,
        checkups: vec![checkup(api, &wanted)?],
        processes: named(&processes["items"]),
        edges,
    })
}

fn import(api: &Api) -> Result<String> {
    let file = b"main;work 3\nmain;rest 1\n".to_vec();
    let answer = api.upload("POST", "/api/v1/imports?name=api-fuzz", file)?;
    ensure!(
        answer.status == 201,
        "import: status {}: {}",
        answer.status,
        answer.text()
    );
    id_of(&answer.json()?)
}

fn checkup(api: &Api, target: &Value) -> Result<String> {
    let body = json!({ "target": target, "duration_s": 1 });
    let answer = api.send("POST", "/api/v1/checkups", Some(&body.to_string()))?;
    ensure!(
        answer.status == 201,
        "check-up: status {}: {}",
        answer.status,
        answer.text()
    );
    let id = id_of(&answer.json()?)?;
    let path = format!("/api/v1/checkups/{id}");
    wait_for("the check-up ends", LIMIT, || {
        let found = api.get_json(&path).ok()?;
        (found["state"] != "running").then_some(())
    })?;
    Ok(id)
}

fn id_of(made: &Value) -> Result<String> {
    let id = made["id"].as_str();
    id.map(str::to_owned)
        .with_context(|| format!("no id in {made}"))
}

/// The ids of a list.
fn named(items: &Value) -> Vec<String> {
    let items = items.as_array().into_iter().flatten();
    items
        .filter_map(|item| item["id"].as_str().map(str::to_owned))
        .collect()
}

/// Stops and deletes every task, check-up and symbol file; how many are left, since what runs is not deleted.
pub(super) fn remove_all(api: &Api) -> Result<usize> {
    let tasks = api.get_json("/api/v1/tasks")?;
    for id in named(&tasks["items"]) {
        // Those that have ended stay as they are.
        api.send("POST", &format!("/api/v1/tasks/{id}/stop"), None)?;
    }
    for id in named(&api.get_json("/api/v1/checkups")?) {
        api.send("DELETE", &format!("/api/v1/checkups/{id}"), None)?;
    }
    // A check-up has taken its own with it.
    for id in named(&tasks["items"]) {
        api.send("DELETE", &format!("/api/v1/tasks/{id}"), None)?;
    }
    let symbols = api.get_json("/api/v1/symbols")?;
    for file in symbols["items"].as_array().into_iter().flatten() {
        if let Some(id) = file["build_id"].as_str() {
            api.send("DELETE", &format!("/api/v1/symbols/{id}"), None)?;
        }
    }
    let tasks = named(&api.get_json("/api/v1/tasks")?["items"]).len();
    let checkups = named(&api.get_json("/api/v1/checkups")?).len();
    Ok(tasks + checkups)
}
