//! Requests of a task.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use profiler_model::{TaskKind, TaskState};

use super::tasks::task_id;
use crate::api::{
    dto::{Problem, TaskRequests},
    error::ApiError,
    parameters::Given,
    state::{ApiState, blocking},
};

/// Requests between processes so far: operations with their counts and times, samples, and what could not be
/// told. What `profiler-agent requests --json` prints.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/requests", tag = "network",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = TaskRequests),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_requests`, `task_failed`")
    )
)]
pub(in crate::api) async fn requests(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    _: Given<()>,
) -> Result<Json<TaskRequests>, ApiError> {
    let id = task_id(id)?;
    let task = state.parts.engine.get(id)?;
    if task.kind() != Some(TaskKind::Requests) {
        return Err(ApiError::NoRequests { id });
    }
    let table = state.parts.engine.requests(id).await?;
    if let (TaskState::Failed { reason }, None) = (&task.state, &table) {
        return Err(ApiError::TaskFailed {
            id,
            reason: reason.clone(),
        });
    }
    let names = state.parts.table.names().clone();
    let answer = blocking(move || TaskRequests::new(&task.state, table.as_deref(), &names)).await?;
    Ok(Json(answer))
}
