//! The embedded rules on waits recorded from real programs (tests/fixtures/idle).
//!
//! Each file holds what `record --kind off-cpu --format pprof` gave for a program that had next to
//! nothing to do, with the rule that should hold; an empty rule stands for a wait that is not idle.

use std::{collections::BTreeSet, path::PathBuf};

use serde::Deserialize;

use super::{
    IdleRules,
    tests::{Wait, rule_of},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    wait: Vec<Expected>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    process: String,
    thread: String,
    state: String,
    /// From the leaf on.
    kernel: Vec<String>,
    user: Vec<String>,
    rule: String,
}

fn recorded() -> Vec<Expected> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/idle");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let recorded: Recorded =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        recorded.wait
    };
    files.iter().flat_map(read).collect()
}

fn found(rules: &IdleRules, expected: &Expected) -> String {
    let wait = Wait {
        process: &expected.process,
        thread: &expected.thread,
        state: &expected.state,
        kernel: &texts(&expected.kernel),
        user: &texts(&expected.user),
    };
    rule_of(rules, &wait).unwrap_or_default()
}

fn texts(frames: &[String]) -> Vec<&str> {
    frames.iter().map(String::as_str).collect()
}

#[test]
fn recorded_waits_are_classed_as_expected() {
    let rules = IdleRules::new(None).unwrap();
    for expected in recorded() {
        let Expected {
            process,
            thread,
            rule,
            user,
            ..
        } = &expected;
        assert_eq!(
            &found(&rules, &expected),
            rule,
            "{process}/{thread}: {user:?}"
        );
    }
}

#[test]
fn every_rule_holds_for_something_that_was_recorded() {
    let rules = IdleRules::new(None).unwrap();
    let alive: BTreeSet<String> = recorded()
        .iter()
        .map(|expected| found(&rules, expected))
        .collect();
    let dead: Vec<&str> = rules
        .names()
        .filter(|name| !alive.contains(*name))
        .collect();
    assert!(
        dead.is_empty(),
        "no recorded wait is idle by {dead:?}: record one, or remove the rule"
    );
}
