//! Two results, or two parts of one, compared.

use axum::{
    Json,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use profiler_analysis::render::{
    Budget, Value,
    diff::{self, DiffView, Norm, Side},
};
use profiler_model::{IdleShare, ImportValues, Profile, Selection, Task, TaskId, Unsampled};

use super::{
    profiles::{CONTAINER, MILLISECONDS, NUMBER, SelectionParameters, missing_value},
    waits::{ViewParameters, WaitView, read_view},
};
use crate::api::{
    dto::{Diff, DiffFormat, DiffNorm, Problem, ProfileValue},
    error::ApiError,
    parameters::{Given, one_of, parameters},
    state::{ApiState, blocking},
};
use profiler_memory::Ceiling;

const MEDIA_TYPE: &str = "application/vnd.profiler-agent.diff";
const DEFAULT_FUNCTIONS: usize = 100;
const MAX_FUNCTIONS: usize = 10_000;

parameters! {
    pub(in crate::api) struct DiffParameters {
        /// Task of the base
        a: String = "the id of a task",
        /// Task that is compared with it; may be the same with another time or other threads
        b: String = "the id of a task",
        /// Functions with significance (default), or the columns of docs/diff-format.md
        format: Option<DiffFormat> = "one of table, flamegraph",
        /// Compare shares of everything (default), or amounts for each second
        #[param(value_type = Option<DiffNorm>)]
        norm: Option<Norm> = one_of(Norm::ALL.map(Norm::name)),
        /// Functions in a table (default 100, at most 10000)
        limit: Option<usize> = "a number of functions",
        /// Only the functions below this frame of a table: its number among the nodes of `format=flamegraph`, from 0
        below: Option<usize> = "a number of a node",
        /// What the numbers count; by default samples of on-CPU tasks and nanoseconds of the others
        #[param(value_type = Option<ProfileValue>)]
        value: Option<Value> = one_of(Value::ALL.map(Value::name)),
        /// Show who ended each wait above where the thread waited (default false)
        wakers: Option<bool> = "true or false",
        /// Milliseconds after the start of the base
        a_from: Option<u64> = MILLISECONDS,
        /// Milliseconds after the start of the base
        a_to: Option<u64> = MILLISECONDS,
        /// Threads of the base; may be repeated
        a_tid: Option<Vec<u32>> = NUMBER,
        /// Processes of the base; may be repeated
        a_pid: Option<Vec<u32>> = NUMBER,
        /// Threads of the base to leave out; may be repeated
        a_not_tid: Option<Vec<u32>> = NUMBER,
        /// Containers of `a`, by their whole ids; may be repeated
        a_container: Option<Vec<String>> = CONTAINER,
        /// Milliseconds after the start of `b`
        b_from: Option<u64> = MILLISECONDS,
        /// Milliseconds after the start of `b`
        b_to: Option<u64> = MILLISECONDS,
        /// Threads of `b`; may be repeated
        b_tid: Option<Vec<u32>> = NUMBER,
        /// Processes of `b`; may be repeated
        b_pid: Option<Vec<u32>> = NUMBER,
        /// Threads of `b` to leave out; may be repeated
        b_not_tid: Option<Vec<u32>> = NUMBER,
        /// Containers of `b`, by their whole ids; may be repeated
        b_container: Option<Vec<String>> = CONTAINER,
    }
}

/// Compares two results function by function; `a` is the base. Frames are the same when name, kind
/// and file name of the module are.
#[utoipa::path(
    get, path = "/api/v1/diff", tag = "profiles",
    params(DiffParameters, ViewParameters),
    responses(
        (status = 200, description = "The comparison", content(
            (Diff = "application/json"),
            (Vec<u8> = "application/vnd.profiler-agent.diff")
        )),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`memory_short`")
    )
)]
pub(in crate::api) async fn diff(
    State(state): State<ApiState>,
    Given((parameters, view)): Given<(DiffParameters, ViewParameters)>,
) -> Result<Response, ApiError> {
    let columns = matches!(parameters.format, Some(DiffFormat::Flamegraph));
    let norm = parameters.norm.unwrap_or(Norm::Share);
    let limit = parameters.limit.unwrap_or(DEFAULT_FUNCTIONS);
    let below = parameters.below.unwrap_or(0);
    if limit > MAX_FUNCTIONS {
        let detail = format!("limit ({limit}) must be at most {MAX_FUNCTIONS}");
        return Err(ApiError::invalid_field("limit", detail));
    }
    let waits = view.view(&state.parts.diagnosis_rules)?;
    let tasks = [task(&state, &parameters.a)?, task(&state, &parameters.b)?];
    let mut view = DiffView {
        value: comparable(&tasks, parameters.value)?,
        wakers: parameters.wakers.unwrap_or(false),
        budget: Budget::default(),
    };
    let [a, b] = parameters.selections();
    let (a, b) = (a.selection("a_")?, b.selection("b_")?);
    // Both are held at once: one turn for the two.
    let _turn = state.render_turn().await?;
    let a = side(&state, tasks[0].id, a, &waits).await?;
    let b = side(&state, tasks[1].id, b, &waits).await?;
    view.budget = Budget::of_room(blocking(|| Ceiling::own().room_bytes()).await?);
    if columns {
        let bytes = blocking(move || diff::render(a.borrowed(), b.borrowed(), view)).await?;
        return Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], bytes).into_response());
    }
    let sources = tasks.map(|task| task.id.to_string());
    let answer = blocking(move || {
        let report = diff::report(a.borrowed(), b.borrowed(), view, norm, below)?;
        Some(Diff::new(report, sources, limit))
    });
    let Some(answer) = answer.await? else {
        let detail = format!("there is no node {below}: the comparison has fewer");
        return Err(ApiError::invalid_field("below", detail));
    };
    Ok(Json(answer).into_response())
}

/// What is read of one side.
struct Read {
    profile: Profile,
    idle: Option<IdleShare>,
}

impl Read {
    fn borrowed(&self) -> Side<'_> {
        Side {
            profile: &self.profile,
            idle: self.idle.as_ref(),
        }
    }
}

async fn side(
    state: &ApiState,
    task: TaskId,
    selection: Selection,
    waits: &WaitView,
) -> Result<Read, ApiError> {
    let (profile, idle) =
        read_view(state, task, selection, waits.clone(), Unsampled::SharedOut).await?;
    Ok(Read { profile, idle })
}

impl DiffParameters {
    fn selections(self) -> [SelectionParameters; 2] {
        [
            SelectionParameters {
                from: self.a_from,
                to: self.a_to,
                tid: self.a_tid,
                pid: self.a_pid,
                not_tid: self.a_not_tid,
                container: self.a_container,
            },
            SelectionParameters {
                from: self.b_from,
                to: self.b_to,
                tid: self.b_tid,
                pid: self.b_pid,
                not_tid: self.b_not_tid,
                container: self.b_container,
            },
        ]
    }
}

fn task(state: &ApiState, text: &str) -> Result<std::sync::Arc<Task>, ApiError> {
    let id = text
        .parse()
        .map_err(|_| ApiError::not_found(format!("no task {text}")))?;
    Ok(state.parts.engine.get(TaskId(id))?)
}

/// Numbers that mean different things are not compared. The answer is the value that both have,
/// where a file has one only.
fn comparable(
    tasks: &[std::sync::Arc<Task>; 2],
    value: Option<Value>,
) -> Result<Option<Value>, ApiError> {
    let [Some(a), Some(b)] = tasks.each_ref().map(|task| task.sample_kind()) else {
        let detail = "tasks of kind network and requests have edges, not stacks: they have no flame graph to compare";
        return Err(ApiError::invalid_field("b", detail));
    };
    if a != b {
        let detail = format!(
            "task {} is {} and task {} is {}: their numbers mean different things",
            tasks[0].id,
            a.name(),
            tasks[1].id,
            b.name()
        );
        return Err(ApiError::invalid_field("b", detail));
    }
    let value = value.or_else(|| tasks.iter().find_map(|task| only_value(task)));
    let missing = value.and_then(|value| {
        let mut missing = tasks.iter().filter_map(|task| missing_value(task, value));
        missing.next()
    });
    match missing {
        Some(detail) => Err(ApiError::invalid_field("value", detail)),
        None => Ok(value),
    }
}

/// The only kind of number that a file has.
fn only_value(task: &Task) -> Option<Value> {
    match task.imported()?.file.values {
        ImportValues::Counts => Some(Value::Count),
        ImportValues::Durations => Some(Value::Duration),
        ImportValues::Both => None,
    }
}
