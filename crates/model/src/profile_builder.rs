//! Builds profiles by interning: equal strings, frames and stacks are stored once.

use std::hash::Hash;

use indexmap::{IndexMap, IndexSet};

use super::{
    Clock, ContentionRow, CpuHolder, Frame, FrameId, FrameSpace, Function, HolderId, Losses,
    Module, ModuleId, ModuleKind, NameSource, ProcessId, Profile, ProfileProcess, ProfileThread,
    SampleRow, Stack, StackId, StackQuality, StrId, ThreadId, ThreadState,
};

/// What a value holds outside of itself.
trait Held {
    fn held_bytes(&self) -> usize {
        0
    }
}

impl Held for String {
    fn held_bytes(&self) -> usize {
        self.len()
    }
}

impl Held for Module {
    fn held_bytes(&self) -> usize {
        self.build_id.len()
    }
}

impl Held for Frame {
    fn held_bytes(&self) -> usize {
        size_of_val(self.functions.as_slice())
    }
}

impl Held for Stack {
    fn held_bytes(&self) -> usize {
        size_of_val(self.frames.as_slice())
    }
}

impl Held for ProfileProcess {}
impl Held for CpuHolder {}
impl Held for ProfileThread {}

/// A table that gives equal values the same index.
#[derive(Debug)]
struct Interner<T> {
    items: IndexSet<T>,
    /// About what it takes.
    bytes: u64,
}

impl<T: Eq + Hash + Held> Interner<T> {
    fn new() -> Self {
        Self {
            items: IndexSet::new(),
            bytes: 0,
        }
    }

    fn intern(&mut self, item: T) -> u32 {
        let bytes = size_of::<T>() + item.held_bytes() + OVERHEAD;
        let (index, is_new) = self.items.insert_full(item);
        if is_new {
            self.bytes += bytes as u64;
        }
        id(index)
    }

    fn get(&self, id: u32) -> Option<&T> {
        self.items.get_index(id as usize)
    }

    fn into_items(self) -> Vec<T> {
        self.items.into_iter().collect()
    }
}

fn id(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// What an entry of a table costs beside its value: hash and index, room that tables keep free, and the allocator's
/// own.
const OVERHEAD: usize = 64;

/// Everything of a sample row but its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RowKey {
    thread: ThreadId,
    stack: StackId,
    cpu: u32,
    bucket: u32,
    state: ThreadState,
    waker: Option<StackId>,
}

/// Everything of a row of contention but its sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ContentionKey {
    thread: ThreadId,
    holder: HolderId,
    bucket: u32,
}

/// The sums of a sample row.
#[derive(Clone, Copy, Debug, Default)]
struct RowSums {
    count: u64,
    total_ns: u64,
}

/// Collects samples into a [`Profile`].
#[derive(Debug)]
pub struct ProfileBuilder {
    origin_ns: u64,
    bucket_ns: u64,
    clock: Clock,
    range: Option<(u64, u64)>,
    strings: Interner<String>,
    modules: Interner<Module>,
    frames: Interner<Frame>,
    stacks: Interner<Stack>,
    processes: Interner<ProfileProcess>,
    threads: Interner<ProfileThread>,
    rows: IndexMap<RowKey, RowSums>,
    holders: Interner<CpuHolder>,
    contention: IndexMap<ContentionKey, u64>,
    losses: Losses,
    stack_quality: StackQuality,
}

impl ProfileBuilder {
    /// Starts an empty profile whose bucket 0 begins at `origin_ns` (Unix epoch).
    pub fn new(origin_ns: u64, bucket_ns: u64, clock: Clock) -> Self {
        let mut strings = Interner::new();
        strings.intern(String::new());
        Self {
            origin_ns,
            bucket_ns: bucket_ns.max(1),
            clock,
            range: None,
            strings,
            modules: Interner::new(),
            frames: Interner::new(),
            stacks: Interner::new(),
            processes: Interner::new(),
            threads: Interner::new(),
            rows: IndexMap::new(),
            holders: Interner::new(),
            contention: IndexMap::new(),
            losses: Losses::default(),
            stack_quality: StackQuality::default(),
        }
    }

    pub fn string(&mut self, text: &str) -> StrId {
        match self.strings.items.get_index_of(text) {
            Some(index) => id(index),
            None => self.strings.intern(text.to_owned()),
        }
    }

    pub fn module(&mut self, path: &str, build_id: &[u8], kind: ModuleKind) -> ModuleId {
        let path = self.string(path);
        self.modules.intern(Module {
            path,
            build_id: build_id.to_vec(),
            kind,
        })
    }

    pub fn frame(&mut self, frame: Frame) -> FrameId {
        self.frames.intern(frame)
    }

    /// A frame that says why code frames are missing, as `[stack lost]`.
    pub fn marker(&mut self, text: &str) -> FrameId {
        let module = self.module("", &[], ModuleKind::Unknown);
        let name = self.string(text);
        self.frames.intern(Frame {
            space: FrameSpace::Marker,
            module,
            offset: 0,
            functions: vec![Function {
                name,
                file: 0,
                line: 0,
            }],
            source: NameSource::Marker,
        })
    }

    /// The name of the real function at a frame; empty when there is none.
    pub fn function_name(&self, frame: FrameId) -> &str {
        self.frames
            .get(frame)
            .and_then(|frame| frame.functions.last())
            .and_then(|function| self.strings.get(function.name))
            .map_or("", String::as_str)
    }

    /// Where the code of a frame runs.
    pub fn space(&self, frame: FrameId) -> Option<FrameSpace> {
        self.frames.get(frame).map(|frame| frame.space)
    }

    /// Whether the outermost of these frames is in executable memory without a file. No thread begins there, so it
    /// has a caller.
    pub fn begins_without_a_file(&self, frames: &[FrameId]) -> bool {
        let outermost = frames.last().and_then(|id| self.frames.get(*id));
        let module = outermost.and_then(|frame| self.modules.get(frame.module));
        module.is_some_and(|module| module.kind == ModuleKind::Anonymous)
    }

    /// About the memory that the builder takes.
    pub fn bytes(&self) -> u64 {
        let rows = self.rows.len() * (size_of::<RowKey>() + size_of::<RowSums>() + OVERHEAD);
        let contention =
            self.contention.len() * (size_of::<ContentionKey>() + size_of::<u64>() + OVERHEAD);
        self.strings.bytes
            + self.modules.bytes
            + self.frames.bytes
            + self.stacks.bytes
            + self.processes.bytes
            + self.threads.bytes
            + self.holders.bytes
            + rows as u64
            + contention as u64
    }

    /// Interns a stack given from leaf to root.
    pub fn stack(&mut self, frames: Vec<FrameId>) -> StackId {
        self.stacks.intern(Stack { frames })
    }

    pub fn process(&mut self, process: ProfileProcess) -> ProcessId {
        self.processes.intern(process)
    }

    pub fn thread(&mut self, thread: ProfileThread) -> ThreadId {
        self.threads.intern(thread)
    }

    /// Adds a row; rows that differ only in their sums are added up.
    pub fn sample(&mut self, row: SampleRow) {
        let SampleRow {
            thread,
            stack,
            cpu,
            bucket,
            state,
            waker,
            count,
            total_ns,
        } = row;
        let key = RowKey {
            thread,
            stack,
            cpu,
            bucket,
            state,
            waker,
        };
        let sums = self.rows.entry(key).or_default();
        sums.count = sums.count.saturating_add(count);
        sums.total_ns = sums.total_ns.saturating_add(total_ns);
    }

    pub fn holder(&mut self, holder: CpuHolder) -> HolderId {
        self.holders.intern(holder)
    }

    /// Adds time in which a thread waited for a CPU.
    pub fn wait_for_cpu(&mut self, row: ContentionRow) {
        let ContentionRow {
            thread,
            holder,
            bucket,
            ns,
        } = row;
        let key = ContentionKey {
            thread,
            holder,
            bucket,
        };
        let sum = self.contention.entry(key).or_default();
        *sum = sum.saturating_add(ns);
    }

    pub fn losses(&mut self) -> &mut Losses {
        &mut self.losses
    }

    pub fn stack_quality(&mut self) -> &mut StackQuality {
        &mut self.stack_quality
    }

    /// Extends the covered range, nanoseconds after the origin.
    pub fn cover(&mut self, from_ns: u64, to_ns: u64) {
        self.range = Some(match self.range {
            Some((from, to)) => (from.min(from_ns), to.max(to_ns)),
            None => (from_ns, to_ns),
        });
    }

    /// True when nothing that was measured and no loss was added.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.contention.is_empty() && self.losses.is_empty()
    }

    /// Adds everything in `other`, which must have passed [`Profile::check`].
    ///
    /// Buckets are shifted when the origins differ, and rescaled when the bucket lengths do.
    pub fn merge(&mut self, other: &Profile) {
        let strings = self.adopt_strings(other);
        let string = |id: StrId| strings.get(id as usize).copied().unwrap_or(0);
        let frames = self.adopt_frames(other, &strings);
        let stacks: Vec<StackId> = other
            .stacks
            .iter()
            .map(|stack| self.stack(stack.frames.iter().map(|id| frames[*id as usize]).collect()))
            .collect();
        let adopted = |process: &ProfileProcess| ProfileProcess {
            key: process.key,
            comm: string(process.comm),
            exe: string(process.exe),
            container: string(process.container),
        };
        let processes: Vec<ProcessId> = other
            .processes
            .iter()
            .map(|process| self.process(adopted(process)))
            .collect();
        let threads: Vec<ThreadId> = other
            .threads
            .iter()
            .map(|thread| {
                self.thread(ProfileThread {
                    process: processes[thread.process as usize],
                    tid: thread.tid,
                    name: string(thread.name),
                })
            })
            .collect();
        for row in &other.samples {
            self.sample(SampleRow {
                thread: threads[row.thread as usize],
                stack: stacks[row.stack as usize],
                waker: row.waker.map(|waker| stacks[waker as usize]),
                bucket: self.rebase(other, row.bucket),
                ..*row
            });
        }
        let holders: Vec<HolderId> = other
            .holders
            .iter()
            .map(|holder| {
                self.holder(match holder {
                    CpuHolder::Process {
                        process,
                        container_name,
                    } => CpuHolder::Process {
                        process: adopted(process),
                        container_name: string(*container_name),
                    },
                    CpuHolder::Idle => CpuHolder::Idle,
                    CpuHolder::OutOfSight => CpuHolder::OutOfSight,
                })
            })
            .collect();
        for row in &other.contention {
            self.wait_for_cpu(ContentionRow {
                thread: threads[row.thread as usize],
                holder: holders[row.holder as usize],
                bucket: self.rebase(other, row.bucket),
                ns: row.ns,
            });
        }
        self.losses.merge(&other.losses);
        self.stack_quality.merge(&other.stack_quality);
        let shift = other.origin_ns.saturating_sub(self.origin_ns);
        self.cover(
            other.from_ns.saturating_add(shift),
            other.to_ns.saturating_add(shift),
        );
    }

    fn adopt_strings(&mut self, other: &Profile) -> Vec<StrId> {
        other.strings.iter().map(|text| self.string(text)).collect()
    }

    /// Interns the frames of `other`; the result maps its frame ids to this profile's.
    fn adopt_frames(&mut self, other: &Profile, strings: &[StrId]) -> Vec<FrameId> {
        let string = |id: StrId| strings.get(id as usize).copied().unwrap_or(0);
        let modules: Vec<ModuleId> = other
            .modules
            .iter()
            .map(|module| {
                self.modules.intern(Module {
                    path: string(module.path),
                    ..module.clone()
                })
            })
            .collect();
        other
            .frames
            .iter()
            .map(|frame| {
                self.frames.intern(Frame {
                    module: modules[frame.module as usize],
                    functions: frame
                        .functions
                        .iter()
                        .map(|function| Function {
                            name: string(function.name),
                            file: string(function.file),
                            line: function.line,
                        })
                        .collect(),
                    ..frame.clone()
                })
            })
            .collect()
    }

    /// Interns frames that another builder named, without anything else of it; the result maps its
    /// frame ids to this profile's.
    pub fn import_frames(&mut self, other: &Profile) -> Vec<FrameId> {
        let strings = self.adopt_strings(other);
        self.adopt_frames(other, &strings)
    }

    fn rebase(&self, other: &Profile, bucket: u32) -> u32 {
        if other.origin_ns == self.origin_ns && other.bucket_ns == self.bucket_ns {
            return bucket;
        }
        let time = other
            .origin_ns
            .saturating_add(u64::from(bucket).saturating_mul(other.bucket_ns))
            .saturating_sub(self.origin_ns);
        u32::try_from(time / self.bucket_ns).unwrap_or(u32::MAX)
    }

    pub fn finish(self) -> Profile {
        let (from_ns, to_ns) = self.range.unwrap_or((0, 0));
        Profile {
            origin_ns: self.origin_ns,
            from_ns,
            to_ns,
            bucket_ns: self.bucket_ns,
            clock: self.clock,
            strings: self.strings.into_items(),
            modules: self.modules.into_items(),
            frames: self.frames.into_items(),
            stacks: self.stacks.into_items(),
            processes: self.processes.into_items(),
            threads: self.threads.into_items(),
            samples: self
                .rows
                .into_iter()
                .map(|(key, RowSums { count, total_ns })| {
                    let RowKey {
                        thread,
                        stack,
                        cpu,
                        bucket,
                        state,
                        waker,
                    } = key;
                    SampleRow {
                        thread,
                        stack,
                        cpu,
                        bucket,
                        state,
                        waker,
                        count,
                        total_ns,
                    }
                })
                .collect(),
            holders: self.holders.into_items(),
            contention: self
                .contention
                .into_iter()
                .map(|(key, ns)| {
                    let ContentionKey {
                        thread,
                        holder,
                        bucket,
                    } = key;
                    ContentionRow {
                        thread,
                        holder,
                        bucket,
                        ns,
                    }
                })
                .collect(),
            losses: self.losses,
            stack_quality: self.stack_quality,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_begins_in_a_file() {
        let mut builder = ProfileBuilder::new(0, 1, Clock::CpuClock);
        let mut frame = |kind| {
            let module = builder.module("", &[], kind);
            builder.frame(Frame {
                space: FrameSpace::User,
                module,
                offset: 0,
                functions: Vec::new(),
                source: NameSource::None,
            })
        };
        let (file, memory) = (frame(ModuleKind::Elf), frame(ModuleKind::Anonymous));
        let marker = builder.marker("[stack incomplete: too deep]");
        assert!(builder.begins_without_a_file(&[file, memory]));
        assert!(!builder.begins_without_a_file(&[memory, file]));
        assert!(!builder.begins_without_a_file(&[memory, marker]));
        assert!(!builder.begins_without_a_file(&[]));
    }
}
