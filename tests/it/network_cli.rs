//! The command `net`: how it begins and ends.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use profiler_tests::{agent, assert_measured, cleanup::scratch_directory, wait::wait_for};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    edges::{edge_to, number},
    targets::{EXIT, START},
};

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

/// Writes a byte a hundred times a second until `stop`; gives the time of each write, nanoseconds since
/// the Unix epoch.
fn write_steadily(mut to: TcpStream, stop: Arc<AtomicBool>) -> JoinHandle<Vec<u64>> {
    std::thread::spawn(move || {
        let mut written = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            to.write_all(b"x").unwrap();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            written.push(u64::try_from(now.as_nanos()).unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
        written
    })
}

/// On a busy machine a write and the time that is taken of it lie far apart.
mod alone {
    use super::*;

    #[test]
    fn counts_are_those_of_the_time_that_is_told_in_all_and_in_each_step() {
        // A tenth of a second: the programs are not attached at one instant.
        const TOLERANCE: u64 = 10;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _from) = listener.accept().unwrap();
        let reader = std::thread::spawn(move || while let Ok(1..) = server.read(&mut [0; 64]) {});
        let stop = Arc::new(AtomicBool::new(false));
        let writer = write_steadily(client, Arc::clone(&stop));
        let (folder, _guard) = scratch_directory("net").unwrap();
        let pid = format!("--pid={}", std::process::id());
        let arguments = ["net", &pid, "--duration=3s", "--json", "--with=series"];
        let mut net = agent::launch(&arguments, "net", &folder).unwrap();
        let status = net.wait(START + EXIT).unwrap();
        stop.store(true, Ordering::Relaxed);
        let written = writer.join().unwrap();
        reader.join().unwrap();
        assert!(status.success(), "{status}: {}", net.errors());
        let table: Value = serde_json::from_str(&net.output()).unwrap();
        let window = &table["window"];
        let (from_ns, to_ns) = (number(&window["from_ns"]), number(&window["to_ns"]));
        let counted = Duration::from_nanos(to_ns - from_ns);
        assert_measured!(
            counted >= Duration::from_millis(2900) && counted < Duration::from_secs(4),
            "{counted:?}"
        );
        let truth = |from_ns: u64, to_ns: u64| {
            let range = from_ns..to_ns;
            written.iter().filter(|time| range.contains(time)).count() as u64
        };
        let edge = edge_to(&table, port);
        let told = number(&edge["metrics"]["client"]["write"]["count"]);
        let all = truth(from_ns, to_ns);
        assert_measured!(told.abs_diff(all) <= TOLERANCE, "{told}, in truth {all}");
        let series = table["series"].as_array().unwrap();
        let series = series
            .iter()
            .find(|series| series["edge"] == edge["id"])
            .unwrap_or_else(|| panic!("{table:#}"));
        let counts = series["client"]["write"]["count"].as_array().unwrap();
        let steps = series["steps_ms"].as_array().unwrap();
        assert!(steps.len() > 1 && steps.len() == counts.len(), "{series:#}");
        for (step, count) in steps.iter().zip(counts) {
            let at = |end: usize| from_ns + number(&step[end]) * 1_000_000;
            let (told, truth) = (number(count), truth(at(0), at(1)));
            assert_measured!(
                told.abs_diff(truth) <= TOLERANCE,
                "{step}: {told}, in truth {truth}"
            );
        }
    }
}
