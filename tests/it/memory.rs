//! A ceiling for the agent's own memory, under a load that needs more.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{BufWriter, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use profiler_tests::{
    agent::{Agent, ServeOptions},
    assert_measured,
    cgroup::{Cgroup, memory_hierarchy},
    process::Running,
    wait::{wait_for, wait_until},
    workload::Workload,
};
use serde_json::{Value, json};

use crate::targets::{START, Targets, on_cpu, start_task};

const CEILING: u64 = 240_000_000;
/// What may come between two looks of the agent at itself: the share that docs/memory.md states.
const TOLERANCE: u64 = CEILING / 4;
/// Names in a perf-map: about 14 MB in the agent.
const NAMES: u64 = 280_000;
/// Programs with such perf-maps come one after the other, until what is waited for happens.
const MOST_PROGRAMS: usize = 24;
const BETWEEN_PROGRAMS: Duration = Duration::from_secs(2);
/// By so much the agent grows when it has read most of such a perf-map.
const A_PROGRAM: u64 = 10_000_000;
const SETTLED: Duration = Duration::from_mins(1);
/// Most that an agent without tasks may use: twice what it does.
const IDLE: u64 = 24_000_000;
const RECOVERED: Duration = Duration::from_mins(2);

/// Memory of a process as the kernel shows it: pages without a file, files without a name, eBPF objects.
fn used(pid: u32) -> Option<u64> {
    let number = |text: &str, key: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut bytes = number(&status, "RssAnon:")? * 1024;
    let mut seen = HashSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten() {
        let Ok(target) = fs::read_link(entry.path()) else {
            continue;
        };
        let target = target.to_string_lossy().into_owned();
        if target.starts_with("/memfd:") {
            use std::os::unix::fs::MetadataExt as _;
            if let Ok(file) = fs::metadata(entry.path())
                && seen.insert(format!("memfd {}", file.ino()))
            {
                bytes += file.blocks() * 512;
            }
        }
        let facts = format!("/proc/{pid}/fdinfo/{}", entry.file_name().to_string_lossy());
        let facts = fs::read_to_string(facts).unwrap_or_default();
        for key in ["map_id:", "prog_id:"] {
            if let Some(id) = number(&facts, key)
                && let Some(charged) = number(&facts, "memlock:")
                && seen.insert(format!("{key} {id}"))
            {
                bytes += charged;
            }
        }
    }
    Some(bytes)
}

/// Keeps the most that a process used until it is asked.
struct Peak {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Peak {
    fn of(agent: &Agent) -> Self {
        let (pid, stop) = (agent.pid(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut most = 0;
            while !stopped.load(Ordering::Relaxed) {
                most = most.max(used(pid).unwrap_or(0));
                std::thread::sleep(Duration::from_millis(50));
            }
            most
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    fn take(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// A program with code that nothing names, and a perf-map of very many names of other code, which is therefore looked
/// at again and again.
fn with_many_names(targets: &Targets, index: usize) -> Running {
    let own = std::process::id().to_string();
    let name = format!("names-{index}");
    let mut target = targets.contained(Workload::Hostile, &name, &["fifo", "/dev/null", &own]);
    target
        .wait_for_line(START, |line| (line == "ready").then_some(()))
        .unwrap();
    let folder = format!("/proc/{}/root/tmp", target.pid());
    let mut files = fs::read_dir(folder).unwrap().flatten();
    let map = files.find(|file| file.file_name().to_string_lossy().starts_with("perf-"));
    let map = map.unwrap().path();
    let large = map.with_extension("new");
    let mut file = BufWriter::new(File::create(&large).unwrap());
    for at in 0..NAMES {
        let start = 0x1000 + at * 16;
        writeln!(file, "{start:x} 10 a_function_that_is_never_called_{at:08}").unwrap();
    }
    file.into_inner().unwrap();
    fs::rename(large, map).unwrap();
    target
}

/// More and more such programs, until `enough` says something.
fn load_until<T>(
    agent: &Agent,
    targets: &Targets,
    programs: &mut Vec<Running>,
    mut enough: impl FnMut() -> Option<T>,
) -> T {
    loop {
        let before = used(agent.pid()).unwrap_or(0);
        // The next one comes as soon as the agent has read the last one. After the last there is time for all.
        let may_grow = programs.len() < MOST_PROGRAMS;
        let limit = if may_grow { BETWEEN_PROGRAMS } else { SETTLED };
        let next = wait_for("the load is enough", limit, || {
            let found = enough();
            let has_read = may_grow && used(agent.pid()) > Some(before + A_PROGRAM);
            if found.is_none() && !has_read {
                std::thread::sleep(Duration::from_millis(50));
                return None;
            }
            Some(found)
        });
        if let Ok(Some(found)) = next {
            return found;
        }
        let count = programs.len();
        assert!(
            count < MOST_PROGRAMS,
            "{count} programs are not enough: {}\n{}",
            memory(agent),
            agent.log()
        );
        programs.push(with_many_names(targets, count));
    }
}

fn serve(more: &[&str]) -> Agent {
    let mut options = ServeOptions::with_arguments(["--network=always", "--profile=always"]);
    options
        .arguments
        .extend(more.iter().map(|text| (*text).to_owned()));
    let agent = Agent::start_with(options).unwrap();
    wait_until("what is always on runs", SETTLED, || {
        tasks(&agent)
            .iter()
            .any(|task| task["samples"].as_u64() > Some(0))
            && network_runs(&agent)
    })
    .unwrap_or_else(|error| panic!("{error:#}\nagent log:\n{}", agent.log()));
    agent
}

fn tasks(agent: &Agent) -> Vec<Value> {
    let list = agent.api.get_json("/api/v1/tasks").unwrap();
    list["items"].as_array().unwrap().clone()
}

fn network_runs(agent: &Agent) -> bool {
    agent.api.get_json("/api/v1/network/edges").unwrap()["state"] == "running"
}

fn memory(agent: &Agent) -> Value {
    agent.api.get_json("/api/v1/self").unwrap()["memory"].clone()
}

/// Whether new tasks are refused now. Trying it would start one where they are not.
fn refuses(agent: &Agent) -> bool {
    let stage = memory(agent)["stage"].clone();
    stage == "refusing" || stage == "stopping"
}

/// A task of the user, until stopped; it begins when the agent has read the files of what runs on this machine.
fn task_of_the_user(agent: &Agent, pid: u32) -> String {
    let specification = json!({
        "kind": "on_cpu", "target": { "pids": [pid] }, "duration_s": 300, "frequency_hz": 99,
    });
    if memory(agent)["ceiling_bytes"].is_u64() {
        settled(agent);
    }
    start_task(agent, &specification)
}

/// Waits until the agent has used less for a while.
fn settled(agent: &Agent) {
    let mut calm = 0;
    wait_until("the agent has room", SETTLED, || {
        std::thread::sleep(Duration::from_millis(500));
        let memory = memory(agent);
        let room = memory["used_bytes"].as_u64() < Some(CEILING / 10 * 7)
            && ["open", "trimming"]
                .map(Value::from)
                .contains(&memory["stage"]);
        calm = if room { calm + 1 } else { 0 };
        calm >= 6
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}\n{}", memory(agent), agent.log()));
}

#[test]
fn an_agent_that_does_nothing_is_small() {
    let agent = Agent::start().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    // On a busy machine it has only just started by now, and has not yet looked at itself again.
    let mut last = (0, 0);
    wait_until("it is small and knows it", START, || {
        let says = memory(&agent)["used_bytes"].as_u64().unwrap();
        last = (used(agent.pid()).unwrap(), says);
        last.0 < IDLE && last.1.abs_diff(last.0) < IDLE / 4
    })
    .unwrap_or_else(|error| {
        let (used, says) = last;
        panic!(
            "{error:#}: {used} bytes, it says {says}: {}",
            memory(&agent)
        )
    });
}

#[test]
fn the_limit_of_the_agents_cgroup_sets_the_ceiling() {
    const LIMIT: u64 = 400 << 20;
    let cgroup = Cgroup::create(&memory_hierarchy(), "memory", "pod/agent").unwrap();
    // On the one above: all that apply are looked at.
    cgroup.limit_memory_above(LIMIT).unwrap();
    let mut agent = Agent::start_with(ServeOptions {
        wrapper: cgroup.wrapper(),
        ..ServeOptions::default()
    })
    .unwrap();
    let memory = memory(&agent);
    assert_eq!(memory["ceiling_source"], "cgroup", "{memory}");
    assert_eq!(memory["cgroup"]["limit_bytes"], LIMIT, "{memory}");
    assert_eq!(memory["ceiling_bytes"], LIMIT / 100 * 80, "{memory}");
    let settings = agent.api.get_json("/api/v1/config").unwrap();
    let setting = settings["items"].as_array().unwrap().iter();
    let setting = setting.clone().find(|item| item["name"] == "max_memory");
    assert_eq!(setting.unwrap()["value"], (LIMIT / 100 * 80).to_string());
    agent.stop().unwrap();
}

/// An agent near its ceiling has to be faster than its load grows, and reads what else runs on the machine.
mod alone {
    use super::*;

    /// As the message of a smaller ceiling promises.
    #[test]
    fn the_least_ceiling_lets_a_task_run() {
        let targets = Targets::new();
        let busy = targets.busy("shares-small");
        let agent =
            Agent::start_with(ServeOptions::with_arguments(["--max-memory=96MiB"])).unwrap();
        for _ in 0..3 {
            let target = json!({ "pids": [busy.pid()] });
            let id = start_task(&agent, &on_cpu(target, 3, 99));
            let task = agent.api.wait_task(&id, &["finished"], START);
            let task = task.unwrap_or_else(|error| panic!("{error:#}: {}", agent.log()));
            assert_measured!(task["samples"].as_u64() > Some(100), "{task}");
        }
    }

    #[test]
    fn without_a_ceiling_the_load_needs_more() {
        let targets = Targets::new();
        let busy = targets.busy("shares-memory");
        let agent = serve(&["--max-memory=none"]);
        task_of_the_user(&agent, busy.pid());
        let needs_more = || used(agent.pid()).filter(|used| *used > CEILING + TOLERANCE);
        load_until(&agent, &targets, &mut Vec::new(), needs_more);
        let memory = memory(&agent);
        assert_eq!(memory["stage"], "open", "{memory}");
        assert_eq!(memory["ceiling_bytes"], Value::Null, "{memory}");
    }

    #[test]
    fn near_the_ceiling_the_agent_gives_up_what_matters_least() {
        let targets = Targets::new();
        let busy = targets.busy("shares-memory");
        let agent = serve(&[&format!("--max-memory={CEILING}")]);
        let users = task_of_the_user(&agent, busy.pid());
        let peak = Peak::of(&agent);

        // New tasks are refused, and the health check says so.
        let mut programs = Vec::new();
        let refused = load_until(&agent, &targets, &mut programs, || {
            if !refuses(&agent) {
                return None;
            }
            let body = on_cpu(json!({ "all": true }), 1, 99).to_string();
            let answer = agent
                .api
                .send("POST", "/api/v1/tasks", Some(&body))
                .unwrap();
            (answer.status == 503).then(|| answer.json().unwrap())
        });
        assert_eq!(refused["code"], "memory_short", "{refused}");
        assert!(
            refused["hint"].as_str().unwrap().contains("--max-memory"),
            "{refused}"
        );
        let ready = agent.api.get("/readyz").unwrap();
        assert_eq!(ready.status, 503, "{}", ready.text());

        // What is always on goes first, and what it has counted stays.
        let stopped = load_until(&agent, &targets, &mut programs, || {
            let is_it = |task: &Value| task["state"] == "failed" && task["duration_s"].is_null();
            tasks(&agent).into_iter().find(is_it)
        });
        let reason = stopped["reason"].as_str().unwrap();
        assert!(
            reason.contains("ceiling of 240.0 MB (--max-memory)"),
            "{reason}"
        );
        let notes = stopped["notes"].to_string();
        assert!(
            notes.contains("when it was stopped the agent used"),
            "{notes}"
        );
        let log = agent.log();
        let at = |what: &str| {
            log.find(what)
                .unwrap_or_else(|| panic!("no {what:?}: {log}"))
        };
        let order = [
            "caches are dropped",
            "no task is started",
            "tasks are stopped",
            "the always-on network collection rests",
            "a task is stopped",
        ];
        // By now some of it may have come back already.
        assert!(order.map(at).is_sorted(), "{log}");

        drop(programs);
        let peak = peak.take();
        assert_measured!(peak < CEILING + TOLERANCE, "{peak} bytes: {}", agent.log());
        // The user's task was spared: what is always on was enough.
        agent.api.stop_task(&users).unwrap();
        let ended = agent.api.wait_task(&users, &["cancelled"], START);
        assert_measured!(ended.is_ok(), "{ended:?}: {}", agent.log());
        let kept = wait_for("the result is read", SETTLED, || {
            agent.api.folded(stopped["id"].as_str().unwrap(), "").ok()
        });
        assert_eq!(Some(kept.unwrap().total()), stopped["samples"].as_u64());
        // With the programs goes what was read of them: tasks are started again.
        let began = std::time::Instant::now();
        wait_until("a task is started again", RECOVERED, || {
            if refuses(&agent) {
                return false;
            }
            let body = on_cpu(json!({ "pids": [busy.pid()] }), 1, 99).to_string();
            let answer = agent
                .api
                .send("POST", "/api/v1/tasks", Some(&body))
                .unwrap();
            answer.status == 201
        })
        .unwrap_or_else(|error| panic!("{error:#}: {}\n{}", memory(&agent), agent.log()));
        println!(
            "tasks are started again after {:?}: {}",
            began.elapsed(),
            memory(&agent)
        );
        let metrics = agent.api.get("/metrics").unwrap().text();
        for line in [
            "profiler_agent_memory_ceiling_bytes 240000000",
            "profiler_agent_memory_bytes{part=\"kernel\"} ",
            "profiler_agent_memory_stage{stage=\"open\"} ",
        ] {
            assert!(metrics.contains(line), "{line}: {metrics}");
        }
        let memory = memory(&agent);
        assert!(memory["stopped"].as_u64() >= Some(2), "{memory}");
        assert!(memory["refusals"].as_u64() >= Some(1), "{memory}");
    }
}
