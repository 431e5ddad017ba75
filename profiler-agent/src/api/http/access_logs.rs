//! Access logs that Envoys send to the agent.

use axum::{Json, extract::State};
use profiler_model::{TaskState, access_log_status::AccessLogStatus};

use super::processes::MAX_AGE;
use crate::api::{
    dto::{Problem, TaskRequests, access_log_status},
    error::ApiError,
    parameters::Given,
    state::{ApiState, blocking},
};

/// Shows which Envoys send their access logs, how many entries have come, and how many are missing by the Envoys' own counts.
#[utoipa::path(
    get, path = "/api/v1/access-logs", tag = "network",
    responses((status = 200, body = AccessLogStatus), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn show(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<AccessLogStatus>, ApiError> {
    state.refresh_processes(MAX_AGE).await?;
    let (received, table) = (state.parts.access_logs.clone(), state.parts.table.clone());
    // There may be thousands of Envoys.
    let status = blocking(move || access_log_status(&received, &table)).await?;
    Ok(Json(status))
}

/// Requests of the last one to six minutes, or since the agent began, of all Envoys that send their access logs: in the form of a task
/// with `"source": ["access_log"]`.
#[utoipa::path(
    get, path = "/api/v1/access-logs/requests", tag = "network",
    responses(
        (status = 200, body = TaskRequests),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`access_logs_off`")
    )
)]
pub(in crate::api) async fn requests(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<TaskRequests>, ApiError> {
    let received = &state.parts.access_logs;
    if !received.logs.is_on() {
        return Err(ApiError::AccessLogsOff);
    }
    let (table, names) = (received.watch.newest(), state.parts.table.names().clone());
    let running = TaskState::Running;
    let answer = blocking(move || TaskRequests::new(&running, table.as_deref(), &names)).await?;
    Ok(Json(answer))
}
