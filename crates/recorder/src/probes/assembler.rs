//! From counters and records of the kernel side to rows of a profile.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use profiler_common::{
    off_cpu::Wait,
    process::{EVENT_EXEC, EVENT_EXIT, ProcessRecord, ThreadRecord, start_ticks},
    stack::{self, CAPTURED},
    unwind::{frame, step},
    wakers::{WAKER_IDLE, WAKER_INTERRUPTED, WAKER_THREAD, Waker},
    wall::NOT_SAMPLED,
};
use profiler_host::process::ProcessTable;
use profiler_model::{
    Clock, FrameId, FrameSpace, LossKind, Losses, Process, ProcessEvent, ProcessEventKind,
    ProcessKey, Profile, ProfileBuilder, ProfileProcess, ProfileThread, SampleRow, StackFault,
    StackId, StackQuality, ThreadId, ThreadState, UNSAMPLED_FRAME, WokenBy, woken_by,
};
use profiler_symbolize::{AddressStack, ImageKey, Mappings, NamedStack, Naming, SymbolizerService};
use profiler_unwind::ProcessCode;

use super::{
    kernel_code::KernelCode,
    naming::NamingQueue,
    source::Counted,
    stacks::Generations,
    timeline::{BUCKET, Origin, new_builder},
    unread::Unread,
};

/// A thread as last announced.
#[derive(Clone, Debug)]
struct Thread {
    image: ImageKey,
    name: String,
}

/// A counter whose stack is known, or has been waited for.
#[derive(Debug)]
struct Row {
    counted: Counted,
    image: ImageKey,
    /// A stack never arrived.
    missing: bool,
    user: UserStack,
}

/// What is known of a user stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserStack {
    None,
    Complete,
    /// Walked by frame pointers.
    Unverified,
    Incomplete(StackFault),
}

/// A counter whose stack had not arrived.
#[derive(Clone, Copy, Debug)]
struct Deferred {
    counted: Counted,
    drains: u32,
}

/// Frames that a tracepoint and its program put above those of the function with the hook, at most.
const MAX_TRACEPOINT_FRAMES: usize = 16;

/// Drains for which a sample waits for its stack.
const DRAINS_WAITED: u32 = 1;

/// Drains for which a sample waits for a stack that the agent walks (about ten seconds).
const DRAINS_WAITED_FOR_CAPTURE: u32 = 40;

/// Everything that one collection knows of threads and stacks, and the rows on their way.
#[derive(Debug)]
pub(super) struct SampleAssembler {
    origin: Origin,
    clock: Clock,
    pub(super) table: ProcessTable,
    symbolizer: SymbolizerService,
    stacks: Generations<u64, Arc<[u64]>>,
    /// By tid and generation: exec changes a thread's name.
    threads: Generations<(u32, u32), Thread>,
    /// Programs whose mappings were read, with what was known of their processes while they ran.
    images: Generations<ImageKey, Option<Arc<Process>>>,
    naming: NamingQueue<Row>,
    pub(super) kernel_code: KernelCode,
    unread: Unread,
    /// Rows whose stack had not arrived; tried again with the next drains.
    deferred: Vec<Deferred>,
    /// Whether user stacks are walked with tables, so that a stack without a mark is complete.
    walks_with_tables: bool,
    pub(super) builder: ProfileBuilder,
    pub(super) earliest_bucket: u32,
    /// When processes were looked for that had a CPU.
    pub(super) looked_at: Option<Instant>,
    /// CPU time so far, and that of stays without a sample.
    cpu_ns: u64,
    unsampled_ns: u64,
    pub(super) notes: Vec<String>,
}

impl SampleAssembler {
    pub(super) fn new(
        origin: Origin,
        clock: Clock,
        table: ProcessTable,
        symbolizer: SymbolizerService,
        walks_with_tables: bool,
    ) -> Self {
        Self {
            walks_with_tables,
            origin,
            clock,
            table,
            naming: NamingQueue::new(symbolizer.clone(), origin, clock),
            kernel_code: KernelCode::default(),
            unread: Unread::default(),
            symbolizer,
            stacks: Generations::new(),
            threads: Generations::new(),
            images: Generations::new(),
            deferred: Vec::new(),
            builder: new_builder(origin, clock),
            earliest_bucket: u32::MAX,
            looked_at: None,
            cpu_ns: 0,
            unsampled_ns: 0,
            notes: Vec::new(),
        }
    }

    pub(super) fn losses(&mut self) -> &mut Losses {
        self.builder.losses()
    }

    pub(super) fn stack_seen(&mut self, hash: u64, addresses: Box<[u64]>) {
        self.stacks.insert(hash, addresses.into());
    }

    /// Learns the marks that stand in place of user stacks which were not taken. They are forgotten
    /// with the stacks.
    pub(super) fn know_reasons(&mut self) {
        for (hash, outcome) in [
            (stack::NOT_TAKEN, step::NOT_TAKEN),
            (stack::NOT_SAMPLED, step::NOT_SAMPLED),
        ] {
            self.stacks.insert(hash, [frame::error(outcome)].into());
        }
    }

    /// The addresses of a stack.
    pub(super) fn addresses(&self, hash: u64) -> Option<&[u64]> {
        self.stacks.get(&hash).map(|addresses| &**addresses)
    }

    /// Stacks that came since the last rotation.
    pub(super) fn stacks(&self) -> usize {
        self.stacks.len()
    }

    /// The kernel side has forgotten what it sent.
    pub(super) fn rotate(&mut self) {
        self.stacks.rotate();
        self.threads.rotate();
        self.images.rotate();
        self.notes.extend(self.unread.notes());
    }

    /// Takes the counters of one drain. Counters that have waited for their stack are tried again.
    pub(super) fn add(&mut self, counted: Vec<Counted>) {
        let mut rows = std::mem::take(&mut self.deferred);
        for row in &mut rows {
            row.drains += 1;
        }
        rows.extend(
            counted
                .into_iter()
                .map(|counted| Deferred { counted, drains: 0 }),
        );
        self.ask_for_names(&rows);
    }

    /// Nothing more comes: rows that still wait get what there is.
    pub(super) fn give_up_waiting(&mut self) {
        for row in &mut self.deferred {
            row.drains = u32::MAX - 1;
        }
        self.add(Vec::new());
    }

    pub(super) fn stack_quality(&mut self) -> &mut StackQuality {
        self.builder.stack_quality()
    }

    /// What was collected since the last call, as a profile that covers `from` to `to` after the
    /// origin, and earlier where late rows are.
    pub(super) fn take(&mut self, from: Duration, to: Duration) -> Profile {
        let empty = new_builder(self.origin, self.clock);
        let mut builder = std::mem::replace(&mut self.builder, empty);
        let earliest = std::mem::replace(&mut self.earliest_bucket, u32::MAX);
        let from = from.min(BUCKET.saturating_mul(earliest));
        builder.cover(nanoseconds(from), nanoseconds(to));
        builder.finish()
    }

    pub(super) fn thread_seen(&mut self, record: &ThreadRecord) {
        let process = ProcessKey {
            pid: record.pid,
            start_ticks: start_ticks(record.start_boottime_ns),
        };
        let image = ImageKey {
            process,
            generation: record.generation,
        };
        let name = text_of(&record.comm);
        if self.images.get(&image).is_none() {
            // The unwinder looks by itself when it meets the process.
            self.image_started(image, false);
        }
        self.threads
            .insert((record.tid, record.generation), Thread { image, name });
    }

    /// Reads mappings and facts now: the process may be gone in a moment.
    fn image_started(&mut self, image: ImageKey, wants_code: bool) -> Option<ProcessCode> {
        let process = image.process;
        let read = self.symbolizer.process_started(image, wants_code);
        self.unread.add(process, &read);
        let table = &self.table;
        let known =
            |table: &ProcessTable| table.get(process.pid).filter(|known| known.key == process);
        // Also when it is known: it may be known as the program before its exec.
        table.observe(&ProcessEvent {
            kind: ProcessEventKind::Exec,
            pid: process.pid,
            parent_pid: 0,
            start_ticks: process.start_ticks,
            time_ns: self.origin.epoch_ns,
        });
        self.images.insert(image, known(table));
        read.code
    }

    /// Follows execs and exits; with `wants_code` the result is what a process executes now.
    pub(super) fn process_changed(
        &mut self,
        record: &ProcessRecord,
        wants_code: bool,
    ) -> Option<ProcessCode> {
        let process = ProcessKey {
            pid: record.pid,
            start_ticks: start_ticks(record.start_boottime_ns),
        };
        match record.event {
            EVENT_EXEC => {
                let image = ImageKey {
                    process,
                    generation: record.generation,
                };
                self.image_started(image, wants_code)
            }
            EVENT_EXIT => {
                self.symbolizer.process_exited(process);
                None
            }
            _ => None,
        }
    }

    /// Asks for the names of all rows' stacks, but of those that wait for a stack.
    fn ask_for_names(&mut self, rows: &[Deferred]) {
        let mut ready = Vec::with_capacity(rows.len());
        let mut requests = Vec::with_capacity(rows.len());
        for row in rows {
            let key = &row.counted.key;
            let image = self.image_of((key.pid, key.tid, key.generation));
            let request = self.request(image, key.kernel_stack, key.user_stack);
            let absent = |hash: u64| hash != 0 && self.stacks.get(&hash).is_none();
            let missing = absent(key.kernel_stack) || absent(key.user_stack);
            let waker = row.counted.waker.unwrap_or_default();
            let incomplete = missing || absent(waker.kernel_stack) || absent(waker.user_stack);
            let captured = [key.user_stack, waker.user_stack]
                .into_iter()
                .any(|hash| hash & CAPTURED != 0 && absent(hash));
            let patience = if captured {
                DRAINS_WAITED_FOR_CAPTURE
            } else {
                DRAINS_WAITED
            };
            if incomplete && row.drains < patience {
                self.deferred.push(*row);
                continue;
            }
            ready.push(Row {
                counted: row.counted,
                image: request.image,
                missing,
                user: self.user_stack(key.user_stack, request.user.as_deref()),
            });
            requests.push(request);
            requests.extend(row.counted.waker.map(|waker| self.waker_request(&waker)));
        }
        if ready.is_empty() {
            return;
        }
        self.kernel_code.tell(&self.symbolizer, &requests);
        self.naming.ask(ready, requests);
    }

    /// Adds the rows whose names have come; true when there were some.
    pub(super) fn collect_named(&mut self) -> bool {
        let mut any = false;
        while let Some((rows, naming)) = self.naming.next() {
            self.add_named(&rows, naming);
            any = true;
        }
        any
    }

    /// Waits for all names that are still being looked for.
    pub(super) fn await_named(&mut self) {
        while let Some((rows, naming)) = self.naming.await_next() {
            self.add_named(&rows, naming);
        }
        self.notes.extend(self.naming.note());
        self.notes.extend(self.unread.notes());
    }

    fn request(&self, image: ImageKey, kernel: u64, user: u64) -> AddressStack {
        AddressStack {
            image,
            kernel: self.stacks.get(&kernel).cloned(),
            user: self.stacks.get(&user).cloned(),
        }
    }

    fn waker_request(&self, waker: &Waker) -> AddressStack {
        let image = self.image_of((waker.pid, waker.tid, waker.generation));
        self.request(image, waker.kernel_stack, waker.user_stack)
    }

    fn add_named(&mut self, rows: &[Row], naming: Naming) {
        let Naming::Done(named) = naming else {
            self.notes
                .push("the symbolizer failed; samples of a moment have no frames".into());
            for row in rows {
                self.add_row(row, Vec::new(), None);
            }
            return;
        };
        let frames = self.builder.import_frames(&named.profile);
        let own = |stack: &NamedStack| -> Vec<FrameId> {
            let ids = stack.frames.iter();
            ids.filter_map(|id| frames.get(*id as usize).copied())
                .collect()
        };
        let mut stacks = named.stacks.iter();
        for row in rows {
            let Some(stack) = stacks.next() else {
                return; // as many come as were asked for
            };
            let waker = row.counted.waker.and_then(|waker| {
                let frames = own(stacks.next()?);
                Some(self.waker_stack(&waker, frames))
            });
            let mappings = &stack.mappings;
            if row.counted.key.user_stack != 0 && *mappings == Mappings::Missing {
                self.builder
                    .losses()
                    .add(LossKind::MappingsMissing, row.counted.count);
            }
            if stack.has_old_perf_map {
                self.unread.old_perf_map(row.image.process);
            }
            self.add_row(row, own(stack), waker);
        }
    }

    fn user_stack(&self, hash: u64, addresses: Option<&[u64]>) -> UserStack {
        let Some(addresses) = addresses else {
            return if hash == 0 {
                UserStack::None
            } else {
                UserStack::Incomplete(StackFault::Lost)
            };
        };
        match addresses.last().and_then(|last| frame::error_of(*last)) {
            Some(outcome) => UserStack::Incomplete(StackFault::of_outcome(outcome)),
            None if self.walks_with_tables => UserStack::Complete,
            None => UserStack::Unverified,
        }
    }

    pub(super) fn image_of(&self, (pid, tid, generation): (u32, u32, u32)) -> ImageKey {
        let process = self
            .threads
            .get(&(tid, generation))
            .map(|thread| thread.image.process)
            .filter(|process| process.pid == pid)
            .unwrap_or(ProcessKey {
                pid,
                start_ticks: 0,
            });
        ImageKey {
            process,
            generation,
        }
    }

    /// The waker's stack, below a frame with its name. An interrupt has nothing to do
    /// with the thread that it came upon, which then is not named.
    fn waker_stack(&mut self, waker: &Waker, mut frames: Vec<FrameId>) -> StackId {
        self.cut_to(&mut frames, "try_to_wake_up");
        let builder = &self.builder;
        let kernel: Vec<&str> = frames
            .iter()
            .take_while(|frame| builder.space(**frame) == Some(FrameSpace::Kernel))
            .map(|frame| builder.function_name(*frame))
            .collect();
        let text = match (woken_by(&kernel), waker.who) {
            (WokenBy::Unknown, _) => {
                frames.clear();
                "[woken by unknown]".to_owned()
            }
            (WokenBy::Interrupt { source, last }, _) => {
                frames.truncate(last + 1);
                format!("[woken by interrupt: {}]", source.name())
            }
            // The idle task does nothing of its own.
            (WokenBy::Thread, WAKER_IDLE) => "[woken by interrupt: other]".to_owned(),
            // An exception; the thread is known when something else of it is shown.
            (WokenBy::Thread, WAKER_THREAD | WAKER_INTERRUPTED) => {
                let thread = self.threads.get(&(waker.tid, waker.generation));
                let name = thread.map_or("a thread without a name", |thread| thread.name.as_str());
                format!("[woken by {name}]")
            }
            (WokenBy::Thread, _) => {
                "[woken by a thread outside the agent's PID namespace]".to_owned()
            }
        };
        frames.insert(0, self.builder.marker(&text));
        self.builder.stack(frames)
    }

    fn add_row(&mut self, row: &Row, mut frames: Vec<FrameId>, waker: Option<StackId>) {
        // Only its names were asked for.
        if row.counted.count == 0 && row.counted.total_ns == 0 {
            return;
        }
        let Row {
            counted,
            image,
            missing,
            user,
        } = row;
        let Counted {
            key,
            state,
            count,
            total_ns,
            waker: _,
        } = *counted;
        let mut user = *user;
        // A chain of frame pointers through code that keeps none may end by chance, as through Python's trampolines.
        if user == UserStack::Complete && self.builder.begins_without_a_file(&frames) {
            let fault = StackFault::FramePointerBroken;
            frames.push(self.builder.marker(&fault.marker()));
            user = UserStack::Incomplete(fault);
        }
        let quality = self.builder.stack_quality();
        match user {
            UserStack::None => {}
            UserStack::Complete => quality.complete += count,
            UserStack::Unverified => quality.unverified += count,
            UserStack::Incomplete(fault) => quality.add_incomplete(fault, count),
        }
        if state == ThreadState::OnCpu {
            self.cpu_ns = self.cpu_ns.saturating_add(total_ns);
        }
        if let Some(text) = state.marker(self.clock) {
            frames.insert(0, self.builder.marker(text));
        }
        if *missing {
            self.builder.losses().add(LossKind::StackMissing, count);
            frames.push(self.builder.marker("[stack lost]"));
        } else if key.wait == NOT_SAMPLED {
            self.unsampled_ns = self.unsampled_ns.saturating_add(total_ns);
            frames.push(self.builder.marker(UNSAMPLED_FRAME));
        } else if frames.is_empty() {
            frames.push(self.builder.marker("[no stack]"));
        }
        let thread = self.thread_id(key.tid, image);
        let stack = self.builder.stack(frames);
        self.earliest_bucket = self.earliest_bucket.min(key.bucket);
        self.builder.sample(SampleRow {
            thread,
            stack,
            cpu: key.cpu,
            bucket: key.bucket,
            state,
            waker,
            count,
            total_ns,
        });
    }

    /// A thread in the profile's tables.
    pub(super) fn thread_id(&mut self, tid: u32, image: &ImageKey) -> ThreadId {
        let process = image.process;
        let thread = self
            .threads
            .get(&(tid, image.generation))
            .filter(|thread| thread.image.process == process);
        let name = thread.map_or("[unknown]", |thread| thread.name.as_str());
        let facts = self.images.get(image).cloned().flatten();
        // The main thread's name is the process's, and was taken with the sample.
        let comm = facts
            .as_ref()
            .filter(|_facts| tid != process.pid)
            .map_or(name, |facts| &facts.comm);
        let comm = self.builder.string(comm);
        let name = self.builder.string(name);
        let process = ProfileProcess {
            comm,
            ..self.process(process, facts.as_deref())
        };
        let process = self.builder.process(process);
        self.builder.thread(ProfileThread { process, tid, name })
    }

    /// A process with what is known of it.
    pub(super) fn process(&mut self, key: ProcessKey, facts: Option<&Process>) -> ProfileProcess {
        let exe = facts.and_then(|facts| facts.exe.as_deref());
        let container = facts.and_then(|facts| facts.container.as_ref());
        ProfileProcess {
            key,
            comm: self.builder.string(facts.map_or("", |facts| &facts.comm)),
            exe: self.builder.string(exe.unwrap_or("")),
            container: self
                .builder
                .string(container.map_or("", |container| &container.id)),
        }
    }

    /// Says of a wall-clock profile how much of its CPU time is shared out over samples.
    pub(super) fn unsampled_note(&self) -> Option<String> {
        let percent = u128::from(self.unsampled_ns) * 100 / u128::from(self.cpu_ns.max(1));
        (percent > 0).then(|| {
            format!(
                "{percent} % of the CPU time passed in stays on a CPU without a sample, shorter than \
                 the clock's period: it is shared out over the samples of the same threads. A higher \
                 frequency takes more samples"
            )
        })
    }

    /// Takes the frames of the tracepoint away, which lie above that of the function with the hook.
    fn cut_to(&self, frames: &mut Vec<FrameId>, hooked: &str) {
        let below = frames
            .iter()
            .take(MAX_TRACEPOINT_FRAMES)
            .position(|frame| self.builder.function_name(*frame) == hooked);
        if let Some(below) = below {
            frames.drain(..below);
        }
    }

    /// Keeps what the waits of sleeping threads will refer to when they end, however long they
    /// sleep.
    pub(super) fn keep(&mut self, waits: &[Wait]) {
        for wait in waits {
            self.stacks.keep(&wait.kernel_stack);
            self.stacks.keep(&wait.user_stack);
            let thread = (wait.tid, wait.generation);
            self.threads.keep(&thread);
            if let Some(image) = self.threads.get(&thread).map(|thread| thread.image) {
                self.images.keep(&image);
            }
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A C string in a fixed array; invalid UTF-8 is replaced.
pub(super) fn text_of(comm: &[u8]) -> String {
    let end = comm
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(comm.len());
    String::from_utf8_lossy(comm.get(..end).unwrap_or_default()).into_owned()
}
