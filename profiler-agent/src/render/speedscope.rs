//! Speedscope's JSON: one sampled profile for each thread, in order of time.
//!
//! Format: <https://www.speedscope.app/file-format-schema.json>. Weights are nanoseconds of CPU
//! time (or of waiting), so a thread's axis is the time that it used, not the time that passed.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::model::{Function, NameSource, Profile, SampleRow, ThreadId};

use super::{
    RenderError, Value,
    names::{lines, printable, process_names},
};

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: Shared<'a>,
    profiles: Vec<Sampled>,
    name: &'a str,
    #[serde(rename = "activeProfileIndex")]
    active_profile_index: u32,
    exporter: &'static str,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<SharedFrame<'a>>,
}

#[derive(Serialize, PartialEq, Eq, Hash, Clone)]
struct SharedFrame<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct Sampled {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start_value: u64,
    #[serde(rename = "endValue")]
    end_value: u64,
    /// Indexes of shared frames, root first.
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

pub(super) fn render(profile: &Profile, value: Value, title: &str) -> Result<Vec<u8>, RenderError> {
    let (frames, indexes) = shared_frames(profile);
    let mut of_thread: BTreeMap<ThreadId, Vec<&SampleRow>> = BTreeMap::new();
    for row in &profile.samples {
        of_thread.entry(row.thread).or_default().push(row);
    }
    let processes = process_names(profile);
    let mut profiles: Vec<Sampled> = of_thread
        .into_iter()
        .map(|(id, rows)| {
            let thread = &profile.threads[id as usize];
            let process = &processes[thread.process as usize];
            let name = printable(&format!(
                "{process} / {} (tid {})",
                profile.text(thread.name),
                thread.tid
            ));
            sampled(profile, value, name, rows, &indexes)
        })
        .collect();
    // The busiest thread is the one to see first.
    profiles.sort_by(|a, b| {
        b.end_value
            .cmp(&a.end_value)
            .then_with(|| a.name.cmp(&b.name))
    });
    if profiles.is_empty() {
        profiles.push(sampled(
            profile,
            value,
            "no samples".to_owned(),
            Vec::new(),
            &indexes,
        ));
    }
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        shared: Shared { frames },
        profiles,
        name: title,
        active_profile_index: 0,
        exporter: concat!("profiler-agent ", env!("CARGO_PKG_VERSION")),
    };
    Ok(serde_json::to_vec(&file)?)
}

/// Functions of all frames, and for each frame the indexes of its functions, root's side first.
fn shared_frames<'a>(profile: &'a Profile) -> (Vec<SharedFrame<'a>>, Vec<Vec<u32>>) {
    let mut frames = Vec::new();
    let mut known: HashMap<SharedFrame<'a>, u32> = HashMap::new();
    let mut index_of = |frame: SharedFrame<'a>| {
        *known.entry(frame).or_insert_with_key(|frame| {
            frames.push(frame.clone());
            u32::try_from(frames.len() - 1).unwrap_or(u32::MAX)
        })
    };
    let indexes = profile
        .frames
        .iter()
        .map(|frame| {
            lines(profile, frame)
                .into_iter()
                .map(|mut line| {
                    if frame.source == NameSource::Inferred {
                        line.name.to_mut().push_str(" [inferred]");
                    }
                    let file = line.function.map(|function| profile.text(function.file));
                    index_of(SharedFrame {
                        name: printable(&line.name),
                        file: file.filter(|file| !file.is_empty()),
                        line: line
                            .function
                            .map(|function: &Function| function.line)
                            .filter(|line| *line > 0),
                    })
                })
                .collect()
        })
        .collect();
    (frames, indexes)
}

fn sampled(
    profile: &Profile,
    value: Value,
    name: String,
    mut rows: Vec<&SampleRow>,
    indexes: &[Vec<u32>],
) -> Sampled {
    rows.sort_by_key(|row| row.bucket);
    rows.retain(|row| value.of(row) > 0);
    let weights: Vec<u64> = rows.iter().map(|row| value.of(row)).collect();
    let stack = |row: &&SampleRow| {
        let frames = profile.stacks[row.stack as usize].frames.iter().rev();
        frames
            .flat_map(|id| indexes[*id as usize].iter().copied())
            .collect()
    };
    Sampled {
        kind: "sampled",
        name,
        unit: match value {
            Value::Count => "none",
            Value::Duration => "nanoseconds",
        },
        start_value: 0,
        end_value: weights.iter().copied().fold(0, u64::saturating_add),
        samples: rows.iter().map(stack).collect(),
        weights,
    }
}
