//! Looks at the agent's memory again and again, and does what the stage asks for.

use std::time::{Duration, Instant};

use profiler_model::{TaskId, megabytes};
use profiler_symbolize::Renamer;
use tokio_util::sync::CancellationToken;

use profiler_memory::{Ceiling, MemoryReading, Stage, allocator};

use crate::task::Engine;

/// Time between two looks at the agent's own pages.
const PERIOD: Duration = Duration::from_millis(250);
/// Time between two looks at every descriptor; they take some milliseconds, and maps come only with tasks.
const WHOLE_PERIOD: Duration = Duration::from_secs(2);
/// Caches fill again, which takes time that the profiles' names wait for: they are dropped at most so often, and again
/// after that time while tasks are refused.
const TRIM_PERIOD: Duration = Duration::from_secs(20);
/// A stage is left when less was used for this long.
const CALM: Duration = Duration::from_secs(3);
/// What was stopped gets this long after its end to give its memory back before the next is stopped.
const SETTLING: Duration = Duration::from_secs(2);
/// The same while more is used than when it was stopped: it is not enough.
const GROWING: Duration = Duration::from_millis(500);
/// Most that a task which was stopped may take to end: it hands over what it has, and its names may still be looked for.
const ENDING: Duration = Duration::from_secs(12);
/// Time before the always-on network collection is tried again; twice as long each time that it had to rest.
const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_mins(10);

/// Runs until `shutdown`. Does nothing without a ceiling.
pub async fn keep_below(
    ceiling: Ceiling,
    engine: Engine,
    renamer: Renamer,
    network: bool,
    shutdown: CancellationToken,
) {
    let Some(bytes) = ceiling.limit().bytes else {
        return shutdown.cancelled().await;
    };
    let mut keeper = Keeper {
        ceiling,
        bytes,
        engine,
        renamer,
        network: network.then_some(Network {
            resting_until: None,
            rest: FIRST_REST,
        }),
        whole: None,
        trimmed: None,
        lower_since: None,
        stopped: None,
    };
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
        keeper = match tokio::task::spawn_blocking(move || {
            keeper.look();
            keeper
        })
        .await
        {
            Ok(keeper) => keeper,
            Err(error) => {
                tracing::error!(%error, "the agent's memory is not watched any more");
                return shutdown.cancelled().await;
            }
        };
    }
}

/// The always-on network collection.
struct Network {
    resting_until: Option<Instant>,
    rest: Duration,
}

struct Keeper {
    ceiling: Ceiling,
    bytes: u64,
    engine: Engine,
    renamer: Renamer,
    network: Option<Network>,
    whole: Option<(Instant, MemoryReading)>,
    trimmed: Option<Instant>,
    /// Since when less is used than the stage needs.
    lower_since: Option<Instant>,
    stopped: Option<Stopped>,
}

/// What was stopped last.
struct Stopped {
    at: Instant,
    /// `None`: the network collection, which ends at once.
    task: Option<TaskId>,
    /// When it was first seen to have ended: it gives no memory back before.
    ended: Option<Instant>,
    /// Bytes in use then.
    used: u64,
}

impl Stopped {
    fn new(task: Option<TaskId>, used: u64, now: Instant) -> Self {
        Self {
            at: now,
            task,
            ended: task.is_none().then_some(now),
            used,
        }
    }

    fn look(&mut self, now: Instant, is_running: impl Fn(TaskId) -> bool) {
        if self.ended.is_none() && !self.task.is_some_and(is_running) {
            self.ended = Some(now);
        }
    }

    /// Whether it may still end, or give back what it held; `used` bytes are in use now.
    fn has_time(&self, now: Instant, used: u64) -> bool {
        let Some(ended) = self.ended else {
            return now - self.at < ENDING;
        };
        let patience = if used > self.used { GROWING } else { SETTLING };
        now - ended < patience
    }
}

impl Keeper {
    fn look(&mut self) {
        let before = self.ceiling.stage();
        let used = self.read(before).used_bytes();
        let stage = self.settled(before, before.next(used, self.bytes));
        if stage != before {
            self.enter(before, stage, used);
        }
        if stage > before || stage >= Stage::Refusing {
            self.trim_when_due();
        }
        if let Some(stopped) = &mut self.stopped {
            stopped.look(Instant::now(), |id| self.engine.is_running(id));
        }
        if before == Stage::Stopping && used >= Stage::Stopping.begins_at(self.bytes) {
            self.stop_one(used);
        }
        if stage < Stage::Refusing && before >= Stage::Refusing {
            self.engine.start_waiting();
        }
        // Whether its maps fit is looked at when they are made.
        if stage < Stage::Refusing {
            self.wake_network();
        }
    }

    /// The stage that is reached: a lower one only after some time below.
    fn settled(&mut self, before: Stage, next: Stage) -> Stage {
        if next >= before {
            self.lower_since = None;
            return next;
        }
        let since = *self.lower_since.get_or_insert_with(Instant::now);
        if since.elapsed() < CALM {
            return before;
        }
        self.lower_since = None;
        next
    }

    fn read(&mut self, stage: Stage) -> MemoryReading {
        let rest = self.whole.filter(|(at, _)| {
            // What is given up shows at once.
            stage < Stage::Refusing && at.elapsed() < WHOLE_PERIOD
        });
        let reading = self.ceiling.read(rest.map(|(_, reading)| reading));
        if rest.is_none() {
            self.whole = Some((Instant::now(), reading));
        }
        reading
    }

    fn enter(&mut self, before: Stage, stage: Stage, used: u64) {
        self.ceiling.enter(stage);
        let (used, ceiling) = (megabytes(used), megabytes(self.bytes));
        match stage {
            _ if stage < before => {
                tracing::info!(stage = stage.name(), %used, %ceiling, "memory is further below its ceiling again");
            }
            Stage::Open | Stage::Trimming => {
                tracing::info!(%used, %ceiling, "caches are dropped: memory comes near its ceiling");
            }
            Stage::Refusing => {
                tracing::warn!(%used, %ceiling, "no task is started: memory is near its ceiling");
            }
            Stage::Stopping => {
                tracing::warn!(%used, %ceiling, "tasks are stopped: memory is very near its ceiling");
            }
        }
    }

    fn trim_when_due(&mut self) {
        if self.trimmed.is_some_and(|at| at.elapsed() < TRIM_PERIOD) {
            return;
        }
        self.trimmed = Some(Instant::now());
        self.ceiling.count_trim();
        self.engine.drop_caches();
        self.renamer.drop_caches();
        allocator::purge();
    }

    /// Stops what matters least, when what was stopped before has had its time.
    fn stop_one(&mut self, used: u64) {
        let has_time = |stopped: &Stopped| stopped.has_time(Instant::now(), used);
        if self.stopped.as_ref().is_some_and(has_time) {
            return;
        }
        allocator::purge();
        let task = if self.rest_network() {
            tracing::warn!("the always-on network collection rests: memory is near its ceiling");
            None
        } else {
            let note = format!(
                "when it was stopped the agent used {} of {}",
                megabytes(used),
                megabytes(self.bytes)
            );
            let Some(id) = self.engine.stop_least(&note) else {
                return;
            };
            tracing::warn!(task = %id, "a task is stopped: memory is near its ceiling");
            Some(id)
        };
        self.stopped = Some(Stopped::new(task, used, Instant::now()));
        self.ceiling.count_stop();
    }

    /// False when there is no such collection, or it is paused already.
    fn rest_network(&mut self) -> bool {
        let Some(network) = &mut self.network else {
            return false;
        };
        if network.resting_until.is_some() {
            return false;
        }
        network.resting_until = Some(Instant::now() + network.rest);
        network.rest = (network.rest * 2).min(LONGEST_REST);
        self.ceiling.pause_network(true);
        true
    }

    fn wake_network(&mut self) {
        let Some(network) = &mut self.network else {
            return;
        };
        if network
            .resting_until
            .is_some_and(|until| Instant::now() >= until)
        {
            network.resting_until = None;
            self.ceiling.pause_network(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_its_time_after_its_end() {
        let at = Instant::now();
        let mut stopped = Stopped::new(Some(TaskId(1)), 100, at);
        let late = at + ENDING / 2;
        stopped.look(late, |_| true);
        assert!(stopped.has_time(late, 200));
        assert!(!stopped.has_time(at + ENDING, 200));
        stopped.look(late, |_| false);
        // A later look does not move the end.
        stopped.look(late + PERIOD, |_| false);
        assert!(stopped.has_time(late + PERIOD, 200));
        assert!(!stopped.has_time(late + GROWING, 200));
        assert!(stopped.has_time(late + GROWING, 100));
        assert!(!stopped.has_time(late + SETTLING, 100));
    }

    #[test]
    fn the_network_collection_has_its_time_at_once() {
        let at = Instant::now();
        let mut stopped = Stopped::new(None, 100, at);
        stopped.look(at + PERIOD, |_| true);
        assert!(stopped.has_time(at + PERIOD, 200));
        assert!(!stopped.has_time(at + GROWING, 200));
    }
}
