//! The UI's columns, described in docs/flamegraph-format.md.

use std::collections::HashMap;

use profiler_model::{IdleShare, Profile};

use super::{
    Budget, Value,
    features::{self, Features},
    tree::{self, source_code},
};

/// Nodes below this part of all samples are merged into "(other)".
pub(super) const PRUNING_SHARE: u64 = 8192;

/// The flag of a file that says how much is idle.
const FLAG_IDLE: u64 = 1;
/// The flag of a file that says which feature each node belongs to.
const FLAG_FEATURES: u64 = 2;

pub(super) fn render(
    profile: &Profile,
    value: Value,
    idle: Option<&IdleShare>,
    budget: Budget,
    features: Option<&Features>,
) -> Vec<u8> {
    let tree = tree::build_with(profile, value, PRUNING_SHARE, budget, features);
    let mut strings = Strings::default();
    strings.add("");
    // Labels are numbered as the nodes first use them.
    let mut numbers: HashMap<u32, u64> = HashMap::new();
    let mut labels = Vec::new();
    for node in &tree.nodes {
        let next = numbers.len() as u64;
        if *numbers.entry(node.label).or_insert(next) < next {
            continue;
        }
        let label = &tree.labels[node.label as usize];
        let name = strings.add(&label.name);
        let module = strings.add(label.module);
        let file = strings.add(label.file);
        for value in [name, module, file, u64::from(label.line)] {
            varint(&mut labels, value);
        }
        labels.extend_from_slice(&[label.kind as u8, source_code(label.source)]);
    }

    let titles: Vec<u64> = features.map_or_else(Vec::new, |features| {
        let titles = features.titles.iter();
        titles.map(|title| strings.add(title)).collect()
    });
    let flags = idle.map_or(0, |_| FLAG_IDLE) | features.map_or(0, |_| FLAG_FEATURES);

    let mut bytes = b"PFG1".to_vec();
    varint(&mut bytes, flags);
    varint(&mut bytes, unit_ns(profile, value));
    if let Some(idle) = idle {
        for number in [idle.count, idle.ns, idle.total_count, idle.total_ns] {
            varint(&mut bytes, number);
        }
    }
    strings.write(&mut bytes);
    varint(&mut bytes, numbers.len() as u64);
    bytes.extend_from_slice(&labels);
    varint(&mut bytes, tree.nodes.len() as u64);
    for node in &tree.nodes {
        varint(&mut bytes, u64::from(node.depth));
    }
    for node in &tree.nodes {
        varint(&mut bytes, node.own);
    }
    for node in &tree.nodes {
        varint(&mut bytes, numbers.get(&node.label).copied().unwrap_or(0));
    }
    if features.is_some() {
        varint(&mut bytes, titles.len() as u64);
        for title in titles {
            varint(&mut bytes, title);
        }
        for node in &tree.nodes {
            varint(&mut bytes, features::code(node.feature));
        }
    }
    bytes
}

/// The time that one unit of the numbers stands for: the period that all samples share, or 0; for
/// durations a nanosecond.
pub(super) fn unit_ns(profile: &Profile, value: Value) -> u64 {
    if value == Value::Duration {
        return 1;
    }
    let mut periods = profile.samples.iter().map(|row| {
        row.total_ns
            .checked_div(row.count)
            .filter(|period| period.checked_mul(row.count) == Some(row.total_ns))
            .unwrap_or(0)
    });
    let Some(first) = periods.next() else {
        return 0;
    };
    if periods.all(|period| period == first) {
        first
    } else {
        0
    }
}

/// A table of strings in the order of their first use.
#[derive(Default)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    count: u64,
    known: HashMap<String, u64>,
}

impl Strings {
    pub(super) fn add(&mut self, text: &str) -> u64 {
        if let Some(index) = self.known.get(text) {
            return *index;
        }
        let index = self.count;
        varint(&mut self.bytes, text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
        self.known.insert(text.to_owned(), index);
        self.count += 1;
        index
    }

    /// The count and the strings.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        varint(bytes, self.count);
        bytes.extend_from_slice(&self.bytes);
    }
}

/// Unsigned LEB128.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            bytes.push(low & 0x7f);
            return;
        }
        bytes.push(low | 0x80);
    }
}
