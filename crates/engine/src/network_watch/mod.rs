//! The light network collection of the whole node that runs for the agent's life (`serve --network
//! always`).
//!
//! [`NetworkWatch::start`] gives a handle, which everyone may read, and the work, which the composition root
//! spawns. When the collection fails it is started again with growing pauses; what was counted before is
//! kept (`ledger`). What edges counted over the last minutes is in `history`.

mod history;
mod ledger;
mod run;

use std::{sync::Arc, time::Instant};

use profiler_analysis::edge_series::{EdgeSeries, SeriesCut};
use profiler_model::EdgeTable;
use profiler_recording::{Collector, ProbeState, ProbeStatus};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use history::History;

/// Name of the collection among the probes.
const PROBE: &str = "network_always";

/// What the collection is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WatchState {
    #[default]
    Starting,
    Running,
    /// Failed, with the reason; it is started again after a pause.
    Waiting(String),
}

/// What is known at one moment.
#[derive(Clone, Debug, Default)]
pub struct WatchedEdges {
    pub state: WatchState,
    /// When counting began, nanoseconds since the Unix epoch.
    pub since_ns: Option<u64>,
    /// Times that it had to be started again.
    pub restarts: u64,
    /// Everything counted since then; `None` before the first result.
    pub table: Option<Arc<EdgeTable>>,
    /// When the table came.
    pub updated: Option<Instant>,
}

/// Where the always-on collection is read. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct NetworkWatch {
    /// `None`: it is off.
    watched: Option<watch::Receiver<WatchedEdges>>,
    history: Arc<History>,
}

impl NetworkWatch {
    /// No collection but those of tasks.
    pub fn off() -> Self {
        Self::default()
    }

    /// The handle, and the work that keeps the collection running until `shutdown`.
    pub fn start(
        collector: Arc<dyn Collector>,
        shutdown: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, watched) = watch::channel(WatchedEdges::default());
        let history = Arc::new(History::default());
        let handle = Self {
            watched: Some(watched),
            history: Arc::clone(&history),
        };
        (handle, run::keep(collector, sender, history, shutdown))
    }

    pub fn is_on(&self) -> bool {
        self.watched.is_some()
    }

    /// The newest; `None` when it is off.
    pub fn newest(&self) -> Option<WatchedEdges> {
        Some(self.watched.as_ref()?.borrow().clone())
    }

    /// One edge over the last minutes, in milliseconds since counting began; `None` when it is off.
    /// Takes some milliseconds.
    pub fn series(&self, cut: &SeriesCut) -> Option<EdgeSeries> {
        self.watched.as_ref()?;
        Some(self.history.series(cut))
    }

    /// Follows it; `None` when it is off.
    pub fn follow(&self) -> Option<watch::Receiver<WatchedEdges>> {
        self.watched.clone()
    }

    /// Its state among those of the probes; `None` when it is off.
    pub fn status(&self) -> Option<ProbeStatus> {
        let (state, reason) = match self.newest()?.state {
            WatchState::Starting => (ProbeState::Available, None),
            WatchState::Running => (ProbeState::Attached, None),
            WatchState::Waiting(reason) => (ProbeState::Unavailable, Some(reason)),
        };
        Some(ProbeStatus {
            name: PROBE.to_owned(),
            state,
            reason,
            minimum_kernel: "5.15".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
