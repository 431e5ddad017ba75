//! The functions of a comparison, the largest change first, with what chance can explain.

use std::{collections::HashMap, ops::Range};

use profiler_model::{
    Pair,
    significance::{Test, adjusted},
};

use super::{
    DiffView, PRUNING_SHARE, Side, Union, UnionNode,
    chance::{Measured, Norm, Scale, Unknown, Verdict},
    prepared,
};
use crate::render::{
    Value,
    tree::{self, Kind},
};

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
    /// The same of the total.
    pub total_change: f64,
    /// Of the own part.
    pub verdict: Verdict,
}

#[derive(Clone, Debug)]
pub struct Report {
    scale: Scale,
    pub value: Value,
    /// Name and amount of the frame that the functions are below.
    pub root: (String, Pair),
    /// Tested functions.
    pub tested: u64,
    pub unknown: Option<Unknown>,
    /// Largest change of the own part first.
    pub functions: Vec<FunctionChange>,
}

impl Report {
    pub fn norm(&self) -> Norm {
        self.scale.norm
    }

    /// Everything that the sides have.
    pub fn all(&self) -> Pair {
        self.scale.all
    }

    /// Length of the time that each side covers.
    pub fn covered_ns(&self) -> [u64; 2] {
        self.scale.measured.covered_ns
    }

    /// The time that one unit of each side stands for; 0 when it differs inside the side.
    pub fn unit_ns(&self) -> [u64; 2] {
        self.scale.measured.unit_ns
    }

    /// Each side's part of `own` after normalising.
    pub fn normalised(&self, own: Pair) -> [f64; 2] {
        self.scale.normalised(own)
    }
}

/// Compares function by function, those below one node of what [`super::render`] writes for the same sides: its number,
/// 0 for all of them. `None` when there is no such node. Profiles must have passed [`profiler_model::Profile::check`].
pub fn report(
    a: Side<'_>,
    b: Side<'_>,
    view: DiffView,
    norm: Norm,
    below: usize,
) -> Option<Report> {
    let value = view.value.unwrap_or_else(|| Value::usual(a.profile));
    let (first, second) = (prepared(a.profile, view), prepared(b.profile, view));
    let (left, right) = (
        tree::build(&first, value, tree::KEEP_ALL, view.tree_budget()),
        tree::build(&second, value, tree::KEEP_ALL, view.tree_budget()),
    );
    let union = Union::of(&left, &right);
    let shown = union.arranged(PRUNING_SHARE);
    let path = path(&shown, below)?;
    let label = &union.labels[shown[below].label as usize];
    let root = (label.name.clone().into_owned(), shown[below].total);
    let scale = Scale {
        norm,
        all: shown[0].total,
        measured: Measured::of([&first, &second], value),
    };
    let unknown = scale.unknown();
    let nodes = union.arranged(tree::KEEP_ALL);
    let part = subtree(&nodes, &path);
    let mut functions = if part.is_empty() {
        // What was merged is a node among those that are shown only.
        sums(&union, &shown, below..below + 1, &scale)
    } else {
        sums(&union, &nodes, part, &scale)
    };
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
    Some(Report {
        scale,
        value,
        root,
        tested: tested as u64,
        unknown,
        functions,
    })
}

/// The labels from the root to a node.
fn path(nodes: &[UnionNode], place: usize) -> Option<Vec<u32>> {
    let mut path = Vec::new();
    for node in nodes.get(..=place)? {
        path.truncate(node.depth as usize);
        path.push(node.label);
    }
    Some(path)
}

/// The node with this path and those below it; empty where there is none, as for what was merged.
fn subtree(nodes: &[UnionNode], path: &[u32]) -> Range<usize> {
    let mut here: Vec<u32> = Vec::new();
    let found = nodes.iter().position(|node| {
        here.truncate(node.depth as usize);
        here.push(node.label);
        here == path
    });
    let Some(first) = found else {
        return 0..0;
    };
    let below = nodes[first + 1..]
        .iter()
        .take_while(|node| node.depth as usize >= path.len())
        .count();
    first..first + 1 + below
}

/// Own and total of each function of a part of the nodes. No recursion: stacks may be very deep.
fn sums(
    union: &Union<'_>,
    nodes: &[UnionNode],
    part: Range<usize>,
    scale: &Scale,
) -> Vec<FunctionChange> {
    let above = nodes.get(part.start).map_or(0, |node| node.depth) as usize;
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut functions: Vec<FunctionChange> = Vec::new();
    // How often each label stands on the way to the current node.
    let mut open: HashMap<u32, u32> = HashMap::new();
    let mut labels: Vec<u32> = Vec::new();
    for node in &nodes[part] {
        for label in labels.drain((node.depth as usize - above).min(labels.len())..) {
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
                total_change: 0.0,
                verdict: Verdict::Unknown,
            });
            functions.len() - 1
        });
        let function = &mut functions[place];
        function.own = super::added(function.own, node.own);
        if outermost {
            function.total = super::added(function.total, node.total);
        }
    }
    for function in &mut functions {
        function.change = scale.change(function.own);
        function.total_change = scale.change(function.total);
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
