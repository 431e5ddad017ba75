//! Processes put into pods, and what each is in its pod. A pod is a network namespace; whoever names containers
//! names it.
//!
//! Roles are told by Kubernetes where it says so, else from names alone, with the reason: a reader may know better.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use profiler_model::{
    COMM_BYTES, ContainerNames, ContainerRole, PodKind, PodNames, PodRole, Process, ProgramKind,
};

use crate::container_names::ContainerDirectory;

/// `NET_NS_INIT_INO` in `include/uapi/linux/nsfs.h`, since Linux 6.18.
const INITIAL_NAMESPACE: u64 = 0xEFFF_FFF9;
/// Names in a title; more are counted.
const TITLE_NAMES: usize = 3;
/// Below this many cores a share is noise of the clock's ticks.
const IDLE_CORES: f64 = 0.005;

#[derive(Clone, Debug)]
pub struct PodMember {
    pub process: Arc<Process>,
    pub role: PodRole,
    /// Why it has this role.
    pub reason: String,
}

/// CPU in cores; `None` before there is any reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodCpu {
    pub total: Option<f64>,
    pub sidecar: Option<f64>,
    /// Processes without a reading: their time is not in the sums.
    pub unread: usize,
}

#[derive(Clone, Debug)]
pub struct Pod {
    pub kind: PodKind,
    pub namespace: Option<u64>,
    /// `NAMESPACE/NAME` where its containers are named as those of one pod, else made of its programs' names;
    /// untrusted.
    pub title: String,
    /// What it is called, and what it belongs to.
    pub names: Option<Arc<PodNames>>,
    pub members: Vec<PodMember>,
    pub cpu: PodCpu,
}

/// All pods, busiest first; then the node's own namespace, then processes of which it is not known.
pub fn pods(processes: &[Arc<Process>], names: &ContainerDirectory) -> Vec<Pod> {
    let host = host_namespace(processes);
    let mut by_namespace: BTreeMap<Option<u64>, Vec<Arc<Process>>> = BTreeMap::new();
    for process in processes.iter().filter(|process| !process.kernel_thread) {
        by_namespace
            .entry(process.network_namespace)
            .or_default()
            .push(Arc::clone(process));
    }
    let mut pods: Vec<Pod> = by_namespace
        .into_iter()
        .map(|(namespace, members)| {
            let kind = match namespace {
                None => PodKind::Unknown,
                Some(_) if namespace == host => PodKind::Host,
                Some(_) => PodKind::Pod,
            };
            pod(kind, namespace, members, names)
        })
        .collect();
    let busy = |pod: &Pod| pod.cpu.total.unwrap_or(-1.0);
    pods.sort_by(|a, b| {
        a.kind
            .cmp(&b.kind)
            .then(busy(b).total_cmp(&busy(a)))
            .then(a.namespace.cmp(&b.namespace))
    });
    pods
}

/// The node's own: that of the first process, or of the kernel's threads; where neither can be read, the inode
/// number that newer kernels give it.
fn host_namespace(processes: &[Arc<Process>]) -> Option<u64> {
    let of = |is_wanted: fn(&Process) -> bool| {
        processes
            .iter()
            .filter(|process| is_wanted(process))
            .find_map(|process| process.network_namespace)
    };
    of(|process| process.key.pid == 1)
        .or_else(|| of(|process| process.kernel_thread))
        .or(Some(INITIAL_NAMESPACE))
}

impl Pod {
    /// The sidecar's share of its pod, as a sentence; has the reason where it is unknown.
    pub fn sidecar_line(&self) -> String {
        let PodCpu {
            total,
            sidecar,
            unread,
        } = self.cpu;
        if self.kind != PodKind::Pod {
            return total.map_or_else(
                || "CPU not known yet".to_owned(),
                |total| format!("{total:.2} cores"),
            );
        }
        let missing = match unread {
            0 => String::new(),
            unread => format!(", without {unread} not read yet"),
        };
        if !self
            .members
            .iter()
            .any(|member| member.role == PodRole::Sidecar)
        {
            return total.map_or_else(
                || "no sidecar; CPU not known yet".to_owned(),
                |total| format!("no sidecar; {total:.2} cores{missing}"),
            );
        }
        let (Some(total), Some(sidecar)) = (total, sidecar) else {
            return "sidecar's share unknown: no CPU reading yet".to_owned();
        };
        let of = format!("sidecar uses {sidecar:.2} of {total:.2} cores");
        if total < IDLE_CORES {
            return format!("{of}{missing}: the pod is idle");
        }
        format!("{of} ({:.0} %){missing}", 100.0 * sidecar / total)
    }
}

fn pod(
    kind: PodKind,
    namespace: Option<u64>,
    processes: Vec<Arc<Process>>,
    directory: &ContainerDirectory,
) -> Pod {
    let names = (kind == PodKind::Pod)
        .then(|| names_of_pod(&processes, directory))
        .flatten();
    let members = match kind {
        PodKind::Pod => members_of_pod(&processes, directory),
        PodKind::Host => elsewhere(
            processes,
            "it is in the network namespace of the node, not in a pod",
        ),
        PodKind::Unknown => elsewhere(
            processes,
            "its network namespace cannot be read: it has just ended, or the agent may not look",
        ),
    };
    Pod {
        kind,
        namespace,
        title: names.as_ref().map_or_else(
            || title(kind, &members),
            |pod| format!("{}/{}", pod.namespace, pod.name),
        ),
        names,
        cpu: cpu(&members),
        members,
    }
}

/// The pod that all named containers belong to; none where they belong to several.
fn names_of_pod(
    processes: &[Arc<Process>],
    directory: &ContainerDirectory,
) -> Option<Arc<PodNames>> {
    let mut pods = processes
        .iter()
        .filter_map(|process| directory.of(process.container.as_ref()?)?.pod.clone());
    let first = pods.next()?;
    pods.all(|other| other.uid == first.uid).then_some(first)
}

fn elsewhere(processes: Vec<Arc<Process>>, reason: &str) -> Vec<PodMember> {
    processes
        .into_iter()
        .map(|process| PodMember {
            process,
            role: PodRole::Other,
            reason: reason.to_owned(),
        })
        .collect()
}

fn members_of_pod(processes: &[Arc<Process>], directory: &ContainerDirectory) -> Vec<PodMember> {
    let named = |process: &Process| directory.of(process.container.as_ref()?);
    let container = |process: &Process| process.container.as_ref().map(|found| found.id.clone());
    let all: BTreeSet<Option<String>> = processes.iter().map(|one| container(one)).collect();
    // A single container for everything does not show which processes belong together.
    let served: BTreeSet<String> = if all.len() < 2 {
        BTreeSet::new()
    } else {
        processes
            .iter()
            .filter(|one| is_a(one, ProgramKind::Proxy) || is_a(one, ProgramKind::ProxyAgent))
            .filter_map(|one| container(one))
            .collect()
    };
    let is_beside = |process: &Process| {
        is_a(process, ProgramKind::ProxyAgent)
            || container(process).is_some_and(|id| served.contains(&id))
    };
    let proxy = processes
        .iter()
        .find(|one| is_a(one, ProgramKind::Proxy))
        .map(|one| program(one).to_owned());
    let app = processes
        .iter()
        .find(|one| {
            !is_a(one, ProgramKind::Proxy)
                && !is_a(one, ProgramKind::Keeper)
                && !is_beside(one)
                && of_kubernetes(named(one).as_deref()).is_none()
        })
        .map(|one| program(one).to_owned());
    let role = |process: &Process| {
        if !is_a(process, ProgramKind::Keeper)
            && let Some(told) = of_kubernetes(named(process).as_deref())
        {
            return told;
        }
        role_of(
            process,
            is_beside(process),
            proxy.as_deref(),
            app.as_deref(),
        )
    };
    processes
        .iter()
        .map(|process| {
            let (role, reason) = role(process);
            PodMember {
                process: Arc::clone(process),
                role,
                reason,
            }
        })
        .collect()
}

/// What Kubernetes says that a container is for, where that is not the pod's own work.
fn of_kubernetes(names: Option<&ContainerNames>) -> Option<(PodRole, String)> {
    let names = names?;
    let name = &names.name;
    match names.role {
        ContainerRole::Sidecar => Some((
            PodRole::Sidecar,
            format!("Kubernetes runs its container {name} as a sidecar"),
        )),
        ContainerRole::Init => Some((
            PodRole::Other,
            format!("its container {name} runs before those of the pod"),
        )),
        ContainerRole::Ephemeral => Some((
            PodRole::Other,
            format!("its container {name} was added to the running pod"),
        )),
        ContainerRole::Main | ContainerRole::Sandbox | ContainerRole::Unknown => None,
    }
}

fn role_of(
    process: &Process,
    is_beside: bool,
    proxy: Option<&str>,
    app: Option<&str>,
) -> (PodRole, String) {
    let name = program(process);
    if is_a(process, ProgramKind::Keeper) {
        return (
            PodRole::Other,
            format!("{name} holds the pod or its container together"),
        );
    }
    if is_a(process, ProgramKind::Proxy) {
        return match app {
            None => (
                PodRole::Other,
                format!("{name} is a proxy without an application in its pod: a gateway"),
            ),
            Some(app) => (
                PodRole::Sidecar,
                format!("{name} is a proxy and shares the pod with {app}"),
            ),
        };
    }
    let is_agent = is_a(process, ProgramKind::ProxyAgent);
    match proxy {
        Some(proxy) if is_beside => {
            let role = if app.is_some() {
                PodRole::Sidecar
            } else {
                PodRole::Other
            };
            let reason = if is_agent {
                format!("{name} starts and configures the proxy {proxy}")
            } else {
                format!("it is in the container of the proxy {proxy}")
            };
            (role, reason)
        }
        None if is_agent => (
            PodRole::Other,
            format!("{name} belongs to a proxy, which is not running"),
        ),
        None => (
            PodRole::App,
            "the pod has no proxy that is known here".to_owned(),
        ),
        Some(proxy) => (
            PodRole::App,
            format!("it is not a proxy and shares the pod with {proxy}"),
        ),
    }
}

/// What the process calls itself: its file may be a shared one, or an interpreter. A name that the kernel
/// cut is completed from the file; programs with a known role keep the file's name.
pub fn program(process: &Process) -> &str {
    let comm = process.comm.as_str();
    let is_known = |file: &str| ProgramKind::of(file).is_some();
    let is_cut = |file: &str| comm.len() == COMM_BYTES && file.starts_with(comm);
    file_name(process)
        .filter(|file| comm.is_empty() || is_cut(file) || is_known(file))
        .unwrap_or(comm)
}

/// Name of the file that it executes.
fn file_name(process: &Process) -> Option<&str> {
    let path = process.exe.as_deref()?;
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    Some(name.strip_suffix(" (deleted)").unwrap_or(name))
}

fn is_a(process: &Process, kind: ProgramKind) -> bool {
    ProgramKind::of(program(process)) == Some(kind)
        || file_name(process).and_then(ProgramKind::of) == Some(kind)
}

fn title(kind: PodKind, members: &[PodMember]) -> String {
    match kind {
        PodKind::Host => return "Host processes".to_owned(),
        PodKind::Unknown => return "Network namespace not known".to_owned(),
        PodKind::Pod => {}
    }
    let mut sorted: Vec<&PodMember> = members.iter().collect();
    sorted.sort_by_key(|member| (member.role, member.process.key.pid));
    let mut names: Vec<&str> = Vec::new();
    for member in sorted {
        let name = program(&member.process);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let rest = names.len().saturating_sub(TITLE_NAMES);
    names.truncate(TITLE_NAMES);
    let shown = names.join(" + ");
    match rest {
        0 => shown,
        rest => format!("{shown} + {rest} more"),
    }
}

fn cpu(members: &[PodMember]) -> PodCpu {
    let sum = |wanted: fn(PodRole) -> bool| {
        members
            .iter()
            .filter(|member| wanted(member.role))
            .filter_map(|member| member.process.cpu_percent)
            .fold(None, |sum: Option<f64>, share| {
                Some(sum.unwrap_or(0.0) + share / 100.0)
            })
    };
    PodCpu {
        total: sum(|_| true),
        sidecar: sum(|role| role == PodRole::Sidecar),
        unread: members
            .iter()
            .filter(|member| member.process.cpu_percent.is_none())
            .count(),
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::{Container, NamedBy, ProcessKey};
    use serde_json::{Value, json};

    use super::*;

    fn process(given: &Value) -> Arc<Process> {
        let text = |name: &str| given[name].as_str().map(str::to_owned);
        Arc::new(Process {
            key: ProcessKey {
                pid: u32::try_from(given["pid"].as_u64().unwrap()).unwrap(),
                start_ticks: 1,
            },
            parent_pid: 1,
            comm: text("comm").unwrap(),
            exe: text("exe"),
            cmdline: Vec::new(),
            uid: 0,
            user: None,
            cgroup: "/".into(),
            container: text("container").map(|id| Container {
                id,
                runtime: "containerd".into(),
                pod_uid: None,
            }),
            network_namespace: given["network_namespace"].as_u64(),
            threads: 1,
            rss_bytes: 0,
            cpu_percent: given["cpu_percent"].as_f64(),
            kernel_thread: given["kernel_thread"].as_bool().unwrap(),
        })
    }

    /// What the processes' containers are called.
    fn directory(processes: &Value) -> ContainerDirectory {
        let directory = ContainerDirectory::default();
        let named = processes.as_array().unwrap().iter().filter_map(|process| {
            let names = process["names"].as_object()?;
            let text = |name: &str| names[name].as_str().unwrap().to_owned();
            let role = match names["role"].as_str().unwrap() {
                "sidecar" => ContainerRole::Sidecar,
                "init" => ContainerRole::Init,
                _ => ContainerRole::Main,
            };
            let pod = PodNames {
                namespace: text("namespace"),
                name: text("pod"),
                uid: text("pod"),
                labels: BTreeMap::new(),
                workload: None,
            };
            let names = ContainerNames {
                name: text("name"),
                role,
                image: None,
                pod: Some(Arc::new(pod)),
                labels: BTreeMap::new(),
                workload: None,
                named_by: NamedBy::Kubernetes,
            };
            Some((process["container"].as_str()?.to_owned(), names))
        });
        directory.restore(named.collect());
        directory
    }

    #[test]
    fn processes_are_put_into_pods_with_their_roles() {
        let text = include_str!("../../../../tests/fixtures/pods/cases.json");
        let cases: Vec<Value> = serde_json::from_str(text).unwrap();
        assert!(cases.len() >= 5);
        for case in cases {
            let given: Vec<_> = case["processes"]
                .as_array()
                .unwrap()
                .iter()
                .map(process)
                .collect();
            let directory = directory(&case["processes"]);
            let found: Vec<Value> = pods(&given, &directory)
                .iter()
                .map(|pod| {
                    let members: Vec<Value> = pod
                        .members
                        .iter()
                        .map(|member| {
                            json!([member.process.key.pid, member.role.name(), member.reason])
                        })
                        .collect();
                    json!({
                        "kind": pod.kind, "namespace": pod.namespace, "title": pod.title,
                        "sidecar": pod.sidecar_line(), "members": members,
                    })
                })
                .collect();
            assert_eq!(Value::from(found), case["pods"], "{}", case["name"]);
        }
    }
}
