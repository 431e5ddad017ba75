//! Profiles as files: pure functions from a profile to bytes.

pub mod names;
pub mod quality;
pub mod summary;

mod flamegraph;
mod folded;
mod pprof;
mod speedscope;
mod svg;
mod tree;

#[cfg(test)]
mod tests;

use crate::model::Profile;

/// What a format's numbers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Folded,
    Pprof,
    Svg,
    Speedscope,
    /// The UI's binary columns, docs/flamegraph-format.md.
    Flamegraph,
}

impl Format {
    pub const ALL: [Self; 5] = [
        Self::Folded,
        Self::Pprof,
        Self::Svg,
        Self::Speedscope,
        Self::Flamegraph,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Folded => "folded",
            Self::Pprof => "pprof",
            Self::Svg => "svg",
            Self::Speedscope => "speedscope",
            Self::Flamegraph => "flamegraph",
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Folded => "text/plain; charset=utf-8",
            Self::Pprof => "application/vnd.google.protobuf+gzip",
            Self::Svg => "image/svg+xml",
            Self::Speedscope => "application/json",
            Self::Flamegraph => "application/vnd.profiler-agent.flamegraph",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    #[error("draw flame graph: {0}")]
    Svg(String),
    #[error("compress profile: {0}")]
    Compress(#[from] std::io::Error),
    #[error("encode speedscope: {0}")]
    Json(#[from] serde_json::Error),
}

/// Renders `profile`, which must have passed [`Profile::check`]; `title` is shown in formats that
/// carry one. The same profile always gives the same bytes.
pub fn render(profile: &Profile, format: Format, title: &str) -> Result<Vec<u8>, RenderError> {
    match format {
        Format::Folded => Ok(folded::render(profile)),
        Format::Pprof => pprof::render(profile, title),
        Format::Svg => svg::render(profile, title),
        Format::Speedscope => speedscope::render(profile, title),
        Format::Flamegraph => Ok(flamegraph::render(profile)),
    }
}
