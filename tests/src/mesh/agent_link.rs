//! Links from both pods to the machine itself, where an agent receives the access logs of the sidecars.
//!
//! The agent finds an Envoy by the socket at the other end of its connection, so nothing may stand between them.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context as _, Result};
use profiler_access_logs::snippet::{Options, Service, System, Transport, snippet};
use serde_json::Value;

use crate::{
    kubernetes::manifests,
    netns::{Netns, ip},
};

const PORT: u16 = 7118;
/// Pairs of subnets from 169.254.64.0 on, each with room for two addresses. Those of clouds' metadata are not among them.
const PLACES: u32 = 2048;

/// Where an agent has to listen, and what sidecars are configured with.
#[derive(Clone, Debug)]
pub struct AgentLink {
    pub address: SocketAddrV4,
    pub(super) logger: Value,
    pub(super) cluster: Value,
}

impl AgentLink {
    /// Makes the links, which go with the namespaces. The configuration is that which users are given.
    pub(super) fn install(client: &Netns, server: &Netns, transport: Transport) -> Result<Self> {
        let place = place();
        let [of_host, of_client, through, of_server] = [1, 2, 5, 6].map(|last| {
            let [_, _, high, low] = (place * 8 + last).to_be_bytes();
            Ipv4Addr::new(169, 254, 64 + high, low)
        });
        let subnet = |address: Ipv4Addr| format!("{address}/30");
        let name = |pod: &str| format!("pfl{place:03x}{pod}");
        client.join_host(&name("c"), &subnet(of_client), &subnet(of_host))?;
        server.join_host(&name("s"), &subnet(of_server), &subnet(through))?;
        // The agent has one address.
        let (host, through) = (format!("{of_host}/32"), through.to_string());
        ip(&["-n", server.name(), "route", "add", &host, "via", &through])?;
        let address = SocketAddrV4::new(of_host, PORT);
        let (logger, cluster) = recommended(address, transport)?;
        Ok(Self {
            address,
            logger,
            cluster,
        })
    }
}

/// Another one for each mesh of a run, and for most runs.
fn place() -> u32 {
    static MESHES: AtomicU32 = AtomicU32::new(0);
    let number = MESHES.fetch_add(1, Ordering::Relaxed);
    process::id().wrapping_add(number.wrapping_mul(97)) % PLACES
}

/// The logger of requests and the cluster in the configuration for Envoy.
fn recommended(agent: SocketAddrV4, transport: Transport) -> Result<(Value, Value)> {
    let service = Service {
        host: agent.ip().to_string(),
        port: agent.port(),
    };
    let options = Options {
        transport,
        ..Options::default()
    };
    let documents = manifests::parse(&snippet(System::Envoy, &service, &options))?;
    let document = documents.first().context("the snippet has no document")?;
    let resources = &document["static_resources"];
    let http = &resources["listeners"][0]["filter_chains"][0]["filters"][0];
    let logger = http["typed_config"]["access_log"][0].clone();
    Ok((logger, resources["clusters"][0].clone()))
}
