//! The overview: every pod of the node, read every ten seconds from what the kernel and Envoys count anyway. No program is loaded
//! for it.
//!
//! ```text
//! process table --groups--> readings of processes, quotas, namespaces --\
//! Envoys <--asked-- counters (a thread each, without capabilities) -------+--> rows --troubles--> Overview
//! ```
//!
//! All of it needs at most 1 % of a CPU, however many processes and Envoys there are: the thread stretches its period, and Envoys are asked more
//! seldom.

mod groups;
mod processes;
mod row;
mod watch;

use std::{io, sync::Arc, time::Duration};

use parking_lot::Mutex;
use profiler_host::process::ProcessTable;
use profiler_model::overview::Overview;

pub use groups::MOST_PIDS;
use watch::Watch;

/// Where the newest overview is read. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct OverviewWatch {
    /// `None`: it is off.
    running: Option<Arc<Running>>,
}

#[derive(Debug)]
struct Running {
    newest: Arc<Mutex<Arc<Overview>>>,
    /// The thread ends when this is dropped; what was recorded has none.
    _stop: Option<std::sync::mpsc::SyncSender<()>>,
}

/// How readings are taken.
#[derive(Clone, Copy, Debug)]
pub struct OverviewConfig {
    /// Time between two readings, at least.
    pub period: Duration,
    /// Time between the first two readings, which make the first rates.
    pub first: Duration,
    /// Whether Envoys are asked on their admin interface.
    pub asks_envoys: bool,
}

impl OverviewConfig {
    /// Time between two readings of the agent.
    pub const PERIOD: Duration = Duration::from_secs(10);
    /// Its page has rates after this time.
    pub const FIRST: Duration = Duration::from_secs(2);
}

impl OverviewWatch {
    pub fn off() -> Self {
        Self::default()
    }

    /// One that was read elsewhere, and never changes.
    pub fn recorded(overview: Overview) -> Self {
        let running = Running {
            newest: Arc::new(Mutex::new(Arc::new(overview))),
            _stop: None,
        };
        Self {
            running: Some(Arc::new(running)),
        }
    }

    /// Starts the thread, which reads until all handles are gone. `told` is called after each reading.
    pub fn start(
        table: ProcessTable,
        config: OverviewConfig,
        told: impl Fn(&Arc<Overview>) + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = std::sync::mpsc::sync_channel(1);
        let newest = Arc::new(Mutex::new(Arc::new(Overview {
            period_s: config.period.as_secs_f64(),
            ..Overview::default()
        })));
        let shared = Arc::clone(&newest);
        std::thread::Builder::new()
            .name("overview".into())
            .spawn(move || {
                Watch::new(table, config).run(&stopped, |overview| {
                    *shared.lock() = Arc::clone(overview);
                    told(overview);
                });
            })?;
        let running = Running {
            newest,
            _stop: Some(stop),
        };
        Ok(Self {
            running: Some(Arc::new(running)),
        })
    }

    /// The newest; `None` where it is off.
    pub fn newest(&self) -> Option<Arc<Overview>> {
        Some(Arc::clone(&self.running.as_ref()?.newest.lock()))
    }
}

#[cfg(test)]
mod tests;
