//! Checks before anything else: who is addressed, who asks, how much, and how busy we are.
//!
//! Loopback is shared with every user, container with the host's network, and web page on the
//! machine. The Host check defeats DNS rebinding, the Origin and Sec-Fetch-Site checks defeat
//! requests that a foreign page makes.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{Request, State},
    http::{Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use super::{
    access::need_of,
    addressing::{host_of, names_us, single},
    error::ApiError,
    needs::Need,
    state::ApiState,
};

/// Largest request body.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;
/// Longest time for an answer to begin. A profile of an hour takes seconds to render.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest time for a symbol file to arrive.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(15);
/// How much of a body that is too large is read and thrown away, so that a client that is still
/// sending sees the answer instead of a broken connection.
const DRAIN_BYTES: usize = 32 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Where symbol files are uploaded to.
const SYMBOLS_PATH: &str = "/api/v1/symbols";
/// Where profiles are imported.
const IMPORTS_PATH: &str = "/api/v1/imports";
/// Path of the event stream, which stays open and is limited by its own count.
pub(super) const EVENTS_PATH: &str = "/api/v1/events";

/// Refuses requests that are not addressed to this agent or that a foreign page made.
pub(super) async fn check_addressing(
    State(state): State<ApiState>,
    request: Request,
    next: Next,
) -> Response {
    match addressed_to(&state, &request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn addressed_to(state: &ApiState, request: &Request) -> Result<(), ApiError> {
    let headers = request.headers();
    let origin = state.parts.origin;
    let host = host_of(headers, request.uri())?;
    let is_ours = |host: &str| names_us(origin, &state.parts.reached, host);
    if !host.as_deref().is_some_and(is_ours) {
        return Err(ApiError::ForeignHost {
            host: host.unwrap_or_default(),
        });
    }
    let own = format!("{}://{}", origin.scheme(), host.unwrap_or_default());
    if let Some(value) = single(headers, "origin")? {
        let given = String::from_utf8_lossy(value.as_bytes());
        if !given.eq_ignore_ascii_case(&own) {
            return Err(ApiError::ForeignOrigin {
                origin: given.into_owned(),
            });
        }
    }
    let Some(site) = single(headers, "sec-fetch-site")? else {
        return Ok(());
    };
    // `none` is typed by the user. Another port of localhost is the same *site*, yet foreign.
    if matches!(site.as_bytes(), b"same-origin" | b"none") || is_navigation(request)? {
        return Ok(());
    }
    let site = String::from_utf8_lossy(site.as_bytes()).into_owned();
    Err(ApiError::ForeignOrigin { origin: site })
}

/// A link on another page to the shell, which holds no data and cannot be framed.
fn is_navigation(request: &Request) -> Result<bool, ApiError> {
    let is = |name: &'static str, value: &[u8]| -> Result<bool, ApiError> {
        let given = single(request.headers(), name)?;
        Ok(given.is_some_and(|given| given.as_bytes() == value))
    };
    Ok(is("sec-fetch-mode", b"navigate")?
        && is("sec-fetch-dest", b"document")?
        && request.method() == Method::GET
        && need_of(request) == Need::Page)
}

/// Whether a request brings a symbol file, which may be large and take long.
fn is_upload(request: &Request) -> bool {
    let path = request.uri().path();
    let below = path
        .strip_prefix(SYMBOLS_PATH)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    below && matches!(*request.method(), Method::POST | Method::PUT)
}

/// Refuses a body whose announced length is over the limit; the extractors watch the others.
pub(super) async fn limit_body(
    State(state): State<ApiState>,
    request: Request,
    next: Next,
) -> Response {
    let limit_bytes = if request.uri().path() == IMPORTS_PATH {
        profiler_analysis::import::MAX_FILE_BYTES
    } else if is_upload(&request) {
        usize::try_from(state.parts.symbols.max_bytes()).unwrap_or(usize::MAX)
    } else {
        MAX_BODY_BYTES
    };
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_none_or(|bytes| bytes <= limit_bytes) {
        return next.run(request).await;
    }
    drain(request.into_body()).await;
    ApiError::BodyTooLarge { limit_bytes }.into_response()
}

async fn drain(body: Body) {
    let mut chunks = body.into_data_stream();
    let mut left = DRAIN_BYTES;
    let reading = async {
        while let Some(Ok(chunk)) = chunks.next().await {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                break;
            }
        }
    };
    // Running out of time ends the courtesy; the answer is the same.
    tokio::time::timeout(DRAIN_TIME, reading).await.ok();
}

/// Bounds the requests that are worked on and the time until their answer begins.
pub(super) async fn limit_load(
    State(state): State<ApiState>,
    request: Request,
    next: Next,
) -> Response {
    if request.uri().path() == EVENTS_PATH || need_of(&request) == Need::Health {
        return next.run(request).await;
    }
    let Ok(_permit) = state.requests.try_acquire() else {
        return ApiError::Overloaded {
            detail: "too many requests at once; try again soon",
        }
        .into_response();
    };
    let limit = if is_upload(&request) {
        UPLOAD_TIMEOUT
    } else {
        REQUEST_TIMEOUT
    };
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ApiError::TimedOut.into_response(),
    }
}

/// Hands a request that has passed every check to the agent's own threads: the one that reads connections has
/// no privileges.
pub(super) async fn run_inside(
    State(inside): State<Handle>,
    request: Request,
    next: Next,
) -> Response {
    // A client that leaves ends the work, as without the detour.
    let answering = AbortOnDropHandle::new(inside.spawn(next.run(request)));
    answering
        .await
        .unwrap_or_else(|error| ApiError::internal(error).into_response())
}
