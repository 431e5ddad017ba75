//! One edge over time: of network tasks, and of the always-on collection.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use profiler_analysis::edge_series::SeriesCut;
use profiler_model::{EdgeId, EdgeTable};

use super::{profiles::MILLISECONDS, tasks::task_id};
use crate::api::{
    dto::{EdgeSeries, Problem},
    error::ApiError,
    parameters::{Given, parameters},
    state::{ApiState, blocking},
};

/// Steps of an answer, when nothing is said.
const STEPS: usize = 600;
/// Most steps of an answer.
const MAX_STEPS: usize = 3_600;

parameters! {
    pub(in crate::api) struct SeriesParameters {
        /// Milliseconds since counting began, which is the task's start, or `since_ns` of the node's edges; steps that begin earlier are whole
        from: Option<u64> = MILLISECONDS,
        /// Milliseconds since counting began; steps that end later are whole
        to: Option<u64> = MILLISECONDS,
        /// At most so many steps, up to 3600 (default 600): neighbours are added up
        steps: Option<usize> = "a number of steps",
    }
}

/// What an edge counted second by second; longer steps where `steps` do not suffice.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/edges/{edge}/series", tag = "network",
    params(
        ("id" = String, Path),
        ("edge" = String, Path, description = "`id` of the edge"),
        SeriesParameters
    ),
    responses(
        (status = 200, body = EdgeSeries),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`memory_short`")
    )
)]
pub(in crate::api) async fn task_edge_series(
    State(state): State<ApiState>,
    path: Result<Path<(String, String)>, PathRejection>,
    Given(parameters): Given<SeriesParameters>,
) -> Result<Json<EdgeSeries>, ApiError> {
    let Path((task, edge)) = path.map_err(|error| ApiError::not_found(error.body_text()))?;
    let task = task_id(Ok(Path(task)))?;
    let cut = cut(&edge, &parameters)?;
    // Every stored step of the range is read, with all of its edges.
    let _turn = state.render_turn().await?;
    let engine = &state.parts.engine;
    let series = engine.edge_series(task, cut).await?;
    let table = engine.edges(task).await?.unwrap_or_default();
    answer(edge, cut.edge, series, &table).await
}

/// What an edge counted in the last 15 minutes, in steps of 5 seconds; needs `serve --network always`.
#[utoipa::path(
    get, path = "/api/v1/network/edges/{edge}/series", tag = "network",
    params(
        ("edge" = String, Path, description = "`id` of the edge"),
        SeriesParameters
    ),
    responses(
        (status = 200, body = EdgeSeries),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`network_off`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`memory_short`")
    )
)]
pub(in crate::api) async fn node_edge_series(
    State(state): State<ApiState>,
    path: Result<Path<String>, PathRejection>,
    Given(parameters): Given<SeriesParameters>,
) -> Result<Json<EdgeSeries>, ApiError> {
    let Path(edge) = path.map_err(|error| ApiError::not_found(error.body_text()))?;
    let cut = cut(&edge, &parameters)?;
    let watched = state.parts.network.newest().ok_or(ApiError::NetworkOff)?;
    let network = state.parts.network.clone();
    let _turn = state.render_turn().await?;
    let series = blocking(move || network.series(&cut)).await?;
    let table = watched.table.unwrap_or_default();
    answer(edge, cut.edge, series.unwrap_or_default(), &table).await
}

fn cut(edge: &str, parameters: &SeriesParameters) -> Result<SeriesCut, ApiError> {
    let id = edge
        .parse::<EdgeId>()
        .map_err(|()| ApiError::not_found(format!("no edge {edge}")))?;
    let SeriesParameters {
        from: from_ms,
        to: to_ms,
        steps,
    } = *parameters;
    if let (Some(from), Some(to)) = (from_ms, to_ms)
        && from >= to
    {
        return Err(ApiError::invalid_field(
            "to",
            format!("to ({to}) must be after from ({from})"),
        ));
    }
    let most = steps.unwrap_or(STEPS);
    if !(1..=MAX_STEPS).contains(&most) {
        return Err(ApiError::invalid_field(
            "steps",
            format!("steps is {most}; 1 to {MAX_STEPS} are possible"),
        ));
    }
    Ok(SeriesCut {
        edge: id,
        from_ms,
        to_ms,
        most,
    })
}

async fn answer(
    edge: String,
    id: EdgeId,
    series: profiler_analysis::edge_series::EdgeSeries,
    table: &std::sync::Arc<EdgeTable>,
) -> Result<Json<EdgeSeries>, ApiError> {
    let table = std::sync::Arc::clone(table);
    let answer = blocking(move || {
        let known = table.edges.iter().any(|found| EdgeId::of(&found.key) == id);
        (known || !series.is_silent()).then(|| EdgeSeries::new(id, &series, &table))
    });
    let answer = answer.await?;
    answer
        .map(Json)
        .ok_or_else(|| ApiError::not_found(format!("no edge {edge}")))
}
