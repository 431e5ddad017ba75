//! Keeps the agent inside its CPU budget by lowering the sampling rate, and says so.

use std::time::{Duration, Instant};

/// How often the cost is looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// Assumed cost of a sample in the kernel, nanoseconds (measured: `cargo xtask bench on-cpu`).
const SAMPLE_NS: u64 = 3_000;

/// Assumed cost of a tick, nanoseconds, whatever it interrupts.
const TICK_NS: u64 = 300;

/// After a lowering, time at the requested rate's share below which the rate is raised again.
const RAISE_BELOW: f64 = 0.5;

/// A new rate and the sentence for the user.
#[derive(Debug, PartialEq)]
pub(super) struct Adjustment {
    pub(super) frequency_hz: u32,
    pub(super) note: String,
}

/// CPU time of all threads of the agent.
pub(super) fn agent_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Watches the cost of one collection.
#[derive(Debug)]
pub(super) struct Governor {
    budget_percent: f64,
    requested_hz: u32,
    last: Instant,
    last_cpu: Duration,
    last_samples: u64,
    last_ticks: u64,
    /// The first reading holds the work of starting and is not judged.
    warmed_up: bool,
}

/// What was spent so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    /// CPU time of the agent's own threads.
    pub(super) agent_cpu: Duration,
    pub(super) samples: u64,
    pub(super) ticks: u64,
}

impl Governor {
    /// `budget_percent` of one core.
    pub(super) fn new(budget_percent: f64, requested_hz: u32, now: Instant, spent: Spent) -> Self {
        Self {
            budget_percent,
            requested_hz,
            last: now,
            last_cpu: spent.agent_cpu,
            last_samples: spent.samples,
            last_ticks: spent.ticks,
            warmed_up: false,
        }
    }

    /// Looks at the cost once a second; a new rate when the budget is exceeded or clearly free.
    pub(super) fn look(
        &mut self,
        now: Instant,
        spent: Spent,
        current_hz: u32,
    ) -> Option<Adjustment> {
        let elapsed = now.saturating_duration_since(self.last);
        if elapsed < PERIOD {
            return None;
        }
        let agent = spent.agent_cpu.saturating_sub(self.last_cpu);
        let kernel = Duration::from_nanos(
            spent.samples.saturating_sub(self.last_samples) * SAMPLE_NS
                + spent.ticks.saturating_sub(self.last_ticks) * TICK_NS,
        );
        self.last = now;
        self.last_cpu = spent.agent_cpu;
        self.last_samples = spent.samples;
        self.last_ticks = spent.ticks;
        if !std::mem::replace(&mut self.warmed_up, true) {
            return None;
        }
        let percent = (agent + kernel).as_secs_f64() / elapsed.as_secs_f64() * 100.0;
        self.judge(percent, current_hz)
    }

    fn judge(&self, percent: f64, current_hz: u32) -> Option<Adjustment> {
        let ratio = self.budget_percent / percent.max(1e-6);
        let wanted = if percent > self.budget_percent {
            // Nine tenths of what fits, so that the next look does not lower it again.
            scale(current_hz, ratio * 0.9).max(1)
        } else if current_hz < self.requested_hz && percent < self.budget_percent * RAISE_BELOW {
            scale(current_hz, (ratio * 0.7).min(2.0)).min(self.requested_hz)
        } else {
            return None;
        };
        if wanted == current_hz {
            return None;
        }
        let verb = if wanted < current_hz {
            "lowered"
        } else {
            "raised"
        };
        Some(Adjustment {
            frequency_hz: wanted,
            note: format!(
                "rate {verb} from {current_hz} Hz to {wanted} Hz: the agent used {percent:.2} % of a core, its CPU budget is {} %",
                self.budget_percent
            ),
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast to u32 saturates, and the factor is not negative"
)]
fn scale(hz: u32, factor: f64) -> u32 {
    (f64::from(hz) * factor) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(cpu_ms: u64, samples: u64) -> Spent {
        Spent {
            agent_cpu: Duration::from_millis(cpu_ms),
            samples,
            ticks: 0,
        }
    }

    #[test]
    fn lowers_the_rate_when_the_budget_is_exceeded_and_says_why() {
        let start = Instant::now();
        let mut governor = Governor::new(1.0, 999, start, spent(0, 0));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(
            governor.look(at(1), spent(500, 0), 999),
            None,
            "the start is not judged"
        );
        let adjustment = governor
            .look(at(2), spent(520, 0), 999)
            .expect("2 % is over 1 %");
        assert_eq!(adjustment.frequency_hz, 449);
        assert_eq!(
            adjustment.note,
            "rate lowered from 999 Hz to 449 Hz: the agent used 2.00 % of a core, its CPU budget is 1 %"
        );
    }

    #[test]
    fn raises_it_again_up_to_what_was_asked_for() {
        let start = Instant::now();
        let mut governor = Governor::new(1.0, 999, start, spent(0, 0));
        let at = |seconds| start + Duration::from_secs(seconds);
        governor.look(at(1), spent(0, 0), 100);
        let adjustment = governor
            .look(at(2), spent(1, 0), 600)
            .expect("0.1 % is far below 1 %");
        assert_eq!(adjustment.frequency_hz, 999);
    }

    #[test]
    fn counts_the_work_in_the_kernel() {
        let start = Instant::now();
        let mut governor = Governor::new(0.1, 4999, start, spent(0, 0));
        let at = |seconds| start + Duration::from_secs(seconds);
        governor.look(at(1), spent(0, 0), 4999);
        let adjustment = governor
            .look(at(2), spent(0, 5000), 4999)
            .expect("5000 samples are 1.5 %");
        assert!(adjustment.frequency_hz < 400, "{adjustment:?}");
    }

    #[test]
    fn leaves_a_fitting_rate_alone() {
        let start = Instant::now();
        let mut governor = Governor::new(5.0, 99, start, spent(0, 0));
        governor.look(start + Duration::from_secs(1), spent(0, 0), 99);
        assert_eq!(
            governor.look(start + Duration::from_secs(2), spent(30, 99), 99),
            None
        );
    }
}
