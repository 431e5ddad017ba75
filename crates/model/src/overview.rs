//! How the pods of a node do, a row each.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All rows, what needs attention first, with what it costs to know them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// In one sentence: what needs attention, and on which row.
    pub summary: String,
    pub rows: Vec<OverviewRow>,
    /// When the values were read, in nanoseconds since the Unix epoch; null before there are any.
    #[schema(required)]
    pub read_ns: Option<u64>,
    /// Seconds between two readings, at least: on a node with very many processes they are more.
    pub period_s: f64,
    /// CPU time of the agent's threads that read, in percent of one core, since they began.
    #[schema(required)]
    pub cost_percent: Option<f64>,
    /// What is not known and why, as sentences.
    pub notes: Vec<String>,
}

/// What the processes of a row have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverviewKind {
    /// A network namespace that is not the node's.
    Pod,
    /// A container in the node's network namespace.
    Container,
    /// A systemd unit.
    Service,
    /// All processes of one program.
    Program,
}

impl OverviewKind {
    /// Whether it is part of the node itself.
    pub fn is_of_node(self) -> bool {
        match self {
            Self::Pod => false,
            Self::Container | Self::Service | Self::Program => true,
        }
    }

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Container => "container",
            Self::Service => "service",
            Self::Program => "program",
        }
    }
}

/// A pod, or a group of processes outside of pods. Values are of the time between the last two readings; what is null is not
/// known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverviewRow {
    /// The same in each answer, also after a restart of a pod that has a name.
    pub id: String,
    pub kind: OverviewKind,
    /// Untrusted text.
    pub title: String,
    /// Namespace and name of the pod where something has named it. Untrusted text.
    #[schema(required)]
    pub pod: Option<OverviewPod>,
    /// What manages it, as `KIND/NAME`. Untrusted text.
    #[schema(required)]
    pub workload: Option<String>,
    /// Inode number of its network namespace.
    #[schema(required)]
    pub network_namespace: Option<u64>,
    pub processes: u64,
    /// Those that a check-up is for: app and sidecar; at most 64.
    pub pids: Vec<u32>,
    /// Seconds between the two readings; null while there is one only.
    #[schema(required)]
    pub window_s: Option<f64>,
    pub cpu: OverviewCpu,
    /// Requests that it answered.
    #[schema(required)]
    pub answered: Option<OverviewRequests>,
    /// Requests that it sent to others, through its sidecar.
    #[schema(required)]
    pub sent: Option<OverviewRequests>,
    /// Why neither is known, or not of all its Envoys.
    #[schema(required)]
    pub requests_unknown: Option<String>,
    /// Of its network namespace; null on rows of the node, which share one.
    #[schema(required)]
    pub segments: Option<OverviewSegments>,
    /// The worst first.
    pub troubles: Vec<Trouble>,
    /// The last ten minutes, the oldest first, at most 120.
    pub history: Vec<OverviewPoint>,
}

/// A pod by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OverviewPod {
    pub namespace: String,
    pub name: String,
}

/// CPU time, in cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverviewCpu {
    #[schema(required)]
    pub cores: Option<f64>,
    /// Threads that could have run and had no CPU, on average.
    #[schema(required)]
    pub waiting: Option<f64>,
    /// The quota that stops it most, or else the one that it uses most. One that other rows share counts where this row has half of its use.
    #[schema(required)]
    pub limit: Option<OverviewLimit>,
}

/// A CPU quota, which may be that of one container of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverviewLimit {
    /// What it allows.
    pub cores: f64,
    /// What was used of it, also by processes that have ended.
    pub used_cores: f64,
    /// Periods in which something ran below it; null with one reading only.
    #[schema(required)]
    pub periods: Option<u64>,
    /// Those of them in which it was used up.
    #[schema(required)]
    pub throttled_periods: Option<u64>,
}

/// Requests by Envoy's own counters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverviewRequests {
    /// Seconds in which they were counted.
    pub window_s: f64,
    pub count: u64,
    pub per_s: f64,
    /// Answers with status 5xx.
    pub errors: u64,
    #[schema(required)]
    pub p50: Option<OverviewTime>,
    #[schema(required)]
    pub p95: Option<OverviewTime>,
}

/// A time of requests: between these two, in milliseconds, which are the ends of the bucket that Envoy counts it in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverviewTime {
    pub from_ms: f64,
    pub to_ms: f64,
}

/// TCP segments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverviewSegments {
    pub sent: u64,
    pub retransmitted: u64,
    pub retransmitted_per_s: f64,
}

/// Something that needs attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trouble {
    pub level: TroubleLevel,
    pub text: String,
}

/// How bad it is. `docs/overview.md` has the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TroubleLevel {
    /// What it asks of others fails.
    Elsewhere,
    Warning,
    Bad,
}

/// A row at an earlier reading.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OverviewPoint {
    /// Nanoseconds since the Unix epoch.
    pub at_ns: u64,
    #[schema(required)]
    pub cores: Option<f64>,
    /// Of requests that it answered, else of those that it sent.
    #[schema(required)]
    pub requests_per_s: Option<f64>,
    /// Of requests that it answered; the upper end.
    #[schema(required)]
    pub p95_ms: Option<f64>,
}
