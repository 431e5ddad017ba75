//! Waits that are left out, and waits that are sampled.

use profiler_tests::{
    agent::Agent, assert_measured, folded::Folded, process::Running, wait::wait_until,
    waits::WaitsReport, workload::Workload,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::targets::{EXIT, START, Targets, start_task};

/// A recording of the program `waits`.
struct Recorded {
    task: Value,
    counts: Folded,
    times: Folded,
    report: WaitsReport,
}

/// The program, ready to wait as `arguments` say, and the task for it.
fn begin(agent: &Agent, targets: &Targets, arguments: &[&str], more: &Value) -> (Running, String) {
    let target = targets.ready(Workload::Waits, "waits-sampled", arguments);
    let mut specification = json!({
        "kind": "off_cpu",
        "target": { "pids": [target.pid()] },
        "duration_s": null,
    });
    for (key, value) in more.as_object().unwrap() {
        specification[key] = value.clone();
    }
    let id = start_task(agent, &specification);
    target.signal(Signal::USR1).unwrap();
    (target, id)
}

fn record(arguments: &[&str], more: &Value) -> Recorded {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let (mut target, id) = begin(&agent, &targets, arguments, more);
    let report = target
        .wait_for_line(START, |line| WaitsReport::parse(line).ok())
        .unwrap();
    agent.api.stop_task(&id).unwrap();
    Recorded {
        task: agent.api.wait_task(&id, &["cancelled"], EXIT).unwrap(),
        counts: agent.api.folded(&id, "&value=count").unwrap(),
        times: agent.api.folded(&id, "").unwrap(),
        report,
    }
}

#[test]
fn waits_beyond_the_thresholds_are_left_out_and_counted() {
    let short = record(&["nap"], &json!({ "min_wait_ns": 200_000_000 }));
    assert_eq!(short.counts.count(|stack| stack.has("nap_often")), 0);
    let left_out = &short.task["waits"];
    assert!(left_out["below"].as_u64().unwrap() >= 200, "{left_out}");
    assert!(
        left_out["below_ns"].as_u64().unwrap() >= 200 * 5_000_000,
        "{left_out}"
    );
    let long = record(&["nap"], &json!({ "max_wait_ns": 1_000_000 }));
    // A thread that is preempted between arming its timer and going to sleep waits for less.
    let short = long
        .counts
        .count(|stack| stack.has("nap_often") && stack.has("hrtimer_nanosleep"));
    assert_measured!(short <= 4, "{short} waits of less than 1 ms");
    let left_out = &long.task["waits"];
    assert!(left_out["above"].as_u64().unwrap() >= 200, "{left_out}");
    assert_eq!(left_out["below"], 0);
}

#[test]
fn sums_of_sampled_waits_are_exact() {
    let every = json!({ "off_cpu_mode": "sampled" });
    let Recorded {
        task,
        counts,
        times,
        report,
    } = record(&["pipe"], &every);
    assert_eq!(task["waits"]["sampled"], true);
    // The program's account leaves out how its threads begin and end, and its main thread.
    let least = report.voluntary;
    let most = report.voluntary + report.involuntary + 60;
    let total = counts.total();
    assert!((least..=most).contains(&total), "{total}: {report:?}");
    assert!(times.total() >= report.away_ns, "{report:?}");
    let not_sampled = counts.count(|stack| {
        let frame = |frame: &String| frame.contains("not sampled");
        stack.frames.iter().any(frame)
    });
    // Three threads with less than two distances each.
    assert!(not_sampled < 3 * 256, "{not_sampled}");
}

/// Share of the long waits in what is not a moment without a CPU, in percent.
#[expect(clippy::cast_precision_loss, reason = "all stay below 2^52")]
fn long_share(folded: &Folded) -> f64 {
    let long = folded.count(|stack| stack.has("long_wait"));
    let short = folded.count(|stack| stack.has("short_wait"));
    long as f64 * 100.0 / (long + short).max(1) as f64
}

/// Rates and shares of waits, which change with what else the CPUs do.
mod alone {
    use super::*;

    #[test]
    fn sampled_waits_have_the_shares_of_all_waits() {
        let arguments = ["mixed", "4000"];
        let every = record(&arguments, &json!({ "off_cpu_mode": "every" }));
        let sampled = record(&arguments, &json!({ "off_cpu_mode": "sampled" }));
        assert_eq!(every.task["waits"]["sampled"], false);
        // Some 1,600 samples of time and, on a machine with nothing else to do, 220 of waits; four
        // standard deviations, and as much again for the difference of the two runs.
        for (what, all, some, points) in [
            ("time", &every.times, &sampled.times, 10.0),
            ("waits", &every.counts, &sampled.counts, 16.0),
        ] {
            let (all, some) = (long_share(all), long_share(some));
            assert_measured!(
                (all - some).abs() < points,
                "{what}: {some:.1} % instead of {all:.1} %"
            );
        }
    }

    #[test]
    fn a_target_with_too_many_waits_is_sampled() {
        let agent = Agent::start().unwrap();
        let targets = Targets::new();
        let (_target, id) = begin(&agent, &targets, &["volley", "30000"], &json!({}));
        wait_until("waits are sampled", START, || {
            agent.api.task(&id).unwrap()["waits"]["sampled"] == true
        })
        .unwrap();
        agent.api.stop_task(&id).unwrap();
        let task = agent.api.wait_task(&id, &["cancelled"], EXIT).unwrap();
        let notes = task["notes"].to_string();
        assert!(
            notes.contains("waits a second are more than 50000"),
            "{notes}"
        );
    }
}
