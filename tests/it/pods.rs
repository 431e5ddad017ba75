//! The profiler as the pod of deploy/kubernetes/daemonset.yaml on a real containerd, whose default seccomp profile
//! knows `CAP_BPF`, unlike that of Debian's Docker: the base tier's capabilities and no others.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
};

use profiler_tests::{
    agent::{self, Agent, ServeOptions},
    api::Api,
    cri::{Node, Pod},
    forwarder::{Forwarder, Place},
    kubernetes::{manifests, objects},
    paths,
    wait::wait_for,
    workload::Workload,
};
use serde_json::{Value, json};

use crate::{
    capabilities,
    edges::{edges_that, number},
    targets::{EXIT, START, assert_built_shares},
};

const PORT: u16 = 7117;
/// Where the profiler is reached: its own port, as its documentation asks for, at an address of the loopback that is
/// free of other agents.
const FORWARDED: Ipv4Addr = Ipv4Addr::new(127, 7, 11, 7);
const PROFILER: &str = "profiler-agent";
const LONGEST_S: u64 = 60;

/// The manifest's pod, reached as `kubectl port-forward` does it.
struct Profiler<'a> {
    pod: Pod<'a>,
    api: Api,
    specification: Value,
    _way: Forwarder,
}

impl<'a> Profiler<'a> {
    fn start(node: &'a Node) -> Self {
        let manifest = paths::workspace().join("deploy/kubernetes/daemonset.yaml");
        let set = manifests::read(&manifest).unwrap().remove(0);
        let mut pod = set["spec"]["template"].clone();
        pod["metadata"]["namespace"] = set["metadata"]["namespace"].clone();
        pod["metadata"]["name"] = json!("profiler-agent-x7k2p");
        pod["metadata"]["uid"] = json!("6f1d2c3b-0000-4000-8000-000000000001");
        pod["spec"]["nodeName"] = json!("node-1");
        let specification = pod["spec"]["containers"][0].clone();
        assert_eq!(specification["name"], PROFILER);
        let image = specification["image"].as_str().unwrap();
        node.import(image, &paths::agent().unwrap(), &["serve"])
            .unwrap();
        let pod = node.run(&pod).unwrap();
        let found = wait_for("the profiler listens", START, || {
            let log = pod.log(PROFILER).unwrap_or_default();
            agent::address(&format!("{}\n", log.join("\n")))
        });
        let (address, _) =
            found.unwrap_or_else(|error| panic!("{error:#}: {:#?}", pod.log(PROFILER)));
        assert_eq!(address, SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
        // As the manifest says.
        let url = pod.exec(PROFILER, &["/profiler-agent", "url"]).unwrap();
        let token = Api::of_url(&url).unwrap().token;
        let log = pod.log(PROFILER).unwrap().join("\n");
        assert!(!log.contains(token.as_deref().unwrap()), "{log}");
        let inside = Place::Namespace(pod.network().unwrap());
        let here = (Place::Here, SocketAddr::from((FORWARDED, PORT)));
        let way = Forwarder::between(here, (inside, address)).unwrap();
        Self {
            api: Api::new(way.address, token),
            pod,
            specification,
            _way: way,
        }
    }

    fn log(&self) -> String {
        self.pod.log(PROFILER).unwrap().join("\n")
    }

    /// The kernel's view of what the manifest asks for.
    fn check_confinement(&self) {
        let pid = self.pod.container(PROFILER).unwrap().pid;
        let context = &self.specification["securityContext"];
        let added = context["capabilities"]["add"].as_array().unwrap();
        let added: Vec<String> = added
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect();
        assert!(!added.iter().any(|name| name == "SYS_ADMIN"), "{added:?}");
        capabilities::check_threads(pid, &added);
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        // A filter, as `RuntimeDefault` is one.
        assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
        assert!(status.contains("\nSeccomp:\t2\n"), "{status}");
        let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
        let options = |path: &str| {
            let line = mounts
                .lines()
                .find(|line| line.split(' ').nth(4) == Some(path));
            line.unwrap_or_else(|| panic!("{path} is not mounted: {mounts}"))
                .split(' ')
                .nth(5)
                .unwrap()
        };
        for path in ["/", "/sys/kernel/tracing", "/sys/fs/cgroup"] {
            assert!(options(path).starts_with("ro"), "{path}: {mounts}");
        }
        assert!(options("/var/lib/profiler-agent").starts_with("rw"));
        for probe in ["livenessProbe", "readinessProbe"] {
            let command = self.specification[probe]["exec"]["command"].as_array();
            let command: Vec<&str> = command
                .unwrap()
                .iter()
                .map(|word| word.as_str().unwrap())
                .collect();
            self.pod.exec(PROFILER, &command).unwrap();
        }
    }

    fn start_task(&self, kind: &str, container: &str, duration_s: u64) -> String {
        let mut specification = json!({
            "kind": kind, "target": { "container": container }, "duration_s": duration_s,
        });
        if kind == "on_cpu" {
            specification["frequency_hz"] = json!(499);
        }
        self.api.create_task(&specification).unwrap()
    }

    fn ended(&self, id: &str) -> Value {
        let ended = self.api.wait_task(id, &["finished", "cancelled"], EXIT);
        ended.unwrap_or_else(|error| panic!("{error:#}: {}", self.log()))
    }
}

/// A server, its client that never stops, and a program of known shares.
fn app(node: &Node) -> Pod<'_> {
    let mut pod = objects::pod("shop", "cart-7d4b9c", "node-1", &[]);
    pod["metadata"]["uid"] = json!("6f1d2c3b-0000-4000-8000-000000000002");
    pod["metadata"]["labels"] = json!({ "app": "cart" });
    let container = |name: &str, arguments: &[&str]| {
        let image = format!("profiler.test/{name}:1");
        json!({ "name": name, "image": image, "args": arguments })
    };
    let url = "--url=http://127.0.0.1:8000/work";
    let asks = [url, "--rps=200", "--connections=4", "--duration=10m"];
    pod["spec"]["containers"] = json!([
        container("server", &["--listen=127.0.0.1:8000"]),
        container("client", &asks),
        container("shares", &[]),
    ]);
    let programs = [
        ("server", paths::own_program("mesh-server").unwrap()),
        ("client", paths::own_program("mesh-client").unwrap()),
        ("shares", Workload::SharesStatic.build("shares").unwrap()),
    ];
    for (name, program) in programs {
        node.import(&format!("profiler.test/{name}:1"), &program, &[])
            .unwrap();
    }
    let mut app = node.sandbox(&pod).unwrap();
    app.start("server").unwrap();
    wait_for("the server listens", START, || {
        let log = app.log("server").ok()?;
        log.iter()
            .any(|line| line.starts_with("listening"))
            .then_some(())
    })
    .unwrap();
    app.start("client").unwrap();
    app.start("shares").unwrap();
    app
}

#[test]
fn the_pod_of_the_manifest_profiles_others_with_its_capabilities_and_the_runtime_names_them() {
    let node = Node::start().unwrap();
    let app = app(&node);
    check_profiler(&node, &app);
    check_names(&node, &app);
}

/// The profiler's pod has exactly the capabilities that it asks for, and needs no others.
fn check_profiler(node: &Node, app: &Pod<'_>) {
    let id = |name: &str| app.container(name).unwrap().id.clone();
    let profiler = Profiler::start(node);

    let profile = profiler.start_task("on_cpu", &id("shares"), 4);
    profiler.api.wait_sampling(&profile, START).unwrap();
    let network = profiler.start_task("network", &id("server"), LONGEST_S);
    // The threads of both tasks are there now.
    profiler.check_confinement();
    profiler.ended(&profile);
    let folded = profiler.api.folded(&profile, "").unwrap();
    assert_built_shares(&folded, 5.0, "a program in another container");
    assert!(folded.share("[unknown]") < 5.0, "{}", folded.summary());

    // The client is in another container of the same pod, with connections that are older than the task.
    let path = format!("/api/v1/tasks/{network}/edges");
    let (client, server) = (json!(id("client")), json!(id("server")));
    let found = wait_for("the edge between two containers", START, || {
        let table = profiler.api.get_json(&path).ok()?;
        let edges = edges_that(&table, |edge| {
            edge["server"]["port"] == 8000
                && edge["client"]["container"] == client
                && edge["server"]["container"] == server
        });
        let bytes = |edge: &&Value| number(&edge["metrics"]["server"]["read"]["bytes"]);
        (edges.iter().map(bytes).sum::<u64>() > 10_000).then_some(edges.len())
    });
    assert_eq!(
        found.unwrap_or_else(|error| panic!("{error:#}: {:#?}", profiler.api.get_json(&path))),
        1
    );
    profiler.api.stop_task(&network).unwrap();
    profiler.ended(&network);
}

/// The runtime says how what it runs is called.
fn check_names(node: &Node, app: &Pod<'_>) {
    let id = |name: &str| app.container(name).unwrap().id.clone();
    let socket = format!("--runtime-socket=cri:{}", node.socket().display());
    let options = ServeOptions::with_arguments(["--kubernetes=off", &socket]);
    let agent = Agent::start_with(options).unwrap();
    let containers = || agent.api.get_json("/api/v1/containers").unwrap();
    let named = wait_for("the container has its names", START, || {
        let list = containers();
        let found = list["items"].as_array().unwrap().iter();
        let names = found
            .filter(|item| item["id"] == id("shares"))
            .map(|item| item["names"].clone());
        names.into_iter().find(Value::is_object)
    })
    .unwrap_or_else(|error| panic!("{error:#}: {:#}", containers()));
    assert_eq!(named["title"], "shop/cart-7d4b9c/shares");
    assert_eq!(named["labels"], json!({ "app": "cart" }));
    assert_eq!(named["image"], "profiler.test/shares:1");
    // The runtime does not say which of its containers are for initialisation.
    assert_eq!(
        (&named["role"], &named["named_by"]),
        (&json!("unknown"), &json!("cri"))
    );
    assert_eq!(named["pod"]["uid"], "6f1d2c3b-0000-4000-8000-000000000002");

    let target = json!({ "pod": { "labels": "app=cart", "container": "shares" } });
    let profile = agent
        .api
        .create_task(
            &json!({ "kind": "on_cpu", "target": target, "duration_s": 3, "frequency_hz": 499 }),
        )
        .unwrap();
    let watched = json!({ "pod": { "namespace": "shop", "name": "cart-7d4b9c" } });
    let network = agent
        .api
        .create_task(&json!({ "kind": "network", "target": watched, "duration_s": LONGEST_S }))
        .unwrap();
    agent.api.wait_task(&profile, &["finished"], EXIT).unwrap();
    let folded = agent.api.folded(&profile, "").unwrap();
    assert_built_shares(&folded, 6.0, "a container named by its runtime");
    // Both ends of the edge have names in the answer itself.
    let path = format!("/api/v1/tasks/{network}/edges");
    let table = || agent.api.get_json(&path).unwrap();
    let titles = wait_for("both ends have names", START, || {
        let table = table();
        let title = |name: &str| {
            table["containers"][id(name)]["title"]
                .as_str()
                .map(str::to_owned)
        };
        Some([title("client")?, title("server")?])
    })
    .unwrap_or_else(|error| panic!("{error:#}: {:#}", table()));
    assert_eq!(
        titles,
        ["shop/cart-7d4b9c/client", "shop/cart-7d4b9c/server"]
    );
    agent.api.stop_task(&network).unwrap();
}
