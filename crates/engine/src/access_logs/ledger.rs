//! What is missing: entries that came, held against what their Envoy counts.
//!
//! Entries come a second or more after their requests, so that the counters of one moment have to be held against the entries of
//! requests that were over by then, whenever they come. A reading therefore waits for `LAG_NS`, and counts which of the
//! entries that come meanwhile belong behind it: an entry says when its request was over, by the clock of the same machine.

use std::{collections::VecDeque, ops::RangeInclusive};

use profiler_host::envoy_admin::LogCounters;
use profiler_model::OwnLogCounts;

/// For how long entries are waited for: Envoy's own default is to send them each second.
const LAG_NS: u64 = 3_000_000_000;
/// Readings that wait.
const MOST_WAITING: usize = 8;
/// So long after a request was over its Envoy has counted its entry.
const WRITTEN_NS: u64 = 10_000_000;
/// Before every entry that does not say when it was over.
const UNTIL_ANSWERED: u64 = u64::MAX - 1;

/// A reading of an Envoy's counters, and what had come of what was over by then.
#[derive(Clone, Debug)]
struct Reading {
    /// It was made at some moment of this time.
    made: RangeInclusive<u64>,
    counters: LogCounters,
    /// Requests and all entries that were over at the beginning of that.
    requests: u64,
    entries: u64,
    /// Entries that were over while it was made: the counters may have them or not.
    between: u64,
}

impl Reading {
    /// Entries that the Envoy has written and that have not come, and those from before the first one that came.
    fn missing(&self) -> i128 {
        i128::from(self.counters.written.unwrap_or(0)) - i128::from(self.entries)
    }
}

/// A reading that waits for entries.
#[derive(Debug)]
struct Waiting {
    reading: Reading,
    /// Requests and all entries that came since the Envoy was asked, but were over later.
    requests: u64,
    entries: u64,
}

/// Of one Envoy.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    requests: u64,
    entries: u64,
    /// The Envoy was asked, and has not answered.
    asked: Option<Waiting>,
    waiting: VecDeque<Waiting>,
    /// The one of which the least was missing: what was then counts as nothing.
    least: Option<Reading>,
    /// What drops and failures are counted from.
    first: LogCounters,
    newest: Option<Reading>,
}

impl Ledger {
    /// An entry came, of a request or not, that was over at that time of the wall clock; `None`: it does not say.
    pub(super) fn came(&mut self, is_request: bool, over_ns: Option<u64>) {
        let request = u64::from(is_request);
        self.requests += request;
        self.entries += 1;
        // What does not say when it was over is taken for what is over now.
        let over_ns = over_ns.unwrap_or(u64::MAX);
        for waiting in self.asked.iter_mut().chain(&mut self.waiting) {
            let made = &waiting.reading.made;
            if over_ns > *made.start() {
                waiting.reading.between += u64::from(over_ns <= *made.end());
                waiting.requests += request;
                waiting.entries += 1;
            }
        }
        for reading in [&mut self.least, &mut self.newest].into_iter().flatten() {
            // It came later than it was waited for.
            if over_ns <= *reading.made.start() {
                reading.requests += request;
                reading.entries += 1;
            }
        }
    }

    /// Entries came of which nothing more is known.
    pub(super) fn came_untimed(&mut self, entries: u64) {
        self.entries += entries;
        for waiting in self.asked.iter_mut().chain(&mut self.waiting) {
            waiting.entries += entries;
        }
    }

    /// The Envoy is asked for its counters. What has come, and what was over some time ago, is among them.
    pub(super) fn ask(&mut self, now_ns: u64) {
        self.asked = Some(Waiting {
            reading: Reading {
                made: now_ns.saturating_sub(WRITTEN_NS)..=UNTIL_ANSWERED,
                counters: LogCounters::default(),
                requests: 0,
                entries: 0,
                between: 0,
            },
            requests: 0,
            entries: 0,
        });
    }

    /// The Envoy has answered with what it has counted.
    pub(super) fn answered(&mut self, now_ns: u64, counters: LogCounters) {
        let Some(mut waiting) = self.asked.take() else {
            return;
        };
        waiting.reading.made = *waiting.reading.made.start()..=now_ns;
        waiting.reading.counters = counters;
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(waiting);
    }

    /// Takes readings into account that have waited long enough.
    pub(super) fn settle(&mut self, now_ns: u64) {
        let is_due =
            |waiting: &mut Waiting| waiting.reading.made.end().saturating_add(LAG_NS) <= now_ns;
        while let Some(waiting) = self.waiting.pop_front_if(is_due) {
            let reading = Reading {
                requests: self.requests - waiting.requests,
                entries: self.entries - waiting.entries,
                ..waiting.reading
            };
            let newest = self.newest.as_ref();
            if newest.is_some_and(|newest| is_anew(&newest.counters, &reading.counters)) {
                self.least = None;
            }
            if self.least.is_none() {
                self.first = reading.counters;
            }
            let least = self.least.as_ref();
            if least.is_none_or(|least| reading.missing() < least.missing()) {
                self.least = Some(reading.clone());
            }
            self.newest = Some(reading);
        }
    }

    /// The Envoy's counts, since the first entry that came. `None`: no reading has been long enough ago.
    pub(super) fn own(&self) -> Option<OwnLogCounts> {
        let (least, newest) = (self.least.as_ref()?, self.newest.as_ref()?);
        let since = |of: fn(&LogCounters) -> Option<u64>| {
            of(&newest.counters)?.checked_sub(of(&least.counters)?)
        };
        let since_first = |of: fn(&LogCounters) -> Option<u64>| {
            of(&newest.counters)?.checked_sub(of(&self.first)?)
        };
        // What came before stands for what was counted until then.
        let written = since(|counters| counters.written).map(|more| more + least.entries);
        let missing = newest.missing() - least.missing();
        let sure = missing - i128::from(newest.between);
        Some(OwnLogCounts {
            written,
            dropped: since_first(|counters| counters.dropped),
            failed: since_first(|counters| counters.failed),
            completed: since(|counters| counters.completed).map(|more| more + least.requests),
            unknown: written.map(|_| u64::try_from(sure).unwrap_or(0)),
        })
    }
}

/// Whether the Envoy has begun anew between two readings.
fn is_anew(before: &LogCounters, after: &LogCounters) -> bool {
    let is_less = |of: fn(&LogCounters) -> Option<u64>| of(after) < of(before);
    is_less(|counters| counters.written) || is_less(|counters| counters.completed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn counters(completed: u64, written: u64, dropped: u64) -> LogCounters {
        LogCounters {
            written: Some(written),
            dropped: Some(dropped),
            failed: None,
            completed: Some(completed),
        }
    }

    /// A question that is answered at once.
    fn read(ledger: &mut Ledger, now_ns: u64, counters: LogCounters) {
        ledger.ask(now_ns);
        ledger.answered(now_ns, counters);
    }

    /// Requests that are over each tenth of a second from `from` on, whose entries come a second later, and a reading each second.
    fn play(ledger: &mut Ledger, seconds: u64, lost: impl Fn(u64) -> bool) {
        let mut sent = 0;
        for tenth in 0..10 * seconds {
            let now = tenth * SECOND / 10;
            if tenth % 10 == 5 {
                read(
                    ledger,
                    now + SECOND / 20,
                    counters(1000 + tenth + 1, 500 + tenth + 1, 0),
                );
            }
            if tenth >= 10 && !lost(tenth - 10) {
                ledger.came(true, Some(now - SECOND));
                sent += 1;
            }
            ledger.settle(now);
        }
        assert!(sent > 0);
    }

    #[test]
    fn what_is_under_way_is_not_missing() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.own(), None);
        play(&mut ledger, 20, |_| false);
        let own = ledger.own().unwrap();
        assert_eq!((own.unknown, own.dropped), (Some(0), Some(0)));
        assert_eq!(own.completed, own.written);
        assert!(own.completed.unwrap() >= 160, "{own:?}");
    }

    #[test]
    fn what_comes_before_the_answer_may_be_over_after_the_question() {
        let mut ledger = Ledger::default();
        for _ in 0..10 {
            ledger.came(true, Some(SECOND / 2));
        }
        ledger.ask(SECOND);
        for _ in 0..40 {
            ledger.came(true, Some(SECOND + 1));
        }
        ledger.answered(2 * SECOND, counters(10, 10, 0));
        ledger.settle(10 * SECOND);
        read(&mut ledger, 11 * SECOND, counters(50, 50, 0));
        ledger.settle(20 * SECOND);
        let own = ledger.own().unwrap();
        assert_eq!((own.written, own.unknown), (Some(50), Some(0)));
        assert_eq!(own.completed, Some(50));
    }

    /// Entries of another time than that of a question say nothing about it.
    #[test]
    fn what_is_lost_is_counted_whatever_comes_before_an_answer() {
        let mut ledger = Ledger::default();
        read(&mut ledger, SECOND, counters(0, 0, 0));
        ledger.settle(10 * SECOND);
        ledger.ask(11 * SECOND);
        // Those of which the time is known may be among the ten.
        for over in [
            None,
            None,
            None,
            Some(11 * SECOND + 1),
            Some(11 * SECOND + 2),
        ] {
            ledger.came(true, over);
        }
        ledger.came_untimed(7);
        ledger.answered(12 * SECOND, counters(10, 10, 0));
        ledger.settle(20 * SECOND);
        assert_eq!(ledger.own().unwrap().unknown, Some(8));
    }

    #[test]
    fn an_answer_to_no_question_is_left_out() {
        let mut ledger = Ledger::default();
        ledger.answered(SECOND, counters(10, 10, 0));
        ledger.settle(20 * SECOND);
        assert_eq!(ledger.own(), None);
    }

    #[test]
    fn what_is_lost_is_counted() {
        let mut ledger = Ledger::default();
        play(&mut ledger, 20, |tenth| (60..100).contains(&tenth));
        assert_eq!(ledger.own().unwrap().unknown, Some(40));
    }

    #[test]
    fn what_comes_late_is_missing_until_it_comes() {
        let mut ledger = Ledger::default();
        read(&mut ledger, SECOND, counters(10, 10, 0));
        ledger.settle(10 * SECOND);
        read(&mut ledger, 11 * SECOND, counters(15, 15, 0));
        ledger.settle(20 * SECOND);
        assert_eq!(ledger.own().unwrap().unknown, Some(5));
        for _ in 0..5 {
            ledger.came(true, Some(10 * SECOND));
        }
        assert_eq!(ledger.own().unwrap().unknown, Some(0));
    }

    #[test]
    fn an_envoy_that_begins_anew_is_counted_anew() {
        let mut ledger = Ledger::default();
        read(&mut ledger, SECOND, counters(100, 100, 7));
        ledger.settle(10 * SECOND);
        read(&mut ledger, 11 * SECOND, counters(5, 5, 0));
        ledger.settle(20 * SECOND);
        let own = ledger.own().unwrap();
        assert_eq!((own.completed, own.dropped), (Some(0), Some(0)));
    }

    #[test]
    fn drops_are_no_unknown_ones() {
        let mut ledger = Ledger::default();
        read(&mut ledger, SECOND, counters(0, 0, 0));
        ledger.settle(10 * SECOND);
        for _ in 0..90 {
            ledger.came(true, Some(10 * SECOND));
        }
        ledger.came_untimed(0);
        read(&mut ledger, 11 * SECOND, counters(100, 92, 8));
        ledger.settle(20 * SECOND);
        let own = ledger.own().unwrap();
        assert_eq!((own.dropped, own.unknown), (Some(8), Some(2)));
        assert_eq!((own.written, own.completed), (Some(92), Some(100)));
    }
}
