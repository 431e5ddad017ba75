//! What threads waited for: the parameters that cut a result by it, and its sums.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use profiler_analysis::{
    activities::Activities,
    diagnosis::DiagnosisRules,
    idle::IdleRules,
    render::wait_reasons::{WaitReasons, sums},
};
use profiler_model::{
    IdleMode, IdleShare, Profile, Selection, TaskId, ThreadState, Unsampled, WaitReason,
    diagnosis::CellChoice,
};

use super::{
    profiles::{SelectionParameters, read},
    tasks::task_id,
};
use crate::api::{
    dto::{Problem, ProfileIdle, Waits},
    error::ApiError,
    parameters::{Given, one_of, parameters},
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

parameters! {
    /// Which samples of a result are shown.
    pub(in crate::api) struct ViewParameters {
        /// Whether waits of threads that have nothing to do are shown (default show)
        #[param(value_type = Option<ProfileIdle>)]
        idle: Option<IdleMode> = one_of(IdleMode::ALL.map(IdleMode::name)),
        /// Keep these states, for example `interruptible`; may be repeated
        #[param(value_type = Option<Vec<String>>)]
        state: Option<Vec<ThreadState>> = one_of(ThreadState::ALL.map(ThreadState::name)),
        /// Keep these reasons of waits, for example `futex`; may be repeated
        #[param(value_type = Option<Vec<String>>)]
        reason: Option<Vec<WaitReason>> = one_of(WaitReason::ALL.map(WaitReason::name)),
        /// Keep a cell of the diagnosis: `FEATURE`, `FEATURE:MECHANISM` or `:MECHANISM`
        cell: Option<String> = "a name",
    }
}

parameters! {
    pub(in crate::api) struct IdleParameters {
        /// Which waits the sums are of; the share of idle waits is always that of everything
        #[param(value_type = Option<ProfileIdle>)]
        idle: Option<IdleMode> = one_of(IdleMode::ALL.map(IdleMode::name)),
    }
}

impl ViewParameters {
    /// Looks the cell up.
    pub(super) fn view(self, rules: &DiagnosisRules) -> Result<WaitView, ApiError> {
        let Self {
            idle,
            state,
            reason,
            cell,
        } = self;
        let cell = cell.map(|text| {
            let found = rules.cell(&text);
            found.map_err(|detail| ApiError::invalid_field("cell", detail))
        });
        Ok(WaitView {
            idle: idle.unwrap_or_default(),
            states: state.unwrap_or_default(),
            reasons: reason.unwrap_or_default(),
            cell: cell.transpose()?,
        })
    }
}

/// The selected part of a result that `view` shows, and how much of it is idle.
pub(super) async fn read_view(
    state: &ApiState,
    id: TaskId,
    selection: Selection,
    view: WaitView,
    unsampled: Unsampled,
) -> Result<(Profile, Option<IdleShare>), ApiError> {
    let profile = read(state, id, selection).await?;
    shown(state, profile, view, unsampled).await
}

/// What `view` shows of a profile, and how much of it is idle.
pub(super) async fn shown(
    state: &ApiState,
    mut profile: Profile,
    view: WaitView,
    unsampled: Unsampled,
) -> Result<(Profile, Option<IdleShare>), ApiError> {
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
        SelectionParameters, IdleParameters
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
    Given((selection, shown)): Given<(SelectionParameters, IdleParameters)>,
) -> Result<Json<Waits>, ApiError> {
    let selection = selection.selection("")?;
    let mode = shown.idle.unwrap_or_default();
    let mut profile = read(&state, task_id(id)?, selection).await?;
    let rules = state.parts.idle_rules.clone();
    let waits = blocking(move || {
        // Of idle threads too: they wait for a CPU when they have something to do.
        let contention = profile.cpu_contention(|_| true);
        let found = rules.classify(&profile);
        let activities = Activities::of(&profile, found.as_deref()).sums();
        let idle = rules.apply_classified(&mut profile, mode, found);
        Waits::new(&sums(&profile), idle.as_ref(), activities, contention)
    });
    Ok(Json(waits.await?))
}
