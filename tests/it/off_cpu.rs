//! Off-CPU profiles of programs that know how often and how long they waited.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::Agent, assert_measured, folded::Folded, paths, process::Running, wait::wait_until,
    waits::check_chains, workload::Workload,
};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::targets::{EXIT, START, Targets, start_task};

/// What the kernel reported to the program about its own threads.
#[derive(Debug, Deserialize)]
struct Report {
    /// Times that they blocked.
    voluntary: u64,
    /// Times that they were preempted.
    involuntary: u64,
    /// Time that passed and was not their CPU time.
    away_ns: u64,
}

/// The waits of one program, by all that a profile reports about them.
struct Waited {
    counts: Folded,
    times: Folded,
    /// Switches and nanoseconds by (reason, state), from the pprof export.
    kinds: BTreeMap<(String, String), (u64, u64)>,
    stacks: Value,
    /// Waits whose end was not seen, so that their kernel stack is unknown.
    missed: u64,
}

impl Waited {
    /// Runs the program in `mode` until it reports (or for `least`, when it does not) while its
    /// waits are recorded; `least` begins when a thread sleeps in a pipe.
    fn of(mode: &str, least: Option<Duration>) -> (Self, Option<Report>) {
        Self::of_arguments(&[mode], least)
    }

    /// The same; the first argument is the mode.
    fn of_arguments(arguments: &[&str], least: Option<Duration>) -> (Self, Option<Report>) {
        let mode = arguments[0];
        let agent = Agent::start().unwrap();
        let targets = Targets::new();
        let name = format!("waits-{mode}");
        let mut target = targets.ready(Workload::Waits, &name, arguments);
        let specification = json!({
            "kind": "off_cpu",
            "target": { "pids": [target.pid()] },
            "duration_s": null,
        });
        let id = start_task(&agent, &specification);
        target.signal(Signal::USR1).unwrap();
        let report = match least {
            None => Some(report_of(&mut target)),
            Some(least) => {
                let pid = target.pid();
                wait_until("a thread sleeps", START, || reads_a_pipe(pid)).unwrap();
                let end = Instant::now() + least;
                wait_until("the time passes", least + EXIT, || Instant::now() >= end).unwrap();
                None
            }
        };
        agent.api.stop_task(&id).unwrap();
        let task = agent.api.wait_task(&id, &["cancelled"], EXIT).unwrap();
        let pprof = targets.folder.join("profile.pb.gz");
        let bytes = agent.api.profile(&id, "pprof", "").unwrap().body;
        fs::write(&pprof, bytes).unwrap();
        let raw = std::process::Command::new("go")
            .args(["tool", "pprof", "-raw"])
            .arg(&pprof)
            .env("PPROF_TMPDIR", &targets.folder)
            .output()
            .expect("run go (https://go.dev/dl) to check the pprof export");
        let waited = Self {
            counts: agent.api.folded(&id, "&value=count").unwrap(),
            times: agent.api.folded(&id, "").unwrap(),
            kinds: kinds(&String::from_utf8_lossy(&raw.stdout)),
            stacks: task["stacks"].clone(),
            missed: missed(&task),
        };
        (waited, report)
    }

    /// Switches with the function on their stack: times that it blocked, and times that it was
    /// preempted.
    fn switches(&self, function: &str) -> (u64, u64) {
        let preempted = |stack: &profiler_tests::folded::FoldedStack| {
            stack.frames.iter().any(|frame| frame == PREEMPTED)
        };
        (
            self.counts
                .count(|stack| stack.has(function) && !preempted(stack)),
            self.counts
                .count(|stack| stack.has(function) && preempted(stack)),
        )
    }

    fn ns(&self, function: &str) -> u64 {
        self.times.count(|stack| stack.has(function))
    }

    fn kind(&self, reason: &str, state: &str) -> (u64, u64) {
        let key = (reason.to_owned(), state.to_owned());
        self.kinds.get(&key).copied().unwrap_or_default()
    }

    /// Checks that all of the interruptible waits have this reason but those whose end was missed.
    fn assert_reason(&self, reason: &str, waits: u64) {
        let (count, _) = self.kind(reason, "interruptible");
        assert!(
            count <= waits && count + self.missed >= waits,
            "{:?}, {} missed",
            self.kinds,
            self.missed
        );
    }

    /// Checks that this share of the stacks is complete, in per mille.
    fn assert_complete(&self, least: u64) {
        let number = |name: &str| self.stacks[name].as_u64().unwrap();
        assert_measured!(
            number("complete") * 1000 >= number("samples") * least,
            "{}",
            self.stacks
        );
    }
}

/// Whether a thread of the process sleeps in a read from a pipe.
fn reads_a_pipe(pid: u32) -> bool {
    let mut threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    threads.any(|thread| {
        let stack = fs::read_to_string(thread.path().join("stack")).unwrap_or_default();
        stack.contains("pipe_read")
    })
}

/// What a switch takes, and what its tracing takes, which are the thread's time in part.
const SWITCH_NS: u64 = 10_000;

const PREEMPTED: &str = "[runnable: preempted]";

fn missed(task: &Value) -> u64 {
    let losses = task["losses"].as_array().unwrap();
    let missed = losses.iter().find(|loss| loss["kind"] == "switch_missed");
    missed.map_or(0, |loss| loss["count"].as_u64().unwrap())
}

fn report_of(target: &mut Running) -> Report {
    target
        .wait_for_line(START, |line| serde_json::from_str(line).ok())
        .unwrap()
}

/// Sums of `go tool pprof -raw` by the labels `reason` and `state`.
fn kinds(raw: &str) -> BTreeMap<(String, String), (u64, u64)> {
    let mut sums = BTreeMap::new();
    let mut values = (0, 0);
    for line in raw.lines().skip_while(|line| !line.starts_with("Samples:")) {
        if line.starts_with("Locations") {
            break;
        }
        let label = |key: &str| {
            let (_, rest) = line.split_once(&format!("{key}:["))?;
            Some(rest.split_once(']')?.0.to_owned())
        };
        if let (Some(reason), Some(state)) = (label("reason"), label("state")) {
            let sum: &mut (u64, u64) = sums.entry((reason, state)).or_default();
            sum.0 += values.0;
            sum.1 += values.1;
        } else if let Some((numbers, _)) = line.split_once(": ") {
            let mut numbers = numbers.split_whitespace().map(str::parse);
            if let (Some(Ok(count)), Some(Ok(ns))) = (numbers.next(), numbers.next()) {
                values = (count, ns);
            }
        }
    }
    sums
}

#[expect(clippy::cast_precision_loss, reason = "all stay far below 2^52")]
fn assert_near(seen: u64, truth: u64, percent: f64, what: &str) {
    let allowed = truth as f64 * percent / 100.0;
    assert_measured!(
        (seen as f64 - truth as f64).abs() <= allowed,
        "{what}: {seen} where {truth} was measured (within {percent} %)"
    );
}

#[test]
fn naps_are_counted_exactly_and_measured() {
    let (waited, report) = Waited::of("nap", None);
    let report = report.unwrap();
    let (blocked, preempted) = waited.switches("nap_often");
    assert_eq!(blocked, report.voluntary, "{}", waited.counts.summary());
    assert!(preempted <= report.involuntary, "{report:?}");
    assert_near(waited.ns("nap_often"), report.away_ns, 2.0, "time in naps");
    let (count, ns) = waited.kind("sleep", "interruptible");
    assert!(
        count + waited.missed >= 199 && ns >= count * 5_000_000,
        "{:?}, {} missed",
        waited.kinds,
        waited.missed
    );
    waited.assert_reason("sleep", blocked);
    waited.assert_complete(980);
}

#[test]
fn threads_that_take_turns_wait_for_a_futex() {
    let (waited, report) = Waited::of("futex", None);
    let report = report.unwrap();
    let (blocked, _) = waited.switches("hand_over");
    assert_eq!(blocked, report.voluntary, "{}", waited.counts.summary());
    let (count, _) = waited.kind("futex", "interruptible");
    // In one run of thirty the kernel gives an empty stack of a few of them, which then have no reason (docs/off-cpu.md).
    let without_stack = waited.counts.count(|stack| {
        let in_kernel = |frame: &String| frame.ends_with("_[k]");
        stack.has("hand_over") && !stack.frames.iter().any(in_kernel)
    });
    assert_measured!(
        count + without_stack >= blocked && without_stack * 100 <= blocked,
        "{:?}: {}",
        waited.kinds,
        waited.counts.without("futex_wait")
    );
    waited.assert_complete(900);
}

#[test]
fn threads_that_pass_bytes_wait_for_a_pipe() {
    let (waited, report) = Waited::of("pipe", None);
    let report = report.unwrap();
    let (blocked, preempted) = waited.switches("pass_along");
    assert_eq!(blocked, report.voluntary, "{}", waited.counts.summary());
    assert!(preempted <= report.involuntary, "{report:?}");
    waited.assert_reason("pipe", blocked);
    waited.assert_complete(900);
}

#[test]
fn a_server_without_callers_waits_for_accept() {
    let (waited, report) = Waited::of("accept", None);
    let report = report.unwrap();
    let (blocked, _) = waited.switches("take_call");
    assert_eq!(blocked, report.voluntary, "{}", waited.counts.summary());
    assert_measured!(blocked >= 190, "{report:?}");
    assert_near(
        waited.ns("take_call"),
        report.away_ns,
        2.0,
        "time in accept",
    );
    waited.assert_reason("accept", blocked);
    waited.assert_complete(900);
}

#[test]
fn busy_threads_without_a_cpu_are_runnable() {
    let (waited, report) = Waited::of("starve", None);
    let report = report.unwrap();
    let (blocked, preempted) = waited.switches("spin");
    assert_eq!(blocked, 0, "{}", waited.counts.summary());
    assert!(
        preempted > 0 && preempted <= report.involuntary,
        "{report:?}"
    );
    assert_near(waited.ns("spin"), report.away_ns, 5.0, "time without a CPU");
    let (_, ns) = waited.kind("preempted", "preempted");
    assert!(ns >= waited.ns("spin"), "{:?}", waited.kinds);
}

#[test]
fn a_thread_that_nobody_wakes_is_counted_to_the_end() {
    let seconds = 3;
    let (waited, _) = Waited::of("stuck", Some(Duration::from_secs(seconds)));
    assert_eq!(waited.switches("stuck").0, 1, "{}", waited.counts.summary());
    let ns = waited.ns("stuck");
    assert_measured!(
        ns >= seconds * 990_000_000,
        "{ns} ns: {}",
        waited.times.summary()
    );
    let (count, _) = waited.kind("pipe", "interruptible");
    assert_eq!(count, 1, "{:?}", waited.kinds);
}

#[test]
fn every_call_chain_that_waits_has_its_own_count() {
    let (waited, report) = Waited::of("chains", None);
    check_chains(&waited.counts, report.unwrap().voluntary).unwrap();
}

/// The time of short waits for the disk, which other work on the machine makes use of as well.
mod alone {
    use super::*;

    #[test]
    fn writes_that_reach_the_disk_wait_for_fsync() {
        // On the disk that the tests are built on: a file in memory would not wait.
        let file = paths::workload_directory().unwrap().join("synced");
        let (waited, report) = Waited::of_arguments(&["fsync", file.to_str().unwrap()], None);
        let report = report.unwrap();
        let (blocked, preempted) = waited.switches("sync_once");
        assert_eq!(blocked, report.voluntary, "{}", waited.counts.summary());
        assert!(blocked >= 100, "{report:?}");
        assert!(preempted <= report.involuntary, "{report:?}");
        // These waits are short, so it matters that a thread is charged for a part of its switches.
        let seen = waited.ns("sync_once");
        let difference = seen.abs_diff(report.away_ns);
        assert_measured!(
            difference <= report.away_ns / 50 + blocked * SWITCH_NS,
            "{seen} ns in fsync, {report:?}"
        );
        let states = ["uninterruptible", "io", "interruptible"];
        let fsync: u64 = states
            .map(|state| waited.kind("fsync", state).0)
            .iter()
            .sum();
        // The write itself may wait for the page that the last one is still writing.
        assert_measured!(fsync * 10 >= blocked * 9, "{:?}", waited.kinds);
        waited.assert_complete(900);
    }
}
