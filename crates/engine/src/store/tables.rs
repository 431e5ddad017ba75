//! The tables of the redb file, and what their rows mean.

use profiler_model::TaskId;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

/// Kind of a task's result. The number is part of keys and blob headers: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    Profile,
    /// Tables of edges.
    Edges,
    /// What edges counted second by second.
    EdgeSteps,
    /// Counters that a check-up read beside its tasks; kept with its on-CPU task.
    Observed,
    /// What was seen of event loops.
    EventLoops,
    /// Requests over the connections of the edges.
    Requests,
}

impl Stream {
    pub fn code(self) -> u8 {
        match self {
            Self::Profile => 0,
            Self::Edges => 1,
            Self::EdgeSteps => 2,
            Self::Observed => 4,
            Self::EventLoops => 3,
            Self::Requests => 5,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Profile),
            1 => Some(Self::Edges),
            2 => Some(Self::EdgeSteps),
            4 => Some(Self::Observed),
            3 => Some(Self::EventLoops),
            5 => Some(Self::Requests),
            _ => None,
        }
    }
}

/// One minute of one kind of result of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentKey {
    pub task: TaskId,
    pub stream: Stream,
    pub segment: u32,
}

impl SegmentKey {
    pub(super) fn row(self) -> (u64, u8, u32) {
        (self.task.0, self.stream.code(), self.segment)
    }
}

/// What is known of a segment without reading its blobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Range of the samples, nanoseconds after the task's start.
    pub from_ns: u64,
    pub to_ns: u64,
    /// End of the range, nanoseconds since the Unix epoch.
    pub end_unix_ns: u64,
    /// Room that the blobs take in the file.
    pub bytes: u64,
    pub samples: u64,
    pub blobs: u32,
    pub next_sequence: u32,
}

pub(super) const SCHEMA: u64 = 2;

type SegmentRow = (u64, u64, u64, u64, u64, u32, u32);

const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");
const TASKS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("tasks");
const SEGMENTS: TableDefinition<'static, (u64, u8, u32), SegmentRow> =
    TableDefinition::new("segments");
const BLOBS: TableDefinition<'static, (u64, u8, u32, u32), &[u8]> = TableDefinition::new("blobs");

impl Segment {
    fn to_row(self) -> SegmentRow {
        let Self {
            from_ns,
            to_ns,
            end_unix_ns,
            bytes,
            samples,
            blobs,
            next_sequence,
        } = self;
        (
            from_ns,
            to_ns,
            end_unix_ns,
            bytes,
            samples,
            blobs,
            next_sequence,
        )
    }

    fn from_row(row: SegmentRow) -> Self {
        let (from_ns, to_ns, end_unix_ns, bytes, samples, blobs, next_sequence) = row;
        Self {
            from_ns,
            to_ns,
            end_unix_ns,
            bytes,
            samples,
            blobs,
            next_sequence,
        }
    }
}

/// Room that a blob of `length` bytes takes: redb gives a large value a run of pages whose number
/// is a power of two, and packs small ones together.
pub(super) fn stored_size(length: usize) -> u64 {
    const PAGE_BYTES: usize = 4096;
    const ROW_BYTES: usize = 64;
    let size = length.saturating_add(ROW_BYTES);
    if size * 2 <= PAGE_BYTES {
        size as u64 * 3 / 2
    } else {
        size.next_power_of_two().max(PAGE_BYTES) as u64
    }
}

/// Creates the tables when they are missing and returns (schema, next task number).
pub(super) fn prepare(database: &Database) -> Result<(u64, u64), redb::Error> {
    let transaction = database.begin_write()?;
    let (schema, next_task) = {
        let mut meta = transaction.open_table(META)?;
        transaction.open_table(TASKS)?;
        transaction.open_table(SEGMENTS)?;
        transaction.open_table(BLOBS)?;
        let schema = meta.get("schema")?.map(|value| value.value());
        if schema.is_none() {
            meta.insert("schema", SCHEMA)?;
        }
        let next = meta.get("next_task")?.map_or(1, |value| value.value());
        (schema.unwrap_or(SCHEMA), next)
    };
    transaction.commit()?;
    Ok((schema, next_task))
}

/// All task records, as written.
pub(super) fn read_tasks(database: &Database) -> Result<Vec<(u64, Vec<u8>)>, redb::Error> {
    let table = database.begin_read()?.open_table(TASKS)?;
    let mut tasks = Vec::new();
    for row in table.iter()? {
        let (id, bytes) = row?;
        tasks.push((id.value(), bytes.value().to_vec()));
    }
    Ok(tasks)
}

pub(super) fn read_segments(
    database: &Database,
) -> Result<Vec<(SegmentKey, Segment)>, redb::Error> {
    let table = database.begin_read()?.open_table(SEGMENTS)?;
    let mut segments = Vec::new();
    for row in table.iter()? {
        let (key, value) = row?;
        let (task, code, segment) = key.value();
        // A stream of a newer version is left alone.
        if let Some(stream) = Stream::from_code(code) {
            let key = SegmentKey {
                task: TaskId(task),
                stream,
                segment,
            };
            segments.push((key, Segment::from_row(value.value())));
        }
    }
    Ok(segments)
}

pub(super) fn read_blobs(
    database: &Database,
    key: SegmentKey,
) -> Result<Vec<(u32, Vec<u8>)>, redb::Error> {
    let table = database.begin_read()?.open_table(BLOBS)?;
    let (task, stream, segment) = key.row();
    let mut blobs = Vec::new();
    for row in table.range((task, stream, segment, 0)..=(task, stream, segment, u32::MAX))? {
        let (key, value) = row?;
        blobs.push((key.value().3, value.value().to_vec()));
    }
    Ok(blobs)
}

/// One change of the file. All changes of a commit become durable together or not at all.
#[derive(Debug)]
pub(super) enum Change<'a> {
    NextTask(u64),
    Task(TaskId, &'a [u8]),
    Segment(SegmentKey, Segment),
    Blob(SegmentKey, u32, &'a [u8]),
    RemoveBlob(SegmentKey, u32),
    /// Those with a smaller sequence number.
    RemoveBlobsBefore(SegmentKey, u32),
    RemoveSegment(SegmentKey),
    RemoveTask(TaskId),
}

/// Applies `changes` in order as one durable transaction.
pub(super) fn write<'a>(
    database: &Database,
    changes: impl IntoIterator<Item = Change<'a>>,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    apply(&transaction, changes)?;
    transaction.commit()?;
    Ok(())
}

fn apply<'a>(
    transaction: &WriteTransaction,
    changes: impl IntoIterator<Item = Change<'a>>,
) -> Result<(), redb::Error> {
    let mut meta = transaction.open_table(META)?;
    let mut tasks = transaction.open_table(TASKS)?;
    let mut segments = transaction.open_table(SEGMENTS)?;
    let mut blobs = transaction.open_table(BLOBS)?;
    for change in changes {
        match change {
            Change::NextTask(next) => {
                meta.insert("next_task", next)?;
            }
            Change::Task(id, bytes) => {
                tasks.insert(id.0, bytes)?;
            }
            Change::Segment(key, segment) => {
                segments.insert(key.row(), segment.to_row())?;
            }
            Change::Blob(key, sequence, bytes) => {
                let (task, stream, segment) = key.row();
                blobs.insert((task, stream, segment, sequence), bytes)?;
            }
            Change::RemoveBlob(key, sequence) => {
                let (task, stream, segment) = key.row();
                blobs.remove((task, stream, segment, sequence))?;
            }
            Change::RemoveBlobsBefore(key, sequence) => {
                let (task, stream, segment) = key.row();
                let older = (task, stream, segment, 0)..(task, stream, segment, sequence);
                blobs.retain_in(older, |_, _| false)?;
            }
            Change::RemoveSegment(key) => {
                let (task, stream, segment) = key.row();
                segments.remove((task, stream, segment))?;
                let all = (task, stream, segment, 0)..=(task, stream, segment, u32::MAX);
                blobs.retain_in(all, |_, _| false)?;
            }
            Change::RemoveTask(id) => {
                tasks.remove(id.0)?;
                let all = (id.0, 0, 0)..=(id.0, u8::MAX, u32::MAX);
                segments.retain_in(all, |_, _| false)?;
                let all = (id.0, 0, 0, 0)..=(id.0, u8::MAX, u32::MAX, u32::MAX);
                blobs.retain_in(all, |_, _| false)?;
            }
        }
    }
    Ok(())
}
