//! Stalls of programs that know how long they stayed away from epoll, and by what they were held.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::{self, Agent, ServeOptions},
    assert_measured,
    process::Running,
    wait::{wait_for, wait_until},
    workload::Workload,
};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::targets::{
    EXIT, START, Targets, busy_mesh, finish_task, mesh_with_mtls, start_task, stop_load,
};

const MS: u64 = 1_000_000;
/// What the kernel's clock may be ahead of the program's.
const NEAR_NS: u64 = 2 * MS;
/// What it may be behind: nothing but the clock's own steps.
const STEP_NS: u64 = 10_000;

/// What the program reports about mode `known`.
#[derive(Debug, Deserialize)]
struct Known {
    threads: Vec<KnownThread>,
    held: Vec<Held>,
}

#[derive(Debug, Deserialize)]
struct KnownThread {
    name: String,
    tid: u64,
    turns: u64,
    /// Turns of nearly 40 ms and longer.
    long_turns: u64,
}

/// A long turn of the thread `served`, in their order.
#[derive(Debug, Deserialize)]
struct Held {
    by: String,
    turn_ns: u64,
}

/// What the agent reports about a task.
#[derive(Debug, Deserialize)]
struct Answer {
    threshold_ms: u64,
    threads: Vec<Thread>,
    thread_count: u64,
    stalls: Vec<Stall>,
    stall_count: u64,
    lost: u64,
}

#[derive(Debug, Deserialize)]
struct Thread {
    pid: u64,
    tid: u64,
    name: String,
    loops: u64,
    busy_ns: u64,
    loop_ns: Times,
    stalls: u64,
    stalled_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Times {
    p50: Option<u64>,
    p99: Option<u64>,
    max: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Stall {
    pid: u64,
    tid: u64,
    name: String,
    start_ns: u64,
    duration_ns: u64,
    open: bool,
    kind: String,
    stack: Vec<String>,
    samples: u64,
}

impl Stall {
    fn has(&self, function: &str) -> bool {
        self.stack.iter().any(|name| name == function)
    }
}

fn specification(kind: &str, target: &Value, threshold_ms: u64) -> Value {
    json!({
        "kind": kind,
        "target": target,
        "duration_s": null,
        "event_loop": { "threshold_ms": threshold_ms },
    })
}

fn stop(agent: &Agent, id: &str) -> Value {
    agent.api.stop_task(id).unwrap();
    let task = agent.api.wait_task(id, &["cancelled"], EXIT);
    task.unwrap_or_else(|error| panic!("{error:#}\nagent log:\n{}", agent.log()))
}

fn answer(agent: &Agent, id: &str) -> Answer {
    let value = agent
        .api
        .get_json(&format!("/api/v1/tasks/{id}/event-loop"))
        .unwrap();
    serde_json::from_value(value).unwrap()
}

fn report<T: for<'a> Deserialize<'a>>(target: &mut Running) -> T {
    target
        .wait_for_line(START, |line| serde_json::from_str(line).ok())
        .unwrap()
}

/// Checks turns and stalls of the three threads against their own account.
fn check_counts(answer: &Answer, known: &Known, pid: u32) {
    assert_eq!(answer.lost, 0, "{answer:?}");
    for own in &known.threads {
        let found = answer.threads.iter().find(|thread| thread.tid == own.tid);
        let found = found.unwrap_or_else(|| panic!("no {own:?} in {answer:?}"));
        assert_eq!(found.pid, u64::from(pid));
        assert_eq!(found.name, own.name);
        assert_eq!(found.loops, own.turns, "{found:?}");
        let Times { p50, p99, max } = found.loop_ns;
        let (p50, p99, max) = (p50.unwrap(), p99.unwrap(), max.unwrap());
        assert!(p50 <= p99 && p99 <= max, "{found:?}");
        assert!(found.busy_ns >= found.stalled_ns, "{found:?}");
        if answer.threshold_ms == 40 {
            // A busy machine keeps threads away as well, and they know it.
            assert!(found.stalls <= own.long_turns, "{found:?}, {own:?}");
        }
    }
}

/// Checks the stalls of the held thread against its own clock; returns them by their start with what
/// each was held by.
fn held_stalls<'a>(answer: &'a Answer, known: &'a Known) -> Vec<(&'a Stall, &'a Held)> {
    let threshold_ns = answer.threshold_ms * MS;
    let tid = known.threads[0].tid;
    let mut stalls: Vec<&Stall> = answer.stalls.iter().filter(|one| one.tid == tid).collect();
    stalls.sort_by_key(|stall| stall.start_ns);
    let surely = |held: &&Held| held.turn_ns >= threshold_ns;
    let perhaps = |held: &&Held| held.turn_ns + NEAR_NS >= threshold_ns;
    let expected: Vec<&Held> = known.held.iter().filter(surely).collect();
    assert_measured!(
        expected.len() == known.held.iter().filter(perhaps).count(),
        "a turn is near the threshold: {known:?}"
    );
    assert_eq!(stalls.len(), expected.len(), "{stalls:?}, {known:?}");
    let mut late = 0;
    for (stall, held) in stalls.iter().zip(&expected) {
        assert!(!stall.open && stall.name == "served", "{stall:?}");
        assert!(
            stall.duration_ns + STEP_NS >= held.turn_ns,
            "{stall:?}, {held:?}"
        );
        late += usize::from(stall.duration_ns > held.turn_ns + NEAR_NS);
    }
    // On a busy machine a thread may lose its CPU between its clock and the call.
    assert_measured!(late <= 2, "{stalls:?}, {known:?}");
    stalls.into_iter().zip(expected).collect()
}

#[test]
fn many_threads_are_counted_also_when_they_have_ended() {
    #[derive(Deserialize)]
    struct Many {
        stalls: usize,
    }
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let mut target = targets.ready(Workload::EventLoop, "event-loop", &["many"]);
    let id = start_task(
        &agent,
        &specification("on_cpu", &json!({ "pids": [target.pid()] }), 40),
    );
    target.signal(Signal::USR1).unwrap();
    let Many { stalls } = report(&mut target);
    stop(&agent, &id);
    let answer = answer(&agent, &id);
    assert_eq!((answer.threads.len(), answer.lost), (stalls, 0));
    for thread in &answer.threads {
        assert_eq!(
            (thread.loops, thread.name.as_str()),
            (1, "once"),
            "{thread:?}"
        );
        assert!(thread.stalled_ns >= 50 * MS, "{thread:?}");
    }
    // A busy machine may keep a thread from its end as well.
    let closed = answer.stalls.iter().filter(|stall| !stall.open).count();
    assert_eq!(closed, stalls, "{} in all", answer.stall_count);
}

#[test]
fn without_the_probe_a_task_goes_on_and_says_so() {
    let agent =
        Agent::start_with(ServeOptions::with_arguments(["--deny-probe=event_loop"])).unwrap();
    let targets = Targets::new();
    let target = targets.busy("event-loop-denied");
    let pids = json!({ "pids": [target.pid()] });
    let mut wanted = specification("on_cpu", &pids, 40);
    wanted["duration_s"] = json!(1);
    let id = start_task(&agent, &wanted);
    let task = finish_task(&agent, &id, 1);
    let notes = task["notes"].to_string();
    assert!(
        notes.contains("event_loop is denied by --deny-probe; event loops are not watched"),
        "{notes}"
    );
    assert_measured!(task["samples"].as_u64().unwrap() > 0, "{task}");
    let found = answer(&agent, &id);
    assert_eq!((found.threshold_ms, found.thread_count), (40, 0));
    let probes = agent.api.get_json("/api/v1/probes").unwrap();
    let probes = probes["items"].as_array().unwrap();
    let probe = probes.iter().find(|probe| probe["name"] == "event_loop");
    assert_eq!(probe.unwrap()["state"], "denied");
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let agent = Agent::start().unwrap();
    let all = json!({ "all": true });
    for (kind, threshold_ms, field) in [
        ("on_cpu", 0, "event_loop.threshold_ms"),
        ("wall", 60_001, "event_loop.threshold_ms"),
        ("network", 20, "event_loop"),
    ] {
        let body = specification(kind, &all, threshold_ms).to_string();
        let refused = agent
            .api
            .send("POST", "/api/v1/tasks", Some(&body))
            .unwrap();
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json().unwrap()["field"], field);
    }
    let plain = json!({ "kind": "on_cpu", "target": all, "duration_s": 1 });
    let id = start_task(&agent, &plain);
    let path = format!("/api/v1/tasks/{id}/event-loop");
    let refused = agent.api.get(&path).unwrap();
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(refused.json().unwrap()["code"], "no_event_loop");
}

/// Entries to the three calls of epoll and returns from them.
const HOOKS: usize = 6;

/// Tracepoints that a process follows.
fn hooks(pid: u32) -> usize {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return 0;
    };
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .filter(|target| target == Path::new("anon_inode:[perf_event]"))
        .count()
}

/// Milliseconds between turns of event loops, which a thread without a CPU spends otherwise.
mod alone {
    use super::*;

    #[test]
    fn stalls_are_counted_measured_and_named_by_the_function_that_held_the_loop() {
        let agent = Agent::start().unwrap();
        let targets = Targets::new();
        let mut target = targets.ready(Workload::EventLoop, "event-loop", &["known"]);
        let pid = target.pid();
        let pids = json!({ "pids": [pid] });
        // So often that a thread which is held is seen, also where others want the CPU.
        let often = |mut wanted: Value| {
            wanted["frequency_hz"] = json!(499);
            wanted
        };
        let wall = start_task(&agent, &often(specification("wall", &pids, 40)));
        let long = start_task(&agent, &specification("off_cpu", &pids, 70));
        let named = json!({ "comm": "event-loop" });
        let ran = start_task(&agent, &often(specification("on_cpu", &named, 40)));
        target.signal(Signal::USR1).unwrap();
        let known: Known = report(&mut target);
        let tasks = [&wall, &long, &ran].map(|id| stop(&agent, id));
        for task in &tasks {
            assert!(!task["losses"].to_string().contains("loop_"), "{task}");
        }
        let [_, long_task, _] = &tasks;
        let [wall, long, ran] = [&wall, &long, &ran].map(|id| answer(&agent, id));

        check_counts(&wall, &known, pid);
        assert_eq!((wall.threshold_ms, wall.thread_count), (40, 3));
        let stalls = held_stalls(&wall, &known);
        assert_measured!(stalls.len() == 10, "{stalls:?}");
        for (stall, held) in stalls {
            assert_measured!(
                stall.has(&held.by) && stall.samples > 0,
                "{stall:?}, {held:?}"
            );
            // What is to run may have to wait for a CPU.
            if held.by == "hold_sleep" {
                assert_eq!(stall.kind, "off_cpu", "{stall:?}");
            }
            assert_eq!(stall.pid, u64::from(pid));
        }
        let found = wall.threads.iter().map(|thread| thread.stalls).sum::<u64>();
        assert_eq!(wall.stall_count, found);

        check_counts(&long, &known, pid);
        for (stall, held) in held_stalls(&long, &known) {
            // A task that sees no thread on the CPU can name what slept.
            if held.by == "hold_sleep" {
                let is_named = stall.has("hold_sleep") && stall.kind == "off_cpu";
                let text = || format!("{stall:?}, {held:?} of {known:?}, {long_task}");
                // What the task says that it lost may have been this wait.
                if long_task["losses"].as_array().is_some_and(Vec::is_empty) {
                    assert!(is_named, "{}", text());
                } else {
                    assert_measured!(is_named, "{}", text());
                }
            } else {
                assert_ne!(stall.kind, "on_cpu", "{stall:?}");
            }
        }

        check_counts(&ran, &known, pid);
        for (stall, held) in held_stalls(&ran, &known) {
            if held.by == "hold_cpu" {
                assert_measured!(stall.has("hold_cpu") && stall.samples > 0, "{stall:?}");
            } else {
                assert_eq!(stall.kind, "unknown", "{stall:?}");
            }
        }
    }

    #[test]
    fn a_thread_that_does_not_come_back_is_shown_while_it_is_away_and_at_the_end() {
        #[derive(Deserialize)]
        struct Stuck {
            since_ns: u64,
        }
        let agent = Agent::start().unwrap();
        let targets = Targets::new();
        let mut target = targets.ready(Workload::EventLoop, "event-loop", &["stuck"]);
        let id = start_task(
            &agent,
            &specification("wall", &json!({ "pids": [target.pid()] }), 100),
        );
        target.signal(Signal::USR1).unwrap();
        let Stuck { since_ns } = report(&mut target);
        wait_until("the stall is shown", START, || {
            answer(&agent, &id).stalls.iter().any(|stall| stall.open)
        })
        .unwrap();
        // Until a whole nap has ended inside.
        let end = Instant::now() + Duration::from_millis(1500);
        wait_until("the thread naps", EXIT, || Instant::now() >= end).unwrap();
        let task = stop(&agent, &id);
        let found = answer(&agent, &id);
        let [stall] = found.stalls.as_slice() else {
            panic!("{found:?}");
        };
        assert!(stall.open && stall.has("hold_sleep"), "{stall:?}");
        assert_eq!(
            (stall.name.as_str(), stall.kind.as_str()),
            ("stuck", "off_cpu")
        );
        assert_measured!(
            stall.start_ns.abs_diff(since_ns) <= NEAR_NS,
            "{stall:?}, {since_ns}"
        );
        let ended_ns = task["ended_at_ns"].as_u64().unwrap();
        let end_ns = stall.start_ns + stall.duration_ns;
        assert_measured!(
            end_ns <= ended_ns && end_ns + 3_000 * MS >= ended_ns,
            "{stall:?}, {task}"
        );
        assert_eq!((found.stall_count, found.threads[0].loops), (1, 0));
        assert_eq!(found.threads[0].loop_ns.max, None);
    }

    #[test]
    fn the_command_tells_the_longest_stalls() {
        let targets = Targets::new();
        let mut target = targets.ready(Workload::EventLoop, "event-loop", &["known"]);
        let output = targets.folder.join("profile.folded");
        let pid = target.pid().to_string();
        let mut command = agent::launch(
            &[
                "record",
                "--pid",
                &pid,
                "--kind",
                "wall",
                "--duration",
                "20s",
                "--format",
                "folded",
                "--event-loop-stalls",
                "40ms",
                "--output",
                output.to_str().unwrap(),
            ],
            "record",
            &targets.folder,
        )
        .unwrap();
        wait_until("the programs are attached", START, || {
            hooks(command.pid()) >= HOOKS
        })
        .unwrap();
        // They count a moment after they are attached.
        let soon = Instant::now() + Duration::from_millis(500);
        wait_until("the command records", EXIT, || Instant::now() >= soon).unwrap();
        target.signal(Signal::USR1).unwrap();
        let _known: Known = report(&mut target);
        command.interrupt(Signal::INT).unwrap();
        let said = command.errors();
        let count = said.lines().find(|line| line.starts_with("event loops: "));
        assert!(count.unwrap().contains("turns of 3 threads"), "{said}");
        let stalls: Vec<&str> = said
            .lines()
            .filter(|line| line.starts_with("stall: "))
            .collect();
        assert_measured!(stalls.len() == 10, "{said}");
        assert_measured!(
            stalls[0].contains("off_cpu") && stalls[0].contains("hold_sleep"),
            "{said}"
        );
    }

    #[test]
    fn loops_of_real_envoys_under_load_are_counted() {
        const SECONDS: u64 = 4;
        let agent = Agent::start().unwrap();
        let (mut mesh, envoys) = busy_mesh(&mesh_with_mtls());
        let mut wanted = specification("on_cpu", &json!({ "pids": envoys }), 20);
        wanted["duration_s"] = json!(SECONDS);
        let id = start_task(&agent, &wanted);
        finish_task(&agent, &id, SECONDS);
        let found = wait_for("the result is stored", EXIT, || {
            let found = answer(&agent, &id);
            (found.thread_count > 0).then_some(found)
        })
        .unwrap();
        assert_eq!(found.lost, 0, "{found:?}");
        for envoy in envoys {
            let workers: Vec<&Thread> = found
                .threads
                .iter()
                .filter(|thread| thread.pid == u64::from(envoy) && thread.name.starts_with("wrk:"))
                .collect();
            assert_eq!(workers.len(), 2, "{:?}", found.threads);
            let loops: u64 = workers.iter().map(|worker| worker.loops).sum();
            assert_measured!(loops > 100 * SECONDS, "{workers:?}");
            for worker in workers {
                assert_measured!(worker.busy_ns <= (SECONDS + 1) * 1000 * MS, "{worker:?}");
                assert_measured!(worker.loop_ns.p50.unwrap() < 20 * MS, "{worker:?}");
            }
        }
        stop_load(&mut mesh);
    }
}
