//! The containers of a Docker engine, by its HTTP API (<https://docs.docker.com/reference/api/engine/>, 1.24).

use std::{collections::BTreeMap, path::Path, sync::Arc};

use http::{Request, StatusCode, header::HOST};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use profiler_model::{ContainerNames, ContainerRole, NamedBy, PodNames, Workload};
use serde::Deserialize;
use tokio::runtime::Handle;

use super::{MOST_LABELS, socket::connect};
use crate::{container_names::Named, foreign_answers::json};

/// Largest list that is read.
const MOST_BYTES: usize = 32 << 20;
/// Oldest version that reports what is needed; newer engines speak it too (Docker 29 asks for 1.44).
const VERSIONS: [&str; 2] = ["v1.44", "v1.24"];
/// Labels of Docker Compose.
const PROJECT: &str = "com.docker.compose.project";
const SERVICE: &str = "com.docker.compose.service";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    id: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

/// Names of all running containers.
pub(super) async fn list(path: &Path, broker: &Handle) -> Result<Vec<Named>, String> {
    let mut refused = String::new();
    for version in VERSIONS {
        match ask(path, broker, version).await {
            Ok(Ok(listed)) => return Ok(listed.into_iter().map(named).collect()),
            Ok(Err(status)) => refused = format!("it answers {status}"),
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// An answer that is none, because the engine does not speak this version, is tried with another one.
async fn ask(
    path: &Path,
    broker: &Handle,
    version: &str,
) -> Result<Result<Vec<Listed>, StatusCode>, String> {
    let stream = connect(path, broker)
        .await
        .map_err(|error| error.to_string())?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let driven = tokio::spawn(connection);
    let answered = async {
        let request = Request::get(format!("/{version}/containers/json"))
            .header(HOST, "docker")
            .body(Empty::<Bytes>::new())
            .map_err(|error| error.to_string())?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())?;
        let status = response.status();
        if status != StatusCode::OK {
            return Ok(Err(status));
        }
        let body = Limited::new(response.into_body(), MOST_BYTES)
            .collect()
            .await
            .map_err(|error| format!("read its list: {error}"))?
            .to_bytes();
        let listed =
            json(&body).map_err(|error| format!("its list is not as expected: {error}"))?;
        Ok(Ok(listed))
    }
    .await;
    driven.abort();
    answered
}

fn named(listed: Listed) -> Named {
    let Listed {
        id,
        names,
        image,
        labels,
    } = listed;
    let labels: BTreeMap<String, String> = labels
        .unwrap_or_default()
        .into_iter()
        .take(MOST_LABELS)
        .collect();
    // The shortest: the others are names in links of other containers.
    let name = names.iter().min_by_key(|name| name.len());
    let name = name.map(|name| name.trim_start_matches('/').to_owned());
    let pod = of_pod(&labels);
    let role = match (&pod, labels.get("io.kubernetes.docker.type")) {
        (_, Some(kind)) if kind == "podsandbox" => ContainerRole::Sandbox,
        (Some(_), _) => ContainerRole::Unknown,
        (None, _) => ContainerRole::Main,
    };
    let in_pod = labels.get("io.kubernetes.container.name").cloned();
    let names = ContainerNames {
        name: in_pod
            .filter(|_name| pod.is_some())
            .or(name)
            .unwrap_or_default(),
        role,
        image: image.filter(|image| !image.is_empty()),
        workload: workload(&labels).filter(|_| pod.is_none()),
        pod: pod.map(Arc::new),
        labels,
        named_by: NamedBy::Docker,
    };
    (id, names)
}

/// What cri-dockerd notes on containers of pods.
fn of_pod(labels: &BTreeMap<String, String>) -> Option<PodNames> {
    let label = |name: &str| labels.get(&format!("io.kubernetes.pod.{name}")).cloned();
    Some(PodNames {
        namespace: label("namespace")?,
        name: label("name")?,
        uid: label("uid")?,
        labels: BTreeMap::new(),
        workload: None,
    })
}

fn workload(labels: &BTreeMap<String, String>) -> Option<Workload> {
    let (project, service) = (labels.get(PROJECT)?, labels.get(SERVICE)?);
    Some(Workload {
        kind: "Compose service".to_owned(),
        name: format!("{project}/{service}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(value: serde_json::Value) -> ContainerNames {
        named(serde_json::from_value(value).unwrap()).1
    }

    #[test]
    fn a_container_has_its_own_name_and_its_service() {
        let found = names(json!({
            "Id": "aa", "Names": ["/other/alias", "/web-1"], "Image": "nginx",
            "Labels": { PROJECT: "shop", SERVICE: "web" },
        }));
        assert_eq!(found.title(), "web-1");
        assert_eq!(found.workload().unwrap().name, "shop/web");
        assert_eq!(names(json!({ "Id": "aa" })).title(), "");
    }

    #[test]
    fn one_of_a_pod_is_named_as_there() {
        let labels = json!({
            "io.kubernetes.pod.name": "web-0", "io.kubernetes.pod.namespace": "shop", "io.kubernetes.pod.uid": "u",
            "io.kubernetes.container.name": "app", "io.kubernetes.docker.type": "container",
        });
        let found = names(json!({ "Id": "aa", "Names": ["/k8s_app_web-0"], "Labels": labels }));
        assert_eq!(found.title(), "shop/web-0/app");
    }
}
