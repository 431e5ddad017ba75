//! Names of containers and pods, chosen by their owners. All of it is untrusted text.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

/// The source of a container's name, the most trustworthy first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NamedBy {
    /// The Kubernetes API.
    Kubernetes,
    /// The socket of a container runtime, as the kubelet uses it.
    Cri,
    /// The socket of a Docker engine.
    Docker,
}

impl NamedBy {
    pub const ALL: [Self; 3] = [Self::Kubernetes, Self::Cri, Self::Docker];

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Cri => "cri",
            Self::Docker => "docker",
        }
    }
}

/// What a container is for in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ContainerRole {
    Main,
    /// Runs to its end before the others start.
    Init,
    /// An init container that is always restarted: it lives as long as the pod (Kubernetes 1.29).
    Sidecar,
    /// Added to a running pod, for debugging.
    Ephemeral,
    /// Holds the pod's namespaces.
    Sandbox,
    /// The source does not tell.
    Unknown,
}

/// What manages a pod or a container: a Deployment, a service of Docker Compose.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Workload {
    pub kind: String,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodNames {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub labels: BTreeMap<String, String>,
    pub workload: Option<Workload>,
}

/// What a container is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContainerNames {
    /// Its name in its pod, or among all containers of an engine; empty where only the pod is known.
    pub name: String,
    pub role: ContainerRole,
    pub image: Option<String>,
    pub pod: Option<Arc<PodNames>>,
    /// Its own, where there is no pod.
    pub labels: BTreeMap<String, String>,
    /// What manages it, where there is no pod.
    pub workload: Option<Workload>,
    pub named_by: NamedBy,
}

impl ContainerNames {
    /// The pod's labels; without a pod its own.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        self.pod.as_ref().map_or(&self.labels, |pod| &pod.labels)
    }

    pub fn workload(&self) -> Option<&Workload> {
        self.pod
            .as_ref()
            .map_or(self.workload.as_ref(), |pod| pod.workload.as_ref())
    }

    /// `NAMESPACE/POD/CONTAINER`, as far as it is known.
    pub fn title(&self) -> String {
        let Some(pod) = &self.pod else {
            return self.name.clone();
        };
        if self.name.is_empty() {
            format!("{}/{}", pod.namespace, pod.name)
        } else {
            format!("{}/{}/{}", pod.namespace, pod.name, self.name)
        }
    }
}

/// Which pods, and which of their containers. What is not given does not matter; one of name and labels is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodSelector {
    pub namespace: Option<String>,
    pub name: Option<String>,
    /// As in `kubectl get --selector`.
    pub labels: Option<String>,
    pub container: Option<String>,
}

impl std::fmt::Display for PodSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            namespace,
            name,
            labels,
            container,
        } = self;
        let mut parts = Vec::new();
        if let Some(name) = name {
            let namespace = namespace.as_deref();
            parts.push(namespace.map_or_else(
                || format!("pod {name}"),
                |namespace| format!("pod {namespace}/{name}"),
            ));
        } else if let Some(namespace) = namespace {
            parts.push(format!("pods of {namespace}"));
        }
        if let Some(labels) = labels {
            parts.push(format!("labels {labels}"));
        }
        if let Some(container) = container {
            parts.push(format!("container {container}"));
        }
        f.write_str(&parts.join(", "))
    }
}
