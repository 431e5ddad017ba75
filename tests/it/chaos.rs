//! What the agent leaves behind when it is killed at any moment: nothing in the kernel, nothing in the code of
//! those that it watches, a store that can be read, and a mesh that has noticed nothing.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::{self, Agent, ServeOptions, launch_serve},
    api::Api,
    breakpoints,
    cleanup::scratch_directory,
    kernel_objects::KernelObjects,
    mesh::{Mesh, MeshOptions},
    wait::wait_for,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::targets::{on_cpu, start_task};

const KILLS: u32 = 50;
/// The agent is killed within so many milliseconds of its start: before it listens, while it loads its programs,
/// while it collects.
const LIFE_MS: u64 = 4000;
/// For the kernel, which frees what a killed process held.
const GONE: Duration = Duration::from_secs(15);
const RATE: u32 = 200;

/// Numbers that look random, the same in each run (xorshift, Marsaglia 2003).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn requests(pids: &[u32]) -> Value {
    json!({ "kind": "requests", "target": { "pids": pids }, "duration_s": 600, "tls": true })
}

/// Tasks of an agent that lives for `life`; those that it has said to have begun.
fn one_life(options: &ServeOptions, data: &Path, envoys: &[u32], life: Duration) -> usize {
    let (logs, _guard) = scratch_directory("chaos").unwrap();
    let began = Instant::now();
    let mut process = launch_serve(options, data, &logs).unwrap();
    let mut made = 0;
    let mut api = None;
    while began.elapsed() < life {
        let listening = agent::address(&process.output());
        if api.is_none()
            && let Some((address, token)) = listening
        {
            let found = Api::new(address, token);
            for task in [
                on_cpu(json!({ "pids": envoys }), 600, 499),
                requests(envoys),
            ] {
                made += usize::from(found.create_task(&task).is_ok());
            }
            api = Some(found);
        }
        thread::sleep(Duration::from_millis(5));
    }
    process.interrupt(Signal::KILL).unwrap();
    made
}

#[test]
fn fifty_kills_under_load_are_noticed_by_nobody() {
    let mut mesh = Mesh::up(&MeshOptions {
        mtls: true,
        rps: RATE,
        duration: Duration::from_mins(15),
        ..MeshOptions::default()
    })
    .unwrap();
    let report = mesh.report();
    let envoys = [report.client_envoy_pid, report.server_envoy_pid];
    let (folder, _guard) = scratch_directory("data").unwrap();
    let data = folder.join("data");
    let options = ServeOptions::with_arguments(["--allow-tls-capture"]);
    mesh.start_load().unwrap();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut tasks, mut lives_with_tasks) = (0, 0);
    for round in 0..KILLS {
        let life = Duration::from_millis(numbers.below(LIFE_MS));
        // Others on the machine load programs as well.
        let before = KernelObjects::now().unwrap();
        let made = one_life(&options, &data, &envoys, life);
        tasks += made;
        lives_with_tasks += u32::from(made > 0);
        let left = wait_for("the kernel has removed everything", GONE, || {
            let left = KernelObjects::now().ok()?.since(&before);
            left.is_empty().then_some(())
        });
        assert!(
            left.is_ok(),
            "round {round}, killed after {life:?}: {:?}",
            KernelObjects::now().unwrap().since(&before)
        );
        for pid in envoys {
            assert_eq!(
                breakpoints::count(pid).unwrap(),
                0,
                "round {round}, {life:?}"
            );
        }
    }
    assert!(
        lives_with_tasks >= KILLS / 8,
        "{lives_with_tasks} lives had tasks"
    );
    let load = mesh.stop_load().unwrap().unwrap();
    assert_eq!(load.errors, 0, "{load:?}");
    assert!(load.requests > 1000, "{load:?}");
    assert_eq!(mesh.ended(), None);

    let again = Agent::start_with(ServeOptions {
        data_dir: Some(data),
        ..options
    })
    .unwrap();
    let list = again.api.get_json("/api/v1/tasks").unwrap();
    let items = list["items"].as_array().unwrap();
    // One may have been stored of which the answer did not come.
    assert!(items.len() >= tasks, "{} of {tasks} tasks", items.len());
    for task in items {
        let id = task["id"].as_str().unwrap();
        assert_eq!(task["state"], "failed", "{task}");
        assert!(task["reason"].is_string(), "{task}");
        let path = match task["kind"].as_str().unwrap() {
            "requests" => format!("/api/v1/tasks/{id}/requests"),
            _ => format!("/api/v1/tasks/{id}/profile?format=folded"),
        };
        let answer = again.api.send("GET", &path, None).unwrap();
        assert!(
            answer.status == 200 || answer.status == 409,
            "{path}: {}",
            answer.text()
        );
        assert!(!answer.text().contains("damaged\":true"), "{path}");
    }
    let done = start_task(&again, &on_cpu(json!({ "pids": envoys }), 1, 99));
    assert!(
        items.iter().all(|task| task["id"] != done.as_str()),
        "{done} is used again"
    );
}
