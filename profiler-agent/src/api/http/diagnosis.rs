//! Which part of a process costs what.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::header,
    response::{IntoResponse, Response},
};
use profiler_analysis::{
    diagnosis::{DiagnosisInput, diagnose, event_loops, place},
    render::report,
};
use profiler_engine::checkup::pod_of;
use profiler_model::{
    Selection, TaskKind,
    diagnosis::{Diagnosis, RuleSets},
};
use serde::Serialize;

use super::{
    profiles::{SelectionParameters, read},
    tasks::task_id,
};
use crate::api::{
    dto::{DiagnosisFormat, Problem},
    error::ApiError,
    parameters::{Given, parameters},
    state::{ApiState, blocking},
};

parameters! {
    pub(in crate::api) struct DiagnosisParameters {
        /// The document (default), or a report for people
        format: Option<DiagnosisFormat> = "one of json, markdown",
    }
}

/// A diagnosis as it was asked for; `source` says where its samples are.
pub(super) fn answer(diagnosis: &Diagnosis, given: &DiagnosisParameters, source: &str) -> Response {
    written(given, || report::titled(diagnosis, source), || diagnosis)
}

/// A document, or a report of it.
pub(super) fn written<D: Serialize>(
    given: &DiagnosisParameters,
    markdown: impl FnOnce() -> String,
    document: impl FnOnce() -> D,
) -> Response {
    match given.format.unwrap_or_default() {
        DiagnosisFormat::Json => Json(document()).into_response(),
        DiagnosisFormat::Markdown => {
            let media_type = [(header::CONTENT_TYPE, "text/markdown; charset=utf-8")];
            (media_type, markdown()).into_response()
        }
    }
}

/// Diagnoses a result with samples on the CPU, by the rules and the names of now.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/diagnosis", tag = "diagnosis",
    params(
        ("id" = String, Path),
        SelectionParameters, DiagnosisParameters
    ),
    responses(
        (status = 200, description = "The diagnosis", content(
            (Diagnosis = "application/json"),
            (String = "text/markdown")
        )),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_profile`: the task has no samples on the CPU"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`memory_short`")
    )
)]
pub(in crate::api) async fn diagnosis(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    Given((selection, form)): Given<(SelectionParameters, DiagnosisParameters)>,
) -> Result<Response, ApiError> {
    let selection = selection.selection("")?;
    let id = task_id(id)?;
    let has_waits = match state.parts.engine.get(id)?.kind() {
        Some(TaskKind::Wall) => true,
        // Of an import the file decides.
        Some(TaskKind::OnCpu) | None => false,
        Some(TaskKind::OffCpu | TaskKind::Network | TaskKind::Requests) => {
            return Err(ApiError::NoProfile { id });
        }
    };
    let pids = selection.pids.clone();
    // Turns are counted for the whole task: of a part of its time or threads nothing can be said.
    let of_processes = Selection {
        pids: pids.clone(),
        ..Selection::default()
    };
    let has_loops = selection == of_processes;
    let _turn = state.render_turn().await?;
    let profile = read(&state, id, selection).await?;
    let table = if has_loops {
        state.parts.engine.event_loops(id).await?
    } else {
        None
    };
    let (rules, idle) = (
        state.parts.diagnosis_rules.clone(),
        state.parts.idle_rules.clone(),
    );
    let pod = pod_of(&profile, state.parts.table.names());
    let document = blocking(move || {
        let waits = has_waits.then_some(&profile);
        let event_loop = event_loops(table, &pids, Some(&profile), waits);
        let input = DiagnosisInput {
            on_cpu: Some(&profile),
            off_cpu: waits,
            event_loop: event_loop.as_ref(),
            // The profile has the chosen processes alone.
            ..DiagnosisInput::default()
        };
        let mut diagnosis = diagnose(&rules, &idle, &input);
        place(&mut diagnosis, pod.as_deref());
        diagnosis
    });
    Ok(answer(&document.await?, &form, &format!("task {id}")))
}

/// Lists the rules of diagnoses in force: the user's first.
#[utoipa::path(
    get, path = "/api/v1/diagnosis/rules", tag = "diagnosis",
    responses(
        (status = 200, body = RuleSets),
        (status = 401, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::api) async fn rules(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<RuleSets>, ApiError> {
    Ok(Json(state.parts.diagnosis_rules.list()))
}
