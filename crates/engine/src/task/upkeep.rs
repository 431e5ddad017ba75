//! What the engine does by itself: retention, tidying, and what a crash left to do.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use profiler_model::{LossKind, TaskId};

use crate::store::{SegmentKey, Store, StoreError, StoreHandle, Stream};

use super::{
    edge_steps,
    engine::Inner,
    registry::{WRITTEN_NOTE, add_notes},
    result::merge_segment,
    retention::{Removal, plan},
};

/// How often age and size of the store are looked at.
const INTERVAL: Duration = Duration::from_secs(30);
/// How often it is tried to write what the disk has refused.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// Retention and tidying, until the engine is gone.
pub(super) async fn maintain(engine: Weak<Inner>) {
    if let Some(inner) = engine.upgrade() {
        inner.merge_leftovers().await;
    }
    let mut looked: Option<Instant> = None;
    loop {
        match engine.upgrade() {
            Some(inner) if looked.is_none_or(|looked| looked.elapsed() >= INTERVAL) => {
                inner.retain().await;
                inner.tidy().await;
                looked = Some(Instant::now());
            }
            // Otherwise the agent might report for long that it cannot store, until the next write.
            Some(inner) if inner.store.refuses() => inner.try_again().await,
            Some(_) => {}
            None => return,
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

impl Inner {
    /// Removes what is too old or too much.
    pub(super) async fn retain(&self) {
        let tasks = self.registry.list();
        let retention = self.retention;
        let segments = match self.store.run(|store| store.all_segments()).await {
            Ok(segments) => segments,
            Err(StoreError::Closed) => return,
            Err(error) => return tracing::warn!(%error, "could not apply the retention limits"),
        };
        let age_ns = |task, end_ns| self.times.age_ns(task, end_ns);
        let removals = plan(&tasks, &segments, age_ns, retention);
        if removals.is_empty() {
            return;
        }
        let planned = self.store.run(move |store| remove(store, &removals));
        let removed = match planned.await.and_then(|removed| removed) {
            Ok(removed) => removed,
            Err(StoreError::Closed) => return,
            Err(error) => return tracing::warn!(%error, "could not apply the retention limits"),
        };
        for id in removed.tasks {
            self.registry.remove(id);
            self.times.forget(id);
        }
        for (id, samples) in removed.cut {
            let task = self.registry.update(id, |task| {
                task.samples = task.samples.saturating_sub(samples);
                add_notes(
                    task,
                    ["older minutes were removed by the retention limits".to_owned()],
                );
            });
            self.registry.announce(id);
            if let Some(task) = task
                && let Err(error) = self.put_task(task).await
            {
                tracing::warn!(task = %id, %error, "could not record what retention removed");
            }
        }
    }

    /// Goes on trying to write the result of a task that has ended. Until then the `waiting` blobs of it
    /// are among its losses.
    pub(super) fn write_later(self: &Arc<Self>, id: TaskId, waiting: u64) {
        self.unwritten.lock().insert(id, waiting);
        let engine = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(TRY_AGAIN).await;
                let Some(inner) = engine.upgrade() else {
                    return;
                };
                if let Ok(()) | Err(StoreError::Closed) = inner.write_waiting().await {
                    return;
                }
            }
        });
    }

    /// Writes everything that waits, and notes on tasks that had ended before that nothing is lost.
    pub(super) async fn write_waiting(&self) -> Result<(), StoreError> {
        self.store.run(Store::commit).await??;
        let written = {
            let mut unwritten = self.unwritten.lock();
            std::mem::take(&mut *unwritten)
        };
        for (id, waiting) in written {
            let task = self.registry.update(id, |task| {
                task.losses.take_back(LossKind::StoreWriteFailed, waiting);
                add_notes(task, [WRITTEN_NOTE.to_owned()]);
            });
            self.registry.announce(id);
            if let Some(task) = task {
                self.put_task(task).await?;
            }
        }
        Ok(())
    }

    /// Finds out whether the disk takes writes again.
    async fn try_again(&self) {
        match self
            .store
            .run(Store::try_again)
            .await
            .and_then(|tried| tried)
        {
            Ok(()) => tracing::info!("the data directory can be written again"),
            Err(error) => tracing::debug!(%error, "the data directory still cannot be written"),
        }
    }

    /// Writes what a failing disk left waiting, and gives free room back while nothing runs.
    async fn tidy(&self) {
        let idle = self.registry.is_idle();
        let tidied = self.store.run(move |store| {
            store.commit()?;
            if idle {
                store.compact_if_sparse()
            } else {
                Ok(false)
            }
        });
        match tidied.await.and_then(|tidied| tidied) {
            Ok(_) | Err(StoreError::Closed | StoreError::Failing { .. }) => {}
            Err(error) => tracing::warn!(%error, "could not tidy the store"),
        }
    }

    /// Rewrites segments that a crash left in small blobs.
    async fn merge_leftovers(&self) {
        let all = match self.store.run(|store| store.all_segments()).await {
            Ok(all) => all,
            Err(error) => return tracing::warn!(%error, "could not list segments"),
        };
        for (key, segment) in all {
            let is_final = self
                .registry
                .get(key.task)
                .is_ok_and(|task| task.state.is_final());
            if segment.blobs < 2 || !is_final {
                continue;
            }
            let store = self.store.clone();
            match tokio::task::spawn_blocking(move || merge_any(&store, key)).await {
                Ok(Ok(())) => {}
                Ok(Err(StoreError::Closed)) | Err(_) => return,
                Ok(Err(error)) => {
                    tracing::warn!(task = %key.task, %error, "could not merge a segment");
                }
            }
        }
    }
}

/// Rewrites the blobs of a segment as one, when its stream is a sequence. Blocks.
pub(super) fn merge_any(store: &StoreHandle, key: SegmentKey) -> Result<(), StoreError> {
    match key.stream {
        Stream::Profile => merge_segment(store, key),
        Stream::EdgeSteps => edge_steps::merge_segment(store, key),
        // One table in place of the one before, and one record.
        Stream::Edges | Stream::Requests | Stream::EventLoops | Stream::Observed => Ok(()),
    }
}

#[derive(Debug, Default)]
struct Removed {
    tasks: Vec<TaskId>,
    /// Tasks that lost minutes, with the number of samples in them.
    cut: Vec<(TaskId, u64)>,
}

fn remove(store: &mut Store, removals: &[Removal]) -> Result<Removed, StoreError> {
    let mut removed = Removed::default();
    let mut segments = Vec::new();
    for removal in removals {
        match removal {
            Removal::Task(id) => {
                store.remove_task(*id)?;
                removed.tasks.push(*id);
            }
            Removal::Segment(key) => segments.push(*key),
        }
    }
    if segments.is_empty() {
        return Ok(removed);
    }
    let cut: BTreeSet<TaskId> = segments.iter().map(|key| key.task).collect();
    for id in cut {
        let samples = store
            .segments(id, Stream::Profile)
            .iter()
            .filter(|(key, _)| segments.contains(key))
            .map(|(_, segment)| segment.samples)
            .sum();
        removed.cut.push((id, samples));
    }
    store.remove_segments(&segments)?;
    Ok(removed)
}
