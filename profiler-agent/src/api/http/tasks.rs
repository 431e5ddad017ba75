//! Profiling tasks.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderName, StatusCode, header},
};
use profiler_model::{TaskId, TaskSpec};

use crate::{
    api::{
        dto::{CreateTask, Problem, Task, TaskList},
        error::ApiError,
        extract::JsonBody,
        parameters::{Given, parameters},
        state::ApiState,
    },
    config::{Allowance, CapturePolicy},
};

/// The id in a path. What is not a number names no task.
pub(super) fn task_id(id: Result<Path<String>, PathRejection>) -> Result<TaskId, ApiError> {
    let Path(text) = id.map_err(|error| ApiError::not_found(error.body_text()))?;
    // Only the canonical form, so that a task has one address.
    let number = text
        .parse()
        .ok()
        .filter(|number: &u64| number.to_string() == text);
    number
        .map(TaskId)
        .ok_or_else(|| ApiError::not_found(format!("no task {text}")))
}

parameters! {
    pub(in crate::api) struct TaskParameters {
        /// Only the tasks of this group
        group: Option<String> = "a name",
    }
}

/// Lists tasks, newest first.
#[utoipa::path(
    get, path = "/api/v1/tasks", tag = "tasks",
    params(TaskParameters),
    responses((status = 200, body = TaskList), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn list(
    State(state): State<ApiState>,
    Given(TaskParameters { group }): Given<TaskParameters>,
) -> Result<Json<TaskList>, ApiError> {
    let items: Vec<_> = state
        .parts
        .engine
        .list()
        .iter()
        .filter(|task| group.is_none() || task.group == group)
        .map(|task| state.shown(task))
        .collect();
    let total = items.len();
    Ok(Json(TaskList { items, total }))
}

/// Starts a task.
#[utoipa::path(
    post, path = "/api/v1/tasks", tag = "tasks",
    request_body = CreateTask,
    responses(
        (status = 201, body = Task, headers(("Location" = String, description = "Address of the task"))),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "`malformed_json`"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "`tls_capture_not_allowed`, `bodies_not_allowed`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`tasks_refused`"),
        (status = 413, body = Problem, content_type = "application/problem+json", description = "`body_too_large`"),
        (status = 415, body = Problem, content_type = "application/problem+json", description = "`unsupported_media_type`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`"),
        (status = 429, body = Problem, content_type = "application/problem+json", description = "`too_many_tasks`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`shutting_down`, `memory_short`, `cannot_store`"),
        (status = 507, body = Problem, content_type = "application/problem+json", description = "`disk_full`")
    )
)]
pub(in crate::api) async fn create(
    State(state): State<ApiState>,
    _: Given<()>,
    JsonBody(body): JsonBody<CreateTask>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Task>), ApiError> {
    if state.is_shutting_down() {
        return Err(ApiError::ShuttingDown);
    }
    let group = body.group.clone();
    let spec = body
        .into_spec()
        .map_err(|(field, detail)| ApiError::invalid_field(field, detail))?;
    let wanted = allowed(&spec, state.parts.capture)?;
    let task = state.parts.engine.create_in(spec, group).await?;
    if let Some(wanted) = wanted {
        tracing::info!(task = %task.id, %wanted, "a task of the API looks into payload");
    }
    let location = [(header::LOCATION, format!("/api/v1/tasks/{}", task.id))];
    Ok((StatusCode::CREATED, location, Json(state.shown(&task))))
}

/// What of payload the task looks at beyond what goes over sockets as it is, when that is allowed.
fn allowed(spec: &TaskSpec, policy: CapturePolicy) -> Result<Option<&'static str>, ApiError> {
    let Some(options) = spec.requests() else {
        return Ok(None);
    };
    if options.tls && policy.tls == Allowance::Refused {
        return Err(ApiError::TlsCaptureNotAllowed);
    }
    if options.bodies && policy.bodies == Allowance::Refused {
        return Err(ApiError::BodiesNotAllowed);
    }
    Ok(match (options.tls, options.bodies) {
        (false, false) => None,
        (true, false) => Some("plaintext of TLS libraries"),
        (false, true) => Some("bodies"),
        (true, true) => Some("plaintext of TLS libraries, with bodies"),
    })
}

/// Shows a task.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}", tag = "tasks",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Task),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`")
    )
)]
pub(in crate::api) async fn show(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    _: Given<()>,
) -> Result<Json<Task>, ApiError> {
    let task = state.parts.engine.get(task_id(id)?)?;
    Ok(Json(state.shown(&task)))
}

/// Stops a task and keeps its result; a task that has ended stays as it is.
#[utoipa::path(
    post, path = "/api/v1/tasks/{id}/stop", tag = "tasks",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Task),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`")
    )
)]
pub(in crate::api) async fn stop(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    _: Given<()>,
) -> Result<Json<Task>, ApiError> {
    let task = state.parts.engine.stop(task_id(id)?).await?;
    Ok(Json(state.shown(&task)))
}

/// Deletes a task that has ended, with its result.
#[utoipa::path(
    delete, path = "/api/v1/tasks/{id}", tag = "tasks",
    params(("id" = String, Path)),
    responses(
        (status = 204, description = "Deleted"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`task_not_final`")
    )
)]
pub(in crate::api) async fn delete(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    _: Given<()>,
) -> Result<StatusCode, ApiError> {
    state.parts.engine.delete(task_id(id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
