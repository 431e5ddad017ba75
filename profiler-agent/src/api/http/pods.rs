//! Pods of the node, put together from their processes.

use axum::{Json, extract::State};
use profiler_host::process::pods;

use super::processes::MAX_AGE;
use crate::api::{
    dto::{PodList, Problem},
    error::ApiError,
    parameters::Given,
    state::ApiState,
};

/// Lists pods, busiest first: network namespaces, with the names that Kubernetes or the runtime has for them.
#[utoipa::path(
    get, path = "/api/v1/pods", tag = "processes",
    responses((status = 200, body = PodList), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn list(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<PodList>, ApiError> {
    state.refresh_processes(MAX_AGE).await?;
    Ok(Json(PodList::new(&pods(
        &state.parts.table.snapshot(),
        state.parts.table.names(),
    ))))
}
