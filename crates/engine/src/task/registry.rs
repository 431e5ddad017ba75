//! The tasks in memory: their records, the queue, and who runs.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use profiler_model::{Task, TaskId, TaskState};
use tokio::sync::{broadcast, watch};

use super::{TaskChange, TaskError};

/// Changes that a slow subscriber may miss before it hears that it lagged.
const CHANGES: usize = 256;
/// Remarks kept per task; a collector that repeats itself must not grow the record without end.
const MAX_NOTES: usize = 64;

/// Why a running task is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopCause {
    User,
    Shutdown,
    /// The agent's memory is near its ceiling.
    Memory,
}

/// The place of one running task.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: TaskId,
    pub(super) stop: watch::Receiver<Option<StopCause>>,
    /// Dropped when the task is final.
    pub(super) done: watch::Sender<()>,
}

#[derive(Debug)]
struct Running {
    stop: watch::Sender<Option<StopCause>>,
    done: watch::Receiver<()>,
}

#[derive(Debug, Default)]
struct State {
    tasks: BTreeMap<TaskId, Arc<Task>>,
    queue: VecDeque<TaskId>,
    running: HashMap<TaskId, Running>,
    /// Places promised to tasks whose record is being written.
    reserved: usize,
    closing: bool,
}

#[derive(Debug)]
pub(super) struct Registry {
    state: Mutex<State>,
    changes: broadcast::Sender<TaskChange>,
    max_running: usize,
    max_queued: usize,
}

/// What [`Registry::stop`] found.
#[derive(Debug)]
pub(super) enum Stopping {
    /// It was final already.
    Final(Arc<Task>),
    /// It waited in the queue and has been cancelled; its record is still to be written.
    Cancelled(Arc<Task>),
    /// It runs; the receiver's sender is dropped when it is final.
    Running(watch::Receiver<()>),
}

impl Registry {
    pub(super) fn new(tasks: Vec<Task>, max_running: usize, max_queued: usize) -> Self {
        let (changes, _) = broadcast::channel(CHANGES);
        let tasks = tasks
            .into_iter()
            .map(|task| (task.id, Arc::new(task)))
            .collect();
        let state = Mutex::new(State {
            tasks,
            ..State::default()
        });
        Self {
            state,
            changes,
            max_running: max_running.max(1),
            max_queued,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<TaskChange> {
        self.changes.subscribe()
    }

    fn send(&self, change: TaskChange) {
        // Fails without listeners, which is fine.
        drop(self.changes.send(change));
    }

    /// Newest first.
    pub(super) fn list(&self) -> Vec<Arc<Task>> {
        self.state().tasks.values().rev().map(Arc::clone).collect()
    }

    pub(super) fn get(&self, id: TaskId) -> Result<Arc<Task>, TaskError> {
        self.state()
            .tasks
            .get(&id)
            .map(Arc::clone)
            .ok_or(TaskError::NotFound { id })
    }

    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.running.is_empty() && state.reserved == 0
    }

    /// Holds a place for a task that is about to be recorded.
    pub(super) fn reserve(&self) -> Result<(), TaskError> {
        let mut state = self.state();
        if state.closing {
            return Err(TaskError::Store("the agent is shutting down".to_owned()));
        }
        let running = state.running.len();
        let queued = state.queue.len() + state.reserved;
        if running + queued >= self.max_running + self.max_queued {
            return Err(TaskError::TooMany { running, queued });
        }
        state.reserved += 1;
        Ok(())
    }

    pub(super) fn unreserve(&self) {
        let mut state = self.state();
        state.reserved = state.reserved.saturating_sub(1);
    }

    /// Queues a recorded task in the place reserved for it.
    pub(super) fn enqueue(&self, task: Arc<Task>) {
        {
            let mut state = self.state();
            state.reserved = state.reserved.saturating_sub(1);
            state.queue.push_back(task.id);
            state.tasks.insert(task.id, Arc::clone(&task));
        }
        self.send(TaskChange::Updated(task));
    }

    /// Adds a task that has ended already.
    pub(super) fn add_final(&self, task: Task) -> Arc<Task> {
        let task = Arc::new(task);
        self.state().tasks.insert(task.id, Arc::clone(&task));
        self.send(TaskChange::Updated(Arc::clone(&task)));
        task
    }

    /// The next queued task, when one may run.
    pub(super) fn next(&self) -> Option<Slot> {
        let mut state = self.state();
        if state.closing || state.running.len() >= self.max_running {
            return None;
        }
        let id = state.queue.pop_front()?;
        let (stop, stop_receiver) = watch::channel(None);
        let (done, done_receiver) = watch::channel(());
        state.running.insert(
            id,
            Running {
                stop,
                done: done_receiver,
            },
        );
        Some(Slot {
            id,
            stop: stop_receiver,
            done,
        })
    }

    /// Frees the place of a task that has become final.
    pub(super) fn release(&self, id: TaskId) {
        self.state().running.remove(&id);
    }

    /// Changes a task without telling subscribers; they hear of it with the next [`Self::announce`].
    pub(super) fn update(&self, id: TaskId, change: impl FnOnce(&mut Task)) -> Option<Arc<Task>> {
        let mut state = self.state();
        let task = state.tasks.get_mut(&id)?;
        change(Arc::make_mut(task));
        Some(Arc::clone(task))
    }

    pub(super) fn announce(&self, id: TaskId) {
        let task = self.state().tasks.get(&id).map(Arc::clone);
        if let Some(task) = task {
            self.send(TaskChange::Updated(task));
        }
    }

    /// Forgets a task whose record is gone.
    pub(super) fn remove(&self, id: TaskId) {
        let known = self.state().tasks.remove(&id).is_some();
        if known {
            self.send(TaskChange::Deleted(id));
        }
    }

    /// Asks a task to stop; one that still waits is cancelled at once.
    pub(super) fn stop(&self, id: TaskId, now_ns: u64) -> Result<Stopping, TaskError> {
        let task = {
            let mut state = self.state();
            if let Some(running) = state.running.get(&id) {
                running
                    .stop
                    .send_if_modified(|cause| cause.replace(StopCause::User).is_none());
                return Ok(Stopping::Running(running.done.clone()));
            }
            state.queue.retain(|queued| *queued != id);
            let task = state.tasks.get_mut(&id).ok_or(TaskError::NotFound { id })?;
            if task.state.is_final() {
                return Ok(Stopping::Final(Arc::clone(task)));
            }
            let changed = Arc::make_mut(task);
            changed.state = TaskState::Cancelled;
            changed.ended_ns = Some(now_ns);
            Arc::clone(task)
        };
        self.send(TaskChange::Updated(Arc::clone(&task)));
        Ok(Stopping::Cancelled(task))
    }

    /// Asks the task that matters least to stop, of those that are not asked yet.
    pub(super) fn stop_least(&self) -> Option<TaskId> {
        let state = self.state();
        let asked = |id: &TaskId| {
            let running = state.running.get(id);
            running.is_none_or(|running| running.stop.borrow().is_some())
        };
        let (id, _) = state
            .tasks
            .iter()
            .filter(|(id, _)| !asked(id))
            .max_by_key(|(id, task)| (task.duration_s().is_none(), **id))?;
        let running = state.running.get(id)?;
        running.stop.send_replace(Some(StopCause::Memory));
        Some(*id)
    }

    /// Refuses new tasks, empties the queue and asks all running tasks to stop. Returns the tasks
    /// that were queued and, for each running one, a receiver that ends with it.
    pub(super) fn close(&self) -> (Vec<TaskId>, Vec<watch::Receiver<()>>) {
        let mut state = self.state();
        state.closing = true;
        let queued = state.queue.drain(..).collect();
        let running = state
            .running
            .values()
            .map(|running| {
                running.stop.send_if_modified(|cause| {
                    let first = cause.is_none();
                    cause.get_or_insert(StopCause::Shutdown);
                    first
                });
                running.done.clone()
            })
            .collect();
        (queued, running)
    }
}

/// What a task notes when the disk refuses its result for this reason.
pub(super) fn waits_note(reason: &str) -> String {
    format!("could not write to the data directory ({reason}); the result was kept in memory")
}

/// What it notes when all of it has been written.
pub(super) const WRITTEN_NOTE: &str =
    "what was kept in memory has been written to the data directory";

/// Adds remarks, each text once, up to a limit.
pub(super) fn add_notes(task: &mut Task, notes: impl IntoIterator<Item = String>) {
    for note in notes {
        if task.notes.len() >= MAX_NOTES {
            return;
        }
        if !task.notes.contains(&note) {
            task.notes.push(note);
        }
    }
}
