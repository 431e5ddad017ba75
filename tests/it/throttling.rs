//! Targets that use up the CPU quota of their cgroup.

use profiler_tests::{
    agent::Agent,
    assert_measured,
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

fn start(agent: &Agent, pid: u32) -> String {
    let specification = json!({
        "kind": "off_cpu",
        "target": { "pids": [pid] },
        "duration_s": SECONDS,
    });
    start_task(agent, &specification)
}

/// The notes of an off-CPU task about quotas, at its end.
fn quota_notes(agent: &Agent, id: &str) -> Vec<String> {
    let task = finish_task(agent, id, SECONDS);
    let notes = task["notes"].as_array().unwrap().iter();
    notes
        .filter_map(|note| note.as_str())
        .filter(|note| note.starts_with("CPU quota: "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn throttling_is_said_as_often_as_the_kernel_says_and_only_where_there_is_a_quota() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let free = targets.busy("shares-free");
    let cgroup = Cgroup::create(&cpu_hierarchy(), "throttled", "app").unwrap();
    cgroup.limit_cpu(QUOTA_US, PERIOD_US).unwrap();
    let program = Workload::SharesC.build("shares-quota").unwrap();
    let launch = targets.launch(&program, "shares-quota");
    let target = launch.cgroup(cgroup.path()).start().unwrap();
    wait_until("the program is throttled", START, || throttled(&cgroup) > 0).unwrap();
    let without = start(&agent, free.pid());
    let before = throttled(&cgroup);
    let with = start(&agent, target.pid());
    let begun = throttled(&cgroup);
    let notes = quota_notes(&agent, &with);
    let after = throttled(&cgroup);
    assert_eq!(quota_notes(&agent, &without), Vec::<String>::new());
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
    // The task begins somewhere in between: a slow start must count neither against it nor for it.
    let (most, least) = (after - before, after - begun);
    assert!(times <= periods && times <= most, "{note}, {most} in all");
    // A busy thread is stopped in nearly all of the ten periods of a second, unless others leave it
    // less than its quota. The kernel counts some more while the task ends.
    assert_measured!(times * 3 + 3 >= least, "{note}, {least} in all");
    assert!(times < 10 || milliseconds >= times, "{note}");
    assert_eq!((quota, period), (QUOTA_US / 1000, PERIOD_US / 1000));
    assert!(note.contains(&cgroup.inside()), "{note}");
}
