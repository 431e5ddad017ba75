//! Liveness, readiness and metrics.

use axum::{
    Json,
    extract::State,
    http::{HeaderName, header},
};

use crate::api::{
    dto::{Health, Problem, Readiness},
    error::ApiError,
    metrics,
    parameters::Given,
    state::ApiState,
};
use profiler_memory::{Ceiling, Stage};

/// Says that the agent answers. Needs no token.
#[utoipa::path(
    get, path = "/healthz", tag = "agent", security(()),
    responses((status = 200, body = Health))
)]
pub(in crate::api) async fn healthz(_: Given<()>) -> Result<Json<Health>, ApiError> {
    Ok(Json(Health { status: "ok" }))
}

/// Says whether the agent can profile: not while it stops, nor when privileges or the kernel let it
/// load no program, nor while the disk of the data directory takes nothing or the agent's memory is near its ceiling.
/// Needs no token.
#[utoipa::path(
    get, path = "/readyz", tag = "agent", security(()),
    responses((status = 200, body = Readiness), (status = 503, body = Problem, content_type = "application/problem+json", description = "`not_ready`, `cannot_store`, `memory_short`, `shutting_down`"))
)]
pub(in crate::api) async fn readyz(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<Readiness>, ApiError> {
    if state.is_shutting_down() {
        return Err(ApiError::ShuttingDown);
    }
    if Ceiling::own().stage() >= Stage::Refusing {
        // Not how much: the caller has shown no token.
        return Err(ApiError::MemoryShort {
            detail: "the agent's memory is near its ceiling: no task is started".to_owned(),
        });
    }
    if !state.parts.can_profile && !state.parts.demo_data {
        return Err(ApiError::NotReady);
    }
    if state.parts.engine.store_refuses() {
        // Not why: the caller has shown no token.
        return Err(ApiError::CannotStore {
            detail: "the data directory cannot be written; results wait in memory".to_owned(),
        });
    }
    Ok(Json(Readiness { status: "ready" }))
}

/// Prometheus metrics as text.
#[utoipa::path(
    get, path = "/metrics", tag = "agent",
    responses(
        (status = 200, body = String, content_type = "application/openmetrics-text"),
        (status = 401, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::api) async fn metrics(
    State(state): State<ApiState>,
) -> Result<([(HeaderName, &'static str); 1], String), ApiError> {
    Ok((
        [(header::CONTENT_TYPE, metrics::MEDIA_TYPE)],
        metrics::render(&state).await?,
    ))
}
