//! `profiler-demo` leaves nothing behind, however it ends.

use std::{fs, path::PathBuf, time::Duration};

use profiler_tests::{
    agent::{Agent, ServeOptions},
    cleanup::{leftovers_lock, leftovers_of, remove_leftovers, scratch_directory},
    mesh::{LoadReport, Mesh, MeshOptions, MeshReport},
    netns::ip,
    paths::{own_program, require_root},
    process::{Launch, Running},
    wait::wait_until,
};
use rustix::process::{Pid, Signal, kill_process};

const UP: Duration = Duration::from_mins(1);
const DOWN: Duration = Duration::from_secs(30);

struct Demo {
    process: Running,
    report: MeshReport,
    _logs: profiler_tests::cleanup::Guard,
}

fn up(arguments: &[&str]) -> Demo {
    require_root().unwrap();
    let (logs, guard) = scratch_directory("demo").unwrap();
    let program = own_program("profiler-demo").unwrap();
    let mut process = Launch::new(&program, "demo", &logs)
        .args(["mesh", "up"])
        .args(arguments)
        .start()
        .unwrap();
    let report = process
        .wait_for_line(UP, |line| serde_json::from_str(line).ok())
        .unwrap();
    Demo {
        process,
        report,
        _logs: guard,
    }
}

fn pids(report: &MeshReport) -> Vec<u32> {
    let mut pids = vec![
        report.client_envoy_pid,
        report.server_envoy_pid,
        report.server_pid,
    ];
    pids.extend(report.client_pid);
    pids.extend(report.zipkin_pid);
    pids
}

/// Namespaces, links, folders and processes of the demo that still exist.
fn remains(demo: u32, report: &MeshReport) -> Vec<String> {
    let mut found: Vec<String> = leftovers_of(Some(demo))
        .iter()
        .map(|resource| format!("{resource:?}"))
        .collect();
    let namespaces = ip(&["netns", "list"]).unwrap();
    for name in [&report.client_netns, &report.server_netns] {
        if namespaces.contains(name.as_str()) {
            found.push(format!("netns {name}"));
        }
    }
    for link in ip(&["-o", "link", "show", "type", "veth"]).unwrap().lines() {
        let into = link.split(" link-netns ").nth(1).unwrap_or_default();
        let into = into.split_whitespace().next();
        if into.is_some_and(|netns| {
            [&report.client_netns, &report.server_netns]
                .iter()
                .any(|own| *own == netns)
        }) {
            found.push(format!("link {link}"));
        }
    }
    for pid in pids(report) {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if !state.is_empty() && !state.contains(") Z ") {
            found.push(format!("process {pid}"));
        }
    }
    found
}

fn assert_gone(demo: u32, report: &MeshReport) {
    let gone = wait_until("nothing is left", DOWN, || remains(demo, report).is_empty());
    assert!(gone.is_ok(), "left behind: {:?}", remains(demo, report));
}

fn end_by(signal: Signal) {
    let mut demo = up(&["--tracing", "100", "--mtls"]);
    let pid = demo.process.pid();
    assert!(
        remains(pid, &demo.report).len() >= 7,
        "{:?}",
        remains(pid, &demo.report)
    );
    demo.process.signal(signal).unwrap();
    let status = demo.process.wait(DOWN).unwrap();
    assert!(status.success(), "{status}: {}", demo.process.errors());
    assert_gone(pid, &demo.report);
    let last = demo
        .process
        .output()
        .lines()
        .last()
        .map(str::to_owned)
        .unwrap();
    let load: LoadReport = serde_json::from_str(&last).unwrap();
    assert_eq!(load.errors, 0, "{load:?}");
}

#[test]
fn ctrl_c_takes_everything_down() {
    end_by(Signal::INT);
}

#[test]
fn sigterm_takes_everything_down() {
    end_by(Signal::TERM);
}

#[test]
fn the_duration_ends_it() {
    let mut demo = up(&["--duration", "500ms", "--rps", "100"]);
    let pid = demo.process.pid();
    assert!(demo.process.wait(DOWN).unwrap().success());
    assert_gone(pid, &demo.report);
}

/// The agent is reached from both pods, and finds the processes of the sidecars.
fn access_logs_reach_an_agent(kind: &str) {
    let mut demo = up(&["--access-log", kind, "--rps", "200"]);
    let pid = demo.process.pid();
    let address = demo.report.access_logs.unwrap();
    let arguments = vec![
        format!("--access-logs={address}"),
        "--access-logs-plaintext".to_owned(),
    ];
    let agent = Agent::start_with(ServeOptions {
        arguments,
        ..ServeOptions::default()
    })
    .unwrap();
    let answer = || agent.api.get_json("/api/v1/access-logs").unwrap();
    let sidecars = [demo.report.client_envoy_pid, demo.report.server_envoy_pid];
    let has_come = || {
        let answer = answer();
        let rows = answer["envoys"].as_array().unwrap();
        sidecars.iter().all(|pid| {
            let mut rows = rows.iter().filter(|row| row["pid"] == *pid);
            rows.any(|row| row["requests"].as_u64() > Some(100) && row["claimed"] == false)
        })
    };
    let come = wait_until("requests of both sidecars come", UP, has_come);
    assert!(come.is_ok(), "{:#}: {}", answer(), agent.log());
    demo.process.signal(Signal::TERM).unwrap();
    let status = demo.process.wait(DOWN).unwrap();
    assert!(status.success(), "{status}: {}", demo.process.errors());
    assert_gone(pid, &demo.report);
}

#[test]
fn access_logs_reach_an_agent_by_grpc() {
    access_logs_reach_an_agent("agent-grpc");
}

#[test]
fn access_logs_reach_an_agent_by_opentelemetry() {
    access_logs_reach_an_agent("agent-otlp");
}

#[test]
fn a_killed_sidecar_is_reported_and_everything_goes_down() {
    let mut demo = up(&[]);
    let pid = demo.process.pid();
    let envoy = Pid::from_raw(i32::try_from(demo.report.server_envoy_pid).unwrap()).unwrap();
    kill_process(envoy, Signal::KILL).unwrap();
    let status = demo.process.wait(DOWN).unwrap();
    assert_eq!(status.code(), Some(1));
    let errors = demo.process.errors();
    assert!(
        errors.contains("server-envoy ended unexpectedly"),
        "{errors}"
    );
    assert_gone(pid, &demo.report);
}

#[test]
fn what_a_killed_demo_leaves_is_removed_by_the_next_run() {
    let mut demo = up(&["--idle"]);
    let pid = demo.process.pid();
    // Or the next test that begins elsewhere removes them.
    let lock = leftovers_lock().unwrap();
    demo.process.interrupt(Signal::KILL).unwrap();
    // Its children die with it; names of namespaces and the folder stay.
    let processes = || {
        remains(pid, &demo.report)
            .iter()
            .any(|left| left.starts_with("process"))
    };
    wait_until("the children are gone", DOWN, || !processes()).unwrap();
    assert!(!remains(pid, &demo.report).is_empty());
    drop(lock);
    remove_leftovers();
    assert_gone(pid, &demo.report);
}

#[test]
fn a_panic_takes_everything_down() {
    require_root().unwrap();
    let result = std::panic::catch_unwind(|| {
        let mesh = Mesh::up(&MeshOptions::default()).unwrap();
        std::panic::panic_any(mesh.report());
    });
    let report = *result.unwrap_err().downcast::<MeshReport>().unwrap();
    let alive = pids(&report);
    let alive: Vec<_> = alive
        .into_iter()
        .map(|pid| PathBuf::from(format!("/proc/{pid}")))
        .collect();
    wait_until("the processes are gone", DOWN, || {
        alive.iter().all(|path| !path.exists())
    })
    .unwrap();
    let namespaces = ip(&["netns", "list"]).unwrap();
    assert!(!namespaces.contains(&report.client_netns), "{namespaces}");
    assert!(!namespaces.contains(&report.server_netns), "{namespaces}");
    assert!(!report.folder.exists());
}

#[test]
fn an_interrupted_test_run_takes_everything_down() {
    let (logs, _guard) = scratch_directory("interrupted").unwrap();
    let own = std::env::current_exe().unwrap();
    let mut run = Launch::new(&own, "it", &logs)
        .args([
            "mesh::alone::fixed_rate_is_kept",
            "--exact",
            "--test-threads=1",
        ])
        .start()
        .unwrap();
    let pid = run.pid();
    // Two namespaces and a folder.
    wait_until("the mesh comes up", UP, || {
        leftovers_of(Some(pid)).len() >= 3
    })
    .unwrap();
    run.signal(Signal::INT).unwrap();
    assert!(!run.wait(DOWN).unwrap().success());
    let gone = wait_until("nothing is left", DOWN, || {
        leftovers_of(Some(pid)).is_empty()
    });
    assert!(gone.is_ok(), "left behind: {:?}", leftovers_of(Some(pid)));
}
