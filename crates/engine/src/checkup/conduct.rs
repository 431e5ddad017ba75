//! Starts check-ups, observes while their tasks run, and removes them.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use profiler_clock::wall_ns;
use profiler_host::process::ProcessTable;
use profiler_model::{Task, TaskId, TaskState};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{
    observer::Observer,
    plan::{self, CheckupRequest, specs},
    status::{self, Checkup},
};
use crate::task::{Engine, TaskChange, TaskError, validate};

/// Longest time between the creation of a check-up and the start of one of its tasks; after that
/// nothing is observed.
const START_LIMIT: Duration = Duration::from_hours(2);

/// Why a check-up could not be started, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum CheckupError {
    #[error("no check-up {id:?}")]
    NotFound { id: String },
    #[error("check-up {id:?} is running: stop its tasks before deleting it")]
    NotFinal { id: String },
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Starts and finds check-ups. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Checkups {
    engine: Engine,
    table: ProcessTable,
    asks_envoys: bool,
    /// Held while a name is chosen and used.
    naming: Arc<tokio::sync::Mutex<()>>,
    /// Check-ups whose record is not kept yet: their tasks may be final already.
    unkept: Arc<Mutex<Vec<String>>>,
}

impl Checkups {
    pub fn new(engine: Engine, table: ProcessTable, asks_envoys: bool) -> Self {
        Self {
            engine,
            table,
            asks_envoys,
            naming: Arc::default(),
            unkept: Arc::default(),
        }
    }

    /// Starts the tasks of a check-up, or none of them.
    pub async fn create(&self, request: &CheckupRequest) -> Result<Checkup, CheckupError> {
        let specs = specs(request);
        for spec in &specs {
            validate(spec)?;
        }
        let _one_at_a_time = self.naming.lock().await;
        let id = self.free_name();
        let mut changes = self.engine.subscribe();
        let mut created: Vec<TaskId> = Vec::new();
        for spec in specs {
            match self.engine.create_in(spec, Some(id.clone())).await {
                Ok(task) => created.push(task.id),
                Err(error) => {
                    self.take_back(&created).await;
                    return Err(error.into());
                }
            }
        }
        self.unkept().push(id.clone());
        let this = self.clone();
        let (name, target) = (id.clone(), request.target.clone());
        let keeper = created.first().copied();
        self.engine.follow(async move {
            if let Some(keeper) = keeper {
                let observing = this.observe(keeper, &created, target, &mut changes);
                if let Err(error) = observing.await {
                    tracing::warn!(checkup = name, %error, "what was observed is not kept");
                }
            }
            this.unkept().retain(|known| *known != name);
        });
        self.get(&id).await
    }

    /// Newest first.
    pub async fn list(&self) -> Result<Vec<Checkup>, CheckupError> {
        let mut found = status::checkups(&self.engine.list(), |task| self.engine.now_of(task));
        self.complete(&mut found).await?;
        Ok(found)
    }

    pub async fn get(&self, id: &str) -> Result<Checkup, CheckupError> {
        let found = status::find(&self.engine.list(), id, |task| self.engine.now_of(task));
        let mut found = vec![found.ok_or_else(|| CheckupError::NotFound { id: id.to_owned() })?];
        self.complete(&mut found).await?;
        found
            .pop()
            .ok_or_else(|| CheckupError::NotFound { id: id.to_owned() })
    }

    /// Removes all tasks of a check-up with their results, and what was observed.
    pub async fn delete(&self, id: &str) -> Result<(), CheckupError> {
        let checkup = self.get(id).await?;
        if checkup.state == status::CheckupState::Running {
            return Err(CheckupError::NotFinal { id: id.to_owned() });
        }
        // Also those that were added to the group by hand.
        let all = self.engine.list().into_iter();
        for task in all.filter(|task| task.group.as_deref() == Some(id)) {
            match self.engine.delete(task.id).await {
                Ok(()) | Err(TaskError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Says of each whether it has a record; one whose record is being written still runs.
    async fn complete(&self, checkups: &mut [Checkup]) -> Result<(), CheckupError> {
        let keepers = checkups.iter().filter_map(Checkup::keeper).collect();
        let kept = self.engine.with_observed(keepers).await?;
        let unkept = self.unkept().clone();
        for checkup in checkups {
            checkup.observed = checkup.keeper().is_some_and(|id| kept.contains(&id));
            if unkept.contains(&checkup.id) {
                checkup.state = status::CheckupState::Running;
            }
        }
        Ok(())
    }

    fn unkept(&self) -> MutexGuard<'_, Vec<String>> {
        self.unkept.lock()
    }

    fn free_name(&self) -> String {
        let tasks = self.engine.list();
        let is_used = |name: &str| tasks.iter().any(|task| task.group.as_deref() == Some(name));
        let mut now_ms = wall_ns() / 1_000_000;
        loop {
            let name = plan::name(now_ms);
            if !is_used(&name) {
                return name;
            }
            now_ms += 1;
        }
    }

    /// Removes the tasks of a check-up that could not be started as a whole.
    async fn take_back(&self, created: &[TaskId]) {
        for id in created {
            let stopped = self.engine.stop(*id).await;
            let removed = match stopped {
                Ok(_) => self.engine.delete(*id).await,
                Err(error) => Err(error),
            };
            if let Err(error) = removed {
                tracing::warn!(task = %id, %error, "remove a task of a check-up that was not started");
            }
        }
    }

    /// Observes from the start of the on-CPU samples to their end, and keeps the record. When that
    /// task fails, the others are observed.
    async fn observe(
        &self,
        keeper: TaskId,
        tasks: &[TaskId],
        target: profiler_model::Target,
        changes: &mut Receiver<TaskChange>,
    ) -> Result<(), TaskError> {
        let began = self.first(tasks, changes, has_begun);
        let Ok(Some(followed)) = tokio::time::timeout(START_LIMIT, began).await else {
            return Ok(());
        };
        let (table, asks_envoys) = (self.table.clone(), self.asks_envoys);
        let observer = Observer::start(target, table, asks_envoys)
            .map_err(|error| TaskError::NotStored(format!("start to observe: {error}")))?;
        self.first(&[followed], changes, |task| task.state.is_final())
            .await;
        let record = tokio::task::spawn_blocking(move || observer.finish())
            .await
            .map_err(|error| TaskError::NotStored(error.to_string()))?;
        self.engine.keep_observed(keeper, record).await
    }

    /// Waits until one of the tasks is as wanted, in their order; `None` when none will be.
    async fn first(
        &self,
        tasks: &[TaskId],
        changes: &mut Receiver<TaskChange>,
        is_wanted: impl Fn(&Task) -> bool,
    ) -> Option<TaskId> {
        loop {
            let mut may_come = false;
            for id in tasks {
                let Ok(task) = self.engine.get(*id) else {
                    continue;
                };
                if is_wanted(&task) {
                    return Some(*id);
                }
                if !task.state.is_final() {
                    // An earlier one goes before a later one that is ready.
                    may_come = true;
                    break;
                }
            }
            if !may_come {
                return None;
            }
            // Which change it was does not matter, nor does a missed one: the states are read again.
            if let Err(RecvError::Closed) = changes.recv().await {
                return None;
            }
        }
    }
}

/// Whether a task's samples are being taken, or its connections watched.
fn has_begun(task: &Task) -> bool {
    task.state == TaskState::Running && task.started_ns.is_some()
}

#[cfg(test)]
#[path = "conduct_tests.rs"]
mod tests;
