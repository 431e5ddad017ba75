//! What the agent holds in the kernel, what the kernel allows, and the configuration in force.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use axum::{Json, extract::State};

use crate::api::{
    dto::{
        FeatureList, KernelObjectList, MeasureRuns, MeasuredRuns, Problem, Setting, SettingList,
        StatisticsBy,
    },
    error::ApiError,
    extract::JsonBody,
    inspection::KernelObjects,
    parameters::Given,
    state::{ApiState, blocking},
};
use profiler_recorder::{bpf::machine_keeps_statistics, features};

/// Entries of maps are counted at most so often, but for measurements.
const KERNEL_AGE: Duration = Duration::from_secs(1);
/// Shortest and longest time for which a request measures, in milliseconds.
const DURATION_MS: RangeInclusive<u64> = 100..=10_000;

pub(super) async fn kernel_list(state: &ApiState) -> Result<KernelObjectList, ApiError> {
    let objects = kernel_objects(state, KERNEL_AGE).await?;
    let by = statistics_by(state);
    Ok(KernelObjectList::new(&objects.programs, &objects.maps, by))
}

async fn kernel_objects(state: &ApiState, age: Duration) -> Result<Arc<KernelObjects>, ApiError> {
    let state = state.clone();
    blocking(move || state.parts.inspection.kernel_objects(age))
        .await?
        .map_err(|error| ApiError::internal(format!("read /proc/self/fd: {error}")))
}

/// What keeps the statistics on, whatever requests do.
fn statistics_by(state: &ApiState) -> Option<StatisticsBy> {
    if state.parts.inspection.statistics.always {
        Some(StatisticsBy::Agent)
    } else {
        machine_keeps_statistics().then_some(StatisticsBy::Kernel)
    }
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

/// Measures runs of BPF programs for a while, which costs some 20 ns a run, and answers then.
#[utoipa::path(
    post, path = "/api/v1/self/kernel/statistics", tag = "agent",
    request_body = MeasureRuns,
    responses(
        (status = 200, body = MeasuredRuns),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`statistics_refused`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`")
    )
)]
pub(in crate::api) async fn measure_runs(
    State(state): State<ApiState>,
    _: Given<()>,
    JsonBody(MeasureRuns { duration_ms }): JsonBody<MeasureRuns>,
) -> Result<Json<MeasuredRuns>, ApiError> {
    if !DURATION_MS.contains(&duration_ms) {
        return Err(ApiError::invalid_field(
            "duration_ms",
            format!(
                "duration_ms must be between {} and {}, got {duration_ms}",
                DURATION_MS.start(),
                DURATION_MS.end()
            ),
        ));
    }
    let enabled = (state.parts.inspection.statistics.enable)().map_err(|error| {
        ApiError::StatisticsRefused {
            detail: format!("turn on the kernel's BPF statistics: {error}"),
        }
    })?;
    let before = kernel_objects(&state, Duration::ZERO).await?;
    tokio::time::sleep(Duration::from_millis(duration_ms)).await;
    let after = kernel_objects(&state, Duration::ZERO).await?;
    drop(enabled);
    let by = statistics_by(&state).unwrap_or(StatisticsBy::Request);
    let list =
        |objects: &KernelObjects| KernelObjectList::new(&objects.programs, &objects.maps, Some(by));
    let elapsed = after.at.saturating_duration_since(before.at);
    Ok(Json(MeasuredRuns {
        before: list(&before),
        after: list(&after),
        elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
    }))
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
