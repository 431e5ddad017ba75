//! What the agent holds in the kernel, what the kernel allows, and the configuration in force.

use std::time::Duration;

use axum::{Json, extract::State};

use crate::api::{
    dto::{FeatureList, KernelObjectList, LendStatistics, Problem, Setting, SettingList},
    error::ApiError,
    extract::JsonBody,
    parameters::Given,
    state::{ApiState, blocking},
};
use profiler_recorder::features;

/// Longest time for which a request turns the statistics on.
const MOST_SECONDS: u64 = 600;

pub(super) async fn kernel_list(state: &ApiState) -> Result<KernelObjectList, ApiError> {
    let shared = state.clone();
    let objects = blocking(move || shared.parts.inspection.kernel_objects())
        .await?
        .map_err(|error| ApiError::internal(format!("read /proc/self/fd: {error}")))?;
    let statistics = state.parts.inspection.statistics.state();
    Ok(KernelObjectList::new(
        &objects.programs,
        &objects.maps,
        statistics,
    ))
}

pub(super) async fn feature_list() -> Result<FeatureList, ApiError> {
    let found = blocking(features::examine).await?;
    Ok(FeatureList {
        items: found.into_iter().map(Into::into).collect(),
    })
}

/// Programs and maps of the agent in the kernel.
#[utoipa::path(
    get, path = "/api/v1/self/kernel", tag = "agent",
    responses((status = 200, body = KernelObjectList), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn kernel(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<KernelObjectList>, ApiError> {
    Ok(Json(kernel_list(&state).await?))
}

/// Lets the kernel measure runs of BPF programs for a while, which costs some 20 ns a run.
#[utoipa::path(
    post, path = "/api/v1/self/kernel/statistics", tag = "agent",
    request_body = LendStatistics,
    responses(
        (status = 200, body = KernelObjectList),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`statistics_refused`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`")
    )
)]
pub(in crate::api) async fn lend_statistics(
    State(state): State<ApiState>,
    _: Given<()>,
    JsonBody(body): JsonBody<LendStatistics>,
) -> Result<Json<KernelObjectList>, ApiError> {
    if !(1..=MOST_SECONDS).contains(&body.seconds) {
        return Err(ApiError::invalid_field(
            "seconds",
            format!(
                "seconds must be between 1 and {MOST_SECONDS}, got {}",
                body.seconds
            ),
        ));
    }
    state
        .parts
        .inspection
        .statistics
        .lend(Duration::from_secs(body.seconds))
        .map_err(|error| ApiError::StatisticsRefused {
            detail: format!("turn on the kernel's BPF statistics: {error}"),
        })?;
    Ok(Json(kernel_list(&state).await?))
}

/// What this kernel and these privileges allow.
#[utoipa::path(
    get, path = "/api/v1/features", tag = "agent",
    responses((status = 200, body = FeatureList), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn feature_checks(_: Given<()>) -> Result<Json<FeatureList>, ApiError> {
    Ok(Json(feature_list().await?))
}

/// The configuration in force, without secrets.
#[utoipa::path(
    get, path = "/api/v1/config", tag = "agent",
    responses((status = 200, body = SettingList), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn configuration(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<SettingList>, ApiError> {
    let setting = |(name, value): &(&'static str, String)| Setting {
        name,
        value: value.clone(),
    };
    let items = state.parts.inspection.configuration.iter().map(setting);
    Ok(Json(SettingList {
        items: items.collect(),
    }))
}
