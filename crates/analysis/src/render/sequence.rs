//! Stacks of threads in the order of time buckets, as columns of bounded size.

use std::collections::{BTreeMap, HashMap};

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
    Columns {
        labels: naming.written,
        stacks: naming.stacks,
        threads,
        other_threads: others.len(),
        other_amount: others
            .iter()
            .map(|thread| thread.samples)
            .fold(0, u64::saturating_add),
        stacks_per_bucket,
    }
}

/// Numbers labels and stacks as they are first used.
struct Naming<'a> {
    profile: &'a Profile,
    labelled: tree::Labelled<'a>,
    numbers: HashMap<u32, u32>,
    written: Vec<Label>,
    known: HashMap<Vec<u32>, u32>,
    stacks: Vec<Vec<u32>>,
    frames: usize,
}

impl<'a> Naming<'a> {
    fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            labelled: tree::Labelled::new(profile),
            numbers: HashMap::new(),
            written: Vec::new(),
            known: HashMap::new(),
            stacks: Vec::new(),
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
        if let Some(number) = self.known.get(&labels) {
            return *number;
        }
        let room = MAX_FRAMES.saturating_sub(self.frames);
        if labels.len() > room {
            labels.truncate(room);
            labels.push(tree::OTHER);
            if let Some(number) = self.known.get(&labels) {
                return *number;
            }
        }
        self.frames += labels.len();
        let written = labels.iter().map(|label| self.label(*label)).collect();
        let number = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
        self.stacks.push(written);
        self.known.insert(labels, number);
        number
    }

    fn label(&mut self, label: u32) -> u32 {
        let next = u32::try_from(self.written.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(label).or_insert(next);
        if number == next {
            let label = &self.labelled.labels[label as usize];
            self.written.push(Label {
                name: label.name.clone().into_owned(),
                module: label.module.to_owned(),
                file: label.file.to_owned(),
                line: label.line,
                kind: label.kind as u8,
                source: source_code(label.source),
            });
        }
        number
    }
}
