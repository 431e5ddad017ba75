//! Who had the CPU while threads waited for one, against the kernel's own account of the threads.

use std::{fs, path::Path, time::Duration};

use profiler_tests::{
    agent::{self, Agent},
    assert_measured,
    process::Running,
    wait::wait_until,
    workload::{Workload, process_cpu_ns},
};
use rustix::{
    process::Signal,
    thread::{CpuSet, sched_getaffinity},
};
use serde_json::{Value, json};

use crate::targets::{EXIT, START, Targets, start_task};

/// CPU time of the neighbour after which it is stopped.
const ENOUGH_NS: u64 = 1_500_000_000;
const LIMIT: Duration = Duration::from_secs(90);
/// Of what the kernel counted: the neighbour's first steps are on other CPUs.
const PERCENT: f64 = 5.0;
/// Part of the time of which must be known who had the CPU.
const KNOWN: f64 = 0.9;

/// A CPU that this process may use.
pub(crate) fn some_cpu() -> String {
    let allowed = sched_getaffinity(None).unwrap();
    let cpu = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu));
    cpu.expect("a CPU to run on").to_string()
}

/// A program that runs on this CPU alone, with this niceness.
fn pinned(
    targets: &Targets,
    cpu: &str,
    nice: &str,
    workload: Workload,
    name: &str,
    arguments: &[&str],
) -> Running {
    let program = workload.build(name).unwrap();
    targets
        .launch(Path::new("nice"), name)
        .args(["-n", nice, "taskset", "-c", cpu])
        .args([&program])
        .args(arguments)
        .start()
        .unwrap()
}

/// Nanoseconds that the threads of a process were ready to run and did not.
fn run_delay_ns(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |text: String| text.split_whitespace().nth(1)?.parse::<u64>().ok();
    threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok())
        .filter_map(of)
        .sum()
}

fn off_cpu(agent: &Agent, pid: u32) -> String {
    let specification = json!({
        "kind": "off_cpu",
        "target": { "pids": [pid] },
        "duration_s": null,
    });
    start_task(agent, &specification)
}

/// Ends the task; who had the CPU, as the API has it. Never more than the time of the waits for a CPU.
fn contention(agent: &Agent, id: &str) -> Value {
    agent.api.stop_task(id).unwrap();
    agent.api.wait_task(id, &["cancelled"], EXIT).unwrap();
    let path = format!("/api/v1/tasks/{id}/waits");
    let waits = agent.api.get_json(&path).unwrap();
    let states = waits["states"].as_array().unwrap();
    let runnable = states
        .iter()
        .filter(|state| state["name"] == "preempted" || state["name"] == "woken");
    let runnable_ns: f64 = runnable.map(|state| number(&state["total_ns"])).sum();
    let contention = &waits["contention"];
    assert!(number(&contention["known_ns"]) <= runnable_ns, "{waits:#}");
    assert!(
        (number(&contention["waited_ns"]) - runnable_ns).abs() < 1.0,
        "{waits:#}"
    );
    contention.clone()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[track_caller]
#[expect(clippy::cast_precision_loss, reason = "all stay far below 2^52")]
fn near(seen: f64, truth_ns: u64, what: &str) {
    let truth = truth_ns as f64;
    assert_measured!(
        (seen - truth).abs() <= truth * PERCENT / 100.0,
        "{what}: {seen} ns where the kernel counted {truth}"
    );
}

/// The time of the holder with this pid.
#[track_caller]
fn held_by(contention: &Value, pid: u32) -> f64 {
    let holders = contention["holders"].as_array().unwrap();
    let found = holders.iter().find(|holder| holder["pid"] == pid);
    assert_measured!(found.is_some(), "{pid} is not in {contention:#}");
    found.map_or(0.0, |holder| number(&holder["ns"]))
}

#[track_caller]
fn assert_known(contention: &Value) {
    let waited = number(&contention["waited_ns"]);
    let known = number(&contention["known_ns"]);
    assert_measured!(known >= waited * KNOWN, "{contention:#}");
    let holders = contention["holders"].as_array().unwrap();
    let sum: f64 = holders.iter().map(|holder| number(&holder["ns"])).sum();
    assert!((sum - known).abs() < 1.0, "{contention:#}");
}

/// One that is always ready has waited for just as long as its neighbour has run.
#[test]
fn a_neighbour_that_spins_is_put_down_by_its_own_cpu_time() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let cpu = some_cpu();
    let target = pinned(&targets, &cpu, "0", Workload::SharesC, "wanted", &[]);
    let id = off_cpu(&agent, target.pid());
    let before_ns = run_delay_ns(target.pid());
    let neighbour = pinned(&targets, &cpu, "0", Workload::SharesC, "neighbour", &[]);
    let pid = neighbour.pid();
    wait_until("the neighbour uses the CPU", LIMIT, || {
        process_cpu_ns(pid).unwrap() >= ENOUGH_NS
    })
    .unwrap();
    neighbour.signal(Signal::STOP).unwrap();
    wait_until("the neighbour is stopped", START, || {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "))
    })
    .unwrap();
    let held_ns = process_cpu_ns(pid).unwrap();
    let waited_ns = run_delay_ns(target.pid()) - before_ns;
    let found = contention(&agent, &id);
    near(held_by(&found, pid), held_ns, "CPU time of the neighbour");
    near(number(&found["waited_ns"]), waited_ns, "waits for a CPU");
    assert_known(&found);
    let mut holders = found["holders"].as_array().unwrap().iter();
    let holder = holders.find(|holder| holder["pid"] == pid).unwrap();
    assert_eq!(
        (&holder["kind"], &holder["title"]),
        (&json!("process"), &json!("neighbour")),
        "{found:#}"
    );
}

/// It is woken and does not get its CPU back at once.
#[test]
fn a_thread_that_was_woken_waits_for_who_runs() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let cpu = some_cpu();
    let mut target = pinned(&targets, &cpu, "19", Workload::Waits, "polite", &["nap"]);
    target
        .wait_for_line(START, |line| (line == "ready").then_some(()))
        .unwrap();
    let neighbour = pinned(&targets, &cpu, "0", Workload::SharesC, "neighbour", &[]);
    let id = off_cpu(&agent, target.pid());
    let before_ns = run_delay_ns(target.pid());
    target.signal(Signal::USR1).unwrap();
    // What the kernel counts of a thread goes with it.
    let mut waited_ns = 0;
    wait_until("it has napped", LIMIT, || {
        waited_ns = waited_ns.max(run_delay_ns(target.pid()).saturating_sub(before_ns));
        target.output().lines().any(|line| line.starts_with('{'))
    })
    .unwrap();
    let found = contention(&agent, &id);
    assert_measured!(
        number(&found["waited_ns"]) * 1.05 >= number(&json!(waited_ns)),
        "{found:#}"
    );
    assert_known(&found);
    let held = held_by(&found, neighbour.pid());
    assert_measured!(held >= KNOWN * number(&found["known_ns"]), "{found:#}");
}

/// More threads than CPUs, of one program.
#[test]
fn threads_of_one_process_take_the_cpu_from_each_other() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let mut target = targets.ready(Workload::Waits, "crowd", &["starve"]);
    let id = off_cpu(&agent, target.pid());
    target.signal(Signal::USR1).unwrap();
    target
        .wait_for_line(START, |line| line.starts_with('{').then_some(()))
        .unwrap();
    let found = contention(&agent, &id);
    assert_known(&found);
    let holders = found["holders"].as_array().unwrap();
    let own = holders
        .iter()
        .find(|holder| holder["kind"] == "same_process");
    let own = own.unwrap_or_else(|| panic!("{found:#}"));
    assert_eq!(own["pid"], Value::Null, "{found:#}");
    // Beside other tests others have it as well.
    assert_measured!(number(&own["share_percent"]) >= 40.0, "{found:#}");
}

/// `record` knows a neighbour that began after it.
#[test]
fn the_command_names_who_had_the_cpu() {
    let targets = Targets::new();
    let cpu = some_cpu();
    let target = pinned(&targets, &cpu, "0", Workload::SharesC, "wanted", &[]);
    let pid = format!("--pid={}", target.pid());
    let output = targets.folder.join("waits.folded");
    let arguments = [
        "record",
        "--kind=off-cpu",
        &pid,
        "--duration=4s",
        "--format=folded",
    ];
    let output = format!("--output={}", output.display());
    let (status, _, errors) = std::thread::scope(|scope| {
        let recording = scope.spawn(|| {
            let arguments: Vec<&str> = arguments.into_iter().chain([output.as_str()]).collect();
            agent::run(&arguments, START + EXIT).unwrap()
        });
        std::thread::sleep(Duration::from_secs(1));
        let _neighbour = pinned(&targets, &cpu, "0", Workload::SharesC, "neighbour", &[]);
        recording.join().unwrap()
    });
    assert_eq!(status.code(), Some(0), "{errors}");
    let line = errors.lines().find(|line| line.contains("for a CPU"));
    assert_measured!(
        line.is_some_and(|line| line.contains("neighbour")),
        "{errors}"
    );
}
