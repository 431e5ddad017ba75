//! The export as Go's own tool reads it.

use std::{path::Path, process::Command};

use profiler_model::{LossKind, Profile};

use crate::render::{Format, View, render, render_view};

use super::sketch::{deep, empty, inferred, inlined, odd_names, simple, waits, wall, woken};

fn go_pprof(profile: &Profile, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("profile.pb.gz");
    std::fs::write(&file, render(profile, Format::Pprof, "a title").unwrap()).unwrap();
    run_go(directory.path(), &file, arguments)
}

fn run_go(directory: &Path, file: &Path, arguments: &[&str]) -> String {
    let output = Command::new("go")
        .args(["tool", "pprof"])
        .args(arguments)
        .arg(file)
        .env("PPROF_TMPDIR", directory)
        .output()
        .expect("this test needs Go (Debian: golang-go)");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "go tool pprof {arguments:?}: {errors}"
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn inferred_names_are_marked() {
    let top = go_pprof(&inferred(), &["-top"]);
    assert!(top.contains("Router [vslot 7] [inferred]"), "{top}");
    assert!(top.contains("source/router.cc [inferred]"), "{top}");
}

#[test]
fn every_row_is_one_sample_with_its_labels() {
    let mut profile = simple();
    profile.losses.add(LossKind::TickMissed, 4);
    let raw = go_pprof(&profile, &["-raw"]);
    let samples = raw
        .split_once("Samples:\n")
        .unwrap()
        .1
        .split_once("Locations")
        .unwrap()
        .0;
    let mut rows: Vec<String> = Vec::new();
    for line in samples.lines().skip(1) {
        match line.trim_start().split_once(':') {
            Some((numbers, _)) if !line.contains(":[") => {
                rows.push(numbers.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            _ => rows.last_mut().unwrap().extend([" ", line.trim()]),
        }
    }
    rows.sort();
    let cpu_ns = |count: u64| count * super::sketch::PERIOD_NS;
    let row = |count: u64, thread: &str, cpu: u32, pid: u32, tid: u32, time: &str| {
        let process = if pid == 100 { "work" } else { "envoy" };
        format!(
            "{count} {} process:[{process}] thread:[{thread}] cpu:[{cpu} id] pid:[{pid} id] tid:[{tid} id] time_ms:[{time}]",
            cpu_ns(count)
        )
    };
    let mut expected: Vec<String> = [60, 30, 5, 2, 1, 1, 1]
        .map(|count| row(count, "work", 0, 100, 100, "0 milliseconds"))
        .to_vec();
    expected.push(row(10, "wrk:worker_0", 1, 200, 201, "300 milliseconds"));
    expected.push(row(7, "wrk:worker_0", 1, 300, 301, "300 milliseconds"));
    expected.sort();
    assert_eq!(rows, expected, "{raw}");
    for text in [
        "Comment: a title",
        "Comment: sampled by cpu-clock",
        "Comment: names of user frames: ",
        "Comment: loss tick_missed=4: ",
        "PeriodType: cpu nanoseconds",
        "Period: 10101010",
        "samples/count cpu/nanoseconds",
        "Duration: 400m",
        "/usr/bin/work abcd [FN][FL][LN][IN]",
    ] {
        assert!(raw.contains(text), "{text:?} is missing in\n{raw}");
    }
}

#[test]
fn waits_have_their_time_their_state_and_their_reason() {
    let raw = go_pprof(&waits(), &["-raw"]);
    for text in [
        "PeriodType: off_cpu nanoseconds",
        "switches/count off_cpu/nanoseconds[dflt]",
        "Comment: sampled by sched-switch",
        "          3    3000000: ",
        "          0     500000: ",
        "reason:[futex] state:[interruptible] thread:[work]",
        "reason:[futex] state:[woken] thread:[work]",
        "reason:[preempted] state:[preempted] thread:[work]",
    ] {
        assert!(raw.contains(text), "{text:?} is missing in\n{raw}");
    }
}

#[test]
fn wall_clock_time_has_states_and_no_count() {
    let raw = go_pprof(&wall(), &["-raw"]);
    for text in [
        "PeriodType: wall nanoseconds",
        "Period: 0",
        "\nwall/nanoseconds[dflt]\n",
        "Comment: sampled by wall-clock",
        "    7000000: ",
        "    1000000: ",
        "   92000000: ",
        "                process:[work] state:[on_cpu] thread:[work]",
        "reason:[sleep] state:[interruptible] thread:[work]",
    ] {
        assert!(raw.contains(text), "{text:?} is missing in\n{raw}");
    }
}

#[test]
fn wakers_stand_above_the_wait_and_are_no_reason() {
    let profile = woken();
    let view = View {
        wakers: true,
        ..View::default()
    };
    let folded = |view: &View<'_>| {
        String::from_utf8(render_view(&profile, Format::Folded, view).unwrap()).unwrap()
    };
    assert!(
        folded(&view).contains(
            "work;main;futex_wait_[k];__schedule_[k];\
             [woken by interrupt: timer];hrtimer_wakeup_[k] 3000000\n"
        ),
        "{}",
        folded(&view)
    );
    assert!(!folded(&View::default()).contains("woken by"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("profile.pb.gz");
    std::fs::write(&file, render_view(&profile, Format::Pprof, &view).unwrap()).unwrap();
    let raw = run_go(directory.path(), &file, &["-raw"]);
    assert!(
        raw.contains("reason:[futex] state:[interruptible]"),
        "{raw}"
    );
}

#[test]
fn totals_and_names_are_ours() {
    let top = go_pprof(
        &simple(),
        &["-top", "-sample_index=samples", "-nodecount=100"],
    );
    for line in [
        "77 65.81% 65.81%         77 65.81%  hot",
        "30 25.64% 91.45%         35 29.91%  cold",
        "5  4.27% 95.73%          5  4.27%  ksys_write",
    ] {
        assert!(top.contains(line), "{line:?} is missing in\n{top}");
    }
    for name in [
        "libstripped.so.1+0x4f0",
        "[unknown]+0x7fff00001234",
        "[stack lost]",
    ] {
        assert!(top.contains(name), "{name} is missing in\n{top}");
    }
    assert!(top.contains("of 117 total"), "{top}");
}

#[test]
fn inlined_functions_keep_their_order_and_lines() {
    let raw = go_pprof(&inlined(), &["-raw"]);
    let locations = raw.split_once("Locations\n").unwrap().1;
    let start = locations.find("0x2000").expect("the frame's location");
    let lines: Vec<&str> = locations[start..].lines().take(3).map(str::trim).collect();
    assert!(lines[0].contains("add<u64> src/add.rs:3"), "{lines:?}");
    assert!(lines[1].starts_with("sum src/sum.rs:7"), "{lines:?}");
    assert!(lines[2].starts_with("run src/run.rs:40"), "{lines:?}");
}

#[test]
fn unusual_profiles_are_accepted() {
    for profile in [empty(), deep(), odd_names()] {
        go_pprof(&profile, &["-raw"]);
        go_pprof(&profile, &["-top"]);
    }
}
