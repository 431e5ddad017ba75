//! The single connections of an edge: of network tasks, and of the always-on collection.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use profiler_model::{EdgeId, EdgeTable};

use super::tasks::task_id;
use crate::api::{
    dto::{EdgeConnections, Problem},
    error::ApiError,
    parameters::Given,
    state::{ApiState, blocking},
};

/// The open connections of an edge with most bytes, while the task runs.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/edges/{edge}/connections", tag = "network",
    params(
        ("id" = String, Path),
        ("edge" = String, Path, description = "`id` of the edge")
    ),
    responses(
        (status = 200, body = EdgeConnections),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`")
    )
)]
pub(in crate::api) async fn task_edge_connections(
    State(state): State<ApiState>,
    path: Result<Path<(String, String)>, PathRejection>,
    _: Given<()>,
) -> Result<Json<EdgeConnections>, ApiError> {
    let Path((task, edge)) = path.map_err(|error| ApiError::not_found(error.body_text()))?;
    let task = task_id(Ok(Path(task)))?;
    let engine = &state.parts.engine;
    let is_live = !engine.get(task)?.state.is_final();
    let table = engine.edges(task).await?.unwrap_or_default();
    answer(&edge, table, is_live).await
}

/// The open connections of an edge with most bytes; needs `serve --network always`.
#[utoipa::path(
    get, path = "/api/v1/network/edges/{edge}/connections", tag = "network",
    params(("edge" = String, Path, description = "`id` of the edge")),
    responses(
        (status = 200, body = EdgeConnections),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`network_off`")
    )
)]
pub(in crate::api) async fn node_edge_connections(
    State(state): State<ApiState>,
    path: Result<Path<String>, PathRejection>,
    _: Given<()>,
) -> Result<Json<EdgeConnections>, ApiError> {
    let Path(edge) = path.map_err(|error| ApiError::not_found(error.body_text()))?;
    let watched = state.parts.network.newest().ok_or(ApiError::NetworkOff)?;
    answer(&edge, watched.table.unwrap_or_default(), true).await
}

async fn answer(
    edge: &str,
    table: Arc<EdgeTable>,
    is_live: bool,
) -> Result<Json<EdgeConnections>, ApiError> {
    let missing = || ApiError::not_found(format!("no edge {edge}"));
    let id: EdgeId = edge.parse().map_err(|()| missing())?;
    let answer = blocking(move || {
        let known = table.edges.iter().any(|found| EdgeId::of(&found.key) == id);
        known.then(|| EdgeConnections::new(id, &table, is_live))
    });
    answer.await?.map(Json).ok_or_else(missing)
}
