//! Processes of the node.

use std::{cmp::Ordering, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use profiler_host::container_names::ContainerDirectory;
use profiler_model::{Process, ProcessKey};
use profiler_symbolize::ForecastError;

use crate::{
    api::{
        auth::Role,
        dto::{self, Problem, ProcessDetail, ProcessList, ProcessSymbols},
        error::ApiError,
        parameters::{FromText, Given, parameters},
        state::{ApiState, blocking},
    },
    config::ArgumentPolicy,
};

/// How old the answer may be: many readers do not make /proc be read more often.
pub(super) const MAX_AGE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::api) enum Order {
    /// Busiest first.
    #[default]
    Cpu,
    Pid,
    Name,
    /// Largest first.
    Rss,
}

impl FromText for Order {
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "cpu" => Some(Self::Cpu),
            "pid" => Some(Self::Pid),
            "name" => Some(Self::Name),
            "rss" => Some(Self::Rss),
            _ => None,
        }
    }
}

impl Order {
    fn compare(self, a: &Process, b: &Process) -> Ordering {
        let first = match self {
            Self::Cpu => {
                let share = |process: &Process| process.cpu_percent.unwrap_or(-1.0);
                share(b).total_cmp(&share(a))
            }
            Self::Pid => Ordering::Equal,
            Self::Name => a.comm.cmp(&b.comm),
            Self::Rss => b.rss_bytes.cmp(&a.rss_bytes),
        };
        first.then(a.key.cmp(&b.key))
    }
}

/// Whether `needle` (lower case) is in what the API shows of the process: masked arguments are
/// not searched, or a search would tell what they are.
fn matches(
    process: &Process,
    needle: &str,
    policy: ArgumentPolicy,
    names: &ContainerDirectory,
) -> bool {
    let has = |text: &str| text.to_lowercase().contains(needle);
    process.key.pid.to_string() == needle
        || has(&process.comm)
        || process.exe.as_deref().is_some_and(has)
        || process.user.as_deref().is_some_and(has)
        || process.container.as_ref().is_some_and(|container| {
            let named = || names.of(container).is_some_and(|names| has(&names.title()));
            has(&container.id) || named()
        })
        || has(&process.cgroup)
        || (policy == ArgumentPolicy::Shown && process.cmdline.iter().any(|text| has(text)))
}

parameters! {
    pub(in crate::api) struct ProcessParameters {
        /// Part of the name, executable, user, container, pod or cgroup, or a pid
        q: Option<String> = "a text",
        /// cpu (default), pid, name or rss
        #[param(value_type = Option<String>)]
        sort: Option<Order> = "one of cpu, pid, name, rss",
        /// At most so many; default all
        limit: Option<usize> = "a number",
        /// Also kernel threads; default false
        kernel: Option<bool> = "true or false",
    }
}

/// Lists processes.
#[utoipa::path(
    get, path = "/api/v1/processes", tag = "processes",
    params(ProcessParameters),
    responses(
        (status = 200, body = ProcessList),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`")
    )
)]
pub(in crate::api) async fn list(
    State(state): State<ApiState>,
    role: Role,
    Given(parameters): Given<ProcessParameters>,
) -> Result<Json<ProcessList>, ApiError> {
    let ProcessParameters {
        q,
        sort,
        limit,
        kernel,
    } = parameters;
    let order = sort.unwrap_or_default();
    let limit = limit.unwrap_or(usize::MAX);
    let kernel = kernel.unwrap_or(false);
    let needle = q.unwrap_or_default().trim().to_lowercase();
    state.refresh_processes(MAX_AGE).await?;

    let policy = role.arguments(state.parts.arguments);
    let mut found: Vec<Arc<Process>> = state.parts.table.snapshot();
    found.retain(|process| {
        (kernel || !process.kernel_thread)
            && (needle.is_empty() || matches(process, &needle, policy, state.parts.table.names()))
    });
    found.sort_by(|a, b| order.compare(a, b));
    let total = found.len();
    let names = state.parts.table.names();
    let items = found
        .iter()
        .take(limit)
        .map(|process| dto::Process::new(process, policy, names))
        .collect();
    Ok(Json(ProcessList { items, total }))
}

/// One process with its threads.
#[utoipa::path(
    get, path = "/api/v1/processes/{id}", tag = "processes",
    params(("id" = String, Path, description = "PID-STARTTICKS")),
    responses(
        (status = 200, body = ProcessDetail),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`")
    )
)]
pub(in crate::api) async fn show(
    State(state): State<ApiState>,
    role: Role,
    id: Result<Path<String>, PathRejection>,
    _: Given<()>,
) -> Result<Json<ProcessDetail>, ApiError> {
    let Path(id) = id.map_err(|error| ApiError::not_found(error.body_text()))?;
    let missing = || ApiError::not_found(format!("there is no process {id:?}; it may have exited"));
    let key: ProcessKey = id.parse().map_err(|()| missing())?;
    state.refresh_processes(MAX_AGE).await?;
    let table = state.parts.table.clone();
    let process = table.process(key).ok_or_else(missing)?;
    let threads = blocking(move || table.threads(key)).await?;
    Ok(Json(ProcessDetail {
        process: dto::Process::new(
            &process,
            role.arguments(state.parts.arguments),
            state.parts.table.names(),
        ),
        thread_list: threads.into_iter().map(Into::into).collect(),
    }))
}

/// Says what names profiles of a process will have, file by file. Takes a second for each 100 MB of debug
/// information the first time.
#[utoipa::path(
    get, path = "/api/v1/processes/{id}/symbols", tag = "processes",
    params(("id" = String, Path, description = "PID-STARTTICKS")),
    responses(
        (status = 200, body = ProcessSymbols),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`process_not_readable`")
    )
)]
pub(in crate::api) async fn symbols(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    _: Given<()>,
) -> Result<Json<ProcessSymbols>, ApiError> {
    let Path(id) = id.map_err(|error| ApiError::not_found(error.body_text()))?;
    let missing = || ApiError::not_found(format!("there is no process {id:?}; it may have exited"));
    let key: ProcessKey = id.parse().map_err(|()| missing())?;
    state.refresh_processes(MAX_AGE).await?;
    state.parts.table.process(key).ok_or_else(missing)?;
    let forecasts = state.parts.inspection.forecasts();
    let _place = forecasts
        .place
        .acquire()
        .await
        .map_err(ApiError::internal)?;
    if let Some(forecast) = forecasts.known(key) {
        return Ok(Json(forecast.as_ref().into()));
    }
    let (shared, packs) = (state.clone(), state.parts.symbols.clone());
    let made = blocking(move || shared.parts.inspection.forecasts().make(key, packs)).await?;
    match made {
        Ok(forecast) => Ok(Json(forecast.as_ref().into())),
        Err(ForecastError::NoSuchProcess(_) | ForecastError::Ended(_)) => Err(missing()),
        Err(
            error @ (ForecastError::KernelThread(_)
            | ForecastError::Mappings { .. }
            | ForecastError::Thread { .. }),
        ) => Err(ApiError::ProcessNotReadable {
            detail: error.to_string(),
        }),
    }
}
