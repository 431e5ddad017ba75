//! A sidecar that is killed, replaced by another release and restarted hot while tasks watch it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use profiler_tests::{
    agent::{Agent, ServeOptions},
    assert_measured, breakpoints,
    cleanup::scratch_directory,
    kernel_objects::KernelObjects,
    mesh::{Mesh, MeshOptions, replacement::Way, sidecar::OUTBOUND_CLUSTER},
    paths,
    wait::{wait_for, wait_until},
};
use serde_json::{Value, json};

use crate::{
    stripped_mesh::{LEAST_FRAMES, Shares, nameless},
    targets::{EXIT, START, start_task, stop_task},
};

const RATE: u32 = 400;
const CONNECTIONS: u32 = 8;
const HZ: u64 = 499;
/// Each process is under load until there is enough of it to judge: some seconds, or longer on a busy machine.
const TURN: Duration = Duration::from_mins(1);
/// Base ids of this test; the lower ones are left to other Envoys here.
const BASE_IDS: u32 = 31_000;
/// Samples of a process that names are judged by.
const LEAST_SAMPLES: u64 = 50;

/// A release of Envoy as a program of another name.
fn named(folder: &Path, name: &str, version: &str) -> PathBuf {
    fs::create_dir(folder).unwrap();
    let copy = folder.join(name);
    fs::copy(paths::envoy_release(version).unwrap(), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    copy
}

/// Requests to the processes `servers`, from `client`; from every client without one, whether its process is known or not.
fn requests(table: &Value, client: Option<u32>, servers: &[u32], tls: bool) -> u64 {
    let operations = table["operations"].as_array().unwrap();
    let between = operations.iter().filter(|operation| {
        let edge = &operation["edge"];
        client.is_none_or(|client| edge["client"]["pid"] == client)
            && servers.iter().any(|pid| edge["server"]["pid"] == *pid)
            && operation["tls"] == tls
            && operation["route"] == "/work"
    });
    between
        .filter_map(|operation| operation["count"].as_u64())
        .sum()
}

/// What a table says was not seen, in places of which each can be a request.
fn shown_losses(table: &Value) -> u64 {
    let incomplete = &table["incomplete"];
    let number = |value: &Value| value.as_u64().unwrap();
    number(&table["lost"])
        + [
            "gaps",
            "undecoded_connections",
            "refused_connections",
            "withdrawn_guesses",
        ]
        .map(|name| number(&incomplete[name]))
        .iter()
        .sum::<u64>()
}

#[test]
fn a_sidecar_that_is_killed_upgraded_and_restarted_hot_is_watched_all_the_while() {
    let before = KernelObjects::now().unwrap();
    let (folder, _guard) = scratch_directory("chaos").unwrap();
    // A name of its own: tests beside this one run Envoys too.
    let comm = format!("chaos-{}", std::process::id());
    let [old, new] =
        ["1.39.0", "1.40.0"].map(|version| named(&folder.join(version), &comm, version));
    let mut mesh = Mesh::up(&MeshOptions {
        envoy: Some(old.clone()),
        base_id: Some(BASE_IDS + std::process::id() % 1000),
        mtls: true,
        rps: RATE,
        connections: CONNECTIONS,
        duration: Duration::from_mins(10),
        ..MeshOptions::default()
    })
    .unwrap();
    let out = mesh.report().client_envoy_pid;
    let mut agent =
        Agent::start_with(ServeOptions::with_arguments(["--allow-tls-capture"])).unwrap();
    let target = json!({ "comm": comm });
    let on_cpu =
        json!({ "kind": "on_cpu", "target": target, "duration_s": null, "frequency_hz": HZ });
    let on_cpu = start_task(&agent, &on_cpu);
    let profiling_since = Instant::now();
    let watching = json!({
        "kind": "requests", "target": target, "duration_s": null, "tls": true, "samples": "all", "cpu_percent": 100,
    });
    let watching = agent.api.create_task(&watching).unwrap();
    let path = format!("/api/v1/tasks/{watching}/requests");
    wait_for("requests are watched", START, || {
        let table = agent.api.get(&path).ok()?;
        (table.status == 200 && table.json().ok()?["window"].is_object()).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}", agent.api.task(&watching).unwrap()));
    thread::sleep(Duration::from_secs(2));

    let counter = format!("cluster.{OUTBOUND_CLUSTER}.upstream_rq_total");
    let sent_before = mesh.client.stat(&counter).unwrap();
    mesh.start_load().unwrap();
    let mut servers = vec![mesh.report().server_envoy_pid];
    // Time of the profile since when each has started: what starts is in its loader and initialisers, which a
    // stripped program has no names for.
    let mut up_since = vec![profiling_since.elapsed()];
    // Until the newest process has more requests and samples than are asked for below, and some to spare.
    let turn = |pid: u32, since: Duration| {
        wait_until("there is enough of the process", TURN, || {
            thread::sleep(Duration::from_millis(500));
            let table = agent.api.get_json(&path).unwrap();
            let cut = format!("&pid={pid}&from={}", since.as_millis());
            let samples = Shares::of(&agent.api.folded(&on_cpu, &cut).unwrap()).samples;
            requests(&table, Some(out), &[pid], true) > 2 * u64::from(RATE)
                && samples > 4 * LEAST_SAMPLES
        })
        .unwrap();
    };
    turn(servers[0], up_since[0]);
    for (envoy, way) in [
        (&old, Way::Killed),
        (&new, Way::Ended),
        (&new, Way::HotRestart),
    ] {
        let leaving = mesh.replace_server(envoy, way).unwrap();
        servers.push(mesh.report().server_envoy_pid);
        up_since.push(profiling_since.elapsed());
        if let Some(mut leaving) = leaving {
            let status = leaving.wait(EXIT).unwrap();
            assert!(status.success(), "{status}: {}", leaving.errors());
        }
        turn(servers[servers.len() - 1], up_since[up_since.len() - 1]);
    }
    let load = mesh.stop_load().unwrap().unwrap();
    let sent = mesh.client.stat(&counter).unwrap() - sent_before;
    println!("{load:?}, {sent} sent on to {servers:?}");
    // The last answers come to the table.
    wait_until("the last requests are counted", EXIT, || {
        let table = agent.api.get_json(&path).unwrap();
        requests(&table, None, &[out], false) >= load.requests + load.errors
    })
    .ok();

    for id in [&on_cpu, &watching] {
        let task = stop_task(&agent, id);
        println!(
            "{}: losses {}, notes {}",
            task["kind"], task["losses"], task["notes"]
        );
    }

    // Every request of the client, once: its sidecar was not replaced.
    let table = agent.api.get_json(&path).unwrap();
    let lost = shown_losses(&table);
    let asked = load.requests + load.errors;
    let found = requests(&table, None, &[out], false);
    println!(
        "{found} of {asked} requests of the client, {lost} lost: {}",
        table["incomplete"]
    );
    assert!(
        found <= asked && found + lost >= asked,
        "{found} of {asked}, {lost} lost: {}",
        table["operations"]
    );
    // What the sidecar sent on, within TLS, to all four processes.
    let mut all = 0;
    for pid in &servers {
        let count = requests(&table, Some(out), &[*pid], true);
        println!("{count} to {pid}");
        assert_measured!(count > u64::from(RATE), "{count} requests to {pid}");
        all += count;
    }
    println!("{all} of {sent} sent on");
    assert!(
        all <= sent && all + lost >= sent,
        "{all} of {sent}, {lost} lost: {}",
        table["operations"]
    );

    // Samples of each process, with names.
    let began = Instant::now();
    for (pid, since) in servers.iter().zip(up_since) {
        let cut = format!("&pid={pid}&from={}", since.as_millis());
        let folded = agent.api.folded(&on_cpu, &cut).unwrap();
        let found = Shares::of(&folded);
        println!("{pid}, since {since:?}: {found:?}");
        assert_measured!(found.samples > LEAST_SAMPLES, "{pid}: {found:?}");
        assert_measured!(
            found.named_frames >= LEAST_FRAMES && found.stacks_with_a_name >= found.least_stacks(),
            "{pid}: {found:?}, without a name:\n{}",
            nameless(&folded).summary()
        );
    }
    println!("read in {:?}", began.elapsed());

    // Nothing is left, neither in those that live nor in the kernel.
    for pid in [out, servers[3]] {
        assert_eq!(breakpoints::count(pid).unwrap(), 0, "{pid}");
    }
    assert!(!agent.log().contains("panicked"), "{}", agent.log());
    assert_eq!(mesh.ended(), None);
    assert!(agent.stop().unwrap().success());
    let left = KernelObjects::left_behind(&before, EXIT).unwrap();
    assert!(left.is_empty(), "{left:?}");
}
