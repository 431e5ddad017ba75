//! The agent on the demo mesh under load.

use std::{
    fs,
    time::{Duration, Instant},
};

use profiler_tests::{agent::Agent, assert_measured};
use serde_json::{Value, json};

use crate::targets::{busy_mesh, finish_task, mesh_with_mtls, on_cpu, start_task, stop_load};

/// Also true for a process that has ended.
fn may_be_envoy(pid: &Value) -> bool {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
    comm.is_ok_and(|comm| comm.trim() == "envoy") || !fs::exists(format!("/proc/{pid}")).unwrap()
}

/// The flame graph colours its frames by the rows of the matrix.
fn assert_features_are_those_of_the_diagnosis(agent: &Agent, id: &str) {
    let path = format!("/api/v1/tasks/{id}/diagnosis");
    let diagnosis = agent.api.get_json(&path).unwrap();
    let rows = diagnosis["matrix"]["features"].as_array().unwrap();
    assert_measured!(rows.len() > 2, "{diagnosis:#}");
    let graph = agent.api.profile(id, "flamegraph", "&features=true");
    let bytes = graph.unwrap().body;
    for row in rows {
        let title = row["title"].as_str().unwrap().as_bytes();
        let is_there = bytes.windows(title.len()).any(|part| part == title);
        assert!(is_there, "{row} is not in the flame graph");
    }
}

#[test]
fn both_sidecars_are_sampled_in_their_workers_with_kernel_names() {
    let agent = Agent::start().unwrap();
    let (mut mesh, envoys) = busy_mesh(&mesh_with_mtls());
    let by_pid = start_task(&agent, &on_cpu(json!({ "pids": envoys }), 5, 499));
    let by_name = start_task(&agent, &on_cpu(json!({ "comm": "envoy" }), 5, 499));
    for id in [&by_pid, &by_name] {
        finish_task(&agent, id, 5);
        let threads = agent
            .api
            .get_json(&format!("/api/v1/tasks/{id}/threads"))
            .unwrap();
        let threads = threads["items"].as_array().unwrap();
        for pid in envoys {
            for worker in ["wrk:worker_0", "wrk:worker_1"] {
                let thread = threads
                    .iter()
                    .find(|t| t["pid"] == pid && t["name"] == worker);
                let thread = thread.unwrap_or_else(|| panic!("no {worker} of {pid}: {threads:?}"));
                assert_measured!(thread["samples"].as_u64() > Some(20), "{thread}");
                let tid = thread["tid"].as_u64().unwrap();
                let comm = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap();
                assert_eq!(comm.trim(), worker, "the tid is the kernel's");
            }
            let folded = agent.api.folded(id, &format!("&pid={pid}")).unwrap();
            for function in ["tcp_sendmsg", "do_syscall_64"] {
                assert_measured!(
                    folded.count(|stack| stack.has(function)) > 20,
                    "{function} in sidecar {pid}: {}",
                    folded.summary()
                );
            }
            // Stripped: its own code has no names, and none may be made up.
            let own =
                folded.count(|stack| stack.frames.iter().any(|frame| frame.contains("envoy+0x")));
            assert_measured!(own > 20, "{}", folded.summary());
        }
        let mut others = threads
            .iter()
            .filter(|t| !envoys.iter().any(|pid| t["pid"] == *pid));
        // Envoys of other tests have the name as well.
        let is_stray = |thread: &&Value| id == &by_pid || !may_be_envoy(&thread["pid"]);
        let stray = others.find(is_stray);
        assert!(stray.is_none(), "only the sidecars: {stray:?}");
    }
    assert_features_are_those_of_the_diagnosis(&agent, &by_pid);
    stop_load(&mut mesh);
    let listed = agent
        .api
        .get_json("/api/v1/processes?q=envoy&limit=50")
        .unwrap();
    let namespaces: Vec<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|process| envoys.iter().any(|pid| process["pid"] == *pid))
        .map(|process| process["network_namespace"].as_u64().unwrap())
        .collect();
    assert!(
        namespaces.len() == 2 && namespaces[0] != namespaces[1],
        "{listed}"
    );
    let down = Instant::now();
    drop(mesh);
    assert_measured!(down.elapsed() < Duration::from_secs(10));
}
