//! What containers are called. All of it is untrusted text.

use std::collections::BTreeMap;

use profiler_host::container_names::{self, ContainerDirectory, SourceState};
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
    role: ContainerRole,
    #[schema(required)]
    image: Option<String>,
    #[schema(required)]
    pod: Option<PodNames>,
    /// The pod's; without a pod the container's.
    labels: BTreeMap<String, String>,
    /// What manages it.
    #[schema(required)]
    workload: Option<Workload>,
    named_by: NamedBy,
}

/// What a container is for in its pod: `sidecar` is an init container that is always restarted, `sandbox` holds the
/// pod's namespaces.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ContainerRole {
    Main,
    Init,
    Sidecar,
    Ephemeral,
    Sandbox,
    Unknown,
}

impl From<model::ContainerRole> for ContainerRole {
    fn from(role: model::ContainerRole) -> Self {
        match role {
            model::ContainerRole::Main => Self::Main,
            model::ContainerRole::Init => Self::Init,
            model::ContainerRole::Sidecar => Self::Sidecar,
            model::ContainerRole::Ephemeral => Self::Ephemeral,
            model::ContainerRole::Sandbox => Self::Sandbox,
            model::ContainerRole::Unknown => Self::Unknown,
        }
    }
}

/// A source of names.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NamedBy {
    Kubernetes,
    Cri,
    Docker,
}

impl From<model::NamedBy> for NamedBy {
    fn from(by: model::NamedBy) -> Self {
        match by {
            model::NamedBy::Kubernetes => Self::Kubernetes,
            model::NamedBy::Cri => Self::Cri,
            model::NamedBy::Docker => Self::Docker,
        }
    }
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
            role: names.role.into(),
            image: names.image.clone(),
            pod: names.pod.as_deref().map(Into::into),
            labels: names.labels().clone(),
            workload: names.workload().map(Into::into),
            named_by: names.named_by.into(),
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
    /// The first that knows a container is believed.
    source: NamedBy,
    state: NameSourceState,
    /// Why it is off or waits.
    #[schema(required)]
    reason: Option<String>,
    /// Whom it asks.
    #[schema(required)]
    endpoint: Option<String>,
    /// Containers that exist and have their names from it.
    containers: usize,
}

/// Whether a source of names answers: `waiting` has failed and is asked again.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NameSourceState {
    Off,
    Connecting,
    Connected,
    Waiting,
}

impl From<&SourceState> for NameSourceState {
    fn from(state: &SourceState) -> Self {
        match state {
            SourceState::Off { .. } => Self::Off,
            SourceState::Connecting => Self::Connecting,
            SourceState::Connected => Self::Connected,
            SourceState::Waiting { .. } => Self::Waiting,
        }
    }
}

impl From<&container_names::SourceStatus> for NameSource {
    fn from(status: &container_names::SourceStatus) -> Self {
        Self {
            source: status.source.into(),
            state: (&status.state).into(),
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
    #[schema(nullable = false)]
    namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
    /// As in `kubectl get --selector`: `app=web,tier in (a,b),!canary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    labels: Option<String>,
    /// Name of a container; without a name and labels also one of Docker's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
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
