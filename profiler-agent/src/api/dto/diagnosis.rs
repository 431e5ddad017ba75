//! Forms of a diagnosis; the document itself is in `crates/model`.

use serde::Serialize;
use utoipa::ToSchema;

use crate::api::parameters::FromText;

/// How a diagnosis is written.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum DiagnosisFormat {
    #[default]
    Json,
    /// A report for people, as `profiler-agent diagnose --markdown` prints it, below a title.
    Markdown,
}

impl FromText for DiagnosisFormat {
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "json" => Some(Self::Json),
            "markdown" => Some(Self::Markdown),
            _ => None,
        }
    }
}
