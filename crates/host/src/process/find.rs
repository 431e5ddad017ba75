//! Processes by name and containers by id.

use std::collections::{BTreeSet, HashMap};

use profiler_model::{ContainerNames, PodSelector, Process};

use super::{
    containers::{PREFIX_DIGITS, cgroup_of, is_id_prefix, pod_of},
    table::ProcessTable,
};
use crate::container_names::{LabelError, LabelSelector, SourceStatus};

/// Longest `comm` of a process, in bytes.
const COMM_BYTES: usize = 15;

/// A container found by [`ProcessTable::find_container`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerMatch {
    pub id: String,
    pub runtime: String,
    /// The container's cgroups in the container hierarchy (one, unless a runtime uses several).
    pub cgroups: Vec<String>,
    /// Its processes, ordered.
    pub pids: Vec<u32>,
}

/// Why no container was found.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindContainerError {
    #[error("container id {prefix:?} must be at least {PREFIX_DIGITS} hexadecimal digits")]
    InvalidPrefix { prefix: String },
    #[error("no container matches {prefix:?}")]
    NotFound { prefix: String },
    #[error("container prefix {prefix:?} is ambiguous: {matches} containers match")]
    Ambiguous { prefix: String, matches: usize },
}

/// What a [`PodSelector`] means now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodMatch {
    /// Cgroups of the pods, or of the containers where only some are wanted, in the container hierarchy.
    pub cgroups: BTreeSet<String>,
    /// Processes in them, ordered.
    pub pids: BTreeSet<u32>,
    /// What was found, as `NAMESPACE/POD/CONTAINER`.
    pub titles: BTreeSet<String>,
}

/// Why a [`PodSelector`] means nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindPodError {
    #[error(transparent)]
    Labels(#[from] LabelError),
    #[error("no running container of this node matches {selector}; {sources}")]
    NotFound { selector: String, sources: String },
    #[error("pods of several namespaces are called {name:?}: {namespaces}; give the namespace too")]
    Ambiguous { name: String, namespaces: String },
}

/// The cgroup of a process's container.
fn own_cgroup(process: &Process) -> Option<&str> {
    cgroup_of(&process.cgroup, &process.container.as_ref()?.id)
}

impl ProcessTable {
    /// The running containers that a selector means.
    pub fn find_pods(&self, selector: &PodSelector) -> Result<PodMatch, FindPodError> {
        let labels = selector.labels.as_deref().map(LabelSelector::parse);
        let labels = labels.transpose()?;
        let mut found = PodMatch::default();
        let mut namespaces = BTreeSet::new();
        for process in self.snapshot() {
            let Some(names) = self.names_of(&process) else {
                continue;
            };
            if !is_meant(&names, selector, labels.as_ref()) {
                continue;
            }
            // A whole pod is its cgroup, so that containers that start later belong to it.
            let Some(own) = own_cgroup(&process) else {
                continue;
            };
            let pod = pod_of(own).filter(|_| selector.container.is_none());
            let cgroup = pod.map_or(own, |(_, cgroup)| cgroup);
            found.cgroups.insert(cgroup.to_owned());
            found.pids.insert(process.key.pid);
            found.titles.insert(names.title());
            namespaces.extend(names.pod.as_ref().map(|pod| pod.namespace.clone()));
        }
        if let (Some(name), None, 2..) = (&selector.name, &selector.namespace, namespaces.len()) {
            let namespaces: Vec<String> = namespaces.into_iter().collect();
            return Err(FindPodError::Ambiguous {
                name: name.clone(),
                namespaces: namespaces.join(", "),
            });
        }
        if found.cgroups.is_empty() {
            return Err(FindPodError::NotFound {
                selector: selector.to_string(),
                sources: described(&self.names().sources()),
            });
        }
        Ok(found)
    }

    /// What the container of a process is called.
    pub fn names_of(&self, process: &Process) -> Option<std::sync::Arc<ContainerNames>> {
        self.names().of(process.container.as_ref()?)
    }

    /// Pids of the processes with this `comm`, ordered. Longer names are cut as the kernel does.
    pub fn pids_named(&self, comm: &str) -> Vec<u32> {
        let cut = comm.as_bytes().get(..COMM_BYTES).unwrap_or(comm.as_bytes());
        let entries = self.read_entries();
        let named = entries
            .values()
            .filter(|entry| entry.process.comm.as_bytes() == cut);
        let mut pids: Vec<u32> = named.map(|entry| entry.process.key.pid).collect();
        pids.sort_unstable();
        pids
    }

    /// The container whose id is, or begins with, `prefix`.
    pub fn find_container(&self, prefix: &str) -> Result<ContainerMatch, FindContainerError> {
        let prefix = prefix.to_ascii_lowercase();
        if !is_id_prefix(&prefix) {
            return Err(FindContainerError::InvalidPrefix { prefix });
        }
        let mut found: HashMap<String, ContainerMatch> = HashMap::new();
        for process in self.snapshot() {
            let (Some(container), Some(own)) = (&process.container, own_cgroup(&process)) else {
                continue;
            };
            if !container.id.starts_with(&prefix) {
                continue;
            }
            let id = container.id.clone();
            let runtime = container.runtime.clone();
            let entry = found.entry(id.clone()).or_insert_with(|| ContainerMatch {
                id,
                runtime,
                cgroups: Vec::new(),
                pids: Vec::new(),
            });
            if !entry.cgroups.iter().any(|cgroup| cgroup == own) {
                entry.cgroups.push(own.to_owned());
            }
            entry.pids.push(process.key.pid);
        }
        if let Some(exact) = found.remove(&prefix) {
            return Ok(exact);
        }
        match found.len() {
            0 => Err(FindContainerError::NotFound { prefix }),
            1 => found
                .into_values()
                .next()
                .ok_or_else(|| FindContainerError::NotFound {
                    prefix: prefix.clone(),
                }),
            matches => Err(FindContainerError::Ambiguous { prefix, matches }),
        }
    }
}

fn is_meant(
    names: &ContainerNames,
    selector: &PodSelector,
    labels: Option<&LabelSelector>,
) -> bool {
    let PodSelector {
        namespace,
        name,
        labels: _,
        container,
    } = selector;
    let pod = names.pod.as_deref();
    let is = |wanted: &Option<String>, given: Option<&String>| {
        wanted.as_ref().is_none_or(|wanted| given == Some(wanted))
    };
    is(namespace, pod.map(|pod| &pod.namespace))
        && is(name, pod.map(|pod| &pod.name))
        && is(container, Some(&names.name))
        && labels.is_none_or(|labels| labels.matches(names.labels()))
}

/// The sources that name containers, and those that fail, with the reason.
fn described(sources: &[SourceStatus]) -> String {
    if sources.is_empty() {
        return "no name source has been asked yet".to_owned();
    }
    let each = sources.iter().map(|status| {
        let state = match status.state.reason() {
            Some(reason) => format!("{} ({reason})", status.state.name()),
            None => status.state.name().to_owned(),
        };
        format!(
            "{}: {state}, {} containers named",
            status.source.name(),
            status.containers
        )
    });
    each.collect::<Vec<_>>().join("; ")
}
