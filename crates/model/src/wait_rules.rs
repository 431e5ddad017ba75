//! Which waits a task counts and how, and what became of the others.

use serde::{Deserialize, Serialize};

/// Whether each wait is counted for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitMode {
    Every,
    /// Sampled: sums are exact, stacks get their share on average.
    Sampled,
    /// Every wait, until there are too many a second.
    #[default]
    Auto,
}

impl WaitMode {
    /// Name in settings and in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Every => "every",
            Self::Sampled => "sampled",
            Self::Auto => "auto",
        }
    }
}

impl std::str::FromStr for WaitMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Every, Self::Sampled, Self::Auto]
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or("is not known: write every, sampled or auto")
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitRules {
    /// `None`: the agent's setting.
    pub mode: Option<WaitMode>,
    /// Shorter waits are left out.
    pub min_ns: u64,
    /// Longer waits are left out.
    pub max_ns: Option<u64>,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitCounts {
    /// Waits were sampled, from some time on.
    pub sampled: bool,
    /// Waits that were left out because they were too short, and their time.
    pub below: u64,
    pub below_ns: u64,
    /// Waits that were left out because they were too long, and their time.
    pub above: u64,
    pub above_ns: u64,
}

impl WaitCounts {
    /// Adds what `other` counted later or earlier.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            sampled,
            below,
            below_ns,
            above,
            above_ns,
        } = *other;
        self.sampled |= sampled;
        self.below = self.below.saturating_add(below);
        self.below_ns = self.below_ns.saturating_add(below_ns);
        self.above = self.above.saturating_add(above);
        self.above_ns = self.above_ns.saturating_add(above_ns);
    }

    /// A wait that is left out, if `rules` do not want it.
    pub fn leave_out(&mut self, rules: &WaitRules, length_ns: u64) -> bool {
        if length_ns < rules.min_ns {
            self.below += 1;
            self.below_ns = self.below_ns.saturating_add(length_ns);
            return true;
        }
        if rules.max_ns.is_some_and(|most| length_ns > most) {
            self.above += 1;
            self.above_ns = self.above_ns.saturating_add(length_ns);
            return true;
        }
        false
    }

    /// For people; `None` when every wait was counted for itself.
    pub fn line(&self) -> Option<String> {
        let sampled = self.sampled.then(|| {
            "waits sampled: sums are exact, stacks have their shares on average".to_owned()
        });
        let left_out = |number: u64, ns: u64, what: &str| {
            let seconds = std::time::Duration::from_nanos(ns).as_secs_f64();
            (number > 0).then(|| format!("{number} waits of {seconds:.3} s left out: too {what}"))
        };
        let parts: Vec<String> = [
            sampled,
            left_out(self.below, self.below_ns, "short"),
            left_out(self.above, self.above_ns, "long"),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_and_said() {
        let rules = WaitRules {
            min_ns: 10,
            max_ns: Some(1_000_000),
            ..WaitRules::default()
        };
        let mut counts = WaitCounts::default();
        assert_eq!(counts.line(), None);
        assert!(!counts.leave_out(&rules, 10));
        assert!(!counts.leave_out(&rules, 1_000_000));
        assert!(counts.leave_out(&rules, 9));
        assert!(counts.leave_out(&rules, 2_000_000));
        let mut sum = counts;
        sum.merge(&counts);
        assert_eq!((sum.below, sum.below_ns, sum.above), (2, 18, 2));
        assert_eq!(
            sum.line().as_deref(),
            Some("2 waits of 0.000 s left out: too short; 2 waits of 0.004 s left out: too long")
        );
    }
}
