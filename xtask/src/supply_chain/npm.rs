//! What npm's registry knows about the page's packages and what builds them.

use std::{collections::BTreeMap, process::Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::{web, workspace::Workspace};

/// What npm's errors hold when the registry cannot be reached; anything else is wrong here.
const AWAY: [&str; 6] = [
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONN",
    "ETIMEDOUT",
    "ERR_SOCKET",
    "network timeout at",
];

/// `npm audit --json`, as far as it matters here.
#[derive(Deserialize)]
struct Audit {
    vulnerabilities: Option<BTreeMap<String, Vulnerability>>,
    #[serde(default)]
    metadata: Value,
    /// Present when there is no report.
    #[serde(default)]
    error: Value,
    /// Of the registry, which gave no report.
    #[serde(rename = "statusCode")]
    status: Option<u16>,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Vulnerability {
    #[serde(default)]
    severity: String,
    #[serde(default)]
    range: String,
}

/// What came of the question.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Number of packages without a known weakness.
    Clean(u64),
    Weak(Vec<String>),
    /// The registry gave no report; its words.
    Refused(String),
}

/// Asks npm's registry for weaknesses of all packages. A registry that does not answer this is not a failure: a
/// mirror may not have it.
pub(super) fn audit(workspace: &Workspace) -> Result<String> {
    let arguments = [
        "audit",
        "--json",
        "--fetch-retries=0",
        "--fetch-timeout=10000",
    ];
    let mut npm = web::npm(&workspace.web(), &arguments);
    let output = npm.stdin(Stdio::null()).output().context("start npm")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let verdict = verdict(&said).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("npm audit: {}: {}", output.status, errors.trim())
    })?;
    match verdict {
        Verdict::Clean(packages) => Ok(format!("npm audit finds nothing in {packages} packages")),
        Verdict::Weak(found) => bail!("npm audit: {}", found.join("; ")),
        Verdict::Refused(words) => {
            println!(
                "warning: packages of the page are NOT compared with npm's advisories: {words}"
            );
            Ok("npm audit was asked, and not answered by the registry".to_owned())
        }
    }
}

fn verdict(output: &str) -> Result<Verdict> {
    let audit: Audit = serde_json::from_str(output).context("read npm's report")?;
    if let Some(vulnerabilities) = audit.vulnerabilities {
        if !vulnerabilities.is_empty() {
            let found = vulnerabilities.into_iter().map(|(name, found)| {
                let Vulnerability { severity, range } = found;
                format!("{name} {range} ({severity})")
            });
            return Ok(Verdict::Weak(found.collect()));
        }
        let total = audit.metadata["dependencies"]["total"].as_u64();
        return Ok(Verdict::Clean(
            total.context("npm's report names no package")?,
        ));
    }
    let mut words = vec![audit.message.as_str()];
    words.extend(["code", "summary"].map(|key| audit.error[key].as_str().unwrap_or_default()));
    words.retain(|word| !word.is_empty());
    let words = words.join(" ");
    let is_away = AWAY.iter().any(|away| words.contains(away));
    if audit.status.is_some() || is_away {
        return Ok(Verdict::Refused(words));
    }
    bail!("npm gave no report: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read() {
        let clean = r#"{"vulnerabilities": {}, "metadata": {"dependencies": {"total": 120}}}"#;
        assert_eq!(verdict(clean).unwrap(), Verdict::Clean(120));
        let weak = r#"{"vulnerabilities": {"vite": {"severity": "high", "range": "<8.0.0"}}, "metadata": {}}"#;
        let expected = Verdict::Weak(vec!["vite <8.0.0 (high)".to_owned()]);
        assert_eq!(verdict(weak).unwrap(), expected);
    }

    #[test]
    fn a_registry_that_refuses_is_no_report_and_everything_else_is_an_error() {
        let refused = r#"{"message": "405 Method Not Allowed - POST https://registry/-/npm/v1/security/audits/quick", "statusCode": 405, "error": {"summary": "", "detail": ""}}"#;
        assert!(
            matches!(verdict(refused).unwrap(), Verdict::Refused(words) if words.starts_with("405"))
        );
        // As npm 10 and 11 say it.
        for away in [
            r#"{"error": {"code": "ENOTFOUND", "summary": "request failed", "detail": ""}}"#,
            r#"{"message": "request to http://127.0.0.1:9/x failed, reason: connect ECONNREFUSED 127.0.0.1:9", "error": {"summary": "", "detail": ""}}"#,
            r#"{"message": "network timeout at: http://127.0.0.1:9/x", "error": {"summary": "", "detail": ""}}"#,
        ] {
            assert!(
                matches!(verdict(away).unwrap(), Verdict::Refused(_)),
                "{away}"
            );
        }
        for wrong in [
            "",
            "{}",
            r#"{"error": {"code": "ENOLOCK", "summary": "This command requires an existing lockfile."}}"#,
            r#"{"vulnerabilities": {}}"#,
        ] {
            assert!(verdict(wrong).is_err(), "{wrong}");
        }
    }
}
