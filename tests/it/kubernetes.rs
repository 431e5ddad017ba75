//! The API server of tests of names: it keeps and serves changes of pods as in a cluster.

use std::time::Duration;

use profiler_tests::{
    forwarder::Forwarder,
    kubernetes::{
        Client, Cluster, items, manifests,
        objects::{
            Started, container, controller, namespace, native_sidecar, owned_by, pod, running,
        },
    },
    wait::wait_for,
};
use serde_json::{Value, json};

const NODE: &str = "node-1";
const PODS: &str = "/api/v1/namespaces/shop/pods";
/// Longest that a watch waits for nothing.
const WATCH_S: u32 = 1;
/// For the API server to tell what has happened.
const TOLD: Duration = Duration::from_secs(30);
const ID: &str = "4f1c0e6b7a2d98533d1e0a7b6c5d4e3f2a1b0c9d8e7f60514233241506f7e8d9";
const OTHER_ID: &str = "0a1c0e6b7a2d98533d1e0a7b6c5d4e3f2a1b0c9d8e7f60514233241506f7e8d9";

fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}

/// What is said of pods from after `version` on: as many changes as are expected, and what a whole watch more says.
fn changes(client: &Client, version: &str, expected: usize) -> Vec<String> {
    let watch = || client.watch(PODS, version, WATCH_S).unwrap();
    // Each begins at the version anew. On a busy machine one of a second may end before it got everything.
    let first = wait_for("all changes are told", TOLD, || {
        let events = watch();
        (events.len() >= expected).then_some(events)
    });
    let (first, second) = (first.unwrap_or_else(|_in_vain| watch()), watch());
    let events = if second.len() > first.len() {
        second
    } else {
        first
    };
    let shown = events.iter().map(|event| {
        let name = event.object["metadata"]["name"].as_str();
        format!("{} {}", event.kind, name.unwrap_or("?"))
    });
    shown.collect()
}

#[test]
fn pods_of_every_sort_are_kept_and_the_manifests_are_accepted_and_may_change_nothing() {
    let cluster = Cluster::start().unwrap();
    check_pods(&cluster);
    check_manifests(&cluster);
}

/// Pods with every sort of container and owner are kept and reported.
fn check_pods(cluster: &Cluster) {
    let admin = &cluster.admin;
    admin.create(&namespace("shop")).unwrap();

    let mut wanted = pod("shop", "cart-1", NODE, &["cart", "istio-proxy"]);
    wanted["metadata"]["labels"] = json!({ "app": "cart", "version": "v2" });
    wanted["spec"]["initContainers"] = json!([container("prepare"), native_sidecar("proxy")]);
    let created = admin.create(&wanted).unwrap();
    assert_eq!(created["metadata"]["labels"], wanted["metadata"]["labels"]);
    assert_eq!(created["status"]["phase"], "Pending");
    let [prepare, proxy] = [0, 1].map(|index| &created["spec"]["initContainers"][index]);
    assert!(prepare["restartPolicy"].is_null(), "{prepare}");
    assert_eq!(proxy["restartPolicy"], "Always");

    // The kubelet reports, first without the second container.
    let started = ["prepare", "proxy", "cart"].map(|name| Started { name, id: ID });
    admin
        .set_status(&created, &running(&created, &started))
        .unwrap();
    let reported = admin.get(&format!("{PODS}/cart-1")).unwrap();
    let status = &reported["status"];
    let id = format!("containerd://{ID}");
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["containerStatuses"][0]["containerID"], *id);
    assert!(status["containerStatuses"][1]["containerID"].is_null());
    assert_eq!(
        status["initContainerStatuses"][0]["state"]["terminated"]["reason"],
        "Completed"
    );
    assert!(status["initContainerStatuses"][1]["state"]["running"].is_object());

    // Each controller owns a pod, a deployment by way of its replica set.
    let deployment = admin
        .create(&controller("Deployment", "shop", "web", "web"))
        .unwrap();
    for kind in ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"] {
        let name = format!("web-{}", kind.to_lowercase());
        let mut owner = controller(kind, "shop", &name, "web");
        if kind == "ReplicaSet" {
            owner["metadata"]["ownerReferences"] = owned_by(&deployment);
        }
        let owner = admin.create(&owner).unwrap();
        let mut owned = pod("shop", &format!("{name}-0"), NODE, &["app"]);
        owned["metadata"]["ownerReferences"] = owned_by(&owner);
        let owned = admin.create(&owned).unwrap();
        let reference = &owned["metadata"]["ownerReferences"][0];
        assert_eq!(reference["kind"], kind);
        assert_eq!(reference["uid"], owner["metadata"]["uid"]);
    }
    let on_node = |node: &str| {
        let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}");
        items(&admin.get(&path).unwrap()).unwrap().len()
    };
    assert_eq!((on_node(NODE), on_node("node-2")), (5, 0));

    // From here on a watch tells everything, and a pod that is deleted is first marked.
    let before = admin.get(PODS).unwrap();
    let changed = json!({ "metadata": { "labels": { "version": "v3" } } });
    assert_eq!(
        admin.merge(&wanted, &changed).unwrap()["metadata"]["labels"]["version"],
        "v3"
    );
    admin.delete(&wanted, Duration::from_secs(30)).unwrap();
    let marked = admin.get(&format!("{PODS}/cart-1")).unwrap();
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    admin.delete(&wanted, Duration::ZERO).unwrap();
    assert_eq!(admin.status_of(&format!("{PODS}/cart-1")).unwrap(), 404);
    // The label, the mark, the grace period that becomes none.
    let said = changes(admin, version(&before), 4);
    let modified = "MODIFIED cart-1";
    assert_eq!(said, [modified, modified, modified, "DELETED cart-1"]);
}

#[test]
fn a_watch_goes_on_after_a_cut_and_its_version_is_gone_after_a_restart() {
    let mut cluster = Cluster::start().unwrap();
    let admin = cluster.admin.clone();
    admin.create(&namespace("shop")).unwrap();
    let mut way = Forwarder::start(cluster.address).unwrap();
    let token = cluster.token("shop", "watcher");
    assert!(token.is_err(), "a token for an account that is not there");
    // The roles that clusters come with are put together by a controller.
    let rights = "rbac.authorization.k8s.io";
    let metadata = json!({ "namespace": "shop", "name": "watcher" });
    for object in [
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata }),
        json!({
            "apiVersion": format!("{rights}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"] }],
        }),
        json!({
            "apiVersion": format!("{rights}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": rights, "kind": "Role", "name": "watcher" },
            "subjects": [{ "kind": "ServiceAccount", "namespace": "shop", "name": "watcher" }],
        }),
    ] {
        admin.create(&object).unwrap();
    }
    let token = cluster.token("shop", "watcher").unwrap();
    let watcher = Client::new(way.address, &token, &cluster.authority).unwrap();

    let empty = watcher.get(PODS).unwrap();
    let first = pod("shop", "first", NODE, &["app"]);
    admin.create(&first).unwrap();
    assert_eq!(changes(&watcher, version(&empty), 1), ["ADDED first"]);
    assert!(way.connections() > 0);

    way.cut();
    assert_eq!(way.connections(), 0);
    assert!(watcher.get(PODS).is_err());
    let started = [Started {
        name: "app",
        id: ID,
    }];
    admin
        .set_status(&first, &running(&first, &started))
        .unwrap();
    way.restore().unwrap();
    assert_eq!(
        changes(&watcher, version(&empty), 2),
        ["ADDED first", "MODIFIED first"]
    );

    // Only the store knows what happened before the restart.
    let restarted = [Started {
        name: "app",
        id: OTHER_ID,
    }];
    admin
        .set_status(&first, &running(&first, &restarted))
        .unwrap();
    cluster.restart().unwrap();
    let events = wait_for("the version is gone", TOLD, || {
        let events = watcher.watch(PODS, version(&empty), WATCH_S).unwrap();
        (!events.is_empty()).then_some(events)
    })
    .unwrap();
    assert_eq!((&*events[0].kind, events.len()), ("ERROR", 1), "{events:?}");
    assert_eq!(events[0].object["code"], 410, "{events:?}");
    let now = watcher.get(PODS).unwrap();
    let id = &items(&now).unwrap()[0]["status"]["containerStatuses"][0]["containerID"];
    assert_eq!(*id, format!("containerd://{OTHER_ID}"));
}

/// The objects of deploy/ are those of a cluster, and give their account what they say and nothing else.
fn check_manifests(cluster: &Cluster) {
    for name in [
        "base.yaml",
        "daemonset.yaml",
        "service.yaml",
        "access-logs.yaml",
        "sidecar.yaml",
    ] {
        let applied = manifests::apply(&cluster.admin, name, "127.0.0.1/32").unwrap();
        assert!(!applied.is_empty());
    }
    // Without the API server's address there must not be a policy that allows more or nothing.
    for name in ["base.yaml", "service.yaml"] {
        let refused = manifests::apply(&cluster.admin, name, manifests::PLACEHOLDER);
        let refused = format!("{:#}", refused.unwrap_err());
        assert!(
            refused.contains("NetworkPolicy") && refused.contains("cidr"),
            "{refused}"
        );
    }
    let agent = cluster.client("profiler", "profiler-agent").unwrap();
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
    });
    let who = agent
        .post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review)
        .unwrap();
    assert_eq!(
        who["status"]["userInfo"]["username"],
        "system:serviceaccount:profiler:profiler-agent"
    );
    // What it asks, and no single pod.
    let pods = "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1";
    for path in [pods, &format!("{pods}&watch=true&timeoutSeconds=1")] {
        assert_eq!(agent.status_of(path).unwrap(), 200, "{path}");
    }
    let one = "/api/v1/namespaces/profiler/pods/profiled";
    assert_eq!(cluster.admin.status_of(one).unwrap(), 200, "{one} exists");
    for path in [
        one,
        "/api/v1/namespaces/profiler/pods/profiled/log",
        "/api/v1/nodes",
        "/api/v1/secrets",
        "/api/v1/configmaps",
        "/api/v1/namespaces/profiler/secrets/profiler-agent",
    ] {
        assert_eq!(agent.status_of(path).unwrap(), 403, "{path}");
    }
    for change in [pod("profiler", "other", NODE, &["app"]), namespace("other")] {
        let refused = agent.create(&change).unwrap_err().to_string();
        assert!(refused.contains("status 403"), "{refused}");
    }
}
