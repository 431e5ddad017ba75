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
    assert_measured, breakpoints,
    cleanup::scratch_directory,
    kernel_objects::KernelObjects,
    mesh::{Mesh, MeshOptions},
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::targets::{on_cpu, start_task};

const KILLS: u32 = 50;
/// The agent is killed within this many milliseconds of its start: before it listens, while it loads its programs,
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
            && let Some((address, file)) = listening
        {
            let token = agent::token_in(&file.unwrap()).unwrap();
            let found = Api::new(address, Some(token));
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
    let data = ["data-0", "data-1"].map(|name| folder.join(name));
    let options = ServeOptions::with_arguments(["--allow-tls-capture"]);
    mesh.start_load().unwrap();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut tasks, mut lives_with_tasks) = ([0; 2], 0);
    for round in 0..KILLS / 2 {
        // Two at once, each with its own store: most of a life is waiting.
        let life = [(); 2].map(|()| Duration::from_millis(numbers.below(LIFE_MS)));
        // Others on the machine load programs as well.
        let before = KernelObjects::now().unwrap();
        let made = thread::scope(|scope| {
            let live = |at: usize| {
                let (options, data, envoys) = (&options, &data[at], &envoys);
                scope.spawn(move || one_life(options, data, envoys, life[at]))
            };
            [live(0), live(1)].map(|life| life.join().unwrap())
        });
        for (tasks, made) in tasks.iter_mut().zip(made) {
            *tasks += made;
            lives_with_tasks += u32::from(made > 0);
        }
        let left = KernelObjects::left_behind(&before, GONE).unwrap();
        assert!(
            left.is_empty(),
            "round {round}, killed after {life:?}: {left:?}"
        );
        for pid in envoys {
            assert_eq!(
                breakpoints::count(pid).unwrap(),
                0,
                "round {round}, {life:?}"
            );
        }
    }
    assert_measured!(
        lives_with_tasks >= KILLS / 8,
        "{lives_with_tasks} lives had tasks"
    );
    let load = mesh.stop_load().unwrap().unwrap();
    assert_eq!(load.errors, 0, "{load:?}");
    assert_measured!(load.requests > 1000, "{load:?}");
    assert_eq!(mesh.ended(), None);

    for (data, tasks) in data.iter().zip(tasks) {
        check_store(&options, data, &envoys, tasks);
    }
}

/// What the killed agents have stored can be read, and is gone on with.
fn check_store(options: &ServeOptions, data: &Path, envoys: &[u32], tasks: usize) {
    let again = Agent::start_with(ServeOptions {
        arguments: options.arguments.clone(),
        data_dir: Some(data.to_path_buf()),
        ..ServeOptions::default()
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
