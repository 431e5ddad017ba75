//! Two profiles as one tree: every path of either, with what each side has of it.
//!
//! Frames are the same when name, kind and file name of the module are: two builds of one program,
//! or the same library in two containers, lie at different paths. Processes are the same by name.

mod chance;
mod columns;
mod functions;

use std::{borrow::Cow, collections::HashMap};

use chance::Measured;
pub use chance::{Norm, Unknown, Verdict};
pub use functions::{FunctionChange, Report, report};
use profiler_model::{IdleShare, Pair, ProcessKey, Profile};

use super::{
    Budget, Value,
    tree::{self, Label, Node},
    wakers,
};

/// Nodes below this part of each side are merged into "(other)" in columns.
const PRUNING_SHARE: u64 = 8192;

const ROOT: u32 = 0;
const OTHER: u32 = 1;

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    pub profile: &'a Profile,
    /// What is idle of it, also where that was taken out.
    pub idle: Option<&'a IdleShare>,
}

/// How both sides are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiffView {
    /// Without it, what is usual for the first profile.
    pub value: Option<Value>,
    pub wakers: bool,
    /// What the comparison may take while it is made.
    pub budget: Budget,
}

impl DiffView {
    /// For each side's tree, and for that of both.
    fn tree_budget(&self) -> Budget {
        self.budget.part(3)
    }
}

/// Renders the columns of `docs/diff-format.md`. Profiles must have passed [`Profile::check`].
pub fn render(a: Side<'_>, b: Side<'_>, view: DiffView) -> Vec<u8> {
    let value = view.value.unwrap_or_else(|| Value::usual(a.profile));
    let (first, second) = (prepared(a.profile, view), prepared(b.profile, view));
    let (left, right) = (
        tree::build(&first, value, tree::KEEP_ALL, view.tree_budget()),
        tree::build(&second, value, tree::KEEP_ALL, view.tree_budget()),
    );
    let union = Union::of(&left, &right);
    let nodes = union.arranged(PRUNING_SHARE);
    let meta = columns::Meta {
        measured: Measured::of([&first, &second], value),
        idle: a.idle.zip(b.idle),
    };
    columns::write(&union.labels, &nodes, &meta)
}

/// The profile with its processes known by name alone: pids are never the same in two tasks.
fn prepared(profile: &Profile, view: DiffView) -> Profile {
    let mut prepared = if view.wakers {
        wakers::shown(profile)
    } else {
        profile.clone()
    };
    for process in &mut prepared.processes {
        process.key = ProcessKey {
            pid: 0,
            start_ticks: 0,
        };
    }
    prepared
}

/// A node of the union: each comes after its parent and siblings are in order of their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnionNode {
    pub(super) depth: u32,
    pub(super) label: u32,
    /// What each side has with this as leaf.
    pub(super) own: Pair,
    /// The same with this or what is below it as leaf.
    pub(super) total: Pair,
}

/// The union while it grows: parents come before their children, siblings in no order.
struct Union<'a> {
    labels: Vec<Label<'a>>,
    known: HashMap<(Cow<'a, str>, &'a str, u8), u32>,
    parents: Vec<u32>,
    of_node: Vec<u32>,
    own: Vec<Pair>,
    children: HashMap<(u32, u32), u32>,
}

impl<'a> Union<'a> {
    fn of(a: &tree::Tree<'a>, b: &tree::Tree<'a>) -> Self {
        let mut union = Self {
            labels: Vec::new(),
            known: HashMap::new(),
            parents: vec![0],
            of_node: vec![ROOT],
            own: vec![Pair::default()],
            children: HashMap::new(),
        };
        // Both trees begin with "all" and "(other)".
        union.add(a, |pair, own| pair.a = pair.a.saturating_add(own));
        union.add(b, |pair, own| pair.b = pair.b.saturating_add(own));
        union
    }

    fn add(&mut self, tree: &tree::Tree<'a>, give: fn(&mut Pair, u64)) {
        let labels: Vec<u32> = tree.labels.iter().map(|label| self.label(label)).collect();
        // The union's node of each level on the way to the current one.
        let mut path: Vec<u32> = Vec::new();
        for Node {
            depth, label, own, ..
        } in &tree.nodes
        {
            path.truncate(*depth as usize);
            let node = match path.last() {
                None => 0,
                Some(parent) => self.child(*parent, labels[*label as usize]),
            };
            path.push(node);
            give(&mut self.own[node as usize], *own);
        }
    }

    fn label(&mut self, label: &Label<'a>) -> u32 {
        let file = label.module.rsplit('/').next().unwrap_or_default();
        let key = (label.name.clone(), file, label.kind as u8);
        let next = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        let index = *self.known.entry(key).or_insert(next);
        match self.labels.get_mut(index as usize) {
            Some(same) => same.join(label),
            None => self.labels.push(label.clone()),
        }
        index
    }

    fn child(&mut self, parent: u32, label: u32) -> u32 {
        let next = u32::try_from(self.parents.len()).unwrap_or(u32::MAX);
        let node = *self.children.entry((parent, label)).or_insert(next);
        if node == next {
            self.parents.push(parent);
            self.of_node.push(label);
            self.own.push(Pair::default());
        }
        node
    }

    fn totals(&self) -> Vec<Pair> {
        let mut totals = self.own.clone();
        for node in (1..totals.len()).rev() {
            let parent = self.parents[node] as usize;
            totals[parent] = added(totals[parent], totals[node]);
        }
        totals
    }

    /// The nodes in pre-order. Those below `total / share` on both sides are merged, for each
    /// parent, into one leaf.
    fn arranged(&self, share: u64) -> Vec<UnionNode> {
        let totals = self.totals();
        let all = totals[0];
        let small = |part: u64, whole: u64| {
            whole == 0 || u128::from(part) * u128::from(share) < u128::from(whole)
        };
        let is_small = |node: usize| small(totals[node].a, all.a) && small(totals[node].b, all.b);
        let ranks = self.ranks();
        let mut kept: Vec<(u32, u32, Entry)> = Vec::new();
        let mut merged: HashMap<u32, Pair> = HashMap::new();
        for node in 1..self.parents.len() {
            let parent = self.parents[node];
            if !is_small(node) {
                let id = u32::try_from(node).unwrap_or(u32::MAX);
                let rank = ranks[self.of_node[node] as usize];
                kept.push((parent, rank, Entry::Node(id)));
            } else if parent == 0 || !is_small(parent as usize) {
                let sum = merged.entry(parent).or_default();
                *sum = added(*sum, totals[node]);
            }
        }
        for (parent, sum) in merged {
            kept.push((parent, ranks[OTHER as usize], Entry::Merged(sum)));
        }
        kept.sort_unstable_by_key(|(parent, rank, _)| (*parent, *rank));
        self.walk(&kept, &totals)
    }

    /// `kept` is sorted by parent, then by rank. No recursion: stacks may be very deep.
    fn walk(&self, kept: &[(u32, u32, Entry)], totals: &[Pair]) -> Vec<UnionNode> {
        let children = |parent: u32| {
            let from = kept.partition_point(|(other, _, _)| *other < parent);
            let to = from + kept[from..].partition_point(|(other, _, _)| *other == parent);
            from..to
        };
        let mut nodes = vec![UnionNode {
            depth: 0,
            label: ROOT,
            own: self.own[0],
            total: totals[0],
        }];
        let mut open = vec![children(0)];
        while let Some(range) = open.last_mut() {
            let Some(position) = range.next() else {
                open.pop();
                continue;
            };
            let depth = u32::try_from(open.len()).unwrap_or(u32::MAX);
            let (label, own, total) = match kept[position].2 {
                Entry::Merged(sum) => (OTHER, sum, sum),
                Entry::Node(id) => {
                    open.push(children(id));
                    let node = id as usize;
                    (self.of_node[node], self.own[node], totals[node])
                }
            };
            nodes.push(UnionNode {
                depth,
                label,
                own,
                total,
            });
        }
        nodes
    }

    /// For each label its place in the order of siblings: by name, then module and kind.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..).take(self.labels.len()).collect();
        order.sort_by(|left, right| {
            let key = |index: u32| {
                let label = &self.labels[index as usize];
                (label.name.as_ref(), label.module, label.kind)
            };
            key(*left).cmp(&key(*right))
        });
        let mut ranks = vec![0; order.len()];
        for (rank, index) in (0..).zip(order) {
            ranks[index as usize] = rank;
        }
        ranks
    }
}

fn added(left: Pair, right: Pair) -> Pair {
    Pair {
        a: left.a.saturating_add(right.a),
        b: left.b.saturating_add(right.b),
    }
}

#[derive(Clone, Copy)]
enum Entry {
    Node(u32),
    /// What the siblings have that are too small.
    Merged(Pair),
}
