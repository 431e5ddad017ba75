//! Results of network tasks.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};

use super::tasks::task_id;
use crate::api::{
    dto::{EdgeTable, Problem},
    error::ApiError,
    extract::Query,
    state::ApiState,
};

/// Connections between processes so far, with what both ends measured.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/edges", tag = "network",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = EdgeTable),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`")
    )
)]
pub(in crate::api) async fn edges(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
) -> Result<Json<EdgeTable>, ApiError> {
    query.only(&[])?;
    let table = state.parts.engine.edges(task_id(id)?).await?;
    Ok(Json(EdgeTable::from(&table)))
}
