//! Targets that use up the CPU quota of their cgroup.

use profiler_tests::{
    agent::Agent,
    cgroup::{Cgroup, cpu_hierarchy},
    wait::wait_until,
    workload::Workload,
};
use serde_json::json;

use crate::targets::{START, Targets, finish_task, start_task};

const SECONDS: u64 = 3;
/// So little that a busy thread uses it up on a loaded machine as well.
const QUOTA_US: u64 = 5_000;
const PERIOD_US: u64 = 100_000;

/// How often the kernel has throttled the cgroup since it was made.
fn throttled(cgroup: &Cgroup) -> u64 {
    let text = std::fs::read_to_string(cgroup.path().join("cpu.stat")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("nr_throttled "));
    line.unwrap_or_else(|| panic!("no quotas in this kernel: {text}"))
        .parse()
        .unwrap()
}

/// The notes of an off-CPU task about quotas.
fn quota_notes(agent: &Agent, pid: u32) -> Vec<String> {
    let specification = json!({
        "kind": "off_cpu",
        "target": { "pids": [pid] },
        "duration_s": SECONDS,
    });
    let id = start_task(agent, &specification);
    let task = finish_task(agent, &id, SECONDS);
    let notes = task["notes"].as_array().unwrap().iter();
    notes
        .filter_map(|note| note.as_str())
        .filter(|note| note.starts_with("CPU quota: "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_busy_program_with_a_quota_is_said_to_be_throttled_as_often_as_the_kernel_says() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let cgroup = Cgroup::create(&cpu_hierarchy(), "throttled", "app").unwrap();
    cgroup.limit_cpu(QUOTA_US, PERIOD_US).unwrap();
    let program = Workload::SharesC.build("shares-quota").unwrap();
    let launch = targets.launch(&program, "shares-quota");
    let target = launch.cgroup(cgroup.path()).start().unwrap();
    wait_until("the program is throttled", START, || throttled(&cgroup) > 0).unwrap();
    let before = throttled(&cgroup);
    let notes = quota_notes(&agent, target.pid());
    let after = throttled(&cgroup);
    let [note] = notes.as_slice() else {
        panic!("one cgroup has a quota: {notes:?}");
    };
    let numbers: Vec<u64> = note
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [times, periods, milliseconds, quota, period] = numbers[..] else {
        panic!("{note}");
    };
    // A busy thread is stopped in nearly all of the ten periods of a second, unless others leave it
    // less than its quota. The kernel counts some more while the task starts and ends.
    let kernel = after - before;
    assert!(
        times <= periods && times <= kernel,
        "{note}, {kernel} in all"
    );
    assert!(times * 3 + 3 >= kernel, "{note}, {kernel} in all");
    assert!(times < 10 || milliseconds >= times, "{note}");
    assert_eq!((quota, period), (QUOTA_US / 1000, PERIOD_US / 1000));
    assert!(note.contains(&cgroup.inside()), "{note}");
}

#[test]
fn without_a_quota_nothing_is_said() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-free");
    assert_eq!(quota_notes(&agent, target.pid()), Vec::<String>::new());
}
