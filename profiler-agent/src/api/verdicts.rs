//! What check-ups that have ended found, in short: reading their results takes some hundred milliseconds, and a check-up that
//! has ended changes no more. One is read at a time: what users ask for goes before.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Verdicts that are kept, some more than an overview has rows; the names of check-ups begin with their time, so that the
/// oldest goes first.
const MOST: usize = 2_048;

/// What is known of a check-up.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing: the caller has to read it, and nobody else reads one meanwhile.
    ToRead,
    /// Nothing yet, or nothing can be known.
    Nothing,
    Verdict(String),
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Verdicts(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// `None`: it has none.
    known: BTreeMap<String, Option<String>>,
    is_reading: bool,
}

impl Verdicts {
    pub(super) fn of(&self, id: &str) -> Known {
        let mut state = self.0.lock();
        match state.known.get(id) {
            Some(Some(verdict)) => Known::Verdict(verdict.clone()),
            Some(None) => Known::Nothing,
            None if state.is_reading => Known::Nothing,
            None => {
                state.is_reading = true;
                Known::ToRead
            }
        }
    }

    /// What was read of it; `None` where it has no verdict.
    pub(super) fn put(&self, id: String, verdict: Option<String>) {
        let mut state = self.0.lock();
        state.is_reading = false;
        state.known.insert(id, verdict);
        if state.known.len() > MOST {
            state.known.pop_first();
        }
    }

    /// It could not be read now.
    pub(super) fn give_up(&self) {
        self.0.lock().is_reading = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_read_at_a_time_and_all_know_it() {
        let verdicts = Verdicts::default();
        assert_eq!(verdicts.of("checkup-1"), Known::ToRead);
        assert_eq!(verdicts.of("checkup-1"), Known::Nothing);
        assert_eq!(verdicts.of("checkup-2"), Known::Nothing);
        verdicts.put("checkup-1".into(), Some("slow".into()));
        assert_eq!(verdicts.of("checkup-1"), Known::Verdict("slow".into()));
        assert_eq!(verdicts.of("checkup-2"), Known::ToRead);
        verdicts.give_up();
        assert_eq!(verdicts.of("checkup-2"), Known::ToRead);
        verdicts.put("checkup-2".into(), None);
        assert_eq!(verdicts.of("checkup-2"), Known::Nothing);
    }

    #[test]
    fn the_oldest_goes_first() {
        let verdicts = Verdicts::default();
        for number in 0..=MOST {
            verdicts.put(format!("checkup-{number:05}"), Some("x".into()));
        }
        assert_eq!(verdicts.0.lock().known.len(), MOST);
        assert_eq!(verdicts.of("checkup-00000"), Known::ToRead);
        let last = format!("checkup-{MOST:05}");
        assert_eq!(verdicts.of(&last), Known::Verdict("x".into()));
    }
}
