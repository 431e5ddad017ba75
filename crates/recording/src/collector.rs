//! What can be asked of a recorder, and what comes back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use profiler_model::{
    Clock, CpuCoverage, EdgeTable, EventLoopTable, Profile, RequestAtSocket, RequestTable,
    TaskSpec, WaitCounts,
};
use tokio::sync::mpsc;

/// Part of a running collection's result, about four per second.
#[derive(Debug)]
pub struct Chunk {
    pub part: Part,
    /// No process of the target is left; `true` once.
    pub target_ended: bool,
    /// New remarks for the user.
    pub notes: Vec<String>,
}

/// The result itself, by what a task records.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are four a second")]
pub enum Part {
    Samples(Samples),
    /// The whole result so far of a task that watches connections.
    Edges(EdgeTable),
    Requests(Requests),
}

/// Samples, waits or both since the last part; self-contained.
/// All parts of a collection have the same `origin_ns`.
#[derive(Debug)]
pub struct Samples {
    pub profile: Profile,
    pub effective_frequency_hz: u32,
    /// What happened to waits since the last part.
    pub waits: WaitCounts,
    /// In the last part, where samples stand for CPU time.
    pub coverage: Option<CpuCoverage>,
    /// What was seen of event loops so far, beside the samples.
    pub event_loop: Option<EventLoopTable>,
}

/// The whole result so far of a task that looks for requests.
#[derive(Debug)]
pub struct Requests {
    pub edges: EdgeTable,
    pub table: RequestTable,
    /// Those that were over since the last part, where access logs are read as well.
    pub at_sockets: Vec<RequestAtSocket>,
}

impl From<Part> for Chunk {
    fn from(part: Part) -> Self {
        Self {
            part,
            target_ended: false,
            notes: Vec::new(),
        }
    }
}

impl From<Profile> for Samples {
    /// Nothing but the profile.
    fn from(profile: Profile) -> Self {
        Self {
            profile,
            effective_frequency_hz: 0,
            waits: WaitCounts::default(),
            coverage: None,
            event_loop: None,
        }
    }
}

/// Asks a collection to stop; dropping it asks as well.
#[derive(Debug)]
pub struct StopHandle {
    flag: Arc<AtomicBool>,
}

impl StopHandle {
    /// A handle and the flag that the collecting side watches.
    pub fn new() -> (Self, Arc<AtomicBool>) {
        let flag = Arc::new(AtomicBool::new(false));
        (
            Self {
                flag: Arc::clone(&flag),
            },
            flag,
        )
    }

    /// The collection drains what the kernel still holds, sends a last chunk and closes the channel.
    pub fn stop(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

impl Drop for StopHandle {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A running collection.
#[derive(Debug)]
pub struct Collection {
    /// When sampling began, nanoseconds since the Unix epoch: the origin of every chunk.
    pub origin_ns: u64,
    /// For how long it was collecting already when it was handed over: a duration counts from then.
    pub already: Duration,
    /// What samples are taken by; `None` where nothing is sampled.
    pub clock: Option<Clock>,
    /// `None` where nothing is sampled.
    pub effective_frequency_hz: Option<u32>,
    /// Remarks known at start (for example a fallback that was taken).
    pub notes: Vec<String>,
    /// Closed after the last chunk.
    pub chunks: mpsc::Receiver<Chunk>,
    pub stop: StopHandle,
}

/// Why a collection could not start. The text is shown to users as the task's reason.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    #[error("no such process: {pid}")]
    NoSuchProcess { pid: u32 },
    #[error("no container matches {id:?}")]
    NoSuchContainer { id: String },
    #[error("{reason}")]
    Container { reason: String },
    #[error("{reason}")]
    Pod { reason: String },
    #[error("cgroup {path:?}: {reason}")]
    Cgroup { path: String, reason: String },
    #[error("network namespace {path:?}: {reason}")]
    NetworkNamespace { path: String, reason: String },
    #[error("{probe}: {reason}")]
    Probe { probe: &'static str, reason: String },
}

/// Starts collections. Implemented by `KindCollector` of the recorder, by the demo data, and by fakes in tests.
pub trait Collector: Send + Sync + 'static {
    /// Loads and attaches; blocks for up to some hundred milliseconds (call off the reactor). The specification is
    /// validated; to stop after its duration is the caller's business.
    fn start(&self, spec: &TaskSpec) -> Result<Collection, CollectError>;

    /// Drops what can be read again.
    fn drop_caches(&self) {}

    /// Why no task is ever started here; `None` where tasks are tried.
    fn refuses_tasks(&self) -> Option<&'static str> {
        None
    }
}
