//! The support bundle.

use axum::{
    extract::State,
    http::{HeaderName, header},
};
use profiler_clock::wall_ns;
use serde::Serialize;

use super::{
    meta::{meta_of, probe_list},
    node::{feature_list, kernel_list},
};
use crate::{
    api::{
        auth::Role,
        dto::{ProbeList, Problem, TaskList},
        error::ApiError,
        parameters::Given,
        state::{ApiState, blocking},
    },
    support_bundle::{BundleFile, archive},
};

fn json(name: &'static str, value: &impl Serialize) -> Result<BundleFile, ApiError> {
    Ok(BundleFile {
        name,
        content: serde_json::to_string_pretty(value).map_err(ApiError::internal)? + "\n",
    })
}

/// What the agent knows about itself, as a compressed archive. No profile, no command line, no token.
#[utoipa::path(
    get, path = "/api/v1/support-bundle", tag = "agent",
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/gzip"),
        (status = 401, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::api) async fn support_bundle(
    State(state): State<ApiState>,
    role: Role,
    _: Given<()>,
) -> Result<([(HeaderName, String); 2], Vec<u8>), ApiError> {
    let tasks: Vec<_> = state
        .parts
        .engine
        .list()
        .iter()
        .map(|task| state.shown(task))
        .collect();
    let inspection = &state.parts.inspection;
    let settings = inspection.configuration.iter();
    let files = vec![
        json("meta.json", &meta_of(&state, role))?,
        json(
            "probes.json",
            &ProbeList {
                items: probe_list(&state),
            },
        )?,
        json("features.json", &feature_list().await?)?,
        json("kernel.json", &kernel_list(&state).await?)?,
        json("self.json", &state.agent_self().await?)?,
        BundleFile {
            name: "config.toml",
            content: settings
                .flat_map(|(name, value)| [name, " = ", value.as_str(), "\n"])
                .collect(),
        },
        json(
            "tasks.json",
            &TaskList {
                total: tasks.len(),
                items: tasks,
            },
        )?,
        BundleFile {
            name: "log.txt",
            content: inspection.log.text(),
        },
    ];
    let tokens: Vec<String> = state.parts.tokens.secrets().map(str::to_owned).collect();
    let seconds = wall_ns() / 1_000_000_000;
    let folder = format!("profiler-agent-{seconds}");
    let name = format!("attachment; filename=\"{folder}.tar.gz\"");
    let archive = move || {
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        archive(&folder, &files, &tokens, seconds)
    };
    let bytes = blocking(archive)
        .await?
        .map_err(|error| ApiError::internal(format!("make the archive: {error}")))?;
    let headers = [
        (header::CONTENT_TYPE, "application/gzip".to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, bytes))
}
