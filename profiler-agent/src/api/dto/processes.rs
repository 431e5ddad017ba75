//! Processes and containers.

use profiler_host::{container_names::ContainerDirectory, process::program};
use profiler_model::{self as model, ThreadInfo};
use serde::Serialize;
use utoipa::ToSchema;

use super::containers::{ContainerNames, NameSource};
use crate::{api::mask::masked, config::ArgumentPolicy};

/// A process of the node.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Process {
    /// `PID-STARTTICKS`: unique, unlike the pid alone.
    id: String,
    pid: u32,
    parent_pid: u32,
    comm: String,
    /// What it calls itself, completed from the name of its file where the kernel cut it; of proxies and what serves
    /// them the name of the file.
    program: String,
    #[schema(required)]
    exe: Option<String>,
    /// The program, then `***` for each argument unless the agent runs with `--show-arguments`.
    arguments: Vec<String>,
    uid: u32,
    #[schema(required)]
    user: Option<String>,
    cgroup: String,
    #[schema(required)]
    container: Option<Container>,
    /// Inode number of the network namespace.
    #[schema(required)]
    network_namespace: Option<u64>,
    threads: u32,
    rss_bytes: u64,
    /// Share of one CPU (two busy threads: 200); null until there are two readings.
    #[schema(required)]
    cpu_percent: Option<f64>,
    kernel_thread: bool,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
struct Container {
    id: String,
    runtime: String,
    /// Unique id of its Kubernetes pod, where its cgroup has it.
    #[schema(required)]
    pod_uid: Option<String>,
    /// Null when nobody has named it.
    #[schema(required)]
    names: Option<ContainerNames>,
}

impl Process {
    pub fn new(
        process: &model::Process,
        arguments: ArgumentPolicy,
        names: &ContainerDirectory,
    ) -> Self {
        let model::Process {
            key,
            parent_pid,
            comm,
            exe,
            cmdline,
            uid,
            user,
            cgroup,
            container,
            network_namespace,
            threads,
            rss_bytes,
            cpu_percent,
            kernel_thread,
        } = process;
        Self {
            id: key.to_string(),
            pid: key.pid,
            parent_pid: *parent_pid,
            comm: comm.clone(),
            program: program(process).to_owned(),
            exe: exe.clone(),
            arguments: masked(cmdline, arguments),
            uid: *uid,
            user: user.clone(),
            cgroup: cgroup.clone(),
            container: container.as_ref().map(|container| Container {
                id: container.id.clone(),
                runtime: container.runtime.clone(),
                pod_uid: container.pod_uid.clone(),
                names: names.of(container).map(|names| names.as_ref().into()),
            }),
            network_namespace: *network_namespace,
            threads: *threads,
            rss_bytes: *rss_bytes,
            cpu_percent: *cpu_percent,
            kernel_thread: *kernel_thread,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ProcessList {
    pub items: Vec<Process>,
    /// Processes that match, before `limit`.
    pub total: usize,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ProcessDetail {
    #[serde(flatten)]
    pub(in crate::api) process: Process,
    pub(in crate::api) thread_list: Vec<ProcessThread>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ProcessThread {
    tid: u32,
    name: String,
    /// User plus system time so far.
    cpu_time_ns: u64,
}

impl From<ThreadInfo> for ProcessThread {
    fn from(thread: ThreadInfo) -> Self {
        let ThreadInfo {
            tid,
            name,
            cpu_time_ns,
        } = thread;
        Self {
            tid,
            name,
            cpu_time_ns,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ContainerSummary {
    pub(in crate::api) id: String,
    pub(in crate::api) runtime: String,
    pub(in crate::api) cgroup: String,
    /// Null when nobody has named it.
    #[schema(required)]
    pub(in crate::api) names: Option<ContainerNames>,
    pub(in crate::api) pids: Vec<u32>,
    /// Sum over the container's processes; null until one has two readings.
    #[schema(required)]
    pub(in crate::api) cpu_percent: Option<f64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ContainerList {
    pub(in crate::api) items: Vec<ContainerSummary>,
    pub(in crate::api) total: usize,
    /// Who names them.
    pub(in crate::api) name_sources: Vec<NameSource>,
}
