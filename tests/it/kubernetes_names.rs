//! What containers are called: a real API server says it, of live containers of a Docker engine.

use std::{path::PathBuf, thread, time::Duration};

use profiler_tests::{
    agent::{Agent, ServeOptions},
    cleanup::{Guard, scratch_directory, unique_name},
    docker::{Container, Image, docker},
    forwarder::Forwarder,
    kubernetes::{
        Cluster, manifests,
        objects::{
            Started, container, controller, namespace, native_sidecar, owned_by, pod, running,
        },
    },
    wait::{wait_for, wait_until},
    workload::Workload,
};
use serde_json::{Value, json};

use crate::targets::{EXIT, START, stop_task};

/// How long a change may take to be seen: a watch tells at once, a busy machine a little later.
const SEEN: Duration = Duration::from_mins(1);
/// The same after a watch broke: its pauses grow up to 30 s.
const SEEN_AGAIN: Duration = Duration::from_mins(1);

/// An API server with the objects of deploy/, and what containers are made of.
struct Place {
    cluster: Cluster,
    image: Image,
    folder: PathBuf,
    _guard: Guard,
}

impl Place {
    fn new() -> Self {
        let (folder, guard) = scratch_directory("kubernetes").unwrap();
        let program = Workload::SharesStatic.build("busy").unwrap();
        let (cluster, image) = thread::scope(|scope| {
            let image = scope.spawn(|| Image::of(&program).unwrap());
            // On this thread, which outlives what it starts.
            let cluster = Cluster::start().unwrap();
            (cluster, image.join().unwrap())
        });
        manifests::apply(&cluster.admin, "base.yaml", "127.0.0.1/32").unwrap();
        cluster.admin.create(&namespace("shop")).unwrap();
        Self {
            cluster,
            image,
            folder,
            _guard: guard,
        }
    }

    /// A kubeconfig for the account of deploy/, by way of `address`.
    fn kubeconfig(&self, address: std::net::SocketAddr) -> String {
        let path = self.folder.join("kubeconfig");
        let token = self.cluster.token("profiler", "profiler-agent").unwrap();
        self.cluster.kubeconfig(&path, address, &token).unwrap();
        path.display().to_string()
    }

    fn agent(kubeconfig: &str, node: &str) -> Agent {
        let kubernetes = format!("--kubernetes={kubeconfig}");
        let node = format!("--node-name={node}");
        let options = ServeOptions::with_arguments([&*kubernetes, &*node, "--runtime-socket=off"]);
        Agent::start_with(options).unwrap()
    }

    /// A pod on the agent's node whose containers run, as a kubelet and Docker would make it: each is a live
    /// container in the pod's cgroup.
    fn run(&self, mut wanted: Value, labels: &Value, names: &[&str]) -> RunningPod {
        wanted["metadata"]["labels"] = labels.clone();
        let admin = &self.cluster.admin;
        let created = admin.create(&wanted).unwrap();
        let uid = created["metadata"]["uid"].as_str().unwrap().to_owned();
        let containers: Vec<Container> = names.iter().map(|_name| self.container(&uid)).collect();
        let started: Vec<Started<'_>> = names
            .iter()
            .zip(&containers)
            .map(|(name, container)| Started {
                name,
                id: &container.id,
            })
            .collect();
        admin
            .set_status(&created, &running(&created, &started))
            .unwrap();
        RunningPod {
            object: created,
            containers,
        }
    }

    fn container(&self, pod_uid: &str) -> Container {
        let parent = format!("--cgroup-parent=/kubepods/besteffort/pod{pod_uid}");
        Container::run(&self.image, &[&parent, "--network=none"], &[]).unwrap()
    }
}

struct RunningPod {
    object: Value,
    containers: Vec<Container>,
}

impl RunningPod {
    fn id(&self, place: usize) -> &str {
        &self.containers[place].id
    }
}

/// What the agent reports about a container.
fn names(agent: &Agent, id: &str) -> Value {
    let list = agent.api.get_json("/api/v1/containers").unwrap();
    let items = list["items"].as_array().unwrap();
    let found = items.iter().find(|item| item["id"] == *id);
    found.map_or(Value::Null, |item| item["names"].clone())
}

fn wait_names(agent: &Agent, id: &str, limit: Duration, fits: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    wait_for("the container has its names", limit, || {
        last = names(agent, id);
        fits(&last).then(|| last.clone())
    })
    .unwrap_or_else(|error| {
        let list = agent.api.get_json("/api/v1/containers").unwrap();
        panic!("{error:#}: {list:#}")
    })
}

fn kubernetes_state(agent: &Agent) -> Value {
    let list = agent.api.get_json("/api/v1/containers").unwrap();
    let sources = list["name_sources"].as_array().unwrap();
    let found = sources
        .iter()
        .find(|source| source["source"] == "kubernetes");
    found.cloned().unwrap_or_default()
}

/// Pids that have samples.
fn profiled(agent: &Agent, id: &str) -> Vec<u32> {
    let threads = agent
        .api
        .get_json(&format!("/api/v1/tasks/{id}/threads"))
        .unwrap();
    let mut pids: Vec<u32> = threads["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| u32::try_from(thread["pid"].as_u64().unwrap()).unwrap())
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

fn pids(containers: &[&Container]) -> Vec<u32> {
    let mut pids: Vec<u32> = containers
        .iter()
        .map(|container| container.pid().unwrap())
        .collect();
    pids.sort_unstable();
    pids
}

/// The engine that made a socket.
fn engine(socket: &str) -> u32 {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let is_engine = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        command.contains("dockerd") && command.contains(socket)
    };
    folders
        .filter_map(|folder| folder.file_name().to_str()?.parse().ok())
        .find(is_engine)
        .unwrap()
}

fn on_cpu(target: &Value, seconds: u32) -> Value {
    json!({ "kind": "on_cpu", "target": { "pod": target }, "duration_s": seconds, "frequency_hz": 199 })
}

#[test]
fn live_containers_are_called_as_kubernetes_calls_them_whatever_happens_to_them_and_to_it() {
    // Each part has a node and pods of its own; the API server is restarted in the last.
    let mut place = Place::new();
    check_titles_and_targets(&place);
    check_account(&place);
    check_refusal(&place);
    check_changes(&mut place);
}

/// Live containers are called as Kubernetes calls them, and are targets by pod and label.
fn check_titles_and_targets(place: &Place) {
    const NODE: &str = "node-1";
    let admin = &place.cluster.admin;
    let deployment = admin
        .create(&controller("Deployment", "shop", "web", "web"))
        .unwrap();
    let mut set = controller("ReplicaSet", "shop", "web-5d4f7", "web");
    set["metadata"]["ownerReferences"] = owned_by(&deployment);
    let set = admin.create(&set).unwrap();
    let labels = json!({ "app": "web", "pod-template-hash": "5d4f7" });
    let mut wanted = pod("shop", "web-5d4f7-x", NODE, &["web"]);
    wanted["metadata"]["ownerReferences"] = owned_by(&set);
    wanted["spec"]["initContainers"] = json!([container("prepare"), native_sidecar("proxy")]);
    let web = place.run(wanted, &labels, &["web", "proxy"]);
    // On another node, with the same labels: it is not asked for.
    let mut elsewhere = pod("shop", "web-5d4f7-y", "node-elsewhere", &["web"]);
    elsewhere["metadata"]["labels"] = labels.clone();
    admin.create(&elsewhere).unwrap();

    let agent = Place::agent(&place.kubeconfig(place.cluster.address), NODE);
    let found = wait_names(&agent, web.id(0), SEEN, Value::is_object);
    assert_eq!(found["title"], "shop/web-5d4f7-x/web");
    assert_eq!(found["role"], "main");
    assert_eq!(found["named_by"], "kubernetes");
    assert_eq!(found["labels"], labels);
    assert_eq!(found["pod"]["uid"], web.object["metadata"]["uid"]);
    assert_eq!(
        found["workload"],
        json!({ "kind": "Deployment", "name": "web" })
    );
    let proxy = wait_names(&agent, web.id(1), SEEN, Value::is_object);
    assert_eq!(
        (&proxy["name"], &proxy["role"]),
        (&json!("proxy"), &json!("sidecar"))
    );
    let source = kubernetes_state(&agent);
    assert_eq!(
        (&source["state"], &source["containers"]),
        (&json!("connected"), &json!(2)),
        "{source}"
    );

    // By pod; by one of its containers; by label, with a pod that starts meanwhile.
    let by_pod = json!({ "namespace": "shop", "name": "web-5d4f7-x" });
    let whole = agent.api.create_task(&on_cpu(&by_pod, 3)).unwrap();
    let by_container = json!({ "name": "web-5d4f7-x", "container": "proxy" });
    let part = agent.api.create_task(&on_cpu(&by_container, 3)).unwrap();
    let by_label = json!({ "labels": "app in (web), !canary" });
    let labelled = agent.api.create_task(&on_cpu(&by_label, 60)).unwrap();
    agent.api.wait_sampling(&labelled, START).unwrap();
    let second = place.run(
        pod("shop", "web-extra", NODE, &["web"]),
        &json!({ "app": "web" }),
        &["web"],
    );
    for id in [&whole, &part] {
        agent.api.wait_task(id, &["finished"], EXIT).unwrap();
    }
    let of_web = [&web.containers[0], &web.containers[1]];
    assert_eq!(profiled(&agent, &whole), pids(&of_web));
    assert_eq!(profiled(&agent, &part), pids(&of_web[1..]));
    let all = [of_web[0], of_web[1], &second.containers[0]];
    wait_until("the new pod has samples", SEEN, || {
        profiled(&agent, &labelled) == pids(&all)
    })
    .unwrap();
    let task = stop_task(&agent, &labelled);
    let notes = task["notes"].to_string();
    assert!(
        notes.contains("shop/web-extra")
            && notes.contains("has started and fits labels app in (web), !canary"),
        "{notes}"
    );

    // The rest of the API and the commands know them too.
    let pods = agent.api.get_json("/api/v1/pods").unwrap();
    let listed = pods["items"].as_array().unwrap();
    let processes = agent
        .api
        .get_json("/api/v1/processes?q=shop/web-extra")
        .unwrap();
    assert_eq!(processes["total"], 1, "{processes}");
    // Each of these containers has a network namespace of its own, so that it is a pod of its own here.
    let found = listed.iter().find(|pod| pod["title"] == "shop/web-extra");
    assert_eq!(found.unwrap()["labels"], json!({ "app": "web" }));
    let config = place.kubeconfig(place.cluster.address);
    let printed = profiler_tests::agent::run(
        &[
            "ps",
            "--kubernetes",
            &config,
            "--node-name",
            NODE,
            "--runtime-socket=off",
        ],
        EXIT,
    )
    .unwrap()
    .1;
    assert!(printed.contains("shop/web-5d4f7-x/proxy"), "{printed}");

    // An unknown name is refused, with the known names and the sources that were asked.
    let nobody = on_cpu(&json!({ "name": "nobody" }), 1);
    let refused = agent.api.create_task(&nobody).unwrap();
    let failed = agent.api.wait_task(&refused, &["failed"], EXIT).unwrap();
    let reason = failed["reason"].as_str().unwrap();
    assert!(
        reason.contains(
            "no running container of this node matches pod nobody; kubernetes: connected"
        ),
        "{reason}"
    );
}

/// Changes, ends and watches that break are followed.
fn check_changes(place: &mut Place) {
    const NODE: &str = "node-2";
    let mut way = Forwarder::start(place.cluster.address).unwrap();
    let labels = json!({ "app": "cart", "version": "v1" });
    let mut first = place.run(pod("shop", "cart-0", NODE, &["cart"]), &labels, &["cart"]);
    let agent = Place::agent(&place.kubeconfig(way.address), NODE);
    let cart = first.id(0).to_owned();
    wait_names(&agent, &cart, SEEN, Value::is_object);

    // A label changes; a container starts again under another id.
    let version = |wanted: &str| json!({ "metadata": { "labels": { "version": wanted } } });
    let admin = place.cluster.admin.clone();
    admin.merge(&first.object, &version("v2")).unwrap();
    wait_names(&agent, &cart, SEEN, |names| {
        names["labels"]["version"] == "v2"
    });
    let uid = first.object["metadata"]["uid"].as_str().unwrap().to_owned();
    let replacement = place.container(&uid);
    let report = |id: &str| {
        let started = [Started { name: "cart", id }];
        let status = running(&first.object, &started);
        admin.set_status(&first.object, &status).unwrap();
    };
    // Until the kubelet says which container it is, its cgroup says in which pod.
    let partly = wait_names(&agent, &replacement.id, SEEN, Value::is_object);
    assert_eq!(partly["title"], "shop/cart-0");
    report(&replacement.id);
    wait_names(&agent, &replacement.id, SEEN, |names| {
        names["title"] == "shop/cart-0/cart"
    });

    // Without the API server names stay, and it is said that they may be old.
    way.cut();
    wait_until("the break is told", SEEN_AGAIN, || {
        let source = kubernetes_state(&agent);
        source["state"] == "waiting" && source["reason"].is_string()
    })
    .unwrap();
    assert_eq!(names(&agent, &cart)["title"], "shop/cart-0/cart");
    admin.merge(&first.object, &version("v3")).unwrap();
    way.restore().unwrap();
    wait_names(&agent, &replacement.id, SEEN_AGAIN, |names| {
        names["labels"]["version"] == "v3"
    });
    assert_eq!(kubernetes_state(&agent)["state"], "connected");

    // The versions that the watch knows are gone: it begins anew, and misses nothing.
    way.cut();
    admin.merge(&first.object, &version("v4")).unwrap();
    place.cluster.restart().unwrap();
    way.restore().unwrap();
    wait_names(&agent, &replacement.id, SEEN_AGAIN, |names| {
        names["labels"]["version"] == "v4"
    });

    // The pod goes, while its containers still run for a moment: their names stay.
    admin.delete(&first.object, Duration::ZERO).unwrap();
    wait_until("no container is left to Kubernetes", SEEN, || {
        kubernetes_state(&agent)["containers"] == 0
    })
    .unwrap();
    assert_eq!(names(&agent, &cart)["title"], "shop/cart-0/cart");
    first.containers.clear();
}

/// In a pod the account of the manifests is all that is needed.
fn check_account(place: &Place) {
    const NODE: &str = "node-3";
    let labels = json!({ "app": "web" });
    let web = place.run(pod("shop", "inner-0", NODE, &["web"]), &labels, &["web"]);
    let account = place.folder.join("account");
    let token = place.cluster.token("profiler", "profiler-agent").unwrap();
    place
        .cluster
        .account_folder(&account, "profiler", &token)
        .unwrap();
    let agent_image = Image::of(&profiler_tests::paths::agent().unwrap()).unwrap();
    let address = place.cluster.address;
    let mounted = format!(
        "--volume={}:/var/run/secrets/kubernetes.io/serviceaccount:ro",
        account.display()
    );
    let name = unique_name("profiler");
    let options = [
        "--pid=host",
        "--network=host",
        "--cgroupns=host",
        "--security-opt=apparmor=unconfined",
        "--security-opt=seccomp=unconfined",
        "--cap-add=SYS_ADMIN",
        "--cap-add=SYS_PTRACE",
        "--cap-add=SYSLOG",
        "--volume=/var/lib/profiler-agent",
        "--volume=/sys/fs/cgroup:/sys/fs/cgroup:ro",
        &mounted,
        &format!("--name={name}"),
        &format!("--env=KUBERNETES_SERVICE_HOST={}", address.ip()),
        &format!("--env=KUBERNETES_SERVICE_PORT={}", address.port()),
        &format!("--env=NODE_NAME={NODE}"),
    ];
    // Through the engine's root, as nothing of Docker is mounted.
    let socket = std::env::var("DOCKER_HOST").unwrap_or_default();
    let socket = socket.trim_start_matches("unix://");
    let runtime = format!("--runtime-socket=/proc/{}/root{socket}", engine(socket));
    let serve = ["serve", "--listen=127.0.0.1:0", &runtime];
    let profiler = Container::run(&agent_image, &options, &serve).unwrap();
    let api = crate::containers::api_of(&profiler);
    let agent_names = |id: &str| {
        let list = api.get_json("/api/v1/containers").unwrap();
        let items = list["items"].as_array().unwrap();
        let found = items.iter().find(|item| item["id"] == *id);
        found.map_or(Value::Null, |item| item["names"].clone())
    };
    wait_until("both sources answer", SEEN, || {
        agent_names(web.id(0))["title"] == "shop/inner-0/web"
            && agent_names(&profiler.id)["title"] == *name
    })
    .unwrap_or_else(|error| {
        let list = api.get_json("/api/v1/containers").unwrap();
        panic!("{error:#}: {list:#}")
    });
    // Kubernetes is believed before Docker, which has another name for the container.
    assert_eq!(agent_names(web.id(0))["named_by"], "kubernetes");
    assert_eq!(agent_names(&profiler.id)["named_by"], "docker");
    // Docker's containers can be called otherwise at any time.
    let other = unique_name("renamed");
    docker(&["rename", &name, &other]).unwrap();
    wait_until("the new name is seen", SEEN_AGAIN, || {
        agent_names(&profiler.id)["title"] == *other
    })
    .unwrap();
}

/// A missing right of the account is reported, and nothing else is lost.
fn check_refusal(place: &Place) {
    const NODE: &str = "node-4";
    let labels = json!({ "app": "web" });
    let web = place.run(pod("shop", "refused-0", NODE, &["web"]), &labels, &["web"]);
    let path = place.folder.join("kubeconfig");
    let token = place.cluster.token("shop", "default");
    let token = token.unwrap_or_else(|_none| "nobody".to_owned());
    place
        .cluster
        .kubeconfig(&path, place.cluster.address, &token)
        .unwrap();
    let agent = Place::agent(&path.display().to_string(), NODE);
    let reason = wait_for("it is told", SEEN, || {
        let source = kubernetes_state(&agent);
        source["reason"].as_str().map(str::to_owned)
    })
    .unwrap();
    assert!(
        reason.contains("orbidden") || reason.contains("nauthorized"),
        "{reason}"
    );
    assert_eq!(names(&agent, web.id(0)), Value::Null);
    let task = json!({
        "kind": "on_cpu", "target": { "container": web.id(0) }, "duration_s": 1, "frequency_hz": 199,
    });
    let id = agent.api.create_task(&task).unwrap();
    agent.api.wait_task(&id, &["finished"], EXIT).unwrap();
    assert_eq!(profiled(&agent, &id), pids(&[&web.containers[0]]));
}
