//! Tables of edges, live. Each table holds everything that the earlier ones held, so a listener that is
//! slow misses tables and no counts.

use std::{convert::Infallible, sync::Arc};

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, stream};
use profiler_model::{self as model, TaskId};
use tokio::sync::{OwnedSemaphorePermit, broadcast, broadcast::error::RecvError, watch};

use super::{
    dto::{NetworkEdges, TaskEdges},
    error::ApiError,
    state::{ApiState, blocking},
    stream::PING,
};
use profiler_engine::{
    network_watch::WatchedEdges,
    task::{Engine, TaskChange},
};

/// What answers with tables until there are no more.
pub(super) trait Tables: Send + 'static {
    fn next(&mut self) -> impl Future<Output = Option<Event>> + Send;
}

/// The stream of an answer.
pub(super) fn answer<T: Tables>(
    tables: T,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<T>> {
    let events = stream::unfold(tables, |mut tables| async move {
        let event = tables.next().await?;
        Some((Ok(event), tables))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(PING).text("ping"))
}

/// A table may have thousands of edges: it is written off the reactor.
async fn event<T: serde::Serialize>(convert: impl FnOnce() -> T + Send + 'static) -> Option<Event> {
    let text = blocking(move || serde_json::to_string(&convert())).await;
    match text {
        Ok(Ok(text)) => Some(Event::default().event("edges").data(text)),
        Ok(Err(error)) => {
            tracing::error!(%error, "encode edges");
            None
        }
        Err(error) => {
            tracing::error!(?error, "encode edges");
            None
        }
    }
}

/// The tables of one task, to its end.
pub(super) struct TaskTables {
    state: ApiState,
    id: TaskId,
    changes: broadcast::Receiver<TaskChange>,
    sent: Option<Arc<model::EdgeTable>>,
    over: bool,
    _place: OwnedSemaphorePermit,
}

impl TaskTables {
    pub(super) fn new(state: ApiState, id: TaskId) -> Result<Self, ApiError> {
        // Before the task is looked at, so that its end is not missed.
        let changes = state.parts.engine.subscribe();
        state.parts.engine.get(id)?;
        Ok(Self {
            id,
            changes,
            sent: None,
            over: false,
            _place: state.live.place()?,
            state,
        })
    }

    /// The task with its next table, which is the last one when the task has ended.
    async fn table(&mut self) -> Option<(Arc<model::Task>, Option<Arc<model::EdgeTable>>)> {
        let engine: Engine = self.state.parts.engine.clone();
        let shutdown = self.state.parts.shutdown.clone();
        loop {
            let task = engine.get(self.id).ok()?;
            if task.state.is_final() {
                return Some((task, engine.edges(self.id).await.ok()?));
            }
            let is_new = |newest: &Arc<model::EdgeTable>| {
                let sent = self.sent.as_ref();
                sent.is_none_or(|sent| !Arc::ptr_eq(sent, newest))
            };
            if let Some(newest) = engine.newest_edges(self.id).filter(is_new) {
                return Some((task, Some(newest)));
            }
            loop {
                let change = tokio::select! {
                    () = shutdown.cancelled() => return None,
                    change = self.changes.recv() => change,
                };
                match change {
                    Ok(TaskChange::Updated(task)) if task.id != self.id => {}
                    Ok(TaskChange::Deleted(id)) if id != self.id => {}
                    // What was missed does not matter: the state is read again.
                    Ok(_) | Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return None,
                }
            }
        }
    }
}

impl Tables for TaskTables {
    async fn next(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        let (task, table) = self.table().await?;
        self.over = task.state.is_final();
        self.sent.clone_from(&table);
        let names = self.state.parts.table.names().clone();
        event(move || TaskEdges::new(&task, table.as_deref(), &names)).await
    }
}

/// The tables of the always-on collection, until the agent stops.
pub(super) struct NodeTables {
    state: ApiState,
    watched: watch::Receiver<WatchedEdges>,
    _place: OwnedSemaphorePermit,
}

impl NodeTables {
    pub(super) fn new(state: ApiState) -> Result<Self, ApiError> {
        let mut watched = state.parts.network.follow().ok_or(ApiError::NetworkOff)?;
        // What is there already is the first event.
        watched.mark_changed();
        Ok(Self {
            watched,
            _place: state.live.place()?,
            state,
        })
    }
}

impl Tables for NodeTables {
    async fn next(&mut self) -> Option<Event> {
        let shutdown = &self.state.parts.shutdown;
        tokio::select! {
            () = shutdown.cancelled() => return None,
            changed = self.watched.changed() => changed.ok()?,
        }
        let watched = self.watched.borrow_and_update().clone();
        let names = self.state.parts.table.names().clone();
        event(move || NetworkEdges::new(&watched, &names)).await
    }
}
