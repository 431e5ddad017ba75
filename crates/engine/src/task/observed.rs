//! What a check-up read beside its tasks: one record, kept and deleted with one of them.

use profiler_model::{CheckupRecord, TaskId};

use crate::store::{
    Append, SegmentKey, StoreHandle, Stream,
    codec::{Density, decode, encode},
};

use super::{Engine, TaskError};

fn key(task: TaskId) -> SegmentKey {
    SegmentKey {
        task,
        stream: Stream::Observed,
        segment: 0,
    }
}

impl Engine {
    /// Keeps a record with a task, for as long as the task is kept. Refused when the task is gone.
    pub async fn keep_observed(&self, id: TaskId, record: CheckupRecord) -> Result<(), TaskError> {
        self.get(id)?;
        let kept = self.inner().store.run(move |store| {
            let bytes = encode(&record, Stream::Observed, Density::Dense)
                .map_err(|error| TaskError::NotStored(error.to_string()))?;
            let observed = &record.observed;
            let kept = store.append(Append {
                key: key(id),
                bytes,
                from_ns: 0,
                to_ns: observed.to_ns.saturating_sub(observed.from_ns),
                end_unix_ns: observed.to_ns,
                samples: 0,
            });
            if !kept {
                let detail = "too much waits to be written".to_owned();
                return Err(TaskError::NotStored(detail));
            }
            Ok(store.commit()?)
        });
        kept.await?
    }

    /// The record that was kept with a task; `None` when there is none.
    pub async fn observed(&self, id: TaskId) -> Result<Option<CheckupRecord>, TaskError> {
        self.get(id)?;
        let store = self.inner().store.clone();
        let loaded = tokio::task::spawn_blocking(move || load(&store, id)).await;
        loaded.map_err(|error| TaskError::Store(error.to_string()))?
    }

    /// Which of these tasks have a record.
    pub async fn with_observed(&self, ids: Vec<TaskId>) -> Result<Vec<TaskId>, TaskError> {
        let found = self.inner().store.run(move |store| {
            let has = |id: &TaskId| !store.segments(*id, Stream::Observed).is_empty();
            ids.into_iter().filter(has).collect()
        });
        Ok(found.await?)
    }
}

fn load(store: &StoreHandle, id: TaskId) -> Result<Option<CheckupRecord>, TaskError> {
    let blobs = store.run_blocking(move |store| store.blobs(key(id)))??;
    let Some(newest) = blobs.last() else {
        return Ok(None);
    };
    decode(&newest.bytes, Stream::Observed)
        .map(Some)
        .map_err(|error| TaskError::NotStored(format!("what was observed cannot be read: {error}")))
}
