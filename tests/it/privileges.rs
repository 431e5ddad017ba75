//! What the agent keeps of its privileges, and what it still can do.

use std::{fs, time::Duration};

use profiler_tests::{
    agent::{Agent, ServeOptions, launch},
    cleanup::scratch_directory,
    peers::{
        curl::{self, Call},
        nginx::{Nginx, Speaks},
        tls,
    },
    wait::{wait_for, wait_until},
};
use serde_json::json;

use crate::{
    capabilities::holds_nothing,
    targets::{START, Targets, assert_built_shares, endless, start_task, stop_task, wait_samples},
};

/// For a thread that has just been started.
const SETTLE: Duration = Duration::from_secs(20);
/// Samples that shares are judged by.
const SAMPLES: u64 = 1000;
/// Requests inside TLS.
const CALLS: u32 = 40;

/// Numbers of `include/uapi/linux/capability.h`: `DAC_READ_SEARCH`, `NET_ADMIN`, `SYS_PTRACE`, `SYSLOG`, `PERFMON`, `BPF`,
/// `CHECKPOINT_RESTORE`.
const BASE: u64 = 1 << 2 | 1 << 12 | 1 << 19 | 1 << 34 | 1 << 38 | 1 << 39 | 1 << 40;
const SYS_ADMIN: u64 = 1 << 21;

/// Filters of system calls of every thread.
const PROCESS_FILTERS: u64 = 2;

/// One thread as the kernel sees it.
#[derive(Debug)]
struct Thread {
    name: String,
    status: String,
}

impl Thread {
    /// All of a process.
    fn all(pid: u32) -> Vec<Self> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        tasks
            .filter_map(|task| {
                // One that has just ended says nothing.
                let status = fs::read_to_string(task.unwrap().path().join("status")).ok()?;
                let name = status.lines().next()?.strip_prefix("Name:\t")?.to_owned();
                Some(Self { name, status })
            })
            .collect()
    }

    fn set(&self, key: &str) -> u64 {
        let value = self.status.lines().find_map(|line| line.strip_prefix(key));
        u64::from_str_radix(value.unwrap().trim(), 16).unwrap()
    }
}

/// Filters of system calls of a thread: those that understand what others wrote have one more.
fn filters(thread: &Thread, own: &Thread) -> u64 {
    u64::from(holds_nothing(&thread.name)) + PROCESS_FILTERS + own.set("Seccomp_filters:")
}

/// Every thread has `tier` of what this test has; those that understand what others wrote have nothing. Names of all.
fn check_threads(agent: &Agent, tier: u64) -> Vec<String> {
    let own = Thread::all(std::process::id()).remove(0);
    // One that starts just now has not given up what it had.
    let is_starting = |thread: &Thread| {
        holds_nothing(&thread.name)
            && (thread.set("CapPrm:") != 0
                || thread.set("Seccomp_filters:") != filters(thread, &own))
    };
    let settled = || {
        let threads = Thread::all(agent.pid());
        let is_served = threads.iter().any(|thread| thread.name == "http");
        (is_served && !threads.iter().any(is_starting)).then_some(threads)
    };
    // The rest is reported below. One look is judged: in the next there may be threads that have just started.
    let threads = wait_for("threads have given up what they had", SETTLE, settled)
        .unwrap_or_else(|_in_vain| Thread::all(agent.pid()));
    let mut serving = 0;
    for thread in &threads {
        let is_http = thread.name == "http";
        serving += u32::from(is_http);
        let expected = if holds_nothing(&thread.name) {
            0
        } else {
            own.set("CapPrm:") & tier
        };
        for key in ["CapPrm:", "CapEff:"] {
            assert_eq!(thread.set(key), expected, "{key} {thread:#?}");
        }
        for key in ["CapInh:", "CapAmb:"] {
            assert_eq!(thread.set(key), 0, "{key} {thread:#?}");
        }
        assert_eq!(
            thread.set("CapBnd:"),
            own.set("CapBnd:") & tier,
            "{thread:#?}"
        );
        assert_eq!(thread.set("NoNewPrivs:"), 1, "{thread:#?}");
        assert_eq!(thread.set("Seccomp:"), 2, "{thread:#?}");
        let expected = filters(thread, &own);
        assert_eq!(thread.set("Seccomp_filters:"), expected, "{thread:#?}");
    }
    assert_eq!(serving, 1, "{threads:#?}");
    assert!(threads.len() > 4, "{threads:#?}");
    threads.into_iter().map(|thread| thread.name).collect()
}

fn keeping(tier: &str) -> Agent {
    let options = ServeOptions::with_arguments([&format!("--privileges={tier}")]);
    Agent::start_with(options).unwrap()
}

/// Profiles a program of known shares; every thread of a task is there when the privileges are looked at.
fn profile(agent: &Agent, tier: u64) {
    let targets = Targets::new();
    let target = targets.busy("shares-privileges");
    let pids = json!({ "pids": [target.pid()] });
    let id = start_task(agent, &endless(pids, 499));
    check_threads(agent, tier);
    wait_samples(agent, &id, SAMPLES);
    stop_task(agent, &id);
    let folded = agent.api.folded(&id, "").unwrap();
    assert_built_shares(&folded, 6.0, "with few privileges");
}

#[test]
fn everything_outside_the_tier_leaves_every_thread() {
    let agent = Agent::start().unwrap();
    check_threads(&agent, BASE | SYS_ADMIN);
    profile(&agent, BASE | SYS_ADMIN);
}

/// With everything under way that opens files, decodes payload, and watches connections.
#[test]
fn threads_that_parse_hold_nothing_while_they_work() {
    let tier = BASE | SYS_ADMIN;
    let (folder, _guard) = scratch_directory("privileges").unwrap();
    tls::write_certificate(&folder).unwrap();
    let nginx = Nginx::start(&folder, Speaks::Tls).unwrap();
    let options = ServeOptions::with_arguments([
        "--allow-tls-capture",
        "--profile=always",
        "--network=always",
    ]);
    let agent = Agent::start_with(options).unwrap();
    let pids = nginx.pids().unwrap();
    let off_cpu = json!({ "kind": "off_cpu", "target": { "pids": pids }, "duration_s": null });
    let off_cpu = start_task(&agent, &off_cpu);
    let requests = json!({
        "kind": "requests",
        "target": { "pids": pids },
        "duration_s": null,
        "tls": true,
    });
    let requests = agent.api.create_task(&requests).unwrap();
    let table = format!("/api/v1/tasks/{requests}/requests");
    wait_until("requests are watched", START, || {
        let answer = agent.api.get(&table).unwrap();
        answer.status == 200 && answer.json().unwrap()["window"].is_object()
    })
    .unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-parsers");
    let pids = json!({ "pids": [target.pid()] });
    let on_cpu = start_task(&agent, &endless(pids, 499));
    let calls: Vec<Call> = (0..CALLS)
        .map(|_| Call::new("GET", "/files/700", 200))
        .collect();
    let base = format!("https://127.0.0.1:{}", nginx.port);
    let authority = format!("cacert = {}", folder.join("server.pem").display());
    curl::run(&folder, &base, &calls, &["http1.1", &authority]).unwrap();

    let names = check_threads(&agent, tier);
    let count = |wanted: &str| names.iter().filter(|name| name.starts_with(wanted)).count();
    // Profiles of the target and of the node, and the waits.
    assert!(count("unwind-") >= 3, "{names:?}");
    for name in ["symbolizer", "renamer", "payload", "tls-finder"] {
        assert_eq!(count(name), 1, "{name}: {names:?}");
    }
    assert!(count("broker") >= 7, "{names:?}");

    wait_samples(&agent, &on_cpu, SAMPLES);
    stop_task(&agent, &on_cpu);
    let folded = agent.api.folded(&on_cpu, "").unwrap();
    assert_built_shares(&folded, 9.0, "beside what parses");
    wait_until("the calls inside TLS are counted", START, || {
        let table = agent.api.get_json(&table).unwrap();
        let operations = table["operations"].as_array().unwrap().iter();
        let counted = operations.filter(|operation| operation["tls"] == true);
        let counts = counted.filter_map(|operation| operation["count"].as_u64());
        counts.sum::<u64>() >= u64::from(CALLS)
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}", agent.api.get_json(&table).unwrap()));
    stop_task(&agent, &requests);
    stop_task(&agent, &off_cpu);
    // What opened files for threads that have ended has ended, too.
    let openers = |agent: &Agent| {
        let threads = Thread::all(agent.pid());
        let named = |wanted: &str| {
            let is_one = |thread: &&Thread| thread.name.starts_with(wanted);
            threads.iter().filter(is_one).count()
        };
        let with_one = ["unwind-", "symbolizer", "renamer", "dns"].map(named);
        named("broker") == with_one.iter().sum::<usize>()
    };
    wait_until("partners end", START, || openers(&agent)).unwrap();
}

#[test]
fn nothing_is_confined_when_that_is_asked_for() {
    let agent = Agent::start_with(ServeOptions::with_arguments(["--confine=off"])).unwrap();
    let own = Thread::all(std::process::id()).remove(0);
    for thread in Thread::all(agent.pid()) {
        let filters = "Seccomp_filters:";
        assert_eq!(thread.set(filters), own.set(filters), "{thread:#?}");
    }
    assert_eq!(agent.api.get("/healthz").unwrap().status, 200);
}

#[test]
fn what_confines_the_agent_is_said() {
    let agent = Agent::start().unwrap();
    let features = agent.api.get_json("/api/v1/features").unwrap();
    for name in ["seccomp", "landlock"] {
        let mut all = features["items"].as_array().unwrap().iter();
        let feature = all.find(|feature| feature["name"] == name).unwrap();
        assert_eq!(feature["verdict"], "ok", "{feature}");
        let detail = feature["detail"].as_str().unwrap();
        assert!(detail.contains("in force"), "{feature}");
        assert!(!detail.contains("not in force"), "{feature}");
    }
}

#[test]
fn profiles_need_no_sys_admin() {
    let agent = keeping("base");
    profile(&agent, BASE);
    let features = agent.api.get_json("/api/v1/features").unwrap();
    let statistics = features["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|feature| feature["name"] == "bpf_statistics")
        .unwrap();
    assert_eq!(statistics["verdict"], "degraded", "{statistics}");
}

#[test]
fn recorded_data_is_shown_without_any_privilege() {
    let (folder, _guard) = scratch_directory("demo-data").unwrap();
    let arguments = ["serve", "--demo-data", "--listen=127.0.0.1:0"];
    let mut agent = launch(&arguments, "serve", &folder).unwrap();
    agent
        .wait_for_line(START, |line| line.starts_with("listening on").then_some(()))
        .unwrap();
    for thread in Thread::all(agent.pid()) {
        assert_eq!(thread.set("CapPrm:"), 0, "{thread:#?}");
        assert_eq!(thread.set("CapBnd:"), 0, "{thread:#?}");
    }
    agent.stop().unwrap();
}
