//! Threads that sleep already when an off-CPU task begins.

use std::{
    fs,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::Agent,
    assert_measured,
    folded::{Folded, FoldedStack},
    mesh::{Mesh, MeshOptions},
    process::Running,
    wait::wait_until,
    workload::Workload,
};
use serde_json::{Value, json};

use crate::targets::{EXIT, START, Targets, finish_task, start_task, stop_task};

const SECONDS: u64 = 4;

/// Starts the program and waits until this many of its threads sleep in `function` of the kernel.
fn asleep(targets: &Targets, arguments: &[&str], threads: usize, function: &str) -> Running {
    let target = targets.ready(Workload::Asleep, "asleep", arguments);
    let pid = target.pid();
    wait_until("the threads sleep", START, || {
        sleeping(pid, function) == threads
    })
    .unwrap();
    target
}

/// Threads of the process whose kernel stack has the function.
fn sleeping(pid: u32, function: &str) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let stacks =
        tasks.map(|task| fs::read_to_string(task.path().join("stack")).unwrap_or_default());
    stacks.filter(|stack| stack.contains(function)).count()
}

fn record(agent: &Agent, pids: &[u32]) -> (String, Value) {
    let specification = json!({
        "kind": "off_cpu",
        "target": { "pids": pids },
        "duration_s": SECONDS,
    });
    let id = start_task(agent, &specification);
    let task = finish_task(agent, &id, SECONDS);
    (id, task)
}

/// The tids of a result by the names of their threads.
fn tid_of(agent: &Agent, id: &str, name: &str) -> u64 {
    let path = format!("/api/v1/tasks/{id}/threads");
    let threads = agent.api.get_json(&path).unwrap();
    let items = threads["items"].as_array().unwrap();
    let found = items.iter().find(|thread| thread["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {threads}"))["tid"]
        .as_u64()
        .unwrap()
}

/// Whether the functions are on the stack in this order, from the root on.
fn in_order(stack: &FoldedStack, functions: &[&str]) -> bool {
    let mut frames = stack.frames.iter();
    functions
        .iter()
        .all(|function| frames.any(|frame| frame.contains(function)))
}

#[expect(clippy::cast_precision_loss, reason = "all stay far below 2^52")]
fn assert_near(seen_ns: u64, truth_ns: u64, percent: f64, what: &str) {
    let allowed = truth_ns as f64 * percent / 100.0;
    assert_measured!(
        (seen_ns as f64 - truth_ns as f64).abs() <= allowed,
        "{what}: {seen_ns} ns where {truth_ns} were expected (within {percent} %)"
    );
}

/// Time that the task has measured.
fn window_ns(task: &Value) -> u64 {
    task["ended_at_ns"].as_u64().unwrap() - task["started_at_ns"].as_u64().unwrap()
}

#[test]
fn a_deadlock_and_a_nap_from_before_are_seen_with_their_stacks_from_the_start() {
    let agent = Agent::start().unwrap();
    // The nap goes on while the deadlock is looked at.
    let targets = Targets::new();
    let napping = Napping::start(&agent, &targets);
    check_deadlock(&agent);
    napping.check(&agent);
}

fn check_deadlock(agent: &Agent) {
    let targets = Targets::new();
    let target = asleep(&targets, &["deadlock"], 2, "futex_wait");
    let (id, task) = record(agent, &[target.pid()]);
    for name in ["left", "right"] {
        let tid = tid_of(agent, &id, name);
        let folded = agent.api.folded(&id, &format!("&tid={tid}")).unwrap();
        let counts = agent
            .api
            .folded(&id, &format!("&tid={tid}&value=count&idle=hide"))
            .unwrap();
        assert_eq!(counts.total(), 1, "{name}: {}", counts.summary());
        let whole = [
            "start_thread",
            "embrace",
            "take_first",
            "take_second",
            "futex_wait",
        ];
        assert!(in_order(&folded.stacks[0], &whole), "{:?}", folded.stacks);
        assert_eq!(folded.stacks.len(), 1, "{}", folded.summary());
        // The task ends some time after its window: the result is put together in between.
        let window = SECONDS * 980_000_000..=window_ns(&task);
        assert_measured!(window.contains(&folded.total()), "{name}: {task}");
    }
    let main = agent
        .api
        .folded(&id, &format!("&tid={}", target.pid()))
        .unwrap();
    let left = tid_of(agent, &id, "left");
    let left = agent.api.folded(&id, &format!("&tid={left}")).unwrap();
    assert_near(main.total(), left.total(), 2.0, "all slept for the window");
    assert!(main.stacks[0].has("main"), "{}", main.summary());
    let stacks = &task["stacks"];
    assert_eq!(stacks["complete"], stacks["samples"], "{task}");
}

/// A program that naps since before its task began.
struct Napping {
    target: Running,
    id: String,
}

impl Napping {
    fn start(agent: &Agent, targets: &Targets) -> Self {
        // Long enough to begin before the task and to end inside of it.
        let target = asleep(targets, &["nap", "12000"], 1, "hrtimer_nanosleep");
        let specification = json!({
            "kind": "off_cpu",
            "target": { "pids": [target.pid()] },
            "duration_s": null,
        });
        let id = start_task(agent, &specification);
        Self { target, id }
    }

    /// It is counted from the start of the task until it ends.
    fn check(mut self, agent: &Agent) {
        let woken_ns: u64 = self
            .target
            .wait_for_line(START, |line| line.parse().ok())
            .unwrap();
        let task = stop_task(agent, &self.id);
        let tid = tid_of(agent, &self.id, "nap");
        let folded = agent
            .api
            .folded(&self.id, &format!("&tid={tid}&state=interruptible"))
            .unwrap();
        let nap = folded
            .count(|stack| in_order(stack, &["start_thread", "nap_long", "hrtimer_nanosleep"]));
        let truth = woken_ns - task["started_at_ns"].as_u64().unwrap();
        assert_measured!(truth > 500_000_000, "the nap ended too early: {truth} ns");
        println!("{}", folded.summary());
        assert_near(nap, truth, 4.0, "the nap");
    }
}

#[test]
fn idle_servers_are_seen_without_an_event() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let (master, _socket) = targets.nginx(1);
    let mut worker = None;
    wait_until("the worker is idle", START, || {
        let pid = master.pid();
        let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        worker = text
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok());
        worker.is_some_and(|pid| sleeping(pid, "do_epoll_wait") == 1)
    })
    .unwrap();
    let (id, _task) = record(&agent, &[master.pid(), worker.unwrap()]);
    let folded = agent.api.folded(&id, "").unwrap();
    let whole =
        |function: &str| folded.count(|stack| in_order(stack, &["_start", "main", function]));
    let most = SECONDS * 1_000_000_000 * 9 / 10;
    for function in ["do_epoll_wait", "sigsuspend"] {
        assert_measured!(whole(function) > most, "{function}: {}", folded.summary());
    }
    let path = format!("/api/v1/tasks/{id}/waits");
    let idle = &agent.api.get_json(&path).unwrap()["idle"];
    assert_measured!(idle["percent"].as_f64().unwrap() > 95.0, "{idle}");
}

#[test]
fn envoys_without_traffic_are_whole() {
    let agent = Agent::start().unwrap();
    let options = MeshOptions {
        workers: 2,
        ..MeshOptions::default()
    };
    let mesh = Mesh::up(&options).unwrap();
    let settled = Instant::now() + Duration::from_secs(2);
    wait_until("Envoy is quiet", EXIT, || Instant::now() >= settled).unwrap();
    let envoy = mesh.report().client_envoy_pid;
    let (id, task) = record(&agent, &[envoy]);
    let folded: Folded = agent.api.folded(&id, "").unwrap();
    let threads = fs::read_dir(format!("/proc/{envoy}/task")).unwrap().count() as u64;
    // Every thread sleeps nearly all the time, and none is missing.
    assert_near(
        folded.total() / threads,
        SECONDS * 1_000_000_000,
        10.0,
        "a thread of Envoy",
    );
    let number = |name: &str| task["stacks"][name].as_u64().unwrap();
    assert_measured!(
        number("complete") * 1000 >= number("samples") * 980,
        "{task}"
    );
}

#[test]
fn without_the_pass_the_task_says_so() {
    let agent = Agent::start_with(profiler_tests::agent::ServeOptions::with_arguments([
        "--deny-probe",
        "off_cpu_asleep",
    ]))
    .unwrap();
    let targets = Targets::new();
    let target = asleep(&targets, &["deadlock"], 2, "futex_wait");
    let (_id, task) = record(&agent, &[target.pid()]);
    let notes = task["notes"].to_string();
    assert!(notes.contains("off_cpu_asleep is denied"), "{task}");
}
