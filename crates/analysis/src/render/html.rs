//! One self-contained HTML file: the viewer of the web UI with the profile inside.
//!
//! The viewer is a template (`web/scripts/viewer.mjs` makes it) with two marks. Both are replaced by
//! base64, which has no character that means anything to HTML: no name of the profile can end the
//! element that it lies in. The file's own content security policy lets nothing be loaded or sent.

use std::io::Write;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use profiler_model::{Clock, Profile, printable::printable};
use serde::Serialize;

use super::{RenderError, Value, View, flamegraph};

const ABOUT_MARK: &str = "@@ABOUT@@";
const PROFILE_MARK: &str = "@@PROFILE@@";

/// What the viewer shows beside the picture.
#[derive(Serialize)]
struct About {
    title: String,
    /// What one of the counted things is called.
    unit: &'static str,
    /// What the time is, where the numbers are nanoseconds.
    time: &'static str,
    idle: Option<String>,
    version: &'static str,
}

pub(super) fn render(
    profile: &Profile,
    value: Value,
    view: &View<'_>,
    template: &str,
) -> Result<Vec<u8>, RenderError> {
    let about = About {
        title: printable(view.title).into_owned(),
        unit: match profile.clock {
            Clock::CpuClock | Clock::Cycles | Clock::Unknown => "samples",
            Clock::Switches | Clock::Wall => "switches",
        },
        time: match profile.clock {
            Clock::CpuClock | Clock::Cycles => "on the CPU",
            Clock::Switches => "off the CPU",
            Clock::Wall => "of all threads",
            Clock::Unknown => "in the imported file",
        },
        idle: view.idle.map(|idle| printable(&idle.line()).into_owned()),
        version: env!("CARGO_PKG_VERSION"),
    };
    let about = STANDARD.encode(serde_json::to_vec(&about)?);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&flamegraph::render(
        profile,
        value,
        view.idle,
        view.budget,
        None,
    ))?;
    let columns = STANDARD.encode(encoder.finish()?);

    // The template is cut first, so that what is put in is never searched for a mark.
    let (start, rest) = template
        .split_once(ABOUT_MARK)
        .ok_or(RenderError::Template(ABOUT_MARK))?;
    let (middle, end) = rest
        .split_once(PROFILE_MARK)
        .ok_or(RenderError::Template(PROFILE_MARK))?;
    Ok([start, &about, middle, &columns, end].concat().into_bytes())
}
