//! The overview of all pods.

use std::sync::Arc;

use axum::{Json, extract::State};
use profiler_engine::checkup::{Checkup, CheckupState};
use profiler_model::{
    Target,
    overview::{Overview, OverviewRow},
};

use super::checkups::{ProcessParameter, diagnose};
use crate::api::{
    dto::{NodeOverview, Problem, RowCheckup},
    error::ApiError,
    parameters::Given,
    state::ApiState,
    verdicts::Known,
};

/// Shows how the pods of the node do, by what the kernel and Envoys count: requests, errors, times, CPU against its limit,
/// waits for a CPU, retransmits; what needs attention first. On a node without pods a row is a container, a service or a program.
#[utoipa::path(
    get, path = "/api/v1/overview", tag = "processes",
    responses((status = 200, body = NodeOverview), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn show(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<NodeOverview>, ApiError> {
    let newest = state.parts.overview.newest();
    let is_on = newest.is_some();
    let overview: Overview = newest.map(Arc::unwrap_or_clone).unwrap_or_default();
    let all = state.parts.checkups.list().await?;
    let mut checkups = Vec::new();
    for row in &overview.rows {
        // They are the newest first.
        let Some(found) = all.iter().find(|checkup| is_of(&state, checkup, row)) else {
            continue;
        };
        checkups.push(RowCheckup {
            row: row.id.clone(),
            id: found.id.clone(),
            state: found.state.into(),
            created_ns: found.created_ns,
            verdict: verdict(&state, found),
        });
    }
    Ok(Json(NodeOverview {
        is_on,
        overview,
        checkups,
    }))
}

/// Whether a check-up is of a row: of the pod by its name, or of processes that it still has.
fn is_of(state: &ApiState, checkup: &Checkup, row: &OverviewRow) -> bool {
    match &checkup.target {
        Target::Pod(selector) => row.pod.as_ref().is_some_and(|pod| {
            selector.name.as_deref() == Some(&pod.name)
                && selector
                    .namespace
                    .as_ref()
                    .is_none_or(|namespace| *namespace == pod.namespace)
        }),
        Target::Pids(_) => checkup.tasks.iter().any(|task| {
            let names = state.parts.engine.get(task.id);
            let names = names.as_ref().map_or(&[][..], |task| &task.target_names);
            names.iter().any(|name| {
                let process = state.parts.table.get(name.pid);
                row.pids.contains(&name.pid)
                    && process.is_some_and(|found| found.key.start_ticks == name.start_ticks)
            })
        }),
        Target::All
        | Target::Comm(_)
        | Target::Container(_)
        | Target::Cgroup(_)
        | Target::NetworkNamespace(_) => false,
    }
}

/// What a finished check-up found. Its results are read for that once, beside the answer: the next one has it.
fn verdict(state: &ApiState, checkup: &Checkup) -> Option<String> {
    match checkup.state {
        // One that was ended early has what it recorded.
        CheckupState::Finished | CheckupState::Cancelled => {}
        CheckupState::Running | CheckupState::Failed => return None,
    }
    let id = checkup.id.clone();
    match state.verdicts.of(&id) {
        Known::Verdict(verdict) => return Some(verdict),
        Known::Nothing => return None,
        Known::ToRead => {}
    }
    let (state, checkup) = (state.clone(), checkup.clone());
    tokio::spawn(async move {
        let Ok(_turn) = state.render_turn().await else {
            // Memory is short; another caller may try.
            return state.verdicts.give_up();
        };
        let process = ProcessParameter {
            pid: None,
            scope: None,
        };
        let found = diagnose(&state, &checkup, process, "pid").await;
        let found = found.inspect_err(|error| {
            tracing::debug!(
                checkup = id,
                ?error,
                "the verdict of a check-up is not known"
            );
        });
        state
            .verdicts
            .put(id, found.ok().map(|diagnosis| diagnosis.verdict));
    });
    None
}
