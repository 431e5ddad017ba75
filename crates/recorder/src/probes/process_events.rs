//! Keeps the process table live: a small object with the fork, exec and exit programs, and those of other probes that
//! run as long as the agent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use profiler_common::{
    config::ProbeConfig,
    counter,
    process::{EVENT_EXEC, EVENT_EXIT, EVENT_FORK, ProcessRecord, start_ticks},
};
use profiler_host::process::ProcessTable;
use profiler_model::{LossKind, ProcessEvent, ProcessEventKind};
use profiler_recording::{ProbeState, ProbeStatus};

use super::{board::ProbeStatuses, timeline::Origin};
use crate::bpf::{
    Counting, Group, LoadError, LoadedObject, ObjectRequest, Record, RecordReader, programs_of,
};

/// How long the reader sleeps without an event; bounds the time to notice the end.
const WAIT: Duration = Duration::from_millis(200);

/// Running event source; stops when dropped.
#[derive(Debug)]
pub struct ProcessEvents {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProcessEvents {
    /// Loads and attaches the programs, writes their state to `statuses`, and feeds `table` from a
    /// thread of its own. A program that cannot be attached leaves the others running; an error
    /// means that none could.
    pub fn start(
        table: ProcessTable,
        statuses: &ProbeStatuses,
        denied: &[String],
    ) -> Result<Self, LoadError> {
        let request = ObjectRequest {
            config: ProbeConfig {
                watch_all_processes: 1,
                bucket_ns: 1,
                buckets_per_epoch: 1,
                ..ProbeConfig::default()
            },
            v1_controller: None,
            counting: Counting::Nothing,
            denied: denied.to_vec(),
        };
        let loaded = LoadedObject::load(&request).and_then(|(mut object, failures)| {
            let reader = object.take_reader()?;
            Ok((object, reader, failures))
        });
        let (object, mut reader, failures) = match loaded {
            Ok(parts) => parts,
            Err(error) => {
                report(statuses, &[], Some(&error));
                return Err(error);
            }
        };
        report(statuses, &failures, None);
        let stop = Arc::new(AtomicBool::new(false));
        let feed = Feed {
            object,
            stop: Arc::clone(&stop),
            table,
            statuses: statuses.clone(),
            dropped_in_kernel: 0,
        };
        let thread = std::thread::Builder::new()
            .name("process-events".into())
            .spawn(move || feed.run(&mut reader))
            .map_err(LoadError::Thread)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

/// The thread's own state.
#[derive(Debug)]
struct Feed {
    object: LoadedObject,
    stop: Arc<AtomicBool>,
    table: ProcessTable,
    statuses: ProbeStatuses,
    dropped_in_kernel: u64,
}

impl Feed {
    fn run(mut self, reader: &mut RecordReader) {
        let origin = Origin::now();
        while !self.stop.load(Ordering::Relaxed) {
            reader.wait(WAIT);
            let undecodable = reader.read(|record| {
                if let Record::Process(record) = record
                    && let Some(event) = event(&record, origin)
                {
                    self.table.observe(&event);
                }
            });
            self.statuses.lost(LossKind::RecordUndecodable, undecodable);
            let dropped = self.kernel_drops();
            self.statuses.lost(LossKind::ProcessEventDropped, dropped);
        }
    }

    /// Events that the kernel side dropped since the last look.
    fn kernel_drops(&mut self) -> u64 {
        let Ok(counters) = self.object.counters() else {
            return 0;
        };
        let total = counters[counter::PROCESS_EVENT_DROPPED as usize];
        total.saturating_sub(std::mem::replace(&mut self.dropped_in_kernel, total))
    }
}

impl Drop for ProcessEvents {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the process event thread panicked");
        }
    }
}

/// A kernel record in the model's terms; `None` for an unknown event.
pub(super) fn event(record: &ProcessRecord, origin: Origin) -> Option<ProcessEvent> {
    let kind = match record.event {
        EVENT_FORK => ProcessEventKind::Fork,
        EVENT_EXEC => ProcessEventKind::Exec,
        EVENT_EXIT => ProcessEventKind::Exit,
        _ => return None,
    };
    Some(ProcessEvent {
        kind,
        pid: record.pid,
        parent_pid: record.parent_pid,
        start_ticks: start_ticks(record.start_boottime_ns),
        time_ns: origin.to_epoch_ns(record.header.time_ns),
    })
}

/// Writes the state of every program that runs as long as the agent.
fn report(statuses: &ProbeStatuses, failures: &[LoadError], all: Option<&LoadError>) {
    for row in programs_of(&[Group::ProcessEvents, Group::Standing]) {
        let failure = all.or_else(|| {
            failures
                .iter()
                .find(|failure| failure.program() == Some(row.name))
        });
        let state = match failure {
            None => ProbeState::Attached,
            Some(LoadError::Denied(_)) => ProbeState::Denied,
            Some(_) => ProbeState::Unavailable,
        };
        statuses.set(ProbeStatus {
            name: row.name.to_owned(),
            state,
            reason: failure.map(ToString::to_string),
            minimum_kernel: row.minimum_kernel.to_owned(),
        });
    }
}
