//! A ceiling for the agent's own memory (`serve --max-memory`).

use std::{
    sync::{
        Arc, LazyLock, OnceLock,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use profiler_model::megabytes;
use tokio::sync::watch as pausing;

use crate::{allocator, limit::Limit, reading::MemoryReading, stage::Stage};

/// A younger reading is reused.
const FRESH: Duration = Duration::from_secs(1);

/// How long a task waits for room for its tables.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why something is refused. The text is only for clients with the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryShort {
    #[error(
        "the agent uses {} of the {} of memory that it may use: {what} until there is room again",
        megabytes(*used_bytes), megabytes(*ceiling_bytes)
    )]
    Used {
        what: &'static str,
        used_bytes: u64,
        ceiling_bytes: u64,
    },
    #[error(
        "the tables in the kernel need about {}, and {} of the {} of memory that the agent may use are taken: \
         stop tasks that are no longer needed, or start the agent with a larger --max-memory",
        megabytes(*needed_bytes), megabytes(*used_bytes), megabytes(*ceiling_bytes)
    )]
    Needed {
        needed_bytes: u64,
        used_bytes: u64,
        ceiling_bytes: u64,
    },
}

/// What was given up since the agent started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Times that caches were dropped.
    pub caches: u64,
    /// Tasks, imports and results that were refused.
    pub refusals: u64,
    /// Tasks and collections that were stopped.
    pub stopped: u64,
}

/// The ceiling of this process. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Ceiling {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limit: OnceLock<Limit>,
    reading: Mutex<Option<(Instant, MemoryReading)>>,
    stage: AtomicU8,
    caches: AtomicU64,
    refusals: AtomicU64,
    stopped: AtomicU64,
    network_paused: pausing::Sender<bool>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            limit: OnceLock::new(),
            reading: Mutex::default(),
            stage: AtomicU8::default(),
            caches: AtomicU64::default(),
            refusals: AtomicU64::default(),
            stopped: AtomicU64::default(),
            network_paused: pausing::Sender::new(false),
        }
    }
}

static OWN: LazyLock<Ceiling> = LazyLock::new(Ceiling::default);

impl Ceiling {
    /// The one of this process: memory is the whole process's.
    pub fn own() -> Self {
        OWN.clone()
    }

    /// Sets the limit, once; a second one is ignored.
    pub fn set(&self, limit: Limit) {
        self.inner.limit.get_or_init(|| limit);
    }

    /// The limit in force; none before it is set.
    pub fn limit(&self) -> Limit {
        self.inner.limit.get().cloned().unwrap_or_default()
    }

    pub fn stage(&self) -> Stage {
        Stage::from_number(self.inner.stage.load(Ordering::Relaxed))
    }

    pub fn given_up(&self) -> GivenUp {
        GivenUp {
            caches: self.inner.caches.load(Ordering::Relaxed),
            refusals: self.inner.refusals.load(Ordering::Relaxed),
            stopped: self.inner.stopped.load(Ordering::Relaxed),
        }
    }

    /// What the agent uses now, or did within the last second (blocking: some milliseconds).
    pub fn reading(&self) -> MemoryReading {
        if let Some((at, reading)) = *self.newest()
            && at.elapsed() < FRESH
        {
            return reading;
        }
        self.read(None)
    }

    /// Reads (blocking). With `rest`, an earlier reading, only the agent's own pages are read anew, which costs
    /// microseconds; without it every descriptor is looked at.
    pub fn read(&self, rest: Option<MemoryReading>) -> MemoryReading {
        let reading = MemoryReading::take(rest);
        *self.newest() = Some((Instant::now(), reading));
        reading
    }

    fn newest(&self) -> MutexGuard<'_, Option<(Instant, MemoryReading)>> {
        self.inner.reading.lock()
    }

    /// Whether something that needs memory may begin; `what` says what does not.
    pub fn admits(&self, what: &'static str) -> Result<(), MemoryShort> {
        self.admits_before(Stage::Refusing, what)
    }

    /// The same for what needs little: it is refused only while tasks are being stopped.
    pub fn admits_reading(&self, what: &'static str) -> Result<(), MemoryShort> {
        self.admits_before(Stage::Stopping, what)
    }

    fn admits_before(&self, stage: Stage, what: &'static str) -> Result<(), MemoryShort> {
        match self.limit().bytes {
            Some(ceiling_bytes) if self.stage() >= stage => {
                self.inner.refusals.fetch_add(1, Ordering::Relaxed);
                let known = self.newest().map(|(_, reading)| reading.used_bytes());
                Err(MemoryShort::Used {
                    what,
                    used_bytes: known.unwrap_or(0),
                    ceiling_bytes,
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether tables of this size may be made in the kernel (blocking). Those that would lead to the stage
    /// in which tasks are stopped are not.
    pub fn admits_tables(&self, needed_bytes: u64) -> Result<(), MemoryShort> {
        let Some(ceiling_bytes) = self.limit().bytes else {
            return Ok(());
        };
        let asked = Instant::now();
        let used_bytes = loop {
            let used_bytes = self.read(None).used_bytes();
            if used_bytes.saturating_add(needed_bytes) < Stage::Stopping.begins_at(ceiling_bytes) {
                return Ok(());
            }
            // What another task needed to start goes soon, and so does what is dropped now.
            if asked.elapsed() >= PATIENCE {
                break used_bytes;
            }
            allocator::purge();
            std::thread::sleep(PATIENCE / 10);
        };
        self.inner.refusals.fetch_add(1, Ordering::Relaxed);
        Err(MemoryShort::Needed {
            needed_bytes,
            used_bytes,
            ceiling_bytes,
        })
    }

    /// At most `bytes`, and less below a low ceiling: `parts` such shares are the whole.
    pub fn share(&self, bytes: u64, parts: u64) -> u64 {
        let share = self.limit().bytes.map(|ceiling| ceiling / parts.max(1));
        share.map_or(bytes, |share| share.min(bytes))
    }

    /// What is free below the ceiling now (blocking); `None` where there is no ceiling.
    pub fn room_bytes(&self) -> Option<u64> {
        let ceiling = self.limit().bytes?;
        Some(ceiling.saturating_sub(self.read(None).used_bytes()))
    }

    pub fn enter(&self, stage: Stage) {
        self.inner.stage.store(stage.number(), Ordering::Relaxed);
    }

    /// Caches were dropped.
    pub fn count_trim(&self) {
        self.inner.caches.fetch_add(1, Ordering::Relaxed);
    }

    /// A task or a collection was stopped.
    pub fn count_stop(&self) {
        self.inner.stopped.fetch_add(1, Ordering::Relaxed);
    }

    /// Has the always-on network collection rest, or go on.
    pub fn pause_network(&self, is_paused: bool) {
        self.inner.network_paused.send_replace(is_paused);
    }

    /// Whether the always-on network collection is to rest.
    pub fn network_paused(&self) -> pausing::Receiver<bool> {
        self.inner.network_paused.subscribe()
    }

    /// The note of a task that was stopped.
    pub fn stop_reason(&self) -> String {
        let ceiling = self.limit().bytes.map(megabytes);
        format!(
            "stopped because the agent's memory came near its ceiling{}; the result up to then is kept",
            ceiling.map_or_else(String::new, |text| format!(" of {text} (--max-memory)"))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LimitSource;

    fn of(bytes: u64) -> Ceiling {
        let ceiling = Ceiling::default();
        ceiling.set(Limit {
            bytes: Some(bytes),
            source: LimitSource::Setting,
        });
        ceiling
    }

    #[test]
    fn nothing_is_refused_without_a_ceiling() {
        let ceiling = Ceiling::default();
        ceiling.inner.stage.store(3, Ordering::Relaxed);
        assert_eq!(ceiling.admits("nothing starts"), Ok(()));
        assert_eq!(ceiling.admits_tables(u64::MAX), Ok(()));
        assert_eq!(ceiling.share(1000, 4), 1000);
        assert_eq!(ceiling.given_up(), GivenUp::default());
    }

    #[test]
    fn refusals_are_counted_and_say_why() {
        let ceiling = of(1 << 40);
        assert_eq!(ceiling.admits("no task starts"), Ok(()));
        ceiling.inner.stage.store(2, Ordering::Relaxed);
        let refused = ceiling.admits("no task starts").unwrap_err().to_string();
        assert!(refused.contains("no task starts until"), "{refused}");
        assert_eq!(ceiling.admits_reading("no result is read"), Ok(()));
        ceiling.inner.stage.store(3, Ordering::Relaxed);
        assert!(ceiling.admits_reading("no result is read").is_err());
        assert_eq!(ceiling.given_up().refusals, 2);
    }

    #[test]
    fn tables_that_do_not_fit_are_refused_before_they_are_made() {
        let ceiling = of(1 << 40);
        assert_eq!(ceiling.admits_tables(1 << 20), Ok(()));
        let refused = ceiling.admits_tables(1 << 40).unwrap_err().to_string();
        assert!(
            refused.starts_with("the tables in the kernel need about 1099511.6 MB"),
            "{refused}"
        );
    }

    #[test]
    fn caches_get_less_below_a_low_ceiling() {
        assert_eq!(of(100 << 20).share(96 << 20, 4), 25 << 20);
        assert_eq!(of(4 << 30).share(96 << 20, 4), 96 << 20);
    }
}
