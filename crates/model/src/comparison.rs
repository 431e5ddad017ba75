//! Two diagnoses side by side: what changed, and whether by more than chance.

use serde::Serialize;
use utoipa::ToSchema;

use crate::latency::Latency;

/// `a` is the earlier one. Names of check-ups and features are the agent's own; those of programs are untrusted.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckupComparison {
    /// Whose CPU time is compared, each once.
    pub programs: Vec<String>,
    /// Of the same targets, and not compared.
    pub other_programs: Vec<String>,
    /// How long requests take; `None` where that is not known on both sides.
    pub latency: Option<ComparedLatency>,
    pub totals: ComparedTotals,
    /// Why features and findings are not compared; there are none then.
    pub not_compared: Option<String>,
    /// The largest change first.
    pub rows: Vec<ComparedRow>,
    pub findings: ComparedFindings,
    /// One sentence.
    pub verdict: String,
}

/// How long the requests to one program take on both sides. Nothing says how much of a difference is chance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ComparedLatency {
    /// Name of the process that the requests came to. Untrusted.
    pub process: String,
    pub a: LatencyNumbers,
    pub b: LatencyNumbers,
}

/// Nanoseconds, as in `RequestLatency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct LatencyNumbers {
    pub requests: u64,
    pub mean_ns: u64,
    pub p50_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
}

impl LatencyNumbers {
    pub fn of(latency: &Latency) -> Self {
        let Latency {
            requests,
            mean_ns,
            p50_ns,
            p95_ns,
            p99_ns,
            ..
        } = *latency;
        Self {
            requests,
            mean_ns,
            p50_ns,
            p95_ns,
            p99_ns,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct ComparedTotals {
    /// Null when requests are not known on both sides.
    #[schema(required)]
    pub cpu_us_per_request: Option<ComparedTotal>,
    /// Null when the kernel's accounts were not read on both sides.
    #[schema(required)]
    pub cpu_cores: Option<ComparedTotal>,
}

/// A number of each side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct ComparedTotal {
    pub a: f64,
    pub b: f64,
    /// Of `a`; `low` and `high` are its 95 % interval, with what runs of the same differ by.
    pub change_percent: f64,
    pub low: f64,
    pub high: f64,
    /// The interval is without zero.
    pub significant: bool,
}

/// A feature on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ComparedRow {
    pub feature: String,
    /// Its name for people.
    pub title: String,
    pub a_percent: f64,
    pub b_percent: f64,
    /// Microseconds of CPU time for each request; null when requests are not known.
    #[schema(required)]
    pub a_us: Option<f64>,
    #[schema(required)]
    pub b_us: Option<f64>,
    /// Points of percent, `b` minus `a`; `low` and `high` are its 95 % interval.
    pub change: f64,
    pub low: f64,
    pub high: f64,
    /// Adjusted for the number of rows; null when there are too few samples for a test.
    #[schema(required)]
    pub p: Option<f64>,
    /// `p` is below 0.05, and the change is one point at least.
    pub significant: bool,
}

/// Findings by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ComparedFindings {
    pub gone: Vec<FindingName>,
    pub new: Vec<FindingName>,
    pub still: Vec<FindingName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ComparedFinding)]
pub struct FindingName {
    pub id: String,
    pub title: String,
}
