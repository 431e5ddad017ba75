//! The overview of all pods: what it says of a real mesh, against what the test makes of it.

use std::{fs, time::Duration};

use profiler_tests::{
    agent::{self, Agent, ServeOptions},
    assert_measured,
    cgroup::{Cgroup, cpu_hierarchy},
    mesh::{AppTrouble, Mesh, MeshOptions},
    wait::wait_for,
    workload::Workload,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::targets::{EXIT, START, Targets, stop_load};

const PATH: &str = "/api/v1/overview";
const REQUESTS_PER_SECOND: u32 = 50;
const DELAY_MS: f64 = 100.0;
/// Of rates.
const TOLERANCE: f64 = 0.1;
/// The agent reads every ten seconds.
const READINGS: Duration = Duration::from_mins(2);
/// Of one core, in percent.
const BUDGET_PERCENT: f64 = 1.0;

fn overview(agent: &Agent) -> Value {
    agent.api.get_json(PATH).unwrap()
}

/// The row that a process is on.
fn row_of(overview: &Value, pid: u32) -> Option<&Value> {
    let mut rows = overview["rows"].as_array()?.iter();
    rows.find(|row| row["pids"].as_array().unwrap().contains(&json!(pid)))
}

/// The overview once the row of a process is as wanted.
fn overview_where(
    agent: &Agent,
    pid: u32,
    what: &str,
    is_wanted: impl Fn(&Value) -> bool,
) -> Value {
    let mut last = Value::Null;
    let found = wait_for(what, START.max(READINGS), || {
        last = overview(agent);
        row_of(&last, pid)
            .is_some_and(&is_wanted)
            .then(|| last.clone())
    });
    found.unwrap_or_else(|error| panic!("{error:#}: {last:#}"))
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert_measured!(
        (found / expected - 1.0).abs() <= tolerance,
        "{what}: {found}, and it is {expected}"
    );
}

/// Level and text of what needs attention.
fn troubles(row: &Value) -> Vec<(&str, &str)> {
    row["troubles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trouble| {
            (
                trouble["level"].as_str().unwrap(),
                trouble["text"].as_str().unwrap(),
            )
        })
        .collect()
}

/// What requests take: between these.
fn check_times(requests: &Value) {
    for percentile in ["p50", "p95"] {
        let time = &requests[percentile];
        let (from, to) = (number(&time["from_ms"]), number(&time["to_ms"]));
        // Buckets are 10 % wide, and the mesh adds its own time.
        assert_measured!(
            to > DELAY_MS && from <= 1.3 * DELAY_MS,
            "{percentile}: {time}, and the app waits for {DELAY_MS} ms"
        );
        assert!(to - from <= 0.11 * to + 1.0, "{time}");
    }
}

#[test]
fn a_slow_pod_comes_first_and_its_failure_is_said_with_numbers() {
    let mut mesh = Mesh::up(&MeshOptions {
        app_trouble: AppTrouble::Asleep,
        app_delay: Duration::from_millis(100),
        rps: REQUESTS_PER_SECOND,
        ..MeshOptions::default()
    })
    .unwrap();
    mesh.start_load().unwrap();
    let report = mesh.report();
    let agent = Agent::start().unwrap();
    let has_times =
        |requests: &Value| number(&requests["window_s"]) > 8.0 && requests["p95"].is_object();
    let found = overview_where(&agent, report.server_envoy_pid, "times of the pod", |row| {
        row["answered"].is_object() && has_times(&row["answered"])
    });
    let server = row_of(&found, report.server_envoy_pid).unwrap();
    let client = row_of(&found, report.client_envoy_pid).unwrap();
    let rate = f64::from(REQUESTS_PER_SECOND);
    near(
        number(&server["answered"]["per_s"]),
        rate,
        TOLERANCE,
        "requests/s",
    );
    assert_eq!(server["answered"]["errors"], 0);
    assert_eq!(server["sent"], Value::Null);
    check_times(&server["answered"]);
    // The client's pod answers nothing, and its sidecar sees what it asks for.
    assert_eq!(client["answered"], Value::Null);
    near(
        number(&client["sent"]["per_s"]),
        rate,
        TOLERANCE,
        "requests/s sent",
    );
    check_times(&client["sent"]);
    // Whoever answers slowly comes first, where there is no trouble.
    assert_eq!(troubles(server), []);
    assert_eq!(found["rows"][0]["id"], server["id"], "{found:#}");
    let summary = found["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("Nothing needs attention: 2 pods"),
        "{summary}"
    );
    stop_load(&mut mesh);

    // The app is gone: its sidecar answers 503.
    mesh.start_load().unwrap();
    let app = Pid::from_raw(report.server_pid.cast_signed()).unwrap();
    kill_process(app, Signal::KILL).unwrap();
    let found = overview_where(
        &agent,
        report.server_envoy_pid,
        "errors of the pod",
        |row| {
            row["answered"]["errors"].as_u64().unwrap_or(0) > 0
                && row["answered"]["errors"] == row["answered"]["count"]
        },
    );
    let server = row_of(&found, report.server_envoy_pid).unwrap();
    assert_eq!(found["rows"][0]["id"], server["id"], "{found:#}");
    let (level, text) = troubles(server)[0];
    assert_eq!(level, "bad");
    let count = &server["answered"]["count"];
    assert!(
        text.starts_with(&format!(
            "100.0 % of its responses are errors (5xx): {count} of {count} in "
        )),
        "{text}"
    );
    let summary = found["summary"].as_str().unwrap();
    let title = server["title"].as_str().unwrap();
    assert!(
        summary.starts_with(&format!("{title}: {text}.")),
        "{summary}"
    );
    // Who asks it is not accused of it.
    let client = row_of(&found, report.client_envoy_pid).unwrap();
    assert!(
        troubles(client)
            .iter()
            .all(|(level, _)| *level == "elsewhere"),
        "{client:#}"
    );
    check_cost(&agent, &found);
}

/// What the agent says that its readings cost, against the kernel's account of its threads.
fn check_cost(agent: &Agent, found: &Value) {
    let told = number(&found["cost_percent"]);
    let folder = format!("/proc/{}/task", agent.pid());
    let (mut used, mut lived) = (0.0, f64::MAX);
    for task in fs::read_dir(folder).unwrap() {
        let path = task.unwrap().path();
        let Ok(stat) = fs::read_to_string(path.join("stat")) else {
            continue;
        };
        let (name, fields) = stat.split_once('(').unwrap().1.rsplit_once(") ").unwrap();
        if name != "overview" && name != "envoy-admin" {
            continue;
        }
        let account = fs::read_to_string(path.join("schedstat")).unwrap();
        let ns: f64 = account.split(' ').next().unwrap().parse().unwrap();
        used += ns / 1e9;
        let started: f64 = fields.split(' ').nth(19).unwrap().parse().unwrap();
        if name == "overview" {
            #[expect(clippy::cast_precision_loss, reason = "a hundred")]
            let ticks = rustix::param::clock_ticks_per_second() as f64;
            let uptime = fs::read_to_string("/proc/uptime").unwrap();
            let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
            lived = uptime - started / ticks;
        }
    }
    let measured = 100.0 * used / lived;
    println!("the overview takes {measured:.2} % of a core, and says {told:.2} %");
    assert_measured!(told <= BUDGET_PERCENT, "it takes {told} % of a core");
    assert_measured!(
        measured <= told * 1.2 + 0.05,
        "{measured} % of a core, and it says {told} %"
    );
}

#[test]
fn lost_segments_and_a_used_up_quota_are_said_of_those_who_have_them() {
    let targets = Targets::new();
    let cgroup = Cgroup::create(&cpu_hierarchy(), "overview", "app").unwrap();
    cgroup.limit_cpu(10_000, 100_000).unwrap();
    let program = Workload::SharesC.build("shares-limited").unwrap();
    let limited = targets
        .launch(&program, "shares-limited")
        .cgroup(cgroup.path())
        .start()
        .unwrap();
    let mut mesh = Mesh::up(&MeshOptions {
        rps: 4 * REQUESTS_PER_SECOND,
        ..MeshOptions::default()
    })
    .unwrap();
    // What the client's pod sends is lost on its way: it has to be sent again.
    let rule =
        "iptables -w -A INPUT ! -i lo -p tcp -m statistic --mode random --probability 0.1 -j DROP";
    let words: Vec<&str> = rule.split(' ').collect();
    mesh.server.netns.run(&words).unwrap();
    mesh.start_load().unwrap();
    let report = mesh.report();
    let arguments = ["top", "--json", "--interval", "6"];
    let (status, output, errors) = agent::run(&arguments, START + EXIT).unwrap();
    assert_eq!(status.code(), Some(0), "{errors}");
    let found: Value = serde_json::from_str(&output).unwrap();

    let client = row_of(&found, report.client_envoy_pid).unwrap();
    let segments = &client["segments"];
    let (sent, again) = (
        number(&segments["sent"]),
        number(&segments["retransmitted"]),
    );
    // Acknowledgements are lost as well, and those are not sent again.
    let share = again / (sent + again);
    assert_measured!((0.01..0.2).contains(&share), "{segments}");
    let text = "of its TCP segments are retransmitted";
    assert!(
        troubles(client).iter().any(|(_, said)| said.contains(text)),
        "{client:#}"
    );

    let row = row_of(&found, limited.pid()).unwrap();
    assert_eq!(
        (&row["kind"], &row["title"]),
        (&json!("program"), &json!("shares-limited"))
    );
    let limit = &row["cpu"]["limit"];
    near(number(&limit["cores"]), 0.1, 0.001, "the quota");
    near(number(&limit["used_cores"]), 0.1, 0.25, "cores used");
    let (periods, throttled) = (
        number(&limit["periods"]),
        number(&limit["throttled_periods"]),
    );
    assert_measured!(throttled >= 0.9 * periods && periods > 50.0, "{limit}");
    let (level, text) = troubles(row)[0];
    assert_eq!(level, "bad");
    assert!(text.starts_with("a CPU limit stops it in "), "{text}");
    // A pod that fails or loses comes before the node's own programs only by its level.
    assert_eq!(found["rows"][0]["id"], row["id"], "{found:#}");

    // The same for people.
    let arguments = ["top", "--interval", "5", "--rows", "3"];
    let (status, output, errors) = agent::run(&arguments, START + EXIT).unwrap();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(
        output.starts_with("shares-limited: a CPU limit stops it in "),
        "{output}"
    );
    assert!(output.contains("more (--rows)"), "{output}");
    assert!(
        output.contains("to look closer: profiler-agent diagnose --pid "),
        "{output}"
    );
    // The load goes on in spite of what is lost.
    mesh.stop_load().unwrap();
}

#[test]
fn without_it_nobody_is_asked() {
    let mesh = Mesh::up(&MeshOptions::default()).unwrap();
    let agent = Agent::start_with(ServeOptions::with_arguments(["--overview", "off"])).unwrap();
    let found = overview(&agent);
    assert_eq!(found["is_on"], false);
    assert_eq!(found["rows"], json!([]));
    let threads = fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
    let names =
        threads.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
    let names: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
    assert!(
        !names
            .iter()
            .any(|name| name == "overview" || name == "envoy-admin"),
        "{names:?}"
    );
    drop(mesh);
    // Envoys are left alone where they are not to be asked.
    let mesh = Mesh::up(&MeshOptions::default()).unwrap();
    let agent = Agent::start_with(ServeOptions::with_arguments(["--envoy-admin", "off"])).unwrap();
    let pid = mesh.report().server_envoy_pid;
    let found = overview_where(&agent, pid, "rates of the pod", |row| {
        row["window_s"].is_number()
    });
    let row = row_of(&found, pid).unwrap();
    assert_eq!(row["answered"], Value::Null);
    assert_eq!(
        row["requests_unknown"],
        "Envoys are not asked (envoy_admin is off)"
    );
}
