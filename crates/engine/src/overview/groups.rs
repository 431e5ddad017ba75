//! Processes put into the rows of the overview.

use std::{collections::BTreeMap, sync::Arc};

use profiler_host::{
    container_names::ContainerDirectory,
    process::{Pod, PodMember, pods, program},
};
use profiler_model::{
    PodKind, PodRole, Process, Workload,
    overview::{OverviewKind, OverviewPod},
};

/// Pids that a row names; a task has no more.
pub const MOST_PIDS: usize = 64;

/// The processes of one row.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) id: String,
    pub(super) kind: OverviewKind,
    pub(super) title: String,
    pub(super) pod: Option<OverviewPod>,
    pub(super) workload: Option<String>,
    pub(super) namespace: Option<u64>,
    pub(super) members: Vec<Arc<Process>>,
    /// What a check-up is for.
    pub(super) pids: Vec<u32>,
    /// A sidecar's Envoy distinguishes what its app answers from what it asks; that of a gateway answers everything.
    pub(super) has_app: bool,
}

/// Pods as they are, and the node's processes by container, service or program.
pub(super) fn groups(processes: &[Arc<Process>], names: &ContainerDirectory) -> Vec<Group> {
    let mut found = Vec::new();
    let mut of_node: BTreeMap<String, Group> = BTreeMap::new();
    for pod in pods(processes, names) {
        match pod.kind {
            PodKind::Pod => found.push(of_pod(pod)),
            PodKind::Host | PodKind::Unknown => {
                for PodMember { process, .. } in pod.members {
                    let (kind, id, title) = place(&process, names);
                    let group = of_node.entry(id.clone()).or_insert_with(|| Group {
                        id,
                        kind,
                        title,
                        pod: None,
                        workload: None,
                        namespace: pod.namespace,
                        members: Vec::new(),
                        pids: Vec::new(),
                        has_app: false,
                    });
                    group.members.push(process);
                }
            }
        }
    }
    name_once(&mut found);
    for mut group in of_node.into_values() {
        group.pids = busiest(group.members.iter());
        found.push(group);
    }
    found
}

/// A container may make network namespaces of its own: the one with most of the pod's processes has its name.
fn name_once(pods: &mut [Group]) {
    let mut largest: BTreeMap<String, (usize, Option<u64>)> = BTreeMap::new();
    for group in pods.iter() {
        let kept = largest.entry(group.id.clone()).or_default();
        *kept = (*kept).max((group.members.len(), group.namespace));
    }
    for group in pods {
        if largest.get(&group.id).map(|(_, namespace)| *namespace) == Some(group.namespace) {
            continue;
        }
        let inode = group.namespace.unwrap_or(0);
        group.id = format!("net {inode}");
        group.title = format!("{} (net {inode})", group.title);
        group.pod = None;
    }
}

fn of_pod(pod: Pod) -> Group {
    let has_app = has_role(&pod, PodRole::App);
    let own = |member: &&PodMember| member.role != PodRole::Other;
    let members: Vec<&PodMember> = pod.members.iter().collect();
    let chosen: Vec<&PodMember> = if members.iter().any(own) {
        members.into_iter().filter(own).collect()
    } else {
        members
    };
    let pids = busiest(chosen.iter().map(|member| &member.process));
    let workload = |found: &Workload| format!("{}/{}", found.kind, found.name);
    let names = pod.names.as_deref();
    Group {
        id: names.map_or_else(
            || format!("net {}", pod.namespace.unwrap_or(0)),
            |names| format!("pod {}/{}", names.namespace, names.name),
        ),
        kind: OverviewKind::Pod,
        pod: names.map(|names| OverviewPod {
            namespace: names.namespace.clone(),
            name: names.name.clone(),
        }),
        workload: names
            .and_then(|names| names.workload.as_ref())
            .map(workload),
        namespace: pod.namespace,
        pids,
        has_app,
        title: pod.title,
        members: pod
            .members
            .into_iter()
            .map(|member| member.process)
            .collect(),
    }
}

fn has_role(pod: &Pod, role: PodRole) -> bool {
    pod.members.iter().any(|member| member.role == role)
}

/// The pids of at most [`MOST_PIDS`] processes, those that use the CPU most, in ascending order.
fn busiest<'a>(members: impl Iterator<Item = &'a Arc<Process>>) -> Vec<u32> {
    let mut members: Vec<&Arc<Process>> = members.collect();
    let share = |process: &Process| process.cpu_percent.unwrap_or(0.0);
    members.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.key.cmp(&b.key)));
    members.truncate(MOST_PIDS);
    let mut pids: Vec<u32> = members.iter().map(|process| process.key.pid).collect();
    pids.sort_unstable();
    pids
}

/// Which row a process outside of pods belongs to: kind, id and title.
fn place(process: &Process, names: &ContainerDirectory) -> (OverviewKind, String, String) {
    if let Some(container) = &process.container {
        let named = names.of(container).map(|names| names.name.clone());
        let title = named
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| container.id.chars().take(12).collect());
        return (
            OverviewKind::Container,
            format!("container {}", container.id),
            title,
        );
    }
    if let Some(unit) = unit(&process.cgroup) {
        return (
            OverviewKind::Service,
            format!("service {unit}"),
            unit.to_owned(),
        );
    }
    let name = program(process);
    (
        OverviewKind::Program,
        format!("program {name}"),
        name.to_owned(),
    )
}

/// The systemd service whose cgroup this is, or is below.
fn unit(cgroup: &str) -> Option<&str> {
    let parts = cgroup.rsplit('/');
    let mut units = parts.filter(|part| part.ends_with(".service"));
    // All of a user's programs are below his manager.
    units.find(|unit| !unit.starts_with("user@"))
}

#[cfg(test)]
mod tests {
    use profiler_model::ProcessKey;

    use super::*;

    #[test]
    fn a_namespace_within_a_pod_does_not_take_its_name() {
        let group = |namespace, processes: usize| Group {
            id: "pod shop/web-0".into(),
            kind: OverviewKind::Pod,
            title: "shop/web-0".into(),
            pod: Some(OverviewPod {
                namespace: "shop".into(),
                name: "web-0".into(),
            }),
            workload: None,
            namespace: Some(namespace),
            members: (0..processes).map(|_| process()).collect(),
            pids: Vec::new(),
            has_app: true,
        };
        let mut groups = [group(7, 1), group(8, 3), group(9, 2)];
        name_once(&mut groups);
        let ids = groups.each_ref().map(|group| group.id.as_str());
        assert_eq!(ids, ["net 7", "pod shop/web-0", "net 9"]);
        assert_eq!(groups[0].title, "shop/web-0 (net 7)");
        assert!(groups[0].pod.is_none() && groups[1].pod.is_some());
    }

    fn process() -> Arc<Process> {
        Arc::new(Process {
            key: ProcessKey {
                pid: 1,
                start_ticks: 1,
            },
            parent_pid: 1,
            comm: "web".into(),
            exe: None,
            cmdline: Vec::new(),
            uid: 0,
            user: None,
            cgroup: "/".into(),
            container: None,
            network_namespace: None,
            threads: 1,
            rss_bytes: 0,
            cpu_percent: None,
            kernel_thread: false,
        })
    }

    #[test]
    fn a_service_is_the_innermost_unit_of_the_cgroup() {
        for (cgroup, expected) in [
            ("/system.slice/nginx.service", Some("nginx.service")),
            ("/system.slice/nginx.service/workers", Some("nginx.service")),
            (
                "/user.slice/user-0.slice/user@0.service/app.slice/ssh.service",
                Some("ssh.service"),
            ),
            ("/user.slice/user-0.slice/user@0.service/init.scope", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(unit(cgroup), expected, "{cgroup}");
        }
    }
}
