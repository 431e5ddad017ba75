//! One task from its start to its end.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use parking_lot::Mutex;
use profiler_model::{EdgeTable, EventLoopTable, LossKind, RequestTable, Task, TaskId, TaskState};
use profiler_recording::{Chunk, CollectError, Collection, Part, Requests, Samples};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use crate::store::{
    Append, SegmentKey, StoreError, Stream,
    codec::{CodecError, Density, encode_profile},
};
use profiler_memory::Ceiling;

use super::{
    edge_steps::{self, Steps},
    engine::Inner,
    registry::{Slot, StopCause, WRITTEN_NOTE, add_notes, waits_note},
    result::segment_number,
    target_names::target_names,
    upkeep::merge_any,
    whole_table,
};

/// What a task says that was cut off by the end of the agent.
pub(super) const AGENT_STOPPED: &str =
    "the agent was stopped while this task ran; the result up to then is kept";
/// What a task says that never got its turn.
pub(super) const NEVER_STARTED: &str = "the agent was stopped before this task started";

/// Chunks of samples arrive four times a second and are committed at least this far apart, some twice a second; whole
/// tables are committed on arrival.
const COMMIT_INTERVAL: Duration = Duration::from_millis(400);
/// How often to look whether something waits for a commit.
const COMMIT_TICK: Duration = Duration::from_millis(250);
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a collector may take to hand over what it still has. It stops waiting for threads that do not work any more by
/// itself, long before: this is for one that does not come back at all.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// Runs the task of `slot` and leaves it final, whatever happens.
pub(super) async fn run(inner: Arc<Inner>, slot: Slot) {
    let Slot { id, mut stop, done } = slot;
    let mut run = Run::new(&inner, id);
    let collected = AssertUnwindSafe(run.collect(&mut stop))
        .catch_unwind()
        .await;
    let state = collected.unwrap_or_else(|_| TaskState::Failed {
        reason: "internal error while collecting; the result up to then is kept".to_owned(),
    });
    run.finish(state).await;
    inner.registry.release(id);
    drop(done);
    inner.dispatch();
    run.merge_rest().await;
    inner.retain().await;
}

struct Run<'a> {
    inner: &'a Arc<Inner>,
    id: TaskId,
    /// The segment that chunks arrive in; earlier ones are complete.
    current: Option<SegmentKey>,
    /// What edges count over time; shared with the store's thread, which works on it.
    steps: Arc<Mutex<Steps>>,
    merges: JoinSet<()>,
    /// Text of the store's failure while it lasts, so that it is noted once.
    failing: Option<String>,
    /// Until when the newest table was counted, nanoseconds since the Unix epoch.
    counted_ns: Option<u64>,
    /// By how much the machine's clock was set, as far as that has been said.
    clock_told_ns: i64,
}

/// What became of a chunk on the store's thread.
enum Stored {
    Kept,
    /// Kept in memory: the disk refused it.
    Waiting(StoreError),
    Dropped,
    TooLarge(CodecError),
}

impl<'a> Run<'a> {
    fn new(inner: &'a Arc<Inner>, id: TaskId) -> Self {
        Self {
            inner,
            id,
            current: None,
            steps: Arc::new(Mutex::new(Steps::new(id))),
            merges: JoinSet::new(),
            failing: None,
            counted_ns: None,
            clock_told_ns: 0,
        }
    }

    async fn collect(
        &mut self,
        stop: &mut tokio::sync::watch::Receiver<Option<StopCause>>,
    ) -> TaskState {
        self.update(|task| task.state = TaskState::Running);
        self.commit().await;
        self.announce();
        let mut collection = match self.start().await {
            Ok(collection) => collection,
            Err(reason) => return TaskState::Failed { reason },
        };
        self.inner.times.begin(self.id);
        let now = Instant::now();
        let begin = now.checked_sub(collection.already).unwrap_or(now);
        let duration = self.update(|task| {
            // Times in the result count from here.
            task.started_ns = Some(collection.origin_ns);
            task.clock = collection.clock;
            task.effective_frequency_hz = collection.effective_frequency_hz;
            add_notes(task, collection.notes.drain(..));
        });
        self.announce();
        let duration = duration
            .and_then(|task| task.duration_s())
            .map(Duration::from_secs);
        let deadline = duration.map(|duration| begin + duration);

        let mut announce = interval(ANNOUNCE_INTERVAL);
        let mut commit = interval(COMMIT_TICK);
        announce.set_missed_tick_behavior(MissedTickBehavior::Delay);
        commit.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ending: Option<(TaskState, Instant)> = None;
        loop {
            let ends = ending.is_some();
            let drained = ending.as_ref().map(|(_, until)| *until);
            tokio::select! {
                chunk = collection.chunks.recv() => match chunk {
                    Some(chunk) => self.take(chunk).await,
                    None => break,
                },
                () = at(deadline), if !ends => {
                    collection.stop.stop();
                    ending = Some((TaskState::Finished, Instant::now() + DRAIN_LIMIT));
                }
                cause = wait_for_stop(stop), if !ends => {
                    collection.stop.stop();
                    ending = Some((stopped_by(cause), Instant::now() + DRAIN_LIMIT));
                }
                () = at(drained), if ends => {
                    self.note("the collector did not end in time; its last samples may be missing");
                    break;
                }
                _ = commit.tick() => self.commit_if_due().await,
                _ = announce.tick() => {
                    self.look_at_the_clock();
                    self.announce();
                }
            }
        }
        match (ending, duration) {
            (Some((state, _)), _) => state,
            (None, Some(duration)) if begin.elapsed() >= duration => TaskState::Finished,
            (None, duration) => TaskState::Failed {
                reason: ended_early(begin.elapsed(), duration),
            },
        }
    }

    /// Starts the collector off the reactor.
    async fn start(&self) -> Result<Collection, String> {
        let task = self
            .inner
            .registry
            .get(self.id)
            .map_err(|error| error.to_string())?;
        let collector = Arc::clone(&self.inner.collector);
        let Some(spec) = task.spec().cloned() else {
            return Err("an import is not recorded".to_owned());
        };
        let id = self.id;
        let inner = Arc::clone(self.inner);
        let start = move || {
            // It may have waited in the queue, and a pid may be another process's by now.
            let names = target_names(&spec.target);
            if !names.is_empty() {
                inner.registry.update(id, |task| task.target_names = names);
            }
            collector.start(&spec)
        };
        match tokio::task::spawn_blocking(start).await {
            Ok(started) => started.map_err(|error: CollectError| error.to_string()),
            Err(_) => Err("internal error while starting the collection".to_owned()),
        }
    }

    /// Adds a chunk to the task's record and hands it to the store.
    async fn take(&mut self, chunk: Chunk) {
        let Chunk {
            part,
            target_ended: _,
            notes,
        } = chunk;
        if !notes.is_empty() {
            self.update(|task| add_notes(task, notes));
        }
        match part {
            Part::Samples(samples) => self.take_samples(samples).await,
            Part::Edges(table) => self.keep_edges(table).await,
            Part::Requests(Requests {
                edges,
                table,
                at_sockets: _,
            }) => {
                self.keep_requests(table).await;
                self.keep_edges(edges).await;
            }
        }
    }

    async fn take_samples(&mut self, part: Samples) {
        let Samples {
            profile,
            event_loop,
            effective_frequency_hz,
            waits,
            coverage,
        } = part;
        if let Some(table) = event_loop {
            self.keep_loops(table).await;
        }
        if let Err(reason) = profile.check() {
            self.note(format!(
                "a result chunk was inconsistent and is left out: {reason}"
            ));
            self.update(|task| task.losses.add(LossKind::RecordUndecodable, 1));
            return;
        }
        let samples = profile.total_count();
        let segment = segment_number(profile.from_ns);
        let key = SegmentKey {
            task: self.id,
            stream: Stream::Profile,
            segment,
        };
        self.merge_before(key);
        let record = self.update(|task| {
            task.samples = task.samples.saturating_add(samples);
            task.losses.merge(&profile.losses);
            task.stack_quality.merge(&profile.stack_quality);
            task.waits.merge(&waits);
            if let Some(coverage) = coverage {
                task.coverage.get_or_insert_default().merge(&coverage);
            }
            task.effective_frequency_hz = Some(effective_frequency_hz);
        });
        let stored = self
            .inner
            .store
            .run(move |store| {
                let bytes = match encode_profile(&profile, Density::Fast) {
                    Ok(bytes) => bytes,
                    Err(error) => return Ok(Stored::TooLarge(error)),
                };
                let kept = store.append(Append {
                    key,
                    bytes,
                    from_ns: profile.from_ns,
                    to_ns: profile.to_ns,
                    end_unix_ns: profile.origin_ns.saturating_add(profile.to_ns),
                    samples,
                });
                if let Some(task) = record {
                    store.put_task(&task)?;
                }
                let committed = store.commit_if_due(COMMIT_INTERVAL);
                Ok(match (kept, committed) {
                    (false, _) => Stored::Dropped,
                    (true, Err(error)) => Stored::Waiting(error),
                    (true, Ok(())) => Stored::Kept,
                })
            })
            .await
            .and_then(|stored| stored);
        match stored {
            Ok(Stored::Kept) => self.store_works(),
            Ok(Stored::Waiting(error)) => self.store_fails(&error),
            Ok(Stored::Dropped) => self.lost(samples),
            Ok(Stored::TooLarge(error)) => {
                self.note(format!("a result chunk could not be stored: {error}"));
                self.lost(samples);
            }
            Err(error) => {
                self.store_fails(&error);
                self.lost(samples);
            }
        }
    }

    /// Keeps the result of a network task in place of its earlier one.
    async fn keep_edges(&mut self, edges: EdgeTable) {
        let id = self.id;
        // It may have waited since then.
        let counted_ns = edges.window.map(|window| window.to_ns);
        self.counted_ns = counted_ns;
        let now_ns = counted_ns.unwrap_or_else(|| self.inner.times.now_of(self.id));
        let edges = Arc::new(edges);
        self.inner.newest_edges.put(id, Arc::clone(&edges));
        let origin_ns = self.origin_ns().unwrap_or(now_ns);
        let steps = Arc::clone(&self.steps);
        let kept = self
            .inner
            .store
            .run(move |store| {
                let segment = steps.lock().add(store, &edges, origin_ns, now_ns);
                (segment, whole_table::keep(store, id, &*edges, now_ns))
            })
            .await;
        let (segment, kept) = match kept {
            Ok((segment, kept)) => (segment, kept),
            Err(error) => (None, Err(error)),
        };
        self.kept_table(kept);
        if let Some(segment) = segment {
            self.merge_before(edge_steps::key(id, segment));
        }
    }

    /// Keeps the requests so far in place of the earlier table.
    async fn keep_requests(&mut self, table: RequestTable) {
        let id = self.id;
        let now_ns = self.inner.times.now_of(id);
        let table = Arc::new(table);
        self.inner.newest_requests.put(id, Arc::clone(&table));
        let kept = self
            .inner
            .store
            .run(move |store| whole_table::keep(store, id, &*table, now_ns))
            .await
            .and_then(|kept| kept);
        self.kept_table(kept);
    }

    /// Keeps what was seen of event loops in place of the earlier table.
    async fn keep_loops(&mut self, table: EventLoopTable) {
        let id = self.id;
        let now_ns = self.inner.times.now_of(id);
        let kept = self
            .inner
            .store
            .run(move |store| whole_table::keep(store, id, &table, now_ns))
            .await
            .and_then(|kept| kept);
        self.kept_table(kept);
    }

    /// What became of a table that takes the place of an earlier one.
    fn kept_table(&mut self, kept: Result<Option<String>, StoreError>) {
        match kept {
            Ok(None) => self.store_works(),
            Ok(Some(refused)) => self.note(refused),
            Err(error) => self.store_fails(&error),
        }
    }

    /// Stores what is late of the edges, and says what was not taken.
    async fn finish_steps(&mut self) {
        let Some(origin_ns) = self.origin_ns() else {
            return;
        };
        let steps = Arc::clone(&self.steps);
        let left_out = self
            .inner
            .store
            .run(move |store| {
                let mut steps = steps.lock();
                steps.finish(store, origin_ns);
                steps.left_out()
            })
            .await;
        if let Ok(left_out @ 1..) = left_out {
            self.note(format!(
                "{left_out} counts of edges over time could not be stored; the totals have them"
            ));
        }
    }

    /// Says when the machine's clock was set.
    fn look_at_the_clock(&mut self) {
        let remark = self.inner.times.remark(self.id, &mut self.clock_told_ns);
        if let Some(remark) = remark {
            self.note(remark);
        }
    }

    /// What times in the result count from.
    fn origin_ns(&self) -> Option<u64> {
        self.inner.registry.get(self.id).ok()?.started_ns
    }

    /// A chunk is gone: its samples leave the count of what is in the result.
    fn lost(&self, samples: u64) {
        self.update(|task| {
            task.samples = task.samples.saturating_sub(samples);
            task.losses.add(LossKind::StoreWriteFailed, 1);
        });
    }

    fn store_fails(&mut self, error: &StoreError) {
        let text = error.to_string();
        if self.failing.as_ref() != Some(&text) {
            tracing::error!(task = %self.id, %error, "results wait in memory");
            self.note(waits_note(&text));
            self.failing = Some(text);
        }
    }

    /// Everything that waited has been written.
    fn store_works(&mut self) {
        if self.failing.take().is_some() {
            self.note(WRITTEN_NOTE);
        }
    }

    async fn commit_if_due(&mut self) {
        let result = self
            .inner
            .store
            .run(|store| {
                let committed = store.commit_if_due(COMMIT_INTERVAL);
                committed.map(|()| store.refuses())
            })
            .await;
        match result.and_then(|refuses| refuses) {
            // It was not due: what waits was not tried again.
            Ok(true) => {}
            Ok(false) => self.store_works(),
            Err(error) => self.store_fails(&error),
        }
    }

    /// Makes the task's record durable now.
    async fn commit(&mut self) {
        let Ok(task) = self.inner.registry.get(self.id) else {
            return;
        };
        let result = self.inner.put_task(task).await;
        self.settle(result);
    }

    fn settle(&mut self, result: Result<(), StoreError>) {
        match result {
            Ok(()) => self.store_works(),
            Err(error) => self.store_fails(&error),
        }
    }

    async fn finish(&mut self, state: TaskState) {
        self.finish_steps().await;
        self.look_at_the_clock();
        // What came after the last count was work on the result.
        let ended_ns = self
            .counted_ns
            .unwrap_or_else(|| self.inner.times.now_of(self.id));
        self.update(|task| {
            task.state = state;
            task.ended_ns = Some(ended_ns);
        });
        self.commit().await;
        // From now on it is read from the store.
        self.inner.newest_edges.remove(self.id);
        self.inner.newest_requests.remove(self.id);
        if self.failing.is_some() {
            let id = self.id;
            let waiting = self
                .inner
                .store
                .run(move |store| store.waiting_blobs(id))
                .await;
            if let Ok(waiting) = waiting {
                self.update(|task| task.losses.add(LossKind::StoreWriteFailed, waiting));
                self.inner.write_later(id, waiting);
            }
        }
        self.announce();
    }

    /// Starts to rewrite the segment before `segment` when that one is complete.
    fn merge_before(&mut self, segment: SegmentKey) {
        while self.merges.try_join_next().is_some() {}
        let Some(complete) = self.current.filter(|current| *current < segment) else {
            self.current.get_or_insert(segment);
            return;
        };
        self.current = Some(segment);
        self.merge(complete);
    }

    fn merge(&mut self, key: SegmentKey) {
        let store = self.inner.store.clone();
        self.merges
            .spawn_blocking(move || match merge_any(&store, key) {
                Ok(()) | Err(StoreError::Closed) => {}
                Err(error) => {
                    tracing::warn!(task = %key.task, segment = key.segment, %error, "could not merge a segment");
                }
            });
    }

    /// Rewrites the last segment and waits for those that are still being rewritten.
    async fn merge_rest(&mut self) {
        if let Some(last) = self.current {
            self.merge(last);
        }
        while self.merges.join_next().await.is_some() {}
    }

    fn update(&self, change: impl FnOnce(&mut Task)) -> Option<Arc<Task>> {
        self.inner.registry.update(self.id, change)
    }

    fn note(&self, text: impl Into<String>) {
        self.update(|task| add_notes(task, [text.into()]));
    }

    fn announce(&self) {
        self.inner.registry.announce(self.id);
    }
}

/// Waits for a time; never ends without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn wait_for_stop(stop: &mut tokio::sync::watch::Receiver<Option<StopCause>>) -> StopCause {
    match stop.wait_for(Option::is_some).await {
        Ok(cause) => cause.unwrap_or(StopCause::Shutdown),
        // The registry is gone, so the agent is.
        Err(_) => StopCause::Shutdown,
    }
}

fn stopped_by(cause: StopCause) -> TaskState {
    match cause {
        StopCause::User => TaskState::Cancelled,
        StopCause::Shutdown => TaskState::Failed {
            reason: AGENT_STOPPED.to_owned(),
        },
        StopCause::Memory => TaskState::Failed {
            reason: Ceiling::own().stop_reason(),
        },
    }
}

fn ended_early(elapsed: Duration, duration: Option<Duration>) -> String {
    let elapsed = elapsed.as_secs_f64();
    match duration {
        Some(duration) => format!(
            "the collection ended by itself after {elapsed:.1} s of {} s; the result up to then is kept",
            duration.as_secs()
        ),
        None => format!(
            "the collection ended by itself after {elapsed:.1} s; the result up to then is kept"
        ),
    }
}
