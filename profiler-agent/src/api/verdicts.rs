//! What check-ups that have ended found, in short: reading their results takes some hundred milliseconds, and a check-up that
//! has ended changes no more.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Verdicts that are kept; the names of check-ups begin with their time, so that the oldest goes first.
const MOST: usize = 256;

/// What is known of a check-up.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing: the caller has to read it, others who ask meanwhile have not.
    ToRead,
    BeingRead,
    Verdict(String),
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Verdicts(Mutex<BTreeMap<String, Option<String>>>);

impl Verdicts {
    pub(super) fn of(&self, id: &str) -> Known {
        let mut all = self.0.lock();
        match all.get(id) {
            Some(Some(verdict)) => return Known::Verdict(verdict.clone()),
            Some(None) => return Known::BeingRead,
            None => {}
        }
        all.insert(id.to_owned(), None);
        if all.len() > MOST {
            all.pop_first();
        }
        Known::ToRead
    }

    pub(super) fn put(&self, id: String, verdict: String) {
        self.0.lock().insert(id, Some(verdict));
    }

    /// It could not be read; another caller may try.
    pub(super) fn give_up(&self, id: &str) {
        self.0.lock().remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_reads_and_all_know_it() {
        let verdicts = Verdicts::default();
        assert_eq!(verdicts.of("checkup-1"), Known::ToRead);
        assert_eq!(verdicts.of("checkup-1"), Known::BeingRead);
        verdicts.put("checkup-1".into(), "slow".into());
        assert_eq!(verdicts.of("checkup-1"), Known::Verdict("slow".into()));
        assert_eq!(verdicts.of("checkup-2"), Known::ToRead);
        verdicts.give_up("checkup-2");
        assert_eq!(verdicts.of("checkup-2"), Known::ToRead);
    }

    #[test]
    fn the_oldest_goes_first() {
        let verdicts = Verdicts::default();
        for number in 0..MOST {
            verdicts.put(format!("checkup-{number:05}"), "x".into());
        }
        assert_eq!(verdicts.of("checkup-99999"), Known::ToRead);
        assert_eq!(verdicts.0.lock().len(), MOST);
        assert_eq!(verdicts.of("checkup-00000"), Known::ToRead);
    }
}
