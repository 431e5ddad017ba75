//! What edges counted over the last minutes, in memory.

use std::{sync::Arc, time::Instant};

use parking_lot::{Mutex, MutexGuard};
use profiler_analysis::edge_series::{EdgeSeries, SeriesCut, StepRecorder, StepRing};
use profiler_model::EdgeTable;

/// Length of a step.
const STEP_MS: u64 = 5_000;
/// How far back steps are kept.
const SPAN_MS: u64 = 15 * 60_000;
/// Memory that steps may take; with more edges the oldest go earlier.
const MOST_BYTES: usize = 8 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct History {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// When counting began, nanoseconds since the Unix epoch, and when that was reported.
    began: Option<(u64, Instant)>,
    recorder: StepRecorder,
    ring: StepRing,
}

impl History {
    /// Counting began at `origin_ns` of the Unix epoch; times count from the first call's.
    pub(super) fn begin(&self, origin_ns: u64) {
        let now = Instant::now();
        self.kept().began.get_or_insert((origin_ns, now));
    }

    /// Takes a table; most of them are between two steps.
    pub(super) fn take(&self, table: &Arc<EdgeTable>) {
        let mut kept = self.kept();
        let Some((origin_ns, told)) = kept.began else {
            return;
        };
        let now_ms = match table.window {
            Some(window) => window.to_ns.saturating_sub(origin_ns) / 1_000_000,
            None => u64::try_from(told.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        if now_ms < kept.recorder.to_ms().saturating_add(STEP_MS) {
            return;
        }
        let Kept { recorder, ring, .. } = &mut *kept;
        if let Some(step) = recorder.step(table, now_ms) {
            ring.push(&step, SPAN_MS, MOST_BYTES);
        }
    }

    pub(super) fn series(&self, cut: &SeriesCut) -> EdgeSeries {
        let kept = self.kept();
        let mut series = kept.ring.series(cut);
        let known_ms = kept.recorder.to_ms();
        series.silence_until(cut.to_ms.map_or(known_ms, |to| to.min(known_ms)));
        series.thin(cut.most);
        series
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A holder that panicked left at most one step out.
        self.kept.lock()
    }
}
