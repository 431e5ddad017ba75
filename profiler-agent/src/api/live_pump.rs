//! Feeds the streams of events.

use std::time::Duration;

use profiler_engine::task::{Engine, TaskChange};
use profiler_host::process::{ProcessChange, pods};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::MissedTickBehavior,
};

use super::{
    dto::{LaggedEvent, ProcessEvent, ProcessesEvent, TaskDeletedEvent},
    state::ApiState,
};

/// How often processes and own cost are read with listeners.
const REFRESH: Duration = Duration::from_secs(2);
/// How often processes are read without listeners, so that the table stays true.
const IDLE_REFRESH: Duration = Duration::from_secs(30);

/// Follows tasks and processes: keeps the totals and feeds the listeners.
#[expect(missing_debug_implementations, reason = "holds the API's state")]
pub struct LivePump {
    state: ApiState,
    tasks: broadcast::Receiver<TaskChange>,
    processes: broadcast::Receiver<ProcessChange>,
}

impl LivePump {
    /// Subscribes now, so that no change after this call is missed.
    pub fn new(state: ApiState) -> Self {
        let tasks = state.parts.engine.subscribe();
        let processes = state.parts.table.subscribe();
        for task in state.parts.engine.list() {
            state.parts.totals.baseline(&task);
        }
        Self {
            state,
            tasks,
            processes,
        }
    }

    /// Runs until the agent shuts down.
    pub async fn run(mut self) {
        let shutdown = self.state.parts.shutdown.clone();
        let mut ticks = tokio::time::interval(REFRESH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                change = self.tasks.recv() => match change {
                    Ok(change) => self.task_changed(change),
                    Err(RecvError::Lagged(missed)) => self.tasks_lagged(missed),
                    Err(RecvError::Closed) => return,
                },
                change = self.processes.recv() => match change {
                    Ok(change) => self.process_changed(&change),
                    Err(RecvError::Lagged(missed)) => {
                        self.state.live.send("lagged", || LaggedEvent { missed });
                    }
                    Err(RecvError::Closed) => return,
                },
                _ = ticks.tick() => self.tick().await,
            }
        }
    }

    fn task_changed(&self, change: TaskChange) {
        match change {
            TaskChange::Updated(task) => {
                self.state.parts.totals.observe(&task);
                self.state.live.send("task", || self.state.shown(&task));
            }
            TaskChange::Deleted(id) => {
                self.state.parts.totals.forget(id);
                self.state
                    .live
                    .send("task_deleted", || TaskDeletedEvent { id: id.to_string() });
            }
        }
    }

    fn tasks_lagged(&self, missed: u64) {
        let engine: &Engine = &self.state.parts.engine;
        for task in engine.list() {
            self.state.parts.totals.observe(&task);
        }
        self.state.live.send("lagged", || LaggedEvent { missed });
    }

    fn process_changed(&self, change: &ProcessChange) {
        let live = &self.state.live;
        match change {
            ProcessChange::Started(process) => {
                live.send("process", || ProcessEvent::started(process));
            }
            ProcessChange::Exited(key) => live.send("process", || ProcessEvent::exited(*key)),
            ProcessChange::Refreshed => live.send("processes", || {
                let all = self.state.parts.table.snapshot();
                let pods = pods(&all, self.state.parts.table.names());
                ProcessesEvent {
                    items: all.iter().map(|process| process.as_ref().into()).collect(),
                    pods: pods.iter().map(Into::into).collect(),
                }
            }),
        }
    }

    async fn tick(&self) {
        let listened = self.state.live.has_listeners();
        // A little less than the tick, so that every tick reads.
        let max_age = if listened {
            REFRESH * 3 / 4
        } else {
            IDLE_REFRESH
        };
        if let Err(error) = self.state.refresh_processes(max_age).await {
            tracing::warn!(?error, "read processes");
        }
        if !listened {
            return;
        }
        match self.state.agent_self().await {
            Ok(reading) => self.state.live.send("self", || reading),
            Err(error) => tracing::warn!(?error, "read own cost"),
        }
    }
}
