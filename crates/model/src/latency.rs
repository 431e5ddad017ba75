//! How long requests take, and in which part of their way.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How long the requests of one process take, and where the time goes. Times are nanoseconds; percentiles are upper bounds of
/// the buckets that times are counted in, at most 6.25 % too high.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RequestLatency)]
pub struct Latency {
    /// The process that the requests came to.
    pub process: LatencyProcess,
    /// Requests whose response was seen whole.
    pub requests: u64,
    pub mean_ns: u64,
    pub p50_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
    /// In the order of a request's way. Their means add up to `mean_ns` where all requests were matched.
    pub parts: Vec<LatencyPart>,
    /// What the processes of these parts did meanwhile; only in a diagnosis, which knows their threads.
    #[serde(default)]
    #[schema(required)]
    pub inside: Vec<LatencyInside>,
    /// The same in one sentence.
    pub text: String,
}

/// What a process did while it had requests: a mean for each of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatencyInside {
    pub process: LatencyProcess,
    /// How long it has a request.
    pub mean_ns: u64,
    /// Threads that read a request or wrote a response. What others did is not counted.
    pub threads: u32,
    /// Most time first; they add up to `mean_ns`.
    pub activities: Vec<LatencyActivity>,
}

/// One kind of what a process did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatencyActivity {
    pub kind: LatencyActivityKind,
    /// Of `running` the feature that takes most of it, of `own_requests` the server that is asked most, of `waiting_for_cpu` and
    /// `suspended` the likely reason. Text is untrusted.
    #[schema(required)]
    pub what: Option<String>,
    /// What of `mean_ns` belongs to `what`.
    #[schema(required)]
    pub what_ns: Option<u64>,
    pub mean_ns: u64,
    pub share_percent: f64,
    /// The functions where most of it is, the innermost first; empty where no stack shows it.
    pub stack: Vec<String>,
}

/// What threads do.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LatencyActivityKind {
    /// On a CPU.
    Running,
    /// Ready to run, without a CPU.
    WaitingForCpu,
    /// In a call that waits for a time to pass.
    Asleep,
    /// For a lock or a condition.
    Lock,
    /// For a disk or another file.
    File,
    /// For a page of memory.
    PageFault,
    /// Blocked for another reason.
    Blocked,
    /// Until others have answered the requests of this process, as if one came after the other: at most this.
    OwnRequests,
    /// Its threads were busy, with other requests as well.
    Queued,
    /// None of its threads worked on it.
    Suspended,
}

/// A process. Text is untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatencyProcess {
    /// Null: not on this node, or not seen.
    #[schema(required)]
    pub pid: Option<u32>,
    /// Its name; where that is not known, its address.
    pub name: String,
}

/// One part of the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatencyPart {
    pub place: LatencyPlace,
    /// Who has the request there; null between processes.
    #[schema(required)]
    pub process: Option<LatencyProcess>,
    pub mean_ns: u64,
    /// Null: only the mean is known.
    #[schema(required)]
    pub p50_ns: Option<u64>,
    #[schema(required)]
    pub p95_ns: Option<u64>,
    /// Of the mean of all requests.
    pub share_percent: f64,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LatencyPlace {
    /// It lies in the socket until the sidecar reads it.
    InboundQueue,
    /// In the sidecar, from reading it to sending it on.
    RequestPath,
    /// Between the sidecar and the process behind it, both ways, and until that reads it.
    Network,
    /// From sending it on to the first byte of the response, where the sockets of the process behind the sidecar were not recorded:
    /// the network, both ways, and that process.
    Upstream,
    /// In the process behind the sidecar, or in the process itself where it passes nothing on.
    Server,
    /// The first byte of the response lies in the socket until the sidecar reads it.
    ResponseQueue,
    /// In the sidecar, from reading the first byte of the response to sending one on.
    ResponsePath,
    /// From the first byte of the response to its last.
    ResponseBody,
}

impl LatencyActivityKind {
    /// As people say it, for the middle of a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Running => "computing",
            Self::WaitingForCpu => "waiting for a CPU",
            Self::Asleep => "asleep in a timer",
            Self::Lock => "waiting for a lock or another thread",
            Self::File => "waiting for files",
            Self::PageFault => "waiting for memory",
            Self::Blocked => "blocked",
            Self::OwnRequests => "waiting for what it asks",
            Self::Queued => "queued behind other requests",
            Self::Suspended => "suspended",
        }
    }
}

impl LatencyPlace {
    /// The process behind the sidecar has the request, with or without the network.
    pub fn is_behind(self) -> bool {
        matches!(self, Self::Upstream | Self::Server)
    }

    /// Whether the process that the requests came to has it.
    pub fn is_own(self) -> bool {
        match self {
            Self::InboundQueue | Self::RequestPath | Self::ResponseQueue | Self::ResponsePath => {
                true
            }
            Self::Network | Self::Upstream | Self::Server | Self::ResponseBody => false,
        }
    }

    /// Whether bytes wait in a socket of the process until it reads them.
    pub fn is_queue(self) -> bool {
        matches!(self, Self::InboundQueue | Self::ResponseQueue)
    }
}
