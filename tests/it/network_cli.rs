//! The command `net`: how it begins and ends.

use std::process::{Command, Stdio};

use profiler_tests::{agent, cleanup::scratch_directory, wait::wait_for};
use rustix::process::Signal;
use serde_json::Value;

use crate::targets::{EXIT, START};

#[test]
fn it_ends_with_a_note_when_the_last_process_of_the_target_has_ended() {
    // Its child outlives it, and is what is waited for.
    let mut target = Command::new("sh")
        .args(["-c", "read line; sleep 1 & exit 0"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let (folder, _guard) = scratch_directory("net").unwrap();
    let pid = format!("--pid={}", target.id());
    let mut net =
        agent::launch(&["net", &pid, "--duration=300s", "--json"], "net", &folder).unwrap();
    wait_for("the command watches", START, || {
        net.errors().contains("watching").then_some(())
    })
    .unwrap();
    drop(target.stdin.take());
    assert!(target.wait().unwrap().success());
    let status = net.wait(EXIT).unwrap();
    assert!(status.success(), "{status}: {}", net.errors());
    let note = "note: every process of the target has ended";
    assert_eq!(net.errors().matches(note).count(), 1, "{}", net.errors());
    let table: Value = serde_json::from_str(&net.output()).unwrap();
    assert!(table["edges"].is_array(), "{table:#}");
}

/// Whether the process has a handler for SIGINT.
fn handles_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 2 != 0)
}

#[test]
fn interrupted_before_it_watches_it_says_that_nothing_was_counted() {
    let (folder, _guard) = scratch_directory("net").unwrap();
    // Loading the programs takes some tenths of a second; a machine that was busy elsewhere meanwhile
    // gives another try.
    for _ in 0..10 {
        let mut net = agent::launch(&["net", "--all", "--json"], "net", &folder).unwrap();
        wait_for("it listens to signals", START, || {
            handles_interrupts(net.pid()).then_some(())
        })
        .unwrap();
        let status = net.interrupt(Signal::INT).unwrap();
        if net.errors().contains("watching") {
            continue;
        }
        assert_eq!(status.code(), Some(1), "{status}: {}", net.errors());
        let message = "stopped before it watched: nothing was counted";
        assert!(net.errors().contains(message), "{}", net.errors());
        assert_eq!(net.output(), "");
        return;
    }
    panic!("it always watched at once");
}
