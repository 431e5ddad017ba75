//! A diagnosis as a report for people: text for a terminal, or Markdown.
//!
//! The verdict comes first, then where requests spend their time, what to change and what costs what, and at the end what
//! all of this cannot know.

mod comparison;
mod document;
mod findings;
mod latency;
mod parts;

use document::Block;
use profiler_model::{comparison::CheckupComparison, diagnosis::Diagnosis};

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportForm {
    Text,
    Markdown,
}

/// A whole report; with a comparison that comes before everything but the verdict.
pub fn report(
    diagnosis: &Diagnosis,
    comparison: Option<&CheckupComparison>,
    form: ReportForm,
) -> String {
    let mut blocks = parts::head(diagnosis);
    if let Some(comparison) = comparison {
        blocks.extend(comparison::blocks(comparison));
    }
    blocks.extend(latency::blocks(diagnosis));
    blocks.extend(findings::blocks(diagnosis));
    blocks.extend(parts::good(diagnosis));
    blocks.extend(parts::matrix(diagnosis));
    blocks.extend(parts::workers(diagnosis));
    blocks.extend(parts::event_loop(diagnosis));
    blocks.extend(parts::network(diagnosis));
    blocks.extend(parts::configuration(diagnosis));
    blocks.extend(parts::limits(diagnosis));
    written(&blocks, form)
}

/// A report in Markdown that stands for itself: its title says what was diagnosed. `source` is where the
/// samples are: `task 7`.
pub fn titled(diagnosis: &Diagnosis, source: &str) -> String {
    document::title(&parts::title(diagnosis, source))
        + &report(diagnosis, None, ReportForm::Markdown)
}

/// A comparison in Markdown that stands for itself; `sides` are the earlier and the later measurement.
pub fn compared(comparison: &CheckupComparison, sides: [&str; 2]) -> String {
    let [earlier, later] = sides;
    document::title(&document::plain(format!("{later} against {earlier}")))
        + &written(&comparison::blocks(comparison), ReportForm::Markdown)
}

fn written(blocks: &[Block], form: ReportForm) -> String {
    match form {
        ReportForm::Text => document::text(blocks),
        ReportForm::Markdown => document::markdown(blocks),
    }
}

#[cfg(any(test, feature = "samples"))]
pub mod samples;
#[cfg(test)]
mod tests;
