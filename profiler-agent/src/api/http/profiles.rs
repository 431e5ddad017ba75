//! Results of tasks: the profile in several formats, and its threads.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use profiler_analysis::render::{Budget, Format, Value, View, render_view, summary};
use profiler_model::{ImportValues, Profile, Selection, Target, Task, TaskId, TaskKind, Unsampled};

use super::{
    tasks::task_id,
    waits::{self, known, read_view},
};
use crate::api::{
    dto::{Problem, ProfileFormat, ProfileIdle, ProfileThread, ProfileThreadList, ProfileValue},
    error::ApiError,
    extract::Query,
    headers::SVG_CSP,
    state::{ApiState, blocking},
    ui::offline_viewer,
};
use profiler_memory::Ceiling;

pub(super) const NS_PER_MS: u64 = 1_000_000;
/// Samples and switches make no sum.
pub(super) const NO_COUNT: &str =
    "a wall-clock profile counts time only: leave value out, or give duration";
pub(super) const SELECTION: [&str; 5] = ["from", "to", "tid", "pid", "not_tid"];
/// More than that is a mistake, and each is compared with every sample.
const MAX_IDS: usize = 1024;

pub(super) fn selection(query: &Query) -> Result<Selection, ApiError> {
    selection_named(query, SELECTION)
}

/// The same with other names of the parameters.
pub(super) fn selection_named(query: &Query, names: [&str; 5]) -> Result<Selection, ApiError> {
    let [from, to, tid, pid, not_tid] = names;
    let ms = |name| -> Result<Option<u64>, ApiError> {
        let value: Option<u64> = query.parsed(name, "a number of milliseconds")?;
        Ok(value.map(|ms| ms.saturating_mul(NS_PER_MS)))
    };
    let ids = |name| -> Result<Vec<u32>, ApiError> {
        let ids = query.repeated(name, "a thread or process number")?;
        if ids.len() > MAX_IDS {
            let detail = format!(
                "{name} is given {} times; at most {MAX_IDS} are taken",
                ids.len()
            );
            return Err(ApiError::invalid_field(name, detail));
        }
        Ok(ids)
    };
    let selection = Selection {
        from_ns: ms(from)?,
        to_ns: ms(to)?,
        tids: ids(tid)?,
        pids: ids(pid)?,
        except_tids: ids(not_tid)?,
    };
    if let (Some(first), Some(last)) = (selection.from_ns, selection.to_ns)
        && first >= last
    {
        let detail = format!(
            "{to} ({}) must be after {from} ({})",
            last / NS_PER_MS,
            first / NS_PER_MS
        );
        return Err(ApiError::invalid_field(to, detail));
    }
    Ok(selection)
}

/// The result with the names that are known now. Refused for tasks whose result is no profile.
pub(super) async fn read(
    state: &ApiState,
    id: TaskId,
    selection: Selection,
) -> Result<Profile, ApiError> {
    if state.parts.engine.get(id)?.spec.kind.has_edges() {
        return Err(ApiError::NoProfile { id });
    }
    let profile = state.parts.engine.profile(id, selection).await?;
    let renamer = state.parts.renamer.clone();
    blocking(move || renamer.rename(profile)).await
}

/// Downloads the result so far, whole or cut.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/profile", tag = "profiles",
    params(
        ("id" = String, Path),
        ("format" = ProfileFormat, Query),
        ("value" = Option<ProfileValue>, Query, description = "What the numbers count; by default samples of on-CPU tasks and nanoseconds of the others; wall-clock tasks have durations only"),
        ("idle" = Option<ProfileIdle>, Query, description = "Whether waits of threads that have nothing to do are shown (default show)"),
        ("state" = Option<Vec<String>>, Query, description = "Keep these states, for example `interruptible`; may be repeated"),
        ("reason" = Option<Vec<String>>, Query, description = "Keep these reasons of waits, for example `futex`; may be repeated"),
        ("cell" = Option<String>, Query, description = "Keep a cell of the diagnosis: `FEATURE`, `FEATURE:MECHANISM` or `:MECHANISM`"),
        ("wakers" = Option<bool>, Query, description = "Show who ended each wait above where the thread waited, in tasks that recorded it (default false)"),
        ("from" = Option<u64>, Query, description = "Milliseconds after the task's start"),
        ("to" = Option<u64>, Query, description = "Milliseconds after the task's start"),
        ("tid" = Option<Vec<u32>>, Query, description = "Keep these threads; may be repeated"),
        ("pid" = Option<Vec<u32>>, Query, description = "Keep these processes; may be repeated"),
        ("not_tid" = Option<Vec<u32>>, Query, description = "Leave these threads out; may be repeated")
    ),
    responses(
        (status = 200, description = "The profile", content(
            (String = "text/plain"),
            (Vec<u8> = "application/vnd.google.protobuf+gzip"),
            (String = "image/svg+xml"),
            (String = "text/html"),
            (Object = "application/json"),
            (Vec<u8> = "application/vnd.profiler-agent.flamegraph")
        )),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_profile`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`memory_short`")
    )
)]
pub(in crate::api) async fn profile(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
) -> Result<Response, ApiError> {
    let query = query.only(&known(&["format", "value", "wakers"]))?;
    let names = || Format::ALL.map(Format::name).join(", ");
    let Some(name) = query.text("format")? else {
        return Err(ApiError::invalid_field(
            "format",
            format!("format is missing: give one of {}", names()),
        ));
    };
    let format = Format::ALL
        .into_iter()
        .find(|format| format.name() == name)
        .ok_or_else(|| {
            ApiError::invalid_field(
                "format",
                format!("format {name:?} is not one of {}", names()),
            )
        })?;
    let value = value(&query)?;
    let wakers = query.parsed("wakers", "true or false")?.unwrap_or(false);
    let selection = selection(&query)?;
    let waits = waits::view(&query, &state.parts.diagnosis_rules)?;
    let task = state.parts.engine.get(task_id(id)?)?;
    if let Some(detail) = value.and_then(|value| missing_value(&task, value)) {
        return Err(ApiError::invalid_field("value", detail));
    }
    // Waits its turn within the time limit of the request.
    let _turn = state.render_turn().await?;
    let (profile, idle) =
        read_view(&state, task.id, selection, waits, Unsampled::SharedOut).await?;
    let title = title(&task);
    let rendered = blocking(move || {
        let template = (format == Format::Html).then(offline_viewer).flatten();
        let view = View {
            value,
            title: &title,
            idle: idle.as_ref(),
            wakers,
            template: template.as_deref(),
            budget: Budget::of_room(Ceiling::own().room_bytes()),
        };
        render_view(&profile, format, &view)
    });
    let bytes = rendered.await??;
    Ok(file_response(task.id, format, bytes))
}

pub(super) fn value(query: &Query) -> Result<Option<Value>, ApiError> {
    let Some(name) = query.text("value")? else {
        return Ok(None);
    };
    let found = Value::ALL.into_iter().find(|value| value.name() == name);
    found.map(Some).ok_or_else(|| {
        let names = Value::ALL.map(Value::name).join(", ");
        ApiError::invalid_field("value", format!("value {name:?} is not one of {names}"))
    })
}

/// Why a task has no such numbers; `None` when it has.
pub(super) fn missing_value(task: &Task, value: Value) -> Option<&'static str> {
    let values = match &task.spec.target {
        Target::Imported(file) => file.values,
        _ if task.spec.kind == TaskKind::Wall => ImportValues::Durations,
        _ => return None,
    };
    match (values, value) {
        (ImportValues::Durations, Value::Count) if task.spec.kind == TaskKind::Wall => {
            Some(NO_COUNT)
        }
        (ImportValues::Durations, Value::Count) => {
            Some("the imported file has durations only: leave value out, or give duration")
        }
        (ImportValues::Counts, Value::Duration) => {
            Some("the imported file has counts only: leave value out, or give count")
        }
        _ => None,
    }
}

fn title(task: &Task) -> String {
    let target = match &task.spec.target {
        Target::Pids(pids) => {
            let pids: Vec<_> = pids.iter().map(ToString::to_string).collect();
            format!("pid {}", pids.join(", "))
        }
        Target::Container(id) => format!("container {id}"),
        Target::Pod(selector) => selector.to_string(),
        Target::Cgroup(path) => format!("cgroup {path}"),
        Target::Comm(comm) => format!("processes named {comm}"),
        Target::All => "all processes".to_owned(),
        Target::NetworkNamespace(path) => format!("network namespace {path}"),
        Target::Imported(file) => return format!("{} (task {}, imported)", file.name, task.id),
    };
    let time = match task.spec.kind {
        TaskKind::OnCpu => "On-CPU",
        TaskKind::OffCpu => "Off-CPU",
        TaskKind::Wall => "Wall-clock",
        TaskKind::Network => "Network",
        TaskKind::Requests => "Requests",
        TaskKind::Imported => "Imported",
    };
    format!("{time} time of {target} (task {})", task.id)
}

fn file_response(task: TaskId, format: Format, bytes: Vec<u8>) -> Response {
    let suffix = match format {
        Format::Folded => Some("folded"),
        Format::Pprof => Some("pb.gz"),
        Format::Svg => Some("svg"),
        Format::Speedscope => Some("speedscope.json"),
        Format::Html => Some("html"),
        Format::Flamegraph => None,
    };
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(format.media_type()),
    );
    let disposition = suffix.map(|suffix| format!("attachment; filename=\"task-{task}.{suffix}\""));
    if let Some(Ok(value)) = disposition.map(|text| HeaderValue::from_str(&text)) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    // Neither runs anything when it is opened from the agent's own address.
    if matches!(format, Format::Svg | Format::Html) {
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(SVG_CSP),
        );
    }
    response
}

/// Threads in the result with their samples.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/threads", tag = "profiles",
    params(
        ("id" = String, Path),
        ("idle" = Option<ProfileIdle>, Query, description = "Whether waits of threads that have nothing to do are shown (default show)"),
        ("state" = Option<Vec<String>>, Query, description = "Keep these states, for example `interruptible`; may be repeated"),
        ("reason" = Option<Vec<String>>, Query, description = "Keep these reasons of waits, for example `futex`; may be repeated"),
        ("cell" = Option<String>, Query, description = "Keep a cell of the diagnosis: `FEATURE`, `FEATURE:MECHANISM` or `:MECHANISM`")
    ),
    responses(
        (status = 200, body = ProfileThreadList),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_profile`")
    )
)]
pub(in crate::api) async fn threads(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
) -> Result<Json<ProfileThreadList>, ApiError> {
    let query = query.only(&known(&[]))?;
    let selection = selection(&query)?;
    let waits = waits::view(&query, &state.parts.diagnosis_rules)?;
    let (profile, _idle) =
        read_view(&state, task_id(id)?, selection, waits, Unsampled::SharedOut).await?;
    let items = blocking(move || summary::threads(&profile)).await?;
    let items = items.into_iter().map(ProfileThread::from).collect();
    Ok(Json(ProfileThreadList { items }))
}
