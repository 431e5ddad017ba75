//! Connections between processes: of network tasks, and of the always-on collection.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    response::sse::{Event, Sse},
};
use futures_util::Stream;
use profiler_model::{self as model, TaskId, TaskState};

use super::tasks::task_id;
use crate::api::{
    dto::{NetworkEdges, Problem, TaskEdges},
    edge_stream::{NodeTables, TaskTables, answer},
    error::ApiError,
    parameters::Given,
    state::{ApiState, blocking},
};

/// Connections between processes so far, with what both ends measured, and the state of the task: a table
/// without edges of a task that has not begun says nothing about connections.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/edges", tag = "network",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = TaskEdges),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_edges`, `task_failed`")
    )
)]
pub(in crate::api) async fn edges(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    _: Given<()>,
) -> Result<Json<TaskEdges>, ApiError> {
    let (task, table) = result(&state, task_id(id)?).await?;
    let names = state.parts.table.names().clone();
    let answer = blocking(move || TaskEdges::new(&task, table.as_deref(), &names)).await?;
    Ok(Json(answer))
}

/// The task and its newest table. Refused when there will never be one.
async fn result(
    state: &ApiState,
    id: TaskId,
) -> Result<(Arc<model::Task>, Option<Arc<model::EdgeTable>>), ApiError> {
    let task = state.parts.engine.get(id)?;
    if !task.has_edges() {
        return Err(ApiError::NoEdges { id });
    }
    let table = state.parts.engine.edges(id).await?;
    match &task.state {
        TaskState::Failed { reason } if table.is_none() => Err(ApiError::TaskFailed {
            id,
            reason: reason.clone(),
        }),
        _ => Ok((task, table)),
    }
}

/// The same table, live: event `edges` (`TaskEdges`) with everything so far, about one a second. A slow
/// reader misses tables and no counts. Ends after the last table of the task.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/edges/events", tag = "network",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_edges`, `task_failed`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`overloaded`, `shutting_down`")
    )
)]
pub(in crate::api) async fn edge_events(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    _: Given<()>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, ApiError> {
    if state.is_shutting_down() {
        return Err(ApiError::ShuttingDown);
    }
    let id = task_id(id)?;
    result(&state, id).await?;
    Ok(answer(TaskTables::new(state, id)?))
}

/// Connections of the whole node since the agent started; needs `serve --network always`.
#[utoipa::path(
    get, path = "/api/v1/network/edges", tag = "network",
    responses(
        (status = 200, body = NetworkEdges),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`network_off`")
    )
)]
pub(in crate::api) async fn node_edges(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<NetworkEdges>, ApiError> {
    let watched = state.parts.network.newest().ok_or(ApiError::NetworkOff)?;
    let names = state.parts.table.names().clone();
    let table = blocking(move || NetworkEdges::new(&watched, &names)).await?;
    Ok(Json(table))
}

/// The same table, live: event `edges` (`NetworkEdges`) with everything so far, about one a second. A
/// slow reader misses tables and no counts.
#[utoipa::path(
    get, path = "/api/v1/network/edges/events", tag = "network",
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`network_off`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`overloaded`, `shutting_down`")
    )
)]
pub(in crate::api) async fn node_edge_events(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, ApiError> {
    if state.is_shutting_down() {
        return Err(ApiError::ShuttingDown);
    }
    Ok(answer(NodeTables::new(state)?))
}
