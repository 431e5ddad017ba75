//! Profiles from files: read once, then a task like others.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderName, StatusCode, header},
};
use futures_util::StreamExt;
use profiler_analysis::import::{ImportError, MAX_FILE_BYTES, MAX_NAME_BYTES, read};
use profiler_clock::wall_ns;
use profiler_sandbox::broker;

use crate::api::{
    dto::{Problem, Task},
    error::ApiError,
    parameters::{Given, parameters},
    state::{ApiState, blocking},
};
use profiler_memory::Ceiling;

parameters! {
    pub(in crate::api) struct ImportParameters {
        /// What the file is called; shown as the task's target
        name: Option<String> = "a name",
    }
}

/// Takes a pprof file or folded stacks and keeps them as a task of kind `imported`.
#[utoipa::path(
    post, path = "/api/v1/imports", tag = "tasks",
    params(ImportParameters),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The file: pprof, gzip or plain, or folded stacks"),
    responses(
        (status = 201, body = Task, headers(("Location" = String, description = "Address of the task"))),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "`body_interrupted`"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 413, body = Problem, content_type = "application/problem+json", description = "`body_too_large`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`unusable_profile`, `invalid_field`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`overloaded`, `shutting_down`, `memory_short`, `cannot_store`"),
        (status = 507, body = Problem, content_type = "application/problem+json", description = "`disk_full`")
    )
)]
pub(in crate::api) async fn import(
    State(state): State<ApiState>,
    Given(ImportParameters { name }): Given<ImportParameters>,
    body: Body,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Task>), ApiError> {
    let name = name.unwrap_or_default();
    let name = name.trim();
    if name.len() > MAX_NAME_BYTES {
        return Err(ApiError::invalid_field(
            "name",
            format!(
                "name must be at most {MAX_NAME_BYTES} bytes, got {}",
                name.len()
            ),
        ));
    }
    let name = if name.is_empty() {
        "unnamed file"
    } else {
        name
    }
    .to_owned();
    if state.is_shutting_down() {
        return Err(ApiError::ShuttingDown);
    }
    let Ok(_turn) = state.imports.try_acquire() else {
        return Err(ApiError::Overloaded {
            detail: "another profile is being imported; try again soon",
        });
    };
    Ceiling::own().admits("no profile is imported")?;
    let bytes = receive(body).await?;
    let now = wall_ns();
    let imported = blocking(move || {
        let room = Ceiling::own().room_bytes();
        broker::apart("import", || read(&bytes, &name, now, room))
    });
    let imported = imported
        .await?
        .map_err(ApiError::internal)?
        .map_err(|error| {
            let detail = error.to_string();
            match error {
                ImportError::NoMemory { .. } => ApiError::MemoryShort { detail },
                _ => ApiError::UnusableProfile { detail },
            }
        })?;
    let task = state.parts.engine.import(imported).await?;
    let location = [(header::LOCATION, format!("/api/v1/tasks/{}", task.id))];
    Ok((StatusCode::CREATED, location, Json(state.shown(&task))))
}

/// Reads a body that may be as large as a file.
async fn receive(body: Body) -> Result<Vec<u8>, ApiError> {
    let mut pieces = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| ApiError::BodyInterrupted)?;
        if bytes.len() + piece.len() > MAX_FILE_BYTES {
            return Err(ApiError::BodyTooLarge {
                limit_bytes: MAX_FILE_BYTES,
            });
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}
