//! Results over time: how much in each bucket, by thread, and which stacks.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use profiler_analysis::{
    activity_timeline::ActivityTimeline,
    render::{
        Value,
        sequence::{self, Columns},
        summary,
    },
};
use profiler_model::{Profile, Unsampled};

use super::{
    profiles::{MILLISECONDS, NS_PER_MS, SelectionParameters, missing_value, read},
    tasks::task_id,
    waits::{ViewParameters, read_view, shown},
};
use crate::api::{
    dto::{
        Problem, ProfileValue, Sequence, SequenceLabel, SequenceThread, Timeline, TimelineThread,
    },
    error::ApiError,
    parameters::{Given, one_of, parameters},
    state::{ApiState, blocking},
};

/// Buckets in one answer; a day at 100 ms has more.
/// Where nothing is said.
const BUCKET_MS: u64 = 100;
const THREADS: u64 = 8;
const MAX_BUCKETS: u64 = 100_000;
/// Numbers in one answer by thread, and as many by process.
const MAX_CELLS: u64 = 200_000;
const MAX_THREADS: u64 = 64;

parameters! {
    pub(in crate::api) struct TimelineParameters {
        /// Length of a bucket, a multiple of the task's own (default 100)
        bucket_ms: Option<u64> = MILLISECONDS,
        /// `thread`: also for each thread; at most 64 threads and 64 processes, the largest first, and 200000 numbers of either. `activity`: also what each of these did
        by: Option<String> = "thread or activity",
        /// What is counted: samples and switches (default), or nanoseconds
        #[param(value_type = Option<ProfileValue>)]
        value: Option<Value> = one_of(Value::ALL.map(Value::name)),
    }
}

parameters! {
    pub(in crate::api) struct SequenceParameters {
        /// Length of a bucket, a multiple of the task's own (default 100)
        bucket_ms: Option<u64> = MILLISECONDS,
        /// Threads at most, the largest first (default 8, at most 64)
        threads: Option<u64> = "a number of threads",
        /// What the amounts are; by default samples of on-CPU tasks and nanoseconds of the others
        #[param(value_type = Option<ProfileValue>)]
        value: Option<Value> = one_of(Value::ALL.map(Value::name)),
    }
}

/// Samples over time.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/timeline", tag = "profiles",
    params(
        ("id" = String, Path),
        TimelineParameters, SelectionParameters, ViewParameters
    ),
    responses(
        (status = 200, body = Timeline),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_profile`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`")
    )
)]
pub(in crate::api) async fn timeline(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    Given((parameters, selection, view)): Given<(
        TimelineParameters,
        SelectionParameters,
        ViewParameters,
    )>,
) -> Result<Json<Timeline>, ApiError> {
    let TimelineParameters {
        bucket_ms,
        by,
        value,
    } = parameters;
    let bucket_ms = bucket_ms.unwrap_or(BUCKET_MS);
    let (by_thread, by_activity) = match by.as_deref() {
        None => (false, false),
        Some("thread") => (true, false),
        Some("activity") => (true, true),
        Some(other) => {
            let detail = format!("by {other:?} is not thread or activity");
            return Err(ApiError::invalid_field("by", detail));
        }
    };
    let value = value.unwrap_or(Value::Count);
    let selection = selection.selection("")?;
    let waits = view.view(&state.parts.diagnosis_rules)?;
    let profile = read(&state, task_id(id)?, selection).await?;
    let rules = state.parts.idle_rules.clone();
    // Of what is idle too, whatever is shown.
    let (profile, threads) = blocking(move || {
        let idle = by_activity.then(|| rules.classify(&profile)).flatten();
        let threads = by_thread.then(|| ActivityTimeline::of(&profile, idle.as_deref()));
        (profile, threads)
    })
    .await?;
    let (profile, _idle) = shown(&state, profile, waits, Unsampled::AsMeasured).await?;
    let timeline = blocking(move || counted(&profile, bucket_ms, value, threads.as_ref())).await?;
    timeline.map(Json)
}

/// Where the first bucket begins and how many there are, when that is a bounded number.
fn bounded_buckets(profile: &Profile, bucket_ms: u64) -> Result<(u64, u64), ApiError> {
    let refused = |detail| Err(ApiError::invalid_field("bucket_ms", detail));
    let bucket_ns = bucket_ms.saturating_mul(NS_PER_MS);
    if bucket_ns == 0 || !bucket_ns.is_multiple_of(profile.bucket_ns.max(1)) {
        let own_ms = profile.bucket_ns.div_ceil(NS_PER_MS);
        return refused(format!("bucket_ms must be a multiple of {own_ms}"));
    }
    let from_ms = summary::timeline_start_ms(profile, bucket_ms);
    let rows = profile
        .samples
        .iter()
        .map(|row| u64::from(row.bucket) + 1)
        .max();
    let end_ns = rows
        .unwrap_or(0)
        .saturating_mul(profile.bucket_ns)
        .max(profile.to_ns);
    let buckets = (end_ns / NS_PER_MS)
        .saturating_sub(from_ms)
        .div_ceil(bucket_ms);
    if buckets > MAX_BUCKETS {
        return refused(format!(
            "bucket_ms gives {buckets} buckets; at most {MAX_BUCKETS} are sent: give longer ones"
        ));
    }
    Ok((from_ms, buckets))
}

/// Samples in buckets whose boundaries are known and whose number is bounded. `threads`: also by
/// thread, with what it holds about them.
fn counted(
    profile: &Profile,
    bucket_ms: u64,
    value: Value,
    threads: Option<&ActivityTimeline>,
) -> Result<Timeline, ApiError> {
    let (from_ms, buckets) = bounded_buckets(profile, bucket_ms)?;
    let counts = summary::timeline(profile, bucket_ms, value);
    let mut timeline = Timeline {
        bucket_ms,
        from_ms,
        counts,
        threads: None,
        other_threads: None,
        processes: None,
    };
    if let Some(activities) = threads {
        let kinds = u64::try_from(activities.kinds()).unwrap_or(u64::MAX);
        let limit = most_threads(MAX_CELLS, buckets.saturating_mul(kinds + 1));
        let (threads, others) = activities.threads(profile, bucket_ms, value, limit);
        let processes = activities.processes(profile, bucket_ms, value, limit);
        timeline.threads = Some(threads.into_iter().map(TimelineThread::new).collect());
        timeline.processes = Some(processes.into_iter().map(TimelineThread::new).collect());
        timeline.other_threads = Some(others);
    }
    Ok(timeline)
}

fn most_threads(cells: u64, buckets: u64) -> usize {
    let threads = (cells / buckets.max(1)).clamp(1, MAX_THREADS);
    usize::try_from(threads).unwrap_or(1)
}

/// Stacks of the largest threads in the order of time buckets. Inside a bucket the order is not
/// known. The answer is bounded: of a thread in a bucket only the largest stacks are told apart.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/sequence", tag = "profiles",
    params(
        ("id" = String, Path),
        SequenceParameters, SelectionParameters, ViewParameters
    ),
    responses(
        (status = 200, body = Sequence),
        (status = 401, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "`not_found`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`no_profile`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`invalid_field`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`memory_short`")
    )
)]
pub(in crate::api) async fn sequence(
    State(state): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
    Given((parameters, selection, view)): Given<(
        SequenceParameters,
        SelectionParameters,
        ViewParameters,
    )>,
) -> Result<Json<Sequence>, ApiError> {
    let SequenceParameters {
        bucket_ms,
        threads,
        value,
    } = parameters;
    let bucket_ms = bucket_ms.unwrap_or(BUCKET_MS);
    let threads = threads.unwrap_or(THREADS);
    if threads == 0 || threads > MAX_THREADS {
        let detail = format!("threads ({threads}) must be between 1 and {MAX_THREADS}");
        return Err(ApiError::invalid_field("threads", detail));
    }
    let selection = selection.selection("")?;
    let waits = view.view(&state.parts.diagnosis_rules)?;
    let task = state.parts.engine.get(task_id(id)?)?;
    if let Some(detail) = value.and_then(|value| missing_value(&task, value)) {
        return Err(ApiError::invalid_field("value", detail));
    }
    let _turn = state.render_turn().await?;
    let (profile, _idle) =
        read_view(&state, task.id, selection, waits, Unsampled::AsMeasured).await?;
    let answer = blocking(move || {
        let (from_ms, buckets) = bounded_buckets(&profile, bucket_ms)?;
        let value = value.unwrap_or_else(|| Value::usual(&profile));
        let threads = usize::try_from(threads).unwrap_or(1);
        let columns = sequence::columns(&profile, bucket_ms, value, threads);
        Ok(ordered(columns, (bucket_ms, from_ms, buckets), value))
    });
    answer.await?.map(Json)
}

fn ordered(
    columns: Columns,
    (bucket_ms, from_ms, buckets): (u64, u64, u64),
    value: Value,
) -> Sequence {
    let labels = columns.labels.into_iter().map(|label| SequenceLabel {
        name: label.name,
        module: label.module,
        file: label.file,
        line: label.line,
        kind: label.kind,
        source: label.source,
    });
    let threads = columns.threads.into_iter().map(|thread| SequenceThread {
        pid: thread.summary.pid,
        tid: thread.summary.tid,
        process: thread.summary.process,
        name: thread.summary.name,
        total: thread.summary.samples,
        bucket: thread.buckets,
        stack: thread.stacks,
        amount: thread.amounts,
    });
    Sequence {
        bucket_ms,
        from_ms,
        buckets,
        value: value.name(),
        labels: labels.collect(),
        stacks: columns.stacks,
        threads: threads.collect(),
        other_threads: columns.other_threads,
        other_amount: columns.other_amount,
        stacks_per_bucket: columns.stacks_per_bucket,
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::{Activity, ActivityTimes};

    use super::*;
    use crate::api::tests::sample_profile;

    fn counts(profile: &Profile, bucket_ms: u64) -> Vec<u64> {
        let timeline = counted(profile, bucket_ms, Value::Count, None).unwrap();
        assert_eq!(timeline.threads, None);
        timeline.counts
    }

    #[test]
    fn timelines_keep_every_sample_and_are_bounded() {
        let profile = sample_profile(&[(1, 1, 0, 3), (1, 2, 1, 5), (1, 1, 9, 1)]);
        assert_eq!(counts(&profile, 200), [8, 0, 0, 0, 1]);
        let refusal = |profile: &Profile, bucket_ms| {
            counted(profile, bucket_ms, Value::Count, None).unwrap_err()
        };
        let multiple = ApiError::invalid_field("bucket_ms", "bucket_ms must be a multiple of 100");
        assert_eq!(refusal(&profile, 150), multiple);
        assert_eq!(refusal(&profile, 0), multiple);
        let far = sample_profile(&[(1, 1, 200_000, 1)]);
        assert_eq!(
            refusal(&far, 100),
            ApiError::invalid_field(
                "bucket_ms",
                "bucket_ms gives 200001 buckets; at most 100000 are sent: give longer ones"
            )
        );
    }

    #[test]
    fn threads_add_up_to_everything() {
        let profile = sample_profile(&[(1, 1, 0, 3), (1, 2, 1, 5), (1, 1, 9, 1)]);
        let plain = ActivityTimeline::default();
        let timeline = counted(&profile, 200, Value::Count, Some(&plain)).unwrap();
        let processes = timeline.processes.unwrap();
        assert_eq!((processes.len(), processes[0].total), (1, 9));
        let threads = timeline.threads.unwrap();
        let listed: Vec<(u32, u64)> = threads.iter().map(|one| (one.tid, one.total)).collect();
        assert_eq!(listed, [(2, 5), (1, 4)]);
        assert_eq!(threads[0].counts, [5, 0, 0, 0, 0]);
        assert_eq!(threads[1].counts, [3, 0, 0, 0, 1]);
        assert_eq!(timeline.other_threads, Some(0));
        let time = counted(&profile, 200, Value::Duration, Some(&plain)).unwrap();
        assert_eq!(time.counts[0], 80_000_000);
        assert_eq!(threads[1].activities, []);
        let waits = ActivityTimeline::of(&profile, Some(&[None; 3]));
        let timeline = counted(&profile, 200, Value::Count, Some(&waits)).unwrap();
        let running = |first| ActivityTimes {
            activity: Activity::Running,
            times_us: vec![first, 0, 0, 0, 10_000],
        };
        assert_eq!(timeline.threads.unwrap()[1].activities, [running(30_000)]);
        let processes = timeline.processes.unwrap();
        assert_eq!(processes[0].activities, [running(80_000)]);
    }

    #[test]
    fn long_results_list_fewer_threads() {
        assert_eq!(most_threads(MAX_CELLS, 100), 64);
        assert_eq!(most_threads(MAX_CELLS, 100_000), 2);
        assert_eq!(most_threads(MAX_CELLS, 0), 64);
    }
}
