//! Speedscope's JSON: one sampled profile for each thread, in order of time.
//!
//! Format: <https://www.speedscope.app/file-format-schema.json>. Weights are nanoseconds of CPU
//! time (or of waiting), so a thread's axis is the time that it used, not the time that passed.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
};

use profiler_model::{
    FrameId, Function, NameSource, Profile, SampleRow, StackId, ThreadId, printable::printable,
};
use serde::Serialize;

use super::{
    Budget, RenderError, Value,
    budget::{OTHER, name_counts, shown_frames},
    names::{lines, process_names},
};

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: Shared<'a>,
    profiles: Vec<Sampled>,
    name: Cow<'a, str>,
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
    file: Option<Cow<'a, str>>,
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

/// A name of a row in memory and in the text.
const NAME_BYTES: u64 = 16;

pub(super) fn render(
    profile: &Profile,
    value: Value,
    title: &str,
    budget: Budget,
) -> Result<Vec<u8>, RenderError> {
    let (frames, indexes) = shared_frames(profile);
    let rooms = Rooms::of(profile, value, budget, &indexes);
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
            let name = format!(
                "{process} / {} (tid {})",
                profile.text(thread.name),
                thread.tid
            );
            let name = printable(&name).into_owned();
            sampled(profile, value, name, rows, &rooms)
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
            &rooms,
        ));
    }
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        shared: Shared { frames },
        profiles,
        name: printable(title),
        active_profile_index: 0,
        exporter: concat!("profiler-agent ", env!("CARGO_PKG_VERSION")),
    };
    Ok(serde_json::to_vec(&file)?)
}

/// Functions of all frames, and for each frame the indexes of its functions, root's side first.
fn shared_frames<'a>(profile: &'a Profile) -> (Vec<SharedFrame<'a>>, Vec<Vec<u32>>) {
    // The first one stands for what has no room.
    let mut frames = vec![SharedFrame {
        name: OTHER.to_owned(),
        file: None,
        line: None,
    }];
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
                        name: printable(&line.name).into_owned(),
                        file: file.filter(|file| !file.is_empty()).map(printable),
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

/// Which stacks are written as they are: each once for each of its rows, the heaviest first.
struct Rooms<'a> {
    indexes: &'a [Vec<u32>],
    names: Vec<usize>,
    whole: HashSet<StackId>,
}

impl<'a> Rooms<'a> {
    fn of(profile: &Profile, value: Value, mut budget: Budget, indexes: &'a [Vec<u32>]) -> Self {
        let names = name_counts(profile);
        let mut stacks: HashMap<StackId, (u64, u64)> = HashMap::new();
        for row in profile.samples.iter().filter(|row| value.of(row) > 0) {
            let (sum, rows) = stacks.entry(row.stack).or_default();
            *sum = sum.saturating_add(value.of(row));
            *rows += 1;
        }
        let mut stacks: Vec<(StackId, (u64, u64))> = stacks.into_iter().collect();
        stacks.sort_unstable_by_key(|(stack, (sum, _))| (Reverse(*sum), *stack));
        let has_room = |(stack, (_, rows)): &(StackId, (u64, u64))| {
            let shown = shown_frames(&profile.stacks[*stack as usize].frames, &names);
            let names: usize = shown.iter().map(|id| names[*id as usize]).sum();
            budget.take(rows.saturating_mul(NAME_BYTES * (names as u64 + 4)))
        };
        let whole = stacks
            .into_iter()
            .filter(has_room)
            .map(|(stack, _)| stack)
            .collect();
        Self {
            indexes,
            names,
            whole,
        }
    }

    /// Indexes of shared frames, root first.
    fn stack(&self, profile: &Profile, row: &SampleRow) -> Vec<u32> {
        if !self.whole.contains(&row.stack) {
            return vec![0];
        }
        let frames = &profile.stacks[row.stack as usize].frames;
        let shown = shown_frames(frames, &self.names);
        let of_frame = |id: &FrameId| self.indexes[*id as usize].iter().copied();
        let mut stack: Vec<u32> = shown.iter().rev().flat_map(of_frame).collect();
        if shown.len() < frames.len() {
            stack.push(0);
        }
        stack
    }
}

fn sampled(
    profile: &Profile,
    value: Value,
    name: String,
    mut rows: Vec<&SampleRow>,
    rooms: &Rooms<'_>,
) -> Sampled {
    rows.sort_by_key(|row| row.bucket);
    rows.retain(|row| value.of(row) > 0);
    let weights: Vec<u64> = rows.iter().map(|row| value.of(row)).collect();
    let stack = |row: &&SampleRow| rooms.stack(profile, row);
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
