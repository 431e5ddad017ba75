//! Containers of the node, put together from their processes.

use std::collections::BTreeMap;

use axum::{Json, extract::State};

use super::processes::MAX_AGE;
use crate::api::{
    dto::{ContainerList, ContainerSummary, Problem},
    error::ApiError,
    parameters::Given,
    state::ApiState,
};

/// Lists containers, busiest first.
#[utoipa::path(
    get, path = "/api/v1/containers", tag = "processes",
    responses((status = 200, body = ContainerList), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn list(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<ContainerList>, ApiError> {
    state.refresh_processes(MAX_AGE).await?;
    let mut by_id: BTreeMap<String, ContainerSummary> = BTreeMap::new();
    let names = state.parts.table.names();
    for process in state.parts.table.snapshot() {
        let Some(container) = &process.container else {
            continue;
        };
        let entry = by_id
            .entry(container.id.clone())
            .or_insert_with(|| ContainerSummary {
                id: container.id.clone(),
                runtime: container.runtime.clone(),
                cgroup: process.cgroup.clone(),
                names: names.of(container).map(|names| names.as_ref().into()),
                pids: Vec::new(),
                cpu_percent: None,
            });
        entry.pids.push(process.key.pid);
        // Processes may sit in cgroups below the container's own: the shortest path is its root.
        if process.cgroup.len() < entry.cgroup.len() {
            entry.cgroup.clone_from(&process.cgroup);
        }
        if let Some(share) = process.cpu_percent {
            entry.cpu_percent = Some(entry.cpu_percent.unwrap_or(0.0) + share);
        }
    }
    let mut items: Vec<_> = by_id.into_values().collect();
    let share = |item: &ContainerSummary| item.cpu_percent.unwrap_or(-1.0);
    items.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let total = items.len();
    Ok(Json(ContainerList {
        items,
        total,
        name_sources: names.sources().iter().map(Into::into).collect(),
    }))
}
