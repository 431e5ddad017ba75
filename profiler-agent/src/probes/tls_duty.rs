//! The part of the time for which probes of TLS are attached.

use std::time::{Duration, Instant};

/// Time in which probes are attached once and taken away once. The kernel takes a tenth of a second for each
/// that goes, while which it still costs.
const DUTY_PERIOD: Duration = Duration::from_secs(10);

/// When probes are there.
#[derive(Debug)]
pub(super) struct Duty {
    /// Part of each period; the whole for 100 percent.
    on: Duration,
    period_began: Option<Instant>,
    attached_since: Option<Instant>,
    attached: Duration,
    began: Option<Instant>,
    /// When the task ended.
    ended: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Attach,
    Detach,
}

impl Duty {
    pub(super) fn new(percent: u8) -> Self {
        Self {
            on: DUTY_PERIOD * u32::from(percent.clamp(1, 100)) / 100,
            period_began: None,
            attached_since: None,
            attached: Duration::ZERO,
            began: None,
            ended: None,
        }
    }

    /// Nothing was or will be left out.
    pub(super) fn is_whole(&self) -> bool {
        self.on == DUTY_PERIOD && self.ended.is_none()
    }

    pub(super) fn turn(&mut self, now: Instant) -> Turn {
        self.began.get_or_insert(now);
        let began = *self.period_began.get_or_insert(now);
        let mut into = now.saturating_duration_since(began);
        if into >= DUTY_PERIOD {
            self.period_began = Some(now);
            into = Duration::ZERO;
        }
        if into < self.on {
            Turn::Attach
        } else {
            self.stop(now);
            Turn::Detach
        }
    }

    pub(super) fn end(&mut self, now: Instant) {
        self.stop(now);
        self.ended.get_or_insert(now);
    }

    /// All probes are there.
    pub(super) fn attached(&mut self, now: Instant) {
        self.attached_since.get_or_insert(now);
    }

    /// Whether they are, as far as is known here.
    pub(super) fn is_attached(&self) -> bool {
        self.attached_since.is_some()
    }

    fn stop(&mut self, now: Instant) {
        if let Some(since) = self.attached_since.take() {
            self.attached += now.saturating_duration_since(since);
        }
    }

    pub(super) fn attached_percent(&self, now: Instant) -> u8 {
        let Some(began) = self.began else { return 0 };
        let now = self.ended.unwrap_or(now);
        let current = self
            .attached_since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let all = now.saturating_duration_since(began).as_millis();
        let attached = (self.attached + current).as_millis();
        let percent = (attached * 100).checked_div(all).unwrap_or(0);
        u8::try_from(percent.min(100)).unwrap_or(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_each_period_is_attached() {
        let start = Instant::now();
        let mut duty = Duty::new(25);
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut turn = |now| {
            let turn = duty.turn(now);
            if turn == Turn::Attach {
                duty.attached(now);
            }
            turn
        };
        let turns: Vec<Turn> = (0..8).map(|step| turn(at(step * 2000))).collect();
        let (on, off) = (Turn::Attach, Turn::Detach);
        // 2.5 s of each 10 s: the second period begins at 10 s.
        assert_eq!(turns, [on, on, off, off, off, on, on, off]);
        // Until 4 s, and until 14 s.
        assert_eq!(duty.attached_percent(at(14_000)), 57);
    }

    #[test]
    fn the_whole_duty_never_detaches() {
        let start = Instant::now();
        let mut duty = Duty::new(100);
        for step in 0..100 {
            let now = start + Duration::from_millis(step * 150);
            assert_eq!(duty.turn(now), Turn::Attach, "{step}");
            duty.attached(now);
        }
        let end = start + Duration::from_millis(99 * 150);
        duty.end(end);
        assert_eq!(duty.attached_percent(end), 100);
        // Whenever it is asked for afterwards.
        assert_eq!(duty.attached_percent(end + Duration::from_mins(1)), 100);
    }
}
