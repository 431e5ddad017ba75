//! Symbol files: names for stripped programs, by build-id.

use axum::{
    Json,
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderName, StatusCode, header},
};
use futures_util::StreamExt;
use profiler_image::build_id::{hexadecimal as build_id_text, parse as parse_build_id};
use profiler_symbolize::Unfinished;
use tokio::io::AsyncWriteExt as _;

use crate::api::{
    dto::{Problem, SymbolFile, SymbolFileList},
    error::ApiError,
    parameters::Given,
    state::{ApiState, blocking},
};

/// Lists the symbol files: uploaded, fetched, and in the user's folder.
#[utoipa::path(
    get, path = "/api/v1/symbols", tag = "symbols",
    responses(
        (status = 200, body = SymbolFileList),
        (status = 401, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::api) async fn list(
    State(state): State<ApiState>,
    _: Given<()>,
) -> Result<Json<SymbolFileList>, ApiError> {
    let symbols = state.parts.symbols.clone();
    let max_bytes = symbols.max_bytes();
    let items = blocking(move || symbols.list()).await?;
    let items: Vec<_> = items.into_iter().map(SymbolFile::from).collect();
    let total = items.len();
    Ok(Json(SymbolFileList {
        items,
        total,
        max_bytes,
    }))
}

/// What is answered to an upload that was taken.
type Taken = (StatusCode, [(HeaderName, String); 1], Json<SymbolFile>);

/// Takes an ELF file with symbols or debug information for the build-id that it carries.
#[utoipa::path(
    post, path = "/api/v1/symbols", tag = "symbols",
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 201, body = SymbolFile, headers(("Location" = String, description = "Address of the file"))),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 413, body = Problem, content_type = "application/problem+json", description = "`body_too_large`, `no_room_for_symbols`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`unusable_symbols`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`overloaded`")
    )
)]
pub(in crate::api) async fn upload(
    State(state): State<ApiState>,
    _: Given<()>,
    body: Body,
) -> Result<Taken, ApiError> {
    take(&state, body, None).await
}

/// Takes an ELF file for this build-id and refuses one of another build.
#[utoipa::path(
    put, path = "/api/v1/symbols/{build_id}", tag = "symbols",
    params(("build_id" = String, Path, description = "Hexadecimal digits")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 201, body = SymbolFile, headers(("Location" = String, description = "Address of the file"))),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`build_id_mismatch`"),
        (status = 413, body = Problem, content_type = "application/problem+json", description = "`body_too_large`, `no_room_for_symbols`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`unusable_symbols`, `invalid_field`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`overloaded`")
    )
)]
pub(in crate::api) async fn replace(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    _: Given<()>,
    body: Body,
) -> Result<Taken, ApiError> {
    let id = build_id(id)?;
    take(&state, body, Some(id)).await
}

/// Deletes an uploaded or fetched file.
#[utoipa::path(
    delete, path = "/api/v1/symbols/{build_id}", tag = "symbols",
    params(("build_id" = String, Path, description = "Hexadecimal digits")),
    responses(
        (status = 204, description = "Deleted"),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`symbols_not_removable`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`")
    )
)]
pub(in crate::api) async fn delete(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    _: Given<()>,
) -> Result<StatusCode, ApiError> {
    let id = build_id(id)?;
    let symbols = state.parts.symbols.clone();
    let (removed, given) = blocking(move || {
        let removed = symbols.remove(&id)?;
        let given = symbols.list().into_iter().find(|info| info.build_id == id);
        Ok::<_, ApiError>((removed, given.map(|info| info.build_id)))
    })
    .await??;
    match (removed, given) {
        (true, _) => {
            state.parts.inspection.forecasts().forget();
            Ok(StatusCode::NO_CONTENT)
        }
        (false, None) => Err(ApiError::not_found("no symbol file has this build-id")),
        (false, Some(id)) => Err(ApiError::SymbolsNotRemovable {
            detail: format!(
                "the file for {} is in the folder of --symbol-dir, which the agent only reads",
                build_id_text(&id)
            ),
        }),
    }
}

fn build_id(id: Result<Path<String>, PathRejection>) -> Result<Vec<u8>, ApiError> {
    let Path(text) = id.map_err(|error| ApiError::not_found(error.body_text()))?;
    parse_build_id(&text).ok_or_else(|| {
        ApiError::invalid_field(
            "build_id",
            format!("build_id {text:?} is not 4 to 128 hexadecimal digits"),
        )
    })
}

async fn take(state: &ApiState, body: Body, expected: Option<Vec<u8>>) -> Result<Taken, ApiError> {
    if state.is_shutting_down() {
        return Err(ApiError::ShuttingDown);
    }
    let Ok(_turn) = state.uploads.try_acquire() else {
        return Err(ApiError::Overloaded {
            detail: "other symbol files are being received; try again soon",
        });
    };
    let symbols = state.parts.symbols.clone();
    let written = {
        let symbols = symbols.clone();
        blocking(move || symbols.begin()).await??
    };
    receive(body, &written, symbols.max_bytes()).await?;
    let info = blocking(move || symbols.take(written, expected.as_deref())).await??;
    state.parts.inspection.forecasts().forget();
    let file = SymbolFile::from(info);
    let location = format!("/api/v1/symbols/{}", file.build_id);
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(file),
    ))
}

/// Writes a body into the file; memory is bounded by the pieces in which it comes.
async fn receive(body: Body, written: &Unfinished, limit: u64) -> Result<(), ApiError> {
    let failed =
        |error: std::io::Error| ApiError::internal(format!("write a symbol file: {error}"));
    let mut file = tokio::fs::File::create(written.path())
        .await
        .map_err(failed)?;
    let mut pieces = body.into_data_stream();
    let mut total = 0u64;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| ApiError::BodyInterrupted)?;
        total = total.saturating_add(piece.len() as u64);
        if total > limit {
            return Err(ApiError::BodyTooLarge {
                limit_bytes: usize::try_from(limit).unwrap_or(usize::MAX),
            });
        }
        file.write_all(&piece).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)
}
