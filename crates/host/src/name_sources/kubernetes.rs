//! The pods of this node, watched at the Kubernetes API.

use std::{path::PathBuf, pin::pin};

use futures_util::StreamExt as _;
use kube::{
    Api, Client, Config,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{WatchStreamExt as _, watcher, watcher::Event},
};
use profiler_model::{NamedBy, PodNames};

use super::pod::Pod;
use crate::container_names::{ContainerDirectory, Named, SourceState};

/// Where Kubernetes puts the account of a pod.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// Pods of one answer. A user who may create pods can make each as large as the API server allows, 1.5 MB.
const PAGE_PODS: u32 = 10;
const BY: NamedBy = NamedBy::Kubernetes;

/// Whether and how the API is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KubernetesMode {
    /// With the account of the pod that the agent runs in, if it runs in one.
    #[default]
    Auto,
    Off,
    /// With this file, as kubectl has them.
    Kubeconfig(PathBuf),
}

impl KubernetesMode {
    /// The file and those that it names, as far as they lie elsewhere.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let Self::Kubeconfig(path) = self else {
            return Vec::new();
        };
        let mut files = vec![path.clone()];
        // What is wrong with it is said when it is used.
        let Ok(file) = Kubeconfig::read_from(path) else {
            return files;
        };
        let clusters = file.clusters.into_iter().filter_map(|named| named.cluster);
        files.extend(
            clusters
                .filter_map(|cluster| cluster.certificate_authority)
                .map(PathBuf::from),
        );
        for user in file
            .auth_infos
            .into_iter()
            .filter_map(|named| named.auth_info)
        {
            let named = [user.client_certificate, user.client_key, user.token_file];
            files.extend(named.into_iter().flatten().map(PathBuf::from));
        }
        files
    }
}

impl std::fmt::Display for KubernetesMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::Kubeconfig(path) => path.display().fmt(f),
        }
    }
}

/// An API server and whose pods are asked for.
pub(super) struct Cluster {
    api: Api<Pod>,
    endpoint: String,
    fields: String,
}

/// What keeps the API from being asked; final, unlike an error of the watch.
pub(super) type Refusal = String;

impl Cluster {
    /// Reads the account without connecting yet.
    pub(super) async fn find(mode: &KubernetesMode, node: Option<&str>) -> Result<Self, Refusal> {
        let (config, node) = match mode {
            KubernetesMode::Off => return Err("switched off by --kubernetes=off".to_owned()),
            KubernetesMode::Auto => {
                if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
                    return Err("not in a cluster: KUBERNETES_SERVICE_HOST is not set".to_owned());
                }
                if !std::path::Path::new(TOKEN).exists() {
                    return Err(format!(
                        "the pod has no account: {TOKEN} does not exist (automountServiceAccountToken)"
                    ));
                }
                // A pod's host name is the pod's.
                let node = node.ok_or(
                    "the node's name is not known: set NODE_NAME from spec.nodeName, or --node-name",
                )?;
                let config = Config::incluster().map_err(|error| error.to_string())?;
                (config, node.to_owned())
            }
            KubernetesMode::Kubeconfig(path) => {
                let file = Kubeconfig::read_from(path).map_err(|error| error.to_string())?;
                let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                    .await
                    .map_err(|error| error.to_string())?;
                let own = || {
                    rustix::system::uname()
                        .nodename()
                        .to_string_lossy()
                        .to_lowercase()
                };
                (config, node.map_or_else(own, str::to_owned))
            }
        };
        let endpoint = format!("{} for node {node}", config.cluster_url);
        let client = Client::try_from(config).map_err(|error| error.to_string())?;
        Ok(Self {
            api: Api::all(client),
            endpoint,
            fields: format!("spec.nodeName={node}"),
        })
    }

    /// Asks once.
    pub(super) async fn list(&self, directory: &ContainerDirectory) -> Result<(), String> {
        let mut listed = Vec::new();
        let mut page = ListParams::default().fields(&self.fields).limit(PAGE_PODS);
        loop {
            let answer = self
                .api
                .list(&page)
                .await
                .map_err(|error| explained(&error.to_string()))?;
            listed.extend(answer.items);
            match answer.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => page = page.continue_token(&next),
                None => break,
            }
        }
        let (pods, named) = split(listed);
        directory.learn(BY, pods, named, true);
        directory.set_state(BY, SourceState::Connected, Some(&self.endpoint));
        Ok(())
    }

    /// Follows changes and does not end.
    pub(super) async fn watch(self, directory: &ContainerDirectory) {
        let state = |state| directory.set_state(BY, state, Some(&self.endpoint));
        state(SourceState::Connecting);
        let config = watcher::Config::default()
            .fields(&self.fields)
            .page_size(PAGE_PODS);
        let mut events = pin!(watcher(self.api.clone(), config).default_backoff());
        let mut listed = Vec::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(pod)) => listed.push(pod),
                Ok(Event::InitDone) => {
                    let (pods, named) = split(std::mem::take(&mut listed));
                    directory.learn(BY, pods, named, true);
                    state(SourceState::Connected);
                }
                Ok(Event::Apply(pod)) => {
                    let (pods, named) = split(vec![pod]);
                    directory.learn(BY, pods, named, false);
                    state(SourceState::Connected);
                }
                Ok(Event::Delete(pod)) => {
                    let uid = pod.uid().to_owned();
                    // Its last status may tell of containers that were never seen.
                    let (pods, named) = split(vec![pod]);
                    directory.learn(BY, pods, named, false);
                    directory.pod_ended(&uid);
                    state(SourceState::Connected);
                }
                Err(error) => state(SourceState::Waiting {
                    reason: explained(&error.to_string()),
                }),
            }
        }
    }
}

fn split(pods: Vec<Pod>) -> (Vec<PodNames>, Vec<Named>) {
    let mut all = Vec::new();
    let mut named = Vec::new();
    for pod in pods {
        let (pod, containers) = pod.names();
        all.push(pod);
        named.extend(containers);
    }
    (all, named)
}

/// With what is to be done about it.
fn explained(error: &str) -> String {
    if error.to_lowercase().contains("forbidden") {
        format!("{error}; its account needs list and watch of pods: deploy/kubernetes/base.yaml")
    } else {
        error.to_owned()
    }
}
