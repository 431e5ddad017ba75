//! Stands in for the kernel side: hands out the recorded edges, starts no task.

use std::{sync::atomic::Ordering, time::Duration};

use profiler_clock::wall_ns;
use profiler_model::{EdgeTable, Losses, TaskKind, TaskSpec};
use profiler_recording::{
    Chunk, CollectError, Collection, Collector, Part, ProbeState, ProbeStatus, ProbeStatusSource,
    ProgramStats, StopHandle,
};
use tokio::sync::mpsc;

/// Why nothing is recorded here.
pub const REASON: &str = "this agent shows demo data and records nothing";
const PROBES: [&str; 4] = ["on_cpu", "off_cpu", "wall", "network"];
const TICK: Duration = Duration::from_millis(100);

/// What was recorded.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) edges: EdgeTable,
}

impl Collector for Recorded {
    /// The collection of the whole node, which the page shows without a task; its one table never
    /// changes.
    fn start(&self, spec: &TaskSpec) -> Result<Collection, CollectError> {
        if spec.kind() != TaskKind::Network {
            return Err(CollectError::Probe {
                probe: spec.kind().name(),
                reason: REASON.to_owned(),
            });
        }
        let origin_ns = wall_ns();
        let (sender, chunks) = mpsc::channel(1);
        let chunk = Chunk::from(Part::Edges(self.edges.clone()));
        let (stop, flag) = StopHandle::new();
        let failed = |error: std::io::Error| CollectError::Probe {
            probe: "network",
            reason: error.to_string(),
        };
        // There is room for one chunk.
        drop(sender.try_send(chunk));
        std::thread::Builder::new()
            .name("demo-data".to_owned())
            .spawn(move || {
                // The collection is over when the channel closes, which must not happen before it
                // is asked to stop.
                while !flag.load(Ordering::Relaxed) && !sender.is_closed() {
                    std::thread::sleep(TICK);
                }
            })
            .map_err(failed)?;
        Ok(Collection {
            origin_ns,
            already: Duration::ZERO,
            clock: None,
            effective_frequency_hz: None,
            notes: Vec::new(),
            chunks,
            stop,
        })
    }

    fn refuses_tasks(&self) -> Option<&'static str> {
        Some(REASON)
    }
}

impl ProbeStatusSource for Recorded {
    fn probes(&self) -> Vec<ProbeStatus> {
        let absent = |name: &str| ProbeStatus {
            name: name.to_owned(),
            state: ProbeState::Unavailable,
            reason: Some(REASON.to_owned()),
            minimum_kernel: "5.15".to_owned(),
        };
        PROBES.into_iter().map(absent).collect()
    }

    fn programs(&self) -> Vec<ProgramStats> {
        Vec::new()
    }

    fn losses(&self) -> Losses {
        Losses::default()
    }
}
