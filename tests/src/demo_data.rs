//! Records what `profiler-agent serve --demo-data` shows: the demo mesh under load, profiled by the
//! real agent.
//!
//! Only processes of the mesh are kept. They run in cgroups named as a kubelet names them, so that
//! the data has containers.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{
    agent::{Agent, ServeOptions},
    cgroup::Cgroup,
    mesh::{Mesh, MeshOptions, Tracing},
    wait::wait_for,
};

/// Where cgroup v1 keeps what containers are told apart by; v2 hosts have one tree.
const HIERARCHIES: [&str; 2] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
const SECONDS: u64 = 5;
const LIMIT: Duration = Duration::from_mins(1);
/// Best compression: it is done once and embedded in every binary.
const LEVEL: i32 = 19;
/// A readable pattern in place of the 64 digits that a runtime would draw.
const POD_UIDS: [&str; 2] = [
    "c1a0b2c3-0000-4000-8000-000000000001",
    "5e0b2c3d-0000-4000-8000-000000000002",
];

/// Writes `store.redb.zst` and `node.json.zst` into `folder`.
pub fn record(envoy: Option<&Path>, folder: &Path) -> Result<()> {
    // The sidecars speak TLS with each other: check-ups see no requests on that side without it.
    let mut agent = Agent::start_with(ServeOptions::with_arguments(["--allow-tls-capture"]))?;
    // Every request was traced: what a check-up finds, and what is gone after it.
    let mut traced = Mesh::up(&MeshOptions {
        tracing: Tracing::Percent(100.0),
        ..options(envoy)
    })?;
    traced.start_load()?;
    let report = traced.report();
    let before = check_up(&agent, &[report.server_envoy_pid, report.server_pid])?;
    let findings = before["findings"].as_array().context("findings")?;
    ensure!(
        findings.iter().any(|finding| finding["id"] == "tracing"),
        "tracing every request is not found: {}",
        before["verdict"]
    );
    drop(traced);

    let mut mesh = Mesh::up(&options(envoy))?;
    mesh.start_load()?;
    let report = mesh.report();
    let client = report.client_pid.context("the load runs in the client")?;
    let pids = [
        client,
        report.client_envoy_pid,
        report.server_envoy_pid,
        report.server_pid,
    ];
    let _cgroups = [
        container(client, 0, 'a')?,
        container(report.client_envoy_pid, 0, 'b')?,
        container(report.server_envoy_pid, 1, 'c')?,
        container(report.server_pid, 1, 'd')?,
    ];
    let sidecars = json!({ "pids": [report.client_envoy_pid, report.server_envoy_pid] });
    let all = json!({ "pids": pids });
    let tasks = [
        json!({ "kind": "on_cpu", "target": sidecars, "duration_s": SECONDS, "frequency_hz": 199 }),
        json!({ "kind": "on_cpu", "target": all, "duration_s": SECONDS, "frequency_hz": 199 }),
        json!({ "kind": "off_cpu", "target": all, "duration_s": SECONDS, "wakers": true }),
        json!({ "kind": "wall", "target": sidecars, "duration_s": SECONDS, "frequency_hz": 99 }),
        json!({ "kind": "network", "target": all, "duration_s": SECONDS, "timed": true }),
        json!({ "kind": "requests", "target": all, "duration_s": SECONDS }),
    ];
    // One after another: each would change what the others see.
    for task in tasks {
        let id = agent.api.create_task(&task)?;
        let done = agent.api.wait_task(&id, &["finished"], LIMIT)?;
        ensure!(
            ["network", "requests"]
                .iter()
                .any(|kind| done["kind"] == *kind)
                || done["samples"].as_u64() > Some(100),
            "a task has too few samples to be looked at: {done}"
        );
    }
    let after = check_up(&agent, &[report.server_envoy_pid, report.server_pid])?;
    ensure!(
        after["latency"][0]["inside"]
            .as_array()
            .is_some_and(|inside| inside.len() == 2),
        "the check-up does not know where requests spend their time: {}",
        after["limits"]
    );
    let node = node(&agent, &pids)?;
    agent.stop()?;
    write(
        &folder.join("store.redb.zst"),
        &fs::read(agent.data_dir.join("store.redb")).context("read the store")?,
    )?;
    write(&folder.join("node.json.zst"), &serde_json::to_vec(&node)?)
}

/// Of one pod: its sidecar and its app. Gives the diagnosis.
fn check_up(agent: &Agent, pids: &[u32]) -> Result<Value> {
    let body = json!({ "target": { "pids": pids }, "duration_s": SECONDS, "frequency_hz": 199 });
    let created = agent
        .api
        .send("POST", "/api/v1/checkups", Some(&body.to_string()))?;
    let created = created.json()?;
    let id = created["id"].as_str().context("a check-up has an id")?;
    let path = format!("/api/v1/checkups/{id}");
    let ended = wait_for("the check-up ends", LIMIT, || {
        let checkup = agent.api.get_json(&path).ok()?;
        (checkup["state"] != "running").then_some(checkup)
    })?;
    ensure!(ended["state"] == "finished", "the check-up: {ended}");
    let diagnosis = agent.api.get_json(&format!("{path}/diagnosis"))?;
    println!("{}", diagnosis["verdict"]);
    Ok(diagnosis)
}

/// Moves a process into a cgroup of its own.
fn container(pid: u32, pod: usize, digit: char) -> Result<Cgroup> {
    let id: String = std::iter::repeat_n(digit, 12)
        .chain("0123456789abcdef".chars().cycle())
        .take(64)
        .collect();
    let inner = format!("kubepods/burstable/pod{}/{id}", POD_UIDS[pod]);
    let hierarchy = HIERARCHIES
        .into_iter()
        .map(Path::new)
        .find(|path| path.join("cgroup.procs").is_file())
        .context("no cgroup hierarchy is mounted")?;
    let cgroup = Cgroup::create(hierarchy, "demo-data", &inner)?;
    let procs = cgroup.path().join("cgroup.procs");
    fs::write(&procs, pid.to_string()).with_context(|| format!("write {}", procs.display()))?;
    Ok(cgroup)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let packed = zstd::encode_all(bytes, LEVEL).context("compress")?;
    fs::write(path, &packed).with_context(|| format!("write {}", path.display()))?;
    println!("{}: {} bytes", path.display(), packed.len());
    Ok(())
}

/// The node and its processes, as the agent's module `demo_data` reads them.
fn node(agent: &Agent, pids: &[u32]) -> Result<Value> {
    let meta = agent.api.get_json("/api/v1/meta")?;
    // The second reading has shares of the CPU.
    agent.api.get_json("/api/v1/processes")?;
    std::thread::sleep(Duration::from_secs(2));
    let listed = agent.api.get_json("/api/v1/processes")?;
    let mut processes = Vec::new();
    for process in listed["items"].as_array().context("a list")? {
        if pids.iter().all(|pid| process["pid"] != *pid) {
            continue;
        }
        let id = process["id"].as_str().context("an id")?;
        let (pid, start) = id.split_once('-').context("an id of two numbers")?;
        let detail = agent.api.get_json(&format!("/api/v1/processes/{id}"))?;
        processes.push(json!({
            "process": {
                "key": { "pid": pid.parse::<u32>()?, "start_ticks": start.parse::<u64>()? },
                "parent_pid": 1,
                "comm": process["comm"],
                "exe": process["exe"],
                "cmdline": process["arguments"],
                "uid": process["uid"],
                "user": process["user"],
                "cgroup": without_first(process["cgroup"].as_str().unwrap_or("/")),
                "container": process["container"],
                "network_namespace": process["network_namespace"],
                "threads": process["threads"],
                "rss_bytes": process["rss_bytes"],
                "cpu_percent": process["cpu_percent"],
                "kernel_thread": false,
            },
            "threads": detail["thread_list"],
        }));
    }
    ensure!(
        processes.len() == pids.len(),
        "only {} of the mesh's processes are listed",
        processes.len()
    );
    let mut overview = agent.api.get_json("/api/v1/overview")?;
    let rows = overview["rows"].as_array_mut().context("rows")?;
    rows.retain(|row| pids.iter().any(|pid| contains(&row["pids"], *pid)));
    ensure!(
        rows.len() == 2 && rows.iter().any(|row| row["answered"]["p95"].is_object()),
        "the overview does not have both pods with their requests: {overview:#}"
    );
    Ok(json!({
        "overview": overview,
        "kernel": meta["kernel"], "arch": meta["arch"], "cpus": meta["cpus"], "btf": meta["btf"],
        "processes": processes,
    }))
}

fn contains(list: &Value, pid: u32) -> bool {
    list.as_array()
        .is_some_and(|list| list.iter().any(|item| *item == pid))
}

/// The path below the folder that this run made for itself.
fn without_first(cgroup: &str) -> String {
    match cgroup.trim_start_matches('/').split_once('/') {
        Some((_run, rest)) => format!("/{rest}"),
        None => cgroup.to_owned(),
    }
}

/// The mesh that is recorded: mutual TLS, an access log and some tracing, as many have it.
fn options(envoy: Option<&Path>) -> MeshOptions {
    MeshOptions {
        envoy: envoy.map(Path::to_path_buf),
        workers: 2,
        mtls: true,
        access_log: crate::mesh::AccessLog::Text,
        rps: 600,
        // The longest part of a request's way is in the app.
        app_delay: Duration::from_millis(2),
        ..MeshOptions::default()
    }
}
