//! Check-ups of a real sidecar under load, over the API and by the command `diagnose`.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::{self, Agent, ServeOptions},
    assert_measured,
    mesh::{AccessLog, Mesh, MeshOptions, Tracing, sidecar::INBOUND_STATS},
    wait::wait_for,
};
use serde_json::{Value, json};

use crate::targets::{CpuHistory, EXIT, START, Targets, busy_mesh, stop_load};

const CHECKUPS: &str = "/api/v1/checkups";
const SECONDS: u64 = 10;
/// Steady and far from what two CPUs can carry.
const REQUESTS_PER_SECOND: u32 = 500;

/// A mesh that traces every request and logs each as a line.
fn traced() -> MeshOptions {
    MeshOptions {
        workers: 2,
        tracing: Tracing::Percent(100.0),
        access_log: AccessLog::Text,
        rps: REQUESTS_PER_SECOND,
        ..MeshOptions::default()
    }
}

fn start_checkup(agent: &Agent, target: &Value) -> String {
    let body = json!({ "target": target, "duration_s": SECONDS, "frequency_hz": 499 });
    let answer = agent.api.send("POST", CHECKUPS, Some(&body.to_string()));
    let answer = answer.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json().unwrap()["id"].as_str().unwrap().to_owned()
}

/// Waits until a check-up is over; what the processes use is read all the while.
fn end_checkup(agent: &Agent, id: &str, pid: u32, history: &mut CpuHistory) -> Value {
    let limit = Duration::from_secs(SECONDS) + EXIT;
    let path = format!("{CHECKUPS}/{id}");
    let ended = wait_for("the check-up ends", limit, || {
        history.read(&[pid]);
        std::thread::sleep(Duration::from_millis(20));
        let checkup = agent.api.get_json(&path).unwrap();
        (checkup["state"] != "running").then_some(checkup)
    });
    ended.unwrap_or_else(|error| panic!("{error:#}\nagent log:\n{}", agent.log()))
}

fn number(value: &Value, place: &str) -> f64 {
    let found = value.pointer(place).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {place} of {value:#}"))
}

fn items<'a>(diagnosis: &'a Value, key: &str) -> Vec<&'a str> {
    let all = diagnosis["configuration"]["items"].as_array();
    let all = all.unwrap_or_else(|| panic!("no configuration: {}", diagnosis["limits"]));
    let with_key = all.iter().filter(|item| item["key"] == key);
    with_key
        .map(|item| item["value"].as_str().unwrap())
        .collect()
}

fn near(found: f64, expected: f64, percent: f64, what: &str) {
    let error = (found / expected - 1.0).abs() * 100.0;
    assert_measured!(
        error <= percent,
        "{what}: {found} is {error:.2} % from {expected}"
    );
}

/// Runs `diagnose` on a process; returns the exit code, what it printed and what it said.
fn diagnose(pid: u32, seconds: u64, more: &[&str]) -> (Option<i32>, String, String) {
    let pid = format!("--pid={pid}");
    let duration = format!("--duration={seconds}s");
    let mut arguments = vec!["diagnose", &pid, &duration, "--frequency=499"];
    arguments.extend(more);
    // Names of a large stripped program take a while in a build that is not optimised.
    let limit = Duration::from_secs(seconds) + 4 * START;
    let (status, output, errors) = agent::run(&arguments, limit).unwrap();
    (status.code(), output, errors)
}

fn write_diagnosis(path: &Path, pid: u32, seconds: u64) -> Value {
    let (code, output, errors) = diagnose(pid, seconds, &["--json"]);
    assert_eq!(code, Some(0), "{errors}");
    fs::write(path, &output).unwrap();
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

#[test]
fn the_command_says_what_costs_what_and_its_exit_code_serves_pipelines() {
    let targets = Targets::new();
    let (mut mesh, [_, pid]) = busy_mesh(&traced());
    let old = targets.folder.join("old.json");
    let diagnosis = write_diagnosis(&old, pid, 8);
    assert_eq!(diagnosis["version"], 1);
    assert_eq!(diagnosis["processes"][0]["pid"], pid);
    assert_eq!(diagnosis["configuration"]["version"], "1.40.0");
    assert!(number(&diagnosis, "/totals/cpu_us_per_request/value") > 0.0);
    let found = |id: &str| {
        let all = diagnosis["findings"].as_array().unwrap();
        all.iter().find(|finding| finding["id"] == id)
    };
    let tracing = found("tracing").unwrap_or_else(|| panic!("{}", diagnosis["findings"]));
    let configured = tracing["configured"].as_str().unwrap_or_default();
    assert!(configured.contains("100 %"), "{tracing:#}");

    // The verdict is the first line, and the exit code is that of a match.
    let (code, output, errors) = diagnose(
        pid,
        5,
        &[
            "--compare",
            old.to_str().unwrap(),
            "--fail-on",
            "tracing,lua",
        ],
    );
    assert_eq!(code, Some(3), "{errors}");
    assert!(errors.contains("--fail-on matches: tracing"), "{errors}");
    let order = [
        "WHAT CHANGED",
        "FINDINGS",
        "WHERE THE CPU TIME GOES",
        "LIMITS",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|part| {
            output
                .find(part)
                .unwrap_or_else(|| panic!("no {part} in\n{output}"))
        })
        .collect();
    assert!(places.is_sorted() && places[0] > 0, "{output}");
    assert!(output.contains("tracing"), "{output}");

    // Another set of processes is not compared: the diagnosis is printed, and the command fails with the reason.
    let mut other = diagnosis.clone();
    let mut sink = other["processes"][0].clone();
    (sink["exe"], sink["share_percent"]) = (json!("/bin/zipkin-sink"), json!(12.0));
    other["processes"].as_array_mut().unwrap().push(sink);
    fs::write(&old, other.to_string()).unwrap();
    let (code, output, errors) = diagnose(pid, 3, &["--compare", old.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        output.contains("FINDINGS") && !output.contains("WHAT CHANGED"),
        "{output}"
    );
    assert!(errors.contains("zipkin-sink: 1 before (12.0 %"), "{errors}");

    // Nothing matches: success, as Markdown.
    let (code, output, errors) = diagnose(pid, 2, &["--markdown", "--fail-on", "xds"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        output.starts_with("**") && output.contains("## Findings"),
        "{output}"
    );
    stop_load(&mut mesh);
    let arguments = ["diagnose", "--comm=no-such-comm", "--duration=1s"];
    let (status, _, errors) = agent::run(&arguments, 4 * START).unwrap();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains("no process of the target"), "{errors}");
}

#[test]
fn what_cannot_be_right_ends_the_command_at_once() {
    let own = std::process::id();
    let began = Instant::now();
    for (more, code, wanted) in [
        (vec!["--fail-on", "traccing"], 2, "is neither a severity"),
        (
            vec!["--compare", "/nonexistent/old.json"],
            2,
            "--compare /nonexistent/old.json",
        ),
        (vec!["--json", "--markdown"], 2, "cannot be used with"),
        (vec!["--envoy-admin", "on"], 2, "invalid value"),
    ] {
        let (found, _, errors) = diagnose(own, 600, &more);
        assert_eq!(found, Some(code), "{more:?}: {errors}");
        assert!(errors.contains(wanted), "{more:?}: {errors}");
    }
    let (code, _, errors) = diagnose(4_194_305, 600, &[]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("no such process: 4194305"), "{errors}");
    assert_measured!(began.elapsed() < Duration::from_mins(1));
}

#[test]
fn an_envoy_that_cannot_be_asked_is_said_and_the_rest_is_there() {
    let targets = Targets::new();
    let mesh = Mesh::up(&MeshOptions::default()).unwrap();
    let impostor = targets.busy("envoy");
    let limits_of = |pid: u32, more: &[&str]| {
        let mut arguments = vec!["--json"];
        arguments.extend(more);
        let (code, output, errors) = diagnose(pid, 2, &arguments);
        assert_eq!(code, Some(0), "{errors}");
        let diagnosis: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(diagnosis["totals"]["requests"], json!(null));
        assert_eq!(diagnosis["configuration"], json!(null));
        assert!(
            diagnosis["totals"]["cpu_cores"].is_number(),
            "{diagnosis:#}"
        );
        diagnosis["limits"].to_string()
    };
    let envoy = mesh.server.envoy.pid();
    let (unreachable, off) = std::thread::scope(|scope| {
        let unreachable = scope.spawn(|| limits_of(impostor.pid(), &[]));
        let off = limits_of(envoy, &["--envoy-admin", "off"]);
        (unreachable.join().unwrap(), off)
    });
    assert!(
        unreachable.contains("listens on no address"),
        "{unreachable}"
    );
    assert!(off.contains("envoy_admin is off"), "{off}");
}

/// Other load changes what a request costs from one check-up to the next.
mod alone {
    use super::*;

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "all stay far below 2^52")]
    fn a_sidecar_s_requests_configuration_and_cpu_time_are_known_and_outlive_the_agent() {
        let mut agent = Agent::start().unwrap();
        let (mut mesh, [_, pid]) = busy_mesh(&traced());
        let mut history = CpuHistory::default();
        history.read(&[pid]);
        let completed = format!("http.{INBOUND_STATS}.downstream_rq_completed");
        let before = (Instant::now(), mesh.server.stat(&completed).unwrap());
        let target = json!({ "pids": [pid] });
        let first = start_checkup(&agent, &target);
        let checkup = end_checkup(&agent, &first, pid, &mut history);
        assert_eq!(checkup["state"], "finished", "{checkup:#}");
        assert_eq!(checkup["observed"], true, "{}", agent.log());
        for task in checkup["tasks"].as_array().unwrap() {
            assert_eq!(task["state"], "finished", "{task:#}");
        }
        let after = (Instant::now(), mesh.server.stat(&completed).unwrap());

        let path = format!("{CHECKUPS}/{first}/diagnosis?pid={pid}");
        let diagnosis = agent.api.get_json(&path).unwrap();
        // Requests: Envoy's own count of a time that is a little longer, as a rate.
        assert_eq!(
            diagnosis["totals"]["requests"]["source"],
            "Envoy's own counters"
        );
        let rate = (after.1 - before.1) as f64 / (after.0 - before.0).as_secs_f64();
        near(
            number(&diagnosis, "/totals/requests/per_second"),
            rate,
            3.0,
            "requests per second",
        );
        // CPU time: the test's own reading of the kernel's accounts.
        let window = |name: &str| diagnosis["window"][name].as_u64().unwrap();
        let (from, to) = (window("from_ns"), window("to_ns"));
        let used = history.between(pid, from, to) as f64;
        let cores = number(&diagnosis, "/totals/cpu_cores");
        near(cores, used / (to - from) as f64, 2.0, "CPU cores");
        let us = number(&diagnosis, "/totals/cpu_us_per_request/value");
        near(us, cores * 1e6 / rate, 4.0, "CPU time for each request");
        assert_measured!(number(&diagnosis, "/totals/cpu_us_per_request/low") < us);
        assert_measured!(number(&diagnosis, "/totals/cpu_us_per_request/high") > us);
        // Configuration: what the mesh was told.
        assert_eq!(diagnosis["configuration"]["version"], "1.40.0");
        assert_eq!(diagnosis["configuration"]["concurrency"], 2);
        assert_eq!(
            items(&diagnosis, "tracing.provider"),
            ["envoy.tracers.zipkin (2 times)"]
        );
        assert_eq!(items(&diagnosis, "tracing.sampling"), ["100 % (2 times)"]);
        let log = items(&diagnosis, "access_log");
        assert!(
            log.len() == 1 && log[0].starts_with("envoy.access_loggers.file to "),
            "{log:?}"
        );
        assert_eq!(
            items(&diagnosis, "http_filter"),
            ["envoy.filters.http.router (2 times)"]
        );
        assert_eq!(items(&diagnosis, "tls.upstream"), ["0 of 5 clusters"]);
        assert_eq!(items(&diagnosis, "upstream.http1"), ["5"]);
        let text = diagnosis.to_string();
        assert!(!text.contains("PRIVATE KEY"), "no secret is kept");
        assert!(number(&diagnosis, "/network/connections_opened") >= 0.0);

        // The same once more is not a change.
        let second = start_checkup(&agent, &target);
        end_checkup(&agent, &second, pid, &mut history);
        let compared = format!("{CHECKUPS}/compare?a={first}&b={second}&pid_a={pid}&pid_b={pid}");
        let compared = agent.api.get_json(&compared).unwrap();
        let rows = compared["rows"].as_array().unwrap();
        assert!(rows.len() > 3, "{compared:#}");
        for row in rows {
            assert_measured!(row["significant"] == false, "{row:#}");
        }
        let total = &compared["totals"]["cpu_us_per_request"];
        assert_measured!(total["significant"] == false, "{compared:#}");
        stop_load(&mut mesh);

        // What was kept is there for another agent.
        assert!(agent.stop().unwrap().success());
        let again = Agent::start_with(ServeOptions {
            data_dir: Some(agent.data_dir.clone()),
            ..ServeOptions::default()
        })
        .unwrap();
        let list = again.api.get_json(CHECKUPS).unwrap();
        let ids: Vec<&str> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|checkup| checkup["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, [second.as_str(), first.as_str()]);
        let kept = again.api.get_json(&path).unwrap();
        for part in ["totals", "configuration", "matrix", "workers", "network"] {
            assert_eq!(kept[part], diagnosis[part], "{part}");
        }
        let deleted = again
            .api
            .send("DELETE", &format!("{CHECKUPS}/{first}"), None);
        assert_eq!(deleted.unwrap().status, 204);
        assert_eq!(again.api.get_json("/api/v1/tasks").unwrap()["total"], 3);
    }
}
