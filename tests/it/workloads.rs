//! The yardsticks themselves: what the other tests measure against must be true.

use std::time::Duration;

use profiler_tests::{
    assert_measured,
    process::Running,
    workload::{HOT_FUNCTIONS, SharesReport, ThreadReport, Workload, process_cpu_ns},
};

use crate::targets::{Targets, report_of};

const LIMIT: Duration = Duration::from_secs(30);

fn assert_share(report: &SharesReport, function: &str, expected: f64) {
    let share = report.shares()[function];
    assert_measured!(
        (share - expected).abs() < 1.0,
        "{function}: {share} % instead of {expected} %"
    );
}

fn finish(target: Running) -> SharesReport {
    SharesReport::parse(&target.finish(LIMIT).unwrap()).unwrap()
}

#[test]
fn shares_are_60_30_10_by_construction() {
    let targets = Targets::new();
    let c = targets.shares(Workload::SharesC, "shares-c", &["--seconds", "1"]);
    let rust = targets.shares(Workload::SharesRust, "shares-rust", &["1"]);
    let inside = targets.contained(Workload::SharesStatic, "shares-inside", &["--seconds", "1"]);
    for report in [finish(c), finish(rust), finish(inside)] {
        for (function, expected) in HOT_FUNCTIONS.into_iter().zip([60.0, 30.0, 10.0]) {
            assert_share(&report, function, expected);
        }
    }
}

#[test]
fn half_of_the_kernel_variant_is_spent_in_the_kernel() {
    let targets = Targets::new();
    let target = targets.shares(Workload::SharesC, "shares-kernel", &["--kernel", "50"]);
    let stat = || {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", target.pid())).unwrap();
        let fields: Vec<u64> = text
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|field| field.parse().unwrap())
            .collect();
        (fields[0], fields[1])
    };
    profiler_tests::wait::wait_until("it has used a second", LIMIT, || {
        process_cpu_ns(target.pid()).unwrap() > 1_000_000_000
    })
    .unwrap();
    let (user, system) = stat();
    assert_measured!(
        system * 100 / (user + system) > 35,
        "{user} user ticks, {system} system ticks"
    );
    let report = report_of(target);
    assert_share(&report, "hot_kernel", 50.0);
    assert_share(&report, "hot_sixty", 30.0);
}

#[test]
fn the_programs_own_account_covers_its_cpu_time() {
    let targets = Targets::new();
    let arguments = ["--threads", "3", "--seconds", "1"];
    let report = finish(targets.shares(Workload::SharesC, "shares-threads", &arguments));
    let accounted: u64 = report.functions.values().sum();
    assert_measured!(
        accounted * 100 > report.cpu_ns * 95,
        "{accounted} of {} ns",
        report.cpu_ns
    );
    assert!(accounted <= report.cpu_ns);
    assert_eq!(report.threads.len(), 3);
    let per_thread: u64 = report.threads.iter().map(ThreadReport::cpu_ns).sum();
    assert_eq!(per_thread, accounted);
    let names: Vec<&str> = report
        .threads
        .iter()
        .map(|thread| thread.name.as_str())
        .collect();
    assert_eq!(names, ["hot-0", "hot-1", "hot-2"]);
}
