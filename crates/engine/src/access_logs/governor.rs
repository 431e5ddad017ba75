//! How much of what Envoys send is read, so that receiving it stays within its share of a CPU.
//!
//! ```text
//! full: every entry is read -> counted: entries are counted, not read -> held: messages wait, and Envoys drop what they have no room for
//! ```
//!
//! A stage begins where the one before takes more than its share, and ends where that one would take clearly less: by what an entry
//! costs there, which is measured, and by how many come. Reading a part of each entry is no stage: decoding is less than half of
//! what an entry costs (docs/access-logs.md), of which it would save a part.

use std::time::{Duration, Instant};

use profiler_model::access_log_status::AccessLogStage as Stage;

/// How often the stage is looked at.
const WINDOW: Duration = Duration::from_millis(500);
/// Windows in a row in which an earlier stage would do, before it is taken again.
const CALM: u32 = 6;
/// Of the share, what an earlier stage may take then.
const EASE: f64 = 0.7;
/// Of one CPU.
const SHARE: f64 = 0.5;

#[derive(Debug)]
pub(super) struct Governor {
    /// Of one CPU.
    share: f64,
    stage: Stage,
    began: Instant,
    cpu_ns: u64,
    /// Entries of this window.
    entries: u64,
    calm: u32,
    /// CPU nanoseconds that an entry took when it was read.
    full_ns: f64,
    /// How long each stage took so far: full, counted, held.
    times: [Duration; 3],
}

impl Default for Governor {
    fn default() -> Self {
        Self::new(SHARE, Instant::now(), 0)
    }
}

impl Governor {
    fn new(share: f64, now: Instant, cpu_ns: u64) -> Self {
        Self {
            share,
            stage: Stage::Full,
            began: now,
            cpu_ns,
            entries: 0,
            calm: 0,
            full_ns: 0.0,
            times: [Duration::ZERO; 3],
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// How long each stage took so far: full, counted, held.
    pub(super) fn times(&self) -> [Duration; 3] {
        self.times
    }

    /// Entries have come; the thread has used so much of its CPU.
    pub(super) fn came(&mut self, entries: u64, now: Instant, cpu_ns: u64) {
        self.entries += entries;
        let lasted = now.saturating_duration_since(self.began);
        if lasted < WINDOW {
            return;
        }
        let used = nanoseconds(cpu_ns.saturating_sub(self.cpu_ns)) / lasted.as_secs_f64() / 1e9;
        let rate = nanoseconds(self.entries) / lasted.as_secs_f64();
        if self.stage == Stage::Full && self.entries > 0 {
            self.full_ns = used / rate * 1e9;
        }
        if let Some(time) = self.times.get_mut(place(self.stage)) {
            *time += lasted;
        }
        (self.began, self.cpu_ns, self.entries) = (now, cpu_ns, 0);
        // As much came as an earlier stage can take. What waits outside is not known: it is tried.
        let would_do = match self.stage {
            Stage::Full => false,
            Stage::Counted => rate * self.full_ns / 1e9 < self.share * EASE,
            Stage::Held => used < self.share * EASE,
        };
        // A long window is one in which nothing came for long.
        let windows = u32::try_from(lasted.as_millis() / WINDOW.as_millis()).unwrap_or(u32::MAX);
        self.calm = if would_do {
            self.calm.saturating_add(windows)
        } else {
            0
        };
        let next = match self.stage {
            _ if self.calm >= CALM => before(self.stage),
            Stage::Full if used > self.share => Stage::Counted,
            Stage::Counted if used > self.share => Stage::Held,
            same => same,
        };
        if next != self.stage {
            tracing::info!(
                stage = next.name(),
                used,
                rate,
                "how much of access logs is read"
            );
            (self.stage, self.calm) = (next, 0);
        }
    }

    /// How long the next message has to wait, so that the window takes no more than its share.
    pub(super) fn wait(&self, now: Instant, cpu_ns: u64) -> Option<Duration> {
        if self.stage != Stage::Held {
            return None;
        }
        let used = Duration::from_nanos(cpu_ns.saturating_sub(self.cpu_ns));
        let may = now
            .saturating_duration_since(self.began)
            .mul_f64(self.share);
        let more = used.checked_sub(may)?;
        Some(more.div_f64(self.share).min(WINDOW))
    }
}

fn place(stage: Stage) -> usize {
    match stage {
        Stage::Full => 0,
        Stage::Counted => 1,
        Stage::Held => 2,
    }
}

fn before(stage: Stage) -> Stage {
    match stage {
        Stage::Full | Stage::Counted => Stage::Full,
        Stage::Held => Stage::Counted,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of half a second")]
fn nanoseconds(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver on a CPU of its own: each entry costs so much in the stage that is in force.
    struct Machine {
        governor: Governor,
        now: Instant,
        cpu_ns: u64,
    }

    impl Machine {
        fn new() -> Self {
            let now = Instant::now();
            Self {
                governor: Governor::new(SHARE, now, 0),
                now,
                cpu_ns: 0,
            }
        }

        /// Some seconds in which so many entries come in each, in messages of ten. Entries that were read, counted, and held off.
        fn run(&mut self, seconds: u64, rate: u64) -> [u64; 3] {
            let mut became = [0; 3];
            let gap = Duration::from_nanos(10 * 1_000_000_000 / rate);
            let end = self.now + Duration::from_secs(seconds);
            while self.now < end {
                self.now += gap;
                if self.governor.wait(self.now, self.cpu_ns).is_some() {
                    became[2] += 10;
                    continue;
                }
                let stage = self.governor.stage();
                let cost_ns = if stage == Stage::Full { 5_000 } else { 4_000 };
                became[place(stage).min(1)] += 10;
                self.cpu_ns += 10 * cost_ns;
                self.governor.came(10, self.now, self.cpu_ns);
            }
            became
        }
    }

    #[test]
    fn what_fits_is_read() {
        let mut machine = Machine::new();
        let [read, counted, held] = machine.run(10, 90_000);
        assert!(read > 890_000, "{read}");
        assert_eq!((counted, held), (0, 0));
    }

    #[test]
    fn more_than_fits_is_counted_and_still_more_waits() {
        let mut machine = Machine::new();
        let [_, counted, held] = machine.run(10, 110_000);
        assert!(counted > 900_000, "{counted}");
        assert_eq!(held, 0);
        let before = machine.cpu_ns;
        let [_, _, held] = machine.run(20, 300_000);
        assert!(held > 2_000_000, "{held}");
        let used = nanoseconds(machine.cpu_ns - before) / 20e9;
        assert!((0.3..0.6).contains(&used), "{used}");
        assert_eq!(machine.governor.stage(), Stage::Held);
        // Once less comes, everything is read again.
        machine.run(20, 20_000);
        assert_eq!(machine.governor.stage(), Stage::Full);
        let [full, counted, held] = machine.governor.times();
        assert!(
            full > Duration::from_secs(10) && counted > Duration::from_secs(8),
            "{full:?} {counted:?}"
        );
        assert!(held > Duration::from_secs(15), "{held:?}");
    }
}
