//! A diagnosis: which part of a process costs what, with evidence and what changes it.
//!
//! Shares are percent of the time of the on-CPU samples that were diagnosed, 0 to 100; `low` and `high`
//! are their 95 % interval. `None` is not known, and [`Diagnosis::limits`] says why. Names of processes,
//! threads, frames, modules and containers, and values of configuration, are untrusted text.

/// See the module's description.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// One sentence.
    pub verdict: String,
    pub rules: RulesInForce,
    /// Most samples first.
    pub processes: Vec<DiagnosedProcess>,
    pub window: DiagnosedWindow,
    pub coverage: Coverage,
    pub totals: Totals,
    pub matrix: Matrix,
    pub workers: Workers,
    /// `None`: event loops were not watched.
    pub event_loop: Option<EventLoopReport>,
    /// `None`: connections were not watched.
    pub network: Option<NetworkReport>,
    /// What could be saved most first.
    pub findings: Vec<Finding>,
    /// What is as it should be.
    pub good: Vec<GoodNews>,
    /// What the process says is configured; `None` when it could not be asked.
    pub configuration: Option<Configuration>,
    /// What nothing is known of, in order of [`Measurement::ALL`].
    pub not_measured: Vec<Measurement>,
    /// What this cannot know, as sentences.
    pub limits: Vec<String>,
}

/// A part of the evidence that a diagnosis may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measurement {
    /// How long requests take. No check-up measures it.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesInForce {
    /// Version of the form of the rules.
    pub version: u32,
    /// The user's file with further rules.
    pub user_file: Option<String>,
}

/// A process that has samples.
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnosedProcess {
    pub pid: u32,
    pub start_ticks: u64,
    pub comm: String,
    pub exe: String,
    pub container: Option<String>,
    /// Which rules were applied: `envoy`, `nginx` or `generic`.
    pub rule_set: String,
    pub samples: u64,
    pub share_percent: f64,
}

/// When the samples were taken, nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiagnosedWindow {
    pub from_ns: u64,
    pub to_ns: u64,
    pub duration_s: f64,
}

/// How much of the samples can be believed.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    pub samples: u64,
    /// Stacks that end where their thread began.
    pub complete_percent: f64,
    /// Samples with names for at least half of their user frames: what can be diagnosed.
    pub named_percent: f64,
    /// User frames that have a name, exact or inferred, of those of all samples; `None`: there are none.
    /// As `render::quality` counts them for the result of a task.
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
    pub supply: Option<String>,
}

/// A file that lacks names.
#[derive(Clone, Debug, PartialEq)]
pub struct UnnamedModule {
    pub module: String,
    /// Hexadecimal; `None`: the file has none.
    pub build_id: Option<String>,
    /// Samples in whose stacks it has a frame without name.
    pub share_percent: f64,
}

/// What all of it comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// CPUs that were busy on average, from `cpu_ns`.
    pub cpu_cores: Option<f64>,
    /// CPU time by the kernel's own accounting of the processes.
    pub cpu_ns: Option<u64>,
    /// CPU time that the samples stand for.
    pub sampled_ns: u64,
    pub requests: Option<Requests>,
    /// Microseconds of CPU time for each request.
    pub cpu_us_per_request: Option<Estimate>,
}

/// Requests in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    pub count: u64,
    pub per_second: f64,
    /// Who counted them.
    pub source: String,
}

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Every sample in one cell: who asked for the work, and what kind of work it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Features that have samples, most first.
    pub features: Vec<FeatureInfo>,
    pub mechanisms: Vec<MechanismInfo>,
    /// Sums of the features, in their order.
    pub rows: Vec<MatrixRow>,
    /// Cells that have samples, most first.
    pub cells: Vec<MatrixCell>,
}

/// A row of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureInfo {
    /// As in `cell=`: `tracing`, `filter:rbac`.
    pub id: String,
    pub title: String,
    pub about: String,
    /// Some setting changes what it costs.
    pub settings: bool,
}

/// A column of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MechanismInfo {
    pub id: String,
    pub title: String,
}

/// All samples of one feature.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixRow {
    pub feature: String,
    pub samples: u64,
    pub share: Estimate,
}

/// Samples of one feature and one mechanism.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSamples {
    pub rule: String,
    pub samples: u64,
}

/// The threads that do the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Workers {
    /// Most CPU time first.
    pub threads: Vec<WorkerThread>,
    /// `None`: fewer than two workers, or too few samples.
    pub imbalance: Option<Imbalance>,
    /// `None`: no quota, or not observed.
    pub throttled: Option<Throttled>,
}

/// What a thread is for, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerThread {
    pub pid: u32,
    pub tid: u32,
    pub name: String,
    pub role: ThreadRole,
    /// Of one CPU: the kernel's accounting where it was observed, otherwise from samples.
    pub cpu_percent: f64,
    /// Of all samples.
    pub share_percent: f64,
    /// Of the window, ready to run without a CPU; `None` when nobody measured it.
    pub run_queue_percent: Option<f64>,
    /// Waits that are not idle, most time first; empty also when waits were not watched.
    pub waits: Vec<WorkerWait>,
    pub longest_wait_ns: Option<u64>,
}

/// Waits of one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerWait {
    pub reason: String,
    pub count: u64,
    pub ns: u64,
    /// Of the window.
    pub share_percent: f64,
}

/// Whether one worker has more to do than the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imbalance {
    /// Percent of one CPU, as in [`WorkerThread::cpu_percent`].
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    pub periods: u64,
    pub throttled_periods: u64,
    pub throttled_ns: u64,
}

/// How long threads stayed away from their event loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLoopReport {
    pub threshold_ms: u64,
    pub threads: Vec<LoopThread>,
    /// Longest first.
    pub stalls: Vec<LoopStall>,
    /// Threads that are missing, and stalls that are counted and could not be listed; the limits say it.
    pub lost: u64,
}

/// The event loop of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopThread {
    pub tid: u32,
    pub name: String,
    pub loops: u64,
    /// `None`: no loop is over yet.
    pub loop_ns: Option<LoopLengths>,
    /// Loops that took longer than the threshold, and their time.
    pub stalls: u64,
    pub stalled_ns: u64,
}

/// Lengths of loops; upper bounds of the buckets that they were counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopLengths {
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

/// One loop that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkReport {
    pub connections_opened: u64,
    /// `None`: requests are not known.
    pub connections_per_request: Option<f64>,
    /// `None`: not measured, or nothing was sent.
    pub retransmit_percent: Option<f64>,
    pub resets: u64,
    /// `None`: not measured.
    pub receive_wait_ns: Option<WaitLengths>,
}

/// Lengths of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitLengths {
    pub p50: u64,
    pub p99: u64,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    High,
    Medium,
    Low,
    Info,
}

impl Severity {
    pub const ALL: [Self; 4] = [Self::High, Self::Medium, Self::Low, Self::Info];

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
            Self::Info => "info",
        }
    }
}

/// What a finding rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// Names that tables of compiler, linker or runtime give, or counts of the kernel.
    Exact,
    /// Names that were inferred.
    Inferred,
    /// Names of threads only.
    Thread,
    Mixed,
}

impl Confidence {
    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Inferred => "inferred",
            Self::Thread => "thread",
            Self::Mixed => "mixed",
        }
    }
}

/// Something that costs, and what changes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub id: String,
    pub title: String,
    pub severity: Severity,
    /// Of the samples' time; of something else where `reason` says so.
    pub share_percent: f64,
    pub low: f64,
    pub high: f64,
    /// At most this much; `None`: not known, or not a matter of CPU time.
    pub saving: Option<Saving>,
    /// Frames that the rules matched, most samples first.
    pub evidence: Vec<EvidenceFrame>,
    /// Why this is a finding, what it counts and what it cannot count.
    pub reason: String,
    /// What the process itself says is configured now.
    pub configured: Option<String>,
    pub settings: Vec<FindingSetting>,
    pub confidence: Confidence,
    pub cells: Vec<CellChoice>,
}

/// The most that could be saved; never more than was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saving {
    pub percent_max: f64,
    /// `None`: requests are not known.
    pub us_per_request_max: Option<f64>,
}

/// A frame that decided.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceFrame {
    pub frame: String,
    pub share_percent: f64,
    pub samples: u64,
}

/// Something to change. None of it is from the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingSetting {
    /// `istio`, `envoy`, `nginx` or `kubernetes`.
    pub system: String,
    pub key: String,
    /// To be copied.
    pub yaml: String,
    /// What it applies to.
    pub scope: String,
    pub side_effects: String,
}

/// A cell, or all of a feature or of a mechanism, as the parameter `cell` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellChoice {
    /// `None`: every feature.
    pub feature: Option<String>,
    /// `None`: every mechanism.
    pub mechanism: Option<String>,
}

/// Something that is as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoodNews {
    pub id: String,
    pub title: String,
    pub text: String,
}

/// What the process says is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    pub source: String,
    pub version: Option<String>,
    pub concurrency: Option<u64>,
    pub items: Vec<Configured>,
}

/// One item of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    pub key: String,
    pub value: String,
}
