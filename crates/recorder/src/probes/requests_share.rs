//! Keeps the reading of payload inside its share of a CPU: where more comes than it can take, only one
//! connection in N is captured. Edges count all of them in any case.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time between two looks at the share, unless it is used up before.
pub(super) const LOOK: Duration = Duration::from_millis(250);
/// A share that is used up sooner is judged over at least this time: a short burst is not mistaken for the usual load.
const LEAST_JUDGED: Duration = Duration::from_millis(60);
/// At least one connection in this many is captured.
const MOST: u32 = 1 << 16;
/// The same where they take turns: a round is judged as a whole, and must not last for ever.
const MOST_IN_TURNS: u32 = 1 << 8;
/// Part of the share, in percent, that may be used before more connections are captured again: twice as
/// many need about twice the time.
const FREE_PERCENT: u64 = 35;
/// For this long pieces are counted before any is captured.
pub(super) const OPENING: Duration = Duration::from_millis(50);
/// About what reading a piece takes, and making requests of it; small ones take a third of it (docs/performance.md).
const PIECE_NS: u64 = 4000;
/// This many looks in a row must find that much unused: what is captured anew begins in the middle.
const CALM_LOOKS: u32 = 20;

/// Open connections of which something comes between two looks, by a hash of each: more are few.
const FEW: u32 = 16;
/// With this many again they are not.
const MANY: u32 = 100;

/// Whether connections take turns: where few are captured, which ones would decide what is found.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// A bit for each hash (Whang, Vander-Zanden and Taylor 1990, A Linear-Time Probabilistic Counting Algorithm).
    seen: [u64; 8],
    are_taken: bool,
}

impl Turns {
    /// Something of a connection has come.
    pub(super) fn note(&mut self, cookie: u64) {
        let hash = cookie.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55;
        if let Ok(place) = usize::try_from(hash / 64)
            && let Some(bits) = self.seen.get_mut(place)
        {
            *bits |= 1 << (hash % 64);
        }
    }

    pub(super) fn look(&mut self) -> bool {
        let seen = std::mem::take(&mut self.seen);
        let connections: u32 = seen.iter().map(|bits| bits.count_ones()).sum();
        // Within a look several have their turn after each other.
        self.are_taken = connections < if self.are_taken { MANY } else { FEW };
        self.are_taken
    }
}

#[derive(Debug)]
pub(super) struct Share {
    percent: u64,
    one_of: u32,
    /// The most that this was.
    fewest: u32,
    calm: u32,
    /// It has never been used up.
    is_opening: bool,
}

impl Share {
    /// `percent` of one CPU may be used; so many pieces came within [`OPENING`].
    pub(super) fn new(percent: u32, pieces: u64) -> Self {
        let mut share = Self {
            percent: u64::from(percent),
            one_of: 1,
            fewest: 1,
            calm: 0,
            is_opening: true,
        };
        let needed_us = pieces.saturating_mul(PIECE_NS) / 1000;
        let times = needed_us.div_ceil(share.allowed_us(OPENING));
        let times = u32::try_from(times).unwrap_or(MOST).clamp(1, MOST_IN_TURNS);
        share.one_of = times.next_power_of_two();
        share.fewest = share.one_of;
        share
    }

    /// One connection in this many is captured; a power of two.
    pub(super) fn one_of(&self) -> u32 {
        self.one_of
    }

    /// The same when the fewest were captured.
    pub(super) fn fewest(&self) -> u32 {
        self.fewest
    }

    /// Time between two looks: a round, where connections take turns, because a busy one is busy in its turn only.
    pub(super) fn interval(&self, turn: Option<Duration>) -> Duration {
        LOOK.max(turn.unwrap_or_default() * self.one_of)
    }

    /// Whether the share of the whole time until the next look is used up: what comes now is beyond it.
    pub(super) fn is_used_up(&self, interval: Duration, cpu: Duration) -> bool {
        micros(cpu) > self.allowed_us(interval)
    }

    /// CPU time that may be used in a span of time, in microseconds.
    fn allowed_us(&self, elapsed: Duration) -> u64 {
        (micros(elapsed) / 100).saturating_mul(self.percent).max(1)
    }

    /// Of the last `elapsed` time `cpu` was used for reading, and `lost` pieces did not fit the ring
    /// buffer. `Some`: from now on one connection in this many.
    pub(super) fn look(
        &mut self,
        elapsed: Duration,
        cpu: Duration,
        lost: u64,
        turn: Option<Duration>,
    ) -> Option<u32> {
        let cpu_us = micros(cpu);
        let least = match turn {
            Some(_) if self.one_of > 1 => self.interval(turn),
            _ => LEAST_JUDGED,
        };
        let allowed_us = self.allowed_us(elapsed.max(least));
        let most = if turn.is_some() { MOST_IN_TURNS } else { MOST };
        let before = self.one_of;
        if cpu_us > allowed_us || lost > 0 {
            self.calm = 0;
            self.is_opening = false;
            // So much too much, but at least half of it goes.
            let too_much = u32::try_from(cpu_us.div_ceil(allowed_us)).unwrap_or(MOST);
            let factor = too_much.clamp(2, MOST).next_power_of_two();
            self.one_of = before.saturating_mul(factor).min(most.max(before));
        } else if before > 1 && cpu_us < allowed_us.saturating_mul(FREE_PERCENT) / 100 {
            self.calm += 1;
            // As many as of the usual length, or two rounds.
            let rounds = micros(self.interval(turn)) / micros(LOOK).max(1);
            let looks = u64::from(CALM_LOOKS) / rounds.max(1);
            // What was counted before may be of connections of which nothing is wanted.
            if self.is_opening || u64::from(self.calm) >= looks.max(2) {
                self.calm = 0;
                self.one_of = before / 2;
            }
        } else {
            self.calm = 0;
        }
        self.fewest = self.fewest.max(self.one_of);
        (self.one_of != before).then_some(self.one_of)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// CPU time of the calling thread.
pub(super) fn thread_cpu() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(used.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(used.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second in which this many milliseconds were used.
    fn look(share: &mut Share, used_ms: u64, lost: u64) -> Option<u32> {
        share.look(
            Duration::from_secs(1),
            Duration::from_millis(used_ms),
            lost,
            None,
        )
    }

    #[test]
    fn few_connections_take_turns() {
        let mut turns = Turns::default();
        let mut look = |connections: std::ops::Range<u64>| {
            connections.for_each(|cookie| turns.note(cookie));
            turns.look()
        };
        assert!(!look(0..40));
        assert!(look(0..8));
        assert!(look(100..140), "several turns of one look");
        assert!(!look(0..300));
        assert!(!look(0..40));
        assert!(look(0..0));
    }

    #[test]
    fn the_fewest_are_remembered() {
        let mut share = Share::new(25, 0);
        look(&mut share, 900, 0);
        let fewest = share.one_of();
        assert!(fewest > 1);
        for _ in 0..10 * CALM_LOOKS {
            look(&mut share, 0, 0);
        }
        assert_eq!((share.one_of(), share.fewest()), (1, fewest));
    }

    #[test]
    fn a_busy_start_captures_few_and_more_at_once_where_it_was_for_nothing() {
        // 20,000 a second take 80 ms.
        for (pieces, one_of) in [(0, 1), (1000, 1), (1250, 1), (1251, 2), (5001, 8)] {
            assert_eq!(Share::new(10, pieces).one_of(), one_of, "{pieces}");
        }
        assert_eq!(Share::new(1, u64::MAX).one_of(), MOST_IN_TURNS);
        let mut share = Share::new(10, 5001);
        assert_eq!(share.fewest(), 8);
        assert_eq!(look(&mut share, 10, 0), Some(4));
        assert_eq!(look(&mut share, 10, 0), Some(2));
        assert_eq!(look(&mut share, 300, 0), Some(8));
        assert_eq!(look(&mut share, 10, 0), None, "that was not for nothing");
    }

    #[test]
    fn within_the_share_every_connection_is_captured() {
        let mut share = Share::new(25, 0);
        for used_ms in [0, 100, 250] {
            assert_eq!(look(&mut share, used_ms, 0), None, "{used_ms}");
        }
        assert_eq!(share.one_of(), 1);
    }

    #[test]
    fn beyond_it_so_many_less_are() {
        for (used_ms, expected) in [(251, 2), (499, 2), (501, 4), (1000, 4), (4000, 16)] {
            let mut share = Share::new(25, 0);
            assert_eq!(look(&mut share, used_ms, 0), Some(expected), "{used_ms}");
        }
        let mut share = Share::new(25, 0);
        assert_eq!(look(&mut share, 10, 1), Some(2), "a loss counts as well");
    }

    #[test]
    fn more_are_captured_again_when_much_is_unused_for_some_time() {
        let mut share = Share::new(25, 0);
        assert_eq!(look(&mut share, 1000, 0), Some(4));
        for _ in 1..CALM_LOOKS {
            assert_eq!(look(&mut share, 50, 0), None);
        }
        assert_eq!(look(&mut share, 200, 0), None, "not in a row");
        for _ in 1..CALM_LOOKS {
            assert_eq!(look(&mut share, 50, 0), None);
        }
        assert_eq!(look(&mut share, 50, 0), Some(2));
        assert_eq!(share.one_of(), 2);
    }

    #[test]
    fn a_share_that_is_used_up_early_is_judged_early() {
        let ms = Duration::from_millis;
        let mut share = Share::new(10, 0);
        // A tenth of a quarter of a second.
        assert!(!share.is_used_up(LOOK, ms(25)) && share.is_used_up(LOOK, ms(26)));
        // All of a CPU from the first moment on.
        assert_eq!(share.look(ms(26), ms(26), 0, None), Some(8));
        assert_eq!(share.look(ms(100), ms(26), 0, None), Some(32));
    }

    /// Three connections of a CPU of 12 % each: of one in 16, the turn of one of them is not a reason for fewer.
    #[test]
    fn a_busy_connection_is_judged_by_a_round_and_not_by_its_turn() {
        let ms = Duration::from_millis;
        let turn = Some(ms(34));
        let mut share = Share::new(1, 0);
        share.look(ms(250), ms(90), 0, turn);
        assert_eq!(share.one_of(), 64, "0.36 of a CPU at 1 %");
        assert_eq!(share.interval(turn), ms(64 * 34));
        for _ in 0..10 {
            assert!(!share.is_used_up(share.interval(turn), ms(12)));
            assert_eq!(share.look(share.interval(turn), ms(12), 0, turn), None);
        }
        while share.look(ms(34), ms(34), 1, turn).is_some() {}
        assert_eq!(share.one_of(), MOST_IN_TURNS);
    }

    #[test]
    fn there_is_an_end_to_it() {
        let mut share = Share::new(1, 0);
        while look(&mut share, 1000, 1).is_some() {}
        assert_eq!(share.one_of(), MOST);
    }
}
