//! What names profiles of a process will have.

use profiler_model::NameSource;
use profiler_symbolize::{FileForecast, Forecast};
use serde::Serialize;
use utoipa::ToSchema;

/// The files that a process executes, and where the names of their functions can come from.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ProcessSymbols {
    /// The program itself first.
    files: Vec<ProcessFile>,
    /// Executable mappings without a file: code that was made while running.
    anonymous_executable_mappings: usize,
    /// Why its stacks cannot be walked at all.
    #[schema(required)]
    refusal: Option<&'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ProcessFile {
    path: String,
    #[schema(required)]
    build_id: Option<String>,
    /// In the order in which they are asked.
    names_from: Vec<&'static str>,
    /// Static functions have names as well, not only exported ones.
    complete: bool,
    /// Lines and inlined functions are known.
    lines: bool,
    unwind_table: bool,
    /// Why the file is of no use.
    #[schema(required)]
    refusal: Option<String>,
    /// What would give better names; empty when there is nothing to do.
    remedy: String,
}

impl From<&Forecast> for ProcessSymbols {
    fn from(forecast: &Forecast) -> Self {
        let Forecast {
            comm: _,
            files,
            anonymous,
            is_32_bit,
        } = forecast;
        Self {
            files: files.iter().map(Into::into).collect(),
            anonymous_executable_mappings: *anonymous,
            refusal: is_32_bit.then_some("it runs 32-bit code, whose stacks are not walked"),
        }
    }
}

impl From<&FileForecast> for ProcessFile {
    fn from(forecast: &FileForecast) -> Self {
        let remedy = forecast.remedy();
        let FileForecast {
            path,
            build_id,
            sources,
            is_complete,
            has_lines,
            has_unwind_table,
            frame_pointers: _,
            refusal,
        } = forecast;
        Self {
            path: path.clone(),
            build_id: Some(build_id.clone()).filter(|id| !id.is_empty()),
            names_from: sources
                .iter()
                .map(|source| NameSource::name(*source))
                .collect(),
            complete: *is_complete,
            lines: *has_lines,
            unwind_table: *has_unwind_table,
            refusal: refusal.clone(),
            remedy,
        }
    }
}
