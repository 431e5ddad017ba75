//! The rules of diagnoses.

use profiler_analysis::diagnosis::{ListedFinding, ListedRule, RuleOrigin, RuleSets};
use serde::Serialize;
use utoipa::ToSchema;

use super::diagnosis_matrix::{DiagnosisFeature, DiagnosisMechanism};

/// All rules in force.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct DiagnosisRuleSets {
    /// Version of the form of the file.
    version: u32,
    /// Null: only the embedded rules.
    #[schema(required)]
    user_file: Option<String>,
    /// How much above what is usual the lower end of an interval must be for a finding, in percent.
    threshold_percent: f64,
    /// Kinds of processes that have rules of their own; the last takes all others.
    sets: Vec<String>,
    features: Vec<DiagnosisFeature>,
    mechanisms: Vec<DiagnosisMechanism>,
    /// In their order: the first that holds for a function counts.
    rules: Vec<DiagnosisRule>,
    findings: Vec<DiagnosisFindingRule>,
}

/// One rule: all conditions that are given must hold, of a list one entry must match.
#[derive(Debug, Serialize, ToSchema)]
struct DiagnosisRule {
    name: String,
    /// `embedded` or `user`.
    origin: &'static str,
    sets: Vec<String>,
    #[schema(required)]
    feature: Option<String>,
    #[schema(required)]
    mechanism: Option<String>,
    boundary: bool,
    /// `user` or `kernel`.
    space: &'static str,
    frames: Vec<String>,
    symbols: Vec<String>,
    module: Vec<String>,
    thread: Vec<String>,
    process: Vec<String>,
    with: Vec<String>,
    without: Vec<String>,
}

/// One finding that there can be.
#[derive(Debug, Serialize, ToSchema)]
struct DiagnosisFindingRule {
    id: String,
    title: String,
    sets: Vec<String>,
    cells: Vec<String>,
    /// What is usual and no finding.
    normal_percent: f64,
    /// Keys of what can be changed.
    settings: Vec<String>,
}

impl From<RuleSets> for DiagnosisRuleSets {
    fn from(sets: RuleSets) -> Self {
        let RuleSets {
            version,
            user_file,
            threshold_percent,
            sets,
            features,
            mechanisms,
            rules,
            findings,
        } = sets;
        Self {
            version,
            user_file,
            threshold_percent,
            sets,
            features: features.into_iter().map(Into::into).collect(),
            mechanisms: mechanisms.into_iter().map(Into::into).collect(),
            rules: rules.into_iter().map(Into::into).collect(),
            findings: findings.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<ListedRule> for DiagnosisRule {
    fn from(rule: ListedRule) -> Self {
        let ListedRule {
            name,
            origin,
            sets,
            feature,
            mechanism,
            boundary,
            space,
            frames,
            symbols,
            module,
            thread,
            process,
            with,
            without,
        } = rule;
        Self {
            name,
            origin: match origin {
                RuleOrigin::Embedded => "embedded",
                RuleOrigin::User => "user",
            },
            sets,
            feature,
            mechanism,
            boundary,
            space,
            frames,
            symbols,
            module,
            thread,
            process,
            with,
            without,
        }
    }
}

impl From<ListedFinding> for DiagnosisFindingRule {
    fn from(finding: ListedFinding) -> Self {
        let ListedFinding {
            id,
            title,
            sets,
            cells,
            normal_percent,
            settings,
        } = finding;
        Self {
            id,
            title,
            sets,
            cells,
            normal_percent,
            settings,
        }
    }
}
