//! Event loops of a task: how long threads stay away from epoll, and what held them.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use profiler_analysis::render::event_loop::explained;
use profiler_model::{EventLoopTable, LoopRules, Selection};

use super::{profiles::read, tasks::task_id};
use crate::api::{
    dto::{EventLoop, Problem},
    error::ApiError,
    parameters::{Given, parameters},
    state::{ApiState, blocking},
};

/// Stalls in one answer.
const MAX_STALLS: usize = 200;

parameters! {
    pub(in crate::api) struct LoopParameters {
        /// Keep these processes; may be repeated
        pid: Option<Vec<u32>> = "a process number",
    }
}

/// How long the event loops of a task's threads stay away from epoll, and the stacks that held them
/// where that took longer than the task's threshold. The longest 200 stalls are listed.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/event-loop", tag = "profiles",
    params(
        ("id" = String, Path),
        LoopParameters
    ),
    responses(
        (status = 200, body = EventLoop),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_profile`, `no_event_loop`: the task does not watch event loops"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`")
    )
)]
pub(in crate::api) async fn event_loop(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    Given(LoopParameters { pid }): Given<LoopParameters>,
) -> Result<Json<EventLoop>, ApiError> {
    let pids = pid.unwrap_or_default();
    let id = task_id(id)?;
    let task = state.parts.engine.get(id)?;
    let Some(rules) = task.sample_spec().and_then(|spec| spec.event_loop) else {
        return Err(ApiError::NoEventLoop { id });
    };
    let found = state.parts.engine.event_loops(id).await?;
    let mut table = found.unwrap_or_else(|| nothing(rules));
    let selection = Selection {
        pids: pids.clone(),
        ..Selection::default()
    };
    let profile = read(&state, id, selection).await?;
    let answer = blocking(move || {
        table.keep(&pids);
        EventLoop::from(explained(table, &profile, MAX_STALLS))
    });
    Ok(Json(answer.await?))
}

/// What a task has that has not seen any loop yet.
fn nothing(rules: LoopRules) -> EventLoopTable {
    EventLoopTable {
        threshold_ms: rules.threshold_ms,
        ..EventLoopTable::default()
    }
}
