//! A wall clock that jumps by ten days while the agent works, and what does not follow it.

use std::{
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use profiler_tests::{
    agent::{Agent, ServeOptions},
    assert_measured,
    process::Running,
    wait::wait_for,
    wall_clock::WallClock,
};
use serde_json::{Value, json};

use crate::targets::{EXIT, START, Targets, finish_task, on_cpu, start_task};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;
const JUMP_S: i64 = 10 * DAY_S;
/// Length of the tasks that live through all jumps.
const LONG_S: u64 = 10;
/// Between two jumps.
const PAUSE: Duration = Duration::from_secs(1);
/// What a task may last longer: its last chunk, and a machine that does other things.
const LATE_S: f64 = 4.0;
const EDGES: &str = "/api/v1/network/edges";

/// An agent that removes results older than a day.
fn agent() -> Agent {
    let arguments = ["--retention-age=1d", "--profile=always", "--network=always"];
    Agent::start_with(ServeOptions::with_arguments(arguments)).unwrap()
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_nanos()).unwrap()
}

fn seconds(task: &Value) -> f64 {
    let at = |name: &str| task[name].as_i64().unwrap_or_else(|| panic!("{task:#}"));
    #[expect(clippy::cast_precision_loss, reason = "seconds of a test")]
    let seconds = (at("ended_at_ns") - at("started_at_ns")) as f64 / 1e9;
    seconds
}

/// A task of two seconds that begins while the clock is moved so; its id.
fn short_task(agent: &Agent, target: &Running, moved_by_s: i64) -> String {
    let id = start_task(agent, &on_cpu(json!({ "pids": [target.pid()] }), 2, 499));
    let task = finish_task(agent, &id, 2);
    let began = task["started_at_ns"].as_i64().unwrap() - moved_by_s * SECOND_NS;
    let late = now_ns() - began;
    assert!(
        (0..60 * SECOND_NS).contains(&late),
        "it began {late} ns before now: {task:#}"
    );
    id
}

/// A task's state is reported all the while; its progress never goes back and is that of the time that has passed.
fn look(agent: &Agent, id: &str, began: Instant, last: &mut f64) {
    let task = agent.api.task(id).unwrap();
    let progress = task["progress"].as_f64().unwrap();
    let passed = Duration::from_secs(LONG_S).as_secs_f64();
    let expected = (began.elapsed().as_secs_f64() / passed).min(1.0);
    assert!(progress >= *last, "{progress} after {last}");
    assert_measured!(
        (progress - expected).abs() < 0.3,
        "{progress}, and {expected} of the time has passed"
    );
    *last = progress;
    assert_eq!(agent.api.get("/readyz").unwrap().status, 200);
}

fn table_time(agent: &Agent) -> i64 {
    let table = agent.api.get_json(EDGES).unwrap();
    assert_eq!(table["state"], "running", "{}", agent.log());
    assert_measured!(
        table["age_ms"].as_u64() < Some(20_000),
        "{}",
        table["age_ms"]
    );
    table["window"]["to_ns"].as_i64().unwrap_or(0)
}

#[test]
fn a_wall_clock_that_jumps_takes_no_result_and_no_task_with_it() {
    let targets = Targets::new();
    let target = targets.busy("shares-clock");
    let mut agent = agent();
    let clock = WallClock::of(agent.pid()).unwrap();
    let before = short_task(&agent, &target, 0);
    wait_for("the collection of the node runs", START, || {
        let table = agent.api.get_json(EDGES).unwrap();
        (table["state"] == "running" && table["age_ms"].is_u64()).then_some(())
    })
    .unwrap();

    let pids = json!({ "pids": [target.pid()] });
    let network = json!({ "kind": "network", "target": { "all": true }, "duration_s": LONG_S });
    let edges = agent.api.create_task(&network).unwrap();
    let long = start_task(&agent, &on_cpu(pids, LONG_S, 99));
    let began = Instant::now();
    let (mut progress, mut table_ns) = (0.0, table_time(&agent));
    let mut shorts = vec![before];
    for moved_by_s in [JUMP_S, -JUMP_S] {
        clock.move_by(moved_by_s).unwrap();
        let until = Instant::now() + PAUSE;
        while Instant::now() < until {
            look(&agent, &long, began, &mut progress);
            let next_ns = table_time(&agent);
            assert!(
                (0..DAY_S * SECOND_NS).contains(&(next_ns - table_ns)),
                "the node's table goes from {table_ns} to {next_ns}"
            );
            assert_measured!(
                next_ns - table_ns < 20 * SECOND_NS,
                "the node's table goes from {table_ns} to {next_ns}"
            );
            table_ns = next_ns;
            thread::sleep(Duration::from_millis(100));
        }
        // Every task that ends has the age of all results looked at.
        shorts.push(short_task(&agent, &target, moved_by_s));
    }
    clock.move_by(0).unwrap();
    let limit = Duration::from_secs(LONG_S) + EXIT;
    for id in [&long, &edges] {
        let task = agent.api.wait_task(id, &["finished"], limit).unwrap();
        let off = seconds(&task) - Duration::from_secs(LONG_S).as_secs_f64();
        assert_measured!((-0.5..LATE_S).contains(&off), "{off} s: {task:#}");
        let notes = task["notes"].to_string();
        for said in ["set forward by 864000 s", "set back by 1728000 s"] {
            assert!(notes.contains(said), "no {said:?} in {notes}");
        }
    }
    let lasted = began.elapsed().as_secs_f64() - Duration::from_secs(LONG_S).as_secs_f64();
    assert_measured!((-1.0..2.0 * LATE_S).contains(&lasted), "{lasted}");

    // All results are there, and nothing in them lies elsewhere in time.
    for id in shorts.iter().chain([&long]) {
        assert_measured!(agent.api.folded(id, "").unwrap().total() > 100, "{id}");
    }
    let path = format!("/api/v1/tasks/{long}/timeline?bucket_ms=1000");
    let timeline = agent.api.get_json(&path).unwrap();
    let counts = timeline["counts"].as_array().unwrap();
    let whole = usize::try_from(LONG_S).unwrap();
    assert_measured!(
        (whole - 1..=whole + 2).contains(&counts.len()),
        "{timeline:#}"
    );
    assert_measured!(
        counts[1..whole - 1]
            .iter()
            .all(|count| count.as_u64() > Some(20)),
        "{timeline:#}"
    );
    let table = agent
        .api
        .get_json(&format!("/api/v1/tasks/{edges}/edges"))
        .unwrap();
    let window = |name: &str| table["window"][name].as_i64().unwrap();
    let counted = window("to_ns") - window("from_ns");
    let long_s = i64::try_from(LONG_S).unwrap();
    let counted_s = long_s - 2..long_s + 6;
    assert_measured!(counted_s.contains(&(counted / SECOND_NS)), "{counted}");

    // What is always on goes on, in its own time.
    let tasks = agent.api.get_json("/api/v1/tasks").unwrap();
    let items = tasks["items"].as_array().unwrap();
    assert_eq!(items.len(), shorts.len() + 3, "{tasks:#}");
    let always = items
        .iter()
        .find(|task| task["duration_s"].is_null())
        .unwrap();
    assert_eq!(always["state"], "running", "{always:#}");
    let notes = always["notes"].to_string();
    assert!(
        notes.contains("set forward by") && notes.contains("set back by"),
        "{notes}"
    );
    assert!(!agent.log().contains("panicked"), "{}", agent.log());

    // Nor is anything too old for the next agent.
    assert!(agent.stop().unwrap().success(), "{}", agent.log());
    let again = Agent::start_with(ServeOptions {
        data_dir: Some(agent.data_dir.clone()),
        ..ServeOptions::default()
    })
    .unwrap();
    for id in &shorts[..2] {
        assert_measured!(again.api.folded(id, "").unwrap().total() > 100, "{id}");
    }
}
