//! The engine: what the rest of the program calls.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use profiler_analysis::edge_series::{EdgeSeries, SeriesCut};
use profiler_clock::Clocks;
use profiler_model::{
    Clock, EdgeTable, EventLoopTable, LossKind, Profile, RequestTable, Selection, Task, TaskId,
    TaskSpec, TaskState,
};
use profiler_recording::Collector;
use tokio::{sync::broadcast, time::Instant};
use tokio_util::task::TaskTracker;

use crate::store::{OwnerThread, Store, StoreError, StoreHandle, Stream};
use profiler_memory::{Ceiling, Stage};

use super::{
    EngineConfig, TaskChange, TaskError, edge_steps,
    newest::Newest,
    registry::{Registry, Stopping, add_notes},
    result,
    retention::Retention,
    run::{self, AGENT_STOPPED, NEVER_STARTED},
    target_names::target_names,
    times::Times,
    upkeep, validate,
    validate::group_holds,
    whole_table,
};

/// How long running tasks get to hand over their last chunks when the agent stops. The store is closed after it, in time
/// for the agent's own deadline.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(4);

/// What does not happen while memory is short.
const NO_TASK: &str = "no task is started";

/// How long a request to stop waits for the last chunk.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// Handle on the engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// What the tasks of the engine share.
pub(super) struct Inner {
    pub(super) registry: Registry,
    pub(super) collector: Arc<dyn Collector>,
    pub(super) store: StoreHandle,
    _owner: OwnerThread,
    pub(super) times: Times,
    store_file: PathBuf,
    pub(super) retention: Retention,
    pub(super) newest_edges: Newest<EdgeTable>,
    pub(super) newest_requests: Newest<RequestTable>,
    /// Tasks that have ended and whose result the disk refused, with the blobs that wait.
    pub(super) unwritten: Mutex<BTreeMap<TaskId, u64>>,
    /// What writes to the store after a task has ended.
    followers: TaskTracker,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Opens the store (tasks that ran when the agent died become failed, their result kept) and
    /// starts the engine's task on the current tokio runtime.
    pub fn open(config: EngineConfig, collector: Arc<dyn Collector>) -> Result<Self, TaskError> {
        let store = Store::open(&config.data_dir)?;
        Self::with_store(config, collector, store, Clocks::of_the_machine())
    }

    /// As [`Engine::open`], with a store that is open already and other clocks.
    pub fn with_store(
        config: EngineConfig,
        collector: Arc<dyn Collector>,
        mut store: Store,
        clocks: Clocks,
    ) -> Result<Self, TaskError> {
        let tasks = recover(&mut store, clocks.wall_ns())?;
        match store.compact_if_sparse() {
            Ok(true) => tracing::info!(bytes = store.disk_bytes(), "compacted the store"),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "could not compact the store"),
        }
        let (store, owner) =
            StoreHandle::spawn(store).map_err(|error| TaskError::Store(error.to_string()))?;
        let inner = Arc::new(Inner {
            registry: Registry::new(tasks, config.max_running, config.max_queued),
            collector,
            store,
            _owner: owner,
            times: Times::new(clocks),
            store_file: config.data_dir.join("store.redb"),
            retention: config.retention,
            newest_edges: Newest::default(),
            newest_requests: Newest::default(),
            unwritten: Mutex::default(),
            followers: TaskTracker::new(),
        });
        tokio::spawn(upkeep::maintain(Arc::downgrade(&inner)));
        Ok(Self { inner })
    }

    /// Validates and queues a task that belongs to no group.
    pub async fn create(&self, spec: TaskSpec) -> Result<Task, TaskError> {
        self.create_in(spec, None).await
    }

    /// Validates and queues a task, in a group of tasks that belong together.
    pub async fn create_in(
        &self,
        spec: TaskSpec,
        group: Option<String>,
    ) -> Result<Task, TaskError> {
        validate(&spec)?;
        if let Some(reason) = self.inner.collector.refuses_tasks() {
            return Err(TaskError::Refused(reason.to_owned()));
        }
        group.as_deref().map_or(Ok(()), group_holds)?;
        Ceiling::own().admits(NO_TASK)?;
        self.inner.registry.reserve()?;
        // On a task of its own, so that a caller that goes away does not leave the place reserved.
        let inner = Arc::clone(&self.inner);
        let recorded = tokio::spawn(async move {
            let recorded = inner.record(spec, group).await;
            match &recorded {
                Ok(task) => {
                    inner.registry.enqueue(Arc::clone(task));
                    inner.dispatch();
                }
                Err(_) => inner.registry.unreserve(),
            }
            recorded
        });
        let task = recorded
            .await
            .map_err(|error| TaskError::Store(error.to_string()))??;
        Ok(Task::clone(&task))
    }

    /// All tasks, newest first.
    pub fn list(&self) -> Vec<Arc<Task>> {
        self.inner.registry.list()
    }

    pub fn get(&self, id: TaskId) -> Result<Arc<Task>, TaskError> {
        self.inner.registry.get(id)
    }

    /// Nanoseconds since the Unix epoch, as the task's own times are: the wall clock may have been set since it began.
    pub fn now_of(&self, task: &Task) -> u64 {
        self.inner.times.now_of(task.id)
    }

    /// Stops a queued or running task and waits for its last chunk; a final task is returned as it is.
    pub async fn stop(&self, id: TaskId) -> Result<Arc<Task>, TaskError> {
        match self.inner.registry.stop(id, self.inner.times.now_of(id))? {
            Stopping::Final(task) => Ok(task),
            Stopping::Cancelled(task) => {
                self.inner.put_task(Arc::clone(&task)).await?;
                Ok(task)
            }
            Stopping::Running(mut done) => {
                // A result whose names are still being looked for may take longer; the task then
                // ends by itself soon after the answer.
                let ended = async { while done.changed().await.is_ok() {} };
                let _late = tokio::time::timeout(STOP_WAIT, ended).await;
                self.get(id)
            }
        }
    }

    /// Stops the running task that matters least, and says why and `note` on it: one without a set end before the
    /// others, and the newest of them. `None` when none runs that is not ending already.
    pub fn stop_least(&self, note: &str) -> Option<TaskId> {
        let id = self.inner.registry.stop_least()?;
        self.inner
            .registry
            .update(id, |task| add_notes(task, [note.to_owned()]));
        Some(id)
    }

    pub fn is_running(&self, id: TaskId) -> bool {
        self.get(id).is_ok_and(|task| !task.state.is_final())
    }

    /// Starts tasks that wait, when there is room for them. Needs a tokio runtime.
    pub fn start_waiting(&self) {
        self.inner.dispatch();
    }

    /// Drops what can be read again.
    pub fn drop_caches(&self) {
        self.inner.collector.drop_caches();
    }

    /// Removes a final task and its result.
    pub async fn delete(&self, id: TaskId) -> Result<(), TaskError> {
        let task = self.get(id)?;
        if !task.state.is_final() {
            return Err(TaskError::NotFinal {
                id,
                state: task.state.name(),
            });
        }
        self.inner
            .store
            .run(move |store| store.remove_task(id))
            .await??;
        self.inner.registry.remove(id);
        self.inner.times.forget(id);
        Ok(())
    }

    /// The result so far, cut to the selection. Reads and decodes off the reactor.
    pub async fn profile(&self, id: TaskId, selection: Selection) -> Result<Profile, TaskError> {
        let task = self.get(id)?;
        let store = self.inner.store.clone();
        let origin_ns = task.started_ns.unwrap_or(task.created_ns);
        let clock = task.clock.unwrap_or(Clock::CpuClock);
        let profile = tokio::task::spawn_blocking(move || {
            result::load(&store, id, origin_ns, clock, &selection)
        })
        .await
        .map_err(|error| TaskError::Store(error.to_string()))??;
        // Those that an earlier rewriting of a segment came upon are among them.
        let count = profile.losses.get(LossKind::StoredChunkDamaged);
        if count > 0 {
            let note = format!("{count} stored chunks are damaged and left out of the result");
            self.inner
                .registry
                .update(id, |task| add_notes(task, [note]));
            self.inner.registry.announce(id);
        }
        Ok(profile)
    }

    /// The newest table of a network task that runs; `None` before its first and after its end.
    pub fn newest_edges(&self, id: TaskId) -> Option<Arc<EdgeTable>> {
        self.inner.newest_edges.get(id)
    }

    /// The edges of a network task so far; `None` when it has no result, which tasks of other kinds
    /// never have.
    pub async fn edges(&self, id: TaskId) -> Result<Option<Arc<EdgeTable>>, TaskError> {
        self.get(id)?;
        if let Some(newest) = self.newest_edges(id) {
            return Ok(Some(newest));
        }
        let store = self.inner.store.clone();
        let loaded = tokio::task::spawn_blocking(move || whole_table::load(&store, id))
            .await
            .map_err(|error| TaskError::Store(error.to_string()))?;
        Ok(loaded?.map(Arc::new))
    }

    /// The requests that a task has seen so far; `None` when it has no result, which tasks of other kinds
    /// never have.
    pub async fn requests(&self, id: TaskId) -> Result<Option<Arc<RequestTable>>, TaskError> {
        self.get(id)?;
        if let Some(newest) = self.inner.newest_requests.get(id) {
            return Ok(Some(newest));
        }
        let store = self.inner.store.clone();
        let loaded = tokio::task::spawn_blocking(move || whole_table::load(&store, id))
            .await
            .map_err(|error| TaskError::Store(error.to_string()))?;
        Ok(loaded?.map(Arc::new))
    }

    /// What a task has seen of event loops so far; `None` when it has no such result.
    pub async fn event_loops(&self, id: TaskId) -> Result<Option<EventLoopTable>, TaskError> {
        self.get(id)?;
        let store = self.inner.store.clone();
        let loaded = tokio::task::spawn_blocking(move || whole_table::load(&store, id))
            .await
            .map_err(|error| TaskError::Store(error.to_string()))?;
        Ok(loaded?)
    }

    /// One edge of a network task over time; read and decoded off the reactor. Silent for an edge that
    /// the task does not have.
    pub async fn edge_series(&self, id: TaskId, cut: SeriesCut) -> Result<EdgeSeries, TaskError> {
        let task = self.get(id)?;
        let store = self.inner.store.clone();
        let loaded = tokio::task::spawn_blocking(move || edge_steps::load(&store, id, &cut)).await;
        let mut series = loaded.map_err(|error| TaskError::Store(error.to_string()))??;
        // While it runs, what follows the newest step is not known yet.
        if let (Some(started), Some(ended)) = (task.started_ns, task.ended_ns) {
            let whole_ms = ended.saturating_sub(started) / 1_000_000;
            series.silence_until(cut.to_ms.map_or(whole_ms, |to| to.min(whole_ms)));
        }
        series.thin(cut.most);
        Ok(series)
    }

    pub fn subscribe(&self) -> broadcast::Receiver<TaskChange> {
        self.inner.registry.subscribe()
    }

    /// Whether the disk of the data directory refused the last write.
    pub fn store_refuses(&self) -> bool {
        self.inner.store.refuses()
    }

    /// Room that the store takes on disk, in bytes.
    pub fn store_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let blocks = std::fs::metadata(&self.inner.store_file).map_or(0, |file| file.blocks());
        blocks.saturating_mul(512)
    }

    /// Starts work that ends with tasks and keeps something with them: [`Self::shutdown`] waits for it.
    pub(crate) fn follow(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.inner.followers.spawn(work));
    }

    /// Stops every running task, keeps their results and what was observed beside them, and closes the store.
    pub async fn shutdown(&self) {
        let (queued, running) = self.inner.registry.close();
        for id in queued {
            let now_ns = self.inner.times.now_of(id);
            let task = self
                .inner
                .registry
                .update(id, |task| never_started(task, now_ns));
            self.inner.registry.announce(id);
            if let Some(task) = task
                && let Err(error) = self.inner.put_task(task).await
            {
                tracing::error!(task = %id, %error, "could not record the end of a queued task");
            }
        }
        let deadline = Instant::now() + SHUTDOWN_LIMIT;
        for mut done in running {
            let wait = async { while done.changed().await.is_ok() {} };
            if tokio::time::timeout_at(deadline, wait).await.is_err() {
                tracing::error!("a task did not end in time; its last samples may be missing");
                break;
            }
        }
        self.inner.followers.close();
        let followed = self.inner.followers.wait();
        if tokio::time::timeout_at(deadline, followed).await.is_err() {
            tracing::error!(
                "what was observed beside tasks did not end in time and may be missing"
            );
        }
        if let Err(error) = self.inner.write_waiting().await {
            tracing::error!(%error, "could not write what waited for room on the disk");
        }
        if let Err(error) = self
            .inner
            .store
            .run(Store::close)
            .await
            .and_then(|closed| closed)
        {
            tracing::error!(%error, "could not close the store");
        }
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Applies age and size limits now instead of at the next interval.
    #[cfg(test)]
    pub(super) async fn retain(&self) {
        self.inner.retain().await;
    }
}

impl Inner {
    pub(super) fn now_ns(&self) -> u64 {
        self.times.wall_ns()
    }

    /// Starts queued tasks while there are free places.
    pub(super) fn dispatch(self: &Arc<Self>) {
        // Looked at again when there is memory.
        while Ceiling::own().stage() < Stage::Refusing
            && let Some(slot) = self.registry.next()
        {
            tokio::spawn(run::run(Arc::clone(self), slot));
        }
    }

    /// Writes a task's record and everything that waits.
    pub(super) async fn put_task(&self, task: Arc<Task>) -> Result<(), StoreError> {
        self.store
            .run(move |store| {
                store.put_task(&task)?;
                store.commit()
            })
            .await?
    }

    /// Gives a new task its number and makes its record durable.
    async fn record(&self, spec: TaskSpec, group: Option<String>) -> Result<Arc<Task>, TaskError> {
        let created_ns = self.now_ns();
        let recorded = self.store.run(move |store| {
            let id = store.new_task_id();
            let names = target_names(&spec.target);
            let task = Task {
                target_names: names,
                group,
                ..Task::queued(id, spec, created_ns)
            };
            store.put_task(&task)?;
            if let Err(error) = store.commit() {
                store.discard_task(id);
                return Err(error);
            }
            Ok(task)
        });
        let task = recorded.await??;
        self.times.begin(task.id);
        Ok(Arc::new(task))
    }
}

/// Loads the tasks and ends those that an earlier agent left unfinished.
fn recover(store: &mut Store, now_ns: u64) -> Result<Vec<Task>, StoreError> {
    let (mut tasks, damaged) = store.tasks()?;
    if damaged > 0 {
        tracing::warn!(
            damaged,
            "some task records cannot be read and are not shown"
        );
    }
    for task in &mut tasks {
        match task.state {
            TaskState::Finished | TaskState::Failed { .. } | TaskState::Cancelled => continue,
            TaskState::Queued => never_started(task, now_ns),
            TaskState::Running => {
                let segments = store.segments(task.id, Stream::Profile);
                let end_ns = segments
                    .iter()
                    .map(|(_, segment)| segment.end_unix_ns)
                    .max();
                task.samples = segments.iter().map(|(_, segment)| segment.samples).sum();
                task.ended_ns = Some(end_ns.or(task.started_ns).unwrap_or(now_ns));
                task.state = TaskState::Failed {
                    reason: AGENT_STOPPED.to_owned(),
                };
            }
        }
        store.put_task(task)?;
    }
    store.commit()?;
    Ok(tasks)
}

fn never_started(task: &mut Task, now_ns: u64) {
    task.state = TaskState::Failed {
        reason: NEVER_STARTED.to_owned(),
    };
    task.ended_ns = Some(now_ns);
}
