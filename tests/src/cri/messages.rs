//! The part of `runtime.v1` (`k8s.io/cri-api/pkg/apis/runtime/v1/api.proto`) that tests use: fields by their numbers
//! there; others are left out.

use std::collections::HashMap;

use prost::{Enumeration, Message};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Int64Value {
    #[prost(int64, tag = "1")]
    pub(super) value: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
pub(super) enum NamespaceMode {
    Pod = 0,
    Container = 1,
    Node = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamespaceOption {
    #[prost(enumeration = "NamespaceMode", tag = "1")]
    pub(super) network: i32,
    #[prost(enumeration = "NamespaceMode", tag = "2")]
    pub(super) pid: i32,
    #[prost(enumeration = "NamespaceMode", tag = "3")]
    pub(super) ipc: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Enumeration)]
pub(super) enum ProfileType {
    RuntimeDefault = 0,
    Unconfined = 1,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SecurityProfile {
    #[prost(enumeration = "ProfileType", tag = "1")]
    pub(super) profile_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PodSandboxMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) uid: String,
    #[prost(string, tag = "3")]
    pub(super) namespace: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LinuxSandboxSecurityContext {
    #[prost(message, optional, tag = "1")]
    pub(super) namespace_options: Option<NamespaceOption>,
    #[prost(message, optional, tag = "9")]
    pub(super) seccomp: Option<SecurityProfile>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LinuxPodSandboxConfig {
    #[prost(string, tag = "1")]
    pub(super) cgroup_parent: String,
    #[prost(message, optional, tag = "2")]
    pub(super) security_context: Option<LinuxSandboxSecurityContext>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PodSandboxConfig {
    #[prost(message, optional, tag = "1")]
    pub(super) metadata: Option<PodSandboxMetadata>,
    #[prost(string, tag = "2")]
    pub(super) hostname: String,
    #[prost(string, tag = "3")]
    pub(super) log_directory: String,
    #[prost(map = "string, string", tag = "6")]
    pub(super) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "7")]
    pub(super) annotations: HashMap<String, String>,
    #[prost(message, optional, tag = "8")]
    pub(super) linux: Option<LinuxPodSandboxConfig>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RunPodSandboxRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) config: Option<PodSandboxConfig>,
}

/// `RunPodSandboxResponse`, and the requests that name a sandbox and nothing else.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PodSandboxId {
    #[prost(string, tag = "1")]
    pub(super) id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusRequest {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(bool, tag = "2")]
    pub(super) verbose: bool,
}

/// `PodSandboxStatusResponse` and `ContainerStatusResponse`, of which only this is read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    /// What the runtime adds on its own, as JSON.
    #[prost(map = "string, string", tag = "2")]
    pub(super) info: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(uint32, tag = "2")]
    pub(super) attempt: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ImageSpec {
    #[prost(string, tag = "1")]
    pub(super) image: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Mount {
    #[prost(string, tag = "1")]
    pub(super) container_path: String,
    #[prost(string, tag = "2")]
    pub(super) host_path: String,
    #[prost(bool, tag = "3")]
    pub(super) readonly: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LinuxContainerResources {
    #[prost(int64, tag = "4")]
    pub(super) memory_limit_in_bytes: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Capability {
    #[prost(string, repeated, tag = "1")]
    pub(super) add_capabilities: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) drop_capabilities: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LinuxContainerSecurityContext {
    #[prost(message, optional, tag = "1")]
    pub(super) capabilities: Option<Capability>,
    #[prost(bool, tag = "2")]
    pub(super) privileged: bool,
    #[prost(message, optional, tag = "3")]
    pub(super) namespace_options: Option<NamespaceOption>,
    #[prost(message, optional, tag = "5")]
    pub(super) run_as_user: Option<Int64Value>,
    #[prost(bool, tag = "7")]
    pub(super) readonly_rootfs: bool,
    #[prost(bool, tag = "11")]
    pub(super) no_new_privs: bool,
    #[prost(string, repeated, tag = "13")]
    pub(super) masked_paths: Vec<String>,
    #[prost(string, repeated, tag = "14")]
    pub(super) readonly_paths: Vec<String>,
    #[prost(message, optional, tag = "15")]
    pub(super) seccomp: Option<SecurityProfile>,
    #[prost(message, optional, tag = "16")]
    pub(super) apparmor: Option<SecurityProfile>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LinuxContainerConfig {
    #[prost(message, optional, tag = "1")]
    pub(super) resources: Option<LinuxContainerResources>,
    #[prost(message, optional, tag = "2")]
    pub(super) security_context: Option<LinuxContainerSecurityContext>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerConfig {
    #[prost(message, optional, tag = "1")]
    pub(super) metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(super) image: Option<ImageSpec>,
    #[prost(string, repeated, tag = "3")]
    pub(super) command: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub(super) args: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub(super) envs: Vec<KeyValue>,
    #[prost(message, repeated, tag = "7")]
    pub(super) mounts: Vec<Mount>,
    #[prost(map = "string, string", tag = "9")]
    pub(super) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "10")]
    pub(super) annotations: HashMap<String, String>,
    #[prost(string, tag = "11")]
    pub(super) log_path: String,
    #[prost(message, optional, tag = "15")]
    pub(super) linux: Option<LinuxContainerConfig>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CreateContainerRequest {
    #[prost(string, tag = "1")]
    pub(super) pod_sandbox_id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) config: Option<ContainerConfig>,
    #[prost(message, optional, tag = "3")]
    pub(super) sandbox_config: Option<PodSandboxConfig>,
}

/// `CreateContainerResponse`, and requests that name a container and nothing else.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerId {
    #[prost(string, tag = "1")]
    pub(super) id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecSyncRequest {
    #[prost(string, tag = "1")]
    pub(super) container_id: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) cmd: Vec<String>,
    /// Seconds.
    #[prost(int64, tag = "3")]
    pub(super) timeout: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecSyncResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) stdout: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) stderr: Vec<u8>,
    #[prost(int32, tag = "3")]
    pub(super) exit_code: i32,
}

/// What answers nothing.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Nothing {}
