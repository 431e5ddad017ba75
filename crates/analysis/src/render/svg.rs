//! A static flame graph, drawn by inferno from folded stacks.

use std::time::Duration;

use inferno::flamegraph::{
    self, Options,
    color::{BasicPalette, Palette},
};
use profiler_model::{Clock, IdleShare, Profile, printable::printable};

use super::{Budget, RenderError, Value, folded};

/// A frame in the memory of the library that draws, and its text in the picture.
const FRAME_BYTES: u64 = 500;

pub(super) fn render(
    profile: &Profile,
    value: Value,
    title: &str,
    idle: Option<&IdleShare>,
    budget: Budget,
) -> Result<Vec<u8>, RenderError> {
    let folded = folded::stacks(profile, value, budget, FRAME_BYTES);
    if folded.values().all(|count| *count == 0) {
        return Ok(empty(title));
    }
    let lines: Vec<String> = folded
        .iter()
        .map(|(stack, count)| format!("{stack} {count}"))
        .collect();
    let mut options = Options::default();
    options.title = printable(title).into_owned();
    let samples = match profile.clock {
        Clock::CpuClock | Clock::Cycles | Clock::Unknown => "samples",
        Clock::Switches => "switches",
        Clock::Wall => "samples and switches",
    };
    let total = profile.total_count();
    let (mut subtitle, unit) = match value {
        Value::Count => (format!("{total} {samples}"), samples),
        Value::Duration => {
            let time = Duration::from_nanos(profile.total_ns()).as_secs_f64();
            (format!("{total} {samples}, {time:.3} s"), "ns")
        }
    };
    if let Some(idle) = idle {
        subtitle = format!("{subtitle}; {}", printable(&idle.line()));
    }
    options.subtitle = Some(subtitle);
    unit.clone_into(&mut options.count_name);
    "monospace".clone_into(&mut options.font_type);
    options.colors = Palette::Basic(BasicPalette::Hot);
    options.deterministic = true;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
        .map_err(|error| RenderError::Svg(error.to_string()))?;
    Ok(svg)
}

/// The picture of a profile without samples; inferno refuses to draw that.
fn empty(title: &str) -> Vec<u8> {
    let title = escape(&printable(title));
    format!(
        "<?xml version=\"1.0\" standalone=\"no\"?>\n\
         <svg version=\"1.1\" width=\"1200\" height=\"60\" viewBox=\"0 0 1200 60\" \
         xmlns=\"http://www.w3.org/2000/svg\">\
         <text x=\"600\" y=\"24\" text-anchor=\"middle\" font-family=\"monospace\" \
         font-size=\"17\">{title}</text>\
         <text x=\"600\" y=\"46\" text-anchor=\"middle\" font-family=\"monospace\" \
         font-size=\"12\">no samples</text></svg>\n"
    )
    .into_bytes()
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            character => escaped.push(character),
        }
    }
    escaped
}
