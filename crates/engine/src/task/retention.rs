//! What has to go so that the store stays within its age and size.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use profiler_model::{Task, TaskId};

use crate::store::{Segment, SegmentKey, Stream};

/// Room that a task's record takes, roughly.
const TASK_BYTES: u64 = 1024;

/// Something that can be removed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// A finished task with its whole result.
    Task(TaskId),
    /// One minute of a task without end.
    Segment(SegmentKey),
}

/// How long results are kept, and how much of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Older ones are deleted.
    pub age: Duration,
    /// The oldest are deleted when all need more than this.
    pub bytes: u64,
}

struct Unit {
    removal: Removal,
    task: TaskId,
    end_ns: u64,
    bytes: u64,
}

/// Removes what is older than the limit, then the oldest of what can go until the rest fits.
///
/// A task with an end goes as a whole and only when it is final; a task without an end loses single
/// minutes, while it runs never the current one. Minutes and tasks compete by the age of their end (`age_ns`).
pub(super) fn plan(
    tasks: &[Arc<Task>],
    segments: &[(SegmentKey, Segment)],
    age_ns: impl Fn(TaskId, u64) -> u64,
    retention: Retention,
) -> Vec<Removal> {
    let mut of_task: BTreeMap<TaskId, Vec<(SegmentKey, Segment)>> = BTreeMap::new();
    for (key, segment) in segments {
        of_task.entry(key.task).or_default().push((*key, *segment));
    }
    let mut total = segments
        .iter()
        .map(|(_, segment)| segment.bytes)
        .sum::<u64>();
    total = total.saturating_add(TASK_BYTES.saturating_mul(tasks.len() as u64));
    let mut units = Vec::new();
    for task in tasks {
        let segments = of_task.remove(&task.id).unwrap_or_default();
        units_of(task, &segments, &mut units);
    }
    // Results whose record cannot be read any more would stay for ever otherwise.
    units.extend(of_task.values().flatten().map(segment_unit));
    let mut units: Vec<(u64, Unit)> = units
        .into_iter()
        .map(|unit| (age_ns(unit.task, unit.end_ns), unit))
        .collect();
    units.sort_by_key(|(age_ns, _)| std::cmp::Reverse(*age_ns));

    let mut removals = Vec::new();
    for (age_ns, unit) in units {
        if u128::from(age_ns) <= retention.age.as_nanos() && total <= retention.bytes {
            break;
        }
        total = total.saturating_sub(unit.bytes);
        removals.push(unit.removal);
    }
    removals
}

fn units_of(task: &Task, segments: &[(SegmentKey, Segment)], units: &mut Vec<Unit>) {
    let whole = || Unit {
        removal: Removal::Task(task.id),
        task: task.id,
        // A file is as old as its import, however long ago it was recorded.
        end_ns: task
            .ended_ns
            .filter(|_| task.imported().is_none())
            .unwrap_or(task.created_ns),
        bytes: segments
            .iter()
            .map(|(_, segment)| segment.bytes)
            .sum::<u64>()
            + TASK_BYTES,
    };
    let has_end = task.duration_s().is_some() || task.imported().is_some();
    match (has_end, task.state.is_final()) {
        (true, true) => units.push(whole()),
        (true, false) => {}
        (false, true) if segments.is_empty() => units.push(whole()),
        (false, true) => units.extend(segments.iter().map(|found| {
            let mut unit = segment_unit(found);
            if is_whole(found.0.stream) {
                unit.end_ns = task.ended_ns.unwrap_or(unit.end_ns);
            }
            unit
        })),
        (false, false) => {
            let current = segments.iter().map(|(key, _)| key.segment).max();
            let past = segments
                .iter()
                .filter(|(key, _)| Some(key.segment) != current && !is_whole(key.stream));
            units.extend(past.map(segment_unit));
        }
    }
}

/// Whether the only segment of a stream is not a minute: it has all of them.
fn is_whole(stream: Stream) -> bool {
    match stream {
        Stream::Edges | Stream::Requests | Stream::EventLoops | Stream::Observed => true,
        Stream::Profile | Stream::EdgeSteps => false,
    }
}

fn segment_unit((key, segment): &(SegmentKey, Segment)) -> Unit {
    Unit {
        removal: Removal::Segment(*key),
        task: key.task,
        end_ns: segment.end_unix_ns,
        bytes: segment.bytes,
    }
}
