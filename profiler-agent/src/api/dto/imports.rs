//! Profiles from files.

use profiler_model as model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How an imported file was written.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum ImportFormat {
    Pprof,
    Folded,
}

/// Which numbers an imported file has.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum ImportValues {
    Counts,
    Durations,
    Both,
}

/// An imported file, and what it does not say.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct ImportedFile {
    name: String,
    format: ImportFormat,
    values: ImportValues,
    /// Whether samples say when they were taken; without, all of them are at the task's start.
    has_times: bool,
    /// Whether samples say which thread they are of; without, all of them are of one.
    has_threads: bool,
}

impl From<&model::ImportedFile> for ImportedFile {
    fn from(file: &model::ImportedFile) -> Self {
        let model::ImportedFile {
            name,
            format,
            values,
            has_times,
            has_threads,
        } = file;
        Self {
            name: name.clone(),
            format: match format {
                model::ImportFormat::Pprof => ImportFormat::Pprof,
                model::ImportFormat::Folded => ImportFormat::Folded,
            },
            values: match values {
                model::ImportValues::Counts => ImportValues::Counts,
                model::ImportValues::Durations => ImportValues::Durations,
                model::ImportValues::Both => ImportValues::Both,
            },
            has_times: *has_times,
            has_threads: *has_threads,
        }
    }
}
