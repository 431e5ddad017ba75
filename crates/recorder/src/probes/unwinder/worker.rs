//! The thread that walks captures and fills the kernel's tables.

use std::{
    collections::HashSet,
    os::fd::BorrowedFd,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TryRecvError},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use profiler_common::{
    limits::{MAX_CAPTURES_PER_READING, TABLE_PAGES},
    unwind::{
        capture::{CAPTURE_ASLEEP, CAPTURE_FOR_COMPARISON},
        frame,
        mapping::{MAX_MAPPINGS, Mapping, Mappings, NO_START},
        process::{ANY_GENERATION, NO_MAPPINGS_SLOT, ProcessEntry},
        state::State,
        step::{self, Arch as _},
    },
};
use profiler_model::TableCounts;
use profiler_sandbox::broker;
use profiler_unwind::{
    self as unwind, CapturedStack, LEAF_FRAMES, NativeStack, Operation, ProcessCode, TableCache,
    TableSizes,
};

use super::{
    Command, Purpose, Walked, asleep,
    live_memory::{LiveMemory, LiveStack},
    machine::Machine,
    oracle::Oracle,
    processes::{ProcessSlot, Processes},
};
use crate::bpf::{Capture, CaptureReader, LoadError, UnwindMaps};

/// Longest sleep; pages that wait for room are looked at so often.
pub(super) const WAIT: Duration = Duration::from_millis(100);

/// Longest sleep where the kernel must not wake the agent for a capture.
pub(super) const POLL: Duration = Duration::from_millis(10);

/// Sleep after captures have come: more will, until the tables are complete.
const SHORT_WAIT: Duration = Duration::from_millis(1);

/// Pages of unwind tables of a file that is loaded as a whole: libc has about 24.
const SMALL_FILE_PAGES: usize = 32;

/// How often it is looked at what the kernel uses.
const LOOK_AT_USE: Duration = Duration::from_secs(1);

/// How often processes that ended without an event are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// Largest file that tables are made of.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// A process without mappings: every address is in none.
const NO_MAPPINGS: Mappings = Mappings {
    starts: {
        let mut starts = [NO_START; MAX_MAPPINGS];
        starts[0] = 0;
        starts
    },
    mappings: [Mapping {
        end: 0,
        bias: 0,
        file: 0,
        flags: 0,
    }; MAX_MAPPINGS],
};

/// Everything that the thread owns.
#[derive(Debug)]
pub(super) struct Worker {
    maps: UnwindMaps,
    tables: TableCache,
    processes: Processes,
    oracle: Oracle,
    shared: Arc<Mutex<TableCounts>>,
    counts: TableCounts,
    seen: unwind::TableCounts,
    swept: Instant,
    looked_at_use: Instant,
    /// Processes whose exit was reported since then.
    exiting: Vec<u32>,
    /// Seconds that the thread has worked, by which the kernel marks what it uses.
    clock: u32,
    /// Readings of mappings so far.
    readings: u32,
}

impl Worker {
    pub(super) fn new(
        mut maps: UnwindMaps,
        shared: Arc<Mutex<TableCounts>>,
    ) -> Result<Self, LoadError> {
        maps.set_mappings(NO_MAPPINGS_SLOT, &NO_MAPPINGS)?;
        let tables = TableCache::new(TableSizes {
            blocks: maps.block_count() as usize,
            pages: TABLE_PAGES as usize,
        });
        let mut worker = Self {
            processes: Processes::new(maps.slots()),
            maps,
            tables,
            oracle: Oracle::default(),
            shared,
            counts: TableCounts::default(),
            readings: 0,
            seen: unwind::TableCounts::default(),
            swept: Instant::now(),
            looked_at_use: Instant::now(),
            exiting: Vec::new(),
            clock: 0,
        };
        worker.apply();
        Ok(worker)
    }

    /// Whether the calling thread may write the kernel's tables.
    pub(super) fn can_write(&mut self) -> bool {
        // No process has this pid: nothing is removed.
        self.maps.remove_process(u32::MAX).is_ok()
    }

    /// Works until the session has gone or asked for the end, and then on what has come until then.
    pub(super) fn run(
        mut self,
        mut captures: CaptureReader,
        orders: &Receiver<Command>,
        woken: BorrowedFd<'_>,
        results: &SyncSender<Walked>,
        patience: Duration,
    ) {
        let mut wait = patience;
        loop {
            captures.wait(woken, wait);
            // Fails when nothing was written since.
            let _empty = rustix::io::read(woken, &mut [0_u8; 8]);
            // Everything that was captured before the end was asked for is in the buffer now.
            let finish = self.obey(orders);
            let mut undecodable = 0;
            wait = wait.saturating_mul(2).min(patience);
            while let Some(capture) = captures.next(&mut undecodable) {
                wait = SHORT_WAIT.min(patience);
                if results.send(self.walk(&capture)).is_err() {
                    return;
                }
                self.obey(orders);
            }
            self.tables.load_waiting(Instant::now());
            self.apply();
            self.publish();
            if finish {
                return;
            }
            self.look_at_use();
            self.sweep();
        }
    }

    /// Follows orders; true when there will be no more.
    fn obey(&mut self, orders: &Receiver<Command>) -> bool {
        loop {
            match orders.try_recv() {
                // The receiver is gone when it took too long.
                Ok(Command::Answer(done)) => drop(done.try_send(())),
                Ok(Command::Known { pid }) => self.prepare(pid),
                Ok(Command::Exec {
                    pid,
                    generation,
                    code,
                }) => self.expect(pid, generation, code),
                // It goes on for a moment, and what is sampled of it then has a stack.
                Ok(Command::Exit { pid }) => self.exiting.push(pid),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }

    /// Walks a capture from its leaf.
    fn walk(&mut self, capture: &Capture) -> Walked {
        let head = &capture.head;
        if head.flags & CAPTURE_FOR_COMPARISON != 0 {
            return self.walk_independently(capture);
        }
        let known = self
            .processes
            .get(head.pid)
            .filter(|known| [head.generation, ANY_GENERATION].contains(&known.generation));
        if known.is_none() {
            let expected = self.processes.take_expected(head.pid, head.generation);
            self.read_process(head.pid, head.generation, expected);
        }
        let mut stack = self.unwind(capture);
        if stack.outcome == step::NO_MAPPING
            && self
                .processes
                .get(head.pid)
                .is_some_and(|known| known.may_read_again(Instant::now()))
        {
            self.read_process(head.pid, head.generation, None);
            let again = self.unwind(capture);
            if again.outcome != step::NO_MAPPING || again.frames.len() > stack.frames.len() {
                self.processes.reading_helped(head.pid);
            }
            stack = again;
        }
        if stack.outcome == step::STACK_UNREADABLE && head.flags & CAPTURE_ASLEEP == 0 {
            self.load_what_lies_beyond(capture);
        }
        self.apply();
        if stack.outcome == step::COMPLETE {
            self.counts.repaired += 1;
        }
        Walked {
            hash: head.hash,
            addresses: with_marks(stack),
            purpose: Purpose::Repair,
        }
    }

    fn walk_independently(&mut self, capture: &Capture) -> Walked {
        let head = &capture.head;
        let state = leaf_registers(capture);
        let stack = captured_stack(capture);
        let truth = self.oracle.walk(head.pid, head.generation, &state, stack);
        Walked {
            hash: head.hash,
            addresses: truth.frames.into(),
            purpose: if truth.whole {
                Purpose::CompareWhole
            } else {
                Purpose::CompareBeginning
            },
        }
    }

    fn unwind(&mut self, capture: &Capture) -> NativeStack {
        let Some(state) = self.leaf(capture) else {
            return NativeStack {
                frames: vec![leaf_registers(capture).pc],
                elided: 0,
                outcome: step::PROCESS_UNKNOWN,
            };
        };
        if capture.head.flags & CAPTURE_ASLEEP != 0 {
            return asleep::walk(&mut self.tables, &state, capture);
        }
        let stack = captured_stack(capture);
        unwind::unwind_capture::<Machine>(&mut self.tables, state, &stack, Instant::now())
    }

    /// Walks on in the live process where a capture ends, for the pages that this needs: a stack
    /// that is deeper than a capture, or that lies elsewhere below a signal handler, would miss in
    /// the kernel again. What is read there may have changed since, so it makes no frames.
    fn load_what_lies_beyond(&mut self, capture: &Capture) {
        if let Some(state) = self.leaf(capture) {
            let stack = LiveStack {
                captured: captured_stack(capture),
                process: LiveMemory::new(capture.head.pid),
            };
            unwind::unwind_capture::<Machine>(&mut self.tables, state, &stack, Instant::now());
        }
    }

    /// The interrupted frame; `None` when the mappings of its process are not known.
    fn leaf(&self, capture: &Capture) -> Option<State> {
        let slot = self.processes.get(capture.head.pid)?.slot;
        let state = leaf_registers(capture);
        (slot != NO_MAPPINGS_SLOT).then_some(State { slot, ..state })
    }

    /// Knows a process and the code that it surely runs before its first sample.
    fn prepare(&mut self, pid: u32) {
        self.read_process(pid, ANY_GENERATION, None);
        if let Some(known) = self.processes.get(pid) {
            let slot = known.slot;
            self.tables
                .load_small_files(slot, SMALL_FILE_PAGES, Instant::now());
            self.apply();
        }
    }

    /// Reads the mappings of a process and passes them to the kernel. If it has ended by now, the session's are used.
    fn read_process(&mut self, pid: u32, generation: u32, earlier: Option<ProcessCode>) {
        let code = ProcessCode::read(pid, MAX_FILE_BYTES)
            .inspect_err(|error| tracing::trace!(pid, %error, "mappings not read"));
        self.set_process(pid, generation, code.ok().or(earlier));
    }

    /// A process runs another program. It gets a slot when it is sampled; until then what it executes
    /// is kept, as it may have ended by then.
    fn expect(&mut self, pid: u32, generation: u32, code: Option<ProcessCode>) {
        let known = self.processes.get(pid);
        if known.is_some_and(|known| known.generation == generation) {
            return; // its first sample came before
        }
        self.forget(pid);
        if let Some(code) = code {
            self.processes.expect(pid, generation, code);
        }
    }

    /// Gives the kernel the code of a process; `None`: unknown.
    fn set_process(&mut self, pid: u32, generation: u32, code: Option<ProcessCode>) {
        let now = Instant::now();
        let place = code.map_or(ProcessSlot::Unreadable, |code| self.place(code, now));
        self.readings = self.readings.wrapping_add(1);
        let entry = ProcessEntry {
            generation,
            slot: place.slot(),
            captures_left: MAX_CAPTURES_PER_READING,
            reading: self.readings,
            used: self.clock,
            padding: 0,
        };
        // Rows of pages come before what makes the kernel look for them.
        self.apply();
        if let Err(error) = self.maps.set_process(pid, entry) {
            tracing::debug!(pid, %error, "a process has no place in the kernel");
            self.counts.processes_left_out += 1;
        }
        let time = (self.clock, now);
        if let Some(before) = self.processes.set(pid, generation, place, time) {
            self.tables.remove_process(before, now);
        }
    }

    /// Writes mappings into a fresh slot, so that the kernel never reads half of them.
    fn place(&mut self, code: ProcessCode, now: Instant) -> ProcessSlot {
        let Some(slot) = self.processes.take_slot(now) else {
            self.counts.processes_left_out += 1;
            return ProcessSlot::LeftOut;
        };
        let mappings = self.tables.set_process(slot, code, now);
        match self.maps.set_mappings(slot, mappings) {
            Ok(()) => ProcessSlot::Slot(slot),
            Err(error) => {
                tracing::warn!(%error, "write mappings");
                self.tables.remove_process(slot, now);
                self.processes.return_slot(slot);
                ProcessSlot::Unreadable
            }
        }
    }

    fn forget(&mut self, pid: u32) {
        let now = Instant::now();
        if let Err(error) = self.maps.remove_process(pid) {
            tracing::debug!(pid, %error, "forget a process");
        }
        if let Some(slot) = self.processes.remove(pid, now) {
            self.tables.remove_process(slot, now);
        }
    }

    /// Brings changes of the tables into the kernel, in their order.
    fn apply(&mut self) {
        for operation in self.tables.take_operations() {
            let result = match operation {
                Operation::WriteRule { index, rule } => self.maps.set_rule(index.into(), rule),
                Operation::WriteBlock { index, block } => self.maps.set_block(index.into(), &block),
                Operation::WritePage { key, entry } => self.maps.set_page(key, &entry),
                Operation::DeletePage { key } => self.maps.remove_page(key),
            };
            if let Err(error) = result {
                // The page stays away from the kernel, and its samples are walked here.
                tracing::warn!(%error, "write unwind tables");
            }
        }
    }

    fn publish(&mut self) {
        let now = self.tables.counts();
        self.counts.pages_loaded += now.loaded - self.seen.loaded;
        self.counts.pages_evicted += now.evicted - self.seen.evicted;
        self.seen = now;
        self.counts.blocks = self.tables.blocks_used() as u64;
        let counts = std::mem::take(&mut self.counts);
        self.shared.lock().merge(&counts);
    }

    /// Lets pages and slots go where the kernel walks.
    fn look_at_use(&mut self) {
        let now = Instant::now();
        if now.saturating_duration_since(self.looked_at_use) < LOOK_AT_USE {
            return;
        }
        self.looked_at_use = now;
        for pid in std::mem::take(&mut self.exiting) {
            self.forget(pid);
        }
        if self.tables.will_evict() {
            match self.maps.block_uses() {
                Ok(uses) => self.tables.note_uses(&uses),
                Err(error) => tracing::debug!(%error, "read which pages are in use"),
            }
        }
        if self.processes.is_short() {
            for pid in self.processes.pids() {
                if let Some(entry) = self.maps.process(pid) {
                    self.processes.note_use(pid, entry.used);
                }
            }
            for pid in self.processes.forgettable(self.clock, now) {
                self.forget(pid);
            }
        }
        self.clock = self.clock.wrapping_add(1);
        self.tables.set_clock(self.clock);
        if let Err(error) = self.maps.set_clock(self.clock) {
            tracing::debug!(%error, "tell the kernel the time");
        }
    }

    /// Forgets processes that ended while their exit was not reported.
    fn sweep(&mut self) {
        if self.swept.elapsed() < SWEEP {
            return;
        }
        self.swept = Instant::now();
        let known = self.processes.pids();
        let living = match broker::living(known.clone()) {
            Ok(living) => HashSet::<u32>::from_iter(living),
            Err(error) => {
                tracing::debug!(%error, "look which processes are there");
                return;
            }
        };
        for pid in known.iter().filter(|pid| !living.contains(pid)) {
            self.forget(*pid);
        }
    }
}

fn leaf_registers(capture: &Capture) -> State {
    let mut state = State::default();
    Machine::begin(&capture.head.registers, &mut state);
    state
}

fn captured_stack(capture: &Capture) -> CapturedStack<'_> {
    CapturedStack {
        start: capture.head.stack_start,
        bytes: &capture.stack,
    }
}

/// The frames of a record, with a mark where they are left out and one where the stack breaks off.
fn with_marks(stack: NativeStack) -> Box<[u64]> {
    let NativeStack {
        mut frames,
        elided,
        outcome,
    } = stack;
    for frame in &mut frames {
        *frame &= frame::ADDRESS_BITS | frame::INTERRUPTED;
    }
    if elided > 0 && frames.len() >= LEAF_FRAMES {
        let mark = frame::elided(u32::try_from(elided).unwrap_or(u32::MAX));
        frames.insert(LEAF_FRAMES, mark);
    }
    if outcome != step::COMPLETE {
        frames.push(frame::error(outcome));
    }
    frames.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_where_frames_are_missing() {
        let stack = NativeStack {
            frames: (0..512).collect(),
            elided: 88,
            outcome: step::NO_MAPPING,
        };
        let frames = with_marks(stack);
        assert_eq!(frames.len(), 514);
        assert_eq!(frame::elided_of(frames[LEAF_FRAMES]), Some(88));
        assert_eq!(frames[LEAF_FRAMES + 1], LEAF_FRAMES as u64);
        assert_eq!(frame::error_of(frames[513]), Some(step::NO_MAPPING));
    }

    #[test]
    fn garbage_on_the_stack_does_not_look_like_a_mark() {
        let stack = NativeStack {
            frames: vec![u64::MAX, frame::elided(7)],
            elided: 0,
            outcome: step::COMPLETE,
        };
        for address in with_marks(stack) {
            assert_eq!(frame::error_of(address), None);
            assert_eq!(frame::elided_of(address), None);
        }
    }
}
