//! What chance can explain of a comparison: what makes its sides comparable, what can be tested, and the tests.

use profiler_model::{
    Clock, Pair, Profile, float,
    significance::{ALPHA, Test, proportions, rates},
};

use crate::render::{Value, flamegraph};

/// What makes both sides comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// Parts of everything that a side has.
    Share,
    /// Amounts for each second that a side covers.
    Rate,
}

impl Norm {
    pub const ALL: [Self; 2] = [Self::Share, Self::Rate];

    pub fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Rate => "rate",
        }
    }
}

/// Whether a change is more than chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// `p` of the function alone, and `q` with all tested functions in view.
    Tested {
        test: Test,
        q: f64,
    },
    TooFew,
    Unknown,
}

impl Verdict {
    pub fn is_significant(self) -> bool {
        matches!(self, Self::Tested { q, .. } if q < ALPHA)
    }
}

/// Why chance is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Waits have lengths of their own, and one thread's waits depend on another's; of a file it
    /// may not be known what its counts are.
    NotSamples,
    /// How many samples can be taken is not known.
    NoPeriod,
}

impl Unknown {
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotSamples => {
                "the numbers are not samples of a known clock but times or switches: no test applies"
            }
            Self::NoPeriod => "the time between two samples is not the same in a whole side",
        }
    }
}

/// What both sides measured, the base first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// The time that one unit of the numbers stands for; 0 when it differs inside a side.
    pub(super) unit_ns: [u64; 2],
    pub(super) covered_ns: [u64; 2],
    /// The numbers of both are samples of a clock, which tests apply to.
    is_sampled: bool,
}

impl Measured {
    pub(super) fn of(sides: [&Profile; 2], value: Value) -> Self {
        Self {
            unit_ns: sides.map(|side| flamegraph::unit_ns(side, value)),
            covered_ns: sides.map(covered_ns),
            is_sampled: sides.iter().all(|side| is_sampled(side, value)),
        }
    }
}

/// How amounts of both sides are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) norm: Norm,
    /// Everything that a side has.
    pub(super) all: Pair,
    pub(super) measured: Measured,
}

impl Scale {
    /// Why nothing can be tested; `None` when it can.
    pub(super) fn unknown(&self) -> Option<Unknown> {
        if !self.measured.is_sampled {
            return Some(Unknown::NotSamples);
        }
        match self.norm {
            Norm::Rate if self.measured.unit_ns.contains(&0) => Some(Unknown::NoPeriod),
            Norm::Share | Norm::Rate => None,
        }
    }

    /// Change of each side's part after normalising; an empty side has none.
    pub(super) fn change(&self, own: Pair) -> f64 {
        let [before, after] = self.normalised(own);
        after - before
    }

    /// Each side's part after normalising; an empty side has none.
    pub(super) fn normalised(&self, own: Pair) -> [f64; 2] {
        let [ta, tb] = self.measured.covered_ns;
        let of = |part: u64, whole: f64| {
            if whole > 0.0 {
                float(part) / whole
            } else {
                0.0
            }
        };
        match self.norm {
            Norm::Share => [of(own.a, float(self.all.a)), of(own.b, float(self.all.b))],
            Norm::Rate => [of(own.a, float(ta) / 1e9), of(own.b, float(tb) / 1e9)],
        }
    }

    /// `None` when there are too few samples.
    pub(super) fn test(&self, own: Pair) -> Option<Test> {
        match self.norm {
            Norm::Share => proportions(own, self.all),
            Norm::Rate => {
                let [ta, tb] = self.measured.covered_ns;
                let [ua, ub] = self.measured.unit_ns;
                rates(own, [float(ta) / float(ua), float(tb) / float(ub)])
            }
        }
    }
}

/// A test as a column has it: 0 without one, else one more than twice the hundred thousandths of its p-value
/// (rounded down), plus one when it is significant by itself.
pub(super) fn code(test: Option<Test>) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a probability is between 0 and 1"
    )]
    let parts = |p: f64| (p * 100_000.0) as u64;
    test.map_or(0, |Test { z: _, p }| {
        1 + 2 * parts(p) + u64::from(p < ALPHA)
    })
}

/// Length of the time that a profile covers.
fn covered_ns(profile: &Profile) -> u64 {
    profile.to_ns.saturating_sub(profile.from_ns)
}

/// True when the numbers of a profile are samples of a clock, which statistics apply to.
fn is_sampled(profile: &Profile, value: Value) -> bool {
    let clock = matches!(profile.clock, Clock::CpuClock | Clock::Cycles);
    clock && value == Value::Count
}
