//! The store itself: an index in memory, blobs on disk, and what waits to be written.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::{Duration, Instant},
};

use profiler_model::{Task, TaskId};
use redb::Database;

use super::{
    Segment, SegmentKey, StoreError, Stream,
    directory::DirectoryLock,
    file::{OpenDatabase, StoreFile},
    tables::{self, Change, stored_size},
};

/// redb's page cache. Reads are rare and sequential, so a small one is enough.
const CACHE_BYTES: usize = 8 << 20;
/// Blobs that may wait in memory while the disk refuses writes.
const MAX_PENDING_BYTES: usize = 32 << 20;
/// Free room in the file that is not worth a compaction.
const COMPACT_SLACK_BYTES: u64 = 16 << 20;

/// A blob to be written, and what to note about it.
#[derive(Debug)]
pub struct Append {
    pub key: SegmentKey,
    pub bytes: Vec<u8>,
    pub from_ns: u64,
    pub to_ns: u64,
    pub end_unix_ns: u64,
    pub samples: u64,
}

/// A blob as read: committed or still waiting.
#[derive(Debug)]
pub struct Blob {
    pub sequence: u32,
    pub bytes: Vec<u8>,
}

/// See the module's description. Blocking; owned by one thread.
#[derive(Debug)]
pub struct Store {
    file: StoreFile,
    /// `None` once closed.
    lock: Option<DirectoryLock>,
    next_task: u64,
    index: BTreeMap<SegmentKey, Segment>,
    pending: Vec<(SegmentKey, Blob)>,
    pending_bytes: usize,
    dirty_segments: BTreeSet<SegmentKey>,
    /// Segments whose blobs before this sequence number go with the next commit.
    superseded: BTreeMap<SegmentKey, u32>,
    dirty_tasks: BTreeMap<TaskId, Vec<u8>>,
    committed: Instant,
}

impl Store {
    /// Takes the data directory (made 0700 when missing) and opens the file in it.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let open: OpenDatabase =
            Box::new(|path| Database::builder().set_cache_size(CACHE_BYTES).create(path));
        Self::open_with(directory, open)
    }

    /// As [`Store::open`], with another way to open the file.
    pub fn open_with(directory: &Path, open: OpenDatabase) -> Result<Self, StoreError> {
        let lock = DirectoryLock::take(directory)?;
        let (mut file, next_task) = StoreFile::open(directory.join("store.redb"), open)?;
        let index = file.read(tables::read_segments)?.into_iter().collect();
        Ok(Self {
            file,
            lock: Some(lock),
            next_task,
            index,
            pending: Vec::new(),
            pending_bytes: 0,
            dirty_segments: BTreeSet::new(),
            superseded: BTreeMap::new(),
            dirty_tasks: BTreeMap::new(),
            committed: Instant::now(),
        })
    }

    /// All readable tasks, oldest first, and the number of records that were not readable.
    pub fn tasks(&mut self) -> Result<(Vec<Task>, u64), StoreError> {
        let rows = self.file.read(tables::read_tasks)?;
        let mut damaged = 0;
        let mut tasks = Vec::with_capacity(rows.len());
        for (id, bytes) in rows {
            match serde_json::from_slice::<Task>(&bytes) {
                Ok(task) if task.id.0 == id => tasks.push(task),
                Ok(_) | Err(_) => damaged += 1,
            }
        }
        Ok((tasks, damaged))
    }

    /// A task number that was never given out in this data directory. It is used up for good with
    /// the commit of the task's record.
    pub fn new_task_id(&mut self) -> TaskId {
        let id = TaskId(self.next_task);
        self.next_task += 1;
        id
    }

    /// Takes back a record that could not be committed.
    pub fn discard_task(&mut self, id: TaskId) {
        self.dirty_tasks.remove(&id);
    }

    /// Notes the task's record; it becomes durable with the next commit.
    pub fn put_task(&mut self, task: &Task) -> Result<(), StoreError> {
        self.dirty_tasks.insert(task.id, serde_json::to_vec(task)?);
        Ok(())
    }

    /// Adds a blob to its segment; it becomes durable with the next commit.
    /// Returns false when too much waits already and the blob was dropped.
    #[must_use]
    pub fn append(&mut self, append: Append) -> bool {
        if self.pending_bytes.saturating_add(append.bytes.len()) > MAX_PENDING_BYTES {
            return false;
        }
        let segment = self.index.entry(append.key).or_insert_with(|| Segment {
            from_ns: append.from_ns,
            ..Segment::default()
        });
        segment.from_ns = segment.from_ns.min(append.from_ns);
        segment.to_ns = segment.to_ns.max(append.to_ns);
        segment.end_unix_ns = segment.end_unix_ns.max(append.end_unix_ns);
        segment.bytes += stored_size(append.bytes.len());
        segment.samples = segment.samples.saturating_add(append.samples);
        segment.blobs += 1;
        let sequence = segment.next_sequence;
        segment.next_sequence += 1;
        self.dirty_segments.insert(append.key);
        self.pending_bytes += append.bytes.len();
        self.pending.push((
            append.key,
            Blob {
                sequence,
                bytes: append.bytes,
            },
        ));
        true
    }

    /// Puts a blob in place of all others of its segment. It becomes durable with the next commit, and
    /// never is dropped: a newer one that is put takes its place.
    pub fn put(&mut self, put: Append) {
        let Append {
            key,
            bytes,
            from_ns,
            to_ns,
            end_unix_ns,
            samples,
        } = put;
        self.pending.retain(|(pending, _)| *pending != key);
        let segment = self.index.entry(key).or_default();
        let sequence = segment.next_sequence;
        *segment = Segment {
            from_ns,
            to_ns,
            end_unix_ns,
            bytes: stored_size(bytes.len()),
            samples,
            blobs: 1,
            next_sequence: sequence.saturating_add(1),
        };
        self.dirty_segments.insert(key);
        self.superseded.insert(key, sequence);
        self.pending.push((key, Blob { sequence, bytes }));
        self.pending_bytes = self.pending.iter().map(|(_, blob)| blob.bytes.len()).sum();
    }

    /// Makes everything durable that waits. On failure it goes on waiting.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        if self.pending.is_empty() && self.dirty_segments.is_empty() && self.dirty_tasks.is_empty()
        {
            return Ok(());
        }
        let Self {
            file,
            index,
            pending,
            dirty_segments,
            superseded,
            dirty_tasks,
            next_task,
            ..
        } = self;
        let next = (!dirty_tasks.is_empty()).then_some(Change::NextTask(*next_task));
        let tasks = dirty_tasks
            .iter()
            .map(|(id, bytes)| Change::Task(*id, bytes));
        let segments = dirty_segments
            .iter()
            .filter_map(|key| Some(Change::Segment(*key, *index.get(key)?)));
        let blobs = pending
            .iter()
            .map(|(key, blob)| Change::Blob(*key, blob.sequence, &blob.bytes));
        let older = superseded
            .iter()
            .map(|(key, sequence)| Change::RemoveBlobsBefore(*key, *sequence));
        let changes = next.into_iter().chain(tasks).chain(segments);
        file.write(changes.chain(blobs).chain(older))?;
        self.pending.clear();
        self.pending_bytes = 0;
        self.dirty_segments.clear();
        self.superseded.clear();
        self.dirty_tasks.clear();
        self.committed = Instant::now();
        Ok(())
    }

    /// Commits unless the last commit is younger than `interval`.
    pub fn commit_if_due(&mut self, interval: Duration) -> Result<(), StoreError> {
        if self.committed.elapsed() < interval {
            Ok(())
        } else {
            self.commit()
        }
    }

    /// Blobs of `task` that are not durable yet.
    pub fn waiting_blobs(&self, task: TaskId) -> u64 {
        self.pending
            .iter()
            .filter(|(key, _)| key.task == task)
            .count() as u64
    }

    /// Whether the disk refused the last write.
    pub fn refuses(&self) -> bool {
        self.file.refuses()
    }

    /// Writes what waits, or the next task's number when nothing does, so that it is known whether the disk takes it.
    pub fn try_again(&mut self) -> Result<(), StoreError> {
        if self.has_waiting() {
            return self.commit();
        }
        self.file.write([Change::NextTask(self.next_task)])
    }

    /// True when something waits for a commit.
    pub fn has_waiting(&self) -> bool {
        !(self.pending.is_empty() && self.dirty_segments.is_empty() && self.dirty_tasks.is_empty())
    }

    /// Segments of one task's stream in order of time.
    pub fn segments(&self, task: TaskId, stream: Stream) -> Vec<(SegmentKey, Segment)> {
        let first = SegmentKey {
            task,
            stream,
            segment: 0,
        };
        let last = SegmentKey {
            task,
            stream,
            segment: u32::MAX,
        };
        self.index
            .range(first..=last)
            .map(|(key, segment)| (*key, *segment))
            .collect()
    }

    /// Segments of all tasks.
    pub fn all_segments(&self) -> Vec<(SegmentKey, Segment)> {
        self.index
            .iter()
            .map(|(key, segment)| (*key, *segment))
            .collect()
    }

    /// The blobs of a segment in order, also those that wait for a commit.
    pub fn blobs(&mut self, key: SegmentKey) -> Result<Vec<Blob>, StoreError> {
        let rows = self
            .file
            .read(|database| tables::read_blobs(database, key))?;
        let first = self.superseded.get(&key).copied().unwrap_or(0);
        let mut blobs: Vec<Blob> = rows
            .into_iter()
            .filter(|(sequence, _)| *sequence >= first)
            .map(|(sequence, bytes)| Blob { sequence, bytes })
            .collect();
        for (pending, blob) in &self.pending {
            if *pending == key {
                blobs.push(Blob {
                    sequence: blob.sequence,
                    bytes: blob.bytes.clone(),
                });
            }
        }
        Ok(blobs)
    }

    /// Replaces blobs of a segment by one that holds the same data; samples and range stay.
    /// Does nothing when the segment has changed or gone meanwhile.
    pub fn replace(
        &mut self,
        key: SegmentKey,
        sequences: &[u32],
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        self.commit()?;
        let Some(mut segment) = self.index.get(&key).copied() else {
            return Ok(());
        };
        if segment.blobs as usize != sequences.len() {
            return Ok(());
        }
        let sequence = segment.next_sequence;
        segment.next_sequence += 1;
        segment.blobs = 1;
        segment.bytes = stored_size(bytes.len());
        let mut changes = vec![
            Change::Segment(key, segment),
            Change::Blob(key, sequence, bytes),
        ];
        changes.extend(sequences.iter().map(|old| Change::RemoveBlob(key, *old)));
        self.file.write(changes)?;
        self.index.insert(key, segment);
        Ok(())
    }

    /// Removes a task with all its results.
    pub fn remove_task(&mut self, id: TaskId) -> Result<(), StoreError> {
        self.file.write(vec![Change::RemoveTask(id)])?;
        self.dirty_tasks.remove(&id);
        self.forget(|key| key.task == id);
        Ok(())
    }

    /// Removes segments; their tasks stay.
    pub fn remove_segments(&mut self, keys: &[SegmentKey]) -> Result<(), StoreError> {
        self.file
            .write(keys.iter().map(|key| Change::RemoveSegment(*key)))?;
        self.forget(|key| keys.contains(key));
        Ok(())
    }

    fn forget(&mut self, gone: impl Fn(&SegmentKey) -> bool) {
        self.index.retain(|key, _| !gone(key));
        self.dirty_segments.retain(|key| !gone(key));
        self.superseded.retain(|key, _| !gone(key));
        self.pending.retain(|(key, _)| !gone(key));
        self.pending_bytes = self.pending.iter().map(|(_, blob)| blob.bytes.len()).sum();
    }

    /// Room that the file takes on disk, in bytes.
    pub fn disk_bytes(&self) -> u64 {
        self.file.disk_bytes()
    }

    /// Room that results take, in bytes; free pages of the file are not counted.
    pub fn live_bytes(&self) -> u64 {
        self.index.values().map(|segment| segment.bytes).sum()
    }

    /// Gives free room back to the file system when there is much of it. Takes up to seconds, so
    /// it is for the start and for idle times; redb reuses free pages by itself meanwhile.
    pub fn compact_if_sparse(&mut self) -> Result<bool, StoreError> {
        if self.disk_bytes() < self.live_bytes().saturating_mul(2) + COMPACT_SLACK_BYTES {
            return Ok(false);
        }
        self.commit()?;
        self.file.compact()
    }

    /// Writes what waits, closes the file and frees the data directory.
    pub fn close(&mut self) -> Result<(), StoreError> {
        if self.lock.is_none() {
            return Ok(());
        }
        let result = self.commit();
        self.file.close();
        self.lock = None;
        result
    }

    /// Opens the file again with the next request.
    pub(super) fn reset(&mut self) {
        self.file.reset();
    }
}
