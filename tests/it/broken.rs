//! Tests that fail on purpose, each in another way: the step `runner` checks their reports.

use std::{thread, time::Duration};

use profiler_tests::{agent::Agent, netns::ip, wait::wait_for};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(20);

#[test]
#[ignore = "not a test: the step `runner` sees it fail"]
fn an_assertion() {
    let agent = Agent::start().unwrap();
    let meta = agent.api.get_json("/api/v1/meta").unwrap();
    assert_eq!(meta["version"], "0.0.0-broken");
}

#[test]
#[ignore = "not a test: the step `runner` sees it fail"]
fn a_measurement() {
    profiler_tests::assert_measured!(std::process::id() == 0, "{} is not 0", std::process::id());
}

#[test]
#[ignore = "not a test: the step `runner` sees it fail"]
fn a_hang() {
    loop {
        thread::sleep(LIMIT);
    }
}

#[test]
#[ignore = "not a test: the step `runner` sees it fail"]
fn an_agent_that_dies() {
    let mut agent = Agent::start().unwrap();
    let pid = Pid::from_raw(i32::try_from(agent.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::ABORT).unwrap();
    wait_for("the agent dies", LIMIT, || {
        (!agent.is_running()).then_some(())
    })
    .unwrap();
    agent.api.get_json("/api/v1/meta").unwrap();
}

#[test]
#[ignore = "not a test: the step `runner` sees it take longer than it may"]
fn a_slow_one() {
    // Longer than one and a half times its budget, shorter than three times, when it is ended.
    thread::sleep(Duration::from_secs(4));
    assert!(ip(&["netns", "list"]).is_ok());
}
