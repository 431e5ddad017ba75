//! Targets behind namespaces and cgroups, and an agent behind one.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use profiler_tests::{
    agent::{Agent, ServeOptions},
    assert_measured,
    cgroup::{Cgroup, unified_hierarchy},
    wait::wait_for,
    workload::Workload,
};
use serde_json::{Value, json};

use crate::targets::{
    START, Targets, assert_built_shares, assert_shares, burn, endless, on_cpu, report_of,
    start_task, stop_task, wait_samples,
};

/// Samples that a result is judged by: a good second of a CPU.
const SAMPLES: u64 = 600;

/// Pids that a task has samples of.
pub(crate) fn sampled_pids(agent: &Agent, id: &str) -> Vec<u64> {
    let threads = agent
        .api
        .get_json(&format!("/api/v1/tasks/{id}/threads"))
        .unwrap();
    let items = threads["items"].as_array().unwrap().iter();
    let mut pids: Vec<u64> = items
        .filter(|item| item["samples"] != 0)
        .filter_map(|item| item["pid"].as_u64())
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

fn process_named(agent: &Agent, comm: &str) -> Option<Value> {
    let found = agent
        .api
        .get_json(&format!("/api/v1/processes?q={comm}&limit=100"))
        .ok()?;
    found["items"]
        .as_array()?
        .iter()
        .find(|process| process["comm"] == comm)
        .cloned()
}

#[test]
fn names_come_from_the_targets_own_mount_namespace() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets.contained(Workload::SharesStatic, "shares-inside", &[]);
    assert!(
        !Path::new("/app/shares-inside").exists(),
        "the path must mean nothing on the host"
    );
    let exe = PathBuf::from(format!("/proc/{}/exe", target.pid()));
    wait_for("the contained program runs", START, || {
        let link = std::fs::read_link(&exe).ok()?;
        (link == Path::new("/app/shares-inside")).then_some(())
    })
    .unwrap();
    let id = start_task(&agent, &endless(json!({ "pids": [target.pid()] }), 499));
    wait_samples(&agent, &id, SAMPLES);
    stop_task(&agent, &id);
    let report = report_of(target);
    let folded = agent.api.folded(&id, "").unwrap();
    assert!(folded.total() >= SAMPLES, "{}", folded.summary());
    assert_shares(&folded, &report.shares(), 4.0, "own mount namespace");
}

#[test]
fn an_agent_in_a_pid_namespace_shows_the_pids_of_that_namespace() {
    let targets = Targets::new();
    let inner = Workload::SharesC.build("shares-nested").unwrap();
    let outside = targets.busy("shares-outside");
    let agent = Agent::start_with(ServeOptions {
        wrapper: [
            "unshare",
            "--pid",
            "--mount-proc",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain([
            format!("'{}' >/dev/null & exec \"$@\"", inner.display()),
            "sh".to_owned(),
        ])
        .collect(),
        ..ServeOptions::default()
    })
    .unwrap();
    let process = wait_for("the agent lists the target", START, || {
        process_named(&agent, "shares-nested")
    })
    .unwrap();
    let pid = process["pid"].as_u64().unwrap();
    assert!(pid < 100, "a pid of the new namespace: {process}");
    assert!(process_named(&agent, "shares-outside").is_none());

    let by_pid = start_task(&agent, &endless(json!({ "pids": [pid] }), 499));
    let all = start_task(&agent, &endless(json!({ "all": true }), 499));
    // Twice as long as the samples that are asked for below take.
    burn(&outside, Duration::from_millis(1300));
    wait_samples(&agent, &by_pid, SAMPLES);
    let task = stop_task(&agent, &by_pid);
    let whole = stop_task(&agent, &all);
    assert_eq!(sampled_pids(&agent, &by_pid), [pid]);
    let folded = agent.api.folded(&by_pid, "").unwrap();
    assert!(folded.total() >= SAMPLES, "{task}: {}", folded.summary());
    assert_built_shares(&folded, 5.0, "in a pid namespace");
    // The whole node as seen from here: the target is there, the outside program has no number.
    assert!(sampled_pids(&agent, &all).contains(&pid));
    assert!(!sampled_pids(&agent, &all).contains(&u64::from(outside.pid())));
    let losses = whole["losses"].as_array().unwrap();
    let hidden = losses.iter().find(|loss| loss["kind"] == "pid_not_visible");
    assert_measured!(
        hidden.is_some_and(|loss| loss["count"].as_u64() > Some(300)),
        "{whole}"
    );
}

#[test]
fn a_target_in_a_pid_namespace_has_the_hosts_pid_for_an_agent_on_the_host() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let inner = Workload::SharesC.build("shares-deep").unwrap();
    let unshare = targets
        .launch(Path::new("unshare"), "unshare")
        .args(["--pid", "--fork", "--kill-child"])
        .args([inner.as_os_str()])
        .start()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", unshare.pid());
    let pid: u64 = wait_for("the nested child", START, || {
        std::fs::read_to_string(&children)
            .ok()?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    })
    .unwrap();
    let direct = start_task(&agent, &endless(json!({ "pids": [pid] }), 499));
    let named = start_task(&agent, &endless(json!({ "comm": "shares-deep" }), 499));
    for id in [direct, named] {
        wait_samples(&agent, &id, SAMPLES);
        stop_task(&agent, &id);
        assert_eq!(sampled_pids(&agent, &id), [pid]);
        let folded = agent.api.folded(&id, "").unwrap();
        assert_built_shares(&folded, 6.0, "in a pid namespace below");
    }
}

/// The v1 hierarchies of this host, without cpuset (which takes no process before it is set up).
fn v1_hierarchies() -> Vec<PathBuf> {
    let unified = unified_hierarchy();
    std::fs::read_dir("/sys/fs/cgroup")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("cgroup.procs").exists())
        .filter(|path| *path != unified && !path.ends_with("cpuset"))
        .collect()
}

/// The same cgroup in each hierarchy, as container runtimes make it.
fn everywhere(what: &str, inner: &str) -> Vec<Cgroup> {
    let mut hierarchies = v1_hierarchies();
    if hierarchies.is_empty() {
        hierarchies.push(unified_hierarchy());
    }
    hierarchies
        .iter()
        .map(|h| Cgroup::create(h, what, inner).unwrap())
        .collect()
}

#[test]
fn of_two_cgroups_only_the_wanted_one_is_sampled() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let program = Workload::SharesC.build("shares-cgroup").unwrap();
    let start = |what: &str| {
        let cgroups = everywhere(what, "app");
        let launch = targets.launch(&program, what);
        let launch = cgroups
            .iter()
            .fold(launch, |launch, cgroup| launch.cgroup(cgroup.path()));
        let process = launch.start().unwrap();
        (process, cgroups)
    };
    let (wanted, wanted_cgroups) = start("wanted");
    let (other, other_cgroups) = start("other");
    let cgroup = wanted_cgroups[0].inside();
    let id = start_task(&agent, &endless(json!({ "cgroup": cgroup }), 499));
    // The parent of a cgroup stands for everything below it.
    let above = Path::new(&cgroup)
        .parent()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let parent = start_task(&agent, &endless(json!({ "cgroup": above }), 499));
    // So that it would be seen if it were sampled.
    burn(&other, Duration::from_secs(1));
    for id in [&id, &parent] {
        wait_samples(&agent, id, SAMPLES);
        stop_task(&agent, id);
        assert_eq!(sampled_pids(&agent, id), [u64::from(wanted.pid())]);
        let folded = agent.api.folded(id, "").unwrap();
        assert_built_shares(&folded, 6.0, "cgroup");
    }
    drop((other, other_cgroups));
}

#[test]
fn a_container_is_found_by_its_id_and_by_a_prefix() {
    let container = "5f3c0d8a".repeat(8);
    let targets = Targets::new();
    let cgroups = everywhere("container", &format!("docker/{container}"));
    let program = Workload::SharesC.build("shares-docker").unwrap();
    let launch = targets.launch(&program, "inside");
    let launch = cgroups
        .iter()
        .fold(launch, |launch, cgroup| launch.cgroup(cgroup.path()));
    let inside = launch.start().unwrap();
    let outside = targets.busy("shares-free");
    let agent = Agent::start().unwrap();

    let listed = wait_for("the container is listed", START, || {
        let containers = agent.api.get_json("/api/v1/containers").ok()?;
        let items = containers["items"].as_array()?;
        items
            .iter()
            .find(|item| item["id"] == container.as_str())
            .cloned()
    })
    .unwrap();
    assert_eq!(listed["runtime"], "docker");
    assert_eq!(listed["pids"], json!([inside.pid()]));
    let process = process_named(&agent, "shares-docker").unwrap();
    assert_eq!(process["container"]["id"], container.as_str());

    let full = start_task(&agent, &endless(json!({ "container": container }), 499));
    let prefix = start_task(
        &agent,
        &endless(json!({ "container": container[..12] }), 499),
    );
    burn(&outside, Duration::from_secs(1));
    for id in [full, prefix] {
        wait_samples(&agent, &id, SAMPLES);
        stop_task(&agent, &id);
        assert_eq!(sampled_pids(&agent, &id), [u64::from(inside.pid())]);
        assert!(agent.api.folded(&id, "").unwrap().total() >= SAMPLES);
    }
    let unknown = agent
        .api
        .create_task(&on_cpu(json!({ "container": "ab".repeat(32) }), 3, 99));
    let failed = agent
        .api
        .wait_task(&unknown.unwrap(), &["failed"], Duration::from_secs(30))
        .unwrap();
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("no container matches"), "{reason}");
}
