//! The messages of the Container Runtime Interface that are used, with the field numbers of `runtime/v1/api.proto`
//! (<https://github.com/kubernetes/cri-api>).

use std::collections::HashMap;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListContainersRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListContainersResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) containers: Vec<Container>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Container {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(string, tag = "2")]
    pub(super) pod_sandbox_id: String,
    #[prost(message, optional, tag = "3")]
    pub(super) metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "4")]
    pub(super) image: Option<ImageSpec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ContainerMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ImageSpec {
    #[prost(string, tag = "1")]
    pub(super) image: String,
    /// As in the pod's specification; newer runtimes only.
    #[prost(string, tag = "18")]
    pub(super) user_specified_image: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListPodSandboxRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListPodSandboxResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) items: Vec<PodSandbox>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PodSandbox {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) metadata: Option<PodSandboxMetadata>,
    #[prost(map = "string, string", tag = "5")]
    pub(super) labels: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PodSandboxMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) uid: String,
    #[prost(string, tag = "3")]
    pub(super) namespace: String,
}
