//! What pods and their processes are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the processes of one network namespace are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PodKind {
    Pod,
    /// Processes in the network namespace of the node.
    Host,
    /// Processes whose namespace cannot be read.
    Unknown,
}

/// The role of a process in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PodRole {
    App,
    Sidecar,
    Other,
}

impl PodRole {
    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Sidecar => "sidecar",
            Self::Other => "other",
        }
    }
}
