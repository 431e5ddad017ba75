//! Liveness and metrics.

use axum::{
    Json,
    extract::State,
    http::{HeaderName, header},
};

use crate::api::{
    dto::{Health, Problem},
    error::ApiError,
    extract::Query,
    metrics,
    state::ApiState,
};

/// Says that the agent answers.
#[utoipa::path(
    get, path = "/healthz", tag = "agent",
    responses((status = 200, body = Health), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn healthz(query: Query) -> Result<Json<Health>, ApiError> {
    query.only(&[])?;
    Ok(Json(Health { status: "ok" }))
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
