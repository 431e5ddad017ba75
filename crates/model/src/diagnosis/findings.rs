//! Findings of a diagnosis.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FindingSeverity)]
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

/// What a finding rests on: names from tables or counts of the kernel, inferred names, names of threads only, or several of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FindingConfidence)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    pub id: String,
    pub title: String,
    pub severity: Severity,
    /// Of the samples' time; of something else where `reason` says so.
    pub share_percent: f64,
    pub low: f64,
    pub high: f64,
    /// At most this much; Null: not known, or not a matter of CPU time.
    #[schema(required)]
    pub saving: Option<Saving>,
    /// Frames that the rules matched, most samples first.
    pub evidence: Vec<EvidenceFrame>,
    /// Why this is a finding, what it counts and what it cannot count.
    pub reason: String,
    /// What the process itself says is configured now.
    #[schema(required)]
    pub configured: Option<String>,
    pub settings: Vec<FindingSetting>,
    pub confidence: Confidence,
    pub cells: Vec<CellChoice>,
}

/// What is above the usual. Switching it off saves more where it leaves work to other parts, and less where another
/// part takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = FindingSaving)]
pub struct Saving {
    pub percent: f64,
    /// Null: requests are not known.
    #[schema(required)]
    pub us_per_request: Option<f64>,
}

/// A frame that decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = FindingEvidence)]
pub struct EvidenceFrame {
    pub frame: String,
    pub share_percent: f64,
    pub samples: u64,
}

/// Something to change. Names and labels of the pod, and what is configured now, may be in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingSetting {
    #[schema(value_type = SettingSystem)]
    pub system: String,
    pub key: String,
    /// To be copied.
    pub yaml: String,
    /// What it applies to.
    pub scope: String,
    pub side_effects: String,
    /// How it is taken back.
    #[serde(default)]
    #[schema(required)]
    pub undo: String,
}

/// Whose setting it is.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents a field; the readers of rules have a type of their own"
)]
enum SettingSystem {
    Istio,
    Envoy,
    Nginx,
    Kubernetes,
}

/// A cell, or all of a feature or of a mechanism, as the parameter `cell` takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = FindingCell)]
pub struct CellChoice {
    /// Null: every feature.
    #[schema(required)]
    pub feature: Option<String>,
    /// Null: every mechanism.
    #[schema(required)]
    pub mechanism: Option<String>,
}

impl Finding {
    /// `23.5 % (21.0 to 26.1)`; a number that is exact has no interval.
    pub fn share_text(&self) -> String {
        let Self {
            share_percent,
            low,
            high,
            ..
        } = self;
        let (low, high) = (format!("{low:.1}"), format!("{high:.1}"));
        if low == high {
            return format!("{share_percent:.1} %");
        }
        format!("{share_percent:.1} % ({low} to {high})")
    }
}
