//! Profiling tasks: create, run, stop, delete; progress; retention.

mod validate;

mod edge_steps;
mod engine;
mod import;
mod newest;
mod observed;
mod registry;
mod result;
mod retention;
mod run;
mod target_names;
mod times;
mod upkeep;
mod whole_table;

#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc};

use profiler_model::{Task, TaskId};

use crate::store::Refusal;
use profiler_memory::MemoryShort;

pub use engine::Engine;
pub use retention::Retention;
pub use validate::{
    MAX_CGROUP_BYTES, MAX_COMM_BYTES, MAX_CONTAINER_BYTES, MAX_PIDS, MIN_CONTAINER_BYTES, Names,
    validate, validate_with,
};

/// Limits of the engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub data_dir: PathBuf,
    /// Tasks that run at once; more are queued.
    pub max_running: usize,
    /// Tasks that may be queued; one more is refused.
    pub max_queued: usize,
    pub retention: Retention,
}

/// What subscribers hear of.
#[derive(Clone, Debug)]
pub enum TaskChange {
    /// A new task, or any field of one changed (state, progress, samples).
    Updated(Arc<Task>),
    Deleted(TaskId),
}

#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The specification is out of bounds; `field` is its name in the API.
    #[error("{detail}")]
    InvalidSpec { field: &'static str, detail: String },
    #[error("no task {id}")]
    NotFound { id: TaskId },
    #[error("too many tasks: {running} running and {queued} queued; stop one or wait")]
    TooMany { running: usize, queued: usize },
    #[error("task {id} is {state}: stop it before deleting it")]
    NotFinal { id: TaskId, state: &'static str },
    #[error(transparent)]
    MemoryShort(#[from] MemoryShort),
    /// This agent starts no tasks; the text says why.
    #[error("{0}")]
    Refused(String),
    /// A result is too large to be kept.
    #[error("{0}")]
    NotStored(String),
    #[error("store: {0}")]
    Store(String),
    /// The disk of the data directory has no room left.
    #[error("store: {0}")]
    StoreFull(String),
    /// The data directory cannot be written.
    #[error("store: {0}")]
    StoreReadOnly(String),
}

impl From<crate::store::StoreError> for TaskError {
    fn from(error: crate::store::StoreError) -> Self {
        let text = error.to_string();
        match error.refusal() {
            Some(Refusal::Full) => Self::StoreFull(text),
            Some(Refusal::ReadOnly) => Self::StoreReadOnly(text),
            None => Self::Store(text),
        }
    }
}
