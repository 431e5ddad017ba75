//! Comparisons, and the golden files in tests/fixtures/diff, which the page's reader is tested with
//! as well. `PROFILER_BLESS=1` writes them anew.

use std::{collections::BTreeSet, path::PathBuf};

use profiler_model::{Clock, IdleShare, Pair, Profile};
use serde_json::json;

use crate::render::{
    Value,
    diff::{DiffView, Norm, Report, Side, Unknown, Verdict, render, report},
};

use super::{
    fixtures::varint,
    sketch::{Sketch, deep, empty, pruned, simple},
};

struct Node {
    depth: usize,
    name: String,
    module: String,
    kind: u8,
    own: [u64; 2],
    total: [u64; 2],
    /// For shares and for rates; `None` where nothing can be tested.
    chance: [Option<u64>; 2],
}

struct Columns {
    unit_ns: [u64; 2],
    covered_ns: [u64; 2],
    idle: Option<Vec<u64>>,
    nodes: Vec<Node>,
    /// Why nothing can be tested, for shares and for rates; 0: it can.
    unknown: [u64; 2],
}

/// Reads the columns as docs/diff-format.md describes them.
fn decode(bytes: &[u8]) -> Columns {
    let mut rest = bytes.strip_prefix(b"PFD2").expect("magic");
    let rest = &mut rest;
    let flags = varint(rest);
    assert!(flags <= 1, "flags {flags}");
    let unit_ns = [varint(rest), varint(rest)];
    let covered_ns = [varint(rest), varint(rest)];
    let idle = (flags == 1).then(|| (0..8).map(|_| varint(rest)).collect());
    let strings: Vec<String> = (0..varint(rest))
        .map(|_| {
            let length = usize::try_from(varint(rest)).unwrap();
            let (text, after) = rest.split_at(length);
            *rest = after;
            String::from_utf8(text.to_vec()).unwrap()
        })
        .collect();
    let text = |id: u64| strings[usize::try_from(id).unwrap()].clone();
    let labels: Vec<(String, String, u8)> = (0..varint(rest))
        .map(|_| {
            let [name, module, _file, _line] =
                [varint(rest), varint(rest), varint(rest), varint(rest)];
            let [kind, _source, after @ ..] = *rest else {
                panic!("label is cut off")
            };
            *rest = after;
            (text(name), text(module), *kind)
        })
        .collect();
    let count = varint(rest);
    let mut column = || (0..count).map(|_| varint(rest)).collect::<Vec<u64>>();
    let (depths, a, b, label) = (column(), column(), column(), column());
    let (mut unknown, mut chance) = ([0; 2], [None, None]);
    for (unknown, chance) in unknown.iter_mut().zip(&mut chance) {
        *unknown = varint(rest);
        assert!(*unknown <= 2, "unknown {unknown}");
        if *unknown == 0 {
            *chance = Some((0..count).map(|_| varint(rest)).collect::<Vec<u64>>());
        }
    }
    assert!(rest.is_empty(), "{} bytes follow", rest.len());
    let mut nodes: Vec<Node> = Vec::new();
    for index in 0..depths.len() {
        let (name, module, kind) = labels[usize::try_from(label[index]).unwrap()].clone();
        let own = [a[index], b[index]];
        nodes.push(Node {
            depth: usize::try_from(depths[index]).unwrap(),
            name,
            module,
            kind,
            own,
            total: own,
            chance: chance
                .each_ref()
                .map(|codes| codes.as_ref().map(|codes| codes[index])),
        });
    }
    for index in (1..nodes.len()).rev() {
        let parent = nodes[..index]
            .iter()
            .rposition(|node| node.depth < nodes[index].depth);
        let total = nodes[index].total;
        let parent = &mut nodes[parent.unwrap()].total;
        (parent[0], parent[1]) = (parent[0] + total[0], parent[1] + total[1]);
    }
    Columns {
        unit_ns,
        covered_ns,
        idle,
        nodes,
        unknown,
    }
}

fn side<'a>(profile: &'a Profile, idle: Option<&'a IdleShare>) -> Side<'a> {
    Side { profile, idle }
}

fn columns(a: &Profile, b: &Profile) -> Columns {
    decode(&render(side(a, None), side(b, None), DiffView::default()))
}

fn functions(a: &Profile, b: &Profile, norm: Norm) -> Report {
    report(side(a, None), side(b, None), DiffView::default(), norm, 0).unwrap()
}

/// Process 100 "work" with `hot` and `cold` samples of two functions below main.
fn shares(pid: u32, hot: u64, cold: u64) -> Profile {
    let mut sketch = Sketch::new();
    sketch.pid = pid;
    let (main, spin, rest) = (
        sketch.user("main"),
        sketch.user("spin"),
        sketch.user("rest"),
    );
    if hot > 0 {
        sketch.sample(hot, vec![main, spin]);
    }
    sketch.sample(cold, vec![main, rest]);
    sketch.finish()
}

fn check(name: &str, (a, b): (&Profile, &Profile), idle: Option<(&IdleShare, &IdleShare)>) {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/diff");
    let (first, second) = idle.unzip();
    let bytes = render(side(a, first), side(b, second), DiffView::default());
    let read = decode(&bytes);
    let nodes: Vec<String> = read
        .nodes
        .iter()
        .map(|node| {
            let line = json!({
                "depth": node.depth, "name": node.name, "module": node.module, "kind": node.kind,
                "self": node.own, "total": node.total, "chance": node.chance,
            });
            format!("  {line}")
        })
        .collect();
    let description = format!(
        "{{\"unit_ns\": {:?}, \"covered_ns\": {:?}, \"idle\": {}, \"unknown\": {:?},\n\"nodes\": [\n{}\n]}}\n",
        read.unit_ns,
        read.covered_ns,
        json!(read.idle),
        read.unknown,
        nodes.join(",\n"),
    );
    let (file, expected) = (
        directory.join(format!("{name}.pfd2")),
        directory.join(format!("{name}.json")),
    );
    if std::env::var_os("PROFILER_BLESS").is_some() {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(&file, &bytes).unwrap();
        std::fs::write(&expected, &description).unwrap();
    }
    let remedy = "PROFILER_BLESS=1 writes the golden files anew";
    assert_eq!(
        std::fs::read_to_string(&expected).expect(remedy),
        description,
        "{remedy}"
    );
    assert!(
        std::fs::read(&file).expect(remedy) == bytes,
        "{name}.pfd2 differs; {remedy}"
    );
}

#[test]
fn golden_files() {
    check("changed", (&simple(), &shares(9, 40, 60)), None);
    check("new", (&empty(), &simple()), None);
    check("removed", (&simple(), &empty()), None);
    let idle = IdleShare {
        count: 3,
        ns: 250_000_000,
        total_count: 1_000,
        total_ns: 9_007_199_254_740_991,
        ..IdleShare::default()
    };
    check(
        "idle",
        (&shares(1, 1, 2), &shares(2, 3, 4)),
        Some((&idle, &IdleShare::default())),
    );
}

#[test]
fn both_sides_add_up_to_what_they_have() {
    for (a, b) in [
        (simple(), deep()),
        (deep(), pruned()),
        (pruned(), simple()),
        (empty(), pruned()),
    ] {
        let read = columns(&a, &b);
        assert_eq!(read.nodes[0].total, [a.total_count(), b.total_count()]);
        // No path stands twice: siblings differ.
        let mut path: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for node in &read.nodes {
            path.truncate(node.depth);
            path.push(format!("{}\0{}\0{}", node.kind, node.name, node.module));
            assert!(seen.insert(path.clone()), "{path:?}");
        }
    }
}

#[test]
fn a_profile_does_not_differ_from_itself() {
    let profile = simple();
    let read = columns(&profile, &profile);
    assert!(read.nodes.iter().all(|node| node.own[0] == node.own[1]));
    let report = functions(&profile, &profile, Norm::Share);
    assert!(
        report
            .functions
            .iter()
            .all(|function| function.change == 0.0)
    );
    assert!(
        report
            .functions
            .iter()
            .all(|function| !function.verdict.is_significant())
    );
}

#[test]
fn processes_are_the_same_by_name_whatever_their_pid() {
    let read = columns(&shares(100, 10, 10), &shares(200, 30, 10));
    let names: Vec<&str> = read.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["all", "work", "main", "rest", "spin"]);
    assert_eq!(read.nodes[4].own, [10, 30]);
}

#[test]
fn the_changed_function_comes_first_and_is_significant() {
    let report = functions(&shares(1, 100, 900), &shares(2, 150, 850), Norm::Share);
    assert_eq!(report.norm(), Norm::Share);
    let first = &report.functions[0];
    assert!(["spin", "rest"].contains(&first.name.as_str()));
    assert!((first.change.abs() - 0.05).abs() < 1e-12);
    let spin = report
        .functions
        .iter()
        .find(|one| one.name == "spin")
        .unwrap();
    assert_eq!(spin.own, Pair { a: 100, b: 150 });
    let Verdict::Tested { test, q } = spin.verdict else {
        panic!("not tested: {spin:?}")
    };
    // The values of tests/fixtures/statistics/two_samples.json; two functions were tested.
    assert!((test.z - 3.380_617_018_914_066).abs() < 1e-9, "{test:?}");
    assert!((q - 0.000_723_232_716_430_193).abs() < 1e-9, "{q}");
    assert_eq!(report.tested, 2);
    let [before, after] = report.normalised(spin.own);
    assert!((before - 0.1).abs() < 1e-12 && (after - 0.15).abs() < 1e-12);
    // What only calls others has nothing of its own to test, but its total is there.
    let main = report
        .functions
        .iter()
        .find(|one| one.name == "main")
        .unwrap();
    assert_eq!(main.total, Pair { a: 1000, b: 1000 });
    assert_eq!(main.verdict, Verdict::TooFew);
}

#[test]
fn rates_look_at_the_time_that_is_covered() {
    let a = shares(1, 300, 100);
    let mut b = shares(2, 300, 100);
    b.to_ns = b.from_ns + 2 * (a.to_ns - a.from_ns);
    let by_share = functions(&a, &b, Norm::Share);
    assert!(by_share.functions.iter().all(|one| one.change == 0.0));
    let by_rate = functions(&a, &b, Norm::Rate);
    assert_eq!(by_rate.functions[0].name, "spin");
    assert!(by_rate.functions[0].change < 0.0);
    assert!(by_rate.functions[0].verdict.is_significant());
}

#[test]
fn times_are_not_tested() {
    let view = DiffView {
        value: Some(Value::Duration),
        ..DiffView::default()
    };
    let (a, b) = (shares(1, 100, 900), shares(2, 500, 500));
    let report = report(side(&a, None), side(&b, None), view, Norm::Share, 0).unwrap();
    assert_eq!(report.unknown, Some(Unknown::NotSamples));
    assert!(
        report
            .functions
            .iter()
            .all(|one| one.verdict == Verdict::Unknown)
    );
    let mut waits = shares(1, 100, 900);
    waits.clock = Clock::Switches;
    let of_waits = functions(&waits, &waits, Norm::Share);
    assert_eq!(of_waits.unknown, Some(Unknown::NotSamples));
    let read = columns(&waits, &waits);
    assert_eq!(read.unknown, [1, 1]);
    assert!(read.nodes.iter().all(|node| node.chance == [None, None]));
}

#[test]
fn each_frame_has_what_chance_can_explain_of_its_total() {
    let read = columns(&shares(1, 100, 900), &shares(2, 150, 850));
    assert_eq!(read.unknown, [0, 0]);
    let of = |name: &str| {
        let node = read.nodes.iter().find(|node| node.name == name).unwrap();
        node.chance[0].unwrap()
    };
    // p of tests/fixtures/statistics/two_samples.json in hundred thousandths, and that it is below 0.05.
    assert_eq!(of("spin"), 1 + 2 * 72 + 1);
    // All of it is on both sides: fewer than five samples are expected elsewhere.
    assert_eq!(of("main"), 0);
    let same = columns(&shares(1, 100, 900), &shares(2, 100, 900));
    let spin = same.nodes.iter().find(|node| node.name == "spin").unwrap();
    assert_eq!(spin.chance, [Some(1 + 2 * 100_000); 2]);
}

#[test]
fn without_one_period_rates_are_not_tested() {
    let mut mixed = shares(1, 100, 900);
    mixed.samples[0].total_ns += 1;
    let read = columns(&mixed, &shares(2, 150, 850));
    assert_eq!(read.unknown, [0, 2]);
    let report = functions(&mixed, &shares(2, 150, 850), Norm::Rate);
    assert_eq!(report.unknown, Some(Unknown::NoPeriod));
}

#[test]
fn the_functions_below_a_frame_are_judged_among_themselves() {
    let twice = |hot: u64, cold: u64| {
        let mut sketch = Sketch::new();
        let names = ["left", "right", "spin", "rest"];
        let [left, right, spin, rest] = names.map(|name| sketch.user(name));
        sketch.sample(hot, vec![left, spin]);
        sketch.sample(cold, vec![left, rest]);
        sketch.sample(cold, vec![right, spin]);
        sketch.finish()
    };
    let (a, b) = (twice(100, 400), twice(150, 400));
    let read = columns(&a, &b);
    let place = |name: &str| read.nodes.iter().position(|node| node.name == name);
    let below = |place: usize| {
        let view = DiffView::default();
        report(side(&a, None), side(&b, None), view, Norm::Share, place)
    };
    let all = below(0).unwrap();
    assert_eq!((all.root.0.as_str(), all.functions.len()), ("all", 5));
    let left = below(place("left").unwrap()).unwrap();
    assert_eq!(left.root, ("left".to_owned(), Pair { a: 500, b: 550 }));
    // Shares stay those of everything.
    assert_eq!(left.all(), all.all());
    let spin = |report: &Report| {
        let found = report.functions.iter().find(|one| one.name == "spin");
        found.unwrap().clone()
    };
    assert_eq!(spin(&all).own, Pair { a: 500, b: 550 });
    assert_eq!(spin(&left).own, Pair { a: 100, b: 150 });
    let close = |change: f64, expected: f64| (change - expected).abs() < 1e-12;
    assert!(close(spin(&left).change, 150.0 / 950.0 - 100.0 / 900.0));
    assert_eq!((left.tested, left.functions.len()), (2, 3));
    let of_left = &left.functions.iter().find(|one| one.name == "left");
    let of_left = of_left.unwrap().total_change;
    assert!(close(of_left, 550.0 / 950.0 - 500.0 / 900.0));
    assert!(below(read.nodes.len()).is_none());
}

#[test]
fn what_was_merged_stands_for_itself() {
    let profile = pruned();
    let read = columns(&profile, &profile);
    let other = read.nodes.iter().position(|node| node.name == "(other)");
    let view = DiffView::default();
    let place = other.expect("small frames");
    let found = report(
        side(&profile, None),
        side(&profile, None),
        view,
        Norm::Share,
        place,
    );
    let found = found.unwrap();
    assert_eq!(found.root.0, "(other)");
    let names: Vec<&str> = found
        .functions
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["(other)"]);
    assert_eq!(found.functions[0].own, found.root.1);
}

#[test]
fn recursion_counts_once() {
    let mut sketch = Sketch::new();
    let again = sketch.user("again");
    sketch.sample(4, vec![again, again, again]);
    let profile = sketch.finish();
    let report = functions(&profile, &empty(), Norm::Share);
    let again = report
        .functions
        .iter()
        .find(|one| one.name == "again")
        .unwrap();
    assert_eq!((again.own.a, again.total.a), (4, 4));
}
