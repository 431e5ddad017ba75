//! A diagnosis: the document, what it is about, and how much of it can be believed.

use profiler_model::diagnosis as model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    diagnosis_findings::Finding,
    diagnosis_matrix::DiagnosisMatrix,
    diagnosis_workers::{DiagnosedEventLoop, DiagnosedNetwork, DiagnosedWorkers},
};

/// Version of the form of the document.
const VERSION: u32 = 1;

/// Which part of a process costs what. Shares are percent of the time of the on-CPU samples in the
/// selection; `low` and `high` are their 95 % interval. Null is not known, and `limits` says why.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Diagnosis {
    /// Version of this form.
    pub(crate) version: u32,
    /// One sentence.
    pub(crate) verdict: String,
    pub(crate) rules: DiagnosisRules,
    /// Most samples first.
    pub(crate) processes: Vec<DiagnosedProcess>,
    pub(crate) window: DiagnosedWindow,
    pub(crate) coverage: DiagnosisCoverage,
    pub(crate) totals: DiagnosisTotals,
    pub(crate) matrix: DiagnosisMatrix,
    pub(crate) workers: DiagnosedWorkers,
    /// Null: event loops were not watched.
    #[schema(required)]
    pub(crate) event_loop: Option<DiagnosedEventLoop>,
    /// Null: connections were not watched.
    #[schema(required)]
    pub(crate) network: Option<DiagnosedNetwork>,
    /// What could be saved most first.
    pub(crate) findings: Vec<Finding>,
    /// What is as it should be.
    pub(crate) good: Vec<GoodNews>,
    /// What the process says is configured; Null when it could not be asked.
    #[schema(required)]
    pub(crate) configuration: Option<DiagnosedConfiguration>,
    /// What nothing is known of. A verdict without findings says nothing about these.
    #[serde(default)]
    #[schema(required)]
    pub(crate) not_measured: Vec<Measurement>,
    /// What this cannot know, as sentences.
    pub(crate) limits: Vec<String>,
}

/// A part of the evidence that a diagnosis may lack: `latency` is how long requests take, which no check-up
/// measures; `cpu_time` is by the kernel's own accounting; `requests` is how many there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Measurement {
    Latency,
    Waits,
    Connections,
    EventLoops,
    CpuTime,
    Requests,
    Configuration,
}

impl From<model::Measurement> for Measurement {
    fn from(part: model::Measurement) -> Self {
        match part {
            model::Measurement::Latency => Self::Latency,
            model::Measurement::Waits => Self::Waits,
            model::Measurement::Connections => Self::Connections,
            model::Measurement::EventLoops => Self::EventLoops,
            model::Measurement::CpuTime => Self::CpuTime,
            model::Measurement::Requests => Self::Requests,
            model::Measurement::Configuration => Self::Configuration,
        }
    }
}

impl From<Measurement> for model::Measurement {
    fn from(part: Measurement) -> Self {
        match part {
            Measurement::Latency => Self::Latency,
            Measurement::Waits => Self::Waits,
            Measurement::Connections => Self::Connections,
            Measurement::EventLoops => Self::EventLoops,
            Measurement::CpuTime => Self::CpuTime,
            Measurement::Requests => Self::Requests,
            Measurement::Configuration => Self::Configuration,
        }
    }
}

impl From<model::Diagnosis> for Diagnosis {
    fn from(diagnosis: model::Diagnosis) -> Self {
        let model::Diagnosis {
            verdict,
            rules,
            processes,
            window,
            coverage,
            totals,
            matrix,
            workers,
            event_loop,
            network,
            findings,
            good,
            configuration,
            not_measured,
            limits,
        } = diagnosis;
        Self {
            version: VERSION,
            verdict,
            rules: rules.into(),
            processes: processes.into_iter().map(Into::into).collect(),
            window: window.into(),
            coverage: coverage.into(),
            totals: totals.into(),
            matrix: matrix.into(),
            workers: workers.into(),
            event_loop: event_loop.map(Into::into),
            network: network.map(Into::into),
            findings: findings.into_iter().map(Into::into).collect(),
            good: good.into_iter().map(Into::into).collect(),
            configuration: configuration.map(Into::into),
            not_measured: not_measured.into_iter().map(Into::into).collect(),
            limits,
        }
    }
}

/// The rules that a diagnosis was made by.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosisRules {
    /// Version of the form of the rules.
    pub(crate) version: u32,
    /// The user's file with further rules.
    #[schema(required)]
    pub(crate) user_file: Option<String>,
}

impl From<model::RulesInForce> for DiagnosisRules {
    fn from(value: model::RulesInForce) -> Self {
        let model::RulesInForce { version, user_file } = value;
        Self { version, user_file }
    }
}

/// A process that has samples.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosedProcess {
    pub(crate) pid: u32,
    pub(crate) start_ticks: u64,
    pub(crate) comm: String,
    pub(crate) exe: String,
    #[schema(required)]
    pub(crate) container: Option<String>,
    /// Which rules were applied: `envoy`, `nginx` or `generic`.
    pub(crate) rule_set: String,
    pub(crate) samples: u64,
    pub(crate) share_percent: f64,
}

impl From<model::DiagnosedProcess> for DiagnosedProcess {
    fn from(value: model::DiagnosedProcess) -> Self {
        let model::DiagnosedProcess {
            pid,
            start_ticks,
            comm,
            exe,
            container,
            rule_set,
            samples,
            share_percent,
        } = value;
        Self {
            pid,
            start_ticks,
            comm,
            exe,
            container,
            rule_set,
            samples,
            share_percent,
        }
    }
}

/// When the samples were taken, nanoseconds since the Unix epoch.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosedWindow {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) duration_s: f64,
}

impl From<model::DiagnosedWindow> for DiagnosedWindow {
    fn from(value: model::DiagnosedWindow) -> Self {
        let model::DiagnosedWindow {
            from_ns,
            to_ns,
            duration_s,
        } = value;
        Self {
            from_ns,
            to_ns,
            duration_s,
        }
    }
}

/// How much of the samples can be believed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosisCoverage {
    pub(crate) samples: u64,
    /// Stacks that end where their thread began.
    pub(crate) complete_percent: f64,
    /// Samples with names for at least half of their user frames: what can be diagnosed.
    pub(crate) named_percent: f64,
    /// User frames with a name, exact or inferred, of those of all samples: the same number as in the `quality` of
    /// the task. Null: there are no user frames.
    #[schema(required)]
    pub(crate) named_frames_percent: Option<f64>,
    /// Samples that a rule gave to a feature.
    pub(crate) attributed_percent: f64,
    /// Samples that no rule held for and that are not named.
    pub(crate) no_symbols_percent: f64,
    /// Enough samples are named for conclusions.
    pub(crate) sufficient: bool,
    /// Files whose frames have no names, most samples first.
    pub(crate) unnamed_modules: Vec<UnnamedModule>,
    /// What to give the agent so that more has names.
    #[schema(required)]
    pub(crate) supply: Option<String>,
}

impl From<model::Coverage> for DiagnosisCoverage {
    fn from(value: model::Coverage) -> Self {
        let model::Coverage {
            samples,
            complete_percent,
            named_percent,
            named_frames_percent,
            attributed_percent,
            no_symbols_percent,
            sufficient,
            unnamed_modules,
            supply,
        } = value;
        Self {
            samples,
            complete_percent,
            named_percent,
            named_frames_percent,
            attributed_percent,
            no_symbols_percent,
            sufficient,
            unnamed_modules: unnamed_modules.into_iter().map(Into::into).collect(),
            supply,
        }
    }
}

/// A file that lacks names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct UnnamedModule {
    pub(crate) module: String,
    /// Hexadecimal; Null: the file has none.
    #[schema(required)]
    pub(crate) build_id: Option<String>,
    /// Samples in whose stacks it has a frame without name.
    pub(crate) share_percent: f64,
}

impl From<model::UnnamedModule> for UnnamedModule {
    fn from(value: model::UnnamedModule) -> Self {
        let model::UnnamedModule {
            module,
            build_id,
            share_percent,
        } = value;
        Self {
            module,
            build_id,
            share_percent,
        }
    }
}

/// What all of it comes to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosisTotals {
    /// CPUs that were busy on average, from `cpu_ns`.
    #[schema(required)]
    pub(crate) cpu_cores: Option<f64>,
    /// CPU time by the kernel's own accounting of the processes.
    #[schema(required)]
    pub(crate) cpu_ns: Option<u64>,
    /// CPU time that the samples stand for.
    pub(crate) sampled_ns: u64,
    #[schema(required)]
    pub(crate) requests: Option<DiagnosedRequests>,
    /// Microseconds of CPU time for each request.
    #[schema(required)]
    pub(crate) cpu_us_per_request: Option<Estimate>,
}

impl From<model::Totals> for DiagnosisTotals {
    fn from(value: model::Totals) -> Self {
        let model::Totals {
            cpu_cores,
            cpu_ns,
            sampled_ns,
            requests,
            cpu_us_per_request,
        } = value;
        Self {
            cpu_cores,
            cpu_ns,
            sampled_ns,
            requests: requests.map(Into::into),
            cpu_us_per_request: cpu_us_per_request.map(Into::into),
        }
    }
}

/// Requests in the window.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosedRequests {
    pub(crate) count: u64,
    pub(crate) per_second: f64,
    /// Who counted them.
    pub(crate) source: String,
}

impl From<model::Requests> for DiagnosedRequests {
    fn from(value: model::Requests) -> Self {
        let model::Requests {
            count,
            per_second,
            source,
        } = value;
        Self {
            count,
            per_second,
            source,
        }
    }
}

/// A number with its 95 % interval.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl From<model::Estimate> for Estimate {
    fn from(value: model::Estimate) -> Self {
        let model::Estimate { value, low, high } = value;
        Self { value, low, high }
    }
}

/// What the process says is configured.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosedConfiguration {
    pub(crate) source: String,
    #[schema(required)]
    pub(crate) version: Option<String>,
    #[schema(required)]
    pub(crate) concurrency: Option<u64>,
    pub(crate) items: Vec<ConfiguredItem>,
}

impl From<model::Configuration> for DiagnosedConfiguration {
    fn from(value: model::Configuration) -> Self {
        let model::Configuration {
            source,
            version,
            concurrency,
            items,
        } = value;
        Self {
            source,
            version,
            concurrency,
            items: items.into_iter().map(Into::into).collect(),
        }
    }
}

/// One item of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ConfiguredItem {
    pub(crate) key: String,
    pub(crate) value: String,
}

impl From<model::Configured> for ConfiguredItem {
    fn from(value: model::Configured) -> Self {
        let model::Configured { key, value } = value;
        Self { key, value }
    }
}

/// Something that is as it should be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct GoodNews {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

impl From<model::GoodNews> for GoodNews {
    fn from(value: model::GoodNews) -> Self {
        let model::GoodNews { id, title, text } = value;
        Self { id, title, text }
    }
}
