//! Stacks of threads in the order of time buckets, as columns of bounded size.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexSet;
use profiler_model::Profile;

use super::{
    Value,
    summary::{self, ThreadSummary},
    tree::{self, source_code},
};

/// Rows of all threads together.
const MAX_ROWS: usize = 60_000;
/// Stacks that are told apart inside one bucket at most.
const MAX_STACKS_PER_BUCKET: usize = 32;
/// Frames of all stacks together. Where they end, stacks are cut at their leaf's side.
const MAX_FRAMES: usize = 400_000;

#[derive(Debug, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    pub module: String,
    pub file: String,
    pub line: u32,
    pub kind: u8,
    pub source: u8,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Thread {
    pub summary: ThreadSummary,
    /// In ascending order; counted from the first bucket of the timeline.
    pub buckets: Vec<u32>,
    pub stacks: Vec<u32>,
    pub amounts: Vec<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Columns {
    pub labels: Vec<Label>,
    /// From the root to the leaf.
    pub stacks: Vec<Vec<u32>>,
    pub threads: Vec<Thread>,
    pub other_threads: usize,
    pub other_amount: u64,
    pub stacks_per_bucket: usize,
}

/// What one thread has in each bucket, by stack.
type Cells = BTreeMap<u32, HashMap<u32, u64>>;

/// The `limit` largest threads of a profile that passed [`Profile::check`].
pub fn columns(profile: &Profile, bucket_ms: u64, value: Value, limit: usize) -> Columns {
    let mut summaries = summary::threads_by(profile, value);
    let others = summaries.split_off(limit.min(summaries.len()));
    let listed: HashMap<(u32, u64, u32), usize> = summaries
        .iter()
        .enumerate()
        .map(|(place, thread)| (thread.identity(), place))
        .collect();
    let start_ms = summary::timeline_start_ms(profile, bucket_ms);
    let mut cells: Vec<Cells> = summaries.iter().map(|_| Cells::new()).collect();
    for row in profile.samples.iter().filter(|row| value.of(row) > 0) {
        let Some(place) = listed.get(&summary::identity(profile, row.thread)) else {
            continue;
        };
        let bucket = (summary::row_time_ms(profile, row.bucket) - start_ms) / bucket_ms.max(1);
        let bucket = u32::try_from(bucket).unwrap_or(u32::MAX);
        let stacks = cells[*place].entry(bucket).or_default();
        let amount = stacks.entry(row.stack).or_default();
        *amount = amount.saturating_add(value.of(row));
    }
    let filled: usize = cells.iter().map(BTreeMap::len).sum();
    // One row of each bucket is for what is not told apart.
    let stacks_per_bucket = (MAX_ROWS / filled.max(1))
        .saturating_sub(1)
        .clamp(1, MAX_STACKS_PER_BUCKET);
    let mut naming = Naming::new(profile);
    let threads = summaries
        .into_iter()
        .zip(cells)
        .map(|(summary, cells)| naming.thread(summary, cells, stacks_per_bucket))
        .collect();
    let (labels, stacks) = naming.finish();
    Columns {
        labels,
        stacks,
        threads,
        other_threads: others.len(),
        other_amount: others
            .iter()
            .map(|thread| thread.samples)
            .fold(0, u64::saturating_add),
        stacks_per_bucket,
    }
}

/// Numbers stacks as they are first used.
struct Naming<'a> {
    profile: &'a Profile,
    labelled: tree::Labelled<'a>,
    /// By the labels of the profile.
    stacks: IndexSet<Vec<u32>>,
    frames: usize,
}

impl<'a> Naming<'a> {
    fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            labelled: tree::Labelled::new(profile),
            stacks: IndexSet::new(),
            frames: 0,
        }
    }

    fn thread(&mut self, summary: ThreadSummary, cells: Cells, most: usize) -> Thread {
        let mut thread = Thread {
            summary,
            buckets: Vec::new(),
            stacks: Vec::new(),
            amounts: Vec::new(),
        };
        for (bucket, stacks) in cells {
            let mut by_name: BTreeMap<u32, u64> = BTreeMap::new();
            let mut sizes: Vec<(u32, u64)> = stacks.into_iter().collect();
            sizes.sort_unstable_by_key(|(stack, amount)| (std::cmp::Reverse(*amount), *stack));
            for (place, (stack, amount)) in sizes.into_iter().enumerate() {
                let number = if place < most {
                    self.stack(stack)
                } else {
                    self.number(vec![tree::OTHER])
                };
                let sum = by_name.entry(number).or_default();
                *sum = sum.saturating_add(amount);
            }
            for (stack, amount) in by_name {
                thread.buckets.push(bucket);
                thread.stacks.push(stack);
                thread.amounts.push(amount);
            }
        }
        thread
    }

    fn stack(&mut self, stack: u32) -> u32 {
        let frames = &self.profile.stacks[stack as usize].frames;
        let labels: Vec<u32> = frames
            .iter()
            .rev()
            .flat_map(|frame| self.labelled.frames[*frame as usize].iter().copied())
            .collect();
        self.number(labels)
    }

    fn number(&mut self, mut labels: Vec<u32>) -> u32 {
        if let Some(number) = self.stacks.get_index_of(&labels) {
            return id(number);
        }
        let room = MAX_FRAMES.saturating_sub(self.frames);
        if labels.len() > room {
            labels.truncate(room);
            labels.push(tree::OTHER);
            if let Some(number) = self.stacks.get_index_of(&labels) {
                return id(number);
            }
        }
        self.frames += labels.len();
        id(self.stacks.insert_full(labels).0)
    }

    /// The labels in use, as they are first used, and the stacks by their numbers.
    fn finish(self) -> (Vec<Label>, Vec<Vec<u32>>) {
        let mut used: IndexSet<u32> = IndexSet::new();
        let mut stacks: Vec<Vec<u32>> = self.stacks.into_iter().collect();
        for label in stacks.iter_mut().flatten() {
            *label = id(used.insert_full(*label).0);
        }
        let written = used.into_iter().map(|label| {
            let label = &self.labelled.labels[label as usize];
            Label {
                name: label.name.clone().into_owned(),
                module: label.module.to_owned(),
                file: label.file.to_owned(),
                line: label.line,
                kind: label.kind as u8,
                source: source_code(label.source),
            }
        });
        (written.collect(), stacks)
    }
}

fn id(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
