//! The containers of a runtime that the kubelet uses, by the Container Runtime Interface.

use std::{
    collections::{BTreeMap, HashMap},
    marker::PhantomData,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Buf as _;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use profiler_model::{ContainerNames, ContainerRole, NamedBy, PodNames};
use tokio::runtime::Handle;
use tonic::{
    Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder},
    transport::{Channel, Endpoint},
};
use tonic_prost::{ProstCodec, ProstEncoder};

use super::{
    MOST_LABELS,
    cri_messages::{
        Container, ImageSpec, ListContainersRequest, ListContainersResponse, ListPodSandboxRequest,
        ListPodSandboxResponse, PodSandbox,
    },
    socket::connect,
};
use crate::{container_names::Named, foreign_answers::check_protobuf};

const LIST_PODS: &str = "/runtime.v1.RuntimeService/ListPodSandbox";
const LIST_CONTAINERS: &str = "/runtime.v1.RuntimeService/ListContainers";
const LIMIT: Duration = Duration::from_secs(5);
/// Largest list that is read.
const MOST_BYTES: usize = 32 << 20;
/// Labels of the kubelet's own, which every pod has.
const OWN: &str = "io.kubernetes.";

/// Pods and containers, also those that have ended and not been removed.
pub(super) async fn list(
    path: &Path,
    broker: &Handle,
) -> Result<(Vec<PodNames>, Vec<Named>), String> {
    let channel = channel(path.to_owned(), broker.clone()).await?;
    let pods: ListPodSandboxResponse =
        ask(channel.clone(), LIST_PODS, ListPodSandboxRequest {}).await?;
    let containers: ListContainersResponse =
        ask(channel, LIST_CONTAINERS, ListContainersRequest {}).await?;
    Ok(names(pods.items, containers.containers))
}

async fn channel(path: PathBuf, broker: Handle) -> Result<Channel, String> {
    let connector = tower::service_fn(move |_uri: http::Uri| {
        let (path, broker) = (path.clone(), broker.clone());
        async move { connect(&path, &broker).await.map(TokioIo::new) }
    });
    // The address only fills the :authority of requests.
    Endpoint::from_static("http://localhost")
        .connect_timeout(LIMIT)
        .timeout(LIMIT)
        .connect_with_connector(connector)
        .await
        .map_err(|error| causes(&error))
}

async fn ask<Q, A>(channel: Channel, method: &'static str, question: Q) -> Result<A, String>
where
    Q: prost::Message + Send + Sync + 'static,
    A: prost::Message + Default + Send + Sync + 'static,
{
    let mut client = Grpc::new(channel).max_decoding_message_size(MOST_BYTES);
    client.ready().await.map_err(|error| causes(&error))?;
    let codec = Checked(ProstCodec::<Q, A>::default());
    let path = PathAndQuery::from_static(method);
    let answered = client
        .unary(tonic::Request::new(question), path, codec)
        .await;
    answered
        .map(tonic::Response::into_inner)
        .map_err(|status| match status.code() {
            tonic::Code::Unimplemented => {
                "it does not speak version 1 of the Container Runtime Interface (containerd: the plugin cri is off)"
                    .to_owned()
            }
            _ => format!("{}: {}", status.code(), status.message()),
        })
}

/// Counts the fields of an answer before it is decoded: a container takes two bytes there, and hundreds here.
struct Checked<C>(C);

impl<Q, A> Codec for Checked<ProstCodec<Q, A>>
where
    Q: prost::Message + Send + 'static,
    A: prost::Message + Default + Send + 'static,
{
    type Encode = Q;
    type Decode = A;
    type Encoder = ProstEncoder<Q>;
    type Decoder = CheckedDecoder<A>;

    fn encoder(&mut self) -> Self::Encoder {
        self.0.encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        CheckedDecoder(PhantomData)
    }
}

struct CheckedDecoder<A>(PhantomData<fn() -> A>);

impl<A: prost::Message + Default> Decoder for CheckedDecoder<A> {
    type Item = A;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<A>, Status> {
        let message = buffer.copy_to_bytes(buffer.remaining());
        // The answer's own, and those of the containers in it.
        check_protobuf(&message, 1).map_err(|error| Status::internal(error.to_string()))?;
        let decoded = A::decode(message).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Some(decoded))
    }
}

/// An error with what is behind it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn names(pods: Vec<PodSandbox>, containers: Vec<Container>) -> (Vec<PodNames>, Vec<Named>) {
    let mut by_id: HashMap<String, Arc<PodNames>> = HashMap::new();
    let mut all = Vec::new();
    let mut named = Vec::new();
    for sandbox in pods {
        let Some(metadata) = sandbox.metadata else {
            continue;
        };
        let labels = sandbox
            .labels
            .into_iter()
            .filter(|(key, _)| !key.starts_with(OWN))
            .collect::<BTreeMap<_, _>>();
        let pod = PodNames {
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            labels: labels.into_iter().take(MOST_LABELS).collect(),
            workload: None,
        };
        all.push(pod.clone());
        let pod = Arc::new(pod);
        let holder = container("", ContainerRole::Sandbox, None, &pod);
        named.push((sandbox.id.clone(), holder));
        by_id.insert(sandbox.id, pod);
    }
    for found in containers {
        let Some(pod) = by_id.get(&found.pod_sandbox_id) else {
            continue;
        };
        let name = found.metadata.map_or_else(String::new, |data| data.name);
        // CRI does not report whether it is an init container.
        let names = container(&name, ContainerRole::Unknown, image(found.image), pod);
        named.push((found.id, names));
    }
    (all, named)
}

fn container(
    name: &str,
    role: ContainerRole,
    image: Option<String>,
    pod: &Arc<PodNames>,
) -> ContainerNames {
    ContainerNames {
        name: name.to_owned(),
        role,
        image,
        pod: Some(Arc::clone(pod)),
        labels: BTreeMap::new(),
        workload: None,
        named_by: NamedBy::Cri,
    }
}

fn image(image: Option<ImageSpec>) -> Option<String> {
    let ImageSpec {
        image,
        user_specified_image,
    } = image?;
    [user_specified_image, image]
        .into_iter()
        .find(|image| !image.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{super::cri_messages::*, *};

    #[test]
    fn containers_are_joined_with_their_pods() {
        let label = |key: &str| (key.to_owned(), "web".to_owned());
        let pods = vec![
            PodSandbox {
                id: "s".to_owned(),
                metadata: Some(PodSandboxMetadata {
                    name: "web-0".to_owned(),
                    uid: "u".to_owned(),
                    namespace: "shop".to_owned(),
                }),
                labels: [label("app"), label("io.kubernetes.pod.name")].into(),
            },
            PodSandbox::default(),
        ];
        let of = |id: &str, pod: &str| Container {
            id: id.to_owned(),
            pod_sandbox_id: pod.to_owned(),
            metadata: Some(ContainerMetadata {
                name: "app".to_owned(),
            }),
            image: Some(ImageSpec {
                image: "sha256:1".to_owned(),
                user_specified_image: "web:1".to_owned(),
            }),
        };
        let (pods, named) = names(pods, vec![of("c", "s"), of("d", "gone")]);
        assert_eq!(pods.len(), 1);
        assert_eq!(pods[0].labels.keys().collect::<Vec<_>>(), ["app"]);
        let titles: Vec<_> = named
            .iter()
            .map(|(id, names)| (id.as_str(), names.title(), names.role))
            .collect();
        let expected = [
            ("s", "shop/web-0".to_owned(), ContainerRole::Sandbox),
            ("c", "shop/web-0/app".to_owned(), ContainerRole::Unknown),
        ];
        assert_eq!(titles, expected);
        assert_eq!(named[1].1.image.as_deref(), Some("web:1"));
    }
}
