//! The agent itself: version, machine, probes, own cost.

use axum::{Json, extract::State};

use crate::{
    api::{
        auth::Role,
        dto::{AgentSelf, AuthKind, Meta, NetworkMode, Probe, ProbeList, Problem, RoleName},
        error::ApiError,
        parameters::Given,
        state::ApiState,
    },
    version,
};

pub(super) fn probe_list(state: &ApiState) -> Vec<Probe> {
    state.probes().into_iter().map(Into::into).collect()
}

/// Version, machine, limits and probes.
#[utoipa::path(
    get, path = "/api/v1/meta", tag = "agent",
    responses((status = 200, body = Meta), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn meta(
    State(state): State<ApiState>,
    role: Role,
    _: Given<()>,
) -> Result<Json<Meta>, ApiError> {
    Ok(Json(meta_of(&state, role)))
}

pub(super) fn meta_of(state: &ApiState, role: Role) -> Meta {
    let node = state.parts.node.clone();
    Meta {
        version: version::NUMBER,
        git_revision: version::REVISION,
        node: node.node,
        kernel: node.kernel,
        arch: node.arch,
        cpus: node.cpus,
        btf: node.btf,
        limits: state.limits(),
        probes: probe_list(state),
        auth: if state.parts.tokens.full_token().is_some() {
            AuthKind::Token
        } else {
            AuthKind::None
        },
        role: match role {
            Role::Look => RoleName::ReadOnly,
            Role::Full => RoleName::Full,
        },
        cpu_budget_percent: state.parts.cpu_budget_percent,
        network: if state.parts.network.is_on() {
            NetworkMode::Always
        } else {
            NetworkMode::Tasks
        },
        demo_data: state.parts.demo_data,
    }
}

/// What each probe can do on this kernel with these privileges.
#[utoipa::path(
    get, path = "/api/v1/probes", tag = "agent",
    responses((status = 200, body = ProbeList), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn probes(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<ProbeList>, ApiError> {
    Ok(Json(ProbeList {
        items: probe_list(&state),
    }))
}

/// The agent's own cost and losses.
#[utoipa::path(
    get, path = "/api/v1/self", tag = "agent",
    responses((status = 200, body = AgentSelf), (status = 401, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::api) async fn agent_self(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<AgentSelf>, ApiError> {
    Ok(Json(state.agent_self().await?))
}
