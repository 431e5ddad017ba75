//! The functions of a comparison, the largest change first, with what chance can explain.

use std::collections::HashMap;

use profiler_model::{
    Pair, float,
    significance::{ALPHA, Test, adjusted, proportions, rates},
};

use super::{DiffView, Side, Union, covered_ns, is_sampled, prepared};
use crate::render::{
    Value, flamegraph,
    tree::{self, Kind},
};

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

#[derive(Clone, Debug, PartialEq)]
pub struct FunctionChange {
    pub name: String,
    pub module: String,
    pub kind: &'static str,
    pub own: Pair,
    /// With the function anywhere in the stack; recursion counts once.
    pub total: Pair,
    /// Change of the own part after normalising: of shares, or of units for each second.
    pub change: f64,
    /// Of the own part.
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub norm: Norm,
    pub all: Pair,
    pub covered_ns: [u64; 2],
    pub unit_ns: [u64; 2],
    pub value: Value,
    /// Tested functions.
    pub tested: u64,
    pub unknown: Option<Unknown>,
    /// Largest change of the own part first.
    pub functions: Vec<FunctionChange>,
}

impl Report {
    /// Each side's part of `own` after normalising.
    pub fn normalised(&self, own: Pair) -> [f64; 2] {
        let scale = Scale {
            norm: self.norm,
            all: self.all,
            covered_ns: self.covered_ns,
            unit_ns: self.unit_ns,
        };
        scale.normalised(own)
    }
}

/// Compares function by function. Profiles must have passed [`profiler_model::Profile::check`].
pub fn report(a: Side<'_>, b: Side<'_>, view: DiffView, norm: Norm) -> Report {
    let value = view.value.unwrap_or_else(|| Value::usual(a.profile));
    let (first, second) = (prepared(a.profile, view), prepared(b.profile, view));
    let (left, right) = (
        tree::build(&first, value, tree::KEEP_ALL, view.tree_budget()),
        tree::build(&second, value, tree::KEEP_ALL, view.tree_budget()),
    );
    let union = Union::of(&left, &right);
    let scale = Scale {
        norm,
        all: union.totals()[0],
        covered_ns: [covered_ns(&first), covered_ns(&second)],
        unit_ns: [
            flamegraph::unit_ns(&first, value),
            flamegraph::unit_ns(&second, value),
        ],
    };
    let sampled = is_sampled(&first, value) && is_sampled(&second, value);
    let unknown = scale.unknown(sampled);
    let mut functions = sums(&union, &scale);
    judge(&mut functions, &scale, unknown);
    functions.sort_by(|left, right| {
        let size = right.change.abs().total_cmp(&left.change.abs());
        let own = |function: &FunctionChange| function.own.a.saturating_add(function.own.b);
        let size = size.then_with(|| own(right).cmp(&own(left)));
        size.then_with(|| (&left.name, &left.module).cmp(&(&right.name, &right.module)))
    });
    let tested = functions
        .iter()
        .filter(|function| matches!(function.verdict, Verdict::Tested { .. }))
        .count();
    Report {
        norm,
        all: scale.all,
        covered_ns: scale.covered_ns,
        unit_ns: scale.unit_ns,
        value,
        tested: tested as u64,
        unknown,
        functions,
    }
}

struct Scale {
    norm: Norm,
    all: Pair,
    covered_ns: [u64; 2],
    unit_ns: [u64; 2],
}

impl Scale {
    fn unknown(&self, sampled: bool) -> Option<Unknown> {
        if !sampled {
            return Some(Unknown::NotSamples);
        }
        match self.norm {
            Norm::Rate if self.unit_ns.contains(&0) => Some(Unknown::NoPeriod),
            Norm::Share | Norm::Rate => None,
        }
    }

    /// Each side's part after normalising; an empty side has none.
    fn normalised(&self, own: Pair) -> [f64; 2] {
        let [ta, tb] = self.covered_ns;
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

    fn test(&self, own: Pair) -> Option<Test> {
        match self.norm {
            Norm::Share => proportions(own, self.all),
            Norm::Rate => {
                let [ta, tb] = self.covered_ns;
                let [ua, ub] = self.unit_ns;
                rates(own, [float(ta) / float(ua), float(tb) / float(ub)])
            }
        }
    }
}

/// Own and total of each function. No recursion: stacks may be very deep.
fn sums(union: &Union<'_>, scale: &Scale) -> Vec<FunctionChange> {
    let nodes = union.arranged(tree::KEEP_ALL);
    let mut totals: Vec<Pair> = nodes.iter().map(|node| node.own).collect();
    let mut path: Vec<usize> = Vec::new();
    let mut parents = vec![0; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        path.truncate(node.depth as usize);
        parents[index] = path.last().copied().unwrap_or(0);
        path.push(index);
    }
    for index in (1..nodes.len()).rev() {
        totals[parents[index]] = super::added(totals[parents[index]], totals[index]);
    }
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut functions: Vec<FunctionChange> = Vec::new();
    // How often each label stands on the way to the current node.
    let mut open: HashMap<u32, u32> = HashMap::new();
    let mut labels: Vec<u32> = Vec::new();
    for (node, total) in nodes.iter().zip(&totals) {
        for label in labels.drain((node.depth as usize).min(labels.len())..) {
            if let Some(count) = open.get_mut(&label) {
                *count -= 1;
            }
        }
        labels.push(node.label);
        let count = open.entry(node.label).or_default();
        *count += 1;
        let outermost = *count == 1;
        let label = &union.labels[node.label as usize];
        if label.kind == Kind::Root {
            continue;
        }
        let place = *places.entry(node.label).or_insert_with(|| {
            functions.push(FunctionChange {
                name: label.name.clone().into_owned(),
                module: label.module.to_owned(),
                kind: label.kind.name(),
                own: Pair::default(),
                total: Pair::default(),
                change: 0.0,
                verdict: Verdict::Unknown,
            });
            functions.len() - 1
        });
        let function = &mut functions[place];
        function.own = super::added(function.own, node.own);
        if outermost {
            function.total = super::added(function.total, *total);
        }
    }
    for function in &mut functions {
        let [before, after] = scale.normalised(function.own);
        function.change = after - before;
    }
    functions
}

fn judge(functions: &mut [FunctionChange], scale: &Scale, unknown: Option<Unknown>) {
    if unknown.is_some() {
        return;
    }
    // A function that only calls others has nothing of its own that could change.
    let tests: Vec<(usize, Test)> = functions
        .iter()
        .enumerate()
        .filter(|(_, function)| function.own != Pair::default())
        .filter_map(|(place, function)| Some((place, scale.test(function.own)?)))
        .collect();
    for function in &mut *functions {
        function.verdict = Verdict::TooFew;
    }
    let values: Vec<f64> = tests.iter().map(|(_, test)| test.p).collect();
    for ((place, test), q) in tests.into_iter().zip(adjusted(&values)) {
        functions[place].verdict = Verdict::Tested { test, q };
    }
}
