//! Network tasks and what tests read of their edges.

use profiler_tests::{agent::Agent, wait::wait_for, workload::Workload};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::targets::{EXIT, START, Targets};

/// Longest that a task of these tests runs; each is stopped when its work is done.
pub(crate) const LONGEST_S: u64 = 300;

/// The metric that says how long data waited until it was read.
pub(crate) const WAIT: &str = "receive_wait";

/// A running network task.
pub(crate) struct Watch<'a> {
    agent: &'a Agent,
    id: String,
}

impl<'a> Watch<'a> {
    /// Starts a task and returns when its programs are attached.
    pub(crate) fn start(agent: &'a Agent, target: &Value) -> Self {
        let specification = json!({ "kind": "network", "target": target, "duration_s": LONGEST_S });
        let id = agent.api.create_task(&specification).unwrap();
        let started = wait_for("the task has started", START, || {
            let task = agent.api.task(&id).unwrap();
            assert!(task["reason"].is_null(), "{task}");
            task["started_at_ns"].as_u64()
        });
        started.unwrap_or_else(|error| panic!("{error:#}\nagent log:\n{}", agent.log()));
        Self { agent, id }
    }

    pub(crate) fn own(agent: &'a Agent) -> Self {
        Self::start(agent, &json!({ "pids": [std::process::id()] }))
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The result so far.
    pub(crate) fn now(&self) -> Value {
        let path = format!("/api/v1/tasks/{}/edges", self.id);
        self.agent.api.get_json(&path).unwrap()
    }

    /// Ends the task; its whole result.
    pub(crate) fn finish(self) -> Value {
        self.agent.api.stop_task(&self.id).unwrap();
        self.agent
            .api
            .wait_task(&self.id, &["cancelled"], EXIT)
            .unwrap();
        self.now()
    }
}

/// Runs a program that does its work between two signals; what was seen of it, and what it printed.
pub(crate) fn watch_program(program: Workload, name: &str) -> (Value, String) {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let mut program = targets.ready(program, name, &[]);
    let watch = Watch::start(&agent, &json!({ "pids": [program.pid()] }));
    program.signal(Signal::USR1).unwrap();
    program
        .wait_for_line(START, |line| (line == "done").then_some(()))
        .unwrap();
    let table = watch.finish();
    program.signal(Signal::USR1).unwrap();
    (table, program.finish(EXIT).unwrap())
}

/// The edges that fit.
pub(crate) fn edges_that(table: &Value, fits: impl Fn(&Value) -> bool) -> Vec<&Value> {
    let edges = table["edges"].as_array().unwrap();
    edges.iter().filter(|edge| fits(edge)).collect()
}

/// The only edge to a port.
pub(crate) fn edge_to(table: &Value, port: u16) -> &Value {
    match edges_that(table, |edge| edge["server"]["port"] == port).as_slice() {
        [only] => only,
        [] => panic!("no edge to {port}: {table:#}"),
        _ => panic!("several edges to {port}: {table:#}"),
    }
}

/// The only edge to a Unix socket.
pub(crate) fn edge_to_name<'a>(table: &'a Value, name: &str) -> &'a Value {
    match edges_that(table, |edge| edge["server"]["address"] == name).as_slice() {
        [only] => only,
        [] => panic!("no edge to {name}: {table:#}"),
        _ => panic!("several edges to {name}: {table:#}"),
    }
}

pub(crate) fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Calls and bytes.
pub(crate) fn transfer(side: &Value, what: &str) -> (u64, u64) {
    let transfer = &side[what];
    (number(&transfer["count"]), number(&transfer["bytes"]))
}

/// Checks the ends: both are this process.
pub(crate) fn assert_own_ends(edge: &Value) {
    for end in ["client", "server"] {
        assert_eq!(edge[end]["pid"], std::process::id(), "{edge:#}");
    }
}
