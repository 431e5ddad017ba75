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
use profiler_model::{
    Clock, IdleShare, ImportValues, Profile, Selection, Target, Task, TaskId, TaskKind, Unsampled,
};

use super::{
    profiles::{missing_value, selection_named, value},
    waits::{self, WAITS, WaitView, read_view},
};
use crate::api::{
    dto::{Diff, DiffFormat, DiffNorm, Problem, ProfileIdle, ProfileValue},
    error::ApiError,
    extract::Query,
    state::{ApiState, blocking},
};
use profiler_memory::Ceiling;

const MEDIA_TYPE: &str = "application/vnd.profiler-agent.diff";
const SIDES: [&str; 2] = ["a", "b"];
const SELECTIONS: [[&str; 5]; 2] = [
    ["a_from", "a_to", "a_tid", "a_pid", "a_not_tid"],
    ["b_from", "b_to", "b_tid", "b_pid", "b_not_tid"],
];
const OTHERS: [&str; 5] = ["format", "norm", "value", "wakers", "limit"];
const DEFAULT_FUNCTIONS: usize = 100;
const MAX_FUNCTIONS: usize = 10_000;

/// Compares two results function by function; `a` is the base. Frames are the same when name, kind
/// and file name of the module are.
#[utoipa::path(
    get, path = "/api/v1/diff", tag = "profiles",
    params(
        ("a" = String, Query, description = "Task of the base"),
        ("b" = String, Query, description = "Task that is compared with it; may be the same with another time or other threads"),
        ("format" = Option<DiffFormat>, Query, description = "Functions with significance (default), or the columns of docs/diff-format.md"),
        ("norm" = Option<DiffNorm>, Query, description = "Compare shares of everything (default), or amounts for each second"),
        ("limit" = Option<usize>, Query, description = "Functions in a table (default 100, at most 10000)"),
        ("value" = Option<ProfileValue>, Query, description = "What the numbers count; by default samples of on-CPU tasks and nanoseconds of the others"),
        ("wakers" = Option<bool>, Query, description = "Show who ended each wait above where the thread waited (default false)"),
        ("idle" = Option<ProfileIdle>, Query, description = "Whether waits of threads that have nothing to do are shown (default show)"),
        ("state" = Option<Vec<String>>, Query, description = "Keep these states; may be repeated"),
        ("reason" = Option<Vec<String>>, Query, description = "Keep these reasons of waits; may be repeated"),
        ("cell" = Option<String>, Query, description = "Keep a cell of the diagnosis: `FEATURE`, `FEATURE:MECHANISM` or `:MECHANISM`"),
        ("a_from" = Option<u64>, Query, description = "Milliseconds after the start of the base"),
        ("a_to" = Option<u64>, Query, description = "Milliseconds after the start of the base"),
        ("a_tid" = Option<Vec<u32>>, Query, description = "Threads of the base; may be repeated"),
        ("a_pid" = Option<Vec<u32>>, Query, description = "Processes of the base; may be repeated"),
        ("a_not_tid" = Option<Vec<u32>>, Query, description = "Threads of the base to leave out; may be repeated"),
        ("b_from" = Option<u64>, Query, description = "Milliseconds after the start of `b`"),
        ("b_to" = Option<u64>, Query, description = "Milliseconds after the start of `b`"),
        ("b_tid" = Option<Vec<u32>>, Query, description = "Threads of `b`; may be repeated"),
        ("b_pid" = Option<Vec<u32>>, Query, description = "Processes of `b`; may be repeated"),
        ("b_not_tid" = Option<Vec<u32>>, Query, description = "Threads of `b` to leave out; may be repeated")
    ),
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
    query: Query,
) -> Result<Response, ApiError> {
    let known = [&SIDES[..], &OTHERS, &WAITS, SELECTIONS.as_flattened()].concat();
    let query = query.only(&known)?;
    let columns = match query.text("format")? {
        None | Some("table") => false,
        Some("flamegraph") => true,
        Some(other) => {
            let detail = format!("format {other:?} is not one of table, flamegraph");
            return Err(ApiError::invalid_field("format", detail));
        }
    };
    let norm = norm(&query)?;
    let limit = limit(&query)?;
    let mut view = DiffView {
        value: value(&query)?,
        wakers: query.parsed("wakers", "true or false")?.unwrap_or(false),
        budget: Budget::default(),
    };
    let waits = waits::view(&query, &state.parts.diagnosis_rules)?;
    let tasks = [task(&state, &query, "a")?, task(&state, &query, "b")?];
    view.value = comparable(&tasks, view.value)?;
    let [a, b] = [
        selection_named(&query, SELECTIONS[0])?,
        selection_named(&query, SELECTIONS[1])?,
    ];
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
        let report = diff::report(a.borrowed(), b.borrowed(), view, norm);
        Diff::new(report, sources, limit)
    });
    Ok(Json(answer.await?).into_response())
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

fn task(state: &ApiState, query: &Query, name: &str) -> Result<std::sync::Arc<Task>, ApiError> {
    let Some(text) = query.text(name)? else {
        let detail = format!("{name} is missing: give the id of a task");
        return Err(ApiError::invalid_field(name, detail));
    };
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
    let [a, b] = tasks.each_ref().map(|task| measured(task));
    if a.has_edges() || b.has_edges() {
        let detail = "tasks of kind network and requests have edges, not stacks: they have no flame graph to compare";
        return Err(ApiError::invalid_field("b", detail));
    }
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

/// What the numbers of a result mean: of a file, what it says; without, samples of work.
fn measured(task: &Task) -> TaskKind {
    match (task.spec.kind, task.clock) {
        (TaskKind::Imported, Some(Clock::Switches)) => TaskKind::OffCpu,
        (TaskKind::Imported, Some(Clock::Wall)) => TaskKind::Wall,
        (TaskKind::Imported, _) => TaskKind::OnCpu,
        (kind, _) => kind,
    }
}

/// The only kind of number that a file has.
fn only_value(task: &Task) -> Option<Value> {
    match &task.spec.target {
        Target::Imported(file) => match file.values {
            ImportValues::Counts => Some(Value::Count),
            ImportValues::Durations => Some(Value::Duration),
            ImportValues::Both => None,
        },
        _ => None,
    }
}

fn norm(query: &Query) -> Result<Norm, ApiError> {
    let Some(name) = query.text("norm")? else {
        return Ok(Norm::Share);
    };
    let found = Norm::ALL.into_iter().find(|norm| norm.name() == name);
    found.ok_or_else(|| {
        let names = Norm::ALL.map(Norm::name).join(", ");
        ApiError::invalid_field("norm", format!("norm {name:?} is not one of {names}"))
    })
}

fn limit(query: &Query) -> Result<usize, ApiError> {
    let limit = query
        .parsed("limit", "a number of functions")?
        .unwrap_or(DEFAULT_FUNCTIONS);
    if limit > MAX_FUNCTIONS {
        let detail = format!("limit ({limit}) must be at most {MAX_FUNCTIONS}");
        return Err(ApiError::invalid_field("limit", detail));
    }
    Ok(limit)
}
