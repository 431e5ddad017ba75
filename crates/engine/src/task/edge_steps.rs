//! Edges over time: the steps of network tasks in the store, a minute in each segment.

use std::sync::Arc;

use profiler_analysis::edge_series::{EdgeSeries, SeriesCut, StepRecorder};
use profiler_model::{EdgeStep, EdgeTable, TaskId};

use crate::store::{
    Append, SegmentKey, Store, StoreError, StoreHandle, Stream,
    codec::{CodecError, Density, decode, encode},
};

use super::result::segment_number;

const NS_PER_MS: u64 = 1_000_000;
/// Steps of a segment end in it or begin in it.
const EDGE_NS: u64 = 5_000_000_000;

/// The steps of a task that runs.
#[derive(Debug)]
pub(super) struct Steps {
    task: TaskId,
    recorder: StepRecorder,
    left_out: u64,
}

impl Steps {
    pub(super) fn new(task: TaskId) -> Self {
        Self {
            task,
            recorder: StepRecorder::default(),
            left_out: 0,
        }
    }

    /// Hands what `table` counted since the one before to the store, which writes it with its next
    /// commit. Gives the segment that it is in. `origin_ns`: the start of the task.
    pub(super) fn add(
        &mut self,
        store: &mut Store,
        table: &Arc<EdgeTable>,
        origin_ns: u64,
        now_ns: u64,
    ) -> Option<u32> {
        let now_ms = now_ns.saturating_sub(origin_ns) / NS_PER_MS;
        let step = self.recorder.step(table, now_ms)?;
        self.append(store, &step, origin_ns)
    }

    /// Hands what is late to the store: no table comes any more.
    pub(super) fn finish(&mut self, store: &mut Store, origin_ns: u64) {
        if let Some(step) = self.recorder.rest() {
            self.append(store, &step, origin_ns);
        }
    }

    fn append(&mut self, store: &mut Store, step: &EdgeStep, origin_ns: u64) -> Option<u32> {
        let from_ns = step.from_ms.saturating_mul(NS_PER_MS);
        let to_ns = step.to_ms.saturating_mul(NS_PER_MS);
        let segment = segment_number(from_ns);
        let kept = match encode(
            &std::slice::from_ref(step),
            Stream::EdgeSteps,
            Density::Fast,
        ) {
            Ok(bytes) => store.append(Append {
                key: key(self.task, segment),
                bytes,
                from_ns,
                to_ns,
                end_unix_ns: origin_ns.saturating_add(to_ns),
                samples: 0,
            }),
            Err(error) => {
                tracing::warn!(task = %self.task, %error, "a step of the edges could not be stored");
                false
            }
        };
        if !kept {
            self.left_out += step.edges.len() as u64;
        }
        kept.then_some(segment)
    }

    /// Edges and steps that the store did not take.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }
}

pub(super) fn key(task: TaskId, segment: u32) -> SegmentKey {
    SegmentKey {
        task,
        stream: Stream::EdgeSteps,
        segment,
    }
}

/// The series of an edge in the stored steps. Blocks.
pub(super) fn load(
    store: &StoreHandle,
    task: TaskId,
    cut: &SeriesCut,
) -> Result<EdgeSeries, StoreError> {
    let segments = store.run_blocking(move |store| store.segments(task, Stream::EdgeSteps))?;
    let mut series = EdgeSeries::default();
    let ns = |ms: u64| ms.saturating_mul(NS_PER_MS);
    for (key, segment) in segments {
        let before = cut
            .to_ms
            .is_some_and(|to| segment.from_ns >= ns(to).saturating_add(EDGE_NS));
        let after = cut
            .from_ms
            .is_some_and(|from| segment.to_ns.saturating_add(EDGE_NS) <= ns(from));
        if before || after {
            continue;
        }
        for blob in store.run_blocking(move |store| store.blobs(key))?? {
            match decode::<Vec<EdgeStep>>(&blob.bytes, Stream::EdgeSteps) {
                Ok(steps) => {
                    for step in &steps {
                        series.add(step, cut);
                    }
                }
                Err(error) => {
                    tracing::warn!(%task, %error, "stored steps of edges are damaged");
                    series.damaged += 1;
                }
            }
        }
    }
    Ok(series)
}

/// Rewrites the steps of a segment as one blob. Blocks.
pub(super) fn merge_segment(store: &StoreHandle, key: SegmentKey) -> Result<(), StoreError> {
    let blobs = store.run_blocking(move |store| store.blobs(key))??;
    if blobs.len() < 2 {
        return Ok(());
    }
    let mut all: Vec<EdgeStep> = Vec::new();
    for blob in &blobs {
        match decode::<Vec<EdgeStep>>(&blob.bytes, Stream::EdgeSteps) {
            Ok(steps) => all.extend(steps),
            // It stays as it is, so that the damage is still reported.
            Err(_) => return Ok(()),
        }
    }
    match encode(&all, Stream::EdgeSteps, Density::Dense) {
        Ok(bytes) => {
            let sequences: Vec<u32> = blobs.iter().map(|blob| blob.sequence).collect();
            store.run_blocking(move |store| store.replace(key, &sequences, &bytes))?
        }
        Err(CodecError::TooLarge(_)) => Ok(()),
        Err(error) => {
            tracing::warn!(task = %key.task, segment = key.segment, %error, "could not merge steps");
            Ok(())
        }
    }
}
