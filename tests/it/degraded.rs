//! What happens when part of the kernel side is missing or too expensive.

use std::{path::Path, time::Duration};

use profiler_tests::{
    agent::{self, Agent, ServeOptions},
    assert_measured,
    wait::wait_until,
    workload::Workload,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::targets::{
    EXIT, START, Targets, endless, finish_task, last_report, on_cpu, start_task, stop_task,
    wait_samples,
};

/// For an agent that is too expensive to notice it: it looks at itself every few seconds.
const LOWERED: Duration = Duration::from_mins(1);
/// `doctor` has every program verified.
const DOCTOR: Duration = Duration::from_mins(1);

fn denying(probes: &[impl AsRef<str>]) -> Agent {
    let arguments = probes
        .iter()
        .map(|probe| format!("--deny-probe={}", probe.as_ref()))
        .collect();
    Agent::start_with(ServeOptions {
        arguments,
        ..ServeOptions::default()
    })
    .unwrap()
}

/// The programs of one group of the agent's table, by `doctor`.
fn programs_of(group: &str) -> Vec<String> {
    let (_status, report, errors) = agent::run(&["doctor", "--json"], DOCTOR).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap_or_else(|_| panic!("{errors}"));
    let programs = report["programs"].as_array().unwrap().iter();
    let names: Vec<String> = programs
        .filter(|program| program["group"] == group)
        .map(|program| program["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(!names.is_empty(), "no program of {group} in {report}");
    names
}

fn probe_state(agent: &Agent, name: &str) -> Value {
    let probes = agent.api.get_json("/api/v1/probes").unwrap();
    let items = probes["items"].as_array().unwrap();
    let found = items.iter().find(|probe| probe["name"] == name);
    found
        .unwrap_or_else(|| panic!("no probe {name} in {probes}"))
        .clone()
}

fn notes(task: &Value) -> String {
    task["notes"].to_string()
}

#[test]
fn without_the_sampler_a_task_fails_and_says_why() {
    let agent = denying(&["on_cpu"]);
    let state = probe_state(&agent, "on_cpu");
    assert_eq!(state["state"], "denied");
    assert!(
        state["reason"].as_str().unwrap().contains("--deny-probe"),
        "{state}"
    );
    let target = json!({ "pids": [std::process::id()] });
    let id = agent.api.create_task(&on_cpu(target, 2, 99)).unwrap();
    let task = agent.api.wait_task(&id, &["failed"], START).unwrap();
    assert!(
        task["reason"]
            .as_str()
            .unwrap()
            .contains("on_cpu is denied by --deny-probe"),
        "{task}"
    );
}

/// What benches measure as the floor of a cost.
#[test]
fn programs_that_return_at_once_find_next_to_nothing_and_the_agent_says_so() {
    let agent = denying(&["work"]);
    let targets = Targets::new();
    let busy = targets.busy("floor");
    for kind in ["on_cpu", "wall", "off_cpu"] {
        let asked = json!({ "kind": kind, "target": { "pids": [busy.pid()] }, "duration_s": 1 });
        let id = start_task(&agent, &asked);
        let task = finish_task(&agent, &id, 1);
        // A pass over all threads finds the one that is there.
        assert!(task["samples"].as_u64().unwrap() <= 1, "{task}");
    }
    let log = agent.log();
    assert!(log.contains("--deny-probe work"), "{log}");
}

#[test]
fn kernel_code_has_the_same_names_from_the_kernel_and_from_its_table() {
    let targets = Targets::new();
    // Most of its time goes to reads and writes of a byte.
    let reader = targets
        .launch(Path::new("dd"), "reader")
        .args(["if=/dev/zero", "of=/dev/null", "bs=1"])
        .start()
        .unwrap();
    let asked = Agent::start().unwrap();
    let read = denying(&programs_of("kernel_names"));
    for (agent, from_table) in [(&asked, false), (&read, true)] {
        let id = start_task(agent, &on_cpu(json!({ "pids": [reader.pid()] }), 3, 499));
        let task = finish_task(agent, &id, 3);
        assert_eq!(
            notes(&task).contains("/proc/kallsyms"),
            from_table,
            "{task}"
        );
        let folded = agent.api.folded(&id, "").unwrap();
        for function in ["vfs_read", "vfs_write"] {
            let with = folded.count(|stack| stack.has(function));
            assert!(with > 0, "no {function}: {}", folded.summary());
        }
    }
}

#[test]
fn without_process_events_children_are_found_by_looking() {
    let agent = denying(&programs_of("process_events"));
    let targets = Targets::new();
    let mut parent = targets.shares(
        Workload::SharesC,
        "shares-noevent",
        &["--fork-on-usr1", "--seconds", "5"],
    );
    parent
        .wait_for_line(START, |line| (line == "waiting").then_some(()))
        .unwrap();
    let id = start_task(&agent, &on_cpu(json!({ "pids": [parent.pid()] }), 6, 499));
    parent.signal(Signal::USR1).unwrap();
    let task = finish_task(&agent, &id, 6);
    assert!(
        notes(&task).contains("children of targets are looked for in /proc"),
        "{task}"
    );
    parent.wait(EXIT).unwrap();
    let child = last_report(&parent);
    let folded = agent
        .api
        .folded(&id, &format!("&pid={}", child.pid))
        .unwrap();
    // It has run for some time before it was found; a seventh is what is asked for of a CPU of its own.
    let seen = folded.count(|stack| stack.has("hot_sixty"));
    let expected = child.functions["hot_sixty"] / 1_000_000 * 499 / 1000;
    assert_measured!(
        seen > 0 && seen * 7 > expected,
        "{seen} of {expected} samples: {}",
        folded.summary()
    );
    // The process list lives without events, too.
    let listed = agent.api.get_json("/api/v1/processes?limit=1000").unwrap();
    let own = std::process::id();
    let found = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .any(|process| process["pid"] == own);
    assert!(found, "{listed}");
}

#[test]
fn a_cpu_budget_lowers_the_rate_and_says_so() {
    let agent = Agent::start_with(ServeOptions::with_arguments(["--cpu-budget", "0.05"])).unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-budget");
    let id = start_task(&agent, &endless(json!({ "pids": [target.pid()] }), 4999));
    wait_until("the rate is lowered", LOWERED, || {
        agent.api.task(&id).unwrap()["effective_frequency_hz"].as_u64() < Some(4999)
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}", agent.api.task(&id).unwrap()));
    let task = stop_task(&agent, &id);
    let effective = task["effective_frequency_hz"].as_u64().unwrap();
    assert!(effective < 4999, "{task}");
    assert_eq!(task["frequency_hz"], 4999, "what was asked for is kept");
    assert!(notes(&task).contains("rate lowered from 4999 Hz"), "{task}");
    assert!(notes(&task).contains("CPU budget is 0.05 %"), "{task}");
    assert!(task["samples"].as_u64() > Some(0), "{task}");
}

#[test]
fn losses_and_cost_are_visible() {
    let agent = Agent::start_with(ServeOptions::with_arguments(["--bpf-stats"])).unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-cost");
    let id = start_task(&agent, &endless(json!({ "pids": [target.pid()] }), 999));
    let watches = json!({
        "kind": "network", "target": { "pids": [target.pid()] }, "duration_s": null,
    });
    let network = start_task(&agent, &watches);
    // The second program runs for whatever anyone on the machine says, as this question.
    let wanted = ["on_cpu", "network_send"];
    let cost = |own: &Value, name: &str| {
        let programs = own["bpf"]["programs"].as_array().unwrap();
        let program = programs.iter().find(|program| program["name"] == name)?;
        Some((
            program["run_count"].as_u64()?,
            program["run_time_ns"].as_u64()?,
        ))
    };
    let mut own = Value::Null;
    wait_until("the programs' cost is shown", START, || {
        own = agent.api.get_json("/api/v1/self").unwrap();
        let costs = wanted.map(|name| cost(&own, name));
        costs
            .into_iter()
            .all(|cost| cost.is_some_and(|(runs, ns)| runs > 0 && ns > 0))
    })
    .unwrap_or_else(|error| panic!("{error:#}: {own}"));
    assert_eq!(own["running_tasks"], 2);
    stop_task(&agent, &network);
    let ended = agent.api.get_json("/api/v1/self").unwrap();
    assert!(cost(&ended, wanted[1]) >= cost(&own, wanted[1]), "{ended}");
    wait_samples(&agent, &id, 1500);
    let task = stop_task(&agent, &id);
    assert!(task["losses"].is_array());

    let metrics = agent.api.get("/metrics").unwrap().text();
    let value = |name: &str| -> f64 {
        let line = metrics.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {metrics}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("profiler_agent_cpu_seconds_total") > 0.0);
    assert!(value("profiler_agent_resident_memory_bytes") > 1e6);
    assert!(value("profiler_agent_samples_total") > 1000.0);
    for kind in [
        "count_table_full",
        "ring_buffer_full",
        "stack_missing",
        "tick_missed",
    ] {
        assert!(value(&format!("profiler_agent_losses_total{{kind=\"{kind}\"}}")) >= 0.0);
    }
}
