//! Envoy, an app and the profiler as three containers, with the capabilities and the options of deploy/compose.yaml.

mod redirect;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use profiler_tests::{
    agent,
    api::Api,
    assert_measured,
    docker::{Bridge, Container, Image, docker},
    mesh::load_report,
    paths,
    process::{Launch, Running},
    wait::wait_for,
};
use serde_json::{Value, json};

use crate::{
    capabilities,
    targets::{EXIT, START},
};

const REQUESTS: u64 = 2000;
const CONNECTIONS: u32 = 8;

/// The capabilities that the manifest adds.
fn added() -> Vec<String> {
    let compose = paths::workspace().join("deploy/compose.yaml");
    let text = fs::read_to_string(compose).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("cap_add: ["))
        .unwrap();
    line.trim_end_matches(']')
        .split(", ")
        .map(str::to_owned)
        .collect()
}

/// Those of `names` that the engine knows. Older ones know nothing newer than Linux 5.7; `SYS_ADMIN` includes these.
fn known(names: Vec<String>, image: &Image) -> Vec<String> {
    let (known, unknown): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| {
        let capability = format!("--cap-add={name}");
        match docker(&["create", &capability, image.name()]) {
            Ok(id) => docker(&["rm", id.trim()]).is_ok(),
            Err(_refused) => false,
        }
    });
    let newer = ["BPF", "PERFMON", "CHECKPOINT_RESTORE"];
    let is_newer = |name: &String| newer.contains(&name.as_str());
    assert!(unknown.iter().all(is_newer), "unknown: {unknown:?}");
    assert!(known.iter().any(|name| name == "SYS_ADMIN"), "{known:?}");
    known
}

/// The profiler as the manifest starts it.
pub(crate) struct Profiler {
    pub(crate) container: Container,
    pub(crate) api: Api,
    pub(crate) capabilities: Vec<String>,
}

impl Profiler {
    /// `image` has to outlive it.
    pub(crate) fn of(image: &Image) -> Self {
        let capabilities = known(added(), image);
        let mut options: Vec<String> = [
            "--pid=host",
            "--network=host",
            "--cgroupns=host",
            "--read-only",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--security-opt=apparmor=unconfined",
            "--security-opt=seccomp=unconfined",
            "--volume=/var/lib/profiler-agent",
            "--volume=/sys/fs/cgroup:/sys/fs/cgroup:ro",
            "--memory=512m",
            "--pids-limit=256",
        ]
        .map(str::to_owned)
        .into();
        options.extend(capabilities.iter().map(|name| format!("--cap-add={name}")));
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let command = ["serve", "--listen=127.0.0.1:0"];
        let container = Container::run(image, &options, &command).unwrap();
        let api = api_of(&container);
        Self {
            container,
            api,
            capabilities,
        }
    }

    pub(crate) fn start_task(&self, specification: &Value) -> String {
        self.api.create_task(specification).unwrap()
    }

    fn table(&self, id: &str, what: &str) -> Value {
        let path = format!("/api/v1/tasks/{id}/{what}");
        self.api.get_json(&path).unwrap()
    }

    /// A task of requests, once it watches connections.
    fn start_requests(&self, target: &Value) -> String {
        let specification = json!({
            // At full speed the default budget would make it sample, and counts would not be exact.
            "kind": "requests", "target": target, "duration_s": 60, "cpu_percent": 100,
        });
        let id = self.start_task(&specification);
        wait_for("connections are watched", START, || {
            let table = self.table(&id, "edges");
            table["window"].is_object().then_some(())
        })
        .unwrap();
        id
    }

    /// Ends a task before its time.
    pub(crate) fn stop(&self, id: &str) -> Value {
        self.api.stop_task(id).unwrap();
        self.ended(id)
    }

    fn ended(&self, id: &str) -> Value {
        self.api
            .wait_task(id, &["finished", "cancelled"], EXIT)
            .unwrap_or_else(|error| panic!("{error:#}: {}", self.container.logs().unwrap()))
    }
}

/// The API of a profiler in a container with the host's network, when it listens.
pub(crate) fn api_of(container: &Container) -> Api {
    let (address, _) = wait_for("the profiler listens", START, || {
        let found = agent::address(&container.logs().unwrap());
        found.or_else(pause)
    })
    .unwrap_or_else(|error| panic!("{error:#}: {}", container.logs().unwrap()));
    let program = container.inspect("{{.Path}}").unwrap();
    let listen = format!("--listen={address}");
    let url = container
        .exec(&[program.as_str(), "url", listen.as_str()])
        .unwrap();
    Api::of_url(&url).unwrap()
}

/// Between two looks that start a program each: without it they would take a CPU from what they wait for.
fn pause<T>() -> Option<T> {
    thread::sleep(Duration::from_millis(200));
    None
}

/// What the containers are made of; it outlives them.
struct Images {
    agent: Image,
    envoy: Image,
    server: Image,
    client: Image,
    pause: Image,
}

impl Images {
    /// All at once: most of the time goes into the engine's and the disk's work.
    fn new() -> Self {
        let own = |name: &str| paths::own_program(name).unwrap();
        let programs = [
            paths::agent().unwrap(),
            paths::envoy().unwrap(),
            own("mesh-server"),
            own("mesh-client"),
            PathBuf::from("/usr/bin/sleep"),
        ];
        let [agent, envoy, server, client, pause] = thread::scope(|scope| {
            programs
                .each_ref()
                .map(|program| scope.spawn(|| Image::of(program).unwrap()))
                .map(|image| image.join().unwrap())
        });
        Self {
            agent,
            envoy,
            server,
            client,
            pause,
        }
    }
}

/// Envoy in front of an app, each in a container of a bridge network.
struct Mesh {
    envoy: Container,
    app: Container,
    address: String,
    _bridge: Bridge,
}

impl Mesh {
    fn up(images: &Images) -> Self {
        let bridge = Bridge::create().unwrap();
        let network = format!("--network={}", bridge.name());
        let options = [&network, "--network-alias=app"];
        let app = Container::run(&images.server, &options, &["--listen=0.0.0.0:8000"]).unwrap();
        let config = paths::workspace().join("deploy/envoy.json");
        let mounted = format!("--volume={}:/etc/envoy/envoy.json:ro", config.display());
        let arguments = [
            "--config-path",
            "/etc/envoy/envoy.json",
            "--use-dynamic-base-id",
            "--concurrency",
            "2",
        ];
        let envoy = Container::run(&images.envoy, &[&network, &mounted], &arguments).unwrap();
        let address = envoy
            .inspect("{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}")
            .unwrap();
        let mesh = Self {
            envoy,
            app,
            address,
            _bridge: bridge,
        };
        mesh.wait();
        mesh
    }

    fn url(&self) -> String {
        format!("http://{}:10000/work", self.address)
    }

    fn wait(&self) {
        let address: SocketAddr = format!("{}:10000", self.address).parse().unwrap();
        let api = Api::new(address, None);
        wait_for("the mesh answers", START, || {
            let answer = api.get("/work").ok()?;
            (answer.status == 200).then_some(())
        })
        .unwrap_or_else(|error| panic!("{error:#}: {}", self.envoy.logs().unwrap()));
    }

    fn load(&self, logs: &Path) -> Running {
        let program = paths::own_program("mesh-client").unwrap();
        Launch::new(&program, "load", logs)
            .args([
                "--duration=60s".to_owned(),
                format!("--requests={REQUESTS}"),
                format!("--url={}", self.url()),
                format!("--connections={CONNECTIONS}"),
            ])
            .start()
            .unwrap()
    }
}

#[test]
fn a_container_with_exactly_the_capabilities_of_the_manifest_sees_every_request_of_others() {
    let images = Images::new();
    check_bridge(&images);
    redirect::check(&images);
}

/// Envoy and an app in containers of their own.
fn check_bridge(images: &Images) {
    let (folder, _guard) = profiler_tests::cleanup::scratch_directory("containers").unwrap();
    let mesh = Mesh::up(images);
    let profiler = Profiler::of(&images.agent);
    let pid = profiler.container.pid().unwrap();
    capabilities::check_threads(pid, &profiler.capabilities);
    let url = format!("--url=http://{}", profiler.api.address);
    let healthy = profiler
        .container
        .exec(&["/program", "health", "--ready", &url]);
    assert_eq!(healthy.unwrap(), "ready\n");

    let target = json!({ "container": mesh.envoy.id });
    let profile = profiler.start_task(
        &json!({ "kind": "on_cpu", "target": target, "duration_s": 60, "frequency_hz": 499 }),
    );
    profiler.api.wait_sampling(&profile, START).unwrap();
    let requests = profiler.start_requests(&target);
    let load = mesh.load(&folder).finish(EXIT).unwrap();
    let report = load_report(&load).unwrap();
    assert_eq!((report.requests, report.errors), (REQUESTS, 0));
    let profiled = profiler.stop(&profile);
    profiler.stop(&requests);

    // Envoy's own functions, named although it is stripped, from a file of another container.
    let folded = profiler.api.folded(&profile, "").unwrap();
    assert_measured!(folded.total() > 50, "{profiled:#}\n{report:?}");
    assert!(folded.share("[unknown]") < 5.0, "{}", folded.summary());

    // Into Envoy's container from outside, and from there into the app's.
    let table = profiler.table(&requests, "requests");
    let container = |edge: &Value, end: &str| edge[end]["container"].clone();
    let [envoy, app] = [json!(mesh.envoy.id), json!(mesh.app.id)];
    let (mut inward, mut onward) = (0, 0);
    for operation in table["operations"].as_array().unwrap() {
        let edge = &operation["edge"];
        if operation["method"] != "GET" || operation["route"] != "/work" {
            continue;
        }
        let count = operation["count"].as_u64().unwrap();
        if container(edge, "server") == envoy {
            inward += count;
        } else if container(edge, "server") == app && container(edge, "client") == envoy {
            onward += count;
        }
    }
    assert_eq!(
        (inward, onward),
        (REQUESTS, REQUESTS),
        "{:#}",
        table["operations"]
    );
}
