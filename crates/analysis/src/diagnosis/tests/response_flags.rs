//! Findings about response flags of access logs.

use profiler_model::{
    LoggedRequests, LoggingEnvoy, RequestTable,
    diagnosis::{Finding, Severity},
};

use super::{Sample, embedded, profile};
use crate::{
    diagnosis::{DiagnosisInput, DiagnosisRules, diagnose},
    idle::IdleRules,
    logged_requests::tests::{envoy, flagged},
};

/// The Envoy that has samples.
const ENVOY: u32 = 7;

fn with_flags(pid: Option<u32>, flags: &[(&str, u64)]) -> LoggingEnvoy {
    let flags = flags
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count));
    LoggingEnvoy {
        flags: flags.collect(),
        ..envoy(pid)
    }
}

fn found_by(rules: &DiagnosisRules, envoys: Vec<LoggingEnvoy>) -> Vec<Finding> {
    let samples = [(ENVOY, 8), (ENVOY + 10, 18)].map(|(pid, tid)| Sample {
        pid,
        tid,
        count: 500,
        ..Sample::of(&["Envoy::Router::Filter::x()", "main"])
    });
    let on_cpu = profile(&samples, 10);
    let table = RequestTable {
        logged: Some(LoggedRequests {
            envoys,
            ..LoggedRequests::default()
        }),
        ..RequestTable::default()
    };
    let input = DiagnosisInput {
        on_cpu: Some(&on_cpu),
        requests: Some(&table),
        ..DiagnosisInput::default()
    };
    let mut findings = diagnose(rules, &IdleRules::new(None).unwrap(), &input).findings;
    findings.retain(|finding| finding.id.starts_with("response_flag"));
    findings
}

/// Findings about an Envoy with 1,000 requests, of which so many have these flags.
fn found(flags: &[(&str, u64)]) -> Vec<Finding> {
    found_by(&embedded(), vec![with_flags(Some(ENVOY), flags)])
}

#[test]
fn a_finding_names_the_hosts_that_requests_with_the_flag_went_to() {
    let envoy = LoggingEnvoy {
        flagged: vec![flagged("UF", "10.0.0.1:80", 19), flagged("UF", "", 1)],
        ..with_flags(Some(ENVOY), &[("UF", 20)])
    };
    let findings = found_by(&embedded(), vec![envoy]);
    let text = "20 of 1,000 requests of envoy (7) have it: 19 to 10.0.0.1:80 of cluster web, 1 to no host of cluster web. The connection";
    assert!(findings[0].reason.contains(text), "{findings:#?}");
}

#[test]
fn a_flag_is_a_finding_with_its_share_its_envoy_and_its_cause() {
    let findings = found(&[("UF", 20)]);
    let [finding] = findings.as_slice() else {
        panic!("{findings:#?}");
    };
    assert_eq!(finding.id, "response_flag_uf");
    assert_eq!(
        finding.title,
        "Response flag UF (UpstreamConnectionFailure)"
    );
    assert_eq!(finding.share_text(), "2.0 % (1.3 to 3.1)");
    assert_eq!(finding.severity, Severity::Low);
    for part in [
        "20 of 1,000 requests of envoy (7) have it. The connection to the upstream could not be made",
        "Usual cause: Connection refused",
        "`connect_timeout`",
    ] {
        assert!(finding.reason.contains(part), "{}", finding.reason);
    }
}

#[test]
fn the_most_frequent_flag_is_the_first() {
    let findings = found(&[("DC", 60), ("UH", 200), ("UC", 10)]);
    let ids: Vec<&str> = findings.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(
        ids,
        ["response_flag_uh", "response_flag_dc", "response_flag_uc"]
    );
    let severities: Vec<Severity> = findings.iter().map(|finding| finding.severity).collect();
    assert_eq!(
        severities,
        [Severity::High, Severity::Medium, Severity::Low]
    );
}

#[test]
fn few_requests_and_responses_of_a_cache_are_no_finding() {
    assert!(found(&[("UF", 9), ("RFCF", 900), ("NEW", 500)]).is_empty());
    assert_eq!(found(&[("UF", 10)]).len(), 1);
    let few = |count| {
        let envoy = LoggingEnvoy {
            requests: 100,
            ..with_flags(Some(ENVOY), &[("UF", count)])
        };
        found_by(&embedded(), vec![envoy])
    };
    assert!(few(4).is_empty());
    assert_eq!(few(5).len(), 1);
}

#[test]
fn what_is_configured_to_happen_is_worth_knowing_and_no_fault() {
    for flag in ["RL", "FI", "UAEX"] {
        assert_eq!(found(&[(flag, 500)])[0].severity, Severity::Info, "{flag}");
    }
}

#[test]
fn envoys_that_are_not_diagnosed_have_none() {
    for pid in [None, Some(99)] {
        let envoys = vec![with_flags(pid, &[("UF", 500)])];
        assert!(found_by(&embedded(), envoys).is_empty(), "{pid:?}");
    }
}

#[test]
fn of_several_envoys_the_one_with_the_greatest_share_is_named_first() {
    let envoys = vec![
        with_flags(Some(ENVOY), &[("UF", 20)]),
        LoggingEnvoy {
            connections: 1_000,
            ..with_flags(Some(ENVOY + 10), &[("UF", 200)])
        },
    ];
    let findings = found_by(&embedded(), envoys);
    let [finding] = findings.as_slice() else {
        panic!("{findings:#?}");
    };
    let first = "200 of 2,000 requests and connections of envoy (17) have it.";
    assert!(finding.reason.starts_with(first), "{}", finding.reason);
    let also = "Also: envoy (7) 2.0 %.";
    assert!(finding.reason.contains(also), "{}", finding.reason);
}

#[test]
fn the_rule_can_be_disabled() {
    let mut rules = embedded();
    rules
        .add("version = 1\ndisable = [\"response_flag\"]")
        .unwrap();
    let envoys = vec![with_flags(Some(ENVOY), &[("UF", 500)])];
    assert!(found_by(&rules, envoys).is_empty());
}
