//! From the first page to the cause in a real browser, over meshes with a trouble each; and what the page says of a
//! check-up whose processes have ended.

use std::time::Duration;

use profiler_tests::{
    agent::Agent,
    assert_measured,
    cleanup::scratch_directory,
    mesh::{AppTrouble, Mesh, MeshOptions},
    wait::wait_for,
};
use serde_json::{Value, json};

use crate::{
    targets::{START, stop_load},
    ui::run_script,
};

/// Over one connection, so that no request waits for another.
const REQUESTS_PER_SECOND: u32 = 10;

fn mesh(trouble: MeshOptions) -> MeshOptions {
    MeshOptions {
        rps: REQUESTS_PER_SECOND,
        connections: 1,
        ..trouble
    }
}

/// The row that a process is on.
fn row_of(agent: &Agent, pid: u32) -> Value {
    wait_for("the pod is on the first page", START, || {
        let overview = agent.api.get_json("/api/v1/overview").ok()?;
        let mut rows = overview["rows"].as_array()?.iter();
        let has = |row: &&Value| row["pids"].as_array().unwrap().contains(&json!(pid));
        rows.find(has).cloned()
    })
    .unwrap()
}

#[test]
fn two_clicks_lead_from_the_first_page_to_the_cause() {
    let sleeps = MeshOptions {
        app_trouble: AppTrouble::Asleep,
        app_delay: Duration::from_millis(100),
        ..MeshOptions::default()
    };
    let computes = MeshOptions {
        inbound_work: Duration::from_millis(20),
        ..MeshOptions::default()
    };
    let mut meshes = Mesh::up_together(&[mesh(sleeps), mesh(computes)]).unwrap();
    for mesh in &mut meshes {
        mesh.start_load().unwrap();
    }
    let agent = Agent::start().unwrap();
    let words = ["in slow-app (asleep in a timer", "in envoy ("];
    let cases: Vec<Value> = meshes
        .iter()
        .zip(words)
        .map(|(mesh, words)| {
            let row = row_of(&agent, mesh.report().server_pid);
            json!({ "pod": row["title"], "net": row["network_namespace"], "words": words })
        })
        .collect();
    let (folder, _guard) = scratch_directory("journeys").unwrap();
    let token = agent.api.token.clone().unwrap();
    let url = format!("http://{}/#token={token}", agent.api.address);
    let browse = |name: &str, value: &str| {
        let variables = [("AGENT_URL", url.as_str()), (name, value)];
        run_script("journeys.mjs", "browser", &folder, &variables)
    };
    let said = browse("CASES", &Value::from(cases).to_string());
    // Verdicts are measured.
    assert_measured!(said.is_ok(), "{}", said.unwrap_err());
    // All of it ends, as in a restart.
    for mesh in &mut meshes {
        stop_load(mesh);
    }
    drop(meshes);
    let checkups = agent.api.get_json("/api/v1/checkups").unwrap();
    let said = browse("GONE", checkups[0]["id"].as_str().unwrap());
    said.unwrap_or_else(|said| panic!("{said}"));
}
