//! Calls of the runtime's socket, one after the other.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use http::uri::PathAndQuery;
use prost::Message;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tonic::{
    Request,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use super::messages::{StatusRequest, StatusResponse};

/// Longest that a call may take: images are unpacked within some.
const CALL_LIMIT: Duration = Duration::from_mins(1);

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    reactor: Runtime,
    channel: Channel,
}

impl Client {
    pub(super) fn connect(socket: &Path) -> Result<Self> {
        let reactor = Builder::new_current_thread()
            .enable_all()
            .build()
            .context("start a reactor")?;
        let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display()))
            .context("name the socket")?
            .timeout(CALL_LIMIT);
        let channel = reactor
            .block_on(endpoint.connect())
            .with_context(|| format!("connect to {}", socket.display()))?;
        Ok(Self { reactor, channel })
    }

    /// One call of the service of containers.
    pub(super) fn call<Q, A>(&self, method: &str, question: Q) -> Result<A>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let path = format!("/runtime.v1.RuntimeService/{method}");
        let path = PathAndQuery::try_from(path).context("name the method")?;
        let answer = self.reactor.block_on(async {
            let mut grpc = Grpc::new(self.channel.clone());
            grpc.ready().await.context("the connection is ready")?;
            let codec = ProstCodec::<Q, A>::default();
            let answer = grpc.unary(Request::new(question), path, codec).await;
            answer.with_context(|| format!("the runtime's {method}"))
        })?;
        Ok(answer.into_inner())
    }

    /// What the runtime itself knows of a sandbox or a container.
    pub(super) fn info(&self, method: &str, id: &str) -> Result<Value> {
        let question = StatusRequest {
            id: id.to_owned(),
            verbose: true,
        };
        let answer: StatusResponse = self.call(method, question)?;
        let info = answer.info.get("info").context("it tells nothing more")?;
        serde_json::from_str(info).context("parse what the runtime tells")
    }
}
