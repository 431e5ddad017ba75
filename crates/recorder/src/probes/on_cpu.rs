//! Starts on-CPU, off-CPU and wall-clock collections, and runs each on a thread of its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use profiler_common::{
    config::{ProbeConfig, UNWIND_FRAME_POINTERS, UNWIND_TABLES},
    limits::COUNT_TABLE_ENTRIES,
};
use profiler_host::process::ProcessTable;
use profiler_model::{SampleKind, SampleSpec, Target, UnwindMethod, WaitMode};
use profiler_recording::{CollectError, Collection, ProbeState, ProbeStatus, StopHandle};
use profiler_symbolize::SymbolizerService;
use tokio::sync::mpsc;

use super::{
    board::ProbeStatuses,
    event_loop::EventLoopWatch,
    session::{SampleSession, SessionParts},
    source::Source,
    targets::ResolvedTarget,
    timeline::{BUCKET, BUCKETS_PER_EPOCH, Origin, epoch},
    unwinder::{Notice, Unwinder},
    wait_watch::WaitWatch,
};
use crate::bpf::{
    Counting, EventLoopLinks, Group, LoadError, LoadedObject, ObjectRequest, ProgramRow, Sampler,
    cpu_count, find, minimum_kernel, programs_of,
};

/// Chunks that may wait for the engine; more stay with the session and are merged.
const CHUNK_QUEUE: usize = 8;

const NS_PER_MS: u64 = 1_000_000;

/// The probe of event loops.
const EVENT_LOOP: &str = "event_loop";

/// Largest counting table, entries (about 30 MB of kernel memory for both).
const MAX_COUNT_ENTRIES: u32 = 1 << 17;

#[derive(Clone, Debug, Default)]
pub struct SampleRecorderConfig {
    /// Programs and clocks that must not be used (`--deny-probe`).
    pub denied: Vec<String>,
    /// Percent of one core that the agent and its programs may use.
    pub cpu_budget_percent: Option<f64>,
    /// Whether the kernel's BPF statistics are on.
    pub bpf_statistics: bool,
    /// How user stacks are walked.
    pub unwind: UnwindMethod,
    /// Whether waits are sampled, where a task does not say.
    pub wait_mode: WaitMode,
    /// One in this many complete stacks is walked a second time by an independent unwinder; 0:
    /// none is.
    pub verify_every: u32,
}

/// Starts collections of samples and waits over eBPF.
#[derive(Debug)]
pub struct SampleRecorder {
    table: ProcessTable,
    symbolizer: SymbolizerService,
    statuses: ProbeStatuses,
    config: SampleRecorderConfig,
    next_id: AtomicU64,
}

impl SampleRecorder {
    pub fn new(
        table: ProcessTable,
        symbolizer: SymbolizerService,
        statuses: ProbeStatuses,
        config: SampleRecorderConfig,
    ) -> Self {
        for kind in SampleKind::ALL {
            statuses.announce(kind.name(), minimum_kernel(group_of(kind)), &config.denied);
        }
        statuses.announce(
            EVENT_LOOP,
            minimum_kernel(Group::EventLoops),
            &config.denied,
        );
        Self {
            table,
            symbolizer,
            statuses,
            config,
            next_id: AtomicU64::new(1),
        }
    }

    fn load(
        &self,
        target: &ResolvedTarget,
        spec: &SampleSpec,
    ) -> Result<(LoadedObject, Vec<LoadError>), LoadError> {
        let mut seed = [0; 8];
        if let Err(error) = getrandom::fill(&mut seed) {
            // Collisions could then be prepared, and are still 2^-64 by chance.
            tracing::warn!(%error, "no random seed for stack hashes");
        }
        let mut config = ProbeConfig {
            bucket_ns: u64::try_from(BUCKET.as_nanos()).unwrap_or(1),
            buckets_per_epoch: BUCKETS_PER_EPOCH,
            hash_seed: u64::from_ne_bytes(seed),
            unwind: match self.config.unwind {
                UnwindMethod::Tables => UNWIND_TABLES,
                UnwindMethod::FramePointers => UNWIND_FRAME_POINTERS,
            },
            capture_every: self.config.verify_every,
            wakers: u32::from(spec.wakers),
            forgets_later: 1,
            min_wait_ns: spec.waits.min_ns,
            max_wait_ns: spec.waits.max_ns.unwrap_or(u64::MAX),
            stall_ns: spec
                .event_loop
                .map_or(0, |rules| u64::from(rules.threshold_ms) * NS_PER_MS),
            ..ProbeConfig::default()
        };
        target.configure(&mut config);
        let (mut object, failures) = LoadedObject::load(&ObjectRequest {
            config,
            v1_controller: target.v1_controller.clone(),
            counting: match spec.kind {
                SampleKind::OnCpu => {
                    Counting::Samples(count_entries(cpu_count(), spec.frequency_hz))
                }
                SampleKind::OffCpu => Counting::Waits,
                SampleKind::Wall => Counting::Wall,
            },
            denied: self.config.denied.clone(),
        })?;
        target.fill(&mut object)?;
        match spec.kind {
            SampleKind::OnCpu => object.load_sampler(Sampler::OnCpu)?,
            SampleKind::OffCpu => {}
            SampleKind::Wall => object.load_sampler(Sampler::Wall)?,
        }
        Ok((object, failures))
    }

    /// Attaches the programs of event loops. Without them the task goes on, with a note.
    fn watch_loops(
        &self,
        object: &mut LoadedObject,
        notes: &mut Vec<String>,
    ) -> Option<EventLoopLinks> {
        let attached = object.attach_event_loop();
        let (state, reason) = match &attached {
            Ok(_) => (ProbeState::Available, None),
            Err(error @ LoadError::Denied(_)) => (ProbeState::Denied, Some(error.to_string())),
            Err(error) => (ProbeState::Unavailable, Some(error.to_string())),
        };
        self.statuses.set(ProbeStatus {
            name: EVENT_LOOP.to_owned(),
            state,
            reason,
            minimum_kernel: minimum_kernel(Group::EventLoops).to_owned(),
        });
        attached
            .map_err(|error| notes.push(format!("{error}; event loops are not watched")))
            .ok()
    }

    pub fn drop_caches(&self) {
        self.symbolizer.drop_caches();
    }

    /// Takes samples of a target. Loads and attaches; blocks for up to some hundred milliseconds.
    pub fn start(&self, target: &Target, spec: &SampleSpec) -> Result<Collection, CollectError> {
        let probe = spec.kind.name();
        let mut target = ResolvedTarget::resolve(target, &self.table)?;
        let failed = |error: LoadError| {
            self.statuses.set(ProbeStatus {
                name: probe.to_owned(),
                state: match error {
                    LoadError::Denied(_) => ProbeState::Denied,
                    _ => ProbeState::Unavailable,
                },
                reason: Some(error.to_string()),
                minimum_kernel: minimum_kernel(group_of(spec.kind)).to_owned(),
            });
            CollectError::Probe {
                probe,
                reason: error.to_string(),
            }
        };
        let frequency_hz = spec.frequency_hz;
        let (mut object, failures) = self.load(&target, spec).map_err(failed)?;
        let reader = object.take_reader().map_err(failed)?;
        let log = object.take_logger();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut notes = std::mem::take(&mut target.notes);
        let unwinder = if object.walks_with_tables() {
            let (maps, captures) = object.take_unwind_maps().map_err(failed)?;
            let notice = match spec.kind {
                SampleKind::OnCpu => Notice::Woken,
                SampleKind::OffCpu | SampleKind::Wall => Notice::Polling,
            };
            let unwinder = Unwinder::start(id, maps, captures, notice).map_err(failed)?;
            unwinder.know(target.pids.iter().copied());
            Some(unwinder)
        } else {
            if self.config.unwind == UnwindMethod::Tables {
                notes.push(NO_LOOP_HELPER.to_owned());
            }
            None
        };
        let mode = spec.waits.mode.unwrap_or(self.config.wait_mode);
        if spec.kind.has_waits() && mode == WaitMode::Sampled {
            object.sample_waits().map_err(failed)?;
            notes.extend(WaitWatch::first_note(mode));
        }
        let event_loop = match spec.event_loop {
            Some(rules) => self
                .watch_loops(&mut object, &mut notes)
                .map(|links| (links, rules)),
            None => None,
        };
        let source = Source::start(&mut object, spec.kind, frequency_hz).map_err(failed)?;
        let origin = Origin::now();
        object.set_origin(origin.kernel_ns).map_err(failed)?;
        if spec.kind.has_waits()
            && let Err(error) = object.find_asleep()
        {
            notes.push(format!(
                "{error}; threads that slept when the task began are counted from their next wait on"
            ));
        }
        notes.extend(failures.iter().map(degradation));
        let clock = source.clock();
        let (stop, stopped) = StopHandle::new();
        let (sender, chunks) = mpsc::channel(CHUNK_QUEUE);
        let session = SampleSession::new(SessionParts {
            object,
            reader,
            log,
            unwinder,
            source,
            origin,
            requested_hz: frequency_hz,
            target,
            poll_targets: failures.iter().any(loses_processes),
            table: self.table.clone(),
            symbolizer: self.symbolizer.clone(),
            cpu_budget_percent: self.config.cpu_budget_percent,
            program_runs: self.statuses.program_runs(self.config.bpf_statistics),
            event_loop: event_loop.map(|(links, rules)| EventLoopWatch::new(links, rules, origin)),
            waits: WaitWatch::new(spec.waits, mode, std::time::Instant::now()),
            sender,
        });
        spawn(id, spec.kind, session, stopped)?;
        Ok(Collection {
            origin_ns: origin.epoch_ns,
            already: Duration::ZERO,
            clock: Some(clock),
            effective_frequency_hz: Some(frequency_hz),
            notes,
            chunks,
            stop,
        })
    }
}

/// The programs without which a task of this kind measures nothing.
fn group_of(kind: SampleKind) -> Group {
    match kind {
        SampleKind::OnCpu => Group::Samples,
        SampleKind::OffCpu => Group::Waits,
        SampleKind::Wall => Group::WallSamples,
    }
}

/// Entries that a counting table needs in the worst case: every sample of an epoch distinct, with
/// half as much again for a late drain.
fn count_entries(cpus: u32, frequency_hz: u32) -> u32 {
    let per_epoch = epoch().as_secs_f64() * f64::from(cpus) * f64::from(frequency_hz) * 1.5;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast to u32 saturates, and the product is not negative"
    )]
    let entries = per_epoch as u32;
    entries
        .next_power_of_two()
        .clamp(COUNT_TABLE_ENTRIES, MAX_COUNT_ENTRIES)
}

/// Runs the session on a thread; a panic there ends this collection only, and is logged.
fn spawn(
    id: u64,
    kind: SampleKind,
    session: SampleSession,
    stopped: Arc<AtomicBool>,
) -> Result<(), CollectError> {
    std::thread::Builder::new()
        .name(format!("samples-{id}"))
        .spawn(move || session.run(&stopped))
        .map(drop)
        .map_err(|error| CollectError::Probe {
            probe: kind.name(),
            reason: format!("start its thread: {error}"),
        })
}

/// The note of a task on a kernel before 5.17.
const NO_LOOP_HELPER: &str = "this kernel has no bpf_loop (Linux 5.17): user stacks are walked by \
                              frame pointers and end where code keeps none";

/// Whether a failure makes new processes be overlooked.
fn loses_processes(failure: &LoadError) -> bool {
    refused(failure).is_none_or(|row| !matches!(row.group, Group::Wakers | Group::KernelNames))
}

fn degradation(failure: &LoadError) -> String {
    let effect = refused(failure).map_or("process events are incomplete", |row| row.without);
    format!("{failure}; {effect}")
}

/// The program that a failure is about, also where its group was denied.
fn refused(failure: &LoadError) -> Option<&'static ProgramRow> {
    let name = failure.program()?;
    find(name).or_else(|| programs_of(&[Group::Wakers]).find(|row| row.group.probe() == Some(name)))
}

#[cfg(test)]
mod tests {
    use super::count_entries;

    #[test]
    fn counting_tables_grow_with_cpus_and_rate_within_bounds() {
        assert_eq!(count_entries(2, 99), 4096);
        assert_eq!(count_entries(64, 999), 32_768);
        assert_eq!(count_entries(256, 4999), 131_072);
    }
}
