//! Profiles as files: pure functions from a profile to bytes.

pub mod diff;
pub mod event_loop;
pub mod names;
mod access_logs;
pub mod net_table;
mod overview;
pub mod quality;
pub mod report;
pub mod requests_table;
mod access_log_requests;
pub mod runtimes;
pub mod sequence;
pub mod summary;
pub mod text;

mod budget;
mod features;
mod flamegraph;
mod folded;
mod html;
pub mod pprof;
mod speedscope;
mod svg;
mod tree;
mod wakers;
pub mod wait_reasons;

#[cfg(test)]
mod tests;

pub use access_logs::{AccessLogCheck, access_log_table};
pub use budget::Budget;
pub use features::Features;
pub use overview::overview_table;
use profiler_model::{Clock, IdleShare, Profile, SampleRow};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Folded,
    Pprof,
    Svg,
    Speedscope,
    /// One file with the viewer and the profile, for reading without the agent.
    Html,
    /// The UI's binary columns, docs/flamegraph-format.md.
    Flamegraph,
}

impl Format {
    pub const ALL: [Self; 6] = [
        Self::Folded,
        Self::Pprof,
        Self::Svg,
        Self::Speedscope,
        Self::Html,
        Self::Flamegraph,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Folded => "folded",
            Self::Pprof => "pprof",
            Self::Svg => "svg",
            Self::Speedscope => "speedscope",
            Self::Html => "html",
            Self::Flamegraph => "flamegraph",
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Folded => "text/plain; charset=utf-8",
            Self::Pprof => "application/vnd.google.protobuf+gzip",
            Self::Svg => "image/svg+xml",
            Self::Speedscope => "application/json",
            Self::Html => "text/html; charset=utf-8",
            Self::Flamegraph => "application/vnd.profiler-agent.flamegraph",
        }
    }
}

/// What the numbers of a picture count. pprof has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Samples, or waits.
    Count,
    /// Nanoseconds.
    Duration,
}

impl Value {
    pub const ALL: [Self; 2] = [Self::Count, Self::Duration];

    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Duration => "duration",
        }
    }

    /// The default: one sample of a clock is as good as another, while the
    /// length of a wait is what matters of it.
    pub fn usual(profile: &Profile) -> Self {
        match profile.clock {
            Clock::CpuClock | Clock::Cycles => Self::Count,
            Clock::Switches | Clock::Wall => Self::Duration,
            Clock::Unknown if profile.total_count() == 0 => Self::Duration,
            Clock::Unknown => Self::Count,
        }
    }

    fn of(self, row: &SampleRow) -> u64 {
        match self {
            Self::Count => row.count,
            Self::Duration => row.total_ns,
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
    #[error("html needs the viewer of the web UI, which is not part of this build")]
    NoViewer,
    #[error("the viewer of the web UI has no place for {0}")]
    Template(&'static str),
}

/// How a profile is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct View<'a> {
    /// What the numbers count; without it, what is usual for the profile.
    pub value: Option<Value>,
    /// Shown in formats that carry one.
    pub title: &'a str,
    /// What is idle of the profile, also where that was taken out.
    pub idle: Option<&'a IdleShare>,
    /// The waker is shown above the place where the thread waited.
    pub wakers: bool,
    /// The viewer that [`Format::Html`] puts the profile into.
    pub template: Option<&'a str>,
    /// What the picture may take while it is made.
    pub budget: Budget,
    /// Which feature asked for the work, for [`Format::Flamegraph`].
    pub features: Option<&'a Features>,
}

/// Renders `profile`, which must have passed [`Profile::check`]; `title` is shown in formats that
/// carry one. The same profile always gives the same bytes.
pub fn render(profile: &Profile, format: Format, title: &str) -> Result<Vec<u8>, RenderError> {
    let view = View {
        title,
        ..View::default()
    };
    render_view(profile, format, &view)
}

/// The same with a choice of what is shown.
pub fn render_view(
    profile: &Profile,
    format: Format,
    view: &View<'_>,
) -> Result<Vec<u8>, RenderError> {
    let View {
        value,
        title,
        idle,
        wakers,
        template,
        budget,
        features,
    } = *view;
    let joined = wakers.then(|| wakers::shown(profile));
    let profile = joined.as_ref().unwrap_or(profile);
    let usual = value.unwrap_or_else(|| Value::usual(profile));
    let either = value.unwrap_or(Value::Duration);
    match format {
        Format::Folded => Ok(folded::render(profile, usual, budget)),
        Format::Pprof => pprof::render(profile, either, title, idle),
        Format::Svg => svg::render(profile, usual, title, idle, budget),
        Format::Speedscope => speedscope::render(profile, either, title, budget),
        Format::Html => {
            let template = template.ok_or(RenderError::NoViewer)?;
            html::render(profile, usual, view, template)
        }
        Format::Flamegraph => Ok(flamegraph::render(profile, usual, idle, budget, features)),
    }
}
