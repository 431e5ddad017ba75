//! Loads of a given number of requests beside the mesh's own.

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use super::{Mesh, SERVER_ADDRESS, SERVER_PORT};
use crate::{
    paths,
    peers::grpc::{self, Calls, Done},
    process::{Launch, Running},
};

/// In what requests of a load differ from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unique {
    Nothing,
    /// `/work/1`, `/work/2`, ...
    Path,
    /// The name of the client, which is not used to match requests: `mesh-client/1`, ...
    UserAgent,
    /// `x-request-id`: `00000000-0000-4000-8000-000000000001`, ...
    RequestId,
}

/// A load over connections of its own.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub requests: u64,
    pub connections: u32,
    /// Requests per second; 0: as fast as answers come.
    pub rps: u32,
    pub unique: Unique,
}

impl Load {
    /// Requests that are all the same, as fast as answers come.
    pub fn new(requests: u64, connections: u32) -> Self {
        Self {
            requests,
            connections,
            rps: 0,
            unique: Unique::Nothing,
        }
    }
}

impl Mesh {
    /// Starts a load beside the mesh's own.
    pub fn start_other_load(&self, load: Load) -> Result<Running> {
        let unique = load.unique.to_possible_value();
        let unique = unique.context("every value has a name")?;
        let arguments = [
            format!("--url=http://{SERVER_ADDRESS}:{SERVER_PORT}/work"),
            format!("--requests={}", load.requests),
            format!("--connections={}", load.connections),
            format!("--rps={}", load.rps),
            format!("--unique={}", unique.get_name()),
            format!("--duration={}ms", self.options.duration.as_millis()),
        ];
        Launch::new(
            &paths::own_program("mesh-client")?,
            "other-client",
            &self.folder,
        )
        .args(arguments)
        .netns(&self.client.netns)
        .start()
    }

    /// Calls of gRPC from the client's pod, `rounds` of them over each connection.
    pub fn call_grpc(&self, rounds: u32, connections: u32) -> Result<Done> {
        let calls = Calls {
            address: &format!("{SERVER_ADDRESS}:{SERVER_PORT}"),
            rounds,
            connections,
            netns: Some(&self.client.netns),
        };
        grpc::call(&self.folder, &calls)
    }
}
