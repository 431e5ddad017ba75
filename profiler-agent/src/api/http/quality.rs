//! How good a result is.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use profiler_analysis::render::quality;

use super::{
    profiles::{SELECTION, read, selection},
    tasks::task_id,
};
use crate::api::{
    dto::{Problem, ProfileQuality},
    error::ApiError,
    extract::Query,
    state::{ApiState, blocking},
};

/// Says how many frames of the result so far have names, and from where.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/quality", tag = "profiles",
    params(
        ("id" = String, Path),
        ("from" = Option<u64>, Query, description = "Milliseconds after the task's start"),
        ("to" = Option<u64>, Query, description = "Milliseconds after the task's start"),
        ("tid" = Option<Vec<u32>>, Query, description = "Keep these threads; may be repeated"),
        ("pid" = Option<Vec<u32>>, Query, description = "Keep these processes; may be repeated"),
        ("not_tid" = Option<Vec<u32>>, Query, description = "Leave these threads out; may be repeated")
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
    query: Query,
) -> Result<Json<ProfileQuality>, ApiError> {
    let selection = selection(&query.only(&SELECTION)?)?;
    let profile = read(&state, task_id(id)?, selection).await?;
    let names = blocking(move || quality::names(&profile)).await?;
    Ok(Json(names.into()))
}
