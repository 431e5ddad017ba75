//! Server-sent events.

use profiler_model::{self as model, ProcessKey};
use serde::Serialize;
use utoipa::ToSchema;

use super::pods::PodReading;

/// Event `task_deleted`.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct TaskDeletedEvent {
    pub(in crate::api) id: String,
}

/// Event `process`.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ProcessEvent {
    pub(in crate::api) change: ProcessChange,
    id: String,
    pid: u32,
    #[schema(required)]
    comm: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum ProcessChange {
    Started,
    Exited,
}

impl ProcessEvent {
    pub(in crate::api) fn started(process: &model::Process) -> Self {
        Self {
            change: ProcessChange::Started,
            id: process.key.to_string(),
            pid: process.key.pid,
            comm: Some(process.comm.clone()),
        }
    }

    pub(in crate::api) fn exited(key: ProcessKey) -> Self {
        Self {
            change: ProcessChange::Exited,
            id: key.to_string(),
            pid: key.pid,
            comm: None,
        }
    }
}

/// Event `processes`.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ProcessesEvent {
    pub(in crate::api) items: Vec<ProcessReading>,
    /// Busiest first, as in the list of pods.
    pub(in crate::api) pods: Vec<PodReading>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ProcessReading {
    id: String,
    #[schema(required)]
    cpu_percent: Option<f64>,
    rss_bytes: u64,
    threads: u32,
}

impl From<&model::Process> for ProcessReading {
    fn from(process: &model::Process) -> Self {
        Self {
            id: process.key.to_string(),
            cpu_percent: process.cpu_percent,
            rss_bytes: process.rss_bytes,
            threads: process.threads,
        }
    }
}

/// Event `lagged`: the reader was too slow.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct LaggedEvent {
    /// Events that were not sent.
    pub(in crate::api) missed: u64,
}
