//! Access logs that Envoys send to the agent: every request once, whose it is, and what is missing.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use profiler_access_logs::otlp::ATTRIBUTES;
use profiler_tests::{
    agent::{self, Agent, ServeOptions},
    assert_measured,
    cleanup::{Guard, scratch_directory},
    peers::{
        free_port,
        grpc::{self, Calls, GrpcServer},
        h2load::{self, Load},
        logging_envoy::{Logger, LoggingEnvoy, Options},
        nginx::{Nginx, Speaks},
    },
    wait::{wait_for, wait_until},
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::targets::{start_task, stop_task};

const PATH: &str = "/api/v1/access-logs";
/// For entries, which Envoy sends each second, and for what it counts itself, which waits for them.
const SETTLED: Duration = Duration::from_secs(30);
const BUFFER: u32 = 262_144;

struct Scene {
    agent: Agent,
    nginx: Nginx,
    sink: u16,
    folder: PathBuf,
    _guard: Guard,
}

impl Scene {
    fn new() -> Self {
        let (folder, guard) = scratch_directory("access-logs").unwrap();
        let nginx = Nginx::start(&folder, Speaks::Http1).unwrap();
        let sink = free_port().unwrap();
        let listen = format!("--access-logs=127.0.0.1:{sink}");
        let agent = Agent::start_with(ServeOptions {
            arguments: vec![listen],
            ..ServeOptions::default()
        })
        .unwrap();
        Self {
            agent,
            nginx,
            sink,
            folder,
            _guard: guard,
        }
    }

    fn envoy(&self, version: &str, logger: Logger, buffer_bytes: u32) -> LoggingEnvoy {
        self.envoy_before(self.nginx.port, false, version, logger, buffer_bytes)
    }

    /// In front of another server than nginx.
    fn envoy_before(
        &self,
        server: u16,
        http2: bool,
        version: &str,
        logger: Logger,
        buffer_bytes: u32,
    ) -> LoggingEnvoy {
        let attributes: Vec<(&str, &str)> = ATTRIBUTES
            .iter()
            .map(|row| (row.name, row.operator))
            .collect();
        let options = Options {
            version,
            logger,
            server,
            http2,
            sink: self.sink,
            buffer_bytes,
            attributes: &attributes,
            file: false,
        };
        LoggingEnvoy::start(&self.folder, &options).unwrap()
    }

    /// The pid of the client.
    fn ask(&self, envoy: &LoggingEnvoy, requests: u32, rate: Option<u32>) -> u32 {
        let load = Load {
            base: &format!("http://127.0.0.1:{}", envoy.port),
            paths: &["/files/700", "/files/0"],
            requests,
            connections: 8,
            streams: 1,
            rate,
            http1: true,
            probed: false,
        };
        h2load::run(&self.folder, load).unwrap()
    }

    fn row(&self, envoy: &LoggingEnvoy) -> Option<Value> {
        let answer = self.agent.api.get_json(PATH).unwrap();
        let rows = answer["envoys"].as_array().unwrap();
        rows.iter().find(|row| row["pid"] == envoy.pid()).cloned()
    }

    /// The row of an Envoy, as soon as it is as wanted.
    fn row_when(&self, envoy: &LoggingEnvoy, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let found = wait_for(what, SETTLED, || self.row(envoy).filter(|row| is(row)));
        found.unwrap_or_else(|error| {
            let all = self.agent.api.get_json(PATH).unwrap();
            panic!("{error:#}: {all:#}: {}", self.agent.log())
        })
    }
}

/// A connection through the listener that passes bytes on.
fn connect_once(port: u16) {
    ask_once(TcpStream::connect(("127.0.0.1", port)).unwrap());
}

/// The only request of a connection.
fn ask_once(mut stream: TcpStream) {
    stream
        .write_all(b"GET /files/1 HTTP/1.1\r\nHost: nginx\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
}

fn every_entry_counts_once(version: &str, logger: Logger, requests: u32) {
    let scene = Scene::new();
    let envoy = scene.envoy(version, logger, BUFFER);
    scene.ask(&envoy, requests, None);
    for _ in 0..20 {
        connect_once(envoy.tcp_port);
    }
    // Behind the entries, for what Envoy counts by then.
    let all = u64::from(requests);
    let of = |row: &Value, name: &str| row[name].as_u64().unwrap_or(0);
    // As fast as it can on a busy machine, an Envoy may fill its buffer before anybody reads: what it drops, it says.
    let row = scene.row_when(&envoy, "all entries have come", |row| {
        of(row, "requests") + of(row, "dropped") == all
            && row["connections"] == 20
            && row["completed"].is_u64()
    });
    let requests = of(&row, "requests");
    assert!(requests >= all * 9 / 10, "{row:#}");
    assert_eq!(row["claimed"], false, "{row:#}");
    assert_eq!(row["received"], requests + 20, "{row:#}");
    for none in ["attempts", "open", "unreadable", "refused_messages"] {
        assert_eq!(row[none], 0, "{none}: {row:#}");
    }
    assert_eq!(
        row["node_id"], "sidecar~127.0.0.1~shop.demo~demo.svc.cluster.local",
        "{row:#}"
    );
    if logger == Logger::Grpc {
        assert_eq!(row["version"], version, "{row:#}");
    }
    let row = scene.row_when(&envoy, "nothing is missing", |row| row["unknown"] == 0);
    // Some were under way when it was read first.
    assert!(
        row["completed"].as_u64().unwrap() <= all + all / 100,
        "{row:#}"
    );
    if version == "1.40.0" && logger == Logger::Grpc {
        let flushed = "access_logs.grpc_access_log.grpc_entries_flushed";
        assert_eq!(envoy.counter(flushed).unwrap(), requests + 20);
    }
}

#[test]
fn envoy_1_36_by_grpc() {
    every_entry_counts_once("1.36.4", Logger::Grpc, 5_000);
}

#[test]
fn envoy_1_39_by_grpc() {
    every_entry_counts_once("1.39.0", Logger::Grpc, 5_000);
}

#[test]
fn envoy_1_40_by_grpc() {
    every_entry_counts_once("1.40.0", Logger::Grpc, 200_000);
}

#[test]
fn envoy_1_36_by_opentelemetry() {
    every_entry_counts_once("1.36.4", Logger::OpenTelemetry, 5_000);
}

#[test]
fn envoy_1_40_by_opentelemetry() {
    every_entry_counts_once("1.40.0", Logger::OpenTelemetry, 5_000);
}

#[test]
fn doctor_asks_the_agent_whether_access_logs_arrive() {
    let scene = Scene::new();
    let url = format!("http://{}", scene.agent.api.address);
    let token = scene.agent.data_dir.join("token");
    let token = token.to_str().unwrap();
    let ask = || {
        let arguments = ["doctor", "--url", &url, "--token-file", token];
        let (_status, output, _) = agent::run(&arguments, SETTLED).unwrap();
        output
    };
    let output = ask();
    assert!(output.contains("no Envoy has sent any"), "{output}");
    assert!(
        output.contains("-> `profiler-agent access-logs snippet"),
        "{output}"
    );
    let envoy = scene.envoy("1.40.0", Logger::Grpc, BUFFER);
    scene.ask(&envoy, 10, None);
    scene.row_when(&envoy, "all entries have come", |row| row["requests"] == 10);
    let (output, pid) = (ask(), envoy.pid());
    let named = |line: &str| line.contains(&format!("[{pid}]")) && line.contains(": 10 requests,");
    assert!(output.lines().any(named), "{output}");
}

/// An agent that does not read for a while: Envoy drops what its buffer has no room for, and says so.
#[test]
fn what_an_envoy_drops_is_told_from_what_is_unknown() {
    let scene = Scene::new();
    let envoy = scene.envoy("1.40.0", Logger::Grpc, 16_384);
    scene.ask(&envoy, 100, None);
    scene.row_when(&envoy, "it is known, with its own counts", |row| {
        row["requests"] == 100 && row["completed"].is_u64()
    });
    let id = task_of(&scene.agent, envoy.pid(), &["access_log"]);
    let agent = rustix::process::Pid::from_raw(scene.agent.pid().cast_signed()).unwrap();
    rustix::process::kill_process(agent, Signal::STOP).unwrap();
    scene.ask(&envoy, 60_000, None);
    rustix::process::kill_process(agent, Signal::CONT).unwrap();
    let dropped = envoy
        .counter("access_logs.grpc_access_log.logs_dropped")
        .unwrap();
    assert!(dropped > 1_000, "{dropped}");
    let row = scene.row_when(&envoy, "the drops are known", |row| {
        row["dropped"] == dropped
    });
    let of = |name: &str| row[name].as_u64().unwrap();
    assert_eq!(
        of("requests") + dropped + of("unknown"),
        of("completed"),
        "{row:#}"
    );
    assert_eq!(of("unknown"), 0, "{row:#}");
    let percent = row["received_percent"].as_f64().unwrap();
    assert!(percent < 99.0, "{row:#}");
    // The counts of a task have what was dropped, and say how sure they are.
    let result = requests_of(&scene.agent, &id);
    let (came, count) = operations(&result, "server", envoy.pid());
    let all = 60_000;
    assert!(count.abs_diff(all) <= all / 100, "{count}: {result:#}");
    for operation in &came {
        let (seen, count) = (&operation["seen"], &operation["count"]);
        assert!(seen.as_u64() < count.as_u64(), "{operation:#}");
        assert_eq!(&operation["count_interval"]["low"], seen, "{operation:#}");
        let high = operation["count_interval"]["high"].as_u64();
        assert!(high >= count.as_u64(), "{operation:#}");
    }
    assert_eq!(result["access_logs"]["envoys"][0]["missing"], dropped);
}

/// A requests task for one process, which runs until it is stopped.
fn task_of(agent: &Agent, pid: u32, sources: &[&str]) -> String {
    let mut specification = json!({
        "kind": "requests",
        "target": { "pids": [pid] },
        "duration_s": null,
        "source": sources,
    });
    if sources.contains(&"sockets") {
        // All connections, whatever that takes.
        specification["cpu_percent"] = json!(100);
    }
    start_task(agent, &specification)
}

fn requests_of(agent: &Agent, id: &str) -> Value {
    stop_task(agent, id);
    agent
        .api
        .get_json(&format!("/api/v1/tasks/{id}/requests"))
        .unwrap()
}

/// Operations on the way to a process, or from it, with their sum.
fn operations(result: &Value, end: &str, pid: u32) -> (Vec<Value>, u64) {
    let all = result["operations"].as_array().unwrap();
    let found = all
        .iter()
        .filter(|operation| operation["edge"][end]["pid"] == pid);
    let found: Vec<Value> = found.cloned().collect();
    let sum = found
        .iter()
        .map(|operation| operation["count"].as_u64().unwrap());
    let sum = sum.sum();
    (found, sum)
}

/// Every request of an Envoy by its access log alone, without a probe: who asked whom for what, and how long it was in Envoy.
#[test]
fn a_task_has_the_requests_of_an_access_log() {
    const REQUESTS: u32 = 20_000;
    for logger in [Logger::Grpc, Logger::OpenTelemetry] {
        let scene = Scene::new();
        let envoy = scene.envoy("1.40.0", logger, BUFFER);
        let id = task_of(&scene.agent, envoy.pid(), &["access_log"]);
        let client = scene.ask(&envoy, REQUESTS, Some(2_500));
        let result = requests_of(&scene.agent, &id);
        let all = u64::from(REQUESTS);
        let (came, count) = operations(&result, "server", envoy.pid());
        assert_eq!(count, all, "{result:#}");
        for operation in &came {
            assert_eq!(operation["source"], "access_log", "{operation:#}");
            assert_eq!(operation["protocol"], "http1", "{operation:#}");
            assert_eq!(operation["method"], "GET", "{operation:#}");
            assert_eq!(operation["errors"], 0, "{operation:#}");
            assert_eq!(operation["edge"]["client"]["pid"], client, "{operation:#}");
            assert_eq!(operation["statuses"]["200"], operation["count"]);
        }
        let mut routes: Vec<&str> = came
            .iter()
            .map(|operation| operation["route"].as_str().unwrap())
            .collect();
        routes.sort_unstable();
        assert_eq!(routes, ["/files/{n}"], "{result:#}");
        let (went, count) = operations(&result, "client", envoy.pid());
        assert_eq!(count, all, "{result:#}");
        let workers = scene.nginx.pids().unwrap();
        for operation in &went {
            let pid = operation["edge"]["server"]["pid"].as_u64();
            let pid = pid.and_then(|pid| u32::try_from(pid).ok());
            assert!(
                pid.is_some_and(|pid| workers.contains(&pid)),
                "{operation:#}"
            );
        }
        let sidecars = result["sidecars"].as_array().unwrap();
        assert_eq!(sidecars.len(), 1, "{result:#}");
        assert_eq!(sidecars[0]["process"]["pid"], envoy.pid());
        assert_eq!(sidecars[0]["requests_in"], all, "{:#}", sidecars[0]);
        assert_eq!(sidecars[0]["pairs"][0]["class"], "access_log");
        let told = &result["access_logs"]["envoys"][0];
        assert_eq!(told["requests"], all, "{told:#}");
        assert_eq!(told["process"]["pid"], envoy.pid(), "{told:#}");
        assert_eq!(told["claimed"], false, "{told:#}");
        assert_eq!(told["details"][0]["text"], "via_upstream", "{told:#}");
        assert_eq!(told["upstreams"][0]["requests"], all, "{told:#}");
        assert_eq!(told["upstreams"][0]["errors"], 0, "{told:#}");
        // What the kernel says of the connections to it.
        let host = &told["upstreams"][0];
        assert!(host["rtt_ns"]["count"].as_u64() > Some(0), "{host:#}");
        let rtt_ns = host["rtt_ns"]["mean"].as_u64();
        assert!(
            (Some(1_000)..Some(100_000_000)).contains(&rtt_ns),
            "{host:#}"
        );
        assert!(host["retransmits"].is_u64(), "{host:#}");
        let phase = |name: &str| {
            let phases = told["phases"].as_array().unwrap();
            let found = phases.iter().find(|phase| phase["name"] == name);
            found.unwrap_or_else(|| panic!("{name}: {told:#}"))["ns"].clone()
        };
        for name in ["to_upstream", "upstream", "to_client"] {
            assert_eq!(phase(name)["count"], all, "{name}: {told:#}");
        }
        assert_eq!(result["access_logs"]["left_out"], 0, "{result:#}");
    }
}

/// Calls of gRPC count as such, with their own status, on both hops.
#[test]
fn a_task_has_the_status_of_calls_of_grpc() {
    const ROUNDS: u32 = 200;
    for (version, logger) in [
        ("1.36.4", Logger::OpenTelemetry),
        ("1.40.0", Logger::Grpc),
        ("1.40.0", Logger::OpenTelemetry),
    ] {
        let scene = Scene::new();
        let server = GrpcServer::start(&scene.folder).unwrap();
        let envoy = scene.envoy_before(server.port, true, version, logger, BUFFER);
        let id = task_of(&scene.agent, envoy.pid(), &["access_log"]);
        let calls = Calls {
            address: &format!("127.0.0.1:{}", envoy.port),
            rounds: ROUNDS,
            connections: 2,
            netns: None,
        };
        let done = grpc::call(&scene.folder, &calls).unwrap();
        let result = requests_of(&scene.agent, &id);
        let mut asked: BTreeMap<(String, String), u64> = BTreeMap::new();
        for one in done.asked {
            *asked
                .entry((one.path, format!("grpc {}", one.status)))
                .or_default() += 1;
        }
        for (end, peer) in [("server", done.pid), ("client", server.pid())] {
            let other = if end == "server" { "client" } else { "server" };
            let mut told: BTreeMap<(String, String), u64> = BTreeMap::new();
            for operation in operations(&result, end, envoy.pid()).0 {
                assert_eq!(operation["protocol"], "grpc", "{operation:#}");
                let pid = &operation["edge"][other]["pid"];
                // The client may have ended before it was looked for.
                let is_right = *pid == peer || end == "server" && pid.is_null();
                assert!(is_right, "{operation:#}");
                let route = operation["route"].as_str().unwrap();
                for (status, count) in operation["statuses"].as_object().unwrap() {
                    *told.entry((route.to_owned(), status.clone())).or_default() +=
                        count.as_u64().unwrap();
                }
            }
            assert_eq!(told, asked, "{version} by {logger:?}, {end}: {result:#}");
        }
    }
}

/// The entry of a connection's only request comes when it has ended. Its client is known nevertheless.
#[test]
fn a_connection_that_has_ended_has_its_client() {
    /// Longer than the longest pause between two looks at sockets.
    const OPEN: Duration = Duration::from_secs(7);
    const CONNECTIONS: usize = 5;
    let scene = Scene::new();
    let envoy = scene.envoy("1.40.0", Logger::Grpc, BUFFER);
    let id = task_of(&scene.agent, envoy.pid(), &["access_log"]);
    // By then it is known that there are connections to this address.
    scene.ask(&envoy, 100, Some(50));
    scene.row_when(&envoy, "the first entries come", |row| {
        row["received"].as_u64() >= Some(100)
    });
    let open: Vec<_> = (0..CONNECTIONS)
        .map(|_| TcpStream::connect(("127.0.0.1", envoy.port)).unwrap())
        .collect();
    thread::sleep(OPEN);
    for stream in open {
        ask_once(stream);
    }
    let result = requests_of(&scene.agent, &id);
    let own = std::process::id();
    let (came, _) = operations(&result, "server", envoy.pid());
    let of_client = |operation: &&Value| operation["edge"]["client"]["pid"] == own;
    let count = came.iter().filter(of_client);
    let count: u64 = count.filter_map(|row| row["count"].as_u64()).sum();
    assert_eq!(count, CONNECTIONS as u64, "{result:#}");
}

/// What goes wrong is told by Envoy's flags.
#[test]
fn a_task_tells_the_flags_of_requests_that_failed() {
    let scene = Scene::new();
    let envoy = scene.envoy("1.40.0", Logger::Grpc, BUFFER);
    let id = task_of(&scene.agent, envoy.pid(), &["access_log"]);
    scene.ask(&envoy, 100, None);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(scene.nginx.pids().unwrap()[0].cast_signed()).unwrap(),
        Signal::QUIT,
    )
    .unwrap();
    let is_refused = || TcpStream::connect(("127.0.0.1", scene.nginx.port)).is_err();
    wait_until("the server is gone", SETTLED, is_refused).unwrap();
    for _ in 0..20 {
        let answer = ureq::get(&format!("http://127.0.0.1:{}/files/1", envoy.port))
            .config()
            .http_status_as_error(false)
            .build()
            .call()
            .unwrap();
        assert_eq!(answer.status(), 503);
    }
    let result = requests_of(&scene.agent, &id);
    let told = &result["access_logs"]["envoys"][0];
    assert_eq!(told["requests"], 120, "{told:#}");
    let flag = &told["flags"][0];
    assert_eq!(
        (&flag["name"], &flag["count"]),
        (&json!("UF"), &json!(20)),
        "{told:#}"
    );
    assert!(!flag["cause"].as_str().unwrap().is_empty(), "{flag:#}");
    let upstream = format!("127.0.0.1:{}", scene.nginx.port);
    assert_eq!(
        (
            &flag["upstreams"][0]["address"],
            &flag["upstreams"][0]["count"]
        ),
        (&json!(upstream), &json!(20)),
        "{flag:#}"
    );
    let (_, came) = operations(&result, "server", envoy.pid());
    assert_eq!(came, 120, "{result:#}");
    let errors = result["operations"].as_array().unwrap().iter();
    let errors: u64 = errors
        .filter(|operation| operation["edge"]["server"]["pid"] == envoy.pid())
        .map(|operation| operation["errors_by_class"]["server"].as_u64().unwrap())
        .sum();
    assert_eq!(errors, 20, "{result:#}");
    let metrics = scene.agent.api.get("/metrics").unwrap().text();
    for (name, label) in [
        ("requests", "status=\"5xx\"} 20"),
        ("requests", "status=\"2xx\"} 100"),
        ("response_flags", "flag=\"UF\"} 20"),
    ] {
        let name = format!(
            "profiler_agent_access_log_{name}_total{{pid=\"{}\"",
            envoy.pid()
        );
        let has = |line: &str| line.starts_with(&name) && line.ends_with(label);
        assert!(metrics.lines().any(has), "{name} {label}: {metrics}");
    }
}

/// Sockets and access log see the same requests: each counts once, and the time in Envoy is that of its sockets.
#[test]
fn requests_that_sockets_see_as_well_count_once() {
    const REQUESTS: u32 = 10_000;
    let scene = Scene::new();
    let envoy = scene.envoy("1.40.0", Logger::Grpc, BUFFER);
    let both = task_of(&scene.agent, envoy.pid(), &["access_log", "sockets"]);
    let sockets = task_of(&scene.agent, envoy.pid(), &["sockets"]);
    scene.ask(&envoy, REQUESTS, Some(2_000));
    let both = requests_of(&scene.agent, &both);
    let sockets = requests_of(&scene.agent, &sockets);
    let all = u64::from(REQUESTS);
    for (end, what) in [("server", "came"), ("client", "went")] {
        let (rows, count) = operations(&both, end, envoy.pid());
        assert_eq!(count, all, "{what}: {both:#}");
        assert!(
            rows.iter().all(|row| row["source"] == "access_log"),
            "{both:#}"
        );
    }
    let seen_twice = both["access_logs"]["seen_twice"].as_u64().unwrap();
    assert!(seen_twice >= 2 * all * 9 / 10, "{seen_twice}");
    assert_eq!(both["access_logs"]["without_entry"], 0, "{both:#}");
    // Each end of each is found at its socket; towards the upstream the id proves it.
    let joined = &both["access_logs"]["envoys"][0]["joined"];
    let count = |name: &str| joined[name].as_u64().unwrap();
    assert_eq!(count("ends"), 2 * all, "{joined}");
    assert_eq!(count("contradicted"), 0, "{joined}");
    assert_measured!(count("joined") * 1_000 >= 2 * all * 999, "{joined}");
    assert_measured!(count("confirmed") * 1_000 >= all * 999, "{joined}");
    assert_measured!(count("requests") * 1_000 >= all * 999, "{joined}");
    let times = &both["sidecars"][0]["times"];
    for wait in ["read_wait_ns", "answer_wait_ns"] {
        let waited = times[wait]["count"].as_u64().unwrap();
        assert_measured!(waited * 1_000 >= all * 999, "{wait}: {times:#}");
    }
    let samples = both["samples"].as_array().unwrap();
    assert!(!samples.is_empty(), "{both:#}");
    let in_threads = samples.iter().filter(|sample| sample["tid"].is_u64());
    assert_measured!(in_threads.count() * 10 >= samples.len() * 9, "{samples:#?}");
    let of = |result: &Value| {
        let sidecars = result["sidecars"].as_array().unwrap();
        let [one] = &sidecars[..] else {
            panic!("{result:#}");
        };
        one["mean_ns"].as_u64().unwrap()
    };
    let (by_log, by_sockets) = (of(&both), of(&sockets));
    assert_measured!(
        by_log.abs_diff(by_sockets) * 10 <= by_sockets,
        "{by_log} ns of what was joined, {by_sockets} ns by sockets"
    );
}

/// An Envoy that is killed has not sent its newest entries. Sockets have seen the requests, and it is said that they have none.
#[test]
fn what_an_envoy_has_not_sent_when_it_dies_is_said() {
    // It sends each second: all may have been sent just before it is killed.
    let is_said = (0..4).any(|_| without_entry_of_a_killed_envoy() > 0);
    assert!(is_said, "every entry was sent, four times");
}

/// Requests of which no entry tells, after all that is known of the others was checked.
fn without_entry_of_a_killed_envoy() -> u64 {
    const SENT: u32 = 100;
    const LAST: u64 = 40;
    /// What is over just before the end of a task is not said to have no entry.
    const BORDER: Duration = Duration::from_millis(100);
    let scene = Scene::new();
    let mut envoy = scene.envoy("1.40.0", Logger::Grpc, BUFFER);
    let pid = envoy.pid();
    let id = task_of(&scene.agent, pid, &["access_log", "sockets"]);
    scene.ask(&envoy, SENT, Some(200));
    scene.row_when(&envoy, "the first entries come", |row| {
        row["received"] == SENT
    });
    for _ in 0..LAST {
        connect_once(envoy.port);
    }
    envoy.kill().unwrap();
    thread::sleep(BORDER);
    let result = requests_of(&scene.agent, &id);
    let [came, went] = ["server", "client"].map(|end| operations(&result, end, pid).1);
    let logs = &result["access_logs"];
    let of = |name: &str| logs[name].as_u64().unwrap();
    assert!(came >= u64::from(SENT), "{result:#}");
    assert_eq!(of("seen_twice"), came + went, "{result:#}");
    let all = u64::from(SENT) + LAST;
    assert_eq!(came + of("without_entry"), all, "{result:#}");
    of("without_entry")
}

/// One who speaks TLS where it is not expected is counted, with what is wrong; one who only connects is not.
#[test]
fn who_fails_to_connect_is_counted() {
    let scene = Scene::new();
    drop(TcpStream::connect(("127.0.0.1", scene.sink)).unwrap());
    let mut stream = TcpStream::connect(("127.0.0.1", scene.sink)).unwrap();
    // A record of TLS 1.2 with a handshake (RFC 8446, 5.1), in place of HTTP/2's preface.
    let mut hello = vec![0x16, 3, 1, 0, 64];
    hello.extend([1; 64]);
    stream.write_all(&hello).unwrap();
    let status = wait_for("it has failed", SETTLED, || {
        let status = scene.agent.api.get_json(PATH).unwrap();
        (status["failed_connections"].as_u64() > Some(0)).then_some(status)
    });
    let status = status.unwrap();
    assert_eq!(status["failed_connections"], 1, "{status:#}");
    let newest = status["newest_failure"].as_str().unwrap();
    assert!(newest.contains("does not speak HTTP/2"), "{newest}");
    assert!(newest.starts_with("127.0.0.1:"), "{newest}");
}

/// An agent that receives nothing says so.
#[test]
fn a_task_without_access_logs_says_what_to_do() {
    let agent = Agent::start().unwrap();
    let specification = json!({
        "kind": "requests", "target": { "all": true }, "duration_s": 5, "source": ["access_log"],
    });
    let id = agent.api.create_task(&specification).unwrap();
    let task = agent.api.wait_task(&id, &["failed"], SETTLED).unwrap();
    assert!(
        task["reason"].as_str().unwrap().contains("--access-logs"),
        "{task:#}"
    );
}

/// Begins HTTP/2 and sends one message; what the server answers.
fn send(port: u16, path: &str, encoding: &str, message: &[u8]) -> (u16, String) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let executor = hyper_util::rt::TokioExecutor::new();
        let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io)
            .await
            .unwrap();
        let connected = tokio::spawn(connection);
        let body = http_body_util::Full::new(hyper::body::Bytes::copy_from_slice(message));
        let request = hyper::Request::post(format!("http://agent{path}"))
            .header("content-type", encoding)
            .body(body)
            .unwrap();
        let answer = sender.send_request(request).await.unwrap();
        let body = http_body_util::BodyExt::collect(answer.into_body())
            .await
            .unwrap();
        let trailers = body.trailers().unwrap();
        let text = |name: &str| {
            let value = trailers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned());
            value.unwrap_or_default()
        };
        let done = (text("grpc-status").parse().unwrap(), text("grpc-message"));
        drop(sender);
        connected.abort();
        done
    })
}

const STREAM: &str = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs";
const GRPC: &str = "application/grpc";

fn framed(flag: u8, length: u32, message: &[u8]) -> Vec<u8> {
    let length = length.to_be_bytes();
    [&[flag][..], &length, message].concat()
}

/// Whoever reaches the port is told what is wrong, and nobody else notices.
#[test]
fn what_is_no_access_log_is_refused_with_the_reason() {
    let scene = Scene::new();
    let envoy = scene.envoy("1.40.0", Logger::Grpc, BUFFER);
    scene.ask(&envoy, 10, None);
    let cases: [(&str, &str, Vec<u8>, u16, &str); 7] = [
        ("/some.Other/Method", GRPC, Vec::new(), 12, "not served"),
        (STREAM, "text/plain", Vec::new(), 3, "this is gRPC"),
        (
            STREAM,
            GRPC,
            framed(1, 3, b"abc"),
            12,
            "switch compression off",
        ),
        (
            STREAM,
            GRPC,
            framed(0, 64 << 20, b""),
            8,
            "lower buffer_size_bytes",
        ),
        (
            STREAM,
            GRPC,
            framed(0, 100, b"abc"),
            3,
            "ended within a message",
        ),
        (STREAM, GRPC, vec![0; 3], 3, "ended within a message"),
        (
            STREAM,
            GRPC,
            framed(0, 3, b"\x0a\xff\xff"),
            3,
            "not a protobuf message",
        ),
    ];
    for (path, encoding, message, status, reason) in cases {
        let (found, why) = send(scene.sink, path, encoding, &message);
        assert_eq!(found, status, "{path} {reason}: {why}");
        assert!(why.contains(reason), "{reason}: {why}");
    }
    assert_eq!(
        capabilities(scene.agent.pid(), "access-logs"),
        "0000000000000000"
    );
    // An empty one is one without entries.
    assert_eq!(send(scene.sink, STREAM, GRPC, &framed(0, 0, b"")).0, 0);
    scene.row_when(&envoy, "its entries have come", |row| row["requests"] == 10);
    assert!(
        !scene.agent.log().contains("panicked"),
        "{}",
        scene.agent.log()
    );
}

/// Many connections that send nothing, and streams that end nowhere, take no memory to speak of.
#[test]
fn idle_and_endless_streams_are_bounded() {
    let scene = Scene::new();
    let pid = scene.agent.pid();
    let before = resident_bytes(pid);
    let idle: Vec<TcpStream> = (0..2_000)
        .map(|_| TcpStream::connect(("127.0.0.1", scene.sink)).unwrap())
        .collect();
    let envoy = scene.envoy("1.40.0", Logger::Grpc, BUFFER);
    scene.ask(&envoy, 10, None);
    scene.row_when(&envoy, "its entries have come", |row| row["requests"] == 10);
    let more = resident_bytes(pid).saturating_sub(before);
    assert!(
        more < 120 << 20,
        "{} MB for {} connections",
        more >> 20,
        idle.len()
    );
}

/// 10,240 streams that each send something else that is no message, or none that ends, beside an Envoy.
#[test]
fn ten_thousand_hostile_streams_are_bounded() {
    const CONNECTIONS: usize = 320;
    let scene = Scene::new();
    let pid = scene.agent.pid();
    let before = resident_bytes(pid);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let streams = runtime.block_on(async {
        let mut streams = tokio::task::JoinSet::new();
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS {
            held.extend(hostile_connection(scene.sink, &mut streams).await);
        }
        assert_eq!(held.len(), CONNECTIONS * hostile().len());
        let envoy = scene.envoy("1.40.0", Logger::Grpc, BUFFER);
        scene.ask(&envoy, 10, None);
        scene.row_when(&envoy, "its entries have come", |row| row["requests"] == 10);
        let more = resident_bytes(pid).saturating_sub(before);
        assert!(more < 160 << 20, "{} MB", more >> 20);
        drop(held);
        let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
        while let Some(ended) = streams.join_next().await {
            *statuses.entry(ended.unwrap()).or_default() += 1;
        }
        statuses
    });
    // Four of eight kinds have a status of their own. The others end within a message, now or after the ten seconds that one may take.
    let count = |status: u16| streams.get(&status).copied().unwrap_or(0);
    assert_eq!(count(8), 2 * CONNECTIONS, "{streams:?}");
    assert_eq!(count(12), 2 * CONNECTIONS, "{streams:?}");
    let rest = CONNECTIONS * (hostile().len() - 4);
    assert_eq!(count(3) + count(4), rest, "{streams:?}");
    let log = scene.agent.log();
    assert!(!log.contains("panicked"), "{log}");
    let after = scene.envoy("1.40.0", Logger::Grpc, BUFFER);
    scene.ask(&after, 10, None);
    scene.row_when(&after, "others are heard", |row| row["requests"] == 10);
}

/// What the streams of a connection begin with.
fn hostile() -> Vec<Vec<u8>> {
    let cut = framed(0, 1 << 20, &[0x12; 1_000]);
    let kinds = [
        // More than a message may have.
        framed(0, 64 << 20, b"\x12"),
        framed(0, u32::MAX, b""),
        // Compressed, or with a flag that does not exist.
        framed(1, 3, b"abc"),
        framed(255, 3, b"abc"),
        // Of other types.
        framed(0, 4, b"\x08\x96\x01\x12"),
        framed(0, 3, b"\x0a\xff\xff"),
        cut.clone(),
        // Not even a length.
        vec![0],
    ];
    // Most wait for the rest, which does not come.
    let waiting = std::iter::repeat_n(cut, 24);
    kinds.into_iter().chain(waiting).collect()
}

type HostileFrame = Result<hyper::body::Frame<hyper::body::Bytes>, std::convert::Infallible>;
type HostileBody = http_body_util::StreamBody<tokio_stream::wrappers::ReceiverStream<HostileFrame>>;

/// Opens a stream for each beginning. What is returned keeps them open; `streams` end with the status of each, 2 without one.
async fn hostile_connection(
    port: u16,
    streams: &mut tokio::task::JoinSet<u16>,
) -> Vec<tokio::sync::mpsc::Sender<HostileFrame>> {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port))
        .await
        .unwrap();
    let (sender, connection) = hyper::client::conn::http2::handshake::<_, _, HostileBody>(
        hyper_util::rt::TokioExecutor::new(),
        hyper_util::rt::TokioIo::new(stream),
    )
    .await
    .unwrap();
    tokio::spawn(connection);
    let mut held = Vec::new();
    for beginning in hostile() {
        let (bytes, body) = tokio::sync::mpsc::channel(1);
        let frame = hyper::body::Frame::data(hyper::body::Bytes::from(beginning));
        bytes.send(Ok(frame)).await.unwrap();
        held.push(bytes);
        let body = HostileBody::new(tokio_stream::wrappers::ReceiverStream::new(body));
        let request = hyper::Request::post(format!("http://agent{STREAM}"))
            .header("content-type", GRPC)
            .body(body)
            .unwrap();
        let mut sender = sender.clone();
        streams.spawn(async move {
            const UNKNOWN: u16 = 2;
            let Ok(answer) = sender.send_request(request).await else {
                return UNKNOWN;
            };
            let status = |headers: &hyper::HeaderMap| {
                let status = headers.get("grpc-status")?.to_str().ok()?;
                status.parse().ok()
            };
            let at_once = status(answer.headers());
            let body = http_body_util::BodyExt::collect(answer.into_body()).await;
            let behind = body.ok().and_then(|body| status(body.trailers()?));
            at_once.or(behind).unwrap_or(UNKNOWN)
        });
    }
    held
}

/// Those in effect of the thread of this name.
fn capabilities(pid: u32, thread: &str) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let folders = tasks.map(|task| task.unwrap().path());
    let named = |folder: &PathBuf| {
        std::fs::read_to_string(folder.join("comm")).is_ok_and(|comm| comm.trim() == thread)
    };
    let [found] = &folders.filter(named).collect::<Vec<_>>()[..] else {
        panic!("no thread {thread}, or several");
    };
    let status = std::fs::read_to_string(found.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.unwrap().trim().to_owned()
}

fn resident_bytes(pid: u32) -> u64 {
    let status =
        std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}
