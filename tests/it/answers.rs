//! "Why is this pod slow?": the sentence of `diagnose` against causes that the test makes itself, in a real mesh.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent, assert_measured,
    cgroup::{Cgroup, cpu_hierarchy},
    mesh::{AppTrouble, CLIENT_ADDRESS, Mesh, MeshOptions},
    workload::Workload,
};
use serde_json::{Value, json};

use crate::{
    cpu_contention::some_cpu,
    targets::{EXIT, START, Targets, stop_load},
};

const SECONDS: u64 = 8;
/// Over one connection, so that no request waits for another.
const REQUESTS_PER_SECOND: u32 = 10;
const TIME: Duration = Duration::from_millis(40);
/// Of the injected time.
const TOLERANCE: f64 = 0.1;
/// What the sentence says of waits.
const ACCUSATIONS: [&str; 10] = [
    "suspended",
    "not known",
    "asleep",
    "lock",
    "files",
    "memory",
    "blocked",
    "waiting",
    "queued",
    "held",
];

/// A cause, and what is to be found.
struct Case {
    options: MeshOptions,
    /// It is in the sidecar; otherwise in the app.
    is_sidecar: bool,
    kind: &'static str,
    /// In the sentence.
    words: &'static str,
}

fn app(trouble: AppTrouble, kind: &'static str, words: &'static str) -> Case {
    Case {
        options: MeshOptions {
            app_trouble: trouble,
            app_delay: TIME,
            ..steady()
        },
        is_sidecar: false,
        kind,
        words,
    }
}

fn steady() -> MeshOptions {
    MeshOptions {
        rps: REQUESTS_PER_SECOND,
        connections: 1,
        ..MeshOptions::default()
    }
}

/// The document of `diagnose` about the pod of the server: its sidecar and its app.
fn diagnose(mesh: &Mesh, more: &[&str]) -> Value {
    let report = mesh.report();
    diagnosed(&[report.server_envoy_pid, report.server_pid], more)
}

fn diagnosed(pids: &[u32], more: &[&str]) -> Value {
    let pids: Vec<String> = pids.iter().map(|pid| format!("--pid={pid}")).collect();
    let duration = format!("--duration={SECONDS}s");
    let arguments: Vec<&str> = ["diagnose", &duration, "--json"]
        .into_iter()
        .chain(pids.iter().map(String::as_str))
        .chain(more.iter().copied())
        .collect();
    let limit = Duration::from_secs(SECONDS) + 4 * START + EXIT;
    let (status, output, errors) = agent::run(&arguments, limit).unwrap();
    assert_eq!(status.code(), Some(0), "{errors}");
    let diagnosis: Value = serde_json::from_str(&output).unwrap();
    println!("{}", diagnosis["verdict"]);
    diagnosis
}

fn sentence(latency: &Value) -> &str {
    latency["text"].as_str().unwrap()
}

/// The way through the sidecar, which the verdict begins with.
fn way(diagnosis: &Value, pid: u32) -> &Value {
    let latency = &diagnosis["latency"][0];
    assert_eq!(latency["process"]["pid"], pid, "{diagnosis:#}");
    let verdict = diagnosis["verdict"].as_str().unwrap();
    assert!(verdict.starts_with(sentence(latency)), "{verdict}");
    latency
}

/// What a process did meanwhile.
fn inside(latency: &Value, pid: u32) -> &Value {
    let mut all = latency["inside"].as_array().unwrap().iter();
    let found = all.find(|inside| inside["process"]["pid"] == pid);
    found.unwrap_or_else(|| panic!("nothing inside of {pid}: {latency:#}"))
}

fn activity<'a>(inside: &'a Value, kind: &str) -> &'a Value {
    let mut all = inside["activities"].as_array().unwrap().iter();
    let found = all.find(|activity| activity["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}: {inside:#}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[track_caller]
fn near(found: &Value, injected: Duration, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}")) / 1e6;
    let injected = injected.as_secs_f64() * 1e3;
    let off = (found / injected - 1.0).abs();
    assert_measured!(
        off <= TOLERANCE,
        "{what}: {found} ms, and {injected} ms were injected"
    );
}

fn check(case: &Case) {
    let mut mesh = Mesh::up(&case.options).unwrap();
    mesh.start_load().unwrap();
    let tls: &[&str] = if case.options.mtls { &["--tls"] } else { &[] };
    let diagnosis = diagnose(&mesh, tls);
    let report = mesh.report();
    let latency = way(&diagnosis, report.server_envoy_pid);
    let pid = if case.is_sidecar {
        report.server_envoy_pid
    } else {
        report.server_pid
    };
    let inside = inside(latency, pid);
    near(&inside["mean_ns"], TIME, "time in the process");
    let leading = &inside["activities"][0];
    assert_eq!(leading["kind"], case.kind, "{inside:#}");
    // What of a write is work and what is waiting the disk decides.
    if case.kind != "file" {
        near(&leading["mean_ns"], TIME, case.kind);
    }
    let text = sentence(latency);
    assert!(text.contains(case.words), "no {:?} in {text}", case.words);
    // The place with the cause comes first.
    let (_, places) = text.split_once(": ").unwrap();
    let first = places.split(')').next().unwrap();
    assert!(first.contains(case.words), "{text}");
    stop_load(&mut mesh);
}

#[test]
fn an_app_that_sleeps() {
    check(&app(
        AppTrouble::Asleep,
        "asleep",
        "in slow-app (asleep in a timer ",
    ));
}

#[test]
fn an_app_that_sleeps_behind_mutual_tls() {
    let mut case = app(
        AppTrouble::Asleep,
        "asleep",
        "in slow-app (asleep in a timer ",
    );
    case.options.mtls = true;
    check(&case);
}

#[test]
fn an_app_that_computes() {
    check(&app(
        AppTrouble::Computing,
        "running",
        "in slow-app (computing ",
    ));
}

#[test]
fn an_app_that_waits_for_a_lock() {
    check(&app(
        AppTrouble::Lock,
        "lock",
        "in slow-app (waiting for a lock or another thread ",
    ));
}

#[test]
fn an_app_that_writes_to_a_disk() {
    check(&app(
        AppTrouble::File,
        "file",
        "in slow-app (waiting for files ",
    ));
}

#[test]
fn an_app_that_waits_for_another() {
    check(&app(
        AppTrouble::Upstream,
        "own_requests",
        "in slow-app (waiting for slow-app ",
    ));
}

#[test]
fn an_app_with_a_timer_in_its_event_loop() {
    check(&app(
        AppTrouble::Timer,
        "suspended",
        "in mesh-server (suspended ",
    ));
}

#[test]
fn a_filter_of_the_sidecar_that_computes() {
    check(&Case {
        options: MeshOptions {
            inbound_work: TIME,
            ..steady()
        },
        is_sidecar: true,
        kind: "running",
        words: "in envoy (computing ",
    });
}

/// One thread of the sidecar has both connections: a request waits while it computes for another.
#[test]
fn requests_that_wait_for_each_other() {
    let mut mesh = Mesh::up(&MeshOptions {
        inbound_work: TIME,
        connections: 2,
        ..steady()
    })
    .unwrap();
    mesh.start_load().unwrap();
    let diagnosis = diagnose(&mesh, &[]);
    let pid = mesh.report().server_envoy_pid;
    let latency = way(&diagnosis, pid);
    let inside = &latency["inside"][0];
    assert_eq!(inside["process"]["pid"], pid, "{latency:#}");
    for kind in ["running", "queued"] {
        near(&activity(inside, kind)["mean_ns"], TIME, kind);
    }
    let text = sentence(latency);
    assert!(text.contains("queued behind other requests"), "{text}");
    stop_load(&mut mesh);
}

/// Another program shares the CPU of the app: how the time of the app is divided the kernel's account of its thread says.
#[test]
fn a_neighbour_that_takes_the_cpu() {
    let mut mesh = Mesh::up(&app(AppTrouble::Computing, "", "").options).unwrap();
    mesh.start_load().unwrap();
    let pid = mesh.report().server_pid;
    let cpu = &some_cpu();
    let pinned = Command::new("taskset")
        .args(["-a", "-c", "-p", cpu, &pid.to_string()])
        .output()
        .unwrap();
    assert!(pinned.status.success(), "{pinned:?}");
    let targets = Targets::new();
    let program = Workload::SharesC.build("neighbour").unwrap();
    let _neighbour = targets
        .launch(Path::new("taskset"), "neighbour")
        .args(["-c", cpu])
        .args([&program])
        .start()
        .unwrap();
    // It runs half of the time: of the 300 samples that 99 Hz would take, chance alone moves its half by 6 %.
    let diagnosis = diagnose(&mesh, &["--scope=all", "--frequency=499"]);
    let latency = way(&diagnosis, mesh.report().server_envoy_pid);
    let inside = inside(latency, pid);
    let of = |kind: &str| activity(inside, kind);
    let threads = diagnosis["workers"]["threads"].as_array().unwrap();
    let busiest = threads
        .iter()
        .filter(|thread| thread["pid"] == pid)
        .max_by(|a, b| number(&a["cpu_percent"]).total_cmp(&number(&b["cpu_percent"])));
    let busiest = busiest.unwrap_or_else(|| panic!("no thread of {pid}: {diagnosis:#}"));
    let ran = number(&busiest["cpu_percent"]);
    let waited = number(&busiest["run_queue_percent"]);
    // It computes until its time is over, and has the CPU for a part of it.
    let share = |part: f64| TIME.mul_f64(part / (ran + waited));
    near(&of("running")["mean_ns"], share(ran), "running");
    let waits = of("waiting_for_cpu");
    near(&waits["mean_ns"], share(waited), "waiting for a CPU");
    let both = number(&of("running")["mean_ns"]) + number(&waits["mean_ns"]);
    near(&json!(both), TIME, "computing, with and without a CPU");
    assert_measured!(waits["what"] == "with neighbour on it", "{inside:#}");
    let neighbours = number(&waits["what_ns"]) / number(&waits["mean_ns"]);
    assert_measured!((0.8..=1.0).contains(&neighbours), "{inside:#}");
    let text = sentence(latency);
    assert!(text.contains("with neighbour on it"), "{text}");
    stop_load(&mut mesh);
}

/// Two requests at once, and one connection to the app: each waits for the other.
#[test]
fn a_full_connection_pool() {
    let mut mesh = Mesh::up(&MeshOptions {
        inbound_connections: 1,
        connections: 2,
        rps: 0,
        ..app(AppTrouble::Asleep, "", "").options
    })
    .unwrap();
    mesh.start_load().unwrap();
    let diagnosis = diagnose(&mesh, &[]);
    let report = mesh.report();
    let latency = way(&diagnosis, report.server_envoy_pid);
    let held = activity(inside(latency, report.server_envoy_pid), "suspended");
    near(&held["mean_ns"], TIME, "waiting for a connection");
    let asleep = activity(inside(latency, report.server_pid), "asleep");
    near(&asleep["mean_ns"], TIME, "asleep");
    let text = sentence(latency);
    assert_measured!(
        text.contains("for a free connection: its only one to slow-app "),
        "{text}"
    );
    stop_load(&mut mesh);
}

/// The app gets less CPU time than it asks for, and how long it waits the kernel says.
#[test]
fn a_cpu_quota() {
    /// Requests, of which one comes each 100 ms, meet it at all its places: otherwise what they wait depends on when they were looked at.
    const PERIOD_US: u64 = 45_000;
    let cgroup = Cgroup::create(&cpu_hierarchy(), "quota", "app").unwrap();
    cgroup.limit_cpu(PERIOD_US / 5, PERIOD_US).unwrap();
    let mut mesh = Mesh::up(&app(AppTrouble::Computing, "", "").options).unwrap();
    let report = mesh.report();
    let procs = cgroup.path().join("cgroup.procs");
    std::fs::write(procs, report.server_pid.to_string()).unwrap();
    mesh.start_load().unwrap();
    let (began, before) = (Instant::now(), cgroup.throttled().unwrap());
    let diagnosis = diagnose(&mesh, &[]);
    let throttled = cgroup.throttled().unwrap().saturating_sub(before);
    let requests = began.elapsed().as_secs_f64() * f64::from(REQUESTS_PER_SECOND);
    let latency = way(&diagnosis, report.server_envoy_pid);
    let waits = activity(inside(latency, report.server_pid), "waiting_for_cpu");
    near(
        &waits["mean_ns"],
        throttled.div_f64(requests),
        "waiting for a CPU",
    );
    let text = sentence(latency);
    assert!(text.contains("its quota being used up"), "{text}");
    stop_load(&mut mesh);
}

/// One in ten segments with a request is lost on the way to the other pod, and sent again when its timer ends.
#[test]
fn packet_loss() {
    /// The least that the kernel waits for an acknowledgement.
    const TIMER: Duration = Duration::from_millis(200);
    // One after the other: with ten a second one loss more or less would be an eighth of all.
    let mut mesh = Mesh::up(&MeshOptions { rps: 0, ..steady() }).unwrap();
    // Requests alone are that long.
    let rule = format!(
        "INPUT -p tcp -s {CLIENT_ADDRESS} -m length --length 100: -m statistic --mode nth --every 10 --packet 0 -j DROP"
    );
    let at_server = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        mesh.server.netns.run(&words).unwrap()
    };
    at_server(&format!("iptables -w -A {rule}"));
    mesh.start_load().unwrap();
    let report = mesh.report();
    let pids = [report.client_envoy_pid, report.client_pid.unwrap()];
    let diagnosis = diagnosed(&pids, &[]);
    let load = mesh.stop_load().unwrap().unwrap();
    let listed = mesh
        .server
        .netns
        .run(&["iptables", "-L", "INPUT", "1", "-v", "-x", "-n"]);
    let listed = listed.unwrap();
    let dropped: u32 = listed.split_whitespace().next().unwrap().parse().unwrap();
    let requests = u32::try_from(load.requests).unwrap();
    let latency = way(&diagnosis, report.client_envoy_pid);
    let mut parts = latency["parts"].as_array().unwrap().iter();
    let network = parts.find(|part| part["place"] == "upstream").unwrap();
    near(&network["mean_ns"], TIMER * dropped / requests, "network");
    let text = sentence(latency);
    let (_, places) = text.split_once(": ").unwrap();
    let first = places.split(')').next().unwrap();
    assert!(
        first.contains("until the envoy behind it responds, the network included (")
            && first.contains("of the segments were retransmitted"),
        "{text}"
    );
}

#[test]
fn a_healthy_pod_is_accused_of_nothing() {
    let mut mesh = Mesh::up(&steady()).unwrap();
    mesh.start_load().unwrap();
    let diagnosis = diagnose(&mesh, &[]);
    let latency = way(&diagnosis, mesh.report().server_envoy_pid);
    let text = sentence(latency);
    for word in ACCUSATIONS {
        assert_measured!(!text.contains(word), "{text}");
    }
    let mean_ms = latency["mean_ns"].as_f64().unwrap() / 1e6;
    assert_measured!(mean_ms < 5.0, "{text}");
    // Nor does the little CPU time that it takes accuse a part of it.
    let findings = diagnosis["findings"].as_array().unwrap();
    let blamed: Vec<&Value> = findings
        .iter()
        .filter(|finding| finding["severity"] != "info")
        .map(|finding| &finding["title"])
        .collect();
    assert_measured!(blamed.is_empty(), "{blamed:?}");
    stop_load(&mut mesh);
}
