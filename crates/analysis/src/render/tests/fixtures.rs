//! The golden files in tests/fixtures/flamegraph, which the page's reader is tested with as well.
//!
//! `PROFILER_BLESS=1` writes them anew.

use std::path::PathBuf;

use profiler_model::{IdleShare, Profile};
use serde_json::json;

use crate::render::{Format, View, render_view};

use super::sketch;

/// The nodes of pictures with more of them are described in fewer words.
const DETAILED_NODES: usize = 64;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) depth: usize,
    pub(super) name: String,
    pub(super) module: String,
    file: String,
    line: u64,
    pub(super) kind: u8,
    source: u8,
    pub(super) own: u64,
    pub(super) total: u64,
    /// Title of the feature that its own samples belong to.
    pub(super) feature: Option<String>,
}

#[derive(Debug)]
pub(super) struct Columns {
    pub(super) period_ns: u64,
    /// Count and time of idle waits, then of everything.
    idle: Option<[u64; 4]>,
    pub(super) nodes: Vec<Node>,
}

/// Reads the columns as docs/flamegraph-format.md describes them.
pub(super) fn decode(bytes: &[u8]) -> Columns {
    let mut rest = bytes.strip_prefix(b"PFG1").expect("magic");
    let rest = &mut rest;
    let flags = varint(rest);
    assert!(flags <= 3, "flags {flags}");
    let period_ns = varint(rest);
    let idle = (flags & 1 == 1).then(|| [varint(rest), varint(rest), varint(rest), varint(rest)]);
    let strings: Vec<String> = (0..varint(rest))
        .map(|_| {
            let length = usize::try_from(varint(rest)).unwrap();
            let (text, after) = rest.split_at(length);
            *rest = after;
            String::from_utf8(text.to_vec()).unwrap()
        })
        .collect();
    assert_eq!(strings[0], "");
    let labels: Vec<([u64; 4], u8, u8)> = (0..varint(rest))
        .map(|_| {
            let numbers = [varint(rest), varint(rest), varint(rest), varint(rest)];
            let [kind, source, after @ ..] = *rest else {
                panic!("label is cut off")
            };
            *rest = after;
            (numbers, *kind, *source)
        })
        .collect();
    let count = varint(rest);
    let mut column = || (0..count).map(|_| varint(rest)).collect::<Vec<u64>>();
    let (depths, own, label) = (column(), column(), column());
    let titles: Vec<u64> = if flags & 2 == 0 {
        Vec::new()
    } else {
        (0..varint(rest)).map(|_| varint(rest)).collect()
    };
    let features: Vec<u64> = if flags & 2 == 0 {
        vec![0; depths.len()]
    } else {
        (0..count).map(|_| varint(rest)).collect()
    };
    assert!(
        rest.is_empty(),
        "{} bytes follow the last column",
        rest.len()
    );
    let mut nodes = Vec::new();
    for index in 0..depths.len() {
        let ([name, module, file, line], kind, source) =
            labels[usize::try_from(label[index]).unwrap()];
        let text = |id: u64| strings[usize::try_from(id).unwrap()].clone();
        let depth = usize::try_from(depths[index]).unwrap();
        match nodes.last() {
            None => assert_eq!(depth, 0),
            Some(Node { depth: before, .. }) => assert!((1..=before + 1).contains(&depth)),
        }
        let (name, module, file) = (text(name), text(module), text(file));
        let (own, total) = (own[index], own[index]);
        nodes.push(Node {
            depth,
            name,
            module,
            file,
            line,
            kind,
            source,
            own,
            total,
            feature: usize::try_from(features[index])
                .unwrap()
                .checked_sub(1)
                .map(|feature| text(titles[feature])),
        });
    }
    // From the back every node adds its total to the nearest one before it that is less deep.
    for index in (1..nodes.len()).rev() {
        let parent = nodes[..index]
            .iter()
            .rposition(|node| node.depth < nodes[index].depth);
        let total = nodes[index].total;
        nodes[parent.unwrap()].total += total;
    }
    Columns {
        period_ns,
        idle,
        nodes,
    }
}

pub(super) fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for position in 0..10 {
        let (byte, after) = rest.split_first().expect("varint is cut off");
        *rest = after;
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("varint is too long");
}

/// What a reader must get, as JSON with one line for each node.
fn describe(columns: &Columns) -> String {
    let deepest = columns.nodes.iter().map(|node| node.depth).max();
    let nodes: Vec<String> = columns
        .nodes
        .iter()
        .map(|node| {
            let mut described = json!({
                "depth": node.depth, "name": node.name, "kind": node.kind,
                "self": node.own, "total": node.total,
            });
            if columns.nodes.len() <= DETAILED_NODES {
                described["module"] = json!(node.module);
                described["file"] = json!(node.file);
                described["line"] = json!(node.line);
                described["source"] = json!(node.source);
            }
            format!("  {described}")
        })
        .collect();
    let idle = match columns.idle {
        Some(numbers) => format!("\"idle\": {},\n", json!(numbers)),
        None => String::new(),
    };
    format!(
        "{{{idle}\"period_ns\": {}, \"root_total\": {}, \"node_count\": {}, \"max_depth\": {},\n\
         \"nodes\": [\n{}\n]}}\n",
        columns.period_ns,
        columns.nodes[0].total,
        nodes.len(),
        deepest.unwrap_or(0),
        nodes.join(",\n"),
    )
}

fn check(name: &str, profile: &Profile) {
    check_idle(name, profile, None);
}

fn check_idle(name: &str, profile: &Profile, idle: Option<&IdleShare>) {
    let directory =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/flamegraph");
    let view = View {
        idle,
        ..View::default()
    };
    let bytes = render_view(profile, Format::Flamegraph, &view).unwrap();
    let description = describe(&decode(&bytes));
    let (columns, expected) = (
        directory.join(format!("{name}.pfg1")),
        directory.join(format!("{name}.json")),
    );
    if std::env::var_os("PROFILER_BLESS").is_some() {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(&columns, &bytes).unwrap();
        std::fs::write(&expected, &description).unwrap();
    }
    let remedy = "PROFILER_BLESS=1 writes the golden files anew";
    assert_eq!(
        std::fs::read_to_string(&expected).expect(remedy),
        description,
        "{remedy}"
    );
    assert!(
        std::fs::read(&columns).expect(remedy) == bytes,
        "{name}.pfg1 differs; {remedy}"
    );
}

#[test]
fn simple() {
    check("simple", &sketch::simple());
}

#[test]
fn inlined() {
    check("inlined", &sketch::inlined());
}

#[test]
fn odd_names() {
    check("odd-names", &sketch::odd_names());
}

#[test]
fn deep() {
    check("deep", &sketch::deep());
}

#[test]
fn pruned() {
    check("pruned", &sketch::pruned());
}

#[test]
fn idle() {
    let share = IdleShare {
        count: 3,
        ns: 250_000_000,
        total_count: 1_000,
        total_ns: 9_007_199_254_740_991,
        ..IdleShare::default()
    };
    check_idle("idle", &sketch::simple(), Some(&share));
}

#[test]
fn empty() {
    check("empty", &sketch::empty());
}
