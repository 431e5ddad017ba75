//! What threads waited for: the parameters that cut a result by it, and its sums.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use profiler_analysis::{
    diagnosis::DiagnosisRules,
    idle::IdleRules,
    render::wait_reasons::{WaitReasons, sums},
};
use profiler_model::{
    IdleMode, IdleShare, Profile, Selection, TaskId, ThreadState, Unsampled, WaitReason,
    diagnosis::CellChoice,
};

use super::{
    profiles::{SELECTION, read, selection},
    tasks::task_id,
};
use crate::api::{
    dto::{Problem, Waits},
    error::ApiError,
    extract::Query,
    state::{ApiState, blocking},
};

/// Which samples to show. The default shows all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WaitView {
    idle: IdleMode,
    /// Empty shows all.
    states: Vec<ThreadState>,
    reasons: Vec<WaitReason>,
    /// A cell of the matrix of a diagnosis.
    cell: Option<CellChoice>,
}

/// Names of the parameters of [`view`].
pub(super) const WAITS: [&str; 4] = ["idle", "state", "reason", "cell"];

/// The parameters of every address that shows a part of a result.
pub(super) fn known<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [more, &SELECTION, &WAITS].concat()
}

pub(super) fn view(query: &Query, rules: &DiagnosisRules) -> Result<WaitView, ApiError> {
    let idle = match query.text("idle")? {
        None => IdleMode::default(),
        Some(text) => one_of("idle", text, IdleMode::ALL, IdleMode::name)?,
    };
    let texts = |name| query.repeated::<String>(name, "a name");
    let states = texts("state")?
        .iter()
        .map(|text| one_of("state", text, ThreadState::ALL, ThreadState::name))
        .collect::<Result<_, _>>()?;
    let reasons = texts("reason")?
        .iter()
        .map(|text| one_of("reason", text, WaitReason::ALL, WaitReason::name))
        .collect::<Result<_, _>>()?;
    let cell = match query.text("cell")? {
        None => None,
        Some(text) => {
            let cell = rules.cell(text);
            Some(cell.map_err(|detail| ApiError::invalid_field("cell", detail))?)
        }
    };
    Ok(WaitView {
        idle,
        states,
        reasons,
        cell,
    })
}

fn one_of<T: Copy, const N: usize>(
    parameter: &str,
    text: &str,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, ApiError> {
    let found = all.into_iter().find(|value| name(*value) == text);
    found.ok_or_else(|| {
        let detail = format!(
            "{parameter} {text:?} is not one of {}",
            all.map(name).join(", ")
        );
        ApiError::invalid_field(parameter, detail)
    })
}

/// The selected part of a result that `view` shows, and how much of it is idle.
pub(super) async fn read_view(
    state: &ApiState,
    id: TaskId,
    selection: Selection,
    view: WaitView,
    unsampled: Unsampled,
) -> Result<(Profile, Option<IdleShare>), ApiError> {
    let mut profile = read(state, id, selection).await?;
    let idle = state.parts.idle_rules.clone();
    let rules = state.parts.diagnosis_rules.clone();
    blocking(move || {
        match unsampled {
            Unsampled::AsMeasured => {}
            Unsampled::SharedOut => {
                // Frames show what is left, and a note of the task says how much there was.
                let _time = profile.share_out_unsampled();
            }
        }
        let (mut profile, idle) = view.apply(profile, &idle);
        if let Some(cell) = &view.cell {
            rules.keep_cell(&mut profile, cell);
        }
        (profile, idle)
    })
    .await
}

impl WaitView {
    /// The idle share is that of all states and reasons.
    fn apply(&self, mut profile: Profile, rules: &IdleRules) -> (Profile, Option<IdleShare>) {
        let idle = rules.apply(&mut profile, self.idle);
        if !self.states.is_empty() {
            profile
                .samples
                .retain(|row| self.states.contains(&row.state));
        }
        if !self.reasons.is_empty() {
            let reasons = WaitReasons::of(&profile);
            profile
                .samples
                .retain(|row| self.reasons.contains(&reasons.of_row(row)));
        }
        (profile, idle)
    }
}

/// What the waits of a result were: sums by state and by reason, and what is idle.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/waits", tag = "profiles",
    params(
        ("id" = String, Path),
        ("idle" = Option<crate::api::dto::ProfileIdle>, Query, description = "Which waits the sums are of; the share of idle waits is always that of everything"),
        ("from" = Option<u64>, Query, description = "Milliseconds after the task's start"),
        ("to" = Option<u64>, Query, description = "Milliseconds after the task's start"),
        ("tid" = Option<Vec<u32>>, Query, description = "Only these threads; may be repeated"),
        ("pid" = Option<Vec<u32>>, Query, description = "Only these processes; may be repeated"),
        ("not_tid" = Option<Vec<u32>>, Query, description = "Leave these threads out; may be repeated")
    ),
    responses(
        (status = 200, body = Waits),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_profile`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`")
    )
)]
pub(in crate::api) async fn waits(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
) -> Result<Json<Waits>, ApiError> {
    let query = query.only(&[&SELECTION, &["idle"][..]].concat())?;
    let selection = selection(&query)?;
    let view = view(&query, &state.parts.diagnosis_rules)?;
    let (profile, idle) =
        read_view(&state, task_id(id)?, selection, view, Unsampled::AsMeasured).await?;
    let waits = blocking(move || Waits::new(&sums(&profile), idle.as_ref())).await?;
    Ok(Json(waits))
}
