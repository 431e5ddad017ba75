//! One running collection: drains the kernel side and turns counts into profile chunks.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use profiler_common::counter::{self, COUNTERS};
use profiler_host::process::ProcessTable;
use profiler_model::{Clock, EventLoopTable, LossKind, TableCounts, WaitCounts, WaitRules};
use profiler_recording::{Chunk, Part, Samples};
use profiler_symbolize::SymbolizerService;
use tokio::sync::mpsc;

use super::{
    assembler::SampleAssembler,
    board::ProgramRuns,
    comparison::{Comparison, of_kernel_stacks},
    contention::still_held,
    coverage::CpuAccounts,
    event_loop::EventLoopWatch,
    governor::{Governor, Spent, agent_cpu},
    kernel_code::KernelCode,
    kernel_losses::LOSS_COUNTERS,
    source::{Source, not_sampled, still_running, unfinished},
    targets::ResolvedTarget,
    throttling::Throttling,
    timeline::{GRACE, LOOP_WAIT, Origin, epoch, monotonic_ns},
    unwinder::Unwinder,
    wait_watch::WaitWatch,
};
use crate::bpf::{KernelLog, LoadedObject, Record, RecordReader};

/// How often stacks and threads are forgotten, which bounds both sides' memory.
const ROTATION: Duration = Duration::from_mins(1);

/// Stacks after which they are forgotten earlier.
const MAX_STACKS: usize = 48_000;

/// How often the slow look around happens: budget, new CPUs, statistics, fallback polling.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Everything a session is made from.
#[derive(Debug)]
pub(super) struct SessionParts {
    pub(super) object: LoadedObject,
    pub(super) reader: RecordReader,
    pub(super) log: Option<KernelLog>,
    /// None when user stacks are walked by frame pointers.
    pub(super) unwinder: Option<Unwinder>,
    pub(super) source: Source,
    pub(super) origin: Origin,
    pub(super) requested_hz: u32,
    pub(super) target: ResolvedTarget,
    /// A process program is missing: look for new targets in /proc.
    pub(super) poll_targets: bool,
    pub(super) table: ProcessTable,
    pub(super) symbolizer: SymbolizerService,
    pub(super) cpu_budget_percent: Option<f64>,
    pub(super) program_runs: ProgramRuns,
    pub(super) waits: WaitWatch,
    /// Where event loops are watched.
    pub(super) event_loop: Option<EventLoopWatch>,
    pub(super) sender: mpsc::Sender<Chunk>,
}

impl SessionParts {
    /// The rate in force; the one asked for where there is no clock.
    fn effective_hz(&self) -> u32 {
        self.source.frequency_hz().unwrap_or(self.requested_hz)
    }
}

#[derive(Debug)]
pub(super) struct SampleSession {
    parts: SessionParts,
    governor: Option<Governor>,
    rows: SampleAssembler,
    comparison: Comparison,
    /// Where waits for a CPU are counted.
    throttling: Option<Throttling>,
    /// The newest table of event loops that was not sent.
    loop_table: Option<EventLoopTable>,
    notes: Vec<String>,
    /// Not yet handed on.
    target_ended: bool,
    counters: [u64; COUNTERS as usize],
    drained_epoch: u64,
    /// Whether names were asked for of threads that sleep since the start.
    sleepers_known: bool,
    /// End of what chunks have covered, and of what was drained.
    sent: Duration,
    covered: Duration,
    rotated: Instant,
    looked_around: Instant,
    /// Where samples stand for CPU time.
    accounts: Option<CpuAccounts>,
}

impl SampleSession {
    pub(super) fn new(mut parts: SessionParts) -> Self {
        let now = Instant::now();
        let clock = parts.source.clock();
        // Waits have no rate that could be lowered.
        let budget = parts
            .cpu_budget_percent
            .filter(|_budget| clock != Clock::Switches);
        let governor = budget.map(|budget| {
            let spent = Spent {
                agent_cpu: agent_cpu(),
                samples: 0,
                ticks: 0,
            };
            Governor::new(budget, parts.requested_hz, now, spent)
        });
        let began = parts.origin.elapsed();
        let (table, symbolizer) = (parts.table.clone(), parts.symbolizer.clone());
        let with_tables = parts.unwinder.is_some();
        let mut rows = SampleAssembler::new(parts.origin, clock, table, symbolizer, with_tables);
        rows.know_reasons();
        rows.kernel_code = KernelCode::of(&mut parts.object);
        let throttling = match clock {
            Clock::CpuClock | Clock::Cycles => None,
            Clock::Switches | Clock::Wall | Clock::Unknown => {
                Some(Throttling::of(parts.target.pids.iter().copied()))
            }
        };
        let accounts = (clock == Clock::CpuClock)
            .then(|| CpuAccounts::of(parts.origin, parts.target.pids.iter().copied()));
        Self {
            governor,
            throttling,
            rows,
            comparison: Comparison::default(),
            loop_table: None,
            notes: Vec::new(),
            target_ended: false,
            counters: [0; COUNTERS as usize],
            drained_epoch: 0,
            sleepers_known: false,
            sent: began,
            covered: began,
            rotated: now,
            looked_around: now,
            accounts,
            parts,
        }
    }

    /// Runs until `stopped` is set or the receiver is gone, then drains the rest.
    pub(super) fn run(mut self, stopped: &AtomicBool) {
        while !stopped.load(Ordering::Relaxed) && !self.parts.sender.is_closed() {
            self.parts.reader.wait(LOOP_WAIT);
            self.read_records();
            if self.epoch_is_ready() {
                let epoch_number = self.current_epoch();
                self.drain(epoch_number.saturating_sub(1));
                self.drained_epoch = epoch_number;
            }
            if self.rows.collect_named() {
                self.send_chunk();
            }
            self.housekeeping();
        }
        self.finish();
    }

    fn current_epoch(&self) -> u64 {
        let elapsed = self.parts.origin.elapsed().as_nanos() / epoch().as_nanos().max(1);
        u64::try_from(elapsed).unwrap_or(u64::MAX)
    }

    /// True when the previous epoch's table is surely not written: the grace has passed, and the
    /// next epoch, which writes it again, is not near.
    fn epoch_is_ready(&self) -> bool {
        let elapsed = self.parts.origin.elapsed();
        let phase = Duration::from_nanos(
            u64::try_from(elapsed.as_nanos() % epoch().as_nanos().max(1)).unwrap_or(0),
        );
        self.current_epoch() > self.drained_epoch
            && phase >= GRACE
            && phase < epoch().saturating_sub(LOOP_WAIT)
    }

    fn read_records(&mut self) {
        let mut records = Vec::new();
        let undecodable = self.parts.reader.read(|record| records.push(record));
        self.rows
            .losses()
            .add(LossKind::RecordUndecodable, undecodable);
        for record in records {
            match record {
                Record::Stack { hash, addresses } => self.rows.stack_seen(hash, addresses),
                Record::Thread(record) => {
                    self.rows.thread_seen(&record);
                    if let Some(throttling) = &mut self.throttling {
                        throttling.add(record.pid);
                    }
                    if let Some(accounts) = &mut self.accounts {
                        accounts.follow(record.pid);
                    }
                }
                Record::Stall(record) => {
                    if let Some(loops) = &mut self.parts.event_loop {
                        loops.stalled(&record);
                    }
                }
                Record::LoopThread(record) => {
                    if let Some(loops) = &mut self.parts.event_loop {
                        loops.ended(&record);
                    }
                }
                Record::Process(record) => {
                    self.parts.target.process_changed(&record);
                    let unwinder = self.parts.unwinder.as_ref();
                    let code = self.rows.process_changed(&record, unwinder.is_some());
                    if let Some(unwinder) = unwinder {
                        unwinder.process_changed(&record, code);
                    }
                }
            }
        }
        if let Some(unwinder) = &self.parts.unwinder {
            for walked in unwinder.walked() {
                self.comparison.take(walked, &mut self.rows);
            }
            self.comparison.compare(&mut self.rows);
        }
        if let Some(log) = &mut self.parts.log {
            log.flush();
        }
    }

    /// Hands what one epoch counted to the assembler, which asks for names.
    fn drain(&mut self, epoch_number: u64) {
        let (mut counted, mut held) = (Vec::new(), Vec::new());
        let parts = &self.parts;
        let drained = parts
            .source
            .drain(&parts.object, epoch_number, &mut counted, &mut held);
        if let Err(error) = drained {
            self.notes
                .push(format!("{error}; samples of this moment are missing"));
        }
        // Stacks are sent before they are counted, so everything counted has been sent by now.
        self.read_records();
        if let Some(accounts) = &mut self.accounts {
            accounts.add(&counted);
        }
        self.rows.add_contention(&held);
        self.rows.add(counted);
        self.know_sleepers();
        self.add_counters();
        self.covered = epoch() * u32::try_from(epoch_number.saturating_add(1)).unwrap_or(u32::MAX);
    }

    /// Turns what the kernel counted since the last time into losses.
    fn add_counters(&mut self) {
        let counters = match self.parts.object.counters() {
            Ok(counters) => counters,
            Err(error) => {
                self.notes.push(format!("read loss counters: {error}"));
                return;
            }
        };
        let new = |index: u32| {
            let at = index as usize;
            counters[at].saturating_sub(self.counters[at])
        };
        for (index, kind) in LOSS_COUNTERS {
            self.rows.losses().add(kind, new(index));
        }
        let mut tables = TableCounts {
            captures: new(counter::CAPTURES),
            captures_dropped: new(counter::CAPTURE_DROPPED),
            frames: new(counter::USER_FRAMES),
            ..TableCounts::default()
        };
        if let Some(unwinder) = &self.parts.unwinder {
            tables.merge(&unwinder.take_counts());
        }
        self.rows.stack_quality().tables.merge(&tables);
        self.parts.waits.counts().merge(&WaitCounts {
            sampled: false,
            below: new(counter::WAITS_BELOW),
            below_ns: new(counter::WAITS_BELOW_NS),
            above: new(counter::WAITS_ABOVE),
            above_ns: new(counter::WAITS_ABOVE_NS),
        });
        self.counters = counters;
    }

    fn send_chunk(&mut self) {
        // Without room the builder goes on collecting; nothing is lost.
        let Ok(permit) = self.parts.sender.try_reserve() else {
            return;
        };
        let mut chunk = Self::samples(
            &mut self.rows,
            self.parts.effective_hz(),
            self.sent..self.covered,
            self.parts.waits.take(),
        );
        chunk.event_loop = self.loop_table.take();
        self.sent = self.covered;
        permit.send(Chunk {
            part: Part::Samples(chunk),
            target_ended: std::mem::take(&mut self.target_ended),
            notes: Self::take_notes(&mut self.notes, &mut self.rows),
        });
    }

    fn samples(
        rows: &mut SampleAssembler,
        effective_frequency_hz: u32,
        range: std::ops::Range<Duration>,
        waits: WaitCounts,
    ) -> Samples {
        Samples {
            effective_frequency_hz,
            waits,
            ..rows.take(range.start, range.end).into()
        }
    }

    fn take_notes(notes: &mut Vec<String>, rows: &mut SampleAssembler) -> Vec<String> {
        let mut notes = std::mem::take(notes);
        notes.append(&mut rows.notes);
        notes
    }

    fn housekeeping(&mut self) {
        let now = Instant::now();
        self.parts.source.vary(now);
        if now.duration_since(self.rotated) >= ROTATION || self.rows.stacks() > MAX_STACKS {
            self.rotated = now;
            if let Err(error) = self.parts.object.forget_sent() {
                tracing::warn!(%error, "forget sent stacks");
            }
            self.rows.rotate();
            self.rows.know_reasons();
            self.keep_waits();
        }
        if now.duration_since(self.looked_around) < HOUSEKEEPING {
            return;
        }
        self.looked_around = now;
        if let Some(throttling) = &mut self.throttling {
            throttling.look();
        }
        self.look_at_loops(monotonic_ns());
        self.parts.program_runs.publish(&self.parts.object);
        if let Err(error) = self.parts.source.follow_cpus(&mut self.parts.object) {
            self.notes
                .push(format!("a new CPU is not sampled: {error}"));
        }
        if self.parts.poll_targets {
            for pid in self.parts.target.poll(&self.parts.table) {
                if let Err(error) = self.parts.object.add_pid(pid) {
                    self.notes
                        .push(format!("process {pid} is not profiled: {error}"));
                }
            }
        }
        let SessionParts {
            target,
            object,
            table,
            origin,
            ..
        } = &mut self.parts;
        self.notes.extend(target.follow(table, object));
        let ended = target.end_note(object, *origin);
        self.target_ended |= ended.is_some();
        self.notes.extend(ended);
        self.keep_budget(now);
        self.watch_waits(now);
        if !self.notes.is_empty() || self.loop_table.is_some() {
            self.send_chunk();
        }
    }

    /// Samples waits when there are too many.
    fn watch_waits(&mut self, now: Instant) {
        if !self.parts.source.measures_waits() {
            return;
        }
        let waits = self.counters[counter::SAMPLES as usize];
        let Some(note) = self.parts.waits.look(now, waits) else {
            return;
        };
        self.notes.push(match self.parts.object.sample_waits() {
            Ok(()) => note,
            Err(error) => format!("waits could not be sampled: {error}"),
        });
    }

    fn keep_budget(&mut self, now: Instant) {
        let spent = Spent {
            agent_cpu: agent_cpu(),
            samples: self.counters[counter::SAMPLES as usize],
            ticks: self.counters[counter::TICKS as usize],
        };
        let current = self.parts.effective_hz();
        let Some(adjustment) = self
            .governor
            .as_mut()
            .and_then(|governor| governor.look(now, spent, current))
        else {
            return;
        };
        if matches!(self.parts.source, Source::Ticks(_)) {
            self.stop_clock();
        }
        let object = &mut self.parts.object;
        match (self.parts.source).change_rate(object, adjustment.frequency_hz) {
            Ok(()) => self.notes.push(adjustment.note),
            Err(error) => self.notes.push(format!("sampling stopped: {error}")),
        }
    }

    /// Makes a table of the event loops; turns that are not over last until `now_ns`.
    fn look_at_loops(&mut self, now_ns: u64) {
        let Some(loops) = &mut self.parts.event_loop else {
            return;
        };
        match loops.read(&self.parts.object) {
            Ok(missed) => self.rows.losses().add(LossKind::LoopCallMissed, missed),
            Err(error) => self
                .notes
                .push(format!("{error}; turns of event loops are missing")),
        }
        // Threads that have ended since they were read.
        self.read_records();
        let lost = [counter::LOOP_TABLE_FULL, counter::LOOP_RECORD_DROPPED]
            .map(|index| self.counters[index as usize]);
        let loops = self.parts.event_loop.as_ref();
        self.loop_table = loops.map(|loops| loops.table(now_ns, lost.iter().sum()));
    }

    /// Detaches the clock and drains both tables, so that rows of two rates never mix. Returns
    /// the time, on the kernel's clock, from which nothing was counted.
    fn stop_clock(&mut self) -> u64 {
        if self.parts.source.measures_waits()
            && let Err(error) = self.parts.object.visit_sleepers()
        {
            self.notes.push(format!(
                "{error}; threads that still sleep have no kernel stack"
            ));
        }
        if let Some(accounts) = &mut self.accounts {
            accounts.read();
        }
        let ended = self.stop_counting();
        let current = self.current_epoch();
        self.drain(current.saturating_sub(1));
        self.drain(current);
        self.add_unfinished(ended);
        // Rows that waited for their stack get another try.
        self.drain(current);
        let covered = ended.saturating_sub(self.parts.origin.kernel_ns);
        self.covered = Duration::from_nanos(covered);
        self.drained_epoch = current;
        ended
    }

    /// Stops the programs; returns the time, on the kernel's clock, from which nothing was counted.
    ///
    /// They are detached one after the other. What threads do meanwhile would be counted twice or
    /// not at all, so those that measure together are stopped first.
    fn stop_counting(&mut self) -> u64 {
        let parts = &mut self.parts;
        let now = monotonic_ns();
        let together = parts.source.measures_waits() && parts.object.stop_counting().is_ok();
        parts.source.stop();
        if together { now } else { monotonic_ns() }
    }

    /// Asks for the names of stacks of threads that sleep since the start. They are counted at the
    /// very end, and a large program takes time to read.
    fn know_sleepers(&mut self) {
        if self.sleepers_known || !self.parts.source.measures_waits() {
            return;
        }
        self.sleepers_known = true;
        let now_ns = monotonic_ns();
        if let Ok(waits) = self.parts.object.waits() {
            let bucket = self.parts.origin.bucket(now_ns);
            // Counted at the end; which are left out is known then.
            let (all, mut nothing) = (WaitRules::default(), WaitCounts::default());
            let mut counted = unfinished(&waits, now_ns, bucket, &all, &mut nothing);
            for part in &mut counted {
                part.count = 0;
                part.total_ns = 0;
            }
            self.rows.add(counted);
        }
    }

    /// Threads that are still asleep have waited until now, and those that run have run.
    fn add_unfinished(&mut self, now_ns: u64) {
        if !self.parts.source.measures_waits() {
            return;
        }
        let bucket = self.parts.origin.bucket(now_ns);
        match self.parts.object.waits() {
            Ok(waits) => {
                let rules = self.parts.waits.rules;
                let counts = self.parts.waits.counts();
                let unfinished = unfinished(&waits, now_ns, bucket, &rules, counts);
                match self.parts.object.runs() {
                    Ok(runs) => {
                        let held = still_held(&unfinished, &runs, now_ns);
                        self.rows.add_contention(&held);
                    }
                    Err(error) => self
                        .notes
                        .push(format!("{error}; who had the CPU at the end is missing")),
                }
                self.rows.add(unfinished);
                self.rows.add(not_sampled(&waits, bucket));
            }
            Err(error) => self
                .notes
                .push(format!("{error}; waits that had not ended are missing")),
        }
        if self.parts.source.clock() != Clock::Wall {
            return;
        }
        match self.parts.object.running() {
            Ok(slices) => self.rows.add(still_running(&slices, now_ns, bucket)),
            Err(error) => self
                .notes
                .push(format!("{error}; the last time on the CPU is missing")),
        }
    }

    /// What sleeping threads refer to outlives the rotation.
    fn keep_waits(&mut self) {
        if !self.parts.source.measures_waits() {
            return;
        }
        match self.parts.object.waits() {
            Ok(waits) => self.rows.keep(&waits),
            Err(error) => tracing::warn!(%error, "keep the stacks of sleeping threads"),
        }
    }

    fn finish(mut self) {
        let ended = self.stop_clock();
        self.look_at_loops(ended);
        if let Some(throttling) = &mut self.throttling {
            self.notes.append(&mut throttling.finish());
        }
        if let Some(unwinder) = self.parts.unwinder.take() {
            let finished = unwinder.finish();
            for walked in finished.walked {
                self.comparison.take(walked, &mut self.rows);
            }
            self.comparison.compare(&mut self.rows);
            self.rows.stack_quality().tables.merge(&finished.counts);
            self.notes.extend(finished.note);
        }
        self.rows.give_up_waiting();
        self.rows.await_named();
        self.notes.extend(of_kernel_stacks(&self.counters));
        self.notes.extend(self.rows.unsampled_note());
        let coverage = self.accounts.as_ref().and_then(CpuAccounts::coverage);
        if let Some(coverage) = coverage {
            let period_ns = NS_PER_SECOND / u64::from(self.parts.effective_hz().max(1));
            let missed = coverage.missing_samples(period_ns);
            self.rows.losses().add(LossKind::TickMissed, missed);
        }
        self.parts.program_runs.publish(&self.parts.object);
        let range = self.sent..self.covered;
        let hz = self.parts.effective_hz();
        let waits = self.parts.waits.take();
        let mut last = Self::samples(&mut self.rows, hz, range, waits);
        last.event_loop = self.loop_table.take();
        last.coverage = coverage;
        let chunk = Chunk {
            part: Part::Samples(last),
            target_ended: self.target_ended,
            notes: Self::take_notes(&mut self.notes, &mut self.rows),
        };
        // Fails only when the receiver is gone.
        let _unheard = self.parts.sender.blocking_send(chunk);
    }
}
