//! What an Envoy reports about itself on its admin interface: its configuration and its counts.
//!
//! Only GET is used, only against an address on which the very process listens, from inside of its
//! network namespace, and only after `/server_info` has answered as Envoy does. Whoever runs the
//! process chooses the answers, so they are untrusted: bounded in bytes and time, no redirect is
//! followed, and of a configuration a fixed list of facts is kept (`configuration`), no secret.
//!
//! Facts about the interface: Envoy's documentation, operations/admin, and Envoy 1.40 itself.
//! Answering is work of Envoy's main thread, which serves no requests.

mod addresses;
mod client;
mod server_info;
mod config_dump;
mod configuration;
mod counters;
mod traffic;
mod text;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod test_server;

use std::{net::SocketAddr, time::Duration};

use client::{Client, ClientError};
use server_info::ServerInfo;

pub use addresses::{candidates, enter, usual_candidates};
pub use counters::LogCounters;
use profiler_model::{ObservedConfiguration, Process};
pub use traffic::{HttpCounts, HttpTraffic, TimeBucket};

use crate::process::program;

/// Programs that are taken for an Envoy, which `/server_info` then has to confirm.
const PROGRAMS: [&str; 2] = ["envoy", "cilium-envoy"];
/// Longest time for one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// The same while an address is not known to be an admin interface.
const TRIAL_LIMIT: Duration = Duration::from_secs(1);

/// Why there is nothing from an Envoy's admin interface. Shown to users.
#[derive(Debug, thiserror::Error)]
pub enum EnvoyAdminError {
    #[error("its listening sockets cannot be read: {0}")]
    Sockets(std::io::Error),
    #[error("its network namespace cannot be entered: {0}")]
    Namespace(std::io::Error),
    #[error("it listens on no address that could be its admin interface")]
    NoAddress,
    #[error("none of {tried} answers /server_info as Envoy does ({last})")]
    NotEnvoy { tried: String, last: String },
    #[error("GET {path}: {source}")]
    Request {
        path: &'static str,
        source: ClientError,
    },
    #[error("GET {path}: the answer is not understood: {detail}")]
    Answer { path: &'static str, detail: String },
}

/// Whether a process looks like an Envoy from outside.
pub fn is_envoy(process: &Process) -> bool {
    PROGRAMS.contains(&program(process)) || PROGRAMS.contains(&process.comm.as_str())
}

/// Reads bytes as each of the answers.
#[cfg(feature = "fuzzing")]
pub fn fuzz(bytes: &[u8]) {
    drop(ServerInfo::parse(bytes));
    drop(traffic::parse(bytes).map(|traffic| traffic.completed()));
    drop(counters::parse_logs(bytes));
    configuration::fuzz(bytes);
}

/// The admin interface of one Envoy. To be used on a thread that is in its network namespace.
#[derive(Debug)]
pub struct EnvoyAdmin {
    client: Client,
    info: ServerInfo,
}

impl EnvoyAdmin {
    /// Finds the interface at one of these addresses ([`candidates`]), in whose namespace the calling thread is
    /// ([`enter`]). Blocks.
    pub fn among(addresses: &[SocketAddr]) -> Result<Self, EnvoyAdminError> {
        let mut last = None;
        for address in addresses {
            match ServerInfo::ask(&Client::new(*address, TRIAL_LIMIT)) {
                Ok(info) => {
                    let client = Client::new(*address, ANSWER_LIMIT);
                    return Ok(Self { client, info });
                }
                Err(error) => last = Some(error.to_string()),
            }
        }
        let tried: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        Err(last.map_or(EnvoyAdminError::NoAddress, |last| {
            EnvoyAdminError::NotEnvoy {
                tried: tried.join(", "),
                last,
            }
        }))
    }

    /// HTTP requests that it has answered since it started, without those to the admin interface
    /// and to Istio's own listeners; `None` when it counts none. Blocks.
    pub fn completed_requests(&self) -> Result<Option<u64>, EnvoyAdminError> {
        counters::completed_requests(&self.client)
    }

    /// What it counts of the access logs that it sends. Blocks.
    pub fn log_counters(&self) -> Result<LogCounters, EnvoyAdminError> {
        counters::log_counters(&self.client)
    }

    /// Requests, failures and times since it started. Blocks.
    pub fn traffic(&self) -> Result<HttpTraffic, EnvoyAdminError> {
        traffic::traffic(&self.client)
    }

    /// What it is configured to do now, and what of that could not be read, as sentences. Blocks.
    pub fn configuration(&self) -> (ObservedConfiguration, Vec<String>) {
        configuration::read(&self.client, &self.info)
    }
}
