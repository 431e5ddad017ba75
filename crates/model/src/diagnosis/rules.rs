//! The rules of diagnoses, as people look at them.

use serde::Serialize;
use utoipa::ToSchema;

use super::{FeatureInfo, MechanismInfo};

/// All rules in force.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = DiagnosisRuleSets)]
pub struct RuleSets {
    /// Version of the form of the file.
    pub version: u32,
    /// Null: only the embedded rules.
    #[schema(required)]
    pub user_file: Option<String>,
    /// How much above what is usual the lower end of an interval must be for a finding, in percent.
    pub threshold_percent: f64,
    /// Kinds of processes that have rules of their own; the last takes all others.
    pub sets: Vec<String>,
    pub features: Vec<FeatureInfo>,
    pub mechanisms: Vec<MechanismInfo>,
    /// In their order: the first that holds for a function counts.
    pub rules: Vec<ListedRule>,
    pub findings: Vec<ListedFinding>,
}

/// Whose a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleOrigin {
    Embedded,
    User,
}

/// One rule: all conditions that are given must hold, of a list one entry must match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DiagnosisRule)]
pub struct ListedRule {
    pub name: String,
    /// `embedded` or `user`.
    #[schema(value_type = String)]
    pub origin: RuleOrigin,
    pub sets: Vec<String>,
    #[schema(required)]
    pub feature: Option<String>,
    #[schema(required)]
    pub mechanism: Option<String>,
    pub boundary: bool,
    /// `user` or `kernel`.
    pub space: &'static str,
    pub frames: Vec<String>,
    pub symbols: Vec<String>,
    pub module: Vec<String>,
    pub thread: Vec<String>,
    pub process: Vec<String>,
    pub with: Vec<String>,
    pub without: Vec<String>,
}

/// One finding that there can be.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = DiagnosisFindingRule)]
pub struct ListedFinding {
    pub id: String,
    pub title: String,
    pub sets: Vec<String>,
    pub cells: Vec<String>,
    /// What is usual and no finding.
    pub normal_percent: f64,
    /// Keys of what can be changed.
    pub settings: Vec<String>,
}
