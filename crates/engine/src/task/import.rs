//! A profile from a file becomes a task that has ended.

use std::sync::Arc;

use profiler_analysis::import::Imported;
use profiler_model::{
    Clock, ImportedProfile, Losses, StackQuality, Task, TaskId, TaskOrigin, TaskState, WaitCounts,
};

use super::{
    TaskError,
    engine::{Engine, Inner},
};
use crate::store::{
    Append, SegmentKey, StoreError, Stream,
    codec::{CodecError, Density, encode_profile},
};

impl Engine {
    /// Stores an imported profile and announces its task.
    pub async fn import(&self, imported: Imported) -> Result<Arc<Task>, TaskError> {
        let inner = Arc::clone(self.inner());
        // On a task of its own, so that a caller that goes away leaves nothing half done.
        let stored = tokio::spawn(async move { inner.store_import(imported).await });
        stored
            .await
            .map_err(|error| TaskError::Store(error.to_string()))?
    }
}

impl Inner {
    async fn store_import(&self, imported: Imported) -> Result<Arc<Task>, TaskError> {
        let now_ns = self.now_ns();
        let encoded = tokio::task::spawn_blocking(move || {
            let bytes = encode_profile(&imported.profile, Density::Dense);
            bytes.map(|bytes| (bytes, imported))
        })
        .await
        .map_err(|error| TaskError::Store(error.to_string()))?;
        let (bytes, imported) = encoded.map_err(|error| match error {
            CodecError::TooLarge(_) => TaskError::NotStored(
                "the profile is larger than what is stored of a task".to_owned(),
            ),
            other => TaskError::Store(other.to_string()),
        })?;
        let stored = self.store.run(move |store| {
            let mut task = described(imported, now_ns);
            task.id = store.new_task_id();
            let kept = store.append(Append {
                key: SegmentKey {
                    task: task.id,
                    stream: Stream::Profile,
                    segment: 0,
                },
                bytes,
                from_ns: 0,
                to_ns: u64::MAX,
                end_unix_ns: now_ns,
                samples: task.samples,
            });
            if !kept {
                return Ok(None);
            }
            store.put_task(&task)?;
            if let Err(error) = store.commit() {
                store.discard_task(task.id);
                return Err(error);
            }
            Ok::<_, StoreError>(Some(task))
        });
        let Some(task) = stored.await?? else {
            return Err(TaskError::NotStored(
                "too much waits to be written to the disk; try again".to_owned(),
            ));
        };
        self.times.begin(task.id);
        Ok(self.registry.add_final(task))
    }
}

fn described(imported: Imported, now_ns: u64) -> Task {
    let Imported {
        profile,
        file,
        began_ns,
        duration_ns,
        frequency_hz,
        notes,
    } = imported;
    Task {
        // The store gives the number.
        id: TaskId(0),
        origin: TaskOrigin::Imported(ImportedProfile {
            file,
            duration_s: duration_ns.map(|ns| ns.div_ceil(1_000_000_000)),
            frequency_hz,
        }),
        target_names: Vec::new(),
        state: TaskState::Finished,
        created_ns: now_ns,
        started_ns: began_ns,
        ended_ns: began_ns
            .zip(duration_ns)
            .map(|(began, length)| began.saturating_add(length)),
        effective_frequency_hz: frequency_hz,
        clock: Some(profile.clock).filter(|clock| *clock != Clock::Unknown),
        samples: profile.total_count(),
        losses: Losses::default(),
        stack_quality: StackQuality::default(),
        waits: WaitCounts::default(),
        coverage: None,
        group: None,
        notes,
    }
}
