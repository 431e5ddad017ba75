//! Off-CPU profiles of real Envoys under load.

use profiler_tests::{
    agent::Agent,
    assert_measured,
    folded::{Folded, FoldedStack},
};
use serde_json::{Value, json};

use crate::targets::{busy_mesh, finish_task, mesh_with_mtls, start_task, stop_load};

/// Share of what has a stack that reaches the start of the thread, in per mille.
fn complete_per_mille(folded: &Folded) -> u64 {
    let complete = folded.count(|stack| {
        let cut = |frame: &String| frame.starts_with("[stack ") || frame.starts_with("[no stack");
        !stack.frames.iter().any(cut)
    });
    complete * 1000 / folded.total().max(1)
}

#[test]
fn the_stacks_of_both_sidecars_are_complete_by_events_and_by_time() {
    let agent = Agent::start().unwrap();
    let (mut mesh, envoys) = busy_mesh(&mesh_with_mtls());
    let specification = json!({
        "kind": "off_cpu",
        "target": { "pids": envoys },
        "duration_s": 8,
    });
    let id = start_task(&agent, &specification);
    let task = finish_task(&agent, &id, 8);
    stop_load(&mut mesh);
    let busy = |value: &str| {
        let parameters = format!("&value={value}&idle=hide");
        agent.api.folded(&id, &parameters).unwrap()
    };
    let (counts, times) = (busy("count"), busy("duration"));
    let path = format!("/api/v1/tasks/{id}/waits");
    let idle = agent.api.get_json(&path).unwrap()["idle"].clone();
    let number = |name: &str| task["stacks"][name].as_u64().unwrap();
    let (samples, complete) = (number("samples"), number("complete"));
    println!(
        "{samples} switches: {}; losses {}",
        task["stacks"]["summary"], task["losses"]
    );
    println!(
        "not idle: {} switches, {} per mille complete; {} ms, {} per mille complete",
        counts.total(),
        complete_per_mille(&counts),
        times.total() / 1_000_000,
        complete_per_mille(&times)
    );
    println!("{}", idle["summary"]);
    // Under load the workers still sleep most of the time, and what holds them up stays.
    let rules = idle["rules"].as_array().unwrap();
    let worker = |rule: &&Value| rule["name"] == "Envoy worker in its event loop";
    assert!(rules.iter().any(|rule| worker(&rule)), "{idle}");
    let percent = idle["percent"].as_f64().unwrap();
    assert_measured!((30.0..100.0).contains(&percent), "{idle}");
    let idle_loop = |stack: &FoldedStack| {
        let runnable = |frame: &String| frame.contains("[runnable:");
        stack.has("do_epoll_wait") && !stack.frames.iter().any(runnable)
    };
    assert_eq!(counts.count(idle_loop), 0, "{}", counts.summary());
    assert_measured!(counts.total() > 100, "{}", counts.summary());
    assert_measured!(samples > 1000, "{task}");
    assert_measured!(complete * 1000 >= samples * 980, "{task}");
    for folded in [&counts, &times] {
        assert_measured!(complete_per_mille(folded) >= 980, "{}", folded.summary());
    }
}
