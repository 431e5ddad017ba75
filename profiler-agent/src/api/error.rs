//! Every error answer: problem+json (RFC 9457) with a stable `code`.

use axum::{
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use profiler_analysis::{comparison::NotComparable, render::RenderError};
use profiler_model::{TaskId, printable::printable};
use profiler_symbolize::PackError;

use super::dto::Problem;
use profiler_engine::{checkup::CheckupError, task::TaskError};

use profiler_memory::MemoryShort;

/// Why a request was refused or failed. Each variant has one status and one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApiError {
    MissingToken,
    WrongToken,
    /// The token may only look.
    ReadOnlyToken,
    /// The sender's address has tried too many.
    TooManyWrongTokens {
        wait_s: u64,
    },
    /// Too many requests have no right token.
    TooManyStrangers,
    RepeatedHeader {
        name: &'static str,
    },
    ForeignHost {
        host: String,
    },
    ForeignOrigin {
        origin: String,
    },
    NotFound {
        detail: String,
    },
    MethodNotAllowed {
        method: String,
    },
    BodyTooLarge {
        limit_bytes: usize,
    },
    MalformedJson {
        detail: String,
    },
    BodyInterrupted,
    UnsupportedMediaType,
    InvalidField {
        field: String,
        detail: String,
        hint: Option<String>,
    },
    TaskNotFinal {
        detail: String,
    },
    UnusableSymbols {
        detail: String,
    },
    BuildIdMismatch {
        detail: String,
    },
    NoRoomForSymbols {
        detail: String,
    },
    SymbolsNotRemovable {
        detail: String,
    },
    /// No task is started here.
    TasksRefused {
        detail: String,
    },
    UnusableProfile {
        detail: String,
    },
    /// The kernel does not let its statistics be turned on.
    StatisticsRefused {
        detail: String,
    },
    /// The process cannot be looked at.
    ProcessNotReadable {
        detail: String,
    },
    /// The always-on collection is off.
    NetworkOff,
    /// No access logs are received.
    AccessLogsOff,
    /// The result of the task is a table of edges.
    NoProfile {
        id: TaskId,
    },
    /// The result of the task is a profile.
    NoEdges {
        id: TaskId,
    },
    /// The task was not asked to look for requests.
    NoRequests {
        id: TaskId,
    },
    /// The operator did not allow that tasks read plaintext of TLS.
    TlsCaptureNotAllowed,
    /// The operator did not allow that tasks keep bodies.
    BodiesNotAllowed,
    /// The task was not asked to watch event loops.
    NoEventLoop {
        id: TaskId,
    },
    /// The task failed before it had a result.
    TaskFailed {
        id: TaskId,
        reason: String,
    },
    /// A comparison of two check-ups would mislead.
    NotComparable {
        detail: String,
        hint: &'static str,
    },
    TooManyTasks {
        detail: String,
    },
    Overloaded {
        detail: &'static str,
    },
    /// The agent's memory is near its ceiling.
    MemoryShort {
        detail: String,
    },
    TimedOut,
    ShuttingDown,
    /// No program can be loaded.
    NotReady,
    /// The disk refused the last write.
    CannotStore {
        detail: String,
    },
    /// There is no room for what the request makes.
    DiskFull {
        detail: String,
    },
    Internal {
        detail: String,
    },
}

/// Longest detail of an answer, which may repeat what was sent: clients without the token must not fill memory with it.
const MAX_DETAIL_BYTES: usize = 1000;
/// Longest name of a field; those that exist are shorter.
const MAX_FIELD_BYTES: usize = 200;

/// A text without its middle, where it is longer than `most` bytes.
fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most * 3 / 5);
    let tail = text.ceil_char_boundary(text.len() - most * 2 / 5);
    format!("{}\u{2026}{}", &text[..head], &text[tail..])
}

struct Parts {
    status: StatusCode,
    code: &'static str,
    detail: String,
    hint: Option<String>,
    field: Option<String>,
}

impl ApiError {
    pub(super) fn invalid_field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::InvalidField {
            field: field.into(),
            detail: detail.into(),
            hint: None,
        }
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::NotFound {
            detail: detail.into(),
        }
    }

    pub(super) fn internal(error: impl std::fmt::Display) -> Self {
        Self::Internal {
            detail: error.to_string(),
        }
    }

    fn into_parts(self) -> Parts {
        let parts = |status, code, detail: String| Parts {
            status,
            code,
            detail,
            hint: None,
            field: None,
        };
        let hinted = |status, code, detail: String, hint: &str| Parts {
            status,
            code,
            detail,
            hint: Some(hint.to_owned()),
            field: None,
        };
        match self {
            Self::MissingToken => hinted(
                StatusCode::UNAUTHORIZED,
                "missing_token",
                "the request carries no token".into(),
                "send the header Authorization: Bearer TOKEN; the token is in the file of --token-file or, without it, in \
                 `token` of the agent's data directory, and `profiler-agent url`, with the settings of `serve`, prints the address with it",
            ),
            Self::WrongToken => hinted(
                StatusCode::UNAUTHORIZED,
                "wrong_token",
                "the token is not the one of this agent".into(),
                "the token changes at each start of the agent unless it runs with --token-file",
            ),
            Self::ReadOnlyToken => hinted(
                StatusCode::FORBIDDEN,
                "read_only_token",
                "this token may only look".into(),
                "use the agent's full token: `profiler-agent url`, with the settings of `serve`, prints the address with it",
            ),
            Self::TooManyWrongTokens { wait_s } => hinted(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_wrong_tokens",
                format!("too many requests from this address had a wrong token; wait {wait_s} s"),
                "send the right token, which is taken at once: `profiler-agent url`, with the settings of `serve`, prints the address with it",
            ),
            Self::TooManyStrangers => hinted(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_strangers",
                "too many requests have no right token; try again soon".into(),
                "send the token: requests that have it are always answered",
            ),
            Self::RepeatedHeader { name } => parts(
                StatusCode::BAD_REQUEST,
                "repeated_header",
                format!("the request has more than one header {name}: send one"),
            ),
            Self::ForeignHost { host } => hinted(
                StatusCode::FORBIDDEN,
                "foreign_host",
                format!("the Host header {host:?} does not name this agent"),
                "use the address that the agent printed at start, with its port; of others an IP address of its \
                 machine where it listens on all, or one that its certificate names",
            ),
            Self::ForeignOrigin { origin } => hinted(
                StatusCode::FORBIDDEN,
                "foreign_origin",
                format!("requests from the origin {origin:?} are not accepted"),
                "only pages of this agent may call its API",
            ),
            Self::NotFound { detail } => parts(StatusCode::NOT_FOUND, "not_found", detail),
            Self::MethodNotAllowed { method } => parts(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                format!("the method {method} is not allowed here"),
            ),
            Self::BodyTooLarge { limit_bytes } => parts(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                format!("the request body is larger than {limit_bytes} bytes"),
            ),
            Self::MalformedJson { detail } => parts(
                StatusCode::BAD_REQUEST,
                "malformed_json",
                format!("the request body is not valid JSON: {detail}"),
            ),
            Self::BodyInterrupted => parts(
                StatusCode::BAD_REQUEST,
                "body_interrupted",
                "the request body ended early".into(),
            ),
            Self::UnsupportedMediaType => hinted(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "the request body must be JSON".into(),
                "send the header Content-Type: application/json",
            ),
            Self::InvalidField {
                field,
                detail,
                hint,
            } => Parts {
                status: StatusCode::UNPROCESSABLE_ENTITY,
                code: "invalid_field",
                detail,
                hint,
                field: Some(field),
            },
            Self::TaskNotFinal { detail } => parts(StatusCode::CONFLICT, "task_not_final", detail),
            Self::UnusableSymbols { detail } => {
                parts(StatusCode::UNPROCESSABLE_ENTITY, "unusable_symbols", detail)
            }
            Self::BuildIdMismatch { detail } => hinted(
                StatusCode::CONFLICT,
                "build_id_mismatch",
                detail,
                "take the debug file from the same build, for example from the image's -debug variant",
            ),
            Self::NoRoomForSymbols { detail } => hinted(
                StatusCode::PAYLOAD_TOO_LARGE,
                "no_room_for_symbols",
                detail,
                "delete symbol files that are no longer needed, or start the agent with a larger --max-symbol-bytes",
            ),
            Self::SymbolsNotRemovable { detail } => {
                parts(StatusCode::CONFLICT, "symbols_not_removable", detail)
            }
            Self::TasksRefused { detail } => hinted(
                StatusCode::CONFLICT,
                "tasks_refused",
                detail,
                "start the agent without --demo-data, with the privileges that `profiler-agent doctor` asks for",
            ),
            Self::UnusableProfile { detail } => hinted(
                StatusCode::UNPROCESSABLE_ENTITY,
                "unusable_profile",
                detail,
                "give a pprof file (gzip or plain) with counts or times, or folded stacks (`a;b;c 12` a line)",
            ),
            Self::StatisticsRefused { detail } => hinted(
                StatusCode::CONFLICT,
                "statistics_refused",
                detail,
                "run the agent as root or with CAP_SYS_ADMIN, or set kernel.bpf_stats_enabled to 1",
            ),
            Self::ProcessNotReadable { detail } => {
                parts(StatusCode::CONFLICT, "process_not_readable", detail)
            }
            Self::NetworkOff => hinted(
                StatusCode::CONFLICT,
                "network_off",
                "connections are watched for tasks only".into(),
                "start the agent with --network always, or create a task of kind network",
            ),
            Self::AccessLogsOff => hinted(
                StatusCode::CONFLICT,
                "access_logs_off",
                "no access logs are received here".into(),
                "start the agent with --access-logs ADDRESS:PORT",
            ),
            Self::NoProfile { id } => hinted(
                StatusCode::CONFLICT,
                "no_profile",
                format!("task {id} watches connections: its result is not a profile"),
                &format!("ask for /api/v1/tasks/{id}/edges"),
            ),
            Self::NoEdges { id } => hinted(
                StatusCode::CONFLICT,
                "no_edges",
                format!("task {id} watches no connections: its result is a profile"),
                &format!("ask for /api/v1/tasks/{id}/profile?format=folded"),
            ),
            Self::NoRequests { id } => hinted(
                StatusCode::CONFLICT,
                "no_requests",
                format!("task {id} does not look for requests"),
                "create a task of kind requests",
            ),
            Self::TlsCaptureNotAllowed => hinted(
                StatusCode::FORBIDDEN,
                "tls_capture_not_allowed",
                "tasks of this agent may not read plaintext of TLS libraries".into(),
                "start the agent with --allow-tls-capture, or leave tls out",
            ),
            Self::BodiesNotAllowed => hinted(
                StatusCode::FORBIDDEN,
                "bodies_not_allowed",
                "tasks of this agent may not keep bodies of requests".into(),
                "start the agent with --allow-bodies, or leave bodies out",
            ),
            Self::NoEventLoop { id } => hinted(
                StatusCode::CONFLICT,
                "no_event_loop",
                format!("task {id} does not watch event loops"),
                "start one of kind on_cpu, off_cpu or wall with \"event_loop\": {\"threshold_ms\": 20}",
            ),
            Self::TaskFailed { id, reason } => parts(
                StatusCode::CONFLICT,
                "task_failed",
                format!("task {id} failed before it had a result: {reason}"),
            ),
            Self::NotComparable { detail, hint } => {
                hinted(StatusCode::CONFLICT, "not_comparable", detail, hint)
            }
            Self::TooManyTasks { detail } => {
                parts(StatusCode::TOO_MANY_REQUESTS, "too_many_tasks", detail)
            }
            Self::Overloaded { detail } => parts(
                StatusCode::SERVICE_UNAVAILABLE,
                "overloaded",
                detail.to_owned(),
            ),
            Self::MemoryShort { detail } => hinted(
                StatusCode::SERVICE_UNAVAILABLE,
                "memory_short",
                detail,
                "stop tasks that are no longer needed, or start the agent with a larger --max-memory (or a higher \
                 memory limit of its cgroup)",
            ),
            Self::TimedOut => parts(
                StatusCode::SERVICE_UNAVAILABLE,
                "timed_out",
                "the answer took longer than the agent's limit".into(),
            ),
            Self::ShuttingDown => parts(
                StatusCode::SERVICE_UNAVAILABLE,
                "shutting_down",
                "the agent is shutting down".into(),
            ),
            // Not which and why: the caller has shown no token.
            Self::NotReady => hinted(
                StatusCode::SERVICE_UNAVAILABLE,
                "not_ready",
                "no eBPF program can be loaded here".into(),
                "run `profiler-agent doctor`: it says what is missing",
            ),
            Self::CannotStore { detail } => hinted(
                StatusCode::SERVICE_UNAVAILABLE,
                "cannot_store",
                detail,
                "make room on the disk of the data directory (--data-dir), or see in the kernel's log why it is read-only",
            ),
            Self::DiskFull { detail } => hinted(
                StatusCode::INSUFFICIENT_STORAGE,
                "disk_full",
                detail,
                "make room on the disk of the data directory (--data-dir), or delete tasks that are no longer needed",
            ),
            Self::Internal { detail } => {
                parts(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let challenge = match self {
            Self::MissingToken => Some("Bearer realm=\"profiler-agent\""),
            Self::WrongToken => Some("Bearer realm=\"profiler-agent\", error=\"invalid_token\""),
            _ => None,
        };
        let retry_s = match self {
            Self::Overloaded { .. }
            | Self::TooManyTasks { .. }
            | Self::TooManyStrangers
            | Self::MemoryShort { .. } => Some(1),
            Self::TooManyWrongTokens { wait_s } => Some(wait_s),
            _ => None,
        };
        if let Self::Internal { detail } = &self {
            tracing::error!(detail, "request failed");
        }
        let Parts {
            status,
            code,
            detail,
            hint,
            field,
        } = self.into_parts();
        let problem = Problem {
            kind: "about:blank".into(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: shortened(&printable(&detail), MAX_DETAIL_BYTES),
            code: code.into(),
            hint,
            field: field.map(|field| shortened(&printable(&field), MAX_FIELD_BYTES)),
        };
        // A struct of strings and numbers always encodes; an empty body is the worst case.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(challenge) = challenge {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static(challenge),
            );
        }
        if let Some(seconds) = retry_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<TaskError> for ApiError {
    fn from(error: TaskError) -> Self {
        let detail = error.to_string();
        match error {
            TaskError::InvalidSpec { field, detail } => Self::invalid_field(field, detail),
            TaskError::NotFound { .. } => Self::NotFound { detail },
            TaskError::TooMany { .. } => Self::TooManyTasks { detail },
            TaskError::NotFinal { .. } => Self::TaskNotFinal { detail },
            TaskError::MemoryShort(_) => Self::MemoryShort { detail },
            TaskError::Refused(detail) => Self::TasksRefused { detail },
            TaskError::NotStored(detail) => Self::UnusableProfile { detail },
            TaskError::Store(_) => Self::Internal { detail },
            TaskError::StoreFull(_) => Self::DiskFull { detail },
            TaskError::StoreReadOnly(_) => Self::CannotStore { detail },
        }
    }
}

impl From<MemoryShort> for ApiError {
    fn from(error: MemoryShort) -> Self {
        Self::MemoryShort {
            detail: error.to_string(),
        }
    }
}

impl From<CheckupError> for ApiError {
    fn from(error: CheckupError) -> Self {
        let detail = error.to_string();
        match error {
            CheckupError::NotFound { .. } => Self::NotFound { detail },
            CheckupError::NotFinal { .. } => Self::TaskNotFinal { detail },
            CheckupError::Task(error) => error.into(),
        }
    }
}

impl From<NotComparable> for ApiError {
    fn from(error: NotComparable) -> Self {
        Self::NotComparable {
            detail: error.to_string(),
            hint: error.remedy(),
        }
    }
}

impl From<PackError> for ApiError {
    fn from(error: PackError) -> Self {
        let detail = error.to_string();
        match error {
            PackError::NotElf | PackError::NoBuildId | PackError::NoSymbols => {
                Self::UnusableSymbols { detail }
            }
            PackError::Mismatch { .. } => Self::BuildIdMismatch { detail },
            PackError::TooLarge { .. } => Self::NoRoomForSymbols { detail },
            PackError::NoFolder | PackError::Io { .. } => Self::Internal { detail },
        }
    }
}

impl From<RenderError> for ApiError {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::NoViewer => Self::invalid_field("format", error.to_string()),
            RenderError::Svg(_)
            | RenderError::Compress(_)
            | RenderError::Json(_)
            | RenderError::Template(_) => Self::internal(error),
        }
    }
}

/// Answers paths that no route has.
pub(super) async fn no_route(request: Request) -> ApiError {
    ApiError::not_found(format!("there is nothing at {}", request.uri().path()))
}

/// Answers methods that a route does not have.
pub(super) async fn no_method(request: Request) -> ApiError {
    ApiError::MethodNotAllowed {
        method: request.method().to_string(),
    }
}
