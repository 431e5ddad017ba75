//! `--fail-on`: which findings make the command end with exit code 3.

use anyhow::{Result, bail};
use profiler_analysis::diagnosis::DiagnosisRules;
use profiler_model::diagnosis::{Diagnosis, Finding, Severity};

/// What was named.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FailOn {
    /// This severity and those above it.
    least: Option<Severity>,
    /// Ids of findings.
    findings: Vec<String>,
}

impl FailOn {
    /// Names are those of severities and of findings that the rules know; another one is an error, so that
    /// a typing error does not pass for ever.
    pub(super) fn parse(names: &[String], rules: &DiagnosisRules) -> Result<Self> {
        let known: Vec<String> = rules
            .list()
            .findings
            .into_iter()
            .map(|one| one.id)
            .collect();
        Self::among(names, &known)
    }

    fn among(names: &[String], known: &[String]) -> Result<Self> {
        let mut fail_on = Self::default();
        for name in names {
            let severity = Severity::ALL.into_iter().find(|one| one.name() == name);
            if let Some(severity) = severity {
                // The order of severities is from the highest on.
                fail_on.least = fail_on.least.max(Some(severity));
            } else if known.contains(name) {
                fail_on.findings.push(name.clone());
            } else {
                bail!(
                    "--fail-on {name:?}: is neither a severity ({}) nor a finding ({})",
                    Severity::ALL.map(Severity::name).join(", "),
                    known.join(", ")
                );
            }
        }
        Ok(fail_on)
    }

    /// What to report about the findings that match; `None` when none does.
    pub(super) fn matching(&self, diagnosis: &Diagnosis) -> Option<String> {
        let all = diagnosis.findings.iter();
        let named: Vec<String> = all
            .filter(|finding| self.is_matched(finding))
            .map(|finding| format!("{} ({})", finding.id, finding.severity.name()))
            .collect();
        (!named.is_empty()).then(|| format!("--fail-on matches: {}", named.join(", ")))
    }

    fn is_matched(&self, finding: &Finding) -> bool {
        let severe = self.least.is_some_and(|least| finding.severity <= least);
        severe || self.findings.contains(&finding.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(names: &[&str]) -> Result<FailOn> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let known = ["tracing", "lua", "filter"].map(str::to_owned);
        FailOn::among(&names, &known)
    }

    fn severe(least: Severity) -> FailOn {
        FailOn {
            least: Some(least),
            findings: Vec::new(),
        }
    }

    #[test]
    fn severities_and_findings_are_told_apart() {
        assert_eq!(parse(&[]).unwrap(), FailOn::default());
        assert_eq!(parse(&["medium"]).unwrap(), severe(Severity::Medium));
        assert_eq!(
            parse(&["high", "low", "medium"]).unwrap(),
            severe(Severity::Low)
        );
        let named = parse(&["tracing", "filter"]).unwrap();
        assert_eq!((named.least, named.findings.len()), (None, 2));
    }

    #[test]
    fn a_name_that_is_neither_is_refused_with_all_that_are() {
        for name in ["traccing", "HIGH", "", "filter:rbac"] {
            let error = parse(&[name]).unwrap_err().to_string();
            assert!(error.contains("high, medium, low, info"), "{error}");
            assert!(error.contains("tracing, lua, filter"), "{error}");
        }
    }

    #[test]
    fn a_severity_holds_for_those_above_it() {
        let finding = |severity, id: &str| Finding {
            id: id.to_owned(),
            title: String::new(),
            severity,
            share_percent: 0.0,
            low: 0.0,
            high: 0.0,
            saving: None,
            evidence: Vec::new(),
            reason: String::new(),
            configured: None,
            settings: Vec::new(),
            confidence: profiler_model::diagnosis::Confidence::Exact,
            cells: Vec::new(),
        };
        let check = |fail_on: FailOn, severity, id, expected| {
            assert_eq!(
                fail_on.is_matched(&finding(severity, id)),
                expected,
                "{fail_on:?} {id}"
            );
        };
        check(severe(Severity::Medium), Severity::High, "x", true);
        check(severe(Severity::Medium), Severity::Medium, "x", true);
        check(severe(Severity::Medium), Severity::Low, "x", false);
        check(severe(Severity::Info), Severity::Info, "x", true);
        check(FailOn::default(), Severity::High, "x", false);
        check(parse(&["lua"]).unwrap(), Severity::Info, "lua", true);
        check(parse(&["lua"]).unwrap(), Severity::High, "tracing", false);
    }
}
