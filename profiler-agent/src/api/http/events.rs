//! Server-sent events.

use std::convert::Infallible;

use axum::{
    extract::State,
    response::sse::{Event, Sse},
};
use futures_util::Stream;

use crate::api::{dto::Problem, error::ApiError, parameters::Given, state::ApiState};

/// Live updates: `task` (Task), `task_deleted`, `process`, `processes` and `self` (`AgentSelf`, every
/// 2 s), `lagged` when the reader was too slow, and a comment after 2 s of silence.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "agent",
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`overloaded`, `shutting_down`")
    )
)]
pub(in crate::api) async fn events(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, ApiError> {
    if state.is_shutting_down() {
        return Err(ApiError::ShuttingDown);
    }
    state.live.listen(state.parts.shutdown.clone())
}
