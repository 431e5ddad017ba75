//! Targets whose files are traps: nothing hangs, nothing of the host is read.

use std::time::{Duration, Instant};

use profiler_tests::{agent::Agent, assert_measured, process::Running, workload::Workload};
use serde_json::json;

use crate::targets::{START, Targets, burn_all, endless, start_task, stop_task};

const SECRET: &str = "HOST_SECRET_SYMBOL";

const TRAPS: [&str; 6] = [
    "symlink",
    "magic-link",
    "fifo",
    "device",
    "sparse",
    "foreign-owner",
];

fn start(targets: &Targets, trap: &str, secret: &str) -> Running {
    let own = std::process::id().to_string();
    let name = format!("trap-{}", &trap[..trap.len().min(9)]);
    let mut target = targets.contained(Workload::Hostile, &name, &[trap, secret, &own]);
    target
        .wait_for_line(START, |line| (line == "ready").then_some(()))
        .unwrap();
    target
}

#[test]
fn traps_in_a_targets_files_neither_hang_the_agent_nor_leak_host_files() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    // A perf-map of the host that would name every address.
    let secret = targets.folder.join("secret.map");
    std::fs::write(&secret, format!("0 ffffffffffff {SECRET}\n")).unwrap();
    let secret = secret.to_str().unwrap();

    let honest = start(&targets, "none", secret);
    let trapped: Vec<(&str, Running)> = TRAPS
        .iter()
        .map(|trap| (*trap, start(&targets, trap, secret)))
        .collect();
    let pids: Vec<u32> = trapped
        .iter()
        .map(|(_, target)| target.pid())
        .chain([honest.pid()])
        .collect();
    let id = start_task(&agent, &endless(json!({ "pids": pids }), 499));
    let all: Vec<&Running> = trapped.iter().map(|(_, target)| target).collect();
    burn_all(&[&all[..], &[&honest]].concat(), Duration::from_secs(1));
    let task = stop_task(&agent, &id);
    assert_measured!(task["samples"].as_u64() > Some(500), "{task}");

    let asked = Instant::now();
    let folded = agent
        .api
        .folded(&id, &format!("&pid={}", honest.pid()))
        .unwrap();
    assert_measured!(
        folded.count(|stack| stack.has("jit_spin")) > 50,
        "an honest perf-map must be used: {}",
        folded.summary()
    );
    for (trap, target) in &trapped {
        let folded = agent
            .api
            .folded(&id, &format!("&pid={}", target.pid()))
            .unwrap();
        assert_measured!(folded.total() > 50, "{trap}: {}", folded.summary());
        let leaked = folded.count(|stack| stack.frames.iter().any(|frame| frame.contains(SECRET)));
        assert_eq!(
            leaked,
            0,
            "{trap} made the agent read a host file: {}",
            folded.summary()
        );
        // A perf-map that is too large is read in part; all others must not be read at all.
        if *trap != "sparse" {
            let named = folded.count(|stack| stack.has("jit_spin"));
            assert_eq!(
                named,
                0,
                "{trap}: this map must not be read: {}",
                folded.summary()
            );
        }
        // The program's own file is honest, so its functions are still named.
        let callers = folded.count(|stack| stack.has("call_jit") || stack.has("call_file"));
        assert_measured!(callers > 50, "{trap}: {}", folded.summary());
    }
    assert_measured!(
        asked.elapsed() < Duration::from_mins(1),
        "answers took {:?}",
        asked.elapsed()
    );
    let resident = agent.api.get_json("/api/v1/self").unwrap()["peak_rss_bytes"]
        .as_u64()
        .unwrap();
    assert!(
        resident < 300 << 20,
        "a trap made the agent grow to {resident} bytes"
    );
}
