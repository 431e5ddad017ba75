//! Looks after how waits are counted: every one, or samples when there are too many.

use std::time::{Duration, Instant};

use profiler_common::limits::{SAMPLED_PERIOD_NS, SAMPLED_WAITS};
use profiler_model::{WaitCounts, WaitMode, WaitRules};

/// Waits a second of all targets from which on they are sampled: at some microsecond each, what is
/// beyond would cost more than a twentieth of a CPU.
pub(super) const MOST_COUNTED_A_SECOND: u64 = 50_000;

/// Shortest time over which the rate is judged.
const SPAN: Duration = Duration::from_millis(900);

/// The state of one collection.
#[derive(Debug)]
pub(super) struct WaitWatch {
    pub(super) rules: WaitRules,
    mode: WaitMode,
    sampled: bool,
    looked: Instant,
    waits: u64,
    /// What is new since it was taken.
    new: WaitCounts,
}

impl WaitWatch {
    pub(super) fn new(rules: WaitRules, mode: WaitMode, now: Instant) -> Self {
        let sampled = mode == WaitMode::Sampled;
        Self {
            rules,
            mode,
            sampled,
            looked: now,
            waits: 0,
            new: WaitCounts {
                sampled,
                ..WaitCounts::default()
            },
        }
    }

    /// The note at the start, when waits are sampled from then on.
    pub(super) fn first_note(mode: WaitMode) -> Option<String> {
        (mode == WaitMode::Sampled).then(|| format!("waits are sampled, as asked for: {}", how()))
    }

    /// Looks at the number of waits so far; the note when they are to be sampled from now on.
    pub(super) fn look(&mut self, now: Instant, waits: u64) -> Option<String> {
        let span = now.duration_since(self.looked);
        if span < SPAN {
            return None;
        }
        let new = u128::from(waits.saturating_sub(self.waits));
        let a_second = new * 1000 / span.as_millis().max(1);
        self.looked = now;
        self.waits = waits;
        if self.sampled
            || self.mode != WaitMode::Auto
            || a_second <= u128::from(MOST_COUNTED_A_SECOND)
        {
            return None;
        }
        self.sampled = true;
        self.new.sampled = true;
        Some(format!(
            "{a_second} waits a second are more than {MOST_COUNTED_A_SECOND}: from now on {}",
            how()
        ))
    }

    /// What was left out since the last call, and whether waits were sampled.
    pub(super) fn take(&mut self) -> WaitCounts {
        std::mem::replace(
            &mut self.new,
            WaitCounts {
                sampled: self.sampled,
                ..WaitCounts::default()
            },
        )
    }

    pub(super) fn counts(&mut self) -> &mut WaitCounts {
        &mut self.new
    }
}

fn how() -> String {
    format!(
        "each thread has one stack for about {} ms of waiting and one for about {SAMPLED_WAITS} waits; \
         sums of waits and of their time stay exact",
        SAMPLED_PERIOD_NS / 1_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_waits_are_sampled_once_and_for_all() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut watch = WaitWatch::new(WaitRules::default(), WaitMode::Auto, start);
        assert_eq!(watch.look(at(1), 50_000), None);
        assert!(!watch.take().sampled);
        let note = watch.look(at(2), 110_000).expect("60,000 are too many");
        assert!(note.starts_with("60000 waits a second"), "{note}");
        assert!(watch.take().sampled);
        assert_eq!(watch.look(at(3), 400_000), None);
        assert!(watch.take().sampled);
    }

    #[test]
    fn a_mode_that_is_asked_for_stays() {
        let start = Instant::now();
        for mode in [WaitMode::Every, WaitMode::Sampled] {
            let mut watch = WaitWatch::new(WaitRules::default(), mode, start);
            let later = start + Duration::from_secs(1);
            assert_eq!(watch.look(later, 1_000_000), None);
            assert_eq!(watch.take().sampled, mode == WaitMode::Sampled);
        }
    }
}
