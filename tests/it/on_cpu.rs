//! On-CPU profiles against programs that know where their time went.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use profiler_tests::{
    agent::{Agent, launch},
    assert_measured,
    folded::{Folded, is_function},
    process::Running,
    wait::wait_until,
    workload::{HOT_FUNCTIONS, ThreadReport, Workload},
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::targets::{
    CpuHistory, EXIT, START, Targets, assert_sample_count, assert_share, assert_shares, burn,
    endless, finish_task, finish_watched, last_report, on_cpu, report_of, start_task, stop_task,
    wait_until_sampling,
};

/// How long a task with a busy target saw samples, in nanoseconds.
fn sampled_ns(agent: &Agent, id: &str) -> u64 {
    let path = format!("/api/v1/tasks/{id}/timeline?bucket_ms=100");
    let timeline = agent.api.get_json(&path).unwrap();
    let counts = timeline["counts"].as_array().unwrap();
    let busy = |count: &Value| *count != 0;
    let first = counts.iter().position(busy).unwrap();
    let last = counts.iter().rposition(busy).unwrap();
    let sampled_ms = (last + 1 - first) as u64 * 100;
    assert_measured!(
        (9_700..=12_000).contains(&sampled_ms),
        "sampled for {sampled_ms} ms: {timeline}"
    );
    sampled_ms * 1_000_000
}

#[test]
fn record_shares_of_c_and_rust_at_999_and_99_hz() {
    let targets = Targets::new();
    let c = targets.busy("shares-c");
    let rust = targets.shares(Workload::SharesRust, "shares-rust", &[]);
    let pids = [c.pid().to_string(), rust.pid().to_string()];
    let record = |hz: &str| {
        let label = format!("record-{hz}");
        let output = targets.folder.join(format!("{label}.folded"));
        let path = output.to_str().unwrap();
        let arguments = [
            "record",
            "--pid",
            &pids[0],
            "--pid",
            &pids[1],
            "--frequency",
            hz,
            "--duration",
            "10s",
            "--format",
            "folded",
            "--output",
            path,
        ];
        (
            launch(&arguments, &label, &targets.folder).unwrap(),
            output.clone(),
        )
    };
    let mut finished = Vec::new();
    for ((mut run, output), points) in [(record("999"), 2.0), (record("99"), 7.0)] {
        let status = run.wait(Duration::from_secs(10) + EXIT).unwrap();
        assert!(status.success(), "{status}: {}", run.errors());
        finished.push((std::fs::read_to_string(output).unwrap(), points));
    }
    let (c, rust) = (report_of(c), report_of(rust));
    for (text, points) in finished {
        let all = Folded::parse(&text).unwrap();
        for (comm, report) in [("shares-c", &c), ("shares-rust", &rust)] {
            let own = all
                .stacks
                .iter()
                .filter(|stack| stack.frames[0] == comm)
                .cloned();
            let own = Folded {
                stacks: own.collect(),
            };
            assert_shares(&own, &report.shares(), points, comm);
        }
    }
}

#[test]
fn a_recording_ends_with_its_target_and_says_when() {
    let targets = Targets::new();
    let mut target = targets.busy("shares-ending");
    burn(&target, Duration::from_millis(200));
    let output = targets.folder.join("ending.folded");
    let pid = format!("--pid={}", target.pid());
    let output = format!("--output={}", output.display());
    let arguments = [
        "record",
        &pid,
        &output,
        "--duration=300s",
        "--format=folded",
    ];
    let mut record = launch(&arguments, "record-ending", &targets.folder).unwrap();
    let threads = format!("/proc/{}/task", record.pid());
    wait_until("it records", START, || {
        let threads = std::fs::read_dir(&threads).into_iter().flatten().flatten();
        let mut names = threads.map(|thread| std::fs::read_to_string(thread.path().join("comm")));
        names.any(|name| name.is_ok_and(|name| name.starts_with("samples-")))
    })
    .unwrap();
    burn(&target, Duration::from_millis(500));
    target.signal(Signal::KILL).unwrap();
    let status = record.wait(EXIT).unwrap();
    target.wait(EXIT).unwrap();
    let said = record.errors();
    assert!(status.success(), "{status}: {said}");
    let note = said
        .lines()
        .find_map(|line| line.strip_prefix("note: every process of the target has ended, "));
    let after = note.and_then(|rest| rest.strip_suffix(" s after the start"));
    let after: f64 = after
        .and_then(|after| after.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    assert_measured!((0.3..=5.0).contains(&after), "{said}");
    assert!(!said.contains("stopped early"), "{said}");
}

#[test]
fn a_task_whose_target_has_ended_says_so_and_goes_on() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let mut target = targets.busy("shares-ended");
    burn(&target, Duration::from_millis(200));
    let id = start_task(&agent, &endless(json!({ "pids": [target.pid()] }), 99));
    wait_until_sampling(&agent, &id);
    target.signal(Signal::KILL).unwrap();
    target.wait(EXIT).unwrap();
    wait_until("the task says that its target has ended", START, || {
        let notes = agent.api.task(&id).unwrap()["notes"].to_string();
        notes.contains("every process of the target has ended, ")
    })
    .unwrap();
    assert_eq!(agent.api.task(&id).unwrap()["state"], "running");
    stop_task(&agent, &id);
}

/// The other CPU may be idle, and its ticks with it.
#[test]
fn samples_are_held_against_the_cpu_time_of_the_target() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-covered");
    let id = start_task(&agent, &on_cpu(json!({ "pids": [target.pid()] }), 4, 99));
    let task = finish_task(&agent, &id, 4);
    let coverage = &task["coverage"];
    assert_eq!(coverage["processes"], 1, "{task}");
    let percent = coverage["percent"].as_f64().unwrap();
    assert_measured!((93.0..=110.0).contains(&percent), "{task}");
    assert_measured!(
        coverage["accounted_ns"].as_u64() > Some(1_000_000_000),
        "{task}"
    );
    let missed = |loss: &Value| loss["kind"] == "tick_missed";
    let losses = task["losses"].as_array().unwrap();
    assert_measured!(!losses.iter().any(missed), "{task}");
}

#[test]
fn kernel_time_is_seen_and_named() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets.shares(Workload::SharesC, "shares-kernel", &["--kernel", "50"]);
    let id = start_task(&agent, &on_cpu(json!({ "pids": [target.pid()] }), 5, 999));
    finish_task(&agent, &id, 5);
    let measured = report_of(target).shares();
    let folded = agent.api.folded(&id, "").unwrap();
    assert_shares(&folded, &measured, 3.0, "beside kernel work");
    let truth = measured["hot_kernel"];
    for function in ["hot_kernel", "vfs_read"] {
        assert_share(&folded, function, truth, 3.0, "kernel work");
    }
    // Kernel frames come after the user frames that called them.
    let ordered = folded
        .stacks
        .iter()
        .filter(|stack| stack.has("vfs_read"))
        .all(|stack| {
            let position = |name| {
                stack
                    .frames
                    .iter()
                    .position(|frame| is_function(frame, name))
            };
            position("hot_kernel") < position("vfs_read")
        });
    assert!(ordered, "{}", folded.summary());
}

#[expect(clippy::cast_precision_loss, reason = "both stay far below 2^52")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// Starts tasks for an unused name, for a parent, and for the node; then lets a process
/// start, a child be forked and a process exit.
fn born_and_exiting(agent: &Agent) -> Vec<Value> {
    let targets = Targets::new();
    let mut parent = targets.shares(
        Workload::SharesC,
        "shares-parent",
        &["--fork-on-usr1", "--seconds", "3"],
    );
    parent
        .wait_for_line(START, |line| (line == "waiting").then_some(()))
        .unwrap();
    let short = targets.busy("shares-short");
    let specifications = [
        endless(json!({ "comm": "shares-late" }), 499),
        endless(json!({ "pids": [parent.pid(), short.pid()] }), 499),
        endless(json!({ "all": true }), 499),
    ];
    let ids: Vec<String> = specifications
        .iter()
        .map(|s| agent.api.create_task(s).unwrap())
        .collect();
    for id in &ids {
        wait_until_sampling(agent, id);
    }
    parent.signal(Signal::USR1).unwrap();
    let mut late = targets.shares(Workload::SharesC, "shares-late", &["--seconds", "3"]);
    burn(&short, Duration::from_secs(1));
    let short = report_of(short);
    for target in [&mut parent, &mut late] {
        assert!(target.wait(EXIT).unwrap().success(), "{}", target.errors());
    }
    let tasks = ids.iter().map(|id| stop_task(agent, id)).collect();
    let child = last_report(&parent);
    let late = last_report(&late);
    for (id, reports) in [
        (&ids[0], vec![&late]),
        (&ids[1], vec![&child, &short]),
        (&ids[2], vec![&late, &child, &short]),
    ] {
        for report in reports {
            let folded = agent
                .api
                .folded(id, &format!("&pid={}", report.pid))
                .unwrap();
            assert_shares(
                &folded,
                &report.shares(),
                7.0,
                &format!("task {id}, pid {}", report.pid),
            );
        }
    }
    let pids = |id: &str| -> Vec<u64> {
        let threads = agent
            .api
            .get_json(&format!("/api/v1/tasks/{id}/threads"))
            .unwrap();
        let items = threads["items"].as_array().unwrap().iter();
        items
            .filter(|item| item["samples"] != 0)
            .filter_map(|item| item["pid"].as_u64())
            .collect()
    };
    let by_name: std::collections::BTreeSet<u64> = pids(&ids[0]).into_iter().collect();
    assert_eq!(
        by_name,
        [u64::from(late.pid)].into(),
        "only what has the name"
    );
    let by_pid = pids(&ids[1]);
    let allowed = [parent.pid(), child.pid, short.pid].map(u64::from);
    assert!(
        by_pid.iter().all(|pid| allowed.contains(pid)),
        "{by_pid:?} beyond {allowed:?}"
    );
    tasks
}

#[test]
fn processes_born_and_ended_during_a_task_are_profiled() {
    let agent = Agent::start().unwrap();
    let tasks = born_and_exiting(&agent);
    assert!(tasks.iter().all(|task| task["state"] == "cancelled"));
}

#[test]
fn cutting_by_time_keeps_what_happened_then() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-cut");
    let id = start_task(&agent, &endless(json!({ "pids": [target.pid()] }), 499));
    burn(&target, Duration::from_secs(1));
    report_of(target);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // Long enough for samples to come after its end, if there were any.
    let later = Instant::now() + Duration::from_secs(2);
    wait_until("the task goes on", EXIT, || Instant::now() >= later).unwrap();
    let task = stop_task(&agent, &id);
    let started = Duration::from_nanos(task["started_at_ns"].as_u64().unwrap());
    // The process had ended by then.
    let end = now.saturating_sub(started).as_millis() + 200;
    let all = agent.api.folded(&id, "").unwrap().total();
    let early = agent
        .api
        .folded(&id, &format!("&from=0&to={end}"))
        .unwrap()
        .total();
    let late = agent
        .api
        .folded(&id, &format!("&from={end}"))
        .unwrap()
        .total();
    assert!(all > 300, "{all}");
    assert_eq!((early, late), (all, 0), "nothing after {end} ms");
    let first = agent.api.folded(&id, "&from=0&to=700").unwrap().total();
    let second = agent.api.folded(&id, "&from=700").unwrap().total();
    assert_eq!(first + second, all, "parts add up");
    let timeline = agent
        .api
        .get_json(&format!("/api/v1/tasks/{id}/timeline?bucket_ms=100"))
        .unwrap();
    let counts: u64 = timeline["counts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(serde_json::Value::as_u64)
        .sum();
    assert_eq!(counts, all);
}

/// Counts of samples, which fit the CPU time only as long as no other load delays the ticks and the readings.
mod alone {
    use super::*;

    #[test]
    fn api_shares_of_c_and_rust_at_999_and_99_hz() {
        let agent = Agent::start().unwrap();
        let targets = Targets::new();
        let c = targets.busy("shares-c");
        let rust = targets.shares(Workload::SharesRust, "shares-rust", &[]);
        let pids = [c.pid(), rust.pid()];
        let mut history = CpuHistory::default();
        history.read(&pids);
        let fast = start_task(&agent, &on_cpu(json!({ "pids": pids }), 10, 999));
        let slow = start_task(&agent, &on_cpu(json!({ "pids": pids }), 10, 99));
        let tasks = finish_watched(&agent, &[&fast, &slow], 12, &pids, &mut history);
        let reports = [report_of(c), report_of(rust)];
        for (task, hz, points) in [(&tasks[0], 999, 2.0), (&tasks[1], 99, 7.0)] {
            assert_eq!(task["state"], "finished", "{task}");
            assert_eq!(task["effective_frequency_hz"], hz);
            let id = task["id"].as_str().unwrap();
            let from = task["started_at_ns"].as_u64().unwrap();
            for report in &reports {
                let what = format!("pid {} at {hz} Hz", report.pid);
                let folded = agent
                    .api
                    .folded(id, &format!("&pid={}", report.pid))
                    .unwrap();
                assert_shares(&folded, &report.shares(), points, &what);
                let window_ns = sampled_ns(&agent, id);
                let cpu_ns = history.between(report.pid, from, from + window_ns);
                assert_sample_count(folded.total(), cpu_ns, window_ns, hz, &what);
            }
            let all = agent.api.folded(id, "").unwrap();
            assert_eq!(
                task["samples"].as_u64().unwrap(),
                all.total(),
                "the profile holds every sample"
            );
            for name in ["main", "run_cycles"] {
                assert!(
                    all.count(|stack| stack.has(name)) > 0,
                    "{name}: {}",
                    all.summary()
                );
            }
        }
    }

    /// A clock with one period meets a program whose cycle is one, two or half a period at the same places again and again.
    #[test]
    fn programs_in_step_with_the_clock_show_their_shares() {
        const SECONDS: u64 = 30;
        let agent = Agent::start().unwrap();
        let targets = Targets::new();
        // As long as two periods of 199 Hz, and as one of 99 Hz.
        let programs = ["10050", "10101"].map(|cycle| {
            let arguments = ["--cycle-us", cycle];
            targets.shares(Workload::SharesC, &format!("cycle-{cycle}"), &arguments)
        });
        let pids = programs.each_ref().map(Running::pid);
        let tasks = [99, 199, 1000].map(|hz| {
            let specification = on_cpu(json!({ "pids": pids }), SECONDS, hz);
            (hz, agent.api.create_task(&specification).unwrap())
        });
        for (_hz, id) in &tasks {
            finish_task(&agent, id, SECONDS);
        }
        for report in programs.map(report_of) {
            for (hz, id) in &tasks {
                let path = format!("&pid={}", report.pid);
                let folded = agent.api.folded(id, &path).unwrap();
                let shares = report.shares();
                for function in HOT_FUNCTIONS {
                    let (seen, truth) = (folded.share(function), shares[function]);
                    assert_measured!(
                        (seen - truth).abs() <= 3.0,
                        "{hz} Hz: {function} has {seen:.2} % of the samples and {truth:.2} % of the CPU time; {}",
                        folded.summary()
                    );
                }
            }
        }
    }

    #[test]
    fn threads_are_told_apart() {
        let agent = Agent::start().unwrap();
        let targets = Targets::new();
        let target = targets.shares(Workload::SharesC, "shares-threads", &["--threads", "3"]);
        let pid = target.pid();
        let id = start_task(&agent, &on_cpu(json!({ "pids": [pid] }), 6, 999));
        finish_task(&agent, &id, 6);
        let report = report_of(target);
        assert_eq!(report.threads.len(), 3);
        let listed = agent
            .api
            .get_json(&format!("/api/v1/tasks/{id}/threads"))
            .unwrap();
        let total = agent.api.folded(&id, "").unwrap().total();
        for thread in &report.threads {
            let folded = agent
                .api
                .folded(&id, &format!("&tid={}", thread.tid))
                .unwrap();
            assert_shares(&folded, &thread.shares(), 3.5, &thread.name);
            let items = listed["items"].as_array().unwrap();
            let item = items.iter().find(|item| item["tid"] == thread.tid).unwrap();
            assert_eq!(item["name"], thread.name.as_str());
            assert_eq!(item["pid"], pid);
            assert_eq!(item["samples"], folded.total());
            let expected = share(
                thread.cpu_ns(),
                report.threads.iter().map(ThreadReport::cpu_ns).sum(),
            );
            let seen = share(folded.total(), total);
            assert_measured!(
                (seen - expected).abs() <= 5.0,
                "{}: {seen} % not {expected} %",
                thread.name
            );
        }
    }

    /// Both programs have the same pid, start time and addresses; only what the kernel knows of execs
    /// tells whose a sample is.
    #[test]
    fn samples_from_before_an_exec_are_not_named_after_the_next_program() {
        let targets = Targets::new();
        let busy = Workload::ExecBusy.build("exec-busy").unwrap();
        let idle = Workload::ExecIdle.build("exec-idle").unwrap();
        let mut target = targets
            .launch(&busy, "exec-pair")
            .args([idle.as_os_str()])
            .args(["60"])
            .start()
            .unwrap();
        let output = targets.folder.join("exec.folded");
        let pid = target.pid().to_string();
        let arguments = [
            "record",
            "--pid",
            &pid,
            "--duration",
            "3s",
            "--frequency",
            "999",
            "--format",
            "folded",
            "--output",
            output.to_str().unwrap(),
        ];
        let mut record = launch(&arguments, "record-exec", &targets.folder).unwrap();
        assert!(record.wait(EXIT).unwrap().success(), "{}", record.errors());
        target.stop().unwrap();
        let folded = Folded::parse(&std::fs::read_to_string(output).unwrap()).unwrap();
        let busy = folded.count(|stack| stack.has("busy_function"));
        let idle = folded.count(|stack| stack.has("idle_function"));
        assert_measured!(busy > 200, "{}", folded.summary());
        assert_measured!(
            idle * 50 < busy,
            "{idle} of the idle one: {}",
            folded.summary()
        );
    }
}
