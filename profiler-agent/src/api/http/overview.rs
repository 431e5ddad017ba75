//! The overview of all pods.

use std::sync::Arc;

use axum::{Json, extract::State};
use profiler_engine::checkup::{Checkup, CheckupState};
use profiler_model::{
    Target,
    overview::{Overview, OverviewRow},
};

use super::checkups::diagnose;
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
        let Some(found) = all.iter().find(|checkup| is_of(&checkup.target, row)) else {
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
fn is_of(target: &Target, row: &OverviewRow) -> bool {
    match target {
        Target::Pod(selector) => row.pod.as_ref().is_some_and(|pod| {
            selector.name.as_deref() == Some(&pod.name)
                && selector
                    .namespace
                    .as_ref()
                    .is_none_or(|namespace| *namespace == pod.namespace)
        }),
        Target::Pids(pids) => pids.iter().any(|pid| row.pids.contains(pid)),
        Target::All
        | Target::Comm(_)
        | Target::Container(_)
        | Target::Cgroup(_)
        | Target::NetworkNamespace(_) => false,
    }
}

/// What a finished check-up found. Its results are read for that once, beside the answer: the next one has it.
fn verdict(state: &ApiState, checkup: &Checkup) -> Option<String> {
    if checkup.state != CheckupState::Finished {
        return None;
    }
    let id = checkup.id.clone();
    match state.verdicts.of(&id) {
        Known::Verdict(verdict) => return Some(verdict),
        Known::BeingRead => return None,
        Known::ToRead => {}
    }
    let (state, checkup) = (state.clone(), checkup.clone());
    tokio::spawn(async move {
        let found = match state.render_turn().await {
            Ok(_turn) => diagnose(&state, &checkup, None).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(diagnosis) => state.verdicts.put(id, diagnosis.verdict),
            Err(error) => {
                tracing::debug!(
                    checkup = id,
                    ?error,
                    "the verdict of a check-up is not known"
                );
                state.verdicts.give_up(&id);
            }
        }
    });
    None
}
