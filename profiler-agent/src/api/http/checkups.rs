//! Check-ups: several tasks on one target at once, and what follows from all of them.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderName, StatusCode, header},
    response::Response,
};
use profiler_analysis::{
    comparison::{Side, compare},
    render::report,
};
use profiler_model::{
    Selection, TaskKind, TaskState,
    diagnosis::{Diagnosis, DiagnosisScope},
};

use super::{
    diagnosis::{DiagnosisParameters, answer, written},
    profiles::read,
};
use crate::api::{
    dto::{Checkup, CheckupComparison, CreateCheckup, Problem},
    error::ApiError,
    extract::JsonBody,
    parameters::{Given, one_of, parameters},
    state::{ApiState, blocking},
};
use profiler_engine::checkup::{
    self, CheckupInputs, CheckupState, CheckupTask, check_ended, pod_of,
};

parameters! {
    pub(in crate::api) struct ProcessParameter {
        /// Only this process, its latency too
        pid: Option<u32> = "a process number",
        /// Whose CPU time: `sidecar` (default) where the target has just one, else all; or `all`
        scope: Option<DiagnosisScope> = one_of(DiagnosisScope::ALL.map(DiagnosisScope::name)),
    }
}

/// Lists check-ups, newest first.
#[utoipa::path(
    get, path = "/api/v1/checkups", tag = "checkups",
    responses((status = 200, body = Vec<Checkup>), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn list(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<Vec<Checkup>>, ApiError> {
    let found = state.parts.checkups.list().await?;
    Ok(Json(found.iter().map(Into::into).collect()))
}

/// Starts an on-CPU, an off-CPU and a requests task on a target, and reads the kernel's accounts and
/// Envoy's counts beside them. Requests inside TLS are read where the agent was started with `--allow-tls-capture`;
/// those of Envoys that send their access logs are taken from these. All tasks are started or none.
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
    _: Given<()>,
    JsonBody(body): JsonBody<CreateCheckup>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Checkup>), ApiError> {
    if state.is_shutting_down() {
        return Err(ApiError::ShuttingDown);
    }
    let mut request = body
        .into_request(state.parts.capture.tls)
        .map_err(|detail| ApiError::invalid_field("target", detail))?;
    request.access_log = state.parts.access_logs.logs.is_on();
    let created = state.parts.checkups.create(&request).await?;
    if request.tls {
        tracing::info!(
            checkup = created.id,
            "a check-up of the API looks into plaintext of TLS libraries"
        );
    }
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
    _: Given<()>,
) -> Result<Json<Checkup>, ApiError> {
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
    _: Given<()>,
) -> Result<StatusCode, ApiError> {
    state.parts.checkups.delete(&name(id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What costs what, by all that the check-up has so far, with the rules and names that are known now.
#[utoipa::path(
    get, path = "/api/v1/checkups/{id}/diagnosis", tag = "checkups",
    params(
        ("id" = String, Path),
        ProcessParameter, DiagnosisParameters
    ),
    responses(
        (status = 200, description = "The diagnosis", content(
            (Diagnosis = "application/json"),
            (String = "text/markdown")
        )),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`memory_short`")
    )
)]
pub(in crate::api) async fn show_diagnosis(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    Given((process, form)): Given<(ProcessParameter, DiagnosisParameters)>,
) -> Result<Response, ApiError> {
    let checkup = state.parts.checkups.get(&name(id)?).await?;
    // Two profiles are held at once.
    let _turn = state.render_turn().await?;
    let found = diagnose(&state, &checkup, process, "pid").await?;
    Ok(answer(&found, &form, &format!("check-up {}", checkup.id)))
}

parameters! {
    pub(in crate::api) struct CompareParameters {
        /// The earlier check-up
        a: String = "the id of a check-up",
        /// The later check-up
        b: String = "the id of a check-up",
        /// Only this process of the earlier one
        pid_a: Option<u32> = "a process number",
        /// Only this process of the later one
        pid_b: Option<u32> = "a process number",
        /// Without a process: `sidecar` (default) where the target has just one, else all; or `all`
        scope: Option<DiagnosisScope> = one_of(DiagnosisScope::ALL.map(DiagnosisScope::name)),
    }
}

/// Compares two check-ups: what changed from `a` to `b`, and whether by more than chance. Refused where one
/// still runs or failed, or has fewer than 100 samples and no latency that could be compared, and where processes or measurements are not the same.
#[utoipa::path(
    get, path = "/api/v1/checkups/compare", tag = "checkups",
    params(CompareParameters, DiagnosisParameters),
    responses(
        (status = 200, description = "What changed", content(
            (CheckupComparison = "application/json"),
            (String = "text/markdown")
        )),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`not_comparable`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`memory_short`")
    )
)]
pub(in crate::api) async fn compare_two(
    State(state): State<ApiState>,
    Given((parameters, form)): Given<(CompareParameters, DiagnosisParameters)>,
) -> Result<Response, ApiError> {
    let CompareParameters {
        a,
        b,
        pid_a,
        pid_b,
        scope,
    } = parameters;
    let names = [a, b];
    // Both exist before the first is worked on.
    let earlier = state.parts.checkups.get(&names[0]).await?;
    let later = state.parts.checkups.get(&names[1]).await?;
    check_ended([&earlier, &later])?;
    let _turn = state.render_turn().await?;
    let side = async |checkup, pid, field| -> Result<Side, ApiError> {
        let process = ProcessParameter { pid, scope };
        let found = diagnose(&state, checkup, process, field).await?;
        Ok(Side::of(&found))
    };
    let a = side(&earlier, pid_a, "pid_a").await?;
    let b = side(&later, pid_b, "pid_b").await?;
    let found = compare(&a, &b)?;
    Ok(written(
        &form,
        || report::compared(&found, names.each_ref().map(String::as_str)),
        || CheckupComparison::new(names.clone(), found.clone()),
    ))
}

fn name(id: Result<Path<String>, PathRejection>) -> Result<String, ApiError> {
    let Path(text) = id.map_err(|error| ApiError::not_found(error.body_text()))?;
    Ok(text)
}

/// `field` is the parameter that names the process.
pub(super) async fn diagnose(
    state: &ApiState,
    checkup: &checkup::Checkup,
    process: ProcessParameter,
    field: &str,
) -> Result<Diagnosis, ApiError> {
    let inputs = inputs(state, checkup, &process).await?;
    let is_running = checkup.state == CheckupState::Running;
    if let Some(pid) = process.pid.filter(|pid| !is_running && !inputs.has(*pid)) {
        let detail = format!(
            "nothing was seen of a process {pid} in check-up {}",
            checkup.id
        );
        return Err(ApiError::invalid_field(field, detail));
    }
    let rules = Arc::clone(&state.parts.diagnosis_rules);
    let idle = Arc::clone(&state.parts.idle_rules);
    blocking(move || inputs.diagnose(&rules, &idle)).await
}

/// All results of a check-up, and why some are not there.
async fn inputs(
    state: &ApiState,
    checkup: &checkup::Checkup,
    process: &ProcessParameter,
) -> Result<CheckupInputs, ApiError> {
    let mut inputs = CheckupInputs {
        pid: process.pid,
        scope: process.scope.unwrap_or_default(),
        ..CheckupInputs::default()
    };
    if checkup.state == CheckupState::Running {
        inputs
            .limits
            .push("The check-up still runs: this is from its results so far.".to_owned());
    }
    for kind in checkup::KINDS {
        let Some(task) = checkup.task(kind) else {
            let what = what(kind);
            let limit = format!(
                "{what} are not known: the {} task was deleted.",
                kind.name()
            );
            inputs.limits.push(limit);
            continue;
        };
        inputs.limits.extend(failure(task));
        match kind {
            TaskKind::OnCpu => {
                let profile = read(state, task.id, Selection::default()).await?;
                inputs.pod = pod_of(&profile, state.parts.table.names());
                inputs.on_cpu = Some(profile);
                inputs.event_loops = state.parts.engine.event_loops(task.id).await?;
                match state.parts.engine.observed(task.id).await {
                    Ok(record) => inputs.record = record,
                    Err(error) => inputs
                        .limits
                        .push(format!("Counters are not known: {error}.")),
                }
            }
            TaskKind::OffCpu => {
                inputs.off_cpu = Some(read(state, task.id, Selection::default()).await?);
            }
            TaskKind::Requests => {
                let edges = state.parts.engine.edges(task.id).await?;
                inputs.edges = edges.map(Arc::unwrap_or_clone);
                let requests = state.parts.engine.requests(task.id).await?;
                inputs.requests = requests.map(Arc::unwrap_or_clone);
            }
            TaskKind::Wall | TaskKind::Network => {}
        }
    }
    Ok(inputs)
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
        TaskKind::OnCpu | TaskKind::Wall => "On-CPU samples",
        TaskKind::OffCpu => "Waits",
        TaskKind::Network => "Connections",
        TaskKind::Requests => "Requests and connections",
    }
}
