//! Whole user stacks of programs without frame pointers, whose call chains are known.

use std::time::Duration;

use profiler_tests::{
    agent::Agent,
    assert_measured,
    folded::{Folded, FoldedStack, is_function},
    process::Running,
    wait::wait_until,
    workload::Workload,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::targets::{
    EXIT, START, Targets, burn, endless, finish_task, on_cpu, start_task, stop_task, wait_samples,
};

/// A profile of one process and what it reports about its stacks.
pub(crate) struct Profiled {
    pub(crate) folded: Folded,
    pub(crate) stacks: Value,
}

impl Profiled {
    pub(crate) fn of(agent: &Agent, pids: &[u32], seconds: u64, hz: u64) -> Self {
        let id = start_task(agent, &on_cpu(json!({ "pids": pids }), seconds, hz));
        let task = finish_task(agent, &id, seconds);
        Self {
            folded: agent.api.folded(&id, "").unwrap(),
            stacks: task["stacks"].clone(),
        }
    }

    /// The same until there are this many samples.
    fn until(agent: &Agent, pid: u32, samples: u64, hz: u64) -> Self {
        let id = start_task(agent, &endless(json!({ "pids": [pid] }), hz));
        wait_samples(agent, &id, samples);
        let task = stop_task(agent, &id);
        Self {
            folded: agent.api.folded(&id, "").unwrap(),
            stacks: task["stacks"].clone(),
        }
    }

    /// Checks that at least this share of the stacks is complete, in per mille.
    pub(crate) fn assert_complete(&self, least: u64, what: &str) {
        let number = |name: &str| self.stacks[name].as_u64().unwrap();
        let (samples, complete) = (number("samples"), number("complete"));
        assert_measured!(samples >= 50, "{what}: too few samples: {}", self.stacks);
        assert_measured!(
            complete * 1000 >= samples * least,
            "{what}: {}; {}",
            self.stacks,
            self.folded.summary()
        );
    }

    /// Share of the samples with these functions in this order, root first, in per mille.
    pub(crate) fn per_mille(&self, order: &[&str]) -> u64 {
        let with = self.folded.count(|stack| calls_in_order(stack, order));
        with * 1000 / self.folded.total().max(1)
    }

    fn assert_mostly(&self, order: &[&str], least: u64, what: &str) {
        let share = self.per_mille(order);
        assert_measured!(
            share >= least,
            "{what}: {share} of 1000 samples have {order:?}: {}",
            self.folded.summary()
        );
    }
}

/// Whether the functions stand on the stack in this order, others between them or not.
pub(crate) fn calls_in_order(stack: &FoldedStack, order: &[&str]) -> bool {
    let mut frames = stack.frames.iter();
    order
        .iter()
        .all(|name| frames.any(|frame| is_function(frame, name)))
}

pub(crate) fn run(targets: &Targets, workload: Workload, name: &str, what: &str) -> Running {
    let program = workload.build(name).unwrap();
    let mut target = targets.launch(&program, name).args([what]).start().unwrap();
    target
        .wait_for_line(START, |line| (line == "ready").then_some(()))
        .unwrap();
    burn(&target, Duration::from_millis(50));
    target
}

/// For programs that always do the same: what counts is how many samples there are, not how long they took.
const FAST_HZ: u64 = 999;

const CHAIN: [&str; 7] = [
    "main",
    "chain_one",
    "chain_two",
    "chain_three",
    "chain_four",
    "chain_five",
    "leaf_burns",
];

#[test]
fn call_chains_are_whole_however_the_program_is_linked() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    for (workload, name) in [
        (Workload::Unwind, "unwind-dynamic"),
        (Workload::UnwindStatic, "unwind-static"),
        (Workload::UnwindStaticPie, "unwind-pie"),
    ] {
        let target = run(&targets, workload, name, "deep");
        let profiled = Profiled::until(&agent, target.pid(), 400, FAST_HZ);
        profiled.assert_complete(985, name);
        profiled.assert_mostly(&CHAIN, 970, name);
    }
}

/// Debian builds musl with neither unwind information nor frame pointers: the instructions tell.
#[test]
fn stacks_through_musl_reach_the_start() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    for (workload, kind) in [
        (Workload::UnwindMusl, "musl"),
        (Workload::UnwindMuslStatic, "musl-st"),
    ] {
        for (what, order) in [
            ("deep", &CHAIN[..]),
            ("sort", &["main", "sorts", "compares", "leaf_burns"]),
            (
                "print",
                &["main", "prints", "writes_to_cookie", "leaf_burns"],
            ),
            ("exit", &["runs_at_exit", "leaf_burns"]),
            ("thread", &["thread_begins", "in_thread", "leaf_burns"]),
            ("clock", &["main", "asks_the_clock"]),
        ] {
            let name = format!("{kind}-{what}");
            let target = run(&targets, workload, &name, what);
            let profiled = Profiled::until(&agent, target.pid(), 500, FAST_HZ);
            profiled.assert_complete(985, &name);
            profiled.assert_mostly(order, 970, &name);
        }
    }
}

#[test]
fn a_signal_handler_stands_on_what_it_interrupted() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    for what in ["signal", "altstack"] {
        let target = run(&targets, Workload::Unwind, &format!("unw-{what}"), what);
        let profiled = Profiled::of(&agent, &[target.pid()], 3, 199);
        profiled.assert_complete(970, what);
        let order = [
            "main",
            "interrupted_function",
            "interrupted_leaf",
            "alarm_handler",
            "work_in_handler",
            "leaf_burns",
        ];
        profiled.assert_mostly(&order, 300, what);
        let lost = profiled.folded.count(|stack| {
            stack.has("alarm_handler") && !calls_in_order(stack, &["main", "alarm_handler"])
        });
        assert_measured!(
            lost * 100 <= profiled.folded.total() * 3,
            "{what}: {lost} handlers stand on nothing: {}",
            profiled.folded.summary()
        );
    }
}

#[test]
fn a_very_deep_stack_keeps_its_leaf_and_its_root() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = run(&targets, Workload::Unwind, "unwind-recursion", "recursion");
    let profiled = Profiled::of(&agent, &[target.pid()], 3, 199);
    // A capture is shorter than this stack, so samples before their table end early.
    profiled.assert_complete(900, "recursion");
    let whole = profiled.folded.count(|stack| {
        let elided = stack
            .frames
            .iter()
            .any(|frame| frame.starts_with('[') && frame.ends_with(" frames elided]"));
        let recursions = stack
            .frames
            .iter()
            .filter(|frame| is_function(frame, "recurse"));
        elided
            && recursions.count() > 400
            && calls_in_order(stack, &["main", "recursion_root", "recurse", "leaf_burns"])
    });
    assert_measured!(
        whole * 10 >= profiled.folded.total() * 8,
        "{}",
        profiled.folded.summary()
    );
}

#[test]
fn library_calls_clock_reads_and_threads_reach_their_root() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    for (what, order) in [
        ("library", ["main", "calls_the_library"]),
        ("clock", ["main", "asks_the_clock"]),
        ("thread", ["thread_begins", "in_thread"]),
    ] {
        let target = run(&targets, Workload::Unwind, &format!("unw-{what}"), what);
        let profiled = Profiled::until(&agent, target.pid(), 500, FAST_HZ);
        profiled.assert_complete(985, what);
        profiled.assert_mostly(&order, 970, what);
    }
}

#[test]
fn a_32_bit_process_says_so() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = run(&targets, Workload::Unwind32, "unwind-32", "deep");
    let profiled = Profiled::of(&agent, &[target.pid()], 2, 199);
    let reason = &profiled.stacks["incomplete"][0];
    assert_eq!(reason["reason"], "compat_process", "{}", profiled.stacks);
    assert_eq!(reason["count"], profiled.stacks["samples"]);
    let marked = profiled.folded.count(|stack| {
        stack
            .frames
            .iter()
            .any(|frame| frame == "[stack incomplete: 32-bit process]")
    });
    assert_eq!(
        marked,
        profiled.folded.total(),
        "{}",
        profiled.folded.summary()
    );
}

#[test]
fn a_process_that_starts_into_a_task_has_whole_stacks_from_its_first_sample() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let program = Workload::Unwind.build("unwind-late").unwrap();
    let id = start_task(&agent, &on_cpu(json!({ "comm": "unwind-late" }), 5, 499));
    let _target = targets
        .launch(&program, "unwind-late")
        .args(["deep"])
        .start()
        .unwrap();
    let task = finish_task(&agent, &id, 5);
    let profiled = Profiled {
        folded: agent.api.folded(&id, "").unwrap(),
        stacks: task["stacks"].clone(),
    };
    profiled.assert_complete(950, "a late process");
    profiled.assert_mostly(&CHAIN, 900, "a late process");
}

/// A task for processes has room for the mappings of 255.
#[test]
fn a_process_that_comes_late_gets_the_place_of_one_that_rests() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let program = Workload::Unwind.build("unwind-crowd").unwrap();
    let mut target = targets
        .launch(&program, "unwind-crowd")
        .args(["crowd"])
        .start()
        .unwrap();
    target
        .wait_for_line(START, |line| (line == "waits").then_some(()))
        .unwrap();
    let pids = json!({ "pids": [target.pid()] });
    let id = start_task(&agent, &endless(pids, FAST_HZ));
    target.signal(Signal::USR1).unwrap();
    let late: u32 = target
        .wait_for_line(START, |line| line.strip_prefix("late ")?.parse().ok())
        .unwrap();
    let mut folded = Folded::default();
    wait_until("the stacks of the last process are whole", EXIT, || {
        folded = agent.api.folded(&id, &format!("&pid={late}")).unwrap();
        folded.count(|stack| calls_in_order(stack, &CHAIN)) >= 300
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}", folded.summary()));
    let task = stop_task(&agent, &id);
    let left_out = &task["stacks"]["tables"]["processes_left_out"];
    assert!(left_out.as_u64() > Some(0), "the places are short: {task}");
}

#[test]
fn frame_pointers_alone_are_said_to_be_unverified() {
    let agent = Agent::start_with(profiler_tests::agent::ServeOptions::with_arguments([
        "--unwind=frame-pointers",
    ]))
    .unwrap();
    let targets = Targets::new();
    let target = run(&targets, Workload::Unwind, "unwind-fp", "deep");
    let profiled = Profiled::of(&agent, &[target.pid()], 2, 199);
    assert_eq!(profiled.stacks["unverified"], profiled.stacks["samples"]);
    assert_measured!(
        profiled.per_mille(&CHAIN) < 500,
        "{}",
        profiled.folded.summary()
    );
}
