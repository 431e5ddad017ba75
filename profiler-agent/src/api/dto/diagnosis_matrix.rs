//! The matrix of a diagnosis: features by mechanisms.

use profiler_model::diagnosis as model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Every sample in one cell: who asked for the work, and what kind of work it is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosisMatrix {
    /// Features that have samples, most first.
    pub(crate) features: Vec<DiagnosisFeature>,
    pub(crate) mechanisms: Vec<DiagnosisMechanism>,
    /// Sums of the features, in their order.
    pub(crate) rows: Vec<DiagnosisRow>,
    /// Cells that have samples, most first.
    pub(crate) cells: Vec<DiagnosisCell>,
}

impl From<model::Matrix> for DiagnosisMatrix {
    fn from(value: model::Matrix) -> Self {
        let model::Matrix {
            features,
            mechanisms,
            rows,
            cells,
        } = value;
        Self {
            features: features.into_iter().map(Into::into).collect(),
            mechanisms: mechanisms.into_iter().map(Into::into).collect(),
            rows: rows.into_iter().map(Into::into).collect(),
            cells: cells.into_iter().map(Into::into).collect(),
        }
    }
}

/// All samples of one feature; `low` and `high` are the 95 % interval of the share.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosisRow {
    pub(crate) feature: String,
    pub(crate) samples: u64,
    pub(crate) share_percent: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl From<model::MatrixRow> for DiagnosisRow {
    fn from(value: model::MatrixRow) -> Self {
        let model::MatrixRow {
            feature,
            samples,
            share,
        } = value;
        Self {
            feature,
            samples,
            share_percent: share.value,
            low: share.low,
            high: share.high,
        }
    }
}

/// A feature, as people call it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosisFeature {
    /// As in `cell=`: `tracing`, `filter:rbac`.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) about: String,
    /// Some setting changes what it costs.
    pub(crate) settings: bool,
}

impl From<model::FeatureInfo> for DiagnosisFeature {
    fn from(value: model::FeatureInfo) -> Self {
        let model::FeatureInfo {
            id,
            title,
            about,
            settings,
        } = value;
        Self {
            id,
            title,
            about,
            settings,
        }
    }
}

/// A column of the matrix.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosisMechanism {
    pub(crate) id: String,
    pub(crate) title: String,
}

impl From<model::MechanismInfo> for DiagnosisMechanism {
    fn from(value: model::MechanismInfo) -> Self {
        let model::MechanismInfo { id, title } = value;
        Self { id, title }
    }
}

/// Samples of one feature and one mechanism.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DiagnosisCell {
    pub(crate) feature: String,
    pub(crate) mechanism: String,
    pub(crate) samples: u64,
    pub(crate) ns: u64,
    pub(crate) share_percent: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Rules that put samples here, most first.
    pub(crate) rules: Vec<RuleSamples>,
}

impl From<model::MatrixCell> for DiagnosisCell {
    fn from(value: model::MatrixCell) -> Self {
        let model::MatrixCell {
            feature,
            mechanism,
            samples,
            ns,
            share_percent,
            low,
            high,
            rules,
        } = value;
        Self {
            feature,
            mechanism,
            samples,
            ns,
            share_percent,
            low,
            high,
            rules: rules.into_iter().map(Into::into).collect(),
        }
    }
}

/// How many samples a rule decided about.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RuleSamples {
    pub(crate) rule: String,
    pub(crate) samples: u64,
}

impl From<model::RuleSamples> for RuleSamples {
    fn from(value: model::RuleSamples) -> Self {
        let model::RuleSamples { rule, samples } = value;
        Self { rule, samples }
    }
}
