//! The part of a pod that names are read from: a node's pods would be many megabytes as a whole.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData, sync::Arc};

use k8s_openapi::{
    NamespaceResourceScope,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use profiler_model::{ContainerNames, ContainerRole, NamedBy, PodNames, Workload};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};

use super::MOST_LABELS;
use crate::container_names::Named;

/// Set on pods of a `ReplicaSet` whose name a Deployment made by appending it
/// (<https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#pod-template-hash-label>).
const TEMPLATE_HASH: &str = "pod-template-hash";
/// The same by Argo Rollouts.
const ROLLOUT_HASH: &str = "rollouts-pod-template-hash";
/// Containers of one pod and kind; more are left out.
const MOST_CONTAINERS: usize = 256;
/// Longest container id that is believed.
const ID_BYTES: usize = 128;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Pod {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "some")]
    init_containers: Vec<Planned>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Planned {
    name: String,
    restart_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_field_names, reason = "names of the Kubernetes API")]
struct Status {
    #[serde(deserialize_with = "some")]
    container_statuses: Vec<Running>,
    #[serde(deserialize_with = "some")]
    init_container_statuses: Vec<Running>,
    #[serde(deserialize_with = "some")]
    ephemeral_container_statuses: Vec<Running>,
}

/// The first [`MOST_CONTAINERS`] of a list.
fn some<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct First<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut kept = Vec::new();
            while kept.len() < MOST_CONTAINERS {
                let Some(item) = list.next_element()? else {
                    return Ok(kept);
                };
                kept.push(item);
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(kept)
        }
    }

    deserializer.deserialize_seq(First(PhantomData))
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Running {
    name: String,
    image: Option<String>,
    #[serde(rename = "containerID")]
    container_id: Option<String>,
    #[serde(default)]
    last_state: LastState,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct LastState {
    terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Deserialize)]
struct Terminated {
    #[serde(rename = "containerID")]
    container_id: Option<String>,
}

impl kube::Resource for Pod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Pod {
    pub(super) fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The pod's names and those of its containers that have been started.
    pub(super) fn names(self) -> (PodNames, Vec<Named>) {
        let Self {
            metadata,
            spec,
            status,
        } = self;
        let labels = metadata.labels.unwrap_or_default();
        let labels: BTreeMap<String, String> = labels.into_iter().take(MOST_LABELS).collect();
        let owners = metadata.owner_references.unwrap_or_default();
        let pod = PodNames {
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            workload: workload(&owners, &labels),
            labels,
        };
        let shared = Arc::new(pod.clone());
        let is_sidecar = |name: &str| {
            spec.init_containers.iter().any(|planned| {
                planned.name == name && planned.restart_policy.as_deref() == Some("Always")
            })
        };
        let named = |role: &dyn Fn(&str) -> ContainerRole, running: Vec<Running>| {
            running
                .into_iter()
                .flat_map(|running| of_container(role(&running.name), running, &shared))
                .collect::<Vec<_>>()
        };
        let mut all = named(&|_| ContainerRole::Main, status.container_statuses);
        let init = |name: &str| {
            if is_sidecar(name) {
                ContainerRole::Sidecar
            } else {
                ContainerRole::Init
            }
        };
        all.extend(named(&init, status.init_container_statuses));
        all.extend(named(
            &|_| ContainerRole::Ephemeral,
            status.ephemeral_container_statuses,
        ));
        (pod, all)
    }
}

/// The one that runs, and the one that ran before it.
fn of_container(role: ContainerRole, running: Running, pod: &Arc<PodNames>) -> Vec<Named> {
    let Running {
        name,
        image,
        container_id,
        last_state,
    } = running;
    let before = last_state.terminated.and_then(|ended| ended.container_id);
    [container_id, before]
        .into_iter()
        .flatten()
        .filter_map(|id| plain_id(&id).map(str::to_owned))
        .map(|id| {
            let names = ContainerNames {
                name: name.clone(),
                role,
                image: image.clone().filter(|image| !image.is_empty()),
                pod: Some(Arc::clone(pod)),
                labels: BTreeMap::new(),
                workload: None,
                named_by: NamedBy::Kubernetes,
            };
            (id, names)
        })
        .collect()
}

/// `containerd://ID` without the runtime.
fn plain_id(text: &str) -> Option<&str> {
    let (_, id) = text.split_once("://")?;
    let is_plausible = !id.is_empty()
        && id.len() <= ID_BYTES
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_plausible.then_some(id)
}

/// What manages the pod: its controller, or what manages that where the names prove it. A Job that a `CronJob`
/// made stays a Job: a name alone does not prove that.
fn workload(owners: &[OwnerReference], labels: &BTreeMap<String, String>) -> Option<Workload> {
    let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
    let made_by = |label: &str| {
        let hash = labels.get(label)?;
        let name = owner.name.strip_suffix(hash.as_str())?.strip_suffix('-')?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    if owner.kind == "ReplicaSet" {
        if let Some(name) = made_by(TEMPLATE_HASH) {
            let kind = "Deployment".to_owned();
            return Some(Workload { kind, name });
        }
        if let Some(name) = made_by(ROLLOUT_HASH) {
            let kind = "Rollout".to_owned();
            return Some(Workload { kind, name });
        }
    }
    Some(Workload {
        kind: owner.kind.clone(),
        name: owner.name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(value: Value) -> Pod {
        serde_json::from_value(value).unwrap()
    }

    fn owned(kind: &str, name: &str, labels: Value) -> Option<Workload> {
        let owner = json!([{ "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true }]);
        let metadata = json!({ "name": "p", "labels": labels, "ownerReferences": owner });
        pod(json!({ "metadata": metadata })).names().0.workload
    }

    #[test]
    fn containers_have_the_roles_of_their_kinds() {
        let status = |name: &str, id: &str| json!({ "name": name, "image": "i", "containerID": format!("containerd://{id}") });
        let (names, containers) = pod(json!({
            "metadata": { "name": "web-0", "namespace": "shop", "uid": "u", "labels": { "app": "web" } },
            "spec": {
                "containers": [{ "name": "web" }],
                "initContainers": [{ "name": "prepare" }, { "name": "istio-proxy", "restartPolicy": "Always" }],
            },
            "status": {
                "containerStatuses": [status("web", "aa")],
                "initContainerStatuses": [status("prepare", "bb"), status("istio-proxy", "cc"), { "name": "later" }],
                "ephemeralContainerStatuses": [status("debug", "dd")],
            },
        }))
        .names();
        assert_eq!(names.labels["app"], "web");
        let roles: Vec<_> = containers
            .iter()
            .map(|(id, names)| (id.as_str(), names.name.as_str(), names.role))
            .collect();
        let expected = [
            ("aa", "web", ContainerRole::Main),
            ("bb", "prepare", ContainerRole::Init),
            ("cc", "istio-proxy", ContainerRole::Sidecar),
            ("dd", "debug", ContainerRole::Ephemeral),
        ];
        assert_eq!(roles, expected);
        assert_eq!(containers[2].1.title(), "shop/web-0/istio-proxy");
    }

    #[test]
    fn a_container_that_restarted_has_both_ids() {
        let status = json!({
            "name": "web", "image": "", "containerID": "docker://bb",
            "lastState": { "terminated": { "containerID": "docker://aa", "exitCode": 1 } },
        });
        let (_, containers) = pod(json!({ "status": { "containerStatuses": [status] } })).names();
        let ids: Vec<_> = containers.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["bb", "aa"]);
        assert_eq!(containers[0].1.image, None);
    }

    #[test]
    fn workloads_are_what_the_names_prove() {
        let deployment = owned(
            "ReplicaSet",
            "web-5d4f",
            json!({ "pod-template-hash": "5d4f" }),
        );
        let workload = |kind: &str, name: &str| {
            Some(Workload {
                kind: kind.to_owned(),
                name: name.to_owned(),
            })
        };
        assert_eq!(deployment, workload("Deployment", "web"));
        let rollout = owned(
            "ReplicaSet",
            "web-5d4f",
            json!({ "rollouts-pod-template-hash": "5d4f" }),
        );
        assert_eq!(rollout, workload("Rollout", "web"));
        let bare = owned("ReplicaSet", "web", json!({ "pod-template-hash": "5d4f" }));
        assert_eq!(bare, workload("ReplicaSet", "web"));
        let job = owned("Job", "backup-29170000", json!({}));
        assert_eq!(job, workload("Job", "backup-29170000"));
        assert_eq!(pod(json!({})).names().0.workload, None);
    }

    #[test]
    fn ids_that_are_none_are_left_out() {
        for id in ["", "containerd://", "aa", "x://a/../b", "x://a b"] {
            assert_eq!(plain_id(id), None, "{id}");
        }
        assert_eq!(plain_id("cri-o://ab-12"), Some("ab-12"));
    }
}
