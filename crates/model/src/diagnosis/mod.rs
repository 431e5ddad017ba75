//! A diagnosis: which part of a process costs what, with evidence and what changes it.
//!
//! Shares are percent of the time of the on-CPU samples that were diagnosed, 0 to 100; `low` and `high`
//! are their 95 % interval. `None` is not known, and [`Diagnosis::limits`] says why. Names of processes,
//! threads, frames, modules and containers, and values of configuration, are untrusted text.

mod findings;
mod rules;
mod scope;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{CpuContention, latency::Latency};

pub use findings::{
    CellChoice, Confidence, EvidenceFrame, Finding, FindingSetting, Saving, Severity,
};
pub use rules::{ListedFinding, ListedRule, RuleOrigin, RuleSets};
pub use scope::DiagnosisScope;

/// Which part of a process costs what. Shares are percent of the time of the on-CPU samples in the
/// selection; `low` and `high` are their 95 % interval. Null is not known, and `limits` says why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Diagnosis {
    /// Version of this form.
    pub version: u32,
    /// How long requests take and where, then what costs the most CPU time.
    pub verdict: String,
    /// How long the requests of these processes take; empty where that was not measured. Most requests first.
    #[serde(default)]
    #[schema(required)]
    pub latency: Vec<Latency>,
    pub rules: RulesInForce,
    /// Those that this is about. Most samples first.
    pub processes: Vec<DiagnosedProcess>,
    /// The others that have samples: latency is theirs too, all else is not about them. Shares are of all processes.
    #[serde(default)]
    #[schema(required)]
    pub other_processes: Vec<DiagnosedProcess>,
    pub window: DiagnosedWindow,
    pub coverage: Coverage,
    pub totals: Totals,
    pub matrix: Matrix,
    pub workers: Workers,
    /// Null: event loops were not watched.
    #[schema(required)]
    pub event_loop: Option<EventLoopReport>,
    /// Null: connections were not watched.
    #[schema(required)]
    pub network: Option<NetworkReport>,
    /// The largest saving first.
    pub findings: Vec<Finding>,
    /// What is as it should be.
    pub good: Vec<GoodNews>,
    /// What the process says is configured; Null when it could not be asked.
    #[schema(required)]
    pub configuration: Option<Configuration>,
    /// What nothing is known of. A verdict without findings says nothing about these.
    #[serde(default)]
    #[schema(required)]
    pub not_measured: Vec<Measurement>,
    /// What this cannot know, as sentences.
    pub limits: Vec<String>,
}

impl Diagnosis {
    /// Of the form of the document.
    pub const VERSION: u32 = 1;
}

/// A part of the evidence that a diagnosis may lack: `latency` is how long requests take; `cpu_time` is by the kernel's own
/// accounting; `requests` is how many there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measurement {
    /// How long requests take.
    Latency,
    Waits,
    Connections,
    EventLoops,
    /// CPU time by the kernel's own accounting.
    CpuTime,
    /// How many requests there were.
    Requests,
    Configuration,
}

impl Measurement {
    pub const ALL: [Self; 7] = [
        Self::Latency,
        Self::Waits,
        Self::Connections,
        Self::EventLoops,
        Self::CpuTime,
        Self::Requests,
        Self::Configuration,
    ];

    /// For the middle of a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Latency => "request latency",
            Self::Waits => "waits",
            Self::Connections => "connections",
            Self::EventLoops => "event-loop stalls",
            Self::CpuTime => "accounted CPU time",
            Self::Requests => "request counts",
            Self::Configuration => "configuration",
        }
    }
}

/// The rules that a diagnosis was made by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosisRules)]
pub struct RulesInForce {
    /// Version of the form of the rules.
    pub version: u32,
    /// The user's file with further rules.
    #[schema(required)]
    pub user_file: Option<String>,
}

/// A process that has samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiagnosedProcess {
    pub pid: u32,
    pub start_ticks: u64,
    pub comm: String,
    pub exe: String,
    #[schema(required)]
    pub container: Option<String>,
    /// Which rules were applied: `envoy`, `nginx` or `generic`.
    pub rule_set: String,
    pub samples: u64,
    pub share_percent: f64,
}

/// When the samples were taken, nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiagnosedWindow {
    pub from_ns: u64,
    pub to_ns: u64,
    pub duration_s: f64,
}

/// How much of the samples can be believed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosisCoverage)]
pub struct Coverage {
    pub samples: u64,
    /// Stacks that end where their thread began.
    pub complete_percent: f64,
    /// Samples with names for at least half of their user frames: what can be diagnosed.
    pub named_percent: f64,
    /// User frames with a name, exact or inferred, of those of all samples: the same number as in the `quality` of
    /// the task. Null: there are no user frames.
    #[schema(required)]
    pub named_frames_percent: Option<f64>,
    /// Samples that a rule gave to a feature.
    pub attributed_percent: f64,
    /// Samples that no rule held for and that are not named.
    pub no_symbols_percent: f64,
    /// Enough samples are named for conclusions.
    pub sufficient: bool,
    /// Files whose frames have no names, most samples first.
    pub unnamed_modules: Vec<UnnamedModule>,
    /// What to give the agent so that more has names.
    #[schema(required)]
    pub supply: Option<String>,
}

/// A file that lacks names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UnnamedModule {
    pub module: String,
    /// Hexadecimal; Null: the file has none.
    #[schema(required)]
    pub build_id: Option<String>,
    /// Samples in whose stacks it has a frame without name.
    pub share_percent: f64,
}

/// What all of it comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosisTotals)]
pub struct Totals {
    /// CPUs that were busy on average, from `cpu_ns`.
    #[schema(required)]
    pub cpu_cores: Option<f64>,
    /// CPU time by the kernel's own accounting of the processes.
    #[schema(required)]
    pub cpu_ns: Option<u64>,
    /// CPU time that the samples stand for.
    pub sampled_ns: u64,
    #[schema(required)]
    pub requests: Option<Requests>,
    /// Microseconds of CPU time for each request.
    #[schema(required)]
    pub cpu_us_per_request: Option<Estimate>,
}

/// Requests in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosedRequests)]
pub struct Requests {
    pub count: u64,
    pub per_second: f64,
    /// Who counted them.
    pub source: String,
}

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Every sample in one cell: who asked for the work, and what kind of work it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosisMatrix)]
pub struct Matrix {
    /// Features that have samples, most first.
    pub features: Vec<FeatureInfo>,
    pub mechanisms: Vec<MechanismInfo>,
    /// Sums of the features, in their order.
    pub rows: Vec<MatrixRow>,
    /// Cells that have samples, most first.
    pub cells: Vec<MatrixCell>,
}

/// A feature, as people call it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosisFeature)]
pub struct FeatureInfo {
    /// As in `cell=`: `tracing`, `filter:rbac`.
    pub id: String,
    pub title: String,
    pub about: String,
    /// Some setting changes what it costs.
    pub settings: bool,
}

/// A column of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosisMechanism)]
pub struct MechanismInfo {
    pub id: String,
    pub title: String,
}

/// All samples of one feature; `low` and `high` are the 95 % interval of the share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosisRow)]
pub struct MatrixRow {
    pub feature: String,
    pub samples: u64,
    pub share_percent: f64,
    pub low: f64,
    pub high: f64,
}

impl MatrixRow {
    /// The share with its interval.
    pub fn share(&self) -> Estimate {
        Estimate {
            value: self.share_percent,
            low: self.low,
            high: self.high,
        }
    }
}

/// Samples of one feature and one mechanism.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosisCell)]
pub struct MatrixCell {
    pub feature: String,
    pub mechanism: String,
    pub samples: u64,
    pub ns: u64,
    pub share_percent: f64,
    pub low: f64,
    pub high: f64,
    /// Rules that put samples here, most first.
    pub rules: Vec<RuleSamples>,
}

/// How many samples a rule decided about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleSamples {
    pub rule: String,
    pub samples: u64,
}

/// The threads that do the work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosedWorkers)]
pub struct Workers {
    /// Most CPU time first.
    pub threads: Vec<WorkerThread>,
    /// Null: fewer than two workers, or too few samples.
    #[schema(required)]
    pub imbalance: Option<Imbalance>,
    /// Null: no quota, or not observed.
    #[schema(required)]
    pub throttled: Option<Throttled>,
    /// Who had the CPU while these processes waited for one. Null: waits were not recorded.
    #[schema(required)]
    pub contention: Option<CpuContention>,
}

/// What a thread is for, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThreadRole {
    Worker,
    Main,
    Helper,
    Other,
}

impl ThreadRole {
    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Main => "main",
            Self::Helper => "helper",
            Self::Other => "other",
        }
    }
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerThread {
    pub pid: u32,
    pub tid: u32,
    pub name: String,
    pub role: ThreadRole,
    /// Of one CPU: the kernel's accounting where it was observed, otherwise from samples.
    pub cpu_percent: f64,
    /// Of all samples.
    pub share_percent: f64,
    /// Of the window, ready to run without a CPU; Null when nobody measured it.
    #[schema(required)]
    pub run_queue_percent: Option<f64>,
    /// Who had the CPU meanwhile; Null when waits were not recorded.
    #[schema(required)]
    pub contention: Option<CpuContention>,
    /// Waits that are not idle, most time first; empty also when waits were not watched.
    pub waits: Vec<WorkerWait>,
    #[schema(required)]
    pub longest_wait_ns: Option<u64>,
}

/// Waits of one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerWait {
    pub reason: String,
    pub count: u64,
    pub ns: u64,
    /// Of the window.
    pub share_percent: f64,
}

/// Whether one worker has more to do than the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = WorkerImbalance)]
pub struct Imbalance {
    /// Percent of one CPU.
    pub busiest_percent: f64,
    pub mean_percent: f64,
    /// Busiest to mean, with its 95 % interval.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// More than chance.
    pub significant: bool,
}

/// What a CPU quota did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CpuThrottling)]
pub struct Throttled {
    pub periods: u64,
    pub throttled_periods: u64,
    pub throttled_ns: u64,
}

/// How long threads stayed away from their event loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosedEventLoop)]
pub struct EventLoopReport {
    pub threshold_ms: u64,
    pub threads: Vec<LoopThread>,
    /// Longest first.
    pub stalls: Vec<LoopStall>,
    /// Threads that are missing, and stalls that are counted and could not be listed; the limits say it.
    #[serde(skip)]
    pub lost: u64,
}

/// The event loop of one thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoopThread {
    pub tid: u32,
    pub name: String,
    pub loops: u64,
    /// Null: no loop has ended yet.
    #[schema(required)]
    pub loop_ns: Option<LoopLengths>,
    /// Loops that took longer than the threshold, and their time.
    pub stalls: u64,
    pub stalled_ns: u64,
}

/// Lengths of loops; upper bounds of the buckets that they were counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoopLengths {
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

/// One loop that took long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoopStall {
    pub tid: u32,
    pub name: String,
    /// Nanoseconds since the Unix epoch.
    pub start_ns: u64,
    pub duration_ns: u64,
    /// Where the thread was most, from the leaf on; empty when no sample fell into it.
    pub stack: Vec<String>,
    pub samples: u64,
}

/// What the connections of the processes show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosedNetwork)]
pub struct NetworkReport {
    pub connections_opened: u64,
    /// Null: requests are not known.
    #[schema(required)]
    pub connections_per_request: Option<f64>,
    /// Null: not measured, or nothing was sent.
    #[schema(required)]
    pub retransmit_percent: Option<f64>,
    pub resets: u64,
    /// Null: not measured.
    #[schema(required)]
    pub receive_wait_ns: Option<WaitLengths>,
}

/// Lengths of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitLengths {
    pub p50: u64,
    pub p99: u64,
}

/// Something that is as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GoodNews {
    pub id: String,
    pub title: String,
    pub text: String,
}

/// What the process says is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DiagnosedConfiguration)]
pub struct Configuration {
    pub source: String,
    #[schema(required)]
    pub version: Option<String>,
    #[schema(required)]
    pub concurrency: Option<u64>,
    pub items: Vec<Configured>,
}

/// One item of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfiguredItem)]
pub struct Configured {
    pub key: String,
    pub value: String,
}
