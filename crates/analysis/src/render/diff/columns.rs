//! The columns of a comparison, described in docs/diff-format.md.

use std::collections::HashMap;

use profiler_model::{IdleShare, Pair};

use super::{
    super::{
        flamegraph::{Strings, varint},
        tree::{Label, source_code},
    },
    UnionNode,
    chance::{self, Measured, Norm, Scale, Unknown},
};

/// The flag of a file that says how much is idle on each side.
const FLAG_IDLE: u64 = 1;

/// What is reported about both sides.
pub(super) struct Meta<'a> {
    pub(super) measured: Measured,
    pub(super) idle: Option<(&'a IdleShare, &'a IdleShare)>,
}

pub(super) fn write(labels: &[Label<'_>], nodes: &[UnionNode], meta: &Meta<'_>) -> Vec<u8> {
    let mut strings = Strings::default();
    strings.add("");
    // Labels are numbered as the nodes first use them.
    let mut numbers: HashMap<u32, u64> = HashMap::new();
    let mut written = Vec::new();
    for node in nodes {
        let next = numbers.len() as u64;
        if *numbers.entry(node.label).or_insert(next) < next {
            continue;
        }
        let label = &labels[node.label as usize];
        let name = strings.add(&label.name);
        let module = strings.add(label.module);
        let file = strings.add(label.file);
        for value in [name, module, file, u64::from(label.line)] {
            varint(&mut written, value);
        }
        written.extend_from_slice(&[label.kind as u8, source_code(label.source)]);
    }

    let mut bytes = b"PFD2".to_vec();
    varint(&mut bytes, meta.idle.map_or(0, |_| FLAG_IDLE));
    for number in meta
        .measured
        .unit_ns
        .iter()
        .chain(&meta.measured.covered_ns)
    {
        varint(&mut bytes, *number);
    }
    if let Some((a, b)) = meta.idle {
        for idle in [a, b] {
            for number in [idle.count, idle.ns, idle.total_count, idle.total_ns] {
                varint(&mut bytes, number);
            }
        }
    }
    strings.write(&mut bytes);
    varint(&mut bytes, numbers.len() as u64);
    bytes.extend_from_slice(&written);
    varint(&mut bytes, nodes.len() as u64);
    for node in nodes {
        varint(&mut bytes, u64::from(node.depth));
    }
    for node in nodes {
        varint(&mut bytes, node.own.a);
    }
    for node in nodes {
        varint(&mut bytes, node.own.b);
    }
    for node in nodes {
        varint(&mut bytes, numbers.get(&node.label).copied().unwrap_or(0));
    }
    for norm in Norm::ALL {
        let scale = Scale {
            norm,
            all: nodes.first().map_or_else(Pair::default, |root| root.total),
            measured: meta.measured,
        };
        write_chance(&mut bytes, nodes, &scale);
    }
    bytes
}

/// What chance can explain of each node's total.
fn write_chance(bytes: &mut Vec<u8>, nodes: &[UnionNode], scale: &Scale) {
    let unknown = match scale.unknown() {
        None => 0,
        Some(Unknown::NotSamples) => 1,
        Some(Unknown::NoPeriod) => 2,
    };
    varint(bytes, unknown);
    if unknown > 0 {
        return;
    }
    for node in nodes {
        varint(bytes, chance::code(scale.test(node.total)));
    }
}
