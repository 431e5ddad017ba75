//! What containers are called. All of it is untrusted text.

use std::collections::BTreeMap;

use profiler_host::container_names::{self, ContainerDirectory};
use profiler_model::{self as model, Endpoint};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a container is called, by whoever started it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(in crate::api) struct ContainerNames {
    /// `NAMESPACE/POD/CONTAINER`, as far as it is known; without a pod the container's name.
    title: String,
    /// Null where only the pod is known.
    #[schema(required)]
    name: Option<String>,
    /// `main`, `init`, `sidecar` (an init container that is always restarted), `ephemeral`, `sandbox` (holds the
    /// pod's namespaces) or `unknown`.
    role: &'static str,
    #[schema(required)]
    image: Option<String>,
    #[schema(required)]
    pod: Option<PodNames>,
    /// The pod's; without a pod the container's.
    labels: BTreeMap<String, String>,
    /// What manages it.
    #[schema(required)]
    workload: Option<Workload>,
    /// `kubernetes`, `cri` or `docker`.
    named_by: &'static str,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(in crate::api) struct PodNames {
    namespace: String,
    name: String,
    uid: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(in crate::api) struct Workload {
    /// `Deployment`, `StatefulSet`, `Compose service` and the like.
    kind: String,
    name: String,
}

impl From<&model::ContainerNames> for ContainerNames {
    fn from(names: &model::ContainerNames) -> Self {
        Self {
            title: names.title(),
            name: Some(names.name.clone()).filter(|name| !name.is_empty()),
            role: names.role.name(),
            image: names.image.clone(),
            pod: names.pod.as_deref().map(Into::into),
            labels: names.labels().clone(),
            workload: names.workload().map(Into::into),
            named_by: names.named_by.name(),
        }
    }
}

impl From<&model::Workload> for Workload {
    fn from(workload: &model::Workload) -> Self {
        Self {
            kind: workload.kind.clone(),
            name: workload.name.clone(),
        }
    }
}

impl From<&model::PodNames> for PodNames {
    fn from(pod: &model::PodNames) -> Self {
        Self {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
        }
    }
}

/// Names of the containers that occur in an answer, by id; those that nobody has named are missing.
pub(super) type NamedContainers = BTreeMap<String, ContainerNames>;

/// Looks them up.
pub(super) fn named<'end>(
    ends: impl IntoIterator<Item = &'end Endpoint>,
    directory: &ContainerDirectory,
) -> NamedContainers {
    let mut found = NamedContainers::new();
    for id in ends.into_iter().filter_map(|end| end.container.as_ref()) {
        if !found.contains_key(id)
            && let Some(names) = directory.by_id(id)
        {
            found.insert(id.clone(), names.as_ref().into());
        }
    }
    found
}

/// Who names containers.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(in crate::api) struct NameSource {
    /// `kubernetes`, `cri` or `docker`; the first that knows a container is believed.
    source: &'static str,
    /// `off`, `connecting`, `connected` or `waiting` (it failed and is asked again).
    state: &'static str,
    /// Why it is off or waits.
    #[schema(required)]
    reason: Option<String>,
    /// Whom it asks.
    #[schema(required)]
    endpoint: Option<String>,
    /// Containers that exist and have their names from it.
    containers: usize,
}

impl From<&container_names::SourceStatus> for NameSource {
    fn from(status: &container_names::SourceStatus) -> Self {
        Self {
            source: status.source.name(),
            state: status.state.name(),
            reason: status.state.reason().map(str::to_owned),
            endpoint: status.endpoint.clone(),
            containers: status.containers,
        }
    }
}

/// Which pods, and which of their containers; one of `name`, `labels` and `container` must be there.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct PodSelector {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// As in `kubectl get --selector`: `app=web,tier in (a,b),!canary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    labels: Option<String>,
    /// Name of a container; without a name and labels also one of Docker's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    container: Option<String>,
}

impl From<PodSelector> for model::PodSelector {
    fn from(selector: PodSelector) -> Self {
        let PodSelector {
            namespace,
            name,
            labels,
            container,
        } = selector;
        Self {
            namespace,
            name,
            labels,
            container,
        }
    }
}

impl From<&model::PodSelector> for PodSelector {
    fn from(selector: &model::PodSelector) -> Self {
        let model::PodSelector {
            namespace,
            name,
            labels,
            container,
        } = selector.clone();
        Self {
            namespace,
            name,
            labels,
            container,
        }
    }
}
