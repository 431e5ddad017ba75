//! Pods and what is in them.

use std::collections::BTreeMap;

use profiler_host::process::{self, PodCpu, PodMember, program};
use profiler_model::{PodKind, PodRole};
use serde::Serialize;
use utoipa::ToSchema;

use super::containers::{PodNames, Workload};

/// What is read anew of a pod, every two seconds by the event `processes`.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct PodReading {
    kind: PodKind,
    /// Inode number of the network namespace.
    #[schema(required)]
    network_namespace: Option<u64>,
    /// What the sidecar takes of its pod, or why that cannot be told.
    summary: String,
    /// Shares of one CPU; null before there is any reading.
    #[schema(required)]
    cpu_percent: Option<f64>,
    #[schema(required)]
    sidecar_cpu_percent: Option<f64>,
    /// Processes that have no reading yet and are not in the sums.
    without_reading: usize,
    rss_bytes: u64,
}

/// A network namespace with its processes.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "as in names of containers")]
pub struct Pod {
    #[serde(flatten)]
    reading: PodReading,
    /// `NAMESPACE/NAME` where its containers are named as those of one pod, else made of the names of its programs.
    title: String,
    /// What it is called; null where nobody has named it.
    #[schema(required)]
    pod: Option<PodNames>,
    /// The pod's labels.
    labels: BTreeMap<String, String>,
    /// What manages it.
    #[schema(required)]
    workload: Option<Workload>,
    processes: Vec<PodProcess>,
}

#[derive(Debug, Serialize, ToSchema)]
struct PodProcess {
    id: String,
    pid: u32,
    /// What it calls itself, or the name of its file.
    program: String,
    comm: String,
    #[schema(required)]
    container: Option<String>,
    role: PodRole,
    /// Why it has this role: Kubernetes says so, or names do.
    reason: String,
    #[schema(required)]
    cpu_percent: Option<f64>,
    rss_bytes: u64,
    threads: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PodList {
    pub items: Vec<Pod>,
    pub total: usize,
}

impl PodList {
    pub fn new(pods: &[process::Pod]) -> Self {
        Self {
            items: pods.iter().map(Into::into).collect(),
            total: pods.len(),
        }
    }
}

impl From<&process::Pod> for PodReading {
    fn from(pod: &process::Pod) -> Self {
        let PodCpu {
            total,
            sidecar,
            unread,
        } = pod.cpu;
        let percent = |cores: Option<f64>| cores.map(|cores| cores * 100.0);
        Self {
            kind: pod.kind,
            network_namespace: pod.namespace,
            summary: pod.sidecar_line(),
            cpu_percent: percent(total),
            sidecar_cpu_percent: percent(sidecar),
            without_reading: unread,
            rss_bytes: pod
                .members
                .iter()
                .map(|member| member.process.rss_bytes)
                .sum(),
        }
    }
}

impl From<&process::Pod> for Pod {
    fn from(pod: &process::Pod) -> Self {
        Self {
            reading: pod.into(),
            title: pod.title.clone(),
            pod: pod.names.as_deref().map(Into::into),
            labels: pod
                .names
                .as_ref()
                .map_or_else(BTreeMap::new, |pod| pod.labels.clone()),
            workload: pod
                .names
                .as_ref()
                .and_then(|pod| pod.workload.as_ref())
                .map(Into::into),
            processes: pod.members.iter().map(member).collect(),
        }
    }
}

fn member(member: &PodMember) -> PodProcess {
    let PodMember {
        process,
        role,
        reason,
    } = member;
    PodProcess {
        id: process.key.to_string(),
        pid: process.key.pid,
        program: program(process).to_owned(),
        comm: process.comm.clone(),
        container: process.container.as_ref().map(|found| found.id.clone()),
        role: *role,
        reason: reason.clone(),
        cpu_percent: process.cpu_percent,
        rss_bytes: process.rss_bytes,
        threads: process.threads,
    }
}
