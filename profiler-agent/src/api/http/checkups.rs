//! Check-ups: several tasks on one target at once, and what follows from all of them.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderName, StatusCode, header},
};
use profiler_analysis::comparison::{Side, compare};
use profiler_model::{Selection, TaskKind, TaskState, diagnosis::Diagnosis};

use super::profiles::read;
use crate::api::{
    dto::{Checkup, CheckupComparison, CreateCheckup, Problem},
    error::ApiError,
    extract::{JsonBody, Query},
    state::{ApiState, blocking},
};
use profiler_engine::checkup::{self, CheckupState, CheckupTask, Evidences, check_ended};

/// Lists check-ups, newest first.
#[utoipa::path(
    get, path = "/api/v1/checkups", tag = "checkups",
    responses((status = 200, body = Vec<Checkup>), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn list(
    State(state): State<ApiState>,
    query: Query,
) -> Result<Json<Vec<Checkup>>, ApiError> {
    query.only(&[])?;
    let found = state.parts.checkups.list().await?;
    Ok(Json(found.iter().map(Into::into).collect()))
}

/// Starts an on-CPU, an off-CPU and a network task on a target, and reads the kernel's accounts and
/// Envoy's counts beside them. All tasks are started or none.
#[utoipa::path(
    post, path = "/api/v1/checkups", tag = "checkups",
    request_body = CreateCheckup,
    responses(
        (status = 201, body = Checkup, headers(("Location" = String, description = "Address of the check-up"))),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "`malformed_json`"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`tasks_refused`"),
        (status = 413, body = Problem, content_type = "application/problem+json", description = "`body_too_large`"),
        (status = 415, body = Problem, content_type = "application/problem+json", description = "`unsupported_media_type`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`"),
        (status = 429, body = Problem, content_type = "application/problem+json", description = "`too_many_tasks`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`shutting_down`, `memory_short`, `cannot_store`"),
        (status = 507, body = Problem, content_type = "application/problem+json", description = "`disk_full`")
    )
)]
pub(in crate::api) async fn create(
    State(state): State<ApiState>,
    query: Query,
    JsonBody(body): JsonBody<CreateCheckup>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Checkup>), ApiError> {
    query.only(&[])?;
    if state.is_shutting_down() {
        return Err(ApiError::ShuttingDown);
    }
    let request = body
        .into_request()
        .map_err(|detail| ApiError::invalid_field("target", detail))?;
    let created = state.parts.checkups.create(&request).await?;
    let location = [(header::LOCATION, format!("/api/v1/checkups/{}", created.id))];
    Ok((StatusCode::CREATED, location, Json((&created).into())))
}

/// Shows a check-up.
#[utoipa::path(
    get, path = "/api/v1/checkups/{id}", tag = "checkups",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Checkup),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`")
    )
)]
pub(in crate::api) async fn show(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
) -> Result<Json<Checkup>, ApiError> {
    query.only(&[])?;
    let found = state.parts.checkups.get(&name(id)?).await?;
    Ok(Json((&found).into()))
}

/// Deletes a check-up that has ended, with its tasks and their results.
#[utoipa::path(
    delete, path = "/api/v1/checkups/{id}", tag = "checkups",
    params(("id" = String, Path)),
    responses(
        (status = 204, description = "Deleted"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`task_not_final`")
    )
)]
pub(in crate::api) async fn delete(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
) -> Result<StatusCode, ApiError> {
    query.only(&[])?;
    state.parts.checkups.delete(&name(id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What costs what, by all that the check-up has so far, with the rules and names that are known now.
#[utoipa::path(
    get, path = "/api/v1/checkups/{id}/diagnosis", tag = "checkups",
    params(
        ("id" = String, Path),
        ("pid" = Option<u32>, Query, description = "Only this process")
    ),
    responses(
        (status = 200, body = Diagnosis),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`memory_short`")
    )
)]
pub(in crate::api) async fn show_diagnosis(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
) -> Result<Json<Diagnosis>, ApiError> {
    let query = query.only(&["pid"])?;
    let pid = query.parsed("pid", "a process number")?;
    let checkup = state.parts.checkups.get(&name(id)?).await?;
    // Two profiles are held at once.
    let _turn = state.render_turn().await?;
    let found = diagnose(&state, &checkup, pid).await?;
    Ok(Json(found))
}

/// Compares two check-ups: what changed from `a` to `b`, and whether by more than chance. Refused where one
/// still runs, failed or has fewer than 100 samples, and where processes or measurements are not the same.
#[utoipa::path(
    get, path = "/api/v1/checkups/compare", tag = "checkups",
    params(
        ("a" = String, Query, description = "The earlier check-up"),
        ("b" = String, Query, description = "The later check-up"),
        ("pid_a" = Option<u32>, Query, description = "Only this process of the earlier one"),
        ("pid_b" = Option<u32>, Query, description = "Only this process of the later one")
    ),
    responses(
        (status = 200, body = CheckupComparison),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`not_comparable`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`memory_short`")
    )
)]
pub(in crate::api) async fn compare_two(
    State(state): State<ApiState>,
    query: Query,
) -> Result<Json<CheckupComparison>, ApiError> {
    let query = query.only(&["a", "b", "pid_a", "pid_b"])?;
    let pids: [Option<u32>; 2] = [
        query.parsed("pid_a", "a process number")?,
        query.parsed("pid_b", "a process number")?,
    ];
    let names = [wanted(&query, "a")?, wanted(&query, "b")?];
    // Both exist before the first is worked on.
    let earlier = state.parts.checkups.get(&names[0]).await?;
    let later = state.parts.checkups.get(&names[1]).await?;
    check_ended([&earlier, &later])?;
    let _turn = state.render_turn().await?;
    let a = Side::of(&diagnose(&state, &earlier, pids[0]).await?);
    let b = Side::of(&diagnose(&state, &later, pids[1]).await?);
    Ok(Json(CheckupComparison::new(names, compare(&a, &b)?)))
}

fn wanted(query: &Query, name: &str) -> Result<String, ApiError> {
    query.text(name)?.map(str::to_owned).ok_or_else(|| {
        let detail = format!("{name} is missing: give the id of a check-up");
        ApiError::invalid_field(name, detail)
    })
}

fn name(id: Result<Path<String>, PathRejection>) -> Result<String, ApiError> {
    let Path(text) = id.map_err(|error| ApiError::not_found(error.body_text()))?;
    Ok(text)
}

async fn diagnose(
    state: &ApiState,
    checkup: &checkup::Checkup,
    pid: Option<u32>,
) -> Result<Diagnosis, ApiError> {
    let evidences = evidences(state, checkup, pid).await?;
    let rules = Arc::clone(&state.parts.diagnosis_rules);
    let idle = Arc::clone(&state.parts.idle_rules);
    blocking(move || evidences.diagnose(&rules, &idle)).await
}

/// All results of a check-up, and why some are not there.
async fn evidences(
    state: &ApiState,
    checkup: &checkup::Checkup,
    pid: Option<u32>,
) -> Result<Evidences, ApiError> {
    let mut evidences = Evidences {
        pids: pid.into_iter().collect(),
        ..Evidences::default()
    };
    if checkup.state == CheckupState::Running {
        evidences
            .limits
            .push("The check-up still runs: this is from its results so far.".to_owned());
    }
    let selection = Selection {
        pids: evidences.pids.clone(),
        ..Selection::default()
    };
    for kind in checkup::KINDS {
        let Some(task) = checkup.task(kind) else {
            let what = what(kind);
            let limit = format!(
                "{what} are not known: the {} task was deleted.",
                kind.name()
            );
            evidences.limits.push(limit);
            continue;
        };
        evidences.limits.extend(failure(task));
        match kind {
            TaskKind::OnCpu => {
                evidences.on_cpu = Some(read(state, task.id, selection.clone()).await?);
                evidences.event_loops = state.parts.engine.event_loops(task.id).await?;
                match state.parts.engine.observed(task.id).await {
                    Ok(record) => evidences.record = record,
                    Err(error) => evidences
                        .limits
                        .push(format!("Counters are not known: {error}.")),
                }
            }
            TaskKind::OffCpu => {
                evidences.off_cpu = Some(read(state, task.id, selection.clone()).await?);
            }
            TaskKind::Network => {
                let edges = state.parts.engine.edges(task.id).await?;
                evidences.edges = edges.map(Arc::unwrap_or_clone);
            }
            TaskKind::Wall | TaskKind::Requests | TaskKind::Imported => {}
        }
    }
    if evidences.record.is_none() && checkup.state != CheckupState::Running {
        evidences.limits.push(
            "Nothing was read beside the tasks of this check-up: it was not started as a check-up, or the \
             agent was stopped before its end."
                .to_owned(),
        );
    }
    Ok(evidences)
}

fn failure(task: &CheckupTask) -> Option<String> {
    let what = what(task.kind);
    match &task.state {
        TaskState::Failed { reason } => Some(format!(
            "{what} are not known, or not to the end: {reason}."
        )),
        TaskState::Cancelled => Some(format!("{what} end early: the task was stopped.")),
        TaskState::Queued | TaskState::Running | TaskState::Finished => None,
    }
}

/// What a kind of task is about.
fn what(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::OnCpu | TaskKind::Wall | TaskKind::Imported => "On-CPU samples",
        TaskKind::OffCpu => "Waits",
        TaskKind::Network => "Connections",
        TaskKind::Requests => "Requests",
    }
}
