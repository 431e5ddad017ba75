//! Off-CPU profiles of real Envoys under load.

use profiler_tests::{
    agent::Agent,
    folded::{Folded, FoldedStack},
};
use serde_json::json;

use crate::targets::{busy_mesh, finish_task, mesh_with_mtls, start_task, stop_load};

/// An event loop with nothing to do.
fn is_idle(stack: &FoldedStack) -> bool {
    stack.has("do_epoll_wait")
        && !stack
            .frames
            .iter()
            .any(|frame| frame.contains("[runnable:"))
}

/// Share of what is not idle whose stack reaches the start of the thread, in per mille.
fn complete_per_mille(folded: &Folded) -> u64 {
    let whole = folded.count(|stack| !is_idle(stack));
    let complete = folded.count(|stack| {
        let cut = |frame: &String| frame.starts_with("[stack ") || frame.starts_with("[no stack");
        !is_idle(stack) && !stack.frames.iter().any(cut)
    });
    complete * 1000 / whole.max(1)
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
    let counts = agent.api.folded(&id, "&value=count").unwrap();
    let times = agent.api.folded(&id, "&value=duration").unwrap();
    let number = |name: &str| task["stacks"][name].as_u64().unwrap();
    let (samples, complete) = (number("samples"), number("complete"));
    println!(
        "{samples} switches: {}; losses {}",
        task["stacks"]["summary"], task["losses"]
    );
    println!(
        "not idle: {} switches, {} per mille complete; {} ms, {} per mille complete",
        counts.count(|stack| !is_idle(stack)),
        complete_per_mille(&counts),
        times.count(|stack| !is_idle(stack)) / 1_000_000,
        complete_per_mille(&times)
    );
    assert!(samples > 1000, "{task}");
    assert!(complete * 1000 >= samples * 980, "{task}");
    for folded in [&counts, &times] {
        assert!(complete_per_mille(folded) >= 980, "{}", folded.summary());
    }
}
