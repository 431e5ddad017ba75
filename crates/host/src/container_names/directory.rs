//! What is known of containers by id, also of those that have ended: results outlive them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use profiler_model::{Container, ContainerNames, ContainerRole, NamedBy, PodNames};
use tokio::sync::watch;

/// Containers that are remembered, with those that have ended.
const MOST_CONTAINERS: usize = 16_384;
/// Pods likewise.
const MOST_PODS: usize = 4096;

/// What a source of names does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// Not asked, and why.
    Off {
        reason: String,
    },
    Connecting,
    Connected,
    /// It failed and is asked again after a pause.
    Waiting {
        reason: String,
    },
}

impl SourceState {
    /// Name in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Off { .. } => "off",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Waiting { .. } => "waiting",
        }
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Off { reason } | Self::Waiting { reason } => Some(reason),
            Self::Connecting | Self::Connected => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    pub source: NamedBy,
    pub state: SourceState,
    /// The endpoint that it asks.
    pub endpoint: Option<String>,
    /// Containers that exist and have their names from it.
    pub containers: usize,
}

/// Shared handle. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ContainerDirectory {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    known: RwLock<Known>,
    version: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    containers: HashMap<String, Entry<ContainerNames>>,
    pods: HashMap<String, Entry<PodNames>>,
    sources: BTreeMap<NamedBy, (SourceState, Option<String>)>,
    /// Counts changes, so that it is known what was seen last.
    moment: u64,
}

#[derive(Debug)]
struct Entry<T> {
    names: Arc<T>,
    by: NamedBy,
    exists: bool,
    seen: u64,
}

/// What a source reports about one container.
pub(crate) type Named = (String, ContainerNames);

impl Default for ContainerDirectory {
    fn default() -> Self {
        let (version, _) = watch::channel(0);
        Self {
            shared: Arc::new(Shared {
                known: RwLock::default(),
                version,
            }),
        }
    }
}

impl ContainerDirectory {
    /// What this id stands for.
    pub fn by_id(&self, id: &str) -> Option<Arc<ContainerNames>> {
        let known = self.read();
        known
            .containers
            .get(id)
            .map(|entry| Arc::clone(&entry.names))
    }

    /// What a container is called. One that is only known to be in a pod has that pod and no name.
    pub fn of(&self, container: &Container) -> Option<Arc<ContainerNames>> {
        if let Some(names) = self.by_id(&container.id) {
            return Some(names);
        }
        let uid = container.pod_uid.as_ref()?;
        let known = self.read();
        let pod = known.pods.get(uid)?;
        Some(Arc::new(ContainerNames {
            name: String::new(),
            role: ContainerRole::Unknown,
            image: None,
            pod: Some(Arc::clone(&pod.names)),
            labels: BTreeMap::new(),
            workload: None,
            named_by: pod.by,
        }))
    }

    /// Whether the container itself has a name, not only its pod.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.read().containers.contains_key(id)
    }

    /// The states of all sources, the most trustworthy first.
    pub fn sources(&self) -> Vec<SourceStatus> {
        let known = self.read();
        known
            .sources
            .iter()
            .map(|(&source, (state, endpoint))| SourceStatus {
                source,
                state: state.clone(),
                endpoint: endpoint.clone(),
                containers: known
                    .containers
                    .values()
                    .filter(|entry| entry.by == source && entry.exists)
                    .count(),
            })
            .collect()
    }

    /// Changes whenever a name or a source's state does.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.version.subscribe()
    }

    pub(crate) fn set_state(&self, source: NamedBy, state: SourceState, endpoint: Option<&str>) {
        let mut known = self.write();
        let endpoint = endpoint.map(str::to_owned);
        let old = known.sources.get(&source);
        if old.is_some_and(|old| old.0 == state && old.1 == endpoint) {
            return;
        }
        match &state {
            SourceState::Waiting { reason } => {
                tracing::warn!(source = source.name(), reason, "names of containers");
            }
            other => tracing::info!(
                source = source.name(),
                state = other.name(),
                reason = other.reason(),
                "names of containers"
            ),
        }
        known.sources.insert(source, (state, endpoint));
        drop(known);
        self.changed();
    }

    /// Adds what a source says; with `is_all` whatever it does not mention has ended.
    pub(crate) fn learn(&self, by: NamedBy, pods: Vec<PodNames>, named: Vec<Named>, is_all: bool) {
        let mut known = self.write();
        known.moment += 1;
        let moment = known.moment;
        if is_all {
            for entry in known.containers.values_mut() {
                entry.exists &= entry.by != by;
            }
            for entry in known.pods.values_mut() {
                entry.exists &= entry.by != by;
            }
        }
        for pod in pods {
            put(&mut known.pods, pod.uid.clone(), pod, by, moment);
        }
        for (id, names) in named {
            put(&mut known.containers, id, names, by, moment);
        }
        forget(&mut known.containers, MOST_CONTAINERS);
        forget(&mut known.pods, MOST_PODS);
        drop(known);
        self.changed();
    }

    /// The pod has ended. Its names are kept.
    pub(crate) fn pod_ended(&self, uid: &str) {
        let mut known = self.write();
        if let Some(pod) = known.pods.get_mut(uid) {
            pod.exists = false;
        }
        for entry in known.containers.values_mut() {
            let pod = entry.names.pod.as_ref();
            entry.exists &= pod.is_none_or(|pod| pod.uid != uid);
        }
        drop(known);
        self.changed();
    }

    /// What is to be kept for the next start of the agent, by id.
    pub fn saved(&self) -> Vec<(String, Arc<ContainerNames>)> {
        let known = self.read();
        let mut all: Vec<_> = known
            .containers
            .iter()
            .map(|(id, entry)| (id.clone(), Arc::clone(&entry.names)))
            .collect();
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Takes back what [`Self::saved`] gave, as names of containers that may have ended.
    pub fn restore(&self, saved: Vec<(String, ContainerNames)>) {
        let mut known = self.write();
        for (id, names) in saved.into_iter().take(MOST_CONTAINERS) {
            let entry = Entry {
                by: names.named_by,
                names: Arc::new(names),
                exists: false,
                seen: 0,
            };
            known.containers.entry(id).or_insert(entry);
        }
    }

    fn changed(&self) {
        self.shared.version.send_modify(|version| *version += 1);
    }

    // A poisoned lock only says that another thread panicked; entries are replaced whole.
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.shared.known.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.shared.known.write()
    }
}

/// Names from a more trustworthy source stay as long as their container exists.
fn put<T: PartialEq>(
    entries: &mut HashMap<String, Entry<T>>,
    key: String,
    names: T,
    by: NamedBy,
    moment: u64,
) {
    let old = entries.get_mut(&key);
    match old {
        Some(old) if old.by < by && old.exists => {}
        Some(old) if *old.names == names => {
            old.by = by;
            old.exists = true;
            old.seen = moment;
        }
        _ => {
            let entry = Entry {
                names: Arc::new(names),
                by,
                exists: true,
                seen: moment,
            };
            entries.insert(key, entry);
        }
    }
}

/// Drops what ended longest ago, down to nine tenths of the limit, so that this is rare.
fn forget<T>(entries: &mut HashMap<String, Entry<T>>, most: usize) {
    if entries.len() <= most {
        return;
    }
    let mut order: Vec<(bool, u64, String)> = entries
        .iter()
        .map(|(key, entry)| (entry.exists, entry.seen, key.clone()))
        .collect();
    order.sort_unstable();
    for (_, _, key) in order.iter().take(entries.len() - most / 10 * 9) {
        entries.remove(key);
    }
    tracing::debug!(
        most,
        "names of containers that ended long ago are forgotten"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str, by: NamedBy, pod: Option<&str>) -> ContainerNames {
        ContainerNames {
            name: name.to_owned(),
            role: ContainerRole::Main,
            image: None,
            pod: pod.map(|uid| Arc::new(pod_names(uid))),
            labels: BTreeMap::new(),
            workload: None,
            named_by: by,
        }
    }

    fn pod_names(uid: &str) -> PodNames {
        PodNames {
            namespace: "shop".to_owned(),
            name: format!("pod-{uid}"),
            uid: uid.to_owned(),
            labels: BTreeMap::new(),
            workload: None,
        }
    }

    fn title(directory: &ContainerDirectory, id: &str) -> Option<String> {
        directory.by_id(id).map(|names| names.title())
    }

    #[test]
    fn kubernetes_is_believed_before_the_runtime_in_any_order() {
        let directory = ContainerDirectory::default();
        let told = |by, name: &str| vec![("c".to_owned(), names(name, by, None))];
        directory.learn(NamedBy::Cri, Vec::new(), told(NamedBy::Cri, "early"), true);
        assert_eq!(title(&directory, "c").unwrap(), "early");
        directory.learn(
            NamedBy::Kubernetes,
            Vec::new(),
            told(NamedBy::Kubernetes, "right"),
            true,
        );
        directory.learn(NamedBy::Cri, Vec::new(), told(NamedBy::Cri, "late"), true);
        assert_eq!(title(&directory, "c").unwrap(), "right");
    }

    #[test]
    fn names_outlive_containers_and_are_no_longer_counted() {
        let directory = ContainerDirectory::default();
        let by = NamedBy::Kubernetes;
        directory.set_state(by, SourceState::Connected, None);
        let told = vec![("c".to_owned(), names("app", by, Some("u")))];
        directory.learn(by, vec![pod_names("u")], told, true);
        assert_eq!(directory.sources()[0].containers, 1);
        directory.pod_ended("u");
        assert_eq!(directory.sources()[0].containers, 0);
        assert_eq!(title(&directory, "c").unwrap(), "shop/pod-u/app");
        let next = ContainerDirectory::default();
        let saved = directory.saved();
        next.restore(
            saved
                .into_iter()
                .map(|(id, names)| (id, ContainerNames::clone(&names)))
                .collect(),
        );
        assert_eq!(title(&next, "c").unwrap(), "shop/pod-u/app");
    }

    #[test]
    fn a_container_without_a_name_has_that_of_its_pod() {
        let directory = ContainerDirectory::default();
        directory.learn(NamedBy::Kubernetes, vec![pod_names("u")], Vec::new(), true);
        let mut container = Container {
            id: "x".to_owned(),
            runtime: "containerd".to_owned(),
            pod_uid: Some("u".to_owned()),
        };
        assert_eq!(directory.of(&container).unwrap().title(), "shop/pod-u");
        container.pod_uid = None;
        assert_eq!(directory.of(&container), None);
    }

    #[test]
    fn what_ended_longest_ago_is_forgotten_first() {
        let directory = ContainerDirectory::default();
        let by = NamedBy::Docker;
        let told = |id: usize| (id.to_string(), names("x", by, None));
        directory.learn(by, Vec::new(), vec![told(0)], false);
        directory.learn(by, Vec::new(), vec![told(1)], true);
        directory.learn(
            by,
            Vec::new(),
            (1..=MOST_CONTAINERS).map(told).collect(),
            false,
        );
        assert!(directory.by_id("0").is_none());
        assert!(directory.saved().len() <= MOST_CONTAINERS);
    }
}
