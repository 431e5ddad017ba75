//! The part of the time for which probes of TLS are attached: as much as was asked for, and as they may cost.

use std::time::{Duration, Instant};

/// Time in which probes are attached once and taken away once. The kernel takes a tenth of a second for each
/// that goes, while which it still costs.
const PERIOD: Duration = Duration::from_secs(10);
/// The longest one, where taking them away is most of what may be spent: of many processes it takes minutes.
const LONGEST_PERIOD: Duration = Duration::from_hours(1);
/// Probes are there for at least this time, and then judged by what they have cost.
const LEAST: Duration = Duration::from_millis(500);
/// While they stay they are judged by what they cost in this time.
const JUDGED: Duration = Duration::from_secs(2);
/// The whole of a share.
const ALL: u64 = 1000;

/// When probes are there.
#[derive(Debug)]
pub(super) struct Duty {
    /// Part of each period that was asked for.
    asked: Duration,
    /// What they may cost, in thousandths of one CPU.
    budget: u64,
    /// Part of the time, in thousandths, in which they cost no more than that.
    affordable: u64,
    /// What taking them away took last.
    leaving: Duration,
    period_began: Option<Instant>,
    attached_since: Option<Instant>,
    /// From when on they are judged, with what had been spent until then, in nanoseconds.
    judged_since: Option<(Instant, u64)>,
    attached: Duration,
    was_away: bool,
    began: Option<Instant>,
    /// When the task ended.
    ended: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DutyStep {
    Attach,
    Detach,
}

impl Duty {
    /// For `percent` of the time, unless the target would pay more than `cpu_percent` of one CPU.
    pub(super) fn new(percent: u8, cpu_percent: u32) -> Self {
        Self {
            asked: PERIOD * u32::from(percent.clamp(1, 100)) / 100,
            budget: u64::from(cpu_percent) * ALL / 100,
            affordable: ALL,
            leaving: Duration::ZERO,
            period_began: None,
            attached_since: None,
            judged_since: None,
            attached: Duration::ZERO,
            was_away: false,
            began: None,
            ended: None,
        }
    }

    /// Nothing was left out so far.
    pub(super) fn is_whole(&self) -> bool {
        self.asked == PERIOD && !self.was_away && self.ended.is_none()
    }

    /// What they cost keeps them away for a part of the time, not what was asked for.
    pub(super) fn is_limited(&self) -> bool {
        self.affordable < ALL && self.plan().0 < self.asked
    }

    pub(super) fn turn(&mut self, now: Instant) -> DutyStep {
        self.began.get_or_insert(now);
        let began = *self.period_began.get_or_insert(now);
        let mut into = now.saturating_duration_since(began);
        let (on, period) = self.plan();
        if into >= period {
            self.period_began = Some(now);
            into = Duration::ZERO;
        }
        // Putting them in takes time as well.
        let stays = self
            .attached_since
            .map_or(into, |since| now.saturating_duration_since(since));
        if on >= period || stays < on {
            DutyStep::Attach
        } else {
            self.was_away = true;
            self.stop(now);
            DutyStep::Detach
        }
    }

    /// For how long they are there in a period, and how long that is.
    fn plan(&self) -> (Duration, Duration) {
        if self.affordable >= ALL {
            return (self.asked, PERIOD);
        }
        let share = u32::try_from(self.affordable.max(1)).unwrap_or(1);
        let whole = u32::try_from(ALL).unwrap_or(1);
        let paid = PERIOD * share / whole;
        let on = paid.saturating_sub(self.leaving).max(LEAST);
        let period = (on + self.leaving) * whole / share;
        let period = period.clamp(PERIOD, LONGEST_PERIOD);
        // A part that was asked for is not exceeded.
        (on.min(self.asked), period)
    }

    /// Judges what they cost: `spent_ns` since the beginning.
    pub(super) fn spent(&mut self, spent_ns: u64, now: Instant) {
        let Some((since, before)) = self.judged_since else {
            return;
        };
        let elapsed = now.saturating_duration_since(since);
        if elapsed < LEAST {
            return;
        }
        if elapsed >= JUDGED {
            self.judged_since = Some((now, spent_ns));
        }
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let cost = spent_ns.saturating_sub(before).saturating_mul(ALL) / elapsed_ns;
        self.affordable = (self.budget * ALL)
            .checked_div(cost)
            .map_or(ALL, |share| share.min(ALL));
    }

    pub(super) fn end(&mut self, now: Instant) {
        self.stop(now);
        self.ended.get_or_insert(now);
    }

    /// All probes are there; `spent_ns` have been spent until now.
    pub(super) fn attached(&mut self, now: Instant, spent_ns: u64) {
        self.attached_since.get_or_insert(now);
        self.judged_since.get_or_insert((now, spent_ns));
    }

    /// All have gone, which took this long.
    pub(super) fn left(&mut self, leaving: Duration) {
        self.leaving = leaving;
    }

    /// Whether they are there, as far as is known here.
    pub(super) fn is_attached(&self) -> bool {
        self.attached_since.is_some()
    }

    fn stop(&mut self, now: Instant) {
        self.judged_since = None;
        if let Some(since) = self.attached_since.take() {
            self.attached += now.saturating_duration_since(since);
        }
    }

    /// For how long they were there.
    pub(super) fn attached_time(&self, now: Instant) -> Duration {
        let now = self.ended.unwrap_or(now);
        let current = self
            .attached_since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.attached + current
    }

    pub(super) fn attached_percent(&self, now: Instant) -> u8 {
        let Some(began) = self.began else { return 0 };
        let was_there = self.is_attached() || !self.attached.is_zero();
        if self.asked == PERIOD && !self.was_away && was_there {
            return 100;
        }
        let attached = self.attached_time(now).as_millis();
        let now = self.ended.unwrap_or(now);
        let all = now.saturating_duration_since(began).as_millis();
        let percent = (attached * 100).checked_div(all).unwrap_or(0);
        u8::try_from(percent.min(100)).unwrap_or(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: DutyStep = DutyStep::Attach;
    const OFF: DutyStep = DutyStep::Detach;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_part_of_each_period_is_attached() {
        let start = Instant::now();
        let mut duty = Duty::new(25, 5);
        let mut turn = |now| {
            let turn = duty.turn(now);
            if turn == ON {
                duty.attached(now, 0);
            }
            turn
        };
        let turns: Vec<DutyStep> = (0..8).map(|step| turn(start + ms(step * 2000))).collect();
        // 2.5 s of each 10 s: the second period begins at 10 s.
        assert_eq!(turns, [ON, ON, OFF, OFF, OFF, ON, ON, OFF]);
        // Until 4 s, and until 14 s.
        assert_eq!(duty.attached_percent(start + ms(14_000)), 57);
        assert!(!duty.is_whole() && !duty.is_limited());
    }

    #[test]
    fn the_whole_duty_never_detaches() {
        let start = Instant::now();
        let mut duty = Duty::new(100, 5);
        for step in 0..100 {
            let now = start + ms(step * 150);
            assert_eq!(duty.turn(now), ON, "{step}");
            duty.attached(now, 0);
            // A fiftieth of a CPU.
            duty.spent(step * 3_000_000, now);
        }
        assert!(duty.is_whole() && !duty.is_limited());
        let end = start + ms(99 * 150);
        duty.end(end);
        assert_eq!(duty.attached_percent(end), 100);
        assert_eq!(duty.attached_time(end), ms(99 * 150));
        // Whenever it is asked for afterwards.
        assert_eq!(duty.attached_percent(end + Duration::from_mins(1)), 100);
    }

    #[test]
    fn what_costs_too_much_is_there_for_as_long_as_it_may_cost() {
        let start = Instant::now();
        let mut duty = Duty::new(100, 5);
        assert_eq!(duty.turn(start), ON);
        duty.attached(start, 0);
        // A fifth of a CPU, four times what it may: not judged before half a second.
        duty.spent(80_000_000, start + ms(400));
        assert!(!duty.is_limited());
        duty.spent(200_000_000, start + ms(1000));
        assert!(duty.is_limited());
        assert_eq!(duty.turn(start + ms(2400)), ON);
        assert!(duty.is_whole());
        assert_eq!(duty.turn(start + ms(2500)), OFF);
        assert!(!duty.is_whole());
        duty.left(ms(800));
        assert_eq!(duty.turn(start + ms(9900)), OFF);
        assert_eq!(duty.turn(start + ms(10_000)), ON);
        duty.attached(start + ms(10_050), 500_000_000);
        // What taking them away costs is a part of it.
        assert_eq!(duty.turn(start + ms(11_690)), ON);
        // The load has gone meanwhile.
        duty.spent(501_000_000, start + ms(11_690));
        assert!(!duty.is_limited());
        assert_eq!(duty.turn(start + ms(11_700)), ON);
        duty.spent(501_000_000 + 340_000_000, start + ms(11_750));
        assert_eq!(duty.turn(start + ms(11_750)), OFF);
    }

    #[test]
    fn load_that_comes_late_is_judged_as_soon() {
        let start = Instant::now();
        let mut duty = Duty::new(100, 5);
        let hour = Duration::from_hours(1);
        duty.turn(start);
        duty.attached(start, 0);
        for step in 0..3600 {
            duty.spent(0, start + Duration::from_secs(step));
        }
        assert_eq!(duty.turn(start + hour), ON);
        duty.spent(0, start + hour);
        // Half of a CPU from here on.
        duty.spent(500_000_000, start + hour + ms(1000));
        assert!(duty.is_limited());
        assert_eq!(duty.turn(start + hour + ms(1000)), OFF);
    }

    #[test]
    fn periods_grow_where_taking_probes_away_costs_most() {
        let start = Instant::now();
        let mut duty = Duty::new(100, 5);
        duty.turn(start);
        duty.attached(start, 0);
        duty.left(ms(1000));
        // A whole CPU: 5 % of the time.
        duty.spent(500_000_000, start + ms(500));
        assert_eq!(duty.turn(start + ms(500)), OFF);
        assert_eq!(duty.turn(start + ms(29_999)), OFF);
        assert_eq!(duty.turn(start + ms(30_000)), ON);
    }
}
