//! Wall-clock profiles of threads that know how much time has passed for them.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::Agent,
    assert_measured,
    folded::{Folded, FoldedStack},
    wait::wait_until,
    workload::Workload,
};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::json;

use crate::targets::{EXIT, START, Targets, start_task};

/// How far sums may be from the clock, in percent.
const PERCENT: f64 = 2.0;

/// Length of the buckets in which the course of threads is asked for.
const COURSE_BUCKET_MS: u64 = 100;
/// Frame of time on the CPU without a sample.
const NOT_SAMPLED: &str = "[on CPU, not sampled]";

/// What a thread measured about itself.
#[derive(Debug, Deserialize)]
struct Lived {
    tid: u32,
    name: String,
    wall_ns: u64,
    cpu_ns: u64,
}

/// A program's threads and the profile of the time in which they lived.
struct Recorded {
    agent: Agent,
    task: String,
    threads: Vec<Lived>,
    /// Time on CPUs that the kernel does not count for the thread that it took it from.
    taken_ns: u64,
}

impl Recorded {
    fn of(mode: &str, frequency_hz: u32) -> Self {
        let agent = Agent::start().unwrap();
        let targets = Targets::new();
        let name = format!("lives-{mode}");
        let mut target = targets.ready(Workload::Elapsed, &name, &[mode]);
        let specification = json!({
            "kind": "wall",
            "target": { "pids": [target.pid()] },
            "duration_s": null,
            "frequency_hz": frequency_hz,
        });
        let task = start_task(&agent, &specification);
        let before = taken_ns();
        target.signal(Signal::USR1).unwrap();
        let threads: Vec<Lived> = target
            .wait_for_line(START, |line| serde_json::from_str(line).ok())
            .unwrap();
        let taken_ns = taken_ns().saturating_sub(before);
        agent.api.stop_task(&task).unwrap();
        agent.api.wait_task(&task, &["cancelled"], EXIT).unwrap();
        Self {
            agent,
            task,
            threads,
            taken_ns,
        }
    }

    fn stacks(&self, thread: &Lived) -> Folded {
        let tid = format!("&tid={}", thread.tid);
        self.agent.api.folded(&self.task, &tid).unwrap()
    }

    /// The stacks of the one thread with this name.
    fn stacks_of(&self, name: &str) -> Folded {
        let thread = self.threads.iter().find(|thread| thread.name == name);
        self.stacks(thread.unwrap())
    }

    /// Checks every thread's sum against its clock.
    fn assert_adds_up(&self) {
        assert!(!self.threads.is_empty());
        for thread in &self.threads {
            let stacks = self.stacks(thread);
            let what = format!("{} {}: {}", thread.name, thread.tid, stacks.summary());
            assert_near(stacks.total(), thread.wall_ns, 0, &what);
        }
    }

    /// Checks the time on the CPU of the threads with this name.
    fn assert_cpu_time(&self, name: &str) {
        self.assert_cpu_time_with(name, 0);
    }

    /// The same, where each thread has run for up to `more_ns` that it could not measure.
    fn assert_cpu_time_with(&self, name: &str, more_ns: u64) {
        let mut checked = 0;
        for thread in self.threads.iter().filter(|thread| thread.name == name) {
            let stacks = self.stacks(thread);
            let what = format!("CPU time of {name}: {}", stacks.summary());
            let allowed = self.taken_ns + more_ns;
            assert_near(on_cpu(&stacks), thread.cpu_ns, allowed, &what);
            checked += 1;
        }
        assert!(checked > 0, "no thread is named {name}");
    }
}

/// What a thread did, by kind of activity: sums in nanoseconds, and the fullest bucket.
#[derive(Debug, Default)]
struct Course {
    sums: BTreeMap<String, u64>,
    fullest_ms: u64,
}

impl Recorded {
    /// What the thread did in buckets of `bucket_ms`.
    fn course_of(&self, thread: &Lived, bucket_ms: u64) -> Course {
        let path = format!(
            "/api/v1/tasks/{}/timeline?by=activity&value=duration&bucket_ms={bucket_ms}",
            self.task
        );
        let timeline = self.agent.api.get_json(&path).unwrap();
        let threads = timeline["threads"].as_array().unwrap();
        let row = threads.iter().find(|row| row["tid"] == thread.tid).unwrap();
        let mut course = Course::default();
        let mut buckets: BTreeMap<usize, u64> = BTreeMap::new();
        for one in row["activities"].as_array().unwrap() {
            let kind = one["activity"].as_str().unwrap().to_owned();
            let times = one["times_us"].as_array().unwrap();
            for (bucket, time) in times.iter().enumerate() {
                let us = time.as_u64().unwrap();
                *course.sums.entry(kind.clone()).or_default() += us * 1000;
                *buckets.entry(bucket).or_default() += us;
            }
        }
        let fullest_us = buckets.values().copied().max().unwrap_or(0);
        course.fullest_ms = fullest_us.div_ceil(1000);
        course
    }
}

fn on_cpu(stacks: &Folded) -> u64 {
    stacks.count(|stack| !is_wait(stack))
}

fn is_wait(stack: &FoldedStack) -> bool {
    let leaf = stack.frames.last();
    waits_for_cpu(stack) || leaf.is_some_and(|leaf| leaf.starts_with("[blocked"))
}

fn waits_for_cpu(stack: &FoldedStack) -> bool {
    let leaf = stack.frames.last();
    leaf.is_some_and(|leaf| leaf.starts_with("[runnable: "))
}

#[expect(clippy::cast_precision_loss, reason = "all stay far below 2^52")]
fn assert_near(seen: u64, truth: u64, taken: u64, what: &str) {
    let allowed = truth as f64 * PERCENT / 100.0 + taken as f64;
    assert_measured!(
        (seen as f64 - truth as f64).abs() <= allowed,
        "{seen} ns where the thread has measured {truth} ns (within {allowed:.0}); {what}"
    );
}

/// Time of interrupts and of the hypervisor on all CPUs, which clocks of threads leave out on some
/// kernels.
fn taken_ns() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let all = text.lines().next().unwrap();
    let ticks = all.split_whitespace().skip(1).skip(5).take(3);
    ticks
        .map(|ticks| ticks.parse::<u64>().unwrap() * 10_000_000)
        .sum()
}

#[test]
fn threads_that_run_sleep_and_take_turns_add_up() {
    let recorded = Recorded::of("mixed", 999);
    recorded.assert_adds_up();
    recorded.assert_cpu_time("running");
    recorded.assert_cpu_time("taking-turns");
    let running = recorded.stacks_of("running");
    let named = running.count(|stack| stack.has("running") && !is_wait(stack));
    assert_measured!(
        named * 100 >= on_cpu(&running) * 90,
        "the time on the CPU belongs to the samples: {}",
        running.summary()
    );
    let asleep = recorded.stacks_of("sleeping");
    let slept = asleep.count(|stack| stack.has("sleeping") && is_wait(stack));
    assert_measured!(slept * 100 >= asleep.total() * 90, "{}", asleep.summary());
    // The same over time, where no bucket has more than its length.
    for thread in &recorded.threads {
        let course = recorded.course_of(thread, COURSE_BUCKET_MS);
        let what = format!("course of {} {}: {course:?}", thread.name, thread.tid);
        assert_near(course.sums.values().sum(), thread.wall_ns, 0, &what);
        assert_measured!(course.fullest_ms <= COURSE_BUCKET_MS + 1, "{what}");
        if thread.name != "sleeping" {
            let running = course.sums.get("running").copied().unwrap_or(0);
            assert_near(running, thread.cpu_ns, recorded.taken_ns, &what);
        }
    }
}

#[test]
fn samples_share_the_cpu_time_of_slices_without_one() {
    let recorded = Recorded::of("mixed", 19);
    recorded.assert_adds_up();
    recorded.assert_cpu_time("taking-turns");
    let short = recorded.stacks_of("taking-turns");
    let unseen = short.count(|stack| stack.frames.iter().any(|frame| frame == NOT_SAMPLED));
    assert_eq!(unseen, 0, "{}", short.summary());
    let named = short.count(|stack| stack.has("taking_turns") && !is_wait(stack));
    assert_measured!(
        named * 100 >= on_cpu(&short) * 75,
        "slices of 1 ms are rarely sampled, and their time belongs to the samples: {}",
        short.summary()
    );
    let task = recorded.agent.api.task(&recorded.task).unwrap();
    let notes = task["notes"].to_string();
    assert!(notes.contains("shared out over the samples"), "{notes}");
}

#[test]
fn a_thread_that_runs_all_the_time_is_counted_from_start_to_end() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets.ready(Workload::Elapsed, "lives-busy", &["busy"]);
    let specification = json!({
        "kind": "wall",
        "target": { "pids": [target.pid()] },
        "duration_s": null,
    });
    let task = start_task(&agent, &specification);
    // Long enough that a moment without a CPU at the start does not matter.
    let least = Duration::from_secs(5);
    let end = Instant::now() + least;
    wait_until("the time passes", least + EXIT, || Instant::now() >= end).unwrap();
    agent.api.stop_task(&task).unwrap();
    agent.api.wait_task(&task, &["cancelled"], EXIT).unwrap();
    let pprof = targets.folder.join("profile.pb.gz");
    let bytes = agent.api.profile(&task, "pprof", "").unwrap().body;
    fs::write(&pprof, bytes).unwrap();
    let raw = std::process::Command::new("go")
        .args(["tool", "pprof", "-raw"])
        .arg(&pprof)
        .env("PPROF_TMPDIR", &targets.folder)
        .output()
        .expect("run go (https://go.dev/dl) to check the pprof export");
    let raw = String::from_utf8_lossy(&raw.stdout).into_owned();
    assert!(raw.contains("wall/nanoseconds[dflt]"), "{raw}");
    let busy = states(&raw, "running");
    let covered = covered_ns(&raw);
    assert_near(busy.values().sum(), covered, 0, &format!("{busy:?}"));
    assert!(busy.contains_key("on_cpu"), "{busy:?}");
    // The main thread sleeps from before the start to the end.
    let main = states(&raw, "lives-busy");
    let asleep = main.get("interruptible").copied().unwrap_or(0);
    assert_near(asleep, covered, 0, &format!("asleep: {main:?}"));
    let refused = agent.api.profile(&task, "folded", "&value=count");
    let refused = format!("{refused:?}");
    assert!(refused.contains("counts time only"), "{refused}");
}

/// Nanoseconds of a thread by the label `state` of `go tool pprof -raw`.
fn states(raw: &str, thread: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    let mut value = 0;
    let thread = format!("thread:[{thread}]");
    for line in raw.lines().skip_while(|line| !line.starts_with("Samples:")) {
        if line.starts_with("Locations") {
            break;
        }
        let state = line
            .split_once("state:[")
            .and_then(|(_, rest)| rest.split_once(']'));
        if let Some((state, _)) = state {
            if line.contains(&thread) {
                *sums.entry(state.to_owned()).or_default() += value;
            }
        } else if let Some((number, _)) = line.split_once(": ") {
            value = number.trim().parse().unwrap_or(value);
        }
    }
    sums
}

/// The time that the profile covers.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "some seconds"
)]
fn covered_ns(raw: &str) -> u64 {
    let line = raw.lines().find_map(|line| line.strip_prefix("Duration: "));
    let seconds: f64 = line.unwrap().trim().parse().unwrap();
    (seconds * 1e9) as u64
}

/// Sums of threads that live shortly or want more CPUs than there are: other work would be a large part of them.
mod alone {
    use super::*;

    #[test]
    fn threads_without_a_cpu_of_their_own_add_up() {
        let recorded = Recorded::of("starved", 99);
        recorded.assert_adds_up();
        recorded.assert_cpu_time("starved");
        for thread in &recorded.threads {
            let stacks = recorded.stacks(thread);
            let waited = stacks.count(waits_for_cpu);
            assert!(waited > 0, "{}", stacks.summary());
        }
    }

    #[test]
    fn threads_that_begin_and_exit_in_the_window_add_up() {
        let recorded = Recorded::of("brief", 99);
        recorded.assert_adds_up();
        // Its birth and its exit lie outside of what it measures.
        recorded.assert_cpu_time_with("brief", 10_000_000);
    }
}
