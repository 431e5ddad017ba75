//! How near the ceiling the agent is.

/// What is given up. Each stage does what those before it do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Nothing.
    #[default]
    Open,
    /// Caches are dropped, and results are read one at a time.
    Trimming,
    /// No task, check-up or import is begun.
    Refusing,
    /// Tasks are stopped one after the other, and no result is read.
    Stopping,
}

/// A stage is left when so much less of the ceiling, in percent, is used than where it begins.
const SLACK_PERCENT: u64 = 5;

impl Stage {
    pub const ALL: [Self; 4] = [Self::Open, Self::Trimming, Self::Refusing, Self::Stopping];

    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Trimming => "trimming",
            Self::Refusing => "refusing",
            Self::Stopping => "stopping",
        }
    }

    /// Share of the ceiling, in percent, from which on it holds.
    const fn percent(self) -> u64 {
        match self {
            Self::Open => 0,
            Self::Trimming => 70,
            Self::Refusing => 80,
            Self::Stopping => 90,
        }
    }

    /// Bytes in use from which on it holds.
    pub fn begins_at(self, ceiling: u64) -> u64 {
        share(ceiling, self.percent())
    }

    pub(super) fn number(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Trimming => 1,
            Self::Refusing => 2,
            Self::Stopping => 3,
        }
    }

    pub(super) fn from_number(number: u8) -> Self {
        let known = Self::ALL.into_iter().find(|stage| stage.number() == number);
        known.unwrap_or_default()
    }

    /// The stage after one more reading: up by one step at most, so that each has a chance to be enough, and down
    /// to where the use belongs once it is clearly below.
    #[must_use]
    pub fn next(self, used: u64, ceiling: u64) -> Self {
        let above = Self::ALL.into_iter().find(|stage| *stage > self);
        if let Some(above) = above
            && used >= above.begins_at(ceiling)
        {
            return above;
        }
        let holds = |stage: &Self| {
            let leaves = stage.percent().saturating_sub(SLACK_PERCENT);
            *stage <= self && (*stage == Self::Open || used >= share(ceiling, leaves))
        };
        let kept = Self::ALL.into_iter().rev().find(holds);
        kept.unwrap_or_default()
    }
}

fn share(ceiling: u64, percent: u64) -> u64 {
    (ceiling / 100).saturating_mul(percent)
}

#[cfg(test)]
mod tests {
    use super::Stage::{self, Open, Refusing, Stopping, Trimming};

    #[test]
    fn stages_are_climbed_one_by_one_and_left_with_slack() {
        let check = |from: Stage, used, expected| {
            assert_eq!(from.next(used, 1000), expected, "{from:?} {used}");
        };
        check(Open, 699, Open);
        check(Open, 700, Trimming);
        check(Open, 5000, Trimming);
        check(Trimming, 5000, Refusing);
        check(Refusing, 5000, Stopping);
        check(Stopping, 5000, Stopping);
        check(Stopping, 850, Stopping);
        check(Stopping, 849, Refusing);
        check(Refusing, 750, Refusing);
        check(Refusing, 749, Trimming);
        check(Stopping, 660, Trimming);
        check(Stopping, 649, Open);
        check(Trimming, 650, Trimming);
    }

    #[test]
    fn numbers_are_those_of_the_stages() {
        for stage in Stage::ALL {
            assert_eq!(Stage::from_number(stage.number()), stage);
        }
    }
}
