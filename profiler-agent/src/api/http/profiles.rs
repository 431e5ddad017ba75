//! Results of tasks: the profile in several formats, and its threads.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use profiler_analysis::{
    activities::Activities,
    render::{Budget, Format, Value, View, render_view, summary},
};
use profiler_model::{
    ImportValues, Profile, Selection, Target, Task, TaskId, TaskKind, TaskOrigin, Unsampled,
};

use super::{
    tasks::task_id,
    waits::{ViewParameters, read_view, shown},
};
use crate::api::{
    dto::{Problem, ProfileFormat, ProfileThread, ProfileThreadList, ProfileValue},
    error::ApiError,
    headers::SVG_CSP,
    parameters::{Given, one_of, parameters},
    state::{ApiState, blocking},
    ui::offline_viewer,
};
use profiler_memory::Ceiling;

pub(super) const NS_PER_MS: u64 = 1_000_000;
/// Samples and switches make no sum.
pub(super) const NO_COUNT: &str =
    "a wall-clock profile counts time only: leave value out, or give duration";
/// More than that is a mistake, and each is compared with every sample.
const MAX_IDS: usize = 1024;
pub(super) const CONTAINER: &str = "the id of a container";
pub(super) const MILLISECONDS: &str = "a number of milliseconds";
pub(super) const NUMBER: &str = "a thread or process number";

parameters! {
    /// Which part of a result is meant.
    pub(in crate::api) struct SelectionParameters {
        /// Milliseconds after the task's start
        from: Option<u64> = MILLISECONDS,
        /// Milliseconds after the task's start
        to: Option<u64> = MILLISECONDS,
        /// Keep these threads; may be repeated
        tid: Option<Vec<u32>> = NUMBER,
        /// Keep these processes; may be repeated
        pid: Option<Vec<u32>> = NUMBER,
        /// Leave these threads out; may be repeated
        not_tid: Option<Vec<u32>> = NUMBER,
        /// Keep the processes of these containers, by their whole ids; may be repeated
        container: Option<Vec<String>> = CONTAINER,
    }
}

parameters! {
    pub(in crate::api) struct ProfileParameters {
        #[param(value_type = ProfileFormat)]
        format: Format = one_of(Format::ALL.map(Format::name)),
        /// What the numbers count; by default samples of on-CPU tasks and nanoseconds of the others; wall-clock tasks have durations only
        #[param(value_type = Option<ProfileValue>)]
        value: Option<Value> = one_of(Value::ALL.map(Value::name)),
        /// Show who ended each wait above where the thread waited, in tasks that recorded it (default false)
        wakers: Option<bool> = "true or false",
        /// Say which feature of the diagnosis asked for the work of each frame: only with `format=flamegraph`, and not with `wakers` (default false)
        features: Option<bool> = "true or false",
    }
}

impl SelectionParameters {
    /// Checks them; `prefix` is what the names of the parameters begin with.
    pub(super) fn selection(self, prefix: &str) -> Result<Selection, ApiError> {
        let Self {
            from,
            to,
            tid,
            pid,
            not_tid,
            container,
        } = self;
        if let (Some(first), Some(last)) = (from, to)
            && first >= last
        {
            return Err(ApiError::invalid_field(
                format!("{prefix}to"),
                format!("{prefix}to ({last}) must be after {prefix}from ({first})"),
            ));
        }
        let ids = |name, given| few(prefix, name, given);
        let ns = |ms: u64| ms.saturating_mul(NS_PER_MS);
        Ok(Selection {
            from_ns: from.map(ns),
            to_ns: to.map(ns),
            tids: ids("tid", tid)?,
            pids: ids("pid", pid)?,
            except_tids: ids("not_tid", not_tid)?,
            containers: few(prefix, "container", container)?,
        })
    }
}

/// What a parameter that may be repeated was given, at most [`MAX_IDS`] times.
fn few<T>(prefix: &str, name: &str, given: Option<Vec<T>>) -> Result<Vec<T>, ApiError> {
    let all = given.unwrap_or_default();
    if all.len() <= MAX_IDS {
        return Ok(all);
    }
    let detail = format!(
        "{prefix}{name} is given {} times; at most {MAX_IDS} are taken",
        all.len()
    );
    Err(ApiError::invalid_field(format!("{prefix}{name}"), detail))
}

/// The result with the names that are known now. Refused for tasks whose result is not a profile.
pub(super) async fn read(
    state: &ApiState,
    id: TaskId,
    selection: Selection,
) -> Result<Profile, ApiError> {
    if state.parts.engine.get(id)?.has_edges() {
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
        ProfileParameters, SelectionParameters, ViewParameters
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
    Given((parameters, selection, view)): Given<(
        ProfileParameters,
        SelectionParameters,
        ViewParameters,
    )>,
) -> Result<Response, ApiError> {
    let ProfileParameters {
        format,
        value,
        wakers,
        features,
    } = parameters;
    let (wakers, features) = (wakers.unwrap_or(false), features.unwrap_or(false));
    if features && (format != Format::Flamegraph || wakers) {
        let detail = "features needs format=flamegraph and no wakers".to_owned();
        return Err(ApiError::invalid_field("features", detail));
    }
    let selection = selection.selection("")?;
    let waits = view.view(&state.parts.diagnosis_rules)?;
    let task = state.parts.engine.get(task_id(id)?)?;
    if let Some(detail) = value.and_then(|value| missing_value(&task, value)) {
        return Err(ApiError::invalid_field("value", detail));
    }
    // Waits its turn within the time limit of the request.
    let _turn = state.render_turn().await?;
    let (profile, idle) =
        read_view(&state, task.id, selection, waits, Unsampled::SharedOut).await?;
    let title = title(&task);
    let rules = state.parts.diagnosis_rules.clone();
    let rendered = blocking(move || {
        let template = (format == Format::Html).then(offline_viewer).flatten();
        let features = features.then(|| rules.features(&profile));
        let view = View {
            features: features.as_ref(),
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

/// Why a task has no such numbers; `None` when it has.
pub(super) fn missing_value(task: &Task, value: Value) -> Option<&'static str> {
    let Some(imported) = task.imported() else {
        let is_wall = task.kind() == Some(TaskKind::Wall);
        return (is_wall && value == Value::Count).then_some(NO_COUNT);
    };
    match (imported.file.values, value) {
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
    let spec = match &task.origin {
        TaskOrigin::Recorded(spec) => spec,
        TaskOrigin::Imported(imported) => {
            return format!("{} (task {}, imported)", imported.file.name, task.id);
        }
    };
    let target = match &spec.target {
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
    };
    let time = match spec.kind() {
        TaskKind::OnCpu => "On-CPU",
        TaskKind::OffCpu => "Off-CPU",
        TaskKind::Wall => "Wall-clock",
        TaskKind::Network => "Network",
        TaskKind::Requests => "Requests",
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
        SelectionParameters, ViewParameters
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
    Given((selection, view)): Given<(SelectionParameters, ViewParameters)>,
) -> Result<Json<ProfileThreadList>, ApiError> {
    let selection = selection.selection("")?;
    let waits = view.view(&state.parts.diagnosis_rules)?;
    let profile = read(&state, task_id(id)?, selection).await?;
    let rules = state.parts.idle_rules.clone();
    // Of what is idle too, whatever is shown.
    let (profile, activities) = blocking(move || {
        let idle = rules.classify(&profile);
        let activities = Activities::of(&profile, idle.as_deref());
        (profile, activities)
    })
    .await?;
    let (profile, _idle) = shown(&state, profile, waits, Unsampled::SharedOut).await?;
    let threads = blocking(move || summary::threads(&profile)).await?;
    let items = threads
        .into_iter()
        .map(|thread| ProfileThread::new(thread, &activities, state.parts.table.names()))
        .collect();
    Ok(Json(ProfileThreadList { items }))
}
