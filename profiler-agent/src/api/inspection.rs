//! What the agent can be asked about itself and about the names of a process: answers that cost something, which
//! are kept for a moment.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use profiler_model::ProcessKey;
use profiler_symbolize::{Depth, Forecast, ForecastError, SymbolPacks, SymbolizeConfig, forecast};
use tokio::sync::Semaphore;

use crate::recent_log::RecentLog;
use profiler_recorder::bpf::{self, LoadedMap, LoadedProgram};

/// Symbol files may come meanwhile, and programs may load libraries.
const FORECAST_AGE: Duration = Duration::from_mins(1);
const MOST_FORECASTS: usize = 512;

/// Facts for the pages about the agent itself.
#[derive(Debug)]
pub struct Inspection {
    /// Settings in force, without secrets.
    pub configuration: Vec<(&'static str, String)>,
    pub log: RecentLog,
    pub statistics: Statistics,
    kernel: Mutex<Option<Arc<KernelObjects>>>,
    forecasts: Forecasts,
}

/// The kernel's statistics of BPF programs.
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    /// The agent keeps them on for its life.
    pub always: bool,
    /// Turns them on until the descriptor is dropped.
    pub enable: fn() -> io::Result<OwnedFd>,
}

/// Programs and maps of the agent in the kernel.
#[derive(Debug)]
pub(super) struct KernelObjects {
    pub(super) at: Instant,
    pub(super) programs: Vec<LoadedProgram>,
    pub(super) maps: Vec<LoadedMap>,
}

impl Inspection {
    pub fn new(
        configuration: Vec<(&'static str, String)>,
        log: RecentLog,
        statistics: Statistics,
    ) -> Self {
        Self {
            configuration,
            log,
            statistics,
            kernel: Mutex::default(),
            forecasts: Forecasts::default(),
        }
    }

    /// What is loaded, read at most `age` ago (blocking).
    pub(super) fn kernel_objects(&self, age: Duration) -> io::Result<Arc<KernelObjects>> {
        // Held while it reads: concurrent requests share one answer.
        let mut kept = self.kernel.lock();
        if let Some(objects) = &*kept
            && objects.at.elapsed() < age
        {
            return Ok(Arc::clone(objects));
        }
        let (programs, maps) = bpf::loaded()?;
        let at = Instant::now();
        let objects = Arc::new(KernelObjects { at, programs, maps });
        *kept = Some(Arc::clone(&objects));
        Ok(objects)
    }

    pub(super) fn forecasts(&self) -> &Forecasts {
        &self.forecasts
    }
}

/// What names profiles of processes will have.
#[derive(Debug)]
pub(super) struct Forecasts {
    kept: Mutex<HashMap<ProcessKey, (Instant, Arc<Forecast>)>>,
    /// Binaries may be large: one process is looked at at a time.
    pub(super) place: Semaphore,
}

impl Default for Forecasts {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            place: Semaphore::new(1),
        }
    }
}

impl Forecasts {
    /// One that is not too old.
    pub(super) fn known(&self, key: ProcessKey) -> Option<Arc<Forecast>> {
        let kept = self.kept.lock();
        let (at, forecast) = kept.get(&key)?;
        (at.elapsed() < FORECAST_AGE).then(|| Arc::clone(forecast))
    }

    /// Symbol files have come or gone.
    pub(super) fn forget(&self) {
        let mut kept = self.kept.lock();
        kept.clear();
    }

    /// Looks at a process and keeps the answer (blocking).
    pub(super) fn make(
        &self,
        key: ProcessKey,
        packs: SymbolPacks,
    ) -> Result<Arc<Forecast>, ForecastError> {
        let config = SymbolizeConfig {
            packs,
            ..SymbolizeConfig::default()
        };
        let made = Arc::new(forecast(key.pid, &config, Depth::Names)?);
        let mut kept = self.kept.lock();
        kept.retain(|_, (at, _)| at.elapsed() < FORECAST_AGE);
        if kept.len() >= MOST_FORECASTS {
            kept.clear();
        }
        kept.insert(key, (Instant::now(), Arc::clone(&made)));
        Ok(made)
    }
}
