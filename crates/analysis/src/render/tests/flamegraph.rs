use std::collections::BTreeMap;

use profiler_model::{FrameId, Profile};

use crate::render::{Features, Format, View, names::display_name, render, render_view};

use super::{
    fixtures::{Columns, decode},
    sketch::{Sketch, deep, empty, simple},
};

fn columns(profile: &Profile) -> Columns {
    decode(&render(profile, Format::Flamegraph, "").unwrap())
}

/// Paths from the root with their totals and own samples, of what was written.
fn written(columns: &Columns) -> BTreeMap<Vec<String>, (u64, u64)> {
    let mut paths = BTreeMap::new();
    let mut path: Vec<String> = Vec::new();
    for node in &columns.nodes {
        path.truncate(node.depth);
        path.push(format!("{}:{}", node.kind, node.name));
        assert_eq!(path.len(), node.depth + 1);
        let twice = paths.insert(path.clone(), (node.total, node.own));
        assert!(twice.is_none(), "{path:?} appears twice");
    }
    paths
}

/// The same, counted plainly from the samples of a profile made by [`random`].
fn counted(profile: &Profile) -> BTreeMap<Vec<String>, (u64, u64)> {
    let mut paths: BTreeMap<Vec<String>, (u64, u64)> = BTreeMap::new();
    for row in &profile.samples {
        let thread = &profile.threads[row.thread as usize];
        let process = &profile.processes[thread.process as usize];
        let mut path = vec!["0:all".to_owned()];
        path.push(format!("8:{}", profile.text(process.comm)));
        for id in profile.stacks[row.stack as usize].frames.iter().rev() {
            let function = &profile.frames[*id as usize].functions[0];
            path.push(format!("1:{}", profile.text(function.name)));
        }
        for length in 1..=path.len() {
            paths.entry(path[..length].to_vec()).or_default().0 += row.count;
        }
        paths.entry(path).or_default().1 += row.count;
    }
    paths
}

fn random(seed: u64, largest_count: u64) -> Profile {
    let mut state = seed * 2 + 1;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from((state >> 11) % below).unwrap()
    };
    let mut sketch = Sketch::new();
    let frames: Vec<FrameId> = (0..12)
        .map(|name| sketch.user(&format!("f{name}")))
        .collect();
    for _ in 0..next(300) {
        (sketch.comm, sketch.pid) = [("a", 1), ("b", 2)][next(2)];
        sketch.tid = u32::try_from(next(4)).unwrap();
        let stack = (0..next(9)).map(|_| frames[next(12)]).collect();
        let count = if next(4) == 0 {
            1 + next(largest_count) as u64
        } else {
            1
        };
        sketch.sample(count, stack);
    }
    sketch.finish()
}

#[test]
fn every_node_has_exactly_the_samples_of_its_path() {
    for seed in 0..200 {
        let profile = random(seed, 5);
        let mut expected = counted(&profile);
        expected.entry(vec!["0:all".to_owned()]).or_default();
        assert_eq!(written(&columns(&profile)), expected, "seed {seed}");
    }
}

#[test]
fn pruning_moves_small_nodes_into_other_and_loses_nothing() {
    let mut others = 0;
    for seed in 0..200 {
        let profile = random(seed, 60_000);
        let total = profile.total_count();
        let exact = counted(&profile);
        let pruned = written(&columns(&profile));
        for (path, (samples, own)) in &pruned {
            let children = |paths: &BTreeMap<Vec<String>, (u64, u64)>| -> u64 {
                let inside = paths
                    .range(path.clone()..)
                    .take_while(|(deep, _)| deep.starts_with(path));
                inside
                    .filter(|(deep, _)| deep.len() == path.len() + 1)
                    .map(|(_, counts)| counts.0)
                    .sum()
            };
            assert_eq!(own + children(&pruned), *samples, "seed {seed}: {path:?}");
            if path.last().unwrap() == "7:(other)" {
                others += 1;
                assert_eq!(samples, own);
            } else if total > 0 {
                assert_eq!(exact[path], (*samples, *own), "seed {seed}: {path:?}");
                assert!(
                    samples * 8192 >= total,
                    "seed {seed}: {path:?} is too small"
                );
            }
        }
        for (path, (samples, _)) in &exact {
            assert_eq!(
                pruned.contains_key(path),
                samples * 8192 >= total,
                "seed {seed}: {path:?}"
            );
        }
    }
    assert!(
        others > 100,
        "only {others} nodes were merged: the test tests nothing"
    );
}

#[test]
fn the_order_of_samples_does_not_matter() {
    let mut turned = simple();
    let expected = render(&turned, Format::Flamegraph, "").unwrap();
    turned.samples.reverse();
    assert_eq!(render(&turned, Format::Flamegraph, "").unwrap(), expected);
}

#[test]
fn the_period_is_written_when_it_is_the_same_for_all() {
    assert_eq!(columns(&simple()).period_ns, super::sketch::PERIOD_NS);
    assert_eq!(columns(&empty()).period_ns, 0);
    let mut mixed = simple();
    mixed.samples[0].total_ns += 1;
    assert_eq!(columns(&mixed).period_ns, 0);
}

#[test]
fn every_format_takes_deep_and_empty_profiles() {
    for profile in [deep(), empty()] {
        for format in Format::ALL {
            let view = View {
                title: "a title",
                template: Some("@@ABOUT@@ @@PROFILE@@"),
                ..View::default()
            };
            let bytes = render_view(&profile, format, &view).unwrap();
            assert!(
                !bytes.is_empty() || profile.samples.is_empty(),
                "{}",
                format.name()
            );
        }
    }
}

#[test]
fn frames_without_a_name_are_called_by_module_and_offset() {
    let profile = simple();
    let names: Vec<String> = profile
        .frames
        .iter()
        .filter(|frame| frame.functions.is_empty())
        .map(|frame| display_name(&profile, frame))
        .collect();
    assert_eq!(
        names,
        ["libstripped.so.1+0x4f0", "[unknown]+0x7fff00001234"]
    );
}

/// What each node says of its feature, by the names of its path.
fn features_of(profile: &Profile, features: &Features) -> BTreeMap<String, Option<String>> {
    let view = View {
        features: Some(features),
        ..View::default()
    };
    let columns = decode(&render_view(profile, Format::Flamegraph, &view).unwrap());
    let mut path: Vec<String> = Vec::new();
    let mut found = BTreeMap::new();
    for node in columns.nodes {
        path.truncate(node.depth);
        path.push(node.name);
        found.insert(path.join(";"), node.feature);
    }
    found
}

#[test]
fn a_node_has_the_feature_that_its_own_samples_belong_to() {
    let mut sketch = Sketch::new();
    let [main, log, trace, write] = ["main", "log", "trace", "write"].map(|name| sketch.user(name));
    sketch.sample(3, vec![main, log, write]);
    sketch.sample(2, vec![main, log]);
    sketch.sample(4, vec![main, trace, write]);
    sketch.sample(1, vec![main, trace]);
    // Another thread of the process does the same for somebody else.
    (sketch.tid, sketch.thread) = (101, "other");
    sketch.sample(1, vec![main, trace]);
    let profile = sketch.finish();
    let features = |of_threads: [usize; 2]| {
        let titles = ["Access logs", "Tracing", "Health checks"].map(str::to_owned);
        let mut features = Features::new(titles.to_vec());
        for row in &profile.samples {
            let frames = &profile.stacks[row.stack as usize].frames;
            let is_log = frames.contains(&log);
            let thread = &profile.threads[row.thread as usize];
            let of_thread = of_threads[usize::from(thread.tid == 101)];
            features.note(
                thread.process,
                row.stack,
                if is_log { 0 } else { of_thread },
            );
        }
        features_of(&profile, &features)
    };
    let expected = |of_trace: Option<&str>| {
        [
            ("all", None),
            ("all;work", None),
            ("all;work;main", None),
            ("all;work;main;log", Some("Access logs")),
            ("all;work;main;log;write", Some("Access logs")),
            ("all;work;main;trace", of_trace),
            ("all;work;main;trace;write", Some("Tracing")),
        ]
        .map(|(path, feature)| (path.to_owned(), feature.map(str::to_owned)))
        .into()
    };
    assert_eq!(features([1, 1]), expected(Some("Tracing")));
    assert_eq!(features([1, 2]), expected(None));
    // Without a word about a stack nothing is said of it.
    let silent = features_of(&profile, &Features::new(Vec::new()));
    assert!(silent.values().all(Option::is_none), "{silent:?}");
}
