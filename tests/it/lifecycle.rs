//! Restarts, crashes and second agents.

use std::{os::unix::fs::PermissionsExt as _, time::Duration};

use profiler_tests::{
    agent::{Agent, ServeOptions, launch_serve},
    assert_measured,
    cleanup::scratch_directory,
    wait::wait_until,
};
use serde_json::json;

use crate::targets::{EXIT, START, Targets, finish_task, on_cpu, start_task};

fn at(data_dir: &std::path::Path) -> ServeOptions {
    ServeOptions {
        data_dir: Some(data_dir.to_path_buf()),
        ..ServeOptions::default()
    }
}

#[test]
fn results_survive_a_restart() {
    let (folder, _guard) = scratch_directory("data").unwrap();
    let data = folder.join("data");
    let targets = Targets::new();
    let target = targets.busy("shares-restart");
    let mut first = Agent::start_with(at(&data)).unwrap();
    let done = start_task(&first, &on_cpu(json!({ "pids": [target.pid()] }), 2, 499));
    let task = finish_task(&first, &done, 2);
    let folded = first.api.profile(&done, "folded", "").unwrap().text();
    let running = start_task(&first, &on_cpu(json!({ "pids": [target.pid()] }), 600, 499));
    wait_until("the running task has samples", START, || {
        first.api.task(&running).unwrap()["samples"].as_u64() > Some(300)
    })
    .unwrap();
    let old_token = first.api.token.clone();
    assert!(first.stop().unwrap().success(), "{}", first.log());
    drop(target);

    let second = Agent::start_with(at(&data)).unwrap();
    assert_ne!(second.api.token, old_token, "a fresh token at each start");
    assert_eq!(second.api.task(&done).unwrap(), task);
    assert_eq!(
        second.api.profile(&done, "folded", "").unwrap().text(),
        folded
    );
    // The process is gone, so its names can only come from the store.
    assert!(folded.contains("hot_sixty"));
    let interrupted = second.api.task(&running).unwrap();
    let state = interrupted["state"].as_str().unwrap();
    assert!(
        matches!(state, "failed" | "cancelled" | "finished"),
        "{interrupted}"
    );
    assert!(
        second.api.folded(&running, "").unwrap().total() > 300,
        "{interrupted}"
    );
    let next = start_task(&second, &on_cpu(json!({ "all": true }), 1, 99));
    let number = |id: &str| id.parse::<u64>().unwrap();
    assert!(
        number(&next) > number(&running),
        "numbers are not used again"
    );
}

#[test]
fn a_second_agent_on_the_same_data_directory_is_refused() {
    let mut first = Agent::start().unwrap();
    let (logs, _guard) = scratch_directory("second").unwrap();
    let mut second = launch_serve(&ServeOptions::default(), &first.data_dir, &logs).unwrap();
    let status = second.wait(START).unwrap();
    assert_eq!(status.code(), Some(1));
    let errors = second.errors();
    assert!(errors.contains("in use by another agent"), "{errors}");
    assert!(
        errors.contains(&first.data_dir.display().to_string()),
        "{errors}"
    );
    assert!(first.is_running());
    assert!(
        first.api.get_json("/api/v1/meta").is_ok(),
        "the first one is not disturbed"
    );
}

#[test]
fn the_token_file_is_private_and_holds_the_token() {
    let agent = Agent::start().unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&agent.data_dir), 0o700);
    let token = agent.data_dir.join("token");
    assert_eq!(mode(&token), 0o600);
    let text = std::fs::read_to_string(&token).unwrap();
    assert_eq!(Some(text.trim().to_owned()), agent.api.token);
    assert!(
        !agent.log().contains(text.trim()),
        "the token is not logged"
    );
}

#[test]
fn what_is_not_safe_does_not_start() {
    let refused = |arguments: &[&str], expected: &str| {
        let (logs, _guard) = scratch_directory("unsafe").unwrap();
        let all: Vec<&str> = ["serve", "--data-dir", logs.to_str().unwrap()]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let mut process = profiler_tests::agent::launch(&all, "agent", &logs).unwrap();
        let status = process.wait(START).unwrap();
        let errors = process.errors();
        assert_eq!(status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    };
    refused(&["--listen", "0.0.0.0:0"], "--tls-cert");
    refused(&["--listen", "0.0.0.0:0", "--no-auth"], "--no-auth");
    refused(
        &["--access-logs", "0.0.0.0:0"],
        "--access-logs-tls-client-ca",
    );
    refused(&["--colour", "red"], "--colour");
    refused(&["--cpu-budget=-1"], "cpu-budget");
}

#[test]
fn a_node_profile_is_always_there_when_asked_for() {
    let agent = Agent::start_with(ServeOptions::with_arguments(["--profile", "always"])).unwrap();
    let targets = Targets::new();
    let _target = targets.busy("shares-always");
    wait_until("the node's task has samples", START, || {
        let tasks = agent.api.get_json("/api/v1/tasks").unwrap();
        let task = &tasks["items"][0];
        task["target"]["all"] == true
            && task["duration_s"].is_null()
            && task["frequency_hz"] == 19
            && task["samples"].as_u64() > Some(20)
    })
    .unwrap();
}

/// What the agent gets done in a second or four: other work on the machine takes this time from it.
mod alone {
    use super::*;

    #[test]
    fn kill_9_loses_at_most_the_last_second() {
        let (folder, _guard) = scratch_directory("data").unwrap();
        let data = folder.join("data");
        let targets = Targets::new();
        let target = targets.busy("shares-kill");
        for round in 0..3 {
            let mut agent = Agent::start_with(at(&data)).unwrap();
            let id = start_task(&agent, &on_cpu(json!({ "pids": [target.pid()] }), 600, 499));
            let at_least = 1000 + 400 * round;
            wait_until("samples arrive", START, || {
                agent.api.task(&id).unwrap()["samples"].as_u64() > Some(at_least)
            })
            .unwrap();
            // What the API showed a second before the kill must still be there.
            let shown = agent.api.task(&id).unwrap()["samples"].as_u64().unwrap();
            let killed_after = std::time::Instant::now() + Duration::from_secs(1);
            wait_until("a second passes", EXIT, || {
                std::time::Instant::now() >= killed_after
            })
            .unwrap();
            agent.kill().unwrap();

            let again = Agent::start_with(at(&data)).unwrap();
            let task = again.api.task(&id).unwrap();
            assert_eq!(task["state"], "failed", "{task}");
            assert!(task["reason"].is_string(), "{task}");
            let kept = again.api.folded(&id, "").unwrap();
            assert_measured!(
                kept.total() >= shown,
                "round {round}: {} of {shown} kept",
                kept.total()
            );
            assert_measured!(
                kept.count(|stack| stack.has("hot_sixty")) > 400,
                "{}",
                kept.summary()
            );
        }
    }

    #[test]
    fn stopping_ends_cleanly_while_tasks_run() {
        let mut agent = Agent::start().unwrap();
        start_task(&agent, &on_cpu(json!({ "all": true }), 600, 999));
        let asked = std::time::Instant::now();
        let status = agent.stop().unwrap();
        assert!(status.success(), "{status}: {}", agent.log());
        assert_measured!(
            asked.elapsed() < Duration::from_secs(4),
            "took {:?}",
            asked.elapsed()
        );
    }
}
