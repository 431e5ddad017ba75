//! Files of rules: what a user's file does, and what is reported about wrong ones.

use super::{Sample, attributed, embedded};
use crate::diagnosis::{DiagnosisRules, rules::NO_SYMBOLS};

fn with(text: &str) -> Result<DiagnosisRules, String> {
    let mut rules = embedded();
    rules.add(&format!("version = 1\n{text}"))?;
    Ok(rules)
}

const MINE: &str = "[[rule]]\nname = \"mine\"\nsets = [\"envoy\"]\nfeature = \"lua\"\nframes = [\"Envoy::Router::*\"]\n";

#[test]
fn a_users_rules_come_first() {
    let sample = || Sample::of(&["i:Envoy::Router::Filter [vslot 6]"]);
    assert_eq!(attributed(&embedded(), sample()).0, "routing");
    let rules = with(MINE).unwrap();
    let (feature, _, rule) = attributed(&rules, sample());
    assert_eq!((feature.as_str(), rule.as_deref()), ("lua", Some("mine")));
    let listed = rules.list();
    assert_eq!(listed.rules[0].name, "mine");
    assert_eq!(
        listed.rules[0].origin,
        profiler_model::diagnosis::RuleOrigin::User
    );
    assert_eq!(listed.rules.len(), embedded().len() + 1);
}

#[test]
fn a_rule_of_the_same_name_replaces_and_disabled_ones_are_gone() {
    let renamed = MINE.replace("mine", "Envoy router");
    let rules = with(&renamed).unwrap();
    assert_eq!(rules.len(), embedded().len());
    let less = with("disable = [\"Envoy router\", \"tracing\"]").unwrap();
    assert_eq!(less.len(), embedded().len() - 1);
    let (feature, ..) = attributed(&less, Sample::of(&["Envoy::Router::Filter::x()", "main"]));
    assert_eq!(feature, "unattributed");
    assert!(
        less.list()
            .findings
            .iter()
            .all(|finding| finding.id != "tracing")
    );
}

#[test]
fn a_user_may_add_features() {
    let text = format!(
        "{}\n[[feature]]\nid = \"billing\"\ntitle = \"Billing\"\nabout = \"Ours.\"\n",
        MINE.replace("\"lua\"", "\"billing\"")
    );
    let rules = with(&text).unwrap();
    let (feature, ..) = attributed(&rules, Sample::of(&["Envoy::Router::Filter::x()", "main"]));
    assert_eq!(feature, "billing");
    assert!(rules.cell("billing:copy").is_ok());
}

#[test]
fn cells_are_read_by_name() {
    let rules = embedded();
    let parts = |text: &str| {
        let cell = rules.cell(text).unwrap();
        (cell.feature, cell.mechanism)
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(parts("tracing"), (some("tracing"), None));
    assert_eq!(parts("tracing:copy"), (some("tracing"), some("copy")));
    assert_eq!(parts(":copy"), (None, some("copy")));
    assert_eq!(parts("filter:rbac"), (some("filter:rbac"), None));
    assert_eq!(
        parts("filter:rbac:copy"),
        (some("filter:rbac"), some("copy"))
    );
    assert_eq!(parts(NO_SYMBOLS), (some(NO_SYMBOLS), None));
    for (wrong, said) in [
        ("", "is not one of"),
        (":", "the mechanism \"\" is not one of"),
        ("nonsense", "the feature \"nonsense\" is not one of tracing"),
        (
            ":nonsense",
            "the mechanism \"nonsense\" is not one of parse",
        ),
        ("filter:*", "is not one of"),
        ("filter:", "is not one of"),
        ("filter:A B", "is not one of"),
    ] {
        let error = rules.cell(wrong).unwrap_err();
        assert!(error.contains(said), "{wrong}: {error}");
    }
}

fn check_wrong(text: &str, said: &[&str]) {
    let error = with(text).unwrap_err();
    for part in said {
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    }
}

#[test]
fn errors_name_the_line_and_what_is_wrong() {
    check_wrong("[[rule]\n", &["line 2"]);
    check_wrong("colour = 1\n", &["line 2", "unknown field `colour`"]);
    check_wrong(
        "disable = [\"x\"]",
        &["line 2", "no rule and no finding \"x\""],
    );
    check_wrong("threshold_percent = 101", &["line 2", "0 to 100"]);
    check_wrong(
        &MINE.replace("lua", "luah"),
        &["line 5", "feature \"luah\" is not one of", "lua"],
    );
    check_wrong(
        &MINE.replace("[\"envoy\"]", "[\"envoi\"]"),
        &[
            "line 4",
            "set \"envoi\" is not one of envoy, nginx, generic",
        ],
    );
    check_wrong(&MINE.replace("[\"envoy\"]", "[]"), &["line 3", "in no set"]);
    check_wrong(
        &MINE.replace("feature = \"lua\"", "mechanism = \"copi\""),
        &["line 5", "mechanism \"copi\""],
    );
    check_wrong(
        &MINE.replace("feature = \"lua\"\n", ""),
        &["line 3", "must give a feature"],
    );
    check_wrong(
        &format!("{MINE}mechanism = \"copy\"\n"),
        &["line 3", "must give a feature"],
    );
    check_wrong(
        &MINE.replace("frames = [\"Envoy::Router::*\"]", ""),
        &["line 3", "would hold for everything"],
    );
    check_wrong(
        &MINE.replace("Envoy::Router::*", "*"),
        &["line 6", "matches everything"],
    );
    check_wrong(
        &MINE.replace("Router::*", "{name}::*"),
        &["line 3", "only for the families filter:*"],
    );
    check_wrong(
        &MINE.replace("\"lua\"", "\"filter:*\""),
        &["line 3", "{name}"],
    );
    check_wrong(
        &format!("{MINE}{MINE}"),
        &["line 8", "name of an earlier rule"],
    );
    check_wrong(
        &format!("{MINE}otherwise = \"x\""),
        &["line 7", "mechanism \"x\""],
    );
    check_wrong("[[set]]\nid = \"mine\"\n", &["the agent's own"]);
    let finding = "[[finding]]\nid = \"mine\"\ntitle = \"T\"\nsets = [\"envoy\"]\nreason = \"R\"\n";
    check_wrong(finding, &["line 3", "names no cells"]);
    check_wrong(
        &format!("{finding}cells = [\"x\"]"),
        &["line 7", "the feature \"x\""],
    );
    check_wrong(
        &format!("{finding}cells = [\"lua\"]\nsavable = 1.5"),
        &["line 3", "savable"],
    );
    check_wrong(
        &format!("{finding}cells = [\"lua\"]\nmeasure = \"stalls\""),
        &["line 3", "not measured by cells"],
    );
    let mut rules = embedded();
    assert!(
        rules
            .add("version = 2")
            .unwrap_err()
            .contains("line 1: version 2 is not known")
    );
    assert!(
        rules
            .add("")
            .unwrap_err()
            .contains("missing field `version`")
    );
}

/// Damaged copies of the embedded file are read or refused, and what is read can be used.
#[test]
fn damaged_files_are_refused_or_work() {
    let whole = include_str!("../../../rules/diagnosis.toml");
    let lines: Vec<&str> = whole.lines().collect();
    let mut seed = 1u64;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let (mut read, mut refused) = (0, 0);
    for _copy in 0..150 {
        let mut copy: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        for _damage in 0..=next(3) {
            let at = next(copy.len());
            match next(4) {
                0 => drop(copy.remove(at)),
                1 => copy.swap(at, at.saturating_sub(1)),
                2 => copy[at] = copy[at].chars().rev().collect(),
                _ => copy[at].push_str(["\"", "]", "= 1", "#", "\\"][next(5)]),
            }
        }
        match DiagnosisRules::parse(&copy.join("\n")) {
            Ok(rules) => {
                read += 1;
                attributed(&rules, Sample::of(&["i:Envoy::Router::Filter [vslot 6]"]));
            }
            Err(error) => {
                refused += 1;
                assert!(!error.is_empty());
            }
        }
    }
    assert!(read > 10 && refused > 10, "{read} {refused}");
}
