//! Findings of a diagnosis.

use profiler_model::diagnosis as model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that costs, and what changes it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Finding {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) severity: FindingSeverity,
    /// Of the samples' time; of something else where `reason` says so.
    pub(crate) share_percent: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// At most this much; Null: not known, or not a matter of CPU time.
    #[schema(required)]
    pub(crate) saving: Option<FindingSaving>,
    /// Frames that the rules matched, most samples first.
    pub(crate) evidence: Vec<FindingEvidence>,
    /// Why this is a finding, what it counts and what it cannot count.
    pub(crate) reason: String,
    /// What the process itself says is configured now.
    #[schema(required)]
    pub(crate) configured: Option<String>,
    pub(crate) settings: Vec<FindingSetting>,
    pub(crate) confidence: FindingConfidence,
    pub(crate) cells: Vec<FindingCell>,
}

impl From<model::Finding> for Finding {
    fn from(value: model::Finding) -> Self {
        let model::Finding {
            id,
            title,
            severity,
            share_percent,
            low,
            high,
            saving,
            evidence,
            reason,
            configured,
            settings,
            confidence,
            cells,
        } = value;
        Self {
            id,
            title,
            severity: severity.into(),
            share_percent,
            low,
            high,
            saving: saving.map(Into::into),
            evidence: evidence.into_iter().map(Into::into).collect(),
            reason,
            configured,
            settings: settings.into_iter().map(Into::into).collect(),
            confidence: confidence.into(),
            cells: cells.into_iter().map(Into::into).collect(),
        }
    }
}

/// The most that could be saved; never more than was measured.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct FindingSaving {
    pub(crate) percent_max: f64,
    /// Null: requests are not known.
    #[schema(required)]
    pub(crate) us_per_request_max: Option<f64>,
}

impl From<model::Saving> for FindingSaving {
    fn from(value: model::Saving) -> Self {
        let model::Saving {
            percent_max,
            us_per_request_max,
        } = value;
        Self {
            percent_max,
            us_per_request_max,
        }
    }
}

/// A frame that decided.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct FindingEvidence {
    pub(crate) frame: String,
    pub(crate) share_percent: f64,
    pub(crate) samples: u64,
}

impl From<model::EvidenceFrame> for FindingEvidence {
    fn from(value: model::EvidenceFrame) -> Self {
        let model::EvidenceFrame {
            frame,
            share_percent,
            samples,
        } = value;
        Self {
            frame,
            share_percent,
            samples,
        }
    }
}

/// Something to change. None of it is from the target.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct FindingSetting {
    #[schema(value_type = SettingSystem)]
    pub(crate) system: String,
    pub(crate) key: String,
    /// To be copied.
    pub(crate) yaml: String,
    /// What it applies to.
    pub(crate) scope: String,
    pub(crate) side_effects: String,
}

/// Whose setting it is.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "documents the field; rules are read with diagnosis::file::System"
)]
enum SettingSystem {
    Istio,
    Envoy,
    Nginx,
    Kubernetes,
}

impl From<model::FindingSetting> for FindingSetting {
    fn from(value: model::FindingSetting) -> Self {
        let model::FindingSetting {
            system,
            key,
            yaml,
            scope,
            side_effects,
        } = value;
        Self {
            system,
            key,
            yaml,
            scope,
            side_effects,
        }
    }
}

/// A cell, or all of a feature or of a mechanism, as the parameter `cell` takes it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct FindingCell {
    /// Null: every feature.
    #[schema(required)]
    pub(crate) feature: Option<String>,
    /// Null: every mechanism.
    #[schema(required)]
    pub(crate) mechanism: Option<String>,
}

impl From<model::CellChoice> for FindingCell {
    fn from(value: model::CellChoice) -> Self {
        let model::CellChoice { feature, mechanism } = value;
        Self { feature, mechanism }
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FindingSeverity {
    High,
    Medium,
    Low,
    Info,
}

impl From<model::Severity> for FindingSeverity {
    fn from(value: model::Severity) -> Self {
        match value {
            model::Severity::High => Self::High,
            model::Severity::Medium => Self::Medium,
            model::Severity::Low => Self::Low,
            model::Severity::Info => Self::Info,
        }
    }
}

/// What a finding rests on: names from tables or counts of the kernel, inferred names, names of threads only, or several of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FindingConfidence {
    Exact,
    Inferred,
    Thread,
    Mixed,
}

impl From<model::Confidence> for FindingConfidence {
    fn from(value: model::Confidence) -> Self {
        match value {
            model::Confidence::Exact => Self::Exact,
            model::Confidence::Inferred => Self::Inferred,
            model::Confidence::Thread => Self::Thread,
            model::Confidence::Mixed => Self::Mixed,
        }
    }
}
