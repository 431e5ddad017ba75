//! All stacks of a profile as one tree of labels. No recursion: stacks may be very deep.

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasherDefault, Hasher},
};

use profiler_model::{Frame, FrameSpace, ModuleKind, NameSource, Profile};

use super::{
    Budget, Value,
    budget::{self, MAX_NAMES, heaviest_first},
    features::{self, Features},
    names::{lines, process_names},
};

/// What a node of the tree is; the numbers are those of docs/flamegraph-format.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Root = 0,
    User = 1,
    Kernel = 2,
    InlinedUser = 3,
    InlinedKernel = 4,
    Marker = 5,
    Jit = 6,
    Other = 7,
    Process = 8,
}

impl Kind {
    /// Stable name in the API.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::InlinedUser => "inlined",
            Self::InlinedKernel => "inlined_kernel",
            Self::Marker => "marker",
            Self::Jit => "jit",
            Self::Other => "other",
            Self::Process => "process",
        }
    }
}

/// What is written on a node. Labels of one name, module and kind are one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) module: &'a str,
    pub(super) kind: Kind,
    /// Tells processes of one name apart; 0 for everything else.
    process: u64,
    /// Empty, or 0, where the places of the label's frames differ.
    pub(super) file: &'a str,
    pub(super) line: u32,
    pub(super) source: NameSource,
}

/// A tree in which every node comes after its parent and siblings are in order of their labels.
/// Node 0 is the root.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub(super) labels: Vec<Label<'a>>,
    pub(super) nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) depth: u32,
    pub(super) label: u32,
    /// Samples whose leaf this is.
    pub(super) own: u64,
    /// The feature of its own samples; only of a tree with features.
    pub(super) feature: u16,
}

/// A share of [`build`] that merges nothing.
pub(super) const KEEP_ALL: u64 = u64::MAX;

/// Builds the tree. Nodes below `total / share` samples are merged, for each parent, into one leaf.
/// So are the lightest stacks, where the budget has no room for more nodes, and the leaf's side of very deep ones.
pub(super) fn build(profile: &Profile, value: Value, share: u64, budget: Budget) -> Tree<'_> {
    build_with(profile, value, share, budget, None)
}

/// The same with the feature of each node.
pub(super) fn build_with<'a>(
    profile: &'a Profile,
    value: Value,
    share: u64,
    budget: Budget,
    features: Option<&Features>,
) -> Tree<'a> {
    let labelled = Labelled::new(profile);
    let growing = grow(profile, value, &labelled, budget.nodes(), features);
    let order = labelled.ranks();
    arrange(growing, labelled.labels, &order, share)
}

const ROOT: u32 = 0;
pub(super) const OTHER: u32 = 1;

/// The labels of a profile, and which of them make up each frame and process.
pub(super) struct Labelled<'a> {
    pub(super) labels: Vec<Label<'a>>,
    /// For each frame, from the root's side to the leaf's.
    pub(super) frames: Vec<Vec<u32>>,
    processes: Vec<u32>,
}

/// What makes two labels the same.
type Identity<'a> = (Cow<'a, str>, &'a str, Kind, u64);

impl<'a> Labelled<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        let mut known: HashMap<Identity<'a>, u32> = HashMap::new();
        let mut labels: Vec<Label<'a>> = Vec::new();
        let mut intern = |label: Label<'a>| {
            let identity = (label.name.clone(), label.module, label.kind, label.process);
            let next = u32::try_from(labels.len()).unwrap_or(u32::MAX);
            let index = *known.entry(identity).or_insert(next);
            match labels.get_mut(index as usize) {
                Some(same) => same.join(&label),
                None => labels.push(label),
            }
            index
        };
        intern(Label::plain(Cow::Borrowed("all"), "", Kind::Root));
        intern(Label::plain(Cow::Borrowed(budget::OTHER), "", Kind::Other));
        let mut processes = Vec::with_capacity(profile.processes.len());
        for (process, name) in profile.processes.iter().zip(process_names(profile)) {
            let mut label =
                Label::plain(Cow::Owned(name), profile.text(process.exe), Kind::Process);
            // Pids have 22 bits; the start time tells a reused one apart.
            label.process =
                u64::from(process.key.pid) << 40 | (process.key.start_ticks & 0xff_ffff_ffff);
            processes.push(intern(label));
        }
        let mut frames = Vec::with_capacity(profile.frames.len());
        for frame in &profile.frames {
            frames.push(
                frame_labels(profile, frame)
                    .into_iter()
                    .map(&mut intern)
                    .collect(),
            );
        }
        Self {
            labels,
            frames,
            processes,
        }
    }

    /// For each label its place in the order of siblings: by name, then module, kind and process.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..).take(self.labels.len()).collect();
        order.sort_by(|a, b| {
            let key = |index: u32| {
                let label = &self.labels[index as usize];
                (label.name.as_ref(), label.module, label.kind, label.process)
            };
            key(*a).cmp(&key(*b))
        });
        let mut ranks = vec![0; order.len()];
        for (rank, index) in (0..).zip(order) {
            ranks[index as usize] = rank;
        }
        ranks
    }
}

impl<'a> Label<'a> {
    fn plain(name: Cow<'a, str>, module: &'a str, kind: Kind) -> Self {
        Self {
            name,
            module,
            kind,
            process: 0,
            file: "",
            line: 0,
            source: NameSource::Marker,
        }
    }

    /// Takes another frame of this label in: a place that is not common to all is not a place, and of
    /// two sources of the same name the better one counts.
    pub(super) fn join(&mut self, other: &Self) {
        if self.file != other.file {
            self.file = "";
            self.line = 0;
        }
        if self.line != other.line {
            self.line = 0;
        }
        if preference(other.source) < preference(self.source) {
            self.source = other.source;
        }
    }
}

/// Number of a name source in docs/flamegraph-format.md.
pub(super) fn source_code(source: NameSource) -> u8 {
    match source {
        NameSource::None => 0,
        NameSource::ElfSymbol => 1,
        NameSource::Dwarf => 2,
        NameSource::Kallsyms => 3,
        NameSource::Vdso => 4,
        NameSource::PerfMap => 5,
        NameSource::Marker => 6,
        NameSource::Imported => 7,
        NameSource::Inferred => 8,
        NameSource::DebugFile => 9,
        NameSource::MiniDebug => 10,
        NameSource::Debuginfod => 11,
        NameSource::GoTable => 12,
        NameSource::SymbolPack => 13,
    }
}

/// Which source is shown of several that gave the same name: the lowest.
fn preference(source: NameSource) -> u8 {
    match source {
        NameSource::Dwarf => 0,
        NameSource::DebugFile => 1,
        NameSource::SymbolPack => 2,
        NameSource::Debuginfod => 3,
        NameSource::None => 4,
        NameSource::ElfSymbol => 5,
        NameSource::MiniDebug => 6,
        NameSource::GoTable => 7,
        NameSource::Kallsyms => 8,
        NameSource::Vdso => 9,
        NameSource::PerfMap => 10,
        NameSource::Marker => 11,
        NameSource::Imported => 12,
        NameSource::Inferred => 13,
    }
}

fn frame_labels<'a>(profile: &'a Profile, frame: &'a Frame) -> Vec<Label<'a>> {
    let module = &profile.modules[frame.module as usize];
    let kind = |inlined: bool| match (frame.space, inlined) {
        (FrameSpace::Marker, _) => Kind::Marker,
        (FrameSpace::Kernel, false) => Kind::Kernel,
        (FrameSpace::Kernel, true) => Kind::InlinedKernel,
        (FrameSpace::User, true) => Kind::InlinedUser,
        (FrameSpace::User, false) if frame.source == NameSource::PerfMap => Kind::Jit,
        (FrameSpace::User, false) => match module.kind {
            ModuleKind::Anonymous => Kind::Jit,
            ModuleKind::Elf
            | ModuleKind::Kernel
            | ModuleKind::KernelModule
            | ModuleKind::Vdso
            | ModuleKind::Unknown => Kind::User,
        },
    };
    lines(profile, frame)
        .into_iter()
        .map(|line| Label {
            name: line.name,
            module: profile.text(module.path),
            kind: kind(line.inlined),
            process: 0,
            file: line
                .function
                .map_or("", |function| profile.text(function.file)),
            line: line.function.map_or(0, |function| function.line),
            source: frame.source,
        })
        .collect()
}

/// The tree while it grows: parents come before their children, siblings in no order.
struct Growing {
    parents: Vec<u32>,
    labels: Vec<u32>,
    own: Vec<u64>,
    /// Of the samples whose leaf a node is.
    features: Vec<u16>,
}

/// A fast hasher for pairs of small numbers that untrusted input cannot choose freely.
#[derive(Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

type NodeIndex = HashMap<u64, u32, BuildHasherDefault<PairHasher>>;

/// At most about `most` nodes, and an `(other)` for each of those.
fn grow(
    profile: &Profile,
    value: Value,
    labelled: &Labelled<'_>,
    most: usize,
    features: Option<&Features>,
) -> Growing {
    let mut tree = Growing {
        parents: vec![0],
        labels: vec![ROOT],
        own: vec![0],
        features: vec![features::NONE],
    };
    let mut index = NodeIndex::default();
    let mut child = |tree: &mut Growing, parent: u32, label: u32| {
        let next = u32::try_from(tree.parents.len()).unwrap_or(u32::MAX);
        let has_room = tree.parents.len() < most || label == OTHER;
        let node = match index.entry(u64::from(parent) << 32 | u64::from(label)) {
            Entry::Occupied(known) => return Some(*known.get()),
            Entry::Vacant(_) if !has_room => return None,
            Entry::Vacant(free) => *free.insert(next),
        };
        tree.parents.push(parent);
        tree.labels.push(label);
        tree.own.push(0);
        tree.features.push(features::NONE);
        Some(node)
    };
    for ((process_id, stack), count) in heaviest_first(profile, value) {
        let frames = profile.stacks[stack as usize].frames.iter().rev();
        let names = frames.flat_map(|frame| &labelled.frames[*frame as usize]);
        let process = &labelled.processes[process_id as usize];
        let mut node = 0;
        let mut is_whole = true;
        for (depth, label) in std::iter::once(process).chain(names).enumerate() {
            let next = (depth <= MAX_NAMES).then(|| child(&mut tree, node, *label));
            let Some(next) = next.flatten() else {
                is_whole = false;
                break;
            };
            node = next;
        }
        if !is_whole && let Some(other) = child(&mut tree, node, OTHER) {
            node = other;
        }
        let own = &mut tree.own[node as usize];
        *own = own.saturating_add(count);
        if let Some(features) = features {
            let known = &mut tree.features[node as usize];
            *known = features::join(*known, features.of(process_id, stack));
        }
    }
    tree
}

/// Puts the nodes into pre-order with ordered siblings, and prunes.
fn arrange<'a>(tree: Growing, labels: Vec<Label<'a>>, ranks: &[u32], share: u64) -> Tree<'a> {
    let Growing {
        parents,
        labels: of_node,
        own,
        features: own_features,
    } = tree;
    let mut totals = own.clone();
    let mut features = own_features.clone();
    for node in (1..parents.len()).rev() {
        let parent = parents[node] as usize;
        totals[parent] = totals[parent].saturating_add(totals[node]);
        features[parent] = features::join(features[parent], features[node]);
    }
    let total = u128::from(totals[0]);
    let is_small = |node: usize| u128::from(totals[node]) * u128::from(share) < total;

    // What remains, sorted by parent; the small ones of a parent become one entry.
    let mut kept: Vec<(u32, u32, Child)> = Vec::new();
    let mut merged: HashMap<u32, (u64, u16)> = HashMap::new();
    for node in 1..parents.len() {
        let parent = parents[node];
        if !is_small(node) && of_node[node] != OTHER {
            let id = u32::try_from(node).unwrap_or(u32::MAX);
            kept.push((parent, ranks[of_node[node] as usize], Child::Node(id)));
        } else if parent == 0 || !is_small(parent as usize) {
            let (samples, feature) = merged.entry(parent).or_insert((0, features::NONE));
            *samples += totals[node];
            *feature = features::join(*feature, features[node]);
        }
    }
    for (parent, (samples, feature)) in merged {
        let child = Child::Merged(samples, feature);
        kept.push((parent, ranks[OTHER as usize], child));
    }
    kept.sort_unstable_by_key(|(parent, rank, _)| (*parent, *rank));

    let children = |parent: u32| {
        let from = kept.partition_point(|(other, _, _)| *other < parent);
        let to = from + kept[from..].partition_point(|(other, _, _)| *other == parent);
        from..to
    };
    let mut nodes = vec![Node {
        depth: 0,
        label: ROOT,
        own: own[0],
        feature: own_features[0],
    }];
    // Ranges of children that are still to be visited, one for each level.
    let mut open = vec![children(0)];
    while let Some(range) = open.last_mut() {
        let Some(position) = range.next() else {
            open.pop();
            continue;
        };
        let depth = u32::try_from(open.len()).unwrap_or(u32::MAX);
        match kept[position].2 {
            Child::Merged(samples, feature) => nodes.push(Node {
                depth,
                label: OTHER,
                own: samples,
                feature,
            }),
            Child::Node(id) => {
                let label = of_node[id as usize];
                nodes.push(Node {
                    depth,
                    label,
                    own: own[id as usize],
                    feature: own_features[id as usize],
                });
                open.push(children(id));
            }
        }
    }
    Tree { labels, nodes }
}

#[derive(Clone, Copy)]
enum Child {
    Node(u32),
    /// Samples of the siblings that are too small, and their feature.
    Merged(u64, u16),
}
