//! Idle rules on real programs: those that have next to nothing to do are idle, those that are held
//! up are not.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::{Agent, ServeOptions, run},
    mesh::{Mesh, MeshOptions},
    paths,
    process::Running,
    wait::wait_until,
    workload::Workload,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::targets::{EXIT, START, Targets, finish_task, start_task};

const SECONDS: u64 = 5;
/// Time in which a program that has just started becomes quiet.
const QUIET: Duration = Duration::from_secs(2);

/// Which rules each test must see holding. Together they are all rules.
const ENVOY: &[&str] = &[
    "Envoy worker in its event loop",
    "Envoy main thread in its event loop",
    "Envoy helper thread",
];
const NGINX: &[&str] = &[
    "nginx worker in its event loop",
    "nginx master waiting for signals",
];
const REDIS: &[&str] = &["redis in its event loop", "redis helper thread"];
const GO: &[&str] = &[
    "Go network poller",
    "Go thread without work",
    "Go system monitor",
    "Go waiting for signals",
];
const NODE: &[&str] = &["Node event loop", "Node pool thread without work"];
const JAVA: &[&str] = &[
    "Java VM thread without work",
    "Java pool thread parked",
    "Java launcher waiting for the VM",
];
const TOKIO: &[&str] = &["tokio thread parked"];
const TOKIO_STRIPPED: &[&str] = &["tokio thread parked (stripped program)"];
const PYTHON: &[&str] = &["event loop in epoll"];

const BLOCKED: [&str; 4] = ["interruptible", "uninterruptible", "io", "stopped"];

/// Sums of a task: idle time, blocked time, and the rules that held.
struct Idle {
    hidden_ns: u64,
    blocked_ns: u64,
    rules: BTreeSet<String>,
    waits: Value,
}

impl Idle {
    /// Records what processes wait for while `meanwhile` is called again and again.
    fn of(agent: &Agent, pids: &[u32], meanwhile: impl FnMut()) -> Self {
        Self::of_threads(agent, pids, &[], meanwhile)
    }

    /// The same of some of the threads; an empty list stands for all.
    fn of_threads(agent: &Agent, pids: &[u32], tids: &[u32], mut meanwhile: impl FnMut()) -> Self {
        let specification = json!({
            "kind": "off_cpu",
            "target": { "pids": pids },
            "duration_s": SECONDS,
        });
        let id = start_task(agent, &specification);
        let half = Instant::now() + Duration::from_secs(SECONDS) / 2;
        wait_until("half of the time passes", EXIT, || {
            meanwhile();
            Instant::now() >= half
        })
        .unwrap();
        let task = finish_task(agent, &id, SECONDS);
        let threads: Vec<String> = tids.iter().map(|tid| format!("tid={tid}")).collect();
        let path = format!("/api/v1/tasks/{id}/waits?{}", threads.join("&"));
        let waits = agent.api.get_json(&path).unwrap();
        let blocked = |state: &&Value| BLOCKED.contains(&state["name"].as_str().unwrap());
        assert!(waits["idle"].is_object(), "no waits: {waits}, {task}");
        let states = waits["states"].as_array().unwrap();
        let rules = waits["idle"]["rules"].as_array().unwrap();
        Self {
            hidden_ns: waits["idle"]["idle_ns"].as_u64().unwrap(),
            blocked_ns: states
                .iter()
                .filter(blocked)
                .map(|state| state["total_ns"].as_u64().unwrap())
                .sum(),
            rules: rules
                .iter()
                .map(|rule| rule["name"].as_str().unwrap().to_owned())
                .collect(),
            waits,
        }
    }

    fn assert_idle(&self, rules: &[&str]) {
        println!("{}", self.waits["idle"]["summary"]);
        for rule in rules {
            assert!(self.rules.contains(*rule), "{rule}: {}", self.waits);
        }
        assert!(
            self.blocked_ns > 0 && self.hidden_ns * 100 >= self.blocked_ns * 95,
            "{} of {} ns are idle: {}",
            self.hidden_ns,
            self.blocked_ns,
            self.waits
        );
    }
}

/// Waits until a program has started and become quiet.
fn settle() {
    let end = Instant::now() + QUIET;
    wait_until("the program is quiet", EXIT, || Instant::now() >= end).unwrap();
}

fn listening(mut program: Running) -> Running {
    program
        .wait_for_line(START, |line| line.contains("listening on").then_some(()))
        .unwrap();
    settle();
    program
}

#[test]
fn every_rule_is_tried_on_a_real_program() {
    let file = paths::workspace().join("profiler-agent/rules/idle.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let names = text
        .lines()
        .filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let tried = [
        ENVOY,
        NGINX,
        REDIS,
        GO,
        NODE,
        JAVA,
        TOKIO,
        TOKIO_STRIPPED,
        PYTHON,
    ]
    .concat();
    let names: BTreeSet<&str> = names.collect();
    assert_eq!(names, tried.into_iter().collect());
}

#[test]
fn envoys_without_traffic() {
    let agent = Agent::start().unwrap();
    let options = MeshOptions {
        workers: 2,
        ..MeshOptions::default()
    };
    let mesh = Mesh::up(&options).unwrap();
    settle();
    let report = mesh.report();
    let envoys = [report.client_envoy_pid, report.server_envoy_pid];
    Idle::of(&agent, &envoys, || {}).assert_idle(ENVOY);
}

#[test]
fn nginx() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let (master, socket) = targets.nginx(2);
    settle();
    let mut pids = children(master.pid());
    assert_eq!(pids.len(), 2, "{pids:?}");
    pids.push(master.pid());
    let waits = Idle::of(&agent, &pids, || {
        drop(std::os::unix::net::UnixStream::connect(&socket));
        // The master opens its logs anew and tells the workers.
        master.signal(Signal::USR1).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    });
    waits.assert_idle(NGINX);
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

#[test]
fn redis() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let (server, socket) = targets.redis();
    settle();
    let waits = Idle::of(&agent, &[server.pid()], || {
        use std::io::Write as _;
        // Work for the thread that frees memory.
        let mut client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        client.write_all(b"SET a b\r\nFLUSHALL ASYNC\r\n").unwrap();
        std::thread::sleep(Duration::from_millis(50));
    });
    waits.assert_idle(REDIS);
}

#[test]
fn a_go_server() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let program = Workload::IdleServerGo.build("idle-server").unwrap();
    let server = listening(targets.launch(&program, "go").start().unwrap());
    let waits = Idle::of(&agent, &[server.pid()], || {
        server.signal(Signal::USR1).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    });
    waits.assert_idle(GO);
}

#[test]
fn node() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let script = "\
const fs = require('fs');
require('net').createServer(() => {}).listen(0, '127.0.0.1', () => console.log('listening on it'));
setInterval(() => fs.readFile('/dev/null', () => {}), 50);
";
    let server = targets
        .launch(Path::new("/usr/bin/node"), "node")
        .args(["-e", script])
        .start()
        .unwrap();
    let server = listening(server);
    Idle::of(&agent, &[server.pid()], || {}).assert_idle(NODE);
}

#[test]
fn asyncio() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let script = "\
import asyncio
async def main():
    await asyncio.start_server(lambda reader, writer: writer.close(), '127.0.0.1', 0)
    print('listening on it', flush=True)
    while True:
        await asyncio.sleep(0.05)
asyncio.run(main())
";
    let server = targets
        .launch(Path::new("/usr/bin/python3"), "python")
        .args(["-c", script])
        .start()
        .unwrap();
    let server = listening(server);
    Idle::of(&agent, &[server.pid()], || {}).assert_idle(PYTHON);
}

#[test]
fn java() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let source = paths::workspace().join("tests/workloads/IdleServer.java");
    let compiled = Command::new("/usr/bin/javac")
        .arg("-d")
        .arg(&targets.folder)
        .arg(source)
        .output()
        .expect("run javac (Debian package default-jdk-headless)");
    assert!(compiled.status.success(), "{compiled:?}");
    let server = targets
        .launch(Path::new("/usr/bin/java"), "java")
        .args(["-cp", targets.folder.to_str().unwrap(), "IdleServer"])
        .start()
        .unwrap();
    let server = listening(server);
    Idle::of(&agent, &[server.pid()], || {}).assert_idle(JAVA);
}

#[test]
fn tokio() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let program = paths::own_program("tokio-server").unwrap();
    let stripped = targets.folder.join("tokio-stripped");
    strip(&program, &stripped);
    for (program, rules) in [(program, TOKIO), (stripped, TOKIO_STRIPPED)] {
        let server = listening(targets.launch(&program, "tokio").start().unwrap());
        // The main thread of a stripped program has no name that says what it is.
        let main = server.pid();
        let threads = match rules {
            TOKIO => Vec::new(),
            _ => tids(main).into_iter().filter(|tid| *tid != main).collect(),
        };
        Idle::of_threads(&agent, &[main], &threads, || {}).assert_idle(rules);
    }
}

fn tids(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    entries
        .map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect()
}

fn strip(program: &PathBuf, stripped: &PathBuf) {
    let status = Command::new("strip")
        .arg("-o")
        .arg(stripped)
        .arg(program)
        .status();
    assert!(
        status
            .expect("run strip (Debian package binutils)")
            .success()
    );
}

#[test]
fn locks_and_sleeps_are_not_idle() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    for mode in ["nap", "futex", "stuck"] {
        let name = format!("waits-{mode}");
        let target = targets.ready(Workload::Waits, &name, &[mode]);
        let mut told = false;
        let waits = Idle::of(&agent, &[target.pid()], || {
            if !told {
                target.signal(Signal::USR1).unwrap();
                told = true;
            }
        });
        assert!(waits.blocked_ns > 0, "{mode}: {}", waits.waits);
        assert_eq!(waits.hidden_ns, 0, "{mode}: {}", waits.waits);
    }
}

#[test]
fn wrong_rules_are_refused_with_their_line() {
    let targets = Targets::new();
    let file = targets.folder.join("idle.toml");
    std::fs::write(
        &file,
        "version = 1\n[[rule]]\nname = \"mine\"\nreason = [\"lunch\"]\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let record = [
        "record",
        "--all",
        "--format",
        "folded",
        "--output",
        "-",
        "--idle-rules",
        file,
    ];
    let data = targets.folder.join("data");
    let serve = [
        "serve",
        "--data-dir",
        data.to_str().unwrap(),
        "--idle-rules",
        file,
    ];
    for command in [&record[..], &serve[..]] {
        let (status, _, errors) = run(command, EXIT).unwrap();
        assert_eq!(status.code(), Some(2), "{errors}");
        assert!(
            errors.contains("idle.toml") && errors.contains("line 4"),
            "{errors}"
        );
        assert!(errors.contains("\"lunch\" is not one of"), "{errors}");
    }
}

#[test]
fn rules_of_the_user_hide_what_they_name() {
    let targets = Targets::new();
    let file = targets.folder.join("idle.toml");
    std::fs::write(
        &file,
        "version = 1\n[[rule]]\nname = \"naps\"\nreason = [\"sleep\"]\nframes = [\"nap_often\"]\n",
    )
    .unwrap();
    let options = ServeOptions::with_arguments(["--idle-rules", file.to_str().unwrap()]);
    let agent = Agent::start_with(options).unwrap();
    let mut target = targets.ready(Workload::Waits, "nap", &["nap"]);
    let id = start_task(
        &agent,
        &json!({ "kind": "off_cpu", "target": { "pids": [target.pid()] }, "duration_s": null }),
    );
    target.signal(Signal::USR1).unwrap();
    let finished = |line: &str| line.starts_with('{').then_some(());
    target.wait_for_line(START, finished).unwrap();
    agent.api.stop_task(&id).unwrap();
    agent.api.wait_task(&id, &["cancelled"], EXIT).unwrap();
    let naps = |more: &str| {
        let folded = agent
            .api
            .folded(&id, &format!("&value=count{more}"))
            .unwrap();
        folded.count(|stack| stack.has("hrtimer_nanosleep"))
    };
    let all = naps("");
    assert!(all >= 199, "{all}");
    assert_eq!(naps("&idle=hide"), 0);
    assert_eq!(naps("&idle=only"), all);
    assert_eq!(naps("&idle=show&reason=sleep"), all);
    assert_eq!(naps("&reason=futex"), 0);
    assert_eq!(naps("&state=uninterruptible"), 0);
}
