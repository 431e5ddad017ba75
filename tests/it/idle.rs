//! Idle rules on real programs: those that have next to nothing to do are idle, those that are held
//! up are not.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    os::unix::net::UnixStream,
    path::Path,
    process::Command,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::{Agent, ServeOptions, run},
    assert_measured,
    mesh::{Mesh, MeshOptions},
    paths,
    wait::wait_until,
    workload::{Workload, process_cpu_ns},
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::targets::{EXIT, START, Targets, start_task, stop_task, wait_until_sampling};

/// How long the waits of a program are recorded.
const RECORDED: Duration = Duration::from_secs(5);
/// In this time programs that have just started become quiet, also on a busy machine.
const QUIET: Duration = Duration::from_mins(1);
/// They are quiet when each has used next to no CPU time in this many looks.
const CALM_LOOKS: u32 = 2;
const LOOK: Duration = Duration::from_millis(500);

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

const NODE_SERVER: &str = "\
const fs = require('fs');
require('net').createServer(() => {}).listen(0, '127.0.0.1', () => console.log('listening on it'));
setInterval(() => fs.readFile('/dev/null', () => {}), 50);
";
const ASYNCIO_SERVER: &str = "\
import asyncio
async def main():
    await asyncio.start_server(lambda reader, writer: writer.close(), '127.0.0.1', 0)
    print('listening on it', flush=True)
    while True:
        await asyncio.sleep(0.05)
asyncio.run(main())
";
/// Modes of the waits program that are held up, and not idle.
const HELD_UP: [&str; 3] = ["nap", "futex", "stuck"];

const BLOCKED: [&str; 4] = ["interruptible", "uninterruptible", "io", "stopped"];

/// Processes whose waits one task records.
struct Program {
    name: &'static str,
    pids: Vec<u32>,
    /// Those of their threads that are judged; none stands for all.
    tids: Vec<u32>,
}

impl Program {
    fn new(name: &'static str, pids: &[u32]) -> Self {
        Self {
            name,
            pids: pids.to_vec(),
            tids: Vec::new(),
        }
    }
}

/// Sums of a task: idle time, blocked time, and the rules that held.
struct Idle {
    hidden_ns: u64,
    blocked_ns: u64,
    rules: BTreeSet<String>,
    waits: Value,
}

impl Idle {
    /// What a task says at its end; an empty list of threads stands for all.
    fn read(agent: &Agent, task: &Value, tids: &[u32]) -> Self {
        let threads: Vec<String> = tids.iter().map(|tid| format!("tid={tid}")).collect();
        let id = task["id"].as_str().unwrap();
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
        assert_measured!(
            self.blocked_ns > 0 && self.hidden_ns * 100 >= self.blocked_ns * 95,
            "{} of {} ns are idle: {}",
            self.hidden_ns,
            self.blocked_ns,
            self.waits
        );
    }
}

#[test]
fn every_rule_is_tried_on_a_real_program() {
    let file = paths::workspace().join("crates/analysis/rules/idle.toml");
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
    recorded("Envoys").assert_idle(ENVOY);
}

#[test]
fn nginx() {
    recorded("nginx").assert_idle(NGINX);
}

#[test]
fn redis() {
    recorded("redis").assert_idle(REDIS);
}

#[test]
fn a_go_server() {
    recorded("Go").assert_idle(GO);
}

#[test]
fn node() {
    recorded("Node").assert_idle(NODE);
}

#[test]
fn asyncio() {
    recorded("asyncio").assert_idle(PYTHON);
}

#[test]
fn java() {
    recorded("Java").assert_idle(JAVA);
}

#[test]
fn tokio() {
    recorded("tokio").assert_idle(TOKIO);
    recorded("tokio, stripped").assert_idle(TOKIO_STRIPPED);
}

#[test]
fn locks_and_sleeps_are_not_idle() {
    for mode in HELD_UP {
        let waits = recorded(mode);
        assert!(waits.blocked_ns > 0, "{mode}: {}", waits.waits);
        assert_eq!(waits.hidden_ns, 0, "{mode}: {}", waits.waits);
    }
}

/// The waits of a program. All programs are recorded when the first is asked for: together they become quiet, and
/// each has its own task.
fn recorded(name: &str) -> &'static Idle {
    static ALL: OnceLock<Option<BTreeMap<&str, Idle>>> = OnceLock::new();
    // What fails once is not tried for each of them.
    let all = ALL.get_or_init(|| std::panic::catch_unwind(record_all).ok());
    let all = all.as_ref();
    &all.expect("the programs were recorded: the first test that asked for them says what failed")
        [name]
}

fn record_all() -> BTreeMap<&'static str, Idle> {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let tokio = paths::own_program("tokio-server").unwrap();
    let stripped = targets.folder.join("tokio-stripped");
    strip(&tokio, &stripped);
    let go = Workload::IdleServerGo.build("idle-server").unwrap();
    let launch = |program: &Path, label: &str, arguments: &[&str]| {
        let launch = targets.launch(program, label).args(arguments);
        launch.start().unwrap()
    };
    let mut servers = [
        launch(&go, "go", &[]),
        launch(Path::new("/usr/bin/node"), "node", &["-e", NODE_SERVER]),
        launch(
            Path::new("/usr/bin/python3"),
            "python",
            &["-c", ASYNCIO_SERVER],
        ),
        launch(
            Path::new("/usr/bin/java"),
            "java",
            &["-cp", &java_server(&targets), "IdleServer"],
        ),
        launch(&tokio, "tokio", &[]),
        launch(&stripped, "tokio-stripped", &[]),
    ];
    let (nginx, nginx_socket) = targets.nginx(2);
    let (redis, redis_socket) = targets.redis();
    let options = MeshOptions {
        workers: 2,
        ..MeshOptions::default()
    };
    let mesh = Mesh::up(&options).unwrap();
    let held_up = HELD_UP.map(|mode| {
        let name = format!("waits-{mode}");
        targets.ready(Workload::Waits, &name, &[mode])
    });
    for server in &mut servers {
        server
            .wait_for_line(START, |line| line.contains("listening on").then_some(()))
            .unwrap_or_else(|error| panic!("{}: {error:#}", server.label()));
    }

    let [go, node, python, java, tokio, stripped] = servers;
    let report = mesh.report();
    let envoys = [report.client_envoy_pid, report.server_envoy_pid];
    let workers = || children(nginx.pid());
    wait_until("nginx has its workers", START, || workers().len() == 2).unwrap();
    let programs = [
        Program::new("Envoys", &envoys),
        Program::new("nginx", &[workers(), vec![nginx.pid()]].concat()),
        Program::new("redis", &[redis.pid()]),
        Program::new("Go", &[go.pid()]),
        Program::new("Node", &[node.pid()]),
        Program::new("asyncio", &[python.pid()]),
        Program::new("Java", &[java.pid()]),
        Program::new("tokio", &[tokio.pid()]),
    ];
    let main = stripped.pid();
    let others = [
        Program {
            // The main thread of a stripped program has no name that says what it is.
            tids: tids(main).into_iter().filter(|tid| *tid != main).collect(),
            ..Program::new("tokio, stripped", &[main])
        },
        Program::new(HELD_UP[0], &[held_up[0].pid()]),
        Program::new(HELD_UP[1], &[held_up[1].pid()]),
        Program::new(HELD_UP[2], &[held_up[2].pid()]),
    ];
    settle(programs.iter().chain(&others));
    // Twice, as eight tasks run at once.
    let mut all = record(&agent, &programs, || {
        drop(UnixStream::connect(&nginx_socket));
        // The master opens its logs anew and tells the workers; Go's thread for signals has one.
        nginx.signal(Signal::USR1).unwrap();
        go.signal(Signal::USR1).unwrap();
        // Work for the thread that frees memory.
        let mut client = UnixStream::connect(&redis_socket).unwrap();
        client.write_all(b"SET a b\r\nFLUSHALL ASYNC\r\n").unwrap();
        thread::sleep(Duration::from_millis(50));
    });
    let mut told = false;
    all.extend(record(&agent, &others, || {
        if !told {
            for target in &held_up {
                target.signal(Signal::USR1).unwrap();
            }
            told = true;
        }
    }));
    all
}

/// Records what programs wait for, with a task for each, while `meanwhile` is called again and again.
fn record(
    agent: &Agent,
    programs: &[Program],
    mut meanwhile: impl FnMut(),
) -> BTreeMap<&'static str, Idle> {
    let create = |program: &Program| {
        let specification = json!({
            "kind": "off_cpu",
            "target": { "pids": program.pids },
            "duration_s": null,
        });
        agent.api.create_task(&specification).unwrap()
    };
    let ids: Vec<String> = programs.iter().map(create).collect();
    for id in &ids {
        wait_until_sampling(agent, id);
    }
    let began = Instant::now();
    wait_until("half of the time passes", EXIT, || {
        meanwhile();
        began.elapsed() >= RECORDED / 2
    })
    .unwrap();
    wait_until("the time passes", EXIT, || began.elapsed() >= RECORDED).unwrap();
    let tasks: Vec<Value> = ids.iter().map(|id| stop_task(agent, id)).collect();
    let ended = programs.iter().zip(&tasks);
    ended
        .map(|(program, task)| (program.name, Idle::read(agent, task, &program.tids)))
        .collect()
}

/// Waits until programs have started and become quiet: none uses more than a little of a CPU, for a while.
fn settle<'a>(programs: impl Iterator<Item = &'a Program>) {
    let named: Vec<(&str, u32)> = programs
        .flat_map(|program| program.pids.iter().map(|pid| (program.name, *pid)))
        .collect();
    let mut used: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut calm, mut busy) = (0, Vec::new());
    wait_until("the programs are quiet", QUIET, || {
        thread::sleep(LOOK);
        busy.clear();
        for (name, pid) in &named {
            let now = process_cpu_ns(*pid).unwrap();
            let before = used.insert(*pid, now).unwrap_or(0);
            // Threads that have ended are not part of the sum.
            let more = Duration::from_nanos(now.saturating_sub(before));
            if more > LOOK / 20 {
                busy.push((*name, more));
            }
        }
        calm = if busy.is_empty() { calm + 1 } else { 0 };
        calm == CALM_LOOKS
    })
    .unwrap_or_else(|error| panic!("{error:#}: {busy:?}"));
}

/// The folder of the compiled server.
fn java_server(targets: &Targets) -> String {
    let source = paths::workspace().join("tests/workloads/IdleServer.java");
    let compiled = Command::new("/usr/bin/javac")
        .arg("-d")
        .arg(&targets.folder)
        .arg(source)
        .output()
        .expect("run javac (Debian package default-jdk-headless)");
    assert!(compiled.status.success(), "{compiled:?}");
    targets.folder.to_str().unwrap().to_owned()
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
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

fn strip(program: &Path, stripped: &Path) {
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
    let task = stop_task(&agent, &id);
    let losses = task["losses"].as_array().unwrap().iter();
    let missed = losses
        .filter(|loss| loss["kind"] == "switch_missed")
        .filter_map(|loss| loss["count"].as_u64())
        .sum::<u64>();
    let naps = |more: &str| {
        let folded = agent
            .api
            .folded(&id, &format!("&value=count{more}"))
            .unwrap();
        // Not what waits for a processor in the middle of it.
        let waits_for_cpu = |frame: &String| frame.starts_with("[runnable");
        folded.count(|stack| {
            stack.has("hrtimer_nanosleep") && !stack.frames.iter().any(waits_for_cpu)
        })
    };
    let all = naps("");
    assert!(all + missed >= 199, "{all}, {missed} missed");
    let shown = agent.api.folded(&id, "&value=count&idle=hide").unwrap();
    assert_eq!(naps("&idle=hide"), 0, "{}", shown.summary());
    assert_eq!(naps("&idle=only"), all);
    assert_eq!(naps("&idle=show&reason=sleep"), all);
    assert_eq!(naps("&reason=futex"), 0);
    assert_eq!(naps("&state=uninterruptible"), 0);
}
