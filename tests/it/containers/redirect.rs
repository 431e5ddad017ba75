//! Two pods of containers whose sidecars intercept by REDIRECT, as Istio's do: each pod is the network namespace of a
//! container that does nothing, which its app and its Envoy join.

use std::{
    fs,
    path::{Path, PathBuf},
};

use profiler_tests::{
    assert_measured,
    cleanup::{Guard, scratch_directory},
    docker::{Bridge, Container},
    mesh::{
        MeshOptions, SERVER_ADDRESS, SERVER_PORT, SIDECAR_USER, interception, load_report, sidecar,
    },
    netns,
    wait::wait_for,
};
use serde_json::{Value, json};

use super::{CONNECTIONS, Images, Profiler, REQUESTS, pause};
use crate::{
    edges::{edges_that, number},
    targets::{EXIT, START},
};

/// Slow enough for a loaded machine to look at every request.
const RPS: u64 = 400;
/// Addresses that no mesh of namespaces has: those of the node are told apart by their addresses.
const SUBNET: &str = "--subnet=10.246.1.0/24";
const CLIENT: &str = "10.246.1.10";
const SERVER: &str = "10.246.1.20";

/// The containers of a pod beside its app.
struct Pod {
    envoy: Container,
    pause: Container,
}

impl Pod {
    /// The option by which others join it.
    fn network(&self) -> String {
        format!("--network=container:{}", self.pause.id)
    }

    fn namespace(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.pause.pid().unwrap()).into()
    }
}

/// What stays while requests go from one pod to the other.
struct Mesh<'a> {
    images: &'a Images,
    app: Container,
    client: Pod,
    server: Pod,
    _bridge: Bridge,
    _folder_guard: Guard,
}

impl<'a> Mesh<'a> {
    fn up(images: &'a Images) -> Self {
        let (folder, folder_guard) = scratch_directory("pods").unwrap();
        let bridge = Bridge::create_with(&[SUBNET]).unwrap();
        let pod = |name: &str, address: &str| {
            let network = format!("--network={}", bridge.name());
            let options = [&*network, &format!("--ip={address}")];
            let pause = Container::run(&images.pause, &options, &["infinity"]).unwrap();
            let namespace = format!("/proc/{}/ns/net", pause.pid().unwrap());
            interception::install_at(Path::new(&namespace)).unwrap();
            let config = folder.join(format!("{name}.json"));
            let bootstrap = sidecar::config(
                name,
                &MeshOptions::default(),
                &folder,
                Path::new("/dev/null"),
                None,
            );
            let bootstrap = bootstrap.to_string().replace(SERVER_ADDRESS, SERVER);
            fs::write(&config, bootstrap).unwrap();
            let options = [
                format!("--network=container:{}", pause.id),
                format!("--user={SIDECAR_USER}:{SIDECAR_USER}"),
                format!("--volume={}:/etc/envoy/envoy.json:ro", config.display()),
            ];
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let arguments = [
                "--config-path",
                "/etc/envoy/envoy.json",
                "--use-dynamic-base-id",
                "--concurrency",
                "1",
            ];
            let envoy = Container::run(&images.envoy, &options, &arguments).unwrap();
            Pod { envoy, pause }
        };
        let client = pod("client", CLIENT);
        let server = pod("server", SERVER);
        let listen = format!("--listen=0.0.0.0:{SERVER_PORT}");
        let app = Container::run(&images.server, &[&server.network()], &[&listen]).unwrap();
        let mesh = Self {
            app,
            client,
            server,
            images,
            _bridge: bridge,
            _folder_guard: folder_guard,
        };
        mesh.wait();
        mesh
    }

    /// From the client's pod as its app asks.
    fn wait(&self) {
        let url = format!("http://{SERVER}:{SERVER_PORT}/ready");
        let namespace = self.client.namespace();
        wait_for("a request goes from pod to pod", START, || {
            netns::within(&namespace, || Ok(ureq::get(&url).call()?)).ok()
        })
        .unwrap_or_else(|error| panic!("{error:#}: {}", self.client.envoy.logs().unwrap()));
    }

    /// The client's app, a container that ends when all has been answered.
    fn load(&self) {
        let arguments = [
            "--duration=60s".to_owned(),
            format!("--rps={RPS}"),
            format!("--requests={REQUESTS}"),
            format!("--url=http://{SERVER}:{SERVER_PORT}/work"),
            format!("--connections={CONNECTIONS}"),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let options = [&*self.client.network()];
        let load = Container::run(&self.images.client, &options, &arguments).unwrap();
        wait_for("the load ends", EXIT, || {
            let running = load.inspect("{{.State.Running}}");
            let ended = running.is_ok_and(|running| running == "false");
            ended.then_some(()).or_else(pause)
        })
        .unwrap();
        let report = load_report(&load.logs().unwrap()).unwrap();
        assert_eq!((report.requests, report.errors), (REQUESTS, 0));
    }
}

/// Whether an edge leads to a container, from a certain one or (`None`) from any.
fn is_hop(edge: &Value, client: Option<&str>, server: &str) -> bool {
    let client = client.is_none_or(|client| edge["client"]["container"] == client);
    client && edge["server"]["container"] == server
}

/// How many requests for `/work` a task has seen on a hop.
fn counted(table: &Value, client: Option<&str>, server: &str) -> u64 {
    let operations = table["operations"].as_array().unwrap();
    operations
        .iter()
        .filter(|operation| {
            operation["method"] == "GET"
                && operation["route"] == "/work"
                && is_hop(&operation["edge"], client, server)
        })
        .map(|operation| number(&operation["count"]))
        .sum()
}

/// Bytes of a hop towards the server, by the end that is the target.
fn bytes(table: &Value, client: Option<&str>, server: &str) -> u64 {
    let hop = edges_that(table, |edge| is_hop(edge, client, server));
    let moved = |edge: &&Value| {
        let [server, client] = ["server", "client"].map(|end| &edge["metrics"][end]);
        let read = server["read"]["bytes"].as_u64();
        read.or_else(|| client["write"]["bytes"].as_u64())
            .unwrap_or(0)
    };
    hop.iter().map(moved).sum()
}

/// Every request between redirected pods is seen once on each hop.
pub(super) fn check(images: &Images) {
    let mesh = Mesh::up(images);
    let profiler = Profiler::of(&images.agent);
    let [outbound, inbound] = [&mesh.client.envoy, &mesh.server.envoy];
    let target = |container: &Container| json!({ "container": container.id });
    let profile = profiler.start_task(&json!({
        "kind": "on_cpu", "target": target(outbound), "duration_s": 60, "frequency_hz": 499,
    }));
    profiler.api.wait_sampling(&profile, START).unwrap();
    let tasks = [outbound, inbound].map(|envoy| profiler.start_requests(&target(envoy)));
    let network = profiler.start_task(&json!({
        "kind": "network", "target": target(inbound), "duration_s": 60,
    }));
    profiler.api.wait_sampling(&network, START).unwrap();

    mesh.load();
    let profiled = profiler.stop(&profile);
    for task in tasks.iter().chain([&network]) {
        profiler.stop(task);
    }

    let folded = profiler.api.folded(&profile, "").unwrap();
    assert_measured!(folded.total() > 50, "{profiled:#}");
    assert!(folded.share("[unknown]") < 5.0, "{}", folded.summary());

    let [out, inward, app] = [outbound, inbound, &mesh.app].map(|one| &*one.id);
    let hops = [(None, out), (Some(out), inward), (Some(inward), app)];
    // Each Envoy's task sees the two hops that it is part of.
    for (task, hops) in tasks.iter().zip([&hops[..2], &hops[1..]]) {
        let [requests, edges] = ["requests", "edges"].map(|what| profiler.table(task, what));
        for &(from, to) in hops {
            assert_eq!(counted(&requests, from, to), REQUESTS, "{requests:#}");
            assert!(bytes(&edges, from, to) > REQUESTS, "{edges:#}");
        }
    }
    let edges = profiler.table(&network, "edges");
    for &(from, to) in &hops[1..] {
        assert!(bytes(&edges, from, to) > REQUESTS, "{edges:#}");
    }
}
