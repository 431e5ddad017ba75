//! Pods as targets of commands, and the sources of their names.

use clap::Args;
use profiler_host::{
    name_sources::{KubernetesMode, RuntimeMode, SourceConfig},
    process::is_id_prefix,
};
use profiler_model::{PodSelector, Target};

/// Where the names of containers come from.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Names of containers")]
pub struct NameArgs {
    /// Where pods are named: auto (with the account of the pod that this runs in), off, or a file for
    /// kubectl
    #[arg(long, value_name = "auto|off|FILE", default_value = "auto", value_parser = kubernetes)]
    pub kubernetes: KubernetesMode,
    /// Name of this node in Kubernetes [default: the host's name; in a pod it must be given]
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    pub node_name: Option<String>,
    /// Sockets of container runtimes: auto (where their packages put them), off, or paths, each with
    /// cri: or docker: before it where the file's name does not tell
    #[arg(long, value_name = "auto|off|PATH,...", default_value = "auto", value_parser = runtime_sockets)]
    pub runtime_socket: RuntimeMode,
}

impl NameArgs {
    pub fn to_config(&self) -> SourceConfig {
        let Self {
            kubernetes,
            node_name,
            runtime_socket,
        } = self;
        SourceConfig {
            kubernetes: kubernetes.clone(),
            runtime: runtime_socket.clone(),
            node_name: node_name.clone(),
        }
    }
}

/// What a user wrote for `--kubernetes`.
pub(in crate::config) fn kubernetes(text: &str) -> Result<KubernetesMode, String> {
    match text {
        "auto" => Ok(KubernetesMode::Auto),
        "off" => Ok(KubernetesMode::Off),
        path if path.contains('/') => Ok(KubernetesMode::Kubeconfig(path.into())),
        _ => Err("is not auto, off or the path of a file (with a /)".to_owned()),
    }
}

/// What a user wrote for `--runtime-socket`.
pub(in crate::config) fn runtime_sockets(text: &str) -> Result<RuntimeMode, String> {
    match text {
        "auto" => Ok(RuntimeMode::Auto),
        "off" => Ok(RuntimeMode::Off),
        paths => paths
            .split(',')
            .map(|path| {
                profiler_host::name_sources::RuntimeSocket::parse(path.trim()).ok_or_else(|| {
                    "is not auto, off, or absolute paths separated by commas".to_owned()
                })
            })
            .collect::<Result<_, _>>()
            .map(RuntimeMode::At),
    }
}

/// The pods or the container that were given; none when neither was. What is not a container id is a name.
pub(super) fn target_of(
    pod: Option<&String>,
    labels: Option<&String>,
    container: Option<&String>,
) -> Option<Target> {
    if let Some(pod) = pod {
        return Some(Target::Pod(selector_of(pod)));
    }
    if let Some(labels) = labels {
        return Some(Target::Pod(PodSelector {
            labels: Some(labels.clone()),
            ..PodSelector::default()
        }));
    }
    let container = container?;
    Some(if is_id_prefix(container) {
        Target::Container(container.clone())
    } else {
        Target::Pod(PodSelector {
            container: Some(container.clone()),
            ..PodSelector::default()
        })
    })
}

/// `NAME`, `NAMESPACE/NAME` or `NAMESPACE/NAME/CONTAINER`.
fn selector_of(text: &str) -> PodSelector {
    let mut parts = text.splitn(3, '/').map(str::to_owned);
    let (first, second, third) = (parts.next(), parts.next(), parts.next());
    match second {
        None => PodSelector {
            name: first,
            ..PodSelector::default()
        },
        Some(name) => PodSelector {
            namespace: first,
            name: Some(name),
            labels: None,
            container: third,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pod: Option<&str>, container: Option<&str>) -> String {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let found = target_of(owned(pod).as_ref(), None, owned(container).as_ref());
        match found.unwrap() {
            Target::Pod(selector) => selector.to_string(),
            Target::Container(id) => id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pods_and_containers_are_written_as_users_know_them() {
        assert_eq!(shown(Some("web-0"), None), "pod web-0");
        assert_eq!(shown(Some("shop/web-0"), None), "pod shop/web-0");
        let third = shown(Some("shop/web-0/istio-proxy"), None);
        assert_eq!(third, "pod shop/web-0, container istio-proxy");
        assert_eq!(shown(None, Some("0123456789ab")), "0123456789ab");
        assert_eq!(shown(None, Some("envoy")), "container envoy");
        assert_eq!(target_of(None, None, None), None);
    }

    #[test]
    fn modes_are_read() {
        assert_eq!(kubernetes("off"), Ok(KubernetesMode::Off));
        assert!(kubernetes("of").is_err());
        assert!(matches!(
            kubernetes("/etc/config"),
            Ok(KubernetesMode::Kubeconfig(_))
        ));
        assert!(matches!(
            runtime_sockets("/run/docker.sock, cri:/run/x"),
            Ok(RuntimeMode::At(sockets)) if sockets.len() == 2
        ));
        assert!(runtime_sockets("docker.sock").is_err());
    }
}
