//! Who ended the waits of programs that know it.

use profiler_tests::{
    agent::Agent,
    assert_measured,
    folded::{Folded, FoldedStack, is_function},
    workload::Workload,
};
use rustix::process::Signal;
use serde_json::json;

use crate::targets::{EXIT, START, Targets, start_task};

/// Waits that each program makes.
const ROUNDS: u64 = 200;

/// Beginning of the frame between a wait and its waker.
const WOKEN_BY: &str = "[woken by ";

/// Counts of a program's waits with their wakers, and without.
struct Recorded {
    with: Folded,
    without: Folded,
}

impl Recorded {
    fn of(mode: &str, kind: &str) -> Self {
        let agent = Agent::start().unwrap();
        let targets = Targets::new();
        let name = format!("wakes-{mode}");
        let mut target = targets.ready(Workload::Wakers, &name, &[mode]);
        let specification = json!({
            "kind": kind,
            "wakers": true,
            "target": { "pids": [target.pid()] },
            "duration_s": null,
        });
        let task = start_task(&agent, &specification);
        target.signal(Signal::USR1).unwrap();
        target
            .wait_for_line(START, |line| (line == "done").then_some(()))
            .unwrap();
        agent.api.stop_task(&task).unwrap();
        agent.api.wait_task(&task, &["cancelled"], EXIT).unwrap();
        let count = if kind == "wall" { "" } else { "&value=count" };
        let folded = |more: &str| agent.api.folded(&task, &format!("{count}{more}")).unwrap();
        Self {
            with: folded("&wakers=true"),
            without: folded(""),
        }
    }

    /// Waits in `function`.
    fn waits(&self, function: &str) -> u64 {
        self.with.count(|stack| waits_in(stack, function))
    }

    /// Waits in `function` that were ended by `waker`, in its function `doing`.
    fn ended(&self, function: &str, waker: &str, doing: &str) -> u64 {
        self.with.count(|stack| {
            let woken = halves(stack);
            let named = |name: &str| name == format!("{WOKEN_BY}{waker}]");
            waits_in(stack, function)
                && woken.is_some_and(|(name, frames)| {
                    named(name) && frames.iter().any(|frame| is_function(frame, doing))
                })
        })
    }

    /// Names of the wakers of waits in `function`.
    fn wakers(&self, function: &str) -> Vec<&str> {
        let stacks = self.with.stacks.iter();
        let of = stacks.filter(|stack| waits_in(stack, function));
        of.filter_map(|stack| halves(stack).map(|(name, _)| name))
            .collect()
    }
}

/// Whether a stack is that of a wait in a function, and not of time that was spent ready to go on.
fn waits_in(stack: &FoldedStack, function: &str) -> bool {
    let mut own = stack
        .frames
        .iter()
        .take_while(|frame| !frame.starts_with(WOKEN_BY));
    own.clone().all(|frame| !frame.starts_with("[runnable: "))
        && own.any(|frame| is_function(frame, function))
}

/// The frame with the waker's name, and the waker's frames.
fn halves(stack: &FoldedStack) -> Option<(&str, &[String])> {
    let at = stack
        .frames
        .iter()
        .position(|frame| frame.starts_with(WOKEN_BY))?;
    Some((&stack.frames[at], &stack.frames[at + 1..]))
}

/// Most waits have this waker: some end otherwise (a signal, a preemption on the way).
fn assert_most(part: u64, whole: u64, recorded: &Recorded) {
    assert_measured!(
        whole >= ROUNDS / 2 && part * 10 >= whole * 9,
        "{part} of {whole}: {}",
        recorded.with.summary()
    );
}

#[test]
fn a_futex_is_ended_by_the_thread_that_gives_it() {
    let recorded = Recorded::of("futex", "off_cpu");
    let ended = recorded.ended("take_turn", "giver", "give_turn");
    assert_most(ended, recorded.waits("take_turn"), &recorded);
    assert!(
        recorded.without.count(|stack| halves(stack).is_some()) == 0,
        "wakers are shown on request only"
    );
    assert_eq!(recorded.with.total(), recorded.without.total());
}

#[test]
fn a_pipe_is_ended_by_the_process_that_writes() {
    let recorded = Recorded::of("pipe", "off_cpu");
    let ended = recorded.ended("read_byte", "writer", "write_byte");
    assert_most(ended, recorded.waits("read_byte"), &recorded);
}

#[test]
fn a_nap_is_ended_by_the_timer_and_by_no_thread() {
    let recorded = Recorded::of("nap", "off_cpu");
    let ended = recorded.ended("nap", "interrupt: timer", "hrtimer_wakeup");
    assert_most(ended, recorded.waits("nap"), &recorded);
    for waker in recorded.wakers("nap") {
        assert!(waker.starts_with("[woken by interrupt: "), "{waker}");
    }
    // Nothing below the interrupt is shown: neither its victim's system call nor its program.
    for stack in &recorded.with.stacks {
        let innocent = halves(stack).is_some_and(|(name, frames)| {
            name.starts_with("[woken by interrupt: ")
                && frames
                    .iter()
                    .any(|frame| !frame.ends_with("_[k]") || is_function(frame, "do_syscall_64"))
        });
        assert!(!innocent, "{stack:?}");
    }
}

#[test]
fn a_socket_is_ended_by_the_network_and_not_by_the_sender() {
    let recorded = Recorded::of("socket", "wall");
    let wakers = recorded.wakers("read_byte");
    assert!(
        wakers.contains(&"[woken by interrupt: network]"),
        "{wakers:?}"
    );
    // A softirq thread may do the interrupt's work on a busy machine, and is then named.
    for waker in wakers {
        let handles =
            waker.starts_with("[woken by interrupt: ") || waker.starts_with("[woken by ksoftirqd/");
        assert!(handles, "{waker}: {}", recorded.with.summary());
    }
    assert_eq!(recorded.with.total(), recorded.without.total());
}

#[test]
fn on_cpu_tasks_have_no_wakers() {
    let agent = Agent::start().unwrap();
    let specification = json!({
        "kind": "on_cpu", "wakers": true, "target": { "all": true }, "duration_s": 1,
    });
    let refused = agent.api.create_task(&specification);
    let refused = format!("{:?}", refused.unwrap_err());
    assert!(refused.contains("wakers end waits"), "{refused}");
}
