//! The overview with the last check-up of each row.

use profiler_model::overview::Overview;
use serde::Serialize;
use utoipa::ToSchema;

use super::checkups::CheckupState;

/// How the pods of the node do, what needs attention first. Nothing is read where the agent was started with
/// `--overview off`.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct NodeOverview {
    /// False: it is off, and there are no rows.
    pub(in crate::api) is_on: bool,
    #[serde(flatten)]
    pub(in crate::api) overview: Overview,
    /// The newest check-up of each row that has one.
    pub(in crate::api) checkups: Vec<RowCheckup>,
}

/// The newest check-up of a row.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct RowCheckup {
    /// Id of the row.
    pub(in crate::api) row: String,
    /// Id of the check-up.
    pub(in crate::api) id: String,
    pub(in crate::api) state: CheckupState,
    pub(in crate::api) created_ns: u64,
    /// What it found, in short. Null while it runs, where it failed, and until it has been read once more. Untrusted text.
    #[schema(required)]
    pub(in crate::api) verdict: Option<String>,
}
