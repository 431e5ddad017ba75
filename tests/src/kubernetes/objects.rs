//! Objects as controllers and the kubelet would write them.

use serde_json::{Value, json};

/// An image that is never pulled.
const IMAGE: &str = "profiler.test/program:1";
/// When containers started.
const STARTED: &str = "2026-01-02T03:04:05Z";

/// A container of a pod and the id that the runtime gave it.
#[derive(Clone, Copy, Debug)]
pub struct Started<'a> {
    pub name: &'a str,
    /// 64 digits.
    pub id: &'a str,
}

pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// A pod that is bound to `node`. Labels, owners, init containers and whatever else are added by the test.
pub fn pod(namespace: &str, name: &str, node: &str, containers: &[&str]) -> Value {
    let containers: Vec<Value> = containers.iter().map(|name| container(name)).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "nodeName": node, "containers": containers },
    })
}

pub fn container(name: &str) -> Value {
    json!({ "name": name, "image": IMAGE })
}

/// An init container that stays for as long as the pod: what Kubernetes calls a native sidecar.
pub fn native_sidecar(name: &str) -> Value {
    json!({ "name": name, "image": IMAGE, "restartPolicy": "Always" })
}

/// A controller (`Deployment`, `ReplicaSet`, `StatefulSet`, `DaemonSet` or `Job`) whose pods have the label `app`.
pub fn controller(kind: &str, namespace: &str, name: &str, app: &str) -> Value {
    let labels = json!({ "app": app });
    let mut pod =
        json!({ "metadata": { "labels": labels }, "spec": { "containers": [container("app")] } });
    let mut specification = json!({});
    let version = if kind == "Job" {
        // Its own labels, and its own way to choose pods.
        pod["spec"]["restartPolicy"] = json!("Never");
        "batch/v1"
    } else {
        specification["selector"] = json!({ "matchLabels": labels });
        "apps/v1"
    };
    specification["template"] = pod;
    json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": { "namespace": namespace, "name": name },
        "spec": specification,
    })
}

/// The reference to `owner`, which the API server has accepted, in what it controls.
pub fn owned_by(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    }])
}

/// The status of a running pod: its init containers have ended, or run on as native sidecars; those of its containers
/// that are not in `started` wait.
pub fn running(pod: &Value, started: &[Started<'_>]) -> Value {
    let statuses = |key: &str| -> Vec<Value> {
        let all = pod["spec"][key].as_array();
        let all = all.map(Vec::as_slice).unwrap_or_default();
        let is_init = key == "initContainers";
        all.iter()
            .map(|container| {
                let ends = is_init && container["restartPolicy"] != "Always";
                status(container, started, ends)
            })
            .collect()
    };
    json!({
        "phase": "Running",
        "qosClass": "BestEffort",
        "hostIP": "192.0.2.1",
        "hostIPs": [{ "ip": "192.0.2.1" }],
        "podIP": "10.244.0.7",
        "podIPs": [{ "ip": "10.244.0.7" }],
        "startTime": STARTED,
        "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": STARTED }],
        "initContainerStatuses": statuses("initContainers"),
        "containerStatuses": statuses("containers"),
    })
}

fn status(container: &Value, started: &[Started<'_>], ends: bool) -> Value {
    let mut status = json!({
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": false,
        "restartCount": 0,
    });
    let Some(found) = started.iter().find(|one| container["name"] == one.name) else {
        status["started"] = json!(false);
        status["state"] = json!({ "waiting": { "reason": "PodInitializing" } });
        return status;
    };
    let id = format!("containerd://{}", found.id);
    status["imageID"] =
        json!("sha256:0000000000000000000000000000000000000000000000000000000000000001");
    status["containerID"] = json!(id);
    status["ready"] = json!(true);
    status["started"] = json!(!ends);
    status["state"] = if ends {
        let ended = json!({
            "exitCode": 0, "reason": "Completed", "startedAt": STARTED, "finishedAt": STARTED, "containerID": id,
        });
        json!({ "terminated": ended })
    } else {
        json!({ "running": { "startedAt": STARTED } })
    };
    status
}
