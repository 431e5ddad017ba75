//! The map of a pod and the page of an edge in a real browser, over the demo mesh.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::Agent,
    mesh::{
        Mesh, MeshOptions, SERVER_PORT,
        interception::{INBOUND_PORT, OUTBOUND_PORT},
        sidecar::OUTBOUND_STATS,
    },
    paths,
    process::Launch,
    wait::wait_for,
};
use serde_json::json;

use crate::{edges::Watch, targets::START};

const BROWSER: Duration = Duration::from_mins(4);
/// Tables come once a second: so long has a task several, of which a part can be picked.
const SEVERAL_STEPS: Duration = Duration::from_secs(5);
/// Requests that are answered while the task runs.
const REQUESTS: u64 = 200;

#[test]
fn the_map_and_the_page_of_an_edge_show_the_mesh_with_the_apis_totals() {
    let agent = Agent::start().unwrap();
    let mut mesh = Mesh::up(&MeshOptions::default()).unwrap();
    let watch = Watch::start(&agent, &json!({ "all": true }));
    let task = watch.id().to_owned();
    mesh.start_load().unwrap();
    let answered = |mesh: &Mesh| {
        let name = format!("http.{OUTBOUND_STATS}.downstream_rq_2xx");
        mesh.client.stat(&name).unwrap()
    };
    let before = answered(&mesh);
    let begin = Instant::now();
    wait_for("requests are answered", START, || {
        let is_long = begin.elapsed() >= SEVERAL_STEPS;
        (is_long && answered(&mesh) >= before + REQUESTS).then_some(())
    })
    .unwrap();
    let report = mesh.report();
    watch.finish();
    // The browser has the machine to itself.
    mesh.pause_load().unwrap();

    // The processes stay, so that the node tells their network namespaces.
    let (client, server) = (report.client_envoy_pid, report.server_envoy_pid);
    let app = report.client_pid.unwrap();
    let expect = [
        (client, server, INBOUND_PORT),
        (app, client, OUTBOUND_PORT),
        (server, report.server_pid, SERVER_PORT),
    ]
    .map(|(from, to, port)| format!("{from}>{to}:{port}"));
    let web = paths::workspace().join("web");
    let url = format!(
        "http://{}/#token={}",
        agent.api.address,
        agent.api.token.as_deref().unwrap()
    );
    let script = web.join("e2e/topology.mjs");
    let folder = tempfile::tempdir().unwrap();
    let mut browser = Launch::new(Path::new("node"), "browser", folder.path())
        .args([script.as_os_str()])
        .env("AGENT_URL", &url)
        .env("TASK", &task)
        .env("EXPECT", &expect.join(","))
        .current_dir(&web)
        .start()
        .unwrap();
    let ended = browser.wait(BROWSER);
    let good = ended.is_ok_and(|status| status.success());
    assert!(good, "{}\n{}", browser.output(), browser.errors());
}
