//! How good a result is.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use profiler_analysis::render::quality;

use super::{
    profiles::{SelectionParameters, read},
    tasks::task_id,
};
use crate::api::{
    dto::{Problem, ProfileQuality},
    error::ApiError,
    parameters::Given,
    state::{ApiState, blocking},
};

/// Says how many frames of the result so far have names, and from where.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/quality", tag = "profiles",
    params(
        ("id" = String, Path),
        SelectionParameters
    ),
    responses(
        (status = 200, body = ProfileQuality),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_profile`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`")
    )
)]
pub(in crate::api) async fn quality(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    Given(selection): Given<SelectionParameters>,
) -> Result<Json<ProfileQuality>, ApiError> {
    let selection = selection.selection("")?;
    let profile = read(&state, task_id(id)?, selection).await?;
    let names = blocking(move || quality::names(&profile)).await?;
    Ok(Json(names.into()))
}
